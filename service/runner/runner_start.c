/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job's way from the queue to a worker: a place is reserved; one that ran before may be
 * done (its products are looked for); its start is stored; it runs. Admission pauses when a worker
 * cannot start or the store does not take the start: the job is still accepted then. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <stdio.h>

#define EXTRA_STARTS_MAX 8 /* of a job, over max_attempts, before it is taken for a poison */

/* Jobs that cannot run at all get their error here. */
static bool is_runnable(struct pb_runner *runner, struct pb_job *job)
{
    const struct pb_config *config = runner->config;
    int starts_max = config->service.max_attempts + EXTRA_STARTS_MAX;
    if (job->attempts > starts_max) {
        pb_job_fail(job, PB_E_JOB_CRASHED, "the service itself ended %d times while this job ran",
                    job->attempts - 1);
        return false;
    }
    if (job->pipeline[0] != '\0' && pb_config_pipeline(config, job->pipeline) != NULL)
        return true;
    if (job->pipeline[0] != '\0' && !job->owned) {
        pb_job_fail(job, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s' in %s any more",
                    job->pipeline, config->path);
        return false;
    }
    const struct pb_pipeline_config *pipeline = pb_config_match(config, job->name);
    if (pipeline == NULL) {
        pb_job_fail(job, PB_E_INPUT_NO_PIPELINE, "no pipeline's input.match in %s fits %s",
                    config->path, job->name);
        return false;
    }
    (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline->name);
    return true;
}

/* It waits as before. */
static void cannot_start(struct pb_pending *pending, const struct pb_err *err)
{
    struct pb_runner *runner = pending->runner;
    struct pb_err why = *err;
    pending->place->reserved = false;
    pb_hold_end(&runner->hold, pending->job.seq, false);
    pb_pending_end(pending, 0, NULL);
    pb_runner_cannot_start(runner, &why);
}

/* The worker may have gone while the start was stored. */
static void run(struct pb_runner *runner, struct pb_place *place, struct pb_job *job)
{
    struct pb_err err = {0};
    if (pb_worker_slot_is_empty(place->slot) && pb_place_start_worker(place, &err) != 0) {
        pb_job_fail(job, err.code, "%s", err.msg);
        pb_runner_set_back(runner, job, pb_clock_mono_ms());
        return;
    }
    runner->options.metrics->jobs[PB_JOB_RUNNING]++;
    pb_log(PB_LOG_NOTICE, "job %s: %s through %s, worker %d", job->id, job->name, job->pipeline,
           pb_worker_slot_pid(place->slot));
    pb_place_run(runner, place, job);
}

static void stored(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    struct pb_place *place = pending->place;
    if (pending->rc != 0) {
        cannot_start(pending, &pending->err);
        return;
    }
    place->reserved = false;
    struct pb_job job = pending->job;
    pb_job_init(&pending->job);
    if (runner->drain_ms > 0) {
        job.attempts--;
        pb_runner_put_back(runner, &job);
    } else {
        run(runner, place, &job);
    }
    pb_pending_end(pending, 0, NULL); /* who asked for something finds the job where it is now */
}

static void begin(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    struct pb_place *place = pending->place;
    struct pb_err err = {0};
    if (runner->drain_ms > 0) {
        place->reserved = false;
        pb_pending_end(pending, 0, NULL);
        return;
    }
    (void)pb_job_move(&pending->job, PB_JOB_RUNNING, pb_clock_wall_ms());
    if (!is_runnable(runner, &pending->job)) {
        place->reserved = false;
        runner->options.on_hold(runner->options.user, &pending->job);
        pb_pending_finish(pending, PB_JOB_FAILED);
    } else if (pb_worker_slot_is_empty(place->slot) && pb_place_start_worker(place, &err) != 0) {
        cannot_start(pending, &err);
    } else {
        pb_pending_work(pending, PB_PENDING_STORE, stored);
    }
}

static void looked(struct pb_pending *pending)
{
    if (!pending->published) {
        begin(pending);
        return;
    }
    pending->place->reserved = false;
    pb_pending_is_done(pending);
}

void pb_runner_start(struct pb_runner *runner, struct pb_place *place, struct pb_job *job)
{
    bool ran = job->attempts > 0 || job->error.code[0] != '\0';
    struct pb_pending *pending = pb_pending_add(runner, job);
    if (pending == NULL)
        return;
    pending->place = place;
    place->reserved = true;
    pb_hold_started(&runner->hold, pending->job.seq, pb_clock_mono_ms());
    if (ran)
        pb_pending_work(pending, PB_PENDING_LOOK, looked);
    else
        begin(pending);
}
