/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a chain, those of its warps among them, one behind the other as a kernel sees them.
 */
#include "kernels/chain/chain_device.h"
#include "kernels/chain/chain_frames.h"
#include "kernels/chain/chain_stage.h"
#include "kernels/vm/program_marks.h"

#include <string.h>

enum { ALIGN = 256 };

/* Where the tables are in the block of memory. */
struct offsets {
    size_t code, stages, focals, grids, places, apart, legs, warps, trees, end;
};

/* Where those of a warp are. */
struct warp_offsets {
    size_t leaf, box, tree, above, end;
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t cells_of(const struct pb_warp *warp)
{
    return (size_t)warp->cols * (size_t)warp->rows;
}

static struct warp_offsets find_warp_offsets(const struct pb_warp *warp, size_t at)
{
    struct warp_offsets out = {.leaf = at};

    out.box = out.leaf + aligned(warp->n_leaf * sizeof(struct pb_warp_leaf));
    out.tree = out.box + aligned(cells_of(warp) * sizeof(struct pb_warp_box));
    out.above = out.tree + aligned(warp->n_tree * sizeof(uint32_t));
    out.end = out.above + aligned((warp->n_heights - 1) * sizeof(struct pb_warp));
    return out;
}

/* Behind the tables of a warp and its other heights. */
static size_t find_warps_end(const struct pb_warp *warp, size_t at)
{
    size_t end = find_warp_offsets(warp, at).end;

    for (uint32_t i = 1; i < warp->n_heights; i++)
        end = find_warps_end(&warp->above[i - 1], end);
    return end;
}

static struct offsets find_offsets(const struct pb_chain *chain)
{
    size_t n_code = 0, n_focals = 0;
    struct offsets at;

    for (size_t k = 0; k < chain->n_stages; k++) {
        n_code += chain->stages[k].n_code + chain->stages[k].n_knots;
        n_focals += chain->stages[k].n_focals;
    }
    at.code = aligned(chain->n_used * sizeof(struct pb_program_input));
    at.stages = at.code + aligned((n_code + 1) * sizeof(struct pb_instr)); /* program.h: one more */
    at.focals = at.stages + aligned(chain->n_stages * sizeof(struct pb_device_stage));
    at.grids = at.focals + aligned(n_focals * sizeof(struct pb_stage_focal));
    at.places = at.grids + aligned(chain->n_grids * sizeof(struct pb_chain_grid));
    at.apart = at.places + aligned(chain->n_leaf_places * sizeof(struct pb_leaf_place));
    at.legs = at.apart + aligned(chain->n_grids * sizeof(uint16_t));
    at.warps = at.legs + aligned(chain->n_legs * sizeof(struct pb_chain_leg));
    at.trees = at.warps + aligned(chain->n_warps * sizeof(struct pb_warp));
    at.end = at.trees;
    for (size_t i = 0; i < chain->n_warps; i++)
        at.end = find_warps_end(chain->warps[i], at.end);
    return at;
}

size_t pb_chain_device_bytes(const struct pb_chain *chain)
{
    return find_offsets(chain).end;
}

size_t pb_chain_device_warp(const struct pb_chain *chain, const struct pb_warp *warp)
{
    size_t i = 0;

    while (i + 1 < chain->n_warps && chain->warps[i] != warp)
        i++;
    return i;
}

static void copy(unsigned char *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static void lay_stages(const struct pb_chain *chain, const struct offsets *at,
                       const struct pb_warp *warps, unsigned char *memory)
{
    struct pb_device_stage *const stages = (void *)(memory + at->stages);
    struct pb_stage_focal *const focals = (void *)(memory + at->focals);
    uint32_t n_code = 0, n_focals = 0;

    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const from = &chain->stages[k];
        const uint32_t n = (uint32_t)from->n_focals;

        copy(memory + at->code + n_code * sizeof *from->code, from->code,
             (from->n_code + from->n_knots) * sizeof *from->code);
        pb_program_mark((void *)(memory + at->code + n_code * sizeof *from->code), from->n_code,
                        chain->inputs);
        copy((void *)(focals + n_focals), from->focals, n * sizeof *focals);
        for (uint32_t i = n_focals; i < n_focals + n; i++)
            if (focals[i].is_warp)
                focals[i].warp.warp = warps + pb_chain_device_warp(chain, focals[i].warp.warp);
        stages[k] = (struct pb_device_stage){
            n_code, from->n_code, from->n_registers, from->margin, n_focals, n, from->grid};
        n_code += from->n_code + from->n_knots;
        n_focals += n;
    }
}

/* Lays the tables of a warp from `next` on; returns their end, and in *out the warp as the device
 * sees it. */
static size_t lay_warp(const struct pb_warp *warp, size_t next, unsigned char *there,
                       unsigned char *memory, struct pb_warp *out)
{
    const struct warp_offsets to = find_warp_offsets(warp, next);
    struct pb_warp *const above = (void *)(memory + to.above);

    copy(memory + to.leaf, warp->leaf, warp->n_leaf * sizeof *warp->leaf);
    copy(memory + to.box, warp->box, cells_of(warp) * sizeof *warp->box);
    copy(memory + to.tree, warp->tree, warp->n_tree * sizeof *warp->tree);
    *out = *warp;
    out->leaf = (void *)(there + to.leaf);
    out->box = (void *)(there + to.box);
    out->tree = (void *)(there + to.tree);
    out->above = (void *)(there + to.above);
    out->most = NULL;
    next = to.end;
    for (uint32_t i = 1; i < warp->n_heights; i++)
        next = lay_warp(&warp->above[i - 1], next, there, memory, &above[i - 1]);
    return next;
}

static void lay_warps(const struct pb_chain *chain, const struct offsets *at, unsigned char *there,
                      unsigned char *memory)
{
    struct pb_warp *const warps = (void *)(memory + at->warps);
    size_t next = at->trees;

    for (size_t i = 0; i < chain->n_warps; i++)
        next = lay_warp(chain->warps[i], next, there, memory, &warps[i]);
}

struct pb_chain_device pb_chain_device_lay(const struct pb_chain *chain, void *there, void *memory)
{
    const struct offsets at = find_offsets(chain);
    unsigned char *const to = memory, *const base = there;
    struct pb_warp *const warps = (void *)(base + at.warps);
    struct pb_chain_leg *const legs = (void *)(to + at.legs);
    struct pb_chain_device device = {.inputs = there,
                                     .code = (void *)(base + at.code),
                                     .stages = (void *)(base + at.stages),
                                     .focals = (void *)(base + at.focals),
                                     .grids = (void *)(base + at.grids),
                                     .apart = (void *)(base + at.apart),
                                     .legs = (void *)(base + at.legs),
                                     .warps = warps,
                                     .n_legs = (uint32_t)chain->n_legs,
                                     .frame = chain->frame,
                                     .bases_px = (uint32_t)pb_chain_bases_px(chain),
                                     .n_stages = (uint32_t)chain->n_stages,
                                     .memory = there};

    copy(to, chain->inputs, chain->n_used * sizeof *chain->inputs);
    copy(to + at.grids, chain->grids, chain->n_grids * sizeof *chain->grids);
    copy(to + at.places, chain->leaf_places, chain->n_leaf_places * sizeof *chain->leaf_places);
    copy((void *)legs, chain->legs, chain->n_legs * sizeof *legs);
    for (size_t i = 0; i < chain->n_legs; i++)
        legs[i].warp = warps + pb_chain_device_warp(chain, legs[i].warp);
    lay_stages(chain, &at, warps, to);
    lay_warps(chain, &at, base, to);
    device.places = chain->keeps_grid ? NULL : (void *)(base + at.places);
    device.n_apart = (uint32_t)pb_chain_frames_order(chain, (void *)(to + at.apart));
    return device;
}
