/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Jobs start in the order of their arrival, as many at a time as service.parallel_jobs allows. When
 * each of these has run for service.express already and others wait, one additional job may run:
 * the express job, the one with the smallest input first. It may run for service.express; if it
 * needs longer and others wait for the slot, it returns to its place in the queue (no attempt
 * counts), is remembered as long, and waits for an ordinary slot. Therefore a short job waits for
 * long ones for a bounded time, and a long one loses at most one such try: no job is overtaken
 * twice by the same job and none starves, because the ordinary slots continue in order. Each try
 * without success doubles the pause until the next, so that a queue of only long jobs costs little.
 *
 * The express job is computed on the CPU when the others use a GPU: a device runs one job at a
 * time unless parallel_jobs allows more. If the configuration requires a GPU, no express job runs.
 */
#include "service/runner/express.h"

#include "config/config.h"
#include "service/base/log.h"

#define PAUSE_DOUBLINGS 6
#define CHECK_MS        1000 /* interval of checks whether an express job may start */
#define PUT_BACK_MS     5000 /* time from the cancel line to SIGKILL */

bool pb_express_may_open(const struct pb_express *express, struct pb_worker_pool *pool,
                         const struct pb_config *config, int64_t mono_ms)
{
    int64_t express_ms = config->service.express_ms;
    return express_ms != 0 && mono_ms >= express->pause_until_ms &&
           config->compute.device != PB_DEVICE_CUDA && pb_pool_express(pool) == NULL &&
           pb_pool_all_run_for(pool, express_ms, mono_ms) && !pb_pool_may_begin(pool);
}

bool pb_express_is_due(struct pb_express *express, struct pb_worker_pool *pool,
                       const struct pb_config *config, int64_t mono_ms)
{
    if (mono_ms < express->check_at_ms || !pb_express_may_open(express, pool, config, mono_ms))
        return false;
    express->check_at_ms = mono_ms + CHECK_MS;
    return true;
}

struct pb_pool_slot *pb_express_overdue(struct pb_worker_pool *pool, int64_t mono_ms)
{
    struct pb_pool_slot *slot = pb_pool_express(pool);
    if (slot == NULL || pb_worker_slot_ending(slot->worker) != PB_ENDING_NONE ||
        mono_ms < slot->express_until_ms)
        return NULL;
    if (!pb_pool_may_begin(pool))
        return slot;
    slot->express =
        false; /* an ordinary slot has become free: the job continues as an ordinary job */
    return NULL;
}

void pb_express_extend(struct pb_pool_slot *slot, int64_t mono_ms)
{
    slot->express_until_ms = mono_ms + CHECK_MS;
}

void pb_express_put_back(struct pb_express *express, struct pb_pool_slot *slot, int64_t express_ms,
                         int64_t mono_ms)
{
    const struct pb_job *job = pb_pool_job(slot);
    express->pause_until_ms = mono_ms + (express_ms << express->in_vain);
    express->in_vain += express->in_vain < PAUSE_DOUBLINGS;
    pb_log(PB_LOG_NOTICE, "job %s: takes longer than service.express; it waits for its turn",
           job->id);
    slot->is_late = true;
    pb_worker_slot_end(slot->worker, PB_ENDING_PUT_BACK, PUT_BACK_MS);
}

void pb_express_done(struct pb_express *express)
{
    express->in_vain = 0;
}
