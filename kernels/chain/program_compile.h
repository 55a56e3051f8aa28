/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PROGRAM_COMPILE_H
#define PB_PROGRAM_COMPILE_H
/* From values of the graph to bytecode. */
#include "kernels/graph/graph.h"
#include "kernels/vm/program.h"

/* An immediate that a number fills which is known later only: imm[imm] of code[instr]. */
struct pb_patch {
    uint32_t instr;
    uint32_t imm;
    pb_value number; /* a node */
};

struct pb_program {
    struct pb_instr *code;
    uint32_t n, n_registers;
    struct pb_patch *patches;
    size_t n_patches;
};

struct pb_program_spec {
    const struct pb_graph *graph;
    const pb_value *roots; /* values to store, in this order */
    const uint16_t *store; /* plane of each root */
    size_t n_roots;
    /* The leaves that the roots reach: */
    const uint16_t *input_plane; /* by index of the band in the scene: plane in the tile */
    const uint16_t *plane_slot;  /* by node id: scratch plane of a plane's node */
    const int32_t *plane_margin; /* by node id: how far that plane reaches beyond the core */
    const uint8_t *leaf_place;   /* by node id: pb_instr.src[0] of its load */
};

/* 0; -ENOMEM; -E2BIG when more values are alive at once than there are registers. */
int pb_program_compile(const struct pb_program_spec *spec, struct pb_program *out_program);
void pb_program_fini(struct pb_program *program);
#endif
