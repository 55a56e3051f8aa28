/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device_plan.h"
#include "pipeline/device.h"

#include "wic/chunk_plan.h"

int pb_device_plans(int32_t index, struct pb_device_plan out[PB_DEVICE_PLANS])
{
    struct wic_gpu gpu;
    bool integrated;
    if (pb_device_gpu(index, &gpu, &integrated) != 0)
        return 0;
    pb_device_plan_list(&gpu, integrated, out);
    return PB_DEVICE_PLANS;
}
