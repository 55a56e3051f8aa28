/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_PLAN_FIXTURE_H
#define PB_TEST_PLAN_FIXTURE_H
/* A configuration without and one with a halo, scenes, and plans that keep what every plan
 * promises. */
#include "pipeline/plan/choose.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan/cache.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct pb_config *configs[2]; /* without and with a halo */
enum { POINTWISE, HALO };

static inline struct pb_config *parse(const char *steps, const char *bands)
{
    char text[2000];
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    (void)snprintf(text, sizeof text,
                   "compute: {device: cpu, threads: 2}\n"
                   "pipelines:\n"
                   "  p:\n"
                   "    input: {match: [\"*\"], bands: {B: 1, G: 2, R: 3, N: 4}}\n"
                   "    steps:\n%s"
                   "    products:\n"
                   "      - cog: {bands: [%s]}\n"
                   "      - quicklook: {bands: [R, G, B]}\n"
                   "      - statistics: {}\n",
                   steps, bands);
    int rc = pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config);
    ck_assert_msg(rc == 0, "%s", errors.n > 0 ? errors.err[0].msg : "?");
    return config;
}

static inline void setup(void)
{
    configs[POINTWISE] = parse("      - index: {names: [NDVI]}\n", "NDVI");
    configs[HALO] = parse("      - index: {names: [NDVI]}\n"
                          "      - convolve: {kernel: gaussian, size: 15, bands: {SOFT: NDVI}}\n",
                          "SOFT");
}

static inline void teardown(void)
{
    pb_config_destroy(configs[POINTWISE]);
    pb_config_destroy(configs[HALO]);
}

/* block 0 = all of that direction */
static inline struct pb_raster_info scene(int32_t w, int32_t h, int32_t block_w, int32_t block_h)
{
    struct pb_raster_info info = {
        .width = w,
        .height = h,
        .n_bands = 4,
        .type = PB_U16,
        .block_w = block_w ? block_w : w,
        .block_h = block_h ? block_h : h,
        .pixel_interleaved = true,
    };
    info.stored_block_bytes = (uint64_t)info.block_w * (uint64_t)info.block_h * 8;
    return info;
}

static inline int plan_of(const struct pb_raster_info *info, int halo, uint64_t mib,
                          struct pb_err *err, struct pb_plan **out_plan)
{
    struct pb_config *config = configs[halo];
    struct pb_plan_request request = {
        .config = config, .pipeline = &config->pipelines[0], .info = info, .device_index = -1};
    config->compute.memory_bytes = mib << 20;
    *err = (struct pb_err){0};
    return pb_plan_create(&request, err, out_plan);
}

static inline void check_plan(const struct pb_plan *plan, const struct pb_raster_info *info,
                              uint64_t mib)
{
    ck_assert_uint_le(plan->memory.total_bytes, mib << 20);
    ck_assert(plan->layout.decoding.decodes >= 1.0 && plan->layout.decoding.decodes <= 4.0);
    ck_assert_uint_ge(plan->layout.readers, 1);
    ck_assert_uint_ge(plan->layout.in_slots, plan->layout.readers);
    ck_assert_uint_ge(plan->layout.out_slots, plan->layout.writers);
    ck_assert(pb_plan_reads_direct(plan, info) == (plan->layout.decoding.cells[0].count == 0));
    struct pb_block_cache_options cells = pb_plan_cache_options(plan, 0, PB_PLAN_LATER);
    if (plan->layout.decoding.cells[0].count > 0)
        ck_assert_uint_eq(plan->layout.decoding.cells_bytes, pb_block_cache_bytes(&cells));
    ck_assert_uint_ge(plan->memory.total_bytes,
                      plan->layout.decoding.cells_bytes + plan->layout.decoding.cache_bytes +
                          plan->layout.decoding.reader_bytes + plan->memory.product_bytes +
                          plan->layout.in_slots * plan->layout.in_slot_bytes +
                          plan->layout.out_slots * plan->layout.out_slot_bytes);
}

static inline struct pb_plan *planned(const struct pb_raster_info *info, int halo, uint64_t mib)
{
    struct pb_err err;
    struct pb_plan *plan = NULL;
    int rc = plan_of(info, halo, mib, &err, &plan);
    ck_assert_msg(rc == 0, "%d x %d, blocks %d x %d, %d MiB: %s", info->width, info->height,
                  info->block_w, info->block_h, (int)mib, err.msg);
    check_plan(plan, info, mib);
    return plan;
}
#endif
