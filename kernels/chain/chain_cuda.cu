// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain on a GPU: its tables (chain_device.h) and a block of device memory for the scratch
// planes. Launching is the loop of chain_cpu.c with other functions at its ends.
#include "kernels/chain/chain_cuda.h"
#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/chain/frames.cuh"
#include "kernels/launch.cuh"

#include <cstdlib>

struct pb_chain_cuda {
    const pb_chain *chain;
    int32_t core_w, core_h;
    pb_chain_device device;
    float *memory; // the rects of grids of other coordinate systems, then the planes
    float *planes;
};

namespace
{
// Bytes of scratch; never nothing.
size_t scratch_bytes(const pb_chain *chain, const pb_chain_layout &layout)
{
    return (pb_chain_bases_px(chain) + layout.planes_px + 64) * sizeof(float);
}

__global__ void find_bases(const __grid_constant__ pb_chain_device chain,
                           const __grid_constant__ pb_rect core, pb_rect *bases)
{
    pb_device::find_bases(chain, core, bases);
}

int run_focal(const pb_chain_cuda *gpu, const pb_stage_focal &s, const pb_tile_in *in,
              const pb_stage_planes &planes, void *stream)
{
    const pb_chain *const chain = gpu->chain;
    const pb_chain_grid &grid = chain->grids[s.to_grid];
    if (s.is_warp) {
        pb_warp_job job = s.warp;
        job.warp = gpu->device.warps + pb_chain_device_warp(chain, s.warp.warp);
        return pb_warp_run_cuda(&job, &planes.from, s.has_heights ? &planes.heights : nullptr,
                                &planes.to, stream);
    }
    if (s.is_resample) {
        return pb_resample_run_cuda(&s.resample, &planes.from, &planes.to, stream);
    }
    return pb_focal_run_cuda(&s.focal, &planes.from, &planes.to,
                             chain->keeps_grid ? in->image_w : grid.w,
                             chain->keeps_grid ? in->image_h : grid.h, stream);
}

int run_focals(const pb_chain_cuda *gpu, const pb_stage &stage, const pb_tile_in *in, void *stream)
{
    int rc = 0;
    for (size_t i = 0; i < stage.n_focals && rc == 0; i++) {
        pb_stage_planes planes;
        pb_chain_planes(gpu->chain, &stage.focals[i], in, gpu->planes, &planes);
        rc = run_focal(gpu, stage.focals[i], in, planes, stream);
    }
    return rc;
}
} // namespace

int pb_chain_cuda_create(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                         struct pb_chain_cuda **out_gpu)
{
    auto *const gpu = static_cast<pb_chain_cuda *>(calloc(1, sizeof(pb_chain_cuda)));
    pb_chain_layout layout;
    if (!gpu) {
        return -ENOMEM;
    }
    gpu->chain = chain;
    gpu->core_w = core_w;
    gpu->core_h = core_h;
    pb_chain_measure(chain, core_w, core_h, &layout);
    int rc = pb_chain_device_create(chain, &gpu->device);
    if (rc == 0) {
        const cudaError_t error =
            cudaMalloc(reinterpret_cast<void **>(&gpu->memory), scratch_bytes(chain, layout));
        if (error != cudaSuccess) {
            (void)cudaGetLastError(); // it is reported here and must not show up elsewhere
        }
        rc = wic_cuda_errno(error);
        gpu->planes = gpu->memory + pb_chain_bases_px(chain);
    }
    if (rc < 0) {
        pb_chain_cuda_destroy(gpu);
        return rc;
    }
    *out_gpu = gpu;
    return 0;
}

int pb_chain_cuda_launch(struct pb_chain_cuda *gpu, const struct pb_tile_in *in,
                         const struct pb_tile_out *out, void *stream)
{
    const pb_chain *const chain = gpu->chain;
    const pb_instr *code = gpu->device.code;
    auto *const bases = reinterpret_cast<pb_rect *>(gpu->memory);
    int rc = pb_chain_check(chain, in, out);

    if (rc == 0 && (in->core.w > gpu->core_w || in->core.h > gpu->core_h)) {
        rc = -EINVAL;
    }
    if (rc == 0 && gpu->device.n_apart > 0) {
        find_bases<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(gpu->device, in->core, bases);
        rc = cudaGetLastError() == cudaSuccess ? 0 : -EIO;
    }
    for (size_t k = 0; k < chain->n_stages && rc == 0; k++) {
        pb_sweep sweep;
        pb_chain_sweep(chain, k, in, out, gpu->planes, &sweep);
        sweep.code = code;
        sweep.inputs = gpu->device.inputs;
        sweep.places = gpu->device.places;
        sweep.bases = bases;
        if (sweep.n_code) {
            rc = pb_program_run_cuda(&sweep, stream);
        }
        if (rc == 0) {
            rc = run_focals(gpu, chain->stages[k], in, stream);
        }
        code += sweep.n_code + chain->stages[k].n_knots;
    }
    return rc;
}

void pb_chain_cuda_destroy(struct pb_chain_cuda *gpu)
{
    if (gpu) {
        (void)cudaFree(gpu->memory);
        pb_chain_device_destroy(&gpu->device);
        free(gpu);
    }
}
