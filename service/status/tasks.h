/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TASKS_H
#define PB_TASKS_H
/* Queue of changes that clients request, from the status thread to the service's loop, which alone
 * changes jobs. */
#include "service/jobs/job.h"
#include "service/status/status_proto.h"

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

struct pb_task {
    STAILQ_ENTRY(pb_task) next;
    uint64_t ticket; /* ticket of the call that waits for the outcome */
    enum pb_method method;
    int64_t uid;               /* user of the request */
    char job[PB_JOB_ID_BYTES]; /* whole id; for changes of a job */
    char *input, *pipeline;    /* submit; pipeline NULL = the first that matches */
    int priority;              /* submit, again */
    bool dry_run;              /* again */
    char *target;              /* event.ack, together with the next two members */
    int64_t seq;
    bool given_up;
    bool now, off; /* service.drain */
    char identity[PB_JOB_IDENTITY_BYTES];
    bool is_folder;   /* identity is that of a folder */
    int64_t since_ms; /* time since which the task is held; monotonic */
};

STAILQ_HEAD(pb_task_queue, pb_task);

struct pb_tasks {
    uv_async_t wake;
    pthread_mutex_t lock; /* protects queue */
    struct pb_task_queue queue;
    void (*run)(void *user, const struct pb_task *task); /* borrowed */
    void *user;
};

/* run is called from the loop, once for each task, in order. Thread: loop. */
int pb_tasks_init(struct pb_tasks *tasks, uv_loop_t *loop,
                  void (*run)(void *user, const struct pb_task *task), void *user);
/* Call after the last push; tasks that were not run are dropped. Thread: loop. */
void pb_tasks_close(struct pb_tasks *tasks);
/* Puts a copy of the task into a queue of the caller until it is released. -ENOMEM. */
int pb_tasks_hold(struct pb_task_queue *queue, const struct pb_task *task);
/* Removes the task with that ticket from the queue; the caller must drop it. NULL if absent. */
struct pb_task *pb_tasks_release(struct pb_task_queue *queue, uint64_t ticket);
void pb_tasks_drop(struct pb_task *task); /* frees; NULL is allowed */
/* Queues a copy of the task. -ENOMEM. Thread: any. */
int pb_tasks_push(struct pb_tasks *tasks, const struct pb_task *task);
#endif
