/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * crop: bands on a part of their grid. No pixel is computed for it: the bands are read elsewhere.
 */
#include "kernels/ops/geometry/crop.h"
#include "kernels/expr/grid_args.h"

#include <errno.h>
#include <string.h>

#define COORDINATE_MAX 1e12
/* Bounds that miss a pixel's edge by so little mean the edge. */
#define EDGE_PX 1e-6

static const struct pb_key keys[] = {
    {.name = "window",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct pb_crop, window),
     .min = 0,
     .max = 1 << 24,
     .doc = "[x, y, width, height] in pixels; x and y of the upper left pixel."},
    {.name = "bounds",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct pb_crop, bounds),
     .min = -COORDINATE_MAX,
     .max = COORDINATE_MAX,
     .doc = "[west, south, east, north] in the scene's coordinate system, or in that of `crs`; "
            "every pixel that they touch."},
    {.name = "crs",
     .type = PB_KEY_CRS,
     .offset = offsetof(struct pb_crop, crs),
     .doc = "The coordinate system of the bounds: EPSG:4326, WKT or a PROJ string. West and east "
            "are x or longitude, south and north y or latitude, whatever the order of its axes; "
            "west of a geographic one may be above east, across the antimeridian."},
    {.name = "polygons",
     .type = PB_KEY_PATH,
     .offset = offsetof(struct pb_crop, polygons),
     .doc =
         "A GeoJSON, GeoPackage or Shapefile: the rectangle around all its polygons, in whatever "
         "system it has. A relative path begins at the configuration's directory. Of a world "
         "grid, polygons across its edge need cutline: true."},
    {.name = "layer",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_crop, layer),
     .doc = "The layer of the polygons; needed where their file has several."},
    {.name = "where",
     .type = PB_KEY_EXPRESSION,
     .offset = offsetof(struct pb_crop, where),
     .doc = "Only the features of which this is true: SQL over their attributes, as ogr2ogr -where "
            "takes it: \"crop = 'maize' AND area > 2\"."},
    {.name = "cutline",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_crop, cutline),
     .choices = "false|true",
     .def = "false",
     .doc = "Whether pixels outside of the polygons become invalid, as by gdalwarp -cutline. A "
            "pixel is inside when its centre is."},
    {.name = "touched",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_crop, touched),
     .choices = "false|true",
     .def = "false",
     .doc = "With cutline: whether a pixel through which an outline passes is inside as well (the "
            "CUTLINE_ALL_TOUCHED of gdalwarp)."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pb_crop, bands),
     .makes_bands = true,
     .doc = "Bands to crop in place, or {NEW: BAND}; all bands unless given."},
};

bool pb_crop_cuts(const struct pb_crop *crop)
{
    return crop->polygons != NULL && crop->cutline == 1;
}

static bool is_whole(double v)
{
    return v == floor(v);
}

/* The pixels that `window` names; 0 or -EINVAL after a report. */
static int by_window(const struct pb_items *window, int32_t grid, struct pb_builder *b,
                     struct pb_rect *out)
{
    const struct pb_geometry g = pb_builder_geometry(b, grid);
    const struct pb_item *const v = window->items;

    if (window->n != 4 || !is_whole(v[0].num) || !is_whole(v[1].num) || !is_whole(v[2].num) ||
        !is_whole(v[3].num) || v[2].num < 1 || v[3].num < 1)
        return pb_builder_mistake(b, PB_DIAG_VALUE, v, 0,
                                  "a window is [x, y, width, height], whole numbers of "
                                  "pixels, width and height from 1");
    *out = (struct pb_rect){(int32_t)v[0].num, (int32_t)v[1].num, (int32_t)v[2].num,
                            (int32_t)v[3].num};
    if (!pb_builder_scene(b)->assumed && (v[0].num + v[2].num > g.w || v[1].num + v[3].num > g.h))
        return pb_builder_mistake(b, PB_DIAG_GRID, v, 0,
                                  "the window reaches to pixel %d, %d, the band has %d x %d",
                                  out->x + out->w, out->y + out->h, g.w, g.h);
    return 0;
}

/* The rectangle of pixels around the four corners of the bounds. */
static void around(const double t[6], const struct pb_item *v, double low[2], double high[2])
{
    low[0] = low[1] = INFINITY;
    high[0] = high[1] = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double at[2];

        if (!pb_grid_args_pixel(t, v[i & 1 ? 2 : 0].num, v[i & 2 ? 3 : 1].num, &at[0], &at[1]))
            continue;
        for (int k = 0; k < 2; k++) {
            low[k] = at[k] < low[k] ? at[k] : low[k];
            high[k] = at[k] > high[k] ? at[k] : high[k];
        }
    }
}

/* Reports that the grid has nothing of what the step names. West, south, east, north of both; named
 * NULL: they are not known. */
static int outside(struct pb_builder *b, const struct pb_item *item, const double *named,
                   const double *scene)
{
    const char *const what = item != NULL ? "bounds" : "polygons";
    const bool degrees = item != NULL && named != NULL && fabs(named[0]) <= 360 &&
                         fabs(named[2]) <= 360 && fabs(named[1]) <= 90 && fabs(named[3]) <= 90 &&
                         (fabs(scene[0]) > 360 || fabs(scene[1]) > 90);

    if (named == NULL)
        return pb_builder_mistake(b, PB_DIAG_OUTSIDE, item, 0, "the scene is outside of the %s",
                                  what);
    return pb_builder_mistake(
        b, PB_DIAG_OUTSIDE, item, 0,
        "the scene is outside of the %s: these are [%.10g, %.10g, %.10g, %.10g], the scene is "
        "[%.10g, %.10g, %.10g, %.10g]%s",
        what, named[0], named[1], named[2], named[3], scene[0], scene[1], scene[2], scene[3],
        degrees ? "; bounds in degrees need crs: EPSG:4326" : "");
}

/* West, south, east, north of a grid. */
static void bounds_of(const struct pb_geometry *g, const double t[6], double out[4])
{
    out[0] = out[1] = INFINITY;
    out[2] = out[3] = -INFINITY;
    for (int i = 0; i < 4; i++) {
        const double x = i & 1 ? g->w : 0, y = i & 2 ? g->h : 0;
        const double at[2] = {t[0] + x * t[1] + y * t[2], t[3] + x * t[4] + y * t[5]};

        for (int k = 0; k < 2; k++) {
            out[k] = fmin(out[k], at[k]);
            out[k + 2] = fmax(out[k + 2], at[k]);
        }
    }
}

/* The pixels of a grid between two places of it; -EINVAL after a report: there are none. */
static int between(const double low[2], const double high[2], const struct pb_geometry *g,
                   const struct pb_item *item, const double *named, const double *scene,
                   struct pb_builder *b, struct pb_rect *out)
{
    const double x0 = fmax(floor(low[0] + EDGE_PX), 0), y0 = fmax(floor(low[1] + EDGE_PX), 0);
    const double x1 = fmin(ceil(high[0] - EDGE_PX), g->w), y1 = fmin(ceil(high[1] - EDGE_PX), g->h);

    if (!(x1 > x0 && y1 > y0))
        return outside(b, item, named, scene);
    *out = (struct pb_rect){(int32_t)x0, (int32_t)y0, (int32_t)(x1 - x0), (int32_t)(y1 - y0)};
    return 0;
}

/* The pixels of the area that was found for the step. */
static int by_area(const struct pb_crop *crop, int32_t grid, struct pb_builder *b,
                   struct pb_rect *out)
{
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    const struct pb_geometry g = pb_builder_geometry(b, grid);
    const struct pb_item *const item = crop->bounds.items;
    struct pb_area area;

    if (g.frame != 0 && crop->polygons != NULL)
        return pb_builder_wrong(b, &crop->polygons,
                                "the rectangle around polygons is of the scene's own grid: crop "
                                "before the warp, or give the warp its bounds");
    if (g.frame != 0)
        return pb_builder_wrong(b, &crop->crs,
                                "bounds in another system are of the scene's own grid: crop before "
                                "the warp, or leave 'crs' out and give bounds in the system that "
                                "the bands were warped to");
    if (scene->area == NULL || !scene->area(scene->area_of, crop, &area) || isnan(g.map.scale_x))
        return pb_builder_mistake(
            b, PB_DIAG_GRID, item, 0,
            "the band has no known position, so %s%.80s cannot be applied; give a window in pixels",
            crop->polygons != NULL ? "polygons" : "bounds in ",
            crop->polygons != NULL ? "" : crop->crs);
    if (area.none)
        return outside(b, item, area.has_both ? area.named : NULL, area.scene);
    const double low[2] = {area.left * g.map.scale_x + g.map.offset_x,
                           area.top * g.map.scale_y + g.map.offset_y};
    const double high[2] = {area.right * g.map.scale_x + g.map.offset_x,
                            area.bottom * g.map.scale_y + g.map.offset_y};
    return between(low, high, &g, item, area.has_both ? area.named : NULL, area.scene, b, out);
}

static int by_bounds(const struct pb_crop *crop, int32_t grid, struct pb_builder *b,
                     struct pb_rect *out)
{
    const struct pb_geometry g = pb_builder_geometry(b, grid);
    const struct pb_item *const v = crop->bounds.items;
    const bool turned = crop->crs == NULL && crop->bounds.n == 4 && v[0].num >= v[2].num;
    double t[6], low[2], high[2], named[4], scene[4];

    if (crop->bounds.n != 4 || turned || v[0].num == v[2].num || v[1].num >= v[3].num)
        return pb_builder_mistake(b, PB_DIAG_VALUE, v, 0,
                                  "bounds are [west, south, east, north], west below east, "
                                  "south below north");
    for (size_t i = 0; i < 4; i++)
        named[i] = v[i].num;
    *out = (struct pb_rect){0, 0, g.w, g.h};
    if (pb_builder_scene(b)->assumed)
        return 0;
    if (crop->crs != NULL)
        return by_area(crop, grid, b, out);
    if (!pb_grid_args_transform(b, grid, t))
        return pb_builder_mistake(b, PB_DIAG_GRID, v, 0,
                                  "the band has no known geotransform, so bounds cannot be "
                                  "applied; give a window in pixels");
    around(t, v, low, high);
    bounds_of(&g, t, scene);
    return between(low, high, &g, v, named, scene, b, out);
}

static int by_polygons(const struct pb_crop *crop, int32_t grid, struct pb_builder *b,
                       struct pb_rect *out)
{
    const struct pb_geometry g = pb_builder_geometry(b, grid);

    *out = (struct pb_rect){0, 0, g.w, g.h};
    return pb_builder_scene(b)->assumed ? 0 : by_area(crop, grid, b, out);
}

/* x, where it lies in the polygons. They are a plane on the scene's grid, of which bands on another
 * one take the pixel under their centre. */
static pb_value cut(const struct pb_crop *crop, struct pb_builder *b, pb_value x, int32_t grid)
{
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    struct pb_area area;

    if (!pb_crop_cuts(crop) || scene->assumed || scene->area == NULL ||
        !scene->area(scene->area_of, crop, &area) || !area.has_cutline)
        return x;
    const pb_value inside =
        pb_builder_resample(b, PB_NEAREST, pb_builder_input(b, area.cutline), grid);
    return pb_builder_emit(b, PB_VM_WHERE, inside, x, pb_builder_constant(b, (float)NAN));
}

/* x on the part of its grid that the parameters name. */
static pb_value crop_one(const struct pb_crop *crop, struct pb_builder *b, pb_value x)
{
    const int32_t grid = pb_builder_grid(b, x);
    struct pb_rect rect;

    if (grid < 0)
        return x;
    if ((crop->window.n           ? by_window(&crop->window, grid, b, &rect)
         : crop->polygons != NULL ? by_polygons(crop, grid, b, &rect)
                                  : by_bounds(crop, grid, b, &rect)) < 0)
        return PB_VALUE_POISON;
    const struct pb_geometry whole = pb_builder_geometry(b, grid);
    const struct pb_geometry part = pb_grid_args_window(&whole, &rect);
    const int32_t to = pb_builder_add_grid(b, &part);
    return cut(crop, b, pb_builder_resample(b, PB_NEAREST, x, to), to);
}

/* Keys that say something about polygons alone. */
static int check_keys(const struct pb_crop *crop, struct pb_builder *b)
{
    if (crop->layer != NULL && crop->polygons == NULL)
        return pb_builder_wrong(b, &crop->layer, "'layer' is one of polygons: leave it out");
    if (crop->where.n > 0 && crop->polygons == NULL)
        return pb_builder_wrong(b, &crop->where, "'where' chooses among polygons: leave it out");
    if (crop->cutline == 1 && crop->polygons == NULL)
        return pb_builder_wrong(b, &crop->cutline,
                                "'cutline' is the outline of polygons: leave it out");
    if (crop->touched == 1 && !pb_crop_cuts(crop))
        return pb_builder_wrong(b, &crop->touched,
                                "'touched' is of a cutline: write cutline: true, or leave it out");
    return 0;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pb_crop *const crop = params;
    const size_t n = pb_band_list_count(&crop->bands, b);
    bool good = true;
    int rc = 0;

    if ((crop->window.n > 0) + (crop->bounds.n > 0) + (crop->polygons != NULL) != 1)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                  "give one of 'window', 'bounds' and 'polygons'");
    if (crop->crs != NULL && crop->bounds.n == 0)
        return pb_builder_wrong(b, &crop->crs, "'crs' is that of bounds: leave it out");
    if (check_keys(crop, b) < 0)
        return -EINVAL;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&crop->bands, b, i);
        const pb_value value = good ? crop_one(crop, b, pick.value) : PB_VALUE_POISON;

        good = good && (value != PB_VALUE_POISON || pick.value == PB_VALUE_POISON);
        rc = pb_builder_define(b, pick.out, value);
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"window",
     "N",
     true,
     {{"window",
       {{.text = "3", .num = 3},
        {.text = "2", .num = 2},
        {.text = "17", .num = 17},
        {.text = "11", .num = 11}}}}},
    {"one band",
     "R",
     true,
     {{"bounds",
       {{.text = "-10", .num = -10},
        {.text = "-10", .num = -10},
        {.text = "10", .num = 10},
        {.text = "10", .num = 10}}},
      {"bands", {{.text = "R"}}}}},
};

const struct pb_op pb_op_crop = {
    .name = "crop",
    .doc =
        {.summary = "cuts bands to a part of the scene",
         .formula = "v(x, y) = band(x + x0, y + y0)",
         .units = "those of the band",
         .nodata = "Valid where the band is, and with a cutline inside of the polygons.",
         .source = "The rule of gdal_translate -srcwin; bounds take every pixel that they touch.",
         .notes =
             "The steps after it see the part alone: focal operations meet their edge there, and "
             "the\n"
             "products have its size and place. Bounds that reach beyond the scene are cut to it. "
             "A\n"
             "scene outside of the bounds is skipped: its job is successful and has no products. "
             "A\n"
             "window that reaches beyond the scene is refused.\n"
             "\n"
             "Bounds with a crs become those of the rectangle around them in the scene's system;\n"
             "edges that are bent there are looked at in between, as by gdalwarp -te_srs.\n"
             "\n"
             "With cutline: true what is outside of the polygons becomes nodata, so a band of\n"
             "integers needs one. A pixel is inside by the rule of gdal_rasterize (an edge on\n"
             "centres belongs to one side alone), holes and overlaps by even-odd within a feature\n"
             "and by union among features. Bands on another grid than the scene's take the pixel\n"
             "of the scene's grid under their centre. The plane of the polygons is made by the "
             "host,\n"
             "also where a GPU computes.\n"
             "\n"
             "  - crop: {window: [1024, 2048, 512, 512]}\n"
             "  - crop: {bounds: [600000, 4090000, 620000, 4100000]}\n"
             "  - crop: {bounds: [7.1, 46.2, 7.4, 46.4], crs: EPSG:4326}\n"
             "  - crop: {polygons: fields.geojson}\n"
             "  - crop: {polygons: fields.gpkg, where: \"crop = 'maize'\", cutline: true}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pb_crop),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
