/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads early */
/* Blocks that are moved to a device as files store them: with the host in place of the GPU, every
 * file of the collection that is suitable gives the pixels of the CPU's readers; damaged ones fail
 * with the same message; the host decodes those that the device refuses. */
#include "config/config.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/describe.h"
#include "run_suite.h"
#include "tests/tools/random_scene.h"
#include "whole_compare.h"

START_TEST(real_files_have_the_pixels_that_the_cpu_reads)
{
    ck_assert_int_eq(nftw(REAL "real", visit, 16, FTW_PHYS), 0);
    ck_assert_int_eq(nftw(REAL "derived", visit, 16, FTW_PHYS), 0);
    ck_assert_int_gt(scenes, 60 / EACH);
    ck_assert_int_gt(by_host, 60 / EACH);
    ck_assert_int_ge(masks[PB_RAW_MASK_ALPHA], 3 / EACH);
    ck_assert_int_ge(masks[PB_RAW_MASK_BLOCKS], 2 / EACH);
    ck_assert_int_ge(masks[PB_RAW_MASK_HOST], 2 / EACH);
    ck_assert_int_eq(whole_host.opened, 0);
}
END_TEST

START_TEST(it_says_what_the_host_decodes_and_why)
{
    static const struct {
        const char *file, *why; /* NULL: nothing is */
        bool all;
        enum pb_raw_mask mask;
    } cases[] = {
        {"real/landsat7_L7_ETMs_6band.tif", NULL, false, PB_RAW_MASK_NONE},
        {"real/mask_alpha/cog_rgba.tif", NULL, false, PB_RAW_MASK_ALPHA},
        {"real/mask_alpha/cog_rgb_mask.tif", NULL, false, PB_RAW_MASK_BLOCKS},
        {"real/mask_alpha/RGBA.uint16_alpha255.tif", NULL, false, PB_RAW_MASK_ALPHA},
        {"real/mask_alpha/cogeo_jpeg_mask.tif", "codec", true, PB_RAW_MASK_HOST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[300];
        (void)snprintf(path, sizeof path, REAL "%s", cases[i].file);
        ck_assert_int_eq(open_scene(path, PLAIN), 0);
        ck_assert_int_eq(make_plan(true), 0);
        const struct pb_plan_whole *whole = &plan->engine.whole;
        ck_assert_msg(whole->used && whole->all_by_host == cases[i].all &&
                          whole->how[0].mask == cases[i].mask,
                      "%s", path);
        ck_assert_msg((whole->host_why == NULL) == (cases[i].why == NULL), "%s", path);
        ck_assert(cases[i].why == NULL || strstr(whole->host_why, cases[i].why) != NULL);
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

START_TEST(damaged_files_fail_in_the_same_words)
{
    ck_assert_int_eq(nftw(REAL "hostile", visit, 16, FTW_PHYS), 0);
    ck_assert_int_gt(scenes, 5 / EACH);
}
END_TEST

/* A file with one reader, which the CPU's workers use in turn. */
START_TEST(failed_reader_is_the_cause_and_not_the_next_one)
{
    const char *path = REAL "hostile/pillow__crash-74d2a78403a5a59db1fb0a2b8735ac068a75f6e3.tif";
    for (int i = 0; i < 60 / EACH; i++) {
        struct image image;
        struct pb_err err = {0};
        ck_assert_int_eq(open_scene(path, PLAIN), 0);
        ck_assert_int_eq(make_plan(false), 0);
        ck_assert_int_lt(run(&image, &err), 0);
        ck_assert_msg(err.code == PB_E_INPUT_DAMAGED, "%s", err.msg);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

/* The first ones, small; PB_SOAK=N takes N larger ones from PB_SEED on, CK_TIMEOUT_MULTIPLIER=10
 * the time. */
START_TEST(random_scenes_have_the_pixels_that_the_cpu_reads)
{
    const char *soak = getenv("PB_SOAK"), *seed_text = getenv("PB_SEED");
    char folder[] = "/tmp/pb-whole-XXXXXX", path[100], steps[300];
    int n = soak != NULL ? atoi(soak) : 30 / EACH, first = seed_text != NULL ? atoi(seed_text) : 1;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    GDALAllRegister(); /* its COG driver, too */
    for (int seed = first; seed < first + n; seed++) {
        struct random_scene scene;
        (void)snprintf(path, sizeof path, "%s/%d.tif", folder, seed);
        ck_assert_msg(random_scene_make((uint64_t)seed, soak != NULL ? 600 : 150, path, &scene),
                      "seed %d: %s", seed, CPLGetLastErrorMsg());
        whole_host.refuse_each = seed % 5 == 0 ? 7 : 0;
        (void)snprintf(steps, sizeof steps,
                       "      - %s: {%s: {OUT: B%d}}\n"
                       "      - math: {bands: {SUM: \"B1 - B%d + OUT\"}}\n",
                       seed % 2 == 0 ? "convolve" : "median",
                       seed % 2 == 0 ? "kernel: gaussian, size: 9, bands" : "size: 3, bands",
                       scene.bands, (scene.bands + 1) / 2);
        compare(path, seed % 3 == 0 ? PLAIN : steps);
        (void)unlink(path);
    }
    (void)rmdir(folder);
    ck_assert_int_ge(scenes, n / 2);
}
END_TEST

/* 220 rows each, of tiles of 64: with little memory they are in more than two bands. */
START_TEST(strips_over_several_bands_are_present_in_all)
{
    char path[] = "/tmp/pb-whole-XXXXXX.tif";
    struct random_scene scene;
    int file = mkstemps(path, 4);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    GDALAllRegister();
    ck_assert(random_scene_make(50, 600, path, &scene));
    ck_assert(!scene.tiled && scene.block_h == 220);
    compare(path, BLUR);
    ck_assert_int_eq(scenes, 1);
    (void)unlink(path);
}
END_TEST

/* 300 x 600 pixels of any numbers, in tiles of this side. */
static void make_tiled(const char *path, const char *side, uint32_t seed)
{
    static uint16_t pixels[300 * 600];
    char **options = CSLSetNameValue(NULL, "TILED", "YES");
    options = CSLSetNameValue(options, "BLOCKXSIZE", side);
    options = CSLSetNameValue(options, "BLOCKYSIZE", side);
    options = CSLSetNameValue(options, "COMPRESS", "DEFLATE");
    GDALDatasetH file = GDALCreate(GDALGetDriverByName("GTiff"), path, 300, 600, 1, GDT_UInt16,
                                   (CSLConstList)options);
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) {
        seed = seed * 1103515245u + 12345u;
        pixels[i] = (uint16_t)(1 + (seed >> 20));
    }
    ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(file, 1), GF_Write, 0, 0, 300, 600, pixels, 300,
                                  600, GDT_UInt16, 0, 0),
                     CE_None);
    GDALClose(file);
    CSLDestroy(options);
}

/* They share a window: a band copies from the one before only data that both have there. */
START_TEST(files_with_blocks_of_several_heights_share_bands)
{
    char folder[] = "/tmp/pb-whole-XXXXXX", path[100], second[100];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.tif", folder);
    (void)snprintf(second, sizeof second, "%s/b.tif", folder);
    GDALAllRegister();
    for (int i = 0; i < 2; i++) {
        make_tiled(path, i == 0 ? "256" : "64", 1);
        make_tiled(second, i == 0 ? "64" : "256", 2);
        other_path = second;
        compare(path, "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                      "      - math: {bands: {SUM: \"Q + OUT\"}}\n");
        other_path = NULL;
    }
    ck_assert_int_eq(scenes, 2);
    (void)unlink(path);
    (void)unlink(second);
    (void)rmdir(folder);
}
END_TEST

/* The parts of tiles follow the pattern `multiple` then, in the owner of the device as well. */
START_TEST(composite_of_several_files_is_decoded_there)
{
    char folder[] = "/tmp/pb-whole-XXXXXX", path[100], second[100];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.tif", folder);
    (void)snprintf(second, sizeof second, "%s/b.tif", folder);
    GDALAllRegister();
    for (int i = 0; i < 2; i++) {
        make_tiled(path, i == 0 ? "64" : "128", 1);
        make_tiled(second, "64", 2);
        other_path = second;
        compare(path, "      - math: {bands: {A_1: B1, A_2: Q}}\n"
                      "      - composite: {method: mean, bands: {OUT: A}, of: [_1, _2], "
                      "clear: \"A{} > 900\"}\n"
                      "      - math: {bands: {SUM: \"OUT + A_1\"}}\n");
        ck_assert_int_eq(open_scene(path, "      - math: {bands: {A_1: B1, A_2: Q}}\n"
                                          "      - composite: {bands: {OUT: A}, of: [_1, _2]}\n"
                                          "      - math: {bands: {SUM: OUT}}\n"),
                         0);
        ck_assert_str_eq(config->pipelines[0].exchange.pattern->name, "multiple");
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_msg(plan->engine.whole.used, "%s", plan->engine.whole.why_not);
        pb_plan_destroy(plan);
        close_scene();
        other_path = NULL;
    }
    ck_assert_int_eq(scenes, 2);
    (void)unlink(path);
    (void)unlink(second);
    (void)rmdir(folder);
}
END_TEST

/* Three planes of 640 x 500 pixels, in tiles of 64: plane `clouds` is 9 under clouds, and else 4.
 */
static void make_clouds(const char *path, const char *interleave, const char *codec, int clouds)
{
    enum { W = 640, H = 500 };
    static uint16_t pixels[3][H * W];
    uint32_t seed = 7;
    char **options = CSLSetNameValue(NULL, "TILED", "YES");
    options = CSLSetNameValue(options, "BLOCKXSIZE", "64");
    options = CSLSetNameValue(options, "BLOCKYSIZE", "64");
    options = CSLSetNameValue(options, "COMPRESS", codec);
    options = CSLSetNameValue(options, "INTERLEAVE", interleave);
    GDALDatasetH file =
        GDALCreate(GDALGetDriverByName("GTiff"), path, W, H, 3, GDT_UInt16, (CSLConstList)options);
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < H * W; i++) {
        const size_t x = i % W / 210, y = i / W / 160;
        seed = seed * 1103515245u + 12345u;
        pixels[0][i] = (uint16_t)(1 + (seed >> 20));
        pixels[1][i] = (uint16_t)(1 + (seed >> 18));
        pixels[2][i] = (x * 5 + y * 3) % 7 < 4 ? 9 : 4;
    }
    for (int b = 0; b < 3; b++)
        ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(file, (b + clouds) % 3 + 1), GF_Write, 0, 0,
                                      W, H, pixels[b], W, H, GDT_UInt16, 0, 0),
                         CE_None);
    GDALClose(file);
    CSLDestroy(options);
}

/* The device computes the gate. Blocks that no passing tile needs are not read, which the counts of
 * decoded blocks show; the pixels are the CPU's. */
static void compare_gate(const char *path, const char *steps, uint64_t all)
{
    struct image cpu = {.n = 0};
    struct pb_err err = {0};
    ck_assert_int_eq(open_scene(path, steps), 0);
    ck_assert_str_eq(config->pipelines[0].exchange.pattern->name, "probabilistic");
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_msg(run(&cpu, &err) == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    const struct pb_gate_report by_cpu = report.gate;
    ck_assert_msg(by_cpu.left_out > 0 && by_cpu.left_out < by_cpu.tiles, "%llu of %llu",
                  (unsigned long long)by_cpu.left_out, (unsigned long long)by_cpu.tiles);
    for (int way = 0; way < 4; way++) { /* also with blocks that are decoded in their slots */
        struct image whole = {.n = 0};
        by_another = way % 2 == 1;
        traits.integrated = way > 1;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_msg(plan->engine.whole.used, "%s", plan->engine.whole.why_not);
        ck_assert_msg(run(&whole, &err) == 0, "%s", err.msg);
        same(path, &cpu, &whole);
        ck_assert_uint_eq(report.gate.tiles, by_cpu.tiles);
        ck_assert_uint_eq(report.gate.left_out, by_cpu.left_out);
        ck_assert_uint_eq(report.gate.blocks, by_cpu.blocks);
        if (all > 0)
            ck_assert_uint_eq(report.link.device.blocks, all - by_cpu.blocks);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    traits.integrated = false;
    by_another = false;
    free(cpu.planes);
    close_scene();
}

START_TEST(gate_on_the_device_decides_which_blocks_are_read)
{
    enum { BLOCKS = 10 * 8 };
    char path[] = "/tmp/pb-gate-XXXXXX.tif";
    int file = mkstemps(path, 4);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    GDALAllRegister();
    make_clouds(path, "BAND", "DEFLATE", 3);
    compare_gate(path,
                 "      - gate: {keep: \"B3 < 8\"}\n"
                 "      - math: {bands: {OUT: \"B1 * 2\", SUM: B2}}\n",
                 3 * BLOCKS);
    compare_gate(path,
                 "      - gate: {keep: \"B3 < 8\", minimum: 0.4}\n"
                 "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                 "      - math: {bands: {SUM: \"B2 + B3\"}}\n",
                 3 * BLOCKS);
    compare_gate(path,
                 "      - gate: {keep: \"B3 < 8\"}\n"
                 "      - convolve: {kernel: gaussian, size: 15, bands: {OUT: B1}}\n"
                 "      - crop: {window: [70, 33, 411, 402], bands: [OUT, B2]}\n"
                 "      - math: {bands: {SUM: \"B2 + 1\"}}\n",
                 0);
    make_clouds(path, "PIXEL", "DEFLATE", 3);
    compare_gate(path,
                 "      - gate: {keep: \"B3 < 8\"}\n"
                 "      - math: {bands: {OUT: \"B1 * 2\", SUM: B2}}\n",
                 BLOCKS);
    make_clouds(path, "PIXEL", "PACKBITS", 3); /* the host decodes it, into planes */
    compare_gate(path,
                 "      - gate: {keep: \"B3 < 8\"}\n"
                 "      - math: {bands: {OUT: \"B1 * 2\", SUM: B2}}\n",
                 0);
    (void)unlink(path);
}
END_TEST

/* The mask is in a file of its own. */
START_TEST(gate_of_another_file_is_computed_on_the_device)
{
    enum { BLOCKS = 10 * 8 };
    char folder[] = "/tmp/pb-gate-XXXXXX", path[100], mask[100];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.tif", folder);
    (void)snprintf(mask, sizeof mask, "%s/mask.tif", folder);
    GDALAllRegister();
    make_clouds(path, "BAND", "DEFLATE", 3);
    make_clouds(mask, "BAND", "DEFLATE", 1);
    other_path = mask;
    compare_gate(path,
                 "      - gate: {keep: \"Q < 8\"}\n"
                 "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                 "      - math: {bands: {SUM: B2}}\n",
                 3 * BLOCKS);
    other_path = NULL;
    (void)unlink(path);
    (void)unlink(mask);
    (void)rmdir(folder);
}
END_TEST

static const char STRETCH[] = "      - stretch: {bands: [B1], percentiles: [3, 90]}\n"
                              "      - math: {bands: {OUT: \"B1 * 0.7\"}}\n"
                              "      - stretch: {bands: {SUM: OUT}, method: stddev}\n";

/* rounds: that the first pass has, at least. */
static void compare_passes(const char *path, int rounds)
{
    struct pb_err err = {0};
    struct image cpu = {.n = 0}, whole = {.n = 0};
    ck_assert_int_eq(open_scene(path, STRETCH), 0);
    run_on_cpu(&cpu);
    for (int way = 0; way < 2; way++) {
        by_another = way == 1;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_uint_ge(plan->n_earlier, 1);
        for (size_t i = 0; i < plan->n_earlier; i++)
            ck_assert_msg(plan->earlier[i]->engine.whole.used, "%s",
                          plan->earlier[i]->engine.whole.why_not);
        ck_assert_int_ge(pb_chain_rounds(plan->earlier[0]->work.chain), rounds);
        ck_assert_msg(run_all(&whole, &err) == 0, "%s", err.msg);
        same(path, &cpu, &whole);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    by_another = false;
    free(cpu.planes);
    close_scene();
}

/* Returns the number of compressed blocks that all passes have decoded, with the CPU's pixels.
 * may_keep: a pass may leave them on the device where the plan allows it. */
static uint64_t count_blocks(const char *path, bool may_keep, const struct image *cpu)
{
    struct image whole = {.n = 0};
    struct pb_err err = {0};
    ck_assert_int_eq(make_plan(true), 0);
    for (size_t i = 0; i < plan->n_earlier; i++) {
        ck_assert(plan->earlier[i]->engine.whole.used);
        may_keep = may_keep && plan->earlier[i]->engine.whole.keeps;
        plan->earlier[i]->engine.whole.keeps = may_keep;
    }
    ck_assert_msg(run_all(&whole, &err) == 0, "%s", err.msg);
    same(path, cpu, &whole);
    ck_assert_int_eq(whole_host.kept, 0);
    ck_assert(may_keep == (report.link.device.kept_bytes > 0));
    pb_plan_destroy(plan);
    free(whole.planes);
    return report.link.device.blocks;
}

static bool kept_by_another;

/* passes: in all, with rounds; where pixels stay only the first one reads. */
static void compare_kept(const char *path, const char *steps, uint64_t passes)
{
    struct image cpu = {.n = 0};
    ck_assert_int_eq(open_scene(path, steps), 0);
    run_on_cpu(&cpu);
    by_another = kept_by_another;
    const uint64_t once = count_blocks(path, true, &cpu);
    by_another = false;
    const uint64_t each = count_blocks(path, false, &cpu);
    ck_assert_uint_gt(once, 0);
    ck_assert_uint_eq(each, passes * once);
    free(cpu.planes);
    close_scene();
}

/* With the least memory that still decodes there, the scene does not fit. */
static void compare_little(const char *path)
{
    struct image cpu = {.n = 0};
    uint64_t memory = UINT64_C(1) << 30;
    for (bool used = true; used; memory = used ? memory / 8 * 7 : memory / 7 * 8 + 8) {
        config->compute.device_memory_bytes = memory;
        ck_assert_int_eq(make_plan(true), 0);
        used = plan->engine.whole.used && plan->earlier[0]->engine.whole.used;
        pb_plan_destroy(plan);
    }
    config->compute.device_memory_bytes = memory;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert(!plan->earlier[0]->engine.whole.keeps);
    pb_plan_destroy(plan);
    run_on_cpu(&cpu);
    (void)count_blocks(path, true, &cpu);
    free(cpu.planes);
}

static const char LATER[] = "      - stretch: {bands: [B2], percentiles: [3, 90]}\n"
                            "      - math: {bands: {OUT: \"B2 * 0.7 + B1\", SUM: \"B3 - B2\"}}\n";
static const char HALO[] = "      - stretch: {bands: [B1], percentiles: [3, 90]}\n"
                           "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                           "      - math: {bands: {SUM: \"B1 + OUT\"}}\n";

static void expect_kept_pixels_are_used(void)
{
    compare_kept(REAL "real/landsat7_L7_ETMs_6band.tif", STRETCH, 3);
    compare_kept(REAL "real/landsat7_L7_ETMs_6band.tif", LATER, 2);
    compare_kept(REAL "real/landsat7_L7_ETMs_6band.tif", HALO, 2);
    compare_kept(REAL "real/mask_alpha/cog_rgb_mask.tif", HALO, 2);
    compare_kept(REAL "real/dem/copernicus_dem90_S90.tif", STRETCH, 4);
    ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", LATER), 0);
    compare_little(REAL "real/landsat7_L7_ETMs_6band.tif");
    close_scene();
}

START_TEST(later_passes_take_pixels_that_are_on_the_device)
{
    expect_kept_pixels_are_used();
}
END_TEST

START_TEST(another_process_keeps_pixels_for_later_passes)
{
    kept_by_another = true;
    expect_kept_pixels_are_used();
    kept_by_another = false;
}
END_TEST

/* Percentiles and moments there, covariances on the host, of planes that only they need. */
START_TEST(a_device_finds_what_it_can_and_the_host_the_rest)
{
    const char *path = REAL "real/landsat7_L7_ETMs_6band.tif";
    const char *steps = "      - pca: {bands: [B1, B2, B3], as: [P1, P2, P3]}\n"
                        "      - stretch: {bands: [B4], percentiles: [3, 90]}\n"
                        "      - stretch: {bands: [B5], method: stddev}\n"
                        "      - math: {bands: {OUT: \"P1 + B4\", SUM: \"P2 + B5\"}}\n";
    whole_host.counted = whole_host.parts = 0;
    compare_kept(path, steps, 2);
    ck_assert_int_gt(whole_host.counted, 0);
    ck_assert_int_gt(whole_host.parts, 0);
    ck_assert_int_eq(open_scene(path, steps), 0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_uint_eq(plan->n_earlier, 1);
    ck_assert_int_eq(__builtin_popcountll(plan->earlier[0]->engine.out.reduced), 2);
    ck_assert_int_eq(__builtin_popcountll(plan->earlier[0]->engine.out.host_planes), 3);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

/* The first round decodes, and later rounds read nothing, also in the owner of the device, where
 * the last pass reads again. */
/* The process of a job closes its channel before it has sent a block. */
START_TEST(pass_that_ends_early_leaves_no_pixels)
{
    struct image image = {.n = 0};
    struct pb_err err = {0};
    struct pb_run_passes *passes = NULL;
    struct pb_remote_end end;
    by_another = true;
    ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", LATER), 0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert(plan->earlier[0]->engine.whole.keeps);
    plan->earlier[0]->engine.mem = PB_MEM_HOST;
    const struct pb_pass_request last = pass_request(&image);
    ck_assert_msg(pb_run_passes_create(&last, &err, &passes) == 0, "%s", err.msg);
    wic_close(opened.in);
    ck_assert_msg(served_session_wait(NULL, &opened, &err, &end) == 0, "%s", err.msg);
    pb_run_passes_destroy(passes);
    ck_assert(pb_whole_kept_is_empty(theirs.kept));
    pb_served_job_end(&theirs);
    by_another = false;
    free(image.planes);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

START_TEST(rounds_are_summed_up_of_pixels_on_the_device)
{
    const char *path = REAL "real/landsat7_L7_ETMs_6band.tif";
    const char *steps = "      - classify: {bands: [B1, B2, B3], classes: 5, rounds: 7, as: OUT}\n"
                        "      - math: {bands: {SUM: \"OUT + B4\"}}\n";
    struct image cpu = {.n = 0};
    struct pb_err err = {0};
    uint64_t once = 0;
    ck_assert_int_eq(open_scene(path, steps), 0);
    ck_assert_str_eq(config->pipelines[0].steps[0].exchange.pattern->name, "alternating");
    run_on_cpu(&cpu);
    for (int way = 0; way < 2; way++) {
        struct image whole = {.n = 0};
        by_another = way == 1;
        whole_host.summed = 0;
        ck_assert_int_eq(make_plan(true), 0);
        const struct pb_plan *pass = plan->earlier[plan->n_earlier - 1];
        ck_assert_msg(pass->engine.whole.used, "%s", pass->engine.whole.why_not);
        ck_assert_uint_eq(pass->layout.sums.chain.n, 1);
        ck_assert_msg(run_all(&whole, &err) == 0, "%s", err.msg);
        same(path, &cpu, &whole);
        ck_assert_int_gt(whole_host.summed, (int)pb_grid_count(&pass->layout.grid));
        ck_assert_int_eq(whole_host.kept, 0);
        once = way == 0 ? report.link.device.blocks : once;
        ck_assert_uint_gt(once, 0);
        ck_assert_uint_eq(report.link.device.blocks, once);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    by_another = false;
    config->compute.device_memory_bytes = UINT64_C(1) << 20;
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_ptr_nonnull(
        strstr(plan->earlier[plan->n_earlier - 1]->engine.whole.why_not, "has rounds"));
    pb_plan_destroy(plan);
    free(cpu.planes);
    close_scene();
}
END_TEST

/* Rounds next to other statistics need planes, which the first round leaves on the device. */
START_TEST(rounds_beside_statistics_decode_the_scene_once)
{
    const char *path = REAL "real/landsat7_L7_ETMs_6band.tif";
    const char *steps = "      - classify: {bands: [B1, B2, B3], classes: 5, rounds: 7, as: C}\n"
                        "      - stretch: {bands: [B4], percentiles: [3, 90]}\n"
                        "      - math: {bands: {OUT: \"C + B4\", SUM: B4}}\n";
    struct image cpu = {.n = 0};
    ck_assert_int_eq(open_scene(path, steps), 0);
    run_on_cpu(&cpu);
    const uint64_t here = count_blocks(path, true, &cpu);
    by_another = true;
    const uint64_t there = count_blocks(path, true, &cpu);
    by_another = false;
    ck_assert_uint_gt(here, 0);
    ck_assert_uint_eq(there, here);
    free(cpu.planes);
    close_scene();
}
END_TEST

/* Readers that wait for answers or for the next round are woken, in both processes. */
START_TEST(lost_device_ends_gates_and_rounds)
{
    const char *rounds = "      - classify: {bands: [B1, B2, B3], classes: 5, rounds: 7, as: OUT}\n"
                         "      - math: {bands: {SUM: \"OUT + B3\"}}\n";
    const char *gate = "      - gate: {keep: \"B3 < 8\"}\n"
                       "      - math: {bands: {OUT: \"B1 * 2\", SUM: B2}}\n";
    char path[] = "/tmp/pb-gate-XXXXXX.tif";
    int file = mkstemps(path, 4);
    ck_assert_int_ge(file, 0);
    (void)close(file);
    GDALAllRegister();
    make_clouds(path, "BAND", "DEFLATE", 3);
    for (int way = 0; way < 4; way++) {
        struct image image = {.n = 0};
        struct pb_err err = {0};
        by_another = way % 2 == 1;
        ck_assert_int_eq(open_scene(path, way < 2 ? gate : rounds), 0);
        ck_assert_int_eq(make_plan(true), 0);
        whole_host.tiles = whole_host.summed = 0;
        whole_host.fail_tile = way < 2 ? 2 : 0;
        whole_host.fail_sums = way < 2 ? 0 : (int)pb_grid_count(&plan->layout.grid) + 3;
        ck_assert_int_lt(way < 2 ? run(&image, &err) : run_all(&image, &err), 0);
        ck_assert_msg(err.code == PB_E_DEVICE_LOST, "%s", err.msg);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
    (void)unlink(path);
}
END_TEST

START_TEST(the_plan_says_which_passes_read_nothing)
{
    char text[2000];
    for (int way = 0; way < 2; way++) {
        by_another = way == 1;
        ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", STRETCH), 0);
        ck_assert_int_eq(make_plan(true), 0);
        (void)pb_plan_describe(plan, text, sizeof text);
        ck_assert_msg(
            strstr(text,
                   "2 of the 3 passes in all take the pixels that are on the GPU already\n") !=
                NULL,
            "%s", text);
        ck_assert(by_another == (strstr(text, "2 of them found on the GPU") == NULL));
        pb_plan_destroy(plan);
        close_scene();
    }
    by_another = false;
}
END_TEST

/* Two files share a window; the second one is read by the last pass alone. */
START_TEST(only_files_not_on_the_device_are_read)
{
    char folder[] = "/tmp/pb_kept_XXXXXX", first[60], second[60];
    struct image cpu = {.n = 0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(first, sizeof first, "%s/a.tif", folder);
    (void)snprintf(second, sizeof second, "%s/b.tif", folder);
    GDALAllRegister();
    make_tiled(first, "64", 1);
    make_tiled(second, "64", 2);
    other_path = second;
    ck_assert_int_eq(open_scene(first, "      - stretch: {bands: [B1], percentiles: [3, 90]}\n"
                                       "      - math: {bands: {OUT: \"B1 + Q\", SUM: Q}}\n"),
                     0);
    run_on_cpu(&cpu);
    const uint64_t once = count_blocks(first, true, &cpu);
    const uint64_t each = count_blocks(first, false, &cpu);
    ck_assert_uint_gt(once, 0);
    ck_assert_uint_eq(each * 2, once * 3);
    free(cpu.planes);
    close_scene();
    other_path = NULL;
    (void)unlink(first);
    (void)unlink(second);
    (void)rmdir(folder);
}
END_TEST

START_TEST(earlier_passes_find_the_numbers_that_the_cpu_finds)
{
    compare_passes(REAL "real/landsat7_L7_ETMs_6band.tif", 1);
    compare_passes(REAL "real/mask_alpha/cog_rgb_mask.tif", 1);
    compare_passes(REAL "real/dem/copernicus_dem90_S90.tif", 2);
}
END_TEST

START_TEST(what_the_device_refuses_the_host_decodes)
{
    whole_host.refuse_each = 3;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    compare(REAL "real/global/blue_marble_720x360_be.tif", BLUR);
    whole_host.refuse_each = 1; /* the blocks of masks, too */
    compare(REAL "real/mask_alpha/cog_rgb_mask.tif", BLUR);
    ck_assert_int_eq(scenes, 3);
    ck_assert_int_gt(whole_host.refused, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, real_files_have_the_pixels_that_the_cpu_reads);
    tcase_add_test(tc, it_says_what_the_host_decodes_and_why);
    tcase_add_test(tc, damaged_files_fail_in_the_same_words);
    tcase_add_test(tc, failed_reader_is_the_cause_and_not_the_next_one);
    tcase_add_test(tc, random_scenes_have_the_pixels_that_the_cpu_reads);
    tcase_add_test(tc, strips_over_several_bands_are_present_in_all);
    tcase_add_test(tc, files_with_blocks_of_several_heights_share_bands);
    tcase_add_test(tc, composite_of_several_files_is_decoded_there);
    tcase_add_test(tc, earlier_passes_find_the_numbers_that_the_cpu_finds);
    tcase_add_test(tc, later_passes_take_pixels_that_are_on_the_device);
    tcase_add_test(tc, another_process_keeps_pixels_for_later_passes);
    tcase_add_test(tc, a_device_finds_what_it_can_and_the_host_the_rest);
    tcase_add_test(tc, gate_on_the_device_decides_which_blocks_are_read);
    tcase_add_test(tc, gate_of_another_file_is_computed_on_the_device);
    tcase_add_test(tc, pass_that_ends_early_leaves_no_pixels);
    tcase_add_test(tc, rounds_are_summed_up_of_pixels_on_the_device);
    tcase_add_test(tc, rounds_beside_statistics_decode_the_scene_once);
    tcase_add_test(tc, lost_device_ends_gates_and_rounds);
    tcase_add_test(tc, the_plan_says_which_passes_read_nothing);
    tcase_add_test(tc, only_files_not_on_the_device_are_read);
    tcase_add_test(tc, what_the_device_refuses_the_host_decodes);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
