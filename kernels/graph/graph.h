/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GRAPH_H
#define PB_GRAPH_H
/* The value graph of a chain while it is being built: single assignment, equal values shared,
 * constants folded with the very pixel functions that would run. A node's operands come before it,
 * so ascending ids are a topological order. One thread. */
#include "kernels/graph/builder.h"

#define PB_GRAPH_NODES_MAX  65536
#define PB_GRAPH_FOCALS_MAX 256

/* Kinds of nodes beside the operations of enum pb_vm_op. */
enum { PB_NODE_CONST = PB_VM_COUNT, PB_NODE_INPUT, PB_NODE_FOCAL };

struct pb_node {
    int16_t kind; /* enum pb_vm_op or PB_NODE_* */
    int16_t arity;
    pb_value arg[3]; /* unused: -1 */
    uint32_t index;  /* INPUT: of spec.inputs; FOCAL: of focal operations */
    float number;    /* CONST */
};

struct pb_graph {
    struct pb_node *nodes;
    size_t n, room;
    int32_t *table; /* open addressing by content; -1 = free; room for twice `room` */
    struct pb_focal *focals;
    size_t n_focals, focal_room;
};

void pb_graph_init(struct pb_graph *graph);
void pb_graph_fini(struct pb_graph *graph);

/* Each returns the id of the value, new or shared; -ENOMEM, or -E2BIG over a limit. Operands are
 * ids of this graph. */
pb_value pb_graph_constant(struct pb_graph *graph, float number);
pb_value pb_graph_input(struct pb_graph *graph, uint32_t index);
pb_value pb_graph_focal(struct pb_graph *graph, const struct pb_focal *focal, pb_value x);
pb_value pb_graph_op(struct pb_graph *graph, enum pb_vm_op op, pb_value x, pb_value y, pb_value z);

int pb_vm_arity(enum pb_vm_op op);
/* One pixel of one operation. */
float pb_vm_eval(enum pb_vm_op op, float x, float y, float z);

/* classes[id] = whether the value takes a few values only, whatever the scene: constants,
 * comparisons, and what is made of such values alone (where(x > 1, 5, 9)). One byte a node. */
void pb_graph_classes(const struct pb_graph *graph, uint8_t *classes);

/* flags[id] != 0 spreads to all that id depends on; with through_focals false the walk ends at
 * focal operation nodes (they keep their flag, their operand gets none). */
void pb_graph_mark(const struct pb_graph *graph, uint8_t *flags, bool through_focals);
#endif
