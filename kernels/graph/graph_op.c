/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Operations on pixels as values of the graph. Rewrites are few and exact for every pixel, NaN
 * included:
 *   - operations on constants alone are evaluated now;
 *   - x * 1, x / 1, x - 0 are x; operands of + * == != and or are put into order of id;
 *   - where() with a constant condition is its branch (invalid condition: a NaN constant);
 *   - x ** c with a small constant c becomes multiplications and square roots (see power()).
 * x + 0 and x * 0 stay: they change -0 and NaN. */
#include "kernels/graph/graph.h"
#include "kernels/vm/vm_pixel.h"

float pb_vm_eval(enum pb_vm_op op, float x, float y, float z)
{
#define ARGS_1 (x)
#define ARGS_2 (x, y)
#define ARGS_3 (x, y, z)
    switch (op) {
#define PB_VM_OP(name, n)                                                                          \
    case PB_VM_##name:                                                                             \
        return pb_vm_##name ARGS_##n;
#include "kernels/vm/vm_ops.def"
#undef PB_VM_OP
    case PB_VM_COUNT:
        break;
    }
    return pb_pixel_nan();
}

static bool is_const(const struct pb_graph *graph, pb_value v)
{
    return v >= 0 && graph->nodes[v].kind == PB_NODE_CONST;
}

/* x ** c for the exponents that people write, without log and exp: c = n or n/2, |c| <= 4 for whole
 * and <= 1.5 for half ones. A negative exponent is 1 / x ** -c. -1 when c is none of these. */
static pb_value power(struct pb_graph *graph, pb_value x, float c)
{
    const float size = fabsf(c);
    const float halves = size * 2.0f;
    pb_value r = x;

    if (size > 4.0f || halves != rintf(halves) || size == 0.0f ||
        (size > 1.5f && size != rintf(size)))
        return -1;
    if (size >= 2.0f)
        r = pb_graph_op(graph, PB_VM_MUL, x, x, -1);
    if (size == 3.0f && r >= 0)
        r = pb_graph_op(graph, PB_VM_MUL, r, x, -1);
    if (size == 4.0f && r >= 0)
        r = pb_graph_op(graph, PB_VM_MUL, r, r, -1);
    if (size != rintf(size))
        r = pb_graph_op(graph, PB_VM_SQRT, x, -1, -1);
    if (size == 1.5f && r >= 0)
        r = pb_graph_op(graph, PB_VM_MUL, x, r, -1);
    if (c < 0.0f && r >= 0) {
        const pb_value one = pb_graph_constant(graph, 1.0f);

        r = one < 0 ? one : pb_graph_op(graph, PB_VM_DIV, one, r, -1);
    }
    return r;
}

/* An exact rewrite of the operation: the value that it is; -1 when there is none; any other
 * negative value is an error. */
static pb_value rewrite(struct pb_graph *graph, enum pb_vm_op op, const pb_value arg[3])
{
    const int arity = pb_vm_arity(op);
    const float x = is_const(graph, arg[0]) ? graph->nodes[arg[0]].number : 0.0f;
    const float y = is_const(graph, arg[1]) ? graph->nodes[arg[1]].number : 0.0f;
    const float z = is_const(graph, arg[2]) ? graph->nodes[arg[2]].number : 0.0f;

    if (is_const(graph, arg[0]) && (arity < 2 || is_const(graph, arg[1])) &&
        (arity < 3 || is_const(graph, arg[2])))
        return pb_graph_constant(graph, pb_vm_eval(op, x, y, z));
    if (op == PB_VM_WHERE && is_const(graph, arg[0]))
        return x != x ? arg[0] : arg[x != 0.0f ? 1 : 2];
    if (op == PB_VM_MUL && is_const(graph, arg[0]) && x == 1.0f)
        return arg[1];
    if (!is_const(graph, arg[1]))
        return -1;
    if ((op == PB_VM_MUL || op == PB_VM_DIV) && y == 1.0f)
        return arg[0];
    if (op == PB_VM_SUB && y == 0.0f && !signbit(y))
        return arg[0];
    if (op == PB_VM_POW)
        return power(graph, arg[0], y);
    return -1;
}

pb_value pb_graph_op(struct pb_graph *graph, enum pb_vm_op op, pb_value x, pb_value y, pb_value z)
{
    const bool commutes = op == PB_VM_ADD || op == PB_VM_MUL || op == PB_VM_EQ || op == PB_VM_NE ||
                          op == PB_VM_AND || op == PB_VM_OR;
    const int arity = pb_vm_arity(op);
    const bool swap = commutes && x > y;
    const pb_value arg[3] = {swap ? y : x, arity < 2 ? -1 : (swap ? x : y), arity < 3 ? -1 : z};
    const pb_value known = rewrite(graph, op, arg);

    if (known != -1)
        return known;
    int32_t grid = -1;
    for (int k = 0; k < arity && grid < 0; k++)
        grid = graph->nodes[arg[k]].grid;
    return pb_graph_add(graph, &(struct pb_node){.kind = (int16_t)op,
                                                 .arity = (int16_t)arity,
                                                 .arg = {arg[0], arg[1], arg[2]},
                                                 .grid = grid});
}
