/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The new state is on the disk before on_change reports it, unless the store refuses it
 * (pending.c). */
#include "service/runner/job_end.h"

#include "config/base/archive_name.h"
#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/config.h"
#include "service/base/log.h"
#include "service/jobs/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MAX = 1 << 20, BANDS_LOGGED = 16 };

/* Logs the numbers of the calibration: a line for each band. */
static void log_calibration(const struct pb_job *job, const struct pb_json_value *report)
{
    const struct pb_json_value *list = pb_json_get(report, "calibration", NULL);
    for (size_t i = 0; i < pb_json_count(list) && i < BANDS_LOGGED; i++) {
        const struct pb_json_value *one = pb_json_at(list, i);
        const char *band = pb_json_get_text(one, "band"), *to = pb_json_get_text(one, "to"),
                   *of = pb_json_get_text(one, "of"), *formula = pb_json_get_text(one, "formula");
        if (band != NULL && to != NULL && of != NULL && formula != NULL)
            pb_log(PB_LOG_INFO, "job %s: %s = %s of band %s: %s", job->id, band, to, of, formula);
    }
}

/* Logs files next to the scene that are not read. */
static void log_sidecars(const struct pb_job *job, const struct pb_json_value *report)
{
    const struct pb_json_value *sidecars = pb_json_get(report, "sidecars", NULL);
    const struct pb_json_value *unused = pb_json_get(sidecars, "unused", NULL);
    for (size_t i = 0; i < pb_json_count(unused); i++)
        if (pb_json_text_of(pb_json_at(unused, i)) != NULL)
            pb_log(PB_LOG_NOTICE,
                   "job %s: %s is next to the scene and is not read: see "
                   "input.sidecars of pipeline %s",
                   job->id, pb_json_text_of(pb_json_at(unused, i)), job->pipeline);
}

static void log_report(const struct pb_job *job)
{
    struct pb_json_value *report = NULL;
    if (job->report == NULL || pb_json_parse(job->report, strlen(job->report), REPORT_MAX, &report))
        return;
    log_calibration(job, report);
    log_sidecars(job, report);
    pb_json_release(report);
}

static const char *or_unknown(const char *text)
{
    return text != NULL ? text : "?";
}

static void log_end(const struct pb_job *job)
{
    struct pb_json_value *report = NULL;
    if (pb_job_is_left_out(job) && job->report != NULL)
        (void)pb_json_parse(job->report, strlen(job->report), REPORT_MAX, &report);
    if (job->status == PB_JOB_SUCCESSFUL && pb_job_is_left_out(job))
        pb_log(PB_LOG_NOTICE, "job %s: %s skipped, no products: %s", job->id, job->name,
               or_unknown(pb_json_get_text(report, "skipped")));
    else if (job->status == PB_JOB_SUCCESSFUL && pb_job_has_scenes(job))
        pb_log(PB_LOG_NOTICE, "job %s: all scenes in %s are done", job->id, job->name);
    else if (job->status == PB_JOB_SUCCESSFUL)
        pb_log(PB_LOG_NOTICE, "job %s: %s done in %.1f s on %s", job->id, job->name,
               (double)(job->finished_ms - job->started_ms) / 1000,
               job->device[0] ? job->device : "?");
    else
        pb_log(pb_job_is_skipped(job) ? PB_LOG_NOTICE : PB_LOG_WARNING, "job %s: %s %s: %s: %s",
               job->id, job->name, pb_job_status_name(job->status), job->error.code,
               job->error.message);
    pb_json_release(report);
}

static void announce_end(struct pb_job_ends *ends, struct pb_pending *pending)
{
    const struct pb_runner_env *env = ends->env;
    if (pending->announced)
        return;
    pending->announced = true;
    pb_metrics_finished(env->metrics, &pending->job);
    log_end(&pending->job);
    if (pending->job.status == PB_JOB_SUCCESSFUL)
        log_report(&pending->job);
    env->on_change(env->user, &pending->job);
}

static void archive_found(void *user, struct pb_lookup *lookup)
{
    if (lookup->rc == 0)
        pb_job_end_scenes(user, &lookup->job);
    free(lookup);
}

/* Ends the job of the archive if it waits and all its scenes are over. If the store cannot be read,
 * the queue has the job. */
static void end_archive(struct pb_job_ends *ends, const char *archive)
{
    struct pb_lookup *lookup = archive[0] != '\0' ? calloc(1, sizeof *lookup) : NULL;
    if (lookup == NULL)
        return;
    lookup->kind = PB_LOOKUP_ARCHIVE;
    (void)snprintf(lookup->id, sizeof lookup->id, "%s", archive);
    lookup->then = archive_found;
    lookup->user = ends;
    pb_job_queue_find(ends->queue, lookup);
}

/* Settles the end of a job. If it is the last scene of an archive, the archive's job ends too. */
static void settle_end(struct pb_job_ends *ends, struct pb_pending *pending)
{
    char archive[PB_JOB_ID_BYTES] = "";
    if (pb_job_is_scene(&pending->job))
        (void)snprintf(archive, sizeof archive, "%s", pending->job.archive);
    pb_pending_settle(pending);
    end_archive(ends, archive);
}

static void finished(void *user, struct pb_pending *pending)
{
    announce_end(user, pending);
    settle_end(user, pending);
}

void pb_job_end_finish(struct pb_job_ends *ends, struct pb_pending *pending,
                       enum pb_job_status status)
{
    struct pb_job *job = &pending->job;
    if (status == PB_JOB_SUCCESSFUL && job->attempts == 0)
        job->attempts =
            1; /* a run that was put back without counting an attempt had finished after all */
    if (pb_job_move(job, status, pb_clock_wall_ms()) != 0)
        pb_log(PB_LOG_ERROR, "job %s: cannot become %s", job->id, pb_job_status_name(status));
    pb_faults_end(ends->faults, job, true);
    pb_pending_work(pending, PB_PENDING_STORE, finished, ends);
}

static void hold(struct pb_job_ends *ends, const struct pb_job *job)
{
    ends->env->on_hold(ends->env->user, job);
}

/* A job whose products cannot be seen now does not fail: it may have published them, or have failed
 * because their file system is gone. */
static void finish_looked(void *user, struct pb_pending *pending)
{
    if (pending->unseen && pending->status == PB_JOB_FAILED) {
        pb_log(PB_LOG_WARNING,
               "job %s: %s; it waits, because the directory of products is not there",
               pending->job.id, pending->job.error.message);
        pending->job.attempts--;
        pb_job_end_return(user, pending);
        return;
    }
    pb_job_end_finish(user, pending, pending->published ? PB_JOB_SUCCESSFUL : pending->status);
}

/* Gives a running job its final status; a job that did not succeed gets it only if its products
 * are not in place. */
static void finish(struct pb_job_ends *ends, struct pb_job *job, enum pb_job_status status)
{
    hold(ends, job);
    struct pb_pending *pending = pb_pending_add_taken(ends->pending, job);
    pending->status = status;
    if (status == PB_JOB_SUCCESSFUL)
        pb_job_end_finish(ends, pending, status);
    else
        pb_pending_work(pending, PB_PENDING_LOOK, finish_looked, ends);
}

/* Moves a waiting job to running, from where it ends. This is no start: the run that is over
 * counts. */
static void move_unstarted(struct pb_job *job)
{
    if (pb_job_move(job, PB_JOB_RUNNING, pb_clock_wall_ms()) == 0)
        job->epoch--;
    job->attempts -= job->attempts > 1;
}

void pb_job_end_is_done(struct pb_job_ends *ends, struct pb_pending *pending)
{
    /* The job ran to its end once; this does not count as a further run. */
    struct pb_job *job = &pending->job;
    char *products = job->products, *directory = job->directory;
    int64_t started_ms = job->started_ms;
    job->products = job->directory = NULL;
    move_unstarted(job);
    if (started_ms > 0)
        job->started_ms = started_ms;
    job->products = products;
    job->directory = directory;
    hold(ends, job);
    pb_job_end_finish(ends, pending, PB_JOB_SUCCESSFUL);
}

static void dismissed(void *user, struct pb_pending *pending)
{
    struct pb_job_ends *ends = user;
    if (!pending->stored) {
        struct pb_err err = pending->err;
        pb_pending_end(pending, pending->rc, &err);
        return;
    }
    if (!pending->announced)
        pb_faults_end(ends->faults, &pending->job, true);
    announce_end(ends, pending);
    if (pending->rc !=
        0) /* the store has the end of the job, but not the present place of its input */
        pb_pending_answer(pending);
    settle_end(ends, pending);
}

void pb_job_end_dismiss(struct pb_job_ends *ends, struct pb_pending *pending)
{
    hold(ends, &pending->job);
    pb_job_fail(&pending->job, PB_E_JOB_DISMISSED, "cancelled on request%s",
                pb_job_began(&pending->job) ? "" : " before it ran");
    (void)pb_job_move(&pending->job, PB_JOB_DISMISSED, pb_clock_wall_ms());
    pb_pending_work(pending, PB_PENDING_STORE, dismissed, ends);
}

/* --- back into the queue --------------------------------------------------------------------*/

static void home_asked(void *user, struct pb_pending *pending)
{
    (void)user;
    if (pending->rc == 0)
        pb_log(PB_LOG_NOTICE, "job %s: the cancel is for node %s", pending->job.id, pending->node);
    else /* it finds the job in the queue */
        pb_log(PB_LOG_WARNING, "job %s: the cancel waits for node %s: %s", pending->job.id,
               pending->node, pending->err.msg);
    pending->rc = 0;
    pb_pending_settle(pending);
}

/* Passes the cancel of a run to the node that has the input, which needs no free slot for it. */
static void ask_home(struct pb_job_ends *ends, struct pb_pending *pending)
{
    const struct pb_job *job = &pending->job;
    pending->request = (struct pb_node_request){.kind = PB_REQUEST_CANCEL};
    (void)snprintf(pending->request.job, sizeof pending->request.job, "%s", job->id);
    (void)snprintf(pending->node, sizeof pending->node, "%s", job->home);
    pb_pending_work(pending, PB_PENDING_ASK, home_asked, ends);
}

static void was_put_back(void *user, struct pb_pending *pending)
{
    struct pb_job_ends *ends = user;
    const struct pb_runner_env *env = ends->env;
    if (!pending->announced) {
        pending->announced = true;
        pb_log(PB_LOG_NOTICE, "job %s: put back into the queue", pending->job.id);
        env->on_change(env->user, &pending->job);
    }
    if (pending->rc == 0 && pending->job.home != NULL &&
        pb_code_find(pending->job.error.code) == PB_E_JOB_DISMISSED)
        ask_home(ends, pending);
    else
        pb_pending_settle(pending);
}

void pb_job_end_return(struct pb_job_ends *ends, struct pb_pending *pending)
{
    struct pb_job *job = &pending->job;
    struct pb_job_error why = job->error;
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    job->error = why; /* shown while the job waits */
    pb_faults_end(ends->faults, job, false);
    pb_pending_work(pending, PB_PENDING_STORE, was_put_back, ends);
}

static void put_back_looked(void *user, struct pb_pending *pending)
{
    if (pending->published)
        pb_job_end_finish(user, pending, PB_JOB_SUCCESSFUL);
    else
        pb_job_end_return(user, pending);
}

void pb_job_end_put_back(struct pb_job_ends *ends, struct pb_job *job)
{
    hold(ends, job);
    struct pb_pending *pending = pb_pending_add_taken(ends->pending, job);
    pb_pending_work(pending, PB_PENDING_LOOK, put_back_looked, ends);
}

void pb_job_end_fault(struct pb_job_ends *ends, struct pb_pending *pending, int64_t began_ms)
{
    hold(ends, &pending->job);
    pb_job_shun(&pending->job, ends->env->node);
    if (pb_faults_machine(ends->faults, &pending->job, began_ms) == PB_HOLD_ASIDE) {
        pb_job_end_finish(ends, pending, PB_JOB_FAILED);
    } else {
        pending->job.attempts--;
        pb_job_end_return(ends, pending);
    }
}

static void set_back_looked(void *user, struct pb_pending *pending)
{
    if (pending->published)
        pb_job_end_finish(user, pending, PB_JOB_SUCCESSFUL);
    else
        pb_job_end_fault(user, pending, pending->began_ms);
}

static void set_back(struct pb_job_ends *ends, struct pb_job *job, int64_t began_ms)
{
    hold(ends, job);
    struct pb_pending *pending = pb_pending_add_taken(ends->pending, job);
    pending->began_ms = began_ms;
    pb_pending_work(pending, PB_PENDING_LOOK, set_back_looked, ends);
}

/* --- archives of several scenes --------------------------------------------------------------- */

static void was_split(void *user, struct pb_pending *pending)
{
    struct pb_job_ends *ends = user;
    const struct pb_runner_env *env = ends->env;
    const struct pb_job *job = &pending->job;
    if (pending->rc != 0) { /* a later run lists the scenes again */
        pb_job_fail(&pending->job, pending->err.code, "%s", pending->err.msg);
        pb_job_end_fault(ends, pending, pb_clock_mono_ms());
        return;
    }
    pb_faults_end(ends->faults, job, false);
    pb_log(PB_LOG_NOTICE, "job %s: %s holds several scenes; %zu of them have jobs that wait",
           job->id, job->name, pending->n_scenes);
    for (size_t i = 0; i < pending->n_scenes; i++)
        pb_metrics_count(env->metrics, &pending->scenes[i]);
    env->on_changes(env->user, pending->scenes, pending->n_scenes);
    env->on_change(env->user, job);
    char archive[PB_JOB_ID_BYTES];
    (void)snprintf(archive, sizeof archive, "%s", job->id);
    pb_pending_settle(pending);
    end_archive(ends, archive); /* all may be over: those of the first run, or the short ones */
}

/* Makes jobs of the scenes that the worker found in the archive. */
static void split(struct pb_job_ends *ends, struct pb_job *job)
{
    hold(ends, job);
    struct pb_pending *pending = pb_pending_add_taken(ends->pending, job);
    pb_pending_work(pending, PB_PENDING_SPLIT, was_split, ends);
}

/* Returns true if the worker found several scenes in the archive, where the job expects one or
 * none yet. */
static bool has_several(const struct pb_job *job)
{
    return pb_code_find(job->error.code) == PB_E_INPUT_SCENES && job->archive[0] == '\0';
}

/* Fails a job that makes the products of one scene again. */
static void fail_several(struct pb_job *job)
{
    char text[600];
    (void)snprintf(text, sizeof text,
                   "pipeline %.200s finds several scenes in %.255s now; job %s found one",
                   job->pipeline, job->name, job->again);
    pb_job_fail_words(job, pb_code_id(PB_E_INPUT_SCENES), text,
                      "submit or deliver the archive: that makes a job of each scene");
}

static void summed(void *user, struct pb_pending *pending)
{
    struct pb_job_ends *ends = user;
    struct pb_job *job = &pending->job;
    if (pending->rc == -ESTALE) { /* its end was found twice */
        pb_pending_end(pending, 0, NULL);
        return;
    }
    if (pending->rc != 0) {
        pb_faults_cannot_start(ends->faults, &pending->err);
        pb_pending_end(pending, 0, NULL);
        return;
    }
    /* Its row is accepted until the end is stored; the run that listed its scenes counts. */
    char *report = job->report;
    const struct pb_job_error error = job->error;
    job->report = NULL;
    move_unstarted(job);
    (void)snprintf(job->stage, sizeof job->stage, "scenes");
    (void)pb_job_set(&job->products, "[]");
    job->report = report;
    job->error = error;
    hold(ends, job);
    pb_job_end_finish(ends, pending, pending->status);
}

void pb_job_end_scenes(struct pb_job_ends *ends, struct pb_job *job)
{
    if (pb_pending_find(ends->pending, job->id) != NULL) {
        pb_job_fini(job);
        return;
    }
    struct pb_pending *pending = pb_pending_add(ends->pending, job);
    if (pending == NULL) { /* the queue has the job */
        struct pb_err err = {0};
        (void)pb_fail(&err, PB_E_MEMORY, "out of memory");
        pb_faults_cannot_start(ends->faults, &err);
        return;
    }
    pb_pending_work(pending, PB_PENDING_SUM, summed, ends);
}

/* --- the end of a run -----------------------------------------------------------------------*/

/* Returns true if another node that takes jobs has as much memory as the job needs. */
static bool fits_another(const struct pb_runner_env *env, const struct pb_job *job)
{
    for (size_t i = 0; env->nodes != NULL && i < env->nodes->n; i++) {
        const struct pb_node *node = &env->nodes->at[i];
        if (node->is_alive && !node->drains && node->memory >= job->error.memory_bytes &&
            strcmp(node->name, env->node) != 0)
            return true;
    }
    return false;
}

static void await_config(struct pb_job_ends *ends, struct pb_job *job, int64_t began_ms)
{
    /* A job of a submitted file does not wait, because its client keeps the file and needs an
     * answer. One that needs more memory is left to nodes that have it. */
    pb_job_shun(job, ends->env->node);
    const bool needs_node = ends->env->node[0] != '\0' && job->error.memory_bytes > 0;
    if (needs_node && (pb_job_is_delivered(job) || fits_another(ends->env, job))) {
        job->attempts--;
        pb_job_end_put_back(ends, job);
        return;
    }
    int rc = pb_job_is_delivered(job) ? pb_faults_config(ends->faults, job) : 0;
    if (rc < 0) {
        set_back(ends, job, began_ms);
    } else if (rc == 0) {
        finish(ends, job, PB_JOB_FAILED);
    } else {
        job->attempts--;
        pb_job_end_put_back(ends, job);
    }
}

/* A worker with a false report is handled like a crashed one. */
static void disbelieve(struct pb_job_ends *ends, struct pb_pending *pending)
{
    struct pb_job *job = &pending->job;
    pb_job_fail(job, PB_E_JOB_CRASHED,
                "its worker reported that its content was done before, which the job store does "
                "not know of (attempt %d of %d)",
                job->attempts, ends->env->config->service.max_attempts);
    pb_job_shun(job, ends->env->node);
    if (job->attempts >= ends->env->config->service.max_attempts)
        pb_job_end_finish(ends, pending, PB_JOB_FAILED);
    else
        pb_job_end_return(ends, pending);
}

static void compared(void *user, struct pb_pending *pending)
{
    struct pb_job_ends *ends = user;
    struct pb_job *job = &pending->job;
    enum pb_duplicate_then then = ends->env->config->service.duplicates.then;
    if (pending->verdict == PB_DUPLICATES_SAME) {
        pb_job_end_finish(ends, pending,
                          then == PB_DUPLICATE_SKIP ? PB_JOB_DISMISSED : PB_JOB_FAILED);
    } else if (pending->verdict == PB_DUPLICATES_FALSE) {
        disbelieve(ends, pending);
    } else {
        job->attempts--;
        memset(&job->error, 0, sizeof job->error);
        pb_job_end_return(ends, pending);
    }
}

/* Compares after the worker reported an input with the content of an earlier job. */
static void compare(struct pb_job_ends *ends, struct pb_job *job)
{
    hold(ends, job);
    struct pb_pending *pending = pb_pending_add_taken(ends->pending, job);
    pb_pending_work(pending, PB_PENDING_COMPARE, compared, ends);
}

/* The scene ended early, or the run failed before the scene was complete: no attempt counts. */
void pb_job_end_again(struct pb_job_ends *ends, struct pb_run_over *over)
{
    struct pb_job *job = &over->job;
    pb_log(PB_LOG_NOTICE, "job %s: %s: %s; it is computed again", job->id, job->error.code,
           job->error.message);
    memset(&job->error, 0, sizeof job->error);
    job->attempts--;
    pb_job_end_put_back(ends, job);
}

/* A job whose input is on a node that cannot be reached waits, and is left to others for a while.
 * Other jobs of this node do not wait for that. */
static void unfetched(struct pb_job_ends *ends, struct pb_job *job)
{
    pb_log(PB_LOG_WARNING, "job %s: %s: %s", job->id, job->error.code, job->error.message);
    pb_faults_fetch(ends->faults, job);
    pb_job_shun(job, ends->env->node);
    job->attempts--;
    pb_job_end_put_back(ends, job);
}

static bool failed(struct pb_job_ends *ends, struct pb_run_over *over)
{
    enum pb_code_class class = pb_code_class_of(over->job.error.code);
    const bool several = has_several(&over->job);
    if (several && over->job.again[0] != '\0')
        fail_several(&over->job);
    if (several && over->job.again[0] == '\0' && over->job.report != NULL &&
        pb_archive_name_stem(over->job.name) > 0)
        split(ends, &over->job);
    else if (pb_code_find(over->job.error.code) == PB_E_INPUT_DUPLICATE)
        compare(ends, &over->job);
    else if (pb_code_find(over->job.error.code) == PB_E_INPUT_FETCH)
        unfetched(ends, &over->job);
    else if (pb_code_find(over->job.error.code) == PB_E_INPUT_SHORTER)
        pb_job_end_again(ends, over);
    else if (class == PB_CLASS_INPUT)
        finish(ends, &over->job, PB_JOB_FAILED);
    else if (class == PB_CLASS_CONFIG)
        await_config(ends, &over->job, over->began_ms);
    else
        set_back(ends, &over->job, over->began_ms);
    return class == PB_CLASS_INPUT;
}

/* A run of a job whose input is on another node may have published there, which only that node can
 * see: the job waits, and that node looks for its products before it runs again. */
static bool crashed(struct pb_job_ends *ends, struct pb_job *job)
{
    pb_job_shun(job, ends->env->node);
    if (job->home != NULL) {
        pb_job_end_put_back(ends, job);
        return false;
    }
    if (job->attempts >= ends->env->config->service.max_attempts) {
        finish(ends, job, PB_JOB_FAILED);
        return true;
    }
    memset(&job->error, 0, sizeof job->error); /* it was logged already */
    pb_job_end_put_back(ends, job);
    return false;
}

/* Returns true if another node may have published the products of the cancelled run, or of an
 * earlier one. */
static bool may_be_published(const struct pb_job *job)
{
    return job->home != NULL && (pb_job_publishes(job) || job->epoch > 1);
}

static bool ended(struct pb_job_ends *ends, struct pb_run_over *over)
{
    struct pb_job *job = &over->job;
    if (over->ending == PB_ENDING_CANCEL && may_be_published(job)) {
        job->attempts--;
        pb_job_fail(job, PB_E_JOB_DISMISSED,
                    "cancelled on request; node %s, which may have published its products, looks "
                    "for them and ends the job",
                    job->home);
        pb_job_end_put_back(ends, job); /* other nodes leave the job to that node (choice.c) */
        return false;
    }
    if (over->ending == PB_ENDING_CANCEL) {
        pb_job_fail(job, PB_E_JOB_DISMISSED, "cancelled on request");
        finish(ends, job, PB_JOB_DISMISSED);
        return true;
    }
    job->attempts--;
    pb_job_end_put_back(ends, job);
    return false;
}

bool pb_job_end_run(struct pb_job_ends *ends, struct pb_run_over *over)
{
    switch (over->end) {
    case PB_RUN_SUCCESSFUL:
        finish(ends, &over->job, PB_JOB_SUCCESSFUL);
        return true;
    case PB_RUN_FAILED:
        return failed(ends, over);
    case PB_RUN_CRASHED:
        return crashed(ends, &over->job);
    case PB_RUN_ENDED:
        return ended(ends, over);
    }
    return false;
}
