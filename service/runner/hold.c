/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/hold.h"

#define ALONE_FIRST_MS 1000
#define ALONE_TIMES    4

static struct pb_setback *find(const struct pb_hold *hold, int64_t job)
{
    for (size_t i = 0; i < hold->n_setbacks; i++) {
        if (hold->setbacks[i].job == job)
            return (struct pb_setback *)&hold->setbacks[i];
    }
    return NULL;
}

/* Adds an entry; if the array is full, the oldest entry is replaced. */
static struct pb_setback *add(struct pb_hold *hold, int64_t job)
{
    struct pb_setback *oldest = &hold->setbacks[0];
    for (size_t i = 1; i < hold->n_setbacks; i++) {
        if (hold->setbacks[i].at_ms < oldest->at_ms)
            oldest = &hold->setbacks[i];
    }
    if (hold->n_setbacks < PB_HOLD_JOBS)
        oldest = &hold->setbacks[hold->n_setbacks++];
    *oldest = (struct pb_setback){.job = job};
    return oldest;
}

static void forget(struct pb_hold *hold, int64_t job)
{
    struct pb_setback *setback = find(hold, job);
    if (setback != NULL)
        *setback = hold->setbacks[--hold->n_setbacks];
}

static int64_t alone_delay(int alone)
{
    int64_t delay_ms = ALONE_FIRST_MS;
    for (int i = 1; i < alone && delay_ms < PB_HOLD_MAX_MS; i++)
        delay_ms *= ALONE_TIMES;
    return delay_ms < PB_HOLD_MAX_MS ? delay_ms : PB_HOLD_MAX_MS;
}

/* Holds the queue. Faults of jobs that ran at the same time count once. */
static void hold_queue(struct pb_hold *hold, const struct pb_hold_fault *fault, int64_t now_ms)
{
    if (hold->on && fault->started_ms <= hold->since_ms)
        return;
    hold->delay_ms = hold->delay_ms > 0 ? hold->delay_ms * 2 : PB_HOLD_FIRST_MS;
    if (hold->delay_ms > PB_HOLD_MAX_MS)
        hold->delay_ms = PB_HOLD_MAX_MS;
    int64_t spread = hold->delay_ms / 4;
    hold->on = true;
    hold->since_ms = now_ms;
    hold->until_ms = now_ms + hold->delay_ms - spread + (int64_t)fault->random % (spread + 1);
}

enum pb_hold_verdict pb_hold_fault(struct pb_hold *hold, const struct pb_hold_fault *fault,
                                   int64_t now_ms)
{
    if (fault->job == hold->probe)
        hold->probe = 0;
    if (fault->job == 0) {
        hold->faults++;
        hold_queue(hold, fault, now_ms);
        return PB_HOLD_QUEUE;
    }
    struct pb_setback *setback = find(hold, fault->job);
    bool alone = setback != NULL && hold->proved_by != fault->job &&
                 hold->proved_ms >= setback->at_ms && hold->proved_ms > 0;
    if (setback == NULL)
        setback = add(hold, fault->job);
    setback->at_ms = now_ms;
    if (!alone) {
        hold->faults++;
        hold_queue(hold, fault, now_ms);
        return PB_HOLD_QUEUE;
    }
    setback->alone++;
    if (setback->alone >= fault->limit && fault->code != PB_E_OUTPUT_FULL) {
        forget(hold, fault->job);
        return PB_HOLD_ASIDE;
    }
    setback->until_ms = now_ms + alone_delay(setback->alone);
    return PB_HOLD_JOB;
}

void pb_hold_clear(struct pb_hold *hold)
{
    hold->on = false;
    hold->until_ms = hold->delay_ms = hold->since_ms = hold->probe = 0;
    hold->faults = 0;
}

void pb_hold_success(struct pb_hold *hold, int64_t job, int64_t now_ms)
{
    forget(hold, job);
    pb_hold_clear(hold);
    hold->proved_ms = now_ms;
    hold->proved_by = job;
}

void pb_hold_end(struct pb_hold *hold, int64_t job, bool over)
{
    if (hold->probe == job)
        hold->probe = 0;
    if (over)
        forget(hold, job);
}

void pb_hold_hurry(struct pb_hold *hold, int64_t now_ms)
{
    if (hold->on && hold->until_ms > now_ms)
        hold->until_ms = now_ms;
    for (size_t i = 0; i < hold->n_setbacks; i++)
        hold->setbacks[i].until_ms = 0;
}

bool pb_hold_may_start(const struct pb_hold *hold, int64_t now_ms)
{
    return !hold->on || (hold->probe == 0 && now_ms >= hold->until_ms);
}

void pb_hold_started(struct pb_hold *hold, int64_t job, int64_t now_ms)
{
    if (!hold->on)
        return;
    hold->probe = job;
    hold->probe_ms = now_ms;
}

void pb_hold_found_none(struct pb_hold *hold, int64_t now_ms)
{
    if (hold->on && hold->probe == 0 && hold->until_ms < now_ms + PB_HOLD_FIRST_MS)
        hold->until_ms = now_ms + PB_HOLD_FIRST_MS;
}

bool pb_hold_may_try(const struct pb_hold *hold, int64_t job, int64_t now_ms)
{
    const struct pb_setback *setback = find(hold, job);
    return setback == NULL || now_ms >= setback->until_ms;
}

int64_t pb_hold_rank(const struct pb_hold *hold, int64_t job)
{
    const struct pb_setback *setback = find(hold, job);
    return setback ? setback->at_ms : 0;
}

bool pb_hold_tick(struct pb_hold *hold, int64_t now_ms)
{
    if (hold->on && hold->probe != 0 && now_ms - hold->probe_ms >= PB_HOLD_PROBE_MS) {
        hold->on = false;
        hold->probe = 0;
        return true;
    }
    bool due = hold->on && hold->probe == 0 && now_ms >= hold->until_ms;
    for (size_t i = 0; i < hold->n_setbacks; i++) {
        struct pb_setback *setback = &hold->setbacks[i];
        if (setback->until_ms == 0 || now_ms < setback->until_ms)
            continue;
        setback->until_ms = 0;
        due = true;
    }
    return due;
}

bool pb_hold_waits(const struct pb_hold *hold)
{
    bool waits = hold->on;
    for (size_t i = 0; i < hold->n_setbacks; i++)
        waits = waits || hold->setbacks[i].until_ms > 0;
    return waits;
}
