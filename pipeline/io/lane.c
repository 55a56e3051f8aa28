/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/lane.h"
#include "pipeline/io/thread.h"

void pb_lane_init(struct pb_lane *lane, pb_lane_work *work, void *user)
{
    *lane = (struct pb_lane){.work = work, .user = user};
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->changed, NULL);
}

static void *body(void *arg)
{
    struct pb_lane *lane = arg;
    pthread_mutex_lock(&lane->lock);
    for (;;) {
        while (!lane->busy && !lane->stop)
            pthread_cond_wait(&lane->changed, &lane->lock);
        if (!lane->busy)
            break;
        struct pb_lane_part part = lane->part;
        pthread_mutex_unlock(&lane->lock);
        int error = lane->work(lane->user, &part);
        pthread_mutex_lock(&lane->lock);
        if (lane->error == 0)
            lane->error = error;
        lane->busy = false;
        pthread_cond_broadcast(&lane->changed);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

void pb_lane_give(struct pb_lane *lane, const struct pb_lane_part *part)
{
    if (!lane->threaded)
        lane->threaded = pb_thread_start(&lane->thread, body, lane) == 0;
    if (!lane->threaded) {
        int error = lane->work(lane->user, part);
        if (lane->error == 0)
            lane->error = error;
        return;
    }
    pthread_mutex_lock(&lane->lock);
    lane->part = *part;
    lane->busy = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

int pb_lane_wait(struct pb_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    while (lane->busy)
        pthread_cond_wait(&lane->changed, &lane->lock);
    int error = lane->error;
    pthread_mutex_unlock(&lane->lock);
    return error;
}

void pb_lane_fini(struct pb_lane *lane)
{
    if (lane->threaded) {
        pthread_mutex_lock(&lane->lock);
        lane->stop = true;
        pthread_cond_broadcast(&lane->changed);
        pthread_mutex_unlock(&lane->lock);
        (void)pthread_join(lane->thread, NULL);
    }
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}
