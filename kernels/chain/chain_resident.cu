// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory and choice of the resident kernels (kernels/chain/resident_kernel.cuh). Six of them: 4
// pixels or 1 a thread; lines in shared memory, which have no planes to care for, parts of a tile
// in place, or such parts over several grids. Four more sum their parts up
// (resident_sums_kernel.cuh).
#include "kernels/chain/chain_kernels.cuh"
#include "kernels/chain/chain_resident.cuh"
#include "wic/device/cuda_errno.h"

#include <cstdlib>

using namespace pb_device;

struct pb_chain_resident {
    task argument;
};

int pb_chain_resident_create(const struct pb_chain *chain,
                             const struct pb_chain_resident_shape *shape,
                             struct pb_chain_resident **out_resident)
{
    auto *const resident = static_cast<pb_chain_resident *>(calloc(1, sizeof(pb_chain_resident)));
    if (!resident) {
        return -ENOMEM;
    }
    pb_device::task &task = resident->argument;
    task.shape = *shape;
    task.keeps_grid = chain->keeps_grid;
    int rc = pb_chain_device_create(chain, &task.chain);
    if (rc == 0 && shape->scratch_bytes > 0) {
        rc = wic_cuda_errno(cudaMalloc(reinterpret_cast<void **>(&task.scratch),
                                       shape->blocks * shape->scratch_bytes));
    }
    if (rc == 0 && shape->sums.n > 0) {
        rc = pb_chain_sums_device_create(chain, &shape->sums, shape->tile_bytes, shape->n_tiles,
                                         &task.sums);
    }
    if (rc < 0) {
        pb_chain_resident_destroy(resident);
        return rc;
    }
    *out_resident = resident;
    return 0;
}

namespace
{
template <pb_chain_kind KIND> const void *sums_kernel_for(int px)
{
    return px == 4 ? resident_sums_kernel<4, KIND>() : resident_sums_kernel<1, KIND>();
}

template <pb_chain_kind KIND> const void *kernel_for(int px)
{
    return px == 4 ? resident_kernel<4, KIND>() : resident_kernel<1, KIND>();
}
} // namespace

const void *pb_chain_resident_kernel(const struct pb_chain_resident *resident)
{
    const pb_chain_resident_shape &shape = resident->argument.shape;
    if (shape.sums.n > 0) {
        return resident->argument.keeps_grid ? sums_kernel_for<pb_chain_kind::PLANES>(shape.px)
                                             : sums_kernel_for<pb_chain_kind::GRIDS>(shape.px);
    }
    if (!resident->argument.keeps_grid) {
        return kernel_for<pb_chain_kind::GRIDS>(shape.px);
    }
    return shape.by_line ? kernel_for<pb_chain_kind::POINTWISE>(shape.px)
                         : kernel_for<pb_chain_kind::PLANES>(shape.px);
}

const void *pb_chain_resident_argument(const struct pb_chain_resident *resident)
{
    return &resident->argument;
}

size_t pb_chain_resident_argument_bytes(void)
{
    return sizeof(task);
}

uint32_t pb_chain_resident_stored(const struct pb_chain_resident *resident)
{
    return resident->argument.sums.n_stored;
}

void pb_chain_resident_destroy(struct pb_chain_resident *resident)
{
    if (resident) {
        pb_chain_sums_device_destroy(&resident->argument.sums);
        pb_chain_device_destroy(&resident->argument.chain);
        (void)cudaFree(resident->argument.scratch);
        free(resident);
    }
}
