/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_THREAD_H
#define PB_THREAD_H
#include <pthread.h>

/* Starts a thread that takes no signals: they belong to the program's own threads. (Those that a
 * fault raises stay as they are.) 0 or a negative errno. Thread: any. */
int pb_thread_start(pthread_t *out_thread, void *(*body)(void *), void *arg);
#endif
