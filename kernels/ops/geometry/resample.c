/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * resample: bands on a coarser or finer grid, or on that of another band. */
#include "kernels/expr/grid_args.h"

#define SIDE_MAX (1 << 30)

struct resample {
    double factor, pixel; /* 0 = not given */
    char *like;           /* NULL = not given */
    int32_t method;
    bool has_method;
    struct pb_items bands;
};

static const struct pb_key keys[] = {
    {.name = "factor",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct resample, factor),
     .min = 1.0 / PB_RESAMPLE_SCALE_MAX,
     .max = PB_RESAMPLE_SCALE_MAX,
     .doc = "Times as many pixels along each axis: 0.5 is half as many."},
    {.name = "pixel",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct resample, pixel),
     .min = 1e-9,
     .max = 1e9,
     .doc = "Side of the new pixels in units of the scene's coordinate system."},
    {.name = "like",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct resample, like),
     .doc = "A band whose grid to take."},
    PB_KEY_METHOD_BY_BAND(struct resample, "bilinear"),
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct resample, bands),
     .makes_bands = true,
     .doc = "Bands to replace, or {NEW: BAND}; all bands unless given."},
};

/* Of so many times as many pixels, the whole number nearest to it. */
static int32_t side_of(int32_t side, double factor)
{
    const double n = floor(side * factor + 0.5);

    return n < 1 ? 1 : n > SIDE_MAX ? SIDE_MAX : (int32_t)n;
}

/* The factors along x and y that give square pixels of that side. */
static int by_pixel(const struct resample *resample, int32_t grid, struct pb_builder *b,
                    double factor[2])
{
    double t[6];

    factor[0] = factor[1] = 1;
    if (pb_builder_scene(b)->assumed)
        return 0;
    if (!pb_grid_args_transform(b, grid, t))
        return pb_builder_wrong(b, &resample->pixel,
                                "no geotransform is known for the band, so the size of its pixels "
                                "is not; give a factor");
    factor[0] = sqrt(t[1] * t[1] + t[4] * t[4]) / resample->pixel;
    factor[1] = sqrt(t[2] * t[2] + t[5] * t[5]) / resample->pixel;
    return 0;
}

/* The grid of the band that `like` names; -1 after a report. */
static int32_t like_grid(const struct resample *resample, struct pb_builder *b)
{
    const pb_value value = pb_band_list_named(b, &resample->like);
    const int32_t grid = pb_builder_grid(b, value);

    if (value != PB_VALUE_POISON && grid < 0)
        (void)pb_builder_wrong(b, &resample->like, "'%.80s' is a constant, it has no grid",
                               resample->like);
    return grid;
}

/* The grid that the parameters name for a band on `grid`; -1 after a report. */
static int32_t target(const struct resample *resample, struct pb_builder *b, int32_t grid)
{
    const struct pb_geometry from = pb_builder_geometry(b, grid);
    double factor[2] = {resample->factor, resample->factor};

    if (resample->factor == 0 && by_pixel(resample, grid, b, factor) < 0)
        return -1;
    if (!pb_builder_scene(b)->assumed &&
        (from.w * factor[0] > SIDE_MAX || from.h * factor[1] > SIDE_MAX))
        return pb_builder_mistake(b, PB_DIAG_LIMIT, NULL, 0,
                                  "the band would have %.0f x %.0f pixels; %d are allowed along an "
                                  "axis",
                                  from.w * factor[0], from.h * factor[1], SIDE_MAX);
    const struct pb_geometry to = pb_grid_args_scaled(
        &from, side_of(from.w, factor[0]), side_of(from.h, factor[1]), factor[0], factor[1]);
    return pb_builder_add_grid(b, &to);
}

static int build(const void *params, struct pb_builder *b)
{
    const struct resample *const resample = params;
    const size_t n = pb_band_list_count(&resample->bands, b);
    const struct pb_grid_method method = {resample->method, resample->has_method, PB_BILINEAR};
    int rc = 0;

    if ((resample->factor != 0) + (resample->pixel != 0) + (resample->like != NULL) != 1)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                  "give one of 'factor', 'pixel' and 'like'");
    const int32_t fixed = resample->like ? like_grid(resample, b) : -1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&resample->bands, b, i);
        const int32_t own = pb_builder_grid(b, pick.value);
        const int32_t to = own < 0 || resample->like ? fixed : target(resample, b, own);
        pb_value value = pick.value;

        if (own >= 0)
            value =
                to < 0 ? PB_VALUE_POISON
                       : pb_builder_resample(b, pb_grid_args_how(&method, b, &pick, to), value, to);
        rc = pb_builder_define(b, pick.out, value);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"half", "N", true, {{"factor", {{.text = "0.5", .num = 0.5}}}}},
    {"cubic",
     "N",
     true,
     {{"factor", {{.text = "1.75", .num = 1.75}}}, {"method", {{.text = "cubic"}}}}},
    {"mode",
     "N",
     true,
     {{"factor", {{.text = "0.3", .num = 0.3}}},
      {"method", {{.text = "mode"}}},
      {"bands", {{.text = "N"}}}}},
};

const struct pb_op pb_op_resample = {
    .name = "resample",
    .doc =
        {.summary = "brings bands onto another grid",
         .formula = "sum of w * v over sum of w; nearest and mode choose one v",
         .units = "those of the band",
         .nodata = "Pixels without data count for nothing; with nearest, bilinear and cubic a "
                   "pixel is valid "
                   "where the one at its centre is, with average and mode where it covers one.",
         .source = "Keys 1981, IEEE Transactions on Acoustics, Speech, and Signal Processing "
                   "29:1153-1160 "
                   "(cubic, a = -0.5)",
         .notes =
             "nearest takes the pixel that holds the centre of the new one; bilinear and cubic "
             "weigh\n"
             "pixels around it (as far as the new pixel reaches when that is larger), average "
             "all that\n"
             "it covers by area; mode takes the value with the largest area, of equal ones the\n"
             "smallest. The new grid begins at the same corner; its size is rounded to whole "
             "pixels.\n"
             "Without method a band of classes takes nearest, or mode where the new pixels are\n"
             "at least twice as wide; with another method the run warns that classes are mixed.\n"
             "\n"
             "  - resample: {factor: 0.5, method: average}\n"
             "  - resample: {pixel: 20, bands: [R, N]}\n"
             "  - resample: {like: PAN, method: cubic, bands: [R, G, B]}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct resample),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
