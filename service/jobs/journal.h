/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOURNAL_H
#define PB_JOURNAL_H
/* The journal: a row of the job store for each event (config/notify/events.h), written in the
 * transaction of its change. Rows are numbered: a number is never used twice, and a new store
 * begins above those of the older one, by the wall clock, so that "all after N" remains valid
 * after restarts. Subscribers are the entries of `notify:`. Each has a cursor, the last number
 * that it has processed. Rows stay until all subscribers that want them have processed them or
 * they expired; the newest PB_JOURNAL_KEEP stay in any case, for clients that reconnect.
 *
 * A server that takes over from a lost one may lack the last events. Its next event then gets a
 * number above all that the lost server can have given: a client that has such a number is
 * recognized, and no other event ever has it. Thread: same as the store's. */
#include "service/base/log.h"
#include "service/jobs/job_alert.h"
#include "service/jobs/job_store.h"

#define PB_JOURNAL_KEEP        10000
#define PB_JOURNAL_MAX         1000000 /* rows that wait for subscribers; older rows expire */
#define PB_JOURNAL_KIND_BYTES  32
#define PB_SUBSCRIBERS_MAX     32
#define PB_SUBSCRIBER_NAME_MAX 63
#define PB_JOURNAL_WAITING_MAX 10000 /* limit for counting waiting events */

struct pb_event {
    int64_t seq, time_ms; /* wall clock */
    char kind[PB_JOURNAL_KIND_BYTES];
    char job[PB_JOB_ID_BYTES];
    /* JSON object, borrowed: "job" and one further member. "product" for product.published, "alert"
     * for alert.raised, else "log": the lines about the job since its last event. */
    const char *data;
};

/* Finds the range of the rows, first to last; in an empty journal first is last + 1. Numbers that a
 * server skipped just before the first row belong to the range, because no event is missing there.
 * store: a reader. */
int pb_journal_range(struct pb_job_store *store, int64_t *out_first, int64_t *out_last,
                     struct pb_err *err);
/* Finds a number after which exactly the newest `count` events follow; numbers without an event are
 * not counted. With fewer events the number is below that of the first event. store: a reader. */
int pb_journal_newest(struct pb_job_store *store, int64_t count, int64_t *out_after,
                      struct pb_err *err);
/* Returns 1 if the event of that number was lost with its server: a client that has it lists the
 * jobs again. Otherwise 0 or a negative errno. store: a reader. */
int pb_journal_is_lost(struct pb_job_store *store, int64_t seq, struct pb_err *err);
/* Reads rows after `after`, oldest first; job "" = those of all jobs. visit must not call the
 * store. Returns the number of rows. */
int pb_journal_read(struct pb_job_store *store, int64_t after, const char *job, int limit,
                    void (*visit)(void *user, const struct pb_event *event), void *user,
                    struct pb_err *err);
/* Records n alerts of the job. Returns 0 when they are on the disk; 1: nothing is recorded, because
 * the job is gone or a later run has begun, which finds the alerts again; or negative and *err. */
int pb_journal_add_alerts(struct pb_job_store *store, const struct pb_job *job,
                          const struct pb_job_alert *alerts, size_t n, struct pb_err *err);
/* Prints a line of the log as an element of the open array: user is its struct pb_json. */
void pb_journal_print_line(void *user, int64_t wall_ms, enum pb_log_level level, const char *text);
/* Makes "<job>-<seq>": an event has the same id each time that it is delivered. */
void pb_event_id(const struct pb_event *event, char out[PB_JOB_ID_BYTES + 24]);
/* Prints {seq, id, event, time, data} as a member `key` of json, or (NULL) as an element. */
void pb_event_write(struct pb_json *json, const char *key, const struct pb_event *event);

/* --- subscribers --- */

/* Filter of an entry: patterns (GLOB of SQLite, like fnmatch) as JSON arrays of texts. */
struct pb_subscriber {
    const char *name;
    char *events;
    char *pipelines;   /* "[]" = all pipelines */
    int64_t expire_ms; /* an event that waits longer than this expires */
};

struct pb_subscriber_state {
    char name[PB_SUBSCRIBER_NAME_MAX + 1];
    int64_t seq;
    int64_t waiting,
        oldest_ms; /* events it wants and has not; wall clock of the oldest, 0 = none */
    int64_t delivered, given_up, expired; /* counts since the subscriber was added */
    /* `expired` at the previous reading of the chores; equals `expired` before the first \*/
    int64_t expired_before;
};

/* Sets the subscribers. A new one receives events from now on; one that is not in the array is
 * deleted. Returns how many of the deleted ones had waiting events. */
int pb_subscribers_set(struct pb_job_store *store, const struct pb_subscriber *all, size_t n,
                       struct pb_err *err);
/* Moves the cursor of the subscriber to seq: it delivered the event with that number, or gave it
 * up. notify.unknown. */
int pb_subscribers_ack(struct pb_job_store *store, const char *name, int64_t seq, bool given_up,
                       struct pb_err *err);
/* Reads the next events of the subscriber, oldest first; like pb_journal_read. store: a reader.
 * notify.unknown. */
int pb_subscribers_next(struct pb_job_store *store, const char *name, int limit,
                        void (*visit)(void *user, const struct pb_event *event), void *user,
                        struct pb_err *err);
/* Reads the states of at most PB_SUBSCRIBERS_MAX subscribers; returns their number. store: a
 * reader. */
int pb_subscribers_states(struct pb_job_store *store,
                          struct pb_subscriber_state out[PB_SUBSCRIBERS_MAX], struct pb_err *err);
/* Expires old events, moves cursors over events that no subscriber wants, deletes a part of the
 * rows that are not needed. Returns the number of deleted rows. */
int pb_journal_trim(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err);
#endif
