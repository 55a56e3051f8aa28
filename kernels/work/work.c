/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/work/work.h"

/* A warp makes the codes of a chunk, so a task has as many chunks as a worker has warps. Rows are
 * cut so that a task of them is as long as one of the chain. */
enum { GROUP_CHUNKS = PB_WORK_THREADS / 32, ROWS_EACH = 64 };

static uint32_t parts_of(uint32_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

void pb_work_divide(struct pb_work_view *view)
{
    const uint32_t side = (uint32_t)view->encode.batch.format.block_px;
    const uint32_t groups = parts_of(view->encode.chunks, GROUP_CHUNKS);
    view->parts = parts_of(side, view->part_rows);
    view->row_parts = parts_of(side, ROWS_EACH);
    view->groups = groups;
    view->group_chunks = groups > 0 ? parts_of(view->encode.chunks, groups) : 0;
}

void pb_work_tasks(const struct pb_work_view *view, uint32_t n_pieces, uint32_t n_tiles,
                   uint32_t out_most[WIC_READY_RINGS])
{
    const uint32_t n_blocks = view->encode.batch.n_blocks;
    out_most[PB_WORK_PACK] = n_blocks * view->encode.chunks;
    out_most[PB_WORK_COUNT] = n_blocks * view->groups;
    out_most[PB_WORK_STRINGS] = n_blocks * view->encode.windows;
    out_most[PB_WORK_ROWS] = n_blocks * view->row_parts;
    out_most[PB_WORK_HALVE] = n_blocks;
    out_most[PB_WORK_PIXELS] = n_tiles * view->parts;
    out_most[PB_WORK_OPEN] = n_pieces;
    out_most[PB_WORK_DECODE] = n_pieces;
}
