/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/methods.h"

#include "service/clock.h"
#include "service/log.h"
#include "service/writers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_job(const struct pb_methods *methods, struct pb_json *json, const char *key,
                      const struct pb_job *stored)
{
    const struct pb_job *live = pb_runner_find(methods->runner, stored->id);
    pb_job_print(json, key, live ? live : stored);
}

struct listing {
    const struct pb_methods *methods;
    struct pb_json *json;
};

static int print_listed(void *user, struct pb_job *job)
{
    struct listing *listing = user;
    print_job(listing->methods, listing->json, NULL, job);
    return 0;
}

static int print_jobs(const struct pb_methods *methods, struct pb_json *json, unsigned mask,
                      int64_t limit, struct pb_err *err)
{
    struct listing listing = {methods, json};
    pb_json_array(json, "jobs");
    int rc = pb_job_store_list(methods->intake->store, mask, INT64_MAX, limit, print_listed,
                               &listing, err);
    pb_json_end(json);
    return rc;
}

/* The result is the job as it is now. */
static int reply_job(const struct pb_methods *methods, const struct pb_request *request,
                     struct pb_json *reply, const char *id, struct pb_err *err)
{
    struct pb_job job;
    int rc = pb_job_store_find(methods->intake->store, id, err, &job);
    if (rc != 0)
        return rc;
    pb_reply_begin(reply, request);
    print_job(methods, reply, "result", &job);
    pb_reply_end(reply);
    pb_job_fini(&job);
    return 0;
}

static int list(const struct pb_methods *methods, const struct pb_request *request,
                struct pb_json *reply, struct pb_err *err)
{
    pb_reply_begin(reply, request);
    pb_json_object(reply, "result");
    int rc = print_jobs(methods, reply, request->status_mask, request->limit, err);
    pb_json_end(reply);
    pb_reply_end(reply);
    return rc;
}

static int submit(const struct pb_methods *methods, const struct pb_request *request,
                  struct pb_json *reply, struct pb_err *err)
{
    struct pb_job job;
    if (methods->stopping)
        return pb_fail(err, PB_E_SERVICE_STATE, "the service is stopping; submit again later");
    int rc = pb_intake_submit(methods->intake, request->input, request->pipeline, err, &job);
    if (rc != 0)
        return rc;
    methods->metrics->jobs[PB_JOB_ACCEPTED]++;
    pb_log(PB_LOG_NOTICE, "job %s: %s submitted for %s", job.id, request->input, job.pipeline);
    pb_status_tell(methods->status, &job);
    pb_runner_kick(methods->runner);
    rc = reply_job(methods, request, reply, job.id, err);
    pb_job_fini(&job);
    return rc;
}

static int watch(const struct pb_methods *methods, const struct pb_request *request,
                 struct pb_json *reply, const char **out_watch, struct pb_err *err)
{
    static char id[PB_JOB_ID_BYTES]; /* outlives the call, as *out_watch must */
    struct pb_job job;
    int rc = 0;
    id[0] = '\0';
    if (request->job != NULL) {
        rc = pb_job_store_find(methods->intake->store, request->job, err, &job);
        if (rc != 0)
            return rc;
        (void)snprintf(id, sizeof id, "%s", job.id);
    }
    pb_reply_begin(reply, request);
    pb_json_object(reply, "result");
    pb_json_bool(reply, "watching", true);
    if (request->job != NULL) {
        pb_json_array(reply, "jobs");
        print_job(methods, reply, NULL, &job);
        pb_json_end(reply);
        pb_job_fini(&job);
    } else {
        rc = print_jobs(methods, reply, PB_JOB_MASK(PB_JOB_ACCEPTED) | PB_JOB_MASK(PB_JOB_RUNNING),
                        PB_STATUS_LIST_MAX, err);
    }
    pb_json_end(reply);
    pb_reply_end(reply);
    *out_watch = id;
    return rc;
}

static void print_paths(const struct pb_methods *methods, struct pb_json *json)
{
    const struct pb_dirs *dirs = methods->intake->dirs;
    pb_json_string(json, "inbox", dirs->inbox);
    pb_json_string(json, "work", dirs->work);
    pb_json_string(json, "archive", dirs->archive);
    pb_json_string(json, "quarantine", dirs->quarantine);
    pb_json_string(json, "products", dirs->products);
    pb_json_string(json, "state", dirs->state);
    pb_json_string(json, "socket", methods->socket);
}

static int info(const struct pb_methods *methods, const struct pb_request *request,
                struct pb_json *reply, struct pb_err *err)
{
    const struct pb_config *config = methods->intake->config;
    char started[PB_CLOCK_TEXT_BYTES];
    const char *why;
    int64_t counts[PB_JOB_STATUS_COUNT];
    int rc = pb_job_store_counts(methods->intake->store, counts, err);
    if (rc != 0)
        return rc;
    const char *device = pb_runner_device(methods->runner, &why);
    pb_clock_text(methods->start_wall_ms, started);
    pb_reply_begin(reply, request);
    pb_json_object(reply, "result");
    pb_json_string(reply, "version", PB_VERSION);
    pb_json_int(reply, "pid", getpid());
    pb_json_string(reply, "started", started);
    pb_json_int(reply, "uptime_s", (pb_clock_wall_ms() - methods->start_wall_ms) / 1000);
    pb_json_string(reply, "config", config->path);
    pb_json_string(reply, "device", device[0] ? device : NULL);
    pb_json_string(reply, "device_why", why[0] ? why : NULL);
    pb_json_int(reply, "parallel_jobs", config->service.parallel_jobs);
    pb_json_int(reply, "workers", pb_runner_workers(methods->runner));
    pb_json_int(reply, "clients", pb_status_clients(methods->status));
    pb_json_int(reply, "inbox_waiting", (int64_t)pb_watch_waiting(methods->watch));
    pb_json_string(reply, "inbox_writers", pb_writers_word(methods->intake->writers));
    pb_json_bool(reply, "stopping", methods->stopping);
    pb_troubles_print(methods->troubles, reply, "troubles");
    print_paths(methods, reply);
    pb_json_object(reply, "jobs");
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++)
        pb_json_int(reply, pb_job_status_name((enum pb_job_status)i), counts[i]);
    pb_json_end(reply);
    pb_json_array(reply, "pipelines");
    for (size_t i = 0; i < config->n_pipelines; i++)
        pb_json_string(reply, NULL, config->pipelines[i].name);
    pb_json_end(reply);
    pb_json_end(reply);
    pb_reply_end(reply);
    return 0;
}

static int metrics(const struct pb_methods *methods, const struct pb_request *request,
                   struct pb_json *reply, struct pb_err *err)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    int rc = pb_job_store_counts(methods->intake->store, counts, err);
    if (rc != 0)
        return rc;
    struct pb_metrics_gauges gauges = {
        .queue_depth = counts[PB_JOB_ACCEPTED],
        .running = pb_runner_busy(methods->runner),
        .workers = pb_runner_workers(methods->runner),
        .inbox_waiting = (int64_t)pb_watch_waiting(methods->watch),
        .clients = pb_status_clients(methods->status),
        .start_wall_ms = methods->start_wall_ms,
        .planned_bytes = pb_runner_planned_bytes(methods->runner),
        .troubles = methods->troubles,
    };
    char *text = pb_metrics_print(methods->metrics, &gauges);
    if (text == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_reply_begin(reply, request);
    pb_json_object(reply, "result");
    pb_json_string(reply, "text", text);
    pb_json_end(reply);
    pb_reply_end(reply);
    free(text);
    return 0;
}

/* reply is written by the method only when it returns 0, but for a listing that broke off. */
static int serve(const struct pb_methods *methods, const struct pb_request *request,
                 struct pb_json *reply, const char **out_watch, struct pb_err *err)
{
    int rc = 0;
    switch (request->method) {
    case PB_METHOD_JOB_LIST:
        return list(methods, request, reply, err);
    case PB_METHOD_JOB_GET:
        return reply_job(methods, request, reply, request->job, err);
    case PB_METHOD_JOB_SUBMIT:
        return submit(methods, request, reply, err);
    case PB_METHOD_JOB_CANCEL:
        rc = pb_runner_cancel(methods->runner, request->job, err);
        return rc ? rc : reply_job(methods, request, reply, request->job, err);
    case PB_METHOD_JOB_RETRY:
        rc = pb_runner_retry(methods->runner, request->job, err);
        return rc ? rc : reply_job(methods, request, reply, request->job, err);
    case PB_METHOD_JOB_WATCH:
        return watch(methods, request, reply, out_watch, err);
    case PB_METHOD_SERVICE_INFO:
        return info(methods, request, reply, err);
    case PB_METHOD_SERVICE_METRICS:
        return metrics(methods, request, reply, err);
    case PB_METHOD_COUNT:
        break;
    }
    return pb_fail(err, PB_E_SERVICE_PROTOCOL, "no such method");
}

void pb_methods_serve(void *user, const struct pb_request *request, struct pb_json *reply,
                      const char **out_watch)
{
    struct pb_err err = {0};
    if (serve(user, request, reply, out_watch, &err) != 0)
        pb_reply_error(reply, request, &err);
}

void pb_methods_summary(const struct pb_methods *methods, char *out, size_t bytes)
{
    int64_t counts[PB_JOB_STATUS_COUNT] = {0};
    (void)pb_job_store_counts(methods->intake->store, counts, NULL);
    pb_troubles_summary(methods->troubles, out, bytes);
    size_t n = strlen(out);
    (void)snprintf(out + n, bytes - n,
                   "%" PRId64 " running, %" PRId64 " waiting, %" PRId64 " failed",
                   counts[PB_JOB_RUNNING], counts[PB_JOB_ACCEPTED], counts[PB_JOB_FAILED]);
}
