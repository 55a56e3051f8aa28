// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CHAIN_SUMS_CUH
#define PB_CHAIN_SUMS_CUH
// A part of a tile, summed up by a group of threads of one block (kernels/thread_group.cuh): the
// chain makes its outputs for the part (kernels/chain/chain_block.cuh) in the block's scratch, then
// its pixels are added up in shared memory, in integers, so that the order of threads does not
// matter.
#include "kernels/chain/chain_block.cuh"
#include "kernels/chain/chain_sums.h"
#include "kernels/chain/chain_sums_device.h"
#include "kernels/reduce/cluster_sums.h"
#include "kernels/tile_slot.h"

// What a block works with.
struct pb_chain_sums_block {
    const pb_chain_device &chain; // its code is not run, but the block's own
    const pb_chain_sums_device &sums;
    const pb_chain_sums_scratch &places;
    unsigned char *scratch;
    size_t plane_px;
    void *shared;
};

namespace pb_device
{
inline __device__ pb_instr *own_code(const pb_chain_sums_block &block)
{
    return reinterpret_cast<pb_instr *>(block.scratch + block.places.code);
}

// The pixels of one reduction, into `sum` in shared memory, which is all zero.
template <class Group>
__device__ void add_pixels(const pb_chain_sums_of &of, const float *outputs, size_t out_px,
                           uint32_t n, int32_t *sum, const Group &group)
{
    const float *const number = outputs + of.output[0] * out_px;
    for (uint32_t p = group.thread; p < n; p += group.threads) {
        const float x = number[p];
        if (!(x >= 1.0f && x <= static_cast<float>(of.classes))) {
            continue;
        }
        const uint32_t c = static_cast<uint32_t>(x) - 1;
        atomicAdd(&sum[c], 1);
        for (uint32_t b = 0; b < of.bands; b++) {
            const pb_cluster_digits digits =
                pb_cluster_digits_of(outputs[of.output[1 + b] * out_px + p]);
            const uint32_t centre = b * of.classes + c;
            for (uint32_t i = 0; i < 3; i++) {
                if (digits.digit[i] != 0) {
                    atomicAdd(
                        &sum[pb_cluster_sums_at(of.classes, of.bands, digits.limb + i, centre)],
                        digits.digit[i]);
                }
            }
        }
    }
}
} // namespace pb_device

// Before the first part of a round: the block's code gets the numbers, which lie behind `head`.
// Every thread of the group calls it; a barrier follows.
template <class Group>
__device__ void pb_chain_sums_begin(const pb_chain_sums_block &block, const pb_slot_head *head,
                                    const Group &group)
{
    const auto *const numbers = reinterpret_cast<const float *>(head + 1);
    const auto *const from = reinterpret_cast<const uint4 *>(block.chain.code);
    auto *const to = reinterpret_cast<uint4 *>(pb_device::own_code(block));
    for (uint32_t i = group.thread; i < block.sums.sums.n_code; i += group.threads) {
        to[i] = from[i];
    }
    group.sync();
    for (uint32_t i = group.thread; i < block.sums.n_patches; i += group.threads) {
        const pb_chain_sums_patch patch = block.sums.patches[i];
        pb_device::own_code(block)[patch.instr].imm[patch.imm] = numbers[patch.number];
    }
    group.sync();
}

// The sums of a part go to `out`, block.sums.sums.words of 4 bytes. in.core is the part. Every
// thread of the group calls it with the same arguments; what follows must not touch shared memory
// before a barrier.
template <int PX, pb_chain_kind KIND, class Group>
__device__ void pb_chain_sums_part(const pb_chain_sums_block &block, const pb_tile_in &in,
                                   int32_t *out, const Group &group)
{
    const pb_chain_sums &sums = block.sums.sums;
    auto *const outputs = reinterpret_cast<float *>(block.scratch + block.places.outputs);
    auto *const sum = static_cast<int32_t *>(block.shared);
    const uint32_t n = static_cast<uint32_t>(in.core.w) * static_cast<uint32_t>(in.core.h);
    pb_chain_device chain = block.chain;
    chain.code = pb_device::own_code(block);
    pb_chain_block_run<PX, KIND>(
        chain, in, in.core, outputs, block.places.out_px,
        {block.shared, reinterpret_cast<float *>(block.scratch), block.plane_px}, group);
    for (uint32_t i = 0; i < sums.n; i++) {
        const pb_chain_sums_of &of = sums.of[i];
        group.sync(); // the outputs are there, and nobody reads the last sums any more
        for (uint32_t w = group.thread; w < of.words; w += group.threads) {
            sum[w] = 0;
        }
        group.sync();
        pb_device::add_pixels(of, outputs, block.places.out_px, n, sum, group);
        group.sync();
        for (uint32_t w = group.thread; w < of.words; w += group.threads) {
            out[of.at + w] = sum[w];
        }
    }
}
#endif
