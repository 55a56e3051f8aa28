/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_watchdog.h"

#include "config/base/clock.h"
#include "pipeline/io/thread.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_t thread;
    bool runs;            /* main thread's */
    pthread_mutex_t lock; /* stopped */
    pthread_cond_t changed;
    bool stopped;
    struct timespec until; /* CLOCK_MONOTONIC */
    void (*expired)(void *user);
    void *user;
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *watch(void *unused)
{
    int rc = 0;
    (void)unused;
    (void)pthread_mutex_lock(&dog.lock);
    while (!dog.stopped && rc != ETIMEDOUT)
        rc = pthread_cond_clockwait(&dog.changed, &dog.lock, CLOCK_MONOTONIC, &dog.until);
    bool expired = !dog.stopped;
    (void)pthread_mutex_unlock(&dog.lock);
    if (!expired)
        return NULL;
    dog.expired(dog.user);
    (void)fflush(NULL);
    _exit(CLI_JOB_FAILED);
}

void cli_watchdog_start(int64_t limit_ms, void (*expired)(void *user), void *user)
{
    if (limit_ms <= 0)
        return;
    dog.stopped = false;
    dog.expired = expired;
    dog.user = user;
    dog.until = pb_clock_mono_after(limit_ms);
    dog.runs = pb_thread_start(&dog.thread, watch, NULL) == 0;
}

void cli_watchdog_stop(void)
{
    if (!dog.runs)
        return;
    (void)pthread_mutex_lock(&dog.lock);
    dog.stopped = true;
    (void)pthread_cond_signal(&dog.changed);
    (void)pthread_mutex_unlock(&dog.lock);
    (void)pthread_join(dog.thread, NULL);
    dog.runs = false;
}
