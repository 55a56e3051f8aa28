/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Connects the parts of the runner and decides when jobs start; choice.h decides which ones. Each
 * part has its own header and reports by handlers. The next job is the oldest waiting job of the
 * highest priority whose scene is not running already (two runs of one scene would publish into one
 * directory) and that does not have to wait because of its own faults. A job whose tiles are all
 * computed makes room for the next one while it publishes. While the queue is held (hold.h) one job
 * at a time starts, as a probe. A change of state is stored before its effects are visible, so that
 * a restart repeats work at most (pending.c). A tick of 100 ms runs only while a time limit is
 * active. */
#include "service/runner/runner.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "service/runner/alerts.h"
#include "service/runner/choice.h"
#include "service/runner/express.h"
#include "service/runner/job_start.h"
#include "service/runner/live.h"
#include "service/runner/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS        100
#define LAST_SAVE_MS   6000
#define FETCH_AFTER_MS 1000  /* jobs of other nodes wait so long for their own node */
#define SHUN_MS        30000 /* pb_runner.shun_ms by default */
#define PENDING_MAX    64    /* jobs that wait for the disk before no further job is started */

struct pb_runner {
    uv_timer_t tick;
    struct pb_runner_env env;
    int64_t foreign_ms; /* since when jobs of other nodes wait that may start here; 0 = none */
    int64_t shun_ms;    /* a job that failed here is left to other nodes for this long */
    struct pb_job_queue queue;
    struct pb_worker_pool pool;
    struct pb_pending_list pending;
    struct pb_faults faults;
    struct pb_express express;
    struct pb_job_ends ends;
    struct pb_job_starts starts;
    struct pb_live live;
    struct pb_alerts alerts;
    struct pb_requests requests;
    struct pb_choice *choice; /* conditions of the take on the pool; NULL = no take */
    struct pb_pool_slot *slots[PB_JOB_TAKE_MAX]; /* reserved for that take */
    int n_slots;
    bool more;    /* the next tick starts further jobs */
    bool again;   /* kicked while jobs were being taken */
    bool no_live; /* the last take found no job of a scene whose lines arrive */
    /* Conditions of the trouble "mount": why no job may publish; which directory with inputs of
     * other nodes was absent at the last take. */
    struct pb_err unrooted;
    char unseen[PB_FILES_PATH_BYTES];
    int64_t stop_ms; /* time of the call of stop; 0 = not called */
    void (*stopped)(void *user);
    void *stopped_user;
};

static void on_tick(uv_timer_t *timer);

static void wake(struct pb_runner *runner)
{
    if (!uv_is_active((uv_handle_t *)&runner->tick))
        (void)uv_timer_start(&runner->tick, on_tick, TICK_MS, TICK_MS);
}

/* --- starting jobs --------------------------------------------------------------------------*/

static void take(struct pb_runner *runner, struct pb_job_ask *ask, void (*taken)(void *user))
{
    const struct pb_choice_source source = {.env = &runner->env,
                                            .dirs = runner->pool.dirs,
                                            .faults = &runner->faults,
                                            .pending = &runner->pending,
                                            .live = &runner->live,
                                            .device = runner->pool.device,
                                            .may_fetch = runner->foreign_ms > 0 &&
                                                         pb_clock_mono_ms() - runner->foreign_ms >=
                                                             FETCH_AFTER_MS,
                                            .shun_ms = runner->shun_ms};
    ask->fetches = runner->env.config->service.has_fetch;
    ask->user = runner->choice = pb_choice_make(&source, runner);
    if (runner->choice != NULL)
        pb_job_queue_take(&runner->queue, ask, taken);
    else
        runner->more = true; /* out of memory */
}

/* Ends a take. Returns its choice, which must be freed. */
static struct pb_choice *end_take(struct pb_runner *runner)
{
    struct pb_choice *choice = runner->choice;
    runner->choice = NULL;
    return choice;
}

/* Ends the hold if no job waits or runs, because then no success would ever end it. */
static void clear_if_empty(struct pb_runner *runner)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    pb_store_counts(runner->queue.store, counts);
    if (runner->faults.hold.on && pb_pool_busy(&runner->pool) == 0 &&
        runner->pending.first == NULL && runner->choice == NULL && runner->queue.n_doubts == 0 &&
        counts[PB_JOB_ACCEPTED] == 0)
        pb_faults_clear(&runner->faults);
}

/* Frees the reserved slots from that number on. */
static void release(struct pb_runner *runner, int first)
{
    for (int i = first; i < runner->n_slots; i++)
        runner->slots[i]->reserved = runner->slots[i]->express = runner->slots[i]->live = false;
}

/* Reports products that cannot be published, or else jobs of other nodes that this one cannot run.
 */
static void report_mounts(struct pb_runner *runner)
{
    struct pb_troubles *troubles = runner->faults.troubles;
    char text[512];
    if (runner->unrooted.code != PB_OK) {
        pb_trouble_raise(troubles, "mount", runner->unrooted.code, runner->unrooted.msg);
        return;
    }
    if (runner->unseen[0] == '\0') {
        pb_trouble_clear(troubles, "mount");
        return;
    }
    (void)snprintf(text, sizeof text,
                   "inputs of another node are in %.300s, which is not there on this node; their "
                   "jobs are left to nodes that have it",
                   runner->unseen);
    pb_trouble_raise(troubles, "mount", PB_E_SYSTEM, text);
}

void pb_runner_see_products(struct pb_runner *runner, const struct pb_err *why)
{
    const bool was_there = runner->unrooted.code == PB_OK;
    runner->unrooted = *why;
    report_mounts(runner);
    if (was_there || why->code != PB_OK)
        return;
    pb_hold_hurry(&runner->faults.hold, pb_clock_mono_ms());
    pb_runner_kick(runner);
}

/* Reports jobs of other nodes whose pipelines this one does not have. */
static void report_left(struct pb_runner *runner, const struct pb_choice *choice)
{
    if (choice->left[0] == '\0')
        pb_trouble_clear(runner->faults.troubles, "pipelines");
    else
        pb_trouble_raise(runner->faults.troubles, "pipelines", PB_E_INPUT_NO_PIPELINE,
                         choice->left);
}

/* Reports jobs that wait because no node can run them. */
static void report_unmet(struct pb_runner *runner, const struct pb_choice *choice)
{
    if (choice->unmet == PB_OK)
        pb_trouble_clear(runner->faults.troubles, "needs");
    else
        pb_trouble_raise(runner->faults.troubles, "needs", choice->unmet, choice->unmet_why);
}

/* Notes since when jobs of other nodes wait that could be fetched. */
static void note_foreign(struct pb_runner *runner, const struct pb_choice *choice)
{
    if (!choice->has_foreign)
        runner->foreign_ms = 0;
    else if (runner->foreign_ms == 0)
        runner->foreign_ms = choice->mono_ms;
    if (choice->has_foreign && !choice->may_fetch)
        runner->more = true;
}

static void kick(struct pb_runner *runner);

static void on_taken(void *user)
{
    struct pb_choice *choice = user;
    struct pb_runner *runner = choice->user;
    struct pb_job_queue *queue = &runner->queue;
    const int n = queue->n;
    if (choice->is_live)
        runner->no_live = n == 0;
    runner->unrooted = choice->unrooted;
    if (!choice->is_live)
        (void)memcpy(runner->unseen, queue->unseen, sizeof runner->unseen);
    report_mounts(runner);
    if (!choice->is_live) {
        report_left(runner, choice);
        report_unmet(runner, choice);
        note_foreign(runner, choice);
    }
    release(runner, n);
    runner->again = runner->again || n == runner->n_slots;
    for (int i = 0; i < n; i++)
        pb_job_start(&runner->starts, runner->slots[i], &queue->jobs[i], choice->config);
    if (n == 0 && queue->rc == 0 && !choice->is_live) /* all jobs are left to others, perhaps */
        pb_hold_found_none(&runner->faults.hold, pb_clock_mono_ms());
    pb_choice_free(end_take(runner)); /* a kick before this would reserve the same slots */
    wake(runner); /* it may have stopped meanwhile; it limits the time of jobs and tries again */
    if (queue->rc != 0)
        pb_faults_cannot_start(&runner->faults, &queue->err);
    pb_requests_go_on(&runner->requests);
    if (runner->again && !runner->env.drains)
        kick(runner);
    clear_if_empty(runner);
}

/* Reserves slots for the jobs that may begin now. */
static void reserve(struct pb_runner *runner, int most, int64_t now_ms)
{
    struct pb_worker_pool *pool = &runner->pool;
    const bool holds = runner->faults.hold.on;
    bool express = false;
    runner->n_slots = 0;
    while (runner->n_slots < most && !express && !(holds && runner->n_slots > 0)) {
        struct pb_pool_slot *slot = pb_pool_free_slot(pool);
        express = !pb_pool_may_begin(pool);
        if (slot == NULL ||
            (express && (holds || runner->n_slots > 0 ||
                         !pb_express_may_open(&runner->express, pool, runner->env.config, now_ms))))
            return;
        slot->reserved = true;
        slot->express = express;
        slot->live = false;
        runner->slots[runner->n_slots++] = slot;
    }
}

/* Puts the jobs back whose starts may be stored, by a take of no job. */
static void settle_doubts(struct pb_runner *runner)
{
    struct pb_job_ask ask = {.ready = pb_choice_has_products, .may = pb_choice_may_start};
    runner->n_slots = 0;
    if (runner->queue.n_doubts > 0)
        take(runner, &ask, on_taken);
}

/* Starts the next job of a scene whose lines still arrive, in addition to ordinary jobs. Returns
 * true if such a job is being taken; ordinary jobs are taken after it. */
static bool start_live(struct pb_runner *runner)
{
    struct pb_job_ask ask = {.n = 1,
                             .ready = pb_choice_has_products,
                             .may = pb_choice_may_start_live,
                             .match = pb_choice_match};
    struct pb_err err = {0};
    if (runner->no_live || runner->faults.hold.on ||
        pb_pool_live(&runner->pool, false) >= runner->live.growing ||
        pb_pool_live(&runner->pool, true) >= PB_LIVE_MAX)
        return false;
    struct pb_pool_slot *slot = pb_pool_free_slot(&runner->pool);
    if (slot == NULL || pb_job_start_worker(slot, &err) != 0)
        return false;
    slot->reserved = slot->live = true;
    runner->slots[0] = slot;
    runner->n_slots = 1;
    if (pb_pending_reserve(&runner->pending, pb_pool_taken(&runner->pool)) == 0)
        take(runner, &ask, on_taken);
    if (runner->choice == NULL) {
        release(runner, 0);
        runner->more = true;
        return false;
    }
    runner->choice->is_live = runner->again = true;
    return true;
}

static void start_jobs(struct pb_runner *runner)
{
    const int64_t now = pb_clock_mono_ms();
    const bool holds = runner->faults.hold.on;
    int64_t counts[PB_JOB_STATUS_COUNT];
    struct pb_err err = {0};
    if (runner->stop_ms > 0 || runner->env.waits_for_store ||
        !pb_hold_may_start(&runner->faults.hold, now))
        return;
    if (runner->env.drains || runner->unrooted.code != PB_OK) {
        settle_doubts(runner);
        return;
    }
    if (runner->pending.n >= PENDING_MAX) {
        runner->more = true;
        return;
    }
    if (start_live(runner))
        return;
    pb_store_counts(runner->queue.store, counts);
    const int64_t waiting = counts[PB_JOB_ACCEPTED] + runner->queue.n_doubts;
    if (waiting == 0) {
        runner->unseen[0] = '\0';
        report_mounts(runner);
        pb_trouble_clear(runner->faults.troubles, "pipelines");
        pb_trouble_clear(runner->faults.troubles, "needs");
        if (runner->pending.n == 0 && pb_pool_busy(&runner->pool) == 0) /* nor is put back */
            pb_faults_fetch(&runner->faults, NULL);
    }
    reserve(runner, waiting < PB_JOB_TAKE_MAX ? (int)waiting : PB_JOB_TAKE_MAX, now);
    if (runner->n_slots == 0)
        return;
    if (pb_job_start_worker(runner->slots[0], &err) != 0) {
        release(runner, 0);
        pb_faults_cannot_start(&runner->faults, &err);
        return;
    }
    struct pb_job_ask ask = {.n = runner->n_slots,
                             .ready = pb_choice_has_products,
                             .may = pb_choice_may_start,
                             .rank = holds ? pb_choice_probe_rank : pb_choice_priority_rank,
                             .by_rank_alone = holds,
                             .match = pb_choice_match};
    if (runner->slots[0]->express) {
        ask.may = pb_choice_may_start_short;
        ask.rank = NULL;
        ask.smallest = true;
    }
    if (pb_pending_reserve(&runner->pending, pb_pool_taken(&runner->pool)) == 0)
        take(runner, &ask, on_taken);
    else
        runner->more = true;
    if (runner->choice == NULL)
        release(runner, 0);
}

static void kick(struct pb_runner *runner)
{
    wake(runner);
    if (runner->choice != NULL || runner->queue.takes) {
        runner->again = true;
        return;
    }
    runner->again = runner->more = false;
    pb_pool_reap(&runner->pool);
    start_jobs(runner);
    clear_if_empty(runner);
}

void pb_runner_kick(struct pb_runner *runner)
{
    runner->no_live = false;
    kick(runner);
}

void pb_runner_grows(struct pb_runner *runner, int64_t by)
{
    runner->live.growing += by;
    pb_runner_kick(runner);
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

/* --- reports of the parts -------------------------------------------------------------------*/

static void on_kick(void *user)
{
    pb_runner_kick(user);
}

static void on_wake(void *user)
{
    wake(user);
}

static void on_permit(void *user)
{
    struct pb_runner *runner = user;
    pb_pending_permit(&runner->pending);
}

static void on_dropped(void *user, const struct pb_job *job)
{
    struct pb_runner *runner = user;
    pb_faults_end(&runner->faults, job, false);
}

static void on_freed(void *user)
{
    struct pb_runner *runner = user;
    runner->more = true; /* the next iteration of the loop starts jobs */
    (void)uv_timer_start(&runner->tick, on_tick, 0, TICK_MS);
}

/* Returns true if the run failed while lines of its scene arrive. */
static bool is_early(const struct pb_runner *runner, const struct pb_pool_slot *slot,
                     const struct pb_run_over *over)
{
    return slot->live && (over->end == PB_RUN_FAILED || over->end == PB_RUN_CRASHED) &&
           pb_live_is_growing(runner->env.config, &over->job);
}

static void on_alerts(void *user, const struct pb_job *job, const struct pb_job_alert *alerts,
                      size_t n)
{
    struct pb_runner *runner = user;
    pb_alerts_take(&runner->alerts, job, alerts, n);
    wake(runner);
}

static void on_over(void *user, struct pb_pool_slot *slot, struct pb_run_over *over)
{
    struct pb_runner *runner = user;
    if (slot->is_late && over->end == PB_RUN_ENDED && over->ending == PB_ENDING_PUT_BACK)
        over->job.is_long = true;
    slot->is_late = false;
    if (over->end == PB_RUN_SUCCESSFUL && over->job.home != NULL)
        pb_faults_fetch(&runner->faults, NULL);
    if (is_early(runner, slot, over)) {
        pb_live_note_failed(&runner->live, over->job.id);
        pb_job_end_again(&runner->ends, over);
    } else if (pb_job_end_run(&runner->ends, over) && slot->express)
        pb_express_done(&runner->express);
}

/* --- time -----------------------------------------------------------------------------------*/

static void on_peeked(void *user)
{
    struct pb_choice *choice = user;
    struct pb_runner *runner = choice->user;
    const int64_t now = pb_clock_mono_ms();
    struct pb_pool_slot *slot = pb_express_overdue(&runner->pool, now);
    pb_choice_free(end_take(runner));
    if (slot != NULL && runner->queue.found)
        pb_express_put_back(&runner->express, slot, runner->env.config->service.express_ms, now);
    else if (slot != NULL)
        pb_express_extend(slot, now);
    pb_requests_go_on(&runner->requests);
    if (runner->again && !runner->env.drains)
        pb_runner_kick(runner);
}

/* Ends an express job that takes long if a short job waits. */
static void express_tick(struct pb_runner *runner, int64_t now_ms)
{
    struct pb_job_ask ask = {.may = pb_choice_may_start_short};
    if (runner->choice == NULL && !runner->env.drains &&
        pb_express_overdue(&runner->pool, now_ms) != NULL)
        take(runner, &ask, on_peeked);
}

static void stop_tick(struct pb_runner *runner, int64_t now)
{
    pb_pool_trim(&runner->pool, 0);
    pb_pool_stop(&runner->pool, runner->stop_ms, now, runner->pending.permits.failed);
    if (pb_pool_busy(&runner->pool) > 0 ||
        runner->pending.n_works + runner->pool.n_sweeps + runner->queue.n_works > 0 ||
        runner->alerts.works)
        return;
    pb_pool_trim(&runner->pool, 0);
    if (pb_pool_workers(&runner->pool) == 0 && runner->stopped != NULL) {
        void (*stopped)(void *user) = runner->stopped;
        runner->stopped = NULL;
        stopped(runner->stopped_user); /* may destroy the runner */
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
    wanted = pb_alerts_tick(&runner->alerts) || wanted;
    wanted = wanted || runner->pending.first != NULL || runner->pending.permits.failed;
    if (runner->stop_ms > 0) {
        stop_tick(runner, now);
        return;
    }
    if (due)
        pb_runner_kick(runner);
    pb_pool_trim(&runner->pool, workers_kept(runner));
    if (!wanted && !runner->more && !pb_hold_waits(&runner->faults.hold))
        (void)uv_timer_stop(timer);
}

void pb_runner_wait_for_store(struct pb_runner *runner, bool waits)
{
    const bool before = runner->env.waits_for_store;
    runner->env.waits_for_store = waits;
    if (!before || waits)
        return;
    pb_hold_hurry(&runner->faults.hold, pb_clock_mono_ms());
    pb_pending_hurry(&runner->pending);
    pb_runner_kick(runner);
}

void pb_runner_take_requests(struct pb_runner *runner, const struct pb_node_request *requests,
                             int n)
{
    for (int i = 0; i < n; i++)
        pb_requests_take(&runner->requests, &requests[i]);
}

void pb_runner_forsake(struct pb_runner *runner)
{
    pb_pool_forsake(&runner->pool);
    wake(runner);
}

void pb_runner_drain(struct pb_runner *runner, bool on, bool now)
{
    runner->env.drains = on || runner->stop_ms > 0;
    if (on && now)
        pb_pool_put_back(&runner->pool);
    pb_runner_kick(runner);
}

void pb_runner_stop(struct pb_runner *runner, void (*done)(void *user), void *user)
{
    runner->stop_ms = pb_clock_mono_ms();
    runner->env.drains = true;
    runner->stopped = done;
    runner->stopped_user = user;
    wake(runner);
}

/* --- for the service ------------------------------------------------------------------------*/

int64_t pb_runner_busy(const struct pb_runner *runner)
{
    return pb_pool_busy(&runner->pool);
}

int64_t pb_runner_runs(const struct pb_runner *runner)
{
    return pb_pool_taken(&runner->pool) + pb_pending_count_free(&runner->pending) +
           runner->queue.n_doubts;
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
    runner->queue.loop = options->loop;
    runner->queue.store = options->store;
    runner->queue.reader = options->reader;
    runner->queue.moves = options->moves;
    runner->pool = (struct pb_worker_pool){.loop = options->loop,
                                           .worker = options->worker,
                                           .owner_program = options->owner_program,
                                           .owner_device = options->owner_device,
                                           .dirs = options->dirs,
                                           .env = env,
                                           .on_over = on_over,
                                           .on_alerts = on_alerts,
                                           .on_free = on_kick,
                                           .on_permit = on_permit,
                                           .user = runner};
    runner->pending = (struct pb_pending_list){.loop = options->loop,
                                               .pool = &runner->pool,
                                               .store = options->store,
                                               .moves = options->moves,
                                               .dirs = options->dirs,
                                               .troubles = options->troubles,
                                               .env = env,
                                               .on_settled = on_kick,
                                               .on_kept = on_wake,
                                               .on_dropped = on_dropped,
                                               .user = runner};
    runner->alerts = (struct pb_alerts){.loop = options->loop,
                                        .store = options->store,
                                        .reader = options->reader,
                                        .pool = &runner->pool,
                                        .env = env};
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
                                            .on_answer = options->on_answer,
                                            .answer_user = options->user};
}

/* Tests set another time, because a slow machine may take longer for the jobs of a test. */
static int64_t read_shun_ms(void)
{
    const char *text = getenv("PUSHBROOM_TEST_SHUN_MS");
    return text != NULL ? strtoll(text, NULL, 10) : SHUN_MS;
}

int pb_runner_create(const struct pb_runner_options *options, struct pb_err *err,
                     struct pb_runner **out_runner)
{
    struct pb_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    runner->env = (struct pb_runner_env){
        .config = options->config,
        .nodes = options->nodes,
        .node = pb_store_node(options->store),
        .root = options->config->service.has_fetch ? "" : pb_nodes_root(options->store),
        .metrics = options->metrics,
        .on_change = options->on_change,
        .on_changes = options->on_changes,
        .on_hold = options->on_hold,
        .on_latency = options->on_latency,
        .user = options->user};
    runner->shun_ms = read_shun_ms();
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
    pb_pending_free(&runner->pending, pb_clock_mono_ms() - runner->stop_ms < LAST_SAVE_MS);
    pb_alerts_fini(&runner->alerts);
    pb_faults_fini(&runner->faults);
    pb_job_queue_fini(&runner->queue);
    uv_close((uv_handle_t *)&runner->tick, on_close);
}
