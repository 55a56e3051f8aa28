/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Polygons of GeoJSON whose coordinates threads read, against those that GDAL reads: the same bits,
 * or the same error. */
#include "config/base/err.h"
#include "config/limits_config.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/raster/raster.h"

#include "run_suite.h"

#include <gdal.h>
#include <math.h>
#include <ogr_srs_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/pb_test_shapes_XXXXXX";
static char file[300], image[300];
static struct pb_raster *scene;
static uint32_t state;

static const struct pb_limits limits = {.max_pixels = 1 << 20,
                                        .max_block_bytes = 1 << 20,
                                        .max_side_px = 1 << 20,
                                        .max_bands = 4,
                                        .max_directories = 4};

static void setup(void)
{
    double transform[6] = {500000, 10, 0, 5001000, 0, -10};
    struct pb_err err = {0};
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/f.geojson", folder);
    (void)snprintf(image, sizeof image, "%s/scene.tif", folder);
    pb_raster_init();
    GDALAllRegister();
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), image, 100, 100, 1, GDT_Byte, NULL);
    ck_assert_int_eq(OSRImportFromEPSG(srs, 32633), OGRERR_NONE);
    ck_assert_int_eq(GDALSetSpatialRef(to, srs), CE_None);
    ck_assert_int_eq(GDALSetGeoTransform(to, transform), CE_None);
    OSRDestroySpatialReference(srs);
    GDALClose(to);
    ck_assert_msg(pb_raster_open(image, &limits, &err, &scene) == 0, "%s", err.msg);
}

static void teardown(void)
{
    pb_raster_close(scene);
    ck_assert_int_eq(unlink(file) | unlink(image) | rmdir(folder), 0);
}

static int below(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

/* --- comparison ------------------------------------------------------------------------------- */

static void check_polygons(const struct pb_polygons *a, const struct pb_polygons *b)
{
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->n_rings, b->n_rings);
    ck_assert_uint_eq(a->n_vertices, b->n_vertices);
    ck_assert(a->is_split == b->is_split && a->moved == b->moved);
    ck_assert_uint_eq(a->n_left_out, b->n_left_out);
    for (size_t i = 0; i < a->n; i++) {
        const struct pb_polygon *x = &a->polygon[i], *y = &b->polygon[i];
        ck_assert_int_eq(x->fid, y->fid);
        ck_assert_uint_eq(x->n_rings, y->n_rings);
        ck_assert(x->n_rings == 0 || x->first_ring == y->first_ring);
        ck_assert_int_eq(x->is_beyond, y->is_beyond);
        ck_assert(x->values[0].text == NULL ? y->values[0].text == NULL
                                            : strcmp(x->values[0].text, y->values[0].text) == 0);
    }
    for (size_t i = 0; i < a->n_rings; i++) {
        ck_assert_uint_eq(a->ring[i].first, b->ring[i].first);
        ck_assert_uint_eq(a->ring[i].n, b->ring[i].n);
        ck_assert_int_eq(a->ring[i].is_open, b->ring[i].is_open);
        if (i > 0)
            ck_assert((a->ring[i].part == a->ring[i - 1].part) ==
                      (b->ring[i].part == b->ring[i - 1].part));
    }
    ck_assert_mem_eq(a->xy, b->xy, a->n_vertices * sizeof *a->xy);
}

/* Reads the text by threads and by GDAL. Returns true if it is read. */
static bool check_text(const char *text, uint32_t threads)
{
    static const char *const fields[] = {"name"};
    struct pb_err err[2] = {{0}, {0}};
    struct pb_polygons *polygons[2] = {NULL, NULL};
    struct pb_vector_request request = {
        .path = file, .fields = fields, .n_fields = 1, .tolerance = 0.01, .threads = threads};
    FILE *to = fopen(file, "w");
    ck_assert(to != NULL && fputs(text, to) >= 0 && fclose(to) == 0);
    const int rc = pb_vector_read(&request, scene, &err[0], &polygons[0]);
    request.threads = 0;
    ck_assert_msg(pb_vector_read(&request, scene, &err[1], &polygons[1]) == rc, "%s: '%s', '%s'",
                  text, err[0].msg, err[1].msg);
    ck_assert_str_eq(err[0].msg, err[1].msg);
    if (rc == 0) {
        check_polygons(polygons[0], polygons[1]);
        ck_assert_uint_eq(polygons[0]->wkb_bytes, polygons[1]->wkb_bytes);
    }
    pb_polygons_free(polygons[0]);
    pb_polygons_free(polygons[1]);
    return rc == 0;
}

/* --- random files ----------------------------------------------------------------------------- */

static char *text_at;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_at += vsprintf(text_at, format, args);
    va_end(args);
}

static void put_space(void)
{
    static const char *const spaces[] = {"", "", "", " ", "\n  ", "\t", "\r\n"};
    put("%s", spaces[below(7)]);
}

static void put_number(double value)
{
    static const char *const formats[] = {"%.0f",  "%.1f",  "%.2f", "%.7f",  "%.12f",
                                          "%.15g", "%.17g", "%.3e", "%.16E", "%.20f"};
    put_space();
    put(formats[below(10)], value);
    put_space();
}

static void put_ring(bool degrees, double x, double y)
{
    const int n = 3 + below(6);
    const bool has_z = below(4) == 0;
    put("[");
    for (int i = 0; i <= n; i++) {
        const double a = 6.283185307179586 * (i % n) / n, r = degrees ? 0.001 : 40;
        put("%s[", i > 0 ? "," : "");
        put_number(x + r * sin(a) * (1 + 0.1 * below(3)));
        put(",");
        put_number(y + r * cos(a));
        if (has_z)
            put(",%d.5", below(100));
        put("]");
        put_space();
    }
    put("]");
}

static void put_polygon(bool degrees)
{
    const double x = degrees ? 15 + 0.0001 * below(100) : 500000 + below(1000);
    const double y = degrees ? 45.15 + 0.0001 * below(100) : 5000000 + below(1000);
    put("[");
    for (int i = 0, n = 1 + (below(5) == 0); i < n; i++) {
        put("%s", i > 0 ? "," : "");
        put_ring(degrees, x, y);
    }
    put("]");
}

static void put_geometry(bool degrees)
{
    const bool is_multi = below(4) == 0, type_first = below(2) == 0;
    const char *type = is_multi ? "\"type\":\"MultiPolygon\"" : "\"type\" : \"Polygon\"";
    if (below(12) == 0) {
        put("null");
        return;
    }
    if (below(12) == 0) {
        put("{\"type\":\"Point\",\"coordinates\":[1,2]}");
        return;
    }
    put("{%s\"coordinates\":", type_first ? "" : "\"bbox\":[1,2,3,4],");
    if (type_first)
        text_at -= strlen("\"coordinates\":"), put("%s,\"coordinates\":", type);
    put_space();
    put("%s", is_multi ? "[" : "");
    for (int i = 0, n = is_multi ? 1 + below(3) : 1; i < n; i++) {
        put("%s", i > 0 ? "," : "");
        put_polygon(degrees);
    }
    put("%s%s%s}", is_multi ? "]" : "", type_first ? "" : ",", type_first ? "" : type);
}

static void put_feature(bool degrees, int i)
{
    static const char *const names[] = {"\"a\"",           "\"]}\\\"[{,\"", "null",
                                        "\"\\u00e4\\\\\"", "\"geometry\"",  "\"\""};
    put("{\"type\":\"Feature\",");
    put_space();
    if (below(3) == 0)
        put("\"id\":%d,", 1000 + i);
    put("\"properties\":{\"name\":%s,\"more\":{\"geometry\":[1,{\"coordinates\":2}]}}",
        names[below(6)]);
    put_space();
    put(",\"geometry\":");
    put_geometry(degrees);
    put("}");
}

static void check_random(int seed)
{
    static char text[1 << 20];
    const bool degrees = seed % 2;
    const int n = seed % 5 == 0 ? 900 : 1 + seed % 30;
    state = (uint32_t)seed + 1;
    text_at = text;
    put("%s{\"type\":\"FeatureCollection\",", seed % 3 == 0 ? "\n " : "");
    if (!degrees)
        put("\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"EPSG:32633\"}},");
    put("\"features\":[");
    for (int i = 0; i < n && (size_t)(text_at - text) < sizeof text - 20000; i++) {
        put("%s", i > 0 ? ",\n" : "");
        put_feature(degrees, i);
    }
    put("]%s}\n", seed % 4 == 0 ? ",\"name\":\"x\"" : "");
    (void)check_text(text, 1 + (uint32_t)seed % 4);
}

/* A group of files in a process: to start it takes longer than to read them. */
enum { RANDOM = 60, RANDOM_GROUP = 15, DAMAGED = 150, DAMAGED_GROUP = 50 };

START_TEST(test_random_files_have_the_bits_of_gdal)
{
    for (int i = 0; i < RANDOM_GROUP; i++)
        check_random(_i * RANDOM_GROUP + i);
}
END_TEST

static void check_damaged(int seed)
{
    static const char signs[] = "[]{},:\"0123456789eE.-+\\ ntaf";
    static char text[1 << 16];
    state = (uint32_t)seed + 1000;
    text_at = text;
    put("{\"type\":\"FeatureCollection\",\"features\":[");
    for (int i = 0; i < 3; i++) {
        put("%s", i > 0 ? "," : "");
        put_feature(true, i);
    }
    put("]}");
    for (int i = 0, n = 1 + below(2); i < n; i++) {
        char *at = text + below((int)(text_at - text));
        const char sign = signs[below((int)sizeof signs - 1)];
        if (below(3) == 0)
            memmove(at, at + 1, (size_t)(text_at - at)); /* with the NUL */
        else
            *at = sign;
        text_at = text + strlen(text);
    }
    (void)check_text(text, 2);
}

START_TEST(test_damaged_files_are_read_as_by_gdal)
{
    for (int i = 0; i < DAMAGED_GROUP; i++)
        check_damaged(_i * DAMAGED_GROUP + i);
}
END_TEST

/* --- texts that are not as usual -------------------------------------------------------------- */

#define FEATURES(features) "{\"type\":\"FeatureCollection\",\"features\":[" features "]}"
#define FEATURE(geometry)                                                                          \
    "{\"type\":\"Feature\",\"properties\":{\"name\":1},\"geometry\":" geometry "}"
#define POLYGON(coordinates) "{\"type\":\"Polygon\",\"coordinates\":" coordinates "}"
#define SQUARE               "[[[15,45.15],[15.01,45.15],[15.01,45.16],[15,45.15]]]"

static const char *const odd[] = {
    FEATURES(FEATURE(POLYGON(SQUARE))),
    FEATURE(POLYGON(SQUARE)),
    POLYGON(SQUARE), /* without the field */
    FEATURES(FEATURE(POLYGON("[]"))),
    FEATURES(FEATURE(POLYGON("[[]]"))),
    FEATURES(FEATURE(POLYGON("[null]"))),
    FEATURES(FEATURE(POLYGON("null"))),
    FEATURES(FEATURE(POLYGON("3"))),
    FEATURES(FEATURE(POLYGON("[[[15,45.15],[15.01,45.15],\"x\"]]"))),
    FEATURES(FEATURE(POLYGON("[[[15],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[15,true],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[15,45.15,null],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[15,45.15,1,2,3],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[NaN,45.15],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[1e999,45.15],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[015,45.15],[15.01,45.15],[15.01,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[-0,45.15],[-0.0,45.15],[1e-400,45.16]]]"))),
    FEATURES(FEATURE(POLYGON("[[[99999999999999999999,4],[15.01,45.15],[1,4]]]"))),
    FEATURES(FEATURE(POLYGON("[[[15,45.15],[15.01,45.15],[15.01,45.16]]"))),
    FEATURES(FEATURE(POLYGON("[[[15,45.15],[15.01,45.15],,[15.01,45.16]]]"))),
    FEATURES(FEATURE("{\"type\":\"Polygon\"}")),
    FEATURES(FEATURE("{\"coordinates\":" SQUARE "}")),
    FEATURES(FEATURE("{\"type\":\"GeometryCollection\",\"geometries\":[" POLYGON(SQUARE) "]}")),
    FEATURES(FEATURE("{\"type\":\"Polygon\",\"coordinates\":" SQUARE
                     ",\"coordinates\":[[[16,45],[17,45],[17,46],[16,45]]]}")),
    FEATURES("{\"type\":\"Feature\",\"properties\":{\"name\":1},\"geometry\":null,"
             "\"geometry\":" POLYGON(SQUARE) "}"),
    FEATURES("{\"type\":\"Feature\",\"properties\":{\"name\":1},\"ge\\u006fmetry\":" POLYGON(
        SQUARE) "}"),
    FEATURES(FEATURE(POLYGON(SQUARE))) "x",
    FEATURES(FEATURE(POLYGON(SQUARE)) "," FEATURE("{\"type\":\"LineString\",\"coordinates\":"
                                                  "[[15,45],[16,45]]}")),
    FEATURES(FEATURE(POLYGON("[[[200,95],[201,95],[201,96],[200,95]]]")) "," FEATURE(
        POLYGON("[[[200,99],[201,95],[201,96],[200,95]]]"))),
    "",
    "{",
    "[" FEATURES(FEATURE(POLYGON(SQUARE))) "]",
};

START_TEST(test_odd_texts_are_read_as_by_gdal)
{
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const bool is_read = check_text(odd[i], 2);
        ck_assert(i > 0 || is_read);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vector_shapes");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_random_files_have_the_bits_of_gdal, 0, RANDOM / RANDOM_GROUP);
    tcase_add_loop_test(tests, test_damaged_files_are_read_as_by_gdal, 0, DAMAGED / DAMAGED_GROUP);
    tcase_add_test(tests, test_odd_texts_are_read_as_by_gdal);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
