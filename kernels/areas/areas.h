/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AREAS_H
#define PB_AREAS_H
/* Sieving: connected areas of equal values with fewer than so many pixels get the value of their
 * largest neighbouring area. The image is seen a cell at a time, in any order and by any number of
 * threads, and the result does not depend on the cells: it is that of GDALSieveFilter.
 *
 *  - An area is connected by edges (4) or by edges and corners (8). Pixels that are NaN belong to
 *    none and stay.
 *  - Of the neighbours of an area the one with the most pixels counts; of equal ones the one that
 *    a walk over the image meets first: row by row, each pixel with the one above, above left,
 *    above right (these two with 8), and to the left.
 *  - Where that neighbour is small itself, its own largest neighbour counts, and so on. An area
 *    whose chain comes back to an area of the chain, or that has no neighbour, stays as it is.
 *  - Sizes stop at 2^31 - 1 pixels.
 *
 * Cells are labelled by themselves. What is inside a cell is decided from the cell; areas that
 * touch its border have entries in a table, which is joined across borders by union-find. So the
 * memory grows with the borders of the cells, not with the number of areas. Three rounds over all
 * cells are needed, each from the pixels of the first:
 *
 *     add      sizes of areas; then pb_areas_connect: those of areas of several cells
 *     look     largest neighbours; then pb_areas_resolve: where chains end
 *     replace  the new values
 *
 * Calls for different cells may be made at the same time, with scratch of their own. Thread: any.
 */
#include "kernels/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_AREAS_SIDE_MAX     512
#define PB_AREAS_LATER_ROUNDS 2 /* look and replace: after all pixels have come once */

/* Equal ones are equal bytes. */
struct pb_sieve {
    int32_t size;         /* areas of fewer pixels are small; 2 or more */
    int32_t connectivity; /* 4 or 8 */
};

struct pb_areas;

/* Cells are squares of this side, cut off at the image's edge: a power of two for a power of two,
 * of which it is a part. */
int32_t pb_areas_side(int32_t tile_side);
/* Of the table, at most; UINT64_MAX: it would have more entries than can be numbered. */
uint64_t pb_areas_bytes(int32_t image_w, int32_t image_h, int32_t side);
/* Of what a thread needs. */
uint64_t pb_areas_scratch_bytes(int32_t image_w, int32_t image_h, int32_t side);
/* 0, -ENOMEM or -E2BIG. */
int pb_areas_create(const struct pb_sieve *sieve, int32_t image_w, int32_t image_h, int32_t side,
                    struct pb_areas **out_areas);
void pb_areas_destroy(struct pb_areas *areas); /* NULL is fine */
uint32_t pb_areas_cells(const struct pb_areas *areas);
/* Cells are numbered row by row. */
struct pb_rect pb_areas_cell(const struct pb_areas *areas, uint32_t cell);

/* The pixels of a cell, rows `stride` floats apart. scratch: pb_areas_scratch_bytes, aligned to 8
 * bytes. A cell that is not added has no valid pixel. */
void pb_areas_add(struct pb_areas *areas, uint32_t cell, const float *plane, size_t stride,
                  void *scratch);
void pb_areas_look(struct pb_areas *areas, uint32_t cell, const float *plane, size_t stride,
                   void *scratch);
/* Whether a pixel has another value now. */
bool pb_areas_replace(const struct pb_areas *areas, uint32_t cell, float *plane, size_t stride,
                      void *scratch);
/* Between the rounds, by one thread, when all cells are through. False: stop(of), which is asked
 * for every cell and every border, said true; the areas are good for nothing then. stop: NULL:
 * nothing ends it. */
typedef bool pb_areas_stop(const void *of);
bool pb_areas_connect(struct pb_areas *areas, pb_areas_stop *stop, const void *of);
bool pb_areas_resolve(struct pb_areas *areas, pb_areas_stop *stop, const void *of);
#endif
