/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAR_TABLES_H
#define PB_SAR_TABLES_H
/* Tables of a radar product for each pixel of its image: they have numbers for some pixels of
 * some lines, between which others are interpolated. Lines and pixels count from 0, of the whole
 * image. Pure arithmetic; read-only after they are filled, any thread. Source: ESA, Sentinel-1
 * Product Specification (S1-RS-MDA-52-7441), 6.2 and 6.3. */
#include "kernels/geometry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_arena;
struct pb_err;
struct pb_range_doppler;

/* Numbers along one line. */
struct pb_sar_vector {
    int32_t line;
    size_t n;                    /* at least 1 */
    const double *pixel, *value; /* pixels are ascending */
};
struct pb_sar_table {
    struct pb_sar_vector *vector; /* lines are ascending */
    size_t n;                     /* 0: no such table */
};

/* Factor that depends on the line, in a part of the image. */
struct pb_sar_block {
    int32_t first_line, last_line, first_pixel, last_pixel; /* the last ones are included */
    struct pb_sar_vector along;                             /* .pixel are lines */
};

enum pb_sar_area { PB_SAR_SIGMA, PB_SAR_BETA, PB_SAR_GAMMA, PB_SAR_AREAS };

/* One polarisation. */
struct pb_sar_channel {
    char id[16];                            /* "VV" */
    struct pb_sar_table area[PB_SAR_AREAS]; /* A in DN^2 / A^2 */
    struct pb_sar_table noise;              /* noise in DN^2, by range */
    struct pb_sar_block *block;             /* factors of the noise; 1 outside of the blocks */
    size_t n_blocks;
    int32_t width, height; /* size of the image; 0: unknown */
    bool noise_is_off;     /* the processor has already subtracted it */
};

#define PB_SAR_CHANNELS_MAX 4
struct pb_sar {
    struct pb_arena *arena; /* owns everything, including this struct */
    struct pb_sar_channel channel[PB_SAR_CHANNELS_MAX];
    size_t n;
    /* geometry of all channels; NULL: see why_no_geometry */
    const struct pb_range_doppler *geometry;
    char why_no_geometry[240];
};

/* Zeroed; NULL = out of memory. destroy accepts NULL. */
struct pb_sar *pb_sar_create(void);
void pb_sar_destroy(struct pb_sar *sar);
/* Finds the channel of that name, and adds it if absent; NULL: too many. */
struct pb_sar_channel *pb_sar_channel(struct pb_sar *sar, const char *id);
const struct pb_sar_channel *pb_sar_find(const struct pb_sar *sar, const char *id);

/* Source of a plane of numbers: a radar product, or a table for the columns of a sensor. */
struct pb_sar_plane {
    const struct pb_sar_channel *channel;
    int32_t area;        /* enum pb_sar_area: A^2; -1: the noise */
    const float *column; /* a number for each column of the image; NULL = of the channel */
};
/* A pb_raster_fill of struct pb_sar_planes: the plane `band` (from 1) in `rect` as float32. */
struct pb_sar_planes {
    size_t n;
    struct pb_sar_plane plane[64];
};
int pb_sar_fill(const void *planes, int32_t band, const struct pb_rect *rect, void *out,
                size_t row_bytes, struct pb_err *err);
#endif
