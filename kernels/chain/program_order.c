/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Depth first from each root, the operand that needs more registers first (Sethi and Ullman), and
 * the store of a root right behind its value, so that outputs hold no registers. */
#include "kernels/chain/program_order.h"

#include <errno.h>
#include <stdlib.h>

enum { UNSEEN, OPERANDS_PUSHED, DONE };

struct order {
    const struct pb_graph *graph;
    uint16_t *need; /* by node: registers that computing it takes */
    uint8_t *state; /* by node */
    pb_value *stack;
    struct pb_step *steps;
    size_t n_steps;
};

bool pb_node_is_leaf(const struct pb_node *node)
{
    return node->kind >= PB_NODE_CONST || pb_node_is_number(node);
}

/* Registers for a node when nothing is shared: an operand that comes k-th meets k results that are
 * held. */
static uint16_t node_need(const struct pb_node *node, const uint16_t *need)
{
    uint16_t most = 1;

    if (pb_node_is_leaf(node))
        return !pb_node_is_number(node);
    for (int k = 0; k < node->arity; k++) {
        const uint16_t own = need[node->arg[k]];
        uint16_t held = 0;

        for (int j = 0; j < node->arity; j++) {
            const uint16_t other = need[node->arg[j]];

            held = (uint16_t)(held + (other > own || (other == own && j < k)));
        }
        most = own + held > most ? (uint16_t)(own + held) : most;
    }
    return most > 1000 ? 1000 : most; /* more than any register file is as good as infinite */
}

/* Pushes the operands so that the neediest is popped first; returns the new height. */
static size_t push_operands(const struct order *o, const struct pb_node *node, size_t height)
{
    const size_t base = height;

    for (int k = 0; k < node->arity; k++) {
        size_t at = height++;

        for (; at > base && o->need[o->stack[at - 1]] >= o->need[node->arg[k]]; at--)
            o->stack[at] = o->stack[at - 1];
        o->stack[at] = node->arg[k];
    }
    return height;
}

static void order_root(struct order *o, pb_value root)
{
    size_t height = 0;

    o->stack[height++] = root;
    while (height > 0) {
        const pb_value v = o->stack[height - 1];
        const struct pb_node *const node = &o->graph->nodes[v];

        if (pb_node_is_leaf(node) || o->state[v] == DONE) {
            height--;
        } else if (o->state[v] == OPERANDS_PUSHED) {
            o->state[v] = DONE;
            o->steps[o->n_steps++] = (struct pb_step){v, -1};
            height--;
        } else {
            o->state[v] = OPERANDS_PUSHED;
            height = push_operands(o, node, height);
        }
    }
}

int pb_program_order(const struct pb_program_spec *spec, struct pb_step **out_steps,
                     size_t *out_n_steps)
{
    const size_t n = spec->graph->n;
    struct order o = {.graph = spec->graph};
    int rc = -ENOMEM;

    o.need = calloc(n, sizeof *o.need);
    o.state = calloc(n, 1);
    o.stack = malloc((3 * n + 1) * sizeof *o.stack); /* a node pushes its operands once */
    o.steps = malloc((n + spec->n_roots) * sizeof *o.steps);
    if (!o.need || !o.state || !o.stack || !o.steps)
        goto out;
    for (size_t i = 0; i < n; i++)
        o.need[i] = node_need(&spec->graph->nodes[i], o.need);
    for (size_t i = 0; i < spec->n_roots; i++) {
        order_root(&o, spec->roots[i]);
        o.steps[o.n_steps++] = (struct pb_step){spec->roots[i], spec->store[i]};
    }
    *out_steps = o.steps;
    *out_n_steps = o.n_steps;
    o.steps = NULL;
    rc = 0;
out:
    free(o.need);
    free(o.state);
    free(o.stack);
    free(o.steps);
    return rc;
}
