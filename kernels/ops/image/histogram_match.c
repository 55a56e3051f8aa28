/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * histogram_match: a band gets the distribution of values of another one. Both are counted in
 * passes before the one that makes the pixels; what a value becomes is a curve through all values
 * that were counted (kernels/reduce/counts.h), which goes to a device with the code. */
#include "kernels/expr/band_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct match {
    struct pb_items bands, reference;
    char *mask, *reference_mask;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct match, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to match in place, or {NEW: OLD}."},
    {.name = "reference",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct match, reference),
     .required = true,
     .doc = "Bands whose distributions they get, one for each in the same order, or one for all. "
            "Of the scene or another source, on any grid."},
    {.name = "mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct match, mask),
     .doc = "A band: pixels of the bands are counted where it is valid and not 0. All pixels are "
            "matched. On the grid of the bands."},
    {.name = "reference_mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct match, reference_mask),
     .doc = "The same for the reference, on its grid."},
};

/* The pixels of x that are counted. */
static pb_value counted(struct pb_builder *b, char *const *mask, pb_value x)
{
    return *mask ? pb_builder_emit(b, PB_VM_WHERE, pb_band_list_named(b, mask), x,
                                   pb_builder_constant(b, NAN))
                 : x;
}

/* Reports a band that is a number. */
static int check_pixels(struct pb_builder *b, const void *member, const char *band, pb_value x)
{
    if (x < 0 || x == PB_VALUE_POISON || pb_builder_grid(b, x) >= 0)
        return 0;
    return pb_builder_wrong(b, member, "'%s' is a number and has no histogram", band);
}

static int match_one(const struct match *m, struct pb_builder *b, size_t i, pb_value reference)
{
    const struct pb_band_pick pick = pb_band_list_at(&m->bands, b, i);
    int rc = check_pixels(b, &m->bands, pick.out, pick.value);

    if (rc == 0)
        rc = pb_builder_define(
            b, pick.out,
            pb_builder_match(b, pick.value, counted(b, &m->mask, pick.value), reference));
    return rc;
}

/* The references as they are before the step. */
static int find_references(const struct match *m, struct pb_builder *b, pb_value *out)
{
    int rc = 0;

    for (size_t i = 0; i < m->reference.n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&m->reference, b, i);

        if (m->reference.items[i].key)
            rc = pb_builder_wrong(b, &m->reference, "'reference' is a list of bands here");
        rc = rc ? rc : check_pixels(b, &m->reference, pick.out, pick.value);
        out[i] = counted(b, &m->reference_mask, pick.value);
    }
    return rc;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct match *const m = params;
    const size_t n = pb_band_list_count(&m->bands, b);
    pb_value *const reference = calloc(m->reference.n + 1, sizeof *reference);

    if (!reference)
        return -ENOMEM;
    int rc = find_references(m, b, reference);
    if (rc == 0 && m->reference.n != 1 && m->reference.n != n)
        rc = pb_builder_wrong(b, &m->reference,
                              "%zu bands for %zu to match: name one for each, or one for all",
                              m->reference.n, n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = match_one(m, b, i, reference[m->reference.n > 1 ? i : 0]);
    free(reference);
    return rc;
}

static const struct pb_op_case cases[] = {
    {"like another band", "N", true, {{"bands", {{.text = "N"}}}, {"reference", {{.text = "R"}}}}},
    {"of expressions, with masks",
     "M",
     true,
     {{"bands", {{.key = "M", .text = "N"}}},
      {"reference", {{.text = "G"}}},
      {"mask", {{.text = "R"}}},
      {"reference_mask", {{.text = "B"}}}}},
};

const struct pb_op pb_op_histogram_match = {
    .name = "histogram_match",
    .doc =
        {
            .summary = "gives bands the distribution of values of other bands",
            .formula =
                "A value that the share q of the band's counted pixels does not exceed becomes the "
                "value of the reference that the share q of its pixels does not exceed, linear "
                "between the values of the reference that occur; in float64, rounded to float32 "
                "once. Between two counted values of the band the result is linear in float32, "
                "beyond them it is that of the least or the greatest.",
            .units = "Those of the reference.",
            .nodata = "A pixel is invalid where the band is, and everywhere when no pixel of the "
                      "band or of its reference is counted. Invalid pixels, and those that a mask "
                      "leaves out, are not counted.",
            .source = "match_histograms of scikit-image (skimage.exposure), which is numpy.interp "
                      "over both cumulative histograms.",
            .notes =
                "Samples of bands of up to 16 bits, scaled or not, are counted one by one: the "
                "results are\n"
                "those of the definition. Other values are counted in up to 65536 bins of one "
                "width, a power of\n"
                "two, between the least and the greatest: a result is one that a value less than "
                "two bins\n"
                "away would have; the values of a bin of the reference are taken as spread evenly "
                "over it. Both are counted in passes over the "
                "scene before, one\n"
                "for samples, two for other values, which other steps of the kind share. The CPU "
                "counts, "
                "a GPU\n"
                "matches.\n"
                "\n"
                "  - histogram_match: {bands: [R, G, B], reference: [R_OLD, G_OLD, B_OLD]}\n"
                "  - histogram_match: {bands: {PAN_M: PAN}, reference: [I], mask: CLEAR}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct match),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
