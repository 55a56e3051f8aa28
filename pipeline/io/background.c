/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/background.h"
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"

#include <assert.h>

void pb_background_init(struct pb_background *background, pb_background_work *work, void *user)
{
    *background = (struct pb_background){.work = work, .user = user};
    pthread_mutex_init(&background->lock, NULL);
    pthread_cond_init(&background->changed, NULL);
}

static void *body(void *arg)
{
    struct pb_background *background = arg;
    (void)pthread_setname_np(pthread_self(), "pb-file");
    pthread_mutex_lock(&background->lock);
    for (;;) {
        pb_work_begin(PB_WORK_WAIT, 0);
        while (background->n == 0 && !background->stop)
            pthread_cond_wait(&background->changed, &background->lock);
        pb_work_end();
        if (background->n == 0)
            break;
        struct pb_background_part part = background->part[background->first];
        pthread_mutex_unlock(&background->lock);
        int error = background->work(background->user, &part);
        pthread_mutex_lock(&background->lock);
        if (background->error == 0)
            background->error = error;
        background->first = (background->first + 1) % PB_BACKGROUND_PARTS;
        background->n--;
        pthread_cond_broadcast(&background->changed);
    }
    pthread_mutex_unlock(&background->lock);
    return NULL;
}

void pb_background_give(struct pb_background *background, const struct pb_background_part *part)
{
    if (!background->threaded)
        background->threaded = pb_thread_start(&background->thread, body, background) == 0;
    if (!background->threaded) {
        int error = background->work(background->user, part);
        if (background->error == 0)
            background->error = error;
        return;
    }
    pthread_mutex_lock(&background->lock);
    assert(background->n < PB_BACKGROUND_PARTS);
    background->part[(background->first + background->n++) % PB_BACKGROUND_PARTS] = *part;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
}

void pb_background_wait_for(struct pb_background *background, unsigned but)
{
    pb_work_begin(PB_WORK_WAIT, 0);
    pthread_mutex_lock(&background->lock);
    while (background->n > but)
        pthread_cond_wait(&background->changed, &background->lock);
    pthread_mutex_unlock(&background->lock);
    pb_work_end();
}

int pb_background_wait(struct pb_background *background)
{
    pb_background_wait_for(background, 0);
    pthread_mutex_lock(&background->lock);
    int error = background->error;
    pthread_mutex_unlock(&background->lock);
    return error;
}

void pb_background_rest(struct pb_background *background)
{
    if (!background->threaded)
        return;
    pthread_mutex_lock(&background->lock);
    background->stop = true;
    pthread_cond_broadcast(&background->changed);
    pthread_mutex_unlock(&background->lock);
    (void)pthread_join(background->thread, NULL);
    background->stop = false;
    background->threaded = false;
}

void pb_background_fini(struct pb_background *background)
{
    pb_background_rest(background);
    pthread_cond_destroy(&background->changed);
    pthread_mutex_destroy(&background->lock);
}
