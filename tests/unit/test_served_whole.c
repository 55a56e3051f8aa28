/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Whole runs whose scene is decoded and computed by another process, with the host in place of its
 * GPU: the products are those of the CPU. */
#include "run_fixture.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/engine.h"
#include "pipeline/device/device.h"
#include "run_suite.h"
#include "served_session.h"
#include "whole_host.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <ogr_srs_api.h>

enum { WIDTH = 500, HEIGHT = 300 };

/* --- the scene -------------------------------------------------------------------------------- */

static void put_band(GDALRasterBandH band, int (*value)(int x, int y))
{
    uint8_t row[WIDTH];
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++)
            row[x] = (uint8_t)value(x, y);
        ck_assert_int_eq(
            GDALRasterIO(band, GF_Write, 0, y, WIDTH, 1, row, WIDTH, 1, GDT_Byte, 0, 0), CE_None);
    }
}

static int smooth(int x, int y)
{
    return x / 4 + y / 8;
}

static int speckled(int x, int y)
{
    return (int)((unsigned)(y * WIDTH + x) * 2654435761u >> 31) * 7 + x / 100;
}

static int inside(int x, int y)
{
    return (x - 250) * (x - 250) + (y - 150) * (y - 150) < 140 * 140 ? 255 : 0;
}

/* Writes the scene: 10 m of UTM zone 33, tiles of 64 x 64 pixels. */
static void write_scene(bool has_mask)
{
    const double place[6] = {399960, 10, 0, 5300040, 0, -10};
    char **options = CSLSetNameValue(NULL, "TILED", "YES");
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    options = CSLSetNameValue(options, "BLOCKXSIZE", "64");
    options = CSLSetNameValue(options, "BLOCKYSIZE", "64");
    options = CSLSetNameValue(options, "COMPRESS", "DEFLATE");
    GDALDatasetH ds =
        GDALCreate(GDALGetDriverByName("GTiff"), input, WIDTH, HEIGHT, 2, GDT_Byte, options);
    CSLDestroy(options);
    ck_assert_ptr_nonnull(ds);
    ck_assert_int_eq(OSRImportFromEPSG(crs, 32633), OGRERR_NONE);
    GDALSetSpatialRef(ds, crs);
    OSRDestroySpatialReference(crs);
    GDALSetGeoTransform(ds, (double *)(uintptr_t)place);
    put_band(GDALGetRasterBand(ds, 1), smooth);
    put_band(GDALGetRasterBand(ds, 2), speckled);
    if (has_mask) {
        CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
        ck_assert_int_eq(GDALCreateDatasetMaskBand(ds, GMF_PER_DATASET), CE_None);
        put_band(GDALGetMaskBand(GDALGetRasterBand(ds, 1)), inside);
    }
    GDALClose(ds);
}

/* --- the other side, in this process ---------------------------------------------------------- */

static const struct pb_device_traits gpu = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448},
                                            .memory_bytes = UINT64_C(1) << 36};
static struct pb_served_job kept;
static int sessions;
static enum pb_raw_mask mask; /* kind of the scene's mask, in the last pass that reads it */

static int open_session(void *user, const struct pb_plan *pass,
                        const struct pb_served_request *request, const struct pb_served_tail *tail,
                        struct pb_err *err, struct pb_remote_session *out)
{
    const struct pb_plan_request base = {.config = config,
                                         .pipeline = pb_config_pipeline(config, "p"),
                                         .cuda = true,
                                         .traits = &gpu,
                                         .whole_device = &whole_host_device};
    (void)user;
    ck_assert_msg(pass->engine.whole.used, "%s", pass->engine.whole.why_not);
    ck_assert(!pass->engine.whole.all_by_host && pass->engine.whole.host_why == NULL);
    if (pass->work.source[0].n_bands > 0)
        mask = pass->engine.whole.how[0].mask;
    int rc = served_session_open(&base, pass, request, tail, &kept, err, out);
    sessions += rc == 0;
    return rc;
}

static const struct pb_remote owner = {.device = "cuda:0",
                                       .traits = &gpu,
                                       .open = open_session,
                                       .wait = served_session_wait,
                                       .close = served_session_close};

/* --- runs ------------------------------------------------------------------------------------- */

static bool found_nothing; /* the run before has a note that no pixel is valid */

static void run_into(const char *directory, const struct pb_remote *remote)
{
    struct pb_run_result result;
    struct pb_run *run = run_published(directory, remote, &result);
    ck_assert_str_eq(result.report.device, remote != NULL ? "cuda:0" : "cpu");
    found_nothing = false;
    for (size_t i = 0; i < result.notes->n; i++)
        found_nothing =
            found_nothing || strstr(result.notes->text[i], "no pixel of the products") != NULL;
    pb_run_destroy(run);
}

/* Compares the products of the CPU with those of the other process. least: sessions there. */
static void expect_same_products(const char *steps, int least)
{
    char here[128], there[128], command[2000];
    config_use_steps(", codecs: device", steps);
    sessions = 0;
    whole_host.streams = 0;
    snprintf(here, sizeof here, "%s/here", root);
    snprintf(there, sizeof there, "%s/there", root);
    run_into(here, NULL);
    const bool nothing = found_nothing;
    run_into(there, &owner);
    ck_assert(found_nothing == nothing);
    pb_served_job_end(&kept);
    snprintf(command, sizeof command,
             "cd %s && find . -name '*.tif' | sort > %s/names && cd %s && find . -name '*.tif' | "
             "sort | cmp - %s/names && test -s %s/names && while read -r f; do cmp \"$f\" "
             "\"%s/$f\" || exit 1; done < %s/names && rm -r %s %s",
             here, root, there, root, root, here, root, here, there);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_ge(sessions, least);
    ck_assert_int_ge(whole_host.streams, 4);
}

START_TEST(warped_scene_is_decoded_there)
{
    static const char *const method[] = {"nearest", "bilinear", "cubic",
                                         "lanczos", "average",  "mode"};
    write_scene(false);
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++) {
        char steps[300];
        snprintf(steps, sizeof steps,
                 "      - math: {bands: {S: 'A + B'}}\n"
                 "      - warp: {crs: 'EPSG:3857', pixel: 12, method: %s}\n",
                 method[i]);
        expect_same_products(steps, 1);
    }
}
END_TEST

START_TEST(every_pass_of_a_warp_is_decoded_there)
{
    write_scene(false);
    expect_same_products("      - warp: {crs: 'EPSG:4326', method: cubic}\n"
                         "      - stretch: {bands: [A, B]}\n"
                         "      - warp: {crs: 'EPSG:3857', pixel: 12}\n"
                         "      - math: {bands: {S: 'A + B'}}\n",
                         2);
}
END_TEST

/* The corner of the scene is outside of its mask, and the products are made there. */
START_TEST(warp_without_a_valid_pixel_has_a_note)
{
    write_scene(true);
    expect_same_products("      - math: {bands: {S: 'A + B'}}\n"
                         "      - crop: {window: [0, 0, 90, 60]}\n"
                         "      - warp: {crs: 'EPSG:3857', pixel: 12}\n",
                         1);
    ck_assert(found_nothing);
    expect_same_products("      - math: {bands: {S: 'A + B'}}\n"
                         "      - crop: {window: [0, 0, 250, 150]}\n"
                         "      - warp: {crs: 'EPSG:3857', pixel: 12}\n",
                         1);
    ck_assert(!found_nothing);
}
END_TEST

/* Tiles without a valid pixel have no products. */
START_TEST(tiles_of_a_grid_are_decoded_there)
{
    write_scene(false);
    expect_same_products("      - math: {bands: {S: 'A + B'}}\n"
                         "      - warp: {grid: web-mercator, zoom: 13, size: 256}\n",
                         2);
    /* Each tile begins with the pass that finds the numbers. */
    expect_same_products("      - stretch: {bands: [A]}\n"
                         "      - math: {bands: {S: 'A + B'}}\n"
                         "      - warp: {grid: web-mercator, zoom: 13, size: 256}\n",
                         4);
}
END_TEST

/* --- masks, and planes of the host ------------------------------------------------------------ */

START_TEST(mask_of_its_own_is_decoded_there)
{
    write_scene(true);
    expect_same_products("      - convolve: {kernel: gaussian, size: 5, bands: {S: B}}\n", 1);
    ck_assert_int_eq(mask, PB_RAW_MASK_BLOCKS);
    expect_same_products("      - math: {bands: {S: 'A + B'}}\n"
                         "      - warp: {crs: 'EPSG:3857', pixel: 12, method: bilinear}\n",
                         1);
}
END_TEST

START_TEST(scene_of_a_sieved_band_is_decoded_there)
{
    write_scene(false);
    expect_same_products("      - sieve: {bands: [B], size: 9}\n"
                         "      - math: {bands: {S: 'A + B'}}\n",
                         2);
}
END_TEST

START_TEST(scene_that_polygons_cut_is_decoded_there)
{
    char path[160], steps[300];
    snprintf(path, sizeof path, "%s/area.geojson", root);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("{\"type\": \"Polygon\", \"coordinates\": [[[13.68, 47.824], [13.71, 47.826], "
          "[13.70, 47.843], [13.68, 47.824]]]}",
          file);
    ck_assert_int_eq(fclose(file), 0);
    write_scene(false);
    snprintf(steps, sizeof steps,
             "      - crop: {polygons: '%s', cutline: true}\n"
             "      - median: {bands: {S: A}}\n",
             path);
    expect_same_products(steps, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("served_whole");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, warped_scene_is_decoded_there);
    tcase_add_test(tc, every_pass_of_a_warp_is_decoded_there);
    tcase_add_test(tc, warp_without_a_valid_pixel_has_a_note);
    tcase_add_test(tc, tiles_of_a_grid_are_decoded_there);
    tcase_add_test(tc, mask_of_its_own_is_decoded_there);
    tcase_add_test(tc, scene_of_a_sieved_band_is_decoded_there);
    tcase_add_test(tc, scene_that_polygons_cut_is_decoded_there);
    suite_add_tcase(suite, tc);
    pb_raster_init();
    return run_suite(suite);
}
