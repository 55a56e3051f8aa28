/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_PART_H
#define PB_WARP_PART_H
/* A part of a row of a warped plane, whose pixels the CPU makes side by side: for warp_cpu.c, which
 * finds their positions, warp_wide.c and warp_area.c. */
#include "kernels/resample/warp_pixel.h"

#define PB_WARP_PART_PX    256
#define PB_WARP_TAPS_MOST  24 /* of a kernel along an axis; wider ones are made one by one */
#define PB_WARP_AREA_LANES 32 /* pixels of a group whose footprints are made side by side */
#define PB_WARP_AREA_FEW   64 /* pixels of the old grid of each of them, of MODE */
#define PB_WARP_AREA_BYTES ((size_t)PB_WARP_AREA_LANES * (12 * PB_WARP_AREA_FEW + 384))

struct pb_warp_axis {
    double low[PB_WARP_PART_PX];   /* the centre */
    double first[PB_WARP_PART_PX]; /* tap */
    int32_t n[PB_WARP_PART_PX];    /* taps */
    float weight[PB_WARP_TAPS_MOST][PB_WARP_PART_PX];
};

/* Positions of the corners above and below a row of pixels: one more than there are pixels. */
struct pb_warp_corner_rows {
    double x[2][PB_WARP_PART_PX], y[2][PB_WARP_PART_PX];
};

struct pb_warp_part {
    int32_t n;
    union {
        struct { /* of kernels and NEAREST */
            struct pb_warp_axis x, y;
        };
        struct { /* of areas */
            struct pb_warp_corner_rows corners;
            double group[PB_WARP_AREA_BYTES / sizeof(double)];
        };
    };
    int32_t at[PB_WARP_PART_PX];  /* of the upper left tap in the source's plane */
    bool inside[PB_WARP_PART_PX]; /* all taps are there */
    float across[PB_WARP_PART_PX], row[PB_WARP_PART_PX], total[PB_WARP_PART_PX];
    double at_x[3][PB_WARP_PART_PX], at_y[3][PB_WARP_PART_PX]; /* places on three heights */
};

/* Kernels of up to PB_WARP_TAPS_MOST taps a side, from the part's centres: sums in the order of
 * pb_resample_sum. Pixels that lack a tap, or have an invalid one, are
 * left as NaN for the pixel function. False: none was made. */
bool pb_warp_make_wide(const struct pb_warp_job *job, const struct pb_plane *in,
                       struct pb_warp_part *part, float *out);
/* NEAREST, all pixels of the part, from its centres. False as above. */
bool pb_warp_make_nearest(const struct pb_warp_job *job, const struct pb_plane *in,
                          struct pb_warp_part *part, float *out);
/* AVERAGE and MODE of pixels first .. first + n - 1 of the part, PB_WARP_AREA_LANES at most, from
 * its corners. False: none was made. Torn pixels are not looked for. */
bool pb_warp_make_areas(const struct pb_warp_job *job, const struct pb_plane *in,
                        struct pb_warp_part *part, int32_t first, int32_t n, float *out);
#endif
