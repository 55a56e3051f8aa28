/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_CLIENT_H
#define PB_STATUS_CLIENT_H
/* Private to the status socket: one connection with its unread requests and unsent replies. A
 * silent client takes a few hundred bytes; the buffer of a line is allocated with its first byte
 * and freed with its last. Thread: status. */
#include "service/base/peer.h"
#include "service/status/status.h"

#include <sys/queue.h>

#define PB_CLIENT_LINE_MAX 65536

struct pb_account;

/* Line for one or several clients, stored once. */
struct pb_message {
    int users;
    size_t bytes;
    char text[];
};

struct pb_queued {
    STAILQ_ENTRY(pb_queued) next;
    struct pb_message *message;
};

struct pb_status_client {
    TAILQ_ENTRY(pb_status_client) all, ready;
    STAILQ_HEAD(, pb_queued) out;
    struct pb_account *account;
    int fd, epoll;
    unsigned interest; /* events that epoll watches for */
    bool is_ready;     /* in its account's queue */
    bool watches;
    bool later; /* its call is being handled by the loop or the checker */
    bool reads; /* its call waits for an answer of the job store */
    bool eof;   /* the client sends no more data */
    bool gone;  /* both directions are closed */
    bool last;  /* the connection ends when the queued lines are sent */
    bool dead;  /* freed at the end of this round */
    char watch[PB_JOB_ID_BYTES];
    int64_t since; /* for a watch: rows of the journal after this one; -1 if it does not watch */
    uint64_t
        seen_mark; /* mark of the journal when the client had all its rows; 0: it may lack some */
    uint64_t rows_ticket, rows_mark; /* rows that are being read, and the mark before; 0 = none */
    unsigned served;
    int64_t request_ms; /* time of the last whole request, or of the connection */
    int64_t moved_ms;   /* time of the last read or write */
    char *line;
    size_t n_line, room, n_whole; /* n_whole: bytes including the last newline */
    size_t sent, out_bytes;       /* sent: bytes of the first queued message */
    struct pb_call call;
    struct pb_request request;
    bool in_call; /* call and request are in use */
};
TAILQ_HEAD(pb_client_queue, pb_status_client);

/* Takes fd. NULL = out of memory; the caller then still owns fd. */
struct pb_status_client *pb_client_conn_create(int fd, int epoll, const struct pb_peer *peer,
                                               struct pb_account *account, int64_t now_ms);
void pb_client_conn_destroy(struct pb_status_client *client);
/* Adds bytes that were read already. -ENOMEM; -EFBIG: the line is too long. */
int pb_client_conn_add(struct pb_status_client *client, const char *bytes, size_t n,
                       int64_t now_ms);
/* Reads once. Returns 0, also if no data is available or the end was reached (eof); negative errno
 * as above, or if the connection is broken. */
int pb_client_conn_read(struct pb_status_client *client, int64_t now_ms);
bool pb_client_conn_has_line(const struct pb_status_client *client);
/* Next line without its newline, borrowed until drop_line; NULL if absent. */
const char *pb_client_conn_line(struct pb_status_client *client, size_t *out_bytes);
void pb_client_conn_drop_line(struct pb_status_client *client);

/* Makes a message of text and a newline, with one reference, the caller's. NULL = out of memory. */
struct pb_message *pb_message_create(const char *text, size_t bytes);
void pb_message_put(struct pb_message *message);
/* Queues the message (and adds a reference) and writes as much as the client accepts. Negative
 * errno: the connection is broken, or -ENOBUFS: too many bytes are queued already. */
int pb_client_conn_send(struct pb_status_client *client, struct pb_message *message,
                        int64_t now_ms);
int pb_client_conn_flush(struct pb_status_client *client, int64_t now_ms);
/* Sets the epoll events: writable if a message is queued, readable if `reading`. */
int pb_client_conn_watch(struct pb_status_client *client, bool reading);
#endif
