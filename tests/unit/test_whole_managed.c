/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads early */
/* Planes in managed memory, with the host in place of the GPU: it checks that what is read or
 * written is on the device, and that no more is there than the plan allows. Its work is done at
 * once, or later, in queues. The pixels are those of the CPU. */
#include "pipeline/plan/engine.h"

#include "whole_late.h"

#include "whole_compare.h"

#include "run_suite.h"

#include <gdal.h>
#include <ogr_srs_api.h>

#include <cpl_conv.h>
#include <cpl_string.h>

#include <check.h>

enum { W = 520, H = 2000, BANDS = 4 };

static char scene[] = "/tmp/pb-managed-XXXXXX.tif";

/* Four planes of any numbers; the third one is 9 under clouds, and else 4. No tile below the row
 * `below` is free of clouds. */
static void make_scene(const char *interleave, int below)
{
    static uint16_t pixels[H * W];
    uint32_t seed = 7;
    double place[6] = {500000, 20, 0, 5600000, 0, -20};
    char *wkt = NULL, **options = CSLSetNameValue(NULL, "TILED", "YES");
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    options = CSLSetNameValue(options, "BLOCKXSIZE", "128");
    options = CSLSetNameValue(options, "BLOCKYSIZE", "128");
    options = CSLSetNameValue(options, "COMPRESS", "DEFLATE");
    options = CSLSetNameValue(options, "INTERLEAVE", interleave);
    GDALAllRegister();
    GDALDatasetH file = GDALCreate(GDALGetDriverByName("GTiff"), scene, W, H, BANDS, GDT_UInt16,
                                   (CSLConstList)options);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(OSRImportFromEPSG(crs, 32632), OGRERR_NONE);
    ck_assert_int_eq(OSRExportToWkt(crs, &wkt), OGRERR_NONE);
    ck_assert_int_eq(GDALSetProjection(file, wkt), CE_None);
    ck_assert_int_eq(GDALSetGeoTransform(file, place), CE_None);
    for (int b = 0; b < BANDS; b++) {
        for (size_t i = 0; i < H * W; i++) {
            const size_t x = i % W / 210, y = i / W / 160;
            seed = seed * 1103515245u + 12345u;
            const bool cloud = (x * 5 + y * 3) % 7 < 4 || i / W >= (size_t)below;
            pixels[i] = b == 2 ? (cloud ? 9 : 4) : (uint16_t)(1 + (seed >> 19));
        }
        ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(file, b + 1), GF_Write, 0, 0, W, H, pixels,
                                      W, H, GDT_UInt16, 0, 0),
                         CE_None);
    }
    GDALClose(file);
    OSRDestroySpatialReference(crs);
    CPLFree(wkt);
    CSLDestroy(options);
}

static const char ALL[] = "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                          "      - math: {bands: {SUM: \"B2 + B3 + B4\"}}\n";
static const char GATE[] = "      - gate: {keep: \"B3 < 8\"}\n"
                           "      - math: {bands: {OUT: \"B1 * 2\", SUM: \"B2 + B4\"}}\n";

/* Pass whose planes are managed; NULL if absent. */
static const struct pb_plan *managed_pass(void)
{
    for (size_t i = 0; i < plan->n_earlier; i++)
        if (plan->earlier[i]->engine.whole.managed)
            return plan->earlier[i];
    return plan->engine.whole.managed ? plan : NULL;
}

/* Least compute.device_memory for managed planes of the present scene. */
static uint64_t least_memory(void)
{
    config->compute.buffers = PB_BUFFERS_MANAGED;
    config->compute.device_memory_bytes = UINT64_C(1) << 32;
    ck_assert_int_eq(make_plan(true), 0);
    const struct pb_plan *pass = managed_pass();
    ck_assert_msg(pass != NULL, "%s", plan->engine.whole.why_not);
    uint64_t least = plan->engine.whole.managed ? plan->engine.whole.least_bytes : 0;
    for (size_t i = 0; i < plan->n_earlier; i++)
        if (plan->earlier[i]->engine.whole.least_bytes > least)
            least = plan->earlier[i]->engine.whole.least_bytes;
    pb_plan_destroy(plan);
    return least;
}

static int run_plan(struct image *image, struct pb_err *err)
{
    return plan->n_earlier > 0 ? run_all(image, err) : run(image, err);
}

static int n_ways = 6;

/* With a sanitizer, a device that works at once is left out where one that works later does the
 * same in the same process, or in the other one: it makes the same accesses in an order that is
 * easier. */
static bool is_left_out(int way)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return way == 0 || way == 2 || way == 3;
#else
    (void)way;
    return false;
#endif
}

/* Runs with managed planes in all of the memory, in the least, and in the least with a device that
 * works later: in this process, and in another one. */
static void compare_managed(const char *steps)
{
    struct image cpu = {.n = 0};
    struct pb_err err = {0};
    traits.managed = true;
    ck_assert_msg(open_scene(scene, steps) == 0, "%s", scene);
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_msg(run_plan(&cpu, &err) == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    const uint64_t least = least_memory();
    for (int way = 0; way < n_ways; way++) {
        struct image whole = {.n = 0};
        if (is_left_out(way))
            continue;
        by_another = way % 2 == 1;
        device_table = way < 4 ? &whole_host_device : &whole_late_device;
        whole_host.managed_most = 0;
        whole_host.moves = 0;
        config->compute.buffers = PB_BUFFERS_MANAGED;
        config->compute.device_memory_bytes = way < 2 ? UINT64_C(1) << 32 : least;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_msg(managed_pass() != NULL, "%s", plan->engine.whole.why_not);
        ck_assert_msg(run_plan(&whole, &err) == 0, "%s", err.msg);
        same(scene, &cpu, &whole);
        ck_assert_int_gt(whole_host.moves, 0);
        ck_assert_uint_gt(whole_host.managed_most, 0);
        if (way >= 2) {
            ck_assert_uint_le(whole_host.managed_most, least);
            ck_assert_uint_lt(2 * whole_host.managed_most, report.link.device.managed_bytes);
        }
        ck_assert_uint_eq(report.link.device.managed_most_bytes, whole_host.managed_most);
        ck_assert_int_eq(whole_host.opened, 0);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    by_another = false;
    device_table = &whole_host_device;
    free(cpu.planes);
    close_scene();
}

static void begin_below(const char *interleave, int below)
{
    static const char again[] = "/tmp/pb-managed-XXXXXX.tif";
    memcpy(scene, again, sizeof again);
    const int file = mkstemps(scene, 4);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    make_scene(interleave, below);
}

static void begin(const char *interleave)
{
    begin_below(interleave, H);
}

START_TEST(test_gate_reads_managed_planes)
{
    begin("BAND");
    compare_managed(GATE);
    compare_managed("      - gate: {keep: \"B3 < 8\", minimum: 0.4}\n"
                    "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                    "      - math: {bands: {SUM: \"B2 + B3 + B4\"}}\n");
    (void)unlink(scene);
}
END_TEST

/* The last groups are of tiles that are left out, and no tile waits for them. */
START_TEST(test_gate_leaves_the_last_rows_out)
{
    begin_below("BAND", 600);
    compare_managed(GATE);
    (void)unlink(scene);
}
END_TEST

START_TEST(test_rounds_read_managed_planes)
{
#ifdef __SANITIZE_THREAD__
    /* The sanitizer does not see that a round of the other process follows the results of the one
     * before, because the memory of their channels is mapped twice here. */
    n_ways = 5;
#endif
    begin("PIXEL");
    compare_managed("      - classify: {bands: [B1, B2, B4], classes: 4, rounds: 4, as: OUT}\n"
                    "      - math: {bands: {SUM: \"OUT + B3\"}}\n");
    (void)unlink(scene);
}
END_TEST

START_TEST(test_other_grid_reads_managed_planes)
{
    begin("PIXEL");
    compare_managed("      - resample: {factor: 0.5, method: average, bands: {OUT: B1, Q: B2}}\n"
                    "      - math: {bands: {SUM: \"Q + OUT\"}}\n");
    begin("BAND");
    compare_managed("      - crop: {window: [70, 33, 411, 1402], bands: [B1, B2, B3, B4]}\n"
                    "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                    "      - math: {bands: {SUM: \"B2 + B3 + B4\"}}\n");
    (void)unlink(scene);
}
END_TEST

START_TEST(test_warp_reads_managed_planes)
{
    begin("PIXEL");
    compare_managed("      - warp: {crs: \"EPSG:32631\", method: bilinear}\n"
                    "      - math: {bands: {OUT: \"B1 + B2\", SUM: \"B3 + B4\"}}\n");
    (void)unlink(scene);
}
END_TEST

START_TEST(test_bands_give_way_to_managed_planes)
{
    begin("PIXEL");
    compare_managed(ALL);
    (void)unlink(scene);
}
END_TEST

START_TEST(test_refused_blocks_are_decoded_into_planes)
{
    struct image cpu = {.n = 0}, whole = {.n = 0};
    struct pb_err err = {0};
    begin("PIXEL");
    traits.managed = true;
    ck_assert_int_eq(open_scene(scene, ALL), 0);
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_int_eq(run(&cpu, &err), 0);
    pb_plan_destroy(plan);
    config->compute.device_memory_bytes = least_memory();
    whole_host.refuse_each = 3;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_msg(run(&whole, &err) == 0, "%s", err.msg);
    ck_assert_int_gt(whole_host.refused, 0);
    same(scene, &cpu, &whole);
    whole_host.refuse_each = 0;
    pb_plan_destroy(plan);
    free(cpu.planes);
    free(whole.planes);
    close_scene();
    (void)unlink(scene);
}
END_TEST

/* All threads end, whichever of them waits for planes. */
START_TEST(test_lost_device_ends_the_waits)
{
    struct image image = {.n = 0};
    struct pb_err err = {0};
    begin("PIXEL");
    traits.managed = true;
    ck_assert_int_eq(open_scene(scene, ALL), 0);
    config->compute.device_memory_bytes = least_memory();
    for (int tile = 1; tile < 200; tile += 66) {
        whole_host.tiles = 0;
        whole_host.fail_tile = tile;
        memset(&err, 0, sizeof err);
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_int_lt(run(&image, &err), 0);
        ck_assert_int_eq(err.code, PB_E_DEVICE_LOST);
        ck_assert_int_eq(whole_host.opened, 0);
        free(image.planes);
        pb_plan_destroy(plan);
    }
    whole_host.fail_tile = 0;
    close_scene();
    (void)unlink(scene);
}
END_TEST

/* The process of the job closes the channel of the results: the owner's threads end, whichever of
 * them waits for planes or for a slot. */
START_TEST(test_closed_results_end_the_pass)
{
    struct image image = {.n = 0};
    struct pb_err err = {0};
    struct pb_run_passes *passes = NULL;
    begin("PIXEL");
    traits.managed = true;
    by_another = true;
    ck_assert_int_eq(open_scene(scene, GATE), 0);
    config->compute.device_memory_bytes = least_memory();
    config->compute.buffers = PB_BUFFERS_MANAGED;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_ptr_nonnull(managed_pass());
    const struct pb_pass_request last = pass_request(&image);
    ck_assert_msg(pb_run_passes_create(&last, &err, &passes) == 0, "%s", err.msg);
    wic_close(opened.out);
    int rc = pb_run_passes_start(passes, &err);
    rc = rc ? rc : pb_run_passes_wait(passes, -1, &err);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(err.msg, "the channels between the stages failed") != NULL, "%s", err.msg);
    pb_run_passes_destroy(passes);
    pb_served_job_end(&theirs);
    ck_assert_int_eq(whole_host.opened, 0);
    by_another = false;
    free(image.planes);
    pb_plan_destroy(plan);
    close_scene();
    (void)unlink(scene);
}
END_TEST

/* --- plans ------------------------------------------------------------------------------------ */

static void expect(enum pb_buffers buffers, uint64_t device_bytes, bool managed, const char *why)
{
    config->compute.buffers = buffers;
    config->compute.device_memory_bytes = device_bytes;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_int_eq(plan->engine.whole.managed, managed);
    ck_assert_str_eq(pb_plan_buffers(plan), managed ? "managed" : "host"); /* has no pinned slots */
    if (why[0] == '\0')
        ck_assert_str_eq(pb_plan_buffers_why(plan), "");
    else
        ck_assert_msg(strstr(pb_plan_buffers_why(plan), why) != NULL, "%s",
                      pb_plan_buffers_why(plan));
    pb_plan_destroy(plan);
}

START_TEST(test_plan_manages_what_does_not_fit)
{
    const uint64_t much = UINT64_C(1) << 32;
    begin("PIXEL");
    traits.managed = true;
    ck_assert_int_eq(open_scene(scene, GATE), 0);
    const uint64_t least = least_memory();
    expect(PB_BUFFERS_AUTO, much, false, "");
    expect(PB_BUFFERS_AUTO, least, false, "");
    expect(PB_BUFFERS_PINNED, least, false, "");
    expect(PB_BUFFERS_MANAGED, much, true, "");
    expect(PB_BUFFERS_MANAGED, least, true, "");
    expect(PB_BUFFERS_HOST, much, false, "");
    traits.managed = false; /* a Jetson, or Windows */
    expect(PB_BUFFERS_AUTO, least, false, "");
    expect(PB_BUFFERS_MANAGED, much, false, "shares its memory with the host");
    traits.managed = true;
    config->compute.device_memory_bytes = least - 1;
    config->compute.buffers = PB_BUFFERS_MANAGED;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_ptr_nonnull(strstr(plan->engine.whole.why_not, "planes that a tile reads"));
    ck_assert_uint_eq(plan->engine.whole.why_bytes, least);
    pb_plan_destroy(plan);
    close_scene();
    (void)unlink(scene);
}
END_TEST

START_TEST(test_planes_count_in_the_memory_of_the_host)
{
    begin("PIXEL");
    traits.managed = true;
    ck_assert_int_eq(open_scene(scene, GATE), 0);
    config->compute.device_memory_bytes = least_memory();
    ck_assert_int_eq(make_plan(true), 0);
    const uint64_t planes = plan->engine.whole.planes_bytes;
    ck_assert_uint_ge(planes, (uint64_t)2 * W * H * 3);
    ck_assert_uint_gt(pb_plan_total_bytes(plan), planes);
    pb_plan_destroy(plan);
    config->compute.memory_bytes = planes;
    while (make_plan(true) < 0)
        config->compute.memory_bytes += 1 << 18;
    const uint64_t little = config->compute.memory_bytes; /* enough for the host's decoders */
    ck_assert(!plan->engine.whole.used);
    ck_assert_ptr_nonnull(strstr(plan->engine.whole.why_not, "compute.memory is too small"));
    const uint64_t enough = plan->engine.whole.why_bytes;
    ck_assert_uint_gt(enough, planes);
    pb_plan_destroy(plan);
    config->compute.memory_bytes = enough;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert(plan->engine.whole.managed);
    ck_assert_uint_le(pb_plan_total_bytes(plan), enough);
    pb_plan_destroy(plan);
    /* Managed planes that are chosen and not needed give way to device memory. */
    config->compute.memory_bytes = little;
    config->compute.device_memory_bytes = UINT64_C(1) << 32;
    config->compute.buffers = PB_BUFFERS_MANAGED;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert(plan->engine.whole.used && !plan->engine.whole.managed);
    ck_assert_ptr_nonnull(strstr(pb_plan_buffers_why(plan), "compute.memory is too small"));
    pb_plan_destroy(plan);
    close_scene();
    (void)unlink(scene);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_managed");
    TCase *tests = tcase_create("planes");
    pb_raster_init();
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_gate_reads_managed_planes);
    tcase_add_test(tests, test_gate_leaves_the_last_rows_out);
    tcase_add_test(tests, test_rounds_read_managed_planes);
    tcase_add_test(tests, test_other_grid_reads_managed_planes);
    tcase_add_test(tests, test_warp_reads_managed_planes);
    tcase_add_test(tests, test_bands_give_way_to_managed_planes);
    tcase_add_test(tests, test_refused_blocks_are_decoded_into_planes);
    tcase_add_test(tests, test_lost_device_ends_the_waits);
    tcase_add_test(tests, test_closed_results_end_the_pass);
    tcase_add_test(tests, test_plan_manages_what_does_not_fit);
    tcase_add_test(tests, test_planes_count_in_the_memory_of_the_host);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
