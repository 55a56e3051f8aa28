/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TRANSFER_PLAN_H
#define WIC_TRANSFER_PLAN_H
/* The transfer plan: in what pieces, how many at a time and by which transport tiles reach the
 * warps that work on them. Chosen by a table of measurements per GPU model (transfer_plan.c); a
 * model that was not measured uses the row of its architecture. Pure arithmetic; wic_link_why has
 * the words for a failure. Thread: any. */
#include "wic/device/tiles.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_PLAN_DEPTH_MAX 5u   /* three barriers a stage, 15 named barriers a block */
#define WIC_PLAN_USER_MAX  128u /* bytes of a tile that travel beside its payload */
#define WIC_STAGES_OFFSET                                                                          \
    1152u                    /* of a block's shared memory: barriers and what the stages hold      \
                              */
#define WIC_SERVICE_WARPS 3u /* of a block: Activator, Publisher, Monitor (idle in all but one) */

/* The transport of a tile. The first three pull pieces from the host's slot into shared memory, the
 * others leave the tile where the whole device can read it. A plan that pulls may have tiles go by
 * copy engine while many are queued (engine_backlog). */
enum wic_transport {
    WIC_PULL_BULK,  /* bulk asynchronous copies from pinned memory; sm_90 and later */
    WIC_PULL_ASYNC, /* cp.async by the service warp; sm_80 and later */
    WIC_PULL_LOADS, /* loads by the service warp */
    WIC_COPY,       /* copy engines bring tiles to device memory and results back */
    WIC_IN_PLACE,   /* the device reads and writes the slots where they are: integrated GPUs, and
                       managed memory that stays at the host */
};

enum wic_results {
    WIC_PUSH_BULK,   /* left in shared memory, taken to pinned memory by bulk copies (before sm_90:
                        stores by one warp) */
    WIC_PUSH_STORES, /* stored to pinned memory by the working warps: coalesced, 16 bytes a thread,
                        each byte once, or it is slow */
};

/* The properties of a GPU that the plan depends on. */
struct wic_gpu {
    char name[64];
    int32_t compute; /* 90 for 9.0 */
    uint32_t multiprocessors;
    uint32_t shared_bytes;       /* of a multiprocessor */
    uint32_t shared_block_bytes; /* of a block, at most */
};

/* The shape of a tile: a unit is the input and output of one step of the work, a pixel with all its
 * bands or a line of pixels. */
struct wic_tile_shape {
    size_t slot_bytes; /* of a full tile's input */
    uint32_t in_unit;  /* bytes, 1 to 256 KiB */
    uint32_t out_unit; /* bytes; 0: results of a piece do not lie together, the work finds their
                          places itself */
};

/* The resources that the work needs of a block, besides the pieces. */
struct wic_work {
    uint32_t warps;        /* 0: as many as the table says */
    uint32_t shared_bytes; /* of its own */
    uint32_t user_bytes;   /* of the tile's user bytes, up to WIC_PLAN_USER_MAX; multiple of 16 */
    uint32_t blocks;       /* of a multiprocessor, if they fit; 0: as many as the table says */
};

/* What a plan that pulls is made from: a row of the built-in table, or what was measured
 * (wic/device/tune.h). A plan has less of it where the tile is small or the device has no room. */
struct wic_transfer_row {
    uint32_t piece;  /* bytes of input, about; up to 256 KiB */
    uint32_t depth;  /* 1 .. WIC_PLAN_DEPTH_MAX */
    uint32_t blocks; /* percent of the multiprocessors; over 100, several each; up to 3200 */
    uint32_t warps;  /* of a block that work */
    enum wic_results results;
    uint32_t link_bytes; /* that cross the link at a time; with many more it gets slower */
    uint32_t backlog;    /* engine_backlog of the plan */
};

struct wic_transfer_plan {
    enum wic_transport transport;
    enum wic_results results;
    uint32_t in_unit, out_unit;   /* bytes; 0: not pulled, or not together */
    uint32_t piece_units;         /* of a full piece */
    uint32_t in_piece, out_piece; /* its bytes, multiples of 16 */
    uint32_t pieces;              /* of a full tile */
    uint32_t depth;               /* pieces that a block has under way */
    uint32_t blocks;
    uint32_t pulls; /* pieces that cross the link at a time, of all blocks; 1 .. blocks */
    /* Input bytes under way from which on tiles go by copy engine, many with one copy, instead of
     * being pulled: more throughput, more latency. 0: never. Not for managed slots. */
    size_t engine_backlog;
    uint32_t warps; /* of a block that work, beside WIC_SERVICE_WARPS */
    uint32_t work_bytes, user_bytes;
    enum wic_tile_order order; /* the first one, except for wic_transfer_plan_tiles */
    uint32_t batch;            /* tiles that an engine copies at a time; 0: no engine */
};

/* For work whose units stand alone (no halo): a plan that pulls. work may be NULL. -EINVAL: the
 * shape is empty or over 2 GiB, or out of the bounds above; -ENODEV: the GPU is older than sm_75;
 * -E2BIG: not even the smallest piece fits into its shared memory. */
int wic_transfer_plan_choose(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                             const struct wic_work *work, struct wic_transfer_plan *out_plan);

/* The same by a given row; -EINVAL also when that is not valid. */
int wic_transfer_plan_by(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                         const struct wic_work *work, const struct wic_transfer_row *row,
                         struct wic_transfer_plan *out_plan);
/* The row of the built-in table for tiles of so many bytes; -ENODEV as above. */
int wic_transfer_row_find(const struct wic_gpu *gpu, size_t tile_bytes,
                          struct wic_transfer_row *out_row);
/* Whether all its numbers are within their bounds. */
bool wic_transfer_row_is_valid(const struct wic_transfer_row *row);

/* For work that sees whole tiles, in device memory or a managed slot, `units` in a full one: each
 * unit is a piece. transport: one of those that do not pull. Errors as above. */
int wic_transfer_plan_whole(const struct wic_gpu *gpu, enum wic_transport transport, uint32_t units,
                            const struct wic_work *work, struct wic_transfer_plan *out_plan);

/* The place and order in which the tiles of a frame, which have a halo, reach workers. */
struct wic_tile_way {
    enum wic_transport transport; /* WIC_COPY: engines copy the frame to device memory;
                                     WIC_PULL_LOADS: workers load a tile and its halo into shared
                                     memory; WIC_IN_PLACE: workers read where the frame is */
    enum wic_tile_order order;
    uint32_t batch; /* WIC_COPY: tiles of a copy, 1 .. those of the grid; else 0 */
};

/* For workers that take the tiles of a grid (wic/depend): a tile is a piece. Errors as above. */
int wic_transfer_plan_tiles(const struct wic_gpu *gpu, const struct wic_tile_way *way,
                            const struct wic_tile_grid *grid, const struct wic_work *work,
                            struct wic_transfer_plan *out_plan);

/* Shared memory that a block of this plan takes. */
uint32_t wic_transfer_plan_shared_bytes(const struct wic_transfer_plan *plan);

/* "pull by bulk copy, pieces of 16384 bytes, 2 deep, 132 blocks of 16 + 3 warps, 33920 bytes shared
 * memory each": for people. Returns what snprintf would. */
int wic_transfer_plan_print(const struct wic_transfer_plan *plan, char *text, size_t bytes);
const char *wic_transport_name(enum wic_transport transport);

#ifdef __cplusplus
}
#endif
#endif
