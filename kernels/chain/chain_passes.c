/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A value's level is the number of passes that must have been run before it can be computed: a
 * result of a reduction is one above what is reduced, a whole image one above what it is made of.
 * The reductions and images of a level and a grid make one pass. */
#include "kernels/chain/chain_passes.h"
#include "kernels/chain/chain_numbers.h"
#include "kernels/chain/chain_plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct passes {
    const struct pb_graph *graph;
    const struct pb_chain_spec *spec;
    const struct pb_chain_gating *gating;
    struct pb_chain *chain;
    uint8_t *live;   /* by node */
    uint16_t *level; /* by node */
    uint16_t levels;
    pb_value *outputs; /* of the pass that is being made */
    size_t n_outputs;
};

static const struct pb_graph_reduction *reduction_of(const struct pb_graph *graph, size_t v)
{
    return &graph->reductions[graph->nodes[v].index / PB_REDUCE_RESULTS_MAX];
}

/* Of a scalar: how many values are reduced to it. */
static uint32_t inputs_of(const struct pb_graph *graph, size_t v)
{
    return graph->nodes[v].kind == PB_NODE_SCALAR ? reduction_of(graph, v)->reduce.n_inputs : 0;
}

/* The reductions of the curve that a node takes, if it does. Returns how many. */
static int curve_of(const struct pb_graph *graph, size_t v,
                    const struct pb_graph_reduction *out_reduction[2])
{
    if (graph->nodes[v].kind != PB_NODE_CURVE)
        return 0;
    const struct pb_graph_curve *const curve = &graph->curves[graph->nodes[v].index];
    out_reduction[0] = &graph->reductions[curve->from];
    out_reduction[1] = &graph->reductions[curve->to];
    return 2;
}

/* The level of the values that a reduction reduces. */
static uint16_t level_below(const struct passes *p, const struct pb_graph_reduction *reduction)
{
    uint16_t level = 0;

    for (uint32_t i = 0; i < reduction->reduce.n_inputs; i++)
        if (p->level[reduction->input[i]] > level)
            level = p->level[reduction->input[i]];
    return level;
}

/* What is reduced comes before the scalars that it makes. */
static void find_live(struct passes *p)
{
    for (size_t v = p->graph->n; v-- > 0;) {
        const struct pb_node *const node = &p->graph->nodes[v];

        if (!p->live[v])
            continue;
        for (int k = 0; k < node->arity; k++)
            p->live[node->arg[k]] = 1;
        for (uint32_t i = 0; i < inputs_of(p->graph, v); i++)
            p->live[reduction_of(p->graph, v)->input[i]] = 1;
        const struct pb_graph_image *const image = pb_graph_image_of(p->graph, node);
        if (image)
            p->live[image->of] = 1;
        const struct pb_graph_reduction *counted[2];
        for (int i = curve_of(p->graph, v, counted); i-- > 0;)
            p->live[counted[i]->input[0]] = 1;
    }
}

static void find_levels(struct passes *p)
{
    for (size_t v = 0; v < p->graph->n; v++) {
        const struct pb_node *const node = &p->graph->nodes[v];
        uint16_t level = 0;

        for (int k = 0; k < node->arity; k++)
            level = p->level[node->arg[k]] > level ? p->level[node->arg[k]] : level;
        const struct pb_graph_image *const image = pb_graph_image_of(p->graph, node);
        if (node->kind == PB_NODE_SCALAR)
            level = (uint16_t)(level_below(p, reduction_of(p->graph, v)) + 1);
        else if (image)
            level = (uint16_t)(p->level[image->of] + 1);
        const struct pb_graph_reduction *counted[2];
        for (int i = curve_of(p->graph, v, counted); i-- > 0;)
            if (level_below(p, counted[i]) >= level)
                level = (uint16_t)(level_below(p, counted[i]) + 1);
        p->level[v] = level;
        if (p->live[v] && level > p->levels)
            p->levels = level;
    }
}

/* What is known of the values of v: samples of a band of 16 bits or fewer, perhaps masked. */
static struct pb_samples samples_of(const struct passes *p, pb_value v)
{
    const struct pb_node *node = &p->graph->nodes[v];
    struct pb_samples samples = {.n = 0};

    if (node->kind == PB_VM_WHERE) { /* where(mask, x, NaN) */
        const struct pb_node *const other = &p->graph->nodes[node->arg[2]];

        if (other->kind == PB_NODE_CONST && isnan(other->number))
            node = &p->graph->nodes[node->arg[1]];
    }
    if (node->kind == PB_NODE_VIEW)
        node = &p->graph->nodes[node->arg[0]];
    if (node->kind != PB_NODE_INPUT || pb_graph_image_of(p->graph, node))
        return samples;
    const struct pb_chain_input *const input = &p->spec->inputs[node->index];
    if (input->type > PB_U16)
        return samples;
    samples = (struct pb_samples){.first = input->type == PB_I16 ? INT16_MIN : 0,
                                  .n = input->type == PB_U8 ? 256 : 65536,
                                  .scaled = input->scale != 1.0 || input->offset != 0.0,
                                  .scale = (float)input->scale,
                                  .offset = (float)input->offset};
    if (!pb_samples_are_distinct(&samples))
        samples.n = 0;
    return samples;
}

/* The number of an output of the pass, which it becomes. */
static uint32_t output_of(struct passes *p, pb_value v)
{
    size_t i = 0;

    while (i < p->n_outputs && p->outputs[i] != v)
        i++;
    if (i == p->n_outputs)
        p->outputs[p->n_outputs++] = v;
    return (uint32_t)i;
}

/* Whether a scalar or a curve that is needed comes from it. */
static bool is_needed(const struct passes *p, size_t number)
{
    const struct pb_graph_reduction *const wanted = &p->graph->reductions[number];
    bool needed = false;

    for (size_t v = 0; v < p->graph->n && !needed; v++) {
        const struct pb_graph_reduction *counted[2] = {NULL, NULL};

        if (!p->live[v])
            continue;
        (void)curve_of(p->graph, v, counted);
        needed = counted[0] == wanted || counted[1] == wanted ||
                 (p->graph->nodes[v].kind == PB_NODE_SCALAR &&
                  p->graph->nodes[v].index / PB_REDUCE_RESULTS_MAX == number);
    }
    return needed;
}

static void add_reduction(struct passes *p, struct pb_chain *pass, uint32_t number)
{
    const struct pb_graph_reduction *const from = &p->graph->reductions[number];
    struct pb_chain_reduction *const to = &pass->reductions[pass->n_reductions++];

    *to = (struct pb_chain_reduction){.reduce = from->reduce,
                                      .samples = samples_of(p, from->input[0]),
                                      .number = number,
                                      .step = from->step};
    for (uint32_t i = 0; i < from->reduce.n_inputs; i++)
        to->output[i] = output_of(p, from->input[i]);
    for (uint32_t k = 0; k < PB_REDUCE_RESULTS_MAX; k++)
        to->results[k] = (double)NAN;
}

static void add_images(struct passes *p, struct pb_chain *pass, uint16_t level, int32_t grid)
{
    for (size_t i = 0; i < p->graph->n_images; i++) {
        const struct pb_graph_image *const from = &p->graph->images[i];

        if (!p->live[from->value] || p->level[from->of] != level ||
            p->graph->nodes[from->of].grid != grid)
            continue;
        pass->images[pass->n_images] = p->chain->images[i];
        pass->images[pass->n_images++].output = output_of(p, from->of);
    }
}

static int add_pass(struct passes *p, uint16_t level, int32_t grid)
{
    const struct pb_graph *const graph = p->graph;
    struct pb_chain *const pass = calloc(1, sizeof *pass);

    if (!pass)
        return -ENOMEM;
    p->chain->earlier[p->chain->n_earlier++] = pass;
    pass->reductions = calloc(graph->n_reductions + 1, sizeof *pass->reductions);
    pass->images = calloc(graph->n_images + 1, sizeof *pass->images);
    if (!pass->reductions || !pass->images)
        return -ENOMEM;
    p->n_outputs = 0;
    add_images(p, pass, level, grid);
    for (size_t i = 0; i < graph->n_reductions; i++) {
        if (is_needed(p, i) && level_below(p, &graph->reductions[i]) == level &&
            graph->nodes[graph->reductions[i].input[0]].grid == grid)
            add_reduction(p, pass, (uint32_t)i);
    }
    if (p->n_outputs > 0) {
        pb_chain_gating_give(p->gating, p->outputs, p->n_outputs, NULL, pass);
        const int rc = pb_chain_plan(graph, p->outputs, p->n_outputs, p->spec, pass);
        pb_chain_gating_reach(graph, pass);
        return rc;
    }
    p->chain->n_earlier--;
    pb_chain_destroy(pass);
    return 0;
}

static int make_passes(struct passes *p)
{
    int rc = 0;

    p->chain->earlier =
        calloc((size_t)p->levels * p->graph->n_grids + 1, sizeof(struct pb_chain *));
    if (!p->chain->earlier)
        return -ENOMEM;
    for (uint16_t level = 0; level < p->levels; level++)
        for (size_t grid = 0; grid < p->graph->n_grids && rc == 0; grid++)
            rc = add_pass(p, level, (int32_t)grid);
    return rc;
}

static const struct pb_chain_reduction *find_reduction(const struct pb_chain *chain,
                                                       uint32_t number)
{
    for (size_t p = 0; p < chain->n_earlier; p++)
        for (size_t i = 0; i < chain->earlier[p]->n_reductions; i++)
            if (chain->earlier[p]->reductions[i].number == number)
                return &chain->earlier[p]->reductions[i];
    return NULL;
}

static int list_images(const struct pb_graph *graph, const struct pb_chain_spec *spec,
                       struct pb_chain *chain)
{
    chain->images = calloc(graph->n_images + 1, sizeof *chain->images);
    if (!chain->images)
        return -ENOMEM;
    for (size_t i = 0; i < graph->n_images; i++) {
        const struct pb_graph_image *const from = &graph->images[i];
        const uint32_t input = graph->nodes[from->value].index;

        chain->images[chain->n_images++] =
            (struct pb_chain_image){.sieve = from->sieve,
                                    .number = (uint32_t)i,
                                    .input = input,
                                    .source = spec->inputs[input].source,
                                    .grid = graph->grids[graph->nodes[from->value].grid],
                                    .step = from->step};
    }
    return 0;
}

/* The uses of reductions that some pass makes. */
static int list_uses(const struct pb_graph *graph, struct pb_chain *chain)
{
    chain->uses = calloc(graph->n_uses + 1, sizeof *chain->uses);
    if (!chain->uses)
        return -ENOMEM;
    for (size_t i = 0; i < graph->n_uses; i++) {
        const struct pb_graph_use *const from = &graph->uses[i];
        struct pb_chain_use *const to = &chain->uses[chain->n_uses];

        to->reduction = find_reduction(chain, from->reduction);
        to->step = from->step;
        to->first = from->first;
        to->n = from->n;
        (void)snprintf(to->band, sizeof to->band, "%s", from->band);
        chain->n_uses += to->reduction != NULL;
    }
    return 0;
}

int pb_chain_passes(const struct pb_graph *graph, const pb_value *outputs,
                    const struct pb_chain_spec *spec, const struct pb_chain_gating *gating,
                    struct pb_chain *chain)
{
    struct passes p = {.graph = graph, .spec = spec, .gating = gating, .chain = chain};
    int rc = -ENOMEM;

    if (graph->n_reductions == 0 && graph->n_images == 0)
        return 0;
    p.live = calloc(graph->n, 1);
    p.level = calloc(graph->n, sizeof *p.level);
    p.outputs =
        calloc(graph->n_reductions * PB_REDUCE_INPUTS_MAX + graph->n_images, sizeof *p.outputs);
    if (p.live && p.level && p.outputs) {
        for (size_t i = 0; i < spec->n_outputs; i++)
            p.live[outputs[i]] = 1;
        find_live(&p);
        find_levels(&p);
        rc = list_images(graph, spec, chain);
        rc = rc ? rc : make_passes(&p);
        rc = rc ? rc : list_uses(graph, chain);
    }
    free(p.live);
    free(p.level);
    free(p.outputs);
    return rc;
}

/* --- what a run asks ------------------------------------------------------------------------- */

size_t pb_chain_earlier_count(const struct pb_chain *chain)
{
    return chain->n_earlier;
}

struct pb_chain *pb_chain_earlier(const struct pb_chain *chain, size_t i)
{
    return chain->earlier[i];
}

size_t pb_chain_reductions(const struct pb_chain *pass,
                           const struct pb_chain_reduction **out_reductions)
{
    *out_reductions = pass->reductions;
    return pass->n_reductions;
}

size_t pb_chain_images(const struct pb_chain *chain, const struct pb_chain_image **out_images)
{
    *out_images = chain->images;
    return chain->n_images;
}

size_t pb_chain_state_bytes(const struct pb_chain_reduction *reduction)
{
    return (pb_reduce_bytes(&reduction->reduce, &reduction->samples) + 63) / 64 * 64;
}

size_t pb_chain_reduce_bytes(const struct pb_chain *pass)
{
    size_t bytes = 0;

    for (size_t i = 0; i < pass->n_reductions; i++)
        bytes += pb_chain_state_bytes(&pass->reductions[i]);
    return bytes;
}

int pb_chain_rounds(const struct pb_chain *pass)
{
    int rounds = 1;

    for (size_t i = 0; i < pass->n_reductions; i++) {
        const int own = pb_reduce_rounds(&pass->reductions[i].reduce, &pass->reductions[i].samples);

        rounds = own > rounds ? own : rounds;
    }
    return rounds;
}

void pb_chain_loop_start(const struct pb_chain *pass, const struct pb_chain_reduction *loop,
                         float numbers[PB_REDUCE_NUMBERS_MAX])
{
    pb_chain_numbers_of_loop(pass, loop->number, numbers, loop->reduce.n_numbers);
}

void pb_chain_loop_again(struct pb_chain *pass, const struct pb_chain_reduction *loop,
                         const float *numbers)
{
    pb_chain_numbers_again(pass, loop->number, numbers, loop->reduce.n_numbers);
}

bool pb_chain_use_at(const struct pb_chain *chain, size_t i, struct pb_chain_use *out)
{
    if (i >= chain->n_uses)
        return false;
    *out = chain->uses[i];
    return true;
}

/* Stores the results for reports. */
static void keep_results(struct pb_chain *pass, uint32_t number, const double *results)
{
    for (size_t i = 0; i < pass->n_reductions; i++)
        for (uint32_t k = 0; k < pass->reductions[i].reduce.n; k++)
            if (pass->reductions[i].number == number)
                pass->reductions[i].results[k] = results[k];
}

void pb_chain_set_results(struct pb_chain *chain, const struct pb_chain_reduction *reduction,
                          const double *results)
{
    for (size_t i = 0; i < chain->n_earlier; i++)
        keep_results(chain->earlier[i], reduction->number, results);
    for (size_t i = 0; i < chain->n_earlier; i++)
        pb_chain_numbers_set(chain->earlier[i], reduction->number, results, reduction->reduce.n);
    pb_chain_numbers_set(chain, reduction->number, results, reduction->reduce.n);
}
