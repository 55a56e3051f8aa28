/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BACKGROUND_H
#define PB_BACKGROUND_H
/* A helper thread that does one kind of work for another, one part at a time: while it works on a
 * part, its owner prepares the next. It starts with the first part; where no thread can be started
 * the work is done by the owner. One owner. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file and their place in it. */
struct pb_background_part {
    const char *data;
    size_t bytes;
    uint64_t at;
};

/* 0 or an errno. */
typedef int pb_background_work(void *user, const struct pb_background_part *part);

struct pb_background {
    pb_background_work *work;
    void *user;
    bool threaded;
    pthread_t thread;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct pb_background_part part;
    bool busy, stop;
    int error; /* the first one */
};

void pb_background_init(struct pb_background *background, pb_background_work *work, void *user);
/* Gives it a part, whose data stay as they are until the next wait, when it is idle: after init or
 * wait. */
void pb_background_give(struct pb_background *background, const struct pb_background_part *part);
/* Waits until it is idle. The first errno of all its work so far, 0 = none. */
int pb_background_wait(struct pb_background *background);
/* Lets it end its part and joins it. */
void pb_background_fini(struct pb_background *background);
#endif
