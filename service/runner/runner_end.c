/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where jobs end or go back into the queue. Nobody is told of a state before it is on the disk,
 * unless the store does not take it: then of the state as it is (runner_pending.c). */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

static void log_end(const struct pb_job *job)
{
    if (job->status == PB_JOB_SUCCESSFUL)
        pb_log(PB_LOG_NOTICE, "job %s: %s done in %.1f s on %s", job->id, job->name,
               (double)(job->finished_ms - job->started_ms) / 1000,
               job->device[0] ? job->device : "?");
    else
        pb_log(PB_LOG_WARNING, "job %s: %s %s: %s: %s", job->id, job->name,
               pb_job_status_name(job->status), job->error.code, job->error.message);
}

static void announce_end(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    if (pending->announced)
        return;
    pending->announced = true;
    pb_metrics_finished(runner->options.metrics, &pending->job);
    log_end(&pending->job);
    runner->options.on_change(runner->options.user, &pending->job);
}

static void finished(struct pb_pending *pending)
{
    announce_end(pending);
    pb_pending_settle(pending);
}

void pb_pending_finish(struct pb_pending *pending, enum pb_job_status status)
{
    struct pb_runner *runner = pending->runner;
    struct pb_job *job = &pending->job;
    if (status == PB_JOB_SUCCESSFUL && job->attempts == 0)
        job->attempts = 1; /* an end that was not to count was one */
    if (pb_job_move(job, status, pb_clock_wall_ms()) != 0)
        pb_log(PB_LOG_ERROR, "job %s: cannot become %s", job->id, pb_job_status_name(status));
    pb_runner_hold_end(runner, job, true);
    pb_pending_work(pending, PB_PENDING_STORE, finished);
}

static void finish_looked(struct pb_pending *pending)
{
    pb_pending_finish(pending, pending->published ? PB_JOB_SUCCESSFUL : pending->status);
}

void pb_runner_finish(struct pb_runner *runner, struct pb_job *job, enum pb_job_status status)
{
    runner->options.on_hold(runner->options.user, job);
    struct pb_pending *pending = pb_pending_add(runner, job);
    if (pending == NULL)
        return;
    pending->status = status;
    if (status == PB_JOB_SUCCESSFUL)
        pb_pending_finish(pending, status);
    else
        pb_pending_work(pending, PB_PENDING_LOOK, finish_looked);
}

void pb_pending_is_done(struct pb_pending *pending)
{
    /* It ran to its end once; this is no further run. */
    struct pb_runner *runner = pending->runner;
    struct pb_job *job = &pending->job;
    char *products = job->products, *directory = job->directory;
    int64_t started_ms = job->started_ms;
    job->products = job->directory = NULL;
    (void)pb_job_move(job, PB_JOB_RUNNING, pb_clock_wall_ms());
    job->attempts -= job->attempts > 1;
    if (started_ms > 0)
        job->started_ms = started_ms;
    job->products = products;
    job->directory = directory;
    runner->options.on_hold(runner->options.user, job);
    pb_pending_finish(pending, PB_JOB_SUCCESSFUL);
}

static void dismissed(struct pb_pending *pending)
{
    if (!pending->stored) {
        struct pb_err err = pending->err;
        pb_pending_end(pending, pending->rc, &err);
        return;
    }
    if (!pending->announced)
        pb_runner_hold_end(pending->runner, &pending->job, true);
    announce_end(pending);
    if (pending->rc != 0) /* only where its input lies now is not stored */
        pb_pending_answer(pending);
    pb_pending_settle(pending);
}

void pb_pending_dismiss(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    runner->options.on_hold(runner->options.user, &pending->job);
    pb_job_fail(&pending->job, PB_E_JOB_DISMISSED, "cancelled on request before it ran");
    (void)pb_job_move(&pending->job, PB_JOB_DISMISSED, pb_clock_wall_ms());
    pb_pending_work(pending, PB_PENDING_STORE, dismissed);
}

static void was_put_back(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    if (!pending->announced) {
        pending->announced = true;
        pb_log(PB_LOG_NOTICE, "job %s: put back into the queue", pending->job.id);
        runner->options.on_change(runner->options.user, &pending->job);
    }
    pb_pending_settle(pending);
}

void pb_pending_put_back(struct pb_pending *pending)
{
    struct pb_job *job = &pending->job;
    struct pb_job_error why = job->error;
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    job->error = why; /* is shown while the job waits */
    pb_runner_hold_end(pending->runner, job, false);
    pb_pending_work(pending, PB_PENDING_STORE, was_put_back);
}

static void put_back_looked(struct pb_pending *pending)
{
    if (pending->published)
        pb_pending_finish(pending, PB_JOB_SUCCESSFUL);
    else
        pb_pending_put_back(pending);
}

void pb_runner_put_back(struct pb_runner *runner, struct pb_job *job)
{
    runner->options.on_hold(runner->options.user, job);
    struct pb_pending *pending = pb_pending_add(runner, job);
    if (pending != NULL)
        pb_pending_work(pending, PB_PENDING_LOOK, put_back_looked);
}
