/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WAY_H
#define PB_WAY_H
/* New grids in other coordinate systems, and the ways from their pixels to those of the grids that
 * they are made from. The process that has the scene makes them from functions of the layers above
 * (pb_way_make); a process that computes for it gets what was made. Thread: that of the plan. */
#include "kernels/ground.h"
#include "kernels/resample/warp.h"

struct pb_way {
    int32_t w, h; /* size of the new grid */
    struct pb_ground ground;
    struct pb_warp *warp; /* has several heights over relief */
    struct pb_ground heights_ground;
    struct pb_warp *heights_warp; /* leads to the grid of the heights; NULL: no relief */
};

/* Request of a step. */
struct pb_way_ask {
    const struct pb_ground_ask *ask;
    bool on_relief; /* true: an input has the heights of the ground */
    uint32_t input; /* number of that input */
    int32_t w, h;   /* size of its grid */
    /* Reports a grid that is too large, and returns false; NULL: any size is fine. */
    bool (*fits)(void *of, double w, double h);
    void *fits_of;
};

/* find: 0; -ECANCELED: `fits` has reported the grid; with words in why: -EINVAL, -EDOM and -EFBIG
 * (struct pb_ground_finder), -EIO (the heights cannot be read); -E2BIG, as pb_warp_create; -ENOMEM.
 * *out is to be released in any case. */
struct pb_way_finder {
    void *of;
    int (*find)(void *of, const struct pb_way_ask *ask, char *why, size_t why_bytes,
                struct pb_way *out);
};

/* Functions of the layers above, by which ways are made. */
struct pb_way_maker {
    const struct pb_ground_finder *ground;
    const struct pb_ground_heights *heights; /* NULL: no input has a place */
};
/* The `find` of a struct pb_way_finder; of: a struct pb_way_maker. */
int pb_way_make(void *of, const struct pb_way_ask *ask, char *why, size_t why_bytes,
                struct pb_way *out);
void pb_way_release(struct pb_way *way);
#endif
