/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nodes live in one growing array and a hash table over their contents; asking for a node that
 * exists returns it. Operations on pixels are in graph_op.c. */
#include "kernels/graph/graph.h"
#include "kernels/vm/vm_pixel.h"

#include <errno.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>

void pb_graph_init(struct pb_graph *graph)
{
    memset(graph, 0, sizeof *graph);
}

void pb_graph_fini(struct pb_graph *graph)
{
    free(graph->nodes);
    free(graph->table);
    free(graph->focals);
    free(graph->reductions);
    free(graph->uses);
    for (size_t i = 0; i < graph->n_warps; i++)
        pb_warp_put(graph->warps[i].warp);
    for (int32_t i = 0; i < graph->n_frames; i++)
        free(graph->ground[i].crs);
    memset(graph, 0, sizeof *graph);
}

static uint32_t float_bits(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint32_t node_hash(const struct pb_node *node)
{
    const uint32_t words[] = {(uint32_t)node->kind,
                              (uint32_t)node->arg[0],
                              (uint32_t)node->arg[1],
                              (uint32_t)node->arg[2],
                              node->index,
                              (uint32_t)node->grid,
                              float_bits(node->number)};
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        h = (h ^ words[i]) * 0x9e3779b1u;
        h ^= h >> 15;
    }
    return h;
}

static bool node_equal(const struct pb_node *a, const struct pb_node *b)
{
    return a->kind == b->kind && a->arg[0] == b->arg[0] && a->arg[1] == b->arg[1] &&
           a->arg[2] == b->arg[2] && a->index == b->index && a->grid == b->grid &&
           float_bits(a->number) == float_bits(b->number);
}

/* The place of an equal node in the table, or the free place where it belongs. */
static size_t table_place(const struct pb_graph *graph, const struct pb_node *node)
{
    const size_t mask = 2 * graph->room - 1;
    size_t at = node_hash(node) & mask;

    while (graph->table[at] >= 0 && !node_equal(&graph->nodes[graph->table[at]], node))
        at = (at + 1) & mask;
    return at;
}

static int grow(struct pb_graph *graph)
{
    const size_t room = graph->room ? 2 * graph->room : 128;

    if (room > PB_GRAPH_NODES_MAX)
        return -E2BIG;
    struct pb_node *const nodes = realloc(graph->nodes, room * sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    graph->nodes = nodes;
    int32_t *const table = malloc(2 * room * sizeof *table);
    if (!table)
        return -ENOMEM;
    free(graph->table);
    graph->table = table;
    graph->room = room;
    for (size_t i = 0; i < 2 * room; i++)
        table[i] = -1;
    for (size_t i = 0; i < graph->n; i++)
        table[table_place(graph, &nodes[i])] = (int32_t)i;
    return 0;
}

pb_value pb_graph_add(struct pb_graph *graph, const struct pb_node *node)
{
    if (graph->n == graph->room) {
        const int rc = grow(graph);

        if (rc < 0)
            return rc;
    }
    const size_t at = table_place(graph, node);
    if (graph->table[at] < 0) {
        graph->table[at] = (int32_t)graph->n;
        graph->nodes[graph->n++] = *node;
    }
    return graph->table[at];
}

pb_value pb_graph_constant(struct pb_graph *graph, float number)
{
    return pb_graph_add(graph,
                        &(struct pb_node){.kind = PB_NODE_CONST,
                                          .arg = {-1, -1, -1},
                                          .grid = -1,
                                          .number = number != number ? pb_pixel_nan() : number});
}

pb_value pb_graph_input(struct pb_graph *graph, uint32_t index, int32_t grid)
{
    return pb_graph_add(
        graph, &(struct pb_node){
                   .kind = PB_NODE_INPUT, .arg = {-1, -1, -1}, .index = index, .grid = grid});
}

pb_value pb_graph_index(struct pb_graph *graph, uint32_t axis, int32_t grid)
{
    return pb_graph_add(
        graph,
        &(struct pb_node){.kind = PB_NODE_INDEX, .arg = {-1, -1, -1}, .index = axis, .grid = grid});
}

pb_value pb_graph_focal(struct pb_graph *graph, const struct pb_focal *focal, pb_value x)
{
    size_t i = 0;

    while (i < graph->n_focals && memcmp(&graph->focals[i], focal, sizeof *focal) != 0)
        i++;
    if (i == graph->focal_room) {
        const size_t room = i ? 2 * i : 8;

        if (room > PB_GRAPH_FOCALS_MAX)
            return -E2BIG;
        struct pb_focal *const more = realloc(graph->focals, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        graph->focals = more;
        graph->focal_room = room;
    }
    if (i == graph->n_focals)
        graph->focals[graph->n_focals++] = *focal;
    return pb_graph_add(
        graph, &(struct pb_node){.kind = PB_NODE_FOCAL,
                                 .arity = 1,
                                 .arg = {x, -1, -1},
                                 .index = (uint32_t)i,
                                 .grid = graph->nodes[x].grid < 0 ? 0 : graph->nodes[x].grid});
}

/* --- grids ----------------------------------------------------------------------------------- */

bool pb_node_is_plane(const struct pb_node *node)
{
    return node->kind == PB_NODE_FOCAL || node->kind == PB_NODE_RESAMPLE;
}

bool pb_node_passes(const struct pb_node *node, int i)
{
    return node->kind == PB_VM_WHERE ? i > 0 : i == 0 || !pb_node_is_plane(node);
}

bool pb_node_is_number(const struct pb_node *node)
{
    return node->grid < 0;
}

int32_t pb_graph_grid(struct pb_graph *graph, const struct pb_geometry *grid)
{
    for (size_t i = 0; i < graph->n_grids; i++)
        if (graph->grids[i].w == grid->w && graph->grids[i].h == grid->h &&
            graph->grids[i].frame == grid->frame && pb_map_equal(&graph->grids[i].map, &grid->map))
            return (int32_t)i;
    if (graph->n_grids == PB_GRAPH_GRIDS_MAX)
        return -E2BIG;
    graph->grids[graph->n_grids] = *grid;
    return (int32_t)graph->n_grids++;
}

struct pb_map pb_graph_map(const struct pb_graph *graph, int32_t from, int32_t to)
{
    const struct pb_map none = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};

    if (graph->grids[from].frame != graph->grids[to].frame)
        return none;
    return from == to ? pb_map_identity()
                      : pb_map_between(&graph->grids[from].map, &graph->grids[to].map);
}

bool pb_graph_is_part(const struct pb_graph *graph, int32_t part, int32_t whole)
{
    const struct pb_geometry *const small = &graph->grids[part], *const large =
                                                                     &graph->grids[whole];
    const struct pb_map map = pb_graph_map(graph, part, whole);

    return pb_map_is_shift(&map) && map.offset_x >= 0 && map.offset_y >= 0 &&
           map.offset_x + small->w <= large->w && map.offset_y + small->h <= large->h;
}

pb_value pb_graph_resample(struct pb_graph *graph, enum pb_resampling how, pb_value x, int32_t grid)
{
    if (graph->nodes[x].grid < 0)
        return x;
    return pb_graph_add(graph, &(struct pb_node){.kind = PB_NODE_RESAMPLE,
                                                 .arity = 1,
                                                 .arg = {x, -1, -1},
                                                 .index = (uint32_t)how,
                                                 .grid = grid});
}

static pb_value view_leaf(struct pb_graph *graph, pb_value x, int32_t grid)
{
    if (graph->nodes[x].kind == PB_NODE_VIEW)
        x = graph->nodes[x].arg[0];
    if (graph->nodes[x].grid == grid)
        return x;
    return pb_graph_add(
        graph,
        &(struct pb_node){.kind = PB_NODE_VIEW, .arity = 1, .arg = {x, -1, -1}, .grid = grid});
}

/* The same curve over another value. */
static pb_value curve_on(struct pb_graph *graph, const struct pb_node *curve, pb_value x)
{
    struct pb_node node = *curve;

    node.arg[0] = x;
    node.grid = graph->nodes[x].grid;
    return pb_graph_add(graph, &node);
}

pb_value pb_graph_view(struct pb_graph *graph, pb_value x, int32_t grid)
{
    uint8_t *const needed = calloc((size_t)x + 1, 1);
    pb_value *const made = calloc((size_t)x + 1, sizeof *made);
    pb_value rc = needed && made ? 0 : -ENOMEM;

    if (rc == 0)
        needed[x] = 1;
    for (pb_value v = x; rc == 0 && v >= 0; v--)
        for (int k = 0; k < graph->nodes[v].arity; k++)
            if (needed[v] && graph->nodes[v].kind < PB_NODE_CONST)
                needed[graph->nodes[v].arg[k]] = 1;
    for (pb_value v = 0; rc >= 0 && v <= x; v++) {
        const struct pb_node node = graph->nodes[v];

        if (!needed[v])
            continue;
        if (pb_node_is_number(&node))
            rc = v;
        else if (node.kind > PB_NODE_CONST)
            rc = view_leaf(graph, v, grid);
        else if (node.kind == PB_NODE_CURVE)
            rc = curve_on(graph, &node, made[node.arg[0]]);
        else
            rc = pb_graph_op(graph, (enum pb_vm_op)node.kind, made[node.arg[0]],
                             node.arity > 1 ? made[node.arg[1]] : -1,
                             node.arity > 2 ? made[node.arg[2]] : -1);
        made[v] = rc;
    }
    free(needed);
    free(made);
    return rc;
}

/* --- walks ----------------------------------------------------------------------------------- */

void pb_graph_mark(const struct pb_graph *graph, uint8_t *flags, bool through_planes)
{
    for (size_t i = graph->n; i-- > 0;) {
        const struct pb_node *const node = &graph->nodes[i];

        if (!flags[i] || (pb_node_is_plane(node) && !through_planes))
            continue;
        for (int k = 0; k < node->arity; k++)
            flags[node->arg[k]] = 1;
    }
}

bool pb_graph_chooses(const struct pb_graph *graph, const struct pb_node *node)
{
    if (node->kind == PB_NODE_FOCAL)
        return pb_focal_chooses(&graph->focals[node->index]);
    return node->kind != PB_NODE_RESAMPLE || pb_resampling_chooses((enum pb_resampling)node->index);
}

/* Whether the operation makes a few values of any, or whole numbers, which may be classes. */
static bool is_decision(int kind)
{
    return (kind >= PB_VM_LT && kind <= PB_VM_OR) || kind == PB_VM_VALID || kind == PB_VM_BITS ||
           kind == PB_VM_ROUND || kind == PB_VM_FLOOR;
}

/* Of a node whose operands are known. */
static int32_t origin_of(const struct pb_graph *graph, const struct pb_node *node, bool in_place,
                         const int32_t *origins)
{
    const bool passes = node->kind == PB_VM_WHERE || node->kind == PB_NODE_VIEW ||
                        (!in_place && pb_node_is_plane(node) && pb_graph_chooses(graph, node));
    int32_t origin = -1;

    if (node->kind == PB_NODE_INPUT)
        return pb_graph_image_of(graph, node) ? -1 : (int32_t)node->index;
    for (int i = 0; passes && i < node->arity; i++) {
        const struct pb_node *const from = &graph->nodes[node->arg[i]];
        const int32_t one = origins[node->arg[i]];

        if (!pb_node_passes(node, i))
            continue;
        if (from->kind == PB_NODE_CONST && isnan(from->number))
            continue;
        if (one < 0 || (origin >= 0 && one != origin))
            return -1;
        origin = one;
    }
    return origin;
}

void pb_graph_origins(const struct pb_graph *graph, bool in_place, int32_t *origins)
{
    for (size_t id = 0; id < graph->n; id++)
        origins[id] = origin_of(graph, &graph->nodes[id], in_place, origins);
}

void pb_graph_computed(const struct pb_graph *graph, uint8_t *flags)
{
    for (size_t i = graph->n; i-- > 0;) {
        const struct pb_node *const node = &graph->nodes[i];
        const struct pb_graph_image *const image = pb_graph_image_of(graph, node);

        if (image && flags[i])
            flags[image->of] |= PB_GRAPH_COMPUTED;
        for (int k = 0; k < node->arity; k++) {
            const bool passes = pb_node_passes(node, k);

            if ((flags[i] & PB_GRAPH_COMPUTED) || ((flags[i] & PB_GRAPH_KEPT) && !passes))
                flags[node->arg[k]] |= PB_GRAPH_COMPUTED;
            if ((flags[i] & PB_GRAPH_KEPT) && passes)
                flags[node->arg[k]] |= PB_GRAPH_KEPT;
        }
    }
}

static uint8_t classes_of(const struct pb_graph *graph, const struct pb_node *node,
                          const uint8_t *classes)
{
    const struct pb_graph_image *const image = pb_graph_image_of(graph, node);
    bool few = node->kind != PB_NODE_INDEX && pb_graph_chooses(graph, node);
    uint8_t most = PB_CLASSES_FEW;

    if (image)
        return classes[image->of] > PB_CLASSES_FEW ? classes[image->of] : PB_CLASSES_FEW;
    if (node->kind == PB_NODE_INPUT)
        return graph->class_inputs >> node->index & 1 ? PB_CLASSES_FILE : PB_CLASSES_NONE;
    if (is_decision(node->kind))
        return PB_CLASSES_FEW;
    for (int i = 0; i < node->arity && few; i++) {
        if (!pb_node_passes(node, i))
            continue;
        few = classes[node->arg[i]] != PB_CLASSES_NONE;
        most = classes[node->arg[i]] > most ? classes[node->arg[i]] : most;
    }
    return few ? most : PB_CLASSES_NONE;
}

void pb_graph_classes(const struct pb_graph *graph, uint8_t *classes)
{
    for (size_t id = 0; id < graph->n; id++)
        classes[id] = classes_of(graph, &graph->nodes[id], classes);
}
