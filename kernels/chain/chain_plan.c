/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stages. Every plane that a focal operation reads ("source") is made by a stage of its own: a
 * program, then all focal operations over that source. A last program makes the outputs. Each
 * program is found by walking from its roots down to inputs and planes that focal operations made;
 * pixel-wise values that several programs need are computed again rather than stored, because a
 * sweep is bound by memory and not by arithmetic. One source at a time keeps few planes alive, so a
 * chain over many bands still works in the memory of a few.
 *
 * Operands have smaller ids than their users, hence sources in ascending order are a valid order of
 * stages, and margins are complete when they are summed up in descending order. */
#include "kernels/chain/chain_plan.h"
#include "kernels/chain/program_compile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct plan {
    const struct pb_graph *graph;
    const pb_value *outputs;
    size_t n_outputs;
    struct pb_chain *chain;
    uint8_t *live, *cone; /* by node */
    pb_value *sources;    /* by stage, ascending; the last stage has none */
    int32_t *margin;      /* by node: reach of its plane (focal operations and sources) */
    int32_t *last_stage;  /* by focal operation node: the last stage that reads its plane */
    uint16_t *slot;       /* by focal operation node */
    uint16_t *input_plane;
    int32_t *busy_until; /* by slot */
};

static bool is_focal(const struct plan *p, size_t v)
{
    return p->graph->nodes[v].kind == PB_NODE_FOCAL;
}

static int allocate(struct plan *p, size_t n_inputs)
{
    const size_t n = p->graph->n;

    p->live = calloc(n, 1);
    p->cone = calloc(n, 1);
    p->sources = calloc(n, sizeof *p->sources);
    p->margin = calloc(n, sizeof *p->margin);
    p->last_stage = calloc(n, sizeof *p->last_stage);
    p->slot = calloc(n, sizeof *p->slot);
    p->input_plane = calloc(n_inputs, sizeof *p->input_plane);
    p->busy_until = malloc((2 * n + 1) * sizeof *p->busy_until);
    p->chain->used = calloc(n_inputs, sizeof *p->chain->used);
    p->chain->inputs = calloc(n_inputs, sizeof *p->chain->inputs);
    return p->live && p->cone && p->sources && p->margin && p->last_stage && p->slot &&
                   p->input_plane && p->busy_until && p->chain->used && p->chain->inputs
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
    free(p->input_plane);
    free(p->busy_until);
}

/* --- inputs ---------------------------------------------------------------------------------- */

/* Nodata in the band's own type, so that it is compared exactly; a value that the type cannot hold
 * marks nothing. */
static void set_nodata(struct pb_program_input *out, double nodata)
{
    static const double low[PB_TYPE_COUNT] = {[PB_I16] = -32768.0, [PB_I32] = -2147483648.0};
    static const double high[PB_TYPE_COUNT] = {[PB_U8] = 255.0,
                                               [PB_I16] = 32767.0,
                                               [PB_U16] = 65535.0,
                                               [PB_I32] = 2147483647.0,
                                               [PB_U32] = 4294967295.0};

    if (!isfinite(nodata))
        return; /* such samples are invalid anyway */
    if (out->type == PB_F32 || out->type == PB_F64) {
        out->nodata_float = out->type == PB_F32 ? (double)(float)nodata : nodata;
        out->has_nodata = isfinite(out->nodata_float);
    } else if (nodata == rint(nodata) && nodata >= low[out->type] && nodata <= high[out->type]) {
        out->nodata_int = (int64_t)nodata;
        out->has_nodata = true;
    }
}

static void add_input(struct plan *p, const struct pb_chain_input *input, uint32_t index)
{
    struct pb_chain *const chain = p->chain;
    struct pb_program_input *const out = &chain->inputs[chain->n_used];

    *out = (struct pb_program_input){.type = (int32_t)input->type,
                                     .scaled = input->scale != 1.0 || input->offset != 0.0,
                                     .scale = (float)input->scale,
                                     .offset = (float)input->offset};
    if (input->has_nodata)
        set_nodata(out, input->nodata);
    p->input_plane[index] = (uint16_t)chain->n_used;
    chain->used[chain->n_used++] = index;
}

/* In the order of the scene's bands. A chain of constants takes the first, so that a tile is never
 * empty. */
static void find_inputs(struct plan *p, const struct pb_chain_input *inputs, size_t n_inputs)
{
    for (uint32_t i = 0; i < n_inputs; i++)
        for (size_t v = 0; v < p->graph->n; v++)
            if (p->live[v] && p->graph->nodes[v].kind == PB_NODE_INPUT &&
                p->graph->nodes[v].index == i)
                add_input(p, &inputs[i], i);
    if (p->chain->n_used == 0)
        add_input(p, &inputs[0], 0);
}

/* --- stages ---------------------------------------------------------------------------------- */

static int find_stages(struct plan *p)
{
    const struct pb_graph *const graph = p->graph;
    struct pb_chain *const chain = p->chain;
    size_t n = 0;

    memset(p->cone, 0, graph->n);
    for (size_t v = 0; v < graph->n; v++)
        if (p->live[v] && is_focal(p, v))
            p->cone[graph->nodes[v].arg[0]] = 1;
    for (size_t v = 0; v < graph->n; v++)
        if (p->cone[v])
            p->sources[n++] = (pb_value)v;
    chain->stages = calloc(n + 1, sizeof *chain->stages);
    if (!chain->stages)
        return -ENOMEM;
    chain->n_stages = n + 1;
    return 0;
}

/* p->cone: what the program of a stage reaches, focal operations being leaves. */
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

/* Margins and last uses, from the last stage back to the first. */
static void find_margins(struct plan *p)
{
    struct pb_chain *const chain = p->chain;
    const struct pb_graph *const graph = p->graph;

    for (size_t k = chain->n_stages; k-- > 0;) {
        struct pb_stage *const stage = &chain->stages[k];

        for (size_t v = 0; v < graph->n && k + 1 < chain->n_stages; v++) {
            if (!p->live[v] || !is_focal(p, v) || graph->nodes[v].arg[0] != p->sources[k])
                continue;
            const int32_t reach = p->margin[v] + graph->focals[graph->nodes[v].index].radius;
            stage->margin = reach > stage->margin ? reach : stage->margin;
            stage->n_focals++;
        }
        mark_cone(p, k);
        for (size_t v = 0; v < graph->n; v++) {
            if (!p->cone[v] || !is_focal(p, v))
                continue;
            p->margin[v] = stage->margin > p->margin[v] ? stage->margin : p->margin[v];
            p->last_stage[v] = (int32_t)k > p->last_stage[v] ? (int32_t)k : p->last_stage[v];
        }
        chain->halo = stage->margin > chain->halo ? stage->margin : chain->halo;
    }
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
                                         .focal_slot = p->slot,
                                         .focal_margin = p->margin};
    struct pb_program program;
    const int rc = pb_program_compile(&spec, &program);

    if (rc < 0)
        return rc;
    stage->code = program.code;
    stage->n_code = program.n;
    stage->n_registers = program.n_registers;
    if (program.n_registers > p->chain->n_registers)
        p->chain->n_registers = program.n_registers;
    return 0;
}

static int make_stage(struct plan *p, size_t k)
{
    struct pb_stage *const stage = &p->chain->stages[k];
    const struct pb_graph *const graph = p->graph;
    const pb_value source = p->sources[k];
    uint16_t from = p->slot[source];
    size_t n = 0;

    stage->focals = calloc(stage->n_focals, sizeof *stage->focals);
    if (!stage->focals)
        return -ENOMEM;
    if (!is_focal(p, (size_t)source)) {
        from = take_slot(p, k, (int32_t)k);
        const int rc = make_program(p, k, &source, &from, 1);
        if (rc < 0)
            return rc;
    }
    for (size_t v = 0; v < graph->n; v++) {
        if (!p->live[v] || !is_focal(p, v) || graph->nodes[v].arg[0] != source)
            continue;
        p->slot[v] = take_slot(p, k, p->last_stage[v]);
        stage->focals[n++] = (struct pb_stage_focal){
            .focal = graph->focals[graph->nodes[v].index],
            .from = from,
            .to = p->slot[v],
            .from_margin = is_focal(p, (size_t)source) ? p->margin[source] : stage->margin,
            .to_margin = p->margin[v]};
    }
    return 0;
}

static int make_last_stage(struct plan *p)
{
    uint16_t *const store = calloc(p->n_outputs + 1, sizeof *store);

    if (!store)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_outputs; i++)
        store[i] = (uint16_t)i;
    const int rc = make_program(p, p->chain->n_stages - 1, p->outputs, store, p->n_outputs);
    free(store);
    return rc;
}

int pb_chain_plan(const struct pb_graph *graph, const pb_value *outputs, size_t n_outputs,
                  const struct pb_chain_input *inputs, size_t n_inputs, struct pb_chain *chain)
{
    struct plan p = {.graph = graph, .outputs = outputs, .n_outputs = n_outputs, .chain = chain};
    int rc = allocate(&p, n_inputs);

    chain->n_outputs = n_outputs;
    if (rc == 0) {
        for (size_t i = 0; i < n_outputs; i++)
            p.live[outputs[i]] = 1;
        pb_graph_mark(graph, p.live, true);
        find_inputs(&p, inputs, n_inputs);
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
