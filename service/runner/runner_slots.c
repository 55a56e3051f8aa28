/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of what worker slots report: a job whose run is over ends, or goes back into the
 * queue, by whose fault that was. */
#include "config/base/clock.h"
#include "pipeline/publish/publish.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* products/ is cleared before a job runs again. */
struct sweep {
    uv_work_t work;
    struct pb_runner *runner;
    int number;
    char products[PB_FILES_PATH_BYTES];
};

const struct pb_job *pb_place_job(const struct pb_place *place)
{
    return pb_worker_slot_job(place->slot);
}

bool pb_place_is_taken(const struct pb_place *place)
{
    return place->reserved || pb_place_job(place) != NULL;
}

int pb_place_start_worker(struct pb_place *place, struct pb_err *err)
{
    return pb_worker_slot_start(place->slot, err);
}

void pb_place_run(struct pb_runner *runner, struct pb_place *place, struct pb_job *job)
{
    bool on_cpu = pb_express_on_cpu(runner, place);
    struct pb_run_how how = {.products = runner->options.dirs->products,
                             .device = on_cpu ? "cpu" : NULL};
    place->express_until_ms = pb_clock_mono_ms() + runner->config->service.express_ms;
    if (on_cpu)
        (void)snprintf(job->device_why, sizeof job->device_why,
                       "on the CPU, to overtake jobs that take long");
    pb_worker_slot_run(place->slot, job, &how);
}

void pb_place_notify(struct pb_runner *runner, struct pb_place *place)
{
    const struct pb_job *job = pb_place_job(place);
    place->changed = false;
    place->notified_ms = pb_clock_mono_ms();
    if (job != NULL)
        runner->options.on_change(runner->options.user, job);
}

/* --- reports --------------------------------------------------------------------------------*/

static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    struct pb_runner *runner = user;
    struct pb_place *place = &runner->places[number];
    (void)job;
    if (at_once || pb_clock_mono_ms() - place->notified_ms >= PB_RUNNER_NOTIFY_MS)
        pb_place_notify(runner, place);
    else
        place->changed = true;
}

static void on_device(void *user, const char *device, const char *why)
{
    struct pb_runner *runner = user;
    const struct pb_config *config = runner->config;
    (void)snprintf(runner->device, sizeof runner->device, "%s", device);
    (void)snprintf(runner->device_why, sizeof runner->device_why, "%s", why);
    if (device[0] == '\0')
        pb_log(PB_LOG_ERROR, "device: %s", why[0] != '\0' ? runner->device_why : "none");
    else
        pb_log(PB_LOG_NOTICE, "device: %s%s%s", runner->device, why[0] != '\0' ? ": " : "",
               runner->device_why);
    if (strncmp(runner->device, "cuda", 4) == 0 && config->compute.sync == PB_SYNC_WIC &&
        config->service.parallel_jobs > 1)
        pb_log(PB_LOG_NOTICE,
               "device: service.parallel_jobs is %d, so jobs use streams (compute.sync: stream) "
               "unless MPS shares the GPU; one job at a time would use wic",
               config->service.parallel_jobs);
}

static void on_start(void *user, int number)
{
    struct pb_runner *runner = user;
    (void)number;
    runner->options.metrics->worker_starts++;
}

/* The job stays as it is in the store, running: a restart of the service in between runs it from
 * the beginning. */
static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    struct pb_runner *runner = user;
    pb_metrics_device_retry(runner->options.metrics, which);
    pb_log(PB_LOG_WARNING, "job %s: runs %s", job->id, job->device_why);
    pb_place_notify(runner, &runner->places[number]);
}

static void clear_products(uv_work_t *request)
{
    const struct sweep *sweep = request->data;
    (void)pb_publish_sweep(sweep->products);
}

static void on_swept(uv_work_t *request, int status)
{
    struct sweep *sweep = request->data;
    (void)status;
    sweep->runner->n_works--;
    pb_worker_slot_cleared(sweep->runner->places[sweep->number].slot);
    free(sweep);
}

static void on_clear(void *user, int number, const char *products)
{
    struct pb_runner *runner = user;
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL) {
        pb_worker_slot_cleared(runner->places[number].slot);
        return;
    }
    sweep->runner = runner;
    sweep->number = number;
    sweep->work.data = sweep;
    (void)snprintf(sweep->products, sizeof sweep->products, "%s", products);
    runner->n_works++;
    (void)uv_queue_work(runner->options.loop, &sweep->work, clear_products, on_swept);
}

/* --- the end of a run -----------------------------------------------------------------------*/

/* A code that nobody knows is taken for the input's. */
static enum pb_code_class class_of(const char *code)
{
    enum pb_code known = pb_code_find(code);
    return known == PB_E_COUNT ? PB_CLASS_INPUT : pb_code_class(known);
}

static void finish(struct pb_runner *runner, const struct pb_place *place, struct pb_job *job,
                   enum pb_job_status status)
{
    if (place->express)
        pb_express_done(runner);
    pb_runner_finish(runner, job, status);
}

static void failed(struct pb_runner *runner, const struct pb_place *place, struct pb_run_over *over)
{
    enum pb_code_class class = class_of(over->job.error.code);
    if (class == PB_CLASS_INPUT)
        finish(runner, place, &over->job, PB_JOB_FAILED);
    else if (class == PB_CLASS_CONFIG)
        pb_runner_await_config(runner, &over->job, over->began_ms);
    else
        pb_runner_set_back(runner, &over->job, over->began_ms);
}

static void crashed(struct pb_runner *runner, const struct pb_place *place, struct pb_job *job)
{
    if (job->attempts >= runner->config->service.max_attempts) {
        finish(runner, place, job, PB_JOB_FAILED);
        return;
    }
    memset(&job->error, 0, sizeof job->error); /* the log has it */
    pb_runner_put_back(runner, job);
}

static void ended(struct pb_runner *runner, const struct pb_place *place, struct pb_run_over *over)
{
    struct pb_job *job = &over->job;
    if (over->ending == PB_ENDING_CANCEL) {
        pb_job_fail(job, PB_E_JOB_DISMISSED, "cancelled on request");
        finish(runner, place, job, PB_JOB_DISMISSED);
    } else {
        job->attempts--;
        pb_runner_put_back(runner, job);
    }
}

static void note_hung(struct pb_runner *runner, int pid)
{
    runner->options.metrics->worker_deaths++;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        if (runner->hung[i] == 0) {
            runner->hung[i] = pid;
            return;
        }
    }
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    struct pb_runner *runner = user;
    struct pb_place *place = &runner->places[number];
    if (over->hung_pid != 0)
        note_hung(runner, over->hung_pid);
    else if (over->died)
        runner->options.metrics->worker_deaths++;
    switch (over->end) {
    case PB_RUN_SUCCESSFUL:
        runner->planned_bytes = (uint64_t)over->memory_bytes;
        finish(runner, place, &over->job, PB_JOB_SUCCESSFUL);
        break;
    case PB_RUN_FAILED:
        failed(runner, place, over);
        break;
    case PB_RUN_CRASHED:
        crashed(runner, place, &over->job);
        break;
    case PB_RUN_ENDED:
        ended(runner, place, over);
        break;
    }
    place->express = place->changed = false;
    pb_job_fini(&over->job);
    pb_runner_kick(runner);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    struct pb_runner *runner = user;
    (void)number;
    if (hung)
        note_hung(runner, pid);
    pb_runner_kick(runner);
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user;
    if (pid != 0)
        pb_log(level, "worker %d: %s", pid, text);
    else
        pb_log(level, "%s", text);
}

void pb_runner_own_slots(struct pb_runner *runner)
{
    runner->owner = (struct pb_worker_slot_owner){.loop = runner->options.loop,
                                                  .program = {.path = runner->options.worker},
                                                  .config = runner->config,
                                                  .on_news = on_news,
                                                  .on_device = on_device,
                                                  .on_start = on_start,
                                                  .on_retry = on_retry,
                                                  .on_clear = on_clear,
                                                  .on_over = on_over,
                                                  .on_gone = on_gone,
                                                  .on_say = on_say,
                                                  .user = runner};
}
