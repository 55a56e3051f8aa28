/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What changes a job's state waits for the disk on libuv's pool, never on the loop. What the store
 * does not take (a full disk, a locked file) is kept and shown as it is, no second run of it is
 * started, and the runner's tick tries again. No job runs before its start is stored, so that at
 * most as many are kept as run side by side. A restart in between finds the older state and repeats
 * the work. */
#include "config/base/clock.h"
#include "service/inbox/input_store.h"
#include "service/base/log.h"
#include "service/worker/outcome.h"
#include "service/runner/runner_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TROUBLE       "jobs"
#define SAVE_EVERY_MS 5000

static bool is_finished(const struct pb_job *job)
{
    return (PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) != 0;
}

/* --- on the pool --- */

/* The state first: an end that is not on the disk did not happen yet, and the input stays in work/,
 * so that a restart runs the job again. */
static int store(struct pb_pending *pending)
{
    const struct pb_runner_options *options = &pending->runner->options;
    struct pb_job *job = &pending->job;
    int rc = pb_job_store_update(options->store, job, &pending->err);
    pending->stored = pending->stored || rc == 0;
    if (rc != 0 || !is_finished(job) || pending->disposed)
        return rc;
    if (pb_input_store_put(job, options->dirs, pending->on_success, &pending->dispose_err) != 0)
        return 0; /* the sweep of work/ tries again */
    pending->disposed = true;
    return pb_job_store_update(options->store, job, &pending->err);
}

static int restore(struct pb_pending *pending)
{
    const struct pb_runner_options *options = &pending->runner->options;
    struct pb_job *job = &pending->job;
    int rc = pb_input_store_restore(job, options->dirs, &pending->err);
    if (rc != 0)
        return rc;
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    return pb_job_store_update(options->store, job, &pending->err);
}

static void do_step(struct pb_pending *pending)
{
    const struct pb_runner_options *options = &pending->runner->options;
    pending->err = pending->dispose_err = (struct pb_err){0};
    if (pending->step == PB_PENDING_LOOK) {
        pending->published = pb_outcome_is_published(&pending->job, pending->products);
        return;
    }
    (void)pthread_rwlock_rdlock(options->moves);
    pending->rc = pending->step == PB_PENDING_STORE ? store(pending) : restore(pending);
    (void)pthread_rwlock_unlock(options->moves);
}

static void work(uv_work_t *request)
{
    do_step(request->data);
}

/* --- on the loop --- */

static void report(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    const struct pb_err *why = &pending->dispose_err;
    if (pending->step != PB_PENDING_STORE || why->code == PB_OK)
        return;
    pb_log(PB_LOG_ERROR, "job %s: %s; this is tried again", pending->job.id, why->msg);
    pb_trouble_raise(runner->options.troubles, "work", why->code, why->msg); /* the intake's */
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_pending *pending = request->data;
    (void)status;
    pending->works = false;
    pending->runner->n_works--;
    report(pending);
    pending->then(pending);
}

struct pb_pending *pb_pending_add(struct pb_runner *runner, struct pb_job *job)
{
    struct pb_pending *pending = calloc(1, sizeof *pending);
    if (pending == NULL) {
        pb_log(PB_LOG_ERROR, "job %s: out of memory; a restart takes it up again", job->id);
        pb_job_fini(job);
        return NULL;
    }
    pending->runner = runner;
    pending->work.data = pending;
    pending->job = *job;
    memset(job, 0, sizeof *job);
    pending->next = runner->pending;
    runner->pending = pending;
    runner->n_pending++;
    return pending;
}

void pb_pending_work(struct pb_pending *pending, enum pb_pending_step step,
                     void (*then)(struct pb_pending *pending))
{
    struct pb_runner *runner = pending->runner;
    (void)snprintf(pending->products, sizeof pending->products, "%s",
                   runner->options.dirs->products);
    pending->on_success = runner->config->service.on_success;
    pending->step = step;
    pending->then = then;
    pending->works = true;
    runner->n_works++;
    (void)uv_queue_work(runner->options.loop, &pending->work, work, on_worked);
}

struct pb_pending *pb_pending_find(const struct pb_runner *runner, const char *id)
{
    struct pb_pending *pending = runner->pending;
    while (pending != NULL && strcmp(pending->job.id, id) != 0)
        pending = pending->next;
    return pending;
}

static void take_out(struct pb_pending *pending)
{
    struct pb_pending **link = &pending->runner->pending;
    while (*link != pending)
        link = &(*link)->next;
    *link = pending->next;
    pending->runner->n_pending--;
}

/* Those that this change served, or that it kept waiting. */
static void end_requests(struct pb_runner *runner, struct pb_runner_request *request, int rc,
                         const struct pb_err *err)
{
    while (request != NULL) {
        struct pb_runner_request *next = request->next;
        request->next = NULL;
        if (rc == 0 && !request->served)
            pb_request_step(runner, request);
        else
            pb_request_answer(runner, request, rc, err);
        request = next;
    }
}

void pb_pending_end(struct pb_pending *pending, int rc, const struct pb_err *err)
{
    struct pb_runner *runner = pending->runner;
    struct pb_runner_request *requests = pending->requests;
    take_out(pending);
    end_requests(runner, requests, rc, err);
    pb_job_fini(&pending->job);
    free(pending);
}

void pb_pending_answer(struct pb_pending *pending)
{
    struct pb_runner_request **link = &pending->requests;
    while (*link != NULL) {
        struct pb_runner_request *request = *link;
        if (!request->served) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        pb_request_answer(pending->runner, request, 0, NULL);
    }
}

void pb_pending_wait(struct pb_pending *pending, struct pb_runner_request *request)
{
    struct pb_runner_request **link = &pending->requests;
    while (*link != NULL)
        link = &(*link)->next;
    *link = request;
    if (pending->failed && !pending->works) /* whoever asks does not wait for the next try */
        pb_pending_work(pending, PB_PENDING_STORE, pending->then);
}

bool pb_pending_is_left(const struct pb_runner *runner)
{
    const struct pb_pending *pending = runner->pending;
    while (pending != NULL && !pending->failed)
        pending = pending->next;
    return pending != NULL;
}

static void keep(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    struct pb_runner_request *requests = pending->requests;
    if (!pending->failed)
        pb_log(PB_LOG_ERROR,
               "job %s: %s; this is tried again, and a restart before that repeats it",
               pending->job.id, pending->err.msg);
    pb_trouble_raise(runner->options.troubles, TROUBLE, pending->err.code, pending->err.msg);
    pending->failed = true;
    pending->requests = NULL;
    runner->save_at_ms = pb_clock_mono_ms() + SAVE_EVERY_MS;
    pb_runner_wake(runner);
    end_requests(runner, requests, pending->rc, &pending->err);
}

void pb_pending_settle(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    if (pending->rc != 0) {
        keep(pending);
        return;
    }
    if (pending->failed)
        pb_log(PB_LOG_NOTICE, "job %s: stored now as %s", pending->job.id,
               pb_job_status_name(pending->job.status));
    pb_pending_end(pending, 0, NULL);
    if (!pb_pending_is_left(runner))
        pb_trouble_clear(runner->options.troubles, TROUBLE);
    pb_runner_kick(runner);
}

void pb_pending_tick(struct pb_runner *runner, int64_t mono_ms)
{
    if (mono_ms < runner->save_at_ms)
        return;
    runner->save_at_ms = mono_ms + SAVE_EVERY_MS;
    for (struct pb_pending *pending = runner->pending; pending != NULL; pending = pending->next) {
        if (pending->failed && !pending->works)
            pb_pending_work(pending, PB_PENDING_STORE, pending->then);
    }
}

void pb_pending_free(struct pb_runner *runner, bool try_again)
{
    struct pb_pending *pending;
    while ((pending = runner->pending) != NULL) {
        runner->pending = pending->next;
        pending->step = PB_PENDING_STORE;
        if (try_again && pending->failed)
            do_step(pending);
        pb_job_fini(&pending->job);
        free(pending);
    }
}
