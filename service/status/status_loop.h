/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_LOOP_H
#define PB_STATUS_LOOP_H
/* Private to the status socket: status.c runs the thread and takes messages of other threads,
 * status_admit.c accepts connections, status_serve.c reads and serves them, status_client.c does
 * the input and output of one connection, status_fair.c schedules the users, status_bind.c makes
 * the socket's file. */
#include "service/base/socket_bind.h"
#include "service/status/status_fair.h"

#include <pthread.h>
#include <stdatomic.h>

struct pb_news {
    STAILQ_ENTRY(pb_news) next;
    uint64_t ticket; /* 0 = an event, or a held job */
    bool held;
    struct pb_outcome outcome;
};
STAILQ_HEAD(pb_news_queue, pb_news);

struct pb_status {
    struct pb_status_options options;
    char *path;
    pthread_t thread;
    bool serves; /* the thread runs; used by the thread that starts and stops it */
    int epoll, wake;
    struct pb_socket_bind bound;
    struct pb_fair fair;
    struct pb_client_queue clients;
    atomic_int n_clients;
    int n_watchers;
    uint64_t tickets;
    int64_t now_ms;
    int64_t accept_at_ms;    /* no connection is accepted before; 0 = the listener is watched */
    int64_t beat_ms;         /* time of the last beat */
    struct pb_message *full; /* reply to a refused client; NULL until the first refusal */
    int64_t told_full_ms, told_slow_ms; /* times of the last log line of each kind */
    bool told_gone;
    uint64_t rows_ticket; /* rows of the journal that are being read; 0 = none */
    bool rows_failed;     /* no rows are read before the next beat */
    pthread_mutex_t lock; /* protects news, stop */
    struct pb_news_queue news;
    struct pb_news_queue taken; /* used only by the status thread */
    bool stop;
};

/* --- status_admit.c; all of the status thread --- */
void pb_status_accept(struct pb_status *status);
/* --- status_serve.c --- */
/* Drops a client. It is freed by bury, because events of this round may still refer to it. */
void pb_status_drop(struct pb_status *status, struct pb_status_client *client);
/* Updates the client's position in the queue and its epoll events. */
void pb_status_settle(struct pb_status *status, struct pb_status_client *client);
/* Makes an error reply without a request; the caller must destroy it. */
struct pb_json *pb_status_refusal(enum pb_code code, int rpc_code, const char *text);
/* Sends this error and ends the connection. */
void pb_status_refuse(struct pb_status *status, struct pb_status_client *client, enum pb_code code,
                      int rpc_code, const char *text);
/* Returns true if a line of this kind may be logged again. */
bool pb_status_may_tell(const struct pb_status *status, int64_t *told_ms);
void pb_status_client_event(struct pb_status *status, struct pb_status_client *client,
                            unsigned events);
/* Returns the processor time of this thread. */
int64_t pb_status_cpu_us(void);
/* Serves until no client may be served or the time of a round is over. */
void pb_status_serve_round(struct pb_status *status);
void pb_status_spread(struct pb_status *status, const struct pb_job *job);
void pb_status_finish(struct pb_status *status, uint64_t ticket, const struct pb_outcome *outcome);
/* Reads rows of the journal for clients that watch since an earlier row, one client at a time. */
void pb_status_replay(struct pb_status *status);
/* True if a call waits for the job store. */
bool pb_status_reads(const struct pb_status *status);
/* Ends clients that do not read, or that stopped in the middle of a line. */
void pb_status_sweep(struct pb_status *status);
/* Frees dropped clients; no pending epoll event may refer to them. */
void pb_status_bury(struct pb_status *status);
/* Adds the listener to epoll or removes it. */
int pb_status_listen(struct pb_status *status, bool on);
#endif
