/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_threads.h"
#include "config/base/clock.h"
#include "pipeline/io/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void pb_run_threads_init(struct pb_run_threads *t)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr,
                              CLOCK_MONOTONIC); /* time limits do not depend on the wall clock */
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->ended, &attr);
    pthread_condattr_destroy(&attr);
}

void pb_run_threads_fini(struct pb_run_threads *t)
{
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->lock);
}

static void *body(void *arg)
{
    struct pb_run_thread *self = arg;
    struct pb_run_threads *t = self->all;
    static const char *const names[] = {"pb-read", "pb-compute", "pb-write"};
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", names[self->role], self->number % 100);
    (void)pthread_setname_np(pthread_self(), name);
    switch (self->role) {
    case PB_ROLE_READ:
        pb_reader_run(t->stream, self->number);
        if (atomic_fetch_sub(&t->readers_left, 1) == 1)
            wic_close(t->stream->in);
        break;
    case PB_ROLE_COMPUTE:
        t->exec_type->run(t->exec, self->number);
        if (atomic_fetch_sub(&t->workers_left, 1) == 1)
            wic_close(t->stream->out);
        break;
    case PB_ROLE_WRITE:
        pb_writer_run(t->stream, self->number);
        break;
    }
    pthread_mutex_lock(&t->lock);
    if (--t->running == 0)
        pthread_cond_broadcast(&t->ended);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int start_one(struct pb_run_threads *t, enum pb_role role, uint32_t number)
{
    struct pb_run_thread *thread = &t->thread[t->n];
    thread->all = t;
    thread->role = role;
    thread->number = number;
    pthread_mutex_lock(&t->lock);
    t->running++;
    pthread_mutex_unlock(&t->lock);
    int rc = pb_thread_start(&thread->id, body, thread);
    if (rc == 0) {
        t->n++;
        return 0;
    }
    pthread_mutex_lock(&t->lock);
    t->running--;
    pthread_mutex_unlock(&t->lock);
    return rc;
}

int pb_run_threads_start(struct pb_run_threads *t, struct pb_stream *stream,
                         const struct pb_exec_type *type, void *exec, struct pb_err *err)
{
    const uint32_t count[] = {stream->plan->readers, type->threads(exec), stream->plan->writers};
    t->stream = stream;
    t->exec_type = type;
    t->exec = exec;
    atomic_store(&t->readers_left, count[PB_ROLE_READ]);
    atomic_store(&t->workers_left, count[PB_ROLE_COMPUTE]);
    int rc = 0;
    if ((uint64_t)count[0] + count[1] + count[2] > PB_RUN_THREADS_MAX)
        rc = pb_fail(err, PB_E_CONFIG_VALUE,
                     "compute.threads makes %u reading, %u computing and %u writing threads; at "
                     "most %d are run",
                     count[0], count[1], count[2], PB_RUN_THREADS_MAX);
    for (int role = PB_ROLE_WRITE; role >= PB_ROLE_READ && rc == 0; role--)
        for (uint32_t i = 0; i < count[role] && rc == 0; i++)
            rc = start_one(t, (enum pb_role)role, i);
    if (rc < 0) {
        rc = pb_thread_fail(err, rc);
        pb_stream_abort(stream);
    }
    return rc;
}

/* 0, or -ETIMEDOUT while threads are running. */
static int wait_for_end(struct pb_run_threads *t, int64_t timeout_ms)
{
    struct timespec until = pb_clock_mono_after(timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    while (t->running > 0 && rc == 0)
        rc = pthread_cond_timedwait(&t->ended, &t->lock, &until);
    rc = t->running > 0 ? -ETIMEDOUT : 0;
    pthread_mutex_unlock(&t->lock);
    return rc;
}

int pb_run_threads_join(struct pb_run_threads *t, int64_t timeout_ms)
{
    int rc = timeout_ms < 0 ? 0 : wait_for_end(t, timeout_ms);
    for (; rc == 0 && t->joined < t->n; t->joined++)
        (void)pthread_join(t->thread[t->joined].id, NULL);
    return rc;
}
