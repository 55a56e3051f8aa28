/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INPUT_SUM_H
#define PB_INPUT_SUM_H
/* The SHA-256 of an input's bytes, computed by a thread of its own while the run reads the same
 * file: name, size and mtime alone do not identify an input. The file is read through a copy of the
 * descriptor that the run uses. One thread an object, besides its own. */
#include "pipeline/raster/raster_file.h"

struct pb_input_sum;

/* file: borrowed for the call. */
int pb_input_sum_create(const struct pb_raster_file *file, struct pb_err *err,
                        struct pb_input_sum **out_sum);
/* Starts the thread, unless it was. A process that forks does so before. */
int pb_input_sum_start(struct pb_input_sum *sum, struct pb_err *err);
/* While get waits, it calls alive(user, bytes read so far) twice a second; may be NULL. */
void pb_input_sum_on_wait(struct pb_input_sum *sum, void (*alive)(void *user, uint64_t bytes),
                          void *user);
/* Starts if need be, waits for the end. 0 and the sum as hex, of the file that lies at the path
 * now, unchanged since it was opened; else what pb_raster_file_fail says, or input.changed. */
int pb_input_sum_get(struct pb_input_sum *sum, struct pb_err *err, char out_hex[65]);
/* Ends the thread; waits for the read that it is in. NULL is fine. */
void pb_input_sum_destroy(struct pb_input_sum *sum);
#endif
