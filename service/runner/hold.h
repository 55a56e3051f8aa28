/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HOLD_H
#define PB_HOLD_H
/* Holds the queue after a fault of the machine (PB_CLASS_MACHINE: a full disk, no memory, no
 * descriptors, a worker that cannot start). The rule:
 *
 *  1. A job that such a fault ended waits again; its attempt does not count.
 *  2. The first fault of a job, and each one when no other job succeeded since the job's last, is
 *     taken for the machine's state: the queue is held. After a wait of 1 s, doubled at each
 *     further fault up to 60 s, one job runs as a probe: one that had no fault yet before one that
 *     had, then the one whose fault is longest ago. A success of any job ends the hold. A probe
 *     that has run for 60 s lets other jobs start again; the next fault holds the queue for longer
 *     than the one before.
 *  3. A fault of a job when another succeeded since its last fault concerns that job alone (its
 *     own blocks are unreadable, it takes more memory than there is): the others continue, it
 *     waits 1 s, 4 s, 16 s and then 60 s. After `limit` such faults the job is set aside: it fails
 * with its code. Never before, and never for lack of space (output.full), which is no property of
 * an input: such a job waits until there is room.
 *
 * Faults of single jobs are remembered for the PB_HOLD_JOBS that failed last and not beyond a
 * restart; forgetting one costs a further try. Plain memory without clock or allocation: times are
 * the caller's, in ms, of one monotonic clock, and above 0. Thread: loop. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_HOLD_JOBS     256
#define PB_HOLD_FIRST_MS 1000
#define PB_HOLD_MAX_MS   60000
#define PB_HOLD_PROBE_MS 60000 /* a probe that ran for this long lets others start */

enum pb_hold_verdict {
    PB_HOLD_QUEUE, /* no job starts for a while */
    PB_HOLD_JOB,   /* this job waits, the others continue */
    PB_HOLD_ASIDE  /* this job fails */
};

/* Job whose last run was ended by a fault of the machine. */
struct pb_setback {
    int64_t job;      /* the job's number; above 0 */
    int64_t at_ms;    /* time of its last fault */
    int64_t until_ms; /* it does not start before this time */
    int alone;        /* number of faults that concerned only this job */
};

/* All-zero: the queue is not held. */
struct pb_hold {
    bool on;          /* true if the queue is held */
    int64_t until_ms; /* no probe starts before */
    int64_t delay_ms; /* length of the last hold since a success; 0 if there was no hold */
    int64_t
        since_ms;  /* time of the fault that began it; jobs that started before do not prolong it */
    int64_t probe; /* job that runs as a probe; 0 = none */
    int64_t probe_ms;  /* start of the probe */
    int64_t proved_ms; /* last success of a job; 0 = none yet */
    int64_t proved_by; /* the job of that success */
    unsigned faults;   /* number of faults since the last success */
    struct pb_setback setbacks[PB_HOLD_JOBS];
    size_t n_setbacks;
};

struct pb_hold_fault {
    int64_t job;        /* 0 = no job: a worker or the store failed before a job started */
    int64_t started_ms; /* when the job (or the try) began */
    enum pb_code code;
    int limit;       /* number of own faults until a job is set aside */
    uint32_t random; /* spreads the waits of several services by a quarter */
};

/* Call after a fault of the machine ended the job, which is over or waits from now on. */
enum pb_hold_verdict pb_hold_fault(struct pb_hold *hold, const struct pb_hold_fault *fault,
                                   int64_t now_ms);
/* Call after the job was successful: the hold ends. */
void pb_hold_success(struct pb_hold *hold, int64_t job, int64_t now_ms);
/* Call if the job ended in another way, or waits for another reason. over: it is not run again. */
void pb_hold_end(struct pb_hold *hold, int64_t job, bool over);
/* Call when no job waits. */
void pb_hold_clear(struct pb_hold *hold);
/* Lets the next probe start now, because the configuration was reloaded. */
void pb_hold_hurry(struct pb_hold *hold, int64_t now_ms);

/* Returns true if a job may start now; when the queue is held, that job is the probe. */
bool pb_hold_may_start(const struct pb_hold *hold, int64_t now_ms);
void pb_hold_started(struct pb_hold *hold, int64_t job, int64_t now_ms);
/* Call if a job might start, and none was found: the next probe is tried in PB_HOLD_FIRST_MS. */
void pb_hold_found_none(struct pb_hold *hold, int64_t now_ms);
/* Returns true if this job has waited long enough. */
bool pb_hold_may_try(const struct pb_hold *hold, int64_t job, int64_t now_ms);
/* Rank of a job as a probe: the lowest starts first. 0 = the job had no fault. */
int64_t pb_hold_rank(const struct pb_hold *hold, int64_t job);
/* Call repeatedly: returns true if a job may start now that could not start before. */
bool pb_hold_tick(struct pb_hold *hold, int64_t now_ms);
/* Returns true if pb_hold_tick has anything to wait for. */
bool pb_hold_waits(const struct pb_hold *hold);
#endif
