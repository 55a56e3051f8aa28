/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_JSON_H
#define PB_SCHEMA_JSON_H
/* The configuration as a JSON Schema (2020-12), for editors: keys, types, ranges and words of the
 * same tables that a load reads by. It accepts every configuration that a load accepts; checks
 * across keys, of expressions and of names of bands are left to check-config. Thread: any. */
struct pb_json;
struct pb_product_kinds;

/* Writes one object. */
void pb_config_schema(const struct pb_product_kinds *kinds, struct pb_json *json);
#endif
