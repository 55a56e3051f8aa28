/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The parts that need the job store: the jobs of the last run, the runner and the watcher. */
#include "service/daemon/daemon_parts.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/publish/publish.h"
#include "service/base/log.h"
#include "service/inbox/intake.h"
#include "service/jobs/service_time.h"
#include "service/runner/fetched.h"
#include "service/runner/guests.h"

#include <stdlib.h>
#include <string.h>

#define SELF         "/proc/self/exe"
#define TIDY_MS      60000
#define SAVE_TIME_MS 600000 /* maximum service time that a power failure loses */
#define RUNS_MS      600000 /* time between sweeps of runs of other nodes */
#define TRY_AGAIN_MS 4000
#define OPEN_MAX_MS  64000 /* longest wait between tries to open the store */

void pb_daemon_tell(struct pb_daemon *daemon, const struct pb_job *jobs, size_t n)
{
    if (daemon->methods.status == NULL)
        return;
    pb_methods_publish(&daemon->methods); /* updates the metrics before the events are sent */
    for (size_t i = 0; i < n; i++) {
        const struct pb_job *job = &jobs[i];
        pb_status_tell(daemon->methods.status, job);
        if (job->set_id[0] != '\0' && (PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) != 0)
            pb_feed_look(daemon->methods.feed); /* files that arrived since may join its scene */
    }
}

static void on_changes(void *user, const struct pb_job *jobs, size_t n)
{
    pb_daemon_tell(user, jobs, n);
}

static void on_change(void *user, const struct pb_job *job)
{
    pb_daemon_tell(user, job, 1);
}

static void on_hold(void *user, const struct pb_job *job)
{
    struct pb_daemon *daemon = user;
    if (daemon->methods.status != NULL)
        pb_status_hold(daemon->methods.status, job);
}

static void on_answer(void *user, uint64_t ticket, const char *id, int rc, const struct pb_err *err)
{
    struct pb_daemon *daemon = user;
    pb_methods_answer(&daemon->methods, ticket, id, rc, err);
}

static void on_taken(void *user, const struct pb_claimed *files, size_t n)
{
    struct pb_daemon *daemon = user;
    struct pb_metrics *metrics = &daemon->metrics;
    for (size_t i = 0; i < n; i++)
        if (files[i].rc == 0)
            pb_metrics_count(metrics, &files[i].job);
    if (daemon->methods.status != NULL)
        pb_methods_publish(&daemon->methods);
    for (size_t i = 0; i < n; i++) {
        const struct pb_job *job = &files[i].job;
        if (files[i].rc != 0)
            continue;
        pb_log(PB_LOG_NOTICE, "job %s: %s%s%s taken from the inbox (%llu bytes)", job->id,
               job->folder ? job->folder : "", job->folder ? "/" : "", job->name,
               (unsigned long long)files[i].file->size);
        if (daemon->methods.status != NULL)
            pb_status_tell(daemon->methods.status, job);
    }
    pb_runner_kick(daemon->methods.runner);
}

static void on_scene(void *user, const struct pb_job *job, int grows)
{
    struct pb_daemon *daemon = user;
    if (job != NULL) {
        pb_metrics_count(&daemon->metrics, job);
        pb_log(PB_LOG_NOTICE, "job %s: %s is a scene of a stream", job->id, job->name);
    }
    if (daemon->methods.stopping)
        return;
    if (job != NULL)
        pb_daemon_tell(daemon, job, 1);
    pb_runner_grows(daemon->methods.runner, grows);
}

static void on_latency(void *user, const struct pb_job *job, const struct pb_latency_counts *more)
{
    struct pb_daemon *daemon = user;
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(daemon->config, job->pipeline);
    if (pipeline != NULL && pipeline->input.stream != NULL && daemon->streams != NULL)
        pb_streams_add_latency(daemon->streams, pipeline->input.stream, more);
}

static bool is_privileged(void *user, const struct pb_peer *peer)
{
    struct pb_daemon *daemon = user;
    return pb_facts_is_privileged(&daemon->facts, peer);
}

static void on_looked(void *user)
{
    pb_daemon_become_ready(user);
}

/* The store, which is being opened on the pool. */
struct pb_opening {
    uv_work_t work;
    struct pb_daemon *daemon;
    struct pb_subscribing *subscribers;
    int keep_jobs;
    char products[PB_FILES_PATH_BYTES];
    int rc;
    struct pb_err err;
};

static int open_store(struct pb_opening *opening)
{
    struct pb_daemon *daemon = opening->daemon;
    struct pb_err *err = &opening->err;
    char moved[PB_FILES_PATH_BYTES];
    const int64_t since_ms = pb_clock_boot_ms();
    int rc = pb_job_store_connect(daemon->store, err, moved);
    if (moved[0] != '\0')
        pb_log(PB_LOG_ERROR,
               "the job store was damaged and is at %s now; a new one was started. Inputs in "
               "work/ are taken up again; the list of old jobs is lost",
               moved);
    if (rc != 0)
        return rc;
    rc = pb_daemon_join(daemon, err); /* first: nothing of another node with this name changes */
    rc = rc ? rc : pb_daemon_subscribers_store(opening->subscribers, err);
    rc = rc ? rc : pb_store_reap(daemon->store, pb_clock_wall_ms(), err);
    if (rc > 0)
        pb_log(PB_LOG_NOTICE, "%d job%s of the last run will run again", rc, rc == 1 ? "" : "s");
    rc = rc < 0 ? rc : pb_daemon_hold_inboxes(daemon, since_ms, true, err);
    if (rc < 0) {
        pb_job_store_disconnect(daemon->store);
        return rc;
    }
    pb_fetched_sweep(daemon->dirs.work);
    struct pb_err unrooted = {0}; /* the beat looks again, and reports it */
    (void)pb_daemon_check_products(daemon, opening->products, &unrooted);
    pb_job_store_admit_readers(daemon->store);
    pb_adopt_work(&daemon->intake, true, &daemon->swept);
    (void)pb_job_store_prune(daemon->store, opening->keep_jobs, NULL);
    return 0;
}

static void open_on_pool(uv_work_t *request)
{
    struct pb_opening *opening = request->data;
    opening->rc = open_store(opening);
}

static int start_work(struct pb_daemon *daemon, struct pb_err *err)
{
    struct pb_methods *methods = &daemon->methods;
    struct pb_runner_options runner = {
        .loop = &daemon->loop,
        .store = daemon->store,
        .reader = daemon->reader,
        .moves = &daemon->intake.moves,
        .dirs = &daemon->dirs,
        .config = daemon->config,
        .worker = daemon->options->worker ? daemon->options->worker : SELF,
        .owner_program = SELF,
        .owner_device = daemon->options->owner,
        .nodes = &daemon->nodes,
        .metrics = &daemon->metrics,
        .troubles = &daemon->troubles,
        .on_change = on_change,
        .on_changes = on_changes,
        .on_hold = on_hold,
        .on_latency = on_latency,
        .on_answer = on_answer,
        .user = daemon,
    };
    struct pb_feed_options feed = {
        .loop = &daemon->loop,
        .dirs = &daemon->dirs,
        .config = daemon->config,
        .intake = &daemon->intake,
        .worker = daemon->options->worker ? daemon->options->worker : SELF,
        .taken = on_taken,
        .looked = on_looked,
        .user = daemon,
        .troubles = &daemon->troubles,
    };
    const struct pb_streams_options streams = {.loop = &daemon->loop,
                                               .status_socket = daemon->socket,
                                               .intake = &daemon->intake,
                                               .is_privileged = is_privileged,
                                               .taken = on_scene,
                                               .troubles = &daemon->troubles,
                                               .user = daemon};
    const struct pb_guests_options guests = {.loop = &daemon->loop,
                                             .store = daemon->store,
                                             .dirs = &daemon->dirs,
                                             .config = daemon->config,
                                             .metrics = &daemon->metrics,
                                             .worker = runner.worker,
                                             .socket = daemon->socket};
    int rc = methods->runner ? 0 : pb_runner_create(&runner, err, &methods->runner);
    if (rc == 0 && daemon->address[0] != '\0' && daemon->guests == NULL)
        rc = pb_guests_start(&guests, err, &daemon->guests);
    rc = rc ? rc : pb_daemon_start_beat(daemon, err);
    rc = rc ? rc : pb_feed_start(&feed, err, &methods->feed);
    if (rc == 0)
        pb_runner_set_config(methods->runner, daemon->config);
    if (rc == 0 && daemon->streams == NULL)
        rc = pb_streams_create(&streams, err, &daemon->streams);
    if (rc == 0) {
        methods->streams = daemon->streams;
        pb_streams_follow(daemon->streams, daemon->config);
    }
    return rc;
}

/* The wait doubles, because a try reads the whole store. */
static void try_later(struct pb_daemon *daemon)
{
    daemon->open_wait_ms = daemon->open_wait_ms == 0                ? TRY_AGAIN_MS
                           : daemon->open_wait_ms * 2 < OPEN_MAX_MS ? daemon->open_wait_ms * 2
                                                                    : OPEN_MAX_MS;
    daemon->open_at_ms = pb_clock_mono_ms() + daemon->open_wait_ms;
}

/* Starts the parts that use the store, which is open. */
static void begin_work(struct pb_daemon *daemon)
{
    struct pb_err err = {0};
    if (start_work(daemon, &err) == 0) {
        daemon->beats = 0; /* the first scan begins now */
        pb_trouble_clear(&daemon->troubles, "store");
        return;
    }
    try_later(daemon);
    pb_trouble_raise(&daemon->troubles, "store", err.code, err.msg);
    pb_daemon_become_ready(daemon);
}

static void on_opened(uv_work_t *request, int status)
{
    struct pb_opening *opening = request->data;
    struct pb_daemon *daemon = opening->daemon;
    const int rc = opening->rc;
    const struct pb_err err = opening->err;
    const bool stopping = daemon->methods.stopping;
    (void)status;
    (void)pb_daemon_subscribers_end(opening->subscribers);
    free(opening);
    daemon->opening = NULL;
    daemon->store_open = rc == 0;
    if (stopping)
        return;
    if (rc == 0) {
        pb_adopt_report(&daemon->swept, &daemon->troubles);
        begin_work(daemon);
        return;
    }
    try_later(daemon);
    pb_trouble_raise(&daemon->troubles, "store", err.code, err.msg);
    pb_daemon_become_ready(daemon);
}

void pb_daemon_open_jobs(struct pb_daemon *daemon)
{
    if (daemon->methods.feed != NULL || daemon->methods.stopping || daemon->opening != NULL ||
        pb_clock_mono_ms() < daemon->open_at_ms)
        return;
    if (daemon->store_open) {
        begin_work(daemon);
        return;
    }
    struct pb_opening *opening = calloc(1, sizeof *opening);
    struct pb_subscribing *subscribers = pb_daemon_subscribers(daemon);
    if (opening == NULL || subscribers == NULL) {
        (void)pb_daemon_subscribers_end(subscribers);
        free(opening);
        try_later(daemon);
        pb_trouble_raise(&daemon->troubles, "store", PB_E_MEMORY, "out of memory");
        return;
    }
    *opening = (struct pb_opening){.daemon = daemon,
                                   .subscribers = subscribers,
                                   .keep_jobs = daemon->config->service.keep_jobs};
    (void)memcpy(opening->products, daemon->dirs.products, sizeof opening->products);
    opening->work.data = daemon->opening = opening;
    (void)uv_queue_work(&daemon->loop, &opening->work, open_on_pool, on_opened);
}

static void sweep(uv_work_t *request)
{
    struct pb_daemon *daemon = request->data;
    pb_adopt_work(&daemon->intake, false, &daemon->swept);
}

static void on_swept(uv_work_t *request, int status)
{
    struct pb_daemon *daemon = request->data;
    (void)status;
    daemon->sweeps = false;
    daemon->sweep_at_ms = pb_clock_mono_ms() + TRY_AGAIN_MS;
    if (daemon->methods.stopping)
        return;
    pb_adopt_report(&daemon->swept, &daemon->troubles);
    pb_runner_kick(daemon->methods.runner); /* scenes of streams may be closed now */
}

void pb_daemon_sweep_work(struct pb_daemon *daemon)
{
    if (daemon->sweeps || pb_clock_mono_ms() < daemon->sweep_at_ms || daemon->methods.stopping ||
        daemon->methods.feed == NULL || !pb_adopt_has_left(&daemon->intake, &daemon->troubles))
        return;
    daemon->sweeps = true;
    daemon->sweep.data = daemon;
    (void)uv_queue_work(&daemon->loop, &daemon->sweep, sweep, on_swept);
}

/* Returns true if that run of the job is over by the store, on whichever node it was. A job that
 * the store does not know may be of another service. */
static bool is_over(void *user, const char *id, uint64_t epoch)
{
    struct pb_job job;
    struct pb_err err = {0};
    if (pb_job_store_find(user, id, &err, &job) != 0)
        return false;
    const bool finished = (PB_JOB_MASK(job.status) & PB_JOB_MASK_FINISHED) != 0;
    const bool over = strcmp(job.id, id) == 0 &&
                      (epoch < (uint64_t)job.epoch || (finished && epoch == (uint64_t)job.epoch));
    pb_job_fini(&job);
    return over;
}

static void tidy(uv_work_t *request)
{
    struct pb_daemon *daemon = request->data;
    const struct pb_retention_config *config = &daemon->retention.config;
    daemon->tidied = (struct pb_retention_result){.archived = 0};
    if (daemon->sweeps_runs)
        (void)pb_publish_sweep_runs(daemon->swept_products, is_over, daemon->store);
    if (daemon->saves_time)
        (void)pb_job_store_save_time(daemon->store, NULL);
    int rc = pb_intake_trim_sets(&daemon->intake, &daemon->tidied.err);
    if (rc == 0 && (config->done_ms > 0 || config->quarantine_ms > 0))
        pb_retention_run(&daemon->retention, pb_job_store_time_ms(daemon->store), &daemon->tidied);
}

static void on_tidied(uv_work_t *request, int status)
{
    struct pb_daemon *daemon = request->data;
    const struct pb_err *why = &daemon->tidied.err;
    (void)status;
    daemon->tidies = false;
    if (daemon->methods.stopping)
        return;
    if (why->code != PB_OK) {
        daemon->tidy_at_ms = pb_clock_mono_ms() + TRY_AGAIN_MS;
        pb_trouble_raise(&daemon->troubles, "retention", why->code, why->msg);
    } else
        pb_trouble_clear(&daemon->troubles, "retention");
}

void pb_daemon_tidy(struct pb_daemon *daemon)
{
    const struct pb_retention_config *config = &daemon->config->service.retention;
    if (daemon->tidies || pb_clock_mono_ms() < daemon->tidy_at_ms || daemon->methods.stopping ||
        !daemon->store_open)
        return;
    daemon->tidies = true;
    daemon->tidy_at_ms = pb_clock_mono_ms() + TIDY_MS;
    daemon->saves_time = (config->done_ms > 0 || config->quarantine_ms > 0) &&
                         pb_clock_mono_ms() >= daemon->save_time_at_ms;
    if (daemon->saves_time)
        daemon->save_time_at_ms = pb_clock_mono_ms() + SAVE_TIME_MS;
    daemon->sweeps_runs =
        pb_store_is_shared(daemon->store) && pb_clock_mono_ms() >= daemon->runs_at_ms;
    if (daemon->sweeps_runs)
        daemon->runs_at_ms = pb_clock_mono_ms() + RUNS_MS;
    (void)memcpy(daemon->swept_products, daemon->dirs.products, sizeof daemon->swept_products);
    daemon->retention = (struct pb_retention){.store = daemon->store,
                                              .dirs = &daemon->dirs,
                                              .moves = &daemon->intake.moves,
                                              .config = *config};
    daemon->tidy.data = daemon;
    (void)uv_queue_work(&daemon->loop, &daemon->tidy, tidy, on_tidied);
}
