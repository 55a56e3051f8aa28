/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/stream/requests.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/base/socket_bind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_MODE   0666 /* all users may connect; `admit` decides by the request */
#define REQUESTS_USER 4    /* connections of one user whose request is not complete */
#define REQUEST_MS    5000
#define NO_FILES_MS   100 /* longest poll while there are no free descriptors */

struct request {
    int fd; /* -1 = free */
    int64_t uid, end_ms;
    size_t n;
    char text[PB_STREAM_HANDSHAKE_BYTES];
};

struct pb_requests {
    struct pb_requests_options options;
    char *path;
    struct pb_socket_bind bound;
    struct request request[PB_REQUESTS_MAX];
    int64_t accept_at_ms; /* earliest time of the next accept, monotonic */
};

/* --- rights ----------------------------------------------------------------------------------- */

/* Compares in a time that depends on the lengths only. */
static bool is_equal(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    unsigned char differs = n != m || n == 0;
    for (size_t i = 0; i < n && i < m; i++)
        differs = (unsigned char)(differs | (a[i] ^ b[i]));
    return differs == 0;
}

/* Returns true if the first line of the file is the token. */
static bool has_token(const char *path, const char *token)
{
    char line[PB_HANDSHAKE_TOKEN_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (n < 0) {
        pb_log(PB_LOG_ERROR, "streams: cannot read the token %s: %s", path, strerror(errno));
        return false;
    }
    line[n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    return is_equal(line, token);
}

bool pb_requests_may_write(const struct pb_lines_config *lines, const struct pb_peer *peer,
                           const char *token)
{
    struct pb_admins writers = {.n = 0};
    for (size_t i = 0; i < lines->n_writers; i++)
        (void)pb_admins_add(&writers, lines->writers[i]);
    for (size_t i = 0; i < writers.n; i++)
        if (writers.uid[i] == peer->uid)
            return true;
    return lines->token != NULL && token[0] != '\0' && has_token(lines->token, token);
}

/* --- requests --------------------------------------------------------------------------------- */

static void refuse(const struct request *request, const char *code, const char *message)
{
    char answer[PB_STREAM_HANDSHAKE_BYTES];
    const size_t n = pb_handshake_refuse(code, message, answer);
    (void)send(request->fd, answer, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer(struct pb_requests *requests, struct request *request)
{
    char why[PB_HANDSHAKE_WHY_BYTES] = "";
    const char *code = requests->options.admit(requests->options.user, request->fd, request->text,
                                               request->n, why);
    if (code == NULL) {
        request->fd = -1; /* taken */
        return;
    }
    pb_log(PB_LOG_WARNING, "streams: a writer of user %lld is refused: %s", (long long)request->uid,
           why);
    refuse(request, code, why);
}

static void end_request(struct request *request)
{
    if (request->fd >= 0)
        (void)close(request->fd);
    request->fd = -1;
}

/* Reads a part of a request. */
static void read_request(struct pb_requests *requests, struct request *request)
{
    const ssize_t got = recv(request->fd, request->text + request->n,
                             sizeof request->text - request->n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    request->n += got > 0 ? (size_t)got : 0;
    const char *end = memchr(request->text, '\n', request->n);
    if (end != NULL) {
        request->n = (size_t)(end - request->text);
        answer(requests, request);
    } else if (got > 0 && request->n < sizeof request->text)
        return;
    else if (got > 0)
        refuse(request, "invalid", "the request is too long");
    end_request(request);
}

static size_t count_requests(const struct pb_requests *requests, int64_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < PB_REQUESTS_MAX; i++)
        n += requests->request[i].fd >= 0 && requests->request[i].uid == uid;
    return n;
}

static void take_connection(struct pb_requests *requests)
{
    struct pb_peer peer;
    const int fd =
        pb_socket_bind_accept(requests->bound.fd, SOCK_NONBLOCK, &requests->accept_at_ms);
    if (fd < 0 && fd != -EAGAIN)
        pb_log(PB_LOG_WARNING, "streams: cannot take a writer: %s", strerror(-fd));
    if (fd < 0)
        return;
    (void)pb_peer_of(fd, &peer);
    for (size_t i = 0; count_requests(requests, peer.uid) < REQUESTS_USER && i < PB_REQUESTS_MAX;
         i++) {
        struct request *request = &requests->request[i];
        if (request->fd >= 0)
            continue;
        request->fd = fd;
        request->uid = peer.uid;
        request->n = 0;
        request->end_ms = pb_clock_mono_ms() + REQUEST_MS;
        return;
    }
    (void)close(fd);
}

/* --- the socket ------------------------------------------------------------------------------- */

struct pb_requests *pb_requests_create(const struct pb_requests_options *options)
{
    struct pb_requests *requests = calloc(1, sizeof *requests);
    if (requests == NULL)
        return NULL;
    requests->options = *options;
    requests->bound.fd = -1;
    for (size_t i = 0; i < PB_REQUESTS_MAX; i++)
        requests->request[i].fd = -1;
    requests->path = strdup(options->path);
    if (requests->path != NULL)
        return requests;
    free(requests);
    return NULL;
}

int pb_requests_open(struct pb_requests *requests, struct pb_err *err)
{
    struct pb_socket_bind again;
    if (requests->bound.fd < 0)
        return pb_socket_bind_open(requests->path, SOCKET_MODE, err, &requests->bound);
    if (pb_socket_bind_is_there(requests->path, &requests->bound))
        return 0;
    const int rc = pb_socket_bind_again(requests->path, SOCKET_MODE, err, &again);
    if (rc == 0) {
        (void)close(requests->bound.fd);
        requests->bound = again;
    }
    return rc == -EEXIST
               ? pb_fail(err, PB_E_SYSTEM, "another file is at %s; move it away", requests->path)
               : rc;
}

int pb_requests_poll(const struct pb_requests *requests, struct pollfd fd[PB_REQUESTS_FDS],
                     int most_ms)
{
    const bool takes = pb_clock_mono_ms() >= requests->accept_at_ms;
    fd[PB_REQUESTS_MAX] = (struct pollfd){.fd = takes ? requests->bound.fd : -1, .events = POLLIN};
    for (size_t i = 0; i < PB_REQUESTS_MAX; i++)
        fd[i] = (struct pollfd){.fd = requests->request[i].fd, .events = POLLIN};
    return takes || most_ms < NO_FILES_MS ? most_ms : NO_FILES_MS;
}

void pb_requests_serve(struct pb_requests *requests, const struct pollfd fd[PB_REQUESTS_FDS])
{
    const int64_t now_ms = pb_clock_mono_ms();
    for (size_t i = 0; i < PB_REQUESTS_MAX; i++) {
        struct request *request = &requests->request[i];
        if (request->fd >= 0 && request->end_ms <= now_ms)
            end_request(request);
        else if (request->fd >= 0 && fd[i].revents != 0)
            read_request(requests, request);
    }
    if (fd[PB_REQUESTS_MAX].revents != 0)
        take_connection(requests);
}

void pb_requests_close(struct pb_requests *requests)
{
    pb_socket_bind_close(requests->path, &requests->bound);
    for (size_t i = 0; i < PB_REQUESTS_MAX; i++)
        end_request(&requests->request[i]);
}

void pb_requests_destroy(struct pb_requests *requests)
{
    if (requests != NULL)
        free(requests->path);
    free(requests);
}
