/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RELIEF_H
#define PB_RELIEF_H
/* The way from a new grid to the scene over ground of different heights, and the way from it to the
 * grid of these heights. Thread: that of the plan. */
#include "kernels/ground.h"
#include "kernels/resample/warp.h"

struct pb_relief_ask {
    const struct pb_ground_finder *finder;
    const struct pb_ground_heights *heights;
    const struct pb_ground_ask *ask;
    uint32_t input; /* that has the heights */
    int32_t w, h;   /* of its grid */
};

struct pb_relief {
    int32_t w, h; /* of the new grid */
    struct pb_ground ground, heights_ground;
    struct pb_warp *warp;         /* of several heights */
    struct pb_warp *heights_warp; /* to the grid of the heights */
};

/* The new grid holds the scene whatever height of its area a pixel has, unless the ask has bounds.
 * 0; -EINVAL, or -EFBIG for a grid that is too large, with words in why; -E2BIG, as pb_warp_create;
 * -EIO, the heights cannot be read; -ENOMEM. *out is to be released in any case. */
int pb_relief_open(const struct pb_relief_ask *ask, char *why, size_t why_bytes,
                   struct pb_relief *out);
void pb_relief_release(struct pb_relief *relief);
#endif
