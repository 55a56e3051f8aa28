// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_STRINGS_CUH
#define PB_DEFLATE_STRINGS_CUH
// The estimate of what strings are worth, a window by a thread group: the table of words by all
// threads, a segment by each thread of the first warp. Sums go to the block's by atomic additions
// of integers.
#include "kernels/codec/encode_view.cuh"

namespace pb_device
{
struct strings_arena {
    uint32_t first[(1 << PB_STRINGS_HASH_BITS) / 2]; // two of 16 bits in a word
    uint32_t count[256];
    uint16_t cost[256];
};

static_assert(PB_STRINGS_WINDOW / PB_STRINGS_SEGMENT_EVERY <= 32, "a lane for each segment");

// The least index that was entered for a hash stays.
inline __device__ void enter_word(strings_arena &arena, uint32_t hash, uint32_t index)
{
    uint32_t *const word = &arena.first[hash / 2];
    const uint32_t shift = hash % 2 * 16;
    uint32_t seen = *word;
    while (index < (seen >> shift & 0xffff)) {
        const uint32_t wanted = (seen & ~(0xffffu << shift)) | index << shift;
        const uint32_t found = atomicCAS(word, seen, wanted);
        if (found == seen) {
            return;
        }
        seen = found;
    }
}

template <class Group>
__device__ void fill_strings(strings_arena &arena, const uint8_t *in, uint32_t n,
                             const Group &group)
{
    for (uint32_t i = group.thread; i < (1 << PB_STRINGS_HASH_BITS) / 2; i += group.threads) {
        arena.first[i] = 0xffffffff;
    }
    for (uint32_t i = group.thread; i < 256; i += group.threads) {
        arena.count[i] = 0;
    }
    group.sync();
    for (uint32_t i = group.thread; i < pb_strings_words(n); i += group.threads) {
        const uint32_t word = pb_strings_word(in + PB_STRINGS_PAIR * i);
        enter_word(arena, pb_strings_hash(word), i);
    }
    for (uint32_t i = group.thread;; i += group.threads) {
        const uint32_t at = (i / PB_STRINGS_SEGMENT + 1) * PB_STRINGS_SEGMENT_EVERY;
        if (!pb_strings_has_segment(at, n)) {
            break;
        }
        atomicAdd(&arena.count[in[at + i % PB_STRINGS_SEGMENT]], 1u);
    }
    group.sync();
    uint32_t total = 1;
    for (uint32_t at = PB_STRINGS_SEGMENT_EVERY; pb_strings_has_segment(at, n);
         at += PB_STRINGS_SEGMENT_EVERY) {
        total += PB_STRINGS_SEGMENT;
    }
    for (uint32_t i = group.thread; i < 256; i += group.threads) {
        arena.cost[i] = pb_strings_literal_cost(arena.count[i], total);
    }
    group.sync();
}

inline __device__ void add_to(uint64_t *sum, uint64_t value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(sum), static_cast<unsigned long long>(value));
}
} // namespace pb_device

// Task: block * windows + window. Every thread of the group calls it; a barrier follows before the
// arena is used again.
template <class Group>
__device__ void pb_encode_strings(const pb_encode_view &view, pb_device::strings_arena &arena,
                                  uint32_t task, const Group &group)
{
    const uint32_t block = task / view.windows, window = task % view.windows;
    const uint32_t n = view.window_bytes;
    const uint8_t *const in = view.raw + block * view.raw_stride +
                              pb_strings_window_at(view.raw_bytes, n, window, view.windows);
    pb_device::fill_strings(arena, in, n, group);
    const uint32_t at = (group.thread + 1) * PB_STRINGS_SEGMENT_EVERY;
    if (group.thread >= 32 || !pb_strings_has_segment(at, n)) {
        return;
    }
    // The halves of words lie in memory as 16-bit numbers do: devices and their hosts are
    // little-endian.
    const pb_strings_coder coder = {in, reinterpret_cast<const uint16_t *>(arena.first),
                                    arena.cost};
    pb_strings_sizes sizes = {};
    pb_strings_code_segment(&coder, at, &sizes);
    pb_strings_sizes *const sum = &view.strings[block];
    pb_device::add_to(&sum->all, sizes.all);
    pb_device::add_to(&sum->saved, sizes.saved);
    pb_device::add_to(&sum->lost, sizes.lost);
    pb_device::add_to(&sum->bytes, sizes.bytes);
    pb_device::add_to(&sum->literals, sizes.literals);
    pb_device::add_to(&sum->literal_bytes, sizes.literal_bytes);
}
#endif
