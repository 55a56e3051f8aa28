// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_WORK_OUTPUT_CUH
#define PB_WORK_OUTPUT_CUH
// The tasks from the pixels of a block to its encoded bytes in the host's memory. The stages are
// those of encode_stages.cuh; here a block goes from one to the next by itself.
#include "kernels/work/work_arena.cuh"

namespace pb_work
{
inline __device__ void push_groups(const pb_work_view &view, uint32_t block)
{
    wic_push(view.ready, PB_WORK_COUNT, block * view.groups, view.groups);
}

// A block that stays as it is before compression, for the host to encode. One thread.
inline __device__ void leave_raw(const pb_work_view &view, uint32_t block)
{
    pb_deflate_size(view.encode, block); // says which state
    finish_block(view, block);
}

template <class Group>
PB_WORK_TASK void make_rows(const pb_work_view &view, arena &mine, uint32_t task, Group group)
{
    const pb_encode_view &encode = view.encode;
    const uint32_t block = task / view.row_parts, part = task % view.row_parts;
    const auto side = static_cast<uint32_t>(encode.batch.format.block_px);
    pb_device::launch_rows(encode, [&](auto stage) {
        using Stage = decltype(stage); // of fewer threads than a worker has
        constexpr uint32_t AT_ONCE = THREADS / Stage::THREADS;
        const uint32_t each = side / Stage::WARPS, half = group.thread / Stage::THREADS;
        const uint32_t from = each * part / view.row_parts, to = each * (part + 1) / view.row_parts;
        auto *const memory = reinterpret_cast<typename Stage::arena *>(&mine.stage);
        for (uint32_t i = from + half; i < to; i += AT_ONCE) {
            Stage::run(encode, memory[half], block * each + i,
                       {group.thread % Stage::THREADS, Stage::THREADS});
        }
    });
    group.sync();
    if (group.thread != 0 || !wic_arrive(&view.counts[block].rows, view.row_parts)) {
        return;
    }
    if (encode.chunks == 0) {
        leave_raw(view, block);
    } else if (encode.windows > 0) {
        wic_push(view.ready, PB_WORK_STRINGS, block * encode.windows, encode.windows);
    } else {
        push_groups(view, block);
    }
}

template <class Group>
PB_WORK_TASK void look_for_strings(const pb_work_view &view, arena &mine, uint32_t task,
                                   Group group)
{
    const uint32_t block = task / view.encode.windows;
    pb_encode_strings(view.encode, mine.stage.strings, task, group);
    group.sync();
    if (group.thread != 0 || !wic_arrive(&view.counts[block].windows, view.encode.windows)) {
        return;
    }
    if (pb_device::has_strings(view.encode, block)) {
        leave_raw(view, block);
    } else {
        push_groups(view, block);
    }
}

// All codes of a block are there: its size, and its place behind what was placed before. One
// thread.
inline __device__ void place(const pb_work_view &view, uint32_t block)
{
    const pb_encode_view &encode = view.encode;
    pb_deflate_size(encode, block);
    const uint64_t before =
        wic_count_long(encode.batch.used, pb_device::taken_by(encode.batch.encoded[block].bytes));
    pb_device::place_block(encode, block, before);
    if (encode.batch.encoded[block].state == PB_ENCODED) {
        wic_push(view.ready, PB_WORK_PACK, block * encode.chunks, encode.chunks);
    } else {
        finish_block(view, block);
    }
}

template <class Group>
PB_WORK_TASK void count_group(const pb_work_view &view, arena &mine, uint32_t task, Group group)
{
    const pb_encode_view &encode = view.encode;
    const uint32_t block = task / view.groups, warp = group.thread / 32;
    const uint32_t first = task % view.groups * view.group_chunks;
    const uint32_t left = encode.chunks - first;
    const uint32_t n = left < view.group_chunks ? left : view.group_chunks;
    const uint32_t at = block * encode.chunks + first;
    for (uint32_t i = 0; i < n; i++) {
        pb_deflate_count<THREADS>(pb_device::chunk_of(encode, at + i), mine.stage.count,
                                  &encode.sums[at + i], group);
        group.sync();
    }
    if (warp < n) {
        pb_deflate_codes(pb_device::chunk_of(encode, at + warp), encode.sums[at + warp],
                         mine.stage.codes[warp], &encode.code[at + warp], group.thread % 32);
    }
    group.sync();
    if (group.thread == 0 && wic_arrive(&view.counts[block].groups, view.groups)) {
        place(view, block);
    }
}

// The bytes of a block, in whole words, to the same place in the host's memory.
template <class Group>
__device__ void deliver(const pb_work_view &view, uint32_t block, const Group &group)
{
    const pb_encoded &encoded = view.encode.batch.encoded[block];
    if (view.out_host != nullptr) {
        const auto *const from =
            reinterpret_cast<const uint4 *>(view.encode.batch.out + encoded.at);
        auto *const to = reinterpret_cast<uint4 *>(view.out_host + encoded.at);
        const uint32_t n = (encoded.bytes + 15) / 16;
        for (uint32_t i = group.thread; i < n; i += THREADS) {
            to[i] = from[i];
        }
    }
    group.sync();
    if (group.thread == 0) {
        finish_block(view, block);
    }
}

template <class Group>
PB_WORK_TASK void pack_chunk(const pb_work_view &view, arena &mine, uint32_t task, Group group)
{
    const uint32_t block = task / view.encode.chunks;
    pb_codec_part packers;
    packers.thread = group.thread;
    packers.threads = PACKERS;
    if (group.thread < PACKERS) {
        pb_deflate_pack<PACKERS>(view.encode, task, mine.stage.pack, packers);
    }
    if (wic_arrive_all(&view.counts[block].chunks, view.encode.chunks, &mine.flag, group)) {
        deliver(view, block, group);
    }
}
} // namespace pb_work
#endif
