/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct started {
    void *(*body)(void *);
    void *arg;
    struct pb_work_ledger *ledger;
};

/* Body of a thread whose work is counted with that of its creator. */
static void *counted(void *arg)
{
    struct started started = *(struct started *)arg;
    free(arg);
    pb_work_enter(started.ledger);
    void *end = started.body(started.arg);
    pb_work_leave();
    return end;
}

static int start(pthread_t *out_thread, void *(*body)(void *), void *arg)
{
    struct pb_work_ledger *ledger = pb_work_ledger();
    if (ledger == NULL)
        return pthread_create(out_thread, NULL, body, arg);
    struct started *started = malloc(sizeof *started);
    if (started == NULL)
        return ENOMEM;
    *started = (struct started){body, arg, ledger};
    int rc = pthread_create(out_thread, NULL, counted, started);
    if (rc != 0)
        free(started);
    return rc;
}

int pb_thread_start(pthread_t *out_thread, void *(*body)(void *), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before); /* inherited by the thread */
    int rc = start(out_thread, body, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int pb_thread_fail(struct pb_err *err, int rc)
{
    return pb_fail(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_SYSTEM, "cannot start a thread: %s",
                   strerror(-rc));
}
