/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/chain/chain_numbers.h"
#include "kernels/pixel.h"

#include <errno.h>
#include <stdlib.h>

static int append(struct pb_chain *chain, const struct pb_chain_number *number)
{
    struct pb_chain_number *const more =
        realloc(chain->numbers, (chain->n_numbers + 1) * sizeof *more);

    if (!more)
        return -ENOMEM;
    chain->numbers = more;
    more[chain->n_numbers] = *number;
    return (int)chain->n_numbers++;
}

/* The place of each number among chain->numbers, by node: those that the needed ones are made of
 * come before them. 0 or -ENOMEM. */
static int place_numbers(const struct pb_graph *graph, struct pb_chain *chain,
                         const uint8_t *needed, int32_t *place)
{
    for (size_t v = 0; v < graph->n; v++) {
        const struct pb_node *const node = &graph->nodes[v];
        struct pb_chain_number number = {node->kind,
                                         node->arity,
                                         {-1, -1, -1},
                                         node->index,
                                         node->kind == PB_NODE_CONST ? node->number
                                                                     : pb_pixel_nan()};

        if (!needed[v])
            continue;
        for (int k = 0; k < node->arity; k++)
            number.arg[k] = place[node->arg[k]];
        place[v] = append(chain, &number);
        if (place[v] < 0)
            return -ENOMEM;
    }
    return 0;
}

static int append_patches(struct pb_chain *chain, uint32_t stage, const struct pb_patch *patches,
                          size_t n, const int32_t *place)
{
    struct pb_chain_patch *const more =
        realloc(chain->patches, (chain->n_patches + n) * sizeof *more);

    if (!more)
        return -ENOMEM;
    chain->patches = more;
    for (size_t i = 0; i < n; i++)
        more[chain->n_patches++] = (struct pb_chain_patch){stage, patches[i].instr, patches[i].imm,
                                                           (uint32_t)place[patches[i].number]};
    return 0;
}

static float argument(const struct pb_chain *pass, const struct pb_chain_number *number, int k)
{
    return number->arg[k] < 0 ? 0.0f : pass->numbers[number->arg[k]].value;
}

/* What the numbers make of each other. */
static void compute(struct pb_chain *pass)
{
    for (size_t i = 0; i < pass->n_numbers; i++) {
        struct pb_chain_number *const at = &pass->numbers[i];

        if (at->kind < PB_NODE_CONST)
            at->value = pb_vm_eval((enum pb_vm_op)at->kind, argument(pass, at, 0),
                                   argument(pass, at, 1), argument(pass, at, 2));
        else if (at->kind == PB_NODE_ROUND)
            at->value = argument(pass, at, 0);
    }
}

static void patch(struct pb_chain *pass)
{
    for (size_t i = 0; i < pass->n_patches; i++) {
        const struct pb_chain_patch *const at = &pass->patches[i];

        pass->stages[at->stage].code[at->instr].imm[at->imm] = pass->numbers[at->number].value;
    }
}

int pb_chain_numbers_add(const struct pb_graph *graph, struct pb_chain *chain, uint32_t stage,
                         const struct pb_patch *patches, size_t n)
{
    if (n == 0)
        return 0;
    uint8_t *const needed = calloc(graph->n, 1);
    int32_t *const place = calloc(graph->n, sizeof *place);
    int rc = needed && place ? 0 : -ENOMEM;

    if (rc == 0) {
        for (size_t i = 0; i < n; i++)
            needed[patches[i].number] = 1;
        pb_graph_mark(graph, needed, false);
        rc = place_numbers(graph, chain, needed, place);
    }
    rc = rc ? rc : append_patches(chain, stage, patches, n, place);
    if (rc == 0) { /* what is known already, as what a loop starts from may be */
        compute(chain);
        patch(chain);
    }
    free(needed);
    free(place);
    return rc;
}

/* Which result or number of a reduction it is; -1: of another one, or another kind of node. */
static int64_t place_of(const struct pb_chain_number *number, int kind, uint32_t reduction)
{
    return number->kind == kind && number->index / PB_REDUCE_RESULTS_MAX == reduction
               ? (int64_t)(number->index % PB_REDUCE_RESULTS_MAX)
               : -1;
}

void pb_chain_numbers_set(struct pb_chain *pass, uint32_t number, const double *results, uint32_t n)
{
    for (size_t i = 0; i < pass->n_numbers; i++) {
        const int64_t k = place_of(&pass->numbers[i], PB_NODE_SCALAR, number);

        if (k >= 0 && k < n)
            pass->numbers[i].value = pb_pixel_result((float)results[k]);
    }
    compute(pass);
    patch(pass);
}

void pb_chain_numbers_of_loop(const struct pb_chain *pass, uint32_t loop, float *out, uint32_t n)
{
    for (size_t i = 0; i < pass->n_numbers; i++) {
        const int64_t k = place_of(&pass->numbers[i], PB_NODE_ROUND, loop);

        if (k >= 0 && k < n)
            out[k] = pass->numbers[i].value;
    }
}

void pb_chain_numbers_again(struct pb_chain *pass, uint32_t loop, const float *numbers, uint32_t n)
{
    for (size_t i = 0; i < pass->n_numbers; i++) {
        const int64_t k = place_of(&pass->numbers[i], PB_NODE_ROUND, loop);

        if (k >= 0 && k < n)
            pass->numbers[i].value = numbers[k];
    }
    patch(pass);
}
