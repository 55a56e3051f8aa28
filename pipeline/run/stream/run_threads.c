/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/run_threads.h"
#include "config/base/clock.h"
#include "pipeline/io/thread.h"

#include <errno.h>
#include <stdio.h>
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
    pb_tile_workers_destroy(t->workers);
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->lock);
}

static void *body(void *arg)
{
    struct pb_run_thread *self = arg;
    struct pb_run_threads *t = self->all;
    static const char *const names[] = {"pb-read", "pb-compute", "pb-write", "pb-tile"};
    char name[16];
    (void)snprintf(name, sizeof name, "%s-%u", names[self->role], self->number % 100);
    (void)pthread_setname_np(pthread_self(), name);
    switch (self->role) {
    case PB_ROLE_READ:
        if (t->exec_type->read != NULL)
            t->exec_type->read(t->exec, self->number);
        else
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
    case PB_ROLE_TILES:
        pb_tile_worker_run(t->workers, self->number);
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

static int start_all(struct pb_run_threads *t, enum pb_role role, uint32_t count)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = start_one(t, role, i);
    return rc;
}

/* Starts the threads of each stage. */
static int start_stages(struct pb_run_threads *t, struct pb_err *err)
{
    const uint32_t count[] = {t->stream->plan->layout.readers, t->exec_type->threads(t->exec),
                              t->stream->plan->layout.writers};
    atomic_store(&t->readers_left, count[PB_ROLE_READ]);
    atomic_store(&t->workers_left, count[PB_ROLE_COMPUTE]);
    int rc = 0;
    if ((uint64_t)count[0] + count[1] + count[2] > PB_RUN_THREADS_MAX)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "compute.threads makes %u reading, %u computing and %u writing threads; at "
                       "most %d are run",
                       count[0], count[1], count[2], PB_RUN_THREADS_MAX);
    for (int role = PB_ROLE_WRITE; role >= PB_ROLE_READ && rc == 0; role--)
        rc = start_all(t, (enum pb_role)role, count[role]);
    return rc;
}

static int start_workers(struct pb_run_threads *t, struct pb_err *err)
{
    const uint32_t count = t->exec_type->threads(t->exec);
    if (count > PB_RUN_THREADS_MAX)
        return pb_fail(err, PB_E_CONFIG_VALUE, "compute.threads is %u; at most %d threads are run",
                       count, PB_RUN_THREADS_MAX);
    int rc = pb_tile_workers_create(t->stream, t->exec, err, &t->workers);
    return rc ? rc : start_all(t, PB_ROLE_TILES, count);
}

int pb_run_threads_start(struct pb_run_threads *t, struct pb_stream *stream,
                         const struct pb_exec_type *type, void *exec, struct pb_err *err)
{
    t->stream = stream;
    t->exec_type = type;
    t->exec = exec;
    int rc = stream->in != NULL ? start_stages(t, err) : start_workers(t, err);
    if (rc < 0) {
        rc = pb_thread_fail(err, rc);
        pb_stream_abort(stream);
    }
    return rc;
}

/* Waits; 0, or -ETIMEDOUT while threads are running. */
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
