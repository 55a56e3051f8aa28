/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads early */
/* Products whose blocks a device makes, with the host in place of the GPU: the CPU's files. */
#include "config/config.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "run_suite.h"
#include "whole_session.h"

/* Those that a device makes: overviews of both kinds, types, masks, codecs of which the host makes
 * the rest, blocks that are left to it. */
static const char MADE[] =
    "      - cog: {name: a, bands: [OUT, SUM], blocksize: 64}\n"
    "      - cog: {name: b, bands: [SUM], blocksize: 64, type: int16, nodata: -5,"
    " overviews: average}\n"
    "      - cog: {name: c, bands: [OUT], blocksize: 64, type: uint8, mask: true}\n"
    "      - cog: {name: d, bands: [SUM], blocksize: 64, compress: zstd, overviews: nearest}\n"
    "      - cog: {name: e, bands: [SUM, OUT], blocksize: 64, compress: none, mask: true}\n"
    "      - cog: {name: f, bands: [OUT], blocksize: 64, level: 4, overviews: none}\n"
    "      - cog: {name: g, bands: [OUT], blocksize: 64, type: float64, scale: 0.25,"
    " offset: 3}\n"
    "      - cog: {name: h, bands: [OUT, SUM, B1], blocksize: 64, type: uint8, mask: true,"
    " overviews: average}\n"
    "      - cog: {name: i, bands: [OUT, B1], blocksize: 64, mask: true, valid: any}\n";
/* Numbers and pixels: values are counted on the device as well; the last product completes
 * nothing else in the last row of tiles. */
static const char MIXED[] =
    "      - cog: {name: a, bands: [SUM], blocksize: 64}\n"
    "      - statistics: {bands: [OUT]}\n"
    "      - statistics: {name: p, bands: [OUT, SUM, B1], percentiles: [0, 2, 50, 97.5, 100]}\n";
/* Colours and levels: ramps with all rules, gamma, a brightness, alpha, nodata and a mask; and
 * codecs of pictures, which the host has. */
static const char PAINTED[] =
    "      - cog: {name: a, bands: [OUT], blocksize: 64, ramp: viridis, range: [0, 200]}\n"
    "      - cog: {name: b, bands: [OUT], blocksize: 64, ramp: grey, range: [220, 10], nodata: 0}\n"
    "      - cog: {name: c, bands: [SUM], blocksize: 64, ramp: viridis, range: [0, 300],"
    " gamma: 1.7}\n"
    "      - cog: {name: d, bands: [SUM], blocksize: 64, range: [50, 400], gamma: 0.6,"
    " nodata: 255}\n"
    "      - cog: {name: e, bands: [OUT, SUM, B1], blocksize: 64, range: [20, 180]}\n"
    "      - cog: {name: f, bands: [OUT, SUM, B1], blocksize: 64, range: [20, 180],"
    " compress: jpeg}\n"
    "      - cog: {name: g, bands: [OUT, SUM, B1], blocksize: 64, range: [20, 180],"
    " compress: webp, valid: all}\n"
    "      - cog: {name: h, bands: [OUT], blocksize: 64, ramp: viridis, range: [0, 255],"
    " shade: B1, blend: overlay, overviews: nearest}\n"
    "      - cog: {name: i, bands: [OUT], blocksize: 64, colours: COLOURS, between: exact}\n"
    "      - cog: {name: j, bands: [OUT], blocksize: 64, colours: COLOURS, between: nearest,"
    " compress: lzw}\n"
    "      - cog: {name: k, bands: [OUT, SUM, B1], blocksize: 64, type: uint8, mask: true,"
    " compress: jpeg}\n"
    "      - cog: {name: l, bands: [OUT, SUM, B1], blocksize: 64, range: [20, 180],"
    " shade: B1}\n";
/* Pictures: of an overview of some levels, of a sheet, of classes, of the image itself; the last
 * product completes no block in most rows of tiles. */
static const char PICTURES[] =
    "      - cog: {name: a, bands: [SUM], blocksize: 64}\n"
    "      - quicklook: {name: b, bands: [OUT, SUM, B1], size: 64, stretch: [0, 100]}\n"
    "      - quicklook: {name: c, bands: [OUT, SUM], layout: sheet, size: 256}\n"
    "      - quicklook: {name: d, bands: [OUT], size: 20, ramp: viridis}\n"
    "      - quicklook: {name: e, bands: [SUM], size: 1024}\n"
    "      - quicklook: {name: f, bands: [SUM, B1, OUT], size: 16}\n";
static const char PICTURE[] = "      - quicklook: {bands: [SUM], size: 32}\n";

static void same_files(const char *a, const char *b)
{
    char command[300];
    (void)snprintf(command, sizeof command, "diff -r '%s' '%s' && test -n \"$(ls '%s')\"", a, b, a);
    ck_assert_int_eq(system(command), 0);
}

/* The least device memory with which the same is made there. */
static uint64_t find_least(uint64_t by_device)
{
    uint64_t least = UINT64_C(1) << 36;
    for (bool same_there = true; same_there; least /= same_there ? 2 : 1) {
        config->compute.device_memory_bytes = least / 2;
        ck_assert_int_eq(make_plan(true), 0);
        same_there = plan->engine.whole.used && plan->engine.out.by_device == by_device;
        ck_assert(!same_there || plan->engine.out.device_bytes <= least / 2);
        pb_plan_destroy(plan);
    }
    ck_assert_uint_lt(least, UINT64_C(1) << 30); /* tables of values are large */
    return least;
}

/* Made by the CPU, by the device with much memory and with little, and by another process.
 * by_device: products that the device makes. */
static void compare_products(const char *path, const char *steps, const char *products,
                             uint64_t by_device)
{
    char cpu[40];
    struct pb_err err = {0};
    int rc;
    ck_assert_int_eq(open_with(path, steps, products), 0);
    ck_assert_int_eq(make_plan(false), 0);
    make_products(cpu, &rc, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    static const enum way ways[] = {MUCH, LITTLE, ANOTHER};
    const uint64_t least = find_least(by_device);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char device[40];
        by_another = ways[i] == ANOTHER;
        config->compute.device_memory_bytes = ways[i] == LITTLE ? least : UINT64_C(1) << 36;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_uint_eq(plan->engine.out.by_device, by_device);
        ck_assert((plan->engine.out.room_bytes > 0) == (plan->engine.out.most_bytes > 0));
        if (ways[i] == LITTLE) /* most blocks are written on arrival */
            plan->engine.out.room_bytes = 30000;
        make_products(device, &rc, &err);
        ck_assert_msg(rc == 0, "%s", err.msg);
        same_files(cpu, device);
        remove_files(device);
        pb_plan_destroy(plan);
    }
    by_another = false;
    remove_files(cpu);
    close_scene();
}

#define LARGE REAL "real/global/blue_marble_720x360_be.tif"

/* Products of a larger scene, whose bytes have another order. A sanitizer sees the same code in
 * those of the smaller scene, and in PICTURE of this one: it is left out there. */
static void compare_large(const char *products, uint64_t by_device)
{
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    compare_products(LARGE, PLAIN, products, by_device);
#else
    (void)products, (void)by_device;
#endif
}

START_TEST(products_made_on_the_device_are_the_cpus)
{
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, MADE, 0x1ff);
    tile_px = 128;
    compare_large(MADE, 0x1ff);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, MIXED, 7);
    ck_assert_int_gt(whole_host.parts, 10);
    ck_assert_int_gt(whole_host.valued, 10);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, PICTURES, 0x3f);
    compare_large(PICTURES, 0x3f);
    compare_products(LARGE, PLAIN, PICTURE, 1);
    ck_assert_int_gt(whole_host.blocks, 500);
}
END_TEST

/* A tile that the gate leaves out has no valid pixel in any of them. */
START_TEST(products_of_a_gate_are_made_on_the_device)
{
    const char *path = REAL "real/landsat7_L7_ETMs_6band.tif";
    const char *steps = "      - gate: {keep: \"B6 > 120\"}\n"
                        "      - math: {bands: {OUT: \"B2 * 2\", SUM: \"B1 + B3\"}}\n";
    compare_products(path, steps, MADE, 0x1ff);
    compare_products(path, steps, MIXED, 7);
    compare_products(path, steps, PICTURES, 0x3f);
}
END_TEST

/* A colour file with colours for invalid and other values. */
static void write_colours(char *path)
{
    const int fd = mkstemp(path);
    static const char text[] = "nv 9 8 7 255\n10 0 0 60\n40 10 200 60 128\n90 250 20 0\n"
                               "91 1 2 3\n160 255 255 255\n";
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    (void)close(fd);
}

START_TEST(painted_products_are_made_on_the_device)
{
    char path[] = "/tmp/pb-colours-XXXXXX", products[sizeof PAINTED + 80] = "";
    write_colours(path);
    for (const char *from = PAINTED; *from != '\0';) { /* the file's name in place of COLOURS */
        const bool is_name = strncmp(from, "COLOURS", 7) == 0;
        (void)strncat(products, is_name ? path : from, is_name ? sizeof path : 1);
        from += is_name ? 7 : 1;
    }
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, products, 0xfff);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif",
                     "      - gate: {keep: \"B6 > 120\"}\n"
                     "      - math: {bands: {OUT: \"B2 * 2\", SUM: \"B1 + B3\"}}\n",
                     products, 0xfff);
    tile_px = 128;
    compare_large(products, 0xfff);
    (void)unlink(path);
}
END_TEST

/* More products than were once made there. */
START_TEST(all_of_many_products_are_made_on_the_device)
{
    char products[64 * 64] = "";
    for (int i = 0; i < 64; i++)
        (void)snprintf(products + strlen(products), 64,
                       "      - cog: {name: p%d, bands: [OUT], blocksize: 64}\n", i);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, products, UINT64_MAX);
}
END_TEST

/* Tiles of more planes than a mask of 64 bits has: products of any of them are made there. Bands
 * that are valid together must be close to each other. */
START_TEST(test_products_of_many_bands_are_made_there)
{
    char steps[4000] = "      - math:\n          bands:\n            OUT: B1 * 2\n"
                       "            SUM: B1 + 1\n";
    static const char others[] =
        "      - quicklook: {name: b, bands: [X67], size: 64}\n"
        "      - statistics: {name: c, bands: [X66, X3], percentiles: [50]}\n"
        "      - cog: {name: d, blocksize: 64, bands: [X68, X1]}\n"
        "      - cog: {name: e, blocksize: 64, mask: true, bands: [X0, X69]}\n";
    char products[4000] = "";
    for (int from = 0; from < 70; from += 35) { /* a product has at most 64 bands */
        (void)snprintf(products + strlen(products), 80,
                       "      - cog: {name: n%d, blocksize: 64, bands: [", from);
        for (int i = from; i < from + 35; i++) {
            (void)snprintf(steps + strlen(steps), 40, "            X%d: B1 * %d\n", i, i + 1);
            (void)snprintf(products + strlen(products), 10, "%sX%d", i > from ? ", " : "", i);
        }
        (void)strcat(products, "]}\n");
    }
    (void)strcat(products, others);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", steps, products, 0x1f);
}
END_TEST

/* The parts of its tiles follow a pattern. */
START_TEST(products_of_a_composite_are_made_on_the_device)
{
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif",
                     "      - math: {bands: {A_1: B1, A_2: B2, A_3: B3}}\n"
                     "      - composite: {bands: {OUT: A}, of: [_1, _2, _3]}\n"
                     "      - math: {bands: {SUM: \"OUT + B1\"}}\n",
                     MADE, 0x1ff);
}
END_TEST

/* Memory of any size for which a plan decodes on the device is enough for its run: the scene's edge
 * blocks are decoded whole. */
START_TEST(planned_device_memory_is_enough_for_the_run)
{
    int runs = 0;
    char out[40];
    struct pb_err err = {0};
    tile_px = 128;
    ck_assert_int_eq(open_with(REAL "real/mask_alpha/cog_rgba.tif", PLAIN,
                               "      - cog: {bands: [SUM], blocksize: 64}\n"),
                     0);
    for (uint64_t memory = 1 << 16; memory < 1 << 24; memory += memory / 32) {
        int rc;
        config->compute.device_memory_bytes = memory;
        ck_assert_int_eq(make_plan(true), 0);
        if (plan->engine.whole.used && plan->engine.out.n > 0) {
            make_products(out, &rc, &err);
            ck_assert_msg(rc == 0, "%llu bytes: %s", (unsigned long long)memory, err.msg);
            remove_files(out);
            runs++;
        }
        pb_plan_destroy(plan);
    }
    ck_assert_int_gt(runs, 10);
    close_scene();
}
END_TEST

/* Tables of values need more memory than the other products. */
START_TEST(test_uncounted_products_are_made_with_less_memory)
{
    bool all = false, uncounted = false;
    ck_assert_int_eq(open_with(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN, MIXED), 0);
    for (uint64_t memory = UINT64_C(1) << 30; memory > 1 << 20; memory /= 2) {
        config->compute.device_memory_bytes = memory;
        ck_assert_int_eq(make_plan(true), 0);
        const struct pb_plan_out *out = &plan->engine.out;
        all = all || out->by_device == 7;
        if (out->by_device == 3) {
            uncounted = true;
            ck_assert_ptr_nonnull(strstr(out->why[2], "compute.device_memory"));
            ck_assert_uint_gt(out->why_bytes, memory);
        }
        pb_plan_destroy(plan);
    }
    ck_assert(all && uncounted);
    close_scene();
}
END_TEST

START_TEST(finished_blocks_wait_in_memory_for_any_checksum)
{
    ck_assert_int_eq(open_with(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN,
                               "      - cog: {bands: [OUT]}\n"
                               "      - stac: {checksum: blake3, datetime: file-time}\n"),
                     0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_uint_eq(plan->engine.out.by_device, 1);
    ck_assert_uint_gt(plan->engine.out.room_bytes, 0);
    ck_assert_uint_eq(plan->engine.out.room_bytes, plan->engine.out.most_bytes);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

/* Blocks that the host decodes are moved to the GPU when products are made there, and if it is
 * worth it. */
START_TEST(what_the_host_decodes_goes_there_for_the_products)
{
    const char *path = REAL "real/mask_alpha/cogeo_jpeg_mask.tif";
    for (int products = 0; products < 2; products++)
        for (int32_t side = 1024; side <= 20480; side *= 20) {
            struct pb_err err = {0};
            ck_assert_int_eq(open_with(path, PLAIN, products ? MADE : PIXELS), 0);
            config->compute.codecs = PB_CODECS_AUTO;
            struct pb_raster_info info = *pb_raster_info(raster);
            info.width = info.height = side;
            request = (struct pb_plan_request){.config = config,
                                               .pipeline = &config->pipelines[0],
                                               .info = &info,
                                               .cuda = true,
                                               .traits = &traits};
            ck_assert_msg(pb_plan_create(&request, &err, &plan) == 0, "%s", err.msg);
            const char *why = plan->engine.whole.why_not;
            if (side == 1024)
                ck_assert_ptr_nonnull(why);
            else
                ck_assert((why == NULL) == (products == 1));
            ck_assert(why == NULL || strstr(why, "codec") != NULL);
            pb_plan_destroy(plan);
            close_scene();
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_products");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, products_made_on_the_device_are_the_cpus);
    tcase_add_test(tc, products_of_a_gate_are_made_on_the_device);
    tcase_add_test(tc, painted_products_are_made_on_the_device);
    tcase_add_test(tc, all_of_many_products_are_made_on_the_device);
    tcase_add_test(tc, test_products_of_many_bands_are_made_there);
    tcase_add_test(tc, products_of_a_composite_are_made_on_the_device);
    tcase_add_test(tc, planned_device_memory_is_enough_for_the_run);
    tcase_add_test(tc, test_uncounted_products_are_made_with_less_memory);
    tcase_add_test(tc, finished_blocks_wait_in_memory_for_any_checksum);
    tcase_add_test(tc, what_the_host_decodes_goes_there_for_the_products);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
