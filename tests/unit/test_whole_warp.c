/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads early */
/* Scenes whose blocks are decoded on a device, with the host in place of the GPU, before a step
 * that changes their coordinate system: the pixels and the products of the CPU, in this process and
 * through the process that owns the device. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/blocks.h"
#include "pipeline/tiles/tiles.h"
#include "run_suite.h"
#include "whole_late.h"

#include "whole_compare.h"

#include <cpl_string.h>
#include <gdal.h>
#include <ogr_srs_api.h>

#define LANDSAT REAL "real/landsat7_L7_ETMs_6band.tif"

/* A window of a convolution before the warp, and one of a median after it. */
static const char STEPS[] = "      - convolve: {kernel: gaussian, size: 5, bands: {OUT: B1}}\n"
                            "      - math: {bands: {SUM: \"B1 + B4\"}}\n"
                            "      - warp: {crs: \"EPSG:3857\", pixel: 31, method: %s,"
                            " bands: [OUT, SUM]}\n"
                            "      - median: {bands: {SUM: SUM}}\n";

static void compare_warp(const char *path, const char *steps)
{
    const int before = scenes;
    ck_assert_int_eq(compare(path, steps), 0);
    ck_assert_int_eq(scenes, before + 1);
}

/* With a sanitizer, which finds nothing in the others: every second method, and of the scenes in
 * bands the device that works later, whose accesses are those of one that works at once. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FIRST_METHOD = 1, EACH_METHOD = 2, FIRST_WAY = 2 };
#else
enum { FIRST_METHOD = 0, EACH_METHOD = 1, FIRST_WAY = 0 };
#endif

START_TEST(warped_scene_is_decoded_there)
{
    static const char *const method[] = {"nearest", "bilinear", "cubic",
                                         "lanczos", "average",  "mode"};
    for (size_t i = FIRST_METHOD; i < sizeof method / sizeof method[0]; i += EACH_METHOD) {
        char steps[600];
        (void)snprintf(steps, sizeof steps, STEPS, method[i]);
        compare_warp(LANDSAT, steps);
    }
    ck_assert_int_gt(whole_host.streams, 100);
}
END_TEST

/* --- tiles of a grid -------------------------------------------------------------------------- */

/* The host looks for a valid pixel in all planes of a tile, whose products the device makes. */
static void check_planes(const char *steps)
{
    ck_assert_int_eq(open_with(LANDSAT, steps, "      - cog: {bands: [OUT], blocksize: 64}\n"), 0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_uint_eq(plan->engine.out.by_device, 1);
    ck_assert_uint_eq(plan->engine.out.host_planes, (UINT64_C(1) << plan->work.outputs.n) - 1);
    pb_plan_destroy(plan);
    close_scene();
}

START_TEST(tiles_of_a_grid_are_decoded_there)
{
    static const char steps[] = "      - math: {bands: {OUT: \"B1 * 2\", SUM: B4}}\n"
                                "      - warp: {grid: web-mercator, zoom: 13, size: 256}\n";
    struct pb_tile_list list;
    struct pb_err err = {0};
    ck_assert_int_eq(open_scene(LANDSAT, steps), 0);
    ck_assert_msg(
        pb_tiles_find(pb_pipeline_tile_step(&config->pipelines[0]), raster, &err, &list) == 0, "%s",
        err.msg);
    close_scene();
    for (size_t i = 0; i < list.n; i++) {
        const int before = scenes;
        ground_tile = &list.tile[i];
        (void)compare(LANDSAT, steps);
        if (before == 0 && scenes > 0)
            check_planes(steps);
    }
    ground_tile = NULL;
    ck_assert_int_ge(scenes, 2); /* others are next to the scene */
    free(list.tile);
}
END_TEST

/* --- relief ----------------------------------------------------------------------------------- */

enum { SCENE_W = 300, SCENE_H = 220, LAND = 160 };

static bool is_one_strip; /* uncompressed, in place of tiles */

/* Writes a file of tiles of 64 pixels with values of hills. */
static GDALDatasetH write_hills(const char *path, int w, int h, GDALDataType type)
{
    char **options = NULL;
    float *row = calloc((size_t)w, sizeof *row);
    options = CSLSetNameValue(options, "TILED", "YES");
    options = CSLSetNameValue(options, "BLOCKXSIZE", "64");
    options = CSLSetNameValue(options, "BLOCKYSIZE", "64");
    options = CSLSetNameValue(options, "COMPRESS", "DEFLATE");
    if (is_one_strip) {
        char rows[20];
        (void)snprintf(rows, sizeof rows, "%d", h);
        CSLDestroy(options);
        options = CSLSetNameValue(NULL, "BLOCKYSIZE", rows);
    }
    GDALDatasetH ds = GDALCreate(GDALGetDriverByName("GTiff"), path, w, h, 1, type, options);
    CSLDestroy(options);
    ck_assert(ds != NULL && row != NULL);
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++)
            row[x] = (float)(120 + 60 * sin(x / 9.0) + 50 * cos(y / 13.0));
        ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(ds, 1), GF_Write, 0, y, w, 1, row, w, 1,
                                      GDT_Float32, 0, 0),
                         CE_None);
    }
    free(row);
    return ds;
}

/* A scene that polynomials of its metadata place, and the heights of the land below it. */
static void write_relief(const char *scene, const char *land)
{
    GDALDatasetH from = GDALOpen(REAL "real/odd/gdal_byte_rpc.tif", GA_ReadOnly);
    GDALDatasetH ds = write_hills(scene, SCENE_W, SCENE_H, GDT_Byte);
    ck_assert_ptr_nonnull(from);
    ck_assert_int_eq(GDALSetMetadata(ds, GDALGetMetadata(from, "RPC"), "RPC"), CE_None);
    GDALClose(from);
    GDALClose(ds);
    double place[6] = {147.17, 0.0001, 0, -42.78, 0, -0.0001};
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    ds = write_hills(land, LAND, LAND, GDT_Float32);
    ck_assert_int_eq(OSRImportFromEPSG(crs, 4326), OGRERR_NONE);
    GDALSetSpatialRef(ds, crs);
    GDALSetGeoTransform(ds, place);
    OSRDestroySpatialReference(crs);
    GDALClose(ds);
}

START_TEST(scene_on_relief_is_decoded_there)
{
    static const char *const method[] = {"bilinear", "mode"};
    char folder[] = "/tmp/pb-warp-XXXXXX", scene[100], land[100];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(scene, sizeof scene, "%s/scene.tif", folder);
    (void)snprintf(land, sizeof land, "%s/land.tif", folder);
    write_relief(scene, land);
    other_path = land;
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++) {
        char steps[400];
        (void)snprintf(steps, sizeof steps,
                       "      - math: {bands: {OUT: \"B1 * 2\", SUM: B1}}\n"
                       "      - warp: {crs: \"EPSG:32755\", from: rpc, dem: Q, pixel: 1,"
                       " method: %s, bands: [OUT, SUM]}\n",
                       method[i]);
        compare_warp(scene, steps);
    }
    other_path = NULL;
    (void)unlink(scene);
    (void)unlink(land);
    (void)rmdir(folder);
}
END_TEST

/* --- bands ------------------------------------------------------------------------------------ */

enum { LONG_H = 1600, STRIP_W = 3000 };

static uint64_t scene_bytes; /* memory that all of the scene takes on the device */

/* Plans with the least memory that the device can do with. Returns it; 0: all of the scene has to
 * be there. */
static uint64_t least_memory(void)
{
    uint64_t least = 0;
    for (uint64_t bytes = 1 << 26; bytes > 4096; bytes -= bytes / 16) {
        config->compute.device_memory_bytes = bytes;
        ck_assert_int_eq(make_plan(true), 0);
        const bool used = plan->engine.whole.used, cut = !plan->engine.whole.one_band;
        if (bytes == 1 << 26)
            scene_bytes = pb_plan_blocks_all(plan);
        pb_plan_destroy(plan);
        if (!used)
            break;
        least = cut ? bytes : 0;
    }
    return least;
}

/* Computes a long scene with this geotransform in so little memory that it is decoded in bands. All
 * ways have the pixels of the CPU: a device that works at once and one that works later, each in
 * this process and in another one. */
static void compare_bands(const double *place, const char *steps, bool may_be_cut)
{
    const int w = is_one_strip ? STRIP_W : SCENE_W;
    char folder[] = "/tmp/pb-bands-XXXXXX", scene[100];
    double transform[6];
    struct image cpu, whole;
    struct pb_err err = {0};
    memcpy(transform, place, sizeof transform);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(scene, sizeof scene, "%s/scene.tif", folder);
    GDALDatasetH ds = write_hills(scene, w, LONG_H, GDT_Float32);
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    ck_assert_int_eq(OSRImportFromEPSG(crs, 32632), OGRERR_NONE);
    GDALSetSpatialRef(ds, crs);
    GDALSetGeoTransform(ds, transform);
    OSRDestroySpatialReference(crs);
    GDALClose(ds);
    ck_assert_int_eq(open_scene(scene, steps), 0);
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_msg(run(&cpu, &err) == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    const uint64_t least = least_memory();
    ck_assert_int_eq(least > 0, may_be_cut);
    ck_assert_uint_lt(2 * least, scene_bytes);
    config->compute.device_memory_bytes = least;
    for (int way = FIRST_WAY; way < 4 && may_be_cut; way++) {
        by_another = way % 2 == 1;
        device_table = way < 2 ? &whole_host_device : &whole_late_device;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_msg(run(&whole, &err) == 0, "%s", err.msg);
        same(scene, &cpu, &whole);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    by_another = false;
    device_table = &whole_host_device;
    free(cpu.planes);
    close_scene();
    (void)unlink(scene);
    (void)rmdir(folder);
}

static const char WARP[] = "      - convolve: {kernel: gaussian, size: 5, bands: {OUT: B1}}\n"
                           "      - math: {bands: {SUM: \"B1 + OUT\"}}\n"
                           "      - warp: {crs: \"EPSG:3857\", method: %s}\n";

START_TEST(test_warped_scene_is_cut_into_bands)
{
    static const double north[6] = {300000, 20, 0, 5600000, 0, -20};
    static const double turned[6] = {500000, 19.7, 3.4, 5600000, 3.4, -19.7};
    static const char *const method[] = {"bilinear", "average"};
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++) {
        char steps[400];
        (void)snprintf(steps, sizeof steps, WARP, method[i]);
        compare_bands(north, steps, true);
        compare_bands(turned, steps, true);
    }
}
END_TEST

START_TEST(test_scene_of_other_pixels_is_cut_into_bands)
{
    static const double place[6] = {500000, 20, 0, 5600000, 0, -20};
    compare_bands(place,
                  "      - resample: {factor: 0.5, method: average, bands: {OUT: B1}}\n"
                  "      - math: {bands: {SUM: \"OUT * 2\"}}\n",
                  true);
    compare_bands(place,
                  "      - resample: {factor: 1.7, method: cubic, bands: {OUT: B1}}\n"
                  "      - median: {bands: {SUM: OUT}}\n",
                  true);
}
END_TEST

START_TEST(test_least_memory_of_bands_is_enough)
{
    static const double place[6] = {500000, 20, 0, 5600000, 0, -20};
    compare_bands(place, BLUR, true);
    compare_bands(place,
                  "      - crop: {window: [17, 77, 200, 1400], bands: {OUT: B1}}\n"
                  "      - math: {bands: {SUM: \"OUT * 2\"}}\n",
                  true);
}
END_TEST

/* GDAL reads rows of such a strip. */
START_TEST(test_scene_of_one_strip_is_cut_into_bands)
{
    static const double place[6] = {500000, 20, 0, 5600000, 0, -20};
    is_one_strip = true;
    compare_bands(place,
                  "      - resample: {factor: 0.5, method: nearest, bands: {OUT: B1}}\n"
                  "      - math: {bands: {SUM: \"OUT * 2\"}}\n",
                  true);
    is_one_strip = false;
}
END_TEST

START_TEST(test_scene_upside_down_is_not_cut)
{
    static const double place[6] = {500000, 20, 0, 5600000, 0, 20};
    char steps[400];
    (void)snprintf(steps, sizeof steps, WARP, "bilinear");
    compare_bands(place, steps, false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_warp");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, warped_scene_is_decoded_there);
    tcase_add_test(tc, tiles_of_a_grid_are_decoded_there);
    tcase_add_test(tc, scene_on_relief_is_decoded_there);
    tcase_add_test(tc, test_warped_scene_is_cut_into_bands);
    tcase_add_test(tc, test_scene_of_other_pixels_is_cut_into_bands);
    tcase_add_test(tc, test_least_memory_of_bands_is_enough);
    tcase_add_test(tc, test_scene_of_one_strip_is_cut_into_bands);
    tcase_add_test(tc, test_scene_upside_down_is_not_cut);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
