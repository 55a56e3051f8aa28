/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PENDING_H
#define PB_PENDING_H
/* Changes of jobs' states that are being stored. This is the only part of the runner that writes to
 * the job store and moves inputs; both happen on libuv's pool, never on the loop. A change that the
 * store refuses (a full disk, a locked file) is kept, shown unchanged, and tried again. Members of
 * struct pb_pending_list belong to pending.c, except those above the line, which the owner sets
 * before the first use. Thread: loop. */
#include "config/output/output_path.h"
#include "service/inbox/dirs.h"
#include "service/jobs/file_list.h"
#include "service/jobs/job_store.h"
#include "service/runner/again.h"
#include "service/runner/runner_env.h"
#include "service/base/files.h"
#include "service/worker/duplicates.h"
#include "service/base/troubles.h"

#include <pthread.h>
#include <uv.h>

struct pb_pool_slot;

enum pb_pending_step {
    PB_PENDING_LOOK,    /* checks whether the job's products are in place (outcome.h) */
    PB_PENDING_STORE,   /* stores its state; then, when it is over, puts its input away */
    PB_PENDING_RESTORE, /* fetches its input back for a retry, then stores its state */
    PB_PENDING_COMPARE, /* verifies that its content was done before (duplicates.h) */
    PB_PENDING_DROP,    /* removes its input from quarantine, then stores that */
    PB_PENDING_AGAIN    /* stores another job that makes its products again */
};

/* Request that waits for the end of a change. */
struct pb_pending_waiter {
    struct pb_pending_waiter *next;
    bool served; /* the change is the requested one */
    /* The change is over: rc 0, or what kept it from the disk and *err. Takes the waiter. */
    void (*done)(struct pb_pending_waiter *waiter, int rc, const struct pb_err *err);
};

/* A job between two states. No other change of it begins before this one is on the disk. */
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
    bool retains;          /* service.retention.done is set */
    int64_t duplicates_ms; /* service.duplicates.keep; 0 = contents are not compared */
    int64_t reopen_ms;     /* input.complete.reopen of the job's pipeline */
    void (*then)(void *user, struct pb_pending *pending);
    void *user;
    struct pb_pending_waiter *waiters; /* oldest first */
    bool failed;                       /* the store did not take it */
    bool disposed;                     /* the input is put away */
    struct pb_err dispose_err;
    struct pb_input_lists lists; /* files of the input, for the store */
    /* Results of a step, for `then`. */
    bool published;                     /* LOOK found the products in place */
    enum pb_duplicates_verdict verdict; /* result of COMPARE */
    char *known; /* STORE of a start: checksums that its input is compared with; NULL: no comparison
                  */
    struct pb_again again; /* options of AGAIN, and the stored job; no id: not stored */
    struct pb_job made;
    bool stored; /* STORE was successful once, at least */
    int rc;      /* result of STORE, RESTORE, DROP and AGAIN */
    struct pb_err err;
    /* Notes of job_start.c and job_end.c. */
    struct pb_pool_slot *slot; /* reserved for the job */
    enum pb_job_status status; /* final state of the job */
    int64_t began_ms;          /* monotonic: of the run that a fault of the machine ended */
    bool announced;            /* on_change has reported the new state */
};

struct pb_pending_list {
    uv_loop_t *loop;
    struct pb_job_store *store; /* borrowed, as all of these */
    pthread_rwlock_t *moves;
    const struct pb_dirs *dirs;
    struct pb_troubles *troubles;
    const struct pb_runner_env *env;
    void (*on_settled)(void *user); /* a change is on the disk: other jobs may start */
    void (*on_kept)(void *user);    /* one is not: pb_pending_tick has something to do */
    void *user;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_pending *first;
    int n, n_works; /* n_works: on the pool */
    int64_t save_at_ms;
};

/* Takes what the job holds. NULL = out of memory: the job is lost to this run of the service. */
struct pb_pending *pb_pending_add(struct pb_pending_list *list, struct pb_job *job);
/* Does the step on the pool; then calls then(user, pending) on the loop. */
void pb_pending_work(struct pb_pending *pending, enum pb_pending_step step,
                     void (*then)(void *user, struct pb_pending *pending), void *user);
/* The change is over: its waiters get rc 0, or rc and *err. Frees it. */
void pb_pending_end(struct pb_pending *pending, int rc, const struct pb_err *err);
/* The end of a PB_PENDING_STORE that was announced: over, or kept and tried again. */
void pb_pending_settle(struct pb_pending *pending);
/* Reports success to the served waiters before the change is over: the requested part is stored. */
void pb_pending_answer(struct pb_pending *pending);
/* The waiter (taken) waits until the change is over. A kept change is tried again at once. */
void pb_pending_wait(struct pb_pending *pending, struct pb_pending_waiter *waiter);

/* The change of the job with that id; NULL = none. */
struct pb_pending *pb_pending_find(const struct pb_pending_list *list, const char *id);
/* Returns true if a change keeps the job from starting: one of the job itself, or one of its scene
 * that is in progress or kept: the store has an older place of the input of that one. */
bool pb_pending_blocks(const struct pb_pending_list *list, const struct pb_job *job);
/* Tries kept changes again, every 5 s. */
void pb_pending_tick(struct pb_pending_list *list, int64_t mono_ms);
/* At the end: tries kept changes one last time, synchronously, if try_again is set, and frees all.
 */
void pb_pending_free(struct pb_pending_list *list, bool try_again);
#endif
