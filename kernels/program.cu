// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The interpreter for GPUs. A thread runs the whole program for PX pixels that lie a block's width
// apart, so that the loads and stores of a warp are consecutive whatever the row length, and the
// decoding of an instruction (uniform: every thread takes the same branch) is shared by PX pixels.
// The pixels of the rectangle are numbered through; rows do not matter but for addresses.
//
// The machine's registers are in shared memory, [register][thread] of PX floats: 16-byte accesses
// without bank conflicts. Indexing a local array would send them to memory. The more registers a
// program has, the fewer threads a block gets, so that 48 KiB suffice and every device since SM 7.5
// behaves alike. No thread reads what another wrote: there is no barrier.
#include "kernels/launch.cuh"
#include "kernels/program.h"
#include "kernels/vm_pixel.h"

namespace
{
constexpr int THREADS_MAX = 128;
constexpr size_t SHARED_BYTES = 48 * 1024;

// One register of one thread.
template <int PX> struct alignas(PX * sizeof(float)) pixels {
    float v[PX];
};

// Where the pixels of a thread are.
template <int PX> struct place {
    uint32_t index[PX];   // in the rectangle
    int32_t x[PX], y[PX]; // image
    bool inside[PX]; // false: beyond the rectangle; the coordinates are those of its last pixel
};

template <int PX> __device__ place<PX> find_place(const pb_sweep &sweep, uint32_t first)
{
    const uint32_t width = static_cast<uint32_t>(sweep.rect.w);
    const uint32_t total = width * static_cast<uint32_t>(sweep.rect.h);
    place<PX> at;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        const uint32_t index = first + static_cast<uint32_t>(j) * blockDim.x + threadIdx.x;
        at.inside[j] = index < total;
        at.index[j] = at.inside[j] ? index : total - 1;
        const uint32_t row = at.index[j] / width;
        at.y[j] = sweep.rect.y + static_cast<int32_t>(row);
        at.x[j] = sweep.rect.x + static_cast<int32_t>(at.index[j] - row * width);
    }
    return at;
}

template <typename T, int PX>
__device__ void load_samples(const pb_sweep &sweep, const pb_instr &instr, const place<PX> &at,
                             T (&out)[PX])
{
    const unsigned char *const plane =
        static_cast<const unsigned char *>(sweep.in.data) + instr.index * sweep.in.plane_bytes;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        const size_t row = static_cast<size_t>(at.y[j] - sweep.in.read.y) * sweep.in.row_bytes;
        out[j] = reinterpret_cast<const T *>(plane + row)[at.x[j] - sweep.in.read.x];
    }
}

template <int PX>
__device__ pixels<PX> load_input(const pb_sweep &sweep, const pb_instr &instr, const place<PX> &at)
{
    const pb_program_input &input = sweep.inputs[instr.index];
    const bool has_nodata = input.has_nodata;
    pixels<PX> out;
    switch (input.type) {
#define LOAD(suffix, type, fn, wide, field)                                                        \
    case PB_##suffix: {                                                                            \
        const wide nodata = static_cast<wide>(input.field);                                        \
        type samples[PX];                                                                          \
        load_samples<type, PX>(sweep, instr, at, samples);                                         \
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
    if (sweep.in.mask) {
#pragma unroll
        for (int j = 0; j < PX; j++) {
            const size_t row = static_cast<size_t>(at.y[j] - sweep.in.read.y) * sweep.in.read.w;
            const bool valid = sweep.in.mask[row + (at.x[j] - sweep.in.read.x)] != 0;
            out.v[j] = valid ? out.v[j] : pb_pixel_nan();
        }
    }
    return out;
}

// The rectangle of a scratch plane; pb_rect_grow of the CPU, here for the device.
__device__ pb_rect grown(const pb_sweep &sweep, int32_t margin)
{
    const pb_rect core = sweep.in.core;
    const int32_t left = max(core.x - margin, 0), top = max(core.y - margin, 0);
    const int32_t right = min(core.x + core.w + margin, sweep.in.image_w);
    const int32_t bottom = min(core.y + core.h + margin, sweep.in.image_h);
    return {left, top, right - left, bottom - top};
}

template <int PX>
__device__ pixels<PX> load_plane(const pb_sweep &sweep, const pb_instr &instr, const place<PX> &at)
{
    const pb_rect rect = grown(sweep, instr.margin);
    const float *const plane = sweep.planes + instr.index * sweep.plane_px;
    pixels<PX> out;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        out.v[j] = plane[static_cast<size_t>(at.y[j] - rect.y) * rect.w + (at.x[j] - rect.x)];
    }
    return out;
}

template <int PX>
__device__ void store(const pb_sweep &sweep, const pb_instr &instr, const place<PX> &at,
                      const pixels<PX> &value)
{
    float *const plane = sweep.out + instr.index * sweep.out_px;
#pragma unroll
    for (int j = 0; j < PX; j++) {
        if (at.inside[j]) {
            plane[at.index[j]] = pb_pixel_result(value.v[j]);
        }
    }
}

// The registers of one thread.
template <int PX> class register_file
{
  public:
    __device__ explicit register_file(pixels<PX> *shared) : mine_(shared + threadIdx.x)
    {
    }
    __device__ pixels<PX> &operator[](unsigned r) const
    {
        return mine_[r * blockDim.x];
    }
    // Operand k of an instruction.
    __device__ pixels<PX> operand(const pb_instr &instr, int k) const
    {
        if (instr.imm_mask >> k & 1) {
            pixels<PX> out;
#pragma unroll
            for (int j = 0; j < PX; j++) {
                out.v[j] = instr.imm[k == 2];
            }
            return out;
        }
        return (*this)[instr.src[k]];
    }

  private:
    pixels<PX> *mine_;
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
    registers[instr.dst] = out;
}

template <int PX>
__device__ void execute(const pb_sweep &sweep, const register_file<PX> &registers,
                        const place<PX> &at, const pb_instr &instr)
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
#include "kernels/vm_ops.def"
#undef PB_VM_OP
    case PB_CODE_CONST: {
        pixels<PX> out;
#pragma unroll
        for (int j = 0; j < PX; j++) {
            out.v[j] = instr.imm[0];
        }
        registers[instr.dst] = out;
        break;
    }
    case PB_CODE_INPUT:
        registers[instr.dst] = load_input<PX>(sweep, instr, at);
        break;
    case PB_CODE_PLANE:
        registers[instr.dst] = load_plane<PX>(sweep, instr, at);
        break;
    default: // PB_CODE_STORE
        store<PX>(sweep, instr, at, registers.operand(instr, 0));
        break;
    }
}

static_assert(sizeof(pb_instr) == sizeof(uint4), "an instruction is one 16-byte load");

template <int PX>
__global__ void __launch_bounds__(THREADS_MAX) run_program(const __grid_constant__ pb_sweep sweep)
{
    extern __shared__ float4 shared[];
    const register_file<PX> registers(reinterpret_cast<pixels<PX> *>(shared));
    const uint4 *const code = reinterpret_cast<const uint4 *>(sweep.code);
    const uint32_t total =
        static_cast<uint32_t>(sweep.rect.w) * static_cast<uint32_t>(sweep.rect.h);
    const uint32_t block_px = blockDim.x * PX;

    for (uint32_t first = blockIdx.x * block_px; first < total; first += gridDim.x * block_px) {
        const place<PX> at = find_place<PX>(sweep, first);
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

// PX pixels a thread and as many threads as fit.
template <int PX> int launch(const pb_sweep &sweep, uint32_t n_registers, cudaStream_t stream)
{
    const size_t total = static_cast<size_t>(sweep.rect.w) * static_cast<size_t>(sweep.rect.h);
    const size_t thread_bytes = n_registers * sizeof(pixels<PX>);
    unsigned threads = THREADS_MAX;
    while (threads > 32 && threads * thread_bytes > SHARED_BYTES) {
        threads /= 2;
    }
    const unsigned blocks = pb_cuda_blocks(total, threads * PX);
    if (blocks == 0) {
        return -EIO;
    }
    run_program<PX><<<blocks, threads, threads * thread_bytes, stream>>>(sweep);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
} // namespace

int pb_program_run_cuda(const struct pb_sweep *sweep, void *stream)
{
    const uint32_t n_registers = sweep->n_registers ? sweep->n_registers : 1;
    if (static_cast<uint64_t>(sweep->rect.w) * static_cast<uint64_t>(sweep->rect.h) > INT32_MAX) {
        return -EIO; // pixels are numbered with 32 bits
    }
    if (32 * n_registers * sizeof(pixels<4>) <= SHARED_BYTES) {
        return launch<4>(*sweep, n_registers, static_cast<cudaStream_t>(stream));
    }
    return launch<1>(*sweep, n_registers, static_cast<cudaStream_t>(stream));
}
