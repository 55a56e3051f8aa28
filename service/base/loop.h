/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LOOP_H
#define PB_LOOP_H
/* Event loops of libuv that survive a lack of memory. */
#include <uv.h>

/* Does the same as uv_loop_init. libuv aborts the process when its table of descriptors cannot
 * grow; after this call it waits for memory first, and then ends the process with a message and
 * status 1. Call it before any other use of libuv. */
int pb_loop_init(uv_loop_t *loop);
#endif
