/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * mosaic: one image of scenes that lie beside each other, on one grid. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/grid_args.h"
#include "kernels/expr/value_stack.h"
#include "kernels/focal/extreme_pixel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCENES_MAX      16
#define SIDE_MAX        (1 << 30)
#define WIDTH           32
#define FOCAL_RADIUS    (PB_FOCAL_WINDOW_SIDE_MAX / 2)
#define WHOLE_TOLERANCE 1e-6 /* pixels: corners that rounding keeps from being whole */

enum method { FIRST, LAST, MEAN, FEATHER, MIN, MAX };
enum extent { UNION, OF_FIRST };

struct mosaic {
    struct pb_items bands, of;
    char *like;
    int32_t method, extent, resampling, width;
    bool has_extent, has_width;
};

static const struct pb_key keys[] = {
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mosaic, method),
     .choices = "first|last|mean|feather|min|max",
     .def = "first",
     .doc = "Of scenes that overlap: the first or last one in `of`, the mean, the mean weighted "
            "by the distance to each scene's edge, the least or the greatest."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct mosaic, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to make, or {NEW: BAND}: BAND of a scene is the band of that name with the "
            "scene's ending."},
    {.name = "of",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct mosaic, of),
     .required = true,
     .doc = "The scenes, 1 to 16, by the endings of their bands' names."},
    {.name = "extent",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mosaic, extent),
     .more = offsetof(struct mosaic, has_extent),
     .choices = "union|first",
     .doc = "Extent of the mosaic, on pixels that continue those of the first scene in `of`: all "
            "scenes (default), or the first one."},
    {.name = "like",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct mosaic, like),
     .doc = "A band whose grid to take, in place of extent."},
    {.name = "resampling",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct mosaic, resampling),
     .choices = "nearest|bilinear|cubic|average|mode",
     .def = "nearest",
     .doc = "How pixels of one grid are made from those of another; pixels of grids that coincide "
            "are not changed."},
    {.name = "width",
     .type = PB_KEY_INT,
     .offset = offsetof(struct mosaic, width),
     .more = offsetof(struct mosaic, has_width),
     .min = 1,
     .max = 128,
     .doc = "Of feather: pixels from a scene's edge at which its weight is full; 32 unless given."},
};

/* A step while it is built. */
struct work {
    const struct mosaic *step;
    struct pb_builder *b;
    size_t n, n_bands;
    int32_t grid;
    pb_value *x;                 /* of scene i and band k at [i * n_bands + k], on the grid */
    pb_value valid[SCENES_MAX];  /* 1 where all bands of the scene are */
    pb_value weight[SCENES_MAX]; /* of feather */
};

static pb_value emit(struct work *w, enum pb_vm_op op, pb_value x, pb_value y, pb_value z)
{
    return pb_builder_emit(w->b, op, x, y, z);
}

static pb_value number(struct work *w, double v)
{
    return pb_builder_constant(w->b, (float)v);
}

/* --- where the scenes lie --------------------------------------------------------------------- */

/* Columns, or rows, of one grid that another one reaches over. */
struct reach {
    double low, high;
};

static void reach_over(struct reach *reach, double offset, double length)
{
    reach->low = fmin(reach->low, offset);
    reach->high = fmax(reach->high, offset + length);
}

static bool whole_reach(struct reach *reach)
{
    reach->low = floor(reach->low + WHOLE_TOLERANCE);
    reach->high = ceil(reach->high - WHOLE_TOLERANCE);
    return reach->high - reach->low <= SIDE_MAX && fabs(reach->low) <= SIDE_MAX;
}

/* The grid of the first band, grown to all of them; -1 after a report. A band that cannot be placed
 * is left out: it is reported when it is brought onto the grid. */
static int32_t union_grid(struct work *w, int32_t first)
{
    const struct pb_geometry own = pb_builder_geometry(w->b, first);
    struct reach columns = {0, own.w}, rows = {0, own.h};

    for (size_t i = 0; i < w->n * w->n_bands; i++) {
        const int32_t grid = w->x[i] == PB_VALUE_POISON ? -1 : pb_builder_grid(w->b, w->x[i]);
        if (grid < 0)
            continue;
        const struct pb_geometry other = pb_builder_geometry(w->b, grid);
        if (other.frame != own.frame)
            return pb_builder_mistake(w->b, PB_DIAG_GRID, &w->step->of.items[i / w->n_bands], 0,
                                      "scene '%.63s' has another coordinate system than the first "
                                      "one; warp all of them in one step, or give 'like' or "
                                      "extent: first",
                                      w->step->of.items[i / w->n_bands].text);
        const struct pb_map map = pb_map_between(&other.map, &own.map);
        if (isnan(map.scale_x))
            continue;
        reach_over(&columns, map.offset_x, other.w * map.scale_x);
        reach_over(&rows, map.offset_y, other.h * map.scale_y);
    }
    if (!whole_reach(&columns) || !whole_reach(&rows))
        return pb_builder_mistake(w->b, PB_DIAG_LIMIT, NULL, 0,
                                  "the scenes reach over %.0f x %.0f pixels; %d are allowed along "
                                  "an axis",
                                  columns.high - columns.low, rows.high - rows.low, SIDE_MAX);
    const struct pb_rect window = {(int32_t)columns.low, (int32_t)rows.low,
                                   (int32_t)(columns.high - columns.low),
                                   (int32_t)(rows.high - rows.low)};
    const struct pb_geometry to = pb_grid_args_window(&own, &window);
    return pb_builder_add_grid(w->b, &to);
}

/* -1: there is none, after a report or as the band it is of is poison. */
static int32_t find_grid(struct work *w)
{
    const struct mosaic *const step = w->step;
    const pb_value of = step->like ? pb_band_list_named(w->b, &step->like) : w->x[0];

    if (of == PB_VALUE_POISON)
        return -1;
    const int32_t grid = pb_builder_grid(w->b, of);
    if (grid < 0)
        return pb_builder_wrong(w->b, step->like ? (const void *)&step->like : &step->of,
                                "a band that is a constant has no grid");
    return step->like || step->extent == OF_FIRST ? grid : union_grid(w, grid);
}

static pb_value brought(struct work *w, pb_value x, const char *name)
{
    const struct pb_grid_method method = {.given = w->step->resampling, .has = true};
    const struct pb_band_pick pick = {.out = name, .value = x};

    return pb_builder_resample(w->b, pb_grid_args_how(&method, w->b, &pick, w->grid), x, w->grid);
}

/* Brings all bands onto the grid and finds where each scene has them. */
static void place(struct work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        pb_value all = -1;

        for (size_t k = 0; k < w->n_bands; k++) {
            pb_value *const x = &w->x[i * w->n_bands + k];

            *x = *x == PB_VALUE_POISON || w->grid < 0
                     ? PB_VALUE_POISON
                     : brought(w, *x, w->step->bands.items[k].text);
            all = k == 0 ? *x : emit(w, PB_VM_MIN, all, *x, -1);
        }
        w->valid[i] = emit(w, PB_VM_VALID, all, -1, -1);
    }
}

/* --- feather ---------------------------------------------------------------------------------- */

/* The least of all pixels up to so many columns and rows away. Outside of the image its edge is
 * repeated, which lies nearer. */
static pb_value least_within(struct work *w, pb_value x, int32_t pixels)
{
    struct pb_focal focal;

    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    focal.kind = PB_FOCAL_EXTREME;
    focal.choice = PB_EXTREME_LEAST;
    focal.edge = PB_EDGE_CLAMP;
    for (int32_t left = pixels; left > 0; left -= FOCAL_RADIUS) {
        focal.radius = left < FOCAL_RADIUS ? left : FOCAL_RADIUS;
        x = pb_builder_focal(w->b, &focal, x);
    }
    return x;
}

/* min(distance to the nearest pixel that is not valid, width), in columns or rows, whichever are
 * more. With d(p) the distance and D = min(d, r), the least of D within s <= r pixels is
 * max(0, min(d - s, r)): where that is not 0, s more is min(d, r + s). So the width is reached by
 * doubling, and tiles read width - 1 pixels beside theirs. */
static pb_value distance(struct work *w, pb_value valid)
{
    const int32_t width = w->step->has_width ? w->step->width : WIDTH;
    pb_value d = valid;

    for (int32_t reached = 1, more; reached < width; reached += more) {
        more = reached < width - reached ? reached : width - reached;
        const pb_value least = least_within(w, d, more);
        d = emit(w, PB_VM_WHERE, least, emit(w, PB_VM_ADD, least, number(w, more), -1), d);
    }
    return d;
}

static pb_value feathered(struct work *w, size_t k)
{
    pb_value sum = number(w, 0), weights = number(w, 0);

    for (size_t i = 0; i < w->n; i++) {
        const pb_value x =
            emit(w, PB_VM_WHERE, w->valid[i], w->x[i * w->n_bands + k], number(w, 0));

        sum = emit(w, PB_VM_ADD, sum, emit(w, PB_VM_MUL, x, w->weight[i], -1), -1);
        weights = emit(w, PB_VM_ADD, weights, w->weight[i], -1);
    }
    return emit(w, PB_VM_DIV, sum, weights, -1); /* 0 / 0 is invalid */
}

/* --- the step --------------------------------------------------------------------------------- */

static pb_value chosen(struct work *w, size_t k, bool last)
{
    pb_value result = number(w, NAN);

    for (size_t i = 0; i < w->n; i++) { /* the one that counts comes at the end */
        const size_t scene = last ? i : w->n - 1 - i;
        result = emit(w, PB_VM_WHERE, w->valid[scene], w->x[scene * w->n_bands + k], result);
    }
    return result;
}

static pb_value stacked(struct work *w, size_t k)
{
    static const enum pb_stack_measure measures[] = {
        [MEAN] = PB_STACK_MEAN, [MIN] = PB_STACK_MIN, [MAX] = PB_STACK_MAX};
    pb_value x[SCENES_MAX] = {0};

    for (size_t i = 0; i < w->n; i++)
        x[i] = emit(w, PB_VM_WHERE, w->valid[i], w->x[i * w->n_bands + k], number(w, NAN));
    return pb_value_stack(w->b, measures[w->step->method], 0, x, w->n);
}

static pb_value joined(struct work *w, size_t k)
{
    switch (w->step->method) {
    case FIRST:
    case LAST:
        return chosen(w, k, w->step->method == LAST);
    case FEATHER:
        return feathered(w, k);
    default:
        return stacked(w, k);
    }
}

static int define_all(struct work *w)
{
    const struct mosaic *const step = w->step;
    const struct pb_items *const bands = &step->bands;
    int rc = 0;

    for (size_t i = 0; i < w->n * w->n_bands; i++)
        w->x[i] = pb_band_list_ended(w->b, bands->items[i % w->n_bands].text,
                                     &step->of.items[i / w->n_bands],
                                     &step->of.items[i / w->n_bands], "scene");
    w->grid = find_grid(w);
    place(w);
    for (size_t i = 0; w->step->method == FEATHER && i < w->n; i++)
        w->weight[i] = distance(w, w->valid[i]);
    for (size_t k = 0; k < w->n_bands && rc == 0; k++)
        rc = pb_builder_define(w->b, pb_item_band(&bands->items[k]), joined(w, k));
    return rc;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct mosaic *const step = params;
    struct work w = {.step = step, .b = b, .n = step->of.n, .n_bands = step->bands.n};

    if (w.n > SCENES_MAX)
        return pb_builder_wrong(b, &step->of, "'of' names %zu scenes; at most %d are taken", w.n,
                                SCENES_MAX);
    if (step->has_width && step->method != FEATHER)
        return pb_builder_wrong(b, &step->width, "'width' belongs to method: feather");
    if (step->like && step->has_extent)
        return pb_builder_wrong(b, &step->like, "'like' and 'extent' exclude each other");
    if (w.n == 0 || w.n_bands == 0) /* reported by who read the step */
        return -EINVAL;
    w.x = calloc(w.n * w.n_bands, sizeof *w.x);
    const int rc = w.x ? define_all(&w) : -ENOMEM;
    free(w.x);
    return rc;
}

/* Of bands S1 and S2: two scenes with a band S. */
#define CASE(label_, method_, ...)                                                                 \
    {                                                                                              \
        .label = label_, .output = "X", .exact = true, .args = {                                   \
            {"method", {{.text = method_}}},                                                       \
            {"bands", {{.key = "X", .text = "S"}}},                                                \
            {"of", {{.text = "1"}, {.text = "2"}}},                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct pb_op_case cases[] = {
    CASE("the first of two", "first", {NULL, {{.text = NULL}}}),
    CASE("the last of two", "last", {NULL, {{.text = NULL}}}),
    CASE("mean of two", "mean", {NULL, {{.text = NULL}}}),
    CASE("two feathered", "feather", {"width", {{.text = "19", .num = 19}}}),
    CASE("the least of two", "min", {NULL, {{.text = NULL}}}),
};

const struct pb_op pb_op_mosaic = {
    .name = "mosaic",
    .doc =
        {
            .summary = "makes one image of neighbouring scenes",
            .formula =
                "Of the scenes that are valid at a pixel: first, last: the one that is first or "
                "last in `of`. mean, min, max: of all. feather: sum of w * v over sum of w, where "
                "w is min(d, width) and d the distance to the nearest pixel that is not valid in "
                "the scene, in columns or rows, whichever are more.",
            .units = "Those of the bands.",
            .nodata = "A scene is valid at a pixel where all bands of it are that the step makes, "
                      "and nowhere outside of it. The mosaic is invalid where no scene is valid.",
            .source = "gdal_merge.py has the rule of last, gdalbuildvrt its grid.",
            .notes =
                "The scenes are that of the pipeline's `input` and its sources in one coordinate "
                "system, or bands of\n"
                "one file: up to 16, of up to 6 different grids or types of pixels. Their bands "
                "share a name and differ in its ending: with of: [_1, _2], band R\n"
                "is made of R_1 and R_2; their order is that of `of`, and of input.order where "
                "input.files counts files (nth).\n"
                "Files of one scene need not share a pixel in a pipeline with this step. The grid "
                "continues the pixels of the first one.\n"
                "The edge of the mosaic itself lowers no weight of feather. Tiles read width - 1 "
                "pixels more on each\n"
                "side.\n"
                "\n"
                "  - mosaic: {bands: [R, G, B], of: [_west, _east]}\n"
                "  - mosaic: {method: feather, width: 64, bands: [R], of: [_1, _2, _3]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct mosaic),
    .joins = true,
    .keeps_tags = pb_op_keeps,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
