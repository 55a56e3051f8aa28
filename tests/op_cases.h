/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_CASES_H
#define PB_OP_CASES_H
/* Arguments for every operator of the registry, for whoever walks it: parity tests and benchmarks.
 * Bands are named as below. An operator without a case here makes op_cases_find() fail, so that a
 * new one cannot be forgotten. */
#include "kernels/chain/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OP_CASE_ITEMS 4

struct op_case {
    const char *op;
    const char *label;
    const char *output; /* band to ask for */
    bool exact; /* + - * / sqrt and choices only: no operation that rounds by approximation */
    struct {
        const char *param;
        struct pb_arg_item items[OP_CASE_ITEMS];
    } args[3];
};

static const char *const op_case_bands[] = {"B", "G", "R", "N", "S1", "S2"};
#define OP_CASE_BANDS (sizeof op_case_bands / sizeof op_case_bands[0])

#define EXPR(label, expression, exact)                                                             \
    {                                                                                              \
        "math", label, "X", exact,                                                                 \
        {                                                                                          \
            {                                                                                      \
                "bands",                                                                           \
                {                                                                                  \
                    {                                                                              \
                        .key = "X", .text = expression                                             \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

static const struct op_case op_cases[] = {
    EXPR("copy", "N", true),
    EXPR("ndvi", "(N - R) / (N + R)", true),
    EXPR("evi", "2.5 * (N - R) / (N + 6 * R - 7.5 * B + 1)", true),
    EXPR("polynomial", "((0.3 * N - 0.2) * N + 0.7) * N - R ** 3 + G ** -2", true),
    EXPR("roots", "sqrt(N * N + R * R) + abs(G - B) ** 0.5", true),
    EXPR("choices", "where(N > R, clamp(N, 0.1, 0.6), min(R, G, B)) + (G != B) * max(S1, S2)",
         true),
    EXPR("exponential", "exp(-N / (R + 0.1))", false),
    EXPR("logarithm", "log(N + 1.5) / log(R + 2)", false),
    EXPR("power", "(N + 0.01) ** (R + 0.3)", false),
    {"scale",
     "one factor",
     "N",
     true,
     {{"factor", {{.text = "0.98", .num = 0.98}}}, {"offset", {{.text = "0.01", .num = 0.01}}}}},
    {"cast", "to uint8", "N", true, {{"type", {{.text = "uint8"}}}}},
    {"index", "NDVI", "NDVI", true, {{"names", {{.text = "NDVI"}}}}},
    {"convolve",
     "gaussian",
     "N",
     true,
     {{"kernel", {{.text = "gaussian"}}}, {"size", {{.text = "5", .num = 5}}}}},
};
#define OP_CASES (sizeof op_cases / sizeof op_cases[0])

/* Arguments of a case with the descriptor's defaults filled in (scalars; as config/ does it). items
 * must live as long as out_args. false: the operator lacks one of the parameters. */
static inline bool op_case_args(const struct op_case *c, const struct pb_op *op,
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
        while (n < OP_CASE_ITEMS && c->args[a].items[n].text)
            n++;
        out_args->arg[p] = (struct pb_arg){c->args[a].items, n};
    }
    return true;
}

/* Whether every operator of the registry has a case; says which has none. */
static inline bool op_cases_cover_registry(void)
{
    bool all = true;

    for (size_t i = 0; i < pb_op_count(); i++) {
        bool found = false;

        for (size_t k = 0; k < OP_CASES; k++)
            found = found || strcmp(op_cases[k].op, pb_op_at(i)->name) == 0;
        if (!found)
            (void)fprintf(stderr, "tests/op_cases.h has no case for operator '%s'\n",
                          pb_op_at(i)->name);
        all = all && found;
    }
    return all;
}

/* The case as a chain over bands of one type. Returns what pb_chain_create does. */
static inline int op_case_chain(const struct op_case *c, enum pb_type type, bool has_nodata,
                                double nodata, double scale, double offset, struct pb_diag *diag,
                                struct pb_chain **out_chain)
{
    struct pb_arg_item defaults[PB_OP_PARAMS_MAX];
    struct pb_chain_input inputs[OP_CASE_BANDS];
    struct pb_op_args args;
    struct pb_chain_step step = {pb_op_find(c->op), &args};
    size_t at;

    memset(diag, 0, sizeof *diag);
    for (size_t i = 0; i < OP_CASE_BANDS; i++)
        inputs[i] =
            (struct pb_chain_input){op_case_bands[i], type, has_nodata, nodata, scale, offset};
    if (!step.op || !op_case_args(c, step.op, defaults, &args))
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
