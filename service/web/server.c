/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The main thread waits for signals and ends connections that send no request. libmicrohttpd
 * decodes no escapes here (plain_path): a path is decoded once, by request.c. */
#include "service/web/server.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/confine/confine.h"
#include "service/daemon/notify.h"
#include "service/notify/secret.h"
#include "service/web/answers.h"
#include "service/web/catalog.h"
#include "service/web/events.h"
#include "service/web/files.h"
#include "service/web/listener.h"
#include "service/web/request.h"
#include "service/web/ring.h"
#include "service/web/upstream.h"

#include <errno.h>
#include <fcntl.h>
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
#define TLS_BYTES_MAX    65536 /* limit of the file of certificates */

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
    struct pb_web_site site;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* peers */
    struct peers peers;
    size_t n_peers, n_ended;
    atomic_flag is_warned; /* the log has why there is no confinement */
};

/* --- what the process may do --- */

/* Restricts the calling thread. Returns 1; 0: there is no Landlock; negative: a failure. The first
 * reason why it is not restricted is logged. */
static int confine(struct server *server, const char *products)
{
    const struct pb_web_options *options = server->site.options;
    const bool is_unix = strncmp(options->listen, PB_WEB_UNIX, sizeof PB_WEB_UNIX - 1) == 0;
    struct pb_err err = {0};
    const int rc =
        pb_web_files_confine(products, options->guard.token_file,
                             is_unix ? options->listen + sizeof PB_WEB_UNIX - 1 : NULL, &err);
    if (rc <= 0 && !atomic_flag_test_and_set(&server->is_warned)) {
        if (rc == 0)
            pb_log(PB_LOG_WARNING, "not confined to the products: no Landlock (%s)",
                   pb_landlock_reason(pb_landlock_abi()));
        else
            pb_log(PB_LOG_WARNING, "not confined to the products: %s", err.msg);
    }
    return rc;
}

/* Restricts the process before it has threads. Without the service the directory of products is
 * unknown: threads are restricted later. */
static void confine_process(struct server *server)
{
    char products[PATH_MAX];
    struct pb_err err = {0};
    if (pb_web_upstream_products(server->site.upstream, products, &err) != 0) {
        pb_log(PB_LOG_NOTICE, "not confined to the products yet: %s", err.msg);
    } else if (confine(server, products) > 0) {
        (void)snprintf(server->site.confined_to, sizeof server->site.confined_to, "%s", products);
        pb_log(PB_LOG_NOTICE, "reads files of %s only (Landlock)", products);
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

/* A request that is being received; libmicrohttpd keeps it. */
struct request {
    struct pb_web_body body;
};

/* Adds a part of the body. Returns false if it is too large, or without memory. */
static bool add_body(struct pb_web_body *body, const char *part, size_t bytes)
{
    if (bytes > PB_WEB_BODY_MAX - body->n)
        return false;
    char *larger = realloc(body->text, body->n + bytes);
    if (larger == NULL)
        return false;
    (void)memcpy(larger + body->n, part, bytes);
    body->text = larger;
    body->n += bytes;
    return true;
}

/* Restricts a thread that answers requests, if the process could not be restricted at its start
 * because the service did not answer then. */
static void confine_thread(struct server *server)
{
    static _Thread_local bool is_confined;
    char products[PATH_MAX];
    if (server->site.confined_to[0] != '\0' || is_confined)
        return;
    if (pb_web_upstream_known_products(server->site.upstream, products))
        is_confined = confine(server, products) >= 0;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request)
{
    (void)version;
    struct server *server = user;
    struct request *own = *request;
    if (own == NULL) { /* only the headers were read */
        *request = own = calloc(1, sizeof *own);
        /* The limit of time includes the receipt of a body. */
        set_busy(server, connection, pb_web_header(connection, "Content-Length") == NULL);
        confine_thread(server);
        return own ? pb_web_refuse(&server->site, connection, path, method) : MHD_NO;
    }
    if (*upload_bytes > 0) {
        const bool added = add_body(&own->body, upload, *upload_bytes);
        *upload_bytes = 0;
        return added ? MHD_YES : MHD_NO;
    }
    set_busy(server, connection, true);
    return pb_web_answer(&server->site, connection, path, method, &own->body);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    struct request *own = *request;
    if (own != NULL)
        free(own->body.text);
    free(own);
    *request = NULL;
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
    pb_web_events_end(server->site.events); /* streams end, and with them their connections */
    pb_web_upstream_end(server->site.upstream);
    MHD_stop_daemon(server->daemon);
    return EXIT_OK;
}

/* Checks options that depend on each other, and reads the files of TLS. */
static int prepare(const struct pb_web_options *options, struct tls *tls, struct pb_err *err)
{
    const struct pb_web_guard *guard = &options->guard;
    const bool is_unix = strncmp(options->listen, PB_WEB_UNIX, sizeof PB_WEB_UNIX - 1) == 0;
    const char *unix_path = is_unix ? options->listen + sizeof PB_WEB_UNIX - 1 : NULL;
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
    if (pb_web_files_in_root(guard->token_file) || pb_web_files_in_root(unix_path))
        return pb_fail(err, PB_E_USAGE,
                       "a file of tokens or a Unix socket in / would need the rights to all of /: "
                       "give it a directory");
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
    server->site.upstream = pb_web_upstream_create(server->site.options->socket);
    server->site.ring = pb_web_ring_create(cores > 0 ? (unsigned)cores : 1);
    server->site.catalog = pb_web_catalog_create(PB_WEB_ITEMS_MAX);
    if (server->site.upstream != NULL)
        confine_process(server);
    if (server->site.upstream != NULL && server->site.ring != NULL &&
        server->site.catalog != NULL &&
        pb_web_events_start(server->site.upstream, server->site.ring, server->site.catalog,
                            server->site.options->socket, &server->site.events) == 0)
        rc = serve(server, listener, tls, signals);
    else
        pb_log(PB_LOG_ERROR, "cannot start: no memory, or no threads");
    pb_web_events_stop(server->site.events);
    pb_web_catalog_destroy(server->site.catalog);
    pb_web_ring_destroy(server->site.ring);
    pb_web_upstream_destroy(server->site.upstream);
    (void)pthread_mutex_destroy(&server->lock);
    return rc;
}

int pb_web_run(const struct pb_web_options *options)
{
    sigset_t signals;
    struct pb_err err = {0};
    struct pb_web_listener listener;
    struct tls tls = {.certificate = NULL};
    struct server server = {.site.options = options, .is_warned = ATOMIC_FLAG_INIT};
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
