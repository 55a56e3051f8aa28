/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device_plan.h"

#include "wic/chunk_plan.h"

#include <errno.h>
#include <stdio.h>

enum { SIDE_PX = 1024 };

static const char *reason(int rc)
{
    switch (rc) {
    case -ENODEV:
        return "none: the GPU is older than sm_75";
    case -E2BIG:
        return "none: no piece of such a tile fits into its shared memory";
    default:
        return "none: such tiles cannot be cut into pieces";
    }
}

/* Pixels of `bands` uint16 values in, one float32 value a pixel out. */
static void describe(const struct wic_gpu *gpu, uint32_t bands, struct pb_device_plan *out)
{
    uint32_t in_unit = bands * (uint32_t)sizeof(uint16_t);
    struct wic_tile_shape shape = {.slot_bytes = (size_t)SIDE_PX * SIDE_PX * in_unit,
                                   .in_unit = in_unit,
                                   .out_unit = sizeof(float)};
    struct wic_chunk_plan plan;
    int rc = wic_chunk_plan_choose(gpu, &shape, NULL, &plan);
    (void)snprintf(out->tile, sizeof out->tile, "%d x %d px, %u bands of uint16", SIDE_PX, SIDE_PX,
                   bands);
    if (rc == 0)
        (void)wic_chunk_plan_print(&plan, out->plan, sizeof out->plan);
    else
        (void)snprintf(out->plan, sizeof out->plan, "%s", reason(rc));
}

void pb_device_plan_list(const struct wic_gpu *gpu, struct pb_device_plan out[PB_DEVICE_PLANS])
{
    /* An index of two bands, a common image, all bands of Sentinel-2. */
    static const uint32_t bands[PB_DEVICE_PLANS] = {2, 4, 13};
    for (int i = 0; i < PB_DEVICE_PLANS; i++)
        describe(gpu, bands[i], &out[i]);
}

#ifndef PB_HAVE_CUDA
int pb_device_plans(int32_t index, struct pb_device_plan out[PB_DEVICE_PLANS])
{
    (void)index;
    (void)out;
    return 0;
}
#endif
