/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUNNER_PLACE_H
#define PB_RUNNER_PLACE_H
/* Inside the runner: a place is one worker process and the job it runs. runner.c decides which job
 * runs where; runner_place.c follows a job from the first line to the worker to its final state.
 * Nobody else includes this. Thread: loop. */
#include "service/config_waits.h"
#include "service/device_retry.h"
#include "service/hold.h"
#include "service/runner.h"
#include "service/worker_lines.h"
#include "service/worker_proc.h"

#define PB_EXPRESS_LONG_MAX 256   /* long jobs that are remembered */
#define PB_EXPRESS_LOOK_MS  1000  /* between two looks whether the express place opens */
#define PB_PLACE_NOTIFY_MS  200   /* between two progress events of a job */
#define PB_PLACE_CANCEL_MS  5000  /* from a cancel line to SIGKILL */
#define PB_PLACE_HUNG_MS    30000 /* from SIGKILL until the worker is given up */

/* Why a running job is being ended from our side. */
enum pb_ending {
    PB_ENDING_NONE,
    PB_ENDING_CANCEL,
    PB_ENDING_STALL,
    PB_ENDING_TIME, /* limits.job_time */
    PB_ENDING_PUT_BACK
};

struct pb_place {
    struct pb_runner *runner;
    struct pb_worker_proc *proc; /* NULL = no process */
    bool busy;                   /* `job` runs here */
    bool leaving;                /* its stdin is closed */
    bool changed;                /* there is news that on_change has not told */
    /* Its device failed: the worker is being ended, and the job goes on as device_try in the next
     * one, without leaving this place. */
    bool again;
    enum pb_device_try device_try;
    enum pb_ending ending;
    bool express; /* it is one more than parallel_jobs, for short jobs */
    int64_t express_until_ms;
    bool untold;           /* the worker could not be told its work, and was ended for that */
    int64_t began_ms;      /* monotonic time when the job was given to this place */
    int64_t moved_ms;      /* monotonic time of the last progress */
    int64_t bytes_checked; /* of the input, for its checksum, as said last */
    int64_t notified_ms;   /* of the last on_change */
    int64_t kill_at_ms;    /* 0 = no end is near */
    struct pb_worker_lines lines; /* what the worker may say now */
    struct pb_job job;
};

/* A job whose state is newer than the store's. */
struct pb_unsaved {
    struct pb_unsaved *next;
    bool disposed; /* its input is put away */
    struct pb_job job;
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
    struct pb_place places[PB_RUNNER_PLACES_MAX];
    uv_timer_t tick;
    struct pb_hold hold;
    struct pb_config_waits waits;
    struct pb_express express;
    bool more;        /* the next tick starts further jobs */
    int64_t drain_ms; /* when drain was called; 0 = not */
    void (*drained)(void *user);
    void *drained_user;
    unsigned finished;
    int hung[PB_RUNNER_PLACES_MAX]; /* pids of workers given up, to be reaped if they end; 0 = none
                                     */
    struct pb_unsaved *unsaved;     /* jobs whose last change is not stored yet */
    int64_t save_at_ms;
    char device[64], device_why[256];
    uint64_t planned_bytes;
};

/* --- runner_send.c --- */
/* Tells the worker to run the place's job. */
void pb_place_send_run(struct pb_place *place);
void pb_place_ask_device(struct pb_place *place);
/* --- runner_place.c --- */
/* Starts the worker of an empty place. */
int pb_place_start_worker(struct pb_place *place, struct pb_err *err);
/* Hands the job (taken, already running and stored) to the place's worker. */
void pb_place_run(struct pb_place *place, const struct pb_job *job);
/* Tells of the place's job now. */
void pb_place_notify(struct pb_place *place);
/* The place's job is over, or waits again: the place is free. */
void pb_place_finish(struct pb_place *place, enum pb_job_status status);
void pb_place_dismiss(struct pb_place *place);
void pb_place_put_back(struct pb_place *place, bool attempt_counts);
/* The machine's fault that stands in the job's error ended its run. */
void pb_place_set_back(struct pb_place *place);
/* The configuration's that stands in the job's error did. */
void pb_place_await_config(struct pb_place *place);
/* Cancels the running job for the given reason; its end comes through the worker. */
void pb_place_end(struct pb_place *place, enum pb_ending ending, int64_t grace_ms);
/* Timeouts and withheld notifications; called by the runner's tick. */
void pb_place_tick(struct pb_place *place, int64_t mono_ms);
/* --- runner_over.c: how a job ends with its worker --- */
/* The place's worker is gone; how: "exit status 1", "signal 9 (Killed)". */
void pb_place_worker_ended(struct pb_place *place, const char *how);
/* The place's job ran for longer than limits.job_time. */
void pb_place_out_of_time(struct pb_place *place);
/* Goes on without the place's worker, which SIGKILL did not end; its job ends as its end was meant,
 * or as stalled. */
void pb_place_give_up(struct pb_place *place);
/* --- runner_faults.c: faults of the machine; hold.h has the rule --- */
/* A run that began then ended by the fault that stands in job->error (which may be taken, as in
 * runner_end.c): the job waits again, or fails. */
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
/* An idle worker if there is one, else a place without a worker; NULL = none. */
struct pb_place *pb_runner_free_place(struct pb_runner *runner);
/* Whether the job may run beside what runs, and has waited on its own account. */
bool pb_runner_may_start(const struct pb_runner *runner, const struct pb_job *job);
/* --- runner_express.c --- */
bool pb_express_is_long(const struct pb_runner *runner, int64_t seq);
/* Jobs that run in ordinary places. */
int64_t pb_express_ordinary(const struct pb_runner *runner);
/* The job that may start in the express place: 1 and the job (the caller's), 0 none, negative. */
int pb_express_next(struct pb_runner *runner, int64_t now_ms, struct pb_err *err,
                    struct pb_job *out_job);
/* Whether it is time to ask pb_express_next. */
bool pb_express_is_due(struct pb_runner *runner, int64_t now_ms);
/* Whether the place's job is to be computed on the CPU for the sake of the others. */
bool pb_express_on_cpu(const struct pb_place *place);
/* Ends the time of the express place's job. */
void pb_express_tick(struct pb_place *place, int64_t now_ms);
/* A job was done in the express place in time. */
void pb_express_done(struct pb_runner *runner);
/* Makes the runner's tick run. */
void pb_runner_wake(struct pb_runner *runner);

/* --- runner_end.c. These may take what the job holds; it still wants its fini. --- */
/* Moves a running job to its final state (successful when its products are in place: outcome.h),
 * stores it, puts its input away, tells everybody. */
void pb_runner_finish(struct pb_runner *runner, struct pb_job *job, enum pb_job_status status);
/* running -> accepted; or -> successful, when its products are in place. Its error stays. */
void pb_runner_put_back(struct pb_runner *runner, struct pb_job *job);
/* A waiting job that ran before is successful if its products are in place after all. */
bool pb_runner_is_done(struct pb_runner *runner, struct pb_job *job);
/* A waiting job is over. When that cannot be stored nothing has happened. */
int pb_runner_dismiss(struct pb_runner *runner, struct pb_job *job, struct pb_err *err);

const struct pb_job *pb_unsaved_find(const struct pb_runner *runner, const char *id);
/* Tries to store all that is not stored yet. True: none is left. */
bool pb_unsaved_save(struct pb_runner *runner, struct pb_err *err);
/* The same from time to time; false also when it is not time. */
bool pb_unsaved_save_again(struct pb_runner *runner, int64_t mono_ms);
void pb_unsaved_free(struct pb_runner *runner);
#endif
