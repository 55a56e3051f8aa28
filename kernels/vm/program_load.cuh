// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_LOAD_CUH
#define PB_PROGRAM_LOAD_CUH
// What an instruction loads and stores: samples of a window, pixels of a plane, numbers of columns
// and rows. One address and, where it is aligned, one access serve all pixels of a thread.
#include "kernels/vm/program_place.cuh"
#include "kernels/vm/vm_pixel.h"

namespace pb_device
{
// One access for a part of a thread's pixels, or as many as it takes at 16 bytes each.
template <typename T, int PX> struct row_access {
    static constexpr int PART = shape<PX>::PART;
    static constexpr size_t BYTES = sizeof(T) * PART;
    struct alignas(BYTES < 16 ? BYTES : 16) type {
        T v[PART];
    };
    // Whether all parts end up to `last`. They are aligned alike.
    static __device__ bool fits(const void *at, int32_t last)
    {
        return shape<PX>::offset(PX - 1) <= last &&
               reinterpret_cast<uintptr_t>(at) % alignof(type) == 0;
    }
    template <typename P> static __device__ auto part(P *first, int k)
    {
        return first + shape<PX>::offset(k * PART);
    }
};

// Sample j of those that one access brought. Whole numbers of 8 and 16 bits are cut out of words
// and widened to 32 bits, which a GPU converts to float four times as fast.
template <typename T, int PX>
__device__ auto sample_of(const typename row_access<T, PX>::type &all, int j)
{
    if constexpr (sizeof(T) > 2 || row_access<T, PX>::BYTES < sizeof(uint32_t)) {
        return all.v[j];
    } else {
        constexpr int in_word = sizeof(uint32_t) / sizeof(T);
        const uint32_t word = reinterpret_cast<const uint32_t *>(&all)[j / in_word];
        if constexpr (sizeof(T) == 1) {
            return static_cast<int32_t>(__byte_perm(word, 0, 0x4440 + j % in_word));
        } else if constexpr (static_cast<T>(-1) < 0) {
            return static_cast<int32_t>(j % in_word ? word : word << 16) >> 16;
        } else {
            return static_cast<int32_t>(__byte_perm(word, 0, j % in_word ? 0x4432 : 0x4410));
        }
    }
}

// N rows at once: all accesses begin before the first one's samples are looked at.
template <typename T, int N, int PX, typename WIDE>
__device__ void load_rows(const T *const (&from)[N], const place &at, WIDE (&out)[N][PX])
{
    using access = row_access<T, PX>;
    using type = typename access::type;
    constexpr int PART = access::PART, PARTS = PX / PART;
    bool fit = true;
#pragma unroll
    for (int n = 0; n < N; n++) {
        fit = fit && access::fits(from[n], at.last);
    }
    if (fit) {
        type parts[N][PARTS];
#pragma unroll
        for (int k = 0; k < N * PARTS; k++) {
            parts[k / PARTS][k % PARTS] =
                *reinterpret_cast<const type *>(access::part(from[k / PARTS], k % PARTS));
        }
#pragma unroll
        for (int j = 0; j < N * PX; j++) {
            out[j / PX][j % PX] = sample_of<T, PX>(parts[j / PX][j % PX / PART], j % PART);
        }
    } else {
#pragma unroll
        for (int j = 0; j < N * PX; j++) {
            out[j / PX][j % PX] = from[j / PX][at.within(shape<PX>::offset(j % PX))];
        }
    }
}

template <typename T, int PX, typename WIDE>
__device__ void load_row(const T *from, const place &at, WIDE (&out)[PX])
{
    const T *const rows[1] = {from};
    WIDE samples[1][PX];
    load_rows<T, 1, PX>(rows, at, samples);
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out[j] = samples[0][j];
    }
}

// pb_rect_grow of the CPU, here for the device.
inline __device__ pb_rect grown(const pb_rect &core, int32_t margin, int32_t image_w,
                                int32_t image_h)
{
    const int32_t left = max(core.x - margin, 0), top = max(core.y - margin, 0);
    const int32_t right = min(core.x + core.w + margin, image_w);
    const int32_t bottom = min(core.y + core.h + margin, image_h);
    return {left, top, right - left, bottom - top};
}

// What a base rect of another coordinate system becomes with a margin.
inline __device__ pb_rect base_grown(const pb_rect &base, int32_t margin, int32_t w, int32_t h)
{
    return base.w > 0 ? grown(base, margin, w, h) : base;
}

// What a load reads: pixel (x, y) of the sweep is (x + dx, y + dy) of a window or of a plane.
struct window_leaf {
    const pb_window &window;
    int32_t dx, dy;
};
struct plane_leaf {
    pb_rect rect;
    int32_t dx, dy;
};

template <class Sweep>
__device__ window_leaf find_window(const Sweep &sweep, const pb_instr &, const pb_program_input &)
{
    return {sweep.in.window[0], 0, 0};
}

template <class Sweep>
__device__ window_leaf find_window(const on_grids<Sweep> &sweep, const pb_instr &instr,
                                   const pb_program_input &input)
{
    const pb_leaf_place &place = sweep.places[instr.src[0]];
    return {sweep.in.window[input.window], place.dx, place.dy};
}

template <class Sweep> __device__ plane_leaf find_plane(const Sweep &sweep, const pb_instr &instr)
{
    return {grown(core_of(sweep), instr.margin, sweep.in.image_w, sweep.in.image_h), 0, 0};
}

template <class Sweep>
__device__ plane_leaf find_plane(const on_grids<Sweep> &sweep, const pb_instr &instr)
{
    const pb_leaf_place &place = sweep.places[instr.src[0]];
    if (place.apart) {
        return {base_grown(sweep.bases[place.grid], instr.margin, place.grid_w, place.grid_h),
                place.dx, place.dy};
    }
    return {pb_rect_on(&place.map, place.grid_w, place.grid_h, &core_of(sweep), instr.margin),
            place.dx, place.dy};
}

// How far a pixel's place on the grid of an index is from that on the sweep's.
struct index_shift {
    int32_t dx, dy;
};

template <class Sweep> __device__ index_shift find_shift(const Sweep &, const pb_instr &)
{
    return {0, 0};
}

template <class Sweep>
__device__ index_shift find_shift(const on_grids<Sweep> &sweep, const pb_instr &instr)
{
    const pb_leaf_place &place = sweep.places[instr.src[0]];
    return {place.dx, place.dy};
}

template <typename T>
__device__ const T *find_sample(const window_leaf &leaf, uint32_t plane, const place &at)
{
    const pb_window &window = leaf.window;
    const unsigned char *const row =
        static_cast<const unsigned char *>(window.data) + plane * window.plane_bytes +
        static_cast<size_t>(at.y + leaf.dy - window.rect.y) * window.row_bytes;
    return reinterpret_cast<const T *>(row) + (at.x + leaf.dx - window.rect.x);
}

template <int PX>
__device__ void apply_mask(const window_leaf &leaf, const place &at, pixels<PX> &out)
{
    const pb_window &window = leaf.window;
    const uint8_t *const row =
        window.mask + static_cast<size_t>(at.y + leaf.dy - window.rect.y) * window.mask_row_bytes;
    int32_t valid[PX];
    load_row<uint8_t, PX>(row + (at.x + leaf.dx - window.rect.x), at, valid);
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = valid[j] != 0 ? out.v[j] : pb_pixel_nan();
    }
}

// Samples as they are stored become numbers.
template <int N, int PX, class Sweep>
__device__ void load_typed(const Sweep &sweep, const pb_instr *instr,
                           const pb_program_input (&input)[N], const place &at,
                           pixels<PX> (&out)[N])
{
    switch (input[0].type) {
#define LOAD(suffix, type, fn, wide, field)                                                        \
    case PB_##suffix: {                                                                            \
        const type *from[N];                                                                       \
        wide samples[N][PX];                                                                       \
        _Pragma("unroll") for (int n = 0; n < N; n++)                                              \
        {                                                                                          \
            from[n] =                                                                              \
                find_sample<type>(find_window(sweep, instr[n], input[n]), input[n].plane, at);     \
        }                                                                                          \
        load_rows<type, N, PX>(from, at, samples);                                                 \
        _Pragma("unroll") for (int j = 0; j < N * PX; j++)                                         \
        {                                                                                          \
            const pb_program_input &of = input[j / PX];                                            \
            out[j / PX].v[j % PX] = pb_pixel_from_##fn(samples[j / PX][j % PX], of.has_nodata,     \
                                                       static_cast<wide>(of.field));               \
        }                                                                                          \
        break;                                                                                     \
    }
        PB_SAMPLE_TYPES(LOAD)
#undef LOAD
    }
}

// N bands of one type, one behind the other in the program. Their descriptions are copied whole:
// the parts arrive together.
template <int N, int PX, class Sweep>
__device__ void load_inputs(const Sweep &sweep, const pb_instr *instr, const place &at,
                            pixels<PX> (&out)[N])
{
    pb_program_input input[N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        input[n] = sweep.inputs[instr[n].index];
    }
    load_typed<N, PX>(sweep, instr, input, at, out);
#pragma unroll
    for (int n = 0; n < N; n++) {
        const window_leaf leaf = find_window(sweep, instr[n], input[n]);
        if (input[n].scaled) {
#pragma unroll
            for (int j = 0; j < PX; j++) {
                out[n].v[j] = out[n].v[j] * input[n].scale + input[n].offset;
            }
        }
        if (leaf.window.mask) {
            apply_mask<PX>(leaf, at, out[n]);
        }
    }
}

template <int PX, class Sweep>
__device__ pixels<PX> load_plane(const Sweep &sweep, const pb_instr &instr, const place &at)
{
    const plane_leaf leaf = find_plane(sweep, instr);
    const float *const row = sweep.planes + instr.index * sweep.plane_px +
                             static_cast<size_t>(at.y + leaf.dy - leaf.rect.y) * leaf.rect.w;
    pixels<PX> out;
    load_row<float, PX>(row + (at.x + leaf.dx - leaf.rect.x), at, out.v);
    return out;
}

template <int PX, class Sweep>
__device__ pixels<PX> load_index(const Sweep &sweep, const pb_instr &instr, const place &at)
{
    const index_shift shift = find_shift(sweep, instr);
    pixels<PX> out;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = static_cast<float>(
            instr.index == 1 ? at.y + shift.dy : at.x + at.within(shape<PX>::offset(j)) + shift.dx);
    }
    return out;
}

template <int PX, class Sweep>
__device__ void store_pixels(const Sweep &sweep, const pb_instr &instr, const place &at,
                             const pixels<PX> &value)
{
    using access = row_access<float, PX>;
    using type = typename access::type;
    float *const to = sweep.out + instr.index * sweep.out_px + at.offset;
    type out[PX / access::PART];
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out[j / access::PART].v[j % access::PART] = pb_pixel_result(value.v[j]);
    }
    if (access::fits(to, at.stored)) {
#pragma unroll
        for (int k = 0; k < PX / access::PART; k++) {
            *reinterpret_cast<type *>(access::part(to, k)) = out[k];
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < PX; j++) {
        const int offset = shape<PX>::offset(j);
        if (offset <= at.stored) {
            to[offset] = out[j / access::PART].v[j % access::PART];
        }
    }
}
} // namespace pb_device
#endif
