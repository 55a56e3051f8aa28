/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_CASES_H
#define PB_WARP_CASES_H
/* Random pairs of grids on a sphere, with seams, poles, and grids that are turned: for the tests of
 * areas on the CPU (unit/test_warp_area.c) and on a GPU (gpu/check_warp.c). */
#include "kernels/resample/warp_area.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>
#include <math.h>

#ifdef PB_SANITIZED
#define CASES 200 /* sanitizers learn nothing of more */
#else
#define CASES 2000
#endif

enum { SIDE = 11, SOURCE_MOST = 400, CLASSES = 7 };

#define RADIANS (3.14159265358979323846 / 180)
#define RADIUS  6371.0 /* km */

/* --- systems ---------------------------------------------------------------------------------- */

enum system { LONLAT, NORTH, SOUTH, OBLIQUE, MERCATOR, SINUSOIDAL, SATELLITE, SYSTEMS };

struct grid {
    enum system system;
    double lon, lat;   /* the middle of the system */
    double from;       /* LONLAT: where longitudes begin */
    double x, y, a, b; /* upper left corner; the size of a pixel, and how far the grid is turned */
    int32_t w, h;
};

static double wrapped(double lon, double from)
{
    return lon - 360 * floor((lon - from) / 360);
}

/* From degrees to coordinates; NaN if absent. */
static void forward(const struct grid *g, double lon, double lat, double *x, double *y)
{
    const double l = wrapped(lon - g->lon, -180) * RADIANS, p = lat * RADIANS;
    const double p0 = g->lat * RADIANS, c = sin(p0) * sin(p) + cos(p0) * cos(p) * cos(l);

    if (g->system == LONLAT) {
        *x = wrapped(lon, g->from);
        *y = lat;
    } else if (g->system == NORTH || g->system == SOUTH) {
        const double sign = g->system == NORTH ? 1 : -1;
        const double r = 2 * RADIUS * tan((90 - sign * lat) * RADIANS / 2);

        *x = r * sin(l);
        *y = -sign * r * cos(l);
    } else if (g->system == MERCATOR) {
        *x = RADIUS * l;
        *y = fabs(lat) < 89.999 ? RADIUS * log(tan(45 * RADIANS + p / 2)) : NAN;
    } else if (g->system == SINUSOIDAL) {
        *x = RADIUS * l * cos(p);
        *y = RADIUS * p;
    } else if (g->system == SATELLITE) {
        const double away = 6.6 - c;

        *x = c > 1 / 6.6 ? RADIUS * 5.6 * cos(p) * sin(l) / away : NAN;
        *y = c > 1 / 6.6 ? RADIUS * 5.6 * sin(p) / away : NAN;
    } else {
        const double k = RADIUS * sqrt(2 / (1 + c));

        *x = c > -0.9 ? k * cos(p) * sin(l) : NAN;
        *y = c > -0.9 ? k * (cos(p0) * sin(p) - sin(p0) * cos(p) * cos(l)) : NAN;
    }
}

static void inverse(const struct grid *g, double x, double y, double *lon, double *lat)
{
    const double r = hypot(x, y), p0 = g->lat * RADIANS;

    if (g->system == LONLAT) {
        *lon = x;
        *lat = fabs(y) <= 90 ? y : NAN;
    } else if (g->system == NORTH || g->system == SOUTH) {
        const double sign = g->system == NORTH ? 1 : -1;

        *lat = sign * (90 - 2 * atan(r / (2 * RADIUS)) / RADIANS);
        *lon = g->lon + atan2(x, -sign * y) / RADIANS;
    } else if (g->system == MERCATOR) {
        *lon = g->lon + x / RADIUS / RADIANS;
        *lat = 2 * atan(exp(y / RADIUS)) / RADIANS - 90;
    } else {
        const double c = 2 * asin(fmin(r / (2 * RADIUS), 1));
        const double s = r > 0 ? sin(c) / r : 1 / RADIUS;

        *lat = r <= 2 * RADIUS ? asin(cos(c) * sin(p0) + y * s * cos(p0)) / RADIANS : NAN;
        *lon = g->lon + atan2(x * s, cos(p0) * cos(c) - y * s * sin(p0)) / RADIANS;
    }
}

struct way {
    struct grid to, from; /* the new grid and the old one */
};

static void points(void *of, size_t n, double *x, double *y)
{
    const struct way *const way = of;
    const struct grid *const to = &way->to, *const from = &way->from;
    const double square = from->a * from->a + from->b * from->b;

    for (size_t i = 0; i < n; i++) {
        double lon, lat, u, v;

        inverse(to, to->x + x[i] * to->a + y[i] * to->b, to->y + x[i] * to->b - y[i] * to->a, &lon,
                &lat);
        lon = wrapped(lon, -180); /* range of PROJ */
        forward(from, lon, lat, &u, &v);
        u -= from->x;
        v -= from->y;
        x[i] = (u * from->a + v * from->b) / square;
        y[i] = (u * from->b - v * from->a) / square;
        if (isnan(x[i]) || isnan(y[i]))
            x[i] = y[i] = NAN;
    }
}

/* --- random grids ----------------------------------------------------------------------------- */

static double uniform(uint32_t *random, double low, double high)
{
    return (double)fx_uniform(random, (float)low, (float)high);
}

/* Turns a grid around its upper left corner. */
static void turn(struct grid *g, double degrees)
{
    const double size = g->a;

    g->a = size * cos(degrees * RADIANS);
    g->b = size * sin(degrees * RADIANS);
}

static struct grid random_source(uint32_t *random)
{
    static const double sizes[] = {1, 1.5, 2, 2.5, 4};
    struct grid g = {.system = fx_random(random) % SYSTEMS, .lat = 0};
    const double size = sizes[fx_random(random) % 5];

    g.lon = g.system == OBLIQUE || g.system == SATELLITE ? uniform(random, -180, 180) : 0;
    g.lat = g.system == OBLIQUE ? uniform(random, -80, 80) : 0;
    if (g.system == LONLAT) { /* a world from -180 or 0, or a part of it, which may be turned */
        const bool is_part = fx_random(random) % 3 == 0;

        g.from = fx_random(random) % 2 ? -180 : 0;
        g.a = size;
        g.x = g.from + (is_part ? size * floor(uniform(random, 0, 60) / size) : 0);
        g.y = is_part ? uniform(random, 20, 80) : 90;
        g.w = (int32_t)((is_part ? uniform(random, 60, 200) : 360) / size);
        g.h = (int32_t)((is_part ? 70 : 180) / size);
        if (is_part && fx_random(random) % 2)
            turn(&g, uniform(random, -40, 40));
        return g;
    }
    const double across = g.system == MERCATOR || g.system == SINUSOIDAL ? 180 * RADIANS * RADIUS
                          : g.system == SATELLITE                        ? 5800
                                                                         : 7000;
    const double down = g.system == SINUSOIDAL ? 90 * RADIANS * RADIUS
                        : g.system == MERCATOR ? 15000
                                               : across;

    g.w = 100 + (int32_t)(fx_random(random) % 200);
    g.a = 2 * across / g.w;
    g.h = (int32_t)(2 * down / g.a);
    g.x = -across;
    g.y = down;
    if (g.system < MERCATOR && fx_random(random) % 3 == 0)
        turn(&g, uniform(random, -30, 30));
    return g;
}

static struct grid random_target(uint32_t *random)
{
    static const enum system systems[] = {LONLAT, NORTH, SOUTH, OBLIQUE, MERCATOR};
    static const double seams[] = {-180, 0, 180, 90};
    struct grid g = {.system = systems[fx_random(random) % 5], .w = SIDE, .h = SIDE};
    const double near =
        fx_random(random) % 3 ? seams[fx_random(random) % 4] : uniform(random, -180, 180);
    const bool is_whole = fx_random(random) % 3 == 0; /* corners are on seams */
    double size;

    g.lon = g.system == LONLAT ? 0 : is_whole ? near : near + uniform(random, -5, 5);
    g.lat = g.system == OBLIQUE ? uniform(random, -75, 75) : 0;
    size = uniform(random, 0.3, 6) * (g.system == LONLAT ? 1 : 111);
    size = is_whole ? ceil(size) : size;
    g.a = size;
    g.x = (g.system == LONLAT ? near : 0) - SIDE / 2 * size;
    g.y = SIDE / 2 * size;
    if (g.system == LONLAT)
        g.y = fx_random(random) % 4 ? uniform(random, -50, 89) : 90;
    if (!is_whole && fx_random(random) % 2)
        turn(&g, uniform(random, -45, 45));
    if (!is_whole)
        g.x += uniform(random, -1, 1) * size;
    return g;
}

/* A pair of grids, the warp between them, and pixels of the old one. */
struct warp_case {
    struct way way;
    struct pb_warp *warp;
    float *px; /* SOURCE_MOST * SOURCE_MOST, the caller's */
};

static int make_case(uint32_t *random, struct warp_case *c)
{
    c->way = (struct way){random_target(random), random_source(random)};
    const struct pb_warp_want want = {.w = SIDE,
                                      .h = SIDE,
                                      .source_w = c->way.from.w,
                                      .source_h = c->way.from.h,
                                      .has_areas = true};

    for (int32_t i = 0; i < want.source_w * want.source_h; i++)
        c->px[i] =
            fx_random(random) % 12 ? (float)(CLASSES * 20 + fx_random(random) % CLASSES) : NAN;
    return pb_warp_create(&want, points, &c->way, &c->warp);
}

static struct pb_warp_job job_of_case(const struct warp_case *c, enum pb_resampling how)
{
    struct pb_warp_job job = {.how = how,
                              .warp = c->warp,
                              .to = pb_map_identity(),
                              .from = pb_map_identity(),
                              .source_w = c->way.from.w,
                              .source_h = c->way.from.h};

    pb_warp_job_scale(&job);
    return job;
}

/* made: SIDE * SIDE. 0 or -ENOMEM. */
static int run_case_cpu(const struct warp_case *c, const struct pb_warp_job *job, float *made)
{
    const struct pb_plane in = {c->px, {0, 0, c->way.from.w, c->way.from.h}};
    const struct pb_plane out = {made, {0, 0, SIDE, SIDE}};
    float *const temp = malloc(pb_warp_temp_px(job, SIDE) * sizeof *temp);

    if (temp == NULL)
        return -ENOMEM;
    pb_warp_run_cpu(job, &in, NULL, &out, temp);
    free(temp);
    return 0;
}
#endif
