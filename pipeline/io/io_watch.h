/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IO_WATCH_H
#define PB_IO_WATCH_H
/* Distinguishes storage that does not answer from a computation that does not end: counts the reads
 * of inputs and writes of products in progress in this process. Thread: any. */
#include <stdint.h>

/* Around each call that may wait for storage. Keep errno. */
void pb_io_begin(void);
void pb_io_end(void);
/* For how long, in ms, a call has been in progress without any call ending; 0 = none is. */
int64_t pb_io_stuck_ms(void);
#endif
