/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_METHODS_PARTS_H
#define PB_STATUS_METHODS_PARTS_H
/* Private to the methods of the status socket: status_store.c reads the job store, status_methods.c
 * answers queries, status_changes.c checks changes and passes them to the loop. No other file
 * includes this. Thread: status. */
#include "service/status/status_overlay.h"
#include "service/status/status_methods.h"

struct pb_status_methods {
    struct pb_status_reader *reader;
    const struct pb_job_store *store; /* borrowed; only its number of changes is used */
    /* The last picture, shown while the store does not answer; NULL: none was read yet. Its jobs
     * are valid until seen_ms, at which the store had the same events. */
    struct pb_reading *picture;
    int64_t seen_ms; /* monotonic */
    int64_t last;    /* number of the last event that the store had */
    bool checks;     /* a PB_READ_CHECK has no answer yet */
    bool is_silent;  /* the store did not answer last time: calls do not wait for it */
    char why[256];   /* the failure of that time */
    struct pb_facts *facts;
    struct pb_tasks *tasks;
    struct pb_checker *checker;
    struct pb_status *status;
    struct pb_task_queue held; /* tasks whose file is being checked */
    struct pb_overlay overlay;
    int64_t start_wall_ms;
};

/* --- status_methods.c --- */
/* Query of a request that lists jobs; its pipeline is borrowed. before_seq is that of all jobs. */
struct pb_job_query pb_status_query(const struct pb_request *request);

/* --- status_store.c --- */
/* Gets what the call needs of the job store into call->reading: its answer, or while it does not
 * answer that of the picture, which may be a failure. Returns 1 if the call has to wait for it, 0
 * if it is there or nothing is needed, negative: *err. */
int pb_status_read(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
/* Reads the store again: the answer of the call is older than other changes that are known here. */
int pb_status_read_again(struct pb_status_methods *methods, struct pb_call *call,
                         struct pb_err *err);
/* Takes the answers of the store. */
void pb_status_take_answers(struct pb_status_methods *methods);
/* Compares jobs of the overlay with the store. is_beat: call it about once a second; it also renews
 * the picture, and looks whether the store answers. */
void pb_status_check(struct pb_status_methods *methods, bool is_beat);
/* Options of the rows of the journal. */
int pb_status_read_rows(void *user, uint64_t ticket, int64_t since, const char *job);
void pb_status_forget(void *user, uint64_t ticket);
/* Age in seconds of an answer of the picture, and its time in out; -1 for one of the store. */
int64_t pb_status_age_s(const struct pb_reading *reading, char out[32]);

/* --- status_changes.c --- */
/* Handles job.cancel, retry, drop and again, and job.submit. Returns 0: the outcome follows later;
 * negative: *err. */
int pb_status_change(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
int pb_status_submit(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
/* Handles service.drain; results as above. */
int pb_status_drain(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
/* Handles event.ack of a peer that has the right; results as above. */
int pb_status_push_ack(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
/* Call when the checker has results, or is gone. */
void pb_status_read_checks(struct pb_status_methods *methods);
/* Call regularly: ends the checker if a request has had no result for PB_CHECKER_HANGS_MS, because
 * each of its checks has a limit of its own. */
void pb_status_watch_checks(struct pb_status_methods *methods);

/* --- status_events.c --- */
int pb_status_list_events(const struct pb_status_methods *methods, struct pb_call *call,
                          struct pb_err *err);
/* Handles job.events. */
int pb_status_job_events(struct pb_call *call, struct pb_err *err);
/* Returns the waiting events of the entries of notify, as a JSON array and as lines of metrics;
 * malloc'd, NULL = out of memory. Empty if the store did not respond yet. */
char *pb_status_notify_info(const struct pb_reading *reading);
char *pb_status_notify_metrics(const struct pb_reading *reading);
/* Handles an event.ack; the outcome follows later. */
int pb_status_ack(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
void pb_status_reply_ack(struct pb_call *call);
void pb_status_journal_options(struct pb_status_options *options);
#endif
