/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tune/tune.h"
#include "pipeline/plan/choose.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/product/product_kinds.h"

#include "wic/wic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TILES_A_SIDE = 8, STEPS_BYTES = 500 };

const struct pb_tune_shape pb_tune_shapes[PB_TUNE_SHAPES] = {
    {1, 256}, {1, 512}, {1, 1024}, {2, 256}, {2, 512}, {2, 1024},
    {4, 256}, {4, 512}, {4, 1024}, {8, 256}, {8, 512}, {8, 1024},
};

/* Writes about as much arithmetic as pipelines have, so that a plan with too few blocks for it is
 * slower. */
static void write_steps(int32_t bands, char out[STEPS_BYTES])
{
    int b = bands >= 2 ? 2 : 1, c = bands >= 3 ? 3 : 1, d = bands >= 4 ? 4 : b;
    int n = snprintf(out, STEPS_BYTES,
                     "math: {bands: {OUT: \"sqrt(B1 * B%d) + log(B%d + 1) - "
                     "where(B%d > 0.2, B%d ** 2, B1 / 3)",
                     b, c, d, d);
    for (int32_t i = 5; i <= bands; i++)
        n += snprintf(out + n, STEPS_BYTES - (size_t)n, " + B%d", i);
    (void)snprintf(out + n, STEPS_BYTES - (size_t)n, "\"}}");
}

static int configure(const struct pb_tune_shape *shape, struct pb_err *err,
                     struct pb_config **out_config)
{
    char text[1000], steps[STEPS_BYTES];
    struct pb_err_list errors;
    write_steps(shape->bands, steps);
    (void)snprintf(text, sizeof text,
                   "compute: {threads: 1, memory: 4GiB, codecs: host, tile: %d}\n"
                   "pipelines:\n"
                   "  tune:\n"
                   "    input: {match: [\"*\"]}\n"
                   "    steps:\n"
                   "      - %s\n"
                   "    products:\n"
                   "      - cog: {bands: [OUT], blocksize: 256}\n",
                   shape->side_px, steps);
    int rc = pb_config_parse(text, strlen(text), "tune", &pb_products, &errors, out_config);
    if (rc != 0)
        *err = errors.err[0];
    return rc;
}

static int make_plan(const struct pb_tune_shape *shape, const struct pb_device_traits *traits,
                     struct pb_err *err, struct pb_tune_scene *s)
{
    const int32_t side = TILES_A_SIDE * shape->side_px;
    const struct pb_raster_info info = {.width = side,
                                        .height = side,
                                        .n_bands = shape->bands,
                                        .type = PB_U16,
                                        .block_w = 256,
                                        .block_h = 256,
                                        .stored_block_bytes = 256 * 256 * 2};
    struct pb_device_traits fresh = *traits;
    fresh.tuning = (struct pb_tuning){0};
    const struct pb_plan_request request = {.config = s->config,
                                            .pipeline = &s->config->pipelines[0],
                                            .info = &info,
                                            .cuda = true,
                                            .traits = &fresh};
    int rc = pb_plan_create(&request, err, &s->plan);
    if (rc == 0 && !s->plan->engine.resident.by_line)
        rc = pb_fail(err, PB_E_DEVICE_MISSING, "nothing to tune: %s",
                     s->plan->engine.resident.used ? "tiles are not pulled on this GPU"
                                                   : s->plan->engine.resident.why_not);
    return rc;
}

static void describe(struct pb_tune_scene *s)
{
    const struct pb_plan *plan = s->plan;
    const struct wic_transfer_plan *chunks = &plan->engine.resident.chunks;
    struct pb_tile tile = pb_plan_tile(plan, 0, 0);
    size_t bytes = pb_slot_tile_bytes(&plan->layout.format, &tile);
    memcpy(s->user, &tile, sizeof tile);
    s->shape = (struct wic_tile_shape){bytes, chunks->in_unit, chunks->out_unit};
    s->work = (struct wic_work){.warps = chunks->warps,
                                .shared_bytes = chunks->work_bytes,
                                .user_bytes = chunks->user_bytes};
    s->posted = (struct wic_link_tile){.units = pb_plan_parts(plan, &tile.core),
                                       .bytes = bytes,
                                       .out_bytes = pb_plan_out_bytes(plan, &tile)};
    s->in_stride = wic_slot_stride(bytes);
    s->out_stride = wic_slot_stride(s->posted.out_bytes);
    size_t larger = s->in_stride > s->out_stride ? s->in_stride : s->out_stride;
    size_t slots = PB_TUNE_SLOTS_BYTES / larger;
    s->slots = (uint32_t)(slots < WIC_SLOTS_MAX ? slots : WIC_SLOTS_MAX);
}

int pb_tune_scene_open(const struct pb_tune_shape *shape, const struct pb_device_traits *traits,
                       struct pb_err *err, struct pb_tune_scene *out_scene)
{
    struct pb_tune_scene s = {0};
    int rc = configure(shape, err, &s.config);
    if (rc == 0)
        rc = make_plan(shape, traits, err, &s);
    if (rc < 0) {
        pb_tune_scene_close(&s);
        return rc;
    }
    describe(&s);
    *out_scene = s;
    out_scene->posted.user = out_scene->user;
    return 0;
}

void pb_tune_scene_close(struct pb_tune_scene *scene)
{
    pb_plan_destroy(scene->plan);
    pb_config_destroy(scene->config);
    *scene = (struct pb_tune_scene){0};
}

/* --- results
 * -------------------------------------------------------------------------------------- */

/* Fractions of the copy engines' speed. */
#define AT_COPIES  0.95
#define AT_ONE_WAY 0.9

const char *pb_tune_limit(const struct pb_tuning_row *row, double to_device, double from_device)
{
    double in = (double)row->rate, out = in * (double)row->out_bytes / (double)row->in_bytes;
    double to = to_device > 0 ? in / to_device : 0, from = from_device > 0 ? out / from_device : 0;
    if (to >= AT_ONE_WAY && to >= from)
        return "link to the GPU";
    if (from >= AT_ONE_WAY)
        return "link from the GPU";
    if (row->copies > 0 && in >= AT_COPIES * (double)row->copies)
        return "link, both ways";
    return "kernel";
}

#ifndef PB_HAVE_CUDA
int pb_tune(int32_t index, double seconds,
            void (*on_result)(void *user, const struct pb_tune_result *result), void *user,
            struct pb_err *err, struct pb_tuning *out_tuning)
{
    (void)seconds, (void)on_result, (void)user, (void)out_tuning;
    return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA device %d", index);
}

int pb_tune_peer(int32_t from, int32_t to, struct pb_err *err, struct pb_tune_peer *out_peer)
{
    (void)to, (void)out_peer;
    return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA device %d", from);
}
#endif
