/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PENDING_H
#define PB_PENDING_H
/* Changes of jobs' states that are being stored, and permits to publish. This is the only part of
 * the runner that writes to the job store and moves inputs; both happen on libuv's pool, never on
 * the loop. A change that the store refuses (a full disk, a locked file) is kept, shown unchanged,
 * and tried again.
 *
 * Before a run publishes, the store must confirm that the job is running in this epoch (store.h);
 * otherwise the run publishes nothing. While the store does not answer, the runs wait, and the
 * requests are repeated. A run that is over is dropped if the job has a later epoch.
 * Members of struct pb_pending_list belong to pending.c, except those above the line, which the
 * owner sets before the first use. Thread: loop. */
#include "config/output/output_path.h"
#include "service/inbox/dirs.h"
#include "service/jobs/file_list.h"
#include "service/jobs/job_store.h"
#include "service/jobs/nodes.h"
#include "service/runner/again.h"
#include "service/runner/runner_env.h"
#include "service/runner/worker_pool.h"
#include "service/base/files.h"
#include "service/worker/duplicates.h"
#include "service/base/troubles.h"

#include <pthread.h>
#include <uv.h>

enum pb_pending_step {
    /* checks whether the job's products are in place (outcome.h), unless the job that ran has a
     * later epoch in the store: -ESTALE */
    PB_PENDING_LOOK,
    PB_PENDING_PREPARE, /* reads what its run must know of other jobs */
    /* stores its state; then, when it is over, moves its input to its final place */
    PB_PENDING_STORE,
    PB_PENDING_RESTORE, /* fetches its input back for a retry, then stores its state */
    PB_PENDING_COMPARE, /* verifies that its content was processed before (duplicates.h) */
    PB_PENDING_DROP,    /* removes its input from quarantine, then stores the removal */
    PB_PENDING_AGAIN,   /* stores a new job that makes its products again */
    /* Stores jobs of the scenes that its report lists, for which the job then waits
     * (archive_rows.h) */
    PB_PENDING_SPLIT,
    PB_PENDING_SUM, /* finds the final status of a job with scenes, and its report */
    PB_PENDING_ASK  /* stores a request for the node that has it */
};

/* Request that waits for the end of a change. */
struct pb_pending_waiter {
    struct pb_pending_waiter *next;
    bool served; /* the change is the requested one */
    /* Called when the change is over: rc 0, or the reason why it was not stored and *err. Takes
     * the waiter. */
    void (*done)(struct pb_pending_waiter *waiter, int rc, const struct pb_err *err);
};

/* Job between two states. No other change of the job begins before this one is on the disk. */
struct pb_pending {
    struct pb_pending *next;
    struct pb_pending_list *list;
    uv_work_t work;
    bool works; /* the pool's thread owns job (except id and scene) and the results below */
    enum pb_pending_step step;
    struct pb_job job;
    char products[PB_FILES_PATH_BYTES]; /* directory of the service */
    char path[PB_OUTPUT_PATH_BYTES];    /* output.path of the job's pipeline */
    enum pb_on_success on_success;
    bool fetches;          /* service.fetch is set */
    bool retains;          /* service.retention.done is set */
    int64_t duplicates_ms; /* service.duplicates.keep; 0 = contents are not compared */
    int64_t reopen_ms;     /* input.complete.reopen of the job's pipeline */
    void (*then)(void *user, struct pb_pending *pending);
    void *user;
    struct pb_pending_waiter *waiters; /* oldest first */
    bool failed;                       /* the store refused it */
    bool disposed;                     /* the input is at its final place */
    struct pb_err dispose_err;
    struct pb_input_lists lists; /* files of the input, for the store */
    /* Results of a step, for the callback `then`. */
    bool published; /* LOOK found the products in place */
    bool unseen;    /* LOOK did not see the directory of products: it may have published */
    enum pb_duplicates_verdict verdict; /* result of COMPARE */
    char *known; /* PREPARE: checksums that its input is compared with; NULL: no comparison */
    struct pb_again again; /* options of AGAIN, and the stored job; no id: not stored */
    struct pb_job made;
    struct pb_job *scenes; /* jobs that SPLIT stored */
    size_t n_scenes;
    bool stored; /* STORE was successful once, at least */
    /* result of all steps but COMPARE; 1: PREPARE set job.error, and the job must fail; after
     * -ESTALE (store.h) `then` is not called */
    int rc;
    struct pb_err err;
    /* Notes of job_start.c and job_end.c. */
    struct pb_pool_slot *slot;    /* reserved for the job */
    struct pb_config *config;     /* configuration with which it was taken, held; NULL: none */
    struct pb_job_error before;   /* error of a job that was taken, while it waited */
    struct pb_err unmatched;      /* why no pipeline was found for it */
    enum pb_job_status status;    /* final state of the job; set by SUM */
    char node[PB_JOB_NODE_BYTES]; /* node that PB_PENDING_ASK stores the request for */
    struct pb_node_request request;
    int64_t began_ms; /* monotonic: of the run that a fault of the machine ended */
    bool announced;   /* on_change has reported the new state */
};

/* Requests for permits that the pool's thread passes to the store together. */
struct pb_permits {
    uv_work_t work;
    bool failed;   /* the store did not answer the last request */
    int64_t at_ms; /* time of the next one, monotonic */
    bool works;    /* the pool's thread owns the members below */
    struct pb_err err;
    struct {
        int slot;
        char id[PB_JOB_ID_BYTES];
        int64_t epoch;
        int rc;
    } at[PB_POOL_SLOTS_MAX];
    int n;
};

struct pb_pending_list {
    uv_loop_t *loop;
    struct pb_worker_pool *pool; /* its runs request permits; borrowed, like all of these */
    struct pb_job_store *store;
    pthread_rwlock_t *moves;
    const struct pb_dirs *dirs;
    struct pb_troubles *troubles;
    const struct pb_runner_env *env;
    /* called when a change is over: other jobs may start, and its job if it waits */
    void (*on_settled)(void *user);
    /* called when the store refused a change: pb_pending_tick tries it again */
    void (*on_kept)(void *user);
    /* called when a change was dropped, because the store has another state or epoch of the job */
    void (*on_dropped)(void *user, const struct pb_job *job);
    void *user;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_pending *first;
    struct pb_pending *spare; /* reserved memory that is not in use */
    int64_t n_spare, n_reserved;
    int n, n_works; /* n_works: count of changes and requests on the pool */
    struct pb_permits permits;
    int64_t save_at_ms;
};

/* Adds a change of a job that waits or is over; takes the job's memory. NULL = out of memory. */
struct pb_pending *pb_pending_add(struct pb_pending_list *list, struct pb_job *job);
/* Call before jobs are taken: makes memory for the changes of n jobs that are being taken or run,
 * so that each can be put back or ended. Returns 0, or -ENOMEM: no job may be taken. */
int pb_pending_reserve(struct pb_pending_list *list, int64_t n);
/* Adds a change of a job that was taken or has run, in memory that was reserved for it; takes the
 * job's memory. */
struct pb_pending *pb_pending_add_taken(struct pb_pending_list *list, struct pb_job *job);
/* Does the step on the pool; then calls then(user, pending) on the loop. */
void pb_pending_work(struct pb_pending *pending, enum pb_pending_step step,
                     void (*then)(void *user, struct pb_pending *pending), void *user);
/* Call when the change is over: its waiters get rc 0, or rc and *err. Frees it. */
void pb_pending_end(struct pb_pending *pending, int rc, const struct pb_err *err);
/* Ends a PB_PENDING_STORE that was announced: the change is over, or kept and tried again. */
void pb_pending_settle(struct pb_pending *pending);
/* Reports success to the served waiters before the change is over: the part that they requested is
 * stored. */
void pb_pending_answer(struct pb_pending *pending);
/* Adds the waiter (taken), which waits until the change is over. A kept change is tried again
 * immediately. */
void pb_pending_wait(struct pb_pending *pending, struct pb_pending_waiter *waiter);

/* Finds the change of the job with that id; NULL if absent. */
struct pb_pending *pb_pending_find(const struct pb_pending_list *list, const char *id);
/* Finds a change of a job with that archive, of a scene or one made again; NULL if absent. */
struct pb_pending *pb_pending_find_scene(const struct pb_pending_list *list, const char *archive);
/* Number of changes of jobs that have no slot of the pool. */
int pb_pending_count_free(const struct pb_pending_list *list);
/* Job that must not start, and its scene, of which no job may start; "": any other job may. */
struct pb_pending_block {
    char id[PB_JOB_ID_BYTES];
    char scene[PB_JOB_NAME_BYTES];
};
/* Lists the jobs with changes into out, list->n entries. A scene is blocked while its change is in
 * progress or kept, because the store then has an older place of that input. */
void pb_pending_list_blocks(const struct pb_pending_list *list, struct pb_pending_block *out);
/* Requests permits for all runs of the pool that wait for one. */
void pb_pending_permit(struct pb_pending_list *list);
/* Lets the next tick try all of that again, because the store answers again. */
void pb_pending_hurry(struct pb_pending_list *list);
/* Tries kept changes again, every 5 s, and permits that the store did not answer. */
void pb_pending_tick(struct pb_pending_list *list, int64_t mono_ms);
/* Call at the end: tries kept changes one last time, synchronously, if try_again is set, and frees
 * all. */
void pb_pending_free(struct pb_pending_list *list, bool try_again);
#endif
