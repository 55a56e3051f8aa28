/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * stretch: between two numbers that the whole image is reduced to, which is done in a pass before
 * the one that makes the pixels. */
#include "kernels/expr/band_list.h"

#include <float.h>
#include <string.h>

enum method { PERCENTILES, MINMAX, STDDEV };

struct stretch {
    struct pb_items bands;
    char *mask;
    double percentiles[2];
    double deviations, low, high;
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
     .choices = "percentiles|minmax|stddev",
     .def = "percentiles",
     .doc = "The range that is stretched: between two percentiles, from the least to the greatest "
            "value, or so many standard deviations around the mean."},
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
     .doc = "What the lower end of the range becomes."},
    {.name = "high",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct stretch, high),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .def = "1",
     .doc = "What the upper end becomes; may be less than low."},
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
    const pb_value mask = s->mask ? pb_band_list_named(b, &s->mask) : -1;
    int rc = 0;

    if (!isfinite((float)s->high - (float)s->low))
        rc = pb_builder_wrong(b, &s->high, "high - low is more than float32 holds");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&s->bands, b, i);
        pb_value range[2], x = pick.value;

        if (s->mask)
            x = pb_builder_emit(b, PB_VM_WHERE, mask, x, pb_builder_constant(b, NAN));
        find_range(s, b, x, pick.out, range);
        rc = pb_builder_define(b, pick.out, apply(s, b, pick.value, range));
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
            .formula = "(band - a) * ((high - low) / (b - a)) + low, in float32, where a and b are "
                       "the ends of the image's range; then clamped. Where a = b: low below it, "
                       "high above it, the middle of both at it; with beyond: keep the middle.",
            .units = "As low and high make them; 0 to 1 by default.",
            .nodata = "A pixel is invalid where the band is. Invalid pixels, and those that the "
                      "mask leaves out, do not count for the range.",
            .source = "Percentiles as numpy.percentile's default (linear), mean and population "
                      "standard deviation from exact sums; of this program.",
            .notes =
                "The range is exact and known before the first pixel is made: the scene is read "
                "once more\n"
                "for it, and twice more where percentiles are of other values than the samples of "
                "a band\n"
                "of up to 16 bits. Stretches of bands on one grid that need no other's result "
                "share these "
                "passes.\n"
                "\n"
                "  - stretch: {bands: [R, G, B], high: 255}\n"
                "  - stretch: {percentiles: [1, 99], mask: CLEAR, bands: {NDVI_S: NDVI}}\n"
                "  - stretch: {method: stddev, deviations: 2.5, beyond: keep}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct stretch),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
