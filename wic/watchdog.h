/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_WATCHDOG_H
#define WIC_WATCHDOG_H
/* How long something has been waited for, counted by a waiter that may itself be stopped: a GPU
 * that takes turns with other processes, a virtual machine that is paused. Only time in which the
 * waiter looked counts: after a gap between two looks the count begins anew, so that what came
 * during the gap is seen before anybody gives up. One text for C11 and CUDA. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WIC_WATCHDOG __host__ __device__ __forceinline__
#else
#define WIC_WATCHDOG static inline
#endif

#define WIC_WATCHDOG_GAP_NS UINT64_C(100000000) /* looks further apart: the waiter was stopped */

struct wic_watchdog {
    uint64_t since, last; /* first look of those without a gap, last look; 0: none yet */
};

/* A look at `now` that found nothing. Has it been looked for longer than limit_ns? */
WIC_WATCHDOG bool wic_watchdog_expired(struct wic_watchdog *dog, uint64_t now, uint64_t limit_ns)
{
    if (dog->since == 0 || now - dog->last > WIC_WATCHDOG_GAP_NS) {
        dog->since = now;
    }
    dog->last = now;
    return now - dog->since > limit_ns;
}
#endif
