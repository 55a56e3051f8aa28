/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * How a job ends when its worker does. Whose fault the end is:
 *   - the machine's (hold.h), when the worker ended before it said a word (its program cannot run),
 *     when it could not be told its work, when it was killed from outside (SIGKILL is the kernel
 *     out of memory, mostly; decoding no file sends it), when not even SIGKILL ends it (its storage
 *     hangs), when it made no progress because storage did not answer (worker_wait.h, and
 *     what it said itself: pipeline/io/io_watch.h);
 *   - the input's otherwise: a decoder that crashed or talked nonsense (service.max_attempts), and
 *     one that computes or waits without progress. */
#include "pipeline/publish/publish.h"
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/worker_slot.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* What is known of the worker's end. */
struct end {
    const char *how;
    bool spoke;
    bool by_us; /* we sent SIGKILL */
};

/* products/ is cleared before a job runs again. */
struct sweep {
    uv_work_t work;
    struct pb_worker_slot *slot;
    char products[PB_FILES_PATH_BYTES];
};

static const char *stage_of(const struct pb_job *job)
{
    return job->stage[0] ? job->stage : "plan";
}

/* Signals that a program gets for what it does itself; all others were sent by somebody. */
static bool is_killed(const char *how)
{
    int number = 0;
    if (sscanf(how, "signal %d ", &number) != 1)
        return false;
    return number != SIGSEGV && number != SIGBUS && number != SIGILL && number != SIGFPE &&
           number != SIGABRT && number != SIGTRAP && number != SIGSYS;
}

/* Ended by the machine: the job's error is set. */
static bool is_machine_s(struct pb_worker_slot *slot, const struct end *end)
{
    struct pb_job *job = &slot->job;
    if (!end->spoke)
        pb_job_fail(job, PB_E_SYSTEM,
                    "a worker ended with %s before it said a word; can its program run (%s)?",
                    end->how, slot->runner->options.worker);
    else if (slot->untold)
        pb_job_fail(job, PB_E_SYSTEM, "the worker could not be told its work");
    else if (!end->by_us && is_killed(end->how))
        pb_job_fail(job, PB_E_MEMORY,
                    "the worker was ended by %s in stage %s at tile %lld of %lld: the kernel out "
                    "of memory (see dmesg), or a person",
                    end->how, stage_of(job), (long long)job->tiles_done,
                    (long long)job->tiles_total);
    else
        return false;
    return true;
}

static void crashed(struct pb_worker_slot *slot, const struct end *end)
{
    struct pb_job *job = &slot->job;
    int attempts_max = slot->runner->config->service.max_attempts;
    slot->runner->options.metrics->worker_deaths++;
    pb_log(PB_LOG_ERROR, "job %s: its worker ended with %s (attempt %d of %d)", job->id, end->how,
           job->attempts, attempts_max);
    if (is_machine_s(slot, end)) {
        pb_worker_slot_set_back(slot);
        return;
    }
    if (job->attempts < attempts_max) {
        pb_worker_slot_put_back(slot, true);
        return;
    }
    pb_job_fail(job, PB_E_JOB_CRASHED,
                "the worker ended with %s in stage %s at tile %lld of %lld, attempt %d of %d",
                end->how, stage_of(job), (long long)job->tiles_done, (long long)job->tiles_total,
                job->attempts, attempts_max);
    pb_worker_slot_finish(slot, PB_JOB_FAILED);
}

static void stalled(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    if (slot->wait_why != NULL) {
        pb_job_fail(job, PB_E_INPUT_IO,
                    "no progress for %lld s in stage %s at tile %lld of %lld, for %s: the storage "
                    "of its input or products does not answer; the worker was ended",
                    (long long)((pb_clock_mono_ms() - slot->moved_ms) / 1000), stage_of(job),
                    (long long)job->tiles_done, (long long)job->tiles_total, slot->wait_why);
        pb_worker_slot_set_back(slot);
        return;
    }
    pb_job_fail(job, PB_E_JOB_STALLED,
                "no progress for %lld s in stage %s at tile %lld of %lld; the worker was ended",
                (long long)((pb_clock_mono_ms() - slot->moved_ms) / 1000), stage_of(job),
                (long long)job->tiles_done, (long long)job->tiles_total);
    pb_worker_slot_finish(slot, PB_JOB_FAILED);
}

void pb_worker_slot_out_of_time(struct pb_worker_slot *slot)
{
    struct pb_job *job = &slot->job;
    pb_job_fail(job, PB_E_INPUT_LIMIT,
                "the run took longer than limits.job_time (%lld s) and was ended in stage %s at "
                "tile %lld of %lld",
                (long long)(slot->runner->config->limits.job_time_ms / 1000), stage_of(job),
                (long long)job->tiles_done, (long long)job->tiles_total);
    pb_worker_slot_finish(slot, PB_JOB_FAILED);
}

static void hung(struct pb_worker_slot *slot, int pid)
{
    struct pb_job *job = &slot->job;
    pb_job_fail(job, PB_E_INPUT_IO,
                "worker %d hangs in stage %s at tile %lld of %lld and cannot be ended: the storage "
                "of its input or products does not answer",
                pid, stage_of(job), (long long)job->tiles_done, (long long)job->tiles_total);
    pb_worker_slot_set_back(slot);
}

static void start_again(struct pb_worker_slot *slot)
{
    struct pb_err err = {0};
    slot->again = false;
    if (pb_worker_slot_start_worker(slot, &err) == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: worker %d has it now", slot->job.id,
               pb_worker_proc_pid(slot->proc));
        pb_worker_slot_send_run(slot);
        pb_worker_slot_notify(slot);
        return;
    }
    pb_job_fail(&slot->job, err.code, "%s", err.msg);
    pb_worker_slot_set_back(slot);
}

static void clear_products(uv_work_t *request)
{
    const struct sweep *sweep = request->data;
    (void)pb_publish_sweep(sweep->products);
}

static void on_swept(uv_work_t *request, int status)
{
    struct sweep *sweep = request->data;
    struct pb_worker_slot *slot = sweep->slot;
    (void)status;
    slot->runner->n_works--;
    slot->sweeps = false;
    free(sweep);
    if (slot->busy && slot->again && slot->proc == NULL) /* else it was ended meanwhile */
        start_again(slot);
}

/* The worker whose device failed is gone. What it left in products/ goes first. */
static void run_again(struct pb_worker_slot *slot)
{
    struct sweep *sweep_work = slot->sweeps ? NULL : calloc(1, sizeof *sweep_work);
    if (slot->sweeps)
        return;
    if (sweep_work == NULL) {
        start_again(slot);
        return;
    }
    sweep_work->slot = slot;
    sweep_work->work.data = sweep_work;
    (void)snprintf(sweep_work->products, sizeof sweep_work->products, "%s",
                   slot->runner->options.dirs->products);
    slot->sweeps = true;
    slot->runner->n_works++;
    (void)uv_queue_work(slot->runner->options.loop, &sweep_work->work, clear_products, on_swept);
}

static void idle_worker_ended(struct pb_worker_slot *slot, int pid, const struct end *end,
                              bool expected)
{
    slot->kill_at_ms = 0;
    if (!expected)
        pb_log(PB_LOG_WARNING, "worker %d: ended without a job with %s", pid, end->how);
    pb_runner_kick(slot->runner);
}

void pb_worker_slot_worker_ended(struct pb_worker_slot *slot, const char *how)
{
    bool expected = slot->leaving;
    int pid = pb_worker_proc_pid(slot->proc);
    struct end end = {how, pb_worker_proc_spoke(slot->proc),
                      pb_worker_proc_killed_ms(slot->proc) > 0};
    pb_worker_proc_destroy(slot->proc); /* `how` lives on until the loop's next round */
    slot->proc = NULL;
    slot->leaving = false;
    if (!slot->busy) {
        idle_worker_ended(slot, pid, &end, expected);
        return;
    }
    switch (slot->ending) {
    case PB_ENDING_NONE:
        if (slot->again)
            run_again(slot);
        else
            crashed(slot, &end);
        break;
    case PB_ENDING_CANCEL:
        pb_worker_slot_dismiss(slot);
        break;
    case PB_ENDING_STALL:
        stalled(slot);
        break;
    case PB_ENDING_TIME:
        pb_worker_slot_out_of_time(slot);
        break;
    case PB_ENDING_PUT_BACK:
        pb_worker_slot_put_back(slot, false);
        break;
    }
}

void pb_worker_slot_give_up(struct pb_worker_slot *slot)
{
    struct pb_runner *runner = slot->runner;
    int pid = pb_worker_proc_pid(slot->proc);
    pb_log(PB_LOG_ERROR,
           "worker %d: does not end on SIGKILL (does its storage hang?); the service goes on "
           "without it",
           pid);
    runner->options.metrics->worker_deaths++;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        if (runner->hung[i] == 0) {
            runner->hung[i] = pid;
            break;
        }
    }
    pb_worker_proc_destroy(slot->proc);
    slot->proc = NULL;
    slot->leaving = false;
    slot->kill_at_ms = 0;
    if (!slot->busy)
        pb_runner_kick(runner);
    else if (slot->ending == PB_ENDING_CANCEL)
        pb_worker_slot_dismiss(slot);
    else if (slot->ending == PB_ENDING_PUT_BACK)
        pb_worker_slot_put_back(slot, false);
    else if (slot->again)
        run_again(slot);
    else
        hung(slot, pid);
}
