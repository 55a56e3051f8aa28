// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STAGES_TILE_CUH
#define WIC_STAGES_TILE_CUH
// The tile function of all strategies: a product of half-precision matrices by tensor cores
// (mma.sync), 128 x 256 a block of eight warps. A stage of shared memory has 64 columns of both
// operands; cp.async fills three stages while the fourth one is multiplied. Rows of 128 bytes are
// stored with their 16-byte parts exchanged (xor with the row), therefore ldmatrix has no bank
// conflicts. cp.async.cg reads from L2, where other blocks' tiles are.
//
// The waits of a strategy are in `before`, which all threads call for each 64 columns, in order,
// before they read the first operand there. The second operand, a stage's weights, is read without
// waiting.
#include <cstdint>
#include <cuda_fp16.h>

constexpr uint32_t TILE_COLS = 256, TILE_BLOCKS = 1, TILE_STAGES = 4; // blocks a multiprocessor
constexpr uint32_t TILE_ROWS = 128, TILE_STEP = 64;
constexpr uint32_t TILE_THREADS = TILE_ROWS / 64 * (TILE_COLS / 64) * 32; // 64 x 64 a warp
constexpr uint32_t TILE_LEFT = TILE_ROWS * TILE_STEP, TILE_RIGHT = TILE_COLS * TILE_STEP;
constexpr uint32_t TILE_SHARED = TILE_STAGES * (TILE_LEFT + TILE_RIGHT) * 2; // bytes
constexpr uint32_t TILE_PITCH = TILE_COLS + 8; // pitch of the staged result
static_assert(TILE_ROWS * TILE_PITCH * 2 <= TILE_SHARED, "the result is staged in their place");

// out = a * b, a: rows of `depth` elements, b: its columns, of `depth` elements each.
struct tile_product {
    const half *a, *b;
    half *out;
    uint32_t depth; // multiple of TILE_STEP
    uint32_t pitch; // pitch of out, in elements
};

// The threads of a tile; a block may have more.
__device__ inline void tile_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"(TILE_THREADS) : "memory");
}

__device__ inline uint32_t tile_place(uint32_t row, uint32_t part)
{
    return row * TILE_STEP + ((part ^ (row & 7)) * 8);
}

__device__ inline uint32_t tile_shared_address(const half *at)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// Loads rows of 64 elements, by all threads.
template <uint32_t rows>
__device__ inline void tile_load(const half *from, uint32_t pitch, half *to)
{
#pragma unroll
    for (uint32_t i = 0; i < rows * 8 / TILE_THREADS; i++) {
        const uint32_t row = (i * TILE_THREADS + threadIdx.x) / 8, part = threadIdx.x % 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         tile_shared_address(to + tile_place(row, part))),
                     "l"(from + static_cast<size_t>(row) * pitch + part * 8)
                     : "memory");
    }
}

__device__ inline void tile_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int left> __device__ inline void tile_arrived()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

__device__ inline void tile_fragment(const half *at, uint32_t (&out)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(tile_shared_address(at))
                 : "memory");
}

__device__ inline void tile_multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A warp's quarter of the tile: 64 x 64, as 4 x 8 products of 16 x 8.
using tile_sums = float[4][8][4];
constexpr uint32_t TILE_ACROSS = TILE_COLS / 64; // warps

__device__ inline void tile_step(const half *a, const half *b, tile_sums &sum)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t row = warp / TILE_ACROSS * 64 + lane % 16, row_part = lane / 16;
    const uint32_t col = warp % TILE_ACROSS * 64 + lane % 8 + lane / 16 * 8,
                   col_part = lane / 8 % 2;
    uint32_t left[2][4][4], right[2][4][4]; // this part of the step and the next one
    const auto load = [&](uint32_t k) {
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            tile_fragment(a + tile_place(row + i * 16, k * 2 + row_part), left[k % 2][i]);
            tile_fragment(b + tile_place(col + i * 16, k * 2 + col_part), right[k % 2][i]);
        }
    };
    load(0);
#pragma unroll
    for (uint32_t k = 0; k < TILE_STEP / 16; k++) {
        if (k + 1 < TILE_STEP / 16) {
            load(k + 1);
        }
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
            for (uint32_t j = 0; j < 8; j++) {
                tile_multiply(sum[i][j], left[k % 2][i], right[k % 2][j / 2][j % 2 * 2],
                              right[k % 2][j / 2][j % 2 * 2 + 1]);
            }
        }
    }
}

// Through shared memory, so that a warp writes whole lines.
__device__ inline void tile_store(const tile_sums &sum, half *staged, half *out, uint32_t pitch)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t row = warp / TILE_ACROSS * 64 + lane / 4,
                   col = warp % TILE_ACROSS * 64 + lane % 4 * 2;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
        for (uint32_t j = 0; j < 8; j++) {
            half *const at = staged + (row + i * 16) * TILE_PITCH + col + j * 8;
            *reinterpret_cast<half2 *>(at) = __floats2half2_rn(sum[i][j][0], sum[i][j][1]);
            *reinterpret_cast<half2 *>(at + 8 * TILE_PITCH) =
                __floats2half2_rn(sum[i][j][2], sum[i][j][3]);
        }
    }
    constexpr uint32_t PARTS = TILE_COLS / 8; // parts of 16 bytes in a row
    tile_sync();
#pragma unroll
    for (uint32_t i = 0; i < TILE_ROWS * PARTS / TILE_THREADS; i++) {
        const uint32_t at = (i * TILE_THREADS + threadIdx.x) / PARTS, part = threadIdx.x % PARTS;
        *reinterpret_cast<uint4 *>(out + static_cast<size_t>(at) * pitch + part * 8) =
            *reinterpret_cast<const uint4 *>(staged + at * TILE_PITCH + part * 8);
    }
}

// Called by the first TILE_THREADS threads of a block; shared: TILE_SHARED bytes, aligned to 128.
// They meet (tile_sync) before they use it again.
template <class Before>
__device__ void tile_compute(const tile_product &p, uint32_t row, uint32_t col, half *shared,
                             Before before)
{
    const half *const a = p.a + static_cast<size_t>(row) * TILE_ROWS * p.depth;
    const half *const b = p.b + static_cast<size_t>(col) * TILE_COLS * p.depth;
    half *const shared_b = shared + TILE_STAGES * TILE_LEFT;
    const uint32_t steps = p.depth / TILE_STEP;
    tile_sums sum = {};
    for (uint32_t s = 0; s < TILE_STAGES - 1 && s < steps; s++) {
        tile_load<TILE_COLS>(b + s * TILE_STEP, p.depth, shared_b + s * TILE_RIGHT);
    }
    for (uint32_t s = 0; s < TILE_STAGES - 1; s++) {
        if (s < steps) {
            before(s);
            tile_load<TILE_ROWS>(a + s * TILE_STEP, p.depth, shared + s * TILE_LEFT);
        }
        tile_commit();
    }
    for (uint32_t s = 0; s < steps; s++) {
        const uint32_t next = s + TILE_STAGES - 1, at = next % TILE_STAGES;
        tile_arrived<TILE_STAGES - 2>();
        tile_sync(); // the step is there for all, and all have left the one before
        if (next < steps) {
            before(next);
            tile_load<TILE_COLS>(b + next * TILE_STEP, p.depth, shared_b + at * TILE_RIGHT);
            tile_load<TILE_ROWS>(a + next * TILE_STEP, p.depth, shared + at * TILE_LEFT);
        }
        tile_commit();
        tile_step(shared + s % TILE_STAGES * TILE_LEFT, shared_b + s % TILE_STAGES * TILE_RIGHT,
                  sum);
    }
    tile_arrived<0>();
    tile_sync();
    tile_store(sum, shared,
               p.out + static_cast<size_t>(row) * TILE_ROWS * p.pitch + col * TILE_COLS, p.pitch);
}
#endif
