// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/chain/chain_kernels.cuh"
#include "kernels/chain/chain_sums.cuh"
#include "kernels/launch.cuh"

#include <cstdlib>

namespace
{
constexpr unsigned SHARE = 4; // of the free memory, one part in so many

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

template <int PX> const void *choose(const pb_chain *pass)
{
    return pass->keeps_grid ? pb_device::sum_parts_kernel<PX, pb_chain_kind::PLANES>()
                            : pb_device::sum_parts_kernel<PX, pb_chain_kind::GRIDS>();
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
    const void *const kernel = launch->needs.px == 4 ? choose<4>(pass) : choose<1>(pass);
    if (launch->threads > pb_device::sum_parts_threads_max || launch->blocks == 0) {
        return -EINVAL;
    }
    void *arguments[] = {const_cast<pb_chain_device *>(launch->chain),
                         const_cast<pb_chain_sums_device *>(launch->sums),
                         const_cast<pb_chain_sums_launch *>(launch)};
    if (cudaLaunchKernel(kernel, launch->blocks, launch->threads, arguments,
                         launch->needs.shared_bytes,
                         static_cast<cudaStream_t>(stream)) != cudaSuccess) {
        (void)cudaGetLastError();
        return -EIO;
    }
    return 0;
}
