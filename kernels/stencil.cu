// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Stencils on a GPU. A block makes a tile of 32 x 32 pixels: it brings the tile's neighbourhood
// into shared memory once (there the edge rule is applied, so that the sums see no edges), sums
// along x and then along y as the CPU does, term by term in the same order. Four pixels of a column
// a thread. Weights travel as a kernel argument: constant memory, one broadcast for a warp. Nothing
// needs `temp`.
#include "kernels/stencil.h"
#include "kernels/stencil_pixel.h"

#include <cerrno>
#include <cuda_runtime.h>

namespace
{
constexpr int TILE = 32;
constexpr int ROWS = 8; // threads of a block along y

// One run: planes, and the size of the image they are cut from.
struct task {
    pb_plane in, out;
    int32_t w, h;
};

template <int R> using patch = float[TILE + 2 * R][TILE + 2 * R];
template <int R> using band = float[TILE + 2 * R][TILE];

// The pixels from R to the left and above of the block's tile to R right and below of it. Past the
// rectangle wanted (last blocks of a row or column) there may be no pixels, and nobody uses them.
template <int R> __device__ void load(const pb_stencil &stencil, const task &task, patch<R> &to)
{
    const pb_rect in = task.in.rect, out = task.out.rect;
    const int32_t x0 = static_cast<int32_t>(blockIdx.x) * TILE - R;
    const int32_t y0 = static_cast<int32_t>(blockIdx.y) * TILE - R;
    for (int i = threadIdx.y; i < TILE + 2 * R; i += ROWS) {
        const int32_t row =
            y0 + i < out.h + R ? pb_stencil_index(out.y + y0 + i, task.h, stencil.edge) : -1;
        for (int j = threadIdx.x; j < TILE + 2 * R; j += TILE) {
            const int32_t column =
                x0 + j < out.w + R ? pb_stencil_index(out.x + x0 + j, task.w, stencil.edge) : -1;
            to[i][j] = row < 0 || column < 0
                           ? pb_pixel_nan()
                           : task.in.data[static_cast<size_t>(row - in.y) * in.w + (column - in.x)];
        }
    }
    __syncthreads();
}

template <int R> __device__ void sum_rows(const float *weight, const patch<R> &from, band<R> &to)
{
    for (int i = threadIdx.y; i < TILE + 2 * R; i += ROWS) {
        float sum = pb_stencil_first(weight[0], from[i][threadIdx.x]);
#pragma unroll
        for (int k = 1; k <= 2 * R; k++) {
            sum = pb_stencil_next(sum, weight[k], from[i][threadIdx.x + k]);
        }
        to[i][threadIdx.x] = sum;
    }
}

template <int R> __device__ float sum_column(const float *weight, const band<R> &from, int row)
{
    float sum = pb_stencil_first(weight[0], from[row][threadIdx.x]);
#pragma unroll
    for (int k = 1; k <= 2 * R; k++) {
        sum = pb_stencil_next(sum, weight[k], from[row + k][threadIdx.x]);
    }
    return sum;
}

__device__ void store(const task &task, int row, float value)
{
    const int32_t x = static_cast<int32_t>(blockIdx.x) * TILE + static_cast<int32_t>(threadIdx.x);
    const int32_t y = static_cast<int32_t>(blockIdx.y) * TILE + row;
    if (x < task.out.rect.w && y < task.out.rect.h) {
        task.out.data[static_cast<size_t>(y) * task.out.rect.w + x] = pb_pixel_result(value);
    }
}

template <int R> __global__ void separable(const pb_stencil stencil, const task task)
{
    __shared__ patch<R> pixels;
    __shared__ band<R> rows;
    load<R>(stencil, task, pixels);
    sum_rows<R>(stencil.weight_x, pixels, rows);
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        store(task, i, sum_column<R>(stencil.weight_y, rows, i));
    }
}

template <int R> __global__ void gradient(const pb_stencil stencil, const task task)
{
    __shared__ patch<R> pixels;
    __shared__ band<R> rows_x, rows_y;
    load<R>(stencil, task, pixels);
    sum_rows<R>(stencil.weight_x, pixels, rows_x);
    sum_rows<R>(stencil.weight_y, pixels, rows_y);
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const float gx = sum_column<R>(stencil.weight_y, rows_x, i);
        const float gy = sum_column<R>(stencil.weight_x, rows_y, i);
        store(task, i, pb_stencil_magnitude(gx, gy));
    }
}

template <int R> __global__ void full(const pb_stencil stencil, const task task)
{
    constexpr int side = 2 * R + 1;
    __shared__ patch<R> pixels;
    load<R>(stencil, task, pixels);
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        float sum = pb_stencil_first(stencil.weight[0], pixels[i][threadIdx.x]);
        for (int r = 0; r < side; r++) {
#pragma unroll
            for (int k = 0; k < side; k++) {
                if (r + k > 0) {
                    sum = pb_stencil_next(sum, stencil.weight[r * side + k],
                                          pixels[i + r][threadIdx.x + k]);
                }
            }
        }
        store(task, i, sum);
    }
}

template <int R> void launch(const pb_stencil &stencil, const task &task, cudaStream_t stream)
{
    const dim3 block(TILE, ROWS);
    const dim3 grid(static_cast<unsigned>((task.out.rect.w + TILE - 1) / TILE),
                    static_cast<unsigned>((task.out.rect.h + TILE - 1) / TILE));
    if (stencil.kind == PB_STENCIL_SEPARABLE) {
        separable<R><<<grid, block, 0, stream>>>(stencil, task);
    } else if (stencil.kind == PB_STENCIL_GRADIENT) {
        gradient<R><<<grid, block, 0, stream>>>(stencil, task);
    } else {
        full<R><<<grid, block, 0, stream>>>(stencil, task);
    }
}

using launcher = void (*)(const pb_stencil &, const task &, cudaStream_t);
const launcher launchers[] = {launch<1>, launch<2>, launch<3>, launch<4>,
                              launch<5>, launch<6>, launch<7>};
} // namespace

int pb_stencil_run_cuda(const struct pb_stencil *stencil, const struct pb_plane *in,
                        const struct pb_plane *out, int32_t image_w, int32_t image_h, float *temp,
                        void *stream)
{
    (void)temp;
    if (stencil->radius < 1 || 2 * stencil->radius + 1 > PB_STENCIL_SIDE_MAX) {
        return -EINVAL;
    }
    if (out->rect.w <= 0 || out->rect.h <= 0) {
        return 0;
    }
    launchers[stencil->radius - 1](*stencil, task{*in, *out, image_w, image_h},
                                   static_cast<cudaStream_t>(stream));
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
