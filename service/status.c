/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A client is a buffer of one line and a pipe. It is served line by line in the read callback;
 * replies queue in libuv, and a client that does not read them is dropped once
 * PB_STATUS_BACKLOG_BYTES wait. A line over the limit is answered and ends the connection: what
 * follows could be anything. When all places are taken, who has said nothing for the longest time
 * makes room, unless it waits for events. */
#include "service/status.h"
#include "service/clock.h"
#include "service/dirs.h"

#include "config/json_reader.h"
#include "service/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 128

struct client {
    uv_pipe_t pipe;
    struct pb_status *status; /* NULL once the server has stopped */
    struct client *next;
    char watch[PB_JOB_ID_BYTES];
    bool watches, closing;
    bool leaving; /* was told to go */
    uint64_t heard_ms;
    size_t n_line;
    char line[PB_JSON_LINE_MAX + 1];
};

struct pb_status {
    uv_pipe_t pipe;
    struct pb_status_options options;
    char *path;
    struct client *clients;
    int64_t n_clients;
    bool full_told;
};

static void on_client_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void drop(struct client *client)
{
    if (client->closing)
        return;
    client->closing = true;
    struct pb_status *status = client->status;
    struct client **link = &status->clients;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    status->n_clients--;
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

struct message {
    uv_write_t request;
    bool last; /* the connection ends with it */
    char text[];
};

static void on_written(uv_write_t *request, int rc)
{
    struct message *message = (struct message *)(void *)request;
    struct client *client = request->data;
    if ((rc != 0 || message->last) && client->status != NULL)
        drop(client);
    free(message);
}

/* Sends what json holds and a newline; a client that cannot take it is dropped. */
static void send_json(struct client *client, struct pb_json *json, bool last)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    if (client->closing)
        return;
    if (text == NULL) {
        drop(client);
        return;
    }
    if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) + bytes >
            PB_STATUS_BACKLOG_BYTES &&
        uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > 0) {
        pb_log(PB_LOG_WARNING, "status: a client does not read its replies and is dropped");
        drop(client);
        return;
    }
    struct message *message = malloc(sizeof *message + bytes + 1);
    if (message == NULL) {
        drop(client);
        return;
    }
    (void)memcpy(message->text, text, bytes);
    message->text[bytes] = '\n';
    message->last = last;
    message->request.data = client;
    uv_buf_t buffer = uv_buf_init(message->text, (unsigned)bytes + 1);
    if (uv_write(&message->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) != 0) {
        free(message);
        drop(client);
    }
}

static void answer(struct client *client, const char *line, size_t bytes)
{
    struct pb_request request;
    struct pb_fault fault;
    const char *watch = NULL;
    struct pb_json *reply = pb_json_create(false);
    int rc = pb_request_parse(line, bytes, &request, &fault);
    if (rc != 0)
        pb_reply_fault(reply, &request, &fault);
    else
        client->status->options.serve(client->status->options.user, &request, reply, &watch);
    /* A notification gets no answer, but a line that is no request at all does. */
    if (request.wants_reply || rc != 0)
        send_json(client, reply, false);
    if (watch != NULL) {
        client->watches = true;
        (void)snprintf(client->watch, sizeof client->watch, "%s", watch);
    }
    pb_json_destroy(reply);
    pb_request_fini(&request);
}

static void refuse(struct client *client, int rpc_code, const char *message)
{
    struct pb_request request = {0};
    struct pb_fault fault = {.rpc_code = rpc_code};
    (void)snprintf(fault.message, sizeof fault.message, "%s", message);
    struct pb_json *reply = pb_json_create(false);
    pb_reply_fault(reply, &request, &fault);
    (void)uv_read_stop((uv_stream_t *)&client->pipe);
    send_json(client, reply, true);
    pb_json_destroy(reply);
}

static void take_lines(struct client *client)
{
    size_t start = 0;
    char *end;
    while (!client->closing && (end = memchr(client->line + start, '\n', client->n_line - start))) {
        size_t bytes = (size_t)(end - client->line) - start;
        const char *line = client->line + start;
        start += bytes + 1;
        if (bytes > 0 && line[bytes - 1] == '\r')
            bytes--;
        if (bytes > 0)
            answer(client, line, bytes);
    }
    (void)memmove(client->line, client->line + start, client->n_line - start);
    client->n_line -= start;
    if (!client->closing && client->n_line == sizeof client->line)
        refuse(client, PB_RPC_INVALID_REQUEST, "a line over 65536 bytes");
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    (void)wanted;
    struct client *client = handle->data;
    *buffer = uv_buf_init(client->line + client->n_line,
                          (unsigned)(sizeof client->line - client->n_line));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    (void)buffer;
    struct client *client = stream->data;
    if (n < 0) {
        drop(client);
    } else if (n > 0) {
        client->n_line += (size_t)n;
        client->heard_ms = uv_now(stream->loop);
        take_lines(client);
    }
}

/* Lets the longest idle client go; false: all of them watch. */
static bool make_room(struct pb_status *status, const struct client *newest)
{
    struct client *idle = NULL;
    for (struct client *client = status->clients; client != NULL; client = client->next) {
        if (client->watches || client->leaving || client == newest)
            continue;
        if (idle == NULL || client->heard_ms <= idle->heard_ms) /* newer ones come first */
            idle = client;
    }
    if (idle == NULL)
        return false;
    idle->leaving = true;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&idle->pipe) > 0)
        drop(idle);
    else
        refuse(idle, PB_RPC_JOB_ERROR, "the service has too many clients; you were idle longest");
    return true;
}

static void on_connection(uv_stream_t *server, int rc)
{
    struct pb_status *status = server->data;
    if (rc != 0) {
        pb_log(PB_LOG_WARNING, "status: cannot take a client: %s", uv_strerror(rc));
        return;
    }
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return;
    client->status = status;
    client->heard_ms = uv_now(status->options.loop);
    client->pipe.data = client;
    (void)uv_pipe_init(status->options.loop, &client->pipe, 0);
    client->next = status->clients;
    status->clients = client;
    status->n_clients++;
    if (uv_accept(server, (uv_stream_t *)&client->pipe) != 0) {
        drop(client);
    } else if (status->n_clients > PB_STATUS_CLIENTS_MAX && !make_room(status, client)) {
        if (!status->full_told)
            pb_log(PB_LOG_WARNING,
                   "status: more than %d clients that watch; new ones are sent away",
                   PB_STATUS_CLIENTS_MAX);
        status->full_told = true;
        refuse(client, PB_RPC_JOB_ERROR, "the service has too many clients; try again later");
    } else {
        if (status->n_clients < PB_STATUS_CLIENTS_MAX)
            status->full_told = false;
        (void)uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read);
    }
}

/* A socket file of a service that is gone stands in the way; one that answers must stay. */
/* user: the address. Also true when it cannot be known; binding will tell. */
static bool nobody_listens(void *user)
{
    const struct sockaddr_un *address = user;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    int rc = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : -errno;
    (void)close(fd);
    return rc != 0 && rc != -EAGAIN;
}

static int clear_way(const char *path, struct pb_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return pb_fail(err, PB_E_SERVICE_STATE, "%s is there and is no socket; move it away", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (!pb_clock_retry(PB_DIRS_PATIENCE_MS, nobody_listens, &address))
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "another service listens on %s; stop it, or choose another service.socket",
                       path);
    if (unlink(path) != 0 && errno != ENOENT)
        return pb_fail(err, PB_E_SERVICE_STATE, "cannot remove the old socket %s: %s", path,
                       strerror(errno));
    return 0;
}

int pb_status_start(const struct pb_status_options *options, struct pb_err *err,
                    struct pb_status **out_status)
{
    struct sockaddr_un address;
    if (strlen(options->path) >= sizeof address.sun_path)
        return pb_fail(err, PB_E_CONFIG_VALUE, "service.socket: %s is longer than %zu bytes",
                       options->path, sizeof address.sun_path - 1);
    int rc = clear_way(options->path, err);
    if (rc != 0)
        return rc;
    struct pb_status *status = calloc(1, sizeof *status);
    if (status == NULL || (status->path = strdup(options->path)) == NULL) {
        free(status);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    status->options = *options;
    status->pipe.data = status;
    (void)uv_pipe_init(options->loop, &status->pipe, 0);
    mode_t mask = umask(0117); /* 0660 from the first moment */
    rc = uv_pipe_bind(&status->pipe, options->path);
    (void)umask(mask);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&status->pipe, LISTEN_BACKLOG, on_connection);
    if (rc != 0) {
        (void)pb_fail(err, PB_E_SYSTEM, "cannot listen on %s: %s; see service.socket",
                      options->path, uv_strerror(rc));
        pb_status_stop(status);
        return pb_code_errno(PB_E_SYSTEM);
    }
    *out_status = status;
    return 0;
}

void pb_status_tell(struct pb_status *status, const struct pb_job *job)
{
    struct pb_json *json = NULL;
    struct client *next;
    for (struct client *client = status->clients; client != NULL; client = next) {
        next = client->next;
        if (!client->watches || (client->watch[0] && strcmp(client->watch, job->id) != 0))
            continue;
        if (json == NULL) {
            json = pb_json_create(false);
            pb_event_print(json, job);
        }
        send_json(client, json, false);
    }
    pb_json_destroy(json);
}

int64_t pb_status_clients(const struct pb_status *status)
{
    return status->n_clients;
}

static void on_server_closed(uv_handle_t *handle)
{
    struct pb_status *status = handle->data;
    free(status->path);
    free(status);
}

void pb_status_stop(struct pb_status *status)
{
    if (status == NULL)
        return;
    while (status->clients != NULL) {
        struct client *client = status->clients;
        drop(client);
    }
    uv_close((uv_handle_t *)&status->pipe, on_server_closed);
}
