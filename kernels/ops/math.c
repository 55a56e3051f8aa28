/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * math: bands from expressions. The language is kernels/expr/expr.c. */
#include "kernels/graph/builder.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>

enum { BANDS, CONSTANTS };

static const struct pb_param params[] = {
    [BANDS] = {.name = "bands",
               .type = PB_PARAM_EXPRS,
               .required = true,
               .makes_bands = true,
               .doc = "{NAME: \"expression\", ...}; a later one may use an earlier one"},
    [CONSTANTS] = {.name = "constants",
                   .type = PB_PARAM_NUMBERS,
                   .min = -(double)FLT_MAX,
                   .max = (double)FLT_MAX,
                   .doc = "{NAME: number, ...} for use in the expressions; a band of the same name "
                          "wins"},
};

static int build(const struct pb_op_args *args, struct pb_builder *b)
{
    const struct pb_arg *const exprs = &args->arg[BANDS];
    const struct pb_arg *const given = &args->arg[CONSTANTS];
    struct pb_expr_constant *const constants = calloc(given->n + 1, sizeof *constants);
    int rc = constants ? 0 : -ENOMEM;
    size_t n = 0;

    for (size_t i = 0; i < given->n && rc == 0; i++) {
        if (!given->items[i].key)
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, &given->items[i], 0,
                                     "constants need names: {NAME: number}");
        else
            constants[n++] = (struct pb_expr_constant){given->items[i].key, given->items[i].num};
    }
    if (rc == 0 && exprs->n == 0)
        rc = pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0, "no expression given in 'bands'");
    for (size_t i = 0; i < exprs->n && rc == 0; i++) {
        const struct pb_arg_item *const item = &exprs->items[i];

        if (item->key)
            rc =
                pb_builder_define(b, item->key, pb_builder_expression(b, item, NULL, constants, n));
        else
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, item, 0,
                                     "an expression without a band name");
    }
    free(constants);
    return rc;
}

#define EXPR(label_, expression, exact_)                                                           \
    {                                                                                              \
        .label = label_, .output = "X", .exact = exact_, .args = {                                 \
            {"bands", {{.key = "X", .text = expression}}}                                          \
        }                                                                                          \
    }

static const struct pb_op_case cases[] = {
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
};

const struct pb_op pb_op_math = {
    .name = "math",
    .summary = "makes bands from expressions over bands",
    .doc =
        "Operators, loosest first: comparisons (< <= > >= == !=, giving 1 or 0), + -, * /, unary\n"
        "minus, ** (power, to the right). Functions: min max abs sqrt log exp pow(x, y)\n"
        "clamp(x, low, high) where(condition, a, b). Arithmetic is float32. A pixel is invalid\n"
        "where a band it reads is invalid (where() looks at the chosen branch only), and where "
        "the\n"
        "result is not a finite number: x / 0, log(0), sqrt(-1). Powers to 0.5, 1.5 and whole\n"
        "numbers up to 4, and to their negatives, are multiplications and square roots.\n"
        "\n"
        "  - math:\n"
        "      bands:\n"
        "        WATER: \"(G - N) / (G + N)\"\n"
        "        WET: \"where(WATER > limit, 1, 0)\"\n"
        "      constants: {limit: 0.2}\n",
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
