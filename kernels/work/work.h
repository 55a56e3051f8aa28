/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_H
#define PB_WORK_H
/* From stored blocks to encoded ones by the workers of one resident kernel, joined tile by tile: a
 * worker takes whatever task is ready, later stages first, and who brings what a task needs to full
 * pushes it. No kernel is launched and the host is not asked between a block's arrival and its
 * result.
 *
 *   piece  a stored block of the input
 *   tile   a block of the product at full resolution: float32 planes that the chain makes
 *   block  a block of the product at any level, tiles first, then level by level
 *
 * All memory is the device's unless said otherwise. Tables are read-only while the kernel runs;
 * counters start at zero and are never reset: a later run over the same tables goes on with them.
 * Plain data, passed to the kernel by value. C11 and C++17. */
#include "kernels/chain/chain_device.h"
#include "kernels/codec/decode_device.h"
#include "kernels/codec/encode_batch.h"
#include "kernels/codec/halve_device.h"
#include "kernels/codec/unpredict_device.h"
#include "kernels/view.h"
#include "wic/depend/ready.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_WORK_THREADS PB_DECODE_THREADS
#define PB_WORK_NONE    0xffffffffu

/* The rings of ready tasks, the most urgent first. */
enum pb_work_stage {
    PB_WORK_PACK,    /* chunk: block * chunks + chunk; the last one of a block delivers it */
    PB_WORK_COUNT,   /* block * groups + group of chunks: symbols, codes */
    PB_WORK_STRINGS, /* block * windows + window */
    PB_WORK_ROWS,    /* block * row_parts + part: quantized and predicted */
    PB_WORK_HALVE,   /* block: into its quarter of its parent */
    PB_WORK_PIXELS,  /* tile * parts + part: the chain */
    PB_WORK_OPEN,    /* piece: of a decoded one, pixels into planes. Pushed by the host for what it
                        has decoded itself */
    PB_WORK_DECODE,  /* piece, then as OPEN. Pushed by the host behind the stored bytes */
    PB_WORK_STAGES
};

struct pb_work_piece {
    struct pb_decode_stream stream;  /* of a stored one only `in` and its bytes */
    struct pb_unpredict_block block; /* its `in` is the stream's `out`, or where stored bytes lie */
    uint32_t codec;                  /* enum pb_device_codec */
    uint32_t form;
    uint32_t first_tile, n_tiles; /* in the view's list: tiles that read some of its pixels */
};

struct pb_work_block {
    struct pb_halve_part halve; /* into the parent */
    uint32_t parent;            /* PB_WORK_NONE: there is no coarser level */
    uint32_t need; /* arrivals that complete its pixels: parts of a tile, or its children */
};

/* What of a block has arrived. */
struct pb_work_counts {
    uint32_t pixels, rows, windows, groups, chunks;
};

enum pb_work_event { PB_WORK_BLOCK = 1, PB_WORK_REFUSED = 2 };

/* What the host gets told, in the order in which it happens. */
struct pb_work_record {
    struct pb_encoded encoded; /* of a BLOCK; the bytes of an ENCODED one are in out_host */
    uint32_t number;           /* of the block, or of the piece */
    uint32_t status;           /* of a REFUSED piece, enum pb_decode_status */
    uint32_t event;            /* written last; 0: not yet */
};

/* What workers did with their time. */
struct pb_work_spent {
    uint64_t ns[PB_WORK_STAGES], tasks[PB_WORK_STAGES];
    uint64_t parked_ns; /* from a task's end until the next one was there */
};

struct pb_work_view {
    struct wic_ready ready;
    const struct pb_work_piece *pieces;
    struct pb_decode_result *results;      /* of each piece */
    const struct pb_unpredict_form *forms; /* by number */
    const uint32_t *piece_tiles;
    const struct pb_tile_in *tile_in; /* of each tile */
    const uint32_t *tile_needs;       /* pieces, of each tile; not 0 */
    uint32_t *tile_counts;
    struct pb_chain_device chain;
    float *scratch; /* of worker w at w * scratch_px */
    size_t scratch_px, scratch_plane_px;
    float *tile_out; /* planes of tile t at t * tile_out_px, rows as wide as its core */
    size_t tile_out_px, tile_plane_px;
    uint32_t parts, part_rows;
    const struct pb_work_block *blocks;
    struct pb_work_counts *counts;
    struct pb_encode_view encode; /* all blocks, one batch */
    uint32_t n_planes;            /* to halve */
    uint32_t row_parts, groups, group_chunks;
    bool nearest;
    uint32_t *blocks_done;          /* a counter */
    uint8_t *out_host;              /* pinned; as long as encode.batch.out, or NULL: bytes stay */
    struct pb_work_record *records; /* pinned, n_records of them */
    uint64_t *records_taken;        /* one; zero at the start of a run */
    uint32_t n_records;             /* as many as blocks and pieces */
    uint64_t limit_ns;              /* of one piece's decoding; 0 = 10 s */
    struct pb_work_spent *spent;    /* NULL, or one: added up over all workers */
};

/* Fills in what follows from encode and `part_rows`: parts, row_parts, groups, group_chunks. */
void pb_work_divide(struct pb_work_view *view);
/* How many tasks each ring may hold at a time, n_pieces and n_tiles given. */
void pb_work_tasks(const struct pb_work_view *view, uint32_t n_pieces, uint32_t n_tiles,
                   uint32_t out_most[WIC_READY_RINGS]);

/* CUDA builds only. px: as pb_chain_block_measure says for PB_WORK_THREADS and at most
 * pb_work_chain_shared() bytes. Workers that are resident together on the current device, each a
 * thread block; 0, -EOPNOTSUPP: none fits. */
int pb_work_residents(int px, uint32_t *out_workers);
uint32_t pb_work_chain_shared(void);
/* Queues the kernel on stream (a cudaStream_t). It leaves by itself when all blocks are done, when
 * the stop word is written, or when it finds nothing to do for ready.limit_ns. workers: any number
 * makes all of it; more than are resident are of no use. 0, -EINVAL, -EIO. */
int pb_work_launch(const struct pb_work_view *view, int px, uint32_t workers, void *stream);

#ifdef __cplusplus
}
#endif
#endif
