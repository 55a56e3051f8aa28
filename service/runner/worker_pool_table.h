/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_POOL_TABLE_H
#define PB_WORKER_POOL_TABLE_H
/* Private to the files of the worker pool. Thread: loop. */
#include "service/runner/worker_pool.h"

#define PB_POOL_NOTIFY_MS 200 /* minimum time between two progress events of a job */

/* Makes the pool the listener of its slots (pool->owner) and of the owners of devices. */
void pb_pool_report_to(struct pb_worker_pool *pool, struct pb_device_owners_options *out_owners);
/* Ends the turns of jobs that compute no more, and lets waiting jobs compute. */
void pb_pool_give_turns(struct pb_worker_pool *pool);
/* Calls on_change for the slot's job. */
void pb_pool_notify(const struct pb_worker_pool *pool, struct pb_pool_slot *slot);
#endif
