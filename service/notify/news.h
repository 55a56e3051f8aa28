/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NEWS_H
#define PB_NEWS_H
/* Wakes threads that wait for new events of the service. Thread: any. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_news_board {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    uint64_t number; /* count of news */
    bool over;
};

void pb_news_init(struct pb_news_board *news);
void pb_news_fini(struct pb_news_board *news);
uint64_t pb_news_number(struct pb_news_board *news);
void pb_news_tell(struct pb_news_board *news);
/* Ends all waits, now and later. */
void pb_news_end(struct pb_news_board *news);
/* Waits while the number is `seen`, for limit_ms at most. */
void pb_news_wait(struct pb_news_board *news, uint64_t seen, int64_t limit_ms);
/* Waits for that long, even if news arrive, unless the program ends. */
void pb_news_pause(struct pb_news_board *news, int64_t ms);
#endif
