/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_OUT_H
#define PB_PLAN_OUT_H
/* What becomes of computed tiles on a device that has decoded their blocks (pipeline/run/whole):
 * which products' blocks are made there, which planes go to the host, and the memory of all that.
 * A row of tiles (a strip) stays on the device until everything is made of it. Overviews are made
 * of it row by row: each level has the rows of a row of its blocks. Arithmetic; any thread. */
#include "pipeline/cog/device_blocks.h"
#include "kernels/tile_slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_plan;
struct pb_plan_request;

enum {
    PB_OUT_PRODUCTS = 64, /* of a pipeline that are looked at; those behind are the host's */
    PB_OUT_MADE = 16,     /* products that are made on a device */
    PB_OUT_BATCHES = 3,   /* batches of blocks between the encoder and the host */
    PB_OUT_LEVELS = 32,
    PB_OUT_SIZES = 3,         /* ways to use the device's memory */
    PB_BLOCK_SLOT_HEAD = 4096 /* of a result slot with blocks (run/stream/block_slot.h) */
};

/* A product that is made on the device. */
struct pb_plan_made {
    uint32_t product;               /* of the pipeline */
    uint32_t first_plane, n_planes; /* of tiles; format.plane counts from the first */
    struct pb_device_blocks blocks;
    uint32_t row_blocks; /* that a row of tiles can complete, of all levels */
    uint32_t batch[2];   /* blocks that are encoded at once: of values, of masks */
};

struct pb_plan_out {
    uint32_t n;
    struct pb_plan_made made[PB_OUT_MADE];
    uint64_t by_device;               /* bit i: product i is made there */
    const char *why[PB_OUT_PRODUCTS]; /* why product i is not; static; NULL: it is, or needs no
                                         pixels */
    uint64_t why_bytes;               /* compute.device_memory that would do; 0: not the reason */
    uint64_t host_planes;             /* bit p: plane p of tiles goes to the host */
    uint64_t reduced;    /* of an earlier pass, bit i: its reduction i is found there */
    uint32_t size;       /* below PB_OUT_SIZES: how much memory is used for it */
    uint32_t strips;     /* rows of tiles that are there at a time; 0: none */
    uint64_t tile_bytes; /* of a tile's planes in a strip */
    uint64_t workspace_bytes, encoded_bytes; /* of a batch */
    uint32_t batch_most;                     /* blocks of any batch */
    uint64_t device_bytes;                   /* of all that */
    uint64_t room_bytes; /* of the host, for finished blocks: what compute.memory has left */
    uint64_t most_bytes; /* that finished blocks of all products can take */
    uint64_t slot_bytes; /* that a slot of results has at least */
};

/* Rows of a level's blocks that are on the device. */
struct pb_out_level {
    int32_t w, h;    /* of the level */
    int32_t rows;    /* that are there: of a row of blocks, or of more */
    uint32_t row_px; /* from row to row */
    uint64_t plane_px;
};

/* Fills plan->out. After plan->whole is known. */
void pb_plan_out(struct pb_plan *plan, const struct pb_plan_request *request);
/* level: from 1. */
struct pb_out_level pb_plan_out_level(const struct pb_plan *plan, const struct pb_plan_made *made,
                                      uint32_t level);
/* Whether blocks of that level are made; 0: the image. */
bool pb_plan_out_makes(const struct pb_plan_made *made, uint32_t level);
/* The format of its blocks or, layer 1, of their masks. */
struct pb_encode_format pb_plan_out_format(const struct pb_plan_made *made, uint32_t layer);
/* Whether tiles go to the host: with planes, or to be counted. */
bool pb_plan_out_has_planes(const struct pb_plan *plan);
/* Whether reduction i of an earlier pass is found on the device. */
bool pb_plan_out_reduces(const struct pb_plan *plan, size_t i);
bool pb_plan_out_has_plane(const struct pb_plan *plan, uint32_t plane);
#endif
