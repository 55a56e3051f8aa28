/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of a run, and its cause. When the worker ended, the cause is
 *
 * - the machine (hold.h), if the worker ended before it wrote a line (its program cannot run, or
 * it was killed as below), if its command could not be written, if it was killed from outside
 * (SIGKILL is mostly sent by the kernel out of memory; decoding a file does not cause it), if it
 * does not end even on SIGKILL (its storage hangs), if it made no progress because storage did not
 * respond (worker_wait.h, and the worker's own report: pipeline/io/io_watch.h);
 *
 * - the input otherwise: a decoder that crashed or broke the protocol (service.max_attempts), and
 * one that computes or waits without progress. */
#include "config/base/clock.h"
#include "config/config.h"
#include "service/processes/worker_slot_table.h"

#include <signal.h>
#include <stdio.h>

static const char *stage_of(const struct pb_job *job)
{
    return job->stage[0] ? job->stage : "plan";
}

void pb_slot_end_well(struct pb_worker_slot *slot)
{
    const struct pb_worker_line *line = slot->line;
    struct pb_job *job = &slot->job;
    /* If out of memory, the job is successful anyway, without its details. */
    (void)pb_job_set(&job->products, line->products);
    (void)pb_job_set(&job->report, line->report);
    pb_job_take_place(job);
    (void)pb_job_set(&job->directory, line->directory);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->elapsed_ms = line->numbers.elapsed_ms;
    if (job->tiles_total > 0)
        job->tiles_done = job->tiles_total;
    slot->over.end = PB_RUN_SUCCESSFUL;
    slot->over.memory_bytes = line->memory_bytes;
}

void pb_slot_end_failed(struct pb_worker_slot *slot)
{
    if (pb_code_find(slot->line->error.code) == PB_E_INPUT_OUTSIDE) {
        pb_job_leave_out(&slot->job, slot->line->error.message);
        slot->over.end = PB_RUN_SUCCESSFUL;
        return;
    }
    slot->job.error = slot->line->error;
    pb_slot_take_bbox(slot, slot->line);
    (void)pb_job_set(&slot->job.report, slot->line->report);
    slot->over.end = PB_RUN_FAILED;
}

/* Returns true if the machine ended the run, and sets the job's error. */
static bool is_machine_s(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    const char *program = slot->owner->program.path;
    if (!slot->gone.spoke && pb_worker_proc_is_killed(slot->gone.how))
        pb_job_fail(job, PB_E_MEMORY,
                    "a worker was ended by %s before it wrote a line: the kernel out of memory "
                    "(see dmesg), or a person",
                    slot->gone.how);
    else if (!slot->gone.spoke)
        pb_job_fail(job, PB_E_SYSTEM,
                    "a worker ended with %s before it wrote a line; can its program run (%s)?",
                    slot->gone.how, program ? program : "a fork of this one");
    else if (slot->untold)
        pb_job_fail(job, PB_E_SYSTEM, "the worker did not receive its job");
    else if (!slot->gone.by_us && pb_worker_proc_is_killed(slot->gone.how))
        pb_job_fail(job, PB_E_MEMORY,
                    "the worker was ended by %s in stage %s at tile %lld of %lld: the kernel out "
                    "of memory (see dmesg), or a person",
                    slot->gone.how, stage_of(job), (long long)job->tiles_done,
                    (long long)job->tiles_total);
    else
        return false;
    return true;
}

static void crashed(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    int attempts_max = slot->owner->config->service.max_attempts;
    slot->over.died = true;
    pb_slot_say(slot, 0, PB_LOG_ERROR, "job %s: its worker ended with %s (attempt %d of %d)",
                job->id, slot->gone.how, job->attempts, attempts_max);
    slot->over.end = PB_RUN_FAILED;
    if (is_machine_s(slot))
        return;
    slot->over.end = PB_RUN_CRASHED;
    pb_job_fail(job, PB_E_JOB_CRASHED,
                "the worker ended with %s in stage %s at tile %lld of %lld, attempt %d of %d",
                slot->gone.how, stage_of(job), (long long)job->tiles_done,
                (long long)job->tiles_total, job->attempts, attempts_max);
}

static void stalled(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    long long seconds = (long long)((pb_clock_mono_ms() - slot->moved_ms) / 1000);
    long long done = (long long)job->tiles_done, total = (long long)job->tiles_total;
    slot->over.end = PB_RUN_FAILED;
    if (slot->wait_why != NULL)
        pb_job_fail(job, PB_E_INPUT_IO,
                    "no progress for %lld s in stage %s at tile %lld of %lld, for %s: the storage "
                    "of its input or products does not answer; the worker was ended",
                    seconds, stage_of(job), done, total, slot->wait_why);
    else
        pb_job_fail(job, PB_E_JOB_STALLED,
                    "no progress for %lld s in stage %s at tile %lld of %lld; the worker was ended",
                    seconds, stage_of(job), done, total);
}

static void out_of_time(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    pb_job_fail(job, PB_E_INPUT_LIMIT,
                "the run took longer than limits.job_time (%lld s) and was ended in stage %s at "
                "tile %lld of %lld",
                (long long)(slot->owner->config->limits.job_time_ms / 1000), stage_of(job),
                (long long)job->tiles_done, (long long)job->tiles_total);
    slot->over.end = PB_RUN_FAILED;
}

/* A failure that the worker reported while it was being ended for a stall takes precedence: it is
 * more specific. */
void pb_slot_end_ended(struct pb_worker_slot *slot)
{
    switch (slot->ending) {
    case PB_ENDING_CANCEL:
    case PB_ENDING_PUT_BACK:
        slot->over.end = PB_RUN_ENDED;
        slot->over.ending = slot->ending;
        break;
    case PB_ENDING_TIME:
        out_of_time(slot);
        break;
    case PB_ENDING_STALL:
        if (slot->line != NULL)
            pb_slot_end_failed(slot);
        else
            stalled(slot);
        break;
    case PB_ENDING_NONE:
    case PB_ENDING_BREACH:
        crashed(slot);
        break;
    }
}

void pb_slot_end_hung(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    slot->over.died = true;
    if (slot->ending == PB_ENDING_CANCEL || slot->ending == PB_ENDING_PUT_BACK) {
        pb_slot_end_ended(slot);
        return;
    }
    pb_job_fail(job, PB_E_INPUT_IO,
                "worker %d hangs in stage %s at tile %lld of %lld and cannot be ended: the storage "
                "of its input or products does not answer",
                slot->gone.pid, stage_of(job), (long long)job->tiles_done,
                (long long)job->tiles_total);
    slot->over.end = PB_RUN_FAILED;
}
