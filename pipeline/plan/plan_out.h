/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_OUT_H
#define PB_PLAN_OUT_H
/* Output side of decoding on a device (pipeline/run/whole): the products whose blocks are made
 * there, the planes that are copied to the host, and the memory for both. A row of tiles (a strip)
 * stays on the device until all its products are made. Overviews are made from it row by row: each
 * level has the rows of a row of its blocks. Arithmetic; any thread. */
#include "pipeline/cog/device_blocks.h"
#include "kernels/tile_slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_plan;
struct pb_plan_request;

enum {
    /* Products of a pipeline that are considered; the host makes the others. */
    PB_OUT_PRODUCTS = 64,
    PB_OUT_MADE = 16,   /* products that are made on a device */
    PB_OUT_BATCHES = 3, /* batches of blocks between the encoder and the host */
    PB_OUT_LEVELS = 32,
    PB_OUT_SIZES = 3, /* ways to use the device's memory */
    PB_BLOCK_SLOT_HEAD =
        4096 /* bytes; head of a result slot with blocks (run/stream/block_slot.h) */
};

/* A product that is made on the device. */
struct pb_plan_made {
    uint32_t product;               /* number of the product in the pipeline */
    uint32_t first_plane, n_planes; /* planes of tiles; format.plane counts from the first */
    struct pb_device_blocks blocks;
    uint32_t row_blocks; /* most blocks that a row of tiles can complete, over all levels */
    uint32_t batch[2];   /* blocks that are encoded at once: of values, of masks */
};

struct pb_plan_out {
    uint32_t n;
    struct pb_plan_made made[PB_OUT_MADE];
    uint64_t by_device; /* bit i: product i is made on the device */
    /* Why product i is not made there; static; NULL: it is, or needs no pixels. */
    const char *why[PB_OUT_PRODUCTS];
    uint64_t why_bytes;   /* compute.device_memory that would be enough; 0: not the reason */
    uint64_t host_planes; /* bit p: plane p of tiles is copied to the host */
    uint64_t reduced;     /* in an earlier pass, bit i: the device computes its reduction i */
    uint32_t size;        /* below PB_OUT_SIZES: index of the memory size */
    uint32_t strips;      /* rows of tiles on the device at a time; 0 if unused */
    uint64_t tile_bytes;  /* size of a tile's planes in a strip */
    uint64_t workspace_bytes, encoded_bytes; /* sizes for a batch */
    uint32_t batch_most;                     /* blocks of the largest batch */
    uint64_t device_bytes;                   /* device memory of all that */
    uint64_t room_bytes; /* host memory for finished blocks: the rest of compute.memory */
    uint64_t most_bytes; /* largest size of the finished blocks of all products */
    uint64_t slot_bytes; /* least size of a slot of results */
};

/* Rows of a level's blocks that are on the device. */
struct pb_out_level {
    int32_t w, h;    /* size of the level */
    int32_t rows;    /* rows in memory: one row of blocks, or more */
    uint32_t row_px; /* distance of rows */
    uint64_t plane_px;
};

/* Fills plan->out. After plan->whole is known. */
void pb_plan_out(struct pb_plan *plan, const struct pb_plan_request *request);
/* level: from 1. */
struct pb_out_level pb_plan_out_level(const struct pb_plan *plan, const struct pb_plan_made *made,
                                      uint32_t level);
/* Returns true if blocks of that level are made; level 0: the image. */
bool pb_plan_out_makes(const struct pb_plan_made *made, uint32_t level);
/* Format of its blocks or, layer 1, of their masks. */
struct pb_encode_format pb_plan_out_format(const struct pb_plan_made *made, uint32_t layer);
/* Returns true if tiles are sent to the host: with planes, or to be counted. */
bool pb_plan_out_has_planes(const struct pb_plan *plan);
/* Returns true if the device computes reduction i of an earlier pass. */
bool pb_plan_out_reduces(const struct pb_plan *plan, size_t i);
bool pb_plan_out_has_plane(const struct pb_plan *plan, uint32_t plane);
#endif
