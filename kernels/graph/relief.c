/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The grid is found first at the mean height that the scene names, then from the lowest and the
 * highest ground of its area, which may make it larger and have other heights. Trees are made for
 * three heights from the lowest to the highest; for five or nine where positions between them are
 * off by more than PB_WARP_RELIEF_PX. */
#include "kernels/graph/relief.h"
#include "kernels/resample/warp_pixel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROWTHS_MOST 4    /* of the grid */
#define EDGE_PX      2    /* around a pixel's place: what bilinear reads */
#define SAMPLES      33   /* along an axis, at which positions between heights are measured */
#define MOVE_MORE    1.25 /* of what they move between the samples */

/* --- the area --------------------------------------------------------------------------------- */

/* A tree of the grid's pixels, on ground of one height. beyond_px: as of a pb_warp_want. */
static int make_tree(const struct pb_relief_ask *r, const struct pb_ground_ask *at,
                     double beyond_px, char *why, size_t bytes, struct pb_warp **out)
{
    struct pb_ground_way way = {0};
    int rc = r->finder->open(r->finder->of, at, why, bytes, &way);

    if (rc < 0)
        return rc;
    const struct pb_warp_want want = {.w = at->to_w,
                                      .h = at->to_h,
                                      .source_w = at->source_w,
                                      .source_h = at->source_h,
                                      .error_px = way.error_px,
                                      .beyond_px = beyond_px};
    rc = pb_warp_create(&want, r->finder->points, way.transform, out);
    r->finder->close(way.transform);
    free(way.ground.crs);
    return rc;
}

/* The way from the grid to that of the heights. */
static int open_heights(const struct pb_relief_ask *r, char *why, size_t bytes, struct pb_way *out)
{
    const struct pb_ground_ask at = {.crs = r->ask->crs,
                                     .source_w = r->w,
                                     .source_h = r->h,
                                     .part = {0, 0, r->w, r->h},
                                     .from = &out->heights_ground,
                                     .to = &out->ground,
                                     .to_w = out->w,
                                     .to_h = out->h};

    pb_warp_put(out->heights_warp);
    out->heights_warp = NULL;
    return make_tree(r, &at, 0, why, bytes, &out->heights_warp);
}

/* The heights that pixels of the grid may have, in whole metres. */
static int find_range(const struct pb_relief_ask *r, const struct pb_way *relief, char *why,
                      size_t bytes, double out[2])
{
    const struct pb_warp_box all = {0, 0, relief->w, relief->h};
    const struct pb_warp_box box = pb_warp_bounds(relief->heights_warp, &all);
    const double area[4] = {fmax(floor(box.x0) - EDGE_PX, 0), fmax(floor(box.y0) - EDGE_PX, 0),
                            fmin(ceil(box.x1) + EDGE_PX, r->w), fmin(ceil(box.y1) + EDGE_PX, r->h)};
    const bool meets = area[2] > area[0] && area[3] > area[1];
    const int rc =
        meets ? r->heights->range(r->heights->of, r->input, area, why, bytes, out) : -ENODATA;

    if (rc == -ENODATA) {
        (void)snprintf(why, bytes, "the heights have no valid pixel in the area of the scene");
        return -EINVAL;
    }
    out[0] = floor(out[0]);
    out[1] = fmax(ceil(out[1]), out[0] + 1);
    return rc;
}

/* --- the grid --------------------------------------------------------------------------------- */

static void extent_of(const struct pb_ground *ground, int32_t w, int32_t h, double out[4])
{
    const double *const t = ground->transform;

    out[0] = t[0];
    out[1] = t[3] + h * t[5];
    out[2] = t[0] + w * t[1];
    out[3] = t[3];
}

/* Sets the grid to what the finder makes of the ask. */
static int set_grid(const struct pb_relief_ask *r, const struct pb_ground_ask *ask, char *why,
                    size_t bytes, struct pb_way *out)
{
    struct pb_ground_way way = {0};
    const int rc = r->finder->open(r->finder->of, ask, why, bytes, &way);

    if (rc < 0)
        return rc;
    r->finder->close(way.transform);
    free(out->ground.crs);
    out->ground = way.ground;
    out->w = way.w;
    out->h = way.h;
    return 0;
}

/* Widens the extent by that of the scene on ground of that height. */
static int widen(const struct pb_relief_ask *r, double height, char *why, size_t bytes,
                 double extent[4])
{
    struct pb_ground_ask ask = *r->ask;
    struct pb_way at = {0};
    double own[4];

    ask.has_height = true;
    ask.height = height;
    const int rc = set_grid(r, &ask, why, bytes, &at);
    if (rc == 0) {
        extent_of(&at.ground, at.w, at.h, own);
        extent[0] = fmin(extent[0], own[0]);
        extent[1] = fmin(extent[1], own[1]);
        extent[2] = fmax(extent[2], own[2]);
        extent[3] = fmax(extent[3], own[3]);
    }
    pb_way_release(&at);
    return rc;
}

/* Makes the grid hold the scene on ground of both heights; *grew: it did not. */
static int grow_grid(const struct pb_relief_ask *r, const double range[2], char *why, size_t bytes,
                     struct pb_way *out, bool *grew)
{
    struct pb_ground_ask ask = *r->ask;
    const int32_t w = out->w, h = out->h;
    int rc = 0;

    ask.has_bounds = true;
    ask.pixel = out->ground.transform[1];
    extent_of(&out->ground, w, h, ask.bounds);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = widen(r, range[i], why, bytes, ask.bounds);
    rc = rc ? rc : set_grid(r, &ask, why, bytes, out);
    *grew = rc == 0 && (out->w != w || out->h != h);
    return rc;
}

static int find_grid(const struct pb_relief_ask *r, char *why, size_t bytes, struct pb_way *out,
                     double range[2])
{
    bool grew = true;
    int rc = set_grid(r, r->ask, why, bytes, out);

    for (int i = 0; i <= GROWTHS_MOST && grew && rc == 0; i++) {
        grew = false;
        rc = open_heights(r, why, bytes, out);
        rc = rc ? rc : find_range(r, out, why, bytes, range);
        if (rc == 0 && !r->ask->has_bounds && i < GROWTHS_MOST)
            rc = grow_grid(r, range, why, bytes, out, &grew);
    }
    return rc;
}

/* --- the scene -------------------------------------------------------------------------------- */

static struct pb_ground_ask ask_at(const struct pb_relief_ask *r, const struct pb_way *relief,
                                   double height)
{
    struct pb_ground_ask ask = *r->ask;

    ask.has_height = true;
    ask.height = height;
    ask.to = &relief->ground;
    ask.to_w = relief->w;
    ask.to_h = relief->h;
    return ask;
}

/* Positions of the middles of SAMPLES squares of a row of the grid. */
struct samples {
    double column[SAMPLES], x[SAMPLES], y[SAMPLES];
    double line;
};

static void sample_row(const struct pb_relief_ask *r, const struct pb_way *relief,
                       const struct pb_ground_way *way, int row, struct samples *out)
{
    out->line = relief->h * (row + 0.5) / SAMPLES;
    for (int i = 0; i < SAMPLES; i++) {
        out->column[i] = out->x[i] = relief->w * (i + 0.5) / SAMPLES;
        out->y[i] = out->line;
    }
    r->finder->points(way->transform, SAMPLES, out->x, out->y);
}

static void close_way(const struct pb_relief_ask *r, struct pb_ground_way *way)
{
    r->finder->close(way->transform);
    free(way->ground.crs);
}

/* Whether something between the two positions is on the scene. */
static bool is_between(const struct pb_relief_ask *r, double x0, double y0, double x1, double y1)
{
    return fmax(x0, x1) > -1 && fmax(y0, y1) > -1 && fmin(x0, x1) < r->ask->source_w + 1 &&
           fmin(y0, y1) < r->ask->source_h + 1;
}

/* The farthest that a place in the scene is from where it is on other ground. */
static int find_move(const struct pb_relief_ask *r, const double range[2], char *why, size_t bytes,
                     const struct pb_way *relief, double *most)
{
    struct pb_ground_way way[2] = {{0}, {0}};
    const struct pb_ground_ask low = ask_at(r, relief, range[0]),
                               high = ask_at(r, relief, range[1]);
    int rc = r->finder->open(r->finder->of, &low, why, bytes, &way[0]);

    if (rc < 0)
        return rc;
    rc = r->finder->open(r->finder->of, &high, why, bytes, &way[1]);
    *most = 0;
    for (int row = 0; row < SAMPLES && rc == 0; row++) {
        struct samples a, b;

        sample_row(r, relief, &way[0], row, &a);
        sample_row(r, relief, &way[1], row, &b);
        for (int i = 0; i < SAMPLES; i++) {
            const double move = fmax(fabs(b.x[i] - a.x[i]), fabs(b.y[i] - a.y[i]));

            if (isfinite(move) && is_between(r, a.x[i], a.y[i], b.x[i], b.y[i]))
                *most = fmax(*most, move);
        }
    }
    close_way(r, &way[0]);
    if (rc == 0)
        close_way(r, &way[1]);
    return rc;
}

/* Heights of the ground, and what they do to positions. */
struct range {
    double m[2];    /* the lowest and the highest */
    double move_px; /* from one to the other, at most */
};

/* Trees for n heights from the lowest to the highest. A place in the scene lies beyond it on ground
 * of other heights, where its positions are needed as well. */
static int make_levels(const struct pb_relief_ask *r, const struct range *range, uint32_t n,
                       char *why, size_t bytes, struct pb_way *out)
{
    const double step = (range->m[1] - range->m[0]) / (n - 1);
    struct pb_warp *level[PB_WARP_HEIGHTS_MOST] = {NULL};
    int rc = 0;

    pb_warp_put(out->warp);
    out->warp = NULL;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const struct pb_ground_ask at = ask_at(r, out, range->m[0] + i * step);

        rc = make_tree(r, &at, MOVE_MORE * range->move_px, why, bytes, &level[i]);
    }
    if (rc == 0)
        return pb_warp_stack(level, n, range->m[0], step, &out->warp);
    for (uint32_t i = 0; i < n; i++)
        pb_warp_put(level[i]);
    return rc;
}

static bool is_near(const struct pb_warp *warp, double x, double y)
{
    return x > -1 && y > -1 && x < warp->source_w + 1 && y < warp->source_h + 1;
}

/* The largest distance of positions on ground of that height from where they are. */
static int measure_at(const struct pb_relief_ask *r, double height, char *why, size_t bytes,
                      const struct pb_way *relief, double *most)
{
    const struct pb_ground_ask at = ask_at(r, relief, height);
    const struct pb_map same = pb_map_identity();
    const struct pb_warp_job job = {.warp = relief->warp, .to = same, .from = same};
    struct pb_ground_way way = {0};
    int rc = r->finder->open(r->finder->of, &at, why, bytes, &way);

    if (rc < 0)
        return rc;
    for (int row = 0; row < SAMPLES; row++) {
        struct samples s;

        sample_row(r, relief, &way, row, &s);
        for (int i = 0; i < SAMPLES; i++) {
            const struct pb_warp_at own =
                pb_warp_position(&job, s.column[i], s.line, (float)height);

            if (is_near(relief->warp, s.x[i], s.y[i]))
                *most = fmax(*most, isfinite(own.x) ? hypot(own.x - s.x[i], own.y - s.y[i])
                                                    : (double)INFINITY);
        }
    }
    close_way(r, &way);
    return 0;
}

/* Between the heights of trees, where a parabola is furthest off. */
static int measure(const struct pb_relief_ask *r, char *why, size_t bytes,
                   const struct pb_way *relief, double *most)
{
    const struct pb_warp *const w = relief->warp;
    int rc = 0;

    *most = 0;
    for (uint32_t i = 0; i + 1 < w->n_heights && rc == 0; i++)
        rc = measure_at(r, w->low + (i + 0.5) * w->step, why, bytes, relief, most);
    return rc;
}

/* What trees are off by already: their model's positions may be followed less closely. */
static double error_of(const struct pb_warp *warp)
{
    double most = warp->error_px;

    for (uint32_t i = 1; i < warp->n_heights; i++)
        most = fmax(most, warp->above[i - 1].error_px);
    return most;
}

static int open_scene(const struct pb_relief_ask *r, const double range[2], char *why, size_t bytes,
                      struct pb_way *out)
{
    double off_px = INFINITY, wanted_px = 0;
    struct range all = {.m = {range[0], range[1]}};
    int rc = find_move(r, range, why, bytes, out, &all.move_px);

    for (uint32_t n = 3; n <= PB_WARP_HEIGHTS_MOST && off_px > wanted_px && rc == 0;
         n = 2 * n - 1) {
        rc = make_levels(r, &all, n, why, bytes, out);
        rc = rc ? rc : measure(r, why, bytes, out, &off_px);
        wanted_px = rc == 0 ? fmax(PB_WARP_RELIEF_PX, 2 * error_of(out->warp)) : 0;
    }
    if (rc < 0 || off_px <= PB_WARP_ERROR_MOST)
        return rc;
    (void)snprintf(why, bytes,
                   "between heights of %.0f and %.0f m places in the scene follow no parabola: "
                   "they would be off by %.3g pixels; warp a smaller area",
                   range[0], range[1], off_px);
    return -EINVAL;
}

int pb_relief_open(const struct pb_relief_ask *ask, char *why, size_t why_bytes, struct pb_way *out)
{
    double range[2] = {0, 0};
    int rc;

    *out = (struct pb_way){.warp = NULL};
    rc = ask->heights->place(ask->heights->of, ask->input, why, why_bytes, &out->heights_ground);
    rc = rc ? rc : find_grid(ask, why, why_bytes, out, range);
    rc = rc ? rc : open_scene(ask, range, why, why_bytes, out);
    return rc;
}
