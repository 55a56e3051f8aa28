/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_CASES_H
#define PB_OP_CASES_H
/* The cases of every operator of the registry as chains, for whoever walks it: parity tests and
 * benchmarks. */
#include "kernels/chain/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const op_case_bands[] = {"B", "G", "R", "N", "S1", "S2"};
#define OP_CASE_BANDS (sizeof op_case_bands / sizeof op_case_bands[0])

/* Arguments of a case with the descriptor's defaults filled in (scalars; as config/ does it). items
 * must live as long as out_args. false: the operator lacks one of the parameters. */
static inline bool op_case_args(const struct pb_op_case *c, const struct pb_op *op,
                                struct pb_arg_item defaults[PB_OP_PARAMS_MAX],
                                struct pb_op_args *out_args)
{
    memset(out_args, 0, sizeof *out_args);
    memset(defaults, 0, PB_OP_PARAMS_MAX * sizeof *defaults);
    for (size_t p = 0; p < op->n_params; p++) {
        if (!op->params[p].def)
            continue;
        defaults[p].text = op->params[p].def;
        (void)sscanf(op->params[p].def, "%lf", &defaults[p].num);
        out_args->arg[p] = (struct pb_arg){&defaults[p], 1};
    }
    for (size_t a = 0; a < sizeof c->args / sizeof c->args[0] && c->args[a].param; a++) {
        size_t p = 0, n = 0;

        while (p < op->n_params && strcmp(op->params[p].name, c->args[a].param) != 0)
            p++;
        if (p == op->n_params)
            return false;
        while (n < PB_OP_CASE_ITEMS && c->args[a].items[n].text)
            n++;
        out_args->arg[p] = (struct pb_arg){c->args[a].items, n};
    }
    return true;
}

/* Calls check(op, case) for every case of the registry; whether all said true. An operator without
 * a case is a failure. */
static inline bool op_cases_walk(bool (*check)(const struct pb_op *op, const struct pb_op_case *c))
{
    bool good = true;

    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *const op = pb_op_at(i);

        if (op->n_cases == 0)
            (void)fprintf(stderr, "operator '%s' has no case\n", op->name);
        good = good && op->n_cases > 0;
        for (size_t k = 0; k < op->n_cases; k++)
            good = check(op, &op->cases[k]) && good;
    }
    return good;
}

/* The case as a chain over bands of one type. Returns what pb_chain_create does. */
static inline int op_case_chain(const struct pb_op *op, const struct pb_op_case *c,
                                enum pb_type type, bool has_nodata, double nodata, double scale,
                                double offset, struct pb_diag *diag, struct pb_chain **out_chain)
{
    struct pb_arg_item defaults[PB_OP_PARAMS_MAX];
    struct pb_chain_input inputs[OP_CASE_BANDS];
    struct pb_op_args args;
    struct pb_chain_step step = {op, &args};
    size_t at;

    memset(diag, 0, sizeof *diag);
    for (size_t i = 0; i < OP_CASE_BANDS; i++)
        inputs[i] =
            (struct pb_chain_input){op_case_bands[i], type, has_nodata, nodata, scale, offset};
    if (!op_case_args(c, step.op, defaults, &args))
        return pb_diag_set(diag, PB_DIAG_VALUE, NULL, 0, "operator or parameter is not there");
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = OP_CASE_BANDS,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = &c->output,
                                       .n_outputs = 1};
    return pb_chain_create(&spec, diag, &at, out_chain);
}
#endif
