/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_POOL_H
#define PB_WORKER_POOL_H
/* The worker slots of the service, and their reports. It knows no queue and no store. Members of
 * struct pb_worker_pool belong to worker_pool.c, except those above the line, which the owner sets
 * before pb_pool_init. Handlers may call into the pool. Thread: loop. */
#include "service/inbox/dirs.h"
#include "service/processes/device_owners.h"
#include "service/runner/runner_env.h"
#include "service/processes/worker_slot.h"

#define PB_POOL_SLOTS_MAX 64

/* A worker slot, and what the runner knows of it. */
struct pb_pool_slot {
    struct pb_worker_slot *worker;
    bool reserved; /* for a job whose start is being stored */
    bool express;  /* its job runs over parallel_jobs; see express.h */
    int owner;     /* number of the device's owner that computes its job; -1 if no owner does */
    int64_t express_until_ms;
    bool changed;        /* on_change has not reported the last change of its job */
    int64_t notified_ms; /* time of the last on_change */
};

struct pb_worker_pool {
    uv_loop_t *loop;
    const char *worker;        /* program; borrowed, as all of these */
    const char *owner_program; /* program that owns a device */
    const char *owner_device;  /* device whose owner computes all jobs, or several with commas, see
                                  main_pushbroomd.c; NULL: as configured */
    const struct pb_dirs *dirs;
    const struct pb_runner_env *env;
    /* The run of the slot's job is over. slot->express is what it was during the run. */
    void (*on_over)(void *user, struct pb_pool_slot *slot, struct pb_run_over *over);
    void (*on_free)(void *user); /* a slot can take a job that could not before */
    void *user;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_worker_slot_owner owner;
    struct pb_device_owners *device_owners;
    struct pb_pool_slot slots[PB_POOL_SLOTS_MAX];
    int hung[PB_POOL_SLOTS_MAX]; /* pids of workers that were given up; 0 = none */
    int n_sweeps;                /* on libuv's pool */
    char device[64], device_why[256];
    uint64_t planned_bytes;
};

/* 0 or -ENOMEM: nothing is held then. */
int pb_pool_init(struct pb_worker_pool *pool);
void pb_pool_fini(struct pb_worker_pool *pool);
/* env->config has changed. If no job runs, a worker is queried for the device. */
void pb_pool_config_changed(struct pb_worker_pool *pool);

/* Starts the process of an empty slot. */
int pb_pool_start_worker(struct pb_pool_slot *slot, struct pb_err *err);
/* Hands the job (taken, already running and stored) to the slot's worker. known: as in struct
 * pb_run_how. */
void pb_pool_run(struct pb_worker_pool *pool, struct pb_pool_slot *slot, struct pb_job *job,
                 const char *known);
/* A slot with an idle worker if there is one, else one without a worker; NULL = none. */
struct pb_pool_slot *pb_pool_free_slot(struct pb_worker_pool *pool);
/* Reports overdue changes of jobs and checks the limits of time; true: call it again. */
bool pb_pool_tick(struct pb_worker_pool *pool, int64_t mono_ms);
/* The same while the service drains since that time: ends what is not nearly done. */
void pb_pool_drain(struct pb_worker_pool *pool, int64_t since_ms, int64_t mono_ms);
/* Ends idle workers above the number `most`. */
void pb_pool_trim(struct pb_worker_pool *pool, int64_t most);
/* Reaps workers that were given up and have ended since. */
void pb_pool_reap(struct pb_worker_pool *pool);

/* The slot's job, borrowed until the next call into the loop; NULL if it has no job. */
const struct pb_job *pb_pool_job(const struct pb_pool_slot *slot);
/* The slot that runs the job of that id; NULL = none. */
struct pb_pool_slot *pb_pool_find(struct pb_worker_pool *pool, const char *id);
/* The slot of the express job that runs; NULL = none. */
struct pb_pool_slot *pb_pool_express(struct pb_worker_pool *pool);
/* Returns true if a running job has the same id or scene. */
bool pb_pool_blocks(const struct pb_worker_pool *pool, const struct pb_job *job);
/* No slot is reserved, and each job runs for at least that time. */
bool pb_pool_all_run_for(const struct pb_worker_pool *pool, int64_t ms, int64_t mono_ms);
int64_t pb_pool_busy(const struct pb_worker_pool *pool);     /* slots with a job */
int64_t pb_pool_taken(const struct pb_worker_pool *pool);    /* with a job, or reserved */
int64_t pb_pool_ordinary(const struct pb_worker_pool *pool); /* taken, but not for express jobs */
int64_t pb_pool_workers(const struct pb_worker_pool *pool);  /* processes */
#endif
