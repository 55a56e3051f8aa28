/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * difference: bands of one scene minus bands of another, on the first one's grid. */
#include "kernels/expr/grid_args.h"
#include "kernels/expr/scene_pairs.h"

struct difference {
    struct pb_items bands, minus;
    int32_t method;
    bool has_method;
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
     .doc = "Bands to subtract from each, in the same order."},
    PB_KEY_METHOD_BY_BAND(struct difference, "bilinear"),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct difference *const difference = params;
    const struct pb_scene_pairs pairs = {
        .bands = &difference->bands,
        .others = &difference->minus,
        .bands_name = "bands",
        .others_name = "minus",
        .method = {difference->method, difference->has_method, PB_BILINEAR}};

    return pb_scene_pairs_define(&pairs, b, PB_VM_SUB);
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
    .compares_tags = true,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
