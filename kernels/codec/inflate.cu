// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of inflate.cuh: a thread block a stream.
#include "kernels/codec/decode_launch.cuh"
#include "kernels/codec/inflate.cuh"

namespace
{

template <class SHAPE>
__global__ void __launch_bounds__(SHAPE::THREADS, 4)
    inflate(const __grid_constant__ pb_decode_batch batch)
{
    extern __shared__ __align__(16) unsigned char memory[];
    auto &arena = *reinterpret_cast<pb_inflate::arena<SHAPE> *>(memory);
    pb_decode_each(batch, [&](const pb_codec_group &group, const pb_decode_stream &stream,
                              uint32_t *progress, const pb_codec_watch &watch, uint32_t *bytes) {
        return pb_inflate::run<SHAPE>(group, arena, stream, progress, watch, bytes);
    });
}

template <class SHAPE> int launch(const pb_decode_batch *batch, void *stream)
{
    return pb_decode_launch(inflate<SHAPE>, SHAPE::THREADS, sizeof(pb_inflate::arena<SHAPE>), batch,
                            stream);
}
} // namespace

extern const pb_decode_back pb_decode_back_inflate;
const pb_decode_back pb_decode_back_inflate = {"inflate", PB_DEVICE_DEFLATE,
                                               launch<pb_inflate::standard>};
