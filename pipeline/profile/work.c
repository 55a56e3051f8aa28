/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The state of a thread is its own memory and is added to the ledger when it leaves: no thread
 * waits for another. A change of work reads the two clocks once, for the end of the old and the
 * beginning of the new one.
 *
 * A call that takes longer than its CPU time has slept, or has waited for a core. It counts as
 * waiting for storage only if the kernel counted a voluntary context switch meanwhile, which
 * does not happen if a thread is merely preempted. */
#include "pipeline/profile/work.h"
#include "config/base/clock.h"
#include "pipeline/profile/trace.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

enum { DEPTH_MAX = 16, WAIT_TOLD_NS = 10000 };

struct part {
    enum pb_work work;
    uint32_t number;
    uint64_t start_ns, start_cpu_ns;
    long switches; /* count before a call to storage; -1 = not such a call */
};

struct thread {
    struct pb_work_ledger *ledger; /* NULL = does not take part */
    uint64_t wall_ns, cpu_ns;      /* at the last change of work */
    struct pb_work_times own;
    struct part part[DEPTH_MAX];
    unsigned depth; /* may exceed DEPTH_MAX: those parts count as the enclosing one */
};

static _Thread_local struct thread self;

static const char *const names[] = {
#define PB_WORK(name, word, storage, number) word,
#include "pipeline/profile/work.def"
#undef PB_WORK
};

static const enum pb_work storage_of[] = {
#define PB_WORK(name, word, storage, number) PB_WORK_##storage,
#include "pipeline/profile/work.def"
#undef PB_WORK
};

const char *pb_work_name(enum pb_work work)
{
    return (unsigned)work < PB_WORK_KINDS ? names[work] : "";
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)pb_clock_ns(&now);
}

static void stamp(struct thread *t)
{
    t->wall_ns = clock_ns(CLOCK_MONOTONIC);
    t->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static enum pb_work at_hand(const struct thread *t)
{
    unsigned depth = t->depth < DEPTH_MAX ? t->depth : DEPTH_MAX;
    return depth > 0 ? t->part[depth - 1].work : PB_WORK_OTHER;
}

/* Adds the time since the last change to the current work. */
static void count(struct thread *t)
{
    enum pb_work work = at_hand(t);
    uint64_t wall_ns = t->wall_ns, cpu_ns = t->cpu_ns;
    stamp(t);
    t->own.wall_ns[work] += t->wall_ns - wall_ns;
    t->own.cpu_ns[work] += t->cpu_ns - cpu_ns;
}

struct pb_work_ledger *pb_work_ledger(void)
{
    return self.ledger;
}

void pb_work_enter(struct pb_work_ledger *ledger)
{
    self = (struct thread){.ledger = ledger};
    stamp(&self);
}

void pb_work_leave(void)
{
    struct thread *t = &self;
    if (t->ledger == NULL)
        return;
    count(t);
    for (int i = 0; i < PB_WORK_KINDS; i++) {
        atomic_fetch_add(&t->ledger->cpu_ns[i], t->own.cpu_ns[i]);
        atomic_fetch_add(&t->ledger->wall_ns[i], t->own.wall_ns[i]);
        atomic_fetch_add(&t->ledger->storage_ns[i], t->own.storage_ns[i]);
    }
    t->ledger = NULL;
}

void pb_work_forget(void)
{
    self.ledger = NULL;
}

/* Count of voluntary context switches of the calling thread. */
static long switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void begin(struct thread *t, enum pb_work work, uint32_t number, bool storage)
{
    count(t);
    if (t->depth < DEPTH_MAX)
        t->part[t->depth] = (struct part){.work = work,
                                          .number = number,
                                          .start_ns = t->wall_ns,
                                          .start_cpu_ns = t->cpu_ns,
                                          .switches = storage ? switches() : -1};
    t->depth++;
}

void pb_work_begin(enum pb_work work, uint32_t number)
{
    if (self.ledger != NULL)
        begin(&self, work, number, false);
}

void pb_work_storage_begin(void)
{
    if (self.ledger != NULL)
        begin(&self, storage_of[at_hand(&self)], 0, true);
}

void pb_work_end(void)
{
    struct thread *t = &self;
    if (t->ledger == NULL || t->depth == 0)
        return;
    count(t);
    if (--t->depth >= DEPTH_MAX)
        return;
    const struct part *part = &t->part[t->depth];
    uint64_t wall_ns = t->wall_ns - part->start_ns, cpu_ns = t->cpu_ns - part->start_cpu_ns;
    if (part->work != PB_WORK_WAIT || wall_ns >= WAIT_TOLD_NS)
        pb_trace_part(part->work, part->number, part->start_ns, t->wall_ns);
    if (part->switches >= 0 && wall_ns > cpu_ns && switches() > part->switches)
        t->own.storage_ns[part->work] += wall_ns - cpu_ns;
}

void pb_work_read(const struct pb_work_ledger *ledger, struct pb_work_times *out)
{
    for (int i = 0; i < PB_WORK_KINDS; i++) {
        out->cpu_ns[i] = atomic_load(&ledger->cpu_ns[i]);
        out->wall_ns[i] = atomic_load(&ledger->wall_ns[i]);
        out->storage_ns[i] = atomic_load(&ledger->storage_ns[i]);
    }
}

void pb_work_add(struct pb_work_times *times, const struct pb_work_times *more)
{
    for (int i = 0; i < PB_WORK_KINDS; i++) {
        times->cpu_ns[i] += more->cpu_ns[i];
        times->wall_ns[i] += more->wall_ns[i];
        times->storage_ns[i] += more->storage_ns[i];
    }
}

void pb_work_since(struct pb_work_times *times, const struct pb_work_times *before)
{
    for (int i = 0; i < PB_WORK_KINDS; i++) {
        times->cpu_ns[i] -= before->cpu_ns[i];
        times->wall_ns[i] -= before->wall_ns[i];
        times->storage_ns[i] -= before->storage_ns[i];
    }
}
