/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Blocks that go to a device as files store them: with the host in place of the GPU, every file of
 * the collection that may go this way gives the pixels that the CPU's readers give; damaged ones
 * fail in the same words; what the device refuses the host decodes. */
#include "pipeline/device/device.h"
#include "pipeline/run/run_passes.h"
#include "pipeline/run/run_products.h"

#include "run_suite.h"
#include "served_session.h"
#include "tests/tools/random_scene.h"
#include "whole_faults.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define REAL PB_SOURCE_DIR "/tests/data/"

static struct pb_config *config;
static int tile_px = 64;
static struct pb_raster *raster;
static const char *other_path; /* a second file; NULL: there is none. Its band is Q */
static struct pb_raster *other;
static struct pb_plan_other other_source;
static struct pb_plan *plan;

/* What came of a pass: planes of the whole image. */
struct image {
    int32_t w, h;
    size_t n;
    float *planes;
};

static int take(void *object, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                uint32_t worker, struct pb_err *err)
{
    struct image *image = object;
    (void)worker, (void)err;
    for (size_t p = 0; p < image->n; p++)
        for (int32_t y = 0; y < tile->core.h; y++)
            memcpy(image->planes + p * (size_t)image->w * (size_t)image->h +
                       (size_t)(tile->core.y + y) * (size_t)image->w + (size_t)tile->core.x,
                   pixels->data + p * pixels->plane_px + (size_t)y * (size_t)tile->core.w,
                   (size_t)tile->core.w * sizeof(float));
    return 0;
}

static const char BLUR[] = "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                           "      - math: {bands: {SUM: \"B1 + OUT\"}}\n";
static const char PLAIN[] = "      - math: {bands: {OUT: \"B1 * 2\", SUM: B1}}\n";

static bool cores_too; /* decode, beside a device that is as slow as they are */

/* 0: the file is open and config says what becomes of it. */
static int open_with(const char *path, const char *steps, const char *products)
{
    char text[4000], sources[200] = "";
    struct pb_err_list errors;
    struct pb_err err = {0};
    if (other_path != NULL)
        (void)snprintf(sources, sizeof sources, ", sources: {OTHER: {file: %s, bands: {Q: 1}}}",
                       other_path);
    (void)snprintf(text, sizeof text,
                   "compute: {threads: 3, memory: 1GiB, tile: %d, codecs: %s}\n"
                   "pipelines:\n  p:\n    input: {match: [\"*\"]%s}\n    steps:\n%s"
                   "    products:\n%s",
                   tile_px, cores_too ? "auto" : "device", sources, steps, products);
    ck_assert_msg(pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config) ==
                      0,
                  "%s", errors.err[0].msg);
    if (other_path != NULL)
        ck_assert_int_eq(pb_raster_open(other_path, &config->limits, &err, &other), 0);
    return pb_raster_open(path, &config->limits, &err, &raster);
}

/* Products that are made of pixels. */
static const char PIXELS[] = "      - quicklook: {name: o, bands: [OUT]}\n"
                             "      - quicklook: {name: s, bands: [SUM]}\n";

static int open_scene(const char *path, const char *steps)
{
    return open_with(path, steps, PIXELS);
}

static void close_scene(void)
{
    pb_raster_close(raster);
    pb_raster_close(other);
    pb_config_destroy(config);
    raster = NULL;
    other = NULL;
    config = NULL;
}

static struct pb_device_traits traits = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448},
                                         .memory_bytes = UINT64_C(1) << 36};
static struct pb_plan_request request;
static bool by_another; /* process, as it were */
static const struct pb_whole_device *device_table = &whole_host_device;

static int make_plan(bool device)
{
    struct pb_err err = {0};
    request = (struct pb_plan_request){.config = config,
                                       .pipeline = &config->pipelines[0],
                                       .info = pb_raster_info(raster),
                                       .cuda = device,
                                       .traits = device ? &traits : NULL,
                                       .device_index = device ? 0 : -1,
                                       .remote = device && by_another};
    if (other != NULL) {
        other_source = (struct pb_plan_other){.config = &config->pipelines[0].input.sources[0],
                                              .info = pb_raster_info(other),
                                              .placed = true,
                                              .map = pb_map_identity()};
        request.others = &other_source;
        request.n_others = 1;
    }
    int rc = pb_plan_create(&request, &err, &plan);
    if (rc == 0)
        plan->mem = PB_MEM_HOST;
    return rc;
}

/* --- the process that owns the device, in this one ---------------------------------------------
 */

static struct pb_tile_room theirs; /* of the side that computes */

static int open_session(void *user, const struct pb_plan *pass,
                        const struct pb_served_request *said, const struct pb_served_stored *stored,
                        struct pb_err *err, struct pb_remote_session *out)
{
    const struct pb_plan_request base = {.config = config,
                                         .pipeline = &config->pipelines[0],
                                         .cuda = true,
                                         .traits = &traits,
                                         .whole_device = device_table};
    (void)user;
    int rc = served_session_open(&base, pass, said, stored, &theirs, err, out);
    if (rc < 0)
        pb_tile_room_close(&theirs);
    return rc;
}

static void close_session(void *user, struct pb_remote_session *session)
{
    served_session_close(user, session);
    pb_tile_room_close(&theirs);
}

static const struct pb_remote remote = {.device = "cuda:0",
                                        .traits = &traits,
                                        .open = open_session,
                                        .wait = served_session_wait,
                                        .close = close_session};

static struct pb_pass_request pass_request(struct image *image)
{
    static struct pb_sink kept;
    static const struct pb_raster *rasters[2];
    kept = (struct pb_sink){.tile = take, .object = image};
    rasters[0] = raster;
    rasters[1] = other;
    *image = (struct image){.w = plan->geometry.w, .h = plan->geometry.h, .n = plan->n_outputs};
    image->planes = calloc((size_t)image->w * (size_t)image->h * image->n, sizeof(float));
    return (struct pb_pass_request){.plan = plan,
                                    .raster = rasters,
                                    .limits = &config->limits,
                                    .steps = config->pipelines[0].steps,
                                    .sinks = &kept,
                                    .n_sinks = 1,
                                    .remote = request.remote ? &remote : NULL,
                                    .facts = &request,
                                    .last = plan,
                                    .whole_device = device_table};
}

static int make_pass(struct image *image, struct pb_err *err, struct pb_pass **out)
{
    const struct pb_pass_request pass = pass_request(image);
    return pb_pass_create(&pass, err, out);
}

static struct pb_run_report report;
static uint64_t blocks, core_blocks; /* that were decoded, and of these by cores; of all runs */

/* The pass of the plan; what it tells is in `report`. */
static int run(struct image *image, struct pb_err *err)
{
    struct pb_pass *pass = NULL;
    int rc = make_pass(image, err, &pass);
    rc = rc ? rc : pb_pass_start(pass, err);
    rc = rc ? rc : pb_pass_wait(pass, -1, err);
    memset(&report, 0, sizeof report);
    if (rc == 0)
        pb_pass_report(pass, &report);
    blocks += report.link.device.blocks;
    core_blocks += report.link.device.core_blocks;
    pb_pass_destroy(pass);
    return rc;
}

/* All passes of the plan. */
static int run_all(struct image *image, struct pb_err *err)
{
    const struct pb_pass_request last = pass_request(image);
    struct pb_run_passes *passes = NULL;
    for (size_t i = 0; i < plan->n_earlier; i++)
        plan->earlier[i]->mem = PB_MEM_HOST;
    int rc = pb_run_passes_create(&last, err, &passes);
    rc = rc ? rc : pb_run_passes_start(passes, err);
    rc = rc ? rc : pb_run_passes_wait(passes, -1, err);
    memset(&report, 0, sizeof report);
    if (rc == 0)
        pb_run_passes_report(passes, &report);
    pb_run_passes_destroy(passes);
    return rc;
}

/* --- products --------------------------------------------------------------------------------- */

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
    " offset: 3}\n";
/* Those that are made of pixels, beside one that is not. */
static const char MIXED[] = "      - cog: {name: a, bands: [SUM], blocksize: 64}\n"
                            "      - statistics: {bands: [OUT]}\n"
                            "      - quicklook: {bands: [OUT], size: 64, stretch: [0, 100]}\n";

enum way { MUCH, LITTLE, ANOTHER, WAYS };

static struct pb_run_products made;

/* Of the plan, in a new directory, which need not outlive a power cut; *rc: of the pass. */
static void make_products(char directory[40], int *rc, struct pb_err *err)
{
    struct pb_product_env env;
    struct pb_pass *pass = NULL;
    const struct pb_raster *const rasters[] = {raster};
    (void)snprintf(directory, 40, "%s/pb_whole_XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    pb_plan_product_env(plan, &request, &env);
    env.raster = raster;
    env.scene = env.input = "scene";
    env.directory = directory;
    *rc = pb_run_products_create(&env, plan->out.room_bytes, err, &made);
    ck_assert_msg(*rc == 0, "%s", err->msg);
    const struct pb_pass_request asked = {.plan = plan,
                                          .raster = rasters,
                                          .limits = &config->limits,
                                          .steps = config->pipelines[0].steps,
                                          .sinks = made.sinks,
                                          .n_sinks = made.n_sinks,
                                          .remote = request.remote ? &remote : NULL,
                                          .facts = &request,
                                          .last = plan,
                                          .whole_device = device_table};
    *rc = pb_pass_create(&asked, err, &pass);
    *rc = *rc ? *rc : pb_pass_start(pass, err);
    *rc = *rc ? *rc : pb_pass_wait(pass, -1, err);
    pb_pass_destroy(pass);
    for (size_t i = 0; i < made.n && *rc == 0; i++) {
        struct pb_product_result result;
        *rc = made.type[i]->finish(made.product[i], NULL, 0, err, &result);
    }
    pb_run_products_destroy(&made);
}

static void remove_files(const char *directory)
{
    char command[300];
    (void)snprintf(command, sizeof command, "rm -r '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}

static void same_files(const char *a, const char *b)
{
    char command[300];
    (void)snprintf(command, sizeof command, "diff -r '%s' '%s' && test $(ls '%s' | wc -l) -gt 2", a,
                   b, a);
    ck_assert_int_eq(system(command), 0);
}

/* The least device memory with which the same is made there. */
static uint64_t find_least(uint64_t by_device)
{
    uint64_t least = UINT64_C(1) << 36;
    for (bool same_there = true; same_there; least /= same_there ? 2 : 1) {
        config->compute.device_memory_bytes = least / 2;
        ck_assert_int_eq(make_plan(true), 0);
        same_there = plan->whole.used && plan->out.by_device == by_device;
        ck_assert(!same_there || plan->out.device_bytes <= least / 2);
        pb_plan_destroy(plan);
    }
    ck_assert_uint_lt(least, UINT64_C(1) << 26);
    return least;
}

/* By the CPU, and by the device with much memory and with little. by_device: what is made there. */
static void compare_products(const char *path, const char *products, uint64_t by_device)
{
    char cpu[40];
    struct pb_err err = {0};
    int rc;
    ck_assert_int_eq(open_with(path, PLAIN, products), 0);
    ck_assert_int_eq(make_plan(false), 0);
    make_products(cpu, &rc, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    const uint64_t memory[WAYS] = {UINT64_C(1) << 36, find_least(by_device), UINT64_C(1) << 36};
    for (enum way i = MUCH; i < WAYS; i++) {
        char device[40];
        by_another = i == ANOTHER;
        config->compute.device_memory_bytes = memory[i];
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_uint_eq(plan->out.by_device, by_device);
        ck_assert_uint_gt(plan->out.room_bytes, 0);
        if (i == LITTLE) /* most blocks are written as they come */
            plan->out.room_bytes = 30000;
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

START_TEST(finished_blocks_wait_in_memory_where_hashing_takes_longest)
{
    ck_assert_int_eq(open_with(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN,
                               "      - cog: {bands: [OUT]}\n"
                               "      - stac: {checksum: blake3, datetime: file-time}\n"),
                     0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_uint_eq(plan->out.by_device, 1);
    ck_assert_uint_eq(plan->out.room_bytes, 0);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

START_TEST(products_made_on_the_device_are_the_cpus)
{
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", MADE, 0x7f);
    tile_px = 128;
    compare_products(REAL "real/global/blue_marble_720x360_be.tif", MADE, 0x7f);
    compare_products(REAL "real/landsat7_L7_ETMs_6band.tif", MIXED, 3);
    ck_assert_int_gt(whole_host.parts, 10);
    ck_assert_int_gt(whole_host.blocks, 500);
}
END_TEST

/* The least memory that the plan can do with: as many bands as there can be. */
static void shrink_memory(void)
{
    uint64_t least = plan->whole.device_bytes, tried = 1 << 26;
    struct image image;
    ck_assert_msg(plan->whole.used, "%s", plan->whole.why_not);
    for (int rc = 0; rc == 0; tried /= 2) {
        struct pb_pass *pass = NULL;
        struct pb_err err = {0};
        plan->whole.device_bytes = tried;
        rc = make_pass(&image, &err, &pass);
        least = rc == 0 ? tried : least;
        pb_pass_destroy(pass);
        free(image.planes);
    }
    plan->whole.device_bytes = least;
}

static void same(const char *path, const struct image *a, const struct image *b)
{
    size_t n = (size_t)a->w * (size_t)a->h * a->n;
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(a->planes + i, b->planes + i, sizeof(float)) == 0 ||
                          (isnan(a->planes[i]) && isnan(b->planes[i])),
                      "%s: pixel %zu is %.9g, not %.9g", path, i, (double)a->planes[i],
                      (double)b->planes[i]);
}

static int scenes, others, by_host, masks[3];

/* What GDAL decodes is read by other windows than tiles have, which its messages name. */
static void same_words(const struct pb_err *a, const struct pb_err *b)
{
    ck_assert_msg(a->code == b->code, "%s, %s", a->msg, b->msg);
    if (strstr(a->msg, "window at") == NULL)
        ck_assert_str_eq(a->msg, b->msg);
}

/* By the CPU and by the device's way, with much memory and with little, and by another process.
 * What all of them return. */
static int compare(const char *path, const char *steps)
{
    struct pb_err err = {0}, own = {0};
    int rc = 0;
    struct image cpu = {.n = 0}, whole = {.n = 0};
    if (open_scene(path, steps) < 0 || make_plan(true) < 0) {
        close_scene();
        return 0;
    }
    const struct pb_raster_info *info = pb_raster_info(raster);
    bool used = plan->whole.used;
    if (plan->whole.all_by_host && (int64_t)info->width * info->height > 1 << 20)
        used = false; /* it would take seconds */
    by_host += used && plan->whole.all_by_host;
    masks[plan->whole.how[0].mask] += used;
    pb_plan_destroy(plan);
    if (used) {
        ck_assert_int_eq(make_plan(false), 0);
        rc = run(&cpu, &err);
        pb_plan_destroy(plan);
        /* Another process cannot decode what the device refuses. */
        enum way ways = whole_host.refuse_each > 0 ? ANOTHER : WAYS;
        for (enum way way = MUCH; way < ways; way++) {
            by_another = way == ANOTHER;
            ck_assert_int_eq(make_plan(true), 0);
            ck_assert(plan->whole.used);
            if (way == LITTLE)
                shrink_memory();
            ck_assert_msg(run(&whole, &own) == rc, "%s: %s, %s", path, err.msg, own.msg);
            same_words(&err, &own);
            if (rc == 0)
                same(path, &cpu, &whole);
            free(whole.planes);
            pb_plan_destroy(plan);
            memset(&own, 0, sizeof own);
        }
        by_another = false;
        free(cpu.planes);
    }
    scenes += used;
    others += !used;
    close_scene();
    return rc;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { EACH = 12 }; /* file is looked at */
#else
enum { EACH = 1 };
#endif

static int visit(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    static int n_files;
    (void)status, (void)where;
    size_t n = strlen(path);
    if (kind != FTW_F || n < 4 || strcmp(path + n - 4, ".tif") != 0)
        return 0;
    if (n_files++ % EACH != 0)
        return 0;
    compare(path, BLUR);
    compare(path, PLAIN);
    return 0;
}

START_TEST(real_files_have_the_pixels_that_the_cpu_reads)
{
    ck_assert_int_eq(nftw(REAL "real", visit, 16, FTW_PHYS), 0);
    ck_assert_int_eq(nftw(REAL "derived", visit, 16, FTW_PHYS), 0);
    ck_assert_int_gt(scenes, 60 / EACH);
    ck_assert_int_gt(by_host, 60 / EACH);
    ck_assert_int_ge(masks[PB_RAW_MASK_ALPHA], 3 / EACH);
    ck_assert_int_ge(masks[PB_RAW_MASK_HOST], 6 / EACH);
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
        {"real/mask_alpha/cog_rgb_mask.tif", "mask is stored apart", false, PB_RAW_MASK_HOST},
        {"real/mask_alpha/RGBA.uint16_alpha255.tif", "more than 8 bits", true, PB_RAW_MASK_HOST},
        {"real/mask_alpha/cogeo_jpeg_mask.tif", "codec", true, PB_RAW_MASK_HOST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[300];
        (void)snprintf(path, sizeof path, REAL "%s", cases[i].file);
        ck_assert_int_eq(open_scene(path, PLAIN), 0);
        ck_assert_int_eq(make_plan(true), 0);
        const struct pb_plan_whole *whole = &plan->whole;
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

/* What the host decodes goes to the GPU when products are made there, and it is worth it. */
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
            const char *why = plan->whole.why_not;
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

START_TEST(damaged_files_fail_in_the_same_words)
{
    ck_assert_int_eq(nftw(REAL "hostile", visit, 16, FTW_PHYS), 0);
    ck_assert_int_gt(scenes, 5 / EACH);
}
END_TEST

/* Of a file with one reader, which the CPU's workers take in turn. */
START_TEST(a_reader_that_fails_is_the_cause_and_not_what_the_next_one_finds)
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
START_TEST(strips_that_reach_over_several_bands_are_there_in_all)
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

/* 300 x 600 pixels of any numbers, in tiles of so many. */
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

/* They share a window: what one band copies from the one before is what each of them has there. */
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

static const char STRETCH[] = "      - stretch: {bands: [B1], percentiles: [3, 90]}\n"
                              "      - math: {bands: {OUT: \"B1 * 0.7\"}}\n"
                              "      - stretch: {bands: {SUM: OUT}, method: stddev}\n";

/* rounds: that the first pass has, at least. */
static void compare_passes(const char *path, int rounds)
{
    struct pb_err err = {0};
    struct image cpu = {.n = 0}, whole = {.n = 0};
    ck_assert_int_eq(open_scene(path, STRETCH), 0);
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_msg(run_all(&cpu, &err) == 0, "%s", err.msg);
    pb_plan_destroy(plan);
    for (int way = 0; way < 2; way++) {
        by_another = way == 1;
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_uint_ge(plan->n_earlier, 1);
        for (size_t i = 0; i < plan->n_earlier; i++)
            ck_assert_msg(plan->earlier[i]->whole.used, "%s", plan->earlier[i]->whole.why_not);
        ck_assert_int_ge(pb_chain_rounds(plan->earlier[0]->chain), rounds);
        ck_assert_msg(run_all(&whole, &err) == 0, "%s", err.msg);
        same(path, &cpu, &whole);
        free(whole.planes);
        pb_plan_destroy(plan);
    }
    by_another = false;
    free(cpu.planes);
    close_scene();
}

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
    ck_assert_int_eq(scenes, 2);
    ck_assert_int_gt(whole_host.refused, 10);
}
END_TEST

static bool plan_shares(uint32_t multiprocessors)
{
    traits.gpu.multiprocessors = multiprocessors;
    ck_assert_int_eq(make_plan(true), 0);
    bool shares = plan->whole.shares;
    ck_assert_msg(plan->whole.used, "%s", plan->whole.why_not);
    pb_plan_destroy(plan);
    return shares;
}

/* 4 streams of 90 MB/s on a multiprocessor; 3 cores of 250 MB/s. */
START_TEST(cores_decode_beside_a_gpu_that_is_at_most_twice_as_fast)
{
    for (int i = 0; i < 2; i++) {
        cores_too = i == 0;
        ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN), 0);
        ck_assert_int_eq(plan_shares(1), cores_too);
        ck_assert_int_eq(plan_shares(4), cores_too);
        ck_assert(!plan_shares(5));
        ck_assert(!plan_shares(132));
        close_scene();
    }
}
END_TEST

/* Each block once, by one of them; what is damaged in the same words. */
START_TEST(cores_that_decode_too_make_the_same_pixels)
{
    cores_too = true;
    traits.gpu.multiprocessors = 1;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN);
    compare(REAL "real/odd/gdal_tiff_with_subifds.tif", PLAIN);
    compare(REAL "hostile/gdal__quad-lzw-old-style.tif", PLAIN);
    ck_assert_int_eq(scenes, 4);
    ck_assert_uint_gt(core_blocks, 20);
    ck_assert_uint_gt(blocks, core_blocks);
    whole_host.refuse_each = 3;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    ck_assert_int_gt(whole_host.refused, 0);
}
END_TEST

/* Whichever side gets the block: copies of a file, each with other bytes overwritten. */
START_TEST(what_is_damaged_fails_in_the_same_words_whoever_decodes_it)
{
    static char bytes[4 << 20];
    FILE *file = fopen(REAL "real/landsat7_L7_ETMs_6band.tif", "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    int failed = 0, copies = EACH > 1 ? 3 : 20;
    (void)fclose(file);
    cores_too = true;
    traits.gpu.multiprocessors = 1;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN);
    ck_assert_uint_gt(core_blocks, 0);
    for (int i = 1; i <= copies; i++) {
        char path[] = "/tmp/pb_whole_XXXXXX";
        int fd = mkstemp(path);
        ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
        ck_assert_int_eq(pwrite(fd, "\xff\xff\xff\xff\xff\xff", 6, (off_t)(n / 24 * (size_t)i)), 6);
        (void)close(fd);
        failed += compare(path, PLAIN) < 0;
        (void)unlink(path);
    }
    ck_assert_int_gt(failed, copies / 2);
}
END_TEST

START_TEST(what_is_refused_elsewhere_fails_the_device)
{
    struct image image;
    struct pb_err err = {0};
    whole_host.refuse_each = 3;
    by_another = true;
    ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN), 0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_int_lt(run(&image, &err), 0);
    ck_assert_msg(err.code == PB_E_DEVICE_FAILED, "%s: %s", pb_code_id(err.code), err.msg);
    free(image.planes);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

/* In this process, and in the one that owns the device, whose figures come over. */
START_TEST(it_tells_how_long_the_device_was_occupied_and_what_was_waited_for)
{
    for (int way = 0; way < 2; way++) {
        struct image image;
        struct pb_err err = {0};
        by_another = way == 1;
        ck_assert_int_eq(open_scene(REAL "real/global/blue_marble_720x360_be.tif", BLUR), 0);
        ck_assert_int_eq(make_plan(true), 0);
        uint64_t start = pb_clock_mono_ns();
        ck_assert_int_eq(run(&image, &err), 0);
        uint64_t wall = pb_clock_mono_ns() - start, waited = 0;
        const struct pb_device_report *gpu = &report.link.device;
        ck_assert(gpu->used);
        ck_assert_uint_gt(gpu->work_ns[PB_DEVICE_DECODE], 0);
        ck_assert_uint_gt(gpu->work_ns[PB_DEVICE_COMPUTE], 0);
        ck_assert_uint_eq(gpu->work_ns[PB_DEVICE_ENCODE], 0);
        ck_assert_uint_ge(gpu->occupied_ns, gpu->work_ns[PB_DEVICE_DECODE]);
        ck_assert_uint_ge(gpu->occupied_ns, gpu->work_ns[PB_DEVICE_COMPUTE]);
        ck_assert_uint_le(gpu->occupied_ns, wall);
        ck_assert_uint_gt(gpu->set_up_ns, 0);
        ck_assert_uint_le(gpu->pin_ns, gpu->set_up_ns);
        for (int i = 0; i < PB_DEVICE_WAITS; i++) {
            ck_assert_uint_le(gpu->wait_ns[i], wall);
            waited += gpu->wait_ns[i];
        }
        ck_assert_uint_gt(waited, 0);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
    by_another = false;
}
END_TEST

/* Alone, and with cores that decode, too; with small groups, as there are few slots. */
START_TEST(a_device_that_shares_the_hosts_memory_reads_and_writes_slots)
{
    traits.integrated = true;
    for (int cores = 0; cores < 2; cores++) {
        cores_too = cores == 1;
        traits.gpu.multiprocessors = cores == 1 ? 1 : 16;
        whole_host.seen = 0;
        compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
        ck_assert_uint_eq(report.link.to_device_bytes, 0);
        ck_assert_uint_eq(report.link.from_device_bytes, 0);
        ck_assert_int_gt(whole_host.seen, 10);
        compare(REAL "derived/l7_none_band.tif", PLAIN);
        compare(REAL "derived/l7_rgba.tif", BLUR);
        compare(REAL "hostile/gdal__quad-lzw-old-style.tif", PLAIN);
    }
    ck_assert_uint_gt(core_blocks, 20);
    cores_too = false;
    ck_assert_int_eq(nftw(REAL "hostile", visit, 16, FTW_PHYS), 0);
    whole_host.refuse_each = 3;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    ck_assert_int_gt(whole_host.refused, 0);
    ck_assert_int_eq(whole_host.opened, 0);
}
END_TEST

START_TEST(a_lost_device_ends_the_pass)
{
    for (int tile = 1; tile < 30; tile += 7) {
        struct image image;
        struct pb_err err = {0};
        ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR), 0);
        ck_assert_int_eq(make_plan(true), 0);
        shrink_memory();
        whole_host.tiles = 0;
        whole_host.fail_tile = tile;
        ck_assert_int_lt(run(&image, &err), 0);
        ck_assert_int_eq(err.code, PB_E_DEVICE_LOST);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

/* A pass, with planes for the host or products that the device makes, whose n-th call of the stage
 * fails. Whether there were so many. */
static bool lose_device(const char *stage, int n, bool products)
{
    char directory[40];
    struct image image = {.n = 0};
    struct pb_err err = {0};
    int rc;
    device_table = whole_faults_at(stage, n);
    if (products)
        make_products(directory, &rc, &err);
    else
        rc = run(&image, &err);
    const bool struck = atomic_load(&whole_faults.struck);
    ck_assert_msg((rc < 0) == struck, "call %d of %s: %d, %s", n, stage, rc, err.msg);
    ck_assert_msg(rc == 0 || err.code == PB_E_DEVICE_LOST, "call %d of %s: %s", n, stage, err.msg);
    ck_assert_int_eq(whole_host.opened, 0);
    free(image.planes);
    if (products)
        remove_files(directory);
    return struck;
}

START_TEST(a_device_that_is_lost_at_any_call_ends_the_pass)
{
    static const char *const stages[] = {"open",      "memory", "table",  "copy",      "decode",
                                         "unpredict", "tile",   "mark",   "after",     "when",
                                         "happened",  "halve",  "encode", "statistics"};
    static const char MADE_THERE[] = "      - cog: {bands: [OUT], blocksize: 64}\n"
                                     "      - statistics: {}\n";
    enum { N = sizeof stages / sizeof *stages, ALWAYS = N - 3 };
    for (int products = 0; products < 2; products++) {
        ck_assert_int_eq(
            open_with(REAL "derived/l7_deflate_p2_tiled.tif", BLUR, products ? MADE_THERE : PIXELS),
            0);
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_int_eq(plan->out.n, 2 * products);
        for (int i = 0; i < (products ? N : ALWAYS); i++) {
            int n = 1;
            while (n < 40 && lose_device(stages[i], n, products))
                n *= 3;
            ck_assert_msg(n > 1, "nothing calls %s", stages[i]);
        }
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

static void *abort_soon(void *pass)
{
    usleep((unsigned)(rand() % 9000));
    pb_pass_abort(pass);
    return NULL;
}

START_TEST(aborted_at_any_moment_it_ends)
{
    ck_assert_int_eq(open_scene(REAL "real/global/blue_marble_720x360_be.tif", BLUR), 0);
    ck_assert_int_eq(make_plan(true), 0);
    shrink_memory();
    for (int i = 0; i < (EACH > 1 ? 6 : 30); i++) {
        struct image image;
        struct pb_err err = {0};
        struct pb_pass *pass = NULL;
        pthread_t thread;
        ck_assert_int_eq(make_pass(&image, &err, &pass), 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, pass), 0);
        ck_assert_int_eq(pb_pass_start(pass, &err), 0);
        ck_assert_int_eq(pb_pass_wait(pass, -1, &err), 0);
        pthread_join(thread, NULL);
        pb_pass_destroy(pass);
        free(image.planes);
    }
    pb_plan_destroy(plan);
    close_scene();
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
    tcase_add_test(tc, what_the_host_decodes_goes_there_for_the_products);
    tcase_add_test(tc, damaged_files_fail_in_the_same_words);
    tcase_add_test(tc, a_reader_that_fails_is_the_cause_and_not_what_the_next_one_finds);
    tcase_add_test(tc, random_scenes_have_the_pixels_that_the_cpu_reads);
    tcase_add_test(tc, strips_that_reach_over_several_bands_are_there_in_all);
    tcase_add_test(tc, files_with_blocks_of_several_heights_share_bands);
    tcase_add_test(tc, earlier_passes_find_the_numbers_that_the_cpu_finds);
    tcase_add_test(tc, what_the_device_refuses_the_host_decodes);
    tcase_add_test(tc, cores_decode_beside_a_gpu_that_is_at_most_twice_as_fast);
    tcase_add_test(tc, cores_that_decode_too_make_the_same_pixels);
    tcase_add_test(tc, what_is_damaged_fails_in_the_same_words_whoever_decodes_it);
    tcase_add_test(tc, what_is_refused_elsewhere_fails_the_device);
    tcase_add_test(tc, it_tells_how_long_the_device_was_occupied_and_what_was_waited_for);
    tcase_add_test(tc, a_device_that_shares_the_hosts_memory_reads_and_writes_slots);
    tcase_add_test(tc, a_lost_device_ends_the_pass);
    tcase_add_test(tc, a_device_that_is_lost_at_any_call_ends_the_pass);
    tcase_add_test(tc, aborted_at_any_moment_it_ends);
    suite_add_tcase(suite, tc);
    tc = tcase_create("products");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, products_made_on_the_device_are_the_cpus);
    tcase_add_test(tc, finished_blocks_wait_in_memory_where_hashing_takes_longest);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
