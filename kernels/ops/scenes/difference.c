/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * difference: bands of one scene minus bands of another, on the first one's grid. */
#include "kernels/expr/grid_args.h"

#include <errno.h>
#include <stdlib.h>

struct difference {
    struct pb_items bands, minus;
    int32_t method;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct difference, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to subtract from in place, or {NEW: BAND}."},
    {.name = "minus",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct difference, minus),
     .required = true,
     .doc = "What to subtract from each, in the same order."},
    PB_KEY_METHOD(struct difference, "bilinear"),
};

static pb_value subtract(struct pb_builder *b, enum pb_resampling how, pb_value x, pb_value y)
{
    const int32_t grid = pb_builder_grid(b, x);

    return pb_builder_emit(b, PB_VM_SUB, x, grid < 0 ? y : pb_builder_resample(b, how, y, grid),
                           -1);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct difference *const difference = params;
    const struct pb_items *const names = &difference->bands, *const minus = &difference->minus;
    pb_value *const values = calloc(names->n + 1, sizeof *values);
    int rc = values ? 0 : -ENOMEM;

    if (names->n != minus->n)
        rc = pb_builder_wrong(b, minus, "'bands' has %zu entries, 'minus' %zu; give one for each",
                              names->n, minus->n);
    /* All of them before a band is replaced that a later one may subtract. */
    for (size_t i = 0; i < names->n && rc == 0; i++)
        values[i] =
            subtract(b, (enum pb_resampling)difference->method, pb_band_list_at(names, b, i).value,
                     pb_band_list_at(minus, b, i).value);
    for (size_t i = 0; i < names->n && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&names->items[i]), values[i]);
    free(values);
    return rc;
}

static const struct pb_op_case cases[] = {
    {"two bands", "X", true, {{"bands", {{.key = "X", .text = "N"}}}, {"minus", {{.text = "R"}}}}},
};

const struct pb_op pb_op_difference = {
    .name = "difference",
    .doc = {.summary = "subtracts bands of one scene from bands of another",
            .formula = "band - minus, minus on the grid of the band",
            .units = "those of the band",
            .nodata = "Invalid where one of the two is, and outside of the other scene.",
            .source = "Arithmetic in float32.",
            .notes = "The second scene is a source of the pipeline's `input`; `method` brings its "
                     "bands onto the\n"
                     "grid of the first.\n"
                     "\n"
                     "  - difference: {bands: {CHANGE: N}, minus: [N_BEFORE]}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct difference),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
