/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_GPU_PLAN_FIXTURE_H
#define PB_TEST_GPU_PLAN_FIXTURE_H
/* Plans for GPUs that are not here, for tests of one thread. */
#include "pipeline/plan/choose.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/plan/engine.h"
#include "pipeline/product/product_kinds.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct wic_gpu h200 = {"NVIDIA H200", 90, 132, 233472, 232448};

struct question {
    const char *compute, *steps;
    const struct wic_gpu *gpu;
    bool integrated, mask;
    int32_t w, h;
    enum pb_type type;
};

/* Conditions of the next question that prevent a resident kernel. */
static struct {
    bool time_limited;
    const char *stream_why;
    bool remote;
    struct pb_raster *raster; /* scene with the size and place; NULL if absent */
} around;

static struct pb_config *config;
static struct pb_plan *plan;
static const char *buffers_why;

/* Returns the result of pb_plan_create. */
static int try_plan(const struct question *q, struct pb_err *err)
{
    char text[1000];
    struct pb_err_list errors;
    struct pb_raster_info info = {.width = q->w,
                                  .height = q->h,
                                  .n_bands = 4,
                                  .type = q->type,
                                  .has_mask = q->mask,
                                  .block_w = 512,
                                  .block_h = 512,
                                  .stored_block_bytes = 512 * 512 * 8};
    if (around.raster != NULL)
        info = *pb_raster_info(around.raster);
    (void)snprintf(text, sizeof text,
                   "compute: {threads: 2, memory: 32GiB%s}\n"
                   "pipelines:\n"
                   "  p:\n"
                   "    input: {match: [\"*\"], bands: {B: 1, G: 2, R: 3, N: 4}}\n"
                   "    steps:\n%s"
                   "    products:\n"
                   "      - cog: {bands: [OUT]}\n",
                   q->compute, q->steps);
    ck_assert_msg(pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config) ==
                      0,
                  "%s", errors.err[0].msg);
    struct pb_plan_request request = {.config = config,
                                      .pipeline = &config->pipelines[0],
                                      .info = &info,
                                      .raster = around.raster,
                                      .cuda = true,
                                      .stream_why = around.stream_why,
                                      .remote = around.remote};
    struct pb_device_traits traits = {.integrated = q->integrated,
                                      .time_limited = around.time_limited,
                                      .managed = !q->integrated};
    if (q->gpu != NULL) {
        traits.gpu = *q->gpu;
        request.traits = &traits;
    }
    int rc = pb_plan_create(&request, err, &plan);
    if (rc == 0)
        buffers_why = pb_plan_buffers_why(plan);
    return rc;
}

static const struct pb_plan_resident *ask(const struct question *q)
{
    struct pb_err err = {0};
    ck_assert_msg(try_plan(q, &err) == 0, "%s", err.msg);
    return &plan->engine.resident;
}

static void forget(void)
{
    pb_plan_destroy(plan);
    pb_config_destroy(config);
    plan = NULL;
    config = NULL;
    memset(&around, 0, sizeof around);
}
#endif
