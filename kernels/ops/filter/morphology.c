/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * morphology: erosion and dilation with a flat structuring element, and what is made of the two. A
 * square is a row and then a column, a cross the lesser or greater of both. Between two of them
 * pixels that were invalid are made invalid again: what is invalid is no part of the image, so that
 * opening and closing keep their laws beside it. */
#include "kernels/expr/focal_args.h"
#include "kernels/expr/band_list.h"
#include "kernels/focal/flat_pixel.h"
#include "kernels/graph/builder.h"

#include <math.h>
#include <string.h>

enum operation { ERODE, DILATE, OPEN, CLOSE, TOPHAT, BLACKHAT, GRADIENT };
enum shape { SQUARE, DISC, DIAMOND, CROSS, LINE };

struct morphology {
    int32_t operation, shape, angle; /* enum operation, enum shape, index of slopes */
    int32_t size;
    bool has_angle;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "operation",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct morphology, operation),
     .choices = "erode|dilate|open|close|tophat|blackhat|gradient",
     .doc = "Operation: combines the least and the greatest values.",
     .required = true},
    {.name = "size",
     .type = PB_KEY_ODD,
     .offset = offsetof(struct morphology, size),
     .min = 3,
     .max = PB_FOCAL_SIDE_MAX,
     .def = "3",
     .doc = "Side of the structuring element in pixels, odd."},
    {.name = "shape",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct morphology, shape),
     .choices = "square|disc|diamond|cross|line",
     .def = "square",
     .doc = "Of the structuring element, with r = (size - 1) / 2: disc x^2 + y^2 <= r^2; diamond "
            "|x| + |y| <= r; cross: a row and a column; line: along 'angle'."},
    {.name = "angle",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct morphology, angle),
     .more = offsetof(struct morphology, has_angle),
     .choices = "0|45|90|135",
     .def = "0",
     .doc = "Of the line, in degrees anticlockwise from a row of the image."},
    PB_KEY_FOCAL_BANDS(struct morphology),
};

/* -- structuring elements ---------------------------------------------------------------------- */

struct runs {
    int32_t first, last; /* columns from the middle; first > last: none */
};

/* Of the row y from the middle. */
static struct runs row_of_disc(int32_t r, int32_t y)
{
    int32_t half = 0;

    while ((half + 1) * (half + 1) + y * y <= r * r)
        half++;
    return (struct runs){-half, half};
}

static struct runs row_of_line(int32_t r, int32_t angle, int32_t y)
{
    static const int32_t slopes[] = {0, -1, 0, 1}; /* columns a row, downwards */

    if (angle == 0)
        return y == 0 ? (struct runs){-r, r} : (struct runs){1, 0};
    return (struct runs){slopes[angle] * y, slopes[angle] * y};
}

enum { ANGLE_ROW = 0, ANGLE_COLUMN = 2 };

static pb_value flat(struct pb_builder *b, int32_t shape, int32_t angle, int32_t r, int32_t choice,
                     pb_value x)
{
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_FLAT;
    focal.choice = choice;
    focal.edge = PB_EDGE_NODATA; /* outside the image nothing is there */
    focal.radius = r;
    for (int32_t y = -r; y <= r; y++) {
        const int32_t half = r - (y < 0 ? -y : y);
        const struct runs row = shape == DISC      ? row_of_disc(r, y)
                                : shape == DIAMOND ? (struct runs){-half, half}
                                                   : row_of_line(r, angle, y);

        focal.weight_x[r + y] = (float)(r + row.first);
        focal.weight_y[r + y] = (float)(r + row.last);
    }
    return pb_builder_focal(b, &focal, x);
}

/* The least or greatest values of x; invalid where `valid` is 0. */
static pb_value extreme(struct pb_builder *b, const struct morphology *m, int32_t choice,
                        pb_value valid, pb_value x)
{
    const int32_t r = m->size / 2;
    pb_value v;

    if (m->shape == SQUARE) {
        v = flat(b, LINE, ANGLE_ROW, r, choice, x);
        v = flat(b, LINE, ANGLE_COLUMN, r, choice, v);
    } else if (m->shape == CROSS) {
        v = pb_builder_emit(b, choice == PB_FLAT_LEAST ? PB_VM_MIN : PB_VM_MAX,
                            flat(b, LINE, ANGLE_ROW, r, choice, x),
                            flat(b, LINE, ANGLE_COLUMN, r, choice, x), -1);
    } else {
        v = flat(b, m->shape, m->angle, r, choice, x);
    }
    return pb_builder_emit(b, PB_VM_WHERE, valid, v, pb_builder_constant(b, NAN));
}

/* -- building ---------------------------------------------------------------------------------- */

static pb_value made_of(struct pb_builder *b, const struct morphology *m, pb_value x)
{
    const pb_value valid = pb_builder_emit(b, PB_VM_VALID, x, -1, -1);
    const bool least_first =
        m->operation == ERODE || m->operation == OPEN || m->operation == TOPHAT;
    const pb_value first = extreme(b, m, least_first ? PB_FLAT_LEAST : PB_FLAT_GREATEST, valid, x);

    if (m->operation == ERODE || m->operation == DILATE)
        return first;
    if (m->operation == GRADIENT)
        return pb_builder_emit(b, PB_VM_SUB, first, extreme(b, m, PB_FLAT_LEAST, valid, x), -1);
    const pb_value second =
        extreme(b, m, least_first ? PB_FLAT_GREATEST : PB_FLAT_LEAST, valid, first);
    if (m->operation == TOPHAT)
        return pb_builder_emit(b, PB_VM_SUB, x, second, -1);
    if (m->operation == BLACKHAT)
        return pb_builder_emit(b, PB_VM_SUB, second, x, -1);
    return second;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct morphology *const m = params;
    const size_t n = pb_band_list_count(&m->bands, b);
    const int told = m->has_angle && m->shape != LINE && m->angle != 0
                         ? pb_builder_wrong(b, &m->angle, "'angle' belongs to shape: line")
                         : 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&m->bands, b, i);

        rc = pb_builder_define(b, pick.out, told ? PB_VALUE_POISON : made_of(b, m, pick.value));
    }
    return told ? told : rc;
}

/* The others are differences. */
static bool keeps_tags(const void *params)
{
    return ((const struct morphology *)params)->operation <= CLOSE;
}

static const struct pb_op_case cases[] = {
    {"erode 3 x 3", "N", true, {{"operation", {{.text = "erode"}}}}},
    {"open 7 x 7",
     "N",
     true,
     {{"operation", {{.text = "open"}}}, {"size", {{.text = "7", .num = 7}}}}},
    {"close disc 9",
     "M",
     true,
     {{"operation", {{.text = "close"}}},
      {"shape", {{.text = "disc"}}},
      {"size", {{.text = "9", .num = 9}}},
      {"bands", {{.key = "M", .text = "N"}}}}},
    {"gradient disc 31",
     "N",
     true,
     {{"operation", {{.text = "gradient"}}},
      {"shape", {{.text = "disc"}}},
      {"size", {{.text = "31", .num = 31}}}}},
    {"tophat line 45",
     "N",
     true,
     {{"operation", {{.text = "tophat"}}},
      {"shape", {{.text = "line"}}},
      {"angle", {{.text = "45", .num = 45}}},
      {"size", {{.text = "5", .num = 5}}}}},
    {"dilate cross 15",
     "N",
     true,
     {{"operation", {{.text = "dilate"}}},
      {"shape", {{.text = "cross"}}},
      {"size", {{.text = "15", .num = 15}}}}},
};

const struct pb_op pb_op_morphology = {
    .name = "morphology",
    .doc =
        {
            .summary = "erodes, dilates, opens or closes bands and masks",
            .formula =
                "erode: the least, dilate: the greatest of the values that the structuring element "
                "covers; open: dilate(erode(x)); close: erode(dilate(x)); tophat: x - open(x); "
                "blackhat: close(x) - x; gradient: dilate(x) - erode(x).",
            .units = "Those of the band. Of a mask of 0 and 1 a mask.",
            .nodata =
                "Invalid pixels stay invalid. They are left out of their neighbours' windows, as "
                "are pixels outside the image: a border without data does not grow.",
            .source = "J. Serra, Image Analysis and Mathematical Morphology, Academic Press 1982. "
                      "The values are those of grey_erosion, grey_dilation and the functions built "
                      "on them in scipy.ndimage, with the same footprint and nothing outside the "
                      "image (mode constant, cval +inf or -inf).",
            .notes = "The element is symmetric and flat. disc and diamond are those of\n"
                     "scikit-image. A square is made as a row and a column.\n"
                     "\n"
                     "  - morphology: {operation: open, size: 5, shape: disc, bands: {CLEAN: "
                     "WATER}}\n"
                     "  - morphology: {operation: tophat, size: 31, bands: {PEAKS: DEM}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct morphology),
    .keeps_tags = keeps_tags,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
