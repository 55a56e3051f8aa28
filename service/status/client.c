/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/client.h"

#include "config/base/json_writer.h"
#include "config/base/clock.h"
#include "service/base/group_advice.h"
#include "service/base/passed_fd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64 * 1024 * 1024)
#define EVENTS_MAX     1024 /* limit of events kept while a call waits for its reply */

struct pb_client {
    int fd;
    int pass_fd; /* descriptor for the next call; -1 if absent */
    struct sockaddr_un address;
    bool is_refused; /* the service has ended the connection with an error that has no id */
    int64_t timeout_ms, next_id;
    char *buffer;
    size_t n, room, searched;
    struct pb_json_value *events[EVENTS_MAX];
    size_t first_event, n_events;
    bool lost_events;
};

const char *pb_client_default_path(void)
{
    const char *path = getenv("PUSHBROOM_SOCKET");
    return path && *path ? path : "/run/pushbroom/status.sock";
}

static int unreachable(struct pb_err *err, const char *path, int error)
{
    struct stat st;
    if (error == EACCES && stat(path, &st) == 0)
        return pb_group_advice(err, path, &st);
    if (error == ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return pb_fail(err, PB_E_SERVICE_UNREACHABLE, "no service on %s: it is not a socket", path);
    if (error == ECONNREFUSED)
        return pb_fail(err, PB_E_SERVICE_UNREACHABLE,
                       "no service on %s: the socket is left over from a service that has ended",
                       path);
    return pb_fail(err, PB_E_SERVICE_UNREACHABLE, "no service on %s: %s", path, strerror(error));
}

/* Returns 1: ready, 0: the time is over, negative errno. deadline < 0: no limit. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms < 0 ? -1 : deadline_ms - pb_clock_mono_ms();
        struct pollfd watched = {.fd = fd, .events = events};
        if (deadline_ms >= 0 && left < 0)
            left = 0;
        int rc = poll(&watched, 1, left > 1000000 ? 1000000 : (int)left);
        if (rc > 0)
            return 1;
        if (rc < 0 && errno != EINTR)
            return -errno;
        if (deadline_ms >= 0 && pb_clock_mono_ms() >= deadline_ms)
            return 0;
    }
}

/* Opens the descriptor and connects it. */
static int connect_client(struct pb_client *client, struct pb_err *err)
{
    const struct sockaddr *address = (const struct sockaddr *)&client->address;
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = client->fd < 0 ? -errno : 0;
    int64_t deadline_ms = pb_clock_mono_ms() + client->timeout_ms;
    while (rc == 0 && connect(client->fd, address, sizeof client->address) != 0) {
        rc = -errno;
        /* EAGAIN: the service's queue of connections is full; there is no event to wait for. */
        if (rc == -EAGAIN && pb_clock_mono_ms() < deadline_ms) {
            (void)poll(NULL, 0, 20);
            rc = 0;
        }
    }
    return rc ? unreachable(err, client->address.sun_path, -rc) : 0;
}

/* Closes the descriptor and drops all that was received. */
static void disconnect(struct pb_client *client)
{
    for (size_t i = 0; i < client->n_events; i++)
        pb_json_release(client->events[(client->first_event + i) % EVENTS_MAX]);
    if (client->fd >= 0)
        (void)close(client->fd);
    client->fd = -1;
    client->n = client->searched = client->n_events = 0;
}

int pb_client_open(const char *path, int64_t timeout_ms, struct pb_err *err,
                   struct pb_client **out_client)
{
    struct pb_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    if (path == NULL)
        path = pb_client_default_path();
    client->address.sun_family = AF_UNIX;
    (void)snprintf(client->address.sun_path, sizeof client->address.sun_path, "%s", path);
    client->timeout_ms = timeout_ms;
    client->pass_fd = client->fd = -1;
    int rc = strlen(path) >= sizeof client->address.sun_path ? unreachable(err, path, ENAMETOOLONG)
                                                             : connect_client(client, err);
    if (rc == 0)
        *out_client = client;
    else
        pb_client_close(client);
    return rc;
}

int pb_client_reopen(struct pb_client *client, struct pb_err *err)
{
    if (!client->is_refused)
        return 0;
    disconnect(client);
    const int rc = connect_client(client, err);
    client->is_refused = rc < 0;
    return rc;
}

void pb_client_close(struct pb_client *client)
{
    if (client == NULL)
        return;
    disconnect(client);
    free(client->buffer);
    free(client);
}

void pb_client_hang_up(struct pb_client *client)
{
    (void)shutdown(client->fd, SHUT_RDWR);
}

static int lost(struct pb_err *err, const char *what, int error)
{
    return pb_fail(err, PB_E_SERVICE_UNREACHABLE, "the service %s: %s", what, strerror(error));
}

static int send_all(struct pb_client *client, const char *text, size_t bytes, int64_t deadline_ms,
                    struct pb_err *err)
{
    while (bytes > 0) {
        ssize_t n = send(client->fd, text, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            int rc = wait_for(client->fd, POLLOUT, deadline_ms);
            if (rc <= 0)
                return lost(err, "takes no request", rc ? -rc : ETIMEDOUT);
            continue;
        }
        if (n < 0 && errno != EINTR)
            return lost(err, "closed the connection", errno);
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Reads the next line as a value: 1, 0 if the time is over, negative errno. */
static int read_line(struct pb_client *client, int64_t deadline_ms, struct pb_err *err,
                     struct pb_json_value **out_value)
{
    for (;;) {
        char *end = client->n > client->searched ? memchr(client->buffer + client->searched, '\n',
                                                          client->n - client->searched)
                                                 : NULL;
        if (end != NULL) {
            size_t bytes = (size_t)(end - client->buffer);
            int rc = pb_json_parse(client->buffer, bytes, LINE_MAX_BYTES, out_value);
            client->n -= bytes + 1;
            client->searched = 0;
            memmove(client->buffer, end + 1, client->n);
            return rc == 0 ? 1 : pb_fail(err, PB_E_SERVICE_PROTOCOL, "a reply that is not JSON");
        }
        client->searched = client->n;
        int rc = wait_for(client->fd, POLLIN, deadline_ms);
        if (rc <= 0)
            return rc < 0 ? lost(err, "cannot be read", -rc) : 0;
        if (client->room - client->n < 4096) {
            size_t room = client->room ? client->room * 2 : 65536;
            char *more = room <= LINE_MAX_BYTES ? realloc(client->buffer, room) : NULL;
            if (more == NULL)
                return pb_fail(err, PB_E_MEMORY, "a reply too large");
            client->buffer = more;
            client->room = room;
        }
        ssize_t n = recv(client->fd, client->buffer + client->n, client->room - client->n, 0);
        if (n == 0)
            return lost(err, "closed the connection", ECONNRESET);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return lost(err, "closed the connection", errno);
        client->n += n > 0 ? (size_t)n : 0;
    }
}

/* Keeps an event; if there are too many, the oldest is dropped (every event has the whole job). */
static void keep_event(struct pb_client *client, struct pb_json_value *event)
{
    if (client->n_events == EVENTS_MAX) {
        pb_json_release(client->events[client->first_event]);
        client->first_event = (client->first_event + 1) % EVENTS_MAX;
        client->n_events--;
        client->lost_events = true;
    }
    client->events[(client->first_event + client->n_events++) % EVENTS_MAX] = event;
}

static int take_error(const struct pb_json_value *error, struct pb_err *err)
{
    const char *message = pb_json_get_text(error, "message");
    const char *code = pb_json_get_text(pb_json_get(error, "data", NULL), "code");
    enum pb_code known = PB_E_SYSTEM;
    for (int i = PB_OK + 1; code != NULL && i < PB_E_COUNT; i++) {
        if (strcmp(pb_code_id((enum pb_code)i), code) == 0)
            known = (enum pb_code)i;
    }
    return pb_fail(err, known, "%s", message ? message : "the service gave no reason");
}

static int send_request(struct pb_client *client, const char *method, const char *params,
                        int64_t deadline_ms, struct pb_err *err)
{
    struct pb_json *json = pb_json_create(false);
    size_t bytes = 0;
    pb_json_object(json, NULL);
    pb_json_string(json, "jsonrpc", "2.0");
    pb_json_int(json, "id", ++client->next_id);
    pb_json_string(json, "method", method);
    if (params != NULL)
        pb_json_raw(json, "params", params);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    int rc = text ? send_all(client, text, bytes, deadline_ms, err)
                  : pb_fail(err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : send_all(client, "\n", 1, deadline_ms, err);
    pb_json_destroy(json);
    return rc;
}

void pb_client_pass(struct pb_client *client, int fd)
{
    client->pass_fd = fd;
}

/* Sends one byte, which the service reads as an empty line, with the descriptor. */
static int pass_file(struct pb_client *client, struct pb_err *err)
{
    return pb_passed_fd_send(client->fd, "\n", 1, client->pass_fd, 0) == 1
               ? 0
               : lost(err, "takes no descriptor", errno);
}

/* Reads the refusal of a connection that the service closed before the request. */
static int read_refusal(struct pb_client *client, const struct pb_err *lost, struct pb_err *err)
{
    struct pb_json_value *line = NULL;
    const bool is_read = read_line(client, pb_clock_mono_ms(), NULL, &line) > 0;
    const struct pb_json_value *error = is_read ? pb_json_get(line, "error", NULL) : NULL;
    client->is_refused = error != NULL && pb_json_get(line, "id", NULL) == NULL;
    const int rc =
        client->is_refused ? take_error(error, err) : pb_fail(err, lost->code, "%s", lost->msg);
    pb_json_release(line);
    return rc;
}

int pb_client_send(struct pb_client *client, const char *method, const char *params,
                   struct pb_err *err)
{
    struct pb_err lost = {0};
    const int64_t deadline_ms = pb_clock_mono_ms() + client->timeout_ms;
    const int rc = send_request(client, method, params, deadline_ms, &lost);
    return rc < 0 ? read_refusal(client, &lost, err) : 0;
}

int pb_client_receive(struct pb_client *client, struct pb_err *err,
                      struct pb_json_value **out_reply, const struct pb_json_value **out_result)
{
    int64_t deadline_ms = pb_clock_mono_ms() + client->timeout_ms, id = 0;
    int rc = 0;
    while (rc == 0) {
        struct pb_json_value *reply = NULL;
        bool has_result = false;
        int got = read_line(client, deadline_ms, err, &reply);
        if (got <= 0)
            return got < 0 ? got : lost(err, "does not answer", ETIMEDOUT);
        const char *asked = pb_json_get_text(reply, "method");
        if (asked != NULL && strcmp(asked, "job.descriptor") == 0) {
            pb_json_release(reply);
            rc = pass_file(client, err);
            continue;
        }
        if (asked != NULL) {
            keep_event(client, reply);
            continue;
        }
        const struct pb_json_value *error = pb_json_get(reply, "error", NULL);
        const struct pb_json_value *result = pb_json_get(reply, "result", &has_result);
        /* An error without an id is about the line itself, which this client sent. */
        const bool has_id = pb_json_get_int(reply, "id", &id) == 0;
        client->is_refused = error != NULL && !has_id;
        if (has_id ? id != client->next_id : error == NULL)
            rc = pb_fail(err, PB_E_SERVICE_PROTOCOL, "a reply to something else");
        else if (error != NULL)
            rc = take_error(error, err);
        else if (!has_result)
            rc = pb_fail(err, PB_E_SERVICE_PROTOCOL, "a reply without a result");
        if (rc != 0) {
            pb_json_release(reply);
            return rc;
        }
        *out_reply = reply;
        *out_result = result;
        return 0;
    }
    return rc;
}

int pb_client_call(struct pb_client *client, const char *method, const char *params,
                   struct pb_err *err, struct pb_json_value **out_reply,
                   const struct pb_json_value **out_result)
{
    int rc = pb_client_send(client, method, params, err);
    return rc ? rc : pb_client_receive(client, err, out_reply, out_result);
}

int pb_client_event(struct pb_client *client, int64_t timeout_ms, struct pb_err *err,
                    struct pb_json_value **out_event, const struct pb_json_value **out_job)
{
    int64_t deadline_ms = timeout_ms < 0 ? -1 : pb_clock_mono_ms() + timeout_ms;
    for (;;) {
        struct pb_json_value *event = NULL;
        if (client->n_events > 0) {
            event = client->events[client->first_event];
            client->first_event = (client->first_event + 1) % EVENTS_MAX;
            client->n_events--;
        } else {
            int rc = read_line(client, deadline_ms, err, &event);
            if (rc <= 0)
                return rc;
        }
        const char *method = pb_json_get_text(event, "method");
        if (method != NULL &&
            (strcmp(method, "job.event") == 0 || strcmp(method, "job.change") == 0)) {
            *out_event = event;
            *out_job = pb_json_get(event, "params", NULL);
            return 1;
        }
        pb_json_release(event); /* a late reply, or an event of a newer service */
    }
}

bool pb_client_lost_events(struct pb_client *client)
{
    const bool lost_events = client->lost_events;
    client->lost_events = false;
    return lost_events;
}
