/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUNNER_PARTS_H
#define PB_RUNNER_PARTS_H
/* Inside the runner: the queue, the places that jobs run at, and what waits for the disk. A place
 * has a worker slot (worker_slot.h), which knows nothing of all this. Nobody else includes this.
 * Thread: loop. */
#include "service/runner/config_waits.h"
#include "service/runner/hold.h"
#include "service/runner/runner.h"
#include "service/runner/worker_slot.h"

#define PB_RUNNER_NOTIFY_MS 200  /* between two progress events of a job */
#define PB_EXPRESS_LONG_MAX 256  /* long jobs that are remembered */
#define PB_EXPRESS_LOOK_MS  1000 /* between two looks whether the express place opens */

struct pb_place {
    struct pb_worker_slot *slot;
    bool reserved; /* for a job that is just being started (PB_PENDING_STORE) */
    bool express;  /* it is one more than parallel_jobs, for short jobs */
    int64_t express_until_ms;
    bool changed;        /* there is news that on_change has not told */
    int64_t notified_ms; /* of the last on_change */
};

/* What waits for the disk, on libuv's pool. */
enum pb_pending_step {
    PB_PENDING_LOOK,   /* whether the job's products are in place (outcome.h) */
    PB_PENDING_STORE,  /* its state; then, when it is over, its input is put away */
    PB_PENDING_RESTORE /* its input for a retry, then its state */
};

/* A job between two states: nobody else does anything with it before the new one is on the disk.
 * While the store does not take it (a full disk) it stays here and is tried again. */
struct pb_pending {
    struct pb_pending *next;
    struct pb_runner *runner;
    uv_work_t work;
    bool works; /* job and what follows are the pool's, but for id and scene */
    enum pb_pending_step step;
    struct pb_job job;
    char products[PB_FILES_PATH_BYTES]; /* of the service */
    enum pb_on_success on_success;
    bool published; /* found by PB_PENDING_LOOK */
    bool stored;    /* once, at least */
    bool disposed;  /* its input is put away */
    int rc;         /* of STORE and RESTORE */
    struct pb_err err, dispose_err;
    /* Of the loop. */
    void (*then)(struct pb_pending *pending);
    enum pb_job_status status;          /* that it is to end with */
    struct pb_place *place;             /* reserved for it */
    int64_t began_ms;                   /* of the run that a fault of the machine ended */
    bool announced;                     /* everybody knows of the new state */
    bool failed;                        /* the store did not take it */
    struct pb_runner_request *requests; /* that wait for it, oldest first */
};

/* What somebody asks of a job. */
struct pb_runner_request {
    struct pb_runner_request *next;
    bool retries; /* else it cancels */
    bool served;  /* by the change that is pending: answered when that is on the disk */
    uint64_t ticket;
    char id[PB_JOB_ID_BYTES];
    char identity[PB_JOB_IDENTITY_BYTES];
};

/* The place for short jobs; see runner_express.c. Zero bytes: nothing is known. */
struct pb_express {
    int64_t known_long[PB_EXPRESS_LONG_MAX]; /* numbers of jobs */
    size_t next_long;
    int64_t pause_until_ms, look_at_ms;
    int in_vain; /* tries since the last short job */
};

struct pb_runner {
    struct pb_runner_options options;
    const struct pb_config *config;
    struct pb_worker_slot_owner owner; /* of the slots */
    struct pb_place places[PB_RUNNER_PLACES_MAX];
    uv_timer_t tick;
    struct pb_hold hold;
    struct pb_config_waits waits;
    struct pb_express express;
    bool more;  /* the next tick starts further jobs */
    bool kicks; /* jobs are being started: a kick from there is for later */
    int64_t
        next_after;   /* waiting jobs up to this number cannot start just now; 0 = from the first */
    int64_t drain_ms; /* when drain was called; 0 = not */
    void (*drained)(void *user);
    void *drained_user;
    int hung[PB_RUNNER_PLACES_MAX]; /* pids of workers given up, to be reaped if they end; 0 = none
                                     */
    struct pb_pending *pending;
    int n_pending, n_works; /* n_works: on the pool */
    int64_t save_at_ms;     /* of those that the store did not take */
    char device[64], device_why[256];
    uint64_t planned_bytes;
};

/* --- runner_slots.c: what becomes of what slots report --- */
/* The handlers of the runner's slots. */
void pb_runner_own_slots(struct pb_runner *runner);
/* Tells of the place's job now. */
void pb_place_notify(struct pb_runner *runner, struct pb_place *place);
/* Starts the process of an empty place. */
int pb_place_start_worker(struct pb_place *place, struct pb_err *err);
/* Hands the job (taken, already running and stored) to the place's worker. */
void pb_place_run(struct pb_runner *runner, struct pb_place *place, struct pb_job *job);
/* The place's job; NULL = it has none. */
const struct pb_job *pb_place_job(const struct pb_place *place);
/* It has a job, or is about to. */
bool pb_place_is_taken(const struct pb_place *place);
/* --- runner_faults.c: faults of the machine; hold.h has the rule --- */
/* A run that began then ended by the fault that stands in job->error (taken): the job waits again,
 * or fails. */
void pb_runner_set_back(struct pb_runner *runner, struct pb_job *job, int64_t began_ms);
/* The configuration ended a run of it: the job waits for another one, or fails (config_waits.h). */
void pb_runner_await_config(struct pb_runner *runner, struct pb_job *job, int64_t began_ms);
/* The configuration is another one. */
void pb_runner_config_is_new(struct pb_runner *runner);
/* No job could be started at all. */
void pb_runner_cannot_start(struct pb_runner *runner, const struct pb_err *err);
/* The job ended otherwise; over: it does not run again. */
void pb_runner_hold_end(struct pb_runner *runner, const struct pb_job *job, bool over);
/* Nothing waits any more: there is nothing to hold. */
void pb_runner_hold_clear(struct pb_runner *runner);

/* --- runner_queue.c --- */
/* Places with a job, or reserved for one. */
int64_t pb_runner_taken(const struct pb_runner *runner);
/* One with an idle worker if there is one, else one without a worker; NULL = none. */
struct pb_place *pb_runner_free_place(struct pb_runner *runner);
/* Whether the job may run beside what runs, and has waited on its own account. */
bool pb_runner_may_start(const struct pb_runner *runner, const struct pb_job *job);
/* --- runner_express.c --- */
bool pb_express_is_long(const struct pb_runner *runner, int64_t seq);
/* Ordinary places that are taken. */
int64_t pb_express_ordinary(const struct pb_runner *runner);
/* The job that may start at the express place: 1 and the job (the caller's), 0 none, negative. */
int pb_express_next(struct pb_runner *runner, int64_t now_ms, struct pb_err *err,
                    struct pb_job *out_job);
/* Whether it is time to ask pb_express_next. */
bool pb_express_is_due(struct pb_runner *runner, int64_t now_ms);
/* Whether the place's job is to be computed on the CPU for the sake of the others. */
bool pb_express_on_cpu(const struct pb_runner *runner, const struct pb_place *place);
/* Ends the time of the express place's job. */
void pb_express_tick(struct pb_runner *runner, struct pb_place *place, int64_t now_ms);
/* A job was done at the express place in time. */
void pb_express_done(struct pb_runner *runner);
/* Makes the runner's tick run. */
void pb_runner_wake(struct pb_runner *runner);

/* --- runner_start.c --- */
/* Starts a waiting job (taken) at the place, which is reserved for it until it runs. */
void pb_runner_start(struct pb_runner *runner, struct pb_place *place, struct pb_job *job);

/* --- runner_end.c. These take what the job holds. --- */
/* Moves a running job to its final state (successful when its products are in place:
 * outcome.h), stores it, puts its input away, tells everybody. */
void pb_runner_finish(struct pb_runner *runner, struct pb_job *job, enum pb_job_status status);
/* running -> accepted; or -> successful, when its products are in place. Its error stays. */
void pb_runner_put_back(struct pb_runner *runner, struct pb_job *job);
/* The same for jobs that are pending already and were looked for. */
void pb_pending_finish(struct pb_pending *pending, enum pb_job_status status);
void pb_pending_put_back(struct pb_pending *pending);
/* A waiting job whose products are in place after all is successful. */
void pb_pending_is_done(struct pb_pending *pending);
/* A waiting job is over. When that cannot be stored nothing has happened. */
void pb_pending_dismiss(struct pb_pending *pending);

/* --- runner_pending.c --- */
/* Takes what the job holds. NULL = out of memory: the job is lost to this run of the service. */
struct pb_pending *pb_pending_add(struct pb_runner *runner, struct pb_job *job);
/* Has the step done; then is called from the loop. */
void pb_pending_work(struct pb_pending *pending, enum pb_pending_step step,
                     void (*then)(struct pb_pending *pending));
/* It is over, as its requests hear: rc 0 or *err. Freed. */
void pb_pending_end(struct pb_pending *pending, int rc, const struct pb_err *err);
/* The end of a PB_PENDING_STORE that everybody was told of: over, or tried again. */
void pb_pending_settle(struct pb_pending *pending);
/* Answers the requests that it serves before it is over, for what they asked for is stored. */
void pb_pending_answer(struct pb_pending *pending);
/* The request (taken) waits until this is over. */
void pb_pending_wait(struct pb_pending *pending, struct pb_runner_request *request);
struct pb_pending *pb_pending_find(const struct pb_runner *runner, const char *id);
/* Tries what the store did not take again, from time to time. */
void pb_pending_tick(struct pb_runner *runner, int64_t mono_ms);
/* Whether there is something that the store did not take. */
bool pb_pending_is_left(const struct pb_runner *runner);
/* At the end: tries once more, here and now, if asked to, and frees all. */
void pb_pending_free(struct pb_runner *runner, bool try_again);

/* --- runner_requests.c --- */
/* The next thing to do for it (taken). */
void pb_request_step(struct pb_runner *runner, struct pb_runner_request *request);
void pb_request_answer(struct pb_runner *runner, struct pb_runner_request *request, int rc,
                       const struct pb_err *err);
#endif
