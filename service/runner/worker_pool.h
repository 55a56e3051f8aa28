/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_POOL_H
#define PB_WORKER_POOL_H
/* Worker slots of the service, and their reports. The pool knows neither queue nor store. Members
 * of struct pb_worker_pool belong to worker_pool.c, except those above the line, which the owner
 * sets before pb_pool_init. Handlers may call into the pool. Thread: loop. */
#include "service/inbox/dirs.h"
#include "service/processes/device_owners.h"
#include "service/runner/runner_env.h"
#include "service/processes/turns.h"
#include "service/processes/worker_slot.h"

#define PB_POOL_SLOTS_MAX PB_TURNS_MAX

struct pb_node; /* service/jobs/nodes.h */

/* Worker slot, and the runner's data about it. */
struct pb_pool_slot {
    struct pb_worker_slot *worker;
    bool reserved;  /* reserved for a job that is being taken */
    bool express;   /* its job runs in addition to parallel_jobs; see express.h */
    bool live;      /* its job waits for lines of a stream; it runs in addition to parallel_jobs */
    bool publishes; /* all tiles of its job are computed */
    bool has_left;  /* it publishes in addition to the jobs that compute */
    int owner; /* number of the device's owner that computes its job; -1: no owner does any more */
    int64_t express_until_ms;
    bool is_late;        /* its job is put back because it took longer than service.express */
    bool changed;        /* the last change of its job was not reported by on_change yet */
    int64_t notified_ms; /* time of the last on_change */
};

struct pb_worker_pool {
    uv_loop_t *loop;
    const char *worker;        /* path of the program; borrowed, like all of these */
    const char *owner_program; /* program that owns a device */
    const char *owner_device;  /* device whose owner computes all jobs, or several with commas, see
                                  main_pushbroomd.c; NULL: as configured */
    const struct pb_dirs *dirs;
    const struct pb_runner_env *env;
    /* Called when the run of the slot's job is over. slot->express has its value from the run. */
    void (*on_over)(void *user, struct pb_pool_slot *slot, struct pb_run_over *over);
    /* called with alerts of a running job */
    void (*on_alerts)(void *user, const struct pb_job *job, const struct pb_job_alert *alerts,
                      size_t n);
    void (*on_free)(void *user); /* called when a slot can take a job again */
    /* called when the run of a slot waits for its permit (pb_worker_slot_wants_permit) */
    void (*on_permit)(void *user);
    void *user;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_worker_slot_owner owner;
    struct pb_device_owners *device_owners;
    struct pb_pool_slot slots[PB_POOL_SLOTS_MAX];
    struct pb_turns turns;       /* turns of the ordinary jobs, if they share the memory */
    int hung[PB_POOL_SLOTS_MAX]; /* pids of workers that were given up; 0 = free entry */
    int n_sweeps;                /* sweeps on libuv's pool */
    char device[64], device_why[256];
    uint64_t planned_bytes;
};

/* Returns 0 or -ENOMEM, without memory to free. */
int pb_pool_init(struct pb_worker_pool *pool);
void pb_pool_fini(struct pb_worker_pool *pool);
/* Call after env->config has changed. If no job runs, a worker is queried for the device. */
void pb_pool_config_changed(struct pb_worker_pool *pool);

/* Starts the process of an empty slot. */
int pb_pool_start_worker(struct pb_pool_slot *slot, struct pb_err *err);
/* Passes the job (taken, already running and stored) to the slot's worker. known: as in struct
 * pb_run_how. from: node that has the input (pb_fetched_home); NULL: this one. */
void pb_pool_run(struct pb_worker_pool *pool, struct pb_pool_slot *slot, struct pb_job *job,
                 const char *known, const struct pb_node *from);
/* Finds a slot with an idle worker, otherwise a slot without a worker; NULL if there is no free
 * slot. */
struct pb_pool_slot *pb_pool_free_slot(struct pb_worker_pool *pool);
/* Reports overdue changes of jobs and checks the time limits; returns true if it must be called
 * again. */
bool pb_pool_tick(struct pb_worker_pool *pool, int64_t mono_ms);
/* Does the same while the service stops since since_ms: ends jobs that are not nearly done, and,
 * if the store gives no permits, those that wait for one. */
void pb_pool_stop(struct pb_worker_pool *pool, int64_t since_ms, int64_t mono_ms, bool no_permits);
/* Ends all runs, whose jobs are put back. */
void pb_pool_put_back(struct pb_worker_pool *pool);
/* Kills all runs. */
void pb_pool_forsake(struct pb_worker_pool *pool);
/* Ends idle workers beyond the number `most`. */
void pb_pool_trim(struct pb_worker_pool *pool, int64_t most);
/* Reaps workers that were given up and have ended since. */
void pb_pool_reap(struct pb_worker_pool *pool);

/* Job of the slot, borrowed until the next call into the loop; NULL if it has no job. */
const struct pb_job *pb_pool_job(const struct pb_pool_slot *slot);
/* Finds the slot that runs the job with that id; NULL if absent. */
struct pb_pool_slot *pb_pool_find(struct pb_worker_pool *pool, const char *id);
/* Finds the slot of the running express job; NULL if absent. */
struct pb_pool_slot *pb_pool_express(struct pb_worker_pool *pool);
/* Returns true if no slot is reserved, and each job has run for at least that time. */
bool pb_pool_all_run_for(const struct pb_worker_pool *pool, int64_t ms, int64_t mono_ms);
int64_t pb_pool_busy(const struct pb_worker_pool *pool);  /* slots with a job */
int64_t pb_pool_taken(const struct pb_worker_pool *pool); /* slots with a job or reserved */
/* Slots whose jobs publish and make room for others: service.publishing_jobs of them at most. */
int64_t pb_pool_publishing(const struct pb_worker_pool *pool);
/* Taken slots without slots that publish and slots of express jobs and of streams. */
int64_t pb_pool_ordinary(const struct pb_worker_pool *pool);
/* Taken slots of streams; with and_publishing also slots whose lines are all computed. */
int64_t pb_pool_live(const struct pb_worker_pool *pool, bool and_publishing);
/* Largest number of ordinary jobs at a time. */
int64_t pb_pool_most(const struct pb_worker_pool *pool);
/* Returns true if another ordinary job may begin. */
bool pb_pool_may_begin(struct pb_worker_pool *pool);
int64_t pb_pool_workers(const struct pb_worker_pool *pool); /* processes of workers */
#endif
