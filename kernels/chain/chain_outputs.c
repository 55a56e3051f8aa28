/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* What products want to know of the values they store: what of them are an input's pixels. */
#include "kernels/chain/chain_outputs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int32_t as_stored(const struct pb_chain_spec *spec, int32_t origin)
{
    const struct pb_chain_input *const input = origin >= 0 ? &spec->inputs[origin] : NULL;

    return input && input->scale == 1 && input->offset == 0 ? origin : -1;
}

/* Whether the value is an input, or a part of one. */
static bool is_input(const struct pb_graph *graph, pb_value value)
{
    const struct pb_node *node = &graph->nodes[value];

    while (node->kind == PB_NODE_VIEW)
        node = &graph->nodes[node->arg[0]];
    return node->kind == PB_NODE_INPUT;
}

/* Which inputs go into operations, or into outputs that are none of them in place. */
static void find_computed(const struct pb_graph *graph, const pb_value *values,
                          const struct pb_chain_spec *spec, uint8_t *flags, struct pb_chain *chain)
{
    for (size_t i = 0; i < spec->n_outputs; i++)
        flags[values[i]] |= chain->places[i] >= 0 ? PB_GRAPH_KEPT : PB_GRAPH_COMPUTED;
    pb_graph_computed(graph, flags);
    for (size_t id = 0; id < graph->n; id++)
        if (graph->nodes[id].kind == PB_NODE_INPUT && (flags[id] & PB_GRAPH_COMPUTED))
            chain->computed[graph->nodes[id].index] = true;
}

/* What the numbers of outputs mean, and what the steps noted. */
static int keep_words(struct pb_builder *b, const pb_value *values, size_t n,
                      struct pb_chain *chain)
{
    static_assert(PB_CHAIN_NOTE_BYTES == PB_BUILDER_NOTE_BYTES, "notes are copied");
    const int rc = pb_value_tags_follow(&b->tags, &b->graph);

    chain->meanings = calloc(n + 1, sizeof *chain->meanings);
    chain->notes = calloc(b->n_notes + 1, sizeof *chain->notes);
    if (rc < 0 || !chain->meanings || !chain->notes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct pb_band_tags *const q = pb_value_tags_of(&b->tags, values[i]);

        if (q != NULL)
            chain->meanings[i] = (struct pb_chain_meaning){true, *q};
    }
    memcpy(chain->notes, b->notes, b->n_notes * sizeof *chain->notes);
    chain->n_notes = b->n_notes;
    return 0;
}

int pb_chain_describe_outputs(struct pb_builder *b, const pb_value *values,
                              const struct pb_chain_spec *spec, struct pb_chain *chain)
{
    const struct pb_graph *const graph = &b->graph;
    const size_t n = spec->n_outputs;
    uint8_t *const few = calloc(graph->n + 1, 1), *const flags = calloc(graph->n + 1, 1);
    int32_t *const origins = calloc(graph->n + 1, sizeof *origins);
    int32_t *const places = calloc(graph->n + 1, sizeof *places);

    chain->classes = calloc(n + 1, sizeof *chain->classes);
    chain->origins = calloc(n + 1, sizeof *chain->origins);
    chain->places = calloc(n + 1, sizeof *chain->places);
    chain->untouched = calloc(n + 1, sizeof *chain->untouched);
    chain->computed = calloc(spec->n_inputs + 1, sizeof *chain->computed);
    const bool room = few && flags && origins && places && chain->classes && chain->origins &&
                      chain->places && chain->untouched && chain->computed;
    if (room) {
        pb_graph_classes(graph, few);
        pb_graph_origins(graph, false, origins);
        pb_graph_origins(graph, true, places);
    }
    for (size_t i = 0; room && i < n; i++) {
        chain->classes[i] = few[values[i]] != 0;
        chain->origins[i] = as_stored(spec, origins[values[i]]);
        chain->places[i] = as_stored(spec, places[values[i]]);
        chain->untouched[i] = chain->places[i] >= 0 && is_input(graph, values[i]);
    }
    if (room)
        find_computed(graph, values, spec, flags, chain);
    free(few);
    free(flags);
    free(origins);
    free(places);
    return room ? keep_words(b, values, n, chain) : -ENOMEM;
}

const struct pb_band_tags *pb_chain_output_tags(const struct pb_chain *chain, size_t output)
{
    return chain->meanings[output].known ? &chain->meanings[output].tags : NULL;
}

size_t pb_chain_note_count(const struct pb_chain *chain)
{
    return chain->n_notes;
}

const char *pb_chain_note(const struct pb_chain *chain, size_t i)
{
    return chain->notes[i];
}

const int32_t *pb_chain_origins(const struct pb_chain *chain)
{
    return chain->origins;
}

const int32_t *pb_chain_places(const struct pb_chain *chain)
{
    return chain->places;
}

const bool *pb_chain_untouched(const struct pb_chain *chain)
{
    return chain->untouched;
}

const bool *pb_chain_computed(const struct pb_chain *chain)
{
    return chain->computed;
}

const bool *pb_chain_classes(const struct pb_chain *chain)
{
    return chain->classes;
}
