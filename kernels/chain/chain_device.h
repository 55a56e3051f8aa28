/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_DEVICE_H
#define PB_CHAIN_DEVICE_H
/* What a chain is to a kernel: its tables in device memory, read-only, any number of kernels at a
 * time. Plain data, passed to a kernel by value. Errors as in chain_cuda.h. In CUDA builds only,
 * but for the laying out. */
#include "kernels/chain/chain.h"

#ifdef __cplusplus
extern "C" {
#endif
struct pb_program_input;
struct pb_instr;
struct pb_leaf_place;
struct pb_stage_focal; /* kernels/chain/chain_stage.h */
struct pb_chain_grid;
struct pb_chain_leg;
struct pb_warp;

/* pb_stage, with places in the tables instead of pointers. */
struct pb_device_stage {
    uint32_t code, n_code, n_registers;
    int32_t margin;
    uint32_t focals, n_focals;
    uint32_t grid;
};

struct pb_chain_device {
    const struct pb_program_input *inputs;
    const struct pb_instr *code; /* of all stages, one behind the other */
    const struct pb_device_stage *stages;
    const struct pb_stage_focal *focals; /* of all stages, one behind the other */
    const struct pb_chain_grid *grids;
    const struct pb_leaf_place *places; /* NULL: the chain keeps its scene's grid */
    /* Grids of other coordinate systems than the outputs', each behind those that what it has to
     * hold is found from, and how. n_apart 0: there are none. */
    const uint16_t *apart;
    const struct pb_chain_leg *legs;
    const struct pb_warp *warps; /* of the legs and focals, their tables in device memory, too */
    uint32_t n_apart, n_legs;
    int32_t frame;     /* of the outputs */
    uint32_t bases_px; /* pb_chain_bases_px */
    uint32_t n_stages;
    void *memory; /* all of the above, in device memory; NULL = none */
};

/* The place of one of the chain's warps among pb_chain_device.warps. */
size_t pb_chain_device_warp(const struct pb_chain *chain, const struct pb_warp *warp);
/* Bytes of the tables. */
size_t pb_chain_device_bytes(const struct pb_chain *chain);
/* Lays them out in zeroed memory of so many bytes, as they shall be at `there`: on a device, or,
 * for tests, in the same place. */
struct pb_chain_device pb_chain_device_lay(const struct pb_chain *chain, void *there, void *memory);
/* Uploads to the current device. chain is not needed afterwards. */
int pb_chain_device_create(const struct pb_chain *chain, struct pb_chain_device *out_device);
/* Of a zeroed object: nothing. */
void pb_chain_device_destroy(struct pb_chain_device *device);
#ifdef __cplusplus
}
#endif
#endif
