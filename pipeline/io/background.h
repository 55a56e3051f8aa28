/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BACKGROUND_H
#define PB_BACKGROUND_H
/* A background thread that does one kind of work for its owner, one part at a time, while the owner
 * prepares the next part. It starts with the first part; if no thread can be started, the owner
 * does the work. One owner. */
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
/* Passes it a part; only while it is idle, after init or wait. The part's data must not change
 * until the next wait. */
void pb_background_give(struct pb_background *background, const struct pb_background_part *part);
/* Waits until it is idle. The first errno of all its work so far, 0 = none. */
int pb_background_wait(struct pb_background *background);
/* Waits for the end of its part and joins the thread. */
void pb_background_fini(struct pb_background *background);
#endif
