/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/worker_pool_table.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/publish/publish.h"
#include "pipeline/run/run_areas.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/jobs/nodes.h"
#include "service/runner/fetched.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NEARLY_DONE_MS   4000
#define DRAIN_FINISH_MS  5000
#define DRAIN_CANCEL_MS  2000
#define DRAIN_GIVE_UP_MS 8900
#define LEAVE_MS         1500

/* --- queries of slots ------------------------------------------------------------------------- */

const struct pb_job *pb_pool_job(const struct pb_pool_slot *slot)
{
    return pb_worker_slot_job(slot->worker);
}

static bool is_taken(const struct pb_pool_slot *slot)
{
    return slot->reserved || pb_pool_job(slot) != NULL;
}

/* Returns true if a job of the slot counts for parallel_jobs. */
static bool is_ordinary(const struct pb_pool_slot *slot)
{
    return !slot->express && !slot->live;
}

int64_t pb_pool_busy(const struct pb_worker_pool *pool)
{
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        n += pb_pool_job(&pool->slots[i]) != NULL;
    return n;
}

int64_t pb_pool_taken(const struct pb_worker_pool *pool)
{
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        n += is_taken(&pool->slots[i]);
    return n;
}

int64_t pb_pool_publishing(const struct pb_worker_pool *pool)
{
    const int64_t most = pb_publishing_jobs(&pool->env->config->service);
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        n += pool->slots[i].publishes && is_ordinary(&pool->slots[i]);
    return n < most ? n : most;
}

int64_t pb_pool_ordinary(const struct pb_worker_pool *pool)
{
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        n += is_taken(&pool->slots[i]) && is_ordinary(&pool->slots[i]);
    return n - pb_pool_publishing(pool);
}

int64_t pb_pool_live(const struct pb_worker_pool *pool, bool and_publishing)
{
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        const struct pb_pool_slot *slot = &pool->slots[i];
        n += is_taken(slot) && slot->live && (and_publishing || !slot->publishes);
    }
    return n;
}

int64_t pb_pool_workers(const struct pb_worker_pool *pool)
{
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        n += pb_worker_slot_has_process(pool->slots[i].worker);
    return n;
}

struct pb_pool_slot *pb_pool_find(struct pb_worker_pool *pool, const char *id)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        const struct pb_job *job = pb_pool_job(&pool->slots[i]);
        if (job != NULL && strcmp(job->id, id) == 0)
            return &pool->slots[i];
    }
    return NULL;
}

struct pb_pool_slot *pb_pool_express(struct pb_worker_pool *pool)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        if (pool->slots[i].express && pb_pool_job(&pool->slots[i]) != NULL)
            return &pool->slots[i];
    }
    return NULL;
}

bool pb_pool_all_run_for(const struct pb_worker_pool *pool, int64_t ms, int64_t mono_ms)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        const struct pb_pool_slot *slot = &pool->slots[i];
        if (slot->live)
            continue;
        if (slot->reserved ||
            (pb_pool_job(slot) != NULL && mono_ms - pb_worker_slot_began_ms(slot->worker) < ms))
            return false;
    }
    return true;
}

/* --- jobs that share the memory -------------------------------------------------------------- */

/* Returns true if the ordinary jobs compute on the CPU, by turns. */
static bool shares(const struct pb_worker_pool *pool)
{
    return pool->env->config->service.parallel_jobs == 0 &&
           !pb_device_owners_exist(pool->device_owners);
}

int64_t pb_pool_most(const struct pb_worker_pool *pool)
{
    const int64_t cores = pool->turns.cores;
    if (!shares(pool))
        return pb_device_jobs(&pool->env->config->service);
    return cores < PB_POOL_SLOTS_MAX ? cores : PB_POOL_SLOTS_MAX;
}

/* Determines the jobs that publish in addition to those that compute. A job that has left stays
 * one of them. */
static void note_publishing(struct pb_worker_pool *pool)
{
    const int64_t most = pb_publishing_jobs(&pool->env->config->service);
    int64_t n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        struct pb_pool_slot *slot = &pool->slots[i];
        slot->has_left = slot->has_left && slot->publishes && is_ordinary(slot);
        n += slot->has_left;
    }
    for (int i = 0; i < PB_POOL_SLOTS_MAX && n < most; i++) {
        struct pb_pool_slot *slot = &pool->slots[i];
        if (slot->has_left || !slot->publishes || !is_ordinary(slot))
            continue;
        slot->has_left = true;
        n++;
    }
}

/* Begins and ends the turns of slots whose use has changed. A job that runs without a turn, such as
 * an express job that has become ordinary, may use everything. */
static void follow_slots(struct pb_worker_pool *pool)
{
    note_publishing(pool);
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        const struct pb_pool_slot *slot = &pool->slots[i];
        const bool counts = is_taken(slot) && is_ordinary(slot) && !slot->has_left;
        if (counts == (pool->turns.slot[i].state != PB_TURN_NONE))
            continue;
        if (!counts)
            pb_turns_end(&pool->turns, i);
        else if (pb_pool_job(slot) != NULL)
            pb_turns_take_all(&pool->turns, i);
        else
            pb_turns_begin(&pool->turns, i);
    }
}

bool pb_pool_may_begin(struct pb_worker_pool *pool)
{
    if (pb_pool_ordinary(pool) >= pb_pool_most(pool))
        return false;
    if (!shares(pool))
        return true;
    follow_slots(pool);
    return pb_turns_may_begin(&pool->turns);
}

void pb_pool_give_turns(struct pb_worker_pool *pool)
{
    follow_slots(pool);
    for (int i; (i = pb_turns_next(&pool->turns)) >= 0;)
        pb_worker_slot_turn(pool->slots[i].worker);
    for (int i = 0; i < PB_POOL_SLOTS_MAX && !shares(pool); i++) {
        if (pool->turns.slot[i].state != PB_TURN_WAITS)
            continue;
        pb_turns_take_all(&pool->turns, i); /* the configuration was changed */
        pb_worker_slot_turn(pool->slots[i].worker);
    }
}

/* --- changes of slots ------------------------------------------------------------------------- */

struct pb_pool_slot *pb_pool_free_slot(struct pb_worker_pool *pool)
{
    struct pb_pool_slot *empty = NULL;
    if (pb_device_owners_is_coming(pool->device_owners))
        return NULL;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        struct pb_pool_slot *slot = &pool->slots[i];
        if (slot->reserved)
            continue;
        if (pb_worker_slot_is_idle(slot->worker))
            return slot;
        if (empty == NULL && pb_worker_slot_is_empty(slot->worker))
            empty = slot;
    }
    return empty;
}

int pb_pool_start_worker(struct pb_pool_slot *slot, struct pb_err *err)
{
    return pb_worker_slot_start(slot->worker, err);
}

/* Describes the node that has the input of the job. */
static void describe_home(const struct pb_worker_pool *pool, const struct pb_job *job,
                          const struct pb_node *home, struct pb_run_home *out)
{
    (void)snprintf(out->node, sizeof out->node, "%s", home->name);
    (void)snprintf(out->address, sizeof out->address, "%s", home->address);
    (void)snprintf(out->socket, sizeof out->socket, "%s", pool->env->config->service.fetch.socket);
    pb_fetched_room(pool->dirs->work, job, out->room);
}

/* An express job is computed on the CPU when the others use a GPU. */
void pb_pool_run(struct pb_worker_pool *pool, struct pb_pool_slot *slot, struct pb_job *job,
                 const char *known, const struct pb_node *from)
{
    bool on_cpu = slot->express && strcmp(pool->device, "cpu") != 0;
    const struct pb_pipeline_config *pipeline =
        pb_config_pipeline(pool->env->config, job->pipeline);
    struct pb_run_how how = {.products = pool->dirs->products,
                             .root = pool->env->root,
                             .path = pipeline ? pipeline->output.path : NULL,
                             .device = on_cpu ? "cpu" : NULL,
                             .known = known,
                             .turn = shares(pool) && is_ordinary(slot),
                             .permit = true,
                             .live = slot->live,
                             .unpack = pool->dirs->work};
    struct pb_run_home home;
    if (from != NULL) {
        describe_home(pool, job, from, &home);
        how.home = &home;
        how.products = from->products;
    }
    slot->express_until_ms = pb_clock_mono_ms() + pool->env->config->service.express_ms;
    if (on_cpu)
        (void)snprintf(job->device_why, sizeof job->device_why,
                       "on the CPU, to overtake jobs that take long");
    if (is_ordinary(slot))
        (how.turn ? pb_turns_begin : pb_turns_take_all)(&pool->turns, (int)(slot - pool->slots));
    pb_worker_slot_run(slot->worker, job, &how);
}

bool pb_pool_tick(struct pb_worker_pool *pool, int64_t mono_ms)
{
    bool wanted = false;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        struct pb_pool_slot *slot = &pool->slots[i];
        if (slot->changed && mono_ms - slot->notified_ms >= PB_POOL_NOTIFY_MS)
            pb_pool_notify(pool, slot);
        pb_worker_slot_tick(slot->worker, mono_ms);
        wanted = wanted || pb_worker_slot_wants_tick(slot->worker);
    }
    return wanted;
}

static bool is_nearly_done(const struct pb_job *job)
{
    if (job->progress <= 0)
        return false;
    int64_t spent_ms = pb_clock_wall_ms() - job->started_ms;
    return spent_ms * (100 - job->progress) / job->progress <= NEARLY_DONE_MS ||
           strcmp(job->stage, "publish") == 0;
}

static void stop_slot(const struct pb_pool_slot *slot, int64_t spent_ms, bool no_permits)
{
    struct pb_worker_slot *worker = slot->worker;
    const struct pb_job *job = pb_pool_job(slot);
    bool time_over = spent_ms >= DRAIN_FINISH_MS;
    bool ends = job != NULL && pb_worker_slot_ending(worker) != PB_ENDING_NONE;
    bool stays =
        job != NULL && is_nearly_done(job) && !(no_permits && pb_worker_slot_wants_permit(worker));
    if (job != NULL && (time_over || (!ends && !stays)))
        pb_worker_slot_end(worker, PB_ENDING_PUT_BACK, DRAIN_CANCEL_MS);
    if (spent_ms >= DRAIN_GIVE_UP_MS && pb_worker_slot_has_process(worker))
        pb_worker_slot_give_up(worker);
}

void pb_pool_stop(struct pb_worker_pool *pool, int64_t since_ms, int64_t mono_ms, bool no_permits)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        stop_slot(&pool->slots[i], mono_ms - since_ms, no_permits);
}

void pb_pool_put_back(struct pb_worker_pool *pool)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        struct pb_worker_slot *worker = pool->slots[i].worker;
        if (pb_pool_job(&pool->slots[i]) != NULL && pb_worker_slot_ending(worker) == PB_ENDING_NONE)
            pb_worker_slot_end(worker, PB_ENDING_PUT_BACK, DRAIN_CANCEL_MS);
    }
}

void pb_pool_forsake(struct pb_worker_pool *pool)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        if (pb_pool_job(&pool->slots[i]) != NULL)
            pb_worker_slot_end(pool->slots[i].worker, PB_ENDING_PUT_BACK, 0);
}

void pb_pool_trim(struct pb_worker_pool *pool, int64_t most)
{
    int64_t n = pb_pool_workers(pool);
    for (int i = PB_POOL_SLOTS_MAX - 1; i >= 0 && n > most; i--) {
        const struct pb_pool_slot *slot = &pool->slots[i];
        if (!pb_worker_slot_has_process(slot->worker) || is_taken(slot))
            continue;
        n--;
        pb_worker_slot_leave(slot->worker, LEAVE_MS);
    }
}

void pb_pool_reap(struct pb_worker_pool *pool)
{
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        if (pool->hung[i] != 0 && waitpid(pool->hung[i], NULL, WNOHANG) != 0)
            pool->hung[i] = 0;
    }
}

void pb_pool_config_changed(struct pb_worker_pool *pool)
{
    struct pb_err err = {0};
    pool->owner.config = pool->env->config;
    bool owned =
        pb_device_owners_follow(pool->device_owners, pool->env->config, pool->owner_device);
    pool->owner.owner_why = pb_device_owners_why(pool->device_owners);
    pb_turns_share(&pool->turns, &pool->env->config->compute,
                   pb_run_areas_read_polygons(pool->env->config));
    pb_pool_give_turns(pool);
    if (owned) {
        pool->on_free(pool->user);
        return;
    }
    struct pb_pool_slot *slot = pb_pool_free_slot(pool);
    if (slot == NULL || pb_pool_taken(pool) > 0)
        return; /* a worker that runs a job reports its device */
    if (pb_worker_slot_is_empty(slot->worker) && pb_pool_start_worker(slot, &err) != 0)
        pb_log(PB_LOG_ERROR, "%s", err.msg);
    else
        pb_worker_slot_probe(slot->worker);
    pool->on_free(pool->user);
}

/* --- start and end ---------------------------------------------------------------------------- */

int pb_pool_init(struct pb_worker_pool *pool)
{
    struct pb_device_owners_options device_owners;
    pb_pool_report_to(pool, &device_owners);
    pool->device_owners = pb_device_owners_create(&device_owners);
    bool complete = pool->device_owners != NULL;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        pool->slots[i].owner = -1;
        pool->slots[i].worker = pb_worker_slot_create(&pool->owner, i);
        complete = complete && pool->slots[i].worker != NULL;
    }
    if (!complete)
        pb_pool_fini(pool);
    return complete ? 0 : -ENOMEM;
}

void pb_pool_fini(struct pb_worker_pool *pool)
{
    pb_device_owners_destroy(pool->device_owners);
    pool->device_owners = NULL;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++)
        pb_worker_slot_destroy(pool->slots[i].worker);
}
