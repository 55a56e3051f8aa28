/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Reports of the worker slots and of the owners of devices. */
#include "service/runner/worker_pool_table.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "pipeline/publish/publish.h"
#include "service/base/files.h"
#include "service/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Task that clears products/ before a job runs again. */
struct sweep {
    uv_work_t work;
    struct pb_worker_pool *pool;
    int number;
    char products[PB_FILES_PATH_BYTES], job[PB_JOB_ID_BYTES];
    int64_t epoch;
};

void pb_pool_notify(const struct pb_worker_pool *pool, struct pb_pool_slot *slot)
{
    const struct pb_job *job = pb_pool_job(slot);
    slot->changed = false;
    slot->notified_ms = pb_clock_mono_ms();
    if (job != NULL)
        pool->env->on_change(pool->env->user, job);
}

static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    struct pb_worker_pool *pool = user;
    struct pb_pool_slot *slot = &pool->slots[number];
    const bool before = slot->publishes;
    slot->publishes = pb_job_publishes(job);
    if (slot->publishes && !before) {
        pb_device_owners_give(pool->device_owners, &slot->owner); /* its connection has ended */
        pb_pool_give_turns(pool);
        pool->on_free(pool->user);
    }
    if (at_once || pb_clock_mono_ms() - slot->notified_ms >= PB_POOL_NOTIFY_MS)
        pb_pool_notify(pool, slot);
    else
        slot->changed = true;
}

static void on_alerts(void *user, int number, const struct pb_job *job,
                      const struct pb_job_alert *alerts, size_t n)
{
    struct pb_worker_pool *pool = user;
    (void)number;
    pool->on_alerts(pool->user, job, alerts, n);
}

static void on_latency(void *user, int number, const struct pb_job *job,
                       const struct pb_latency_counts *more)
{
    const struct pb_worker_pool *pool = user;
    (void)number;
    pool->env->on_latency(pool->env->user, job, more);
}

static void on_device(void *user, const char *device, const char *why)
{
    struct pb_worker_pool *pool = user;
    (void)snprintf(pool->device, sizeof pool->device, "%s", device);
    (void)snprintf(pool->device_why, sizeof pool->device_why, "%s", why);
    if (device[0] == '\0')
        pb_log(PB_LOG_ERROR, "device: %s", why[0] != '\0' ? pool->device_why : "none");
    else
        pb_log(PB_LOG_NOTICE, "device: %s%s%s", pool->device, why[0] != '\0' ? ": " : "",
               pool->device_why);
}

/* Handles the report of a device's owner. */
static void on_owned_device(void *user, const char *device, const char *why)
{
    struct pb_worker_pool *pool = user;
    pool->owner.owner_why = pb_device_owners_why(pool->device_owners);
    if (device[0] == '\0' && pool->env->config->compute.device == PB_DEVICE_AUTO)
        device = "cpu";
    on_device(user, device, why);
    pool->on_free(pool->user);
}

static const char *on_owner(void *user, int number, bool wanted)
{
    struct pb_worker_pool *pool = user;
    struct pb_pool_slot *slot = &pool->slots[number];
    pb_device_owners_give(pool->device_owners, &slot->owner);
    return wanted ? pb_device_owners_take(pool->device_owners, &slot->owner) : NULL;
}

static void on_turn(void *user, int number, int64_t tiles, int64_t memory_bytes)
{
    struct pb_worker_pool *pool = user;
    pb_turns_plan(&pool->turns, number, tiles, memory_bytes);
    pb_pool_give_turns(pool);
    pool->on_free(pool->user); /* the plan may allow another job */
}

static void on_permit(void *user, int number)
{
    const struct pb_worker_pool *pool = user;
    (void)number;
    pool->on_permit(pool->user);
}

static void on_start(void *user, int number)
{
    const struct pb_worker_pool *pool = user;
    (void)number;
    pool->env->metrics->worker_starts++;
}

/* The store keeps the job as running: a restart of the service in between runs it from the
 * beginning. */
static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    struct pb_worker_pool *pool = user;
    pb_metrics_device_retry(pool->env->metrics, which);
    pool->slots[number].publishes = false;
    pb_log(PB_LOG_WARNING, "job %s: runs %s", job->id, job->device_why);
    pb_pool_notify(pool, &pool->slots[number]);
}

/* The process of the try before may not have ended. */
static void clear_products(uv_work_t *request)
{
    const struct sweep *sweep = request->data;
    const int rc = pb_publish_fence(sweep->products, sweep->job, (uint64_t)sweep->epoch);
    if (rc < 0)
        pb_log(PB_LOG_ERROR, "job %s: cannot keep its last try from publishing in %s: %s",
               sweep->job, sweep->products, strerror(-rc));
}

static void on_swept(uv_work_t *request, int status)
{
    struct sweep *sweep = request->data;
    (void)status;
    sweep->pool->n_sweeps--;
    pb_worker_slot_cleared(sweep->pool->slots[sweep->number].worker);
    free(sweep);
}

static void on_clear(void *user, int number, const char *products)
{
    struct pb_worker_pool *pool = user;
    const struct pb_job *job = pb_pool_job(&pool->slots[number]);
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep == NULL) {
        pb_worker_slot_cleared(pool->slots[number].worker);
        return;
    }
    sweep->pool = pool;
    sweep->number = number;
    if (job != NULL) {
        (void)snprintf(sweep->job, sizeof sweep->job, "%s", job->id);
        sweep->epoch = job->epoch;
    }
    sweep->work.data = sweep;
    (void)snprintf(sweep->products, sizeof sweep->products, "%s", products);
    pool->n_sweeps++;
    (void)uv_queue_work(pool->loop, &sweep->work, clear_products, on_swept);
}

/* Notes a worker that SIGKILL did not end; it is reaped later. */
static void note_hung(struct pb_worker_pool *pool, int pid)
{
    pool->env->metrics->worker_deaths++;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        if (pool->hung[i] == 0) {
            pool->hung[i] = pid;
            return;
        }
    }
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    struct pb_worker_pool *pool = user;
    struct pb_pool_slot *slot = &pool->slots[number];
    if (over->hung_pid != 0)
        note_hung(pool, over->hung_pid);
    else if (over->died)
        pool->env->metrics->worker_deaths++;
    if (over->end == PB_RUN_SUCCESSFUL)
        pool->planned_bytes = (uint64_t)over->memory_bytes;
    pool->on_over(pool->user, slot, over);
    slot->express = slot->live = slot->publishes = slot->changed = false;
    pb_device_owners_give(pool->device_owners, &slot->owner);
    pb_job_fini(&over->job);
    pb_pool_give_turns(pool);
    pool->on_free(pool->user);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    struct pb_worker_pool *pool = user;
    (void)number;
    if (hung)
        note_hung(pool, pid);
    pool->on_free(pool->user);
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user;
    if (pid != 0)
        pb_log(level, "worker %d: %s", pid, text);
    else
        pb_log(level, "%s", text);
}

static void on_owner_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user;
    if (pid != 0)
        pb_log(level, "device owner %d: %s", pid, text);
    else
        pb_log(level, "%s", text);
}

void pb_pool_report_to(struct pb_worker_pool *pool, struct pb_device_owners_options *out_owners)
{
    pool->owner = (struct pb_worker_slot_owner){.loop = pool->loop,
                                                .program = {.path = pool->worker},
                                                .config = pool->env->config,
                                                .on_news = on_news,
                                                .on_alerts = on_alerts,
                                                .on_latency = on_latency,
                                                .on_device = on_device,
                                                .on_owner = on_owner,
                                                .on_turn = on_turn,
                                                .on_permit = on_permit,
                                                .on_start = on_start,
                                                .on_retry = on_retry,
                                                .on_clear = on_clear,
                                                .on_over = on_over,
                                                .on_gone = on_gone,
                                                .on_say = on_say,
                                                .user = pool};
    *out_owners = (struct pb_device_owners_options){.loop = pool->loop,
                                                    .program = pool->owner_program,
                                                    .on_device = on_owned_device,
                                                    .on_say = on_owner_say,
                                                    .user = pool};
}
