/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TASKS_H
#define PB_TASKS_H
/* The queue of changes that clients request, from the status thread to the service's loop, which
 * alone changes jobs. */
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
    char job[PB_JOB_ID_BYTES]; /* whole id; of changes of a job */
    char *input, *pipeline;    /* submit; pipeline NULL = the first that fits */
    int priority;              /* submit, again */
    bool dry_run;              /* again */
    char *target;              /* event.ack, with the next two */
    int64_t seq;
    bool given_up;
    char identity[PB_JOB_IDENTITY_BYTES];
    bool is_folder;   /* identity is that of a folder */
    int64_t since_ms; /* begin of holding a task; monotonic */
};

STAILQ_HEAD(pb_task_queue, pb_task);

struct pb_tasks {
    uv_async_t wake;
    pthread_mutex_t lock; /* queue */
    struct pb_task_queue queue;
    void (*run)(void *user, const struct pb_task *task); /* borrowed */
    void *user;
};

/* run is called from the loop, once a task, in order. Thread: loop. */
int pb_tasks_init(struct pb_tasks *tasks, uv_loop_t *loop,
                  void (*run)(void *user, const struct pb_task *task), void *user);
/* After the last push; tasks that were not run are dropped. Thread: loop. */
void pb_tasks_close(struct pb_tasks *tasks);
/* A copy waits in a queue of the caller's until it is released. -ENOMEM. */
int pb_tasks_hold(struct pb_task_queue *queue, const struct pb_task *task);
/* Takes the task of that ticket out, for the caller to drop; NULL = none. */
struct pb_task *pb_tasks_release(struct pb_task_queue *queue, uint64_t ticket);
void pb_tasks_drop(struct pb_task *task); /* frees; NULL is fine */
/* A copy is queued. -ENOMEM. Thread: any. */
int pb_tasks_push(struct pb_tasks *tasks, const struct pb_task *task);
#endif
