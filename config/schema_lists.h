/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_LISTS_H
#define PB_SCHEMA_LISTS_H
/* Readers of the keys that are lists or maps; what = "section.key" for messages. They write only
 * good values. Internal to config/. */
#include "config/schema.h"

/* [2, 98] */
void pb_read_percentiles(struct pb_load *load, const struct pb_yaml *node, const char *what,
                         double *out_pair);
/* Band names, each once, or patterns for file names. */
void pb_read_words(struct pb_load *load, const struct pb_yaml *node, const char *what, bool bands,
                   char ***out_words, size_t *out_n);
/* {B: 1, N: 4} */
void pb_read_band_map(struct pb_load *load, const struct pb_yaml *node, const char *what,
                      struct pb_band_config **out_bands, size_t *out_n);
#endif
