/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/device_plan.h"
#include "pipeline/device/device.h"

int pb_device_plans(int32_t index, struct pb_device_plan out[PB_DEVICE_PLANS])
{
    struct pb_device_traits traits;
    if (pb_device_traits(index, &traits) != 0)
        return 0;
    pb_device_plan_list(&traits, out);
    return PB_DEVICE_PLANS;
}
