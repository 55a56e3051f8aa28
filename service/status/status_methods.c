/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_methods.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/jobs/nodes.h"
#include "service/status/status_methods_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINTED_JOBS     16 /* jobs of a list that one step prints */
#define READS_OF_A_WATCH 4

static void reply_job(struct pb_call *call, const struct pb_job *job)
{
    pb_reply_begin(call->reply, call->request);
    pb_job_print(call->reply, "result", job);
    pb_reply_end(call->reply);
}

/* Prints the job with the age of its state. */
static int reply_old_job(struct pb_call *call, const struct pb_job *job, struct pb_err *err)
{
    char as_of[PB_CLOCK_TEXT_BYTES], *all = NULL;
    const int64_t age_s = pb_status_age_s(call->reading, as_of);
    struct pb_json *json = pb_json_create(false);
    pb_job_print(json, NULL, job);
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    const bool made = text != NULL && bytes > 0 &&
                      asprintf(&all, "%.*s,\"as_of\":\"%s\",\"age_s\":%" PRId64 "}", (int)bytes - 1,
                               text, as_of, age_s) >= 0;
    pb_json_destroy(json);
    if (!made)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_reply_begin(call->reply, call->request);
    pb_json_raw(call->reply, "result", all);
    pb_reply_end(call->reply);
    free(all);
    return 0;
}

static int get(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    const struct pb_reading *const reading = call->reading;
    const struct pb_job *live = reading->rc != 0 && reading->err.code == PB_E_SERVICE_STATE
                                    ? pb_overlay_find(&methods->overlay, call->request->job)
                                    : NULL;
    if (reading->rc != 0 && live == NULL) {
        *err = reading->err;
        return reading->rc;
    }
    if (live == NULL)
        live = pb_overlay_find(&methods->overlay, reading->job.id);
    if (live == NULL && reading->as_of_ms != 0)
        return reply_old_job(call, &reading->job, err);
    reply_job(call, live != NULL ? live : &reading->job);
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
static void print_watch(struct pb_call *call)
{
    const struct pb_reading *const reading = call->reading;
    const int64_t since = call->request->seq, last = reading->last;
    const bool known = last >= 0;
    /* The client may have events that the picture lacks. */
    const bool is_above = since > last && reading->as_of_ms == 0;
    const bool gone =
        since >= 0 && (!known || since < reading->first - 1 || is_above || reading->is_lost);
    call->since = since < 0 ? -1 : gone ? last : since;
    pb_json_bool(call->reply, "watching", true);
    if (known)
        pb_json_int(call->reply, "seq", call->since < 0 ? last : call->since);
    else
        pb_json_null(call->reply, "seq");
    if (since >= 0)
        pb_json_bool(call->reply, "gone", gone);
}

struct pb_job_query pb_status_query(const struct pb_request *request)
{
    if (request->method == PB_METHOD_JOB_WATCH)
        return (struct pb_job_query){.status_mask =
                                         PB_JOB_MASK(PB_JOB_ACCEPTED) | PB_JOB_MASK(PB_JOB_RUNNING),
                                     .before_seq = INT64_MAX,
                                     .limit = PB_STATUS_LIST_MAX};
    return (struct pb_job_query){.status_mask = request->status_mask,
                                 .before_seq = INT64_MAX,
                                 .limit = request->limit,
                                 .since_ms = request->since_ms,
                                 .pipeline = request->pipeline};
}

/* Returns true if the answer may lack a state whose event the client got meanwhile. After some
 * tries it is taken as it is: the client gets these events before the list. */
static bool is_older(const struct pb_status_methods *methods, const struct pb_call *call)
{
    return call->reading->as_of_ms == 0 && call->reads < READS_OF_A_WATCH &&
           call->reading->version != methods->overlay.version;
}

static enum pb_served read_again(struct pb_status_methods *methods, struct pb_call *call,
                                 struct pb_err *err)
{
    const int rc = pb_status_read_again(methods, call, err);
    return rc > 0 ? PB_SERVED_READ : rc == 0 ? PB_SERVED_PART : PB_SERVED;
}

/* Makes the list and begins the reply. Returns 1 if the store must be read again. */
static int begin_list(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    const struct pb_request *const request = call->request;
    struct pb_reading *const reading = call->reading;
    const bool is_watch = request->method == PB_METHOD_JOB_WATCH;
    struct pb_job_query query = pb_status_query(request);
    if (reading->rc != 0) {
        *err = reading->err;
        return reading->rc;
    }
    if (is_watch && is_older(methods, call))
        return 1;
    query.before_seq = reading->query.before_seq;
    int rc =
        pb_overlay_list(&methods->overlay, &query, &reading->jobs,
                        reading->as_of_ms == 0 ? reading->query.limit : INT64_MAX, &call->listing);
    if (rc == -EAGAIN)
        return 1;
    if (rc != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    pb_reply_begin(call->reply, request);
    pb_json_object(call->reply, "result");
    if (is_watch)
        print_watch(call);
    pb_json_array(call->reply, "jobs");
    return 0;
}

static enum pb_served list(struct pb_status_methods *methods, struct pb_call *call,
                           struct pb_err *err)
{
    char as_of[PB_CLOCK_TEXT_BYTES];
    int rc = call->listing == NULL ? begin_list(methods, call, err) : 0;
    if (rc != 0)
        return rc > 0 ? read_again(methods, call, err) : PB_SERVED;
    if (print_jobs(call) > 0)
        return PB_SERVED_PART;
    pb_json_end(call->reply);
    const int64_t age_s = pb_status_age_s(call->reading, as_of);
    if (age_s >= 0) {
        pb_json_string(call->reply, "as_of", as_of);
        pb_json_int(call->reply, "age_s", age_s);
        if (call->reading->is_incomplete && (int64_t)call->listing->n < call->request->limit)
            pb_json_bool(call->reply, "incomplete", true);
    }
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    return PB_SERVED;
}

static void reply_watched_job(const struct pb_status_methods *methods, struct pb_call *call)
{
    const struct pb_job *const stored = &call->reading->job;
    const struct pb_job *live = pb_overlay_find(&methods->overlay, stored->id);
    (void)snprintf(call->watch, sizeof call->watch, "%s", stored->id);
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    print_watch(call);
    pb_json_array(call->reply, "jobs");
    pb_job_print(call->reply, NULL, live != NULL ? live : stored);
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
}

static enum pb_served watch(struct pb_status_methods *methods, struct pb_call *call,
                            struct pb_err *err)
{
    const struct pb_reading *const reading = call->reading;
    if (!call->may_watch) {
        (void)pb_fail(err, PB_E_SERVICE_BUSY,
                      "too many clients watch: %d of one user and %d in all may",
                      PB_STATUS_USER_WATCHERS_MAX, PB_STATUS_WATCHERS_MAX);
        return PB_SERVED;
    }
    if (call->request->job == NULL) {
        call->watches = true;
        return list(methods, call, err);
    }
    if (reading->rc != 0) {
        *err = reading->err;
        return PB_SERVED;
    }
    if (is_older(methods, call))
        return read_again(methods, call, err);
    call->watches = true;
    reply_watched_job(methods, call);
    return PB_SERVED;
}

/* --- the service itself --- */

static int info(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    char *said = pb_facts_info(methods->facts), *notify = pb_status_notify_info(call->reading);
    char *text = NULL, as_of[PB_CLOCK_TEXT_BYTES], age[PB_CLOCK_TEXT_BYTES + 64] = "";
    const int64_t age_s = pb_status_age_s(call->reading, as_of);
    if (age_s >= 0)
        (void)snprintf(age, sizeof age, "\"as_of\":\"%s\",\"age_s\":%" PRId64 ",", as_of, age_s);
    bool made =
        said != NULL && notify != NULL &&
        asprintf(&text, "{\"uptime_s\":%" PRId64 ",\"clients\":%" PRId64 ",%s\"notify\":%s,%s",
                 (pb_clock_wall_ms() - methods->start_wall_ms) / 1000, call->clients, age, notify,
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
    char *said = pb_facts_metrics(methods->facts),
         *notify = pb_status_notify_metrics(call->reading);
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
    const int waits = call->listing == NULL ? pb_status_read(methods, call, err) : 0;
    if (waits != 0) {
        /* No event is missed between the reading and the reply. */
        if (call->request->method == PB_METHOD_JOB_WATCH && call->request->job == NULL &&
            call->may_watch)
            call->watches = true;
        *out_served = PB_SERVED_READ;
        return waits < 0 ? waits : 0;
    }
    switch (call->request->method) {
    case PB_METHOD_JOB_LIST:
        *out_served = list(methods, call, err);
        break;
    case PB_METHOD_JOB_WATCH:
        *out_served = call->listing != NULL ? list(methods, call, err) : watch(methods, call, err);
        break;
    case PB_METHOD_JOB_GET:
        return get(methods, call, err);
    case PB_METHOD_JOB_EVENTS:
        return pb_status_job_events(call, err);
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
    return err->code != PB_OK ? -1 : 0;
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
    pb_status_take_answers(user);
}

static void on_event(void *user, const struct pb_job *job, bool held)
{
    struct pb_status_methods *methods = user;
    pb_overlay_put(&methods->overlay, pb_store_node(methods->store), job, held);
    pb_status_check(methods, false);
}

static void on_beat(void *user)
{
    struct pb_status_methods *methods = user;
    pb_status_check(methods, true);
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
    methods->store = store;
    methods->facts = facts;
    methods->tasks = tasks;
    methods->checker = checker;
    STAILQ_INIT(&methods->held);
    methods->start_wall_ms = start_wall_ms;
    int rc = pb_status_reader_create(store, err, &methods->reader);
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
    pb_status_reader_destroy(methods->reader);
    pb_reading_destroy(methods->picture);
    pb_overlay_fini(&methods->overlay);
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
    if (status != NULL && pb_status_poll(status, pb_status_reader_fd(methods->reader)) != 0)
        pb_log(PB_LOG_ERROR, "status: cannot watch for answers of the job store");
}
