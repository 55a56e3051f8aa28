/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_PASSES_H
#define PB_RUN_PASSES_H
/* Passes of a run, one after the other: those that reductions need, each with its rounds, then the
 * one whose tiles the products get. create, start, wait, report and destroy belong
 * to one thread; abort and progress to any, between create and destroy. */
#include "pipeline/run/passes/pass.h"

struct pb_run_passes;

/* request: for the last pass; its pointers must stay valid until destroy. Makes the first pass. */
int pb_run_passes_create(const struct pb_pass_request *request, struct pb_err *err,
                         struct pb_run_passes **out_passes);
int pb_run_passes_start(struct pb_run_passes *passes, struct pb_err *err);
/* Same contract as pb_run_wait, for all passes. */
int pb_run_passes_wait(struct pb_run_passes *passes, int64_t timeout_ms, struct pb_err *err);
/* Call after a wait that returned 0: frees the slots of the last pass, its executor, and its
 * session with another process. Progress and report stay; a wait returns at once. */
void pb_run_passes_end(struct pb_run_passes *passes);
/* Ends the running pass; a wait reports *why, or a cancelled job when why is NULL. */
void pb_run_passes_abort(struct pb_run_passes *passes, const struct pb_err *why);
/* Sums the tiles and bytes of all passes. */
void pb_run_passes_progress(struct pb_run_passes *passes, struct pb_run_progress *out);
void pb_run_passes_report(const struct pb_run_passes *passes, struct pb_run_report *out);
void pb_run_passes_destroy(struct pb_run_passes *passes); /* NULL is fine */
#endif
