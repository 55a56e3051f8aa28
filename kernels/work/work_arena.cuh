// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_WORK_ARENA_CUH
#define PB_WORK_ARENA_CUH
// What a worker's tasks share: its memory, and what it tells the host.
#include "kernels/work/work.h"

#include "kernels/codec/encode_stages.cuh"
#include "kernels/codec/inflate.cuh"
#include "kernels/codec/lzw.cuh"
#include "wic/depend/ready.cuh"

// A task is a function of its own, whatever kernel calls it: compiled once, and by itself.
#ifdef __CUDACC__
#define PB_WORK_TASK __device__ __noinline__
#else
#define PB_WORK_TASK inline
#endif

namespace pb_work
{
constexpr uint32_t THREADS = PB_WORK_THREADS, WARPS = THREADS / 32;
constexpr uint32_t PACKERS = 192; // threads that pack a chunk: what more would take has no room

// Of a stage at a time: a task's threads have left it when the next one is taken.
union stage_memory {
    pb_inflate::arena<pb_inflate::standard> inflate;
    pb_lzw::arena<pb_lzw::standard> lzw;
    pb_device::stage_rows<PB_F64>::arena rows[THREADS / pb_device::stage_rows<PB_F64>::THREADS];
    pb_device::strings_arena strings;
    pb_device::deflate_count_arena<THREADS> count;
    pb_device::deflate_codes_arena codes[WARPS];
    pb_device::deflate_pack_arena<PACKERS> pack;
    uint4 chain[1];
    __device__ stage_memory()
    {
    }
};

struct arena {
    stage_memory stage;
    wic_seats seats;
    uint32_t flag;
};

static_assert(sizeof(arena) <= (228 << 10) / 4 - 1024, "four workers on a multiprocessor of sm_90");

// A record for the host. One thread, after its group has met behind what it tells of.
inline __device__ void tell(const pb_work_view &view, const pb_work_record &record)
{
    const uint64_t i = wic_count_long(view.records_taken, 1);
    if (i >= view.n_records) {
        return;
    }
    pb_work_record *const to = &view.records[i];
    to->encoded = record.encoded;
    to->number = record.number;
    to->status = record.status;
    wic_word_post_host(&to->event, record.event);
}

// A block is done, whatever came of it. One thread; the last one ends the run.
inline __device__ void finish_block(const pb_work_view &view, uint32_t block)
{
    pb_work_record record = {};
    record.encoded = view.encode.batch.encoded[block];
    record.number = block;
    record.event = PB_WORK_BLOCK;
    tell(view, record);
    if (wic_arrive(view.blocks_done, view.encode.batch.n_blocks)) {
        wic_stop(view.ready, WIC_READY_DONE);
    }
}

// The pixels of a block are complete. One thread.
inline __device__ void complete(const pb_work_view &view, uint32_t block)
{
    wic_push(view.ready, PB_WORK_ROWS, block * view.row_parts, view.row_parts);
    if (view.blocks[block].parent != PB_WORK_NONE) {
        wic_push(view.ready, PB_WORK_HALVE, block, 1);
    }
}

// One part of a block's pixels is there. One thread, after its group has met.
inline __device__ void arrive_pixels(const pb_work_view &view, uint32_t block)
{
    if (wic_arrive(&view.counts[block].pixels, view.blocks[block].need)) {
        complete(view, block);
    }
}
} // namespace pb_work
#endif
