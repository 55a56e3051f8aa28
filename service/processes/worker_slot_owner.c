/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions for the owner of a worker slot: each call is an event, and the end of a time limit is
 * one as well. */
#include "config/base/clock.h"
#include "config/config.h"
#include "service/processes/worker_slot_table.h"
#include "service/processes/worker_wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb_worker_slot *pb_worker_slot_create(const struct pb_worker_slot_owner *owner, int number)
{
    struct pb_worker_slot *slot = calloc(1, sizeof *slot);
    if (slot == NULL)
        return NULL;
    slot->owner = owner;
    slot->number = number;
    return slot;
}

void pb_worker_slot_destroy(struct pb_worker_slot *slot)
{
    if (slot == NULL)
        return;
    pb_worker_proc_destroy(slot->proc);
    pb_job_fini(&slot->job);
    free(slot);
}

int pb_worker_slot_start(struct pb_worker_slot *slot, struct pb_err *err)
{
    slot->err = err;
    int rc = pb_slot_event(slot, PB_SLOT_ON_START);
    slot->err = NULL;
    return rc;
}

void pb_worker_slot_run(struct pb_worker_slot *slot, struct pb_job *job,
                        const struct pb_run_how *how)
{
    slot->job = *job;
    memset(job, 0, sizeof *job);
    (void)snprintf(slot->how.products, sizeof slot->how.products, "%s", how->products);
    (void)snprintf(slot->how.device, sizeof slot->how.device, "%s", how->device ? how->device : "");
    (void)snprintf(slot->how.root, sizeof slot->how.root, "%s", how->root ? how->root : "");
    slot->how.foreground = how->foreground;
    slot->how.turn = how->turn;
    slot->how.permit = how->permit;
    slot->how.live = how->live;
    (void)snprintf(slot->how.path, sizeof slot->how.path, "%s", how->path ? how->path : "");
    (void)snprintf(slot->how.existing, sizeof slot->how.existing, "%s",
                   how->existing ? how->existing : "");
    (void)snprintf(slot->how.unpack, sizeof slot->how.unpack, "%s", how->unpack ? how->unpack : "");
    slot->how.home = how->home != NULL ? *how->home : (struct pb_run_home){.node = ""};
    slot->how.guest = how->guest;
    slot->began_ms = pb_clock_mono_ms();
    slot->bytes_checked = slot->io_since_ms = slot->kill_at_ms = 0;
    slot->wait_why = NULL;
    slot->known = how->known;
    (void)pb_slot_event(slot, PB_SLOT_ON_RUN);
}

void pb_worker_slot_end(struct pb_worker_slot *slot, enum pb_ending ending, int64_t grace_ms)
{
    slot->asked = ending;
    slot->grace_ms = grace_ms;
    (void)pb_slot_event(slot, grace_ms > 0 ? PB_SLOT_ON_STOP : PB_SLOT_ON_KILL);
}

void pb_worker_slot_leave(struct pb_worker_slot *slot, int64_t grace_ms)
{
    slot->grace_ms = grace_ms;
    (void)pb_slot_event(slot, PB_SLOT_ON_LEAVE);
}

void pb_worker_slot_cleared(struct pb_worker_slot *slot)
{
    (void)pb_slot_event(slot, PB_SLOT_ON_CLEARED);
}

void pb_worker_slot_give_up(struct pb_worker_slot *slot)
{
    (void)pb_slot_event(slot, PB_SLOT_ON_HUNG);
}

/* --- time limits ------------------------------------------------------------------------------ */

/* Finds the reason of a wait while the worker still exists. */
static const char *wait_why(const struct pb_worker_slot *slot, int64_t mono_ms, int64_t stall_ms)
{
    if (slot->io_since_ms != 0 && mono_ms - slot->io_since_ms >= stall_ms / 2)
        return "a read of its input or a write of its products does not return";
    return slot->proc != NULL ? pb_worker_wait_why(pb_worker_proc_pid(slot->proc)) : NULL;
}

static void end_in_time(struct pb_worker_slot *slot, int64_t mono_ms)
{
    int64_t stall_ms = slot->owner->config->service.stall_ms;
    /* At a terminal the user can end a run that takes too long. */
    int64_t time_ms = slot->how.foreground ? 0 : slot->owner->config->limits.job_time_ms;
    if (slot->ending != PB_ENDING_NONE || slot->waits || pb_worker_slot_wants_permit(slot))
        return;
    if (time_ms > 0 && mono_ms - slot->began_ms >= time_ms) {
        pb_slot_say(slot, 0, PB_LOG_ERROR,
                    "job %s: runs for %lld s, over limits.job_time; it is ended", slot->job.id,
                    (long long)(time_ms / 1000));
        pb_worker_slot_end(slot, PB_ENDING_TIME, PB_WORKER_SLOT_CANCEL_MS);
    } else if (slot->state == PB_SLOT_RUNNING && stall_ms > 0 &&
               mono_ms - slot->moved_ms >= stall_ms) {
        slot->wait_why = wait_why(slot, mono_ms, stall_ms);
        pb_slot_say(slot, 0, PB_LOG_ERROR,
                    "job %s: no progress for %lld s%s%s; its worker is ended", slot->job.id,
                    (long long)(stall_ms / 1000), slot->wait_why ? ": " : "",
                    slot->wait_why ? slot->wait_why : "");
        pb_worker_slot_end(slot, PB_ENDING_STALL, 0);
    }
}

void pb_worker_slot_tick(struct pb_worker_slot *slot, int64_t mono_ms)
{
    if (slot->proc != NULL && slot->kill_at_ms > 0 && mono_ms >= slot->kill_at_ms)
        (void)pb_slot_event(slot, PB_SLOT_ON_KILL);
    int64_t killed_ms = slot->proc ? pb_worker_proc_killed_ms(slot->proc) : 0;
    if (killed_ms > 0 && mono_ms - killed_ms >= PB_WORKER_SLOT_HUNG_MS)
        (void)pb_slot_event(slot, PB_SLOT_ON_HUNG);
    if (pb_worker_slot_job(slot) != NULL)
        end_in_time(slot, mono_ms);
}

bool pb_worker_slot_wants_tick(const struct pb_worker_slot *slot)
{
    return pb_worker_slot_job(slot) != NULL || slot->state == PB_SLOT_LEAVING;
}

/* --- queries ---------------------------------------------------------------------------------- */

const struct pb_job *pb_worker_slot_job(const struct pb_worker_slot *slot)
{
    switch (slot->state) {
    case PB_SLOT_RUNNING:
    case PB_SLOT_STOPPING:
    case PB_SLOT_KILLED:
    case PB_SLOT_RENEWING:
    case PB_SLOT_CLEARING:
        return &slot->job;
    default:
        return NULL;
    }
}

bool pb_worker_slot_wants_permit(const struct pb_worker_slot *slot)
{
    return slot->state == PB_SLOT_RUNNING && slot->permit_ms != 0;
}

bool pb_worker_slot_has_process(const struct pb_worker_slot *slot)
{
    return slot->proc != NULL;
}

bool pb_worker_slot_is_empty(const struct pb_worker_slot *slot)
{
    return slot->state == PB_SLOT_EMPTY;
}

bool pb_worker_slot_is_idle(const struct pb_worker_slot *slot)
{
    return slot->state == PB_SLOT_IDLE;
}

int pb_worker_slot_pid(const struct pb_worker_slot *slot)
{
    return slot->proc != NULL ? pb_worker_proc_pid(slot->proc) : 0;
}

enum pb_ending pb_worker_slot_ending(const struct pb_worker_slot *slot)
{
    return slot->ending;
}

int64_t pb_worker_slot_began_ms(const struct pb_worker_slot *slot)
{
    return slot->began_ms;
}
