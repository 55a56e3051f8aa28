/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/answers.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "service/base/log.h"
#include "service/jobs/job.h"
#include "service/web/document.h"
#include "service/web/events.h"
#include "service/web/files.h"
#include "service/web/page.h"
#include "service/web/processes.h"
#include "service/web/request.h"
#include "service/web/ring.h"
#include "service/web/server.h"
#include "service/web/stac.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXECUTE "execute"

static bool knows_people(const struct pb_web_site *site)
{
    const struct pb_web_guard *guard = &site->options->guard;
    return guard->token_file != NULL || guard->user_header != NULL;
}

/* Returns NULL if people may change jobs here, otherwise what is missing. */
static const char *why_not(struct pb_web_site *site)
{
    struct pb_web_settings settings;
    pb_web_upstream_settings(site->upstream, &settings);
    if (!settings.actions)
        return "web.actions is false in the configuration of pushbroomd";
    return knows_people(site) ? NULL
                              : "pushbroom-web was started without --token-file and --user-header";
}

/* --- reading --- */

static enum MHD_Result answer_asset(struct pb_web_site *site, struct MHD_Connection *connection,
                                    const char *path)
{
    struct pb_web_settings settings;
    pb_web_upstream_settings(site->upstream, &settings);
    return pb_web_send_asset(connection, pb_web_asset_find(path), settings.tiles);
}

/* Finds the directory of products. Returns false with the result of a refusal. */
static bool find_products(struct pb_web_site *site, struct MHD_Connection *connection,
                          char out[PATH_MAX], enum MHD_Result *out_refused)
{
    struct pb_err err = {0};
    if (pb_web_upstream_products(site->upstream, out, &err) != 0) {
        *out_refused = pb_web_send_failure(connection, &err);
        return false;
    }
    if (site->confined_to[0] == '\0' || strcmp(site->confined_to, out) == 0)
        return true;
    *out_refused = pb_web_send_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "unreadable",
                                     "the service has another directory of products now",
                                     "Restart pushbroom-web.");
    return false;
}

static enum MHD_Result answer_product(struct pb_web_site *site, struct MHD_Connection *connection,
                                      const char *path)
{
    struct pb_web_file file;
    char products[PATH_MAX];
    enum MHD_Result refused;
    if (!find_products(site, connection, products, &refused))
        return refused;
    const int rc = pb_web_file_open(products, path, &file);
    if (rc == -ENOENT)
        return pb_web_send_not_found(connection);
    if (rc != 0) {
        pb_log(PB_LOG_WARNING, "cannot read %s/%s: %s", products, path, strerror(-rc));
        return pb_web_send_error(
            connection, rc == -EACCES ? MHD_HTTP_FORBIDDEN : MHD_HTTP_INTERNAL_SERVER_ERROR,
            "unreadable", strerror(-rc),
            "The user of pushbroom-web needs the right to read products "
            "(service.products_mode).");
    }
    return pb_web_send_file(connection, &file);
}

static enum MHD_Result answer_events(struct pb_web_site *site, struct MHD_Connection *connection)
{
    struct pb_web_stream *stream =
        pb_web_stream_open(site->events, pb_web_header(connection, "Last-Event-ID"));
    return stream ? pb_web_send_stream(connection, stream)
                  : pb_web_send_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                                      "too many event streams are open",
                                      "Close other windows of this page.");
}

/* Adds this program's metrics (text taken). */
static char *add_own_metrics(struct pb_web_site *site, char *text)
{
    char *all = NULL;
    if (text == NULL)
        return NULL;
    const int n = asprintf(
        &all,
        "%s# HELP pushbroom_web_requests_total Requests to pushbroom-web.\n"
        "# TYPE pushbroom_web_requests_total counter\npushbroom_web_requests_total %" PRIu64 "\n"
        "# HELP pushbroom_web_streams Browsers that receive events.\n"
        "# TYPE pushbroom_web_streams gauge\npushbroom_web_streams %zu\n",
        text, (uint64_t)atomic_load(&site->requests), pb_web_events_streams(site->events));
    free(text);
    return n < 0 ? NULL : all;
}

static enum MHD_Result answer_text(struct pb_web_site *site, struct MHD_Connection *connection,
                                   const struct pb_web_route *route)
{
    struct pb_err err = {0};
    char *text = NULL, *params = NULL;
    enum pb_web_span span;
    const char *media_type = "application/json";
    if (route->place == PB_WEB_INFO) {
        text = pb_web_upstream_info(site->upstream, NULL, &err);
    } else if (route->place == PB_WEB_JOB) {
        text = pb_web_upstream_job(site->upstream, route->name, &err);
    } else if (route->place == PB_WEB_STEPS) {
        text = pb_web_upstream_steps(site->upstream, route->name, &err);
    } else if (route->place == PB_WEB_METRICS) {
        media_type = "text/plain; version=0.0.4; charset=utf-8";
        text = add_own_metrics(site, pb_web_upstream_metrics(site->upstream, NULL, &err));
    } else if (route->place == PB_WEB_GRAPHS) {
        if (!pb_web_span_read(pb_web_argument(connection, "span"), &span))
            return pb_web_send_error(connection, MHD_HTTP_BAD_REQUEST, "query",
                                     "the query is malformed", "span: hour, day or week.");
        text = pb_web_ring_text(site->ring, span, pb_clock_wall_ms());
    } else {
        params = pb_web_list_params(pb_web_argument(connection, "before"),
                                    pb_web_argument(connection, "limit"),
                                    pb_web_argument(connection, "status"));
        if (params == NULL)
            return pb_web_send_error(connection, MHD_HTTP_BAD_REQUEST, "query",
                                     "the query is malformed",
                                     "before: the id of a job, limit: a number, status: a state.");
        text = pb_web_upstream_jobs(site->upstream, params, &err);
        free(params);
    }
    if (text == NULL && err.code == PB_OK)
        return MHD_NO; /* no memory */
    return text ? pb_web_send_text(connection, MHD_HTTP_OK, media_type, text)
                : pb_web_send_failure(connection, &err);
}

static enum MHD_Result add_argument(void *pb_query, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    pb_web_query_add(pb_query, name, value);
    return MHD_YES;
}

/* Reads the query of a standard API, malloc'd. json: the body of a request by POST, which has no
 * other arguments; NULL = without. NULL = out of memory, or *out_failed has a text. */
static struct pb_web_query *read_query(struct pb_web_site *site, struct MHD_Connection *connection,
                                       const char *path, const struct pb_json_value *json,
                                       struct pb_web_document *out_failed)
{
    struct pb_web_query *asked = calloc(1, sizeof *asked);
    if (asked == NULL)
        return NULL;
    asked->path = path;
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, asked);
    asked->is_malformed = asked->is_malformed || (json != NULL && asked->n > 0);
    if (json != NULL)
        pb_web_query_add_body(asked, json);
    if (pb_web_query_base(asked, pb_web_header(connection, MHD_HTTP_HEADER_HOST),
                          site->options->certificate != NULL
                              ? "https"
                              : pb_web_header(connection, "X-Forwarded-Proto")))
        return asked;
    pb_web_document_fail(out_failed, MHD_HTTP_BAD_REQUEST, NULL, "malformed Host header", "");
    free(asked);
    return NULL;
}

/* Reads the body of a request, an object. NULL with the exception; the text is NULL without
 * memory. */
static struct pb_json_value *read_body(const struct pb_web_body *body, struct pb_web_document *out)
{
    struct pb_json_value *json = NULL;
    const int rc = pb_json_parse(body->n > 0 ? body->text : "", body->n, PB_WEB_BODY_MAX, &json);
    if (rc == 0 && pb_json_is_object(json))
        return json;
    pb_json_release(json);
    if (rc != -ENOMEM)
        pb_web_document_fail(out, MHD_HTTP_BAD_REQUEST, NULL, "the body is not a JSON object", "");
    return NULL;
}

/* Answers a request for the catalogue, or for processes and jobs. body: NULL for requests without
 * one. */
static enum MHD_Result answer_document(struct pb_web_site *site, struct MHD_Connection *connection,
                                       const char *path, bool is_stac,
                                       const struct pb_web_body *body)
{
    struct pb_web_document document = {0};
    char products[PATH_MAX];
    enum MHD_Result refused;
    if (is_stac && !find_products(site, connection, products, &refused))
        return refused;
    struct pb_json_value *json = body ? read_body(body, &document) : NULL;
    struct pb_web_query *asked =
        body == NULL || json != NULL ? read_query(site, connection, path, json, &document) : NULL;
    if (asked != NULL && is_stac)
        pb_web_stac(site->catalog, products, asked, &document);
    else if (asked != NULL)
        pb_web_processes(site->upstream, asked, why_not(site) == NULL, &document);
    free(asked);
    pb_json_release(json);
    document.varies = !is_stac && path[0] == '\0';
    return pb_web_send_document(connection, &document);
}

/* Returns true if the client accepts JSON and no page, as programs do. */
static bool wants_json(struct MHD_Connection *connection)
{
    const char *accept = pb_web_header(connection, MHD_HTTP_HEADER_ACCEPT);
    return accept != NULL && strstr(accept, PB_WEB_JSON) != NULL &&
           strstr(accept, "text/html") == NULL;
}

/* --- changes --- */

/* A person who changes jobs. */
struct actor {
    char who[PB_WEB_WHO_BYTES];
    const char *proof;
};

/* Reads who sends the request. */
static enum pb_web_verdict who_is(struct pb_web_site *site, struct MHD_Connection *connection,
                                  bool changes, char out_who[PB_WEB_WHO_BYTES],
                                  const char **out_proof, struct pb_err *err)
{
    const struct pb_web_guard *guard = &site->options->guard;
    const struct pb_web_claim claim = {
        .changes = changes,
        .host = pb_web_header(connection, MHD_HTTP_HEADER_HOST),
        .origin = pb_web_header_once(connection, MHD_HTTP_HEADER_ORIGIN),
        /* Only changes take a token: a wrong one then has a line of the log. */
        .authorization =
            changes ? pb_web_header_once(connection, MHD_HTTP_HEADER_AUTHORIZATION) : NULL,
        .cookie = pb_web_header(connection, MHD_HTTP_HEADER_COOKIE),
        .user = guard->user_header ? pb_web_header_once(connection, guard->user_header) : NULL};
    return pb_web_guard_who(guard, &claim, pb_clock_wall_ms() / 1000, out_who, out_proof, err);
}

/* The reason of a refusal, for the log. */
static const char *reason_of(enum pb_web_verdict verdict, const struct pb_err *err)
{
    return verdict == PB_WEB_BROKEN    ? err->msg
           : verdict == PB_WEB_FOREIGN ? "another page sent it"
                                       : "no person is signed in";
}

/* Sends the refusal of a request whose sender is not known. */
static enum MHD_Result send_verdict(struct MHD_Connection *connection, enum pb_web_verdict verdict,
                                    const struct pb_err *err)
{
    if (verdict == PB_WEB_BROKEN)
        return pb_web_send_error(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, pb_code_id(err->code),
                                 err->msg, pb_code_hint(err->code));
    if (verdict == PB_WEB_FOREIGN)
        return pb_web_send_error(connection, MHD_HTTP_FORBIDDEN, "refused",
                                 "the request is not from a page of this host over https",
                                 "A proxy must pass on the Host header as it is.");
    return pb_web_send_with(connection, MHD_HTTP_UNAUTHORIZED, PB_WEB_JSON,
                            pb_web_error_text("refused", "no person is signed in here",
                                              "Sign in with a token, or by the proxy."),
                            MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"pushbroom\"");
}

/* Sends who is signed in, and whether that person may change jobs. */
static enum MHD_Result answer_session(struct pb_web_site *site, struct MHD_Connection *connection)
{
    char who[PB_WEB_WHO_BYTES] = "";
    const char *proof = NULL, *why = why_not(site);
    struct pb_err err = {0};
    const bool known =
        who_is(site, connection, false, who, &proof, &err) == PB_WEB_KNOWN && why == NULL;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_bool(json, "actions", why == NULL);
    pb_json_string(json, "why", why);
    pb_json_string(json, "who", known ? who : NULL);
    pb_json_string(json, "proof", known ? proof : NULL);
    pb_json_bool(json, "tokens", site->options->guard.token_file != NULL);
    pb_json_end(json);
    char *text = pb_web_text(json);
    return text ? pb_web_send_text(connection, MHD_HTTP_OK, "application/json", text) : MHD_NO;
}

/* Signs a person in by a token, or out. */
static enum MHD_Result change_session(struct pb_web_site *site, struct MHD_Connection *connection,
                                      bool in)
{
    const struct pb_web_guard *guard = &site->options->guard;
    char who[PB_WEB_WHO_BYTES] = "", cookie[PB_WEB_COOKIE_BYTES];
    const char *proof = "", *why = why_not(site);
    struct pb_err err = {0};
    if (why != NULL)
        return pb_web_send_error(connection, MHD_HTTP_FORBIDDEN, "refused", why, NULL);
    enum pb_web_verdict verdict = who_is(site, connection, true, who, &proof, &err);
    if (in && verdict == PB_WEB_KNOWN && strcmp(proof, "token") != 0)
        verdict = PB_WEB_UNKNOWN;
    if (verdict == PB_WEB_FOREIGN || (in && verdict != PB_WEB_KNOWN)) {
        pb_log(PB_LOG_WARNING, "sign-%s refused: %s", in ? "in" : "out", reason_of(verdict, &err));
        return send_verdict(connection, verdict, &err);
    }
    if (verdict == PB_WEB_BROKEN)
        pb_log(PB_LOG_WARNING, "sign-out of an unknown person: %s", err.msg);
    if (!pb_web_guard_cookie(guard, in ? who : NULL, pb_clock_wall_ms() / 1000, cookie))
        return send_verdict(connection, PB_WEB_UNKNOWN, &err);
    if (verdict == PB_WEB_KNOWN)
        pb_log_always(PB_LOG_NOTICE, "%s signed %s", who, in ? "in" : "out");
    return pb_web_send_with(connection, MHD_HTTP_OK, "application/json", strdup("{}"), "Set-Cookie",
                            cookie);
}

/* Returns true if the sender may change jobs. Otherwise *out_refused is the response to that, and a
 * sender who is not known has a line of the log. */
static bool may_act(struct pb_web_site *site, struct MHD_Connection *connection, const char *name,
                    const char *word, struct actor *out, enum MHD_Result *out_refused)
{
    struct pb_err err = {0};
    char *info = pb_web_upstream_info(site->upstream, NULL, &err); /* the settings of now */
    free(info);
    if (info == NULL) {
        *out_refused = pb_web_send_failure(connection, &err);
        return false;
    }
    const char *why = why_not(site);
    if (why != NULL) {
        *out_refused = pb_web_send_error(connection, MHD_HTTP_FORBIDDEN, "refused", why, NULL);
        return false;
    }
    const enum pb_web_verdict verdict = who_is(site, connection, true, out->who, &out->proof, &err);
    const bool is_job = strcmp(word, EXECUTE) != 0;
    if (verdict == PB_WEB_KNOWN)
        return true;
    pb_log(PB_LOG_WARNING, "%s %s: %s refused: %s", is_job ? "job" : "process", name, word,
           reason_of(verdict, &err));
    *out_refused = send_verdict(connection, verdict, &err);
    return false;
}

/* Changes a job, with a line of the log. Returns the reply of the service, malloc'd; NULL: *err. */
static char *act(struct pb_web_site *site, const struct actor *actor, const char *id,
                 enum pb_web_action action, int64_t priority, struct pb_err *err)
{
    char *text = pb_web_upstream_change(site->upstream, action, id, priority, err);
    pb_log_always(PB_LOG_NOTICE, "job %s: %s by %s (%s): %s", id, pb_web_action_name(action),
                  actor->who, actor->proof, text ? "done" : err->msg);
    return text;
}

/* Changes a job for a person who may do that. */
static enum MHD_Result answer_act(struct pb_web_site *site, struct MHD_Connection *connection,
                                  const char *id, enum pb_web_action action)
{
    struct actor actor;
    struct pb_err err = {0};
    enum MHD_Result refused;
    int64_t priority;
    if (!pb_job_is_id(id))
        return pb_web_send_error(connection, MHD_HTTP_NOT_FOUND, pb_code_id(PB_E_JOB_UNKNOWN),
                                 "no job has this id", "A change needs the whole id of the job.");
    if (!pb_web_priority(pb_web_argument(connection, "priority"), PB_JOB_PRIORITY_AGAIN, &priority))
        return pb_web_send_error(connection, MHD_HTTP_BAD_REQUEST, "query",
                                 "the query is malformed", "priority: -100 to 100.");
    if (!may_act(site, connection, id, pb_web_action_name(action), &actor, &refused))
        return refused;
    char *text = act(site, &actor, id, action, priority, &err);
    return text ? pb_web_send_text(connection, MHD_HTTP_OK, "application/json", text)
                : pb_web_send_failure(connection, &err);
}

/* Cancels a job for a person who may do that. Otherwise *out is the exception. Returns false if
 * *out_refused was sent instead. */
static bool dismiss(struct pb_web_site *site, struct MHD_Connection *connection,
                    const struct pb_web_query *asked, struct pb_web_document *out,
                    enum MHD_Result *out_refused)
{
    char id[PB_WEB_ID_BYTES];
    struct actor actor;
    struct pb_err err = {0};
    (void)pb_web_job_id(strchr(asked->path, '/') + 1, id);
    if (!pb_job_is_id(id)) {
        pb_web_document_fail(out, MHD_HTTP_NOT_FOUND, "no-such-job", "no such job", id);
        return true;
    }
    if (!pb_web_query_allows(asked, NULL, 0, out))
        return true;
    if (!may_act(site, connection, id, "dismiss", &actor, out_refused))
        return false;
    char *text = act(site, &actor, id, PB_WEB_CANCEL, 0, &err);
    free(text);
    if (text != NULL)
        pb_web_processes(site->upstream, asked, true, out);
    else
        pb_web_document_fail(out, pb_web_status(&err),
                             err.code == PB_E_JOB_UNKNOWN ? "no-such-job" : NULL, err.msg,
                             pb_code_hint(err.code));
    return true;
}

/* Dismisses the job of "jobs/ID" as OGC API Processes has it: the answer is the job's state. */
static enum MHD_Result answer_dismiss(struct pb_web_site *site, struct MHD_Connection *connection,
                                      const char *path)
{
    struct pb_web_document document = {0};
    enum MHD_Result refused;
    struct pb_web_query *asked = read_query(site, connection, path, NULL, &document);
    const bool is_refused = asked != NULL && !dismiss(site, connection, asked, &document, &refused);
    free(asked);
    if (is_refused)
        return refused;
    return document.text
               ? pb_web_send_text(connection, document.status, document.media_type, document.text)
               : MHD_NO;
}

/* Executes a process for a person who may do that; *out is the answer and its address, or the
 * exception. Returns false if *out_refused was sent instead. */
static bool execute(struct pb_web_site *site, struct MHD_Connection *connection,
                    const struct pb_web_query *asked, char out_location[PB_WEB_LOCATION_BYTES],
                    struct pb_web_document *out, enum MHD_Result *out_refused)
{
    struct pb_web_execution execution;
    struct actor actor;
    struct pb_err err = {0};
    if (asked->is_malformed) {
        pb_web_document_fail(out, MHD_HTTP_BAD_REQUEST, NULL, "unknown parameter", "");
        return true;
    }
    if (!pb_web_execution_read(site->upstream, asked, &execution, out))
        return true;
    if (!may_act(site, connection, execution.pipeline, EXECUTE, &actor, out_refused))
        return false;
    char *job = pb_web_upstream_submit(site->upstream, execution.pipeline, execution.path, &err);
    pb_log_always(PB_LOG_NOTICE, "process %s: execute by %s (%s) with %s: %s", execution.pipeline,
                  actor.who, actor.proof, execution.path, job ? "done" : err.msg);
    if (job != NULL)
        pb_web_execution_answer(asked, &execution, job, out_location, out);
    else
        pb_web_document_fail(out, pb_web_status(&err), NULL, err.msg, pb_code_hint(err.code));
    return true;
}

/* Executes the process of "processes/NAME/execution". */
static enum MHD_Result answer_execution(struct pb_web_site *site, struct MHD_Connection *connection,
                                        const char *path, const struct pb_web_body *body)
{
    struct pb_web_document document = {0};
    char location[PB_WEB_LOCATION_BYTES] = "";
    enum MHD_Result refused;
    struct pb_json_value *json = read_body(body, &document);
    struct pb_web_query *asked = json ? read_query(site, connection, path, json, &document) : NULL;
    const bool is_refused =
        asked != NULL && !execute(site, connection, asked, location, &document, &refused);
    free(asked);
    pb_json_release(json);
    if (is_refused)
        return refused;
    if (document.text == NULL)
        return MHD_NO;
    return location[0] != '\0'
               ? pb_web_send_with(connection, document.status, document.media_type, document.text,
                                  "Location", location)
               : pb_web_send_text(connection, document.status, document.media_type, document.text);
}

/* --- requests --- */

/* Answers a request whose method the place does not have. */
static enum MHD_Result refuse_method(struct MHD_Connection *connection,
                                     const struct pb_web_route *route)
{
    struct pb_web_document refusal = {.status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                      .media_type = "application/json"};
    if (route->place == PB_WEB_OGC || route->place == PB_WEB_OGC_JOB ||
        route->place == PB_WEB_EXECUTE)
        pb_web_document_fail(&refusal, MHD_HTTP_METHOD_NOT_ALLOWED, NULL,
                             "this method is not possible here",
                             "The header Allow has those that are.");
    else
        refusal.text = pb_web_error_text("refused", "this method is not possible here", NULL);
    return pb_web_send_with(connection, refusal.status, refusal.media_type, refusal.text, "Allow",
                            pb_web_methods(route->place));
}

static bool is_json(const char *media_type)
{
    const size_t n = sizeof PB_WEB_JSON - 1;
    return media_type != NULL && strncasecmp(media_type, PB_WEB_JSON, n) == 0 &&
           strchr("; \t", media_type[n]) != NULL; /* also the NUL */
}

/* Decides by the headers about the body of a request. Returns the status of its refusal, or 0. A
 * page of another host cannot send JSON without a question, which nothing here answers. */
static unsigned judge_body(struct MHD_Connection *connection, bool has_body, const char **out_why)
{
    const char *length = pb_web_header_once(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool is_split = pb_web_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    const size_t n = length ? strlen(length) : 0;
    *out_why = "a request has no body here";
    if (!has_body)
        return is_split || (length != NULL && strcmp(length, "0") != 0) ? MHD_HTTP_CONTENT_TOO_LARGE
                                                                        : 0;
    *out_why = "the request needs one Content-Length";
    if (is_split || n == 0 || strspn(length, "0123456789") != n)
        return MHD_HTTP_LENGTH_REQUIRED;
    *out_why = "the body is larger than 64 KiB";
    if (n > 9 || strtoul(length, NULL, 10) > PB_WEB_BODY_MAX)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    *out_why = "the body is not " PB_WEB_JSON;
    return is_json(pb_web_header_once(connection, MHD_HTTP_HEADER_CONTENT_TYPE))
               ? 0
               : MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
}

enum MHD_Result pb_web_refuse(struct pb_web_site *site, struct MHD_Connection *connection,
                              const char *path, const char *method)
{
    const char *reason = "";
    struct pb_web_route route;
    pb_web_route(path, &route);
    (void)atomic_fetch_add(&site->requests, 1);
    if (!pb_web_allows(route.place, method))
        return refuse_method(connection, &route);
    const unsigned status = judge_body(connection, pb_web_has_body(route.place, method), &reason);
    if (status != 0)
        return pb_web_send_error(connection, status, "refused", reason, NULL);
    /* "" of several Host headers is no name: a proxy may have checked another one. */
    if (!pb_web_host_is_ours(pb_web_header_once(connection, MHD_HTTP_HEADER_HOST),
                             site->options->names, site->options->n_names))
        return pb_web_send_error(
            connection, MHD_HTTP_MISDIRECTED_REQUEST, "refused", "the request names another host",
            "pushbroom-web --name HOST allows the name that is in the address.");
    return MHD_YES;
}

enum MHD_Result pb_web_answer(struct pb_web_site *site, struct MHD_Connection *connection,
                              const char *path, const char *method, const struct pb_web_body *body)
{
    struct pb_web_route route;
    pb_web_route(path, &route);
    const bool has_body = pb_web_has_body(route.place, method);
    pb_log(PB_LOG_DEBUG, "%s %s", method, path);
    switch (route.place) {
    case PB_WEB_ASSET:
        return strcmp(route.name, "/") == 0 && wants_json(connection)
                   ? answer_document(site, connection, "", false, NULL)
                   : answer_asset(site, connection, route.name);
    case PB_WEB_EVENTS:
        return answer_events(site, connection);
    case PB_WEB_PRODUCT:
        return answer_product(site, connection, route.name);
    case PB_WEB_OGC_JOB:
        if (method[0] == 'D')
            return answer_dismiss(site, connection, route.name);
        return answer_document(site, connection, route.name, false, NULL);
    case PB_WEB_EXECUTE:
        return answer_execution(site, connection, route.name, body);
    case PB_WEB_OGC:
        return answer_document(site, connection, route.name, false, NULL);
    case PB_WEB_STAC:
    case PB_WEB_SEARCH:
        return answer_document(site, connection, route.name, true, has_body ? body : NULL);
    case PB_WEB_INFO:
    case PB_WEB_JOBS:
    case PB_WEB_JOB:
    case PB_WEB_STEPS:
    case PB_WEB_METRICS:
    case PB_WEB_GRAPHS:
        return answer_text(site, connection, &route);
    case PB_WEB_SESSION:
        return method[0] == 'G' || method[0] == 'H'
                   ? answer_session(site, connection)
                   : change_session(site, connection, method[0] == 'P');
    case PB_WEB_ACT:
        return answer_act(site, connection, route.name, route.action);
    case PB_WEB_NOT_FOUND:
        break;
    }
    return pb_web_send_not_found(connection);
}
