/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run_threads.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum role { ROLE_READ, ROLE_COMPUTE, ROLE_WRITE };

struct start {
    struct pb_run_threads *threads;
    enum role role;
    uint32_t number;
};

static void *body(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    struct pb_run_threads *t = start.threads;
    static const char *const names[] = {"pb-read", "pb-compute", "pb-write"};
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", names[start.role], start.number % 100);
    (void)pthread_setname_np(pthread_self(), name);
    switch (start.role) {
    case ROLE_READ:
        pb_reader_run(t->stream);
        if (atomic_fetch_sub(&t->readers_left, 1) == 1)
            wic_close(t->stream->in);
        break;
    case ROLE_COMPUTE:
        t->exec_type->run(t->exec, start.number);
        if (atomic_fetch_sub(&t->workers_left, 1) == 1)
            wic_close(t->stream->out);
        break;
    case ROLE_WRITE:
        pb_writer_run(t->stream, start.number);
        break;
    }
    return NULL;
}

static int start_one(struct pb_run_threads *t, enum role role, uint32_t number)
{
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return -ENOMEM;
    *start = (struct start){t, role, number};
    int rc = pthread_create(&t->thread[t->n], NULL, body, start);
    if (rc != 0) {
        free(start);
        return -rc;
    }
    t->n++;
    return 0;
}

int pb_run_threads_start(struct pb_run_threads *t, struct pb_stream *stream,
                         const struct pb_exec_type *type, void *exec, struct pb_err *err)
{
    const uint32_t count[] = {stream->plan->readers, type->threads(exec), stream->plan->writers};
    t->stream = stream;
    t->exec_type = type;
    t->exec = exec;
    atomic_store(&t->readers_left, count[ROLE_READ]);
    atomic_store(&t->workers_left, count[ROLE_COMPUTE]);
    if (count[0] + count[1] + count[2] > PB_RUN_THREADS_MAX)
        return pb_fail(err, PB_E_PLAN_MEMORY,
                       "compute.threads asks for more than %d threads in all", PB_RUN_THREADS_MAX);
    /* Signals belong to the program's main thread. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = 0;
    for (int role = ROLE_WRITE; role >= ROLE_READ && rc == 0; role--)
        for (uint32_t i = 0; i < count[role] && rc == 0; i++)
            rc = start_one(t, (enum role)role, i);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc < 0) {
        (void)pb_fail(err, PB_E_SYSTEM, "cannot start a thread: %s", strerror(-rc));
        pb_stream_abort(stream);
    }
    return rc;
}

int pb_run_threads_join(struct pb_run_threads *t, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    if (timeout_ms > 0) {
        until.tv_sec += (time_t)(timeout_ms / 1000);
        until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
    }
    for (; t->joined < t->n; t->joined++) {
        int rc = timeout_ms < 0 ? pthread_join(t->thread[t->joined], NULL)
                                : pthread_timedjoin_np(t->thread[t->joined], NULL, &until);
        if (rc == ETIMEDOUT)
            return -ETIMEDOUT;
    }
    return 0;
}
