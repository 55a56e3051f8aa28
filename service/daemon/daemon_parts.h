/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DAEMON_PARTS_H
#define PB_DAEMON_PARTS_H
/* Private to pushbroomd: daemon.c starts, reloads and stops it; daemon_jobs.c opens the job store
 * and starts the parts that use it. No other file includes this. Thread: loop. */
#include "service/daemon/daemon.h"

#include "service/jobs/chores.h"
#include "service/jobs/nodes.h"
#include "service/daemon/machine.h"
#include "service/inbox/adopt.h"
#include "service/inbox/retention.h"
#include "service/status/methods.h"
#include "service/status/status_methods.h"
#include "service/stream/streams.h"

#define PB_DAEMON_SIGNALS 3

struct pb_daemon {
    const struct pb_daemon_options *options;
    uv_loop_t loop;
    uv_signal_t signals[PB_DAEMON_SIGNALS];
    uv_timer_t beat;
    uv_timer_t overdue; /* runs after the end of the jobs: limit for threads that do not end */
    struct pb_config *config;
    struct pb_dirs dirs;
    struct pb_job_store *store;
    struct pb_job_store *reader; /* reader of the store for the pool, which waits for no commit */
    struct pb_streams *streams;  /* NULL until the store is open */
    uv_work_t end_streams;
    struct pb_metrics metrics;
    struct pb_troubles troubles;
    struct pb_intake intake;
    struct pb_methods methods;
    struct pb_facts facts;
    struct pb_tasks tasks;
    struct pb_checker checker;
    struct pb_status_methods *status_methods;
    uv_work_t end_methods;
    uv_prepare_t publish;
    uv_timer_t publish_late;
    int64_t published_ms;
    struct pb_chores chores;
    struct pb_machine machine;
    struct pb_job_store *chores_reader;
    struct pb_beat *beat_of_node; /* NULL: the store has no nodes */
    struct pb_nodes nodes;        /* nodes of the last report */
    int64_t lease_ms;             /* service.store.lease of the start */
    char address[256];            /* service.fetch.address of the start; "": no such key */
    struct pb_guests *guests;     /* NULL: no service.fetch */
    struct pb_opening *opening;   /* the store is being opened on the pool; NULL: it is not */
    /* the entries of notify are being stored, or must be stored again */
    bool subscribes, subscribe_again;
    uv_work_t sweep; /* sweep of work/ */
    struct pb_adopted swept;
    uv_work_t tidy; /* retention in archive and quarantine */
    struct pb_retention retention;
    struct pb_retention_result tidied;
    bool tidies;
    int64_t tidy_at_ms;
    bool saves_time; /* the service time is saved in this round */
    int64_t save_time_at_ms;
    bool sweeps_runs; /* runs of other nodes that are over are swept in this round */
    int64_t runs_at_ms;
    char swept_products[PB_FILES_PATH_BYTES];
    bool sweeps; /* true while `sweep` runs */
    char *socket;
    struct pb_dirs_locks locks;
    /* earliest time of the next sweep, and of the next try to open the store */
    int64_t sweep_at_ms, open_at_ms;
    int64_t open_wait_ms; /* interval of the tries to open the store, which grows; 0: not tried */
    bool store_open;
    unsigned beats; /* since the first scan began */
    bool ready;
    bool failed; /* stops because it cannot serve; the exit status shows it */
};

/* Opens the job store on the pool, then starts the parts that need it. While it does not open (a
 * full disk, an I/O error), the service runs, reports that, and tries again: this is called
 * repeatedly and does nothing once the store is open. */
void pb_daemon_open_jobs(struct pb_daemon *daemon);

/* Sends changes of jobs to the clients that watch them. */
void pb_daemon_tell(struct pb_daemon *daemon, const struct pb_job *jobs, size_t n);

/* --- daemon_nodes.c: this service as a node of a store that several share ----------------------
 */

/* The name of this node; "" without service.store. */
void pb_daemon_node_name(const struct pb_service_config *service, char out[PB_JOB_NODE_BYTES]);
/* Begins the session of this node (pb_nodes_join) with the store that was just opened. Thread:
 * pool.
 */
int pb_daemon_join(struct pb_daemon *daemon, struct pb_err *err);
/* Makes the token of the directory of products if no node has made it, then checks it
 * (pipeline/publish/publish_root.h). Returns 0, or a negative errno and *err. Thread: pool, one at
 * a time. */
int pb_daemon_check_products(struct pb_daemon *daemon, const char *products, struct pb_err *err);
/* Takes the inboxes that this node may watch, and gives back those of nodes that report. since_ms:
 * pb_clock_boot_ms before the last report, from which the lease counts. at_start: log inboxes that
 * other nodes watch. Thread: pool. */
int pb_daemon_hold_inboxes(struct pb_daemon *daemon, int64_t since_ms, bool at_start,
                           struct pb_err *err);
/* Starts and stops the beat: it renews the lease, takes requests of other nodes, and notices
 * their changes. While the store cannot be reached nothing new is taken, and runs continue. Nothing
 * happens for a store without nodes. */
int pb_daemon_start_beat(struct pb_daemon *daemon, struct pb_err *err);
void pb_daemon_stop_beat(struct pb_daemon *daemon);
/* Frees the beat, and ends the session. Call after the loop has ended. */
void pb_daemon_free_beat(struct pb_daemon *daemon);

/* --- subscribe.c ------------------------------------------------------------------------------ */

/* Entries of notify that become subscribers of the journal. */
struct pb_subscribing;
/* Copies the entries. NULL = out of memory. */
struct pb_subscribing *pb_daemon_subscribers(struct pb_daemon *daemon);
/* Stores them. Returns 0 or a negative errno. Thread: pool. */
int pb_daemon_subscribers_store(struct pb_subscribing *all, struct pb_err *err);
/* Reports the result, unless the service stops, and frees them (NULL is allowed). Returns false if
 * they must be stored again. */
bool pb_daemon_subscribers_end(struct pb_subscribing *all);
/* Stores them on the pool, after a reload. A failure is a trouble; it is tried again at each beat
 * while subscribe_again. */
void pb_daemon_subscribe(struct pb_daemon *daemon);
/* Call after the states of the subscribers were read: raises or clears the trouble of events that
 * wait too long. user: the daemon. */
void pb_daemon_look_at_subscribers(void *user);
/* Starts to answer clients, and notifies systemd. Called once. */
void pb_daemon_become_ready(struct pb_daemon *daemon);
/* Tries again to archive or quarantine inputs, every few seconds at most. */
void pb_daemon_sweep_work(struct pb_daemon *daemon);
/* Removes inputs whose service.retention is over, once a minute at most. */
void pb_daemon_tidy(struct pb_daemon *daemon);
#endif
