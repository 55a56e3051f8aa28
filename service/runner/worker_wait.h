/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_WAIT_H
#define PB_WORKER_WAIT_H
/* What a worker without progress waits for, as /proc tells. Thread: any. */

/* NULL: it computes, or waits for its child, or nothing is known; else, for a message, why it is
 * the machine that keeps it waiting: a thread of it or of its children sleeps uninterruptibly, or
 * its own main thread, which decodes nothing, waits in a call that is about a file. Static. */
const char *pb_worker_wait_why(int pid);
#endif
