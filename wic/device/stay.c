/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/stay.h"
#include "wic/device/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[256];

const char *wic_link_why(void)
{
    return sentence;
}

void wic_stay_forget(void)
{
    sentence[0] = '\0';
}

int wic_stay_refuse(int rc, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return rc;
}

int wic_stay_check(const struct wic_stay *stay)
{
    if (stay->time_limited) {
        return wic_stay_refuse(-EOPNOTSUPP,
                               "the GPU drives a display, and its driver ends kernels that run for "
                               "seconds: use another GPU, or one without a display");
    }
    if (stay->threads > stay->threads_most) {
        return wic_stay_refuse(-E2BIG,
                               "the plan needs blocks of %u threads, %u of them for the service "
                               "warps, and the kernel was compiled for at most %u: raise its "
                               "__launch_bounds__, use fewer registers, or choose a plan of fewer "
                               "warps",
                               stay->threads, 32 * WIC_SERVICE_WARPS, stay->threads_most);
    }
    const size_t shared = stay->shared_bytes + stay->own_shared_bytes;
    if (shared > stay->shared_most) {
        return wic_stay_refuse(-E2BIG,
                               "a block needs %zu bytes of shared memory and the GPU has %u: "
                               "choose shorter pieces or fewer stages",
                               shared, stay->shared_most);
    }
    if (stay->blocks_each == 0) {
        return wic_stay_refuse(-E2BIG,
                               "no block of %u threads and %zu bytes of shared memory fits on a "
                               "multiprocessor with the registers of this kernel",
                               stay->threads, shared);
    }
    const uint64_t most = (uint64_t)stay->blocks_each * stay->multiprocessors;
    if (stay->blocks_each != UINT32_MAX && most < stay->blocks) {
        return wic_stay_refuse(-ENOSPC,
                               "the plan's %u blocks must be resident together and %llu fit: "
                               "choose a plan of fewer blocks",
                               stay->blocks, (unsigned long long)most);
    }
    return 0;
}
