/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_WATCHDOG_H
#define WIC_WATCHDOG_H
/* A time limit for a waiter that may itself be suspended (a GPU shared in time slices, a paused
 * virtual machine). Only time in which the waiter polled counts: after a gap between two polls the
 * count begins anew, so that an event during the gap is seen before the limit. One text for C11 and
 * CUDA. */
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WIC_WATCHDOG __host__ __device__ __forceinline__
#else
#define WIC_WATCHDOG static inline
#endif

#define WIC_WATCHDOG_GAP_NS                                                                        \
    UINT64_C(100000000) /* polls further apart: the waiter was suspended                           \
                         */

struct wic_watchdog {
    uint64_t since, last; /* first poll without a gap since, last poll; 0: none yet */
};

/* A poll at `now` that found nothing. Whether the polls have lasted longer than limit_ns. */
WIC_WATCHDOG bool wic_watchdog_expired(struct wic_watchdog *dog, uint64_t now, uint64_t limit_ns)
{
    if (dog->since == 0 || now - dog->last > WIC_WATCHDOG_GAP_NS) {
        dog->since = now;
    }
    dog->last = now;
    return now - dog->since > limit_ns;
}
#endif
