/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * warp: bands in another coordinate system. */
#include "kernels/expr/grid_args.h"

#include <string.h>

#define COORDINATE_MAX 1e12

struct warp {
    char *crs;
    double pixel; /* 0 = not given */
    bool has_pixel;
    struct pb_items bounds, bands;
    int32_t align, method;
};

static const struct pb_key keys[] = {
    {.name = "crs",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct warp, crs),
     .required = true,
     .doc = "The coordinate system of the new grid: EPSG:32633, or any other text that GDAL "
            "takes."},
    {.name = "pixel",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct warp, pixel),
     .more = offsetof(struct warp, has_pixel),
     .min = 1e-9,
     .max = 1e9,
     .doc = "Side of the new pixels in units of that system; as GDAL suggests it unless given."},
    {.name = "bounds",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct warp, bounds),
     .min = -COORDINATE_MAX,
     .max = COORDINATE_MAX,
     .doc = "[west, south, east, north] of the new grid in that system; that of the scene, or of "
            "what was cropped of it, unless given."},
    {.name = "align",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct warp, align),
     .def = "false",
     .choices = "false|true",
     .doc = "Whether the edges of the new grid become multiples of pixel, outwards."},
    PB_KEY_METHOD(struct warp, "bilinear"),
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct warp, bands),
     .makes_bands = true,
     .doc = "Bands to replace, or {NEW: BAND}; all bands unless given."},
};

static int make_ask(const struct warp *warp, struct pb_builder *b, struct pb_ground_ask *out)
{
    const struct pb_item *const v = warp->bounds.items;

    *out =
        (struct pb_ground_ask){.crs = warp->crs, .pixel = warp->pixel, .align = warp->align != 0};
    if (out->align && warp->pixel == 0)
        return pb_builder_wrong(b, &warp->align,
                                "edges are aligned to 'pixel', which is not given");
    if (warp->bounds.n == 0)
        return 0;
    if (warp->bounds.n != 4 || v[0].num >= v[2].num || v[1].num >= v[3].num)
        return pb_builder_mistake(b, PB_DIAG_VALUE, v, 0,
                                  "bounds are [west, south, east, north], west below east, "
                                  "south below north");
    out->has_bounds = true;
    for (int i = 0; i < 4; i++)
        out->bounds[i] = v[i].num;
    return 0;
}

/* The new grid for bands of one frame, made for the first of them. */
struct made {
    int32_t frame, grid; /* grid -1: after a report */
};

/* The part of the old grid that holds all bands of the step that lie in its frame. */
static void find_part(const struct warp *warp, struct pb_builder *b, int32_t frame,
                      struct pb_ground_ask *ask)
{
    const size_t n = pb_band_list_count(&warp->bands, b);
    const double none[4] = {INFINITY, INFINITY, -INFINITY, -INFINITY};

    memcpy(ask->part, none, sizeof none);
    for (size_t i = 0; i < n; i++) {
        const int32_t grid = pb_builder_grid(b, pb_band_list_at(&warp->bands, b, i).value);
        double part[4];

        if (grid < 0 || pb_builder_geometry(b, grid).frame != frame)
            continue;
        pb_builder_part(b, grid, part);
        for (int k = 0; k < 2; k++) {
            ask->part[k] = fmin(ask->part[k], part[k]);
            ask->part[2 + k] = fmax(ask->part[2 + k], part[2 + k]);
        }
    }
}

static int32_t grid_for(struct pb_builder *b, const struct warp *warp, struct pb_ground_ask *ask,
                        pb_value value, struct made *made, size_t *n)
{
    const int32_t own = pb_builder_grid(b, value);
    const int32_t frame = pb_builder_geometry(b, own).frame;

    for (size_t i = 0; i < *n; i++)
        if (made[i].frame == frame)
            return made[i].grid;
    if (*n == PB_SOURCES_MAX)
        return -1;
    find_part(warp, b, frame, ask);
    made[*n] = (struct made){frame, pb_builder_warp(b, ask, own)};
    return made[(*n)++].grid;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct warp *const warp = params;
    const size_t n = pb_band_list_count(&warp->bands, b);
    struct made made[PB_SOURCES_MAX];
    struct pb_ground_ask ask;
    size_t n_made = 0;
    int rc = make_ask(warp, b, &ask);

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&warp->bands, b, i);
        pb_value value = pick.value;

        if (pb_builder_grid(b, value) >= 0) {
            const int32_t to = grid_for(b, warp, &ask, value, made, &n_made);

            value = to < 0 ? PB_VALUE_POISON
                           : pb_builder_resample(b, (enum pb_resampling)warp->method, value, to);
        }
        rc = pb_builder_define(b, pick.out, value);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"bilinear", "N", true, {{"crs", {{.text = "EPSG:32633"}}}, {"bands", {{.text = "N"}}}}},
    {"cubic",
     "R",
     true,
     {{"crs", {{.text = "EPSG:32633"}}},
      {"method", {{.text = "cubic"}}},
      {"bands", {{.text = "R"}}}}},
    {"lanczos", "G", true, {{"crs", {{.text = "EPSG:3857"}}}, {"method", {{.text = "lanczos"}}}}},
    {"average",
     "G",
     true,
     {{"crs", {{.text = "EPSG:3857"}}},
      {"method", {{.text = "average"}}},
      {"bands", {{.text = "G"}}}}},
};

const struct pb_op pb_op_warp = {
    .name = "warp",
    .doc =
        {.summary = "brings bands into another coordinate system",
         .formula = "sum of w * v over sum of w, around the place of the pixel on the old grid",
         .units = "those of the band",
         .nodata = "Pixels without data count for nothing; with nearest, bilinear, cubic and "
                   "lanczos a pixel is valid where the old one at its centre is, with average and "
                   "mode where it covers one. What lies outside of the scene, or where one of the "
                   "systems is not defined, is invalid.",
         .source = "The rules of gdalwarp; PROJ for the coordinates",
         .notes =
             "Extent and size of pixels are what gdalwarp takes, unless bounds and pixel are given "
             "(as\n"
             "its -te and -tr; align is -tap). Where pixels lie is interpolated between points "
             "that "
             "PROJ\n"
             "has given, to 1/65536 of an old pixel; to 1/8 at most where that would take over 64 "
             "MiB.\n"
             "Kernels are as wide as the new pixel when that is larger than the old one; average "
             "and\n"
             "mode look at the rectangle between two corners of the pixel, mode takes the value "
             "that is\n"
             "there most often. All bands of a step get one grid.\n"
             "\n"
             "  - warp: {crs: \"EPSG:32633\", pixel: 10, align: true}\n"
             "  - warp: {crs: \"EPSG:3857\", method: cubic, bands: [R, G, B]}\n"
             "  - warp: {crs: \"EPSG:4326\", pixel: 0.0001, bounds: [13.0, 52.3, 13.8, 52.7]}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct warp),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
