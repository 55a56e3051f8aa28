/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* A reader alone, between a real file and a channel that the test ends in different ways. */
#include "config/config.h"
#include "pipeline/plan/exchange.h"
#include "pipeline/plan/choose.h"
#include "pipeline/device/mem.h"
#include "pipeline/plan/cache.h"
#include "pipeline/run/stream/stream.h"
#include "run_fixture.h"
#include "run_suite.h"

static struct pb_raster *raster;
static struct pb_plan *plan;
static struct pb_stream stream;
static void *payload, *memory;

/* slot_bytes is what the channel believes; the slots themselves hold a tile. */
static void open_stream(size_t slot_bytes)
{
    struct pb_err err = {0};
    size_t stride = wic_slot_stride(plan->layout.in_slot_bytes);
    struct wic_options options = {.slots = 2, .slot_bytes = slot_bytes};
    ck_assert_int_eq(pb_mem_alloc(PB_MEM_HOST, 2 * stride, &err, &payload), 0);
    options.payload = payload;
    memory = aligned_alloc(64, (wic_channel_bytes(&options) + 63) / 64 * 64);
    stream = (struct pb_stream){.plan = plan, .raster = {raster}, .limits = &config->limits};
    pthread_mutex_init(&stream.lock, NULL);
    ck_assert_int_eq(wic_channel_init(memory, &options, &stream.in), 0);
    stream.out = stream.in; /* aborted together */
    struct pb_tile_exchange walk;
    ck_assert_int_eq(pb_plan_exchange(plan, NULL, &walk), 0);
    stream.in_flight = pb_in_flight_create(&plan->layout.grid, plan->layout.order,
                                           plan->layout.window_units, &walk);
    struct pb_block_cache_options cells = pb_plan_cache_options(plan, 0, PB_PLAN_LATER);
    if (cells.count > 0)
        ck_assert_int_eq(pb_block_cache_create(&cells, &err, &stream.cache[0][PB_PLAN_LATER]), 0);
}

static void setup(void)
{
    struct pb_err err = {0};
    run_setup();
    pb_raster_init();
    ck_assert_int_eq(pb_raster_open(input, &config->limits, &err, &raster), 0);
    struct pb_plan_request request = {.config = config,
                                      .pipeline = pb_config_pipeline(config, "p"),
                                      .info = pb_raster_info(raster),
                                      .device_index = -1};
    ck_assert_int_eq(pb_plan_create(&request, &err, &plan), 0);
}

static void teardown(void)
{
    pb_in_flight_destroy(stream.in_flight);
    pb_block_cache_destroy(stream.cache[0][PB_PLAN_LATER]);
    wic_channel_fini(stream.in);
    free(memory);
    pb_mem_free(PB_MEM_HOST, payload, 2 * wic_slot_stride(plan->layout.in_slot_bytes));
    pthread_mutex_destroy(&stream.lock);
    pb_plan_destroy(plan);
    pb_raster_close(raster);
    run_teardown();
}

START_TEST(a_channel_that_takes_no_tile_fails_the_stream)
{
    open_stream(1); /* publish answers -EINVAL */
    pb_reader_run(&stream, 0);
    ck_assert(atomic_load(&stream.failed));
    ck_assert_int_eq(stream.failure.code, PB_E_SYSTEM);
    struct wic_slot slot;
    ck_assert_int_eq(wic_wait(stream.in, 0, &slot), -ECANCELED);
}
END_TEST

START_TEST(a_stream_that_was_ended_by_others_is_no_failure)
{
    open_stream(plan->layout.in_slot_bytes);
    pb_stream_abort(&stream);
    pb_reader_run(&stream, 0);
    ck_assert(!atomic_load(&stream.failed));
    wic_channel_fini(stream.in);
    pb_in_flight_destroy(stream.in_flight);
    pb_block_cache_destroy(stream.cache[0][PB_PLAN_LATER]);
    free(memory);
    pb_mem_free(PB_MEM_HOST, payload, 2 * wic_slot_stride(plan->layout.in_slot_bytes));
    open_stream(plan->layout.in_slot_bytes);
    wic_close(stream.in);
    pb_reader_run(&stream, 0);
    ck_assert(!atomic_load(&stream.failed));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader");
    TCase *tc = tcase_create("ends");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_channel_that_takes_no_tile_fails_the_stream);
    tcase_add_test(tc, a_stream_that_was_ended_by_others_is_no_failure);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
