/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A change of state is stored before anything visible follows from it, so that a restart repeats
 * work at most; that is done on libuv's pool (runner_pending.c). A tick of 100 ms runs only while
 * there is something to time. */
#include "service/runner/runner.h"

#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TICK_MS          100
#define NEARLY_DONE_MS   4000
#define DRAIN_FINISH_MS  5000
#define DRAIN_CANCEL_MS  2000
#define DRAIN_LEAVE_MS   1500
#define DRAIN_GIVE_UP_MS 8900
#define LAST_SAVE_MS     6000

static void on_tick(uv_timer_t *timer);

void pb_runner_wake(struct pb_runner *runner)
{
    if (!uv_is_active((uv_handle_t *)&runner->tick))
        (void)uv_timer_start(&runner->tick, on_tick, TICK_MS, TICK_MS);
}

int64_t pb_runner_busy(const struct pb_runner *runner)
{
    int64_t n = 0;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        n += pb_place_job(&runner->places[i]) != NULL;
    return n;
}

int64_t pb_runner_workers(const struct pb_runner *runner)
{
    int64_t n = 0;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        n += pb_worker_slot_has_process(runner->places[i].slot);
    return n;
}

/* Lets idle workers go that are more than the config wants. */
static void trim(struct pb_runner *runner, int64_t most)
{
    int64_t n = pb_runner_workers(runner);
    for (int i = PB_RUNNER_PLACES_MAX - 1; i >= 0 && n > most; i--) {
        const struct pb_place *place = &runner->places[i];
        if (!pb_worker_slot_has_process(place->slot) || pb_place_is_taken(place))
            continue;
        n--;
        pb_worker_slot_leave(place->slot, DRAIN_LEAVE_MS);
    }
}

static bool is_nearly_done(const struct pb_job *job)
{
    if (job->progress <= 0)
        return false;
    int64_t spent_ms = pb_clock_wall_ms() - job->started_ms;
    return spent_ms * (100 - job->progress) / job->progress <= NEARLY_DONE_MS ||
           strcmp(job->stage, "publish") == 0;
}

static void drain_place(struct pb_runner *runner, const struct pb_place *place, int64_t now)
{
    struct pb_worker_slot *slot = place->slot;
    const struct pb_job *job = pb_place_job(place);
    bool time_over = now - runner->drain_ms >= DRAIN_FINISH_MS;
    bool ends = job != NULL && pb_worker_slot_ending(slot) != PB_ENDING_NONE;
    if (job != NULL && (time_over || (!ends && !is_nearly_done(job))))
        pb_worker_slot_end(slot, PB_ENDING_PUT_BACK, DRAIN_CANCEL_MS);
    if (now - runner->drain_ms >= DRAIN_GIVE_UP_MS && pb_worker_slot_has_process(slot))
        pb_worker_slot_give_up(slot);
}

static void drain_tick(struct pb_runner *runner, int64_t now)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        drain_place(runner, &runner->places[i], now);
    if (pb_runner_busy(runner) > 0 || runner->n_works > 0)
        return;
    trim(runner, 0);
    if (pb_runner_workers(runner) == 0 && runner->drained != NULL) {
        void (*drained)(void *user) = runner->drained;
        runner->drained = NULL;
        drained(runner->drained_user);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct pb_runner *runner = timer->data;
    int64_t now = pb_clock_mono_ms();
    bool due = pb_hold_tick(&runner->hold, now) || runner->more || pb_express_is_due(runner, now);
    bool wanted = runner->drain_ms > 0;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        struct pb_place *place = &runner->places[i];
        if (place->changed && now - place->notified_ms >= PB_RUNNER_NOTIFY_MS)
            pb_place_notify(runner, place);
        pb_express_tick(runner, place, now);
        pb_worker_slot_tick(place->slot, now);
        wanted = wanted || pb_worker_slot_wants_tick(place->slot);
    }
    pb_pending_tick(runner, now);
    wanted = wanted || runner->pending != NULL;
    if (runner->drain_ms > 0) {
        trim(runner, 0);
        drain_tick(runner, now); /* the last thing: who waited for it may destroy the runner */
        return;
    }
    if (due)
        pb_runner_kick(runner);
    int64_t idle_kept = runner->config->service.parallel_jobs - pb_express_ordinary(runner);
    trim(runner, pb_runner_taken(runner) + (idle_kept > 0 ? idle_kept : 0));
    if (!wanted && !runner->more && !pb_hold_waits(&runner->hold))
        (void)uv_timer_stop(timer);
}

void pb_runner_drain(struct pb_runner *runner, void (*done)(void *user), void *user)
{
    runner->drain_ms = pb_clock_mono_ms();
    runner->drained = done;
    runner->drained_user = user;
    pb_runner_wake(runner);
}

const struct pb_job *pb_runner_find(const struct pb_runner *runner, const char *id)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        const struct pb_job *job = pb_place_job(&runner->places[i]);
        if (job != NULL && strcmp(job->id, id) == 0)
            return job;
    }
    const struct pb_pending *pending = pb_pending_find(runner, id);
    return pending != NULL && pending->failed && !pending->works ? &pending->job : NULL;
}

uint64_t pb_runner_planned_bytes(const struct pb_runner *runner)
{
    return runner->planned_bytes;
}

const char *pb_runner_device(const struct pb_runner *runner, const char **out_why)
{
    *out_why = runner->device_why;
    return runner->device;
}

void pb_runner_set_config(struct pb_runner *runner, const struct pb_config *config)
{
    struct pb_err err = {0};
    runner->config = runner->owner.config = config;
    struct pb_place *place = pb_runner_free_place(runner);
    pb_hold_hurry(&runner->hold, pb_clock_mono_ms());
    pb_runner_config_is_new(runner);
    if (place == NULL || pb_runner_taken(runner) > 0)
        return; /* a worker that runs a job says its device by itself */
    if (pb_worker_slot_is_empty(place->slot) && pb_place_start_worker(place, &err) != 0)
        pb_log(PB_LOG_ERROR, "%s", err.msg);
    else
        pb_worker_slot_probe(place->slot);
    pb_runner_kick(runner);
}

static void destroy_slots(struct pb_runner *runner)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        pb_worker_slot_destroy(runner->places[i].slot);
}

int pb_runner_create(const struct pb_runner_options *options, struct pb_err *err,
                     struct pb_runner **out_runner)
{
    struct pb_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    runner->options = *options;
    runner->config = options->config;
    pb_runner_own_slots(runner);
    bool complete = true;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        runner->places[i].slot = pb_worker_slot_create(&runner->owner, i);
        complete = complete && runner->places[i].slot != NULL;
    }
    if (!complete) {
        destroy_slots(runner);
        free(runner);
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    (void)uv_timer_init(options->loop, &runner->tick);
    runner->tick.data = runner;
    *out_runner = runner;
    return 0;
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void pb_runner_destroy(struct pb_runner *runner)
{
    if (runner == NULL)
        return;
    destroy_slots(runner);
    /* The last try may wait for a lock. */
    pb_pending_free(runner, pb_clock_mono_ms() - runner->drain_ms < LAST_SAVE_MS);
    pb_config_waits_clear(&runner->waits);
    uv_close((uv_handle_t *)&runner->tick, on_close);
}
