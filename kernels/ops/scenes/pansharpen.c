/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pansharpen: each band on the grid of the panchromatic one, times what that has at the pixel over
 * what stands for it at the bands' resolution. Weighted Brovey, as GDAL's gdal_pansharpen.py: the
 * weighted sum of the bands. RCS, as OTB's BundleToPerfectSensor: the panchromatic band smoothed.
 */
#include "kernels/expr/grid_args.h"

#include <string.h>

#define BANDS_MAX  16
#define RADIUS     9 /* later OTBs'; it is 3 in OTB 8 */
#define RADIUS_MAX ((PB_FOCAL_SIDE_MAX - 1) / 2.0)

enum algorithm { BROVEY, RCS };

struct pansharpen {
    char *pan;
    struct pb_items bands, weights;
    int32_t method, algorithm, radius;
    bool has_radius;
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
    {.name = "algorithm",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pansharpen, algorithm),
     .choices = "brovey|rcs",
     .def = "brovey",
     .doc = "brovey: weighted Brovey, for bands that together cover the panchromatic one's "
            "wavelengths. rcs: ratio component substitution, for bands that do not."},
    {.name = "radius",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pansharpen, radius),
     .more = offsetof(struct pansharpen, has_radius),
     .min = 1,
     .max = RADIUS_MAX,
     .doc =
         "Of rcs: the panchromatic band is smoothed over (2 * radius + 1)^2 of its pixels, which "
         "should reach over some pixels of the bands; 9 unless given."},
    {.name = "weights",
     .type = PB_KEY_NUMBERS,
     .offset = offsetof(struct pansharpen, weights),
     .min = 0,
     .max = 1e6,
     .doc = "Of brovey: of the bands in the sum that stands for the panchromatic one: {BAND: "
            "number}, or one "
            "number for all; equal and 1 in total unless given."},
    PB_KEY_METHOD(struct pansharpen, "cubic"),
};

static void place(const struct pansharpen *sharpen, struct pb_builder *b, int32_t grid,
                  pb_value *out_bands)
{
    for (size_t i = 0; i < sharpen->bands.n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&sharpen->bands, b, i);

        out_bands[i] = grid < 0 ? PB_VALUE_POISON
                                : pb_builder_resample(b, (enum pb_resampling)sharpen->method,
                                                      pick.value, grid);
    }
}

static pb_value weighted_sum(const struct pansharpen *sharpen, struct pb_builder *b,
                             const pb_value *bands)
{
    const struct pb_items *const names = &sharpen->bands, *const weights = &sharpen->weights;
    const double equal = weights->n ? 0.0 : 1.0 / (double)names->n;
    pb_value sum = -1;

    for (size_t i = 0; i < names->n; i++) {
        const char *const name = pb_item_band(&names->items[i]);
        const float weight = (float)pb_band_list_number(weights, name, equal);
        const pb_value part =
            pb_builder_emit(b, PB_VM_MUL, bands[i], pb_builder_constant(b, weight), -1);

        sum = i ? pb_builder_emit(b, PB_VM_ADD, sum, part, -1) : part;
    }
    return sum;
}

static pb_value box_sum(struct pb_builder *b, int32_t radius, pb_value x)
{
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_SEPARABLE;
    focal.edge = PB_EDGE_CLAMP;
    focal.radius = radius;
    for (int32_t i = 0; i <= 2 * radius; i++)
        focal.weight_x[i] = focal.weight_y[i] = 1.0f;
    return pb_builder_focal(b, &focal, x);
}

/* The mean of the valid pixels around. */
static pb_value smoothed(const struct pansharpen *sharpen, struct pb_builder *b, pb_value pan)
{
    const int32_t radius = sharpen->has_radius ? sharpen->radius : RADIUS;
    const pb_value valid = pb_builder_emit(b, PB_VM_VALID, pan, -1, -1);
    const pb_value known =
        pb_builder_emit(b, PB_VM_WHERE, valid, pan, pb_builder_constant(b, 0.0f));

    return pb_builder_emit(b, PB_VM_DIV, box_sum(b, radius, known), box_sum(b, radius, valid), -1);
}

static int check(const struct pansharpen *sharpen, struct pb_builder *b)
{
    const struct pb_items *const names = &sharpen->bands;

    if (names->n < 1 || names->n > BANDS_MAX)
        return pb_builder_wrong(b, names, "1 to %d bands, not %zu", BANDS_MAX, names->n);
    if (sharpen->algorithm == RCS && sharpen->weights.n > 0)
        return pb_builder_wrong(b, &sharpen->weights, "'weights' belongs to algorithm: brovey");
    if (sharpen->algorithm != RCS && sharpen->has_radius)
        return pb_builder_wrong(b, &sharpen->radius, "'radius' belongs to algorithm: rcs");
    pb_band_list_check_numbers(&sharpen->weights, names, b, "weights");
    return 0;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pansharpen *const sharpen = params;
    const struct pb_items *const names = &sharpen->bands;
    pb_value bands[BANDS_MAX];
    int rc = check(sharpen, b);

    if (rc < 0)
        return rc;
    const pb_value pan = pb_band_list_named(b, &sharpen->pan);
    if (pan != PB_VALUE_POISON && pb_builder_grid(b, pan) < 0)
        return pb_builder_wrong(b, &sharpen->pan, "'%.80s' is a constant, it has no grid",
                                sharpen->pan);
    place(sharpen, b, pan == PB_VALUE_POISON ? -1 : pb_builder_grid(b, pan), bands);
    const pb_value stand_in =
        sharpen->algorithm == RCS ? smoothed(sharpen, b, pan) : weighted_sum(sharpen, b, bands);
    const pb_value ratio = pb_builder_emit(b, PB_VM_DIV, pan, stand_in, -1);
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
    {"rcs",
     "R",
     true,
     {{"algorithm", {{.text = "rcs"}}},
      {"pan", {{.text = "N"}}},
      {"bands", {{.text = "R"}, {.text = "G"}}},
      {"radius", {{.text = "9", .num = 9}}}}},
};

const struct pb_op pb_op_pansharpen = {
    .name = "pansharpen",
    .doc =
        {
            .summary = "sharpens bands by a panchromatic band",
            .formula = "The bands on the grid of pan. brovey: band * pan / sum of weight * band. "
                       "rcs: band * pan / mean of pan within radius.",
            .units = "Those of the bands.",
            .nodata = "Invalid where the panchromatic band or one that is used is: with brovey any "
                      "of the bands, with rcs the band itself. The mean leaves invalid pixels out; "
                      "outside of the image the edge is repeated.",
            .source = "brovey: the rule of GDAL's gdal_pansharpen.py. rcs: that of OTB's "
                      "BundleToPerfectSensor and Pansharpening; in OTB 8 the radius is 3, in later "
                      "ones 9.",
            .notes = "  - pansharpen: {pan: PAN, bands: [R, G, B]}\n"
                     "  - pansharpen: {algorithm: rcs, pan: PAN, bands: [B, G, R, N]}\n"
                     "  - pansharpen:\n"
                     "      pan: PAN\n"
                     "      bands: [B, G, R, N]\n"
                     "      weights: {B: 0.1, G: 0.3, R: 0.4, N: 0.2}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pansharpen),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
