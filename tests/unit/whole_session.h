/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_SESSION_H
#define PB_WHOLE_SESSION_H
/* A scene whose blocks are moved to a device as its file stores them, with the host in place of the
 * GPU: the configuration, the plan and a pass of it, in this process or through the process that
 * owns the device; planes of the image, or products. One scene at a time, in static variables. */
#include "pipeline/plan/choose.h"
#include "pipeline/plan/layout.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/run/passes/run_passes.h"
#include "pipeline/run/run_heights.h"
#include "pipeline/run/run_products.h"

#include "served_session.h"
#include "whole_host.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define REAL PB_SOURCE_DIR "/tests/data/"

static struct pb_config *config;
static int tile_px = 64;
static struct pb_raster *raster;
static const char *other_path; /* a second file; NULL if absent. Its band is Q */
static struct pb_raster *other;
static struct pb_plan_other other_source;
static struct pb_plan *plan;

/* Result of a pass: planes of the whole image. */
struct image {
    int32_t w, h;
    size_t n;
    float *planes;
};

static inline int take(void *object, const struct pb_tile *tile,
                       const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    struct image *image = object;
    (void)worker, (void)err;
    for (size_t p = 0; p < image->n; p++)
        for (int32_t y = 0; y < tile->core.h; y++) {
            float *row = image->planes + p * (size_t)image->w * (size_t)image->h +
                         (size_t)(tile->core.y + y) * (size_t)image->w + (size_t)tile->core.x;
            for (int32_t x = 0; x < tile->core.w && pixels->plane_px == 0; x++)
                row[x] = NAN; /* the tile is left out */
            if (pixels->plane_px > 0)
                memcpy(row, pixels->data + p * pixels->plane_px + (size_t)y * (size_t)tile->core.w,
                       (size_t)tile->core.w * sizeof(float));
        }
    return 0;
}

static const char BLUR[] = "      - convolve: {kernel: gaussian, size: 9, bands: {OUT: B1}}\n"
                           "      - math: {bands: {SUM: \"B1 + OUT\"}}\n";
static const char PLAIN[] = "      - math: {bands: {OUT: \"B1 * 2\", SUM: B1}}\n";

static bool cores_too; /* cores decode, next to a device of their speed */

/* Opens the file with a configuration of these steps and products. Returns 0 if it is open. */
static inline int open_with(const char *path, const char *steps, const char *products)
{
    char text[9000], sources[200] = "";
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

/* A product that the host makes of pixels. */
static const char PIXELS[] = "      - zones: {zones: areas.geojson, bands: [OUT, SUM]}\n";

static inline int open_scene(const char *path, const char *steps)
{
    return open_with(path, steps, PIXELS);
}

static struct pb_plan_heights heights; /* facts of the scene */

static inline void close_scene(void)
{
    pb_run_heights_fini(&heights);
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
static const struct pb_ground_tile *ground_tile; /* for a step that cuts into tiles */
static bool by_another;                          /* through a second process */
static const struct pb_whole_device *device_table = &whole_host_device;

static inline int make_plan(bool device)
{
    struct pb_err err = {0};
    request = (struct pb_plan_request){.config = config,
                                       .pipeline = &config->pipelines[0],
                                       .info = pb_raster_info(raster),
                                       .raster = raster,
                                       .heights = &heights,
                                       .tile = ground_tile,
                                       .cuda = device,
                                       .traits = device ? &traits : NULL,
                                       .device_index = device ? 0 : -1,
                                       .remote = device && by_another};
    if (other != NULL) {
        other_source = (struct pb_plan_other){.config = &config->pipelines[0].input.sources[0],
                                              .info = pb_raster_info(other),
                                              .raster = other,
                                              .placed = true,
                                              .map = pb_map_identity()};
        request.others = &other_source;
        request.n_others = 1;
    }
    int rc = pb_run_heights_plan(&request, &err, &plan);
    if (rc == 0)
        plan->engine.mem = PB_MEM_HOST;
    return rc;
}

/* --- the process that owns the device, in this one ---------------------------------------------
 */

static struct pb_remote_session opened; /* the last session */
static struct pb_served_job theirs;     /* memory of the side that computes */

static inline int open_session(void *user, const struct pb_plan *pass,
                               const struct pb_served_request *said,
                               const struct pb_served_tail *tail, struct pb_err *err,
                               struct pb_remote_session *out)
{
    const struct pb_plan_request base = {.config = config,
                                         .pipeline = &config->pipelines[0],
                                         .cuda = true,
                                         .traits = &traits,
                                         .whole_device = device_table};
    (void)user;
    int rc = served_session_open(&base, pass, said, tail, &theirs, err, out);
    opened = *out;
    if (rc < 0)
        pb_served_job_end(&theirs);
    return rc;
}

static const struct pb_remote remote = {.device = "cuda:0",
                                        .traits = &traits,
                                        .open = open_session,
                                        .wait = served_session_wait,
                                        .close = served_session_close};

static inline struct pb_pass_request pass_request(struct image *image)
{
    static struct pb_sink kept;
    static const struct pb_raster *rasters[2];
    kept = (struct pb_sink){.tile = take, .object = image};
    rasters[0] = raster;
    rasters[1] = other;
    *image = (struct image){
        .w = plan->work.geometry.w, .h = plan->work.geometry.h, .n = plan->work.outputs.n};
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

static inline int make_pass(struct image *image, struct pb_err *err, struct pb_pass **out)
{
    const struct pb_pass_request pass = pass_request(image);
    return pb_pass_create(&pass, err, out);
}

static struct pb_run_report report;
static uint64_t blocks, core_blocks; /* decoded blocks, and those of cores; of all runs */

/* Runs the pass of the plan; its report is in `report`. */
static inline int run(struct image *image, struct pb_err *err)
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
    pb_served_job_end(&theirs);
    return rc;
}

/* All passes of the plan. */
static inline int run_all(struct image *image, struct pb_err *err)
{
    const struct pb_pass_request last = pass_request(image);
    struct pb_run_passes *passes = NULL;
    for (size_t i = 0; i < plan->n_earlier; i++)
        plan->earlier[i]->engine.mem = PB_MEM_HOST;
    int rc = pb_run_passes_create(&last, err, &passes);
    rc = rc ? rc : pb_run_passes_start(passes, err);
    rc = rc ? rc : pb_run_passes_wait(passes, -1, err);
    memset(&report, 0, sizeof report);
    if (rc == 0)
        pb_run_passes_report(passes, &report);
    pb_run_passes_destroy(passes);
    pb_served_job_end(&theirs);
    return rc;
}

/* All passes of the open scene on the CPU. */
static inline void run_on_cpu(struct image *image)
{
    struct pb_err err = {0};
    ck_assert_int_eq(make_plan(false), 0);
    ck_assert_msg(run_all(image, &err) == 0, "%s", err.msg);
    pb_plan_destroy(plan);
}

/* --- products --------------------------------------------------------------------------------- */

/* A device with much memory, with the least, and of another process. */
enum way { MUCH, LITTLE, LEAST, ANOTHER, WAYS };

static struct pb_run_products made;

/* Makes the products of the plan, in a new directory, which need not survive a power cut; *rc: of
 * the pass. */
static inline void make_products(char directory[40], int *rc, struct pb_err *err)
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
    *rc = pb_run_products_create(&env, plan->engine.out.room_bytes, err, &made);
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
    pb_served_job_end(&theirs);
    for (size_t i = 0; i < made.n && *rc == 0; i++) {
        struct pb_product_result result;
        *rc = made.type[i]->finish(made.product[i], NULL, 0, err, &result);
    }
    pb_run_products_destroy(&made);
}

static inline void remove_files(const char *directory)
{
    char command[300];
    (void)snprintf(command, sizeof command, "rm -r '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}
#endif
