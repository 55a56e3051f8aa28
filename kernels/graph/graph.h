/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GRAPH_H
#define PB_GRAPH_H
/* The value graph of a chain while it is being built: single assignment, equal values shared,
 * constants folded with the very pixel functions that would run. A node's operands come before it,
 * so ascending ids are a topological order. One thread. */
#include "kernels/areas/areas.h"
#include "kernels/geometry.h"
#include "kernels/graph/builder.h"
#include "kernels/reduce/reduce.h"
#include "kernels/resample/resample.h"
#include "kernels/resample/warp.h"

#define PB_GRAPH_NODES_MAX      65536
#define PB_GRAPH_FOCALS_MAX     256
#define PB_GRAPH_GRIDS_MAX      64
#define PB_GRAPH_WARPS_MAX      32
#define PB_GRAPH_REDUCTIONS_MAX 1024
#define PB_GRAPH_CURVES_MAX     256

/* Kinds of nodes beside the operations of enum pb_vm_op. A VIEW is an input, or a plane that a
 * focal operation or a resampling made, on a grid that is a part of its own, pixel on pixel. A
 * CURVE is an operation on pixels as well: its operand along a curve that two reductions make. An
 * INDEX is the number of the pixel's column or row on the grid. A SCALAR is a result of a
 * reduction: one number, known after a pass over what is reduced, which is no operand of it. A
 * ROUND is a number of a loop in the round under way; its operand is that of the first round. What
 * a loop reduces is made with its ROUNDs, what comes after it with its SCALARs. A RESAMPLE to
 * another frame whose way depends on the height of the ground has a second operand, a plane of
 * heights at its pixels, or at their corners for areas. */
enum {
    PB_NODE_CURVE = PB_VM_COUNT,
    PB_NODE_CONST,
    PB_NODE_INPUT,
    PB_NODE_FOCAL,
    PB_NODE_VIEW,
    PB_NODE_INDEX,
    PB_NODE_RESAMPLE,
    PB_NODE_SCALAR,
    PB_NODE_ROUND
};

struct pb_node {
    int16_t kind; /* enum pb_vm_op or PB_NODE_* */
    int16_t arity;
    pb_value arg[3]; /* unused: -1 */
    uint32_t index;  /* INPUT: of spec.inputs; FOCAL: of focal operations; INDEX: 0 of
                        columns, 1 of rows; RESAMPLE: enum
                        pb_resampling; SCALAR, ROUND: reduction * PB_REDUCE_RESULTS_MAX + result */
    int32_t grid;    /* where its pixels lie; -1: a number, everywhere the same */
    float number;    /* CONST; RESAMPLE: 1 = its kernel is not widened where pixels are larger */
};

/* Values that are reduced. */
struct pb_graph_reduction {
    struct pb_reduce reduce;
    pb_value input[PB_REDUCE_INPUTS_MAX]; /* reduce.n_inputs; -1: not known yet */
    size_t step;                          /* that asked for it first */
};

/* The curve that gives what one reduction has counted the distribution of what another one has
 * (kernels/reduce/counts.h); both of kind PB_REDUCE_THRESHOLD. */
struct pb_graph_curve {
    uint32_t from, to;
};

/* Who asked for results of a reduction, for people. */
struct pb_graph_use {
    uint32_t reduction, first, n; /* results */
    size_t step;
    char band[64];
};

/* A value whose pixels depend on all pixels of another one, `of`: a pass before makes the whole
 * image, which then is an input on the grid of `of`. */
struct pb_graph_image {
    struct pb_sieve sieve;
    pb_value of, value;
    size_t step; /* that asked for it first */
};

/* The way from one frame to another. NULL: the scene is assumed, and no pixel will be made. */
struct pb_graph_warp {
    int32_t from, to;
    struct pb_warp *warp;
    pb_value heights; /* an input, of the ground's heights, which the way depends on; -1: it does
                         not */
};

struct pb_graph {
    struct pb_node *nodes;
    size_t n, room;
    int32_t *table; /* open addressing by content; -1 = free; room for twice `room` */
    struct pb_focal *focals;
    size_t n_focals, focal_room;
    struct pb_geometry grids[PB_GRAPH_GRIDS_MAX];
    size_t n_grids;
    struct pb_graph_warp warps[PB_GRAPH_WARPS_MAX];
    size_t n_warps;
    struct pb_ground ground[PB_GRAPH_WARPS_MAX]; /* of frame i + 1 */
    int32_t n_frames;                            /* beside 0 */
    struct pb_graph_reduction *reductions;
    size_t n_reductions, reduction_room;
    struct pb_graph_use *uses; /* each once */
    size_t n_uses, use_room;
    struct pb_graph_curve curves[PB_GRAPH_CURVES_MAX];
    size_t n_curves;
    struct pb_graph_image images[PB_SOURCES_MAX];
    size_t n_images, images_max;
    uint32_t first_image;  /* number of the input that the first one is; the others follow */
    uint64_t class_inputs; /* bit i: values of input i are classes */
};

void pb_graph_init(struct pb_graph *graph);
void pb_graph_fini(struct pb_graph *graph);

/* The id of a node with that content, new or known; -ENOMEM, -E2BIG. For the files of this room. */
pb_value pb_graph_add(struct pb_graph *graph, const struct pb_node *node);

/* Each returns the id of the value, new or shared; -ENOMEM, or -E2BIG over a limit. Operands are
 * ids of this graph. */
pb_value pb_graph_constant(struct pb_graph *graph, float number);
pb_value pb_graph_input(struct pb_graph *graph, uint32_t index, int32_t grid);
/* axis: 0: the numbers of the grid's columns, 1: of its rows. */
pb_value pb_graph_index(struct pb_graph *graph, uint32_t axis, int32_t grid);
/* Over a constant: on grid 0. */
pb_value pb_graph_focal(struct pb_graph *graph, const struct pb_focal *focal, pb_value x);
/* x on another grid, of which it has every pixel under a shift by whole pixels. Goes down to inputs
 * and planes. */
pb_value pb_graph_view(struct pb_graph *graph, pb_value x, int32_t grid);
pb_value pb_graph_resample(struct pb_graph *graph, enum pb_resampling how, pb_value x,
                           int32_t grid);
/* The same where the grid is of another frame, to which there is a way. */
pb_value pb_graph_warped(struct pb_graph *graph, enum pb_resampling how, pb_value x, int32_t grid);
/* The number of a grid, new or known; -E2BIG. */
int32_t pb_graph_grid(struct pb_graph *graph, const struct pb_geometry *grid);
/* A result of a reduction of x; of a number, what the reduction makes of that. step and band are
 * kept for people, unless band is NULL. */
pb_value pb_graph_reduce(struct pb_graph *graph, const struct pb_reduce *reduce, pb_value x,
                         uint32_t result, size_t step, const char *band);
/* x along the curve that gives the pixels of `from` the distribution of those of `to`. -E2BIG: too
 * many curves. */
pb_value pb_graph_match(struct pb_graph *graph, pb_value x, pb_value from, pb_value to,
                        size_t step);
/* A new loop, whose inputs are to be given before the graph is used; its number. */
int32_t pb_graph_loop(struct pb_graph *graph, const struct pb_reduce *reduce, size_t step);
/* Number k of a round of it, which is `start` in the first. */
pb_value pb_graph_loop_number(struct pb_graph *graph, uint32_t loop, uint32_t k, pb_value start);
/* Result k of a reduction or loop. */
pb_value pb_graph_result(struct pb_graph *graph, uint32_t reduction, uint32_t k);
/* Keeps for people that a step uses n results for a band. 0, -ENOMEM or -E2BIG. */
int pb_graph_use(struct pb_graph *graph, const struct pb_graph_use *use);
/* x sieved, new or known; x itself where it is a number. -E2BIG: there are images_max. */
pb_value pb_graph_sieve(struct pb_graph *graph, const struct pb_sieve *sieve, pb_value x,
                        size_t step);
/* The image that the node is; NULL = it is none. */
const struct pb_graph_image *pb_graph_image_of(const struct pb_graph *graph,
                                               const struct pb_node *node);
/* Whether a focal operation or a resampling made it: a plane. */
bool pb_node_is_plane(const struct pb_node *node);
/* Whether pixels of operand i may be those of the node: no condition's, and no heights'. */
bool pb_node_passes(const struct pb_node *node, int i);
/* Whether each pixel of the node is one of the pixels of its operand, or its operation is none of
 * neighbourhoods and grids. */
bool pb_graph_chooses(const struct pb_graph *graph, const struct pb_node *node);
/* Whether it is one number for all pixels: a constant, or what is made of scalars. */
bool pb_node_is_number(const struct pb_node *node);
/* Whether each pixel of a grid is one of another. */
bool pb_graph_is_part(const struct pb_graph *graph, int32_t part, int32_t whole);
/* The way between two frames; NULL = there is none. */
const struct pb_graph_warp *pb_graph_warp(const struct pb_graph *graph, int32_t from, int32_t to);
/* From grid to grid of one frame; NaN between frames. */
struct pb_map pb_graph_map(const struct pb_graph *graph, int32_t from, int32_t to);
pb_value pb_graph_op(struct pb_graph *graph, enum pb_vm_op op, pb_value x, pb_value y, pb_value z);

/* One pixel of one operation. */
float pb_vm_eval(enum pb_vm_op op, float x, float y, float z);

/* classes[id] = whether the mean of two pixels of the value may be no value of it. FEW: it takes a
 * few values only, whatever the scene: constants, comparisons, and what is made of such values
 * alone (where(x > 1, 5, 9)); or is rounded to whole numbers, as by a cast, so that it may be a
 * class. FILE: it selects among pixels of inputs whose values are classes (class_inputs). One byte
 * a node. */
enum { PB_CLASSES_NONE, PB_CLASSES_FEW, PB_CLASSES_FILE };
void pb_graph_classes(const struct pb_graph *graph, uint8_t *classes);

/* origins[id] = the input of which every pixel of the value is a pixel, unchanged: it was cropped,
 * resampled to the nearest, or masked at most; -1: there is none, or are several. in_place: it was
 * cropped or masked at most. One a node. */
void pb_graph_origins(const struct pb_graph *graph, bool in_place, int32_t *origins);

/* flags[id] has PB_GRAPH_KEPT where a value passes in place (an origin of pb_graph_origins), and
 * PB_GRAPH_COMPUTED where something is computed of it: spreads both from outputs to what they
 * depend on. One a node. */
enum { PB_GRAPH_COMPUTED = 1, PB_GRAPH_KEPT = 2 };
void pb_graph_computed(const struct pb_graph *graph, uint8_t *flags);

/* flags[id] != 0 spreads to all that id depends on; with through_planes false the walk ends at
 * nodes that are planes (they keep their flag, their operand gets none). */
void pb_graph_mark(const struct pb_graph *graph, uint8_t *flags, bool through_planes);
#endif
