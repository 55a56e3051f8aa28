/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_client.h"

#include "service/status/status_fair.h"
#include "service/status/status_overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 16384

struct pb_status_client *pb_client_conn_create(int fd, int epoll, const struct pb_peer *peer,
                                               struct pb_account *account, int64_t now_ms)
{
    struct pb_status_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    STAILQ_INIT(&client->out);
    client->fd = fd;
    client->epoll = epoll;
    client->account = account;
    client->request_ms = client->moved_ms = now_ms;
    client->call.peer = *peer;
    client->call.fd = fd;
    client->since = -1;
    return client;
}

void pb_client_conn_destroy(struct pb_status_client *client)
{
    struct pb_queued *queued;
    while ((queued = STAILQ_FIRST(&client->out)) != NULL) {
        STAILQ_REMOVE_HEAD(&client->out, next);
        pb_message_put(queued->message);
        free(queued);
    }
    client->account->queued_bytes -= client->out_bytes;
    pb_json_destroy(client->call.reply);
    pb_job_listing_free(client->call.listing);
    pb_reading_destroy(client->call.reading);
    pb_request_fini(&client->request);
    /* A process that checks a file may keep the connection open: shut it down as well. */
    (void)epoll_ctl(client->epoll, EPOLL_CTL_DEL, client->fd, NULL);
    (void)shutdown(client->fd, SHUT_RDWR);
    (void)close(client->fd);
    free(client->line);
    free(client);
}

int pb_client_conn_add(struct pb_status_client *client, const char *bytes, size_t n, int64_t now_ms)
{
    size_t wanted = client->n_line + n;
    if (wanted > client->room) {
        size_t room = client->room ? client->room : 1024;
        while (room < wanted)
            room *= 2;
        char *more = realloc(client->line, room);
        if (more == NULL)
            return -ENOMEM;
        client->line = more;
        client->room = room;
    }
    (void)memcpy(client->line + client->n_line, bytes, n);
    const char *newline = memrchr(client->line + client->n_line, '\n', n);
    client->n_line += n;
    client->moved_ms = now_ms;
    if (newline != NULL)
        client->n_whole = (size_t)(newline - client->line) + 1;
    return client->n_line - client->n_whole > PB_CLIENT_LINE_MAX ? -EFBIG : 0;
}

int pb_client_conn_read(struct pb_status_client *client, int64_t now_ms)
{
    char bytes[READ_BYTES];
    /* No control buffer: descriptors sent with the bytes are not received. */
    ssize_t n = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0)
        return pb_client_conn_add(client, bytes, (size_t)n, now_ms);
    if (n == 0)
        client->eof = true;
    return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

bool pb_client_conn_has_line(const struct pb_status_client *client)
{
    return client->n_whole > 0;
}

void pb_client_conn_drop_line(struct pb_status_client *client)
{
    const char *end = memchr(client->line, '\n', client->n_whole);
    size_t bytes = (size_t)(end - client->line) + 1;
    client->n_line -= bytes;
    client->n_whole -= bytes;
    if (client->n_line > 0) {
        (void)memmove(client->line, client->line + bytes, client->n_line);
        return;
    }
    free(client->line);
    client->line = NULL;
    client->room = 0;
}

const char *pb_client_conn_line(struct pb_status_client *client, size_t *out_bytes)
{
    while (client->n_whole > 0) {
        const char *end = memchr(client->line, '\n', client->n_whole);
        size_t bytes = (size_t)(end - client->line);
        if (bytes > 0 && client->line[bytes - 1] == '\r')
            bytes--;
        if (bytes > 0) {
            *out_bytes = bytes;
            return client->line;
        }
        pb_client_conn_drop_line(client);
    }
    return NULL;
}

struct pb_message *pb_message_create(const char *text, size_t bytes)
{
    struct pb_message *message = malloc(sizeof *message + bytes + 1);
    if (message == NULL)
        return NULL;
    message->users = 1;
    message->bytes = bytes + 1;
    (void)memcpy(message->text, text, bytes);
    message->text[bytes] = '\n';
    return message;
}

void pb_message_put(struct pb_message *message)
{
    if (message != NULL && --message->users == 0)
        free(message);
}

int pb_client_conn_flush(struct pb_status_client *client, int64_t now_ms)
{
    struct pb_queued *queued;
    while ((queued = STAILQ_FIRST(&client->out)) != NULL) {
        struct pb_message *message = queued->message;
        ssize_t n = send(client->fd, message->text + client->sent, message->bytes - client->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        client->moved_ms = now_ms;
        client->sent += (size_t)n;
        client->out_bytes -= (size_t)n;
        client->account->queued_bytes -= (size_t)n;
        if (client->sent < message->bytes)
            continue;
        client->sent = 0;
        STAILQ_REMOVE_HEAD(&client->out, next);
        pb_message_put(message);
        free(queued);
    }
    return 0;
}

int pb_client_conn_send(struct pb_status_client *client, struct pb_message *message, int64_t now_ms)
{
    if (client->out_bytes > 0 && client->out_bytes + message->bytes > PB_STATUS_BACKLOG_BYTES)
        return -ENOBUFS;
    struct pb_queued *queued = malloc(sizeof *queued);
    if (queued == NULL)
        return -ENOMEM;
    bool waits = !STAILQ_EMPTY(&client->out); /* true until epoll reports that it is writable */
    if (!waits)
        client->moved_ms = now_ms;
    message->users++;
    queued->message = message;
    STAILQ_INSERT_TAIL(&client->out, queued, next);
    client->out_bytes += message->bytes;
    client->account->queued_bytes += message->bytes;
    return waits ? 0 : pb_client_conn_flush(client, now_ms);
}

int pb_client_conn_watch(struct pb_status_client *client, bool reading)
{
    bool known = client->interest != 0;
    unsigned events = (reading ? EPOLLIN : 0u) | (STAILQ_EMPTY(&client->out) ? 0u : EPOLLOUT);
    if (client->gone || (known && client->interest == (events | EPOLLHUP)))
        return 0;
    struct epoll_event event = {.events = events, .data = {.ptr = client}};
    client->interest = events | EPOLLHUP; /* epoll always reports EPOLLHUP */
    return epoll_ctl(client->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, client->fd, &event) == 0
               ? 0
               : -errno;
}
