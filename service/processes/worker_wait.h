/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_WAIT_H
#define PB_WORKER_WAIT_H
/* Finds the reason for which a worker without progress waits, from /proc. Thread: any. */

/* Returns the reason, for a message, if the machine makes the worker wait: a thread of it or of
 * its children sleeps uninterruptibly, or its own main thread, which decodes nothing, waits in a
 * system call on a file. NULL: it computes, waits for its child, or the reason is unknown. Static.
 */
const char *pb_worker_wait_why(int pid);
#endif
