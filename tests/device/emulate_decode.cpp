/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/emulator.h"

#include "kernels/codec/inflate.cuh"
#include "kernels/codec/lzw.cuh"

#include "tests/device/emulate_codecs.h"

namespace
{

typedef pb_inflate::shape<1, 7, 16384, 12288, 96> shape1;
typedef pb_inflate::shape<2, 3, 16384, 8800, 0> shape2;

// Everything that a kernel does with one stream.
template <class ARENA, class RUN>
uint32_t run(unsigned threads, const uint32_t *abort, uint32_t *out_bytes, const RUN &decode)
{
    uint32_t status = PB_DECODE_UNDONE;
    emulate(1, threads, sizeof(ARENA), [&] {
        pb_codec_watch watch;
        uint32_t bytes = 0;
        watch.abort = abort;
        watch.end_ns = UINT64_MAX;
        const uint32_t mine = decode(*reinterpret_cast<ARENA *>(emulated_shared), watch, &bytes);
        if (threadIdx.x == 0) {
            status = mine;
            *out_bytes = bytes;
        }
    });
    return status;
}

template <class SHAPE>
uint32_t inflate(const pb_decode_stream &stream, const uint32_t *abort, uint32_t *progress,
                 uint32_t *out_bytes)
{
    typedef pb_inflate::arena<SHAPE> arena;
    return run<arena>(SHAPE::THREADS, abort, out_bytes,
                      [&](arena &mine, const pb_codec_watch &watch, uint32_t *bytes) {
                          return pb_inflate::run<SHAPE>(pb_codec_block(), mine, stream, progress,
                                                        watch, bytes);
                      });
}

template <class SHAPE>
uint32_t lzw(const pb_decode_stream &stream, const uint32_t *abort, uint32_t *progress,
             uint32_t *out_bytes)
{
    typedef pb_lzw::arena<SHAPE> arena;
    return run<arena>(SHAPE::THREADS, abort, out_bytes,
                      [&](arena &mine, const pb_codec_watch &watch, uint32_t *bytes) {
                          return pb_lzw::run<SHAPE>(pb_codec_block(), mine, stream, progress, watch,
                                                    bytes);
                      });
}
} // namespace

uint32_t emulate_decode(enum pb_device_codec codec, unsigned shape, unsigned order,
                        const struct pb_decode_stream *stream, const uint32_t *abort,
                        uint32_t *progress, uint32_t *out_bytes)
{
    emulator.order = order;
    if (codec == PB_DEVICE_LZW) {
        return shape == 0 ? lzw<pb_lzw::standard>(*stream, abort, progress, out_bytes)
                          : lzw<pb_lzw::shape<64>>(*stream, abort, progress, out_bytes);
    }
    return shape == 0   ? inflate<pb_inflate::standard>(*stream, abort, progress, out_bytes)
           : shape == 1 ? inflate<shape1>(*stream, abort, progress, out_bytes)
                        : inflate<shape2>(*stream, abort, progress, out_bytes);
}
