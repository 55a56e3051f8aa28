/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pansharpen: weighted Brovey, as GDAL's gdal_pansharpen.py: each band on the grid of the
 * panchromatic one, times its value over the weighted sum of the bands. */
#include "kernels/expr/grid_args.h"

#define BANDS_MAX 16

struct pansharpen {
    char *pan;
    struct pb_items bands, weights;
    int32_t method;
};

static const struct pb_key keys[] = {
    {.name = "pan",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pansharpen, pan),
     .required = true,
     .doc = "The panchromatic band."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pansharpen, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to sharpen in place, or {NEW: BAND}; up to 16."},
    {.name = "weights",
     .type = PB_KEY_NUMBERS,
     .offset = offsetof(struct pansharpen, weights),
     .min = 0,
     .max = 1e6,
     .doc = "Of the bands in the sum that stands for the panchromatic one: {BAND: number}, or one "
            "number for all; equal and 1 in total unless given."},
    PB_KEY_METHOD(struct pansharpen, "cubic"),
};

/* The bands on the grid of the panchromatic one, and their weighted sum. */
static pb_value sum_of(const struct pansharpen *sharpen, struct pb_builder *b, int32_t grid,
                       pb_value *out_bands)
{
    const struct pb_items *const names = &sharpen->bands, *const weights = &sharpen->weights;
    const enum pb_resampling how = (enum pb_resampling)sharpen->method;
    const double equal = weights->n ? 0.0 : 1.0 / (double)names->n;
    pb_value sum = -1;

    for (size_t i = 0; i < names->n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(names, b, i);
        const float weight = (float)pb_band_list_number(weights, pick.out, equal);

        out_bands[i] = grid < 0 ? PB_VALUE_POISON : pb_builder_resample(b, how, pick.value, grid);
        const pb_value part =
            pb_builder_emit(b, PB_VM_MUL, out_bands[i], pb_builder_constant(b, weight), -1);
        sum = i ? pb_builder_emit(b, PB_VM_ADD, sum, part, -1) : part;
    }
    return sum;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pansharpen *const sharpen = params;
    const struct pb_items *const names = &sharpen->bands;
    pb_value bands[BANDS_MAX];
    int rc = 0;

    if (names->n < 1 || names->n > BANDS_MAX)
        return pb_builder_wrong(b, names, "1 to %d bands, not %zu", BANDS_MAX, names->n);
    pb_band_list_check_numbers(&sharpen->weights, names, b, "weights");
    const pb_value pan = pb_band_list_named(b, &sharpen->pan);
    if (pan != PB_VALUE_POISON && pb_builder_grid(b, pan) < 0)
        return pb_builder_wrong(b, &sharpen->pan, "'%.80s' is a constant, it lies on no grid",
                                sharpen->pan);
    const pb_value sum = sum_of(sharpen, b, pb_builder_grid(b, pan), bands);
    const pb_value ratio = pb_builder_emit(b, PB_VM_DIV, pan, sum, -1);
    for (size_t i = 0; i < names->n && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&names->items[i]),
                               pb_builder_emit(b, PB_VM_MUL, bands[i], ratio, -1));
    return rc;
}

static const struct pb_op_case cases[] = {
    {"of one grid",
     "R",
     true,
     {{"pan", {{.text = "N"}}}, {"bands", {{.text = "R"}, {.text = "G"}, {.text = "B"}}}}},
};

const struct pb_op pb_op_pansharpen = {
    .name = "pansharpen",
    .doc = {.summary = "sharpens bands by a panchromatic band (weighted Brovey)",
            .formula = "band * pan / sum of weight * band, the bands on the grid of pan",
            .units = "those of the bands",
            .nodata = "Invalid where the panchromatic band or one of the bands is.",
            .source = "The rule of GDAL's gdal_pansharpen.py, weighted Brovey.",
            .notes = "  - pansharpen: {pan: PAN, bands: [R, G, B]}\n"
                     "  - pansharpen:\n"
                     "      pan: PAN\n"
                     "      bands: [B, G, R, N]\n"
                     "      weights: {B: 0.1, G: 0.3, R: 0.4, N: 0.2}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pansharpen),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
