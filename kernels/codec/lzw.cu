// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of lzw.cuh: a thread block a stream.
#include "kernels/codec/decode_launch.cuh"
#include "kernels/codec/lzw.cuh"

namespace
{
typedef pb_lzw::standard shape;

__global__ void __launch_bounds__(shape::THREADS) lzw(const __grid_constant__ pb_decode_batch batch)
{
    extern __shared__ __align__(16) unsigned char memory[];
    auto &arena = *reinterpret_cast<pb_lzw::arena<shape> *>(memory);
    pb_decode_each(batch, [&](const pb_codec_group &group, const pb_decode_stream &stream,
                              uint32_t *progress, const pb_codec_watch &watch, uint32_t *bytes) {
        return pb_lzw::run<shape>(group, arena, stream, progress, watch, bytes);
    });
}

int launch(const pb_decode_batch *batch, void *stream)
{
    return pb_decode_launch(lzw, shape::THREADS, sizeof(pb_lzw::arena<shape>), batch, stream);
}
} // namespace

extern const pb_decode_back pb_decode_back_lzw;
const pb_decode_back pb_decode_back_lzw = {"LZW", PB_DEVICE_LZW, launch};
