/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/graph/value_tags.h"

#include <errno.h>
#include <stdlib.h>

void pb_value_tags_fini(struct pb_value_tags *q)
{
    free(q->known);
    free(q->of);
    *q = (struct pb_value_tags){.n = 0};
}

/* The index of a new entry, or -ENOMEM. */
static int32_t add_known(struct pb_value_tags *q, const struct pb_band_tags *tags, const char *name)
{
    if (q->n_known == q->known_room) {
        const size_t room = q->known_room ? 2 * q->known_room : 16;
        struct pb_value_tags_known *const more = realloc(q->known, room * sizeof *more);

        if (!more)
            return -ENOMEM;
        q->known = more;
        q->known_room = room;
    }
    q->known[q->n_known] = (struct pb_value_tags_known){*tags, name};
    return (int32_t)q->n_known++;
}

int pb_value_tags_add_input(struct pb_value_tags *q, const struct pb_band_tags *tags,
                            const char *name)
{
    const int32_t known = add_known(q, tags, name);

    if (known < 0)
        return known;
    q->input[q->n_inputs++] = known;
    return 0;
}

/* --- one value ---------------------------------------------------------------------------------
 */

/* Of two that agree; the first where both are one. */
static int32_t join(struct pb_value_tags *q, int32_t one, int32_t other)
{
    if (one == other)
        return one;
    const struct pb_band_tags joined =
        pb_band_tags_joined(&q->known[one].tags, &q->known[other].tags);
    return add_known(q, &joined, q->known[one].name);
}

static int32_t mean_of(struct pb_value_tags *q, int32_t known)
{
    const struct pb_band_tags mean = pb_band_tags_of_mean(&q->known[known].tags);

    return add_known(q, &mean, q->known[known].name);
}

/* Of where(): the branches agree; one that is never valid has no part in it. -1 = none. */
static int32_t of_branches(struct pb_value_tags *q, const struct pb_graph *graph,
                           const struct pb_node *node)
{
    int32_t all = -1;

    for (int i = 0; i < node->arity; i++) {
        const struct pb_node *const from = &graph->nodes[node->arg[i]];
        const int32_t one = q->of[node->arg[i]];

        if (!pb_node_passes(node, i) || (from->kind == PB_NODE_CONST && isnan(from->number)))
            continue;
        if (one < 0)
            return -1;
        if (all >= 0 && !pb_band_tags_agree(&q->known[all].tags, &q->known[one].tags))
            return -1;
        all = all < 0 ? one : join(q, all, one);
        if (all < 0)
            return all;
    }
    return all;
}

/* Of a node whose operands are known; -1 = none, -ENOMEM. */
static int32_t of_node(struct pb_value_tags *q, const struct pb_graph *graph,
                       const struct pb_node *node)
{
    const struct pb_graph_image *const image = pb_graph_image_of(graph, node);

    if (image)
        return q->of[image->of];
    if (node->kind == PB_NODE_INPUT)
        return node->index < q->n_inputs ? q->input[node->index] : -1;
    if (node->kind == PB_VM_WHERE)
        return of_branches(q, graph, node);
    if (node->kind == PB_NODE_VIEW || (pb_node_is_plane(node) && pb_graph_chooses(graph, node)))
        return q->of[node->arg[0]];
    if (node->kind == PB_NODE_RESAMPLE && q->of[node->arg[0]] >= 0)
        return mean_of(q, q->of[node->arg[0]]);
    return -1;
}

int pb_value_tags_follow(struct pb_value_tags *q, const struct pb_graph *graph)
{
    if (graph->n > q->room) {
        int32_t *const more = realloc(q->of, graph->room * sizeof *more);

        if (!more)
            return -ENOMEM;
        q->of = more;
        q->room = graph->room;
    }
    for (; q->n < graph->n; q->n++) {
        const int32_t known = of_node(q, graph, &graph->nodes[q->n]);

        if (known == -ENOMEM)
            return known;
        q->of[q->n] = known;
    }
    return 0;
}

const struct pb_band_tags *pb_value_tags_of(const struct pb_value_tags *q, pb_value value)
{
    return value >= 0 && (size_t)value < q->n && q->of[value] >= 0 ? &q->known[q->of[value]].tags
                                                                   : NULL;
}

/* --- what a step keeps -------------------------------------------------------------------------
 */

/* Whether the node is a number or a decision, such as a weight or a condition: it brings no numbers
 * of a band into a mean. */
static bool is_neutral(const struct pb_node *node)
{
    switch (node->kind) {
    case PB_NODE_CONST:
    case PB_NODE_INDEX:
    case PB_NODE_SCALAR:
    case PB_NODE_ROUND:
    case PB_VM_VALID:
    case PB_VM_BITS:
        return true;
    default:
        return node->kind >= PB_VM_LT && node->kind <= PB_VM_OR;
    }
}

/* A search from a value down to what the step read. */
struct search {
    struct pb_value_tags *q;
    const struct pb_graph *graph;
    const uint8_t *read;
    size_t n_read;
    uint8_t *wanted; /* by value */
    int32_t all;     /* the joined tags; -1 = none yet */
    bool is_unknown; /* a part of it has none */
};

/* 0; 1 = they do not agree; -ENOMEM. */
static int take(struct search *s, pb_value id, struct pb_value_tags_conflict *out)
{
    const int32_t one = s->q->of[id];

    if (s->all >= 0 && !pb_band_tags_agree(&s->q->known[s->all].tags, &s->q->known[one].tags)) {
        *out = (struct pb_value_tags_conflict){&s->q->known[s->all], &s->q->known[one]};
        return 1;
    }
    s->all = s->all < 0 ? one : join(s->q, s->all, one);
    return s->all < 0 ? s->all : 0;
}

static int visit(struct search *s, pb_value id, struct pb_value_tags_conflict *out)
{
    const struct pb_node *const node = &s->graph->nodes[id];

    if (is_neutral(node))
        return 0;
    if (s->q->of[id] >= 0)
        return take(s, id, out);
    if (node->kind == PB_NODE_INPUT || ((size_t)id < s->n_read && s->read[id])) {
        s->is_unknown = true;
        return 0;
    }
    for (int k = 0; k < node->arity; k++)
        if (pb_node_passes(node, k))
            s->wanted[node->arg[k]] = 1;
    return 0;
}

int pb_value_tags_keep(struct pb_value_tags *q, const struct pb_graph *graph,
                       const struct pb_value_tags_read *of, pb_value value,
                       struct pb_value_tags_conflict *out)
{
    struct search s = {.q = q, .graph = graph, .read = of->read, .n_read = of->n_read, .all = -1};
    int rc = 0;

    if (q->of[value] >= 0)
        return 0;
    s.wanted = calloc((size_t)value + 1, 1);
    if (!s.wanted)
        return -ENOMEM;
    s.wanted[value] = 1;
    for (pb_value id = value; id >= 0 && rc == 0; id--)
        if (s.wanted[id])
            rc = visit(&s, id, out);
    free(s.wanted);
    if (rc != 0 || s.is_unknown || s.all < 0 || !of->keeps)
        return rc;
    const int32_t mean = mean_of(q, s.all);
    if (mean < 0)
        return mean;
    q->of[value] = mean;
    return 0;
}
