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
#include "service/runner/runner_place.h"

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
    struct pb_place *place;
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
static bool is_machine_s(struct pb_place *place, const struct end *end)
{
    struct pb_job *job = &place->job;
    if (!end->spoke)
        pb_job_fail(job, PB_E_SYSTEM,
                    "a worker ended with %s before it said a word; can its program run (%s)?",
                    end->how, place->runner->options.worker);
    else if (place->untold)
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

static void crashed(struct pb_place *place, const struct end *end)
{
    struct pb_job *job = &place->job;
    int attempts_max = place->runner->config->service.max_attempts;
    place->runner->options.metrics->worker_deaths++;
    pb_log(PB_LOG_ERROR, "job %s: its worker ended with %s (attempt %d of %d)", job->id, end->how,
           job->attempts, attempts_max);
    if (is_machine_s(place, end)) {
        pb_place_set_back(place);
        return;
    }
    if (job->attempts < attempts_max) {
        pb_place_put_back(place, true);
        return;
    }
    pb_job_fail(job, PB_E_JOB_CRASHED,
                "the worker ended with %s in stage %s at tile %lld of %lld, attempt %d of %d",
                end->how, stage_of(job), (long long)job->tiles_done, (long long)job->tiles_total,
                job->attempts, attempts_max);
    pb_place_finish(place, PB_JOB_FAILED);
}

static void stalled(struct pb_place *place)
{
    struct pb_job *job = &place->job;
    if (place->wait_why != NULL) {
        pb_job_fail(job, PB_E_INPUT_IO,
                    "no progress for %lld s in stage %s at tile %lld of %lld, for %s: the storage "
                    "of its input or products does not answer; the worker was ended",
                    (long long)((pb_clock_mono_ms() - place->moved_ms) / 1000), stage_of(job),
                    (long long)job->tiles_done, (long long)job->tiles_total, place->wait_why);
        pb_place_set_back(place);
        return;
    }
    pb_job_fail(job, PB_E_JOB_STALLED,
                "no progress for %lld s in stage %s at tile %lld of %lld; the worker was ended",
                (long long)((pb_clock_mono_ms() - place->moved_ms) / 1000), stage_of(job),
                (long long)job->tiles_done, (long long)job->tiles_total);
    pb_place_finish(place, PB_JOB_FAILED);
}

void pb_place_out_of_time(struct pb_place *place)
{
    struct pb_job *job = &place->job;
    pb_job_fail(job, PB_E_INPUT_LIMIT,
                "the run took longer than limits.job_time (%lld s) and was ended in stage %s at "
                "tile %lld of %lld",
                (long long)(place->runner->config->limits.job_time_ms / 1000), stage_of(job),
                (long long)job->tiles_done, (long long)job->tiles_total);
    pb_place_finish(place, PB_JOB_FAILED);
}

static void hung(struct pb_place *place, int pid)
{
    struct pb_job *job = &place->job;
    pb_job_fail(job, PB_E_INPUT_IO,
                "worker %d hangs in stage %s at tile %lld of %lld and cannot be ended: the storage "
                "of its input or products does not answer",
                pid, stage_of(job), (long long)job->tiles_done, (long long)job->tiles_total);
    pb_place_set_back(place);
}

static void start_again(struct pb_place *place)
{
    struct pb_err err = {0};
    place->again = false;
    if (pb_place_start_worker(place, &err) == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: worker %d has it now", place->job.id,
               pb_worker_proc_pid(place->proc));
        pb_place_send_run(place);
        pb_place_notify(place);
        return;
    }
    pb_job_fail(&place->job, err.code, "%s", err.msg);
    pb_place_set_back(place);
}

static void clear_products(uv_work_t *request)
{
    const struct sweep *sweep = request->data;
    (void)pb_publish_sweep(sweep->products);
}

static void on_swept(uv_work_t *request, int status)
{
    struct sweep *sweep = request->data;
    struct pb_place *place = sweep->place;
    (void)status;
    place->runner->n_works--;
    place->sweeps = false;
    free(sweep);
    if (place->busy && place->again && place->proc == NULL) /* else it was ended meanwhile */
        start_again(place);
}

/* The worker whose device failed is gone. What it left in products/ goes first. */
static void run_again(struct pb_place *place)
{
    struct sweep *sweep_work = place->sweeps ? NULL : calloc(1, sizeof *sweep_work);
    if (place->sweeps)
        return;
    if (sweep_work == NULL) {
        start_again(place);
        return;
    }
    sweep_work->place = place;
    sweep_work->work.data = sweep_work;
    (void)snprintf(sweep_work->products, sizeof sweep_work->products, "%s",
                   place->runner->options.dirs->products);
    place->sweeps = true;
    place->runner->n_works++;
    (void)uv_queue_work(place->runner->options.loop, &sweep_work->work, clear_products, on_swept);
}

static void idle_worker_ended(struct pb_place *place, int pid, const struct end *end, bool expected)
{
    place->kill_at_ms = 0;
    if (!expected)
        pb_log(PB_LOG_WARNING, "worker %d: ended without a job with %s", pid, end->how);
    pb_runner_kick(place->runner);
}

void pb_place_worker_ended(struct pb_place *place, const char *how)
{
    bool expected = place->leaving;
    int pid = pb_worker_proc_pid(place->proc);
    struct end end = {how, pb_worker_proc_spoke(place->proc),
                      pb_worker_proc_killed_ms(place->proc) > 0};
    pb_worker_proc_destroy(place->proc); /* `how` lives on until the loop's next round */
    place->proc = NULL;
    place->leaving = false;
    if (!place->busy) {
        idle_worker_ended(place, pid, &end, expected);
        return;
    }
    switch (place->ending) {
    case PB_ENDING_NONE:
        if (place->again)
            run_again(place);
        else
            crashed(place, &end);
        break;
    case PB_ENDING_CANCEL:
        pb_place_dismiss(place);
        break;
    case PB_ENDING_STALL:
        stalled(place);
        break;
    case PB_ENDING_TIME:
        pb_place_out_of_time(place);
        break;
    case PB_ENDING_PUT_BACK:
        pb_place_put_back(place, false);
        break;
    }
}

void pb_place_give_up(struct pb_place *place)
{
    struct pb_runner *runner = place->runner;
    int pid = pb_worker_proc_pid(place->proc);
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
    pb_worker_proc_destroy(place->proc);
    place->proc = NULL;
    place->leaving = false;
    place->kill_at_ms = 0;
    if (!place->busy)
        pb_runner_kick(runner);
    else if (place->ending == PB_ENDING_CANCEL)
        pb_place_dismiss(place);
    else if (place->ending == PB_ENDING_PUT_BACK)
        pb_place_put_back(place, false);
    else if (place->again)
        run_again(place);
    else
        hung(place, pid);
}
