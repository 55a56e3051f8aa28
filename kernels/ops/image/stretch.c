/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * stretch: between two numbers that the whole image is reduced to, which is done in a pass before
 * the one that makes the pixels. */
#include "kernels/expr/band_list.h"

#include <float.h>
#include <string.h>

enum method { PERCENTILES, MINMAX, STDDEV, EQUALIZE };

/* Equalisation is linear between so many percentiles, from 0 to 100. */
enum { POINTS = 16, AT_ONCE = 8 };

struct stretch {
    struct pb_items bands;
    char *mask;
    double percentiles[2];
    double deviations, low, high, gamma;
    int32_t method, beyond;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct stretch, bands),
     .makes_bands = true,
     .doc = "Bands to stretch in place, or {NEW: OLD}; all bands when not given. Each has a range "
            "of its own."},
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct stretch, method),
     .choices = "percentiles|minmax|stddev|equalize",
     .def = "percentiles",
     .doc =
         "The range that is stretched: between two percentiles, from the least to the greatest "
         "value, or a number of standard deviations around the mean; equalize: all values, so that "
         "each part of the result has as many pixels."},
    {.name = "percentiles",
     .type = PB_KEY_PAIR,
     .offset = offsetof(struct stretch, percentiles),
     .def = "[2, 98]",
     .doc = "Of the image's valid pixels, exact, with linear interpolation between ranks; for "
            "method percentiles."},
    {.name = "deviations",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct stretch, deviations),
     .min = 1e-6,
     .max = 1e6,
     .def = "2",
     .doc = "Standard deviations to each side of the mean; for method stddev."},
    {.name = "low",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct stretch, low),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .def = "0",
     .doc = "Value of the lower end of the range."},
    {.name = "high",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct stretch, high),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .def = "1",
     .doc = "Value of the upper end; may be less than low."},
    {.name = "gamma",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct stretch, gamma),
     .min = 0.01,
     .max = 100,
     .def = "1",
     .doc = "The share of the range to the power of 1 / gamma: above 1 brightens what is between "
            "low and high."},
    {.name = "beyond",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct stretch, beyond),
     .choices = "clamp|keep",
     .def = "clamp",
     .doc = "Values beyond the range: clamped to low and high, or continued in line."},
    {.name = "mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct stretch, mask),
     .doc = "A band: the range is that of the pixels where it is valid and not 0. All pixels are "
            "stretched. On the grid of the bands."},
};

/* Both ends of the range of `band`. */
static void find_range(const struct stretch *s, struct pb_builder *b, pb_value x, const char *band,
                       pb_value out[2])
{
    const struct pb_reduce moments = pb_reduce_moments();
    const struct pb_reduce percentiles = pb_reduce_percentiles(s->percentiles, 2);

    if (s->method == PERCENTILES) {
        out[0] = pb_builder_reduce(b, &percentiles, x, 0, band);
        out[1] = pb_builder_reduce(b, &percentiles, x, 1, band);
    } else if (s->method == MINMAX) {
        out[0] = pb_builder_reduce(b, &moments, x, PB_MOMENTS_MINIMUM, band);
        out[1] = pb_builder_reduce(b, &moments, x, PB_MOMENTS_MAXIMUM, band);
    } else {
        const pb_value mean = pb_builder_reduce(b, &moments, x, PB_MOMENTS_MEAN, band);
        const pb_value width = pb_builder_emit(
            b, PB_VM_MUL, pb_builder_reduce(b, &moments, x, PB_MOMENTS_STDDEV, band),
            pb_builder_constant(b, (float)s->deviations), -1);

        out[0] = pb_builder_emit(b, PB_VM_SUB, mean, width, -1);
        out[1] = pb_builder_emit(b, PB_VM_ADD, mean, width, -1);
    }
}

/* 1 / (to - from), or the steepest slope there is where they are equal. */
static pb_value slope_between(struct pb_builder *b, pb_value from, pb_value to)
{
    const pb_value wide = pb_builder_emit(b, PB_VM_GT, to, from, -1);
    const pb_value span = pb_builder_emit(b, PB_VM_SUB, to, from, -1);
    const pb_value slope = pb_builder_emit(b, PB_VM_DIV, pb_builder_constant(b, 1.0f), span, -1);

    return pb_builder_emit(b, PB_VM_WHERE, wide, slope, pb_builder_constant(b, FLT_MAX));
}

/* The share of the pixels of `among` that are below x, 0 .. 1: each part between two percentiles
 * adds what x has passed of it. */
static pb_value equalize(struct pb_builder *b, pb_value x, pb_value among, const char *band)
{
    const pb_value zero = pb_builder_constant(b, 0.0f), one = pb_builder_constant(b, 1.0f);
    pb_value point[POINTS], sum = zero;

    for (int first = 0; first < POINTS; first += AT_ONCE) {
        double percentile[AT_ONCE];

        for (int i = 0; i < AT_ONCE; i++)
            percentile[i] = 100.0 * (first + i) / (POINTS - 1);
        const struct pb_reduce reduce = pb_reduce_percentiles(percentile, AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++)
            point[first + i] = pb_builder_reduce(b, &reduce, among, (uint32_t)i, band);
    }
    for (int i = 0; i + 1 < POINTS; i++) {
        const pb_value off = pb_builder_emit(b, PB_VM_SUB, x, point[i], -1);
        const pb_value passed =
            pb_builder_emit(b, PB_VM_MUL, off, slope_between(b, point[i], point[i + 1]), -1);

        sum = pb_builder_emit(b, PB_VM_ADD, sum, pb_builder_emit(b, PB_VM_CLAMP, passed, zero, one),
                              -1);
    }
    return pb_builder_emit(b, PB_VM_DIV, sum, pb_builder_constant(b, POINTS - 1), -1);
}

/* From a share of 0 .. 1, by gamma, to low .. high. */
static pb_value bend(const struct stretch *s, struct pb_builder *b, pb_value share)
{
    const pb_value power = pb_builder_constant(b, (float)(1.0 / s->gamma));
    const pb_value bent = s->gamma == 1.0 ? share : pb_builder_emit(b, PB_VM_POW, share, power, -1);
    const pb_value span = pb_builder_constant(b, (float)s->high - (float)s->low);

    return pb_builder_emit(b, PB_VM_ADD, pb_builder_emit(b, PB_VM_MUL, bent, span, -1),
                           pb_builder_constant(b, (float)s->low), -1);
}

/* (x - a) * gain + base, where gain and base are numbers. The gain is made of halves, so that no
 * range of float32 is too wide. A range of one value (many pixels may have it) has no slope: with
 * clamping the steepest there is sends what is below to low and what is above to high, and the
 * value itself to the middle. */
static pb_value apply(const struct stretch *s, struct pb_builder *b, pb_value x,
                      const pb_value range[2])
{
    const float low = (float)s->low, high = (float)s->high;
    const float steepest = s->beyond ? 0.0f : high > low ? FLT_MAX : -FLT_MAX;
    const pb_value half = pb_builder_constant(b, 0.5f);
    const pb_value wide = pb_builder_emit(b, PB_VM_GT, range[1], range[0], -1);
    const pb_value half_span =
        pb_builder_emit(b, PB_VM_SUB, pb_builder_emit(b, PB_VM_MUL, range[1], half, -1),
                        pb_builder_emit(b, PB_VM_MUL, range[0], half, -1), -1);
    const pb_value slope =
        pb_builder_emit(b, PB_VM_DIV, pb_builder_constant(b, (high - low) * 0.5f), half_span, -1);
    const pb_value finite = pb_builder_emit(b, PB_VM_CLAMP, slope, pb_builder_constant(b, -FLT_MAX),
                                            pb_builder_constant(b, FLT_MAX));
    const pb_value gain =
        pb_builder_emit(b, PB_VM_WHERE, wide, finite, pb_builder_constant(b, steepest));
    const pb_value base = pb_builder_emit(b, PB_VM_WHERE, wide, pb_builder_constant(b, low),
                                          pb_builder_constant(b, low + (high - low) * 0.5f));
    pb_value y = pb_builder_emit(b, PB_VM_SUB, x, range[0], -1);

    y = pb_builder_emit(b, PB_VM_MUL, y, gain, -1);
    y = pb_builder_emit(b, PB_VM_ADD, y, base, -1);
    if (s->beyond != 0)
        return y;
    const pb_value least = pb_builder_constant(b, low < high ? low : high);
    const pb_value most = pb_builder_constant(b, low < high ? high : low);
    return pb_builder_emit(b, PB_VM_CLAMP, y, least, most);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct stretch *const s = params;
    const size_t n = pb_band_list_count(&s->bands, b);
    struct stretch share = *s;
    const pb_value mask = s->mask ? pb_band_list_named(b, &s->mask) : -1;
    int rc = 0;

    share.low = 0.0;
    share.high = 1.0;
    if (!isfinite((float)s->high - (float)s->low))
        rc = pb_builder_wrong(b, &s->high, "high - low is more than float32 holds");
    if (s->beyond != 0 && (s->method == EQUALIZE || s->gamma != 1.0))
        rc = pb_builder_wrong(
            b, &s->beyond,
            "beyond: keep continues a straight line; it excludes method: equalize and gamma");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&s->bands, b, i);
        pb_value range[2], x = pick.value;

        if (s->mask)
            x = pb_builder_emit(b, PB_VM_WHERE, mask, x, pb_builder_constant(b, NAN));
        if (s->method == EQUALIZE) {
            range[0] = bend(s, b, equalize(b, pick.value, x, pick.out));
        } else {
            find_range(s, b, x, pick.out, range);
            range[0] = s->gamma == 1.0 ? apply(s, b, pick.value, range)
                                       : bend(s, b, apply(&share, b, pick.value, range));
        }
        rc = pb_builder_define(b, pick.out, range[0]);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"percentiles", "N", true, {{NULL, {{.text = NULL}}}}},
    {"least to greatest, falling, of an expression's mask",
     "N",
     true,
     {{"method", {{.text = "minmax"}}},
      {"low", {{.text = "255", .num = 255}}},
      {"mask", {{.text = "R"}}}}},
    {"equalized", "N", true, {{"method", {{.text = "equalize"}}}}},
    {"gamma", "N", true, {{"gamma", {{.text = "2.2", .num = 2.2}}}}},
    {"deviations, kept",
     "N",
     true,
     {{"method", {{.text = "stddev"}}},
      {"beyond", {{.text = "keep"}}},
      {"bands", {{.text = "R"}, {.text = "N"}}}}},
};

const struct pb_op pb_op_stretch = {
    .name = "stretch",
    .doc =
        {
            .summary = "stretches bands between two values of the whole image",
            .formula =
                "(band - a) * ((high - low) / (b - a)) + low, in float32, where a and b are "
                "the ends of the image's range; then clamped. Where a = b: low below it, "
                "high above it, the middle of both at it; with beyond: keep the middle. gamma: "
                "share^(1 / gamma) * (high - low) + low, share the same for low 0 and high "
                "1. equalize: the share is that of the valid pixels below the value, linear "
                "between 16 percentiles at equal distances.",
            .units = "As low and high make them; 0 to 1 by default.",
            .nodata = "A pixel is invalid where the band is. Invalid pixels, and those that the "
                      "mask leaves out, do not count for the range.",
            .source = "Percentiles as numpy.percentile's default (linear), mean and population "
                      "standard deviation from exact sums; of this program.",
            .notes = "The range is exact and known before the first pixel is made: the scene is "
                     "read one more time\n"
                     "for it, and two more times where percentiles are of other values than the "
                     "samples of "
                     "a band\n"
                     "of up to 16 bits. Stretches of bands on one grid that need no other's result "
                     "share these "
                     "passes.\n"
                     "\n"
                     "  - stretch: {bands: [R, G, B], high: 255}\n"
                     "  - stretch: {percentiles: [1, 99], mask: CLEAR, bands: {NDVI_S: NDVI}}\n"
                     "  - stretch: {method: equalize, high: 255}\n"
                     "  - stretch: {method: stddev, deviations: 2.5, beyond: keep}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct stretch),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
