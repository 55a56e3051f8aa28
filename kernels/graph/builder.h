/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BUILDER_H
#define PB_BUILDER_H
/* What an operator's build() may do: look bands up, add values to the chain's graph, give values
 * names. A value is one float32 per pixel; ids are small integers. A mistake of the user's is
 * reported, and the value that it keeps from being made is poison. Running out of memory or over a
 * limit sticks: after it every call returns an invalid id or the error. One thread, during
 * pb_chain_build only. */
#include "kernels/areas/areas.h"
#include "kernels/op.h"
#include "kernels/focal/focal.h"
#include "kernels/geometry.h"
#include "kernels/reduce/reduce.h"
#include "kernels/resample/resample.h"
#include "kernels/vm/vm_op.h"

#include <stdint.h>

struct pb_builder;
typedef int32_t pb_value; /* < 0: invalid */

/* Stands for a value that a mistake keeps from being made. What is made of it is poison too, and
 * nothing is reported about it, so that a mistake is told without its consequences. */
#define PB_VALUE_POISON INT32_MAX

/* Reports a mistake; the chain will not be made. Returns -EINVAL. */
int pb_builder_mistake(struct pb_builder *b, enum pb_diag_kind kind, const struct pb_item *item,
                       int col, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same (kind VALUE) about the parameter at `member` of the struct that build() got. */
int pb_builder_wrong(struct pb_builder *b, const void *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps a sentence for people about what the step does; the chain is made all the same. The first
 * 16 are kept, equal ones once. */
void pb_builder_note(struct pb_builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value a band name stands for now; -1 when there is none (nothing is reported). */
pb_value pb_builder_find(struct pb_builder *b, const char *name);
/* The whole numbers that a band of the scene is stored as, whatever the input's scale and offset
 * make of them, exact to about 2^20; of any other band its value. -1 when there is no such band. */
pb_value pb_builder_stored(struct pb_builder *b, const char *name);
/* Input number `input` of the chain as it is read, whether or not it has a name; -1 when there is
 * none. */
pb_value pb_builder_input(const struct pb_builder *b, int32_t input);
/* Names known now, in order of definition: for messages and for "all bands". */
size_t pb_builder_band_count(const struct pb_builder *b);
const char *pb_builder_band_name(const struct pb_builder *b, size_t i);
/* Writes the known bands but for poison, which has a mistake of its own: comma separated, cut with
 * "..." when they are too long, "none"; numbered ones as "B1 to B64". Returns text. */
const char *pb_builder_list(const struct pb_builder *b, char *text, size_t bytes);
/* Gives a value a name (copied); an existing band of that name is replaced for the steps after this
 * one. */
int pb_builder_define(struct pb_builder *b, const char *name, pb_value value);

pb_value pb_builder_constant(struct pb_builder *b, float number);
/* Whether the value is a number known now, which *out then has. */
bool pb_builder_is_number(const struct pb_builder *b, pb_value value, float *out);
/* op with its operands; unused ones -1. Folds constants and shares common subexpressions. Operands
 * on different grids are a mistake that names both. */
pb_value pb_builder_emit(struct pb_builder *b, enum pb_vm_op op, pb_value x, pb_value y,
                         pb_value z);
/* A focal operation over the plane of x. The descriptor is copied. */
pb_value pb_builder_focal(struct pb_builder *b, const struct pb_focal *focal, pb_value x);

/* A result of a reduction of x over the whole image: one number, known after a pass of its own over
 * the pixels of x. Pixels where x is invalid are left out. band: what people call x, copied; NULL =
 * the result is not told. */
pb_value pb_builder_reduce(struct pb_builder *b, const struct pb_reduce *reduce, pb_value x,
                           uint32_t result, const char *band);

/* x along the curve that gives the pixels of `from` the distribution of those of `to`, known after
 * a pass over both. No number may be among them. */
pb_value pb_builder_match(struct pb_builder *b, pb_value x, pb_value from, pb_value to);

/* x with small areas of equal values replaced (kernels/areas/areas.h). All of x is made in a pass
 * of its own before that. */
pb_value pb_builder_sieve(struct pb_builder *b, const struct pb_sieve *sieve, pb_value x);

/* Says that pixels of `keep` which are 0 or invalid do not pass, and that the step makes bands
 * invalid there: a tile without a pixel that passes need not be computed, nor one with a smaller
 * share of them than `minimum` (pb_chain_gate). One a chain. 0, or -EINVAL when there is one. */
int pb_builder_gate(struct pb_builder *b, pb_value keep, double minimum);

/* A loop over the whole image (kernels/reduce/reduce.h): pixels of a round are made with its
 * numbers, reduced, and numbers of the next round come of that. numbers: n_numbers values, one
 * number each, of the first round. Replaces each by that of the round under way, for what `inputs`
 * of pb_builder_loop_over are made of. Returns the loop; -1 when there is none, or a number is
 * poison. */
int32_t pb_builder_loop(struct pb_builder *b, const struct pb_reduce *reduce, pb_value *numbers);
/* What the loop reduces: n_inputs planes of one grid. To be called once. 0 or -EINVAL. */
int pb_builder_loop_over(struct pb_builder *b, int32_t loop, const pb_value *inputs);
/* A result of the loop, for what comes after it. */
pb_value pb_builder_loop_result(struct pb_builder *b, int32_t loop, uint32_t result);
/* The step uses n results of the loop for a band, for people; band is copied. 0 or -EINVAL. */
int pb_builder_loop_tell(struct pb_builder *b, int32_t loop, uint32_t first, uint32_t n,
                         const char *band);

/* --- grids -----------------------------------------------------------------------------------
 * Every value but a constant lies on a grid. Operations on pixels take values of one grid; values
 * of different ones are brought onto one first. Grids are numbered; grids of equal size and place
 * are one. */

/* Of a value that is no poison; -1 = a number, which lies on all. */
int32_t pb_builder_grid(const struct pb_builder *b, pb_value value);
struct pb_geometry pb_builder_geometry(const struct pb_builder *b, int32_t grid);
/* The number of a grid; -1: too many (sticks), or it is larger than the limits of the scene allow
 * (a mistake was reported). */
int32_t pb_builder_add_grid(struct pb_builder *b, const struct pb_geometry *grid);
/* The number of a new grid in another coordinate system, as the ask says, for values on `grid`; the
 * ask's source_w, source_h and from are filled in. ask->part: see pb_builder_part. Two equal asks
 * of a step should be one: each makes a frame of its own. -1: a mistake was reported. */
int32_t pb_builder_warp(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid);
/* The same where places depend on the height of the ground, which `heights` has, a band of a file
 * as it is read. band: its name, for messages. */
int32_t pb_builder_warp_relief(struct pb_builder *b, const struct pb_ground_ask *ask, int32_t grid,
                               pb_value heights, const char *band);
/* The step cuts products into tiles of a grid; false: one before it does already. */
bool pb_builder_tiles(struct pb_builder *b);
/* What the values on a grid have of the first grid of its frame: left, top, right, bottom in the
 * pixels of that one. */
void pb_builder_part(const struct pb_builder *b, int32_t grid, double out_part[4]);
/* The number of each pixel's column (axis 0) or row (1) on a grid. */
pb_value pb_builder_index(struct pb_builder *b, uint32_t axis, int32_t grid);
/* The place of a frame; NULL: the scene's own, frame 0. */
const struct pb_ground *pb_builder_ground(const struct pb_builder *b, int32_t frame);
/* x on `grid`. Where that is a part of x's own grid, pixel on pixel, no value changes, whatever
 * `how`. A scale beyond 1/64 to 64 is a mistake: the value is poison. */
pb_value pb_builder_resample(struct pb_builder *b, enum pb_resampling how, pb_value x,
                             int32_t grid);
/* How many times as large as a pixel of x a pixel of `grid` is, along the axis where it is less;
 * 1 where that is not known. */
double pb_builder_coarser(const struct pb_builder *b, pb_value x, int32_t grid);
/* Whether the mean of two pixels of x may be no value of it. FILE: x has classes of files, or goes
 * by a name (NULL = none) under which steps or products take its values for classes. */
enum pb_builder_class { PB_CLASS_NO, PB_CLASS_STEPS, PB_CLASS_FILE };
enum pb_builder_class pb_builder_class(struct pb_builder *b, pb_value x, const char *name);
/* Notes that a method mixes the classes of a band. */
void pb_builder_note_mixed(struct pb_builder *b, const char *band, enum pb_resampling how);
/* What is known of the scene that the grids refer to. */
const struct pb_scene_facts *pb_builder_scene(const struct pb_builder *b);

/* Named constants of an expression. Bands win over constants of the same name. */
struct pb_expr_constant {
    const char *name;
    double value;
};

/* Compiles an expression over the bands known now: the item's text, or `text` in its place when
 * that is not NULL (mistakes have no column then). Reports every unknown name and function and the
 * first mistake in the grammar (kind EXPRESSION, with what was found and what was expected); then
 * the value is poison. */
pb_value pb_builder_expression(struct pb_builder *b, const struct pb_item *item, const char *text,
                               const struct pb_expr_constant *constants, size_t n_constants);

/* Without a chain: checks the grammar only and lists the names used, each once, in order of
 * appearance. names[i] points into text with length[i]. Returns how many (at most max are written),
 * or -EINVAL with *diag. */
int pb_expression_names(const char *text, const char **names, size_t *lengths, size_t max,
                        struct pb_diag *diag);
#endif
