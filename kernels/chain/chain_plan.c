/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stages. Every plane that a focal operation or a resampling reads ("source") is made by a stage of
 * its own: a program, then all of these over that source. A last program makes the outputs. Each
 * program is found by walking from its roots down to inputs and planes that earlier stages made;
 * pixel-wise values that several programs need are computed again rather than stored, because a
 * sweep is bound by memory and not by arithmetic. One source at a time keeps few planes alive, so a
 * chain over many bands still works in the memory of a few.
 *
 * Operands have smaller ids than their users, hence sources in ascending order are a valid order of
 * stages, and margins are complete when they are summed up in descending order. Inputs that heights
 * are made from come before all others: a plane that is made from another source needs them. */
#include "kernels/chain/chain_plan.h"
#include "kernels/chain/chain_curves.h"
#include "kernels/chain/chain_frames.h"
#include "kernels/chain/chain_leaves.h"
#include "kernels/chain/chain_numbers.h"
#include "kernels/chain/program_compile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct plan {
    const struct pb_graph *graph;
    const pb_value *outputs;
    size_t n_outputs;
    const struct pb_chain_spec *spec;
    struct pb_chain *chain;
    uint8_t *live, *cone; /* by node */
    pb_value *sources;    /* by stage; the last stage has none */
    int32_t *margin;      /* by node: reach of its plane (planes and sources) */
    int32_t *last_stage;  /* by plane: the last stage that reads it */
    uint16_t *slot;       /* by plane */
    uint16_t *input_plane;
    int32_t *busy_until; /* by slot */
    uint8_t *leaf_place; /* by node: of the program that is being made */
    int32_t out_grid;
};

/* Nodes that a focal operation or a resampling makes. */
static bool is_plane(const struct plan *p, size_t v)
{
    return pb_node_is_plane(&p->graph->nodes[v]);
}

/* Planes that are made from the value that stage k is there for. */
static bool is_of_stage(const struct plan *p, size_t v, size_t k)
{
    return p->live[v] && is_plane(p, v) && p->graph->nodes[v].arg[0] == p->sources[k];
}

/* Where a value is computed; constants on the first grid. */
static uint16_t grid_of(const struct plan *p, pb_value v)
{
    const int32_t grid = p->graph->nodes[v].grid;

    return (uint16_t)(grid < 0 ? 0 : grid);
}

static int allocate(struct plan *p)
{
    const size_t n = p->graph->n, n_inputs = p->spec->n_inputs;

    p->live = calloc(n, 1);
    p->cone = calloc(n, 1);
    p->sources = calloc(n, sizeof *p->sources);
    p->margin = calloc(n, sizeof *p->margin);
    p->last_stage = calloc(n, sizeof *p->last_stage);
    p->slot = calloc(n, sizeof *p->slot);
    p->leaf_place = calloc(n, 1);
    p->input_plane = calloc(n_inputs, sizeof *p->input_plane);
    p->busy_until = malloc((2 * n + 1) * sizeof *p->busy_until);
    p->chain->used = calloc(n_inputs, sizeof *p->chain->used);
    p->chain->inputs = calloc(n_inputs, sizeof *p->chain->inputs);
    return p->live && p->cone && p->sources && p->margin && p->last_stage && p->slot &&
                   p->leaf_place && p->input_plane && p->busy_until && p->chain->used &&
                   p->chain->inputs
               ? 0
               : -ENOMEM;
}

static void release(struct plan *p)
{
    free(p->live);
    free(p->cone);
    free(p->sources);
    free(p->margin);
    free(p->last_stage);
    free(p->slot);
    free(p->leaf_place);
    free(p->input_plane);
    free(p->busy_until);
}

/* --- grids ----------------------------------------------------------------------------------- */

/* Whether all inputs of the node's source that are read lie on its grid: heights have been given a
 * frame of their own. */
static bool lies_alone(const struct plan *p, size_t v)
{
    const struct pb_node *const node = &p->graph->nodes[v];
    bool alone = true;

    for (size_t i = 0; i < v && alone; i++) {
        const struct pb_node *const other = &p->graph->nodes[i];

        alone = !p->live[i] || other->kind != PB_NODE_INPUT || other->grid == node->grid ||
                p->spec->inputs[other->index].source != p->spec->inputs[node->index].source;
    }
    return alone;
}

/* The grids of the graph as the outputs see them. */
static int find_grids(struct plan *p)
{
    const struct pb_graph *const graph = p->graph;
    struct pb_chain *const chain = p->chain;
    bool keeps = true;

    chain->grids = calloc(graph->n_grids, sizeof *chain->grids);
    if (!chain->grids)
        return -ENOMEM;
    chain->n_grids = graph->n_grids;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (graph->nodes[p->outputs[i]].grid >= 0)
            p->out_grid = graph->nodes[p->outputs[i]].grid;
    for (size_t i = 0; i < graph->n_grids; i++)
        chain->grids[i] = (struct pb_chain_grid){graph->grids[i].w, graph->grids[i].h,
                                                 pb_graph_map(graph, p->out_grid, (int32_t)i),
                                                 graph->grids[i].frame, graph->grids[i].map};
    chain->geometry = graph->grids[p->out_grid];
    for (size_t v = 0; v < graph->n; v++) {
        const struct pb_node *const node = &graph->nodes[v];

        if (p->live[v])
            keeps = keeps && node->grid <= 0 &&
                    !(node->kind == PB_NODE_INPUT && p->spec->inputs[node->index].source > 0);
        if (p->live[v] && node->kind == PB_NODE_INPUT && !lies_alone(p, v))
            return -EXDEV;
    }
    chain->keeps_grid = keeps;
    return pb_chain_frames_init(graph, p->out_grid, chain);
}

/* Places of the leaves that a program over `grid` loads. */
static int find_places(struct plan *p, uint16_t grid)
{
    for (size_t v = 0; v < p->graph->n; v++) {
        const struct pb_node *const node = &p->graph->nodes[v];
        const pb_value leaf = node->kind == PB_NODE_VIEW ? node->arg[0] : (pb_value)v;
        struct pb_leaf_place place;

        if (!p->cone[v] || node->kind <= PB_NODE_CONST || pb_node_is_number(node) ||
            p->chain->keeps_grid)
            continue;
        const int32_t own = p->graph->nodes[leaf].grid;
        if (own != grid && node->kind != PB_NODE_VIEW)
            continue; /* the leaf of a view of this program */
        const struct pb_map shift = pb_graph_map(p->graph, grid, own);
        memset(&place, 0, sizeof place);
        place.dx = (int32_t)rint(shift.offset_x);
        place.dy = (int32_t)rint(shift.offset_y);
        place.grid_w = p->chain->grids[own].w;
        place.grid_h = p->chain->grids[own].h;
        place.map = p->chain->grids[own].map;
        place.grid = own;
        place.apart = p->chain->grids[own].frame != p->chain->frame;
        const int number = pb_chain_place(p->chain, &place);
        if (number < 0)
            return number;
        p->leaf_place[v] = (uint8_t)number;
    }
    return 0;
}

/* --- inputs ---------------------------------------------------------------------------------- */

static void add_input(struct plan *p, const struct pb_chain_input *input, uint32_t index)
{
    struct pb_chain *const chain = p->chain;
    struct pb_source_need *const source = &chain->sources[input->source];

    chain->inputs[chain->n_used] = pb_program_input_of(input, (uint16_t)source->n_planes++);
    p->input_plane[index] = (uint16_t)chain->n_used;
    chain->used[chain->n_used++] = index;
}

/* In the order of the scene's bands, those of the gate last. A chain of constants takes the first,
 * so that a tile is never empty. */
static void find_inputs(struct plan *p)
{
    const struct pb_chain_input *const inputs = p->spec->inputs;

    for (int last = 0; last < 2; last++)
        for (uint32_t i = 0; i < p->spec->n_inputs; i++)
            for (size_t v = 0; v < p->graph->n; v++)
                if (p->live[v] && p->graph->nodes[v].kind == PB_NODE_INPUT &&
                    p->graph->nodes[v].index == i && pb_chain_gate_reads(p->chain, i) == last)
                    add_input(p, &inputs[i], i);
    if (p->chain->n_used == 0)
        add_input(p, &inputs[0], 0);
}

/* --- stages ---------------------------------------------------------------------------------- */

enum { FIRST = 2 }; /* a mark of sources */

/* The plane of heights that plane v is made with; -1: it is made without. */
static pb_value heights_of(const struct plan *p, size_t v)
{
    const struct pb_node *const node = &p->graph->nodes[v];

    return node->kind == PB_NODE_RESAMPLE && node->arity == 2 ? node->arg[1] : -1;
}

static int find_stages(struct plan *p)
{
    const struct pb_graph *const graph = p->graph;
    struct pb_chain *const chain = p->chain;
    size_t n = 0;

    memset(p->cone, 0, graph->n);
    for (size_t v = 0; v < graph->n; v++)
        if (p->live[v] && is_plane(p, v))
            p->cone[graph->nodes[v].arg[0]] = 1;
    for (size_t v = 0; v < graph->n; v++) {
        const pb_value heights = p->live[v] ? heights_of(p, v) : -1;

        if (heights >= 0)
            p->cone[graph->nodes[heights].arg[0]] = FIRST;
    }
    for (uint8_t mark = FIRST; mark > 0; mark--)
        for (size_t v = 0; v < graph->n; v++)
            if (p->cone[v] == mark)
                p->sources[n++] = (pb_value)v;
    chain->stages = calloc(n + 1, sizeof *chain->stages);
    if (!chain->stages)
        return -ENOMEM;
    chain->n_stages = n + 1;
    return 0;
}

/* p->cone: what the program of a stage reaches, planes being leaves. */
static void mark_cone(struct plan *p, size_t stage)
{
    memset(p->cone, 0, p->graph->n);
    if (stage + 1 < p->chain->n_stages)
        p->cone[p->sources[stage]] = 1;
    else
        for (size_t i = 0; i < p->n_outputs; i++)
            p->cone[p->outputs[i]] = 1;
    pb_graph_mark(p->graph, p->cone, false);
}

/* How far the plane that v is made from must reach when v reaches as far as its margin says. */
static int32_t reach_below(const struct plan *p, size_t v, struct pb_stage_focal *out)
{
    const struct pb_node *const node = &p->graph->nodes[v];

    if (node->kind == PB_NODE_FOCAL)
        return p->margin[v] + p->graph->focals[node->index].radius;
    const uint16_t from = grid_of(p, node->arg[0]);
    out->is_warp = p->graph->grids[from].frame != p->graph->grids[node->grid].frame;
    if (out->is_warp)
        return pb_chain_frames_reach(p->graph, v, p->margin[v], p->chain, &out->warp);
    out->resample = (struct pb_resample){.how = (enum pb_resampling)node->index,
                                         .source_w = p->graph->grids[from].w,
                                         .source_h = p->graph->grids[from].h,
                                         .map = pb_graph_map(p->graph, node->grid, from)};
    out->is_resample = true;
    return pb_resample_reach(&out->resample, p->margin[v]);
}

static void need_plane(struct plan *p, size_t v, size_t k, int32_t margin)
{
    p->margin[v] = margin > p->margin[v] ? margin : p->margin[v];
    p->last_stage[v] = (int32_t)k > p->last_stage[v] ? (int32_t)k : p->last_stage[v];
}

/* What a leaf of stage k must hold, and until when. A view's grid and its leaf's may be rounded
 * differently: one pixel more. */
static void need_leaf(struct plan *p, size_t v, size_t k, bool viewed)
{
    const struct pb_node *const node = &p->graph->nodes[v];
    const int32_t margin = p->chain->stages[k].margin + (viewed ? 1 : 0);

    if (node->kind == PB_NODE_INPUT) {
        struct pb_source_need *const need = &p->chain->sources[p->spec->inputs[node->index].source];

        need->grid = grid_of(p, (pb_value)v);
        need->halo = margin > need->halo ? margin : need->halo;
    } else if (is_plane(p, v)) {
        need_plane(p, v, k, margin);
    }
}

/* Margins and last uses, from the last stage back to the first. */
static void find_margins(struct plan *p)
{
    struct pb_chain *const chain = p->chain;
    const struct pb_graph *const graph = p->graph;
    struct pb_stage_focal unused;

    for (size_t k = chain->n_stages; k-- > 0;) {
        struct pb_stage *const stage = &chain->stages[k];

        for (size_t v = 0; v < graph->n && k + 1 < chain->n_stages; v++) {
            if (!is_of_stage(p, v, k))
                continue;
            const int32_t reach = reach_below(p, v, &unused);
            if (heights_of(p, v) >= 0)
                need_plane(p, (size_t)heights_of(p, v), k, p->margin[v] + 1); /* corners */
            stage->margin = reach > stage->margin ? reach : stage->margin;
            stage->n_focals++;
        }
        mark_cone(p, k);
        for (size_t v = 0; v < graph->n; v++) {
            if (!p->cone[v])
                continue;
            need_leaf(p, v, k, false);
            if (graph->nodes[v].kind == PB_NODE_VIEW)
                need_leaf(p, (size_t)graph->nodes[v].arg[0], k, true);
        }
        chain->halo = stage->margin > chain->halo ? stage->margin : chain->halo;
    }
    if (chain->keeps_grid)
        chain->sources[0].halo = chain->halo;
}

static uint16_t take_slot(struct plan *p, size_t stage, int32_t until)
{
    size_t s = 0;

    while (s < p->chain->n_planes && p->busy_until[s] >= (int32_t)stage)
        s++;
    if (s == p->chain->n_planes)
        p->chain->n_planes++;
    p->busy_until[s] = until;
    return (uint16_t)s;
}

static int make_program(struct plan *p, size_t k, const pb_value *roots, const uint16_t *store,
                        size_t n_roots)
{
    struct pb_stage *const stage = &p->chain->stages[k];
    const struct pb_program_spec spec = {.graph = p->graph,
                                         .roots = roots,
                                         .store = store,
                                         .n_roots = n_roots,
                                         .input_plane = p->input_plane,
                                         .plane_slot = p->slot,
                                         .plane_margin = p->margin,
                                         .leaf_place = p->leaf_place};
    struct pb_program program;

    mark_cone(p, k);
    int rc = find_places(p, stage->grid);
    rc = rc ? rc : pb_program_compile(&spec, &program);
    if (rc < 0)
        return rc;
    stage->code = program.code;
    stage->n_code = program.n;
    stage->n_registers = program.n_registers;
    if (program.n_registers > p->chain->n_registers)
        p->chain->n_registers = program.n_registers;
    rc = pb_chain_numbers_add(p->graph, p->chain, (uint32_t)k, program.patches, program.n_patches);
    free(program.patches);
    return rc ? rc : pb_chain_curves_lay(p->chain, (uint32_t)k);
}

/* What makes plane v out of scratch plane `from`. */
static struct pb_stage_focal make_plane(struct plan *p, size_t k, size_t v, uint16_t from)
{
    const struct pb_node *const node = &p->graph->nodes[v];
    const pb_value source = p->sources[k];
    struct pb_stage_focal made = {
        .from = from,
        .from_margin = is_plane(p, (size_t)source) ? p->margin[source] : p->chain->stages[k].margin,
        .to_margin = p->margin[v],
        .from_grid = grid_of(p, source),
        .to_grid = grid_of(p, (pb_value)v)};

    const pb_value heights = heights_of(p, v);
    made.to = p->slot[v] = take_slot(p, k, p->last_stage[v]);
    if (heights >= 0) {
        made.has_heights = true;
        made.heights = p->slot[heights];
        made.heights_grid = grid_of(p, heights);
        made.heights_margin = p->margin[heights];
    }
    if (node->kind == PB_NODE_RESAMPLE)
        (void)reach_below(p, v, &made);
    else
        made.focal = p->graph->focals[node->index];
    return made;
}

static int make_stage(struct plan *p, size_t k)
{
    struct pb_stage *const stage = &p->chain->stages[k];
    const pb_value source = p->sources[k];
    uint16_t from = p->slot[source];
    size_t n = 0;

    stage->focals = calloc(stage->n_focals, sizeof *stage->focals);
    if (!stage->focals)
        return -ENOMEM;
    stage->grid = grid_of(p, source);
    if (!is_plane(p, (size_t)source)) {
        from = take_slot(p, k, (int32_t)k);
        const int rc = make_program(p, k, &source, &from, 1);
        if (rc < 0)
            return rc;
    }
    for (size_t v = 0; v < p->graph->n; v++)
        if (is_of_stage(p, v, k))
            stage->focals[n++] = make_plane(p, k, v, from);
    return 0;
}

static int make_last_stage(struct plan *p)
{
    uint16_t *const store = calloc(p->n_outputs + 1, sizeof *store);

    if (!store)
        return -ENOMEM;
    p->chain->stages[p->chain->n_stages - 1].grid = (uint16_t)p->out_grid;
    for (size_t i = 0; i < p->n_outputs; i++)
        store[i] = (uint16_t)i;
    const int rc = make_program(p, p->chain->n_stages - 1, p->outputs, store, p->n_outputs);
    free(store);
    return rc;
}

int pb_chain_plan(const struct pb_graph *graph, const pb_value *outputs, size_t n_outputs,
                  const struct pb_chain_spec *spec, struct pb_chain *chain)
{
    struct plan p = {
        .graph = graph, .outputs = outputs, .n_outputs = n_outputs, .spec = spec, .chain = chain};
    int rc = allocate(&p);

    chain->n_outputs = n_outputs;
    if (rc == 0) {
        for (size_t i = 0; i < n_outputs; i++)
            p.live[outputs[i]] = 1;
        pb_graph_mark(graph, p.live, true);
        rc = find_grids(&p);
    }
    if (rc == 0) {
        find_inputs(&p);
        rc = find_stages(&p);
    }
    if (rc == 0)
        find_margins(&p);
    for (size_t k = 0; rc == 0 && k + 1 < chain->n_stages; k++)
        rc = make_stage(&p, k);
    if (rc == 0)
        rc = make_last_stage(&p);
    release(&p);
    return rc;
}
