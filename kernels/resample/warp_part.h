/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_PART_H
#define PB_WARP_PART_H
/* A part of a row of a warped plane, whose pixels the CPU makes side by side: for warp_cpu.c, which
 * finds where they lie, and warp_wide.c. */
#include "kernels/resample/warp_pixel.h"

#define PB_WARP_PART_PX 256
#define PB_WARP_TAPS_MOST                                                                          \
    24 /* of a kernel or an area along an axis; wider ones are made one by one */

struct pb_warp_axis {
    double low[PB_WARP_PART_PX];   /* the centre; of areas, where they begin */
    double high[PB_WARP_PART_PX];  /* of areas, where they end */
    double first[PB_WARP_PART_PX]; /* tap */
    int32_t n[PB_WARP_PART_PX];    /* taps */
    float weight[PB_WARP_TAPS_MOST][PB_WARP_PART_PX];
};

struct pb_warp_part {
    int32_t n;
    struct pb_warp_axis x, y;
    int32_t at[PB_WARP_PART_PX];  /* of the upper left tap in the source's plane */
    bool inside[PB_WARP_PART_PX]; /* all taps are there */
    float across[PB_WARP_PART_PX], row[PB_WARP_PART_PX], total[PB_WARP_PART_PX];
    double at_x[3][PB_WARP_PART_PX], at_y[3][PB_WARP_PART_PX]; /* places on three heights */
};

/* Kernels and areas of up to PB_WARP_TAPS_MOST taps a side, from the part's centres, or from its
 * areas: sums in the order of pb_resample_sum. Pixels that lack a tap, or have an invalid one, are
 * left as NaN for the pixel function. False: none was made. */
bool pb_warp_make_wide(const struct pb_warp_job *job, const struct pb_plane *in,
                       struct pb_warp_part *part, float *out);
/* NEAREST, all pixels of the part, from its centres. False as above. */
bool pb_warp_make_nearest(const struct pb_warp_job *job, const struct pb_plane *in,
                          struct pb_warp_part *part, float *out);
#endif
