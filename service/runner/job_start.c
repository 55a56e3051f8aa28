/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a start: the runner reserves a slot; the queue finds the pipeline of the job, if its own
 * is gone, and takes it (job_queue.h); if the job ran before, its products are searched for,
 * because it may be done; other jobs that concern its run are read; it runs. Admission pauses when
 * a worker cannot start: the job is put back. */
#include "service/runner/job_start.h"

#include "config/base/archive_name.h"
#include "config/base/clock.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/single.h"
#include "pipeline/scene/sidecars.h"
#include "service/base/log.h"
#include "service/inbox/intake.h"
#include "service/jobs/nodes.h"
#include "service/runner/fetched.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* starts beyond max_attempts until a job fails that ends the service itself */
#define EXTRA_STARTS_MAX 8

/* Returns true if the pipeline of the job exists, or a client chose it: no other can take its
 * place. */
static bool is_named(const struct pb_config *config, const struct pb_job *job)
{
    return job->pipeline[0] != '\0' &&
           (!pb_job_is_delivered(job) || pb_config_pipeline(config, job->pipeline) != NULL);
}

/* Finds the pipeline that takes the input by itself; NULL if absent. A folder without a matching
 * name may be that of a set of loose files, which are listed. */
static int find_taker(const struct pb_config *config, const struct pb_job *job, struct pb_err *err,
                      const struct pb_pipeline_config **out)
{
    struct stat st = {.st_mode = 0};
    char main[PATH_MAX];
    struct pb_single single;
    const bool is_own = job->owned && job->manifest.input != NULL;
    if (is_own && lstat(job->manifest.input, &st) != 0 && errno != ENOENT && errno != ENOTDIR)
        return pb_raster_file_fail(err, errno, job->manifest.input, "cannot stat the input");
    if (!S_ISDIR(st.st_mode) || pb_sidecar_main(job->manifest.input, main)) {
        pb_single_find(config, job->name, false, &single);
        *out = single.kind == PB_SINGLE_INPUT ? single.pipeline : NULL;
        return 0;
    }
    *out = pb_config_match_folder(config, job->name);
    return *out != NULL ? 0
                        : pb_set_folder_pipeline(config, job->manifest.input, job->name, err, out);
}

void pb_job_start_match(const struct pb_config *config, struct pb_taken *taken)
{
    struct pb_job *job = &taken->job;
    const struct pb_pipeline_config *pipeline = NULL;
    if (!is_named(config, job) && find_taker(config, job, &taken->unmatched, &pipeline) == 0 &&
        pipeline != NULL)
        (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline->name);
}

/* Guesses the priority of the job's pipeline by names alone, without a look at the input. Unless
 * its pipeline is known, no guess may let it start too early: a name that fits both a folder and a
 * file has the lower priority of the two pipelines, and an unknown pipeline the lowest of all. */
static int32_t guess_priority(const struct pb_config *config, const struct pb_job *job,
                              int32_t lowest)
{
    struct pb_single single;
    if (is_named(config, job)) {
        const struct pb_pipeline_config *own = pb_config_pipeline(config, job->pipeline);
        return own != NULL ? own->priority : lowest;
    }
    const struct pb_pipeline_config *folder = pb_config_match_folder(config, job->name);
    pb_single_find(config, job->name, false, &single);
    const struct pb_pipeline_config *file =
        single.kind == PB_SINGLE_INPUT ? single.pipeline : folder;
    if (file == NULL)
        return lowest;
    return folder != NULL && folder->priority < file->priority ? folder->priority : file->priority;
}

bool pb_job_start_knows(const struct pb_config *config, const struct pb_job *job)
{
    struct pb_single single;
    if (job->pipeline[0] != '\0')
        return pb_config_pipeline(config, job->pipeline) != NULL;
    pb_single_find(config, job->name, false, &single);
    return single.kind == PB_SINGLE_INPUT || pb_config_match_folder(config, job->name) != NULL;
}

int64_t pb_job_start_rank(const struct pb_config *config, const struct pb_job *job)
{
    int32_t highest = INT32_MIN, lowest = INT32_MAX;
    for (size_t i = 0; i < config->n_pipelines; i++) {
        const int32_t priority = config->pipelines[i].priority;
        highest = priority > highest ? priority : highest;
        lowest = priority < lowest ? priority : lowest;
    }
    return config->n_pipelines > 0 ? highest - guess_priority(config, job, lowest) : 0;
}

/* Fails a file that belongs to a scene by its metadata; it cannot be a job of its own. */
static void fail_part(struct pb_job *job, const struct pb_pipeline_config *group,
                      const struct pb_job_error *before)
{
    char text[400];
    if (before->code[0] != '\0') { /* the error of reading its metadata in the inbox */
        pb_job_fail_words(job, before->code, before->message, before->hint);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "it is one of the files of a scene by their metadata (input.by of pipeline "
                   "%.60s), which are taken together from the inbox",
                   group->name);
    pb_job_fail_words(job, pb_code_id(PB_E_INPUT_NO_PIPELINE), text,
                      "move it from the quarantine to the inbox, with its metadata");
}

/* Checks for a single file that is a part of a scene, or metadata of one; then fails the job.
 * before: the error that the job had when it was stored. False: it is a scene. */
static bool is_part(const struct pb_config *config, struct pb_job *job,
                    const struct pb_job_error *before)
{
    struct pb_single single;
    pb_single_find(config, job->name, false, &single);
    if (single.kind == PB_SINGLE_METADATA)
        pb_job_fail(
            job, PB_E_INPUT_INCOMPLETE,
            "the file that these metadata belong to (input.metadata of pipeline %s) did not arrive",
            single.pipeline->name);
    else if (single.kind == PB_SINGLE_PART && single.scene[0] == '\0')
        fail_part(job, single.pipeline, before);
    else if (single.kind == PB_SINGLE_PART)
        pb_job_fail(job, PB_E_INPUT_NO_PIPELINE,
                    "it is one of the files of scene %s (input.group of pipeline %s), which are "
                    "taken together from the inbox; put it there again with the others",
                    single.scene, single.pipeline->name);
    return single.kind == PB_SINGLE_METADATA || single.kind == PB_SINGLE_PART;
}

/* Checks whether the job of the change can run at all; sets its error if it cannot. */
static bool is_runnable(const struct pb_config *config, struct pb_pending *pending)
{
    struct pb_job *job = &pending->job;
    int starts_max = config->service.max_attempts + EXTRA_STARTS_MAX;
    if (job->attempts > starts_max) {
        pb_job_fail(job, PB_E_JOB_CRASHED, "the service itself ended %d times while this job ran",
                    job->attempts - 1);
        return false;
    }
    const struct pb_pipeline_config *pipeline =
        is_named(config, job) ? pb_config_pipeline(config, job->pipeline) : NULL;
    if (pipeline == NULL && job->pipeline[0] != '\0' && !pb_job_is_delivered(job)) {
        pb_job_fail(job, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s' in %s any more",
                    job->pipeline, config->path);
        return false;
    }
    if (pipeline == NULL && pending->unmatched.code != PB_OK) {
        pb_job_fail(job, pending->unmatched.code, "%s", pending->unmatched.msg);
        return false;
    }
    if (pipeline == NULL && is_part(config, job, &pending->before))
        return false;
    if (pipeline == NULL) {
        bool is_archive = pb_archive_name_stem(job->name) > 0;
        pb_job_fail(job, PB_E_INPUT_NO_PIPELINE,
                    "no pipeline's input.match or input.scene in %s fits %s%s", config->path,
                    job->name,
                    is_archive ? "; let input.archives fit it, or give the archive the name of "
                                 "the folder in it"
                               : "");
        return false;
    }
    return true;
}

static void release(struct pb_pending *pending)
{
    pending->slot->reserved = false;
    pending->slot = NULL; /* another job may reserve it from now on */
}

/* Returns the job, which did not run, to the queue. */
static void give_up(struct pb_job_starts *starts, struct pb_pending *pending)
{
    release(pending);
    pending->job.attempts--;
    pending->job.error = pending->before;
    pb_job_end_return(starts->ends, pending);
}

static void cannot_start(struct pb_job_starts *starts, struct pb_pending *pending,
                         const struct pb_err *err)
{
    const struct pb_err why = *err;
    give_up(starts, pending);
    pb_faults_cannot_start(starts->faults, &why);
}

/* Fails a job that cannot run; its error is set. */
static void fail(struct pb_job_starts *starts, struct pb_pending *pending)
{
    const struct pb_runner_env *env = starts->env;
    release(pending);
    env->on_hold(env->user, &pending->job);
    pb_job_end_finish(starts->ends, pending, PB_JOB_FAILED);
}

int pb_job_start_worker(struct pb_pool_slot *slot, struct pb_err *err)
{
    return pb_worker_slot_is_empty(slot->worker) ? pb_pool_start_worker(slot, err) : 0;
}

/* Returns the job, whose start failed by a fault of the machine, to the queue, or fails it. */
static void set_back(struct pb_job_starts *starts, struct pb_pending *pending,
                     const struct pb_err *err)
{
    release(pending);
    pb_job_fail(&pending->job, err->code, "%s", err->msg);
    pb_job_end_fault(starts->ends, pending, pb_clock_mono_ms());
}

/* Returns false if the queue was held since the job was let through. */
static bool is_let_through(const struct pb_job_starts *starts, const struct pb_pending *pending)
{
    const struct pb_hold *hold = &starts->faults->hold;
    return !hold->on || hold->probe == pending->job.seq;
}

/* A reload since the job was taken may have removed its pipeline: another is found then. */
static void go(struct pb_job_starts *starts, struct pb_pending *pending)
{
    const struct pb_runner_env *env = starts->env;
    struct pb_pool_slot *slot = pending->slot;
    const struct pb_node *home = pb_fetched_home(env, &pending->job);
    struct pb_err err = {0};
    if (env->drains || !is_let_through(starts, pending) ||
        pb_config_pipeline(env->config, pending->job.pipeline) == NULL) {
        give_up(starts, pending);
        return;
    }
    if (pb_fetched_begin(&pending->job, home) != 0)
        (void)pb_fail(&err, PB_E_MEMORY, "out of memory");
    if (err.code != PB_OK || pb_job_start_worker(slot, &err) != 0) {
        set_back(starts, pending, &err);
        return;
    }
    release(pending);
    struct pb_job job = pending->job;
    pb_job_init(&pending->job);
    pb_metrics_count(env->metrics, &job);
    pb_log(PB_LOG_NOTICE, "job %s: %s through %s, worker %d", job.id, job.name, job.pipeline,
           pb_worker_slot_pid(slot->worker));
    pb_pool_run(starts->pool, slot, &job, pending->known, home);
    pb_pending_end(pending, 0, NULL); /* its waiters then find the job at its new place */
}

static void prepared(void *user, struct pb_pending *pending)
{
    struct pb_job_starts *starts = user;
    if (pending->rc > 0)
        fail(starts, pending);
    else if (pending->rc < 0)
        cannot_start(starts, pending, &pending->err);
    else
        go(starts, pending);
}

/* Returns true if a fault of the machine hides whether a pipeline takes the input. */
static bool is_unreadable(const struct pb_config *config, const struct pb_pending *pending)
{
    return pending->unmatched.code != PB_OK && !is_named(config, &pending->job) &&
           pb_code_class(pending->unmatched.code) != PB_CLASS_INPUT;
}

static void begin(struct pb_job_starts *starts, struct pb_pending *pending)
{
    const struct pb_config *config = starts->env->config;
    const bool is_new = config != pending->config; /* loaded since the job was taken */
    struct pb_err err = {0};
    if (starts->env->drains || !is_let_through(starts, pending) ||
        (is_new && !is_named(config, &pending->job)))
        give_up(starts, pending);
    else if (is_unreadable(config, pending))
        set_back(starts, pending, &pending->unmatched);
    else if (!is_runnable(config, pending))
        fail(starts, pending);
    else if (pb_job_start_worker(pending->slot, &err) != 0)
        cannot_start(starts, pending, &err);
    else if (pending->job.set_id[0] != '\0' || config->service.has_duplicates)
        pb_pending_work(pending, PB_PENDING_PREPARE, prepared, starts);
    else
        go(starts, pending);
}

/* Dismisses a job that was cancelled when its run could not be seen (job_end.c). */
static void dismiss(struct pb_job_starts *starts, struct pb_pending *pending)
{
    const struct pb_runner_env *env = starts->env;
    release(pending);
    pending->job.attempts--;
    pb_job_fail(&pending->job, PB_E_JOB_DISMISSED, "cancelled on request");
    env->on_hold(env->user, &pending->job);
    pb_job_end_finish(starts->ends, pending, PB_JOB_DISMISSED);
}

static void looked(void *user, struct pb_pending *pending)
{
    struct pb_job_starts *starts = user;
    if (pending->published) {
        release(pending);
        pb_job_end_is_done(starts->ends, pending);
    } else if (pb_code_find(pending->before.code) == PB_E_JOB_DISMISSED) {
        dismiss(starts, pending);
    } else {
        begin(starts, pending);
    }
}

void pb_job_start(struct pb_job_starts *starts, struct pb_pool_slot *slot, struct pb_taken *taken,
                  const struct pb_config *config)
{
    if (pb_job_has_scenes(&taken->job)) {
        slot->reserved = false;
        pb_job_end_scenes(starts->ends, &taken->job);
        return;
    }
    const int64_t now = pb_clock_mono_ms();
    struct pb_pending *pending = pb_pending_add_taken(starts->pending, &taken->job);
    pending->slot = slot;
    pending->config = pb_config_hold(config);
    pending->before = taken->before;
    pending->unmatched = taken->unmatched;
    if (!pb_hold_may_start(&starts->faults->hold, now)) { /* held since the take began */
        give_up(starts, pending);
        return;
    }
    pb_hold_started(&starts->faults->hold, pending->job.seq, now);
    if (taken->ran)
        pb_pending_work(pending, PB_PENDING_LOOK, looked, starts);
    else
        begin(starts, pending);
}
