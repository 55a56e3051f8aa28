/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AREAS_RUNS_H
#define PB_AREAS_RUNS_H
/* A plane as runs: pixels of equal values, next to each other in a row. There are fewer of them
 * than pixels, and which areas they belong to and which areas touch is found from run to run.
 * Pixels are numbered row by row, runs in the order of their pixels, areas in the order of their
 * first runs. Memory is the caller's. Thread: any. */
#include "kernels/areas/areas_inside.h"

struct pb_runs {
    const float *plane;
    size_t stride;
    uint32_t w, h;
    uint32_t reach;      /* 1: runs whose corners touch are neighbours, else 0 */
    uint32_t n, n_areas; /* runs, areas */
    uint32_t *row;       /* by row: its first run; [h]: n */
    uint32_t *start;     /* by run: its first pixel; [n]: w * h */
    uint32_t *area;      /* by run; PB_AREAS_NONE: the pixels are invalid */
    float *value;        /* by area */
    uint32_t *size;      /* by area, in pixels */
};

/* Makes the arrays, of which each has w * h + 1 elements, row h + 1. */
void pb_runs_find(struct pb_runs *runs);

typedef void pb_runs_pair(void *of, uint32_t run, uint32_t above);

/* Calls fn for each run of row y > 0 with each run of the row above that it touches. Both rows are
 * walked at the same time, from where one run of either ends to where the next one does. */
static inline void pb_runs_pairs(const struct pb_runs *runs, uint32_t y, pb_runs_pair *fn, void *of)
{
    const uint32_t *const start = runs->start, last = runs->row[y + 1];
    uint32_t run = runs->row[y], above = runs->row[y - 1];

    while (run < last) {
        const uint32_t end = start[run + 1], above_end = start[above + 1] + runs->w;

        fn(of, run, above);
        if (runs->reach && end == above_end && run + 1 < last) {
            fn(of, run, above + 1);
            fn(of, run + 1, above);
        }
        run += end <= above_end;
        above += above_end <= end;
    }
}
#endif
