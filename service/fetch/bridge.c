/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The main thread waits for signals; two threads accept connections, and each connection has a
 * thread of its own. */
#include "service/fetch/bridge.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/base/log.h"
#include "service/base/peer.h"
#include "service/base/socket_bind.h"
#include "service/confine/confine.h"
#include "service/daemon/notify.h"
#include "service/fetch/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    EXIT_OK = 0,
    EXIT_BAD = 1,
    EXIT_CONF = 2,
    STREAMS_MAX = 256,     /* limit for workers, and the same limit for other nodes */
    NODE_STREAMS_MAX = 64, /* limit of one node, so that other nodes find a place */
    LINE_BYTES = 4096,
    CONNECT_MS = 5000,
    HELLO_MS = 10000,
    LINGER_MS = 30000, /* without a byte, after one side has ended */
    END_MS = 120000,   /* for the rest of the bytes, after one side has ended */
    SILENT_S = 30,     /* unanswered TCP for this long is a lost connection */
    STACK_BYTES = 512 << 10
};

struct bridge {
    const struct pb_config *config;
    char service[108]; /* socket of pushbroomd for guests */
    struct pb_socket_bind local;
    int tcp;
    atomic_int n_streams[2];                    /* streams of workers; streams of other nodes */
    pthread_mutex_t lock;                       /* protects peers */
    char peers[STREAMS_MAX][PB_TLS_NAME_BYTES]; /* other nodes with streams; "" = free entry */
};

struct stream {
    struct bridge *bridge;
    int fd;
    bool is_remote; /* the connection is of another node */
};

/* --- sockets ---------------------------------------------------------------------------------- */

static void set_nonblocking(int fd, bool on)
{
    const int flags = fcntl(fd, F_GETFL);
    (void)fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

/* Notices a machine that is gone. */
static void watch_line(int fd)
{
    const int on = 1, idle = SILENT_S / 3, count = 3, most_ms = SILENT_S * 1000;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Splits HOST:PORT; an IPv6 address is in brackets. */
static bool split(const char *text, char host[256], char port[8])
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || strlen(colon + 1) >= 8 || colon - text >= 256)
        return false;
    const bool bracketed = text[0] == '[' && colon[-1] == ']';
    (void)snprintf(host, 256, "%.*s", (int)(colon - text) - 2 * bracketed, text + bracketed);
    (void)snprintf(port, 8, "%s", colon + 1);
    return true;
}

static int dial_one(const struct addrinfo *info)
{
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t bytes = sizeof error;
    if (fd < 0)
        return -errno;
    if (connect(fd, info->ai_addr, info->ai_addrlen) != 0 && errno == EINPROGRESS) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (poll(&ready, 1, CONNECT_MS) != 1)
            error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
            error = errno;
    } else {
        error = errno;
    }
    if (error != 0) {
        (void)close(fd);
        return -error;
    }
    set_nonblocking(fd, false);
    watch_line(fd);
    return fd;
}

static int dial(const char *address, struct pb_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[256], port[8];
    if (!split(address, host, port))
        return pb_fail(err, PB_E_INPUT_FETCH, "'%.100s' is no address", address);
    const int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return pb_fail(err, PB_E_INPUT_FETCH, "%s: %s", address, gai_strerror(rc));
    int fd = -EHOSTUNREACH;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = dial_one(at);
    freeaddrinfo(found);
    return fd >= 0
               ? fd
               : pb_fail(err, PB_E_INPUT_FETCH, "cannot connect to %s: %s", address, strerror(-fd));
}

static int dial_service(const struct bridge *bridge, struct pb_err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", bridge->service);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name) == 0)
        return fd;
    (void)pb_fail(err, PB_E_INPUT_FETCH, "its pushbroomd does not answer: %s", strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return -ECONNREFUSED;
}

/* --- one stream ------------------------------------------------------------------------------- */

/* Bytes of one direction. */
struct half {
    char bytes[65536];
    size_t at, n;
    bool ended;  /* the source has no more bytes */
    bool passed; /* and the other side knows that */
};

struct pump {
    struct pb_tls *tls;
    int net, local;
    struct half in, out; /* in: from the network */
    bool is_deaf;        /* the local side is gone; its bytes are dropped */
};

/* The four steps return false if the stream is broken. */
static bool read_net(struct pump *pump)
{
    struct half *in = &pump->in;
    const ssize_t n = pb_tls_receive(pump->tls, in->bytes, sizeof in->bytes);
    if (n == PB_TLS_AGAIN)
        return true;
    in->at = 0;
    in->n = n > 0 ? (size_t)n : 0;
    in->ended = n == 0;
    return n >= 0;
}

static void write_local(struct pump *pump)
{
    struct half *in = &pump->in;
    const ssize_t n =
        pump->is_deaf ? (ssize_t)in->n : send(pump->local, in->bytes + in->at, in->n, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    pump->is_deaf = pump->is_deaf || n < 0;
    in->at += n > 0 ? (size_t)n : 0;
    in->n -= n > 0 ? (size_t)n : in->n;
}

static void read_local(struct pump *pump)
{
    struct half *out = &pump->out;
    const ssize_t n = recv(pump->local, out->bytes, sizeof out->bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    out->at = 0;
    out->n = n > 0 ? (size_t)n : 0;
    out->ended = n <= 0;
}

static bool write_net(struct pump *pump)
{
    struct half *out = &pump->out;
    const size_t most = out->n < 16384 ? out->n : 16384;
    const ssize_t n = pb_tls_send(pump->tls, out->bytes + out->at, most);
    if (n == PB_TLS_AGAIN)
        return true;
    out->at += n > 0 ? (size_t)n : 0;
    out->n -= n > 0 ? (size_t)n : 0;
    return n >= 0;
}

/* Passes the ends of the sources on. */
static void pass_ends(struct pump *pump)
{
    if (pump->out.ended && pump->out.n == 0 && !pump->out.passed) {
        pb_tls_end(pump->tls);
        pump->out.passed = true;
    }
    if (pump->in.ended && pump->in.n == 0 && !pump->in.passed) {
        (void)shutdown(pump->local, SHUT_WR);
        pump->in.passed = true;
    }
}

static void run_pump(struct pump *pump)
{
    set_nonblocking(pump->net, true);
    set_nonblocking(pump->local, true);
    int64_t until_ms = INT64_MAX;
    for (bool good = true; good && !(pump->in.passed && pump->out.passed);) {
        if (until_ms == INT64_MAX && (pump->in.ended || pump->out.ended))
            until_ms = pb_clock_mono_ms() + END_MS;
        if (pb_clock_mono_ms() >= until_ms)
            return; /* the other side takes its bytes too slowly */
        const bool reads = pump->in.n == 0 && !pump->in.ended;
        const bool half = pump->in.ended || pump->out.ended;
        struct pollfd ready[2] = {
            {.fd = pump->net,
             .events = (short)((reads ? POLLIN : 0) | (pump->out.n > 0 ? POLLOUT : 0))},
            {.fd = pump->local,
             .events = (short)((pump->out.n == 0 && !pump->out.ended ? POLLIN : 0) |
                               (pump->in.n > 0 ? POLLOUT : 0))}};
        for (int i = 0; i < 2; i++)
            if (ready[i].events == 0)
                ready[i].fd = -1; /* an end that was seen would wake it again */
        const bool more = reads && pb_tls_has_more(pump->tls);
        if (poll(ready, 2, more ? 0 : half ? LINGER_MS : -1) == 0 && !more)
            return;
        if (more || (reads && ready[0].revents != 0))
            good = read_net(pump);
        if (pump->in.n > 0)
            write_local(pump);
        if (pump->out.n == 0 && !pump->out.ended && ready[1].revents != 0)
            read_local(pump);
        if (good && pump->out.n > 0)
            good = write_net(pump);
        pass_ends(pump);
    }
}

/* Reads the first line from the source: 1, and *io_n bytes of which the line has *out_line. */
static bool read_line(struct pump *pump, bool from_net, struct half *half, size_t *out_line)
{
    const int64_t until_ms = pb_clock_mono_ms() + HELLO_MS;
    while (half->n < LINE_BYTES) {
        struct pollfd ready = {.fd = from_net ? pump->net : pump->local, .events = POLLIN};
        const int64_t left = until_ms - pb_clock_mono_ms();
        if (left <= 0 ||
            (!(from_net && pb_tls_has_more(pump->tls)) && poll(&ready, 1, (int)left) <= 0))
            return false;
        char *to = half->bytes + half->n;
        const size_t room = sizeof half->bytes - half->n;
        const ssize_t n =
            from_net ? pb_tls_receive(pump->tls, to, room) : recv(pump->local, to, room, 0);
        if (n == PB_TLS_AGAIN && from_net)
            continue;
        if (n <= 0)
            return false;
        half->n += (size_t)n;
        const char *newline = memchr(half->bytes, '\n', half->n);
        if (newline != NULL) {
            *out_line = (size_t)(newline - half->bytes) + 1;
            return true;
        }
    }
    return false;
}

static char *failure(const struct pb_err *err)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "failed");
    pb_json_object(json, "error");
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", err->msg);
    pb_json_end(json);
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    char *line = NULL;
    if (text != NULL && asprintf(&line, "%s\n", text) < 0)
        line = NULL;
    pb_json_destroy(json);
    return line;
}

/* A worker of this machine wants a stream to another node. */
static void serve_local(struct bridge *bridge, struct pump *pump)
{
    struct pb_json_value *hello = NULL;
    struct pb_err err = {0};
    size_t line = 0;
    if (!read_line(pump, false, &pump->out, &line) ||
        pb_json_parse(pump->out.bytes, line, LINE_BYTES, &hello) != 0)
        return;
    const char *node = pb_json_get_text(hello, "node"),
               *address = pb_json_get_text(hello, "address");
    pump->net = node != NULL && address != NULL
                    ? dial(address, &err)
                    : pb_fail(&err, PB_E_SERVICE_PROTOCOL, "a stream without a node");
    if (pump->net >= 0 &&
        pb_tls_open(&bridge->config->service.fetch, pump->net, node, &err, &pump->tls) == 0) {
        run_pump(pump);
    } else {
        char *text = failure(&err);
        pb_log(PB_LOG_WARNING, "node %.63s: %s", node != NULL ? node : "?", err.msg);
        if (text != NULL)
            (void)send(pump->local, text, strlen(text), MSG_NOSIGNAL);
        free(text);
    }
    pb_json_release(hello);
}

/* Replaces the first line by one with the name of the other node. */
static bool name_sender(struct pump *pump, size_t line)
{
    struct half *in = &pump->in;
    struct pb_json_value *hello = NULL;
    int64_t epoch = 0;
    char text[LINE_BYTES];
    const int rc = pb_json_parse(in->bytes, line, LINE_BYTES, &hello);
    const char *job = rc == 0 ? pb_json_get_text(hello, "job") : NULL;
    struct pb_json *json = pb_json_create(false);
    bool good = job != NULL && strlen(job) < 64 && pb_json_get_int(hello, "epoch", &epoch) == 0;
    pb_json_object(json, NULL);
    pb_json_string(json, "job", good ? job : "");
    pb_json_int(json, "epoch", epoch);
    pb_json_string(json, "node", pb_tls_peer(pump->tls));
    pb_json_end(json);
    const char *made = pb_json_text(json, NULL);
    const int n = snprintf(text, sizeof text, "%s\n", made != NULL ? made : "");
    const size_t rest = in->n - line;
    /* otherwise the service would read the name that the sender gives itself */
    good = good && n > 1 && (size_t)n < sizeof text && (size_t)n + rest <= sizeof in->bytes;
    if (good) {
        (void)memmove(in->bytes + n, in->bytes + line, rest);
        (void)memcpy(in->bytes, text, (size_t)n);
        in->n = (size_t)n + rest;
    }
    pb_json_destroy(json);
    pb_json_release(hello);
    return good;
}

static void send_failure(struct pump *pump, const struct pb_err *err)
{
    char *text = failure(err);
    if (text != NULL)
        (void)pb_tls_send(pump->tls, text, strlen(text));
    pb_tls_end(pump->tls);
    free(text);
}

static void carry_remote(const struct bridge *bridge, struct pump *pump)
{
    struct pb_err err = {0};
    size_t line = 0;
    if (!read_line(pump, true, &pump->in, &line)) {
        pb_log(PB_LOG_WARNING,
               "node %s connected and sent no request for %d s; look at pushbroom-fetch there",
               pb_tls_peer(pump->tls), HELLO_MS / 1000);
        return;
    }
    if (!name_sender(pump, line))
        return;
    pump->local = dial_service(bridge, &err);
    if (pump->local >= 0)
        run_pump(pump);
    else
        send_failure(pump, &err);
}

/* Reserves an entry for a stream of the node. Returns its number, or -1 at the limit of a node. */
static int take_peer(struct bridge *bridge, const char *node)
{
    int n = 0, free_entry = -1;
    (void)pthread_mutex_lock(&bridge->lock);
    for (int i = 0; i < STREAMS_MAX; i++) {
        n += strcmp(bridge->peers[i], node) == 0;
        if (bridge->peers[i][0] == '\0')
            free_entry = i;
    }
    if (n >= NODE_STREAMS_MAX)
        free_entry = -1;
    if (free_entry >= 0)
        (void)snprintf(bridge->peers[free_entry], sizeof bridge->peers[0], "%s", node);
    (void)pthread_mutex_unlock(&bridge->lock);
    return free_entry;
}

static void put_peer(struct bridge *bridge, int entry)
{
    (void)pthread_mutex_lock(&bridge->lock);
    bridge->peers[entry][0] = '\0';
    (void)pthread_mutex_unlock(&bridge->lock);
}

/* Serves a connection of another node, which requests a stream to the service. */
static void serve_remote(struct bridge *bridge, struct pump *pump)
{
    struct pb_err err = {0};
    watch_line(pump->net);
    if (pb_tls_open(&bridge->config->service.fetch, pump->net, NULL, &err, &pump->tls) != 0) {
        pb_log(PB_LOG_WARNING, "a connection was refused: %s", err.msg);
        return;
    }
    set_nonblocking(pump->net, true); /* a part of a record ends with the time of the line */
    const int entry = take_peer(bridge, pb_tls_peer(pump->tls));
    if (entry >= 0) {
        carry_remote(bridge, pump);
        put_peer(bridge, entry);
        return;
    }
    (void)pb_fail(&err, PB_E_INPUT_FETCH,
                  "node %s has %d connections here, the most of a node; restart its "
                  "pushbroom-fetch, or set its service.parallel_jobs to less",
                  pb_tls_peer(pump->tls), NODE_STREAMS_MAX);
    pb_log(PB_LOG_WARNING, "%s", err.msg);
    send_failure(pump, &err);
}

static void *serve(void *user)
{
    struct stream stream = *(struct stream *)user;
    struct pump *pump = calloc(1, sizeof *pump);
    free(user);
    (void)pthread_setname_np(pthread_self(), "pb-stream");
    if (pump != NULL) {
        pump->net = stream.is_remote ? stream.fd : -1;
        pump->local = stream.is_remote ? -1 : stream.fd;
        (stream.is_remote ? serve_remote : serve_local)(stream.bridge, pump);
        pb_tls_close(pump->tls);
        if (pump->net >= 0)
            (void)close(pump->net);
        if (pump->local >= 0)
            (void)close(pump->local);
    } else {
        (void)close(stream.fd);
    }
    free(pump);
    atomic_fetch_sub(&stream.bridge->n_streams[stream.is_remote], 1);
    return NULL;
}

/* --- accepting -------------------------------------------------------------------------------- */

/* Root, this user, and the user of the service, who has made its socket. */
static bool is_allowed(const struct bridge *bridge, int fd)
{
    struct pb_peer peer;
    struct stat st;
    if (pb_peer_of(fd, &peer) != 0)
        return false;
    return peer.uid == 0 || peer.uid == (int64_t)geteuid() ||
           (stat(bridge->service, &st) == 0 && peer.uid == (int64_t)st.st_uid);
}

static void start_stream(struct bridge *bridge, int fd, bool is_remote)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct stream *stream = NULL;
    if (atomic_fetch_add(&bridge->n_streams[is_remote], 1) < STREAMS_MAX)
        stream = malloc(sizeof *stream);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (stream != NULL)
        *stream = (struct stream){bridge, fd, is_remote};
    if (stream == NULL || pthread_create(&thread, &attributes, serve, stream) != 0) {
        free(stream);
        (void)close(fd);
        atomic_fetch_sub(&bridge->n_streams[is_remote], 1);
    }
    (void)pthread_attr_destroy(&attributes);
}

static void accept_all(struct bridge *bridge, int listener, bool is_remote)
{
    for (;;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        int64_t again_ms = 0;
        (void)poll(&ready, 1, -1);
        const int fd = pb_socket_bind_accept(listener, 0, &again_ms);
        if (fd >= 0 && !is_remote && !is_allowed(bridge, fd))
            (void)close(fd);
        else if (fd >= 0)
            start_stream(bridge, fd, is_remote);
        if (again_ms == 0)
            continue;
        pb_log(PB_LOG_WARNING, "cannot accept a connection: %s", strerror(-fd));
        (void)poll(NULL, 0, (int)(again_ms - pb_clock_mono_ms()));
    }
}

static void *accept_remote(void *user)
{
    struct bridge *bridge = user;
    accept_all(bridge, bridge->tcp, true);
    return NULL;
}

static void *accept_local(void *user)
{
    struct bridge *bridge = user;
    accept_all(bridge, bridge->local.fd, false);
    return NULL;
}

static int listen_tcp(const char *address, struct pb_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256], port[8];
    const int on = 1;
    int fd = -1;
    if (!split(address, host, port) || getaddrinfo(host, port, &hints, &found) != 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "service.fetch.listen: '%s' is no address", address);
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
                        bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 64) != 0)) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd >= 0 ? fd
                   : pb_fail(err, PB_E_SYSTEM, "cannot listen at %s: %s", address, strerror(errno));
}

/* --- the process ------------------------------------------------------------------------------ */

static struct pb_config *load(const char *path)
{
    struct pb_config *config = NULL;
    struct pb_err_list errors;
    char text[1200];
    if (pb_config_load(path, &pb_products, &errors, &config) == 0)
        return config;
    for (size_t i = 0; i < errors.n; i++) {
        pb_err_text(&errors.err[i], text, sizeof text);
        pb_log(PB_LOG_ERROR, "%s", text);
    }
    return NULL;
}

static int start(struct bridge *bridge, struct pb_err *err)
{
    const struct pb_service_config *service = &bridge->config->service;
    pthread_t threads[2];
    pb_fetch_guests_socket(service->socket, bridge->service);
    bridge->local.fd = -1;
    bridge->tcp = listen_tcp(service->fetch.listen, err);
    if (bridge->tcp < 0)
        return bridge->tcp;
    const int rc = pb_socket_bind_open(service->fetch.socket, 0666, err, &bridge->local);
    if (rc != 0)
        return rc;
    if (pthread_create(&threads[0], NULL, accept_remote, bridge) != 0 ||
        pthread_create(&threads[1], NULL, accept_local, bridge) != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot start a thread");
    return 0;
}

int pb_fetch_run(const struct pb_fetch_options *options)
{
    static struct bridge bridge = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct pb_err err = {0};
    sigset_t signals;
    int number = 0;
    (void)signal(SIGPIPE, SIG_IGN);
    pb_confine_hide(); /* its memory has the key */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* applies to all threads */
    bridge.config = load(options->config);
    if (bridge.config == NULL)
        return EXIT_CONF;
    if (!bridge.config->service.has_fetch) {
        pb_log(PB_LOG_ERROR, "%s has no service.fetch", options->config);
        return EXIT_CONF;
    }
    if (start(&bridge, &err) != 0) {
        pb_log(PB_LOG_ERROR, "%s", err.msg);
        return err.code == PB_E_CONFIG_VALUE ? EXIT_CONF : EXIT_BAD;
    }
    pb_log(PB_LOG_NOTICE, "pushbroom-fetch %s listens at %s", PB_VERSION,
           bridge.config->service.fetch.listen);
    pb_notify_ready("carries files between nodes");
    (void)sigwait(&signals, &number);
    pb_log(PB_LOG_NOTICE, "stopping: signal %d", number);
    pb_notify_stopping();
    pb_socket_bind_close(bridge.config->service.fetch.socket, &bridge.local);
    pb_log_flush();
    _exit(EXIT_OK); /* streams end with the process */
}
