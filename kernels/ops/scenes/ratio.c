/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ratio: bands of one scene divided by bands of another, on the first one's grid. */
#include "kernels/expr/grid_args.h"
#include "kernels/expr/scene_pairs.h"

struct ratio {
    struct pb_items bands, over;
    int32_t method;
    bool has_method;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct ratio, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to divide in place, or {NEW: BAND}."},
    {.name = "over",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct ratio, over),
     .required = true,
     .doc = "Bands to divide each by, in the same order."},
    PB_KEY_METHOD_BY_BAND(struct ratio, "bilinear"),
};

static int build(const void *params, struct pb_builder *b)
{
    const struct ratio *const ratio = params;
    const struct pb_scene_pairs pairs = {.bands = &ratio->bands,
                                         .others = &ratio->over,
                                         .bands_name = "bands",
                                         .others_name = "over",
                                         .method = {ratio->method, ratio->has_method, PB_BILINEAR}};

    return pb_scene_pairs_define(&pairs, b, PB_VM_DIV);
}

static const struct pb_op_case cases[] = {
    {"two bands", "X", true, {{"bands", {{.key = "X", .text = "N"}}}, {"over", {{.text = "R"}}}}},
};

const struct pb_op pb_op_ratio = {
    .name = "ratio",
    .doc = {.summary = "divides bands of one scene by bands of another",
            .formula = "band / over, over on the grid of the band",
            .units = "None where both bands have the same unit.",
            .nodata = "Invalid where one of the two is, where over is 0, and outside of the other "
                      "scene.",
            .source = "Arithmetic in float32.",
            .notes = "The second scene is a source of the pipeline's `input`; `method` brings its "
                     "bands onto the\n"
                     "grid of the first. The logarithm of the ratio, as for radar, is a step math "
                     "after it.\n"
                     "\n"
                     "  - ratio: {bands: {CHANGE: VV}, over: [VV_BEFORE]}\n"
                     "  - math: {bands: {CHANGE_DB: \"10 * log(CHANGE) / log(10)\"}}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct ratio),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
