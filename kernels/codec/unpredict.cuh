// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_UNPREDICT_CUH
#define PB_UNPREDICT_CUH
// Predictors undone and samples taken apart, a warp a row. Sums along a row are sums inside each
// lane's pixels, a scan over the lanes, and what was carried from the pixels before.
#include "kernels/codec/mask_pixel.h"
#include "kernels/codec/unpredict_device.h"

#include <cstring>

namespace pb_unpredict
{
// One row: pixels [x, end) of it are made, those from `left` on are wanted.
struct row {
    const uint8_t *in; // its first byte
    uint8_t *out;      // of pixel `left` of plane 0
    size_t plane_bytes;
    uint32_t left, end;
};

__device__ __forceinline__ uint32_t lane()
{
    return threadIdx.x % 32;
}

__device__ __forceinline__ uint8_t swapped(uint8_t v)
{
    return v;
}
__device__ __forceinline__ uint16_t swapped(uint16_t v)
{
    return static_cast<uint16_t>(v << 8 | v >> 8);
}
__device__ __forceinline__ uint32_t swapped(uint32_t v)
{
    return __byte_perm(v, 0, 0x0123);
}
__device__ __forceinline__ uint64_t swapped(uint64_t v)
{
    return static_cast<uint64_t>(swapped(static_cast<uint32_t>(v))) << 32 |
           swapped(static_cast<uint32_t>(v >> 32));
}

// The sum of the lanes before this one; *all: of all of them.
template <class T> __device__ __forceinline__ T sum_before(T v, T *all)
{
    T sum = v;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const T up = __shfl_up_sync(~0u, sum, d);
        sum = static_cast<T>(sum + (lane() >= d ? up : T(0)));
    }
    *all = __shfl_sync(~0u, sum, 31);
    return static_cast<T>(sum - v);
}

// N values by words of the type, where both their address and their number allow it.
template <class WORD, class T, uint32_t N>
__device__ __forceinline__ bool load_words(const T *from, T (&v)[N])
{
    if constexpr (N * sizeof(T) % sizeof(WORD) == 0) {
        if (reinterpret_cast<uintptr_t>(from) % sizeof(WORD) == 0) {
            WORD word[N * sizeof(T) / sizeof(WORD)];
#pragma unroll
            for (uint32_t i = 0; i < N * sizeof(T) / sizeof(WORD); i++) {
                word[i] = reinterpret_cast<const WORD *>(from)[i];
            }
            memcpy(v, word, sizeof word);
            return true;
        }
    }
    return false;
}

template <class WORD, class T, uint32_t N>
__device__ __forceinline__ bool store_words(T *to, const T (&v)[N])
{
    if constexpr (N * sizeof(T) % sizeof(WORD) == 0) {
        if (reinterpret_cast<uintptr_t>(to) % sizeof(WORD) == 0) {
            WORD word[N * sizeof(T) / sizeof(WORD)];
            memcpy(word, v, sizeof word);
#pragma unroll
            for (uint32_t i = 0; i < N * sizeof(T) / sizeof(WORD); i++) {
                reinterpret_cast<WORD *>(to)[i] = word[i];
            }
            return true;
        }
    }
    return false;
}

template <class T, uint32_t N> __device__ __forceinline__ void load(const T *from, T (&v)[N])
{
    if (load_words<uint4>(from, v) || load_words<uint32_t>(from, v)) {
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
        v[i] = from[i];
    }
}

template <class T, uint32_t N> __device__ __forceinline__ void store(T *to, const T (&v)[N])
{
    if (store_words<uint4>(to, v) || store_words<uint2>(to, v)) {
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
        to[i] = v[i];
    }
}

// Pixels [x, x + PX) of one plane, those that are wanted.
template <class T, uint32_t PX>
__device__ __forceinline__ void put(const row &r, uint32_t plane, uint32_t x, const T (&v)[PX])
{
    T *const to = reinterpret_cast<T *>(r.out + plane * r.plane_bytes);
    if (x >= r.left && x + PX <= r.end) {
        store(to + (x - r.left), v);
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < PX; i++) {
        if (x + i >= r.left && x + i < r.end) {
            to[x + i - r.left] = v[i];
        }
    }
}

// Destinations of samples, one a lane.
struct to_samples {
    template <class T>
    __device__ __forceinline__ void operator()(const row &r, uint32_t plane, uint32_t x,
                                               const T (&v)[1]) const
    {
        put(r, plane, x, v);
    }
};
struct to_mask {
    uint32_t type;
    template <class T>
    __device__ __forceinline__ void operator()(const row &r, uint32_t plane, uint32_t x,
                                               const T (&v)[1]) const
    {
        const uint8_t made[1] = {pb_mask_of_bits(type, v[0])};
        put(r, plane, x, made);
    }
};

// --- predictors 1 and 2 ----------------------------------------------------------------------

// Rows of N samples a pixel: a lane takes PX pixels that lie side by side.
template <class T, uint32_t N> __device__ void undo(const pb_unpredict_form &form, const row &r)
{
    constexpr uint32_t PX = N < 4 ? 16 / sizeof(T) : sizeof(T) < 8 ? 8 / sizeof(T) : 1;
    const bool sums = form.predictor == 2;
    const T *const in = reinterpret_cast<const T *>(r.in);
    T carried[N] = {};
    for (uint32_t first = sums ? 0 : r.left / (32 * PX) * (32 * PX); first < r.end;
         first += 32 * PX) {
        const uint32_t x = first + lane() * PX;
        T v[PX * N] = {};
        if (x + PX <= form.block_w) {
            load(in + static_cast<size_t>(x) * N, v);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < PX * N; i++) {
                v[i] = x + i / N < form.block_w ? in[static_cast<size_t>(x) * N + i] : T(0);
            }
        }
        if (form.swap != 0) {
#pragma unroll
            for (uint32_t i = 0; i < PX * N; i++) {
                v[i] = swapped(v[i]);
            }
        }
#pragma unroll
        for (uint32_t s = 0; s < N; s++) {
            T one[PX], sum = 0;
#pragma unroll
            for (uint32_t i = 0; i < PX; i++) {
                sum = sums ? static_cast<T>(sum + v[i * N + s]) : v[i * N + s];
                one[i] = sum;
            }
            if (sums) {
                T all;
                const T before = static_cast<T>(carried[s] + sum_before(sum, &all));
                carried[s] = static_cast<T>(carried[s] + all);
#pragma unroll
                for (uint32_t i = 0; i < PX; i++) {
                    one[i] = static_cast<T>(one[i] + before);
                }
            }
            for (uint32_t p = 0; p < form.n_planes; p++) {
                if (form.sample[p] == s) {
                    put(r, p, x, one);
                }
            }
        }
    }
}

// Rows of any number of samples, plane by plane: a lane takes a pixel.
template <class T, class TO>
__device__ void undo_any(const pb_unpredict_form &form, const row &r, const TO &to)
{
    const bool sums = form.predictor == 2;
    const T *const in = reinterpret_cast<const T *>(r.in);
    for (uint32_t p = 0; p < form.n_planes; p++) {
        T carried = 0;
        for (uint32_t first = sums ? 0 : r.left / 32 * 32; first < r.end; first += 32) {
            const uint32_t x = first + lane();
            T one[1] = {0};
            if (x < form.block_w) {
                one[0] = in[static_cast<size_t>(x) * form.n_samples + form.sample[p]];
            }
            one[0] = form.swap != 0 ? swapped(one[0]) : one[0];
            if (sums) {
                T all;
                one[0] = static_cast<T>(one[0] + carried + sum_before(one[0], &all));
                carried = static_cast<T>(carried + all);
            }
            to(r, p, x, one);
        }
    }
}

// --- predictor 3 -----------------------------------------------------------------------------

// A row is its samples' first bytes, most significant, then their second ones and so on, and each
// byte is the difference to the one n_samples before it. T: as many bytes as a sample has, byte k
// of the row's k-th part in the place that it has in the sample.
template <class T> __device__ __forceinline__ T sum_bytes(T a, T b)
{
    const T high = static_cast<T>(0x8080808080808080u);
    return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

template <class T> __device__ __forceinline__ T sum_bytes_before(T v, T *all)
{
    T sum = v;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const T up = __shfl_up_sync(~0u, sum, d);
        sum = sum_bytes(sum, lane() >= d ? up : T(0));
    }
    *all = __shfl_sync(~0u, sum, 31);
    T before = __shfl_up_sync(~0u, sum, 1);
    return lane() > 0 ? before : T(0);
}

// Bytes k of sample i of a row of n samples, joined.
template <class T> __device__ __forceinline__ T joined(const uint8_t *in, size_t n, size_t i)
{
    T v = 0;
#pragma unroll
    for (uint32_t k = 0; k < sizeof(T); k++) {
        v = static_cast<T>(v << 8 | in[k * n + i]);
    }
    return v;
}

// Byte k of *out: the sum of all parts before the k-th one.
template <class T>
__device__ __forceinline__ T sum_parts(const pb_unpredict_form &form, const uint8_t *in,
                                       uint32_t sample)
{
    const size_t n = static_cast<size_t>(form.block_w) * form.n_samples;
    T sum = 0, before = 0;
    for (uint32_t x = lane(); x < form.block_w; x += 32) {
        sum = sum_bytes(sum, joined<T>(in, n, static_cast<size_t>(x) * form.n_samples + sample));
    }
    for (uint32_t d = 16; d > 0; d /= 2) {
        sum = sum_bytes(sum, __shfl_xor_sync(~0u, sum, d));
    }
    for (uint32_t k = 1; k < sizeof(T); k++) { // the part before is one byte higher
        before = sum_bytes(before, static_cast<T>(sum >> 8 * k));
    }
    return before;
}

template <class T, class TO>
__device__ void undo_float(const pb_unpredict_form &form, const row &r, const TO &to)
{
    const size_t n = static_cast<size_t>(form.block_w) * form.n_samples;
    for (uint32_t p = 0; p < form.n_planes; p++) {
        T carried = sum_parts<T>(form, r.in, form.sample[p]);
        for (uint32_t first = 0; first < r.end; first += 32) {
            const uint32_t x = first + lane();
            T v = 0, all;
            if (x < form.block_w) {
                v = joined<T>(r.in, n, static_cast<size_t>(x) * form.n_samples + form.sample[p]);
            }
            const T one[1] = {sum_bytes(sum_bytes(carried, v), sum_bytes_before(v, &all))};
            carried = sum_bytes(carried, all);
            to(r, p, x, one);
        }
    }
}

// The same of one sample a pixel, where parts are aligned to four bytes: a lane takes four samples.
template <class T> __device__ void undo_float_words(const pb_unpredict_form &form, const row &r)
{
    constexpr uint32_t K = sizeof(T);
    const uint32_t w = form.block_w;
    uint32_t carried[K] = {}, part[K] = {}; // bytes in the lowest place
#pragma unroll
    for (uint32_t k = 0; k + 1 < K; k++) {
        const uint32_t *const words = reinterpret_cast<const uint32_t *>(r.in + k * w);
        for (uint32_t i = lane(); i < w / 4; i += 32) {
            part[k] = __dp4a(words[i], 0x01010101u, part[k]);
        }
        for (uint32_t d = 16; d > 0; d /= 2) {
            part[k] += __shfl_xor_sync(~0u, part[k], d);
        }
        carried[k + 1] = carried[k] + part[k];
    }
    for (uint32_t first = 0; first < r.end; first += 128) {
        const uint32_t x = first + 4 * lane();
        T one[4] = {};
#pragma unroll
        for (uint32_t k = 0; k < K; k++) {
            uint32_t v = x < w ? *reinterpret_cast<const uint32_t *>(r.in + k * w + x) : 0, all;
            v = __vadd4(v, v << 8);
            v = __vadd4(v, v << 16); // sums inside the word
            const uint32_t before = carried[k] + sum_before(v >> 24, &all);
            carried[k] += all;
            v = __vadd4(v, __byte_perm(before, 0, 0));
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                one[i] = static_cast<T>(one[i] << 8 | (v >> 8 * i & 255));
            }
        }
        put(r, 0, x, one);
    }
}

// --- a row -----------------------------------------------------------------------------------

template <class T> __device__ void undo_samples(const pb_unpredict_form &form, const row &r)
{
    switch (form.n_samples) {
    case 1:
        return undo<T, 1>(form, r);
    case 2:
        return undo<T, 2>(form, r);
    case 3:
        return undo<T, 3>(form, r);
    case 4:
        return undo<T, 4>(form, r);
    default:
        return undo_any<T>(form, r, to_samples());
    }
}

template <class T> __device__ void undo_floats(const pb_unpredict_form &form, const row &r)
{
    if (form.n_samples == 1 && form.n_planes == 1 && form.block_w % 4 == 0) {
        undo_float_words<T>(form, r);
    } else {
        undo_float<T>(form, r, to_samples());
    }
}

// Row y of those that are wanted of a block whose rows have that size.
__device__ __forceinline__ row row_of(const pb_unpredict_block &block, uint32_t y, size_t row_bytes)
{
    row r;
    r.in = static_cast<const uint8_t *>(block.in) + (block.top + y) * row_bytes;
    r.out = static_cast<uint8_t *>(block.out) + y * block.row_bytes;
    r.plane_bytes = block.plane_bytes;
    r.left = block.left;
    r.end = block.left + block.w;
    return r;
}

// The samples of a row. T: an unsigned integer of the samples' size.
template <class T, bool FLOATS>
__device__ void run(const pb_unpredict_form &form, const pb_unpredict_block &block, uint32_t y)
{
    const row r = row_of(block, y, static_cast<size_t>(form.block_w) * form.n_samples * sizeof(T));
    if constexpr (FLOATS) {
        undo_floats<T>(form, r);
    } else {
        undo_samples<T>(form, r);
    }
}

// The bytes of a mask of a row's samples.
template <class T, bool FLOATS>
__device__ void run_mask(const pb_unpredict_form &form, const pb_unpredict_block &block, uint32_t y)
{
    const row r = row_of(block, y, static_cast<size_t>(form.block_w) * form.n_samples * sizeof(T));
    const to_mask to = {form.type};
    if constexpr (FLOATS) {
        undo_float<T>(form, r, to);
    } else {
        undo_any<T>(form, r, to);
    }
}

// The bytes of a mask of a row of bits: a lane takes a pixel.
__device__ __forceinline__ void run_bits(const pb_unpredict_form &form,
                                         const pb_unpredict_block &block, uint32_t y)
{
    const row r = row_of(block, y, (form.block_w + 7) / 8);
    for (uint32_t x = r.left + lane(); x < r.end; x += 32) {
        r.out[x - r.left] = (r.in[x / 8] >> (7 - x % 8) & 1) != 0 ? 255 : 0;
    }
}

// A row of a rectangle of bytes.
__device__ __forceinline__ void copy_row(const pb_rect_copy &copy, uint32_t y)
{
    const uint8_t *const from = static_cast<const uint8_t *>(copy.from) + y * copy.from_row_bytes;
    uint8_t *const to = static_cast<uint8_t *>(copy.to) + y * copy.to_row_bytes;
    const uintptr_t both = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
    uint32_t done = 0;
    if (both % 16 == 0) {
        done = copy.w / 16 * 16;
        for (uint32_t i = 16 * lane(); i < done; i += 512) {
            *reinterpret_cast<uint4 *>(to + i) = *reinterpret_cast<const uint4 *>(from + i);
        }
    } else if (both % 4 == 0) {
        done = copy.w / 4 * 4;
        for (uint32_t i = 4 * lane(); i < done; i += 128) {
            *reinterpret_cast<uint32_t *>(to + i) = *reinterpret_cast<const uint32_t *>(from + i);
        }
    }
    for (uint32_t i = done + lane(); i < copy.w; i += 32) {
        to[i] = from[i];
    }
}
} // namespace pb_unpredict
#endif
