// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a chain are laid out in host memory as they shall be on the device and go there in
// one copy.
#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/launch.cuh"

#include <cstdlib>
#include <cstring>

namespace
{
// Where the tables are in the block of memory.
struct offsets {
    size_t code, stages, focals, grids, places, end;
};

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

offsets find_offsets(const pb_chain *chain)
{
    size_t n_code = 0, n_focals = 0;
    offsets at;
    for (size_t k = 0; k < chain->n_stages; k++) {
        n_code += chain->stages[k].n_code;
        n_focals += chain->stages[k].n_focals;
    }
    at.code = aligned(chain->n_used * sizeof(pb_program_input));
    at.stages = at.code + aligned(n_code * sizeof(pb_instr));
    at.focals = at.stages + aligned(chain->n_stages * sizeof(pb_device_stage));
    at.grids = at.focals + aligned(n_focals * sizeof(pb_stage_focal));
    at.places = at.grids + aligned(chain->n_grids * sizeof(pb_chain_grid));
    at.end = at.places + aligned(chain->n_leaf_places * sizeof(pb_leaf_place));
    return at;
}

template <typename T> void copy(T *to, const T *from, size_t n)
{
    if (n) {
        memcpy(to, from, n * sizeof(T));
    }
}

void lay_out(const pb_chain *chain, const offsets &at, unsigned char *memory)
{
    auto *const code = reinterpret_cast<pb_instr *>(memory + at.code);
    auto *const stages = reinterpret_cast<pb_device_stage *>(memory + at.stages);
    auto *const focals = reinterpret_cast<pb_stage_focal *>(memory + at.focals);
    uint32_t n_code = 0, n_focals = 0;

    copy(reinterpret_cast<pb_program_input *>(memory), chain->inputs, chain->n_used);
    copy(reinterpret_cast<pb_chain_grid *>(memory + at.grids), chain->grids, chain->n_grids);
    copy(reinterpret_cast<pb_leaf_place *>(memory + at.places), chain->leaf_places,
         chain->n_leaf_places);
    for (size_t k = 0; k < chain->n_stages; k++) {
        const pb_stage &from = chain->stages[k];
        const auto n = static_cast<uint32_t>(from.n_focals);
        copy(code + n_code, from.code, from.n_code);
        copy(focals + n_focals, from.focals, n);
        stages[k] = {n_code, from.n_code, from.n_registers, from.margin, n_focals, n, from.grid};
        n_code += from.n_code;
        n_focals += n;
    }
}

// The description of a chain whose tables are at `memory`.
pb_chain_device describe(const pb_chain *chain, const offsets &at, unsigned char *memory)
{
    pb_chain_device device;
    device.inputs = reinterpret_cast<const pb_program_input *>(memory);
    device.code = reinterpret_cast<const pb_instr *>(memory + at.code);
    device.stages = reinterpret_cast<const pb_device_stage *>(memory + at.stages);
    device.focals = reinterpret_cast<const pb_stage_focal *>(memory + at.focals);
    device.grids = reinterpret_cast<const pb_chain_grid *>(memory + at.grids);
    device.places =
        chain->keeps_grid ? nullptr : reinterpret_cast<const pb_leaf_place *>(memory + at.places);
    device.n_stages = static_cast<uint32_t>(chain->n_stages);
    device.memory = memory;
    return device;
}
} // namespace

size_t pb_chain_device_bytes(const struct pb_chain *chain)
{
    return find_offsets(chain).end;
}

int pb_chain_device_create(const struct pb_chain *chain, struct pb_chain_device *out_device)
{
    const offsets at = find_offsets(chain);
    auto *const host = static_cast<unsigned char *>(calloc(1, at.end));
    void *memory = nullptr;

    if (!host) {
        return -ENOMEM;
    }
    lay_out(chain, at, host);
    cudaError_t error = cudaMalloc(&memory, at.end);
    if (error == cudaSuccess) {
        error = cudaMemcpy(memory, host, at.end, cudaMemcpyHostToDevice);
    }
    if (error == cudaSuccess) {
        // From pageable memory cudaMemcpy returns once the bytes are staged, and the streams that
        // run the chain do not wait for the default stream.
        error = cudaStreamSynchronize(cudaStreamLegacy);
    }
    free(host);
    if (error != cudaSuccess) {
        (void)cudaFree(memory);
        (void)cudaGetLastError(); // it is reported here and must not show up elsewhere
        return wic_cuda_errno(error);
    }
    *out_device = describe(chain, at, static_cast<unsigned char *>(memory));
    return 0;
}

void pb_chain_device_destroy(struct pb_chain_device *device)
{
    if (device) {
        (void)cudaFree(device->memory);
        *device = {};
    }
}
