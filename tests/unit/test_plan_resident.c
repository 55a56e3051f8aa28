/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Transport of tiles to a GPU, planned for devices that are absent. */
#include "pipeline/plan/engine.h"
#include "pipeline/plan/describe.h"
#include "pipeline/plan/ways.h"
#include "pipeline/run/stream/stream.h"

#include "config/limits_config.h"
#include "gpu_plan_fixture.h"
#include "run_suite.h"

#include <unistd.h>

static const struct wic_gpu t4 = {"Tesla T4", 75, 40, 65536, 65536};

/* A chain without a halo, on a scene of no special kind. */
static const struct question sum_of_bands = {
    "", "      - math: {bands: {OUT: \"R + N\"}}\n", &h200, false, false, 5000, 3000, PB_U16};

START_TEST(chain_without_halo_pulls_lines_with_all_bands)
{
    const struct question q = {
        "",    "      - index: {names: [NDVI]}\n      - math: {bands: {OUT: \"NDVI\"}}\n",
        &h200, false,
        true,  5000,
        3000,  PB_U16};
    const struct pb_plan_resident *r = ask(&q);
    ck_assert(r->used && r->by_line);
    ck_assert_int_eq(r->chunks.transport, WIC_PULL_BULK);
    int32_t side = plan->layout.grid.side_px;
    /* two bands and a mask of a line */
    ck_assert_uint_eq(r->chunks.in_unit, (size_t)side * (2 + 2 + 1));
    ck_assert_uint_ge(r->chunks.user_bytes, sizeof(struct pb_tile));
    ck_assert_uint_eq(r->chunks.pieces,
                      ((uint32_t)side + r->chunks.piece_units - 1) / r->chunks.piece_units);
    forget();
}
END_TEST

START_TEST(lines_are_shorter_in_the_narrow_tiles_at_the_edge)
{
    const struct question q = {
        "", "      - math: {bands: {OUT: \"R + N\"}}\n", &h200, false, true, 3001, 2003, PB_U8};
    ck_assert(ask(&q)->by_line);
    uint32_t last = pb_grid_count(&plan->layout.grid) - 1;
    struct pb_tile first = pb_plan_tile(plan, 0, 0), corner = pb_plan_tile(plan, last, 0);
    static uint8_t slot[1]; /* where it would be */
    struct pb_tile_in at_first, at_corner;
    pb_slot_tile(&plan->layout.format, &first, slot, &at_first);
    pb_slot_tile(&plan->layout.format, &corner, slot, &at_corner);
    const struct pb_window *w = &at_corner.window[0];
    ck_assert_int_lt(corner.core.w, first.core.w);
    ck_assert_uint_eq(at_first.window[0].row_bytes, plan->engine.resident.chunks.in_unit);
    ck_assert_uint_eq(pb_plan_part_bytes(plan, &first), plan->engine.resident.chunks.in_unit);
    size_t line = ((size_t)corner.core.w + 15) / 16 * 16; /* line of a band, or of the mask */
    ck_assert_uint_eq(w->row_bytes, 3 * line);
    ck_assert_uint_eq(pb_plan_part_bytes(plan, &corner), w->row_bytes);
    ck_assert_uint_eq((plan->engine.resident.chunks.in_unit - w->row_bytes) % 16, 0);
    ck_assert_uint_eq(w->plane_bytes % 16, 0);
    ck_assert_ptr_eq(w->data, slot);
    ck_assert_uint_eq((uintptr_t)w->mask - (uintptr_t)slot, 2 * w->plane_bytes);
    size_t bytes = pb_slot_tile_bytes(&plan->layout.format, &corner);
    ck_assert_uint_eq(bytes, w->row_bytes * (size_t)corner.core.h);
    ck_assert_uint_le(bytes, plan->layout.in_slot_bytes);
    ck_assert_uint_eq(pb_plan_parts(plan, &corner.core), (uint32_t)corner.core.h);
    forget();
}
END_TEST

START_TEST(a_chain_with_a_halo_takes_parts_from_device_slots)
{
    const struct question q = {
        "",    "      - convolve: {kernel: gaussian, size: 15, bands: {OUT: N}}\n",
        &h200, false,
        false, 5000,
        3000,  PB_U16};
    const struct pb_plan_resident *r = ask(&q);
    ck_assert(r->used && !r->by_line);
    ck_assert_int_eq(r->chunks.transport, WIC_COPY);
    ck_assert_int_ge(r->part_w, 4 * plan->work.halo);
    ck_assert_uint_gt(r->scratch_bytes, 0);
    struct pb_rect odd = {0, 0, r->part_w + 1, 3 * r->part_h};
    ck_assert_uint_eq(pb_plan_parts(plan, &odd), 6);
    forget();
}
END_TEST

/* Data on other grids is in device memory, whatever the chain's halo; parts are small where a plane
 * of them is large. */
START_TEST(chain_that_changes_the_grid_uses_device_slots)
{
    struct question q = sum_of_bands;
    q.steps = "      - crop: {window: [7, 9, 3001, 2000], bands: {OUT: N}}\n";
    const struct pb_plan_resident *r = ask(&q);
    ck_assert(plan->engine.cuda && r->used && !r->by_line);
    ck_assert_int_eq(r->chunks.transport, WIC_COPY);
    ck_assert_uint_eq(r->scratch_bytes, 0);
    forget();
    q.steps = "      - resample: {factor: 4, method: cubic, bands: {OUT: N}}\n";
    r = ask(&q);
    ck_assert(r->used && r->part_w == 128 && r->part_h == 128);
    ck_assert_uint_gt(r->scratch_bytes, 0);
    forget();
    q.steps = "      - resample: {factor: 0.05, method: average, bands: {OUT: N}}\n";
    r = ask(&q);
    ck_assert(r->used && r->part_w < 64 && r->part_w >= 8);
    ck_assert_uint_le(pb_chain_plane_px(plan->work.chain, r->part_w, r->part_h), 128 * 1024);
    ck_assert_int_eq(r->chunks.transport, WIC_COPY);
    forget();
}
END_TEST

/* Kernels number the pixels of a plane with 31 bits. */
START_TEST(tile_over_31_bits_is_cut_or_left_to_the_cpu)
{
    struct question q = sum_of_bands;
    q.w = q.h = 60000;
    q.type = PB_U8;
    q.steps = "      - resample: {factor: 0.02, method: average, bands: {OUT: N}}\n";
    (void)ask(&q);
    ck_assert(plan->engine.cuda && plan->engine.cpu_why == NULL);
    ck_assert_uint_le(
        pb_chain_plane_px(plan->work.chain, plan->layout.grid.side_px, plan->layout.grid.side_px),
        INT32_MAX);
    forget();
    q.compute = ", tile: 1024"; /* explicit: not cut */
    (void)ask(&q);
    ck_assert(!plan->engine.cuda && plan->engine.mem == PB_MEM_HOST);
    ck_assert_ptr_nonnull(strstr(pb_plan_stream_why(plan, config), "2^31 pixels"));
    forget();
}
END_TEST

/* The image between the two passes is in this process. */
START_TEST(sieved_image_is_computed_by_a_gpu)
{
    struct question q = sum_of_bands;
    q.steps = "      - math: {bands: {OUT: \"B + G\"}}\n      - sieve: {bands: [OUT], size: 5}\n";
    (void)ask(&q);
    ck_assert_uint_eq(plan->n_earlier, 1);
    const struct pb_plan *before = plan->earlier[0];
    ck_assert(plan->engine.cuda && before->engine.cuda && plan->engine.cpu_why == NULL);
    ck_assert(plan->engine.whole.all_by_host); /* it reads the image alone */
    ck_assert_ptr_nonnull(strstr(plan->engine.whole.host_why, "sieved"));
    ck_assert_uint_gt(before->memory.image_bytes, 0);
    ck_assert_uint_eq(plan->memory.image_bytes, 0);
    ck_assert(before->engine.out.host_planes & 1);
    ck_assert(pb_plan_reads(before, 0, 2) && pb_plan_reads(plan, 0, 2));
    ck_assert(!pb_plan_reads(plan, 0, 3) && pb_plan_reads(plan, plan->work.first_image, 1));
    forget();
    around.remote = true;
    (void)ask(&q);
    ck_assert(plan->engine.cuda && plan->earlier[0]->engine.cuda);
    forget();
}
END_TEST

START_TEST(sieve_of_too_many_cell_borders_is_refused)
{
    struct question q = sum_of_bands;
    struct pb_err err = {0};

    q.w = q.h = 800000;
    q.steps = "      - math: {bands: {OUT: \"B + G\"}}\n      - sieve: {bands: [OUT], size: 5}\n";
    ck_assert_int_lt(try_plan(&q, &err), 0);
    ck_assert_msg(err.code == PB_E_PIPELINE_GRID &&
                      strstr(err.msg, "cannot sieve an image of 800000 x 800000") != NULL,
                  "%s", err.msg);
    forget();
}
END_TEST

/* Percentiles are found in a pass before, on the scene's own grid. */
START_TEST(warping_pipeline_is_computed_by_a_gpu)
{
    static const char path[] = PB_SHARED_DATA "/real/landsat7_L7_ETMs_6band.tif";
    const struct pb_limits limits = {.max_pixels = 1 << 30,
                                     .max_block_bytes = 1 << 28,
                                     .max_side_px = 10000,
                                     .max_bands = 64,
                                     .max_directories = 64};
    struct question q = sum_of_bands;
    struct pb_raster *raster = NULL;

    if (access(path, R_OK) != 0) {
        printf("skipped: no sample files below %s\n", PB_SHARED_DATA);
        return;
    }
    pb_raster_init();
    ck_assert_int_eq(pb_raster_open(path, &limits, NULL, &raster), 0);
    q.steps = "      - stretch: {bands: [B]}\n      - warp: {crs: EPSG:4326}\n"
              "      - math: {bands: {OUT: \"B + G\"}}\n";
    around.raster = raster;
    (void)ask(&q);
    ck_assert_uint_eq(plan->n_earlier, 1);
    ck_assert(plan->engine.cuda && plan->earlier[0]->engine.cuda);
    forget();
    around.raster = raster;
    around.remote = true;
    (void)ask(&q);
    ck_assert(plan->engine.cuda && plan->earlier[0]->engine.cuda && !plan->engine.whole.used);
    ck_assert(pb_plan_ways_are_sound(plan) && plan->work.n_ways == 1);
    plan->work.ways[0].warp->leaf[0].x[0] = 1e12;
    ck_assert(!pb_plan_ways_are_sound(plan) && !pb_plan_ways_are_sound(plan->earlier[0]));
    forget();
    around.raster = raster; /* parts of 128 pixels read three times the pixels of the tile */
    q.steps =
        "      - warp: {crs: EPSG:3857, pixel: 45}\n      - math: {bands: {OUT: \"B + G\"}}\n";
    q.compute = ", codecs: host";
    ck_assert_str_eq(ask(&q)->why_not, pb_limit_reason(PB_LIMIT_RESIDENT_PARTS));
    forget();
    pb_raster_close(raster);
}
END_TEST

START_TEST(engines_not_used_have_their_table_row)
{
    struct pb_engine_reason reason[PB_ENGINE_REASONS_MAX];
    struct question q = sum_of_bands;
    q.compute = ", codecs: host, sync: stream";
    (void)ask(&q);
    ck_assert_uint_eq(pb_engine_reasons(plan, reason), 2);
    const enum pb_limit expected[] = {PB_LIMIT_RESIDENT_SYNC, PB_LIMIT_DECODER_CODECS};
    for (size_t i = 0; i < 2; i++) {
        const struct pb_engine_limit *limit = pb_engine_limit_of(reason[i].reason);
        ck_assert_ptr_eq(limit, pb_engine_limit(expected[i]));
        ck_assert_uint_eq(limit->engine, reason[i].engine);
        ck_assert_uint_eq(limit->kind, PB_LIMIT_CHOSEN);
        ck_assert_str_ne(limit->remedy, "");
    }
    forget();
    ck_assert_ptr_null(pb_engine_limit_of("no row has this"));
}
END_TEST

START_TEST(histograms_are_matched_by_a_gpu)
{
    struct question q = sum_of_bands;
    q.steps = "      - histogram_match: {bands: {OUT: B}, reference: [G]}\n";
    (void)ask(&q);
    ck_assert_uint_eq(plan->n_earlier, 1);
    ck_assert(plan->engine.cuda && plan->earlier[0]->engine.cuda && plan->engine.resident.used);
    ck_assert_uint_gt(pb_chain_curve_bytes(plan->work.chain), 0);
    forget();
    around.remote = true;
    (void)ask(&q);
    ck_assert(plan->engine.cuda && plan->earlier[0]->engine.cuda && plan->engine.resident.used);
    forget();
}
END_TEST

START_TEST(memory_decides_the_road)
{
    struct question q = sum_of_bands;
    ck_assert_int_eq(ask(&q)->chunks.transport, WIC_PULL_BULK);
    forget();
    q.integrated = true;
    ck_assert_int_eq(ask(&q)->chunks.transport, WIC_IN_PLACE);
    forget();
    q.integrated = false;
    q.gpu = &t4;
    ck_assert_int_eq(ask(&q)->chunks.transport, WIC_PULL_LOADS);
    forget();
}
END_TEST

START_TEST(says_why_no_kernel_stays)
{
    struct question q = sum_of_bands;
    q.compute = ", sync: stream";
    char text[2000];
    const struct pb_plan_resident *r = ask(&q);
    ck_assert(!r->used && !r->by_line);
    ck_assert_ptr_nonnull(strstr(r->why_not, "compute.sync"));
    ck_assert_int_lt(pb_plan_describe(plan, text, sizeof text), (int)sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "compute.sync is stream"));
    ck_assert_str_eq(pb_plan_stream_why(plan, config), ""); /* as configured */
    forget();
    q.compute = ", buffers: host";
    r = ask(&q);
    ck_assert(!r->used);
    ck_assert_ptr_nonnull(strstr(r->why_not, "compute.buffers"));
    forget();
    q.compute = "";
    q.gpu = NULL;
    ck_assert(!ask(&q)->used);
    forget();
}
END_TEST

START_TEST(no_kernel_stays_on_a_gpu_that_ends_long_ones)
{
    around.time_limited = true;
    ck_assert(!ask(&sum_of_bands)->used);
    ck_assert_ptr_nonnull(strstr(plan->engine.resident.why_not, "display"));
    ck_assert_str_eq(pb_plan_stream_why(plan, config), plan->engine.resident.why_not);
    forget();
}
END_TEST

START_TEST(no_kernel_stays_where_its_owner_uses_streams)
{
    ck_assert(ask(&sum_of_bands)->used);
    ck_assert_str_eq(pb_plan_stream_why(plan, config), "");
    forget();
    around.stream_why = "by streams after device.busy";
    ck_assert(!ask(&sum_of_bands)->used);
    ck_assert_str_eq(pb_plan_stream_why(plan, config), "by streams after device.busy");
    forget();
}
END_TEST

START_TEST(a_long_line_still_fits_or_goes_by_the_copy_engine)
{
    struct question q = {", tile: 8192", "      - math: {bands: {OUT: \"B + G + R + N\"}}\n",
                         &h200,          false,
                         false,          20000,
                         9000,           PB_F64};
    const struct pb_plan_resident *r = ask(&q);
    ck_assert(r->used);
    ck_assert_int_eq(r->chunks.transport, WIC_COPY); /* 256 KiB a line */
    ck_assert(!r->by_line);
    forget();
    q.type = PB_U8;
    r = ask(&q);
    ck_assert(r->by_line); /* 32 KiB */
    ck_assert_uint_eq(r->chunks.piece_units, 1);
    forget();
}
END_TEST

/* The host decodes here: there are no planes to be managed. */
START_TEST(slots_are_pinned_whatever_planes_are)
{
    struct question q = sum_of_bands;
    q.compute = ", buffers: managed";
    (void)ask(&q);
    ck_assert_int_eq(plan->engine.mem, PB_MEM_PINNED);
    ck_assert_ptr_nonnull(strstr(buffers_why, "pinned slots, which two processes map"));
    forget();
    q.integrated = true;
    (void)ask(&q);
    ck_assert_ptr_nonnull(strstr(buffers_why, "shares its memory with the host"));
    forget();
    around.remote = true;
    (void)ask(&sum_of_bands);
    ck_assert_int_eq(plan->engine.mem, PB_MEM_PINNED);
    ck_assert_str_eq(buffers_why, "");
    forget();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_resident");
    TCase *tests = tcase_create("transports");
    tcase_add_test(tests, chain_without_halo_pulls_lines_with_all_bands);
    tcase_add_test(tests, lines_are_shorter_in_the_narrow_tiles_at_the_edge);
    tcase_add_test(tests, a_chain_with_a_halo_takes_parts_from_device_slots);
    tcase_add_test(tests, chain_that_changes_the_grid_uses_device_slots);
    tcase_add_test(tests, tile_over_31_bits_is_cut_or_left_to_the_cpu);
    tcase_add_test(tests, sieved_image_is_computed_by_a_gpu);
    tcase_add_test(tests, sieve_of_too_many_cell_borders_is_refused);
    tcase_add_test(tests, warping_pipeline_is_computed_by_a_gpu);
    tcase_add_test(tests, engines_not_used_have_their_table_row);
    tcase_add_test(tests, histograms_are_matched_by_a_gpu);
    tcase_add_test(tests, memory_decides_the_road);
    tcase_add_test(tests, says_why_no_kernel_stays);
    tcase_add_test(tests, no_kernel_stays_on_a_gpu_that_ends_long_ones);
    tcase_add_test(tests, no_kernel_stays_where_its_owner_uses_streams);
    tcase_add_test(tests, a_long_line_still_fits_or_goes_by_the_copy_engine);
    tcase_add_test(tests, slots_are_pinned_whatever_planes_are);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
