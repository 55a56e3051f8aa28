/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reductions and loops as values of the graph: lists that are searched, as there are few. */
#include "kernels/graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more. 0, -ENOMEM or -E2BIG. */
static int make_room(struct pb_graph *graph)
{
    const size_t room = graph->reduction_room ? 2 * graph->reduction_room : 8;

    if (graph->n_reductions < graph->reduction_room)
        return 0;
    if (room > PB_GRAPH_REDUCTIONS_MAX)
        return -E2BIG;
    struct pb_graph_reduction *const more = realloc(graph->reductions, room * sizeof *more);
    if (!more)
        return -ENOMEM;
    graph->reductions = more;
    graph->reduction_room = room;
    return 0;
}

/* A new reduction without inputs; its number. */
static int32_t append(struct pb_graph *graph, const struct pb_reduce *reduce, size_t step)
{
    const int rc = make_room(graph);

    if (rc < 0)
        return rc;
    struct pb_graph_reduction *const made = &graph->reductions[graph->n_reductions];
    made->reduce = *reduce;
    made->step = step;
    for (size_t i = 0; i < PB_REDUCE_INPUTS_MAX; i++)
        made->input[i] = -1;
    return (int32_t)graph->n_reductions++;
}

/* The number of a reduction of one value, new or known. */
static int32_t find(struct pb_graph *graph, const struct pb_reduce *reduce, pb_value x, size_t step)
{
    for (size_t i = 0; i < graph->n_reductions; i++)
        if (graph->reductions[i].input[0] == x &&
            memcmp(&graph->reductions[i].reduce, reduce, sizeof *reduce) == 0)
            return (int32_t)i;
    const int32_t made = append(graph, reduce, step);
    if (made >= 0)
        graph->reductions[made].input[0] = x;
    return made;
}

int pb_graph_use(struct pb_graph *graph, const struct pb_graph_use *use)
{
    for (size_t i = 0; i < graph->n_uses; i++)
        if (graph->uses[i].reduction == use->reduction && graph->uses[i].first == use->first &&
            graph->uses[i].step == use->step && strcmp(graph->uses[i].band, use->band) == 0)
            return 0;
    if (graph->n_uses == graph->use_room) {
        const size_t room = graph->use_room ? 2 * graph->use_room : 8;
        struct pb_graph_use *const more =
            room > PB_GRAPH_NODES_MAX ? NULL : realloc(graph->uses, room * sizeof *more);

        if (!more)
            return room > PB_GRAPH_NODES_MAX ? -E2BIG : -ENOMEM;
        graph->uses = more;
        graph->use_room = room;
    }
    graph->uses[graph->n_uses++] = *use;
    return 0;
}

pb_value pb_graph_result(struct pb_graph *graph, uint32_t loop, uint32_t k)
{
    return pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_SCALAR,
                                                 .arg = {-1, -1, -1},
                                                 .index = loop * PB_REDUCE_RESULTS_MAX + k,
                                                 .grid = -1});
}

pb_value pb_graph_reduce(struct pb_graph *graph, const struct pb_reduce *reduce, pb_value x,
                         uint32_t result, size_t step, const char *band)
{
    if (pb_node_is_number(&graph->nodes[x]))
        return pb_reduce_is_spread(reduce, result) ? pb_graph_op(graph, PB_VM_SUB, x, x, -1) : x;
    const int32_t number = find(graph, reduce, x, step);
    struct pb_graph_use use = {.reduction = (uint32_t)number, .n = reduce->n, .step = step};

    if (number < 0)
        return number;
    (void)snprintf(use.band, sizeof use.band, "%s", band ? band : "");
    const int rc = band ? pb_graph_use(graph, &use) : 0;
    return rc < 0 ? rc : pb_graph_result(graph, (uint32_t)number, result);
}

pb_value pb_graph_match(struct pb_graph *graph, pb_value x, pb_value from, pb_value to, size_t step)
{
    const struct pb_reduce counts = pb_reduce_threshold();
    const int32_t one = find(graph, &counts, from, step), two = find(graph, &counts, to, step);
    size_t i = 0;

    if (one < 0 || two < 0)
        return one < 0 ? one : two;
    while (i < graph->n_curves &&
           (graph->curves[i].from != (uint32_t)one || graph->curves[i].to != (uint32_t)two))
        i++;
    if (i == PB_GRAPH_CURVES_MAX)
        return -E2BIG;
    if (i == graph->n_curves)
        graph->curves[graph->n_curves++] = (struct pb_graph_curve){(uint32_t)one, (uint32_t)two};
    return pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_CURVE,
                                                 .arity = 1,
                                                 .arg = {x, -1, -1},
                                                 .index = (uint32_t)i,
                                                 .grid = graph->nodes[x].grid});
}

int32_t pb_graph_loop(struct pb_graph *graph, const struct pb_reduce *reduce, size_t step)
{
    return append(graph, reduce, step);
}

pb_value pb_graph_loop_number(struct pb_graph *graph, uint32_t loop, uint32_t k, pb_value start)
{
    return pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_ROUND,
                                                 .arity = 1,
                                                 .arg = {start, -1, -1},
                                                 .index = loop * PB_REDUCE_RESULTS_MAX + k,
                                                 .grid = -1});
}
