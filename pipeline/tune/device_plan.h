/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_PLAN_H
#define PB_DEVICE_PLAN_H
/* The transfer plans of usual scenes on a GPU, as text, for `pushbroom devices`. Thread: any, one
 * at a time. */
#include <stdbool.h>
#include <stdint.h>

struct pb_device_traits;

enum { PB_DEVICE_PLANS = 4 };

struct pb_device_plan {
    char tile[64];  /* "1024 x 1024 px, 2 bands of uint16, index" */
    char plan[200]; /* "pull by bulk copy, ...", or "none: " and the reason */
    bool measured;  /* true: on this GPU; false: from the built-in table */
};

/* Plans for a GPU that traits describe. */
void pb_device_plan_list(const struct pb_device_traits *traits,
                         struct pb_device_plan out[PB_DEVICE_PLANS]);
/* Plans for CUDA device `index`. Returns their count: all, or 0 if the device does not answer or
 * this build has no CUDA. */
int pb_device_plans(int32_t index, struct pb_device_plan out[PB_DEVICE_PLANS]);
#endif
