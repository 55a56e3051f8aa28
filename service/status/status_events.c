/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Events: lists and acknowledgements for their subscribers, those of one job, and rows of the
 * journal for watchers. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/jobs/journal.h"
#include "service/runner/metrics.h"
#include "service/status/status_methods_parts.h"

#include <stdio.h>
#include <string.h>

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

/* Returns 0 and the array of events that was read. */
static int take_events(const struct pb_reading *reading, struct pb_err *err,
                       const char **out_events)
{
    if (reading->rc != 0) {
        *err = reading->err;
        return reading->rc;
    }
    *out_events = pb_json_text(reading->json, NULL);
    return *out_events != NULL ? 0
                               : pb_fail(err, PB_E_MEMORY, "out of memory for a list of events");
}

int pb_status_list_events(const struct pb_status_methods *methods, struct pb_call *call,
                          struct pb_err *err)
{
    const char *events;
    int rc = may_deliver(methods, call, err);
    rc = rc ? rc : take_events(call->reading, err, &events);
    if (rc != 0)
        return rc;
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_string(call->reply, "target", call->request->target);
    pb_json_raw(call->reply, "events", events);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    return 0;
}

/* --- the events of one job --- */

int pb_status_job_events(struct pb_call *call, struct pb_err *err)
{
    const char *events;
    const int rc = take_events(call->reading, err, &events);
    if (rc != 0)
        return rc;
    pb_reply_begin(call->reply, call->request);
    pb_json_object(call->reply, "result");
    pb_json_raw(call->reply, "events", events);
    pb_json_array(call->reply, "log");
    pb_log_lines(call->reading->job.id, pb_journal_print_line, call->reply);
    pb_json_end(call->reply);
    pb_json_end(call->reply);
    pb_reply_end(call->reply);
    return 0;
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

char *pb_status_notify_info(const struct pb_reading *reading)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (int i = 0; i < reading->n_states; i++)
        print_state(json, &reading->states[i]);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

char *pb_status_notify_metrics(const struct pb_reading *reading)
{
    return pb_metrics_print_subscribers(reading->states, reading->n_states);
}

/* --- rows of the journal --- */

static uint64_t journal_mark(void *user)
{
    const struct pb_status_methods *methods = user;
    return pb_store_changes(methods->store) + 1;
}

void pb_status_journal_options(struct pb_status_options *options)
{
    options->journal_mark = journal_mark;
    options->read_rows = pb_status_read_rows;
    options->forget = pb_status_forget;
}
