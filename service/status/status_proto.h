/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_PROTO_H
#define PB_STATUS_PROTO_H
/* The protocol of the status socket: JSON-RPC 2.0, one object per line. Parses a line into a
 * struct, or into a fault that can be answered; writes replies. It knows neither sockets nor the
 * meaning of methods. Thread: any.
 *
 *   job.list     {status?: word or list of words, pipeline?, since_ms?, limit?: 1..1000,
 *                 fields?: brief, before?: id}                         -> {jobs: [job...]}
 *   job.get      {id}                                                   -> job
 *   job.events   {id, since?, limit?: 1..1000}                          -> {events: [event...],
 *                log: [line...]}
 *   job.submit   {input, pipeline?, priority?: -100..100, descriptor?}        -> job
 *   job.cancel   {id}      job.retry {id}      job.drop {id}            -> job
 *   job.again    {id, priority?: -100..100, dry_run?: bool}             -> the new job; of a dry
 *                run the job of that id
 *   job.watch    {id?, since?}   -> {watching: true, jobs: [job...], seq}, then notifications
 *                job.event {job}, and with since job.change {seq, id, event, time, data}
 *   event.list   {target, limit?: 1..1000}                              -> {target, events}
 *   event.ack    {target, seq, given_up?: bool}                         -> {target, seq}
 *   service.info                                                        -> object
 *   service.drain {now?: bool, off?: bool}                              -> that of service.info
 *   service.metrics                                                     -> {text: Prometheus}
 *   rpc.discover                                                        -> this list, as OpenRPC
 *
 * id is a job's id or an end of it that no other has. A list is the newest first; before: those
 * older than that job. A brief job has no report. */
#include "config/base/err.h"
#include "config/base/json_writer.h"
#include "service/jobs/job.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_json_value;

enum pb_method {
    PB_METHOD_JOB_LIST,
    PB_METHOD_JOB_GET,
    PB_METHOD_JOB_EVENTS,
    PB_METHOD_JOB_SUBMIT,
    PB_METHOD_JOB_CANCEL,
    PB_METHOD_JOB_RETRY,
    PB_METHOD_JOB_DROP,
    PB_METHOD_JOB_AGAIN,
    PB_METHOD_JOB_WATCH,
    PB_METHOD_EVENT_LIST,
    PB_METHOD_EVENT_ACK,
    PB_METHOD_SERVICE_INFO,
    PB_METHOD_SERVICE_DRAIN,
    PB_METHOD_SERVICE_METRICS,
    PB_METHOD_RPC_DISCOVER,
    PB_METHOD_COUNT
};

#define PB_RPC_PARSE_ERROR      (-32700)
#define PB_RPC_INVALID_REQUEST  (-32600)
#define PB_RPC_METHOD_NOT_FOUND (-32601)
#define PB_RPC_INVALID_PARAMS   (-32602)
#define PB_RPC_JOB_ERROR        (-32000) /* code in data.code */

#define PB_STATUS_LIST_DEFAULT 100
#define PB_STATUS_LIST_MAX     1000

/* Parsed request; its strings are borrowed from the line's JSON. */
struct pb_request {
    struct pb_json_value *root;
    const struct pb_json_value *id; /* NULL = null or absent */
    bool wants_reply;               /* true if an id was given */
    enum pb_method method;
    const char *job;      /* id, or NULL (job.watch of all jobs) */
    const char *input;    /* job.submit */
    const char *pipeline; /* job.submit, job.list; may be NULL */
    int64_t since_ms;     /* job.list: minimum time of the last change, wall clock; 0 = all */
    int64_t priority;     /* job.submit, job.again */
    bool dry_run;         /* job.again */
    bool brief;           /* job.list */
    const char *before;   /* job.list: an id; NULL = from the newest on */
    bool descriptor;      /* job.submit: the client can pass the opened file */
    unsigned status_mask; /* job.list */
    int64_t limit;        /* job.list, job.events, event.list */
    const char *target;   /* event.*: name of an entry of notify */
    int64_t seq;          /* event.ack; job.watch, job.events: since, -1 = absent */
    bool given_up;        /* event.ack: it was not delivered and will not be */
    bool now, off;        /* service.drain */
};

/* Fault of a request that cannot be served. */
struct pb_fault {
    int rpc_code; /* 0 = absent */
    char message[600];
    char hint[400]; /* "" = the hint of service.protocol */
};

/* Returns 0 and *out_request (fini it), or -EINVAL and *out_fault; then root and id of
 * *out_request are set as far as they could be read, so that the fault can be answered (fini it in
 * this case as well). */
int pb_request_parse(const char *line, size_t bytes, struct pb_request *out_request,
                     struct pb_fault *out_fault);
void pb_request_fini(struct pb_request *request);
const char *pb_method_name(enum pb_method method);
/* Prints the methods with their parameters as a document of OpenRPC 1.2, as a value under key. */
void pb_methods_print(struct pb_json *json, const char *key);

/* Begins {"jsonrpc", "id", "result": ...}: write the one value under `key` "result", then end. */
void pb_reply_begin(struct pb_json *json, const struct pb_request *request);
void pb_reply_end(struct pb_json *json);
/* Prints a complete error reply. */
void pb_reply_fault(struct pb_json *json, const struct pb_request *request,
                    const struct pb_fault *fault);
void pb_reply_error(struct pb_json *json, const struct pb_request *request,
                    const struct pb_err *err);
/* Prints a complete notification job.descriptor: the client may now send the byte with the opened
 * file. */
void pb_descriptor_print(struct pb_json *json);
/* Prints a complete notification job.change. */
struct pb_event;
void pb_change_print(struct pb_json *json, const struct pb_event *event);
/* Prints a complete notification job.event. */
void pb_event_print(struct pb_json *json, const struct pb_job *job);
#endif
