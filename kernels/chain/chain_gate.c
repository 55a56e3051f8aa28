/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A value is muted when it is invalid at every pixel as long as nothing passes anywhere: keep is
 * then 0 or invalid, where(keep, x, NaN) is NaN, and an operation with an invalid operand is
 * invalid. Neighbourhoods and resamplings of nothing but invalid pixels are invalid too. */
#include "kernels/chain/chain_gate.h"
#include "kernels/chain/chain_plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNKNOWN, MUTED, CLOSED }; /* CLOSED: 0 or invalid */

static bool is_muted(const struct pb_node *node, const uint8_t *state)
{
    bool any = false;

    if (node->kind == PB_NODE_CONST)
        return isnan(node->number);
    if (node->kind == PB_VM_VALID)
        return false;
    if (node->kind == PB_VM_WHERE) {
        const uint8_t condition = state[node->arg[0]], no = state[node->arg[2]];

        return condition == MUTED ||
               (no == MUTED && (condition == CLOSED || state[node->arg[1]] == MUTED));
    }
    if (node->kind == PB_VM_AND || node->kind == PB_VM_OR) /* one operand may decide */
        return state[node->arg[0]] == MUTED && state[node->arg[1]] == MUTED;
    for (int k = 0; k < node->arity; k++)
        any = any || state[node->arg[k]] == MUTED;
    return any;
}

static bool depends_on_passes(const struct pb_graph *graph, pb_value v, uint8_t *flags)
{
    bool depends = false;

    flags[v] = 1;
    pb_graph_mark(graph, flags, true);
    for (size_t i = 0; i < graph->n; i++) {
        const struct pb_node *const node = &graph->nodes[i];

        depends =
            depends || (flags[i] && (node->kind == PB_NODE_SCALAR || node->kind == PB_NODE_CURVE ||
                                     pb_graph_image_of(graph, node) != NULL));
        flags[i] = 0;
    }
    return depends;
}

/* keep as the bands of parts of its grid see it: operations on such bands are made anew over views
 * of what they were made of. Returns how many; out: PB_GRAPH_GRIDS_MAX. */
static int find_views(struct pb_graph *graph, pb_value keep, pb_value *out)
{
    int n = 0;

    for (size_t grid = 0; grid < graph->n_grids; grid++) {
        if (!pb_graph_is_part(graph, (int32_t)grid, graph->nodes[keep].grid))
            continue;
        out[n] = pb_graph_view(graph, keep, (int32_t)grid);
        if (out[n] < 0)
            return out[n];
        n++;
    }
    return n;
}

static int find_muted(struct pb_graph *graph, pb_value keep, struct pb_chain_gating *gating)
{
    pb_value views[PB_GRAPH_GRIDS_MAX];
    const int n_views = find_views(graph, keep, views);

    if (n_views < 0)
        return n_views;
    gating->muted = calloc(graph->n, 1);
    if (!gating->muted)
        return -ENOMEM;
    gating->follows_reductions = depends_on_passes(graph, keep, gating->muted);
    if (gating->follows_reductions)
        return 0;
    for (int i = 0; i < n_views; i++)
        gating->muted[views[i]] = CLOSED;
    for (size_t v = 0; v < graph->n; v++) {
        const struct pb_graph_image *const image = pb_graph_image_of(graph, &graph->nodes[v]);

        if (is_muted(&graph->nodes[v], gating->muted) ||
            (image && gating->muted[image->of] == MUTED)) /* what is invalid stays so */
            gating->muted[v] = MUTED;
    }
    return 0;
}

int pb_chain_gating_init(struct pb_builder *b, const struct pb_chain_spec *spec,
                         struct pb_chain_gating *gating)
{
    if (!b->has_gate)
        return 0;
    gating->minimum = b->gate_minimum;
    gating->grid = b->graph.nodes[b->gate_keep].grid;
    gating->chain = calloc(1, sizeof *gating->chain);
    if (!gating->chain)
        return -ENOMEM;
    const int rc = find_muted(&b->graph, b->gate_keep, gating);
    return rc ? rc : pb_chain_plan(&b->graph, &b->gate_keep, 1, spec, gating->chain);
}

void pb_chain_gating_fini(struct pb_chain_gating *gating)
{
    free(gating->muted);
}

void pb_chain_gating_give(const struct pb_chain_gating *gating, const pb_value *outputs, size_t n,
                          const char *const *names, struct pb_chain *pass)
{
    size_t open = 0;

    if (!gating->chain)
        return;
    while (open < n && gating->muted[outputs[open]] == MUTED)
        open++;
    if (open == n) {
        pass->gate = gating->chain;
        pass->gate_grid = (uint16_t)gating->grid;
        pass->gate_minimum = gating->minimum;
    } else if (gating->follows_reductions) {
        (void)snprintf(pass->gate_why, sizeof pass->gate_why,
                       "its condition depends on numbers of the whole image");
    } else if (names) {
        (void)snprintf(pass->gate_why, sizeof pass->gate_why,
                       "band %.60s is valid also where nothing passes", names[open]);
    }
}

static bool uses(const struct pb_chain *pass, uint32_t input)
{
    for (size_t i = 0; i < pass->n_used; i++)
        if (pass->used[i] == input)
            return true;
    return false;
}

bool pb_chain_gate_reads(const struct pb_chain *chain, uint32_t input)
{
    return chain->gate && uses(chain->gate, input);
}

/* keep is looked at in programs over its grid or a part of it; where those are one, its pixels are
 * numbered alike, else a view may be rounded differently: one pixel more. */
void pb_chain_gating_reach(const struct pb_graph *graph, struct pb_chain *pass)
{
    bool all = true;

    if (!pass->gate)
        return;
    for (size_t k = 0; k < pass->n_stages; k++) {
        const struct pb_stage *const stage = &pass->stages[k];
        const struct pb_map map = pb_graph_map(graph, stage->grid, pass->gate_grid);
        const int32_t margin = stage->margin + (stage->grid != pass->gate_grid);

        if (pb_map_is_shift(&map) && margin > pass->gate_halo)
            pass->gate_halo = margin;
    }
    /* Outputs that are invalid everywhere may need none of its bands. */
    for (size_t i = 0; i < pass->gate->n_used; i++)
        all = all && uses(pass, pass->gate->used[i]);
    if (!all)
        pass->gate = NULL;
    for (size_t i = 0; i < pass->n_used && !all; i++)
        if (graph->n_images > 0 && pass->used[i] >= graph->first_image)
            (void)snprintf(pass->gate_why, sizeof pass->gate_why,
                           "the last pass reads an image that an earlier one has kept; that one "
                           "leaves tiles out");
}

/* --- what a run asks ------------------------------------------------------------------------- */

const struct pb_chain *pb_chain_gate(const struct pb_chain *chain)
{
    return chain->gate;
}

const char *pb_chain_gate_why(const struct pb_chain *chain)
{
    return chain->gate_why;
}

double pb_chain_gate_minimum(const struct pb_chain *chain)
{
    return chain->gate_minimum;
}

struct pb_rect pb_chain_gate_rect(const struct pb_chain *chain, const struct pb_rect *core,
                                  bool around)
{
    return pb_chain_rect_on(chain, chain->gate_grid, core, around ? chain->gate_halo : 0);
}

struct pb_rect pb_chain_gate_rect_most(const struct pb_chain *chain, int32_t w, int32_t h)
{
    return pb_chain_largest_rect(chain, w, h, chain->gate_grid, chain->gate_halo);
}

size_t pb_chain_planes_of(const struct pb_chain *chain, uint32_t source)
{
    return chain->sources[source].n_planes;
}
