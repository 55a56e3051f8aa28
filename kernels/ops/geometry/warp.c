/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * warp: bands in another coordinate system. */
#include "kernels/ops/geometry/warp.h"
#include "kernels/expr/grid_args.h"

#include <string.h>

#define COORDINATE_MAX 1e12
#define HEIGHT_MAX     1e5

static const struct pb_key keys[] = {
    {.name = "crs",
     .type = PB_KEY_CRS,
     .offset = offsetof(struct pb_warp_op, crs),
     .doc = "The coordinate system of the new grid: EPSG:32633, or any other text that GDAL "
            "takes. This, or grid."},
    {.name = "grid",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_warp_op, grid),
     .def = "none",
     .choices = "none|mgrs|web-mercator",
     .doc = "A grid of tiles, each of which gets products of its own: the MGRS tiles that "
            "Sentinel-2 is delivered in, or the XYZ tiles of web maps (EPSG:3857)."},
    {.name = "tiles",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pb_warp_op, tiles),
     .doc = "The tiles: [32UQD, 33UUU] of mgrs, [10/550/335] (zoom/column/row) of web-mercator; "
            "default: all that the scene overlaps, 64 at most."},
    {.name = "zoom",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_warp_op, zoom),
     .more = offsetof(struct pb_warp_op, has_zoom),
     .min = 0,
     .max = PB_WEB_ZOOM_MAX,
     .doc = "Of web-mercator: the zoom whose pixels the tiles have, 156543.03 m / 2^zoom at the "
            "equator."},
    {.name = "size",
     .type = PB_KEY_POWER,
     .offset = offsetof(struct pb_warp_op, size),
     .more = offsetof(struct pb_warp_op, has_size),
     .min = 256,
     .max = 65536,
     .doc = "Of web-mercator: side of the tiles in pixels, 256 * 2^k; such a tile is the XYZ tile "
            "of zoom - k. 4096 unless given, or what zoom has."},
    {.name = "pixel",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_warp_op, pixel),
     .more = offsetof(struct pb_warp_op, has_pixel),
     .min = 1e-9,
     .max = 1e9,
     .doc = "Side of the new pixels in units of that system; as GDAL suggests it unless given."},
    {.name = "bounds",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct pb_warp_op, bounds),
     .min = -COORDINATE_MAX,
     .max = COORDINATE_MAX,
     .doc = "[west, south, east, north] of the new grid in that system; default: that of the "
            "scene, or of its crop. For a scene across 180 degrees it continues beyond 180 where x "
            "is a longitude or grows with it: in EPSG:4326 to 180.2, in EPSG:3857 to 20059772."},
    {.name = "align",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_warp_op, align),
     .def = "false",
     .choices = "false|true",
     .doc = "Whether the edges of the new grid become multiples of pixel, outwards."},
    {.name = "from",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_warp_op, from),
     .def = "auto",
     .choices = PB_GROUND_MODELS,
     .doc = "Model that places the scene's pixels: its geotransform; a polynomial or a thin-plate "
            "spline of its ground control points; its RPCs; orbit and times of Sentinel-1 GRD, "
            "from the annotation among input.metadata. auto: the first of transform, "
            "range-doppler, gcps and rpc that the scene has."},
    {.name = "order",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_warp_op, order),
     .more = offsetof(struct pb_warp_op, has_order),
     .min = 1,
     .max = 3,
     .doc = "Of from: gcps: the order of the polynomial, which takes 3, 6 or 10 points or more; "
            "2 from 6 points on unless given, else 1."},
    {.name = "height",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_warp_op, height),
     .more = offsetof(struct pb_warp_op, has_height),
     .min = -HEIGHT_MAX,
     .max = HEIGHT_MAX,
     .doc = "Of from: rpc and range-doppler: the height of all pixels, in metres above the "
            "ellipsoid; HEIGHT_OFF of the RPCs, or the mean of the annotation's tie points, unless "
            "given."},
    {.name = "dem",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_warp_op, dem),
     .doc = "With from: rpc or range-doppler, in place of height: a band of input.sources with the "
            "height of the ground, in metres above the ellipsoid, in any coordinate system; for a "
            "scene across 180 degrees its longitudes have to continue beyond 180 as well."},
    PB_KEY_METHOD_BY_BAND(struct pb_warp_op, "bilinear"),
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pb_warp_op, bands),
     .makes_bands = true,
     .doc = "Bands to replace, or {NEW: BAND}; all bands unless given."},
};

int32_t pb_warp_op_size(const struct pb_warp_op *warp)
{
    if (warp->has_size)
        return warp->size;
    return warp->zoom < 4 ? 256 << warp->zoom : 4096;
}

bool pb_warp_op_tile(const struct pb_warp_op *warp, const char *name, struct pb_ground_tile *out)
{
    return warp->grid == PB_TILING_MGRS ? pb_mgrs_tile(name, warp->pixel, out)
                                        : pb_web_tile(name, warp->zoom, pb_warp_op_size(warp), out);
}

static int check_mgrs(const struct pb_warp_op *warp, struct pb_builder *b)
{
    if (warp->has_zoom)
        return pb_builder_wrong(b, &warp->zoom, "'zoom' is one of web-mercator: leave it out");
    if (warp->has_size)
        return pb_builder_wrong(b, &warp->size, "'size' is one of web-mercator: leave it out");
    if (!warp->has_pixel)
        return pb_builder_wrong(b, &warp->grid, "tiles of mgrs need 'pixel': 10, 20 or 60");
    if (!pb_mgrs_pixel_fits(warp->pixel))
        return pb_builder_wrong(b, &warp->pixel,
                                "the %d m of a tile are no whole number of such pixels; 10, 20, 30 "
                                "and 60 fit",
                                PB_MGRS_METRES);
    return 0;
}

static int check_web(const struct pb_warp_op *warp, struct pb_builder *b)
{
    if (warp->has_pixel)
        return pb_builder_wrong(b, &warp->pixel,
                                "the pixels of web-mercator follow from 'zoom': leave 'pixel' out");
    if (!warp->has_zoom)
        return pb_builder_wrong(b, &warp->grid, "tiles of web-mercator need 'zoom'");
    if (pb_web_tile_zoom(warp->zoom, pb_warp_op_size(warp)) < 0)
        return pb_builder_wrong(b, &warp->size,
                                "a tile of %d pixels of zoom %d would be larger than the world; "
                                "%d at most",
                                warp->size, warp->zoom, 256 << warp->zoom);
    return 0;
}

static int check_names(const struct pb_warp_op *warp, struct pb_builder *b)
{
    const int32_t side = pb_warp_op_size(warp);
    struct pb_ground_tile tile, before;

    for (size_t i = 0; i < warp->tiles.n; i++) {
        const struct pb_item *const item = &warp->tiles.items[i];

        if (item->key != NULL)
            return pb_builder_mistake(b, PB_DIAG_VALUE, item, 0, "tiles are a list: [32UQD]");
        if (!pb_warp_op_tile(warp, item->text, &tile) && warp->grid == PB_TILING_MGRS)
            return pb_builder_mistake(b, PB_DIAG_VALUE, item, 0,
                                      "'%.40s' is no MGRS tile: zone, latitude band and square, "
                                      "as 32UQD",
                                      item->text);
        if (!pb_warp_op_tile(warp, item->text, &tile))
            return pb_builder_mistake(b, PB_DIAG_VALUE, item, 0,
                                      "'%.40s' is no tile of this grid: %d/column/row, as tiles of "
                                      "%d pixels of zoom %d are those of zoom %d",
                                      item->text, pb_web_tile_zoom(warp->zoom, side), side,
                                      warp->zoom, pb_web_tile_zoom(warp->zoom, side));
        for (size_t k = 0; k < i; k++)
            if (pb_warp_op_tile(warp, warp->tiles.items[k].text, &before) &&
                strcmp(before.id, tile.id) == 0)
                return pb_builder_mistake(b, PB_DIAG_VALUE, item, 0, "tile %.40s is named twice",
                                          item->text);
    }
    if (warp->tiles.n > PB_TILES_MAX)
        return pb_builder_mistake(b, PB_DIAG_VALUE, &warp->tiles.items[PB_TILES_MAX], 0,
                                  "more than %d tiles", PB_TILES_MAX);
    return 0;
}

/* The grid of the tile that is being made. */
static int ask_tile(const struct pb_warp_op *warp, struct pb_builder *b, struct pb_ground_ask *out)
{
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    int rc = warp->grid == PB_TILING_MGRS ? check_mgrs(warp, b) : check_web(warp, b);

    if (rc == 0 && warp->crs != NULL)
        rc = pb_builder_wrong(b, &warp->crs, "tiles have their coordinate system: leave 'crs' out");
    if (rc == 0 && warp->bounds.n > 0)
        rc = pb_builder_mistake(b, PB_DIAG_VALUE, warp->bounds.items, 0,
                                "tiles have their bounds: leave 'bounds' out, or name 'tiles'");
    if (rc == 0 && warp->align != 0)
        rc = pb_builder_wrong(b, &warp->align, "tiles have their edges: leave 'align' out");
    rc = rc ? rc : check_names(warp, b);
    if (rc == 0 && !pb_builder_tiles(b))
        rc = pb_builder_wrong(b, &warp->grid,
                              "a step before this one cuts the products into tiles already");
    *out = (struct pb_ground_ask){.crs = "EPSG:3857"};
    if (rc < 0 || scene->assumed)
        return rc;
    if (scene->tile == NULL)
        return pb_builder_mistake(b, PB_DIAG_GRID, NULL, 0,
                                  "the scene is not placed on the Earth, so its tiles are not "
                                  "known");
    *out = (struct pb_ground_ask){
        .crs = scene->tile->crs, .pixel = scene->tile->pixel, .has_bounds = true};
    memcpy(out->bounds, scene->tile->bounds, sizeof out->bounds);
    return 0;
}

static int ask_grid(const struct pb_warp_op *warp, struct pb_builder *b, struct pb_ground_ask *out)
{
    const struct pb_item *const v = warp->bounds.items;

    *out =
        (struct pb_ground_ask){.crs = warp->crs, .pixel = warp->pixel, .align = warp->align != 0};
    if (warp->crs == NULL)
        return pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                                  "give 'crs', the coordinate system of the new grid, or 'grid'");
    if (warp->tiles.n > 0)
        return pb_builder_mistake(b, PB_DIAG_VALUE, warp->tiles.items, 0,
                                  "'tiles' are those of a 'grid': mgrs or web-mercator");
    if (warp->has_zoom || warp->has_size)
        return pb_builder_wrong(b, warp->has_zoom ? &warp->zoom : &warp->size,
                                "it is one of grid: web-mercator");
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

static int make_ask(const struct pb_warp_op *warp, struct pb_builder *b, struct pb_ground_ask *out)
{
    const int rc = warp->grid != PB_TILING_NONE ? ask_tile(warp, b, out) : ask_grid(warp, b, out);

    if (rc < 0)
        return rc;
    if (warp->has_order && warp->from != PB_GROUND_GCPS)
        return pb_builder_wrong(b, &warp->order, "it is one of from: gcps");
    const bool by_height = pb_ground_of_height((enum pb_ground_model)warp->from) != NULL;
    if (warp->has_height && !by_height)
        return pb_builder_wrong(b, &warp->height, "it is one of from: rpc and range-doppler");
    if (warp->dem != NULL && !by_height)
        return pb_builder_wrong(b, &warp->dem, "it is one of from: rpc and range-doppler");
    if (warp->dem != NULL && warp->has_height)
        return pb_builder_wrong(b, &warp->height,
                                "the ground has the heights of 'dem': leave it out");
    out->model = (enum pb_ground_model)warp->from;
    /* Without a method, bands of classes may be made by mode. */
    out->has_areas = !warp->has_method || warp->method == PB_AVERAGE || warp->method == PB_MODE;
    out->order = warp->order;
    out->has_height = warp->has_height;
    out->height = warp->height;
    return 0;
}

/* The new grid for bands of one frame, made for the first of them. */
struct made {
    int32_t frame, grid; /* grid -1: after a report */
};

/* The heights of the ground are none of "all bands". */
static bool is_left_out(const struct pb_warp_op *warp, const struct pb_band_pick *pick)
{
    return pick->item == NULL && warp->dem != NULL && strcmp(pick->out, warp->dem) == 0;
}

/* The part of the old grid that holds all bands of the step that lie in its frame. */
static void find_part(const struct pb_warp_op *warp, struct pb_builder *b, int32_t frame,
                      struct pb_ground_ask *ask)
{
    const size_t n = pb_band_list_count(&warp->bands, b);
    const double none[4] = {INFINITY, INFINITY, -INFINITY, -INFINITY};

    memcpy(ask->part, none, sizeof none);
    for (size_t i = 0; i < n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&warp->bands, b, i);
        const int32_t grid = is_left_out(warp, &pick) ? -1 : pb_builder_grid(b, pick.value);
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

static int32_t make_grid(struct pb_builder *b, const struct pb_warp_op *warp,
                         const struct pb_ground_ask *ask, int32_t own)
{
    return warp->dem == NULL
               ? pb_builder_warp(b, ask, own)
               : pb_builder_warp_relief(b, ask, own, pb_band_list_named(b, &warp->dem), warp->dem);
}

static int32_t grid_for(struct pb_builder *b, const struct pb_warp_op *warp,
                        struct pb_ground_ask *ask, pb_value value, struct made *made, size_t *n)
{
    const int32_t own = pb_builder_grid(b, value);
    const int32_t frame = pb_builder_geometry(b, own).frame;

    for (size_t i = 0; i < *n; i++)
        if (made[i].frame == frame)
            return made[i].grid;
    if (*n == PB_SOURCES_MAX)
        return -1;
    find_part(warp, b, frame, ask);
    made[*n] = (struct made){frame, make_grid(b, warp, ask, own)};
    return made[(*n)++].grid;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pb_warp_op *const warp = params;
    const size_t n = pb_band_list_count(&warp->bands, b);
    const struct pb_grid_method method = {warp->method, warp->has_method, PB_BILINEAR};
    struct made made[PB_SOURCES_MAX];
    struct pb_ground_ask ask;
    size_t n_made = 0;
    int rc = make_ask(warp, b, &ask);

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&warp->bands, b, i);
        pb_value value = pick.value;

        if (is_left_out(warp, &pick))
            continue;
        if (pb_builder_grid(b, value) >= 0) {
            const int32_t to = grid_for(b, warp, &ask, value, made, &n_made);

            value =
                to < 0 ? PB_VALUE_POISON
                       : pb_builder_resample(b, pb_grid_args_how(&method, b, &pick, to), value, to);
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
    {"mode",
     "G",
     true,
     {{"crs", {{.text = "EPSG:3857"}}},
      {"method", {{.text = "mode"}}},
      {"bands", {{.text = "G"}}}}},
    {"nearest",
     "B",
     true,
     {{"crs", {{.text = "EPSG:3857"}}},
      {"method", {{.text = "nearest"}}},
      {"bands", {{.text = "B"}}}}},
};

const struct pb_op pb_op_warp = {
    .name = "warp",
    .doc =
        {.summary = "brings bands into another coordinate system",
         .formula = "sum of w * v over sum of w, around the place of the pixel on the old grid",
         .units = "those of the band",
         .nodata = "Pixels without data count for nothing; with nearest, bilinear, cubic and "
                   "lanczos a pixel is valid where the old one at its centre is, with average and "
                   "mode where it covers one. Pixels outside of the scene, or where one of the "
                   "systems is not defined, are invalid.",
         .source = "The rules of gdalwarp; PROJ for the coordinates",
         .notes =
             "Extent and size of pixels are what gdalwarp takes, unless bounds and pixel are given "
             "(as\n"
             "its -te and -tr; align is -tap). Positions of pixels are interpolated between points "
             "that PROJ\n"
             "has computed, to 1/65536 of an old pixel; to 1/8 at most where that would take over "
             "64 MiB.\n"
             "Kernels are as wide as the new pixel when that is larger than the old one, in the\n"
             "mean over the scene. gdalwarp divides the sizes of two windows instead: with\n"
             "-wo XSCALE and -wo YSCALE it makes these pixels, to 1e-5. average and mode weigh "
             "old\n"
             "pixels by the area that they share with the polygon of the new pixel's corners, "
             "split\n"
             "at 180 degrees and at poles; mode takes the value with the largest area. gdalwarp "
             "takes\n"
             "the rectangle around the corners. A pixel with a corner that has no place is "
             "invalid.\n"
             "All bands of a\n"
             "step get one grid.\n"
             "\n"
             "A scene without a geotransform is placed by its ground control points or its RPCs, "
             "as\n"
             "gdalwarp does: gcps is -order, tps is -tps (up to 1024 points, to 1/1024 pixel), rpc "
             "is\n"
             "-rpc. RPCs and range-doppler need the height of the ground: one for all pixels "
             "(height,\n"
             "else the mean that the model names, where gdalwarp takes 0), or of each pixel (dem). "
             "Where\n"
             "it is 100 m higher, an image that looks 20 degrees off the vertical shows it 36 m "
             "from\n"
             "its place. Beyond 1.5 times the longitudes and latitudes that RPCs are made for, a "
             "place\n"
             "is outside of the scene. The dry run and the report name the model that placed it.\n"
             "\n"
             "dem is a band of input.sources. Its value at the pixel's centre (at its corners, "
             "for\n"
             "average and mode) is bilinear and taken as it is, as gdalwarp -to RPC_DEM does. "
             "Models\n"
             "want heights above the ellipsoid; those of most DEMs are above the geoid, which is "
             "from\n"
             "107 m below it to 85 m above it: the source's offset adds that of the area. Where "
             "there is\n"
             "no height, there is no pixel. Positions are parabolas between those of three to "
             "nine\n"
             "heights that span the area's, off by 1/256 of an old pixel, or 1/8 at most. Without "
             "bounds\n"
             "the grid holds the scene on the lowest and the highest ground.\n"
             "\n"
             "range-doppler places an image of Sentinel-1 GRD by its orbit, the times of its lines "
             "and\n"
             "the polynomials between slant and ground range, all of its annotation "
             "(annotation/s1*.xml\n"
             "among input.metadata), as the terrain correction of SNAP does. Of 420 tie points in "
             "two\n"
             "real annotations it finds the lines to 0.004 and, by the polynomial that ESA takes "
             "for\n"
             "these points, the pixels to 0.00005. Between the times of two polynomials this step\n"
             "interpolates between both, ESA's points use the nearer one: 0.3 pixels in the mean, "
             "up to "
             "1.6\n"
             "where the terrain changes along the path. Positions are followed to 1/64 pixel. By "
             "from:\n"
             "gcps a polynomial misses the same tie points by 30 to 54 pixels in the mean square "
             "over\n"
             "mountains. Ground that is h higher than the height that is taken is shown h / "
             "tan(angle\n"
             "of incidence) nearer to the radar: for 100 m, 168 m at 31 degrees, 100 m at 45. "
             "Slopes "
             "that\n"
             "the radar sees turned over (layover) or not at all (shadow) are not masked.\n"
             "\n"
             "With grid, every tile gets a set of products, named <scene>_<tile>, and a STAC item "
             "of its\n"
             "own; all are published at once, in the job's directory. mgrs: Sentinel-2's tiles of\n"
             "109.8 km, named 32UQD, whose corners are those of its products; pixel is 10, 20 or "
             "60 m,\n"
             "or another that divides 109800. web-mercator: XYZ tiles (WebMercatorQuad). Without "
             "tiles:\n"
             "all that the scene's footprint touches; more than 64 are refused. A tile without a "
             "valid\n"
             "pixel has no products; the report lists it. One step of a pipeline may have a "
             "grid.\n"
             "\n"
             "  - warp: {crs: \"EPSG:32633\", pixel: 10, align: true}\n"
             "  - warp: {crs: \"EPSG:3857\", method: cubic, bands: [R, G, B]}\n"
             "  - warp: {crs: \"EPSG:4326\", pixel: 0.0001, bounds: [13.0, 52.3, 13.8, 52.7]}\n"
             "  - warp: {crs: \"EPSG:32740\", pixel: 10, from: gcps, order: 3}\n"
             "  - warp: {crs: \"EPSG:32755\", pixel: 0.5, from: rpc, height: 420}\n"
             "  - warp: {crs: \"EPSG:32633\", pixel: 10, from: range-doppler, height: 547}\n"
             "  - warp: {crs: \"EPSG:32755\", pixel: 0.5, from: rpc, dem: HEIGHT, method: cubic}\n"
             "  - warp: {grid: mgrs, pixel: 10, tiles: [32UQD]}\n"
             "  - warp: {grid: web-mercator, zoom: 14, size: 4096}\n"},
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pb_warp_op),
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
