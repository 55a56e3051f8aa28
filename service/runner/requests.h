/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REQUESTS_H
#define PB_REQUESTS_H
/* Requests of clients that concern one job: to cancel it, to run it again, to drop its input, to
 * make its products again. Thread: loop. */
#include "service/runner/job_end.h"
#include "service/runner/job_queue.h"
#include "service/jobs/request_kind.h"
#include "service/runner/worker_pool.h"

struct pb_node_request;
struct request;

struct pb_requests {
    const struct pb_runner_env *env; /* borrowed, like all of these */
    struct pb_worker_pool *pool;
    struct pb_pending_list *pending;
    struct pb_job_queue *queue;
    struct pb_job_ends *ends;
    /* See runner.h; answer_user is its user. */
    void (*on_answer)(void *answer_user, uint64_t ticket, const char *id, int rc,
                      const struct pb_err *err);
    void *answer_user;
    /* ---------------------------------------------------------------------------------------- */
    struct request *held; /* those that wait for the end of a take, oldest first */
};

/* Call after the jobs of a take are in their places. */
void pb_requests_go_on(struct pb_requests *requests);
/* Handles a request that another node passed on, without an answer. */
void pb_requests_take(struct pb_requests *requests, const struct pb_node_request *asked);
/* Same contract as pb_runner_ask. */
void pb_requests_ask(struct pb_requests *requests, const struct pb_job_request *asked);
#endif
