/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_STAGE_H
#define PB_CHAIN_STAGE_H
/* What is inside a chain: for chain*.c and chain*.cu. Everything is sized by the core of a
 * tile: a plane with margin m covers what the core touches of its grid, grown by m and clipped to
 * the grid. C11 and C++17. */
#include "kernels/chain/chain.h"
#include "kernels/reduce/counts.h"
#include "kernels/vm/program.h"
#include "kernels/focal/focal.h"
#include "kernels/resample/resample.h"
#include "kernels/resample/warp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A grid that planes or sources of the chain lie on. */
struct pb_chain_grid {
    int32_t w, h;
    struct pb_map map; /* from the outputs' grid, where that is of the same frame */
    int32_t frame;
    struct pb_map own; /* from the grid that those of its frame refer to */
};

/* Planes of a frame that are made from planes of another: what they need of it. */
struct pb_chain_leg {
    uint16_t to_grid;
    int32_t to_margin;
    int32_t from_frame;
    const struct pb_warp *warp;
};

/* One focal operation or resampling: scratch plane `from` to scratch plane `to`. */
struct pb_stage_focal {
    struct pb_focal focal;
    uint16_t from, to;
    int32_t from_margin, to_margin;
    bool is_resample;
    struct pb_resample resample;
    bool is_warp;
    struct pb_warp_job warp;
    bool has_heights; /* of a warp: scratch plane `heights` has them */
    uint16_t heights, heights_grid;
    int32_t heights_margin;
    uint16_t from_grid, to_grid; /* of chain.grids */
};

/* A program, then the focal operations over the plane that it made. A stage over a plane that
 * another focal operation made has no program (n_code 0). The last stage has no focal operations:
 * its program makes the outputs. */
struct pb_stage {
    struct pb_instr *code;
    uint32_t n_code, n_registers;
    uint32_t n_knots; /* instructions behind those of the program whose bytes are knots of curves */
    int32_t margin;   /* of the program */
    uint16_t grid;    /* that it sweeps; of chain.grids */
    struct pb_stage_focal *focals;
    size_t n_focals;
};

/* What the chain reads of a source. */
struct pb_source_need {
    uint16_t grid;
    int32_t halo;
    uint32_t n_planes; /* 0: nothing */
};

/* A number that results of reductions make: a result (kind PB_NODE_SCALAR, index as there), a
 * constant, or an operation on numbers before it. */
struct pb_chain_number {
    int16_t kind, arity;
    int32_t arg[3];
    uint32_t index;
    float value; /* NaN until the results are known */
};

/* Where a number goes: imm[imm] of code[instr] of a stage. */
struct pb_chain_patch {
    uint32_t stage, instr, imm, number;
};

/* A curve and what it comes of: of what is counted, and of what has the distribution. */
struct pb_chain_curve {
    uint32_t reduction[2];
    bool known[2];
    struct pb_counts counts[2];
};

/* An instruction of a stage that takes a curve. */
struct pb_chain_curve_place {
    uint32_t stage, instr;
};

/* The tags of an output, if they are known. */
struct pb_chain_meaning {
    bool known;
    struct pb_band_tags tags;
};

#define PB_CHAIN_NOTE_BYTES 240

struct pb_chain {
    uint32_t *used; /* indices into spec.inputs, one for each plane of pb_tile_in */
    struct pb_program_input *inputs;
    size_t n_used;
    struct pb_stage *stages;
    size_t n_stages, n_outputs;
    bool *classes;                      /* of each output: pb_chain_classes */
    int32_t *origins;                   /* of each output: pb_chain_origins */
    int32_t *places;                    /* of each output: pb_chain_places */
    bool *untouched;                    /* of each output: pb_chain_untouched */
    bool *computed;                     /* of each input: pb_chain_computed */
    struct pb_chain_meaning *meanings;  /* of each output: pb_chain_output_tags */
    char (*notes)[PB_CHAIN_NOTE_BYTES]; /* n_notes: pb_chain_note */
    size_t n_notes;
    size_t n_planes;      /* scratch planes */
    int32_t halo;         /* most of any plane */
    uint32_t n_registers; /* most of any stage */
    bool keeps_grid;      /* one source, one grid: image_w and image_h of a tile are its size */
    struct pb_geometry geometry; /* of the outputs */
    struct pb_chain_grid *grids; /* of the graph */
    size_t n_grids;
    int32_t frame;             /* of the outputs */
    struct pb_chain_leg *legs; /* from one frame to another, those of planes made last first */
    size_t n_legs;
    struct pb_warp **warps; /* that the legs and jobs borrow; users of them */
    size_t n_warps;
    struct pb_ground ground;           /* of the outputs, where their frame is not 0; owned */
    struct pb_leaf_place *leaf_places; /* pb_instr.src[0] of loads */
    size_t n_leaf_places;
    struct pb_source_need sources[PB_SOURCES_MAX];

    struct pb_chain *own_gate;   /* of the last pass: the gate of all that have it */
    const struct pb_chain *gate; /* NULL: no tile may be left out */
    char gate_why[160];          /* although a step asks for it */
    double gate_minimum;
    uint16_t gate_grid;
    int32_t gate_halo; /* around what a core touches of it, for the pixels that a tile depends on */

    struct pb_chain_number *numbers;
    struct pb_chain_patch *patches;
    size_t n_numbers, n_patches;

    struct pb_chain_reduction *reductions; /* of an earlier pass: over its outputs */
    size_t n_reductions;
    struct pb_chain **earlier; /* of the last pass: those before it, in order */
    size_t n_earlier;
    struct pb_chain_use *uses; /* of their reductions */
    size_t n_uses;
    struct pb_chain_curve *curves; /* of the last pass: those of all */
    size_t n_curves;
    struct pb_chain_curve_place *curve_places;
    size_t n_curve_places;
    struct pb_chain_image *images; /* pb_chain_images */
    size_t n_images;
};

/* What `core` touches of a grid, grown and clipped. */
struct pb_rect pb_chain_rect_on(const struct pb_chain *chain, uint16_t grid,
                                const struct pb_rect *core, int32_t margin);

/* The largest rect that a plane of a core of this size may have. */
struct pb_rect pb_chain_largest_rect(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                                     uint16_t grid, int32_t margin);

/* Whether the chain has a gate that reads the input. */
bool pb_chain_gate_reads(const struct pb_chain *chain, uint32_t input);

/* Floats that a GPU keeps, in front of the planes, of rects by grid: pb_chain_frames_bases. */
size_t pb_chain_bases_px(const struct pb_chain *chain);

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
struct pb_stage_planes {
    struct pb_plane from, to, heights; /* heights: data NULL where it has none */
};
void pb_chain_planes(const struct pb_chain *chain, const struct pb_stage_focal *focal,
                     const struct pb_tile_in *in, float *scratch, struct pb_stage_planes *out);
#ifdef __cplusplus
}
#endif
#endif
