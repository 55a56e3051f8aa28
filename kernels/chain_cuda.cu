// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain on a GPU: one block of device memory holds the descriptions of the inputs, the code of
// all stages and the scratch planes, in this order. Launching is the loop of chain_cpu.c with other
// functions at its ends.
#include "kernels/chain_cuda.h"
#include "kernels/chain_stage.h"
#include "kernels/launch.cuh"

#include <cstdlib>

struct pb_chain_cuda {
    const pb_chain *chain;
    int32_t core_w, core_h;
    unsigned char *memory;
    pb_program_input *inputs;
    pb_instr *code; // of all stages, one behind the other
    float *planes, *temp;
};

namespace
{
struct offsets {
    size_t code, planes, temp, end;
};

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

size_t code_count(const pb_chain *chain)
{
    size_t n = 0;
    for (size_t k = 0; k < chain->n_stages; k++) {
        n += chain->stages[k].n_code;
    }
    return n;
}

offsets find_offsets(const pb_chain *chain, int32_t core_w, int32_t core_h)
{
    pb_chain_layout layout;
    offsets at;
    pb_chain_measure(chain, core_w, core_h, &layout);
    at.code = aligned(chain->n_used * sizeof(pb_program_input));
    at.planes = at.code + aligned(code_count(chain) * sizeof(pb_instr));
    at.temp = at.planes + aligned(layout.planes_px * sizeof(float));
    at.end = at.temp + aligned(layout.temp_px * sizeof(float));
    return at;
}

cudaError_t upload(const pb_chain_cuda *gpu)
{
    const pb_chain *const chain = gpu->chain;
    pb_instr *code = gpu->code;
    cudaError_t error = cudaMemcpy(gpu->inputs, chain->inputs,
                                   chain->n_used * sizeof *chain->inputs, cudaMemcpyHostToDevice);
    for (size_t k = 0; k < chain->n_stages && error == cudaSuccess; k++) {
        const pb_stage &stage = chain->stages[k];
        if (stage.n_code) {
            error =
                cudaMemcpy(code, stage.code, stage.n_code * sizeof *code, cudaMemcpyHostToDevice);
        }
        code += stage.n_code;
    }
    return error;
}

int run_stencils(const pb_chain_cuda *gpu, const pb_stage &stage, const pb_tile_in *in,
                 void *stream)
{
    int rc = 0;
    for (size_t i = 0; i < stage.n_stencils && rc == 0; i++) {
        pb_plane from, to;
        pb_chain_planes(gpu->chain, &stage.stencils[i], in, gpu->planes, &from, &to);
        rc = pb_stencil_run_cuda(&stage.stencils[i].stencil, &from, &to, in->image_w, in->image_h,
                                 gpu->temp, stream);
    }
    return rc;
}
} // namespace

size_t pb_chain_cuda_bytes(const struct pb_chain *chain, int32_t core_w, int32_t core_h)
{
    return find_offsets(chain, core_w, core_h).end;
}

int pb_chain_cuda_create(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                         struct pb_chain_cuda **out_gpu)
{
    const offsets at = find_offsets(chain, core_w, core_h);
    auto *const gpu = static_cast<pb_chain_cuda *>(calloc(1, sizeof(pb_chain_cuda)));
    if (!gpu) {
        return -ENOMEM;
    }
    gpu->chain = chain;
    gpu->core_w = core_w;
    gpu->core_h = core_h;
    cudaError_t error = cudaMalloc(reinterpret_cast<void **>(&gpu->memory), at.end);
    if (error == cudaSuccess) {
        gpu->inputs = reinterpret_cast<pb_program_input *>(gpu->memory);
        gpu->code = reinterpret_cast<pb_instr *>(gpu->memory + at.code);
        gpu->planes = reinterpret_cast<float *>(gpu->memory + at.planes);
        gpu->temp = reinterpret_cast<float *>(gpu->memory + at.temp);
        error = upload(gpu);
    }
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); // it is reported here and must not show up elsewhere
        pb_chain_cuda_destroy(gpu);
        return wic_cuda_errno(error);
    }
    *out_gpu = gpu;
    return 0;
}

int pb_chain_cuda_launch(struct pb_chain_cuda *gpu, const struct pb_tile_in *in,
                         const struct pb_tile_out *out, void *stream)
{
    const pb_chain *const chain = gpu->chain;
    const pb_instr *code = gpu->code;
    int rc = pb_chain_check(chain, in, out);

    if (rc == 0 && (in->core.w > gpu->core_w || in->core.h > gpu->core_h)) {
        rc = -EINVAL;
    }
    for (size_t k = 0; k < chain->n_stages && rc == 0; k++) {
        pb_sweep sweep;
        pb_chain_sweep(chain, k, in, out, gpu->planes, &sweep);
        sweep.code = code;
        sweep.inputs = gpu->inputs;
        if (sweep.n_code) {
            rc = pb_program_run_cuda(&sweep, stream);
        }
        if (rc == 0) {
            rc = run_stencils(gpu, chain->stages[k], in, stream);
        }
        code += sweep.n_code;
    }
    return rc;
}

void pb_chain_cuda_destroy(struct pb_chain_cuda *gpu)
{
    if (gpu) {
        (void)cudaFree(gpu->memory);
        free(gpu);
    }
}
