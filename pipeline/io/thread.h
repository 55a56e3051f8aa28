/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_THREAD_H
#define PB_THREAD_H
#include "config/base/err.h"

#include <pthread.h>

/* Starts a thread with all signals blocked, so that the program's own threads handle them.
 * (Signals caused by faults of the thread are not blocked.) It takes part in the work
 * (profile/work.h) of the calling thread. Returns 0 or a negative errno. Thread: any. */
int pb_thread_start(pthread_t *out_thread, void *(*body)(void *), void *arg);
/* Reports a thread that did not start, with that negative errno. Returns the result of pb_fail. */
int pb_thread_fail(struct pb_err *err, int rc);
#endif
