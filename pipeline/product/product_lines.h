/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_LINES_H
#define PB_PRODUCT_LINES_H
/* Times of the lines of a scene that arrived as a stream. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

struct pb_product_env;

#define PB_LINE_TIME_BYTES 40

/* Writes a time as RFC 3339 in UTC with microseconds; "" for 0 (unknown). */
void pb_product_line_time(int64_t time_ns, char out[PB_LINE_TIME_BYTES]);
/* Finds the times of the first and the last line with a time. Returns false if no line has one, or
 * the scene is not of a stream. While lines arrive, later ones are not considered. */
bool pb_product_line_span(const struct pb_product_env *env, char out_start[PB_LINE_TIME_BYTES],
                          char out_end[PB_LINE_TIME_BYTES]);
#endif
