/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Polygons to pixels, compared with GDALRasterizeGeometries: random ones with holes, vertices on
 * centres and edges of pixels, tiles of odd sizes. */
#include "pipeline/raster/polygon_scan.h"
#include "pipeline/raster/polygons.h"

#include "run_suite.h"

#include <check.h>
#include <gdal.h>
#include <gdal_alg.h>
#include <gdal_frmts.h>
#include <ogr_api.h>
#include <stdlib.h>
#include <string.h>

#define W            157
#define H            211
#define POLYGONS_MAX 12
#define VERTICES_MAX 2000

static struct pb_polygon polygon[POLYGONS_MAX];
static struct pb_ring ring[POLYGONS_MAX * 3];
static double xy[VERTICES_MAX][2];
static struct pb_polygons polygons = {.polygon = polygon, .ring = ring, .xy = xy};
static unsigned long long state;

static unsigned next_random(unsigned below)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % below;
}

static void clear(void)
{
    polygons.n = polygons.n_rings = polygons.n_vertices = 0;
}

static void add_polygon(void)
{
    polygon[polygons.n++] = (struct pb_polygon){.first_ring = polygons.n_rings};
}

static void add_ring(void)
{
    ring[polygons.n_rings++] = (struct pb_ring){.first = polygons.n_vertices};
    polygon[polygons.n - 1].n_rings++;
}

static void add_vertex(double x, double y)
{
    xy[polygons.n_vertices][0] = x;
    xy[polygons.n_vertices++][1] = y;
    ring[polygons.n_rings - 1].n++;
}

/* steps: coordinates are multiples of this part of a pixel; many are outside of the grid. */
static void make_random(unsigned steps, unsigned vertices)
{
    clear();
    for (unsigned p = 0, n = 1 + next_random(POLYGONS_MAX); p < n; p++) {
        add_polygon();
        for (unsigned r = 0, rings = 1 + next_random(3); r < rings; r++) {
            add_ring();
            for (unsigned v = 0; v < vertices; v++) {
                const double x = (double)next_random((W + 60) * steps) / steps - 30;
                add_vertex(x, (double)next_random((H + 60) * steps) / steps - 30);
            }
        }
    }
}

/* Draws the same polygons by GDAL. */
static void by_gdal(enum pb_scan_rule rule, uint32_t *out)
{
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("MEM"), "", W, H, 1, GDT_UInt32, NULL);
    char *touched[] = {(char *)(uintptr_t) "ALL_TOUCHED=TRUE", NULL};
    int band = 1;
    for (size_t p = 0; p < polygons.n; p++) {
        OGRGeometryH shape = OGR_G_CreateGeometry(wkbPolygon);
        double value = (double)(p + 1);
        for (size_t r = 0; r < polygon[p].n_rings; r++) {
            const struct pb_ring *from = &ring[polygon[p].first_ring + r];
            OGRGeometryH line = OGR_G_CreateGeometry(wkbLinearRing);
            for (size_t i = 0; i <= from->n; i++)
                OGR_G_AddPoint_2D(line, xy[from->first + i % from->n][0],
                                  xy[from->first + i % from->n][1]);
            OGR_G_AddGeometryDirectly(shape, line);
        }
        ck_assert_int_eq(GDALRasterizeGeometries(dataset, 1, &band, 1, &shape, NULL, NULL, &value,
                                                 rule == PB_SCAN_TOUCHED ? touched : NULL, NULL,
                                                 NULL),
                         CE_None);
        OGR_G_DestroyGeometry(shape);
    }
    ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(dataset, 1), GF_Read, 0, 0, W, H, out, W, H,
                                  GDT_UInt32, 0, 0),
                     CE_None);
    GDALClose(dataset);
}

static void by_tiles(enum pb_scan_rule rule, int32_t side, uint32_t *out)
{
    struct pb_polygon_scan *scan = pb_polygon_scan_create(&polygons, W, H, rule);
    ck_assert_ptr_nonnull(scan);
    void *scratch = malloc(pb_polygon_scan_scratch_bytes(scan));
    ck_assert_ptr_nonnull(scratch);
    memset(out, 0xaa, (size_t)W * H * sizeof *out);
    for (int32_t y = 0; y < H; y += side)
        for (int32_t x = 0; x < W; x += side) {
            const struct pb_rect rect = {x, y, x + side < W ? side : W - x,
                                         y + side < H ? side : H - y};
            uint32_t *at = out + (size_t)y * W + x, all = 0;
            pb_polygon_scan_zones(scan, &rect, scratch, at, W);
            for (int32_t k = 0; k < rect.w * rect.h; k++)
                all |= at[(size_t)(k / rect.w) * W + k % rect.w];
            ck_assert(all == 0 || pb_polygon_scan_meets(scan, &rect));
        }
    free(scratch);
    pb_polygon_scan_destroy(scan);
}

static void compare(enum pb_scan_rule rule, int32_t side, const char *what)
{
    static uint32_t theirs[W * H], ours[W * H];
    by_gdal(rule, theirs);
    by_tiles(rule, side, ours);
    size_t differ = 0, first = 0;
    for (size_t i = 0; i < W * H; i++)
        if (theirs[i] != ours[i] && differ++ == 0)
            first = i;
    ck_assert_msg(differ == 0, "%s: %zu pixels differ, the first at %zu, %zu: %u, GDAL has %u",
                  what, differ, first % W, first / W, ours[first], theirs[first]);
}

START_TEST(pixels_are_those_of_gdal)
{
    static const int32_t sides[] = {256, 64, 37, 16};
    for (unsigned i = 0; i < 60; i++) {
        state = i;
        make_random(1000003, 3 + i % 30);
        compare(PB_SCAN_CENTRES, sides[i % 4], "centres");
        make_random(2, 3 + i % 9); /* on edges and centres of pixels */
        compare(PB_SCAN_CENTRES, sides[i % 4], "centres, on the grid");
        make_random(1000003, 3 + i % 30);
        compare(PB_SCAN_TOUCHED, sides[i % 4], "touched");
    }
}
END_TEST

START_TEST(rectangle_adds_its_pixels_and_a_hole_removes_them)
{
    static uint32_t out[W * H];
    clear();
    add_polygon();
    add_ring();
    add_vertex(10, 20), add_vertex(30, 20), add_vertex(30, 60), add_vertex(10, 60);
    add_ring();
    add_vertex(12, 22), add_vertex(12, 24), add_vertex(15, 24), add_vertex(15, 22);
    add_polygon(); /* without rings */
    add_polygon();
    add_ring();
    add_vertex(25, 55), add_vertex(40, 55), add_vertex(40, 70), add_vertex(25, 70);
    by_tiles(PB_SCAN_CENTRES, 50, out);
    size_t n[4] = {0};
    for (size_t i = 0; i < W * H; i++)
        n[out[i]]++;
    ck_assert_uint_eq(n[1], 20 * 40 - 3 * 2 - 5 * 5);
    ck_assert_uint_eq(n[2], 0);
    ck_assert_uint_eq(n[3], 15 * 15);
    ck_assert_uint_eq(out[20 * W + 10], 1);
    ck_assert_uint_eq(out[22 * W + 12], 0);
}
END_TEST

/* Teeth over all rows: each edge crosses them all, and is in the scan once. */
START_TEST(comb_is_that_of_gdal_and_takes_memory_once_an_edge)
{
    enum { TEETH = VERTICES_MAX / 2 - 1 };
    clear();
    add_polygon();
    add_ring();
    for (unsigned i = 0; i < TEETH; i++) {
        add_vertex(W * (i + 0.25) / TEETH, -5);
        add_vertex(W * (i + 0.75) / TEETH, H - 0.75);
    }
    add_vertex(W, H + 5), add_vertex(0, H + 5);
    compare(PB_SCAN_CENTRES, 256, "comb");
    compare(PB_SCAN_TOUCHED, 37, "comb, touched");
    const size_t bytes = pb_polygon_scan_bytes(&polygons, W, 100 * H);
    ck_assert_uint_lt(bytes, 2 * TEETH * 42 + 4096 + (size_t)100 * H / 64 * 12);
    struct pb_polygon_scan *scan = pb_polygon_scan_create(&polygons, W, H, PB_SCAN_CENTRES);
    ck_assert_uint_lt(pb_polygon_scan_scratch_bytes(scan), 20000);
    pb_polygon_scan_destroy(scan);
}
END_TEST

START_TEST(coordinates_become_pixels)
{
    double bounds[4];
    const double transform[6] = {500000, 10, 0, 4000000, 0, -10};
    const double turned[6] = {100, 0, 2, 50, -4, 0};
    clear();
    ck_assert(!pb_polygons_bounds(&polygons, bounds));
    add_polygon();
    add_ring();
    add_vertex(500010, 3999980), add_vertex(500025, 3999980), add_vertex(500025, 3999900);
    ck_assert_int_eq(pb_polygons_to_pixels(&polygons, transform), 0);
    ck_assert(pb_polygons_bounds(&polygons, bounds));
    ck_assert(bounds[0] == 1 && bounds[1] == 2 && bounds[2] == 2.5 && bounds[3] == 10);
    xy[0][0] = 106, xy[0][1] = 30;
    ck_assert_int_eq(pb_polygons_to_pixels(&polygons, turned), 0);
    ck_assert(xy[0][0] == 5 && xy[0][1] == 3);
    ck_assert_int_lt(pb_polygons_to_pixels(&polygons, (double[6]){0, 1, 1, 0, 1, 1}), 0);
}
END_TEST

/* Boxes along borders of pixels, with the rounding of a transformation. */
START_TEST(test_touched_box_on_borders_is_its_pixels)
{
    static uint32_t out[W * H];
    for (unsigned i = 0; i < 40; i++) {
        state = i;
        const double w = 1 + next_random(40), h = 1 + next_random(40);
        const double x = next_random(100), y = next_random(150);
        clear();
        add_polygon();
        add_ring();
        add_vertex(x, y), add_vertex(x + w, y), add_vertex(x + w, y + h), add_vertex(x, y + h);
        compare(PB_SCAN_TOUCHED, 64, "box on borders");
        for (size_t k = 0; k < polygons.n_vertices; k++)
            for (int c = 0; c < 2; c++)
                xy[k][c] += ((int)next_random(2001) - 1000) * 1e-10;
        by_tiles(PB_SCAN_TOUCHED, 64, out);
        size_t n = 0;
        for (size_t k = 0; k < W * H; k++)
            n += out[k] != 0;
        ck_assert_uint_eq(n, (size_t)(w * h));
    }
}
END_TEST

/* Twice the area of a triangle in a pixel: the triangle cut by the four borders in turn. */
static double area_in_pixel(double (*triangle)[2], int32_t column, int32_t row)
{
    double own[8][2], cut[8][2], area = 0;
    int n = 3;
    memcpy(own, triangle, 3 * sizeof *own);
    for (int side = 0; side < 4; side++) {
        const int k = side / 2, sign = side % 2 ? -1 : 1;
        const double border = (k == 0 ? column : row) + side % 2;
        int m = 0;
        for (int i = 0; i < n; i++) {
            const double *a = own[i], *b = own[(i + 1) % n];
            const double da = (a[k] - border) * sign, db = (b[k] - border) * sign;
            if (da >= 0)
                memcpy(cut[m++], a, sizeof *cut);
            if ((da > 0 && db < 0) || (da < 0 && db > 0)) {
                cut[m][0] = a[0] + (b[0] - a[0]) * da / (da - db);
                cut[m++][1] = a[1] + (b[1] - a[1]) * da / (da - db);
            }
        }
        n = m;
        memcpy(own, cut, sizeof own);
    }
    for (int i = 0; i < n; i++)
        area += own[i][0] * own[(i + 1) % n][1] - own[(i + 1) % n][0] * own[i][1];
    return area < 0 ? -area : area;
}

static void add_random_corner(void)
{
    const double x = 10 + next_random(24);
    add_vertex(x, 10 + next_random(24));
}

/* Vertices are corners of pixels, therefore edges pass through many others. */
START_TEST(test_touched_pixels_share_area_with_the_polygon)
{
    static uint32_t out[W * H];
    for (unsigned i = 0; i < 60; i++) {
        state = i;
        clear();
        add_polygon();
        add_ring();
        for (int k = 0; k < 3; k++)
            add_random_corner();
        if ((xy[1][0] - xy[0][0]) * (xy[2][1] - xy[0][1]) ==
            (xy[2][0] - xy[0][0]) * (xy[1][1] - xy[0][1]))
            continue; /* a line */
        by_tiles(PB_SCAN_TOUCHED, 50, out);
        for (int32_t y = 0; y < 50; y++)
            for (int32_t x = 0; x < 50; x++)
                ck_assert_msg((out[y * W + x] != 0) == (area_in_pixel(xy, x, y) > 1e-6),
                              "triangle %u, pixel %d, %d", i, x, y);
    }
}
END_TEST

static void add_square(double x, double y, double side, uint32_t part)
{
    add_ring();
    ring[polygons.n_rings - 1].part = part;
    add_vertex(x, y), add_vertex(x + side, y);
    add_vertex(x + side, y + side), add_vertex(x, y + side);
}

static bool count_run(void *user, uint32_t number, int32_t x, int32_t y, int32_t n)
{
    uint32_t *out = user;
    ck_assert_uint_eq(number, 0);
    for (int32_t i = 0; i < n; i++)
        out[(size_t)y * W + (size_t)(x + i)]++;
    return true;
}

/* A hole is one of its part alone. */
START_TEST(test_parts_that_overlap_are_united)
{
    static uint32_t out[W * H], each[W * H], zones[W * H];
    const struct pb_rect all = {0, 0, W, H};
    clear();
    add_polygon();
    add_square(10, 10, 30, 1);
    add_square(20, 20, 10, 1);
    add_square(25, 25, 30, 2);
    add_square(100, 12, 8, 3);
    by_tiles(PB_SCAN_CENTRES, 37, out);
    struct pb_polygon_scan *scan = pb_polygon_scan_create(&polygons, W, H, PB_SCAN_CENTRES);
    void *scratch = malloc(pb_polygon_scan_scratch_bytes(scan));
    memset(each, 0, sizeof each);
    ck_assert(pb_polygon_scan_each(scan, &all, scratch, zones, count_run, each));
    size_t n = 0;
    for (size_t i = 0; i < W * H; i++) {
        n += out[i];
        ck_assert_uint_eq(each[i], out[i]);
    }
    ck_assert_uint_eq(n, 30 * 30 - 10 * 10 + 30 * 30 - 15 * 15 + 5 * 5 + 8 * 8);
    free(scratch);
    pb_polygon_scan_destroy(scan);
}
END_TEST

/* A square whose sides are three rings, and a ring of its own in another part. */
START_TEST(test_open_rings_close_each_other)
{
    static uint32_t out[W * H];
    clear();
    add_polygon();
    add_ring();
    add_vertex(50, 20), add_vertex(10, 20), add_vertex(10, 60), add_vertex(50, 60);
    ring[0].is_open = true;
    for (int i = 0; i < 2; i++) {
        add_ring();
        add_vertex(50, 20 + 20 * i), add_vertex(50, 40 + 20 * i);
        ring[1 + i].is_open = true;
    }
    add_square(100, 100, 10, 1);
    by_tiles(PB_SCAN_CENTRES, 64, out);
    size_t n = 0;
    for (size_t i = 0; i < W * H; i++)
        n += out[i];
    ck_assert_uint_eq(n, 40 * 40 + 10 * 10);
}
END_TEST

START_TEST(test_gap_is_between_both_edges)
{
    clear();
    ck_assert_int_eq(pb_polygons_gap(&polygons, W), 0);
    add_polygon();
    add_square(-10, 10, 20, 1);
    ck_assert_int_eq(pb_polygons_gap(&polygons, W), 0);
    add_square(W - 10, 10, 20, 2);
    ck_assert_int_eq(pb_polygons_gap(&polygons, W), 1);
    add_square(5, 10, W - 10, 3);
    ck_assert_int_eq(pb_polygons_gap(&polygons, W), 0);
}
END_TEST

int main(void)
{
    GDALRegister_MEM();
    Suite *suite = suite_create("polygon_scan");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, pixels_are_those_of_gdal);
    tcase_add_test(tc, rectangle_adds_its_pixels_and_a_hole_removes_them);
    tcase_add_test(tc, coordinates_become_pixels);
    tcase_add_test(tc, test_touched_box_on_borders_is_its_pixels);
    tcase_add_test(tc, test_touched_pixels_share_area_with_the_polygon);
    tcase_add_test(tc, test_parts_that_overlap_are_united);
    tcase_add_test(tc, test_open_rings_close_each_other);
    tcase_add_test(tc, test_gap_is_between_both_edges);
    tcase_add_test(tc, comb_is_that_of_gdal_and_takes_memory_once_an_edge);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
