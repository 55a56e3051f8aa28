// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_ENCODE_STAGES_CUH
#define PB_ENCODE_STAGES_CUH
// The stages of a batch, each a kernel: how many blocks of how many threads, with what in shared
// memory, and what block i does. One after the other; within a stage blocks do not depend on each
// other. A worker that lives longer than a kernel calls what run() calls, with a thread group of
// its own.
#include "kernels/codec/deflate_codes.cuh"
#include "kernels/codec/deflate_count.cuh"
#include "kernels/codec/deflate_pack.cuh"
#include "kernels/codec/deflate_pairs.cuh"
#include "kernels/codec/deflate_place.cuh"
#include "kernels/codec/deflate_planes.cuh"
#include "kernels/codec/deflate_strings.cuh"
#include "kernels/codec/encode_rows.cuh"
#include "kernels/thread_group.cuh"

namespace pb_device
{
inline __host__ __device__ uint32_t blocks_for(uint32_t tasks, uint32_t per_block)
{
    return (tasks + per_block - 1) / per_block;
}

struct no_arena {
};

// What is added to later is cleared.
struct stage_begin {
    static constexpr uint32_t THREADS = 256;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks, THREADS);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t i = index * THREADS + group.thread;
        if (i < view.batch.n_blocks) {
            view.batch.encoded[i] = {};
        }
        if (i < view.batch.n_blocks && view.windows > 0) {
            view.strings[i] = {};
        }
        if (i == 0) {
            *view.batch.used = 0;
        }
    }
};

template <pb_type TYPE> struct stage_rows {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    struct arena {
        alignas(16) uint8_t row[WARPS][ROW_ARENA_BYTES];
    };
    static uint32_t blocks(const pb_encode_view &view)
    {
        const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
        return blocks_for(view.batch.n_blocks * rows, WARPS);
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t warp = group.thread / 32, task = index * WARPS + warp;
        if (task < view.batch.n_blocks * static_cast<uint32_t>(view.batch.format.block_px)) {
            pb_encode_row<TYPE>(view, arena.row[warp], task, group.thread % 32);
        }
    }
};

struct stage_mask_rows {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return stage_rows<PB_U8>::blocks(view);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t task = index * WARPS + group.thread / 32;
        if (task < view.batch.n_blocks * static_cast<uint32_t>(view.batch.format.block_px)) {
            pb_encode_mask_row(view, task, group.thread % 32);
        }
    }
};

struct stage_strings {
    static constexpr uint32_t THREADS = 128;
    using arena = strings_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return view.batch.n_blocks * view.windows;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        pb_encode_strings(view, arena, index, group);
    }
};

struct stage_pairs_find {
    static constexpr uint32_t THREADS = 32;
    using arena = pairs_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return view.batch.n_blocks * view.chunks;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const encode_chunk chunk = chunk_of(view, index);
        if (is_pairs(view, chunk.block)) {
            pb_pairs_find(view, chunk, arena, group.thread);
        }
    }
};

struct stage_pairs_parse {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks * view.chunks, WARPS);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t i = index * WARPS + group.thread / 32;
        if (i >= view.batch.n_blocks * view.chunks) {
            return;
        }
        const encode_chunk chunk = chunk_of(view, i);
        if (is_pairs(view, chunk.block)) {
            pb_pairs_parse(view, chunk, group.thread % 32);
        }
    }
};

struct stage_planes_count {
    static constexpr uint32_t THREADS = PLANES_THREADS;
    using arena = planes_count_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return view.batch.n_blocks;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        pb_planes_count(view, arena, index, group);
    }
};

struct stage_planes_code {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    struct arena {
        planes_code_arena warp[WARPS];
    };
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks, WARPS);
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t warp = group.thread / 32, i = index * WARPS + warp;
        if (i < view.batch.n_blocks) {
            pb_planes_code(view, arena.warp[warp], i, group.thread % 32);
        }
    }
};

struct stage_planes_measure {
    static constexpr uint32_t THREADS = PLANES_THREADS;
    using arena = planes_rows_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
        return view.batch.n_blocks * (rows / PLANES_ROWS);
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        pb_planes_measure(view, arena, index, group);
    }
};

struct stage_planes_place {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks, WARPS);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t i = index * WARPS + group.thread / 32;
        if (i < view.batch.n_blocks) {
            pb_planes_place(view, i, group.thread % 32);
        }
    }
};

struct stage_planes_clear {
    static constexpr uint32_t THREADS = 128;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
        return blocks_for(view.batch.n_blocks * rows, THREADS);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
        const uint32_t i = index * THREADS + group.thread;
        if (i < view.batch.n_blocks * rows) {
            pb_planes_clear(view, i / rows, i % rows);
        }
    }
};

struct stage_planes_pack {
    static constexpr uint32_t THREADS = PLANES_THREADS;
    using arena = planes_pack_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return stage_planes_measure::blocks(view);
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        pb_planes_pack(view, arena, index, group);
    }
};

constexpr uint32_t CHUNK_THREADS = 128; // that share a chunk, where a kernel does it

template <uint32_t N> struct stage_count {
    static constexpr uint32_t THREADS = N;
    using arena = deflate_count_arena<THREADS>;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return view.batch.n_blocks * view.chunks;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const encode_chunk chunk = chunk_of(view, index);
        if (is_pairs(view, chunk.block)) {
            pb_pairs_count<THREADS>(view, chunk, arena, &view.sums[index], group);
        } else if (has_codes(view, chunk.block)) {
            pb_deflate_count<THREADS>(chunk, arena, &view.sums[index], group);
        }
    }
};

struct stage_codes {
    static constexpr uint32_t THREADS = 128, WARPS = THREADS / 32;
    struct arena {
        deflate_codes_arena warp[WARPS];
    };
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks * view.chunks, WARPS);
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t warp = group.thread / 32, i = index * WARPS + warp;
        if (i >= view.batch.n_blocks * view.chunks) {
            return;
        }
        const encode_chunk chunk = chunk_of(view, i);
        if (has_codes(view, chunk.block)) {
            pb_deflate_codes(chunk, view.sums[i],
                             is_pairs(view, chunk.block) ? &view.distances[i] : nullptr,
                             arena.warp[warp], &view.code[i], group.thread % 32);
        }
    }
};

struct stage_size {
    static constexpr uint32_t THREADS = 64;
    using arena = no_arena;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return blocks_for(view.batch.n_blocks, THREADS);
    }
    static __device__ void run(const pb_encode_view &view, arena &, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t i = index * THREADS + group.thread;
        if (i < view.batch.n_blocks) {
            pb_deflate_size(view, i);
        }
    }
};

struct stage_place {
    static constexpr uint32_t THREADS = 512;
    struct arena {
        uint64_t sums[THREADS / 32];
    };
    static uint32_t blocks(const pb_encode_view &)
    {
        return 1;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t,
                               const pb_block_group &group)
    {
        pb_deflate_place(view, arena.sums, group);
    }
};

template <uint32_t N> struct stage_pack {
    static constexpr uint32_t THREADS = N;
    using arena = deflate_pack_arena<THREADS>;
    static uint32_t blocks(const pb_encode_view &view)
    {
        return view.batch.n_blocks * view.chunks;
    }
    static __device__ void run(const pb_encode_view &view, arena &arena, uint32_t index,
                               const pb_block_group &group)
    {
        const uint32_t block = index / view.chunks;
        if (view.batch.encoded[block].state != PB_ENCODED || is_planes(view, block)) {
            return;
        }
        if (is_pairs(view, block)) {
            pb_deflate_pack<THREADS>(view, index, arena, pairs_taken{view}, group);
        } else {
            pb_deflate_pack<THREADS>(view, index, arena, runs_taken{}, group);
        }
    }
};

// Calls launch(stage) with the stage that makes the batch's rows.
template <class Launch> void launch_rows(const pb_encode_view &view, Launch &&launch)
{
    if (view.batch.format.mask) {
        launch(stage_mask_rows{});
        return;
    }
    switch (view.batch.format.quantizer.type) {
    case PB_U8:
        launch(stage_rows<PB_U8>{});
        break;
    case PB_I16:
        launch(stage_rows<PB_I16>{});
        break;
    case PB_U16:
        launch(stage_rows<PB_U16>{});
        break;
    case PB_I32:
        launch(stage_rows<PB_I32>{});
        break;
    case PB_U32:
        launch(stage_rows<PB_U32>{});
        break;
    case PB_F32:
        launch(stage_rows<PB_F32>{});
        break;
    case PB_F64:
    case PB_TYPE_COUNT:
        launch(stage_rows<PB_F64>{});
        break;
    }
}
} // namespace pb_device

// Calls launch(stage) for all stages of a batch, in order; THREADS share a chunk.
template <uint32_t THREADS = pb_device::CHUNK_THREADS, class Launch>
void pb_encode_stages(const pb_encode_view &view, Launch &&launch)
{
    using namespace pb_device;
    launch(stage_begin{});
    launch_rows(view, launch);
    if (view.windows > 0) {
        launch(stage_strings{});
    }
    if (view.groups > 0) {
        launch(stage_pairs_find{});
        launch(stage_pairs_parse{});
    }
    if (view.row_bytes > 0) {
        launch(stage_planes_count{});
        launch(stage_planes_code{});
        launch(stage_planes_measure{});
        launch(stage_planes_place{});
    }
    if (view.chunks > 0) {
        launch(stage_count<THREADS>{});
        launch(stage_codes{});
    }
    launch(stage_size{});
    if (view.chunks > 0) {
        launch(stage_place{});
        launch(stage_pack<THREADS>{});
    }
    if (view.row_bytes > 0) {
        launch(stage_planes_clear{});
        launch(stage_planes_pack{});
    }
}
#endif
