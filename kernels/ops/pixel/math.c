/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * math: bands from expressions. The language is kernels/expr/expr.c. */
#include "kernels/graph/builder.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>

struct math {
    struct pb_items bands, constants;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_EXPRESSIONS,
     .offset = offsetof(struct math, bands),
     .required = true,
     .makes_bands = true,
     .doc = "{NAME: \"expression\", ...}; a later one may use an earlier one."},
    {.name = "constants",
     .type = PB_KEY_CONSTANTS,
     .offset = offsetof(struct math, constants),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .doc = "{NAME: number, ...} for use in the expressions; a band of the same name wins."},
};

static int build(const void *params, struct pb_builder *b)
{
    const struct math *const math = params;
    const size_t n = math->constants.n;
    struct pb_expr_constant *const constants = calloc(n + 1, sizeof *constants);
    int rc = constants ? 0 : -ENOMEM;

    for (size_t i = 0; i < n && rc == 0; i++)
        constants[i] =
            (struct pb_expr_constant){math->constants.items[i].key, math->constants.items[i].num};
    for (size_t i = 0; i < math->bands.n && rc == 0; i++) {
        const struct pb_item *const item = &math->bands.items[i];

        rc = pb_builder_define(b, item->key, pb_builder_expression(b, item, NULL, constants, n));
    }
    free(constants);
    return rc;
}

static bool formula(const void *params, const struct pb_item *item, struct pb_formula *out)
{
    (void)params;
    out->text = item->text;
    out->n_constants = 0;
    return true;
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
    EXPR("validity", "where(valid(N / B) * valid(R), R, valid(S1 / 0) - G)", true),
    EXPR("logic", "N > R and not (G < B or S1) or isvalid(S2) * 2", true),
    EXPR("whole numbers", "bits(floor(abs(N) * 1000), 2, 5) + mod(R, 0.25) + floor(-G)", true),
    EXPR("invalid", "where(mod(N, 0.5) > 0.25 and isvalid(R), invalid, R)", true),
    EXPR("angles", "sin(N * 3) * cos(R - 2) + atan2(G, B) - atan(N / R)", false),
    EXPR("exponential", "exp(-N / (R + 0.1))", false),
    EXPR("logarithm", "log(N + 1.5) / log(R + 2)", false),
    EXPR("power", "(N + 0.01) ** (R + 0.3)", false),
};

const struct pb_op pb_op_math = {
    .name = "math",
    .doc =
        {
            .summary = "makes bands from expressions over bands",
            .formula = "The expression, in float32.",
            .units = "As the expression makes them; a comparison gives 1 or 0.",
            .nodata =
                "A pixel is invalid where a band it reads is, and where the result is not a finite "
                "number: x / 0, mod(x, 0), log(0), sqrt(-1). where() looks at the chosen branch "
                "only. and, or are decided by one operand where they can be: 0 and invalid is 0, 1 "
                "or invalid is 1. isvalid() is 1 or 0 and never invalid itself; the word invalid "
                "makes a pixel invalid.",
            .source =
                "Band arithmetic as in other raster calculators; the grammar is of this program.",
            .notes =
                "Operators, loosest first: or, and, not, comparisons (< <= > >= == !=), all giving "
                "1 or 0, then\n"
                "+ -, * /, unary minus, ** (power, to the right). Not 0 counts as true. Functions: "
                "min max abs floor\n"
                "sqrt log exp pow(x, y) clamp(x, low, high) where(condition, a, b) isvalid(x) "
                "(also valid(x)), and\n"
                "  mod(x, y)         the remainder, with the sign of y, exact\n"
                "  bits(x, from, n)  n bits of a whole number up to 16777216 as a number, bit 0\n"
                "                    being the lowest: bits(QA, 8, 2) == 3. Negative ones\n"
                "                    are in two's complement; other numbers are invalid\n"
                "  invalid           no value: where(CLOUD, invalid, N); a band or constant\n"
                "                    of that name counts in its place\n"
                "  sin cos atan(x) atan2(y, x)\n"
                "                    of and in radians; angles beyond 4194304 are invalid,\n"
                "                    because float32 does not hold their direction\n"
                "log and exp are within 1 ULP, ** sin cos atan within 0.6, the same bits on every "
                "device. Powers "
                "to 0.5, 1.5 and\n"
                "whole numbers up to 4, and to their negatives, are multiplications and square "
                "roots.\n"
                "\n"
                "  - math:\n"
                "      bands:\n"
                "        WATER: \"(G - N) / (G + N)\"\n"
                "        WET: \"WATER > limit and not bits(QA, 3, 1)\"\n"
                "        LAND: \"where(WET, invalid, N)\"\n"
                "      constants: {limit: 0.2}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct math),
    .build = build,
    .formula = formula,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
