// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_ENCODE_ROWS_CUH
#define PB_ENCODE_ROWS_CUH
// Rows of raw blocks, each by a warp: pixels are quantized into shared memory, side by side as the
// block has them and with the pixel on the left in front, and from there differenced into whole
// words of the block. A row is cut into segments that fit.
#include "kernels/codec/encode_view.cuh"
#include "kernels/codec/quantize_pixel.h"

#include <type_traits>

namespace pb_device
{
constexpr uint32_t ROW_PIXELS = 8;           // a segment has a multiple of these
constexpr uint32_t ROW_SEGMENT_BYTES = 2048; // at most, unless ROW_PIXELS take more
constexpr uint32_t ROW_ARENA_BYTES = (ROW_PIXELS + 1) * PB_ENCODE_BANDS_MAX * 8; // of a warp

static_assert(ROW_ARENA_BYTES >= ROW_SEGMENT_BYTES + PB_ENCODE_BANDS_MAX * 8, "and the left pixel");

template <uint32_t BYTES>
using bits_of_bytes = std::conditional_t<
    BYTES == 1, uint8_t,
    std::conditional_t<BYTES == 2, uint16_t, std::conditional_t<BYTES == 4, uint32_t, uint64_t>>>;

template <pb_type TYPE>
using stored_bits = bits_of_bytes<TYPE == PB_U8    ? 1
                                  : TYPE <= PB_U16 ? 2
                                  : TYPE <= PB_F32 ? 4
                                                   : 8>;

template <class To, class From> __device__ __forceinline__ To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

template <pb_type TYPE>
__device__ __forceinline__ stored_bits<TYPE> stored_of(const pb_quantizer &q, float x, size_t *hits)
{
    const float nodata_f = static_cast<float>(q.nodata), below_f = static_cast<float>(q.below);
    const float above_f = static_cast<float>(q.above);
    if constexpr (TYPE == PB_F32) {
        const float nodata = q.nodata == q.nodata ? nodata_f : pb_pixel_nan();
        return same_bits<uint32_t>(pb_quantize_f32(x, nodata, below_f, above_f, hits));
    } else if constexpr (TYPE == PB_F64) {
        const double nan = same_bits<double>(UINT64_C(0x7ff8000000000000));
        const double nodata = q.nodata == q.nodata ? q.nodata : nan;
        return same_bits<uint64_t>(
            pb_quantize_f64(static_cast<double>(x), nodata, q.below, q.above, hits));
    } else if constexpr (TYPE == PB_I32) {
        const double r = pb_quantize_large(static_cast<double>(x), INT32_MIN, INT32_MAX, q.nodata,
                                           q.below, q.above, hits);
        return static_cast<uint32_t>(static_cast<int32_t>(r));
    } else if constexpr (TYPE == PB_U32) {
        const double r = pb_quantize_large(static_cast<double>(x), 0, UINT32_MAX, q.nodata, q.below,
                                           q.above, hits);
        return static_cast<uint32_t>(static_cast<int32_t>(r - 2147483648.0)) ^ 0x80000000u;
    } else {
        constexpr float low = TYPE == PB_I16 ? INT16_MIN : 0;
        constexpr float high = TYPE == PB_U8 ? UINT8_MAX : TYPE == PB_I16 ? INT16_MAX : UINT16_MAX;
        const float r = pb_quantize_small(x, low, high, nodata_f, below_f, above_f, hits);
        return static_cast<stored_bits<TYPE>>(static_cast<int32_t>(r));
    }
}

// A row of the input: where it has pixels, of one block.
struct encode_row {
    const pb_encode_format &format;
    const float *data; // plane 0; nullptr: no pixel is valid
    uint64_t plane_px;
    uint32_t w, lane; // w: pixels of the image; 0: the row is outside
    __device__ float value(uint32_t band, uint32_t x) const
    {
        x = format.repeats && x >= w && w > 0 ? w - 1 : x;
        return x < w && data != nullptr ? data[format.plane[band] * plane_px + x] : pb_pixel_nan();
    }
};

inline __device__ encode_row row_of(const pb_encode_view &view, uint32_t block, uint32_t y,
                                    uint32_t lane)
{
    const pb_encode_block &b = view.batch.blocks[block];
    const auto h = static_cast<uint32_t>(b.h);
    y = view.batch.format.repeats && y >= h ? h - 1 : y;
    return {view.batch.format,
            b.data != nullptr && y < h ? b.data + static_cast<uint64_t>(y) * b.row_px : nullptr,
            b.plane_px, y < h ? static_cast<uint32_t>(b.w) : 0, lane};
}

// Of the warp: the sum, in all lanes.
inline __device__ uint32_t warp_sum(uint32_t v)
{
    for (uint32_t d = 16; d > 0; d /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, static_cast<int>(d));
    }
    return v;
}

inline __device__ void report_row(const pb_encode_view &view, uint32_t block, uint32_t lane,
                                  bool any, uint32_t hits)
{
    pb_encoded *const out = &view.batch.encoded[block];
    any = __ballot_sync(0xffffffffu, any) != 0;
    hits = warp_sum(hits);
    if (lane == 0 && any) {
        atomicOr(&out->any, 1u);
    }
    if (lane == 0 && hits > 0) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&out->moved),
                  static_cast<unsigned long long>(hits));
    }
}

template <pb_type TYPE>
__device__ __forceinline__ stored_bits<TYPE> sample_of(const encode_row &row, uint32_t band,
                                                       uint32_t x, bool *any, size_t *hits)
{
    float v = row.value(band, x);
    *any = *any || v == v;
    if (row.format.scale != 0) {
        v = pb_quantize_scaled(v, row.format.scale, row.format.offset);
    }
    return stored_of<TYPE>(row.format.quantizer, v, hits);
}

// Paints pixel x: its channels go to `out`.
inline __device__ void paint_sample(const pb_encode_view &view, const encode_row &row, uint32_t x,
                                    bool *any, uint8_t *out)
{
    const pb_paint &paint = row.format.paint;
    const uint32_t planes = pb_paint_planes(&paint), channels = row.format.n_bands;
    float value[PB_PAINT_PLANES_MAX + 1];
    uint8_t made[4];
    size_t hits = 0;
    if (x >= row.w && !(row.format.repeats && row.w > 0)) { // outside
        for (uint32_t c = 0; c < channels; c++) {
            out[c] = stored_of<PB_U8>(row.format.quantizer, pb_pixel_nan(), &hits);
        }
        return;
    }
    for (uint32_t p = 0; p < planes; p++) {
        value[p] = row.value(p, x);
        *any = *any || value[p] == value[p];
    }
    pb_paint_pixel(&paint, view.batch.steps, value, made);
    for (uint32_t c = 0; c < channels; c++) {
        out[c] = made[c];
    }
}

// Makes the samples of pixels x0 .. x0 + n - 1 at slot + step.
template <pb_type TYPE>
__device__ void put_samples(const pb_encode_view &view, const encode_row &row, uint32_t x0,
                            uint32_t n, stored_bits<TYPE> *slot, bool *any, size_t *hits)
{
    const uint32_t step = row.format.n_bands;
    if constexpr (TYPE == PB_U8) {
        if (row.format.paint.n_planes > 0) {
            for (uint32_t x = row.lane; x < n; x += 32) {
                paint_sample(view, row, x0 + x, any, &slot[(x + 1) * step]);
            }
            return;
        }
    }
    for (uint32_t b = 0; b < step; b++) {
        for (uint32_t x = row.lane; x < n; x += 32) {
            slot[(x + 1) * step + b] = sample_of<TYPE>(row, b, x0 + x, any, hits);
        }
    }
}

// The differences of `words` words of samples, each to the one `step` before it; slot: those before
// come first.
template <class Bits>
__device__ void put_differences(const Bits *slot, uint32_t step, uint32_t samples, bool plain,
                                uint8_t *out, uint32_t lane)
{
    if constexpr (sizeof(Bits) == 8) {
        auto *const to = reinterpret_cast<uint64_t *>(out);
        for (uint32_t i = lane; i < samples; i += 32) {
            to[i] = slot[step + i] - (plain ? 0 : slot[i]);
        }
    } else {
        constexpr uint32_t PER = 4 / sizeof(Bits);
        auto *const to = reinterpret_cast<uint32_t *>(out);
        for (uint32_t i = lane; i < samples / PER; i += 32) {
            uint32_t word = 0;
#pragma unroll
            for (uint32_t k = 0; k < PER; k++) {
                const uint32_t s = i * PER + k;
                const auto d = static_cast<Bits>(slot[step + s] - (plain ? 0 : slot[s]));
                word |= static_cast<uint32_t>(d) << (32 / PER * k);
            }
            to[i] = word;
        }
    }
}

// The same of predictor 3: a plane of bytes after the other, plane_bytes apart, the most
// significant ones first. first: samples that begin the row; what comes before them are the last
// ones of the plane above, so slot begins with the row's last pixel.
template <class Bits>
__device__ void put_planes(const Bits *slot, uint32_t step, uint32_t samples, uint32_t first,
                           uint32_t plane_bytes, uint8_t *out, uint32_t lane)
{
    constexpr uint32_t BYTES = sizeof(Bits);
    for (uint32_t i = 4 * lane; i < samples; i += 4 * 32) {
        uint32_t word[BYTES] = {};
#pragma unroll
        for (uint32_t b = 0; b < 4; b++) {
            const Bits own = slot[step + i + b], left = slot[i + b];
            const bool begins = i + b < first;
#pragma unroll
            for (uint32_t k = 0; k < BYTES; k++) {
                const uint32_t shift = 8 * (BYTES - 1 - k);
                const Bits above = k == 0 ? 0 : left >> (k == 0 ? shift : shift + 8);
                const Bits d = (own >> shift) - (begins ? above : left >> shift);
                word[k] |= static_cast<uint32_t>(d & 0xff) << (8 * b);
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < BYTES; k++) {
            *reinterpret_cast<uint32_t *>(out + static_cast<size_t>(k) * plane_bytes + i) = word[k];
        }
    }
}

inline __device__ uint32_t segment_pixels(uint32_t pixel_bytes)
{
    const uint32_t fit = ROW_SEGMENT_BYTES / pixel_bytes / ROW_PIXELS * ROW_PIXELS;
    return fit > 0 ? fit : ROW_PIXELS;
}
} // namespace pb_device

// Task: block * block_px + row; arena: ROW_ARENA_BYTES of the warp, 8-byte aligned. TYPE is the
// format's.
template <pb_type TYPE>
__device__ void pb_encode_row(const pb_encode_view &view, void *arena, uint32_t task, uint32_t lane)
{
    using namespace pb_device;
    using Bits = stored_bits<TYPE>;
    const pb_encode_format &format = view.batch.format;
    const uint32_t side = static_cast<uint32_t>(format.block_px), step = format.n_bands;
    const uint32_t block = task / side, y = task % side, row_samples = side * step;
    const encode_row row = row_of(view, block, y, lane);
    uint8_t *const out =
        view.raw + block * view.raw_stride + static_cast<size_t>(y) * row_samples * sizeof(Bits);
    Bits *const slot = static_cast<Bits *>(arena);
    const uint32_t most = segment_pixels(step * sizeof(Bits));
    bool any = false;
    size_t hits = 0, uncounted = 0;
    for (uint32_t x0 = 0, n; x0 < side; x0 += n) {
        __syncwarp(); // the last segment has been read
        for (uint32_t b = lane; b < step; b += 32) {
            slot[b] = x0 > 0 ? slot[most * step + b]
                      : format.predictor == PB_PREDICTOR_FLOAT
                          ? sample_of<TYPE>(row, b, side - 1, &any, &uncounted)
                          : 0;
        }
        __syncwarp();
        n = side - x0 < most ? side - x0 : most;
        put_samples<TYPE>(view, row, x0, n, slot, &any, &hits);
        __syncwarp();
        const uint32_t at = x0 * step;
        if constexpr (TYPE == PB_F32 || TYPE == PB_F64) {
            if (format.predictor == PB_PREDICTOR_FLOAT) {
                put_planes(slot, step, n * step, x0 == 0 ? step : 0, row_samples, out + at, lane);
                continue;
            }
        }
        put_differences(slot, step, n * step, format.predictor == PB_PREDICTOR_NONE,
                        out + static_cast<size_t>(at) * sizeof(Bits), lane);
    }
    const bool moves = format.quantizer.below != format.quantizer.nodata;
    report_row(view, block, lane, any, moves ? static_cast<uint32_t>(hits) : 0);
}

// The same for blocks of masks.
inline __device__ void pb_encode_mask_row(const pb_encode_view &view, uint32_t task, uint32_t lane)
{
    using namespace pb_device;
    const pb_encode_format &format = view.batch.format;
    const uint32_t side = static_cast<uint32_t>(format.block_px);
    const uint32_t block = task / side, y = task % side;
    const encode_row row = row_of(view, block, y, lane);
    uint8_t *const out = view.raw + block * view.raw_stride + static_cast<size_t>(y) * (side / 8);
    bool any = false;
    for (uint32_t x0 = 0; x0 < side; x0 += 32) {
        bool all = true, one = false;
        for (uint32_t b = 0; b < format.n_bands; b++) {
            const float v = row.value(b, x0 + lane);
            all = all && v == v;
            one = one || v == v;
        }
        any = any || one;
        const uint32_t bits = __ballot_sync(0xffffffffu, format.any ? one : all);
        if (lane < 4 && x0 + 8 * lane < side) { // the first pixel in the highest bit
            out[x0 / 8 + lane] = static_cast<uint8_t>(__brev(bits) >> (24 - 8 * lane));
        }
    }
    report_row(view, block, lane, any, 0);
}
#endif
