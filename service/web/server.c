/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The main thread waits for signals and ends connections that send no request. libmicrohttpd
 * decodes no escapes here (plain_path): a path is decoded once, by request.c. */
#include "service/web/server.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "service/base/log.h"
#include "service/daemon/notify.h"
#include "service/jobs/job.h"
#include "service/notify/secret.h"
#include "service/web/catalog.h"
#include "service/web/document.h"
#include "service/web/events.h"
#include "service/web/files.h"
#include "service/web/listener.h"
#include "service/web/page.h"
#include "service/web/processes.h"
#include "service/web/request.h"
#include "service/web/ring.h"
#include "service/web/stac.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_OK          0
#define EXIT_BAD         1
#define EXIT_CONF        2
#define CONNECTIONS_MAX  1024
#define CONNECTIONS_MANY 256   /* a larger number ends silent ones at once */
#define CONNECTION_BYTES 32768 /* limit of a request's line and headers */
#define IDLE_S           20u   /* without a byte in either direction */
#define REQUEST_MS       20000 /* until a request is complete, and between two requests */
#define STACK_BYTES      ((size_t)512 << 10)
#define STREAM_BLOCK     16384
#define TLS_BYTES_MAX    65536 /* limit of the file of certificates */

#define POLICY_FILE "default-src 'none'; sandbox; frame-ancestors 'none'"
#define POLICY_PAGE                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "             \
    "img-src 'self'"

/* A connection, for the limit of time; owned by libmicrohttpd's callbacks. */
struct peer {
    TAILQ_ENTRY(peer) all;
    int fd;
    int64_t since_ms; /* since when it is silent */
    bool busy;        /* its request is being answered */
    bool ended;       /* shut down here; libmicrohttpd closes it */
};
TAILQ_HEAD(peers, peer);

struct server {
    const struct pb_web_options *options;
    struct pb_web_upstream *upstream;
    struct pb_web_ring *ring;
    struct pb_web_catalog *catalog;
    struct pb_web_events *events;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* peers */
    struct peers peers;
    size_t n_peers, n_ended;
    char confined_to[PATH_MAX]; /* products that the process may read; "" = any, set at the start */
    atomic_uint_fast64_t requests;
};

/* --- responses --- */

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Headers of all responses: the page may load nothing from elsewhere but tiles of the base map, and
 * no other page may use or frame what is here. Files are data: nothing in them runs. */
static void add_common(struct MHD_Response *response, const char *media_type, const char *policy)
{
    add(response, "Content-Type", media_type);
    add(response, "Content-Security-Policy", policy);
    add(response, "X-Content-Type-Options", "nosniff");
    add(response, "Referrer-Policy", "no-referrer");
    add(response, "Cross-Origin-Resource-Policy", "same-origin");
    add(response, "Cross-Origin-Opener-Policy", "same-origin");
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     struct MHD_Response *response)
{
    const enum MHD_Result sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

/* Makes the response of a text (malloc'd, taken). NULL = out of memory. */
static struct MHD_Response *make_text(const char *media_type, char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return NULL;
    }
    add_common(response, media_type, POLICY_PAGE);
    add(response, "Cache-Control", "no-store");
    return response;
}

/* Sends a text (malloc'd, taken). */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text)
{
    struct MHD_Response *response = make_text(media_type, text);
    if (response != NULL && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        add(response, "Retry-After", "2");
    return response ? send_response(connection, status, response) : MHD_NO;
}

static char *take_text(struct pb_json *json)
{
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy;
}

/* Makes {"error": ...}, malloc'd; NULL = out of memory. */
static char *make_error(const char *code, const char *message, const char *hint)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_object(json, "error");
    pb_json_string(json, "code", code);
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", hint);
    pb_json_end(json);
    pb_json_end(json);
    return take_text(json);
}

static enum MHD_Result send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *code, const char *message, const char *hint)
{
    char *text = make_error(code, message, hint);
    return text ? send_text(connection, status, "application/json", text) : MHD_NO;
}

/* Sends JSON (malloc'd, taken; NULL = out of memory) with a further header. */
static enum MHD_Result send_with(struct MHD_Connection *connection, unsigned status, char *text,
                                 const char *name, const char *value)
{
    struct MHD_Response *response = text ? make_text("application/json", text) : NULL;
    if (response == NULL)
        return MHD_NO;
    add(response, name, value);
    return send_response(connection, status, response);
}

static enum MHD_Result send_not_found(struct MHD_Connection *connection)
{
    return send_error(connection, MHD_HTTP_NOT_FOUND, "not_found", "nothing is at this address",
                      "Files are here only if pushbroom made them and they still exist.");
}

static enum MHD_Result send_failure(struct MHD_Connection *connection, const struct pb_err *err)
{
    unsigned status = MHD_HTTP_BAD_GATEWAY;
    if (err->code == PB_E_JOB_UNKNOWN)
        status = MHD_HTTP_NOT_FOUND;
    else if (err->code == PB_E_SERVICE_PROTOCOL)
        status = MHD_HTTP_BAD_REQUEST;
    else if (err->code == PB_E_SERVICE_DENIED)
        status = MHD_HTTP_FORBIDDEN;
    else if (err->code == PB_E_JOB_STATE || err->code == PB_E_JOB_SUPERSEDED ||
             err->code == PB_E_INPUT_GONE)
        status = MHD_HTTP_CONFLICT;
    else if (err->code == PB_E_SERVICE_UNREACHABLE || err->code == PB_E_SERVICE_BUSY ||
             err->code == PB_E_SERVICE_STATE)
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
    return send_error(connection, status, pb_code_id(err->code), err->msg, pb_code_hint(err->code));
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static const char *query(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* The headers are those of the whole answer: a browser puts them in place of the ones it has. */
static enum MHD_Result send_not_modified(struct MHD_Connection *connection, const char *tag,
                                         const char *media_type, const char *policy)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, media_type, policy);
    add(response, "ETag", tag);
    add(response, "Cache-Control", "no-cache");
    return send_response(connection, MHD_HTTP_NOT_MODIFIED, response);
}

/* Returns true if the browser has this content already. */
static bool is_known(struct MHD_Connection *connection, const char *tag)
{
    const char *known = header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    return known != NULL && (strcmp(known, "*") == 0 || strstr(known, tag) != NULL);
}

/* --- answers --- */

static void hash_text(const char *text, size_t bytes, char out_tag[32])
{
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
    (void)snprintf(out_tag, 32, "\"%016" PRIx64 "\"", sum);
}

static enum MHD_Result answer_asset(struct server *server, struct MHD_Connection *connection,
                                    const char *path)
{
    struct pb_web_settings settings;
    char policy[sizeof POLICY_PAGE + 1 + PB_WEB_TILES_BYTES];
    const struct pb_web_asset *asset = pb_web_asset_find(path);
    const size_t bytes = (size_t)(asset->end - asset->content);
    char tag[32];
    pb_web_upstream_settings(server->upstream, &settings);
    (void)snprintf(policy, sizeof policy, POLICY_PAGE " %s", settings.tiles);
    hash_text(asset->content, bytes, tag);
    if (is_known(connection, tag))
        return send_not_modified(connection, tag, asset->media_type, policy);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        bytes, (void *)(uintptr_t)asset->content, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, asset->media_type, policy);
    add(response, "ETag", tag);
    add(response, "Cache-Control", "no-cache");
    return send_response(connection, MHD_HTTP_OK, response);
}

/* Sends a file, or the part of it that the Range header names. Takes the descriptor. */
static enum MHD_Result send_file(struct MHD_Connection *connection, const struct pb_web_file *file)
{
    char range_text[80];
    uint64_t first = 0, bytes = file->bytes;
    const char *condition = header(connection, MHD_HTTP_HEADER_IF_RANGE);
    enum pb_web_range range =
        condition == NULL || strcmp(condition, file->tag) == 0
            ? pb_web_range(header(connection, MHD_HTTP_HEADER_RANGE), file->bytes, &first, &bytes)
            : PB_WEB_RANGE_WHOLE;
    const bool outside = range == PB_WEB_RANGE_OUTSIDE;
    struct MHD_Response *response =
        outside ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                : MHD_create_response_from_fd_at_offset64(bytes, file->fd, first);
    if (outside || response == NULL)
        (void)close(file->fd);
    if (response == NULL)
        return MHD_NO;
    if (outside)
        (void)snprintf(range_text, sizeof range_text, "bytes */%" PRIu64, file->bytes);
    else
        (void)snprintf(range_text, sizeof range_text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                       first, first + bytes - 1, file->bytes);
    add_common(response, file->media_type, POLICY_FILE);
    add(response, "ETag", file->tag);
    add(response, "Cache-Control", "no-cache");
    add(response, "Accept-Ranges", "bytes");
    if (range != PB_WEB_RANGE_WHOLE)
        add(response, "Content-Range", range_text);
    return send_response(connection,
                         outside                      ? MHD_HTTP_RANGE_NOT_SATISFIABLE
                         : range == PB_WEB_RANGE_PART ? MHD_HTTP_PARTIAL_CONTENT
                                                      : MHD_HTTP_OK,
                         response);
}

/* Finds the directory of products. Returns false with the result of a refusal. */
static bool find_products(struct server *server, struct MHD_Connection *connection,
                          char out[PATH_MAX], enum MHD_Result *out_refused)
{
    struct pb_err err = {0};
    if (pb_web_upstream_products(server->upstream, out, &err) != 0) {
        *out_refused = send_failure(connection, &err);
        return false;
    }
    if (server->confined_to[0] == '\0' || strcmp(server->confined_to, out) == 0)
        return true;
    *out_refused =
        send_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "unreadable",
                   "the service has another directory of products now", "Restart pushbroom-web.");
    return false;
}

static enum MHD_Result answer_product(struct server *server, struct MHD_Connection *connection,
                                      const char *path)
{
    struct pb_web_file file;
    char products[PATH_MAX];
    enum MHD_Result refused;
    if (!find_products(server, connection, products, &refused))
        return refused;
    const int rc = pb_web_file_open(products, path, &file);
    if (rc == -ENOENT)
        return send_not_found(connection);
    if (rc != 0) {
        pb_log(PB_LOG_WARNING, "cannot read %s/%s: %s", products, path, strerror(-rc));
        return send_error(connection,
                          rc == -EACCES ? MHD_HTTP_FORBIDDEN : MHD_HTTP_INTERNAL_SERVER_ERROR,
                          "unreadable", strerror(-rc),
                          "The user of pushbroom-web needs the right to read products "
                          "(service.products_mode).");
    }
    if (is_known(connection, file.tag)) {
        (void)close(file.fd);
        return send_not_modified(connection, file.tag, file.media_type, POLICY_FILE);
    }
    return send_file(connection, &file);
}

static ssize_t read_stream(void *stream, uint64_t position, char *out, size_t bytes)
{
    (void)position;
    const ssize_t n = pb_web_stream_read(stream, out, bytes);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void close_stream(void *stream)
{
    pb_web_stream_close(stream);
}

static enum MHD_Result answer_events(struct server *server, struct MHD_Connection *connection)
{
    struct pb_web_stream *stream =
        pb_web_stream_open(server->events, header(connection, "Last-Event-ID"));
    if (stream == NULL)
        return send_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                          "too many event streams are open", "Close other windows of this page.");
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, stream, close_stream);
    if (response == NULL) {
        pb_web_stream_close(stream);
        return MHD_NO;
    }
    add_common(response, "text/event-stream", POLICY_PAGE);
    add(response, "Cache-Control", "no-store");
    add(response, "X-Accel-Buffering", "no"); /* for nginx as a proxy */
    return send_response(connection, MHD_HTTP_OK, response);
}

/* Adds this program's metrics (text taken). */
static char *add_own_metrics(struct server *server, char *text)
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
        text, (uint64_t)atomic_load(&server->requests), pb_web_events_streams(server->events));
    free(text);
    return n < 0 ? NULL : all;
}

static enum MHD_Result answer_text(struct server *server, struct MHD_Connection *connection,
                                   const struct pb_web_route *route)
{
    struct pb_err err = {0};
    char *text = NULL, *params = NULL;
    enum pb_web_span span;
    const char *media_type = "application/json";
    if (route->place == PB_WEB_INFO) {
        text = pb_web_upstream_info(server->upstream, NULL, &err);
    } else if (route->place == PB_WEB_JOB) {
        text = pb_web_upstream_job(server->upstream, route->name, &err);
    } else if (route->place == PB_WEB_STEPS) {
        text = pb_web_upstream_steps(server->upstream, route->name, &err);
    } else if (route->place == PB_WEB_METRICS) {
        media_type = "text/plain; version=0.0.4; charset=utf-8";
        text = add_own_metrics(server, pb_web_upstream_metrics(server->upstream, NULL, &err));
    } else if (route->place == PB_WEB_GRAPHS) {
        if (!pb_web_span_read(query(connection, "span"), &span))
            return send_error(connection, MHD_HTTP_BAD_REQUEST, "query", "the query is malformed",
                              "span: hour, day or week.");
        text = pb_web_ring_text(server->ring, span, pb_clock_wall_ms());
    } else {
        params = pb_web_list_params(query(connection, "before"), query(connection, "limit"),
                                    query(connection, "status"));
        if (params == NULL)
            return send_error(connection, MHD_HTTP_BAD_REQUEST, "query", "the query is malformed",
                              "before: the id of a job, limit: a number, status: a state.");
        text = pb_web_upstream_jobs(server->upstream, params, &err);
        free(params);
    }
    if (text == NULL && err.code == PB_OK)
        return MHD_NO; /* no memory */
    return text ? send_text(connection, MHD_HTTP_OK, media_type, text)
                : send_failure(connection, &err);
}

/* Sends a document of a standard API; takes its text. */
static enum MHD_Result send_document(struct MHD_Connection *connection,
                                     const struct pb_web_document *document)
{
    char tag[32];
    if (document->text == NULL)
        return MHD_NO; /* no memory */
    if (document->status != MHD_HTTP_OK)
        return send_text(connection, document->status, document->media_type, document->text);
    const size_t bytes = strlen(document->text);
    hash_text(document->text, bytes, tag);
    if (is_known(connection, tag)) {
        free(document->text);
        return send_not_modified(connection, tag, document->media_type, POLICY_PAGE);
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, document->text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(document->text);
        return MHD_NO;
    }
    add_common(response, document->media_type, POLICY_PAGE);
    add(response, "ETag", tag);
    add(response, "Cache-Control", "no-cache");
    return send_response(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result add_argument(void *pb_query, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    pb_web_query_add(pb_query, name, value);
    return MHD_YES;
}

/* Answers a request for the catalogue, or for processes and jobs. */
static enum MHD_Result answer_document(struct server *server, struct MHD_Connection *connection,
                                       const char *path, bool is_stac)
{
    struct pb_web_document document = {0};
    char products[PATH_MAX];
    enum MHD_Result refused;
    if (is_stac && !find_products(server, connection, products, &refused))
        return refused;
    struct pb_web_query *asked = calloc(1, sizeof *asked);
    if (asked == NULL)
        return MHD_NO;
    asked->path = path;
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, asked);
    if (!pb_web_query_base(asked, header(connection, MHD_HTTP_HEADER_HOST),
                           header(connection, "X-Forwarded-Proto")))
        pb_web_document_fail(&document, MHD_HTTP_BAD_REQUEST, NULL, "malformed Host header", "");
    else if (is_stac)
        pb_web_stac(server->catalog, products, asked, &document);
    else
        pb_web_processes(server->upstream, asked, &document);
    free(asked);
    return send_document(connection, &document);
}

/* Returns true if the client accepts JSON and no page, as programs do. */
static bool wants_json(struct MHD_Connection *connection)
{
    const char *accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
    return accept != NULL && strstr(accept, PB_WEB_JSON) != NULL &&
           strstr(accept, "text/html") == NULL;
}

/* --- changes --- */

/* Returns NULL if people may change jobs here, otherwise what is missing. */
static const char *why_not(struct server *server)
{
    const struct pb_web_guard *guard = &server->options->guard;
    struct pb_web_settings settings;
    pb_web_upstream_settings(server->upstream, &settings);
    if (!settings.actions)
        return "web.actions is false in the configuration of pushbroomd";
    return guard->token_file == NULL && guard->user_header == NULL
               ? "pushbroom-web was started without --token-file and --user-header"
               : NULL;
}

/* Reads who sends the request. */
static enum pb_web_verdict who_is(struct server *server, struct MHD_Connection *connection,
                                  bool changes, char out_who[PB_WEB_WHO_BYTES],
                                  const char **out_proof, struct pb_err *err)
{
    const struct pb_web_guard *guard = &server->options->guard;
    const struct pb_web_claim claim = {
        .changes = changes,
        .host = header(connection, MHD_HTTP_HEADER_HOST),
        .origin = header(connection, MHD_HTTP_HEADER_ORIGIN),
        .authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .cookie = header(connection, MHD_HTTP_HEADER_COOKIE),
        .user = guard->user_header ? header(connection, guard->user_header) : NULL};
    return pb_web_guard_who(guard, &claim, pb_clock_wall_ms() / 1000, out_who, out_proof, err);
}

/* Sends the refusal of a request whose sender is not known. */
static enum MHD_Result send_verdict(struct MHD_Connection *connection, enum pb_web_verdict verdict,
                                    const struct pb_err *err)
{
    if (verdict == PB_WEB_BROKEN)
        return send_error(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, pb_code_id(err->code),
                          err->msg, pb_code_hint(err->code));
    if (verdict == PB_WEB_FOREIGN)
        return send_error(connection, MHD_HTTP_FORBIDDEN, "refused",
                          "the request is not from a page of this host over https",
                          "A proxy must pass on the Host header as it is.");
    return send_error(connection, MHD_HTTP_UNAUTHORIZED, "refused", "no person is signed in here",
                      "Sign in with a token, or by the proxy.");
}

/* Sends who is signed in, and whether that person may change jobs. */
static enum MHD_Result answer_session(struct server *server, struct MHD_Connection *connection)
{
    char who[PB_WEB_WHO_BYTES] = "";
    const char *proof = NULL, *why = why_not(server);
    struct pb_err err = {0};
    const bool known =
        who_is(server, connection, false, who, &proof, &err) == PB_WEB_KNOWN && why == NULL;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_bool(json, "actions", why == NULL);
    pb_json_string(json, "why", why);
    pb_json_string(json, "who", known ? who : NULL);
    pb_json_string(json, "proof", known ? proof : NULL);
    pb_json_bool(json, "tokens", server->options->guard.token_file != NULL);
    pb_json_end(json);
    char *text = take_text(json);
    return text ? send_text(connection, MHD_HTTP_OK, "application/json", text) : MHD_NO;
}

/* Signs a person in by a token, or out. */
static enum MHD_Result change_session(struct server *server, struct MHD_Connection *connection,
                                      bool in)
{
    const struct pb_web_guard *guard = &server->options->guard;
    char who[PB_WEB_WHO_BYTES] = "", cookie[PB_WEB_COOKIE_BYTES];
    const char *proof = "", *why = why_not(server);
    struct pb_err err = {0};
    if (why != NULL)
        return send_error(connection, MHD_HTTP_FORBIDDEN, "refused", why, NULL);
    enum pb_web_verdict verdict = who_is(server, connection, true, who, &proof, &err);
    if (in && verdict == PB_WEB_KNOWN && strcmp(proof, "token") != 0)
        verdict = PB_WEB_UNKNOWN;
    if (verdict == PB_WEB_FOREIGN || (in && verdict != PB_WEB_KNOWN)) {
        pb_log(PB_LOG_WARNING, "sign-in refused");
        return send_verdict(connection, verdict, &err);
    }
    if (!pb_web_guard_cookie(guard, in ? who : NULL, pb_clock_wall_ms() / 1000, cookie))
        return send_verdict(connection, PB_WEB_UNKNOWN, &err);
    pb_log(PB_LOG_NOTICE, "%s signed %s", who[0] ? who : "a browser", in ? "in" : "out");
    return send_with(connection, MHD_HTTP_OK, strdup("{}"), "Set-Cookie", cookie);
}

/* Changes a job for a person who may do that. Each try is a line of the log. */
static enum MHD_Result answer_act(struct server *server, struct MHD_Connection *connection,
                                  const char *id, enum pb_web_action action)
{
    const char *word = pb_web_action_name(action), *proof = "";
    char who[PB_WEB_WHO_BYTES];
    struct pb_err err = {0};
    int64_t priority;
    if (!pb_web_priority(query(connection, "priority"), PB_JOB_PRIORITY_AGAIN, &priority))
        return send_error(connection, MHD_HTTP_BAD_REQUEST, "query", "the query is malformed",
                          "priority: -100 to 100.");
    char *info = pb_web_upstream_info(server->upstream, NULL, &err); /* the settings of now */
    free(info);
    if (info == NULL)
        return send_failure(connection, &err);
    const char *why = why_not(server);
    if (why != NULL)
        return send_error(connection, MHD_HTTP_FORBIDDEN, "refused", why, NULL);
    const enum pb_web_verdict verdict = who_is(server, connection, true, who, &proof, &err);
    if (verdict != PB_WEB_KNOWN) {
        pb_log(PB_LOG_WARNING, "job %s: %s refused: %s", id, word,
               verdict == PB_WEB_FOREIGN ? "another page sent it" : "no person is signed in");
        return send_verdict(connection, verdict, &err);
    }
    char *text = pb_web_upstream_change(server->upstream, action, id, priority, &err);
    pb_log(PB_LOG_NOTICE, "job %s: %s by %s (%s): %s", id, word, who, proof,
           text ? "done" : err.msg);
    return text ? send_text(connection, MHD_HTTP_OK, "application/json", text)
                : send_failure(connection, &err);
}

/* --- requests --- */

/* Answers a request whose method the place does not have. */
static enum MHD_Result refuse_method(struct MHD_Connection *connection,
                                     const struct pb_web_route *route)
{
    struct pb_web_document document;
    if (route->place != PB_WEB_OGC)
        return send_with(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                         make_error("refused", "this method is not possible here", NULL), "Allow",
                         pb_web_methods(route->place));
    pb_web_processes_refuse(route->name, &document);
    struct MHD_Response *response =
        document.text ? make_text(document.media_type, document.text) : NULL;
    if (response == NULL)
        return MHD_NO;
    add(response, "Allow", pb_web_methods(route->place));
    return send_response(connection, document.status, response);
}

/* Answers a request that is refused by its headers. */
static enum MHD_Result refuse(struct server *server, struct MHD_Connection *connection,
                              const char *path, const char *method)
{
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    struct pb_web_route route;
    pb_web_route(path, &route);
    (void)atomic_fetch_add(&server->requests, 1);
    if (!pb_web_allows(route.place, method))
        return refuse_method(connection, &route);
    if ((length != NULL && strcmp(length, "0") != 0) ||
        header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL)
        return send_error(connection, MHD_HTTP_CONTENT_TOO_LARGE, "refused",
                          "a request has no body here", NULL);
    if (!pb_web_host_is_ours(header(connection, MHD_HTTP_HEADER_HOST), server->options->names,
                             server->options->n_names))
        return send_error(connection, MHD_HTTP_MISDIRECTED_REQUEST, "refused",
                          "the request names another host",
                          "pushbroom-web --name HOST allows the name that is in the address.");
    return MHD_YES;
}

static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
                              const char *path, const char *method)
{
    struct pb_web_route route;
    pb_web_route(path, &route);
    pb_log(PB_LOG_DEBUG, "%s %s", method, path);
    switch (route.place) {
    case PB_WEB_ASSET:
        return strcmp(route.name, "/") == 0 && wants_json(connection)
                   ? answer_document(server, connection, "", false)
                   : answer_asset(server, connection, route.name);
    case PB_WEB_EVENTS:
        return answer_events(server, connection);
    case PB_WEB_PRODUCT:
        return answer_product(server, connection, route.name);
    case PB_WEB_STAC:
    case PB_WEB_OGC:
        return answer_document(server, connection, route.name, route.place == PB_WEB_STAC);
    case PB_WEB_INFO:
    case PB_WEB_JOBS:
    case PB_WEB_JOB:
    case PB_WEB_STEPS:
    case PB_WEB_METRICS:
    case PB_WEB_GRAPHS:
        return answer_text(server, connection, &route);
    case PB_WEB_SESSION:
        return method[0] == 'G' || method[0] == 'H'
                   ? answer_session(server, connection)
                   : change_session(server, connection, method[0] == 'P');
    case PB_WEB_ACT:
        return answer_act(server, connection, route.name, route.action);
    case PB_WEB_NOT_FOUND:
        break;
    }
    return send_not_found(connection);
}

/* --- what the process may do --- */

static int confine(const struct server *server, const char *products, struct pb_err *err)
{
    const struct pb_web_options *options = server->options;
    const bool is_unix = strncmp(options->listen, PB_WEB_UNIX, sizeof PB_WEB_UNIX - 1) == 0;
    return pb_web_files_confine(products, options->guard.token_file,
                                is_unix ? options->listen + sizeof PB_WEB_UNIX - 1 : NULL, err);
}

/* Restricts the process before it has threads. Without the service the directory of products is
 * unknown: threads are restricted later. */
static void confine_process(struct server *server)
{
    char products[PATH_MAX];
    struct pb_err err = {0};
    const int rc = pb_web_upstream_products(server->upstream, products, &err) == 0
                       ? confine(server, products, &err)
                       : -1;
    if (rc > 0) {
        (void)snprintf(server->confined_to, sizeof server->confined_to, "%s", products);
        pb_log(PB_LOG_NOTICE, "reads files of %s only (Landlock)", products);
    } else {
        pb_log(PB_LOG_NOTICE, "not confined to the products yet: %s",
               rc == 0 ? "the kernel has no Landlock" : err.msg);
    }
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void set_busy(struct server *server, struct MHD_Connection *connection, bool busy)
{
    struct peer *peer = peer_of(connection);
    if (peer == NULL)
        return;
    (void)pthread_mutex_lock(&server->lock);
    peer->busy = busy;
    peer->since_ms = pb_clock_mono_ms();
    (void)pthread_mutex_unlock(&server->lock);
}

/* Restricts a thread that answers requests, if the process could not be restricted at its start
 * because the service did not answer then. */
static void confine_thread(struct server *server)
{
    static _Thread_local bool is_confined;
    char products[PATH_MAX];
    struct pb_err err = {0};
    if (server->confined_to[0] != '\0' || is_confined)
        return;
    if (pb_web_upstream_known_products(server->upstream, products))
        is_confined = confine(server, products, &err) >= 0;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request)
{
    (void)version;
    (void)upload;
    (void)upload_bytes;
    if (*request == NULL) { /* only the headers were read */
        *request = user;
        set_busy(user, connection, true);
        confine_thread(user);
        return refuse(user, connection, path, method);
    }
    return answer(user, connection, path, method);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
    (void)request;
    (void)code;
    set_busy(user, connection, false);
}

/* Leaves escapes as they are. */
static size_t plain_path(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user;
    (void)connection;
    return strlen(text);
}

static void on_message(void *user, const char *format, va_list args)
{
    char text[400];
    (void)user;
    (void)vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    pb_log(PB_LOG_DEBUG, "libmicrohttpd: %s", text);
}

/* --- limits of connections --- */

/* Ends the silent connections that are older; returns their number. Call with the lock. */
static size_t end_silent(struct server *server, int64_t older_ms, size_t most)
{
    struct peer *peer;
    size_t n = 0;
    TAILQ_FOREACH(peer, &server->peers, all)
    {
        if (n == most)
            break;
        if (peer->busy || peer->ended || pb_clock_mono_ms() - peer->since_ms < older_ms)
            continue;
        (void)shutdown(peer->fd, SHUT_RDWR);
        peer->ended = true;
        server->n_ended++;
        n++;
    }
    return n;
}

/* Ends connections that send no request for too long. With too many connections the first silent
 * ones end at once. Call with the lock. */
static void sweep(struct server *server)
{
    (void)end_silent(server, REQUEST_MS, SIZE_MAX);
    const size_t open = server->n_peers - server->n_ended;
    if (open > CONNECTIONS_MANY)
        (void)end_silent(server, 0, open - CONNECTIONS_MANY);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = user;
    (void)pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct peer *peer = calloc(1, sizeof *peer);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (peer != NULL && info != NULL) {
            peer->fd = info->connect_fd;
            peer->since_ms = pb_clock_mono_ms();
            TAILQ_INSERT_TAIL(&server->peers, peer, all);
            server->n_peers++;
        } else {
            free(peer);
            peer = NULL;
        }
        *context = peer;
        sweep(server);
    } else if (*context != NULL) {
        struct peer *peer = *context;
        server->n_ended -= peer->ended;
        server->n_peers--;
        TAILQ_REMOVE(&server->peers, peer, all);
        free(*context);
        *context = NULL;
    }
    (void)pthread_mutex_unlock(&server->lock);
}

/* --- start and stop --- */

/* Text of the files of TLS; NULL without it. */
struct tls {
    char *certificate;
    struct pb_secret key;
};

static int read_certificate(const char *path, char **out, struct pb_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = calloc(1, TLS_BYTES_MAX + 1);
    const ssize_t n = fd >= 0 && text != NULL ? read(fd, text, TLS_BYTES_MAX + 1) : -1;
    const int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (n > 0 && n <= TLS_BYTES_MAX) {
        *out = text;
        return 0;
    }
    free(text);
    return pb_fail(err, PB_E_USAGE, "--certificate %s: %s", path,
                   n < 0 ? strerror(error) : "it is empty, or has more than 64 KiB");
}

static struct MHD_Daemon *start_daemon(struct server *server, int fd, struct tls *tls)
{
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem with_tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate},
                                        {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key.text},
                                        {MHD_OPTION_END, 0, NULL}};
    const bool is_tls = tls->certificate != NULL;
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG | (is_tls ? MHD_USE_TLS : 0u),
        0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_S, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, MHD_OPTION_UNESCAPE_CALLBACK, plain_path,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        is_tls ? with_tls : none, MHD_OPTION_END);
}

/* Waits for the signal to stop. Returns its number. */
static int wait_for_end(struct server *server, const sigset_t *signals)
{
    const struct timespec second = {.tv_sec = 1};
    int number;
    while ((number = sigtimedwait(signals, NULL, &second)) < 0) {
        (void)pthread_mutex_lock(&server->lock);
        sweep(server);
        (void)pthread_mutex_unlock(&server->lock);
        pb_log_flush();
    }
    return number;
}

/* Serves until a signal. The daemon has a descriptor of its own, which it closes. */
static int serve(struct server *server, const struct pb_web_listener *listener, struct tls *tls,
                 const sigset_t *signals)
{
    char text[200];
    const int fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 3);
    server->daemon = fd >= 0 ? start_daemon(server, fd, tls) : NULL;
    if (server->daemon == NULL) {
        if (fd >= 0)
            (void)close(fd);
        pb_log(PB_LOG_ERROR, "cannot start: no memory, no threads, or a wrong certificate or key");
        return EXIT_BAD;
    }
    (void)snprintf(text, sizeof text, "serves %s", listener->shown);
    pb_log(PB_LOG_NOTICE, "%s", text);
    pb_notify_ready(text);
    const int number = wait_for_end(server, signals);
    pb_log(PB_LOG_NOTICE, "stopping: signal %d", number);
    pb_notify_stopping();
    pb_web_events_end(server->events); /* streams end, and with them their connections */
    pb_web_upstream_end(server->upstream);
    MHD_stop_daemon(server->daemon);
    return EXIT_OK;
}

/* Checks options that depend on each other, and reads the files of TLS. */
static int prepare(const struct pb_web_options *options, struct tls *tls, struct pb_err *err)
{
    const struct pb_web_guard *guard = &options->guard;
    const bool is_unix = strncmp(options->listen, PB_WEB_UNIX, sizeof PB_WEB_UNIX - 1) == 0;
    if ((options->certificate == NULL) != (options->key == NULL))
        return pb_fail(err, PB_E_USAGE, "--certificate and --key need each other");
    if (options->certificate != NULL && is_unix)
        return pb_fail(err, PB_E_USAGE, "a Unix socket has no TLS; the proxy before it has");
    if (guard->user_header != NULL && !is_unix)
        return pb_fail(err, PB_E_USAGE,
                       "--user-header needs --listen unix:/PATH: other clients than the proxy "
                       "could send the header");
    if (guard->token_file != NULL && !is_unix && options->certificate == NULL)
        return pb_fail(err, PB_E_USAGE,
                       "--token-file needs --certificate and --key, or --listen unix:/PATH for a "
                       "proxy: tokens must be encrypted");
    int rc = guard->token_file ? pb_web_guard_check(guard, err) : 0;
    if (rc >= 0 && options->certificate != NULL)
        rc = read_certificate(options->certificate, &tls->certificate, err);
    return rc >= 0 && options->key != NULL ? pb_secret_read(options->key, &tls->key, err) : rc;
}

/* Makes what requests need, and serves. */
static int run(struct server *server, const struct pb_web_listener *listener, struct tls *tls,
               const sigset_t *signals)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int rc = EXIT_BAD;
    TAILQ_INIT(&server->peers);
    (void)pthread_mutex_init(&server->lock, NULL);
    server->upstream = pb_web_upstream_create(server->options->socket);
    server->ring = pb_web_ring_create(cores > 0 ? (unsigned)cores : 1);
    server->catalog = pb_web_catalog_create();
    if (server->upstream != NULL)
        confine_process(server);
    if (server->upstream != NULL && server->ring != NULL && server->catalog != NULL &&
        pb_web_events_start(server->upstream, server->ring, server->options->socket,
                            &server->events) == 0)
        rc = serve(server, listener, tls, signals);
    else
        pb_log(PB_LOG_ERROR, "cannot start: no memory, or no threads");
    pb_web_events_stop(server->events);
    pb_web_catalog_destroy(server->catalog);
    pb_web_ring_destroy(server->ring);
    pb_web_upstream_destroy(server->upstream);
    (void)pthread_mutex_destroy(&server->lock);
    return rc;
}

int pb_web_run(const struct pb_web_options *options)
{
    sigset_t signals;
    struct pb_err err = {0};
    struct pb_web_listener listener;
    struct tls tls = {.certificate = NULL};
    struct server server = {.options = options};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX, 2); /* many threads that wait, and few that work */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* applies to all threads */
    int rc = EXIT_BAD;
    if (prepare(options, &tls, &err) < 0 ||
        pb_web_listener_open(options->listen, tls.certificate != NULL, &err, &listener) != 0) {
        pb_log(PB_LOG_ERROR, "%s", err.msg);
        rc = err.code == PB_E_USAGE || err.code == PB_E_NOTIFY_SECRET ? EXIT_CONF : EXIT_BAD;
    } else {
        rc = run(&server, &listener, &tls, &signals);
        pb_web_listener_close(&listener);
    }
    free(tls.certificate);
    pb_secret_wipe(&tls.key);
    return rc;
}
