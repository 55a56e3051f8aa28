/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPLAIN_PLAN_H
#define PB_EXPLAIN_PLAN_H
/* Numbers of a plan as JSON: the array "passes" of service/doc/report.md. Arithmetic only. Thread:
 * any. */
struct pb_json;
struct pb_plan;

/* Writes the array "passes" into the open object: earlier passes, then the pass of the products. */
void pb_explain_passes(const struct pb_plan *plan, struct pb_json *json);
/* Writes the members of one pass into the open object. The pass may be one that pb_plan_serve has
 * made: numbers that it does not compute are 0. */
void pb_explain_pass(const struct pb_plan *pass, struct pb_json *json);
#endif
