/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/tasks.h"
#include "config/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void pb_tasks_drop(struct pb_task *task)
{
    if (task == NULL)
        return;
    free(task->input);
    free(task->pipeline);
    free(task->target);
    free(task);
}

static struct pb_task *pop(struct pb_tasks *tasks)
{
    (void)pthread_mutex_lock(&tasks->lock);
    struct pb_task *task = STAILQ_FIRST(&tasks->queue);
    if (task != NULL)
        STAILQ_REMOVE_HEAD(&tasks->queue, next);
    (void)pthread_mutex_unlock(&tasks->lock);
    return task;
}

static void on_wake(uv_async_t *wake)
{
    struct pb_tasks *tasks = wake->data;
    struct pb_task *task;
    while ((task = pop(tasks)) != NULL) {
        tasks->run(tasks->user, task);
        pb_tasks_drop(task);
    }
}

int pb_tasks_init(struct pb_tasks *tasks, uv_loop_t *loop,
                  void (*run)(void *user, const struct pb_task *task), void *user)
{
    STAILQ_INIT(&tasks->queue);
    tasks->run = run;
    tasks->user = user;
    tasks->wake.data = tasks;
    (void)pthread_mutex_init(&tasks->lock, NULL);
    return uv_async_init(loop, &tasks->wake, on_wake);
}

void pb_tasks_close(struct pb_tasks *tasks)
{
    struct pb_task *task;
    uv_close((uv_handle_t *)&tasks->wake, NULL);
    while ((task = pop(tasks)) != NULL)
        pb_tasks_drop(task);
}

static struct pb_task *copy_of(const struct pb_task *task)
{
    struct pb_task *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *task;
    copy->input = copy->pipeline = copy->target = NULL;
    if (pb_job_set(&copy->input, task->input) == 0 &&
        pb_job_set(&copy->pipeline, task->pipeline) == 0 &&
        pb_job_set(&copy->target, task->target) == 0)
        return copy;
    pb_tasks_drop(copy);
    return NULL;
}

int pb_tasks_push(struct pb_tasks *tasks, const struct pb_task *task)
{
    struct pb_task *copy = copy_of(task);
    if (copy == NULL)
        return -ENOMEM;
    (void)pthread_mutex_lock(&tasks->lock);
    STAILQ_INSERT_TAIL(&tasks->queue, copy, next);
    (void)pthread_mutex_unlock(&tasks->lock);
    (void)uv_async_send(&tasks->wake);
    return 0;
}

int pb_tasks_hold(struct pb_task_queue *queue, const struct pb_task *task)
{
    struct pb_task *copy = copy_of(task);
    if (copy == NULL)
        return -ENOMEM;
    copy->since_ms = pb_clock_mono_ms();
    STAILQ_INSERT_TAIL(queue, copy, next);
    return 0;
}

struct pb_task *pb_tasks_release(struct pb_task_queue *queue, uint64_t ticket)
{
    struct pb_task *task;
    STAILQ_FOREACH(task, queue, next)
    {
        if (task->ticket == ticket)
            break;
    }
    if (task != NULL)
        STAILQ_REMOVE(queue, task, pb_task, next);
    return task;
}
