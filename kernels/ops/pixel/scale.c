/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * scale: band * factor + offset, in float32, multiplication first. */
#include "kernels/expr/band_list.h"

#include <float.h>

struct scale {
    struct pb_items factor, offset, bands;
};

static const struct pb_key keys[] = {
    {.name = "factor",
     .type = PB_KEY_NUMBERS,
     .offset = offsetof(struct scale, factor),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .def = "1",
     .doc = "One number for all bands, or {BAND: number}; bands not named keep 1."},
    {.name = "offset",
     .type = PB_KEY_NUMBERS,
     .offset = offsetof(struct scale, offset),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .def = "0",
     .doc = "Added after the factor: one number, or {BAND: number}; bands not named keep 0."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct scale, bands),
     .makes_bands = true,
     .doc = "Bands to scale in place, or {NEW: OLD}; all bands when not given."},
};

static int build(const void *params, struct pb_builder *b)
{
    const struct scale *const scale = params;
    const size_t n = pb_band_list_count(&scale->bands, b);
    int rc = 0;

    pb_band_list_check_numbers(&scale->factor, &scale->bands, b, "factor");
    pb_band_list_check_numbers(&scale->offset, &scale->bands, b, "offset");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&scale->bands, b, i);
        const float factor = (float)pb_band_list_number(&scale->factor, pick.out, 1.0);
        const float offset = (float)pb_band_list_number(&scale->offset, pick.out, 0.0);
        pb_value v = pb_builder_emit(b, PB_VM_MUL, pick.value, pb_builder_constant(b, factor), -1);

        if (offset != 0.0f)
            v = pb_builder_emit(b, PB_VM_ADD, v, pb_builder_constant(b, offset), -1);
        rc = pb_builder_define(b, pick.out, v);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"one factor",
     "N",
     true,
     {{"factor", {{.text = "0.98", .num = 0.98}}}, {"offset", {{.text = "0.01", .num = 0.01}}}}},
    {"two factors",
     "N",
     true,
     {{"factor", {{"R", "2", 2, 0, 0}, {"N", "0.5", 0.5, 0, 0}}},
      {"bands", {{.text = "R"}, {.text = "N"}}}}},
};

const struct pb_op pb_op_scale = {
    .name = "scale",
    .doc =
        {
            .summary = "multiplies bands by a factor and adds an offset",
            .formula = "band * factor + offset, in float32, multiplication first",
            .units = "As factor and offset make them.",
            .nodata = "A pixel is invalid where the band is, and where the result is too large for "
                      "float32.",
            .source = "The usual gain and offset; of this program.",
            .notes = "Factor and offset are one number for all bands or a map from band to number. "
                     "Use it\n"
                     "for gains that differ from band to band; a scale that all bands share "
                     "belongs into\n"
                     "the pipeline's `input`.\n"
                     "\n"
                     "  - scale: {factor: {R: 0.98, N: 1.02}, offset: -0.001}\n"
                     "  - scale: {bands: {N_percent: N}, factor: 100}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct scale),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
