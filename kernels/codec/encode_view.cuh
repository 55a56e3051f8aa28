// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_ENCODE_VIEW_CUH
#define PB_ENCODE_VIEW_CUH
// What stages of the encoder ask of a batch. These headers know no CUDA header, so that a host
// program that has the words of CUDA compiles them as well.
#include "kernels/codec/encode_batch.h"

namespace pb_device
{
struct encode_chunk {
    const uint8_t *in; // 8-byte aligned; readable up to a multiple of 8
    uint32_t bytes, block, index;
    bool first, last; // of its block
};

inline __device__ encode_chunk chunk_of(const pb_encode_view &view, uint32_t index)
{
    const uint32_t block = index / view.chunks, k = index % view.chunks;
    const uint32_t from = k * PB_DEFLATE_RUNS_CHUNK, left = view.raw_bytes - from;
    return {view.raw + block * view.raw_stride + from,
            left < PB_DEFLATE_RUNS_CHUNK ? left : PB_DEFLATE_RUNS_CHUNK,
            block,
            index,
            k == 0,
            k + 1 == view.chunks};
}

inline __device__ bool is_planes(const pb_encode_view &view, uint32_t block)
{
    return view.row_bytes > 0 && view.planes[block].on != 0;
}

// The result of the estimate.
inline __device__ pb_strings strings_of(const pb_encode_view &view, uint32_t block)
{
    return view.windows > 0 ? pb_strings_verdict(&view.strings[block]) : PB_STRINGS_NONE;
}

// True if the block is searched by pairs of bytes.
inline __device__ bool is_pairs(const pb_encode_view &view, uint32_t block)
{
    return view.groups > 0 && strings_of(view, block) == PB_STRINGS_SOME;
}

// Whether the host encodes the block because of its strings; known after the estimate.
inline __device__ bool has_strings(const pb_encode_view &view, uint32_t block)
{
    const pb_strings strings = strings_of(view, block);
    return strings == PB_STRINGS_MANY || (strings == PB_STRINGS_SOME && view.groups == 0);
}

// True if the chunks of the block get codes of their own.
inline __device__ bool has_codes(const pb_encode_view &view, uint32_t block)
{
    return !has_strings(view, block) && !is_planes(view, block);
}
} // namespace pb_device
#endif
