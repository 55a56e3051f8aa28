/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Events: lists and acknowledgements for their subscribers, those of one job, and rows of the
 * journal for watchers. */
#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "service/jobs/journal.h"
#include "service/runner/metrics.h"
#include "service/status/status_methods_parts.h"

#include <stdio.h>
#include <string.h>

#define EVENT_BYTES_MAX (4 << 20)

static void print_event(void *user, const struct pb_event *event)
{
    pb_event_write(user, NULL, event);
}

static int may_deliver(const struct pb_status_methods *methods, const struct pb_call *call,
                       struct pb_err *err)
{
    return pb_facts_may_deliver(methods->facts, &call->peer)
               ? 0
               : pb_fail(err, PB_E_SERVICE_DENIED,
                         "user %lld may not take events; service.notify_user and service.admins "
                         "may",
                         (long long)call->peer.uid);
}

int pb_status_list_events(const struct pb_status_methods *methods, struct pb_call *call,
                          struct pb_err *err)
{
    int rc = may_deliver(methods, call, err);
    if (rc != 0)
        return rc;
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_string(call->reply, "target", call->request->target);
    pb_json_array(call->reply, "events");
    rc = pb_subscribers_next(methods->store, call->request->target, (int)call->request->limit,
                             print_event, call->reply, err);
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    return rc < 0 ? rc : 0;
}

/* --- the events of one job --- */

/* Writes members of an object of JSON; null if absent. */
static void copy_members(struct pb_json *json, const struct pb_json_value *from,
                         const char *const *members)
{
    for (; *members != NULL; members++) {
        const struct pb_json_value *value = pb_json_get(from, *members, NULL);
        const char *source = value ? pb_json_source(value) : NULL;
        pb_json_raw(json, *members, source ? source : "null");
    }
}

/* Prints an event without the state of its job, which is long and repeats itself. */
static void print_step(void *user, const struct pb_event *event)
{
    static const char *const of_job[] = {"attempts", "node", "device", "error", NULL},
                             *const of_product[] = {"type", "path", "bytes", NULL};
    struct pb_json *json = user;
    struct pb_json_value *data = NULL;
    char when[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(event->time_ms, when);
    (void)pb_json_parse(event->data, strlen(event->data), EVENT_BYTES_MAX, &data);
    const struct pb_json_value *product = pb_json_get(data, "product", NULL);
    pb_json_object(json, NULL);
    pb_json_int(json, "seq", event->seq);
    pb_json_string(json, "event", event->kind);
    pb_json_string(json, "time", when);
    copy_members(json, pb_json_get(data, "job", NULL), of_job);
    if (product != NULL) {
        pb_json_object(json, "product");
        copy_members(json, product, of_product);
        pb_json_end(json);
    } else {
        pb_json_null(json, "product");
    }
    pb_json_end(json);
    pb_json_release(data);
}

int pb_status_job_events(struct pb_status_methods *methods, struct pb_call *call,
                         struct pb_err *err)
{
    struct pb_job job;
    int64_t first = 0, last = 0, after = call->request->seq < 0 ? 0 : call->request->seq;
    int rc = pb_status_find(methods, call->request->job, err, &job);
    if (rc != 0)
        return rc;
    rc = pb_journal_range(methods->store, &first, &last, err);
    if (after < last - PB_JOURNAL_KEEP) /* more are there only while receivers do not get them */
        after = last - PB_JOURNAL_KEEP;
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_array(call->reply, "events");
    rc = rc ? rc
            : pb_journal_read(methods->store, after, job.id, (int)call->request->limit, print_step,
                              call->reply, err);
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    pb_job_fini(&job);
    return rc < 0 ? rc : 0;
}

int pb_status_ack(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    int rc = may_deliver(methods, call, err);
    return rc ? rc : pb_status_push_ack(methods, call, err);
}

void pb_status_reply_ack(struct pb_call *call)
{
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_string(call->reply, "target", call->request->target);
    pb_json_int(call->reply, "seq", call->request->seq);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
}

/* --- waiting events --- */

static int read_states(const struct pb_status_methods *methods,
                       struct pb_subscriber_state out[PB_SUBSCRIBERS_MAX])
{
    struct pb_err err = {0};
    int n = pb_subscribers_states(methods->store, out, &err);
    return n < 0 ? 0 : n;
}

static void print_state(struct pb_json *json, const struct pb_subscriber_state *state)
{
    char oldest[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(state->oldest_ms, oldest);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", state->name);
    pb_json_int(json, "waiting", state->waiting);
    pb_json_string(json, "oldest", oldest[0] ? oldest : NULL);
    pb_json_int(json, "delivered", state->delivered);
    pb_json_int(json, "given_up", state->given_up);
    pb_json_int(json, "expired", state->expired);
    pb_json_end(json);
}

char *pb_status_notify_info(const struct pb_status_methods *methods)
{
    struct pb_subscriber_state states[PB_SUBSCRIBERS_MAX];
    int n = read_states(methods, states);
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (int i = 0; i < n; i++)
        print_state(json, &states[i]);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

char *pb_status_notify_metrics(const struct pb_status_methods *methods)
{
    struct pb_subscriber_state states[PB_SUBSCRIBERS_MAX];
    int n = read_states(methods, states);
    return pb_metrics_print_subscribers(states, n);
}

/* --- rows of the journal --- */

static uint64_t journal_mark(void *user)
{
    const struct pb_status_methods *methods = user;
    return pb_store_changes(methods->writer) + 1;
}

struct row {
    void (*send)(void *to, int64_t seq, struct pb_json *row);
    void *to;
};

static void send_row(void *user, const struct pb_event *event)
{
    struct row *row = user;
    struct pb_json *json = pb_json_create(false);
    pb_change_print(json, event);
    row->send(row->to, event->seq, json);
    pb_json_destroy(json);
}

static int replay(void *user, int64_t since, const char *job,
                  void (*send)(void *to, int64_t seq, struct pb_json *row), void *to)
{
    const struct pb_status_methods *methods = user;
    struct row row = {send, to};
    struct pb_err err = {0};
    return pb_journal_read(methods->store, since, job, PB_STATUS_REPLAY_ROWS, send_row, &row, &err);
}

void pb_status_journal_options(struct pb_status_options *options)
{
    options->journal_mark = journal_mark;
    options->replay = replay;
}
