/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Unknown members are refused, so that a typo does not silently mean "all jobs". Batches (arrays)
 * are refused: one object per line is the protocol. */
#include "service/status/status_proto.h"

#include "config/base/json_reader.h"
#include "service/jobs/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PARAM_ID         1u
#define PARAM_INPUT      2u
#define PARAM_PIPELINE   4u
#define PARAM_STATUS     8u
#define PARAM_LIMIT      16u
#define PARAM_DESCRIPTOR 32u
#define PARAM_SINCE      64u
#define PARAM_TARGET     128u
#define PARAM_SEQ        256u
#define PARAM_GIVEN_UP   512u
#define PARAM_SINCE_MS   1024u
#define PARAM_PRIORITY   2048u
#define PARAM_FIELDS     4096u
#define PARAM_BEFORE     8192u
#define PARAM_DRY_RUN    16384u
#define PARAM_NOW        32768u
#define PARAM_OFF        65536u

static const struct {
    const char *name;
    unsigned needs, takes; /* parameters */
} methods[PB_METHOD_COUNT] = {
    [PB_METHOD_JOB_LIST] = {"job.list", 0,
                            PARAM_STATUS | PARAM_LIMIT | PARAM_PIPELINE | PARAM_SINCE_MS |
                                PARAM_FIELDS | PARAM_BEFORE},
    [PB_METHOD_JOB_GET] = {"job.get", PARAM_ID, PARAM_ID},
    [PB_METHOD_JOB_EVENTS] = {"job.events", PARAM_ID, PARAM_ID | PARAM_SINCE | PARAM_LIMIT},
    [PB_METHOD_JOB_SUBMIT] = {"job.submit", PARAM_INPUT,
                              PARAM_INPUT | PARAM_PIPELINE | PARAM_DESCRIPTOR | PARAM_PRIORITY},
    [PB_METHOD_JOB_CANCEL] = {"job.cancel", PARAM_ID, PARAM_ID},
    [PB_METHOD_JOB_RETRY] = {"job.retry", PARAM_ID, PARAM_ID},
    [PB_METHOD_JOB_DROP] = {"job.drop", PARAM_ID, PARAM_ID},
    [PB_METHOD_JOB_AGAIN] = {"job.again", PARAM_ID, PARAM_ID | PARAM_PRIORITY | PARAM_DRY_RUN},
    [PB_METHOD_JOB_WATCH] = {"job.watch", 0, PARAM_ID | PARAM_SINCE},
    [PB_METHOD_EVENT_LIST] = {"event.list", PARAM_TARGET, PARAM_TARGET | PARAM_LIMIT},
    [PB_METHOD_EVENT_ACK] = {"event.ack", PARAM_TARGET | PARAM_SEQ,
                             PARAM_TARGET | PARAM_SEQ | PARAM_GIVEN_UP},
    [PB_METHOD_SERVICE_INFO] = {"service.info", 0, 0},
    [PB_METHOD_SERVICE_DRAIN] = {"service.drain", 0, PARAM_NOW | PARAM_OFF},
    [PB_METHOD_SERVICE_METRICS] = {"service.metrics", 0, 0},
    [PB_METHOD_RPC_DISCOVER] = {"rpc.discover", 0, 0},
};

static const struct {
    const char *name;
    unsigned bit;
    const char *type; /* type of a JSON Schema */
} params[] = {
    {"id", PARAM_ID, "string"},
    {"input", PARAM_INPUT, "string"},
    {"pipeline", PARAM_PIPELINE, "string"},
    {"status", PARAM_STATUS, NULL}, /* a string or an array */
    {"limit", PARAM_LIMIT, "integer"},
    {"fields", PARAM_FIELDS, "string"},
    {"before", PARAM_BEFORE, "string"},
    {"descriptor", PARAM_DESCRIPTOR, "boolean"},
    {"since", PARAM_SINCE, "integer"},
    {"target", PARAM_TARGET, "string"},
    {"seq", PARAM_SEQ, "integer"},
    {"given_up", PARAM_GIVEN_UP, "boolean"},
    {"since_ms", PARAM_SINCE_MS, "integer"},
    {"priority", PARAM_PRIORITY, "integer"},
    {"dry_run", PARAM_DRY_RUN, "boolean"},
    {"now", PARAM_NOW, "boolean"},
    {"off", PARAM_OFF, "boolean"},
};
#define N_PARAMS (sizeof params / sizeof params[0])

static int fault(struct pb_fault *out, int rpc_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fault(struct pb_fault *out, int rpc_code, const char *format, ...)
{
    va_list args;
    out->rpc_code = rpc_code;
    va_start(args, format);
    (void)vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    return -EINVAL;
}

const char *pb_method_name(enum pb_method method)
{
    return (unsigned)method < PB_METHOD_COUNT ? methods[method].name : "?";
}

static void print_params(struct pb_json *json, enum pb_method method)
{
    pb_json_array(json, "params");
    for (size_t i = 0; i < N_PARAMS; i++) {
        if ((params[i].bit & methods[method].takes) == 0)
            continue;
        pb_json_object(json, NULL);
        pb_json_string(json, "name", params[i].name);
        pb_json_bool(json, "required", (params[i].bit & methods[method].needs) != 0);
        pb_json_object(json, "schema");
        if (params[i].type != NULL)
            pb_json_string(json, "type", params[i].type);
        pb_json_end(json);
        pb_json_end(json);
    }
    pb_json_end(json);
}

void pb_methods_print(struct pb_json *json, const char *key)
{
    pb_json_object(json, key);
    pb_json_string(json, "openrpc", "1.2.6");
    pb_json_object(json, "info");
    pb_json_string(json, "title", "pushbroom");
    pb_json_string(json, "version", PB_VERSION);
    pb_json_end(json);
    pb_json_array(json, "methods");
    for (int m = 0; m < PB_METHOD_COUNT; m++) {
        pb_json_object(json, NULL);
        pb_json_string(json, "name", methods[m].name);
        pb_json_string(json, "paramStructure", "by-name");
        print_params(json, (enum pb_method)m);
        pb_json_object(json, "result");
        pb_json_string(json, "name", "result");
        pb_json_object(json, "schema");
        pb_json_string(json, "type", "object");
        pb_json_end(json);
        pb_json_end(json);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

static int add_status(struct pb_request *request, const struct pb_json_value *value,
                      struct pb_fault *out_fault)
{
    enum pb_job_status status;
    const char *word = pb_json_text_of(value);
    const char *source = pb_json_source(value);
    if (word == NULL || !pb_job_status_find(word, &status))
        return fault(out_fault, PB_RPC_INVALID_PARAMS,
                     "status is accepted, running, successful, failed or dismissed, or a list of "
                     "these, not %.60s",
                     source != NULL ? source : "that");
    request->status_mask |= PB_JOB_MASK(status);
    return 0;
}

static int take_status(struct pb_request *request, const struct pb_json_value *value,
                       struct pb_fault *out_fault)
{
    int rc = 0;
    request->status_mask = 0;
    if (!pb_json_is_array(value))
        return add_status(request, value, out_fault);
    for (size_t i = 0; i < pb_json_count(value) && rc == 0; i++)
        rc = add_status(request, pb_json_at(value, i), out_fault);
    return rc;
}

static int take_text(const struct pb_json_value *value, const char *name, const char **out,
                     struct pb_fault *out_fault)
{
    const char *text = pb_json_text_of(value);
    if (text == NULL || *text == '\0')
        return fault(out_fault, PB_RPC_INVALID_PARAMS, "%s is a text that is not empty", name);
    *out = text;
    return 0;
}

static int take_bool(const struct pb_json_value *object, const char *name, bool *out,
                     struct pb_fault *out_fault)
{
    return pb_json_get_bool(object, name, out) == 0
               ? 0
               : fault(out_fault, PB_RPC_INVALID_PARAMS, "%s is true or false", name);
}

static int take_fields(struct pb_request *request, const struct pb_json_value *value,
                       struct pb_fault *out_fault)
{
    const char *word = pb_json_text_of(value);
    request->brief = word != NULL && strcmp(word, "brief") == 0;
    return request->brief || (word != NULL && strcmp(word, "all") == 0)
               ? 0
               : fault(out_fault, PB_RPC_INVALID_PARAMS, "fields is 'brief' or 'all'");
}

static int take_param(struct pb_request *request, const struct pb_json_value *object,
                      const char *name, unsigned bit, struct pb_fault *out_fault)
{
    const struct pb_json_value *value = pb_json_get(object, name, NULL);
    switch (bit) {
    case PARAM_ID:
        return take_text(value, name, &request->job, out_fault);
    case PARAM_INPUT:
        return take_text(value, name, &request->input, out_fault);
    case PARAM_PIPELINE:
        return take_text(value, name, &request->pipeline, out_fault);
    case PARAM_BEFORE:
        return take_text(value, name, &request->before, out_fault);
    case PARAM_FIELDS:
        return take_fields(request, value, out_fault);
    case PARAM_DESCRIPTOR:
        return take_bool(object, name, &request->descriptor, out_fault);
    case PARAM_DRY_RUN:
        return take_bool(object, name, &request->dry_run, out_fault);
    case PARAM_NOW:
        return take_bool(object, name, &request->now, out_fault);
    case PARAM_OFF:
        return take_bool(object, name, &request->off, out_fault);
    case PARAM_STATUS:
        return take_status(request, value, out_fault);
    case PARAM_TARGET:
        return take_text(value, name, &request->target, out_fault);
    case PARAM_SINCE:
    case PARAM_SEQ:
        return pb_json_get_int(object, name, &request->seq) == 0 && request->seq >= 0
                   ? 0
                   : fault(out_fault, PB_RPC_INVALID_PARAMS, "%s is the number of an event", name);
    case PARAM_SINCE_MS:
        return pb_json_get_int(object, name, &request->since_ms) == 0 && request->since_ms >= 0
                   ? 0
                   : fault(out_fault, PB_RPC_INVALID_PARAMS,
                           "since_ms is a time in milliseconds since 1970");
    case PARAM_PRIORITY:
        return pb_json_get_int(object, name, &request->priority) == 0 &&
                       request->priority >= -PB_JOB_PRIORITY_MAX &&
                       request->priority <= PB_JOB_PRIORITY_MAX
                   ? 0
                   : fault(out_fault, PB_RPC_INVALID_PARAMS,
                           "priority is a whole number from %d to %d", -PB_JOB_PRIORITY_MAX,
                           PB_JOB_PRIORITY_MAX);
    case PARAM_GIVEN_UP:
        return take_bool(object, name, &request->given_up, out_fault);
    default:
        if (pb_json_get_int(object, name, &request->limit) != 0 || request->limit < 1 ||
            request->limit > PB_STATUS_LIST_MAX)
            return fault(out_fault, PB_RPC_INVALID_PARAMS, "limit is a whole number from 1 to %d",
                         PB_STATUS_LIST_MAX);
        return 0;
    }
}

/* Makes the hint for a request with wrong parameters: the parameters that its method takes. */
static void list_params(enum pb_method method, struct pb_fault *out)
{
    size_t n = (size_t)snprintf(out->hint, sizeof out->hint, "%s", methods[method].name);
    const char *before = methods[method].takes == 0 ? " takes no parameters" : " takes ";
    for (size_t i = 0; i < N_PARAMS && n < sizeof out->hint; i++) {
        if ((params[i].bit & methods[method].takes) == 0)
            continue;
        const bool needed = (params[i].bit & methods[method].needs) != 0;
        n += (size_t)snprintf(out->hint + n, sizeof out->hint - n, "%s%s%s", before, params[i].name,
                              needed ? " (required)" : "");
        before = ", ";
    }
    if (methods[method].takes == 0)
        (void)snprintf(out->hint + n, sizeof out->hint - n, "%s", before);
}

static int take_params(struct pb_request *request, const struct pb_json_value *object,
                       struct pb_fault *out_fault)
{
    const char *name = pb_method_name(request->method), *key;
    unsigned given = 0;
    if (object != NULL && !pb_json_is_object(object))
        return fault(out_fault, PB_RPC_INVALID_PARAMS, "params of %s is an object", name);
    for (size_t k = 0; (key = pb_json_key(object, k)) != NULL; k++) {
        size_t i = 0;
        while (i < N_PARAMS && strcmp(params[i].name, key) != 0)
            i++;
        if (i == N_PARAMS || (params[i].bit & methods[request->method].takes) == 0)
            return fault(out_fault, PB_RPC_INVALID_PARAMS, "%s takes no parameter '%.60s'", name,
                         key);
        if (pb_json_is_null(pb_json_get(object, key, NULL)))
            continue; /* same as absent */
        given |= params[i].bit;
        int rc = take_param(request, object, params[i].name, params[i].bit, out_fault);
        if (rc != 0)
            return rc;
    }
    for (size_t i = 0; i < N_PARAMS; i++) {
        if ((methods[request->method].needs & ~given & params[i].bit) != 0)
            return fault(out_fault, PB_RPC_INVALID_PARAMS, "%s needs the parameter '%s'", name,
                         params[i].name);
    }
    return 0;
}

int pb_request_parse(const char *line, size_t bytes, struct pb_request *out_request,
                     struct pb_fault *out_fault)
{
    struct pb_request *request = out_request;
    bool has_id = false, has_params = false;
    memset(request, 0, sizeof *request);
    memset(out_fault, 0, sizeof *out_fault);
    request->status_mask = PB_JOB_MASK_ALL;
    request->limit = PB_STATUS_LIST_DEFAULT;
    request->seq = -1;
    int rc = pb_json_parse(line, bytes, PB_JSON_LINE_MAX, &request->root);
    if (rc == -EFBIG)
        return fault(out_fault, PB_RPC_PARSE_ERROR, "over %d bytes or nested deeper than %d",
                     PB_JSON_LINE_MAX, PB_JSON_DEPTH_MAX);
    if (rc != 0)
        return fault(out_fault, PB_RPC_PARSE_ERROR,
                     "not JSON; send one JSON-RPC 2.0 object a line");
    if (!pb_json_is_object(request->root))
        return fault(out_fault, PB_RPC_INVALID_REQUEST,
                     "a request is one JSON object; batches are not taken");
    const struct pb_json_value *id = pb_json_get(request->root, "id", &has_id);
    if (has_id && !pb_json_is_null(id) && !pb_json_is_id(id))
        return fault(out_fault, PB_RPC_INVALID_REQUEST, "id is a number or a text");
    request->id = id;
    request->wants_reply = has_id;
    const char *version = pb_json_get_text(request->root, "jsonrpc");
    if (version == NULL || strcmp(version, "2.0") != 0)
        return fault(out_fault, PB_RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    const char *name = pb_json_get_text(request->root, "method");
    if (name == NULL)
        return fault(out_fault, PB_RPC_INVALID_REQUEST, "method is missing, or no text");
    unsigned method = 0;
    while (method < PB_METHOD_COUNT && strcmp(methods[method].name, name) != 0)
        method++;
    if (method == PB_METHOD_COUNT)
        return fault(out_fault, PB_RPC_METHOD_NOT_FOUND, "there is no method '%.60s'", name);
    request->method = (enum pb_method)method;
    const struct pb_json_value *object = pb_json_get(request->root, "params", &has_params);
    request->priority = request->method == PB_METHOD_JOB_AGAIN ? PB_JOB_PRIORITY_AGAIN : 0;
    rc = take_params(request, object, out_fault);
    if (rc != 0)
        list_params(request->method, out_fault);
    return rc;
}

void pb_request_fini(struct pb_request *request)
{
    pb_json_release(request->root);
    memset(request, 0, sizeof *request);
}

static void print_head(struct pb_json *json, const struct pb_request *request)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "jsonrpc", "2.0");
    pb_json_raw(json, "id", request->id ? pb_json_source(request->id) : "null");
}

void pb_reply_begin(struct pb_json *json, const struct pb_request *request)
{
    print_head(json, request);
}

void pb_reply_end(struct pb_json *json)
{
    pb_json_end(json);
}

static void print_error(struct pb_json *json, int rpc_code, const char *message, const char *code,
                        const char *hint)
{
    pb_json_object(json, "error");
    pb_json_int(json, "code", rpc_code);
    pb_json_string(json, "message", message);
    pb_json_object(json, "data");
    pb_json_string(json, "code", code);
    pb_json_string(json, "hint", hint);
    pb_json_end(json);
    pb_json_end(json);
}

void pb_reply_fault(struct pb_json *json, const struct pb_request *request,
                    const struct pb_fault *out_fault)
{
    print_head(json, request);
    print_error(json, out_fault->rpc_code, out_fault->message, pb_code_id(PB_E_SERVICE_PROTOCOL),
                out_fault->hint[0] != '\0' ? out_fault->hint : pb_code_hint(PB_E_SERVICE_PROTOCOL));
    pb_json_end(json);
}

void pb_reply_error(struct pb_json *json, const struct pb_request *request,
                    const struct pb_err *err)
{
    print_head(json, request);
    print_error(json, PB_RPC_JOB_ERROR, err->msg, pb_code_id(err->code), pb_code_hint(err->code));
    pb_json_end(json);
}

void pb_descriptor_print(struct pb_json *json)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "jsonrpc", "2.0");
    pb_json_string(json, "method", "job.descriptor");
    pb_json_end(json);
}

void pb_change_print(struct pb_json *json, const struct pb_event *event)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "jsonrpc", "2.0");
    pb_json_string(json, "method", "job.change");
    pb_event_write(json, "params", event);
    pb_json_end(json);
}

void pb_event_print(struct pb_json *json, const struct pb_job *job)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "jsonrpc", "2.0");
    pb_json_string(json, "method", "job.event");
    pb_job_print(json, "params", job);
    pb_json_end(json);
}
