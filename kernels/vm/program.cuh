// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_PROGRAM_CUH
#define PB_PROGRAM_CUH
// The interpreter for GPUs. A thread runs the whole program for PX pixels that lie side by side in
// a row, so one address and, where it is aligned, one access serve all of them, and the decoding of
// an instruction (uniform: every thread takes the same branch) is shared by PX pixels. The rows of
// the rectangle are cut into groups of PX pixels, which are numbered through; the last group of a
// row may have fewer.
//
// The machine's registers are in shared memory, [register][thread] of 4 floats: 16-byte accesses
// without bank conflicts. Indexing a local array would send them to memory. No thread reads what
// another wrote: there is no barrier. Who the threads are is the caller's business: a whole block
// (program.cu) or some warps of one (chain_block.cuh).
#include "kernels/vm/curve_pixel.h"
#include "kernels/vm/program.h"
#include "kernels/vm/vm_pixel.h"

namespace pb_device
{
// One register of one thread.
template <int PX> struct alignas(PX >= 4 ? 16 : PX * sizeof(float)) pixels {
    float v[PX];
};

// What is swept: a pb_sweep, or a type with the same members that keeps them elsewhere, and the
// rectangle that its scratch planes grow from.
inline __device__ const pb_rect &core_of(const pb_sweep &sweep)
{
    return sweep.in.core;
}

// A sweep with leaves on other grids than its own, or of several sources: `places` says where.
template <class Sweep> struct on_grids : Sweep {
};

// Which thread of how many.
struct member {
    uint32_t thread, threads;
};

// Where the pixels of a thread are: of a row from x on. Pixel j > last is taken for pixel `last`.
struct place {
    uint32_t offset; // of the first one, in an output plane
    int32_t x, y;    // of the first one, image
    int32_t last;    // 0 .. PX - 1
    int32_t n;       // that are stored: last + 1, or 0: the group is beyond the rectangle
    __device__ int32_t column(int j) const
    {
        return x + (j < last ? j : last);
    }
};

// Of group `number`, where a row has so many.
template <int PX, class Sweep>
__device__ place find_place(const Sweep &sweep, uint32_t number, uint32_t groups)
{
    const uint32_t total = groups * static_cast<uint32_t>(sweep.rect.h);
    const bool inside = number < total;
    const uint32_t index = inside ? number : total - 1;
    const uint32_t row = index / groups;
    const int32_t column = static_cast<int32_t>((index - row * groups) * PX);
    const int32_t left = sweep.rect.w - column;
    place at;
    at.last = (left < PX ? left : PX) - 1;
    at.n = inside ? at.last + 1 : 0;
    at.offset = row * static_cast<uint32_t>(sweep.out_row) + static_cast<uint32_t>(column);
    at.x = sweep.rect.x + column;
    at.y = sweep.rect.y + static_cast<int32_t>(row);
    return at;
}

// One access for all pixels of a thread, or as many as it takes at 16 bytes each.
template <typename T, int PX> struct row_access {
    static constexpr size_t BYTES = sizeof(T) * PX;
    struct alignas(BYTES < 16 ? BYTES : 16) type {
        T v[PX];
    };
    static __device__ bool fits(const void *at, int32_t n)
    {
        return n == PX && reinterpret_cast<uintptr_t>(at) % alignof(type) == 0;
    }
};

template <typename T, int PX> __device__ void load_row(const T *from, const place &at, T (&out)[PX])
{
    using access = row_access<T, PX>;
    if (access::fits(from, at.last + 1)) {
        const auto all = *reinterpret_cast<const typename access::type *>(from);
#pragma unroll
        for (int j = 0; j < PX; j++) {
            out[j] = all.v[j];
        }
    } else {
#pragma unroll
        for (int j = 0; j < PX; j++) {
            out[j] = from[j < at.last ? j : at.last];
        }
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

template <typename T, int PX>
__device__ void load_samples(const window_leaf &leaf, uint32_t plane, const place &at, T (&out)[PX])
{
    const pb_window &window = leaf.window;
    const unsigned char *const row =
        static_cast<const unsigned char *>(window.data) + plane * window.plane_bytes +
        static_cast<size_t>(at.y + leaf.dy - window.rect.y) * window.row_bytes;
    load_row<T, PX>(reinterpret_cast<const T *>(row) + (at.x + leaf.dx - window.rect.x), at, out);
}

template <int PX>
__device__ void apply_mask(const window_leaf &leaf, const place &at, pixels<PX> &out)
{
    const pb_window &window = leaf.window;
    const uint8_t *const row =
        window.mask + static_cast<size_t>(at.y + leaf.dy - window.rect.y) * window.mask_row_bytes;
    uint8_t valid[PX];
    load_row<uint8_t, PX>(row + (at.x + leaf.dx - window.rect.x), at, valid);
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = valid[j] != 0 ? out.v[j] : pb_pixel_nan();
    }
}

template <int PX, class Sweep>
__device__ pixels<PX> load_input(const Sweep &sweep, const pb_instr &instr, const place &at)
{
    const pb_program_input &input = sweep.inputs[instr.index];
    const window_leaf leaf = find_window(sweep, instr, input);
    const bool has_nodata = input.has_nodata;
    pixels<PX> out;
    switch (input.type) {
#define LOAD(suffix, type, fn, wide, field)                                                        \
    case PB_##suffix: {                                                                            \
        const wide nodata = static_cast<wide>(input.field);                                        \
        type samples[PX];                                                                          \
        load_samples<type, PX>(leaf, input.plane, at, samples);                                    \
        _Pragma("unroll") for (int j = 0; j < PX; j++)                                             \
        {                                                                                          \
            out.v[j] = pb_pixel_from_##fn(static_cast<wide>(samples[j]), has_nodata, nodata);      \
        }                                                                                          \
        break;                                                                                     \
    }
        PB_SAMPLE_TYPES(LOAD)
#undef LOAD
    }
    if (input.scaled) {
        const float scale = input.scale, offset = input.offset;
#pragma unroll
        for (int j = 0; j < PX; j++) {
            out.v[j] = out.v[j] * scale + offset;
        }
    }
    if (leaf.window.mask) {
        apply_mask<PX>(leaf, at, out);
    }
    return out;
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
        out.v[j] = static_cast<float>(instr.index == 1 ? at.y + shift.dy : at.column(j) + shift.dx);
    }
    return out;
}

template <int PX, class Sweep>
__device__ void store_pixels(const Sweep &sweep, const pb_instr &instr, const place &at,
                             const pixels<PX> &value)
{
    using access = row_access<float, PX>;
    float *const to = sweep.out + instr.index * sweep.out_px + at.offset;
    typename access::type out;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = pb_pixel_result(value.v[j]);
    }
    if (access::fits(to, at.n)) {
        *reinterpret_cast<typename access::type *>(to) = out;
        return;
    }
#pragma unroll
    for (int j = 0; j < PX; j++) {
        if (j < at.n) {
            to[j] = out.v[j];
        }
    }
}

// The registers of one thread: 16 bytes of each lie beside those of the other threads, of PX = 8
// the other 16 bytes behind them.
template <int PX> class register_file
{
    static constexpr int PARTS = PX > 4 ? PX / 4 : 1;
    using part = pixels<PX / PARTS>;

  public:
    __device__ register_file(void *shared, const member &me)
        : mine_(static_cast<part *>(shared) + me.thread), threads_(me.threads)
    {
    }
    __device__ void set(unsigned r, const pixels<PX> &value) const
    {
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
            mine_[(r * PARTS + k) * threads_] = reinterpret_cast<const part *>(&value)[k];
        }
    }
    // Operand k of an instruction.
    __device__ pixels<PX> operand(const pb_instr &instr, int k) const
    {
        pixels<PX> out;
        if (instr.imm_mask >> k & 1) {
#pragma unroll
            for (int j = 0; j < PX; j++) {
                out.v[j] = instr.imm[k == 2];
            }
            return out;
        }
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            reinterpret_cast<part *>(&out)[i] = mine_[(instr.src[k] * PARTS + i) * threads_];
        }
        return out;
    }

  private:
    part *mine_;
    uint32_t threads_;
};

template <int ARITY, int PX, typename F>
__device__ void apply(const register_file<PX> &registers, const pb_instr &instr, F function)
{
    const pixels<PX> x = registers.operand(instr, 0);
    const pixels<PX> y = ARITY > 1 ? registers.operand(instr, 1) : x;
    const pixels<PX> z = ARITY > 2 ? registers.operand(instr, 2) : x;
    pixels<PX> out;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = function(x.v[j], y.v[j], z.v[j]);
    }
    registers.set(instr.dst, out);
}

template <int PX, class Sweep>
__device__ void execute(const Sweep &sweep, const register_file<PX> &registers, const place &at,
                        const pb_instr &instr)
{
#define ARGS_1 (x)
#define ARGS_2 (x, y)
#define ARGS_3 (x, y, z)
    switch (instr.code) {
#define PB_VM_OP(name, arity)                                                                      \
    case PB_CODE_##name:                                                                           \
        apply<arity, PX>(registers, instr, [](float x, float y, float z) {                         \
            (void)y, (void)z;                                                                      \
            return pb_vm_##name ARGS_##arity;                                                      \
        });                                                                                        \
        break;
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    case PB_CODE_CONST: {
        pixels<PX> out;
#pragma unroll
        for (int j = 0; j < PX; j++) {
            out.v[j] = instr.imm[0];
        }
        registers.set(instr.dst, out);
        break;
    }
    case PB_CODE_INPUT:
        registers.set(instr.dst, load_input<PX>(sweep, instr, at));
        break;
    case PB_CODE_PLANE:
        registers.set(instr.dst, load_plane<PX>(sweep, instr, at));
        break;
    case PB_CODE_INDEX:
        registers.set(instr.dst, load_index<PX>(sweep, instr, at));
        break;
    case PB_CODE_CURVE: {
        const auto *const knots = reinterpret_cast<const float *>(sweep.code + instr.curve.at);
        const int32_t n = instr.curve.n;
        apply<1, PX>(registers, instr,
                     [knots, n](float x, float, float) { return pb_curve_at(knots, n, x); });
        break;
    }
    default: // PB_CODE_STORE
        store_pixels<PX>(sweep, instr, at, registers.operand(instr, 0));
        break;
    }
}

static_assert(sizeof(pb_instr) == sizeof(uint4), "an instruction is one 16-byte load");

// The sweep's groups of PX pixels from `first` on, a group for each of me.threads threads, then
// again `stride` groups further on. `shared`: n_registers * me.threads of pixels<PX>, aligned to 16
// bytes.
template <int PX, class Sweep>
__device__ void run_program(const Sweep &sweep, const member &me, uint32_t first, uint32_t stride,
                            void *shared)
{
    const register_file<PX> registers(shared, me);
    const uint4 *const code = reinterpret_cast<const uint4 *>(sweep.code);
    const uint32_t groups = (static_cast<uint32_t>(sweep.rect.w) + PX - 1) / PX; // of a row
    const uint32_t total = groups * static_cast<uint32_t>(sweep.rect.h);

    for (; first < total; first += stride) {
        const place at = find_place<PX>(sweep, first + me.thread, groups);
        uint4 ahead = code[0]; // fetched while the one before it runs
        for (uint32_t i = 1; i <= sweep.n_code; i++) {
            const uint4 raw = ahead;
            ahead = code[i < sweep.n_code ? i : 0];
            pb_instr instr;
            memcpy(&instr, &raw, sizeof instr);
            execute<PX>(sweep, registers, at, instr);
        }
    }
}
} // namespace pb_device
#endif
