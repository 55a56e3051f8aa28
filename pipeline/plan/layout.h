/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_LAYOUT_H
#define PB_PLAN_LAYOUT_H
/* Visiting order, threads, slots and window of a pass, and its gate: the bands that are read first,
 * and their memory. Pure. */
#include "pipeline/plan/plan.h"

enum { PB_PLAN_LANES = 4 }; /* tiles that a GPU computes at a time */

/* Order that needs the least memory. */
enum pb_order pb_plan_order(const struct pb_plan *plan, const struct pb_raster_info *info);
/* Value for layout.lines. Nonzero only in the last pass over a growing scene, if each line of the
 * products needs only lines of the scene around it and the pass has no gate. */
int32_t pb_plan_lines(const struct pb_plan *plan);
/* wic_options.spin_limit for the channels of a pass; 0 = the default. Larger for strips, because
 * the time between two strips is less than a thread needs to sleep and wake. */
uint32_t pb_plan_spin_limit(const struct pb_plan *plan);
/* Makes plan one that visits whole rows of tiles, which gives the blocks of products in the order
 * of their files. False: that is useless for every product. */
bool pb_plan_by_whole_rows(struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if the plan by whole rows is the better one of the two: it takes no more time, and
 * its memory is within the budget. */
bool pb_plan_prefers_rows(const struct pb_plan *rows, const struct pb_plan *other,
                          const struct pb_plan_request *request);

/* Sets threads, slots and window for n threads in each stage, for a plan whose order is known.
 * lean: with less memory, at a little cost in speed. */
void pb_plan_set_threads(struct pb_plan *plan, uint32_t n, bool lean);
/* Format of slots, plane by plane. */
struct pb_slot_format pb_plan_slot_format(const struct pb_plan *plan);
/* Fills the members of the products' environment that the plan knows. */
void pb_plan_product_env(const struct pb_plan *plan, const struct pb_plan_request *request,
                         struct pb_product_env *out_env);
static inline bool pb_is_power_of_two(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* The gate's part of a plan: the bands that are read first, and the memory of the gate. Pure. */

/* Splits the bands of a source. If all bands of a pixel decode together, all are first. */
void pb_plan_gate_split(struct pb_plan *plan, uint32_t source, const struct pb_raster_info *info);
/* Sets plan->gate except its sizes, once bands and grid are known. */
void pb_plan_gate_set(struct pb_plan *plan);
/* Sets the sizes. largest: a tile that no other one exceeds. */
void pb_plan_gate_size(struct pb_plan *plan, const struct pb_tile *largest);
/* Bytes of the gate for all readers together. */
uint64_t pb_plan_gate_bytes(const struct pb_plan *plan);
/* Side of tiles if products depend on it because a share of a tile must pass; it has precedence
 * over the products' blocks. 0: any side is allowed. */
int32_t pb_plan_gate_side(const struct pb_plan *plan);

/* Part of a tile that is read first: its core is the gate's. */
struct pb_tile pb_plan_gate_tile(const struct pb_plan *plan, const struct pb_tile *tile);
enum { PB_GATE_BATCH = 16 }; /* most tiles whose gates a device computes together */
/* Work of the gate for a tile. */
struct pb_plan_gate_look {
    struct pb_tile first; /* part of the tile that is read first; its core is the gate's */
    struct pb_rect part;  /* part of this core whose passing pixels count; w 0: no pixel */
    uint64_t enough;      /* count of passing pixels from which the tile passes */
};
struct pb_plan_gate_look pb_plan_gate_look(const struct pb_plan *plan, const struct pb_tile *tile);
/* Size of the largest core of the gate. */
struct pb_rect pb_plan_gate_most(const struct pb_plan *plan);
/* Planes of the windows that the gate's chain reads: its planes are the last ones of each source,
 * of which a window has n_planes. */
struct pb_tile_in pb_plan_gate_view(const struct pb_plan *plan, const struct pb_tile_in *in,
                                    const struct pb_slot_format *format);
/* Device memory for the planes of a batch. */
uint64_t pb_plan_gate_device_bytes(const struct pb_plan *plan);
/* Count of the blocks of one band in a source's file; 0: no band is read later. */
uint64_t pb_plan_gate_blocks(const struct pb_plan_source *source,
                             const struct pb_raster_info *info);
#endif
