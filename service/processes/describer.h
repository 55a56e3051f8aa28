/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DESCRIBER_H
#define PB_DESCRIBER_H
/* Queries a worker process for the metadata of loose files (input.by with {meta.*}), one file
 * after the other in the order of arrival. The process runs no jobs: it starts with the first
 * query, and ends when no query arrives for a while. A file at which it dies or takes longer than
 * service.stall is tried service.max_attempts times in all. After a fault of the machine (a
 * process that is killed or cannot run, no memory, a disk that does not respond) the query is sent
 * again until there is an answer. Thread: loop. */
#include "service/base/log.h"
#include "service/processes/worker_launch.h"
#include "service/worker/described.h"

#include <stdint.h>
#include <uv.h>

struct pb_config;
struct pb_describer;

struct pb_describer_options {
    uv_loop_t *loop;
    struct pb_worker_program program;
    const struct pb_config *config; /* borrowed until set_config or destroy */
    /* Called with the answer to the query with that ticket; the handler may add queries and set
     * the configuration. */
    void (*on_answer)(void *user, uint64_t ticket, const struct pb_described *answer);
    /* message for the log */
    void (*on_say)(void *user, enum pb_log_level level, const char *text);
    void *user;
    bool gives_up; /* faults of the machine count as attempts as well, because a caller waits */
};

struct pb_describer *pb_describer_create(const struct pb_describer_options *options); /* or NULL */
/* Queues a query. Answers are delivered by the loop, never during the call. path (of the file) and
 * pipeline are copied. -ENOMEM. */
int pb_describer_ask(struct pb_describer *describer, uint64_t ticket, const char *pipeline,
                     const char *path);
/* Drops all queries, because they are about another configuration. */
void pb_describer_set_config(struct pb_describer *describer, const struct pb_config *config);
/* Kills the process; frees the memory when libuv has closed the handles. NULL is allowed. */
void pb_describer_destroy(struct pb_describer *describer);
#endif
