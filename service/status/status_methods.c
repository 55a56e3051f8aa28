/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_methods.h"

#include "config/base/clock.h"
#include "service/jobs/journal.h"
#include "service/status/status_methods_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINTED_JOBS 16 /* jobs of a list that one step prints */

static const struct pb_job *as_it_is(const struct pb_status_methods *methods,
                                     const struct pb_job *stored)
{
    const struct pb_job *live = pb_overlay_find(&methods->overlay, stored->id);
    return live ? live : stored;
}

static void reply_job(struct pb_call *call, const struct pb_job *job)
{
    pb_reply_begin(call->reply, call->request);
    pb_job_print(call->reply, "result", job);
    pb_reply_end(call->reply);
}

int pb_status_find(struct pb_status_methods *methods, const char *id, struct pb_err *err,
                   struct pb_job *out_job)
{
    int rc = pb_job_store_find(methods->store, id, err, out_job);
    const struct pb_job *live =
        rc != 0 && err->code == PB_E_SERVICE_STATE ? pb_overlay_find(&methods->overlay, id) : NULL;
    if (live == NULL)
        return rc;
    *err = (struct pb_err){0};
    return pb_job_copy(out_job, live) == 0 ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int get(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    struct pb_job job;
    int rc = pb_status_find(methods, call->request->job, err, &job);
    if (rc != 0)
        return rc;
    reply_job(call, as_it_is(methods, &job));
    pb_job_fini(&job);
    return 0;
}

/* --- lists: read in one step, printed in several --- */

/* Prints a part of the list. Returns 1 if more jobs follow. */
static int print_jobs(struct pb_call *call)
{
    struct pb_job_listing *const listing = call->listing;
    for (int i = 0; i < PRINTED_JOBS && listing->printed < listing->n; i++) {
        struct pb_job *const job = &listing->jobs[listing->printed++];
        if (call->request->brief)
            pb_job_print_brief(call->reply, NULL, job);
        else
            pb_job_print(call->reply, NULL, job);
        pb_job_fini(job);
        pb_job_init(job);
    }
    return listing->printed < listing->n;
}

/* Prints the number after which the client receives changes. It is read before the jobs, so that
 * changes between the two are in both. */
static void print_watch(const struct pb_status_methods *methods, struct pb_call *call)
{
    const int64_t since = call->request->seq;
    int64_t first = 0, last = -1;
    bool known = pb_journal_range(methods->store, &first, &last, NULL) == 0;
    bool gone = since >= 0 && (!known || since < first - 1 || since > last);
    call->since = since < 0 ? -1 : gone ? last : since;
    pb_json_bool(call->reply, "watching", true);
    if (known)
        pb_json_int(call->reply, "seq", call->since < 0 ? last : call->since);
    else
        pb_json_null(call->reply, "seq");
    if (since >= 0)
        pb_json_bool(call->reply, "gone", gone);
}

/* Finds the number of the job before which a list ends. */
static int find_before(const struct pb_status_methods *methods, const struct pb_call *call,
                       struct pb_err *err, int64_t *out_seq)
{
    struct pb_job job;
    *out_seq = INT64_MAX;
    if (call->request->before == NULL)
        return 0;
    int rc = pb_job_store_find(methods->store, call->request->before, err, &job);
    if (rc != 0)
        return rc;
    *out_seq = job.seq;
    pb_job_fini(&job);
    return 0;
}

static int begin_list(const struct pb_status_methods *methods, struct pb_call *call,
                      struct pb_err *err)
{
    const struct pb_request *const request = call->request;
    const bool watch = request->method == PB_METHOD_JOB_WATCH;
    struct pb_job_query query = {.status_mask =
                                     PB_JOB_MASK(PB_JOB_ACCEPTED) | PB_JOB_MASK(PB_JOB_RUNNING),
                                 .limit = PB_STATUS_LIST_MAX};
    if (!watch)
        query = (struct pb_job_query){.status_mask = request->status_mask,
                                      .limit = request->limit,
                                      .since_ms = request->since_ms,
                                      .pipeline = request->pipeline};
    int rc = find_before(methods, call, err, &query.before_seq);
    if (rc != 0)
        return rc;
    pb_reply_begin(call->reply, request);
    pb_json_object(call->reply, "result");
    if (watch)
        print_watch(methods, call);
    pb_json_array(call->reply, "jobs");
    return pb_overlay_list(&methods->overlay, methods->store, &query, err, &call->listing);
}

static int list(const struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    int rc = call->listing == NULL ? begin_list(methods, call, err) : 0;
    rc = rc ? rc : print_jobs(call);
    if (rc != 0)
        return rc;
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    return 0;
}

static int watch(const struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    struct pb_job job;
    if (!call->may_watch)
        return pb_fail(err, PB_E_SERVICE_BUSY,
                       "too many clients watch: %d of one user and %d in all may",
                       PB_STATUS_USER_WATCHERS_MAX, PB_STATUS_WATCHERS_MAX);
    call->watches = true;
    if (call->request->job == NULL)
        return list(methods, call, err);
    int rc = pb_job_store_find(methods->store, call->request->job, err, &job);
    call->watches = rc == 0;
    if (rc != 0)
        return rc;
    (void)snprintf(call->watch, sizeof call->watch, "%s", job.id);
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    print_watch(methods, call);
    pb_json_array(call->reply, "jobs");
    pb_job_print(call->reply, NULL, as_it_is(methods, &job));
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    pb_job_fini(&job);
    return 0;
}

/* --- the service itself --- */

static int info(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    char *said = pb_facts_info(methods->facts), *notify = pb_status_notify_info(methods);
    char *text = NULL;
    bool made =
        said != NULL && notify != NULL &&
        asprintf(&text, "{\"uptime_s\":%" PRId64 ",\"clients\":%" PRId64 ",\"notify\":%s,%s",
                 (pb_clock_wall_ms() - methods->start_wall_ms) / 1000, call->clients, notify,
                 said + 1) >= 0;
    free(said);
    free(notify);
    if (!made)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_reply_begin(call->reply, call->request);
    pb_json_raw(call->reply, "result", text);
    pb_reply_end(call->reply);
    free(text);
    return 0;
}

static int metrics(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    char *said = pb_facts_metrics(methods->facts), *notify = pb_status_notify_metrics(methods);
    char *text = NULL;
    bool made = said != NULL && notify != NULL &&
                asprintf(&text,
                         "%s%s# HELP pushbroom_clients Connections to the status socket.\n"
                         "# TYPE pushbroom_clients gauge\npushbroom_clients %" PRId64 "\n",
                         said, notify, call->clients) >= 0;
    free(said);
    free(notify);
    if (!made)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_string(call->reply, "text", text);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    free(text);
    return 0;
}

static int serve(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err,
                 enum pb_served *out_served)
{
    int rc = 0;
    switch (call->request->method) {
    case PB_METHOD_JOB_LIST:
        rc = list(methods, call, err);
        break;
    case PB_METHOD_JOB_WATCH:
        rc = call->listing != NULL ? list(methods, call, err) : watch(methods, call, err);
        break;
    case PB_METHOD_JOB_GET:
        return get(methods, call, err);
    case PB_METHOD_JOB_EVENTS:
        return pb_status_job_events(methods, call, err);
    case PB_METHOD_JOB_SUBMIT:
        *out_served = PB_SERVED_LATER;
        return pb_status_submit(methods, call, err);
    case PB_METHOD_JOB_CANCEL:
    case PB_METHOD_JOB_RETRY:
    case PB_METHOD_JOB_DROP:
    case PB_METHOD_JOB_AGAIN:
        *out_served = PB_SERVED_LATER;
        return pb_status_change(methods, call, err);
    case PB_METHOD_EVENT_LIST:
        return pb_status_list_events(methods, call, err);
    case PB_METHOD_EVENT_ACK:
        *out_served = PB_SERVED_LATER;
        return pb_status_ack(methods, call, err);
    case PB_METHOD_SERVICE_INFO:
        return info(methods, call, err);
    case PB_METHOD_SERVICE_DRAIN:
        *out_served = PB_SERVED_LATER;
        return pb_status_drain(methods, call, err);
    case PB_METHOD_SERVICE_METRICS:
        return metrics(methods, call, err);
    case PB_METHOD_RPC_DISCOVER:
        pb_reply_begin(call->reply, call->request);
        pb_methods_print(call->reply, "result");
        pb_reply_end(call->reply);
        return 0;
    case PB_METHOD_COUNT:
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "no such method");
    }
    *out_served = rc > 0 ? PB_SERVED_PART : PB_SERVED;
    return rc < 0 ? rc : 0;
}

/* Writes an error, which replaces the text written so far. */
static void fail(struct pb_call *call, const struct pb_err *err)
{
    pb_json_destroy(call->reply);
    call->reply = pb_json_create(false);
    pb_reply_error(call->reply, call->request, err);
}

static enum pb_served on_serve(void *user, struct pb_call *call)
{
    struct pb_err err = {0};
    enum pb_served served = PB_SERVED;
    if (serve(user, call, &err, &served) == 0)
        return served;
    fail(call, &err);
    return PB_SERVED;
}

static void on_finish(void *user, struct pb_call *call, const struct pb_outcome *outcome)
{
    struct pb_err err = {0};
    if (outcome->err.code != PB_OK)
        fail(call, &outcome->err);
    else if (call->request->method == PB_METHOD_SERVICE_DRAIN && info(user, call, &err) != 0)
        fail(call, &err);
    else if (call->request->method == PB_METHOD_SERVICE_DRAIN)
        return;
    else if (call->request->method == PB_METHOD_EVENT_ACK)
        pb_status_reply_ack(call);
    else
        reply_job(call, &outcome->job);
}

static void on_extra(void *user)
{
    pb_status_read_checks(user);
}

static void on_event(void *user, const struct pb_job *job, bool held)
{
    struct pb_status_methods *methods = user;
    pb_overlay_put(&methods->overlay, methods->store, job, held);
}

static void on_beat(void *user)
{
    struct pb_status_methods *methods = user;
    pb_overlay_sweep(&methods->overlay, methods->store);
    pb_status_watch_checks(methods);
}

static bool is_privileged(void *user, const struct pb_peer *peer)
{
    const struct pb_status_methods *methods = user;
    return pb_facts_is_privileged(methods->facts, peer);
}

int pb_status_methods_create(const struct pb_job_store *store, struct pb_facts *facts,
                             struct pb_tasks *tasks, struct pb_checker *checker,
                             int64_t start_wall_ms, struct pb_err *err,
                             struct pb_status_methods **out_methods)
{
    struct pb_status_methods *methods = calloc(1, sizeof *methods);
    if (methods == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    methods->writer = store;
    methods->facts = facts;
    methods->tasks = tasks;
    methods->checker = checker;
    STAILQ_INIT(&methods->held);
    methods->start_wall_ms = start_wall_ms;
    int rc = pb_job_store_create_reader(store, err, &methods->store);
    if (rc == 0)
        *out_methods = methods;
    else
        free(methods);
    return rc;
}

void pb_status_methods_destroy(struct pb_status_methods *methods)
{
    if (methods == NULL)
        return;
    struct pb_task *task;
    while ((task = STAILQ_FIRST(&methods->held)) != NULL)
        pb_tasks_drop(pb_tasks_release(&methods->held, task->ticket));
    pb_overlay_fini(&methods->overlay);
    pb_job_store_close(methods->store);
    free(methods);
}

void pb_status_methods_options(struct pb_status_methods *methods, struct pb_status_options *options)
{
    options->serve = on_serve;
    options->finish = on_finish;
    options->on_event = on_event;
    options->on_beat = on_beat;
    options->is_privileged = is_privileged;
    pb_status_journal_options(options);
    options->user = methods;
    options->extra_fd = methods->checker->fd;
    options->on_extra = on_extra;
}

void pb_status_methods_set_status(struct pb_status_methods *methods, struct pb_status *status)
{
    methods->status = status;
}
