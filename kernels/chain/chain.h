/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHAIN_H
#define PB_CHAIN_H
/* A chain: the steps of a pipeline compiled for one scene. Steps add values to a graph (single
 * assignment, common subexpressions shared); what no output needs is dropped; runs of pixel-wise
 * values become one bytecode program (kernels/vm/program.h) that makes every output in a single
 * sweep; focal operations cut the graph into stages and add to the halo. The same chain runs on the
 * CPU here and on a GPU in chain_cuda.h. Immutable once made, but for the results of reductions:
 * any number of threads may run it, each with scratch of its own. */
#include "kernels/areas/areas.h"
#include "kernels/geometry.h"
#include "kernels/op.h"
#include "kernels/band_tags.h"
#include "kernels/reduce/reduce.h"
#include "kernels/view.h"

#include <stdint.h>

struct pb_chain;

/* A file, or what stands for one: bands on one grid. */
struct pb_chain_source {
    int32_t w, h;
    bool placed;       /* whether it is known where its grid lies on the scene's; the scene's is */
    struct pb_map map; /* from the scene's grid to its own; of the scene: the identity */
};

/* One band of a source. reflectance = DN * scale + offset; a DN equal to nodata is invalid. */
struct pb_chain_input {
    const char *name; /* "": for steps that ask for it by its number; no band */
    enum pb_type type;
    bool has_nodata;
    double nodata;
    double scale, offset;
    uint32_t source; /* index into spec.sources */
    bool is_absent;  /* it is valid nowhere, and nothing of its source is read */
    int32_t bring; /* how the band reaches the scene's grid, an enum pb_resampling + 1; 0: it stays
                      on its source's */
    bool is_class; /* its values are classes or bits, of which there is no mean */
    struct pb_band_tags tags; /* of its numbers, where scale is 1 and offset 0. Borrowed for the
                                    life of the chain */
};

struct pb_chain_step {
    const struct pb_op *op;
    const void *params; /* the operator's struct */
};

struct pb_chain_spec {
    const struct pb_chain_input *inputs;
    size_t n_inputs; /* 1 .. 64 */
    const struct pb_chain_step *steps;
    size_t n_steps;
    const char *const *outputs; /* names of the bands wanted: inputs or made by a step; all on
                                   one grid */
    size_t n_outputs;
    const struct pb_chain_source *sources; /* the scene first */
    size_t n_sources; /* 1 .. PB_SOURCES_MAX; 0 = one whose size each tile tells, for chains that
                         keep the scene's grid */
    const struct pb_scene_facts *scene; /* NULL = nothing is known */
    const char *const *class_bands;     /* n_class_bands: names of bands whose values products take
                                           for classes */
    size_t n_class_bands;
};

/* Compiles. 0; -EINVAL after every mistake was reported, up to 64 (none of them a consequence of
 * another; PB_VALUE_POISON in kernels/graph/builder.h says how), -ENOMEM. The strings of spec are
 * borrowed for the call only. */
int pb_chain_build(const struct pb_chain_spec *spec, pb_diag_report *report, void *to,
                   struct pb_chain **out_chain);
/* The same for who wants one mistake: -EINVAL with the first in *diag and *out_step the step it
 * speaks of (n_steps = an output name). */
int pb_chain_create(const struct pb_chain_spec *spec, struct pb_diag *diag, size_t *out_step,
                    struct pb_chain **out_chain);
void pb_chain_destroy(struct pb_chain *chain);

/* --- passes ----------------------------------------------------------------------------------
 * Results of reductions have to be known before the pixels that depend on them: a chain with
 * reductions has earlier passes, which are chains of their own. Their outputs are not the bands
 * that the spec named, but what is reduced; they are run first, in order, and after each its
 * results are set. A chain without has none. */

/* One reduction over outputs of an earlier pass. */
struct pb_chain_reduction {
    struct pb_reduce reduce;
    struct pb_samples samples;             /* what is known of the values */
    uint32_t output[PB_REDUCE_INPUTS_MAX]; /* of the pass; reduce.n_inputs */
    uint32_t number;                       /* among all of the chain */
    size_t step;                           /* that asked for it first */
    double results[PB_REDUCE_RESULTS_MAX]; /* NaN until they are set */
};

size_t pb_chain_earlier_count(const struct pb_chain *chain);
/* Borrowed until the chain is destroyed. */
struct pb_chain *pb_chain_earlier(const struct pb_chain *chain, size_t i);
/* Those over the outputs of an earlier pass; 0 for the last one. */
size_t pb_chain_reductions(const struct pb_chain *pass,
                           const struct pb_chain_reduction **out_reductions);
/* A step that uses results of a reduction for a band; several may use the same. */
struct pb_chain_use {
    size_t step;
    uint32_t first, n; /* results */
    char band[64];     /* as the step calls it */
    const struct pb_chain_reduction *reduction;
};
/* Use i of the chain's reductions, in the order of the steps. False: there are not so many. */
bool pb_chain_use_at(const struct pb_chain *chain, size_t i, struct pb_chain_use *out);
/* Bytes of the state of a reduction, a multiple of 64. */
size_t pb_chain_state_bytes(const struct pb_chain_reduction *reduction);
/* Bytes of one set of states of a pass's reductions, each aligned to 64. */
size_t pb_chain_reduce_bytes(const struct pb_chain *pass);
/* How many times the pass is run; fewer when there is no valid pixel, or loops come to rest. */
int pb_chain_rounds(const struct pb_chain *pass);
/* The numbers that a loop's first round is made with, when the passes before are complete. */
void pb_chain_loop_start(const struct pb_chain *pass, const struct pb_chain_reduction *loop,
                         float numbers[PB_REDUCE_NUMBERS_MAX]);
/* Sets the numbers of the next round. To be called after every pb_chain_set_results of the round
 * before; no pass may be running, as there. */
void pb_chain_loop_again(struct pb_chain *pass, const struct pb_chain_reduction *loop,
                         const float *numbers);
/* Sets the results of a reduction in the chain and all its passes. No pass may be running, nor have
 * been copied to a device: that is done anew. */
void pb_chain_set_results(struct pb_chain *chain, const struct pb_chain_reduction *reduction,
                          const double *results);

/* Sets what a reduction of kind PB_REDUCE_THRESHOLD has counted, for the curves that come of it, as
 * pb_chain_set_results does. state: when it has ended. 0 or -ENOMEM. */
int pb_chain_set_counts(struct pb_chain *chain, const struct pb_chain_reduction *reduction,
                        const void *state);
/* The number of curves of a whole chain; and the bytes of a pass's knots and counts. */
size_t pb_chain_curves(const struct pb_chain *chain);
size_t pb_chain_curve_bytes(const struct pb_chain *chain);
/* The knots (kernels/vm/curve_pixel.h) that a pass has for a curve of the chain: how many, 0 where
 * none are set; *out_knots: NULL where the pass takes no such curve; else borrowed. */
uint32_t pb_chain_curve_knots(const struct pb_chain *pass, uint32_t number,
                              const float **out_knots);
/* Sets these in the pass, PB_CURVE_KNOTS_MAX at most, as pb_chain_set_counts does. */
void pb_chain_set_knots(struct pb_chain *pass, uint32_t number, const float *knots, uint32_t n);

/* A whole image that an earlier pass makes of an output: an input of passes after that one, behind
 * those of the spec, alone on a source behind those of the spec. */
struct pb_chain_image {
    struct pb_sieve sieve;
    uint32_t number; /* among all of the chain */
    uint32_t output; /* of the pass that makes it */
    uint32_t input, source;
    struct pb_geometry grid;
    size_t step; /* that asked for it first */
};

/* Of a whole chain: all, `output` not set; of an earlier pass: those that it makes. */
size_t pb_chain_images(const struct pb_chain *chain, const struct pb_chain_image **out_images);

/* --- the gate ---------------------------------------------------------------------------------
 * A step may say which pixels pass (pb_builder_gate). Where the outputs are invalid as long as
 * nothing passes, tiles without a pixel that passes need not be run: their outputs are invalid. */

/* Makes one plane, in which pixels that pass are valid and not 0; NULL: every tile must be run.
 * Borrowed until the whole chain is destroyed. Its inputs are the chain's last ones of each
 * source, in the same order. */
const struct pb_chain *pb_chain_gate(const struct pb_chain *chain);
/* Why there is none although a step asks for it; "" otherwise. Borrowed. */
const char *pb_chain_gate_why(const struct pb_chain *chain);
/* The share of a tile that must pass; 0: one pixel is enough. */
double pb_chain_gate_minimum(const struct pb_chain *chain);
/* The gate's core for a tile with this core: what the tile touches, or all that its pixels depend
 * on. May be empty. */
struct pb_rect pb_chain_gate_rect(const struct pb_chain *chain, const struct pb_rect *core,
                                  bool around);
/* A rect of that size or larger is the gate's for any core of w x h. */
struct pb_rect pb_chain_gate_rect_most(const struct pb_chain *chain, int32_t w, int32_t h);

/* Inputs that the outputs really depend on, indices into spec.inputs: ascending, those that a gate
 * reads after the others. The planes of a source's window are those of its inputs, in this order.
 * At least one. */
size_t pb_chain_used(const struct pb_chain *chain, const uint32_t **out_indices);
/* How many of them are of a source. */
size_t pb_chain_planes_of(const struct pb_chain *chain, uint32_t source);
size_t pb_chain_output_count(const struct pb_chain *chain);
/* Of each output, whether it takes a few values only, or whole numbers that steps have made, so
 * that the mean of two may be none of them; or classes
 * of a file. Borrowed until destroy. */
const bool *pb_chain_classes(const struct pb_chain *chain);
/* Of each output, the input of which its pixels are pixels as the file has them, without scale and
 * offset; -1 = none. Borrowed until destroy. */
const int32_t *pb_chain_origins(const struct pb_chain *chain);
/* The same, where each pixel stays in its place: cropped or masked at most, no neighbour's. */
const int32_t *pb_chain_places(const struct pb_chain *chain);
/* Of each output, whether it is that input (pb_chain_places) and no step masks it: cropped at most.
 * Borrowed until destroy. */
const bool *pb_chain_untouched(const struct pb_chain *chain);
/* Of each input of the spec, whether something is computed of its values, be it a condition; else
 * they are in their places in outputs, or nowhere. Borrowed until destroy. */
const bool *pb_chain_computed(const struct pb_chain *chain);
/* What the numbers of an output are, by the tags of the files that it is made of; NULL = they are
 * no numbers of files. Borrowed until destroy. */
const struct pb_band_tags *pb_chain_output_tags(const struct pb_chain *chain, size_t output);
/* What steps did that people should know, one sentence each. Borrowed until destroy. */
size_t pb_chain_note_count(const struct pb_chain *chain);
const char *pb_chain_note(const struct pb_chain *chain, size_t i);
/* Whether outputs and inputs lie on one grid, that of one source. */
bool pb_chain_keeps_grid(const struct pb_chain *chain);
/* The grid of the outputs: its size and the map from the scene's grid. Not of a chain without
 * sources. */
struct pb_geometry pb_chain_geometry(const struct pb_chain *chain);
/* The place of the outputs' frame; NULL: it is the scene's. Borrowed from the chain. */
const struct pb_ground *pb_chain_ground(const struct pb_chain *chain);
/* Steps that change the coordinate system of pixels that the chain or a pass before it computes.
 * AREAS: one of them is by AVERAGE or MODE, whose footprints are polygons of float64. */
enum pb_chain_warp { PB_CHAIN_NO_WARP, PB_CHAIN_WARP, PB_CHAIN_WARP_AREAS };
enum pb_chain_warp pb_chain_warp(const struct pb_chain *chain);
/* Bytes of the chain's tables for such steps. */
size_t pb_chain_warp_bytes(const struct pb_chain *chain);
/* Pixels needed around a core on every side, of a source's grid. */
int32_t pb_chain_halo(const struct pb_chain *chain);
/* The pixels of a source that a core of the outputs' grid needs, on the source's grid; may be
 * empty. */
struct pb_rect pb_chain_need(const struct pb_chain *chain, uint32_t source,
                             const struct pb_rect *core);
/* A rect of that size or larger holds what any core of w x h needs; x and y say nothing. */
struct pb_rect pb_chain_need_most(const struct pb_chain *chain, uint32_t source, int32_t w,
                                  int32_t h);
/* Pixels of the largest plane that a core of w x h makes, outputs among them. A GPU numbers them
 * with 31 bits: more cannot run there. */
size_t pb_chain_plane_px(const struct pb_chain *chain, int32_t w, int32_t h);
/* Bytes of scratch that one run of a core of at most core_w x core_h needs on the CPU; 64-byte
 * aligned. */
size_t pb_chain_scratch_bytes(const struct pb_chain *chain, int32_t core_w, int32_t core_h);
/* Instructions in all programs, for humans and benchmarks. */
size_t pb_chain_instruction_count(const struct pb_chain *chain);
/* One line a stage, for tests and debugging; returns what snprintf would. */
int pb_chain_describe(const struct pb_chain *chain, char *text, size_t bytes);

/* Makes all outputs of one tile on the calling thread. scratch as above. 0, or -EINVAL when the
 * tile's rects do not hold what the chain needs. Allocates nothing. */
int pb_chain_run_cpu(const struct pb_chain *chain, const struct pb_tile_in *in,
                     const struct pb_tile_out *out, void *scratch);
#endif
