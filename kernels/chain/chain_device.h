/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_DEVICE_H
#define PB_CHAIN_DEVICE_H
/* What a chain is to a kernel: its tables in device memory, read-only, any number of kernels at a
 * time. Plain data, passed to a kernel by value. Errors as in chain_cuda.h. CUDA builds only. */
#include "kernels/chain/chain.h"

#ifdef __cplusplus
extern "C" {
#endif
struct pb_program_input;
struct pb_instr;
struct pb_leaf_place;
struct pb_stage_focal; /* kernels/chain/chain_stage.h */
struct pb_chain_grid;

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
    uint32_t n_stages;
    void *memory; /* all of the above, in device memory; NULL = none */
};

/* Uploads to the current device. chain is not needed afterwards. */
int pb_chain_device_create(const struct pb_chain *chain, struct pb_chain_device *out_device);
/* Device bytes that create takes. */
size_t pb_chain_device_bytes(const struct pb_chain *chain);
/* Of a zeroed object: nothing. */
void pb_chain_device_destroy(struct pb_chain_device *device);
#ifdef __cplusplus
}
#endif
#endif
