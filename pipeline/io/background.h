/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BACKGROUND_H
#define PB_BACKGROUND_H
/* Background thread that does one kind of work for its owner, part by part, while the owner
 * prepares the next parts. It starts with the first part; if no thread can be started, the owner
 * does the work. One owner. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file and their offset in it. */
struct pb_background_part {
    const char *data;
    size_t bytes;
    uint64_t at;
};

/* Returns 0 or an errno. */
typedef int pb_background_work(void *user, const struct pb_background_part *part);

/* Limit of queued parts, including the one in progress. With more than one the thread continues
 * while the owner wakes up. */
#define PB_BACKGROUND_PARTS 4

struct pb_background {
    pb_background_work *work;
    void *user;
    bool threaded;
    pthread_t thread;

    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    struct pb_background_part part[PB_BACKGROUND_PARTS]; /* n of them from `first` on, in a ring */
    unsigned first, n;
    bool stop;
    int error; /* errno of the first failed part */
};

void pb_background_init(struct pb_background *background, pb_background_work *work, void *user);
/* Queues a part; fewer than PB_BACKGROUND_PARTS may be queued before. The part's data must not
 * change until it is done. */
void pb_background_give(struct pb_background *background, const struct pb_background_part *part);
/* Waits until at most `but` parts are left; fewer than PB_BACKGROUND_PARTS. */
void pb_background_wait_for(struct pb_background *background, unsigned but);
/* Waits until it is idle. Returns the first errno of all its work so far, 0 = no error. */
int pb_background_wait(struct pb_background *background);
/* Waits for the end of its parts and joins the thread; the next part starts another one. Call it
 * before a fork without exec: the child would have the object without its thread. */
void pb_background_rest(struct pb_background *background);
/* Joins the thread and releases the object. */
void pb_background_fini(struct pb_background *background);
#endif
