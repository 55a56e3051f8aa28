/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/admission.h"

#include "config/base/clock.h"

#include <errno.h>

#define ASK_MS 100

void pb_admission_init(struct pb_admission *a, int most)
{
    pthread_condattr_t attr;
    *a = (struct pb_admission){.most = most};
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->freed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static struct pb_admission_place *free_place(struct pb_admission *a)
{
    for (int i = 0; i < PB_ADMISSION_WAITING_MAX; i++)
        if (a->waiting[i].number == 0)
            return &a->waiting[i];
    return NULL;
}

static bool is_first(const struct pb_admission *a, const struct pb_admission_place *own)
{
    for (int i = 0; i < PB_ADMISSION_WAITING_MAX; i++) {
        const struct pb_admission_place *p = &a->waiting[i];
        if (p->number != 0 && (p->priority > own->priority ||
                               (p->priority == own->priority && p->number < own->number)))
            return false;
    }
    return true;
}

int pb_admission_enter(struct pb_admission *a, int64_t priority, bool (*gone)(void *user),
                       void *user)
{
    int rc = 0;
    (void)pthread_mutex_lock(&a->lock);
    struct pb_admission_place *own = free_place(a);
    if (own == NULL) {
        (void)pthread_mutex_unlock(&a->lock);
        return -EAGAIN;
    }
    *own = (struct pb_admission_place){priority, ++a->last};
    while (rc == 0 && (a->admitted >= a->most || !is_first(a, own))) {
        (void)pthread_mutex_unlock(&a->lock);
        rc = gone(user) ? -ECANCELED : 0;
        (void)pthread_mutex_lock(&a->lock);
        struct timespec until = pb_clock_mono_after(ASK_MS);
        if (rc == 0 && (a->admitted >= a->most || !is_first(a, own)))
            (void)pthread_cond_timedwait(&a->freed, &a->lock, &until);
    }
    own->number = 0;
    a->admitted += rc == 0;
    (void)pthread_cond_broadcast(&a->freed); /* another waiting session may be the first now */
    (void)pthread_mutex_unlock(&a->lock);
    return rc;
}

void pb_admission_leave(struct pb_admission *a)
{
    (void)pthread_mutex_lock(&a->lock);
    a->admitted--;
    (void)pthread_cond_broadcast(&a->freed);
    (void)pthread_mutex_unlock(&a->lock);
}

bool pb_admission_is_alone(struct pb_admission *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool alone = a->admitted <= 1;
    for (int i = 0; i < PB_ADMISSION_WAITING_MAX; i++)
        alone = alone && a->waiting[i].number == 0;
    (void)pthread_mutex_unlock(&a->lock);
    return alone;
}
