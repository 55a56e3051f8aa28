// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of what decodes on a device, and the back end of blocks that are stored as they are.
#include "kernels/codec/decode_launch.cuh"

namespace
{
enum { STORED_THREADS = 256 };

// `out` is aligned to 16, `in` is not: words of the one are made from two of the other.
__device__ void copy_words(const uint32_t *in, uint32_t shift, uint4 *out, uint32_t n,
                           uint32_t thread)
{
    for (uint32_t i = thread; i < n; i += STORED_THREADS) {
        uint32_t word[5];
#pragma unroll
        for (uint32_t k = 0; k < 5; k++) {
            word[k] = k < 4 || shift != 0 ? in[4 * i + k] : 0;
        }
        uint4 v;
        v.x = __funnelshift_r(word[0], word[1], shift);
        v.y = __funnelshift_r(word[1], word[2], shift);
        v.z = __funnelshift_r(word[2], word[3], shift);
        v.w = __funnelshift_r(word[3], word[4], shift);
        out[i] = v;
    }
}

__device__ uint32_t copy(const pb_codec_group &group, const pb_decode_stream &stream,
                         uint32_t *progress, uint32_t *bytes)
{
    const uint32_t n = min(stream.in_bytes, stream.most);
    if (n < stream.least) {
        return PB_DECODE_SHORT;
    }
    const uintptr_t skew = reinterpret_cast<uintptr_t>(stream.in) & 3;
    copy_words(reinterpret_cast<const uint32_t *>(stream.in - skew),
               static_cast<uint32_t>(8 * skew), reinterpret_cast<uint4 *>(stream.out), n / 16,
               group.thread);
    if (group.thread < n % 16) {
        stream.out[n / 16 * 16 + group.thread] = stream.in[n / 16 * 16 + group.thread];
    }
    group.sync();
    if (progress != nullptr && group.thread == 0) {
        pb_codec_post(progress, n);
    }
    *bytes = n;
    return PB_DECODED;
}

__global__ void __launch_bounds__(STORED_THREADS)
    copy_stored(const __grid_constant__ pb_decode_batch batch)
{
    pb_decode_each(batch, [](const pb_codec_group &group, const pb_decode_stream &stream,
                             uint32_t *progress, const pb_codec_watch &,
                             uint32_t *bytes) { return copy(group, stream, progress, bytes); });
}

int launch_stored(const pb_decode_batch *batch, void *stream)
{
    return pb_decode_launch(copy_stored, STORED_THREADS, 0, batch, stream);
}

const pb_decode_back stored = {"copy", PB_DEVICE_STORED, launch_stored};
} // namespace

extern const pb_decode_back pb_decode_back_inflate; // inflate.cu
extern const pb_decode_back pb_decode_back_lzw;     // lzw.cu

// The preferred ones first. An engine of the hardware is one more.
static const pb_decode_back *const backs[] = {
    &stored,
    &pb_decode_back_inflate,
    &pb_decode_back_lzw,
};

const struct pb_decode_back *pb_decode_back_at(enum pb_device_codec codec, uint32_t number)
{
    for (const pb_decode_back *back : backs) {
        if (back->codec == codec && number-- == 0) {
            return back;
        }
    }
    return nullptr;
}

const struct pb_decode_back *pb_decode_back_of(enum pb_device_codec codec)
{
    return pb_decode_back_at(codec, 0);
}
