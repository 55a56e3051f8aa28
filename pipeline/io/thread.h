/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_THREAD_H
#define PB_THREAD_H
#include <pthread.h>

/* Starts a thread with all signals blocked, so that the program's own threads handle them. (Signals
 * caused by faults of the thread are not blocked.) It takes part in the work (profile/work.h) that
 * the calling thread takes part in. 0 or a negative errno. Thread: any. */
int pb_thread_start(pthread_t *out_thread, void *(*body)(void *), void *arg);
#endif
