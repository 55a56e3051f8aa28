/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: loops slow
 *
 * AVERAGE and MODE of a warp against areas that are computed another way: the polygon of a pixel's
 * four corners, joined across the seam of the world, is clipped to each pixel of the old grid. The
 * grids are of random places, sizes and systems on a sphere, with seams and poles in them. Pixels
 * that hold a pole, or the edge of a world map that is no rectangle, are compared with many samples
 * of the pixel, less closely. */
#include "tests/warp_cases.h"

enum { SAMPLES = 64 };

/* Columns around the world; 0: the old grid has no seam of that kind. */
static double period_of(const struct grid *g)
{
    const double columns = g->system == LONLAT     ? 360 / g->a
                           : g->system == MERCATOR ? 2 * 180 * RADIANS * RADIUS / g->a
                                                   : 0;

    return g->b != 0 ? 0 : floor(columns + 0.5);
}

/* --- areas ------------------------------------------------------------------------------------ */

struct polygon {
    double x[16], y[16];
    int n;
};

/* Returns the part of a polygon where sign * (x or y) <= sign * at. */
static struct polygon cut(const struct polygon *p, bool by_x, double sign, double at)
{
    struct polygon out = {.n = 0};

    for (int i = 0; i < p->n; i++) {
        const int k = (i + 1) % p->n;
        const double a = sign * ((by_x ? p->x[i] : p->y[i]) - at);
        const double b = sign * ((by_x ? p->x[k] : p->y[k]) - at);

        if (a <= 0) {
            out.x[out.n] = p->x[i];
            out.y[out.n++] = p->y[i];
        }
        if ((a < 0 && b > 0) || (a > 0 && b < 0)) {
            out.x[out.n] = p->x[i] + (p->x[k] - p->x[i]) * (a / (a - b));
            out.y[out.n++] = p->y[i] + (p->y[k] - p->y[i]) * (a / (a - b));
        }
    }
    return out;
}

static double area_of(const struct polygon *p)
{
    double twice = 0;

    for (int i = 0; i < p->n; i++) {
        const int k = (i + 1) % p->n;

        twice +=
            (p->x[i] - p->x[0]) * (p->y[k] - p->y[0]) - (p->x[k] - p->x[0]) * (p->y[i] - p->y[0]);
    }
    return fabs(twice) / 2;
}

static double area_in(const struct polygon *p, double x, double y)
{
    struct polygon in = cut(p, true, -1, x);

    in = cut(&in, true, 1, x + 1);
    in = cut(&in, false, -1, y);
    in = cut(&in, false, 1, y + 1);
    return area_of(&in);
}

/* The areas of the classes, and the mean; of what a pixel should be. */
struct want {
    double sum, total, area[CLASSES], whole;
};

static void add(struct want *want, float value, double area)
{
    if (isnan(value) || area <= 0)
        return;
    want->sum += area * (double)value;
    want->total += area;
    want->area[(int32_t)value % CLASSES] += area;
}

/* Adds the polygon of the corners, joined across the seam. */
static void add_polygon(const struct pb_resample_source *s, const struct polygon *p, double period,
                        struct want *want)
{
    double x0 = p->x[0], x1 = x0, y0 = p->y[0], y1 = y0;

    for (int i = 1; i < p->n; i++) {
        x0 = fmin(x0, p->x[i]);
        x1 = fmax(x1, p->x[i]);
        y0 = fmin(y0, p->y[i]);
        y1 = fmax(y1, p->y[i]);
    }
    want->whole = area_of(p);
    const double least = 1e-9 * fmin(want->whole, 1);
    for (double y = fmax(floor(y0), 0); y < fmin(y1, s->rect.h); y++)
        for (double x = floor(x0); x < x1; x++) {
            const double at = period > 0 ? floor(x - period * floor(x / period) + 0.5) : x;
            const double area = at >= 0 && at < s->rect.w ? area_in(p, x, y) : 0;

            if (area > least)
                add(want, s->data[(size_t)y * (size_t)s->rect.w + (size_t)at], area);
        }
}

/* Adds samples at many places in the pixel. */
static void add_samples(struct way *way, const struct pb_resample_source *s, int32_t column,
                        int32_t row, struct want *want)
{
    for (int i = 0; i < SAMPLES * SAMPLES; i++) {
        double x = column + (i % SAMPLES + 0.5) / SAMPLES, y = row + (i / SAMPLES + 0.5) / SAMPLES;

        points(way, 1, &x, &y);
        if (x >= 0 && y >= 0 && x < s->rect.w && y < s->rect.h)
            add(want, s->data[(size_t)y * (size_t)s->rect.w + (size_t)x], 1);
    }
}

/* --- comparison ------------------------------------------------------------------------------- */

struct tally {
    size_t exact, sampled, torn, valid, off;
};

/* Joins the corners; returns their way around the world. */
static double join(struct polygon *p, double period)
{
    double around = 0;

    for (int i = 0; i < 4; i++) {
        const int k = (i + 1) % 4;
        const double step = p->x[k] - p->x[i];

        around += step - period * floor(step / period + 0.5);
    }
    for (int i = 1; i < 4; i++) {
        const double step = p->x[i] - p->x[i - 1];

        p->x[i] = p->x[i - 1] + step - period * floor(step / period + 0.5);
    }
    return around;
}

/* Returns true if a pole is in the pixel, or at most a pixel away. */
static bool is_polar(const struct way *way, int32_t column, int32_t row)
{
    const struct grid *const g = &way->to;
    const double square = g->a * g->a + g->b * g->b;

    for (int pole = -1; pole <= 1; pole += 2) {
        double x, y;

        if (g->system == LONLAT || g->system == MERCATOR)
            continue;
        if ((g->system == NORTH && pole < 0) || (g->system == SOUTH && pole > 0))
            continue;
        forward(g, g->lon, pole * 90.0, &x, &y);
        const double u = x - g->x, v = y - g->y;
        const double col = (u * g->a + v * g->b) / square, line = (u * g->b - v * g->a) / square;
        if (fabs(col - column - 0.5) < 1.5 && fabs(line - row - 0.5) < 1.5)
            return true;
    }
    return false;
}

static bool differs(const struct pb_warp_job *job, const struct want *want, float got,
                    bool is_exact)
{
    const double mean = want->sum / want->total;

    if (want->total <= 1e-9 || isnan(got))
        return is_exact && (want->total > 1e-6 * fmin(want->whole, 1)) == (bool)isnan(got);
    if (job->how == PB_AVERAGE)
        return fabs((double)got - mean) > (is_exact ? 1e-6 * fabs(mean) : 0.2 * CLASSES);
    double most = 0;
    for (int i = 0; i < CLASSES; i++)
        most = fmax(most, want->area[i]);
    return want->area[(int32_t)got % CLASSES] < most - want->total * (is_exact ? 1e-7 : 0.6);
}

static void compare(struct way *way, const struct pb_warp_job *job,
                    const struct pb_resample_source *source, const float *made, struct tally *n)
{
    const double period = period_of(&way->from);

    for (int32_t k = 0; k < SIDE * SIDE; k++) {
        const int32_t column = k % SIDE, row = k / SIDE;
        struct polygon p = {.n = 4};
        struct want want = {.sum = 0};
        uint32_t first;
        bool is_there = true, is_exact = !is_polar(way, column, row);

        for (int i = 0; i < 4; i++) {
            const struct pb_warp_at at =
                pb_warp_corner(job, job->warp, column + (i == 1 || i == 2), row + (i > 1));

            p.x[i] = at.x;
            p.y[i] = at.y;
            is_there = is_there && !isnan(at.x);
        }
        const bool is_torn = pb_warp_tear(job->warp, column, row, &first) >= 0;
        if (!is_there) { /* pieces may be inside of a corner that has no place */
            n->off += !is_torn && !isnan(made[k]);
            continue;
        }
        if (period > 0)
            is_exact = is_exact && fabs(join(&p, period)) < 0.5;
        else
            is_exact = is_exact && !is_torn;
        if (is_exact)
            add_polygon(source, &p, period, &want);
        else
            add_samples(way, source, column, row, &want);
        n->exact += is_exact;
        n->sampled += !is_exact;
        n->torn += is_torn && is_exact;
        n->valid += !isnan(made[k]);
        if (differs(job, &want, made[k], is_exact)) {
            n->off++;
            if (n->off < 10)
                printf("%s, from system %d to %d, pixel %d %d, %s: %.9g; mean %.9g of %g, corners "
                       "%g %g, %g %g, %g %g, %g %g\n",
                       pb_resampling_name(job->how), way->from.system, way->to.system, column, row,
                       is_exact ? "exact" : "sampled", (double)made[k], want.sum / want.total,
                       want.total, p.x[0], p.y[0], p.x[1], p.y[1], p.x[2], p.y[2], p.x[3], p.y[3]);
        }
    }
}

static void run_case(uint32_t *random, struct tally *n)
{
    static float px[SOURCE_MOST * SOURCE_MOST], made[SIDE * SIDE];
    struct warp_case c = {.px = px};

    ck_assert_int_eq(make_case(random, &c), 0);
    const struct pb_resample_source source = {px, {0, 0, c.way.from.w, c.way.from.h}};
    for (int how = PB_AVERAGE; how <= PB_MODE; how++) {
        const struct pb_warp_job job = job_of_case(&c, (enum pb_resampling)how);

        ck_assert_int_eq(run_case_cpu(&c, &job, made), 0);
        for (int32_t k = 0; k < SIDE * SIDE; k++) {
            const float pixel = pb_warp_area_pixel(&job, &source, k % SIDE, k / SIDE, NULL);

            ck_assert_msg(memcmp(&pixel, &made[k], sizeof pixel) == 0, "pixel %d: %a and %a", k,
                          (double)made[k], (double)pixel);
        }
        compare(&c.way, &job, &source, made, n);
    }
    pb_warp_put(c.warp);
}

START_TEST(areas_equal_clipped_polygons)
{
    struct tally n = {0};
    uint32_t random = 20261128;

    for (int i = 0; i < CASES; i++)
        run_case(&random, &n);
    printf(
        "%zu pixels by polygons, %zu of them across a seam, %zu by samples; %zu valid, %zu off\n",
        n.exact, n.torn, n.sampled, n.valid, n.off);
    ck_assert_uint_eq(n.off, 0);
    ck_assert_uint_gt(n.torn, CASES / 2);
    ck_assert_uint_gt(n.valid, 50 * CASES);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("warp_area");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, areas_equal_clipped_polygons);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
