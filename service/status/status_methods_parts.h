/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_METHODS_PARTS_H
#define PB_STATUS_METHODS_PARTS_H
/* Private to the methods of the status socket: status_methods.c answers queries, status_changes.c
 * checks changes and passes them to the loop. No other file includes this. Thread: status. */
#include "service/status/status_overlay.h"
#include "service/status/status_methods.h"

struct pb_status_methods {
    struct pb_job_store *store;        /* reader of the job store */
    const struct pb_job_store *writer; /* the job store itself, borrowed */
    struct pb_facts *facts;
    struct pb_tasks *tasks;
    struct pb_checker *checker;
    struct pb_status *status;
    struct pb_task_queue held; /* tasks whose file is being checked */
    struct pb_overlay overlay;
    int64_t start_wall_ms;
};

/* --- status_methods.c --- */
/* Finds a job like pb_job_store_find. While the store does not answer, jobs that run are found by
 * their complete ids. */
int pb_status_find(struct pb_status_methods *methods, const char *id, struct pb_err *err,
                   struct pb_job *out_job);

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
int pb_status_job_events(struct pb_status_methods *methods, struct pb_call *call,
                         struct pb_err *err);
/* Returns the waiting events of the entries of notify, as a JSON array and as lines of metrics;
 * malloc'd, NULL = out of memory. Empty while the store does not respond. */
char *pb_status_notify_info(const struct pb_status_methods *methods);
char *pb_status_notify_metrics(const struct pb_status_methods *methods);
/* Handles an event.ack; the outcome follows later. */
int pb_status_ack(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err);
void pb_status_reply_ack(struct pb_call *call);
void pb_status_journal_options(struct pb_status_options *options);
#endif
