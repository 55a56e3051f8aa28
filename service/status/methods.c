/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/methods.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "service/base/log.h"
#include "service/inbox/writers.h"
#include "service/jobs/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_paths(const struct pb_methods *methods, struct pb_json *json)
{
    const struct pb_dirs *dirs = methods->intake->dirs;
    pb_json_string(json, "inbox", dirs->inbox[0]);
    pb_json_array(json, "inboxes");
    for (size_t i = 0; i < dirs->n_inboxes; i++)
        pb_json_string(json, NULL, dirs->inbox[i]);
    pb_json_end(json);
    pb_json_string(json, "work", dirs->work);
    pb_json_string(json, "archive", dirs->archive);
    pb_json_string(json, "quarantine", dirs->quarantine);
    pb_json_string(json, "products", dirs->products);
    pb_json_string(json, "state", dirs->state);
    pb_json_string(json, "socket", methods->socket);
}

static void print_set(struct pb_json *json, const struct pb_gathering_set *set)
{
    char expires[PB_CLOCK_TEXT_BYTES];
    expires[0] = '\0';
    if (set->expires_ms > 0)
        pb_clock_text(set->expires_ms, expires);
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", set->scene);
    pb_json_string(json, "pipeline", set->pipeline[0] ? set->pipeline : NULL);
    pb_json_int(json, "files", (int64_t)set->files);
    pb_json_string(json, "missing", set->missing);
    pb_json_string(json, "expires", expires[0] ? expires : NULL);
    pb_json_end(json);
}

static int64_t count_sets(const struct pb_methods *methods)
{
    const struct pb_gathering_told *told;
    size_t n = 0;
    for (size_t i = 0; (told = pb_feed_gathering(methods->feed, i)) != NULL; i++)
        n += told->n_all;
    return (int64_t)n;
}

/* Prints the incomplete scenes of the inboxes. */
static void print_gathering(const struct pb_methods *methods, struct pb_json *json)
{
    const struct pb_gathering_told *told;
    pb_json_int(json, "gathering_sets", count_sets(methods));
    pb_json_array(json, "gathering");
    for (size_t i = 0; (told = pb_feed_gathering(methods->feed, i)) != NULL; i++)
        for (size_t k = 0; k < told->n; k++)
            print_set(json, &told->set[k]);
    pb_json_end(json);
}

/* Sums over all inboxes. */
struct pb_stays_sum {
    int64_t refused, foreign, settling;
    /* wall clock: time at which the last entry settles; 0 = no entry settles */
    int64_t settled_ms;
};

static struct pb_stays_sum sum_stays(const struct pb_methods *methods)
{
    struct pb_stays_sum sum = {.settled_ms = 0};
    const struct pb_stays *stays;
    for (size_t i = 0; (stays = pb_feed_stays(methods->feed, i)) != NULL; i++) {
        sum.refused += (int64_t)stays->n_refused;
        sum.foreign += (int64_t)stays->n_foreign;
        sum.settling += (int64_t)stays->n_settling;
        sum.settled_ms = stays->settled_ms > sum.settled_ms ? stays->settled_ms : sum.settled_ms;
    }
    return sum;
}

static void print_stays_of(const struct pb_methods *methods, struct pb_json *json, const char *key,
                           enum pb_settle_reason reason)
{
    const struct pb_stays *stays;
    pb_json_array(json, key);
    for (size_t i = 0; (stays = pb_feed_stays(methods->feed, i)) != NULL; i++)
        for (size_t k = 0; k < stays->n; k++) {
            const struct pb_stay *stay = &stays->at[k];
            if (stay->reason != reason)
                continue;
            pb_json_object(json, NULL);
            pb_json_string(json, "name", stay->name);
            pb_json_string(json, "inbox", methods->intake->dirs->inbox[i]);
            pb_json_string(json, "code", pb_code_id(stay->code));
            pb_json_string(json, "message", stay->text);
            pb_json_string(json, "hint", pb_code_hint(stay->code));
            pb_json_end(json);
        }
    pb_json_end(json);
}

/* Prints the entries of the inboxes that settle, and those that are not taken. */
static void print_stays(const struct pb_methods *methods, struct pb_json *json)
{
    char settled[PB_CLOCK_TEXT_BYTES];
    const struct pb_stays_sum sum = sum_stays(methods);
    pb_clock_text(sum.settled_ms, settled);
    pb_json_int(json, "inbox_settling", sum.settling);
    pb_json_string(json, "inbox_settled", settled[0] ? settled : NULL);
    pb_json_int(json, "inbox_refused", sum.refused);
    print_stays_of(methods, json, "refused", PB_SETTLE_REFUSED);
    pb_json_int(json, "inbox_foreign", sum.foreign);
    print_stays_of(methods, json, "foreign", PB_SETTLE_FOREIGN);
}

static void print_config_state(const struct pb_config_state *state, struct pb_json *json)
{
    char loaded[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(state->loaded_ms, loaded);
    pb_json_string(json, "config_loaded", loaded);
    pb_json_string(json, "config_sha256", state->sha256[0] ? state->sha256 : NULL);
    pb_json_bool(json, "config_refused", state->refused);
}

/* Prints the nodes of the store; nothing for a store of one service. */
static void print_nodes(const struct pb_methods *methods, struct pb_json *json)
{
    const char *own = pb_store_node(methods->intake->store);
    char started[PB_CLOCK_TEXT_BYTES];
    if (own[0] == '\0')
        return;
    pb_json_string(json, "node", own);
    pb_json_array(json, "nodes");
    for (size_t i = 0; i < methods->nodes->n; i++) {
        const struct pb_node *node = &methods->nodes->at[i];
        pb_clock_text(node->started_ms, started);
        pb_json_object(json, NULL);
        pb_json_string(json, "name", node->name);
        pb_json_bool(json, "reports", node->is_alive);
        pb_json_bool(json, "draining", node->is_alive && node->drains);
        pb_json_int(json, "silent_s", node->silent_ms / 1000);
        pb_json_int(json, "running", node->running);
        if (node->has_gpu >= 0)
            pb_json_bool(json, "gpu", node->has_gpu > 0);
        else
            pb_json_null(json, "gpu");
        pb_json_int(json, "memory", node->memory);
        pb_json_string(json, "started", started);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void print_web(const struct pb_web_config *web, struct pb_json *json)
{
    pb_json_object(json, "web");
    pb_json_bool(json, "actions", web->actions != 0);
    pb_json_string(json, "basemap", web->basemap);
    pb_json_string(json, "attribution", web->attribution);
    pb_json_end(json);
}

static char *info_text(const struct pb_methods *methods, const int64_t counts[PB_JOB_STATUS_COUNT])
{
    const struct pb_config *config = methods->intake->config;
    char started[PB_CLOCK_TEXT_BYTES];
    const struct pb_runner *runner = methods->runner;
    const char *why = "";
    const char *device = runner ? pb_runner_device(runner, &why) : "";
    struct pb_json *json = pb_json_create(false);
    pb_clock_text(methods->start_wall_ms, started);
    pb_json_object(json, NULL);
    pb_json_string(json, "version", PB_VERSION);
    pb_json_int(json, "pid", getpid());
    pb_json_string(json, "started", started);
    pb_json_string(json, "config", config->path);
    print_config_state(&methods->config, json);
    print_web(&config->web, json);
    pb_json_string(json, "device", device[0] ? device : NULL);
    pb_json_string(json, "device_why", why[0] ? why : NULL);
    pb_json_string(json, "confinement", methods->confinement);
    print_nodes(methods, json);
    pb_json_int(json, "parallel_jobs", config->service.parallel_jobs);
    pb_json_int(json, "publishing_jobs", pb_publishing_jobs(&config->service));
    pb_json_int(json, "workers", runner ? pb_runner_workers(runner) : 0);
    pb_json_int(json, "inbox_waiting", (int64_t)pb_feed_waiting(methods->feed));
    pb_json_int(json, "inbox_ignored", (int64_t)pb_feed_ignored(methods->feed));
    print_gathering(methods, json);
    print_stays(methods, json);
    pb_json_int(json, "inbox_alone", (int64_t)pb_feed_alone(methods->feed));
    pb_streams_print(methods->streams, json, "streams");
    pb_json_string(json, "inbox_writers", pb_writers_word(methods->intake->writers));
    pb_json_bool(json, "stopping", methods->stopping);
    pb_json_bool(json, "draining", methods->draining);
    pb_json_int(json, "runs", runner ? pb_runner_runs(runner) : 0);
    pb_troubles_print(methods->troubles, json, "troubles");
    print_paths(methods, json);
    pb_json_object(json, "jobs");
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++)
        pb_json_int(json, pb_job_status_name((enum pb_job_status)i), counts[i]);
    pb_json_end(json);
    pb_json_array(json, "pipelines");
    for (size_t i = 0; i < config->n_pipelines; i++)
        pb_json_string(json, NULL, config->pipelines[i].name);
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

/* Adds the metrics of streams to the text (taken; NULL = out of memory). */
static char *with_streams(const struct pb_methods *methods, char *text)
{
    char *whole = NULL;
    size_t bytes = 0;
    FILE *out = text != NULL && methods->streams != NULL ? open_memstream(&whole, &bytes) : NULL;
    if (out == NULL)
        return text;
    (void)fputs(text, out);
    pb_streams_metrics(methods->streams, out);
    free(text);
    if (fclose(out) == 0)
        return whole;
    free(whole);
    return NULL;
}

static char *metrics_text(const struct pb_methods *methods,
                          const int64_t counts[PB_JOB_STATUS_COUNT])
{
    const struct pb_runner *runner = methods->runner;
    const struct pb_stays_sum stays = sum_stays(methods);
    struct pb_metrics_gauges gauges = {
        .queue_depth = counts[PB_JOB_ACCEPTED],
        .running = runner ? pb_runner_busy(runner) : 0,
        .workers = runner ? pb_runner_workers(runner) : 0,
        .inbox_waiting = (int64_t)pb_feed_waiting(methods->feed),
        .inbox_ignored = (int64_t)pb_feed_ignored(methods->feed),
        .inbox_alone = (int64_t)pb_feed_alone(methods->feed),
        .inbox_gathering = count_sets(methods),
        .inbox_refused = stays.refused,
        .inbox_foreign = stays.foreign,
        .start_wall_ms = methods->start_wall_ms,
        .config_loaded_ms = methods->config.loaded_ms,
        .config_refused = methods->config.refused,
        .draining = methods->draining,
        .nodes = methods->nodes,
        .planned_bytes = runner ? pb_runner_planned_bytes(runner) : 0,
        .troubles = methods->troubles,
    };
    const struct pb_config *config = methods->intake->config;
    for (size_t i = 0; i < config->n_pipelines; i++)
        pb_metrics_know(methods->metrics, config->pipelines[i].name);
    return with_streams(methods, pb_metrics_print(methods->metrics, &gauges));
}

void pb_methods_publish(struct pb_methods *methods)
{
    pb_store_counts(methods->intake->store, methods->counts);
    pb_facts_set(methods->facts, info_text(methods, methods->counts),
                 metrics_text(methods, methods->counts));
}

static void answer(struct pb_methods *methods, uint64_t ticket, int rc, struct pb_outcome *outcome)
{
    if (rc != 0 && outcome->err.code == PB_OK)
        (void)pb_fail(&outcome->err, PB_E_SYSTEM, "%s", strerror(-rc));
    if (methods->status == NULL) {
        pb_job_fini(&outcome->job);
        return;
    }
    pb_methods_publish(methods); /* the counts are up to date before the answer is sent */
    pb_status_answer(methods->status, ticket, outcome);
}

/* Job that is being stored. */
struct submit {
    uv_work_t work;
    struct pb_methods *methods;
    uint64_t ticket;
    int rc;
    struct pb_outcome outcome;
};

static void store_submitted(uv_work_t *request)
{
    struct submit *submit = request->data;
    submit->rc =
        pb_intake_store(submit->methods->intake, &submit->outcome.job, &submit->outcome.err);
}

static void on_submitted(uv_work_t *request, int status)
{
    struct submit *submit = request->data;
    struct pb_methods *methods = submit->methods;
    struct pb_job *job = &submit->outcome.job;
    (void)status;
    if (submit->rc == 0) {
        pb_metrics_count(methods->metrics, job);
        pb_log(PB_LOG_NOTICE, "job %s: %s submitted for %s by user %lld", job->id,
               job->manifest.input, job->pipeline, (long long)job->uid);
        if (methods->status != NULL)
            pb_status_tell(methods->status, job);
    } else {
        pb_job_fini(job);
    }
    answer(methods, submit->ticket, submit->rc, &submit->outcome);
    free(submit);
    if (methods->runner != NULL)
        pb_runner_kick(methods->runner);
}

static int submit(struct pb_methods *methods, const struct pb_task *task, struct pb_err *err)
{
    struct submit *submit = calloc(1, sizeof *submit);
    if (submit == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc =
        pb_intake_describe_submitted(methods->intake, task->input, task->is_folder, task->pipeline,
                                     task->uid, task->identity, err, &submit->outcome.job);
    if (rc != 0) {
        free(submit);
        return rc;
    }
    submit->outcome.job.priority = task->priority;
    submit->methods = methods;
    submit->ticket = task->ticket;
    submit->work.data = submit;
    (void)uv_queue_work(methods->loop, &submit->work, store_submitted, on_submitted);
    return 0;
}

/* Acknowledgement of a subscriber that is being stored. */
struct ack {
    uv_work_t work;
    struct pb_methods *methods;
    uint64_t ticket;
    char *target;
    int64_t seq;
    bool given_up;
    int rc;
    struct pb_outcome outcome;
};

static void store_ack(uv_work_t *request)
{
    struct ack *ack = request->data;
    ack->rc = pb_subscribers_ack(ack->methods->intake->store, ack->target, ack->seq, ack->given_up,
                                 &ack->outcome.err);
}

static void on_acked(uv_work_t *request, int status)
{
    struct ack *ack = request->data;
    (void)status;
    answer(ack->methods, ack->ticket, ack->rc, &ack->outcome);
    free(ack->target);
    free(ack);
}

static int acknowledge(struct pb_methods *methods, const struct pb_task *task, struct pb_err *err)
{
    struct ack *ack = calloc(1, sizeof *ack);
    if (ack == NULL || pb_job_set(&ack->target, task->target) != 0) {
        free(ack);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    ack->methods = methods;
    ack->ticket = task->ticket;
    ack->seq = task->seq;
    ack->given_up = task->given_up;
    ack->work.data = ack;
    (void)uv_queue_work(methods->loop, &ack->work, store_ack, on_acked);
    return 0;
}

/* Job that is being read for an answer. */
struct reading {
    uv_work_t work;
    struct pb_methods *methods;
    uint64_t ticket;
    char id[PB_JOB_ID_BYTES];
    int rc;
    struct pb_outcome outcome;
};

static void read_job(uv_work_t *request)
{
    struct reading *reading = request->data;
    reading->rc = pb_job_store_find(reading->methods->reader, reading->id, &reading->outcome.err,
                                    &reading->outcome.job);
}

static void on_read(uv_work_t *request, int status)
{
    struct reading *reading = request->data;
    (void)status;
    answer(reading->methods, reading->ticket, reading->rc, &reading->outcome);
    free(reading);
}

void pb_methods_answer(struct pb_methods *methods, uint64_t ticket, const char *id, int rc,
                       const struct pb_err *err)
{
    struct pb_outcome outcome = {0};
    const struct pb_job *live = rc == 0 ? pb_runner_find(methods->runner, id) : NULL;
    struct reading *reading = rc == 0 && live == NULL ? calloc(1, sizeof *reading) : NULL;
    if (reading != NULL) { /* the state after the change */
        reading->methods = methods;
        reading->ticket = ticket;
        (void)snprintf(reading->id, sizeof reading->id, "%s", id);
        reading->work.data = reading;
        (void)uv_queue_work(methods->loop, &reading->work, read_job, on_read);
        return;
    }
    if (rc != 0 && err != NULL)
        outcome.err = *err;
    if (rc == 0 && (live == NULL || pb_job_copy(&outcome.job, live) != 0))
        rc = pb_fail(&outcome.err, PB_E_MEMORY, "out of memory");
    answer(methods, ticket, rc, &outcome);
}

static void ask(struct pb_methods *methods, const struct pb_task *task)
{
    const struct pb_job_request request = {
        .kind = task->method == PB_METHOD_JOB_CANCEL  ? PB_REQUEST_CANCEL
                : task->method == PB_METHOD_JOB_DROP  ? PB_REQUEST_DROP
                : task->method == PB_METHOD_JOB_AGAIN ? PB_REQUEST_AGAIN
                                                      : PB_REQUEST_RETRY,
        .ticket = task->ticket,
        .id = task->job,
        .identity = task->identity,
        .priority = task->priority,
        .dry_run = task->dry_run};
    pb_runner_ask(methods->runner, &request);
}

/* Begins or ends a drain. It ends with the process as well. */
static void drain(struct pb_methods *methods, const struct pb_task *task)
{
    struct pb_outcome outcome = {0};
    const bool before = methods->draining;
    methods->draining = !task->off;
    atomic_store(&methods->intake->drains, methods->draining);
    pb_runner_drain(methods->runner, methods->draining, task->now);
    if (before && task->off)
        pb_feed_look(methods->feed);
    if (before != methods->draining || task->now)
        pb_log(PB_LOG_NOTICE, "drain: user %lld: %s", (long long)task->uid,
               task->off   ? "jobs and files are taken again"
               : task->now ? "no job and no file is taken, and running jobs are put back"
                           : "no job and no file is taken until it ends");
    answer(methods, task->ticket, 0, &outcome);
}

void pb_methods_run(void *user, const struct pb_task *task)
{
    struct pb_methods *methods = user;
    struct pb_outcome outcome = {0};
    int rc = 0;
    const bool makes = task->method == PB_METHOD_JOB_SUBMIT || task->method == PB_METHOD_JOB_AGAIN;
    if (methods->runner == NULL)
        rc = pb_fail(&outcome.err, PB_E_SERVICE_STATE, "the job store is not open");
    else if (makes && methods->stopping)
        rc = pb_fail(&outcome.err, PB_E_SERVICE_STATE, "the service is stopping; try again later");
    else if (makes && methods->draining)
        rc = pb_fail(&outcome.err, PB_E_SERVICE_STATE,
                     "the service drains and takes no job; 'pushbroom drain --off' ends that");
    else if (task->method == PB_METHOD_SERVICE_DRAIN)
        drain(methods, task);
    else if (task->method == PB_METHOD_JOB_SUBMIT)
        rc = submit(methods, task, &outcome.err);
    else if (task->method == PB_METHOD_EVENT_ACK)
        rc = acknowledge(methods, task, &outcome.err);
    else
        ask(methods, task);
    if (rc != 0)
        answer(methods, task->ticket, rc, &outcome);
}

void pb_methods_summary(struct pb_methods *methods, char *out, size_t bytes)
{
    const int64_t *counts = methods->counts;
    pb_store_counts(methods->intake->store, methods->counts);
    pb_troubles_summary(methods->troubles, out, bytes);
    size_t n = strlen(out);
    (void)snprintf(out + n, bytes - n,
                   "%s%" PRId64 " running, %" PRId64 " waiting, %" PRId64 " failed",
                   methods->draining ? "draining; " : "", counts[PB_JOB_RUNNING],
                   counts[PB_JOB_ACCEPTED], counts[PB_JOB_FAILED]);
}
