/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Connects the parts of the runner and chooses the next job; each part has its own header and
 * reports by handlers. The next job is the oldest waiting job of the highest priority whose scene
 * is not running already (two runs of one scene would publish into one directory) and that does
 * not have to wait because of its own faults. A job whose tiles are all computed makes room for the
 * next one while it publishes. While the queue is held (hold.h) one job at a time
 * starts, as a probe. A change of state is stored before its effects are visible, so that a
 * restart repeats work at most (pending.c). A tick of 100 ms runs only while a time limit is
 * active. */
#include "service/runner/runner.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "service/runner/express.h"
#include "service/runner/job_start.h"
#include "service/runner/requests.h"

#include <stdlib.h>
#include <string.h>

#define TICK_MS      100
#define LAST_SAVE_MS 6000
#define BATCH        16 /* jobs that one call starts, before it returns to the loop */
#define PENDING_MAX  64 /* jobs that wait for the disk before no further job is started */

struct pb_runner {
    uv_timer_t tick;
    struct pb_runner_env env;
    struct pb_job_queue queue;
    struct pb_worker_pool pool;
    struct pb_pending_list pending;
    struct pb_faults faults;
    struct pb_express express;
    struct pb_job_ends ends;
    struct pb_job_starts starts;
    struct pb_requests requests;
    bool more;        /* the next tick starts further jobs */
    bool kicks;       /* jobs are being started: a kick during that time is handled later */
    int64_t drain_ms; /* time of the call of drain; 0 = not called */
    void (*drained)(void *user);
    void *drained_user;
};

static void on_tick(uv_timer_t *timer);

static void wake(struct pb_runner *runner)
{
    if (!uv_is_active((uv_handle_t *)&runner->tick))
        (void)uv_timer_start(&runner->tick, on_tick, TICK_MS, TICK_MS);
}

/* --- the choice of the next job -------------------------------------------------------------*/

static bool may_start(void *user, const struct pb_job *job)
{
    const struct pb_runner *runner = user;
    return !pb_pool_blocks(&runner->pool, job) && !pb_pending_blocks(&runner->pending, job) &&
           pb_faults_may_try(&runner->faults, job->seq, pb_clock_mono_ms());
}

static bool may_start_short(void *user, const struct pb_job *job)
{
    const struct pb_runner *runner = user;
    return !pb_express_is_long(&runner->express, job->seq) && may_start(user, job);
}

static int64_t probe_rank(void *user, const struct pb_job *job)
{
    const struct pb_runner *runner = user;
    return pb_hold_rank(&runner->faults.hold, job->seq);
}

static int64_t priority_rank(void *user, const struct pb_job *job)
{
    const struct pb_runner *runner = user;
    return pb_job_start_rank(runner->env.config, job);
}

/* Workers that stay: those of jobs, and idle ones for as many jobs as may run. Those for publishing
 * jobs stay only while jobs run. */
static int64_t workers_kept(const struct pb_runner *runner)
{
    const struct pb_worker_pool *pool = &runner->pool;
    const int64_t taken = pb_pool_taken(pool);
    int64_t idle = pb_pool_most(pool) - pb_pool_ordinary(pool);
    if (taken > 0)
        idle += pb_publishing_jobs(&runner->env.config->service) - pb_pool_publishing(pool);
    return taken + (idle > 0 ? idle : 0);
}

/* Returns 1 and the job (owned by the caller), 0 if no job may start, negative errno. */
static int next_job(struct pb_runner *runner, int64_t now_ms, struct pb_err *err, bool *out_express,
                    struct pb_job *out_job)
{
    const struct pb_config *config = runner->env.config;
    bool holds = runner->faults.hold.on;
    *out_express = !pb_pool_may_begin(&runner->pool);
    if (*out_express) {
        const struct pb_job_filter is_short = {.may = may_start_short, .user = runner};
        if (holds || !pb_express_may_open(&runner->express, &runner->pool, config, now_ms))
            return 0;
        return pb_job_queue_smallest(&runner->queue, &is_short, err, out_job);
    }
    const struct pb_job_filter filter = {.may = may_start,
                                         .rank = holds ? probe_rank : priority_rank,
                                         .by_rank_alone = holds,
                                         .user = runner};
    bool more = false;
    int rc = pb_job_queue_next(&runner->queue, &filter, err, &more, out_job);
    runner->more = runner->more || more;
    return rc;
}

static void start_jobs(struct pb_runner *runner)
{
    int64_t now = pb_clock_mono_ms();
    for (int i = 0; !runner->env.drains && pb_hold_may_start(&runner->faults.hold, now); i++) {
        struct pb_job job;
        struct pb_err err = {0};
        if (i == BATCH || runner->pending.n >= PENDING_MAX) {
            runner->more = true;
            break;
        }
        struct pb_pool_slot *slot = pb_pool_free_slot(&runner->pool);
        bool express = false;
        int rc = slot ? next_job(runner, now, &err, &express, &job) : 0;
        if (rc == 0)
            break;
        slot->express = express;
        if (rc > 0)
            pb_job_start(&runner->starts, slot, &job);
        else
            pb_faults_cannot_start(&runner->faults, &err);
    }
}

/* Ends the hold if no job waits or runs, because then no success would ever end it. */
static void clear_if_empty(struct pb_runner *runner)
{
    if (runner->faults.hold.on && pb_pool_busy(&runner->pool) == 0 &&
        runner->pending.first == NULL && pb_job_queue_is_empty(&runner->queue))
        pb_faults_clear(&runner->faults);
}

void pb_runner_kick(struct pb_runner *runner)
{
    wake(runner);
    if (runner->kicks) { /* a start calls this function again: the next tick continues */
        runner->more = true;
        return;
    }
    runner->kicks = true;
    runner->more = false;
    pb_pool_reap(&runner->pool);
    start_jobs(runner);
    clear_if_empty(runner);
    runner->kicks = false;
}

/* --- reports of the parts -------------------------------------------------------------------*/

static void on_kick(void *user)
{
    pb_runner_kick(user);
}

static void on_wake(void *user)
{
    wake(user);
}

static void on_freed(void *user)
{
    struct pb_runner *runner = user;
    runner->more = true; /* the next iteration of the loop starts jobs */
    (void)uv_timer_start(&runner->tick, on_tick, 0, TICK_MS);
}

static void on_over(void *user, struct pb_pool_slot *slot, struct pb_run_over *over)
{
    struct pb_runner *runner = user;
    if (pb_job_end_run(&runner->ends, over) && slot->express)
        pb_express_done(&runner->express);
}

/* --- time -----------------------------------------------------------------------------------*/

static void express_tick(struct pb_runner *runner, int64_t now_ms)
{
    const struct pb_config *config = runner->env.config;
    const struct pb_job_filter is_short = {.may = may_start_short, .user = runner};
    struct pb_pool_slot *slot = pb_express_overdue(&runner->pool, now_ms);
    if (slot == NULL)
        return;
    if (pb_job_queue_has(&runner->queue, &is_short))
        pb_express_put_back(&runner->express, slot, config->service.express_ms, now_ms);
    else
        pb_express_extend(slot, now_ms);
}

static void drain_tick(struct pb_runner *runner, int64_t now)
{
    pb_pool_trim(&runner->pool, 0);
    pb_pool_drain(&runner->pool, runner->drain_ms, now);
    if (pb_pool_busy(&runner->pool) > 0 || runner->pending.n_works + runner->pool.n_sweeps > 0)
        return;
    pb_pool_trim(&runner->pool, 0);
    if (pb_pool_workers(&runner->pool) == 0 && runner->drained != NULL) {
        void (*drained)(void *user) = runner->drained;
        runner->drained = NULL;
        drained(runner->drained_user); /* may destroy the runner */
    }
}

static bool is_due(struct pb_runner *runner, int64_t now)
{
    return pb_hold_tick(&runner->faults.hold, now) || runner->more ||
           (!runner->faults.hold.on &&
            pb_express_is_due(&runner->express, &runner->pool, runner->env.config, now));
}

static void on_tick(uv_timer_t *timer)
{
    struct pb_runner *runner = timer->data;
    int64_t now = pb_clock_mono_ms();
    bool due = is_due(runner, now);
    express_tick(runner, now);
    bool wanted = pb_pool_tick(&runner->pool, now);
    pb_pending_tick(&runner->pending, now);
    wanted = wanted || runner->pending.first != NULL;
    if (runner->env.drains) {
        drain_tick(runner, now);
        return;
    }
    if (due)
        pb_runner_kick(runner);
    pb_pool_trim(&runner->pool, workers_kept(runner));
    if (!wanted && !runner->more && !pb_hold_waits(&runner->faults.hold))
        (void)uv_timer_stop(timer);
}

void pb_runner_drain(struct pb_runner *runner, void (*done)(void *user), void *user)
{
    runner->drain_ms = pb_clock_mono_ms();
    runner->env.drains = true;
    runner->drained = done;
    runner->drained_user = user;
    wake(runner);
}

/* --- for the service ------------------------------------------------------------------------*/

int64_t pb_runner_busy(const struct pb_runner *runner)
{
    return pb_pool_busy(&runner->pool);
}

int64_t pb_runner_workers(const struct pb_runner *runner)
{
    return pb_pool_workers(&runner->pool);
}

uint64_t pb_runner_planned_bytes(const struct pb_runner *runner)
{
    return runner->pool.planned_bytes;
}

const char *pb_runner_device(const struct pb_runner *runner, const char **out_why)
{
    *out_why = runner->pool.device_why;
    return runner->pool.device;
}

const struct pb_job *pb_runner_find(struct pb_runner *runner, const char *id)
{
    const struct pb_pool_slot *slot = pb_pool_find(&runner->pool, id);
    if (slot != NULL)
        return pb_pool_job(slot);
    const struct pb_pending *pending = pb_pending_find(&runner->pending, id);
    return pending != NULL && pending->failed && !pending->works ? &pending->job : NULL;
}

void pb_runner_ask(struct pb_runner *runner, const struct pb_job_request *request)
{
    pb_requests_ask(&runner->requests, request);
}

void pb_runner_set_config(struct pb_runner *runner, const struct pb_config *config)
{
    runner->env.config = config;
    pb_faults_config_changed(&runner->faults);
    on_freed(runner);
    pb_pool_config_changed(&runner->pool);
}

static void connect_parts(struct pb_runner *runner, const struct pb_runner_options *options)
{
    const struct pb_runner_env *env = &runner->env;
    runner->queue.reader = options->reader;
    runner->pool = (struct pb_worker_pool){.loop = options->loop,
                                           .worker = options->worker,
                                           .owner_program = options->owner_program,
                                           .owner_device = options->owner_device,
                                           .dirs = options->dirs,
                                           .env = env,
                                           .on_over = on_over,
                                           .on_free = on_kick,
                                           .user = runner};
    runner->pending = (struct pb_pending_list){.loop = options->loop,
                                               .store = options->store,
                                               .moves = options->moves,
                                               .dirs = options->dirs,
                                               .troubles = options->troubles,
                                               .env = env,
                                               .on_settled = on_kick,
                                               .on_kept = on_wake,
                                               .user = runner};
    runner->faults.troubles = options->troubles;
    runner->faults.env = env;
    runner->faults.on_freed = on_freed;
    runner->faults.user = runner;
    runner->ends = (struct pb_job_ends){env, &runner->pending, &runner->faults, &runner->queue};
    runner->starts = (struct pb_job_starts){env, &runner->pool, &runner->pending, &runner->faults,
                                            &runner->ends};
    runner->requests = (struct pb_requests){.env = env,
                                            .pool = &runner->pool,
                                            .pending = &runner->pending,
                                            .queue = &runner->queue,
                                            .ends = &runner->ends,
                                            .on_waiting = on_kick,
                                            .user = runner,
                                            .on_answer = options->on_answer,
                                            .answer_user = options->user};
}

int pb_runner_create(const struct pb_runner_options *options, struct pb_err *err,
                     struct pb_runner **out_runner)
{
    struct pb_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    runner->env = (struct pb_runner_env){.config = options->config,
                                         .metrics = options->metrics,
                                         .on_change = options->on_change,
                                         .on_changes = options->on_changes,
                                         .on_hold = options->on_hold,
                                         .user = options->user};
    connect_parts(runner, options);
    if (pb_pool_init(&runner->pool) != 0) {
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
    pb_pool_fini(&runner->pool);
    /* The last try may wait for a lock. */
    pb_pending_free(&runner->pending, pb_clock_mono_ms() - runner->drain_ms < LAST_SAVE_MS);
    pb_faults_fini(&runner->faults);
    uv_close((uv_handle_t *)&runner->tick, on_close);
}
