/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_VALUES_H
#define PB_SCHEMA_VALUES_H
/* Readers of values, by the types of kernels/key.h; what = "section.key" for messages. They write
 * valid values only. Internal to config/. */
#include "config/schema.h"

struct pb_band_config;
struct pb_file_config;
struct pb_inbox_config;
struct pb_source_config;

/* Of the types that are scalars; fills the members of the struct at base. */
void pb_read_scalar(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                    const char *what, void *base);
/* A number in the key's range. False after a mistake. */
bool pb_read_number(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                    const char *what, double *out_value);
/* Of a type that is struct pb_items. *out_items gets what is good. */
void pb_read_items(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                   const char *what, struct pb_items *out_items);
/* [2, 98], percentiles, or [-1, 1], a range. */
void pb_read_pair(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                  const char *what, void *base);
/* BANDS: names, each once; PATTERNS for file names; or COMMAND. */
void pb_read_words(struct pb_load *load, const struct pb_yaml *node, const char *what,
                   enum pb_key_type type, char ***out_words, size_t *out_n);
/* {PAN: {file: /data/pan/{scene}.tif, bands: {P: 1}}} */
void pb_read_sources(struct pb_load *load, const struct pb_yaml *node, const char *what,
                     struct pb_source_config **out_sources, size_t *out_n);
/* {R: B04.tif, S1: {match: B11.tif, resample: bilinear}} */
void pb_read_files(struct pb_load *load, const struct pb_yaml *node, const char *what,
                   struct pb_file_config **out_files, size_t *out_n);
/* [{path: /srv/feed}] */
void pb_read_inboxes(struct pb_load *load, const struct pb_yaml *node, const char *what,
                     struct pb_inbox_config **out_inboxes, size_t *out_n);
/* That a pattern names files inside a scene's folder. */
void pb_check_file_pattern(struct pb_load *load, const struct pb_yaml *node, const char *what,
                           const char *match);
/* {B: 1, N: 4} */
void pb_read_band_map(struct pb_load *load, const struct pb_yaml *node, const char *what,
                      struct pb_band_config **out_bands, size_t *out_n);
#endif
