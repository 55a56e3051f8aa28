/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/residency.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* residents, changes of setups */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int residents;
static atomic_int setups; /* under way or waiting */

void pb_residency_setup_begin(void)
{
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_add(&setups, 1);
    while (residents > 0)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

void pb_residency_setup_end(void)
{
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_sub(&setups, 1);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

void pb_residency_enter(void)
{
    (void)pthread_mutex_lock(&lock);
    while (atomic_load(&setups) > 0)
        (void)pthread_cond_wait(&changed, &lock);
    residents++;
    (void)pthread_mutex_unlock(&lock);
}

void pb_residency_left(void)
{
    (void)pthread_mutex_lock(&lock);
    residents--;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

bool pb_residency_is_unwanted(void)
{
    return atomic_load(&setups) > 0;
}
