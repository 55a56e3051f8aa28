/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Blocks that are decoded when readers really follow a plan. */
#include "config/config.h"
#include "pipeline/plan/choose.h"
#include "pipeline/plan/exchange.h"
#include "plan_fixture.h"
#include "run_suite.h"

#include "pipeline/run/stream/in_flight.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct trip {
    const struct pb_plan *plan;
    struct pb_block_cache *cache;
    struct pb_in_flight *window; /* as in a run: no reader gets further ahead of another */
};

static void decode_nothing(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                           const struct pb_window *to, unsigned n,
                           struct pb_read_result *out_result)
{
    (void)raster, (void)bands, (void)n_bands;
    for (unsigned i = 0; i < n; i++) {
        usleep((useconds_t)(to[i].rect.x + to[i].rect.y) * 7 % 90);
        out_result[i].rc = 0;
    }
}

/* A tile that is read. */
struct visit {
    const struct pb_plan *plan;
    uint32_t unit, number;
};

/* Announces the same later tiles as a reader of a run. */
static bool later_tile(void *user, uint32_t i, struct pb_rect *out_rect)
{
    const struct visit *visit = user;
    const struct pb_plan_layout *l = &visit->plan->layout;
    uint32_t unit = visit->unit, number = visit->number;
    for (uint32_t k = 0; k <= i; k++)
        if (i > 2 * l->readers || !pb_order_next(&l->grid, l->order, &unit, &number))
            return false;
    *out_rect = pb_plan_tile(visit->plan, number, unit).read[0];
    return true;
}

static void *read_units(void *arg)
{
    struct trip *trip = arg;
    const struct pb_plan *plan = trip->plan;
    const struct pb_grid *g = &plan->layout.grid;
    uint32_t tiles[4], u = 0;
    uint64_t waited = 0;
    char *slot = malloc(plan->layout.in_slot_bytes);
    ck_assert_uint_le(pb_order_unit_max(g, plan->layout.order), 4);
    while (pb_in_flight_take(trip->window, &u, &waited) == 0) {
        uint32_t n = pb_order_unit(g, plan->layout.order, u, tiles);
        for (uint32_t i = 0; i < n; i++) {
            struct pb_tile tile = pb_plan_tile(plan, tiles[i], u);
            struct pb_tile_in in;
            pb_slot_tile(&plan->layout.format, &tile, slot, &in);
            struct visit visit = {plan, u, tiles[i]};
            uint64_t parked = 0;
            struct pb_rect rest[2];
            bool knows_rest = pb_plan_cache_rest(plan, tiles[i], 0, rest);
            const struct pb_cache_reader reader = {.parked_ns = &parked,
                                                   .later = later_tile,
                                                   .user = &visit,
                                                   .rest = knows_rest ? rest : NULL};
            in.window[0].mask = NULL;
            ck_assert_int_eq(pb_block_cache_read(trip->cache, &reader, &in.window[0], NULL), 0);
            pb_in_flight_done(trip->window, u);
        }
    }
    free(slot);
    return NULL;
}

/* Decoded pixels, as often as the image has them. */
static double travelled(const struct pb_plan *plan)
{
    struct pb_block_cache_options options = pb_plan_cache_options(plan, 0, PB_PLAN_LATER);
    struct trip trip = {.plan = plan};
    pthread_t thread[8];
    options.decode = decode_nothing;
    ck_assert_int_eq(pb_block_cache_create(&options, NULL, &trip.cache), 0);
    struct pb_tile_exchange walk;
    ck_assert_int_eq(pb_plan_exchange(plan, NULL, &walk), 0);
    trip.window = pb_in_flight_create(&plan->layout.grid, plan->layout.order,
                                      plan->layout.window_units, &walk);
    ck_assert_ptr_nonnull(trip.window);
    for (uint32_t i = 0; i < plan->layout.readers; i++)
        pthread_create(&thread[i], NULL, read_units, &trip);
    for (uint32_t i = 0; i < plan->layout.readers; i++)
        pthread_join(thread[i], NULL);
    double px = (double)pb_block_cache_decoded_px(trip.cache);
    pb_block_cache_destroy(trip.cache);
    pb_in_flight_destroy(trip.window);
    return px / (double)plan->layout.grid.image_w / (double)plan->layout.grid.image_h;
}

START_TEST(readers_decode_as_often_as_the_plan_says)
{
    static const struct {
        int32_t w, h, block_w, block_h, threads, halo;
    } cases[] = {
        {9000, 6000, 512, 512, 2, HALO},      {9000, 6000, 64, 64, 3, HALO},
        {9000, 6000, 250, 240, 4, POINTWISE}, {9000, 6000, 0, 1, 2, POINTWISE},
        {9000, 6000, 0, 16, 4, HALO},         {5000, 6000, 1024, 1024, 3, POINTWISE},
        {9000, 5000, 0, 600, 2, HALO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_raster_info info =
            scene(cases[i].w, cases[i].h, cases[i].block_w, cases[i].block_h);
        configs[cases[i].halo]->compute.threads = cases[i].threads;
        configs[cases[i].halo]->compute.tile_px = 512;
        struct pb_plan *plan = planned(&info, cases[i].halo, 1024);
        /* A reader that the scheduler holds up finds some of its cells gone: a few more decodes.
         * How many is the machine's luck, which is tried again; a plan that is wrong stays so. */
        double times = travelled(plan);
        for (int try = 1; try < 5 && times > plan->layout.decoding.decodes * 1.25; try++)
            times = travelled(plan);
        ck_assert_msg(times >= 0.999 && times <= plan->layout.decoding.decodes * 1.25,
                      "case %d: %f, planned %f", (int)i, times, plan->layout.decoding.decodes);
        pb_plan_destroy(plan);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_readers");
    TCase *tc = tcase_create("readers");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, readers_decode_as_often_as_the_plan_says);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
