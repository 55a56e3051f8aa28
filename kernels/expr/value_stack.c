/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/value_stack.h"

#include <math.h>

struct stack {
    struct pb_builder *b;
    pb_value x[PB_VALUE_STACK_MAX]; /* valid everywhere */
    size_t n;
    pb_value count;
};

static pb_value emit(struct stack *s, enum pb_vm_op op, pb_value x, pb_value y, pb_value z)
{
    return pb_builder_emit(s->b, op, x, y, z);
}

static pb_value number(struct stack *s, float v)
{
    return pb_builder_constant(s->b, v);
}

/* otherwise: what stands for values that are not valid. */
static void fill(struct stack *s, const pb_value *x, float otherwise)
{
    const pb_value other = number(s, otherwise);

    s->count = number(s, 0.0f);
    for (size_t i = 0; i < s->n; i++) {
        const pb_value valid = emit(s, PB_VM_VALID, x[i], -1, -1);

        s->count = emit(s, PB_VM_ADD, s->count, valid, -1);
        s->x[i] = emit(s, PB_VM_WHERE, valid, x[i], other);
    }
}

static pb_value folded(struct stack *s, enum pb_vm_op op)
{
    pb_value all = s->x[0];

    for (size_t i = 1; i < s->n; i++)
        all = emit(s, op, all, s->x[i], -1);
    return all;
}

static void compare(struct stack *s, size_t i, size_t k)
{
    const pb_value low = emit(s, PB_VM_MIN, s->x[i], s->x[k], -1);

    s->x[k] = emit(s, PB_VM_MAX, s->x[i], s->x[k], -1);
    s->x[i] = low;
}

/* Batcher's merge exchange (Knuth, The Art of Computer Programming, 5.2.2 M). */
static void sort(struct stack *s)
{
    size_t top = 1;

    while (2 * top < s->n)
        top *= 2;
    for (size_t p = top; p > 0; p /= 2) {
        size_t q = top, r = 0, d = p;

        for (;;) {
            for (size_t i = 0; i + d < s->n; i++)
                if ((i & p) == r)
                    compare(s, i, i + d);
            if (q == p)
                break;
            d = q - p;
            q /= 2;
            r = p;
        }
    }
}

/* Of the first k sorted values. */
static pb_value at_share(struct stack *s, size_t k, double share)
{
    const double place = (double)(k - 1) * share;
    const size_t low = (size_t)place;
    const float part = (float)(place - (double)low);

    if (part == 0.0f || low + 1 >= k)
        return s->x[low];
    if (part == 0.5f)
        return emit(s, PB_VM_MUL, emit(s, PB_VM_ADD, s->x[low], s->x[low + 1], -1), number(s, 0.5f),
                    -1);
    return emit(
        s, PB_VM_ADD, s->x[low],
        emit(s, PB_VM_MUL, emit(s, PB_VM_SUB, s->x[low + 1], s->x[low], -1), number(s, part), -1),
        -1);
}

/* Infinities stand for invalid values: they sort to the end and are never taken. */
static pb_value ranked(struct stack *s, double share)
{
    pb_value result = number(s, NAN);

    sort(s);
    for (size_t k = 1; k <= s->n; k++)
        result = emit(s, PB_VM_WHERE, emit(s, PB_VM_EQ, s->count, number(s, (float)k), -1),
                      at_share(s, k, share), result);
    return result;
}

pb_value pb_value_stack(struct pb_builder *b, enum pb_stack_measure measure, double share,
                        const pb_value *x, size_t n)
{
    static const float otherwise[] = {[PB_STACK_COUNT] = 0.0f,
                                      [PB_STACK_MEAN] = 0.0f,
                                      [PB_STACK_MIN] = INFINITY,
                                      [PB_STACK_MAX] = -INFINITY,
                                      [PB_STACK_RANKED] = INFINITY};
    struct stack s = {.b = b, .n = n};

    fill(&s, x, otherwise[measure]);
    switch (measure) {
    case PB_STACK_COUNT:
        return s.count;
    case PB_STACK_MEAN: /* of none it is 0 / 0, which is invalid */
        return emit(&s, PB_VM_DIV, folded(&s, PB_VM_ADD), s.count, -1);
    case PB_STACK_MIN:
        return emit(&s, PB_VM_WHERE, s.count, folded(&s, PB_VM_MIN), number(&s, NAN));
    case PB_STACK_MAX:
        return emit(&s, PB_VM_WHERE, s.count, folded(&s, PB_VM_MAX), number(&s, NAN));
    default:
        return ranked(&s, share);
    }
}
