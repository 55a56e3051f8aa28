/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whole images as values of the graph. An image is an input, so that what comes after it is built
 * as over a band of a file; passes and origins look at what it is made of. */
#include "kernels/graph/graph.h"

#include <errno.h>
#include <string.h>

pb_value pb_graph_sieve(struct pb_graph *graph, const struct pb_sieve *sieve, pb_value x,
                        size_t step)
{
    if (graph->nodes[x].grid < 0)
        return x;
    for (size_t i = 0; i < graph->n_images; i++)
        if (graph->images[i].of == x && memcmp(&graph->images[i].sieve, sieve, sizeof *sieve) == 0)
            return graph->images[i].value;
    if (graph->n_images == graph->images_max)
        return -E2BIG;
    const pb_value value =
        pb_graph_input(graph, graph->first_image + (uint32_t)graph->n_images, graph->nodes[x].grid);
    if (value >= 0)
        graph->images[graph->n_images++] =
            (struct pb_graph_image){.sieve = *sieve, .of = x, .value = value, .step = step};
    return value;
}

const struct pb_graph_image *pb_graph_image_of(const struct pb_graph *graph,
                                               const struct pb_node *node)
{
    if (node->kind != PB_NODE_INPUT || graph->n_images == 0 || node->index < graph->first_image)
        return NULL;
    return &graph->images[node->index - graph->first_image];
}
