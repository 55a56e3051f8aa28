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
#include "service/web/events.h"
#include "service/web/files.h"
#include "service/web/page.h"
#include "service/web/request.h"
#include "service/web/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#define RECEIPT_MS       20000 /* until TCP confirms what was sent; the other end may have vanished */
#define STREAM_BLOCK     16384

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
    struct pb_web_events *events;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* peers */
    struct peers peers;
    size_t n_peers, n_ended;
    atomic_uint_fast64_t requests;
};

/* --- responses --- */

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Headers of all responses: the page may load nothing from elsewhere, and no other page may use or
 * frame what is here. Files are data: nothing in them runs. */
static void add_common(struct MHD_Response *response, const char *media_type, bool is_file)
{
    add(response, "Content-Type", media_type);
    add(response, "Content-Security-Policy",
        is_file ? "default-src 'none'; sandbox; frame-ancestors 'none'"
                : "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
                  "frame-ancestors 'none'");
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

/* Sends a text (malloc'd, taken). */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
                                 const char *media_type, char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    add_common(response, media_type, false);
    add(response, "Cache-Control", "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        add(response, "Allow", "GET, HEAD");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        add(response, "Retry-After", "2");
    return send_response(connection, status, response);
}

static enum MHD_Result send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *code, const char *message, const char *hint)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_object(json, "error");
    pb_json_string(json, "code", code);
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", hint);
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *copy = text ? strdup(text) : NULL;
    pb_json_destroy(json);
    return copy ? send_text(connection, status, "application/json", copy) : MHD_NO;
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
                                         const char *media_type, bool is_file)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, media_type, is_file);
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

static enum MHD_Result answer_asset(struct MHD_Connection *connection, const char *path)
{
    const struct pb_web_asset *asset = pb_web_asset_find(path);
    const size_t bytes = (size_t)(asset->end - asset->content);
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    char tag[32];
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ (unsigned char)asset->content[i]) * 1099511628211u;
    (void)snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", sum);
    if (is_known(connection, tag))
        return send_not_modified(connection, tag, asset->media_type, false);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        bytes, (void *)(uintptr_t)asset->content, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    add_common(response, asset->media_type, false);
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
    add_common(response, file->media_type, true);
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

static enum MHD_Result answer_product(struct server *server, struct MHD_Connection *connection,
                                      const char *path)
{
    struct pb_err err = {0};
    struct pb_web_file file;
    char products[PATH_MAX];
    if (pb_web_upstream_products(server->upstream, products, &err) != 0)
        return send_failure(connection, &err);
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
        return send_not_modified(connection, file.tag, file.media_type, true);
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
    add_common(response, "text/event-stream", false);
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
        text = pb_web_upstream_info(server->upstream, &err);
    } else if (route->place == PB_WEB_JOB) {
        text = pb_web_upstream_job(server->upstream, route->name, &err);
    } else if (route->place == PB_WEB_STEPS) {
        text = pb_web_upstream_steps(server->upstream, route->name, &err);
    } else if (route->place == PB_WEB_METRICS) {
        media_type = "text/plain; version=0.0.4; charset=utf-8";
        text = add_own_metrics(server, pb_web_upstream_metrics(server->upstream, &err));
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

/* --- requests --- */

/* Answers a request that is refused by its headers. */
static enum MHD_Result refuse(struct server *server, struct MHD_Connection *connection,
                              const char *method)
{
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    (void)atomic_fetch_add(&server->requests, 1);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "refused",
                          "only GET and HEAD are possible here", NULL);
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
        return answer_asset(connection, route.name);
    case PB_WEB_EVENTS:
        return answer_events(server, connection);
    case PB_WEB_PRODUCT:
        return answer_product(server, connection, route.name);
    case PB_WEB_INFO:
    case PB_WEB_JOBS:
    case PB_WEB_JOB:
    case PB_WEB_STEPS:
    case PB_WEB_METRICS:
    case PB_WEB_GRAPHS:
        return answer_text(server, connection, &route);
    case PB_WEB_NOT_FOUND:
        break;
    }
    return send_not_found(connection);
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
        return refuse(user, connection, method);
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

/* Opens the socket that listens. Returns it with its address as text, or negative errno; -EINVAL
 * for a malformed address. */
static int open_listener(const char *listen_at, char out_shown[128])
{
    char host[64], port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE},
                    *found = NULL;
    const char *colon = strrchr(listen_at, ':');
    size_t n = colon ? (size_t)(colon - listen_at) : 0;
    const bool brackets = n >= 2 && listen_at[0] == '[' && listen_at[n - 1] == ']';
    if (n == 0 || n >= sizeof host || strlen(colon + 1) >= sizeof port)
        return -EINVAL;
    (void)snprintf(host, sizeof host, "%.*s", (int)(brackets ? n - 2 : n), listen_at + brackets);
    (void)snprintf(port, sizeof port, "%s", colon + 1);
    if (strspn(port, "0123456789") != strlen(port) || port[0] == '\0' || atoi(port) > 65535 ||
        getaddrinfo(host, port, &hints, &found) != 0)
        return -EINVAL;
    int rc = 0, on = 1, receipt_ms = RECEIPT_MS; /* connections inherit the latter */
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &receipt_ms, sizeof receipt_ms) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 256) != 0)
        rc = -errno;
    struct sockaddr_storage bound = {0};
    socklen_t n_bound = sizeof bound;
    if (rc == 0 && getsockname(fd, (struct sockaddr *)&bound, &n_bound) == 0 &&
        getnameinfo((struct sockaddr *)&bound, n_bound, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        (void)snprintf(out_shown, 128, strchr(host, ':') ? "http://[%s]:%s/" : "http://%s:%s/",
                       host, port);
    freeaddrinfo(found);
    if (rc != 0 && fd >= 0)
        (void)close(fd);
    return rc ? rc : fd;
}

static struct MHD_Daemon *start_daemon(struct server *server, int fd)
{
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_S, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, MHD_OPTION_UNESCAPE_CALLBACK, plain_path,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
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

static int serve(struct server *server, int fd, const char *shown, const sigset_t *signals)
{
    char text[200];
    server->daemon = start_daemon(server, fd);
    if (server->daemon == NULL) {
        (void)close(fd);
        pb_log(PB_LOG_ERROR, "cannot start: no memory, or no threads");
        return EXIT_BAD;
    }
    (void)snprintf(text, sizeof text, "serves %s", shown);
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

int pb_web_run(const struct pb_web_options *options)
{
    sigset_t signals;
    char shown[128] = "";
    struct server server = {.options = options};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)mallopt(M_ARENA_MAX, 2); /* many threads that wait, and few that work */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* applies to all threads */
    const int fd = open_listener(options->listen, shown);
    if (fd < 0) {
        pb_log(PB_LOG_ERROR, "cannot listen on %s: %s", options->listen,
               fd == -EINVAL ? "not ADDRESS:PORT, such as " PB_WEB_LISTEN : strerror(-fd));
        return fd == -EINVAL ? EXIT_CONF : EXIT_BAD;
    }
    TAILQ_INIT(&server.peers);
    (void)pthread_mutex_init(&server.lock, NULL);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    server.upstream = pb_web_upstream_create(options->socket);
    server.ring = pb_web_ring_create(cores > 0 ? (unsigned)cores : 1);
    int rc = EXIT_BAD;
    if (server.upstream != NULL && server.ring != NULL &&
        pb_web_events_start(server.upstream, server.ring, options->socket, &server.events) == 0) {
        rc = serve(&server, fd, shown, &signals);
    } else {
        (void)close(fd);
        pb_log(PB_LOG_ERROR, "cannot start: no memory, or no threads");
    }
    pb_web_events_stop(server.events);
    pb_web_ring_destroy(server.ring);
    pb_web_upstream_destroy(server.upstream);
    (void)pthread_mutex_destroy(&server.lock);
    return rc;
}
