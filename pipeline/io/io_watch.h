/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IO_WATCH_H
#define PB_IO_WATCH_H
/* Distinguishes storage that does not respond from a computation that does not end: counts the
 * reads of inputs and writes of products in progress in this process. Thread: any. */
#include <stdint.h>

/* Call around each call that may wait for storage. Both preserve errno. */
void pb_io_begin(void);
void pb_io_end(void);
/* Returns the time in ms during which a call has been in progress without any call ending; 0 =
 * no call is in progress. */
int64_t pb_io_stuck_ms(void);
#endif
