/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * multilook: means of power over blocks of pixels, for less speckle on a coarser grid. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/speckle_args.h"

struct multilook {
    int32_t range, azimuth, data;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "range",
     .type = PB_KEY_INT,
     .offset = offsetof(struct multilook, range),
     .min = 1,
     .max = PB_RESAMPLE_SCALE_MAX,
     .def = "2",
     .doc = "Pixels of a row that become one."},
    {.name = "azimuth",
     .type = PB_KEY_INT,
     .offset = offsetof(struct multilook, azimuth),
     .min = 1,
     .max = PB_RESAMPLE_SCALE_MAX,
     .def = "2",
     .doc = "Rows that become one."},
    PB_KEY_SPECKLE_DATA(struct multilook),
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct multilook, bands),
     .makes_bands = true,
     .doc = "Bands to replace, or {NEW: BAND}; all bands unless given."},
};

/* The grid of whole blocks; what is left at the right and at the bottom is in none. */
static int32_t coarser(const struct multilook *looks, struct pb_builder *b, int32_t grid)
{
    struct pb_geometry to = pb_builder_geometry(b, grid);

    if (to.w < looks->range || to.h < looks->azimuth)
        return pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                  "the band has %d x %d pixels, fewer than a block of %d x %d",
                                  to.w, to.h, looks->range, looks->azimuth);
    to.w /= looks->range;
    to.h /= looks->azimuth;
    to.map.scale_x /= looks->range;
    to.map.scale_y /= looks->azimuth;
    to.map.offset_x /= looks->range;
    to.map.offset_y /= looks->azimuth;
    return pb_builder_add_grid(b, &to);
}

static pb_value averaged(const struct multilook *looks, struct pb_builder *b, pb_value x)
{
    const int32_t grid = pb_builder_grid(b, x);
    const int32_t to = grid < 0 ? -1 : coarser(looks, b, grid);
    const pb_value power = looks->data == 1 ? pb_builder_emit(b, PB_VM_MUL, x, x, -1) : x;

    if (grid < 0) /* a number, or poison */
        return x;
    if (to < 0)
        return PB_VALUE_POISON;
    const pb_value mean = pb_builder_resample(b, PB_AVERAGE, power, to);
    return looks->data == 1 ? pb_builder_emit(b, PB_VM_SQRT, mean, -1, -1) : mean;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct multilook *const looks = params;
    const size_t n = pb_band_list_count(&looks->bands, b);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&looks->bands, b, i);

        rc = pb_builder_define(b, pick.out, averaged(looks, b, pick.value));
    }
    return rc;
}

/* The root of a mean of squares is no weighted mean. */
static bool keeps_tags(const void *params)
{
    return ((const struct multilook *)params)->data != 1;
}

static const struct pb_op_case cases[] = {
    {"2 x 2", "N", true, {{NULL, {{.text = NULL}}}}},
    {"4 x 1, amplitude",
     "L",
     true,
     {{"range", {{.text = "4", .num = 4}}},
      {"azimuth", {{.text = "1", .num = 1}}},
      {"data", {{.text = "amplitude"}}},
      {"bands", {{.key = "L", .text = "N"}}}}},
};

const struct pb_op pb_op_multilook = {
    .name = "multilook",
    .doc =
        {
            .summary = "means of radar power over blocks of pixels",
            .formula = "The mean of range * azimuth pixels; of amplitude the square root of the "
                       "mean of the squares.",
            .units = "Those of the band.",
            .nodata = "Invalid pixels count for nothing; a pixel is valid where its block has a "
                      "valid one.",
            .source = "L. J. Porcello et al., Speckle reduction in synthetic-aperture radars, "
                      "Journal of the Optical Society of America 66 (1976), 1305-1311.",
            .notes = "Rows of an image of Sentinel-1 are along the range, lines follow in azimuth. "
                     "Blocks begin at\n"
                     "the upper left corner; pixels that fill no block are left out. Speckle "
                     "filters after this step\n"
                     "have as many more looks as pixels of a block are independent.\n"
                     "\n"
                     "  - multilook: {range: 4, azimuth: 4, bands: [VV, VH]}\n"
                     "  - multilook: {range: 2, azimuth: 2, data: amplitude}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct multilook),
    .keeps_tags = keeps_tags,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
