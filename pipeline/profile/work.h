/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_H
#define PB_WORK_H
/* Kinds of work of a run's threads, and their times: each instant of a thread belongs to one
 * kind of work (work.def), the innermost one that was begun, so that the sums over all kinds are
 * the thread's own times. The CPU time is the kernel's, of the thread; it does not count waiting
 * for a core.
 *
 * A thread takes part between enter and leave, and so does every thread that pb_thread_start
 * starts from it, until its body returns. In other threads begin and end do nothing. Nothing is
 * allocated; a begin or end costs two clocks, 0.3 us. With a trace (trace.h) every part is an
 * event of it, except waits under 10 us. Thread: any; begin and end of a part in the same one. */
#include <stdatomic.h>
#include <stdint.h>

enum pb_work {
#define PB_WORK(name, word, storage, number) PB_WORK_##name,
#include "pipeline/profile/work.def"
#undef PB_WORK
    PB_WORK_KINDS
};

/* Sums over threads, by kind. */
struct pb_work_times {
    uint64_t cpu_ns[PB_WORK_KINDS];
    uint64_t wall_ns[PB_WORK_KINDS];
    uint64_t storage_ns[PB_WORK_KINDS]; /* part of the wall time asleep in calls to storage */
};

/* Sums of all threads that took part and have ended or left. A zeroed ledger is empty; no fini
 * is needed. */
struct pb_work_ledger {
    _Atomic uint64_t cpu_ns[PB_WORK_KINDS], wall_ns[PB_WORK_KINDS], storage_ns[PB_WORK_KINDS];
};

/* Name in reports; "" for numbers that are not a kind. Static. */
const char *pb_work_name(enum pb_work work);

/* Makes the calling thread take part, counted in the ledger (borrowed until it and the threads
 * that it starts have left or ended). It must not be in another one. */
void pb_work_enter(struct pb_work_ledger *ledger);
void pb_work_leave(void);
/* Call after a fork, in the child: drops the state of its parent. */
void pb_work_forget(void);
/* Ledger of the calling thread; NULL = it does not take part. */
struct pb_work_ledger *pb_work_ledger(void);

/* Begins and ends a part of work inside the current one. number: of the tile, product or source;
 * for the trace. */
void pb_work_begin(enum pb_work work, uint32_t number);
void pb_work_end(void);
/* The same for a call that may wait for storage: its kind follows from the current work. */
void pb_work_storage_begin(void);

void pb_work_read(const struct pb_work_ledger *ledger, struct pb_work_times *out_times);
/* *times += *more. */
void pb_work_add(struct pb_work_times *times, const struct pb_work_times *more);
/* *times -= *before. */
void pb_work_since(struct pb_work_times *times, const struct pb_work_times *before);
#endif
