/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_QUEUE_H
#define PB_JOB_QUEUE_H
/* The queue of waiting jobs. The queue is the job store, sorted by priority and order of
 * acceptance; this module takes jobs from it and finds jobs in it. All of that happens on libuv's
 * pool, because the store may wait for a disk or a network; results arrive on the loop. No other
 * part of the runner reads the store. Thread: loop, unless noted. */
#include "service/base/files.h"
#include "service/jobs/archive_rows.h"
#include "service/jobs/job_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#define PB_JOB_TAKE_MAX 16 /* jobs that one call takes */
#define PB_JOB_RANKS    ((int64_t)1 << 50)

/* Job that was taken. */
struct pb_taken {
    struct pb_job job;          /* running; a job whose scenes are over still waits */
    bool ran;                   /* it may have published already */
    struct pb_job_error before; /* its error while it waited */
    struct pb_err unmatched;    /* why no pipeline was found for its input; PB_OK: unknown */
};

/* Conditions of a take. The functions see only seq, priority, id, scene, owned, input,
 * pipeline, name, bytes, is_long, node, needs, needs_gpu, error.code, error.memory_bytes and
 * updated_ms of a job, borrowed, except match, which sees all. Thread of the functions: pool. */
struct pb_job_ask {
    int n;                     /* jobs wanted; 0: the result is only whether one may start */
    bool (*ready)(void *user); /* false: no job may start now; NULL: not called */
    bool (*may)(void *user, const struct pb_job *job);
    /* Rank >= 0 and below PB_JOB_RANKS, lowest first; NULL: all 0. */
    int64_t (*rank)(void *user, const struct pb_job *job);
    /* if false, a job of a higher priority is before all ranks of a lower priority */
    bool by_rank_alone;
    bool fetches;  /* inputs of other nodes are copied; may decides about them */
    bool smallest; /* only the job with the smallest input among the first 1000 */
    /* Finds the pipeline of a job without one, before it starts; NULL: not called. */
    void (*match)(void *user, struct pb_taken *taken);
    void *user;
};

struct pb_job_queue {
    uv_loop_t *loop;
    struct pb_job_store *store, *reader; /* borrowed, like all of these */
    pthread_rwlock_t *moves;             /* lock of struct pb_intake */
    /* ---------------------------------------------------------------------------------------- */
    int n_works; /* calls on the pool */
    bool takes;  /* a call of pb_job_queue_take is on the pool */
    struct pb_job_ask ask;
    char seen[PB_FILES_PATH_BYTES]; /* directory of inputs of other nodes that is there */
    uv_work_t work;
    void (*taken)(void *user);
    int64_t refused[PB_JOB_TAKE_MAX]; /* numbers of jobs that the store refused in this call */
    int n_refused;
    /* Jobs that wait, but may be stored as running, because their take failed: they are put back
     * before the next take. */
    struct pb_job doubts[PB_JOB_TAKE_MAX];
    atomic_int n_doubts; /* read by the loop during a take */
    /* ---- results of the last take ---- */
    struct pb_taken jobs[PB_JOB_TAKE_MAX];
    int n;
    bool found; /* a job may start */
    /* directory of inputs of other nodes that is not there: their jobs are left; "": none */
    char unseen[PB_FILES_PATH_BYTES];
    int rc; /* 0, or negative errno and *err: no further job can be taken */
    struct pb_err err;
};

/* Takes at most n jobs that may start, in order, in one transaction; then calls taken(user) on
 * the loop, with the results in *queue, whose jobs the callback takes. One call at a time. */
void pb_job_queue_take(struct pb_job_queue *queue, const struct pb_job_ask *ask,
                       void (*taken)(void *user));
/* The same without a loop, without the callback. Thread: pool. */
void pb_job_queue_take_now(struct pb_job_queue *queue);

void pb_job_queue_fini(struct pb_job_queue *queue);

enum pb_lookup_kind {
    PB_LOOKUP_JOB,    /* the job with that id in any state, as stored */
    PB_LOOKUP_ARCHIVE /* the job of that archive, if it waits and its scenes are over */
};

struct pb_lookup {
    uv_work_t work;
    struct pb_job_queue *queue;
    enum pb_lookup_kind kind;
    char id[PB_JOB_ID_BYTES];
    void (*then)(void *user, struct pb_lookup *lookup);
    void *user;
    /* ---- results ---- */
    int rc; /* 0, or negative errno and *err */
    struct pb_err err;
    struct pb_job job;            /* the callback takes it if rc is 0 */
    struct pb_archive_ids scenes; /* unfinished scenes of a waiting archive; malloc'd, taken too */
    bool skipped;                 /* a scene of a successful archive was skipped */
};

/* Finds the job by lookup->id (set by the caller, like kind, then and user); then calls then(user,
 * lookup) on the loop, which may free the lookup. */
void pb_job_queue_find(struct pb_job_queue *queue, struct pb_lookup *lookup);
#endif
