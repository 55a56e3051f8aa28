/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_READER_H
#define PB_STATUS_READER_H
/* Reads the job store for the status thread, which never waits for a disk or a server: a thread
 * with a connection of its own answers readings, one at a time. A reading is a query and, later,
 * its answer. Thread: status, except create and destroy. */
#include "service/jobs/job_store.h"
#include "service/jobs/journal.h"

#include <sys/queue.h>

struct pb_json;

enum pb_reading_kind {
    PB_READ_JOB,     /* job: the job whose id, or end of an id, is `text` */
    PB_READ_LIST,    /* jobs: those of `query` that are older than the job `before` */
    PB_READ_EVENTS,  /* json: the next events of the subscriber `text`, an array */
    PB_READ_HISTORY, /* json: the events of the job `text` after `since`, an array */
    PB_READ_STATES,  /* states of all subscribers */
    PB_READ_ROWS,    /* rows of the journal after `since`, of the job `text` or ("") of all */
    PB_READ_CHECK    /* checked: the rows of those jobs; with is_picture jobs, running and states */
};

#define PB_READING_ROWS    16
#define PB_READING_CHECKED 64
#define PB_PICTURE_JOBS    200 /* newest jobs, and running jobs, in a picture */
/* A store of several services that takes longer does not answer. A file has more time, because a
 * long list may be read from a slow disk. */
#define PB_READING_PATIENCE_MS 1500
#define PB_READING_FILE_MS     10000

/* Jobs as they are at one moment, newest first. */
struct pb_job_listing {
    struct pb_job *jobs;
    size_t n, room, printed;
};

/* A job whose row is compared with the state that is shown. */
struct pb_checked {
    char id[PB_JOB_ID_BYTES];
    bool is_known, is_there; /* is_known: the store answered; is_there: it has the job */
    struct pb_job job;       /* initialised if is_there */
};

struct pb_reading {
    STAILQ_ENTRY(pb_reading) next;
    enum pb_reading_kind kind;
    uint64_t ticket; /* call that waits for it; 0 = none */
    int64_t uid;     /* user of the call: the users take turns */
    /* ---- query ---- */
    char *text, *before;       /* owned; NULL = absent */
    struct pb_job_query query; /* its pipeline is `text` */
    int64_t since;
    int limit;
    bool with_range; /* reads `first` and `last` as well, before the jobs */
    bool is_picture;
    struct pb_checked *checked; /* owned */
    size_t n_checked;
    uint64_t mark;    /* for the caller: pb_store_changes before the reading */
    unsigned version; /* for the caller: version of the overlay before the reading */
    /* ---- answer ---- */
    int rc;
    struct pb_err err;
    int64_t begun_ms;   /* monotonic: begin of the reading */
    int64_t cost_us;    /* processor time */
    int64_t as_of_ms;   /* wall clock: the answer is that of a picture; 0: it is the store's */
    bool is_incomplete; /* older jobs may be absent, because the picture does not have them */
    struct pb_job job;  /* initialised if rc is 0 */
    struct pb_job_listing jobs, running;
    int64_t first, last; /* range of the journal; first > last + 1: unknown */
    struct pb_json *json;
    struct pb_subscriber_state states[PB_SUBSCRIBERS_MAX];
    int n_states;
    struct {
        int64_t seq;
        struct pb_json *json;
    } rows[PB_READING_ROWS];
    int n_rows;
    /* ROWS, LIST and JOB with a range: the event of `since` was lost with its server, or the
     * journal ends before it */
    bool is_lost;
};

struct pb_status_reader;

/* NULL = out of memory. text and before are copied; NULL is allowed. */
struct pb_reading *pb_reading_create(enum pb_reading_kind kind, const char *text,
                                     const char *before);
void pb_reading_destroy(struct pb_reading *reading); /* NULL is allowed */
/* Adds a job that PB_READ_CHECK looks for; nothing happens if memory is short. */
void pb_reading_add_id(struct pb_reading *reading, const char *id);
/* Returns the place of the next job in the list; NULL = out of memory. */
struct pb_job *pb_job_listing_add(struct pb_job_listing *listing);
void pb_job_listing_fini(struct pb_job_listing *listing);

/* Starts the thread; its connection is that of a reader of the store, which must outlive it. */
int pb_status_reader_create(const struct pb_job_store *store, struct pb_err *err,
                            struct pb_status_reader **out_reader);
/* Waits for the end of the present reading, which the limits of the connection bound; the others
 * are dropped. NULL is allowed. */
void pb_status_reader_destroy(struct pb_status_reader *reader);
/* Descriptor that is readable when pop may have a reading. */
int pb_status_reader_fd(const struct pb_status_reader *reader);
/* Takes the reading. */
void pb_status_reader_push(struct pb_status_reader *reader, struct pb_reading *reading);
/* Takes a reading that has its answer; NULL if no answer is there yet. */
struct pb_reading *pb_status_reader_pop(struct pb_status_reader *reader);
/* Drops the reading of that call, unless it has begun. */
void pb_status_reader_forget(struct pb_status_reader *reader, uint64_t ticket);
/* True if the store has not answered the present reading within its time. */
bool pb_status_reader_is_stuck(struct pb_status_reader *reader);
#endif
