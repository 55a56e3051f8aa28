// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/chain/chain_sums.cuh"
#include "kernels/launch.cuh"

#include <cstdlib>

namespace
{
constexpr unsigned THREADS_MAX = 256, SHARE = 4; // of the free memory, one part in so many

int check(cudaError_t error)
{
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); // it is reported here and must not show up elsewhere
    }
    return wic_cuda_errno(error);
}

// The default stream has to be waited for: the streams that run the chain do not.
int settle(cudaError_t error)
{
    return check(error == cudaSuccess ? cudaStreamSynchronize(cudaStreamLegacy) : error);
}

int upload(const pb_chain *pass, pb_chain_sums_device *device)
{
    const size_t n = pb_chain_sums_patches(pass, &device->sums, nullptr);
    const size_t bytes = n * sizeof(pb_chain_sums_patch);
    auto *const host = static_cast<pb_chain_sums_patch *>(malloc(bytes + 1));
    void *memory = nullptr;
    if (!host) {
        return -ENOMEM;
    }
    (void)pb_chain_sums_patches(pass, &device->sums, host);
    int rc = check(cudaMalloc(&memory, bytes + 1));
    device->patches = static_cast<const pb_chain_sums_patch *>(memory);
    device->n_patches = static_cast<uint32_t>(n);
    if (rc == 0) {
        rc = settle(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    }
    free(host);
    return rc;
}

// Without room for a tile, all of them travel in each round.
int make_store(size_t tile_bytes, uint32_t n_tiles, pb_chain_sums_device *device)
{
    size_t free_bytes = 0, total = 0;
    int rc = check(cudaMemGetInfo(&free_bytes, &total));
    if (rc < 0 || tile_bytes == 0) {
        return rc;
    }
    const size_t fit = free_bytes / SHARE / tile_bytes;
    const uint32_t n = fit < n_tiles ? static_cast<uint32_t>(fit) : n_tiles;
    void *memory = nullptr;
    if (n == 0 || cudaMalloc(&memory, n * tile_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    device->store = static_cast<unsigned char *>(memory);
    device->stored_bytes = tile_bytes;
    device->n_stored = n;
    return settle(cudaMemset(memory, 0, n * tile_bytes));
}

template <int PX, pb_chain_kind KIND>
__global__ void __launch_bounds__(THREADS_MAX, 2)
    sum_parts(const __grid_constant__ pb_chain_device chain,
              const __grid_constant__ pb_chain_sums_device sums,
              const __grid_constant__ pb_chain_sums_launch task)
{
    extern __shared__ float4 shared[];
    const pb_rect core = task.in.core;
    const uint32_t columns = static_cast<uint32_t>((core.w + task.part_w - 1) / task.part_w);
    const uint32_t rows = static_cast<uint32_t>((core.h + task.part_h - 1) / task.part_h);
    const pb_block_group group = {threadIdx.x, blockDim.x};
    const pb_chain_sums_block block = {chain,
                                       sums,
                                       task.places,
                                       static_cast<unsigned char *>(task.scratch) +
                                           blockIdx.x * task.places.bytes,
                                       task.needs.plane_px,
                                       shared};
    pb_chain_sums_begin(block, task.head, group);
    pb_tile_in in = task.in;
    for (uint32_t i = blockIdx.x; i < columns * rows; i += gridDim.x) {
        const int32_t x = static_cast<int32_t>(i % columns) * task.part_w;
        const int32_t y = static_cast<int32_t>(i / columns) * task.part_h;
        in.core = {core.x + x, core.y + y, min(task.part_w, core.w - x),
                   min(task.part_h, core.h - y)};
        pb_chain_sums_part<PX, KIND>(block, in, task.out + static_cast<size_t>(i) * sums.sums.words,
                                     group);
        __syncthreads();
    }
}

template <int PX> auto choose(const pb_chain *pass)
{
    return pass->keeps_grid ? sum_parts<PX, pb_chain_kind::PLANES>
                            : sum_parts<PX, pb_chain_kind::GRIDS>;
}
} // namespace

int pb_chain_sums_device_create(const struct pb_chain *pass, const struct pb_chain_sums *sums,
                                size_t tile_bytes, uint32_t n_tiles,
                                struct pb_chain_sums_device *out_device)
{
    pb_chain_sums_device device = {};
    device.sums = *sums;
    int rc = upload(pass, &device);
    if (rc == 0) {
        rc = make_store(tile_bytes, n_tiles, &device);
    }
    if (rc < 0) {
        pb_chain_sums_device_destroy(&device);
        return rc;
    }
    *out_device = device;
    return 0;
}

void pb_chain_sums_device_destroy(struct pb_chain_sums_device *device)
{
    (void)cudaFree(const_cast<pb_chain_sums_patch *>(device->patches));
    (void)cudaFree(device->store);
    *device = {};
}

int pb_chain_sums_cuda(const struct pb_chain *pass, const struct pb_chain_sums_launch *launch,
                       void *stream)
{
    auto *const kernel = launch->needs.px == 4 ? choose<4>(pass) : choose<1>(pass);
    if (launch->threads > THREADS_MAX || launch->blocks == 0) {
        return -EINVAL;
    }
    kernel<<<launch->blocks, launch->threads, launch->needs.shared_bytes,
             static_cast<cudaStream_t>(stream)>>>(*launch->chain, *launch->sums, *launch);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
