/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/thread.h"

#include <signal.h>
#include <stddef.h>

int pb_thread_start(pthread_t *out_thread, void *(*body)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before); /* inherited by the thread */
    int rc = pthread_create(out_thread, NULL, body, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}
