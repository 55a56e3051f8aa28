/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/worker_slot.h"

#include "pipeline/publish/publish.h"
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/worker_wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void pb_worker_slot_notify(struct pb_worker_slot *slot)
{
    slot->changed = false;
    slot->notified_ms = pb_clock_mono_ms();
    slot->runner->options.on_change(slot->runner->options.user, &slot->job);
}

/* The worker slot is free before the job is finished: what finishing wakes may use it. */
static struct pb_job release(struct pb_worker_slot *slot)
{
    struct pb_job job = slot->job;
    memset(&slot->job, 0, sizeof slot->job);
    slot->busy = slot->changed = slot->again = slot->untold = slot->express = false;
    slot->device_try = PB_DEVICE_TRY_FIRST;
    slot->ending = PB_ENDING_NONE;
    slot->kill_at_ms = 0;
    pb_worker_lines_end(&slot->lines);
    return job;
}

void pb_worker_slot_finish(struct pb_worker_slot *slot, enum pb_job_status status)
{
    if (slot->express)
        pb_express_done(slot->runner);
    struct pb_job job = release(slot);
    pb_runner_finish(slot->runner, &job, status);
    pb_job_fini(&job);
    pb_runner_kick(slot->runner);
}

void pb_worker_slot_dismiss(struct pb_worker_slot *slot)
{
    pb_job_fail(&slot->job, PB_E_JOB_DISMISSED, "cancelled on request");
    pb_worker_slot_finish(slot, PB_JOB_DISMISSED);
}

void pb_worker_slot_put_back(struct pb_worker_slot *slot, bool attempt_counts)
{
    struct pb_job job = release(slot);
    if (!attempt_counts)
        job.attempts--;
    pb_runner_put_back(slot->runner, &job);
    pb_job_fini(&job);
    pb_runner_kick(slot->runner);
}

/* Releases the worker slot and hands its job over; the start of its run tells later files apart. */
static void hand_over(struct pb_worker_slot *slot,
                      void (*take)(struct pb_runner *runner, struct pb_job *job, int64_t began_ms))
{
    int64_t began_ms = slot->began_ms;
    struct pb_job job = release(slot);
    take(slot->runner, &job, began_ms);
    pb_job_fini(&job);
    pb_runner_kick(slot->runner);
}

void pb_worker_slot_set_back(struct pb_worker_slot *slot)
{
    hand_over(slot, pb_runner_set_back);
}

void pb_worker_slot_await_config(struct pb_worker_slot *slot)
{
    hand_over(slot, pb_runner_await_config);
}

static int percent(const struct pb_job *job)
{
    if (job->tiles_total <= 0)
        return 0;
    int64_t done = job->tiles_done < job->tiles_total ? job->tiles_done : job->tiles_total;
    return (int)(done * 99 / job->tiles_total); /* 100 is said when the products are there */
}

static void take_progress(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    struct pb_job *job = &slot->job;
    const struct pb_worker_numbers *now = &line->numbers;
    bool moved = strcmp(job->stage, line->stage) != 0 || job->tiles_done != now->tiles_done ||
                 job->bytes_read != now->bytes_read || job->bytes_written != now->bytes_written ||
                 slot->bytes_checked != now->bytes_checked;
    (void)snprintf(job->stage, sizeof job->stage, "%s", line->stage);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->tiles_total = now->tiles_total;
    job->tiles_done = now->tiles_done;
    job->bytes_read = now->bytes_read;
    job->bytes_written = now->bytes_written;
    slot->bytes_checked = now->bytes_checked;
    slot->io_since_ms = now->io_ms > 0 ? pb_clock_mono_ms() - now->io_ms : 0;
    job->elapsed_ms = now->elapsed_ms;
    job->progress = percent(job);
    if (moved) {
        slot->moved_ms = pb_clock_mono_ms();
        job->updated_ms = pb_clock_wall_ms();
    }
    if (pb_clock_mono_ms() - slot->notified_ms >= PB_WORKER_SLOT_NOTIFY_MS)
        pb_worker_slot_notify(slot);
    else
        slot->changed = true;
}

static void take_done(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    struct pb_job *job = &slot->job;
    /* Without memory for them the job is still done; its details are missing. */
    (void)pb_job_set(&job->products, line->products);
    (void)pb_job_set(&job->report, line->report);
    (void)pb_job_set(&job->directory, line->directory);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->elapsed_ms = line->numbers.elapsed_ms;
    if (job->tiles_total > 0)
        job->tiles_done = job->tiles_total;
    slot->runner->planned_bytes = (uint64_t)line->memory_bytes;
    pb_worker_slot_finish(slot, PB_JOB_SUCCESSFUL);
}

/* The worker is ended before the next job can come to it. */
static void abandon_worker(struct pb_worker_slot *slot)
{
    slot->leaving = true;
    pb_worker_proc_kill(slot->proc);
}

/* The job stays as it is in the store, running: a restart of the service in between runs it from
 * the beginning. What a device did is no attempt of the job's. */
static void try_again(struct pb_worker_slot *slot, enum pb_device_try next, const char *code,
                      const char *message)
{
    struct pb_runner *runner = slot->runner;
    struct pb_job *job = &slot->job;
    bool demanded = runner->config->compute.device == PB_DEVICE_CUDA;
    slot->again = true;
    slot->device_try = next;
    slot->ending = PB_ENDING_NONE;
    slot->kill_at_ms = 0;
    pb_device_try_why(next, demanded, code, message, job->device_why, sizeof job->device_why);
    pb_job_restart(job, pb_clock_wall_ms());
    pb_metrics_device_retry(runner->options.metrics, next);
    pb_log(PB_LOG_WARNING, "job %s: runs %s", job->id, job->device_why);
    abandon_worker(slot);
    pb_worker_slot_notify(slot);
}

/* A code that nobody knows is taken for the input's. */
static enum pb_code_class class_of(const char *code)
{
    enum pb_code known = pb_code_find(code);
    return known == PB_E_COUNT ? PB_CLASS_INPUT : pb_code_class(known);
}

static void take_failed(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    const struct pb_job_error *error = &line->error;
    enum pb_device_try next = pb_device_try_next(slot->device_try, error->code);
    if (pb_device_is_lost(error->code))
        abandon_worker(slot);
    if (slot->ending == PB_ENDING_CANCEL) {
        pb_worker_slot_dismiss(slot);
    } else if (slot->ending == PB_ENDING_PUT_BACK) {
        pb_worker_slot_put_back(slot, false);
    } else if (slot->ending == PB_ENDING_TIME) {
        pb_worker_slot_out_of_time(slot);
    } else if (next != PB_DEVICE_TRY_OVER) {
        try_again(slot, next, error->code, error->message);
    } else {
        slot->job.error = *error;
        enum pb_code_class class = class_of(error->code);
        if (class == PB_CLASS_INPUT)
            pb_worker_slot_finish(slot, PB_JOB_FAILED);
        else if (class == PB_CLASS_CONFIG)
            pb_worker_slot_await_config(slot);
        else
            pb_worker_slot_set_back(slot);
    }
}

static void take_device(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    struct pb_runner *runner = slot->runner;
    (void)snprintf(runner->device, sizeof runner->device, "%s", line->device);
    (void)snprintf(runner->device_why, sizeof runner->device_why, "%s", line->why);
    bool has_why = line->why[0] != '\0';
    if (runner->device[0] == '\0')
        pb_log(PB_LOG_ERROR, "device: %s", has_why ? runner->device_why : "none");
    else
        pb_log(PB_LOG_NOTICE, "device: %s%s%s", runner->device, has_why ? ": " : "",
               runner->device_why);
    const struct pb_config *config = runner->config;
    if (strncmp(runner->device, "cuda", 4) == 0 && config->compute.sync == PB_SYNC_WIC &&
        config->service.parallel_jobs > 1)
        pb_log(PB_LOG_NOTICE,
               "device: service.parallel_jobs is %d, so jobs use streams (compute.sync: stream) "
               "unless MPS shares the GPU; one job at a time would use wic",
               config->service.parallel_jobs);
}

/* A worker that breaks the rules is ended, and its job ends with it. */
static void refuse(struct pb_worker_slot *slot, const char *why)
{
    pb_log(PB_LOG_ERROR, "worker %d: says what no worker says (%s); it is ended",
           pb_worker_proc_pid(slot->proc), why);
    slot->lines.refused = true;
    pb_worker_proc_kill(slot->proc);
}

static void on_line(void *user, const char *text, size_t bytes)
{
    struct pb_worker_slot *slot = user;
    struct pb_worker_line line;
    char why[PB_WORKER_WHY_BYTES];
    if (slot->again || slot->proc == NULL || slot->lines.refused)
        return; /* the job is not this worker's any more, or its word does not count */
    if (!pb_worker_lines_admit(&slot->lines, bytes, pb_clock_mono_ms())) {
        refuse(slot, "too many lines at once");
        return;
    }
    int rc = pb_worker_lines_take(&slot->lines, text, bytes, why, &line);
    if (rc < 0)
        refuse(slot, rc == -EPROTO ? why : "out of memory");
    if (rc != 0)
        return;
    if (line.event == PB_WORKER_SAYS_DEVICE)
        take_device(slot, &line);
    else if (line.event == PB_WORKER_SAYS_PROGRESS)
        take_progress(slot, &line);
    else if (line.event == PB_WORKER_SAYS_DONE)
        take_done(slot, &line);
    else
        take_failed(slot, &line);
    pb_worker_line_fini(&line);
}

static void on_end(void *user, const char *how)
{
    pb_worker_slot_worker_ended(user, how);
}

int pb_worker_slot_start_worker(struct pb_worker_slot *slot, struct pb_err *err)
{
    struct pb_worker_proc_handlers handlers = {on_line, on_end, slot};
    int rc = pb_worker_proc_start(slot->runner->options.loop, slot->runner->options.worker,
                                  &handlers, err, &slot->proc);
    pb_worker_lines_reset(&slot->lines);
    if (rc == 0)
        slot->runner->options.metrics->worker_starts++;
    return rc;
}

void pb_worker_slot_run(struct pb_worker_slot *slot, const struct pb_job *job)
{
    slot->job = *job;
    slot->busy = true;
    slot->again = false;
    slot->device_try = PB_DEVICE_TRY_FIRST;
    slot->ending = PB_ENDING_NONE;
    slot->kill_at_ms = 0;
    slot->began_ms = pb_clock_mono_ms();
    slot->bytes_checked = slot->io_since_ms = 0;
    slot->wait_why = NULL;
    slot->express_until_ms = slot->began_ms + slot->runner->config->service.express_ms;
    if (pb_express_on_cpu(slot))
        (void)snprintf(slot->job.device_why, sizeof slot->job.device_why,
                       "on the CPU, to overtake jobs that take long");
    pb_worker_slot_send_run(slot);
    pb_worker_slot_notify(slot);
}

void pb_worker_slot_end(struct pb_worker_slot *slot, enum pb_ending ending, int64_t grace_ms)
{
    static const char cancel[] = "{\"cmd\":\"cancel\"}";
    if (slot->again && ending == PB_ENDING_CANCEL) { /* no worker has the job */
        pb_worker_slot_dismiss(slot);
        return;
    }
    if (slot->again && ending == PB_ENDING_TIME) {
        pb_worker_slot_out_of_time(slot);
        return;
    }
    if (slot->again) {
        pb_worker_slot_put_back(slot, false);
        return;
    }
    if (slot->ending == PB_ENDING_NONE) {
        if (grace_ms > 0)
            (void)pb_worker_proc_send(slot->proc, cancel, sizeof cancel - 1);
        else
            pb_worker_proc_kill(slot->proc);
    }
    int64_t kill_at_ms = pb_clock_mono_ms() + grace_ms;
    if (slot->kill_at_ms == 0 || kill_at_ms < slot->kill_at_ms)
        slot->kill_at_ms = kill_at_ms;
    /* What a person asked for counts more than a shutdown, and a stall is known already. */
    if (slot->ending == PB_ENDING_NONE ||
        (ending == PB_ENDING_CANCEL &&
         (slot->ending == PB_ENDING_PUT_BACK || slot->ending == PB_ENDING_TIME)))
        slot->ending = ending;
}

/* Found out while the worker still is there. */
static const char *wait_why(const struct pb_worker_slot *slot, int64_t mono_ms, int64_t stall_ms)
{
    if (slot->io_since_ms != 0 && mono_ms - slot->io_since_ms >= stall_ms / 2)
        return "a read of its input or a write of its products does not return";
    return slot->proc != NULL ? pb_worker_wait_why(pb_worker_proc_pid(slot->proc)) : NULL;
}

static void end_in_time(struct pb_worker_slot *slot, int64_t mono_ms)
{
    int64_t stall_ms = slot->runner->config->service.stall_ms;
    int64_t time_ms = slot->runner->config->limits.job_time_ms;
    if (slot->ending != PB_ENDING_NONE)
        return;
    if (time_ms > 0 && mono_ms - slot->began_ms >= time_ms) {
        pb_log(PB_LOG_ERROR, "job %s: runs for %lld s, over limits.job_time; it is ended",
               slot->job.id, (long long)(time_ms / 1000));
        pb_worker_slot_end(slot, PB_ENDING_TIME, PB_WORKER_SLOT_CANCEL_MS);
    } else if (!slot->again && stall_ms > 0 && mono_ms - slot->moved_ms >= stall_ms) {
        slot->wait_why = wait_why(slot, mono_ms, stall_ms);
        pb_log(PB_LOG_ERROR, "job %s: no progress for %lld s%s%s; its worker is ended",
               slot->job.id, (long long)(stall_ms / 1000), slot->wait_why ? ": " : "",
               slot->wait_why ? slot->wait_why : "");
        pb_worker_slot_end(slot, PB_ENDING_STALL, 0);
    }
}

void pb_worker_slot_tick(struct pb_worker_slot *slot, int64_t mono_ms)
{
    if (slot->proc != NULL && slot->kill_at_ms > 0 && mono_ms >= slot->kill_at_ms)
        pb_worker_proc_kill(slot->proc);
    int64_t killed_ms = slot->proc ? pb_worker_proc_killed_ms(slot->proc) : 0;
    if (killed_ms > 0 && mono_ms - killed_ms >= PB_WORKER_SLOT_HUNG_MS)
        pb_worker_slot_give_up(slot);
    if (!slot->busy)
        return;
    if (slot->changed && mono_ms - slot->notified_ms >= PB_WORKER_SLOT_NOTIFY_MS)
        pb_worker_slot_notify(slot);
    pb_express_tick(slot, mono_ms);
    end_in_time(slot, mono_ms);
}
