/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_H
#define PB_STATUS_H
/* Status socket: a unix socket with the protocol of status_proto.h, served by a separate thread
 * that never waits for a disk or for the service's loop. Owns the clients and their limits;
 * `serve`, called from that thread, handles requests. Any thread may pass events and outcomes to
 * it. */
#include "config/base/err.h"
#include "service/jobs/job.h"
#include "service/base/peer.h"
#include "service/status/status_proto.h"

#define PB_STATUS_CLIENTS_MAX       256 /* connections of all users */
#define PB_STATUS_RESERVE           32  /* more for root, the service's user and admins */
#define PB_STATUS_USER_CLIENTS_MAX  64  /* connections of one user */
#define PB_STATUS_USER_PLACES       16  /* connections reserved for one user */
#define PB_STATUS_WATCHERS_MAX      128 /* connections that may watch */
#define PB_STATUS_USER_WATCHERS_MAX 32
#define PB_STATUS_USER_CALLS_MAX    8 /* calls of one user that the service processes at a time */
#define PB_STATUS_BACKLOG_BYTES     (1024 * 1024) /* unread lines before a client is dropped */
#define PB_STATUS_STALL_MS                                                                         \
    15000 /* limit for a client that does not read, or stops within a line                         \
           */

struct pb_status;
struct pb_job_listing;
struct pb_reading;

/* Request while it is served. */
struct pb_call {
    const struct pb_request *request;
    struct pb_peer peer;
    int fd;          /* descriptor of the connection; borrowed */
    uint64_t ticket; /* identifies the call in pb_status_answer */
    int64_t clients; /* present number of connections */
    bool may_watch;  /* true if one more watcher is allowed */
    bool may_wait;   /* true if a call of this user may be answered later */
    /* Set by serve: the client watches one job from now on, or ("") all jobs. */
    bool watches;
    char watch[PB_JOB_ID_BYTES];
    /* set as well: number of the row of the journal after which it gets rows; -1 = no rows */
    int64_t since;
    struct pb_json *reply; /* the reply of the call, written when it is served */
    bool wants_descriptor; /* the call is answered later: the client must pass its file */
    struct pb_job_listing
        *listing;               /* rest of a list that is printed in parts; the server frees it */
    struct pb_reading *reading; /* answer of the job store; the server frees it */
    bool is_unanswered;         /* the job store did not answer */
    int reads;                  /* readings of this call so far */
};

enum pb_served {
    PB_SERVED,      /* reply is complete */
    PB_SERVED_PART, /* call again: other clients are served in between */
    PB_SERVED_READ, /* call again after pb_status_resume */
    PB_SERVED_LATER /* pb_status_answer delivers the outcome */
};

/* Outcome of a call; err.code PB_OK = job is the result. */
struct pb_outcome {
    struct pb_err err;
    struct pb_job job;
};

struct pb_status_options {
    const char *path; /* path of the socket; copied */
    /* Called from the status thread; must not block. */
    enum pb_served (*serve)(void *user, struct pb_call *call);
    /* Writes the reply of a call that is answered later. */
    void (*finish)(void *user, struct pb_call *call, const struct pb_outcome *outcome);
    /* Called when a job changed (before watchers receive it), or is held in its state until its
     * next event. */
    void (*on_event)(void *user, const struct pb_job *job, bool held);
    void (*on_beat)(void *user); /* called about once a second */
    /* Returns a number that changes whenever the journal does. */
    uint64_t (*journal_mark)(void *user);
    /* Starts to read rows after `since` of the job ("" = of all), which pb_status_rows delivers.
     * Negative: they cannot be read now. */
    int (*read_rows)(void *user, uint64_t ticket, int64_t since, const char *job);
    /* Called when the client of a call that waits for its reading is gone, or waits no more. */
    void (*forget)(void *user, uint64_t ticket);
    bool (*is_privileged)(void *user, const struct pb_peer *peer);
    void *user;
    int extra_fd; /* also polled; -1 = absent */
    void (*on_extra)(void *user);
};

/* Binds the socket: clients may connect and wait. A socket file without a listener is replaced. */
int pb_status_open(const struct pb_status_options *options, struct pb_err *err,
                   struct pb_status **out_status);
/* Starts the thread: clients are served from now on. */
int pb_status_serve(struct pb_status *status, struct pb_err *err);
/* Polls another descriptor in place of extra_fd. Thread: status. */
int pb_status_poll(struct pb_status *status, int fd);
/* Call after a change of a job: serve sees it from now on, and job.event is sent to all clients
 * that watch it. Thread: any, one at a time for each job. */
void pb_status_tell(struct pb_status *status, const struct pb_job *job);
/* Shows clients the job in this state instead of the stored one, until the next pb_status_tell of
 * this job. */
void pb_status_hold(struct pb_status *status, const struct pb_job *job);
/* Delivers the outcome of a call that is answered later. Takes the memory of outcome->job. Thread:
 * any. */
void pb_status_answer(struct pb_status *status, uint64_t ticket, struct pb_outcome *outcome);
/* Continues a call that waits for its reading, which is taken; frees it if the call is gone.
 * Thread: status. */
void pb_status_resume(struct pb_status *status, struct pb_reading *reading);
/* Continues all calls that wait for readings, without an answer of the job store. Thread: status.
 */
void pb_status_resume_all(struct pb_status *status);
/* Delivers rows of the journal that read_rows requested; borrowed. Thread: status. */
void pb_status_rows(struct pb_status *status, const struct pb_reading *reading);
/* Number of connections. Thread: any. */
int64_t pb_status_clients(const struct pb_status *status);
/* Ends the thread, closes and removes the socket; queued output is still sent to clients that
 * accept it immediately. NULL is allowed. */
void pb_status_stop(struct pb_status *status);
#endif
