/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each change on which shares depend increments `state`; a kernel's thread compares it with its
 * last value, and takes the lock only if it differs. Only the end of a resident's linger period
 * depends on time alone: `quiet_ns` is that time. */
#include "pipeline/device/residency.h"

#include "config/base/clock.h"

#include <pthread.h>

#define HIGH_WEIGHT 8u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* residents, and changes of the rest */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct pb_resident *residents;
static _Atomic uint64_t state;
static _Atomic uint64_t quiet_ns = UINT64_MAX;

static void change(void)
{
    (void)atomic_fetch_add(&state, 1);
    (void)pthread_cond_broadcast(&changed);
}

static bool counts(const struct pb_resident *r, uint64_t now)
{
    bool lingers = r->left_ns > 0 && now - r->left_ns < PB_RESIDENCY_LINGER_NS;
    return r->share > 0 || r->waits || r->launches || lingers;
}

static void note_quiet(uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (const struct pb_resident *r = residents; r != NULL; r = r->next)
        if (r->share == 0 && !r->waits && !r->launches && counts(r, now) &&
            r->left_ns + PB_RESIDENCY_LINGER_NS < next)
            next = r->left_ns + PB_RESIDENCY_LINGER_NS;
    atomic_store(&quiet_ns, next);
}

static uint32_t weight_of(const struct pb_resident *r, int64_t highest)
{
    return r->jobs * (r->priority == highest ? HIGH_WEIGHT : 1);
}

static uint32_t share_of(const struct pb_resident *own, uint64_t now)
{
    int64_t highest = own->priority;
    for (const struct pb_resident *r = residents; r != NULL; r = r->next)
        if (counts(r, now) && r->priority > highest)
            highest = r->priority;
    uint32_t weight = weight_of(own, highest), sum = weight;
    for (const struct pb_resident *r = residents; r != NULL; r = r->next)
        if (r != own && counts(r, now))
            sum += weight_of(r, highest);
    return PB_RESIDENCY_WHOLE * weight / sum;
}

/* Sum of the shares of the running kernels. */
static uint32_t taken(void)
{
    uint32_t sum = 0;
    for (const struct pb_resident *r = residents; r != NULL; r = r->next)
        sum += r->share;
    return sum;
}

static void join(struct pb_resident *resident, int64_t priority, bool launches)
{
    resident->priority = priority;
    resident->jobs = 1;
    resident->launches = launches;
    (void)pthread_mutex_lock(&lock);
    resident->next = residents;
    residents = resident;
    if (launches)
        change();
    (void)pthread_mutex_unlock(&lock);
}

void pb_residency_join(struct pb_resident *resident, int64_t priority)
{
    join(resident, priority, false);
}

void pb_residency_join_launches(struct pb_resident *resident, int64_t priority)
{
    join(resident, priority, true);
}

void pb_residency_part(struct pb_resident *resident)
{
    (void)pthread_mutex_lock(&lock);
    struct pb_resident **at = &residents;
    while (*at != NULL && *at != resident)
        at = &(*at)->next;
    if (*at != NULL)
        *at = resident->next;
    note_quiet(pb_clock_mono_ns());
    change();
    (void)pthread_mutex_unlock(&lock);
}

void pb_residency_weigh(struct pb_resident *resident, int64_t priority, uint32_t jobs)
{
    (void)pthread_mutex_lock(&lock);
    resident->priority = priority;
    resident->jobs = jobs > 0 ? jobs : 1;
    change();
    (void)pthread_mutex_unlock(&lock);
}

uint32_t pb_residency_enter(struct pb_resident *resident)
{
    (void)pthread_mutex_lock(&lock);
    resident->waits = true;
    change();
    uint32_t share = share_of(resident, pb_clock_mono_ns());
    while (taken() + share > PB_RESIDENCY_WHOLE) {
        (void)pthread_cond_wait(&changed, &lock);
        share = share_of(resident, pb_clock_mono_ns());
    }
    resident->waits = false;
    resident->share = share;
    atomic_store(&resident->differs, false);
    atomic_store(&resident->known, atomic_load(&state));
    (void)pthread_mutex_unlock(&lock);
    return share;
}

void pb_residency_left(struct pb_resident *resident)
{
    (void)pthread_mutex_lock(&lock);
    resident->share = 0;
    resident->left_ns = pb_clock_mono_ns();
    note_quiet(resident->left_ns);
    change();
    (void)pthread_mutex_unlock(&lock);
}

static void look(struct pb_resident *resident)
{
    (void)pthread_mutex_lock(&lock);
    uint64_t now = pb_clock_mono_ns();
    if (now >= atomic_load(&quiet_ns)) {
        note_quiet(now);
        change();
    }
    atomic_store(&resident->differs, share_of(resident, now) != resident->share);
    atomic_store(&resident->known, atomic_load(&state));
    (void)pthread_mutex_unlock(&lock);
}

bool pb_residency_is_unwanted(struct pb_resident *resident)
{
    uint64_t quiet = atomic_load(&quiet_ns);
    bool same = atomic_load(&state) == atomic_load(&resident->known) &&
                (quiet == UINT64_MAX || pb_clock_mono_ns() < quiet);
    if (!same)
        look(resident);
    return atomic_load(&resident->differs);
}
