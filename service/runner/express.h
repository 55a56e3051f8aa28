/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPRESS_H
#define PB_EXPRESS_H
/* Lets short jobs overtake long ones: one additional job may run over service.parallel_jobs, the
 * express job. express.c has the rule. Plain memory; the job store knows the long jobs. Thread:
 * loop. */
#include "service/runner/worker_pool.h"

/* Members belong to express.c. All-zero: initial state. */
struct pb_express {
    int64_t pause_until_ms, check_at_ms;
    int in_vain; /* tries since the last short job */
};

/* Returns true if an express job may start: all ordinary slots have been taken for long enough. */
bool pb_express_may_open(const struct pb_express *express, struct pb_worker_pool *pool,
                         const struct pb_config *config, int64_t mono_ms);
/* Checks the same, but returns true at most once a second. */
bool pb_express_is_due(struct pb_express *express, struct pb_worker_pool *pool,
                       const struct pb_config *config, int64_t mono_ms);
/* Finds the slot of an express job whose time is over; NULL if there is no such slot. A job that
 * now has room as an ordinary job becomes one. */
struct pb_pool_slot *pb_express_overdue(struct pb_worker_pool *pool, int64_t mono_ms);
/* Gives the slot's job one more second, if no other job wants the slot. */
void pb_express_extend(struct pb_pool_slot *slot, int64_t mono_ms);
/* Ends the run of the slot's job, which returns to the queue as a long one. */
void pb_express_put_back(struct pb_express *express, struct pb_pool_slot *slot, int64_t express_ms,
                         int64_t mono_ms);
/* Call after an express job was done in time. */
void pb_express_done(struct pb_express *express);
#endif
