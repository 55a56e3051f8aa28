/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AREAS_INSIDE_H
#define PB_AREAS_INSIDE_H
/* What is behind struct pb_areas: the table of areas that touch a cell's border (areas_table.c),
 * and the areas of one cell (areas_cell.c), which are found from runs of pixels (areas_runs.h). */
#include "kernels/areas/areas.h"

#define PB_AREAS_NONE        UINT32_MAX
#define PB_AREAS_SIZE_MOST   INT32_MAX
#define PB_AREAS_BORDER_NONE UINT16_MAX

/* Where the chain of an area goes. */
enum pb_areas_end {
    PB_AREAS_KEEPS, /* there is no large area at its end: the value stays */
    PB_AREAS_VALUE, /* that of a large area */
    PB_AREAS_ENTRY, /* an area with an entry, whose own chain decides */
    PB_AREAS_WALKED /* on the way that is walked now; while chains are resolved */
};

struct pb_areas_chain {
    uint32_t end; /* enum pb_areas_end */
    union {
        uint32_t entry;
        float value;
    } to;
};

/* A part of an area in one cell that touches the cell's border; the first part of an area stands
 * for all of it once they are connected. */
struct pb_areas_entry {
    uint32_t parent; /* entry of the same area; itself: it is the first one */
    float value;
    uint32_t size;       /* of the part, then of the area */
    uint32_t best_size;  /* of its largest neighbour; 0: there is none so far */
    uint64_t best_first; /* where the walk over the image meets that */
    struct pb_areas_chain chain;
};

struct pb_areas {
    struct pb_sieve sieve;
    int32_t image_w, image_h, side, cols, rows;
    uint32_t border_px;           /* of a cell: entries and pixels of its border, at most */
    struct pb_areas_entry *entry; /* border_px for each cell */
    uint16_t *border;             /* of each cell: its rows at top and bottom, its columns at left
                                     and right; the number of the entry in the cell */
    uint32_t *n;                  /* entries of each cell */
};

/* Where the walk over the image compares a pixel with a neighbour. */
enum pb_areas_way {
    PB_AREAS_UP,
    PB_AREAS_UP_LEFT,
    PB_AREAS_UP_RIGHT,
    PB_AREAS_LEFT,
    PB_AREAS_WAYS
};
static inline uint64_t pb_areas_first(const struct pb_areas *areas, int64_t x, int64_t y,
                                      enum pb_areas_way way)
{
    return ((uint64_t)(y * areas->image_w + x)) * PB_AREAS_WAYS + (uint64_t)way;
}

/* Both saturate. */
static inline uint32_t pb_areas_sum(uint32_t a, uint32_t b)
{
    const uint64_t sum = (uint64_t)a + b;

    return sum < PB_AREAS_SIZE_MOST ? (uint32_t)sum : PB_AREAS_SIZE_MOST;
}

/* The entry that stands for the area, once they are connected. */
static inline const struct pb_areas_entry *pb_areas_of(const struct pb_areas *areas, uint32_t entry)
{
    return &areas->entry[areas->entry[entry].parent];
}

static inline uint32_t pb_areas_is_small(const struct pb_areas *areas, uint32_t size)
{
    return size < (uint32_t)areas->sieve.size;
}
#endif
