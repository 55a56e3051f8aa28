/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pauses` and `residents` change with the lock held; kernels' threads read the first, and waits
 * the second, without it. Deferred frees run in a pause of their own, without the lock, because
 * they may call functions of this file. */
#include "wic/device/pause.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

/* Memory to free when no kernel is resident. */
struct later {
    struct later *next;
    void (*free_it)(void *user);
    void *user;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_uint pauses;    /* that last or wait to begin */
static atomic_uint residents; /* kernels, by the threads that serve them */
static struct later *later, **later_end = &later;
static size_t later_bytes;

static struct timespec time_in(int64_t ns)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += ns % SECOND_NS;
    time.tv_sec += ns / SECOND_NS + time.tv_nsec / SECOND_NS;
    time.tv_nsec %= SECOND_NS;
    return time;
}

int wic_gpu_pause(int64_t timeout_ns)
{
    const struct timespec until = time_in(timeout_ns);
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_add(&pauses, 1);
    int rc = 0;
    while (atomic_load(&residents) > 0 && rc != ETIMEDOUT) {
        rc = pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
    }
    const bool none = atomic_load(&residents) == 0;
    (void)pthread_mutex_unlock(&lock);
    return none ? 0 : -ETIMEDOUT;
}

void wic_gpu_resume(void)
{
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_sub(&pauses, 1);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

/* In a pause. */
static void run_later(void)
{
    for (;;) {
        (void)pthread_mutex_lock(&lock);
        struct later *first = later;
        if (first != NULL) {
            later = first->next;
            later_end = later != NULL ? later_end : &later;
            later_bytes -= first->bytes;
        }
        (void)pthread_mutex_unlock(&lock);
        if (first == NULL) {
            return;
        }
        first->free_it(first->user);
        free(first);
    }
}

void wic_gpu_free_all(void)
{
    if (wic_gpu_pause(WIC_GPU_PAUSE_NS) == 0) {
        run_later();
    }
    wic_gpu_resume();
}

void wic_gpu_free_later(void (*free_it)(void *user), void *user, size_t bytes)
{
    struct later *own = malloc(sizeof(*own));
    (void)pthread_mutex_lock(&lock);
    bool now = own == NULL || atomic_load(&residents) == 0;
    if (own != NULL) {
        *own = (struct later){NULL, free_it, user, bytes};
        *later_end = own;
        later_end = &own->next;
        later_bytes += bytes;
        now = now || later_bytes > WIC_GPU_LATER_BYTES;
    }
    (void)pthread_mutex_unlock(&lock);
    if (own == NULL) {
        if (wic_gpu_pause(WIC_GPU_PAUSE_NS) == 0) {
            free_it(user);
        }
        wic_gpu_resume();
    }
    if (now) {
        wic_gpu_free_all();
    }
}

bool wic_gpu_hangs(struct wic_gpu_wait *wait, uint64_t now_ns, uint64_t limit_ns)
{
    wait->since_ns = wait->since_ns == 0 ? now_ns : wait->since_ns;
    if (atomic_load(&residents) == 0) {
        return wic_watchdog_expired(&wait->quiet, now_ns, limit_ns);
    }
    wait->quiet = (struct wic_watchdog){0, 0};
    if (!wait->pauses && now_ns - wait->since_ns > WIC_GPU_PATIENCE_NS) {
        wait->pauses = true;
        (void)pthread_mutex_lock(&lock);
        (void)atomic_fetch_add(&pauses, 1);
        (void)pthread_mutex_unlock(&lock);
    }
    return false;
}

void wic_gpu_waited(struct wic_gpu_wait *wait)
{
    if (wait->pauses) {
        wic_gpu_resume();
    }
    *wait = (struct wic_gpu_wait){{0, 0}, 0, false};
}

void wic_gpu_enter(void)
{
    (void)pthread_mutex_lock(&lock);
    while (atomic_load(&pauses) > 0) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    (void)atomic_fetch_add(&residents, 1);
    (void)pthread_mutex_unlock(&lock);
}

/* No kernel enters between the last one's end and the deferred frees. */
void wic_gpu_left(void)
{
    (void)pthread_mutex_lock(&lock);
    const bool frees = atomic_fetch_sub(&residents, 1) == 1 && later != NULL;
    (void)atomic_fetch_add(&pauses, frees);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    if (frees) {
        run_later();
        wic_gpu_resume();
    }
}

bool wic_gpu_is_paused(void)
{
    return atomic_load(&pauses) > 0;
}
