/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which job runs next, and where. The queue is the store: the oldest accepted job whose scene is
 * not running already (two runs of one scene would publish into one directory) and that need not
 * wait on its own account. While the queue is held (hold.h) one job at a time starts, as a probe.
 */
#include "service/clock.h"
#include "service/log.h"
#include "service/runner_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define BATCH            16
#define EXTRA_STARTS_MAX 8 /* of a job, over max_attempts, before it is taken for a poison */

static bool is_in_the_way(const struct pb_job *running, const struct pb_job *job)
{
    return strcmp(running->scene, job->scene) == 0 || strcmp(running->id, job->id) == 0;
}

bool pb_runner_may_start(const struct pb_runner *runner, const struct pb_job *job)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        if (runner->places[i].busy && is_in_the_way(&runner->places[i].job, job))
            return false;
    }
    return pb_unsaved_find(runner, job->id) == NULL &&
           !pb_config_waits_has(&runner->waits, job->seq) &&
           pb_hold_may_try(&runner->hold, job->seq, pb_clock_mono_ms());
}

static bool may_start(void *user, const struct pb_job *job)
{
    return pb_runner_may_start(user, job);
}

/* The choice of a probe: jobs of that rank, and the least rank seen above it. */
struct probe {
    const struct pb_runner *runner;
    int64_t rank, next;
};

static bool may_probe(void *user, const struct pb_job *job)
{
    struct probe *probe = user;
    if (!pb_runner_may_start(probe->runner, job))
        return false;
    int64_t rank = pb_hold_rank(&probe->runner->hold, job->seq);
    if (rank > probe->rank && rank < probe->next)
        probe->next = rank;
    return rank == probe->rank;
}

/* 1 and the job (the caller's), 0 none, negative errno. */
static int next_job(struct pb_runner *runner, int64_t now_ms, struct pb_err *err, bool *out_express,
                    struct pb_job *out_job)
{
    struct pb_job_store *store = runner->options.store;
    *out_express = pb_express_ordinary(runner) >= runner->config->service.parallel_jobs;
    if (*out_express)
        return pb_express_next(runner, now_ms, err, out_job);
    if (!runner->hold.on)
        return pb_job_store_next(store, may_start, runner, err, out_job);
    struct probe probe = {runner, 0, INT64_MAX};
    int rc = pb_job_store_next(store, may_probe, &probe, err, out_job);
    if (rc != 0 || probe.next == INT64_MAX)
        return rc;
    probe.rank = probe.next;
    return pb_job_store_next(store, may_probe, &probe, err, out_job);
}

/* An idle worker if there is one, else a place without a worker. */
struct pb_place *pb_runner_free_place(struct pb_runner *runner)
{
    struct pb_place *empty = NULL;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        struct pb_place *place = &runner->places[i];
        if (place->busy || place->leaving)
            continue;
        if (place->proc != NULL)
            return place;
        if (empty == NULL)
            empty = place;
    }
    return empty;
}

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

/* Starts the job (taken) at the place. Negative: admission pauses; the job is still accepted. */
static int start(struct pb_runner *runner, struct pb_place *place, struct pb_job *job,
                 struct pb_err *err)
{
    bool ran = job->attempts > 0 || job->error.code[0] != '\0';
    if (ran && pb_runner_is_done(runner, job)) {
        pb_job_fini(job);
        return 0;
    }
    (void)pb_job_move(job, PB_JOB_RUNNING, pb_clock_wall_ms());
    if (!is_runnable(runner, job)) {
        pb_runner_finish(runner, job, PB_JOB_FAILED);
        pb_job_fini(job);
        return 0;
    }
    int rc = place->proc ? 0 : pb_place_start_worker(place, err);
    rc = rc ? rc : pb_job_store_update(runner->options.store, job, err);
    if (rc != 0) {
        pb_job_fini(job);
        return rc;
    }
    runner->options.metrics->jobs[PB_JOB_RUNNING]++;
    pb_log(PB_LOG_NOTICE, "job %s: %s through %s, worker %d", job->id, job->name, job->pipeline,
           pb_worker_proc_pid(place->proc));
    pb_hold_started(&runner->hold, job->seq, pb_clock_mono_ms());
    pb_place_run(place, job);
    return 0;
}

/* Workers that were given up end when their storage answers again. */
static void reap(struct pb_runner *runner)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        if (runner->hung[i] != 0 && waitpid(runner->hung[i], NULL, WNOHANG) != 0)
            runner->hung[i] = 0;
    }
}

/* With nothing waiting and nothing running, nobody would ever end the hold. */
static void clear_if_empty(struct pb_runner *runner)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    if (runner->hold.on && pb_runner_busy(runner) == 0 && runner->unsaved == NULL &&
        pb_job_store_counts(runner->options.store, counts, NULL) == 0 &&
        counts[PB_JOB_ACCEPTED] == 0)
        pb_runner_hold_clear(runner);
}

void pb_runner_kick(struct pb_runner *runner)
{
    int64_t now = pb_clock_mono_ms();
    reap(runner);
    pb_runner_wake(runner);
    runner->more = false;
    for (int i = 0; runner->drain_ms == 0 && pb_hold_may_start(&runner->hold, now); i++) {
        struct pb_job job;
        struct pb_err err = {0};
        if (i == BATCH) { /* a crowd that no pipeline fits must not hold up the loop */
            runner->more = true;
            break;
        }
        struct pb_place *place = pb_runner_free_place(runner);
        bool express = false;
        int rc = place ? next_job(runner, now, &err, &express, &job) : 0;
        if (rc == 0)
            break;
        place->express = express;
        rc = rc < 0 ? rc : start(runner, place, &job, &err);
        if (rc < 0)
            pb_runner_cannot_start(runner, &err);
    }
    clear_if_empty(runner);
}
