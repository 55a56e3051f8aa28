/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/runner_place.h"

#include "pipeline/publish/publish.h"
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/worker_wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void pb_place_notify(struct pb_place *place)
{
    place->changed = false;
    place->notified_ms = pb_clock_mono_ms();
    place->runner->options.on_change(place->runner->options.user, &place->job);
}

/* The place is free before the job is finished: what finishing wakes may use it. */
static struct pb_job release(struct pb_place *place)
{
    struct pb_job job = place->job;
    memset(&place->job, 0, sizeof place->job);
    place->busy = place->changed = place->again = place->untold = place->express = false;
    place->device_try = PB_DEVICE_TRY_FIRST;
    place->ending = PB_ENDING_NONE;
    place->kill_at_ms = 0;
    pb_worker_lines_end(&place->lines);
    return job;
}

void pb_place_finish(struct pb_place *place, enum pb_job_status status)
{
    if (place->express)
        pb_express_done(place->runner);
    struct pb_job job = release(place);
    pb_runner_finish(place->runner, &job, status);
    pb_job_fini(&job);
    pb_runner_kick(place->runner);
}

void pb_place_dismiss(struct pb_place *place)
{
    pb_job_fail(&place->job, PB_E_JOB_DISMISSED, "cancelled on request");
    pb_place_finish(place, PB_JOB_DISMISSED);
}

void pb_place_put_back(struct pb_place *place, bool attempt_counts)
{
    struct pb_job job = release(place);
    if (!attempt_counts)
        job.attempts--;
    pb_runner_put_back(place->runner, &job);
    pb_job_fini(&job);
    pb_runner_kick(place->runner);
}

/* Releases the place and hands its job over; the start of its run tells later files apart. */
static void hand_over(struct pb_place *place,
                      void (*take)(struct pb_runner *runner, struct pb_job *job, int64_t began_ms))
{
    int64_t began_ms = place->began_ms;
    struct pb_job job = release(place);
    take(place->runner, &job, began_ms);
    pb_job_fini(&job);
    pb_runner_kick(place->runner);
}

void pb_place_set_back(struct pb_place *place)
{
    hand_over(place, pb_runner_set_back);
}

void pb_place_await_config(struct pb_place *place)
{
    hand_over(place, pb_runner_await_config);
}

static int percent(const struct pb_job *job)
{
    if (job->tiles_total <= 0)
        return 0;
    int64_t done = job->tiles_done < job->tiles_total ? job->tiles_done : job->tiles_total;
    return (int)(done * 99 / job->tiles_total); /* 100 is said when the products are there */
}

static void take_progress(struct pb_place *place, const struct pb_worker_line *line)
{
    struct pb_job *job = &place->job;
    const struct pb_worker_numbers *now = &line->numbers;
    bool moved = strcmp(job->stage, line->stage) != 0 || job->tiles_done != now->tiles_done ||
                 job->bytes_read != now->bytes_read || job->bytes_written != now->bytes_written ||
                 place->bytes_checked != now->bytes_checked;
    (void)snprintf(job->stage, sizeof job->stage, "%s", line->stage);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->tiles_total = now->tiles_total;
    job->tiles_done = now->tiles_done;
    job->bytes_read = now->bytes_read;
    job->bytes_written = now->bytes_written;
    place->bytes_checked = now->bytes_checked;
    place->io_since_ms = now->io_ms > 0 ? pb_clock_mono_ms() - now->io_ms : 0;
    job->elapsed_ms = now->elapsed_ms;
    job->progress = percent(job);
    if (moved) {
        place->moved_ms = pb_clock_mono_ms();
        job->updated_ms = pb_clock_wall_ms();
    }
    if (pb_clock_mono_ms() - place->notified_ms >= PB_PLACE_NOTIFY_MS)
        pb_place_notify(place);
    else
        place->changed = true;
}

static void take_done(struct pb_place *place, const struct pb_worker_line *line)
{
    struct pb_job *job = &place->job;
    /* Without memory for them the job is still done; its details are missing. */
    (void)pb_job_set(&job->products, line->products);
    (void)pb_job_set(&job->report, line->report);
    (void)pb_job_set(&job->directory, line->directory);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->elapsed_ms = line->numbers.elapsed_ms;
    if (job->tiles_total > 0)
        job->tiles_done = job->tiles_total;
    place->runner->planned_bytes = (uint64_t)line->memory_bytes;
    pb_place_finish(place, PB_JOB_SUCCESSFUL);
}

/* The worker is ended before the next job can come to it. */
static void abandon_worker(struct pb_place *place)
{
    place->leaving = true;
    pb_worker_proc_kill(place->proc);
}

/* The job stays as it is in the store, running: a restart of the service in between runs it from
 * the beginning. What a device did is no attempt of the job's. */
static void try_again(struct pb_place *place, enum pb_device_try next, const char *code,
                      const char *message)
{
    struct pb_runner *runner = place->runner;
    struct pb_job *job = &place->job;
    bool demanded = runner->config->compute.device == PB_DEVICE_CUDA;
    place->again = true;
    place->device_try = next;
    place->ending = PB_ENDING_NONE;
    place->kill_at_ms = 0;
    pb_device_try_why(next, demanded, code, message, job->device_why, sizeof job->device_why);
    pb_job_restart(job, pb_clock_wall_ms());
    pb_metrics_device_retry(runner->options.metrics, next);
    pb_log(PB_LOG_WARNING, "job %s: runs %s", job->id, job->device_why);
    abandon_worker(place);
    pb_place_notify(place);
}

/* A code that nobody knows is taken for the input's. */
static enum pb_code_class class_of(const char *code)
{
    enum pb_code known = pb_code_find(code);
    return known == PB_E_COUNT ? PB_CLASS_INPUT : pb_code_class(known);
}

static void take_failed(struct pb_place *place, const struct pb_worker_line *line)
{
    const struct pb_job_error *error = &line->error;
    enum pb_device_try next = pb_device_try_next(place->device_try, error->code);
    if (pb_device_is_lost(error->code))
        abandon_worker(place);
    if (place->ending == PB_ENDING_CANCEL) {
        pb_place_dismiss(place);
    } else if (place->ending == PB_ENDING_PUT_BACK) {
        pb_place_put_back(place, false);
    } else if (place->ending == PB_ENDING_TIME) {
        pb_place_out_of_time(place);
    } else if (next != PB_DEVICE_TRY_OVER) {
        try_again(place, next, error->code, error->message);
    } else {
        place->job.error = *error;
        enum pb_code_class class = class_of(error->code);
        if (class == PB_CLASS_INPUT)
            pb_place_finish(place, PB_JOB_FAILED);
        else if (class == PB_CLASS_CONFIG)
            pb_place_await_config(place);
        else
            pb_place_set_back(place);
    }
}

static void take_device(struct pb_place *place, const struct pb_worker_line *line)
{
    struct pb_runner *runner = place->runner;
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
static void refuse(struct pb_place *place, const char *why)
{
    pb_log(PB_LOG_ERROR, "worker %d: says what no worker says (%s); it is ended",
           pb_worker_proc_pid(place->proc), why);
    place->lines.refused = true;
    pb_worker_proc_kill(place->proc);
}

static void on_line(void *user, const char *text, size_t bytes)
{
    struct pb_place *place = user;
    struct pb_worker_line line;
    char why[PB_WORKER_WHY_BYTES];
    if (place->again || place->proc == NULL || place->lines.refused)
        return; /* the job is not this worker's any more, or its word does not count */
    if (!pb_worker_lines_admit(&place->lines, bytes, pb_clock_mono_ms())) {
        refuse(place, "too many lines at once");
        return;
    }
    int rc = pb_worker_lines_take(&place->lines, text, bytes, why, &line);
    if (rc < 0)
        refuse(place, rc == -EPROTO ? why : "out of memory");
    if (rc != 0)
        return;
    if (line.event == PB_WORKER_SAYS_DEVICE)
        take_device(place, &line);
    else if (line.event == PB_WORKER_SAYS_PROGRESS)
        take_progress(place, &line);
    else if (line.event == PB_WORKER_SAYS_DONE)
        take_done(place, &line);
    else
        take_failed(place, &line);
    pb_worker_line_fini(&line);
}

static void on_end(void *user, const char *how)
{
    pb_place_worker_ended(user, how);
}

int pb_place_start_worker(struct pb_place *place, struct pb_err *err)
{
    struct pb_worker_proc_handlers handlers = {on_line, on_end, place};
    int rc = pb_worker_proc_start(place->runner->options.loop, place->runner->options.worker,
                                  &handlers, err, &place->proc);
    pb_worker_lines_reset(&place->lines);
    if (rc == 0)
        place->runner->options.metrics->worker_starts++;
    return rc;
}

void pb_place_run(struct pb_place *place, const struct pb_job *job)
{
    place->job = *job;
    place->busy = true;
    place->again = false;
    place->device_try = PB_DEVICE_TRY_FIRST;
    place->ending = PB_ENDING_NONE;
    place->kill_at_ms = 0;
    place->began_ms = pb_clock_mono_ms();
    place->bytes_checked = place->io_since_ms = 0;
    place->wait_why = NULL;
    place->express_until_ms = place->began_ms + place->runner->config->service.express_ms;
    if (pb_express_on_cpu(place))
        (void)snprintf(place->job.device_why, sizeof place->job.device_why,
                       "on the CPU, to overtake jobs that take long");
    pb_place_send_run(place);
    pb_place_notify(place);
}

void pb_place_end(struct pb_place *place, enum pb_ending ending, int64_t grace_ms)
{
    static const char cancel[] = "{\"cmd\":\"cancel\"}";
    if (place->again && ending == PB_ENDING_CANCEL) { /* no worker has the job */
        pb_place_dismiss(place);
        return;
    }
    if (place->again && ending == PB_ENDING_TIME) {
        pb_place_out_of_time(place);
        return;
    }
    if (place->again) {
        pb_place_put_back(place, false);
        return;
    }
    if (place->ending == PB_ENDING_NONE) {
        if (grace_ms > 0)
            (void)pb_worker_proc_send(place->proc, cancel, sizeof cancel - 1);
        else
            pb_worker_proc_kill(place->proc);
    }
    int64_t kill_at_ms = pb_clock_mono_ms() + grace_ms;
    if (place->kill_at_ms == 0 || kill_at_ms < place->kill_at_ms)
        place->kill_at_ms = kill_at_ms;
    /* What a person asked for counts more than a shutdown, and a stall is known already. */
    if (place->ending == PB_ENDING_NONE ||
        (ending == PB_ENDING_CANCEL &&
         (place->ending == PB_ENDING_PUT_BACK || place->ending == PB_ENDING_TIME)))
        place->ending = ending;
}

/* Found out while the worker still is there. */
static const char *wait_why(const struct pb_place *place, int64_t mono_ms, int64_t stall_ms)
{
    if (place->io_since_ms != 0 && mono_ms - place->io_since_ms >= stall_ms / 2)
        return "a read of its input or a write of its products does not return";
    return place->proc != NULL ? pb_worker_wait_why(pb_worker_proc_pid(place->proc)) : NULL;
}

static void end_in_time(struct pb_place *place, int64_t mono_ms)
{
    int64_t stall_ms = place->runner->config->service.stall_ms;
    int64_t time_ms = place->runner->config->limits.job_time_ms;
    if (place->ending != PB_ENDING_NONE)
        return;
    if (time_ms > 0 && mono_ms - place->began_ms >= time_ms) {
        pb_log(PB_LOG_ERROR, "job %s: runs for %lld s, over limits.job_time; it is ended",
               place->job.id, (long long)(time_ms / 1000));
        pb_place_end(place, PB_ENDING_TIME, PB_PLACE_CANCEL_MS);
    } else if (!place->again && stall_ms > 0 && mono_ms - place->moved_ms >= stall_ms) {
        place->wait_why = wait_why(place, mono_ms, stall_ms);
        pb_log(PB_LOG_ERROR, "job %s: no progress for %lld s%s%s; its worker is ended",
               place->job.id, (long long)(stall_ms / 1000), place->wait_why ? ": " : "",
               place->wait_why ? place->wait_why : "");
        pb_place_end(place, PB_ENDING_STALL, 0);
    }
}

void pb_place_tick(struct pb_place *place, int64_t mono_ms)
{
    if (place->proc != NULL && place->kill_at_ms > 0 && mono_ms >= place->kill_at_ms)
        pb_worker_proc_kill(place->proc);
    int64_t killed_ms = place->proc ? pb_worker_proc_killed_ms(place->proc) : 0;
    if (killed_ms > 0 && mono_ms - killed_ms >= PB_PLACE_HUNG_MS)
        pb_place_give_up(place);
    if (!place->busy)
        return;
    if (place->changed && mono_ms - place->notified_ms >= PB_PLACE_NOTIFY_MS)
        pb_place_notify(place);
    pb_express_tick(place, mono_ms);
    end_in_time(place, mono_ms);
}
