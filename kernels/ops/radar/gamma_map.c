/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * gamma_map: the maximum a posteriori speckle filter for scenes and speckle that are gamma
 * distributed. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/focal_args.h"
#include "kernels/expr/speckle_args.h"
#include "kernels/focal/moments_pixel.h"

#include <string.h>

struct gamma_map {
    int32_t size, edge;
    double looks;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    PB_KEY_FOCAL_SIZE(struct gamma_map, "7"),
    PB_KEY_SPECKLE_LOOKS(struct gamma_map),
    PB_KEY_FOCAL_EDGE(struct gamma_map, "reflect"),
    PB_KEY_FOCAL_BANDS(struct gamma_map),
};

static pb_value emit(struct pb_builder *b, enum pb_vm_op op, pb_value x, pb_value y)
{
    return pb_builder_emit(b, op, x, y, -1);
}

static pb_value number(struct pb_builder *b, double value)
{
    return pb_builder_constant(b, (float)value);
}

/* With u = 1 / alpha of the literature, which keeps all terms within the range of the values:
 * (q * mean + sqrt(q^2 * mean^2 + 4 * looks * u * mean * x)) / 2, q = 1 - (looks + 1) * u. Where
 * the window varies no more than speckle u is 0 and this is the mean. */
static pb_value estimate(struct pb_builder *b, pb_value x, pb_value mean, pb_value variance,
                         double looks)
{
    const pb_value zero = number(b, 0);
    const pb_value square = emit(b, PB_VM_MUL, mean, mean);
    const pb_value speckle = emit(b, PB_VM_MUL, square, number(b, 1 / looks));
    const pb_value rest = emit(b, PB_VM_MAX, emit(b, PB_VM_SUB, variance, speckle), zero);
    const pb_value u =
        emit(b, PB_VM_DIV, rest, emit(b, PB_VM_MUL, square, number(b, 1 + 1 / looks)));
    const pb_value q =
        emit(b, PB_VM_SUB, number(b, 1), emit(b, PB_VM_MUL, u, number(b, looks + 1)));
    const pb_value half = emit(b, PB_VM_MUL, q, mean);
    const pb_value fourth = emit(b, PB_VM_MUL, emit(b, PB_VM_MUL, u, number(b, 4 * looks)),
                                 emit(b, PB_VM_MUL, mean, x));
    const pb_value root =
        emit(b, PB_VM_SQRT, emit(b, PB_VM_ADD, emit(b, PB_VM_MUL, half, half), fourth), -1);
    const pb_value found = emit(b, PB_VM_MUL, emit(b, PB_VM_ADD, half, root), number(b, 0.5));
    const pb_value is_texture =
        emit(b, PB_VM_LT, variance, emit(b, PB_VM_MUL, speckle, number(b, 2)));

    return pb_builder_emit(b, PB_VM_WHERE, is_texture, found, x);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct gamma_map *const map = params;
    const size_t n = pb_band_list_count(&map->bands, b);
    const double pixels = (double)map->size * map->size;
    struct pb_focal mean, variance;
    int rc = 0;

    memset(&mean, 0, sizeof mean); /* all of it: equal operations are equal bytes */
    mean.kind = PB_FOCAL_MOMENTS;
    mean.choice = PB_MOMENT_MEAN;
    mean.edge = pb_focal_args_edge(map->edge);
    mean.radius = map->size / 2;
    variance = mean;
    variance.choice = PB_MOMENT_VARIANCE;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&map->bands, b, i);
        const pb_value spread = emit(b, PB_VM_MUL, pb_builder_focal(b, &variance, pick.value),
                                     number(b, pixels / (pixels - 1)));

        rc = pb_builder_define(
            b, pick.out,
            estimate(b, pick.value, pb_builder_focal(b, &mean, pick.value), spread, map->looks));
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"7 x 7", "N", true, {{NULL, {{.text = NULL}}}}},
    {"5 x 5, 4.4 looks",
     "F",
     true,
     {{"size", {{.text = "5", .num = 5}}},
      {"looks", {{.text = "4.4", .num = 4.4}}},
      {"edge", {{.text = "clamp"}}},
      {"bands", {{.key = "F", .text = "N"}}}}},
};

const struct pb_op pb_op_gamma_map = {
    .name = "gamma_map",
    .doc =
        {
            .summary = "Gamma-MAP speckle filter for radar images",
            .formula =
                "Of mean m and variance v (divided by one less than their number) of size * size "
                "values: m where v <= m^2 / looks, the value x where v >= 2 * m^2 / looks, between "
                "them ((a - looks - 1) * m + sqrt((a - looks - 1)^2 * m^2 + 4 * a * looks * m * "
                "x)) / (2 * a), a = (1 + 1 / looks) / (v / m^2 - 1 / looks).",
            .units = "Those of the band.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "A. Lopes, E. Nezry, R. Touzi and H. Laur, Structure detection and "
                      "statistical adaptive speckle filtering in SAR images, International Journal "
                      "of Remote Sensing 14 (1993), 1735-1758. With edge: clamp the same as OTB's "
                      "Despeckle, filter gammamap.",
            .notes = "Bands hold power, as `calibrate` makes it, never amplitude or decibels.\n"
                     "\n"
                     "  - gamma_map: {looks: 4.4, bands: [VV, VH]}\n"
                     "  - gamma_map: {size: 5, looks: 4.4, edge: clamp, bands: {SMOOTH: VV}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct gamma_map),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
