/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ADMISSION_H
#define PB_ADMISSION_H
/* Who may compute now: so many at a time, of those that wait the one of the highest priority, then
 * the one that came first. Thread: any. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define PB_ADMISSION_WAITING_MAX 64

struct pb_admission_place {
    int64_t priority;
    uint64_t number; /* 0 = free */
};

struct pb_admission {
    pthread_mutex_t lock; /* all below */
    pthread_cond_t freed;
    int most, admitted;
    uint64_t last;
    struct pb_admission_place waiting[PB_ADMISSION_WAITING_MAX];
};

void pb_admission_init(struct pb_admission *admission, int most);
/* Waits until it may. gone: asked at once when it waits, then now and then; true: it waits no
 * longer. 0, -ECANCELED, or -EAGAIN: too many wait. */
int pb_admission_enter(struct pb_admission *admission, int64_t priority, bool (*gone)(void *user),
                       void *user);
/* Whether nobody waits, and one at most computes. */
bool pb_admission_is_alone(struct pb_admission *admission);
void pb_admission_leave(struct pb_admission *admission);
#endif
