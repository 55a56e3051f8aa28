/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_SLOT_H
#define PB_WORKER_SLOT_H
/* A worker slot: a worker process and the job that it runs, from the command to the end of the run.
 * It starts the process, reads its events, enforces time limits, and runs a job whose device failed
 * again, in a fresh process and then on the CPU. It knows no queue and no store: its owner (the
 * service's runner, or `pushbroom run`) decides what follows a run.
 *
 * worker_slot.c has its states and what happens in them as one table (worker_slot_table.h).
 *
 * Handlers are called last, when the slot is in its new state: they may use it (start, run, end,
 * cleared), but not destroy it. Thread: loop. */
#include "pipeline/run/base/latency.h"
#include "service/jobs/job.h"
#include "service/jobs/job_alert.h"
#include "service/processes/device_retry.h"
#include "service/processes/worker_proc.h"

#define PB_WORKER_SLOT_CANCEL_MS 5000  /* time from a cancel line to SIGKILL */
#define PB_WORKER_SLOT_HUNG_MS   30000 /* time from SIGKILL until the worker is given up */

struct pb_config;
struct pb_worker_slot;

/* Reasons for which the slot ends a running job. */
enum pb_ending {
    PB_ENDING_NONE,
    PB_ENDING_CANCEL,
    PB_ENDING_PUT_BACK,
    PB_ENDING_STALL, /* service.stall */
    PB_ENDING_TIME,  /* limits.job_time */
    PB_ENDING_BREACH /* the worker broke the protocol */
};

enum pb_run_end {
    PB_RUN_SUCCESSFUL, /* the job has its products, directory and report */
    PB_RUN_FAILED,     /* the job has its error, whose class is the cause */
    PB_RUN_CRASHED,    /* the job has its error, but another attempt may help */
    PB_RUN_ENDED       /* ended on request: over.ending */
};

/* Result of a job's run. */
struct pb_run_over {
    enum pb_run_end end;
    enum pb_ending ending; /* for PB_RUN_ENDED: CANCEL or PUT_BACK */
    bool died;             /* the worker died, and the slot had not ended it */
    /* pid of a worker that did not end on SIGKILL and is abandoned; 0 = none of these */
    int hung_pid;
    int64_t began_ms;     /* monotonic: start of the run */
    int64_t memory_bytes; /* size of its tile buffers; 0 if not reported */
    struct pb_job job;    /* job whose memory the handler takes */
};

/* Owner of slots, borrowed by them; config may be changed between calls. `number`: number of the
 * slot. */
struct pb_worker_slot_owner {
    uv_loop_t *loop;
    struct pb_worker_program program;
    /* used for later jobs, and for the time limits of running ones */
    const struct pb_config *config;
    const char
        *owner_why; /* reason for the absence of an owner on a machine with a GPU; NULL: no GPU */
    /* Called when the job makes progress; at_once: its run began or begins again. */
    void (*on_news)(void *user, int number, const struct pb_job *job, bool at_once);
    /* Called with n alerts of the job, and with latencies of lines since the last call; borrowed
     * for the call. NULL: unused. */
    void (*on_alerts)(void *user, int number, const struct pb_job *job,
                      const struct pb_job_alert *alerts, size_t n);
    void (*on_latency)(void *user, int number, const struct pb_job *job,
                       const struct pb_latency_counts *more);
    /* Called with the device that a worker reports; "" = no device, with the reason. */
    void (*on_device)(void *user, const char *device, const char *why);
    /* Called at the start of a run of the slot's job; returns the socket of the process that
     * computes it, borrowed; NULL: the worker computes it. wanted: true if a device other than the
     * CPU is wanted. on_owner NULL: workers compute. */
    const char *(*on_owner)(void *user, int number, bool wanted);
    /* Called when a run with `turn` has its plan, with the count of the plan's tiles and their
     * memory: it computes after pb_worker_slot_turn. */
    void (*on_turn)(void *user, int number, int64_t tiles, int64_t memory_bytes);
    /* Called when a run with `permit` has complete products: it publishes after
     * pb_worker_slot_permit. */
    void (*on_permit)(void *user, int number);
    void (*on_start)(void *user, int number); /* a process was started */
    /* Called when the device failed: the job runs again, see its device_why. */
    void (*on_retry)(void *user, int number, const struct pb_job *job, enum pb_device_try which);
    /* Requests that the owner removes the files that a killed worker left below products, and then
     * calls pb_worker_slot_cleared, from the handler or later. */
    void (*on_clear)(void *user, int number, const char *products);
    void (*on_over)(void *user, int number, struct pb_run_over *over);
    /* Called when the process ended without a job. hung: it did not end on SIGKILL and is
     * abandoned. */
    void (*on_gone)(void *user, int number, int pid, bool hung);
    /* Called with a message for the log; pid: pid of the worker, 0 = not about a worker. */
    void (*on_say)(void *user, int pid, enum pb_log_level level, const char *text);
    void *user;
};

/* Node that has the input of a run, and publishes its products. */
struct pb_run_home {
    char node[PB_JOB_NODE_BYTES];    /* "" = this node */
    char address[256];               /* host and port of its pushbroom-fetch */
    char socket[108];                /* pushbroom-fetch of this machine */
    char room[PB_WORKER_PATH_BYTES]; /* directory for its files here, which the run makes */
};

/* Options of a run. Copied. */
struct pb_run_how {
    const char *products; /* root directory of its products */
    const char *root;     /* id that its token must have; NULL or "" = no token is needed */
    const char *path;     /* output.path of the job's pipeline; NULL = the default */
    const char *device;   /* used instead of compute.device; NULL = as configured */
    bool foreground;      /* for `pushbroom run`, see worker.h */
    bool turn;            /* the run waits for its turn, see on_turn */
    bool live;            /* lines still arrive; waits for them do not count as time of the run */
    bool permit;          /* the run waits for a permit, see on_permit */
    const char *existing; /* used instead of output.exists; NULL = as configured */
    /* checksums that the input is compared with (duplicates.h); NULL = no comparison */
    const char *known;
    /* directory for the members of archives; NULL = the directory of the products */
    const char *unpack;
    const struct pb_run_home *home; /* NULL = this node */
    int guest; /* socket to the other node that computes the run (worker.h); 0 = none */
};

/* NULL = out of memory. */
struct pb_worker_slot *pb_worker_slot_create(const struct pb_worker_slot_owner *owner, int number);
/* Kills a worker that still runs; no handler is called. NULL is allowed. */
void pb_worker_slot_destroy(struct pb_worker_slot *slot);

/* Starts a process in an empty slot. */
int pb_worker_slot_start(struct pb_worker_slot *slot, struct pb_err *err);
/* Queries an idle worker for the device that would be used. */
void pb_worker_slot_probe(struct pb_worker_slot *slot);
/* Runs the job (taken) in an idle worker; the owner has set its status and attempts. */
void pb_worker_slot_run(struct pb_worker_slot *slot, struct pb_job *job,
                        const struct pb_run_how *how);
/* Sends a worker the job after the running one: the worker begins it immediately, and on_over must
 * run this job, if the slot is idle then. The announcement is lost if the process ends. */
void pb_worker_slot_tell_next(struct pb_worker_slot *slot, const struct pb_job *job,
                              const struct pb_run_how *how);
/* Lets a run compute that waits for its turn; its time begins now. */
void pb_worker_slot_turn(struct pb_worker_slot *slot);
/* Returns true if the run waits for its permit. The time limits do not count this time. */
bool pb_worker_slot_wants_permit(const struct pb_worker_slot *slot);
/* Answers a run that waits for its permit; one that is refused publishes nothing and fails. */
void pb_worker_slot_permit(struct pb_worker_slot *slot, bool granted);
/* Ends the job's run: by a cancel line, and SIGKILL after grace_ms; 0 = SIGKILL immediately. Also
 * for a run that is being ended already, which may make it end sooner. */
void pb_worker_slot_end(struct pb_worker_slot *slot, enum pb_ending ending, int64_t grace_ms);
/* Ends an idle worker, which is killed after grace_ms. */
void pb_worker_slot_leave(struct pb_worker_slot *slot, int64_t grace_ms);
/* Call after the work of on_clear is done. */
void pb_worker_slot_cleared(struct pb_worker_slot *slot);
/* Abandons the worker process, running or not; on_over or on_gone reports it. */
void pb_worker_slot_give_up(struct pb_worker_slot *slot);
/* Checks the time limits; call it every 100 ms or so while wants_tick returns true. */
void pb_worker_slot_tick(struct pb_worker_slot *slot, int64_t mono_ms);
bool pb_worker_slot_wants_tick(const struct pb_worker_slot *slot);

/* The state of the slot. Borrowed until the next call into the loop. */
const struct pb_job *pb_worker_slot_job(const struct pb_worker_slot *slot); /* NULL = no job */
bool pb_worker_slot_has_process(const struct pb_worker_slot *slot);
bool pb_worker_slot_is_empty(const struct pb_worker_slot *slot); /* no process and no job */
/* a process that can take a job */
bool pb_worker_slot_is_idle(const struct pb_worker_slot *slot);
int pb_worker_slot_pid(const struct pb_worker_slot *slot); /* 0 = no process */
enum pb_ending pb_worker_slot_ending(const struct pb_worker_slot *slot);
/* Start of the run, or of its turn. */
int64_t pb_worker_slot_began_ms(const struct pb_worker_slot *slot);
#endif
