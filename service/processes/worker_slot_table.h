/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_SLOT_TABLE_H
#define PB_WORKER_SLOT_TABLE_H
/* States of a worker slot and its transitions, and declarations that worker_slot.c shares with the
 * other files of the slot. Only these files and their test include this. */
#include "service/processes/worker_slot.h"

enum pb_slot_state {
    PB_SLOT_EMPTY,    /* no process, no job */
    PB_SLOT_IDLE,     /* a process without a job */
    PB_SLOT_RUNNING,  /* a process runs the job */
    PB_SLOT_STOPPING, /* the same, after a request to cancel it; it is killed after the grace time
                       */
    PB_SLOT_KILLED,   /* like STOPPING, and SIGKILL was sent */
    PB_SLOT_RENEWING, /* the job's device failed: the process is being ended, a fresh one follows */
    PB_SLOT_CLEARING, /* a job without a process: files of the last process are being removed */
    PB_SLOT_LEAVING,  /* a process without a job that is being ended */
    PB_SLOT_STATES
};

enum pb_slot_event {
    PB_SLOT_ON_START,  /* owner: start a process */
    PB_SLOT_ON_RUN,    /* owner: run a job */
    PB_SLOT_ON_DONE,   /* worker: products are in place */
    PB_SLOT_ON_FAILED, /* worker: an error that is final */
    PB_SLOT_ON_DEVICE, /* worker: its device failed, and another try follows */
    PB_SLOT_ON_LOST,   /* worker: its device failed in the last try */
    PB_SLOT_ON_BREACH, /* worker: a line that breaks the protocol */
    PB_SLOT_ON_STOP,   /* owner or clock: end the job, with grace time */
    PB_SLOT_ON_KILL,   /* owner or clock: end the job immediately */
    PB_SLOT_ON_LEAVE,  /* owner: end an idle process */
    PB_SLOT_ON_GONE,   /* the process ended */
    PB_SLOT_ON_HUNG,   /* it did not end after SIGKILL */
    PB_SLOT_ON_CLEARED,
    PB_SLOT_EVENTS
};

enum pb_slot_action {
    PB_SLOT_IGNORE,
    PB_SLOT_DO_START,      /* starts a process; if that fails, the slot is empty */
    PB_SLOT_DO_TELL,       /* sends the process the job */
    PB_SLOT_DO_CANCEL,     /* sends the request to end the job, and sets the time of the kill */
    PB_SLOT_DO_HURRY,      /* updates the deadline and the reason of the end */
    PB_SLOT_DO_KILL,       /* SIGKILL */
    PB_SLOT_DO_LET_GO,     /* closes its stdin */
    PB_SLOT_DO_SUCCEED,    /* reports the job */
    PB_SLOT_DO_FAIL,       /* reports the job with the worker's error */
    PB_SLOT_DO_FAIL_KILL,  /* FAIL, and SIGKILL */
    PB_SLOT_DO_END,        /* reports the job: ended by the slot, or by its process */
    PB_SLOT_DO_END_KILL,   /* END, and SIGKILL */
    PB_SLOT_DO_FORSAKE,    /* abandons the process; reports the job */
    PB_SLOT_DO_RENEW,      /* SIGKILL; the job runs again */
    PB_SLOT_DO_CLEAR,      /* requests the removal of files from products/ */
    PB_SLOT_DO_CLEAR_HUNG, /* CLEAR, and abandons the process */
    /* starts a process and sends it the job; if that fails, reports the job */
    PB_SLOT_DO_RESTART,
    PB_SLOT_DO_REPORT,      /* reports that the process ended */
    PB_SLOT_DO_REPORT_HUNG, /* abandons the process and reports that */
    PB_SLOT_ACTIONS
};

struct pb_slot_cell {
    enum pb_slot_action action;
    enum pb_slot_state next;
};

/* Returns the action and the next state. Pure. */
struct pb_slot_cell pb_slot_cell(enum pb_slot_state state, enum pb_slot_event event);

/* Handlers that are called at the end of the transition. */
enum pb_slot_tell {
    PB_SLOT_TELL_NOTHING,
    PB_SLOT_TELL_RUNS,
    PB_SLOT_TELL_OVER,
    PB_SLOT_TELL_RETRY,
    PB_SLOT_TELL_CLEAR,
    PB_SLOT_TELL_GONE
};

struct pb_worker_slot {
    const struct pb_worker_slot_owner *owner;
    int number;
    enum pb_slot_state state;
    struct pb_worker_proc *proc; /* NULL = no process */
    struct pb_worker_lines lines;
    struct pb_job job;
    struct {
        char root[64]; /* "" = none */
        char products[PB_WORKER_PATH_BYTES], unpack[PB_WORKER_PATH_BYTES], device[16];
        char path[PB_OUTPUT_PATH_BYTES], existing[16];
        bool foreground, turn, permit, live;
        struct pb_run_home home;
        int guest;
    } how;
    struct pb_latency_counts latency; /* latencies of the run that were reported */
    bool waits;                       /* true while the run waits for its turn */
    int64_t permit_ms;          /* time of the request for a permit; 0 = the run waits for none */
    const char *known;          /* checksums for a run that begins; NULL: no comparison */
    char next[PB_JOB_ID_BYTES]; /* job that the worker has received already; "" if none */
    enum pb_device_try device_try;
    enum pb_ending ending;
    bool untold;      /* the command could not be written, therefore the worker was ended */
    int64_t began_ms; /* start of the run, or of its turn; later by the wait for the permit */
    int64_t moved_ms; /* time of its last progress */
    /* time since which a call waits for storage, by the last report; 0 = no call waits */
    int64_t io_since_ms;
    int64_t bytes_checked; /* bytes read of the input for its checksum, by the last report */
    int64_t kill_at_ms;    /* 0 = not set */
    const char *wait_why;  /* for a stall: reason for which the worker waits; NULL if unknown */
    /* Data of the current event. */
    const struct pb_worker_line *line; /* the line of the worker */
    enum pb_ending asked;
    int64_t grace_ms;
    struct {
        const char *how; /* "signal 9 (Killed)" */
        bool spoke, by_us;
        int pid;
    } gone;
    struct pb_err *err; /* error of a start that fails */
    enum pb_slot_tell tell;
    struct pb_run_over over;
};

/* Finds the cell of the table, does its action, and calls the handlers. Returns 0, or the error of
 * a start. */
int pb_slot_event(struct pb_worker_slot *slot, enum pb_slot_event event);
void pb_slot_say(const struct pb_worker_slot *slot, int pid, enum pb_log_level level,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* --- worker_slot_lines.c: the lines of the protocol; see worker.h --- */
void pb_slot_on_line(void *slot, const char *text, size_t bytes);
void pb_slot_send_run(struct pb_worker_slot *slot);
/* --- worker_slot_end.c: how a run ends; these set over.end and the job's error --- */
void pb_slot_end_well(struct pb_worker_slot *slot);
void pb_slot_end_failed(struct pb_worker_slot *slot);
/* Takes the bounds of the scene that a line has into the job. */
void pb_slot_take_bbox(struct pb_worker_slot *slot, const struct pb_worker_line *line);
void pb_slot_end_ended(struct pb_worker_slot *slot);
void pb_slot_end_hung(struct pb_worker_slot *slot);
#endif
