/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ADMISSION_H
#define PB_ADMISSION_H
/* Limits the number of concurrent sessions. Waiting sessions are admitted by priority, then by age.
 * Thread: any. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define PB_ADMISSION_WAITING_MAX 64

struct pb_admission_place {
    int64_t priority;
    uint64_t number; /* 0 = free */
};

struct pb_admission {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t freed;
    int most, admitted;
    uint64_t last;
    struct pb_admission_place waiting[PB_ADMISSION_WAITING_MAX];
};

void pb_admission_init(struct pb_admission *admission, int most);
/* Waits for admission. gone: called once when the wait begins, then from time to time; it returns
 * true to stop the wait. Returns 0, -ECANCELED, or -EAGAIN: too many wait. */
int pb_admission_enter(struct pb_admission *admission, int64_t priority, bool (*gone)(void *user),
                       void *user);
/* Returns true if no session waits, and at most one computes. */
bool pb_admission_is_alone(struct pb_admission *admission);
void pb_admission_leave(struct pb_admission *admission);
#endif
