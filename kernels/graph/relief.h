/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RELIEF_H
#define PB_RELIEF_H
/* The way from a new grid to the scene over ground of different heights, and the way from it to the
 * grid of these heights. Thread: that of the plan. */
#include "kernels/graph/way.h"

struct pb_relief_ask {
    const struct pb_ground_finder *finder;
    const struct pb_ground_heights *heights;
    const struct pb_ground_ask *ask;
    uint32_t input; /* that has the heights */
    int32_t w, h;   /* of its grid */
};

/* The new grid holds the scene whatever height of its area a pixel has, unless the ask has bounds.
 * 0; -EINVAL, or -EFBIG for a grid that is too large, with words in why; -E2BIG, as pb_warp_create;
 * -EIO, the heights cannot be read; -ENOMEM. *out is to be released in any case. */
int pb_relief_open(const struct pb_relief_ask *ask, char *why, size_t why_bytes,
                   struct pb_way *out);
#endif
