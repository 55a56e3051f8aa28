/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESAMPLE_JOB_H
#define PB_RESAMPLE_JOB_H
/* A plane that the CPU resamples: for resample_cpu.c, which makes weighted sums, and
 * resample_mode.c. The memory is the caller's temporary one. */
#include "kernels/resample/resample_pixel.h"

/* The made columns. Tap k of column i counts from pixel first[i] of a row of the plane on and
 * weighs weight[i * column_step + k * tap_step]. */
struct pb_resample_columns {
    struct pb_taps *taps;
    float *weight;
    size_t column_step, tap_step;
    int32_t most; /* taps of a column */
    /* Of sums: every column takes `most` taps that are in the plane; those that are not its own
     * weigh 0. */
    int32_t *first;
    float *total; /* of its weights */
    bool *inside; /* the column makes pixels */
    /* From this column to in front of that, first[] rises by `stride`: 2 .. 4; 0: there is none. */
    size_t even_from, even_to;
    int32_t stride;
};

/* MODE: values of a footprint, the area that has each, and the weights of its rows. */
struct pb_resample_areas {
    float *value, *area;
    float *down;
    int32_t *first; /* pb_resample_table_room: which value it is; -1 = none */
};

struct pb_resample_job {
    const struct pb_resample *resample;
    const struct pb_plane *in, *out;
    struct pb_resample_source source;
    struct pb_resample_columns columns;
    float *total;      /* weights of the row that is being made */
    float *ring;       /* row sums */
    int32_t *ring_row; /* which row of the source each place has; -1 = none */
    size_t ring_rows;
    struct pb_resample_areas areas;
};

/* Entries of the table for so many values: a power of two, twice as many. */
size_t pb_resample_table_room(size_t values);
/* A row of MODE. */
void pb_resample_mode_row(const struct pb_resample_job *job, const struct pb_taps *y, float *out);
#endif
