/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_STAGE_H
#define PB_CHAIN_STAGE_H
/* What is inside a chain: for chain*.c and chain*.cu. Everything is sized by the core of a
 * tile: a plane with margin m covers the core grown by m, clipped to the image. C11 and C++17. */
#include "kernels/chain/chain.h"
#include "kernels/vm/program.h"
#include "kernels/focal/focal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One focal operation: scratch plane `from` to scratch plane `to`. */
struct pb_stage_focal {
    struct pb_focal focal;
    uint16_t from, to;
    int32_t from_margin, to_margin;
};

/* A program, then the focal operations over the plane that it made. A stage over a plane that
 * another focal operation made has no program (n_code 0). The last stage has no focal operations:
 * its program makes the outputs. */
struct pb_stage {
    struct pb_instr *code;
    uint32_t n_code, n_registers;
    int32_t margin; /* of the program */
    struct pb_stage_focal *focals;
    size_t n_focals;
};

struct pb_chain {
    uint32_t *used; /* indices into spec.inputs, one for each plane of pb_tile_in */
    struct pb_program_input *inputs;
    size_t n_used;
    struct pb_stage *stages;
    size_t n_stages, n_outputs;
    bool *classes;   /* of each output: pb_chain_classes */
    size_t n_planes; /* scratch planes */
    int32_t halo;
    uint32_t n_registers; /* most of any stage */
};

/* Scratch of one tile in floats: planes, then the focal operations' temporary. */
struct pb_chain_layout {
    size_t plane_px, planes_px, temp_px;
};
void pb_chain_measure(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                      struct pb_chain_layout *out_layout);
/* Whether the tile holds what the chain needs: 0 or -EINVAL. */
int pb_chain_check(const struct pb_chain *chain, const struct pb_tile_in *in,
                   const struct pb_tile_out *out);
/* The sweep of a stage's program, its code and inputs as the CPU sees them. */
void pb_chain_sweep(const struct pb_chain *chain, size_t stage, const struct pb_tile_in *in,
                    const struct pb_tile_out *out, float *scratch, struct pb_sweep *out_sweep);
/* The planes of one focal operation of a stage. */
void pb_chain_planes(const struct pb_chain *chain, const struct pb_stage_focal *focal,
                     const struct pb_tile_in *in, float *scratch, struct pb_plane *out_from,
                     struct pb_plane *out_to);
#ifdef __cplusplus
}
#endif
#endif
