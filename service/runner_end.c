/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Where jobs end or go back into the queue, and what happens when the store does not take that (a
 * full disk, a locked file): the job is kept here and shown as it is, no second run of it is
 * started, and the runner's tick tries again. No job starts before its start is stored, so that at
 * most as many are kept as run side by side. A restart in between finds the older state and
 * repeats the work. */
#include "service/clock.h"
#include "service/dispose.h"
#include "service/log.h"
#include "service/outcome.h"
#include "service/runner_place.h"

#include <stdlib.h>
#include <string.h>

#define TROUBLE       "jobs"
#define PRUNE_EVERY   32
#define SAVE_EVERY_MS 5000

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

static bool store(struct pb_runner *runner, const struct pb_job *job)
{
    struct pb_err err = {0};
    if (pb_job_store_update(runner->options.store, job, &err) == 0)
        return true;
    pb_log(PB_LOG_ERROR, "job %s: %s; this is tried again, and a restart before that repeats it",
           job->id, err.msg);
    pb_trouble_raise(runner->options.troubles, TROUBLE, err.code, err.msg);
    return false;
}

/* Puts the input of a stored, finished job away and stores where it is now. */
static bool put_away(struct pb_runner *runner, struct pb_job *job, bool *disposed,
                     struct pb_err *err)
{
    struct pb_err why = {0};
    if (pb_dispose(job, runner->options.dirs, runner->config->service.on_success, &why) != 0) {
        pb_log(PB_LOG_ERROR, "job %s: %s; this is tried again", job->id, why.msg);
        pb_trouble_raise(runner->options.troubles, "work", why.code, why.msg); /* the intake's */
        return true;
    }
    *disposed = true;
    return pb_job_store_update(runner->options.store, job, err) == 0;
}

/* Moves the job out of *job until the store takes it. Without memory it is lost: a restart repeats
 * the work. */
static void keep(struct pb_runner *runner, struct pb_job *job, bool disposed)
{
    struct pb_unsaved *unsaved = calloc(1, sizeof *unsaved);
    if (unsaved == NULL)
        return;
    unsaved->job = *job;
    unsaved->disposed = disposed;
    unsaved->next = runner->unsaved;
    runner->unsaved = unsaved;
    memset(job, 0, sizeof *job);
    runner->save_at_ms = pb_clock_mono_ms() + SAVE_EVERY_MS;
    pb_runner_wake(runner);
}

const struct pb_job *pb_unsaved_find(const struct pb_runner *runner, const char *id)
{
    for (const struct pb_unsaved *unsaved = runner->unsaved; unsaved != NULL;
         unsaved = unsaved->next)
        if (strcmp(unsaved->job.id, id) == 0)
            return &unsaved->job;
    return NULL;
}

static bool save(struct pb_runner *runner, struct pb_unsaved *unsaved, struct pb_err *err)
{
    struct pb_job *job = &unsaved->job;
    if (pb_job_store_update(runner->options.store, job, err) != 0)
        return false;
    bool finished = (PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) != 0;
    return !finished || unsaved->disposed || put_away(runner, job, &unsaved->disposed, err);
}

bool pb_unsaved_save(struct pb_runner *runner, struct pb_err *err)
{
    struct pb_unsaved **link = &runner->unsaved;
    while (*link != NULL) {
        struct pb_unsaved *unsaved = *link;
        if (!save(runner, unsaved, err))
            return false; /* the others would only wait for the same */
        pb_log(PB_LOG_NOTICE, "job %s: stored now as %s", unsaved->job.id,
               pb_job_status_name(unsaved->job.status));
        *link = unsaved->next;
        pb_job_fini(&unsaved->job);
        free(unsaved);
    }
    pb_trouble_clear(runner->options.troubles, TROUBLE);
    return true;
}

bool pb_unsaved_save_again(struct pb_runner *runner, int64_t mono_ms)
{
    if (runner->unsaved == NULL || mono_ms < runner->save_at_ms)
        return false;
    bool saved = pb_unsaved_save(runner, NULL);
    runner->save_at_ms = pb_clock_mono_ms() + SAVE_EVERY_MS;
    return saved;
}

void pb_unsaved_free(struct pb_runner *runner)
{
    while (runner->unsaved != NULL) {
        struct pb_unsaved *unsaved = runner->unsaved;
        runner->unsaved = unsaved->next;
        pb_job_fini(&unsaved->job);
        free(unsaved);
    }
}
static void announce_end(struct pb_runner *runner, const struct pb_job *job)
{
    pb_metrics_finished(runner->options.metrics, job);
    log_end(job);
    if (++runner->finished % PRUNE_EVERY == 0)
        (void)pb_job_store_prune(runner->options.store, runner->config->service.keep_jobs, NULL);
    runner->options.on_change(runner->options.user, job);
}

void pb_runner_finish(struct pb_runner *runner, struct pb_job *job, enum pb_job_status status)
{
    bool disposed = false;
    if (status != PB_JOB_SUCCESSFUL && pb_outcome_is_published(job, runner->options.dirs->products))
        status = PB_JOB_SUCCESSFUL;
    runner->options.on_hold(runner->options.user, job);
    if (status == PB_JOB_SUCCESSFUL && job->attempts == 0)
        job->attempts = 1; /* an end that was not to count was one */
    if (pb_job_move(job, status, pb_clock_wall_ms()) != 0)
        pb_log(PB_LOG_ERROR, "job %s: cannot become %s", job->id, pb_job_status_name(status));
    pb_runner_hold_end(runner, job, true);
    /* An end that is not on disk did not happen yet: the input stays in work/, so that a restart
     * runs the job again. */
    bool stored = store(runner, job) && put_away(runner, job, &disposed, NULL);
    announce_end(runner, job);
    if (!stored)
        keep(runner, job, disposed);
}

bool pb_runner_is_done(struct pb_runner *runner, struct pb_job *job)
{
    if (!pb_outcome_is_published(job, runner->options.dirs->products))
        return false;
    /* It ran to its end once; this is no further run. */
    char *products = job->products, *directory = job->directory;
    int64_t started_ms = job->started_ms;
    job->products = job->directory = NULL;
    (void)pb_job_move(job, PB_JOB_RUNNING, pb_clock_wall_ms());
    job->attempts -= job->attempts > 1;
    if (started_ms > 0)
        job->started_ms = started_ms;
    job->products = products;
    job->directory = directory;
    pb_runner_finish(runner, job, PB_JOB_SUCCESSFUL);
    return true;
}

int pb_runner_dismiss(struct pb_runner *runner, struct pb_job *job, struct pb_err *err)
{
    bool disposed = false;
    runner->options.on_hold(runner->options.user, job);
    (void)pb_job_move(job, PB_JOB_DISMISSED, pb_clock_wall_ms());
    int rc = pb_job_store_update(runner->options.store, job, err);
    if (rc != 0)
        return rc;
    pb_runner_hold_end(runner, job, true);
    bool stored = put_away(runner, job, &disposed, NULL);
    announce_end(runner, job);
    if (!stored)
        keep(runner, job, disposed);
    return 0;
}

void pb_runner_put_back(struct pb_runner *runner, struct pb_job *job)
{
    struct pb_job_error why = job->error;
    if (pb_outcome_is_published(job, runner->options.dirs->products)) {
        pb_runner_finish(runner, job, PB_JOB_SUCCESSFUL);
        return;
    }
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    job->error = why; /* is shown while the job waits */
    pb_runner_hold_end(runner, job, false);
    bool stored = store(runner, job);
    pb_log(PB_LOG_NOTICE, "job %s: put back into the queue", job->id);
    runner->options.on_change(runner->options.user, job);
    if (!stored)
        keep(runner, job, false);
}
