/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/news.h"

#include "config/base/clock.h"

#include <errno.h>

void pb_news_init(struct pb_news_board *news)
{
    pthread_condattr_t attributes;
    *news = (struct pb_news_board){.number = 1};
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&news->lock, NULL);
    (void)pthread_cond_init(&news->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void pb_news_fini(struct pb_news_board *news)
{
    (void)pthread_cond_destroy(&news->changed);
    (void)pthread_mutex_destroy(&news->lock);
}

uint64_t pb_news_number(struct pb_news_board *news)
{
    (void)pthread_mutex_lock(&news->lock);
    uint64_t number = news->number;
    (void)pthread_mutex_unlock(&news->lock);
    return number;
}

void pb_news_tell(struct pb_news_board *news)
{
    (void)pthread_mutex_lock(&news->lock);
    news->number++;
    (void)pthread_cond_broadcast(&news->changed);
    (void)pthread_mutex_unlock(&news->lock);
}

void pb_news_end(struct pb_news_board *news)
{
    (void)pthread_mutex_lock(&news->lock);
    news->over = true;
    (void)pthread_cond_broadcast(&news->changed);
    (void)pthread_mutex_unlock(&news->lock);
}

/* any_number: no news end the wait. */
static void wait_until(struct pb_news_board *news, bool any_number, uint64_t seen, int64_t ms)
{
    struct timespec limit = pb_clock_mono_after(ms);
    int rc = 0;
    (void)pthread_mutex_lock(&news->lock);
    while (rc != ETIMEDOUT && !news->over && (any_number || news->number == seen))
        rc = pthread_cond_timedwait(&news->changed, &news->lock, &limit);
    (void)pthread_mutex_unlock(&news->lock);
}

void pb_news_wait(struct pb_news_board *news, uint64_t seen, int64_t limit_ms)
{
    wait_until(news, false, seen, limit_ms);
}

void pb_news_pause(struct pb_news_board *news, int64_t ms)
{
    wait_until(news, true, 0, ms);
}
