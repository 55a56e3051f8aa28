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

#include "pipeline/run/stream/reader.h"

/* The rectangle that a raster was given last (--wrap=pb_raster_expect). */
static struct pb_rect expected;
void __real_pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect);
void __wrap_pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect);

void __wrap_pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect)
{
    expected = *rect;
    __real_pb_raster_expect(raster, rect);
}

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

/* Reads all tiles of a deflate file with blocks of 128 x 128 pixels, with the plan's readers. */
static void check_announced(int threads)
{
    struct pb_err err = {0};
    pb_plan_destroy(plan);
    pb_raster_close(raster);
    char text[256];
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    snprintf(text, sizeof text,
             "compute: {device: cpu, tile: 128, threads: %d}\n"
             "pipelines: {p: {input: {match: ['*.tif'], bands: {A: 1}},\n"
             "                products: [{cog: {bands: [A], blocksize: 128}}]}}\n",
             threads);
    pb_config_destroy(config);
    config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "test", &pb_products, errors, &config) == 0,
                  "%s", errors->err[0].msg);
    free(errors);
    ck_assert_int_eq(pb_raster_open(PB_SOURCE_DIR
                                    "/tests/data/derived/sentinel2_29RKH_crop/B04.tif",
                                    &config->limits, &err, &raster),
                     0);
    struct pb_plan_request request = {.config = config,
                                      .pipeline = pb_config_pipeline(config, "p"),
                                      .info = pb_raster_info(raster),
                                      .device_index = -1};
    ck_assert_int_eq(pb_plan_create(&request, &err, &plan), 0);
    const struct pb_plan_layout *l = &plan->layout;
    const bool alone = l->readers == 1;
    ck_assert_int_eq(alone, threads == 1);
    stream = (struct pb_stream){.plan = plan, .raster = {raster}, .limits = &config->limits};
    struct pb_reader reader = {0};
    struct pb_tile user;
    struct pb_tile_read read = {.slot = {.data = malloc(l->in_slot_bytes), .user = &user}};
    ck_assert_int_eq(pb_reader_open(&reader, &stream, &err), 0);
    ck_assert(pb_reader_is_ahead(&reader));
    uint32_t unit = 0, number = 0;
    bool more_tiles = true;
    for (uint32_t n = 0; more_tiles; n++) {
        ck_assert_uint_lt(n, pb_grid_count(&l->grid));
        ck_assert_int_eq(pb_reader_tile(&reader, unit, number, &err, &read), 0);
        more_tiles = pb_order_next(&l->grid, l->order, &unit, &number);
        const struct pb_rect next = pb_grid_core(&l->grid, number), none = {0};
        ck_assert_mem_eq(&expected, more_tiles && alone ? &next : &none, sizeof next);
    }
    pb_reader_close(&reader);
    free(read.slot.data);
}

START_TEST(test_reader_alone_announces_the_next_tile)
{
    check_announced(1);
    check_announced(3); /* unknown: another reader may get it */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader");
    TCase *tc = tcase_create("ends");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_channel_that_takes_no_tile_fails_the_stream);
    tcase_add_test(tc, a_stream_that_was_ended_by_others_is_no_failure);
    tcase_add_test(tc, test_reader_alone_announces_the_next_tile);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
