/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "config/patterns.h"
#include "pipeline/run/stream/in_flight.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct pb_grid grid;

static void setup(void)
{
    ck_assert_int_eq(pb_grid_init(&grid, 1000, 700, 100), 0);
}

static const struct wic_pattern *pattern_of(const char *name)
{
    const struct wic_pattern *pattern = NULL;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_msg(pb_pattern_find(name, &pattern, text, sizeof text) == 0, "%s", text);
    return pattern;
}

/* With a walk of its own; pattern NULL: unidirectional. */
static struct pb_in_flight *window_new(enum pb_order order, uint32_t size,
                                       const struct wic_pattern *pattern, const uint64_t *args)
{
    struct pb_exchange_config exchange = {.pattern = pattern};
    struct pb_tile_exchange walk;
    struct pb_err err = {0};
    if (args != NULL)
        memcpy(exchange.args, args, pattern->arg_count * sizeof *args);
    int rc = pb_tile_exchange_init(&walk, &exchange, pb_order_units(&grid, order), size, 1, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    struct pb_in_flight *w = pb_in_flight_create(&grid, order, size, &walk);
    ck_assert_ptr_nonnull(w);
    return w;
}

START_TEST(hands_out_every_unit_once_and_then_ends)
{
    for (int order = 0; order < 2; order++) {
        struct pb_in_flight *w = window_new((enum pb_order)order, 4, NULL, NULL);
        uint32_t unit, tiles[64], seen = 0;
        uint64_t parked = 0;
        while (pb_in_flight_take(w, &unit, &parked) == 0) {
            uint32_t n = pb_order_unit(&grid, (enum pb_order)order, unit, tiles);
            for (uint32_t i = 0; i < n; i++, seen++)
                pb_in_flight_done(w, unit);
        }
        ck_assert_uint_eq(seen, pb_grid_count(&grid));
        ck_assert_int_eq(pb_in_flight_take(w, &unit, &parked), -EPIPE);
        ck_assert_uint_eq(parked, 0);
        pb_in_flight_destroy(w);
    }
}
END_TEST

struct tile_taker {
    struct pb_in_flight *window;
    enum pb_order order;
    atomic_int *taken; /* indexed by tile */
    atomic_int strays; /* tiles of another unit than the named one */
};

static void *take_tiles(void *arg)
{
    struct tile_taker *t = arg;
    uint32_t unit, number, tiles[64];
    uint64_t parked = 0;
    while (pb_in_flight_take_tile(t->window, &unit, &number, &parked) == 0) {
        uint32_t n = pb_order_unit(&grid, t->order, unit, tiles), i = 0;
        while (i < n && tiles[i] != number)
            i++;
        atomic_fetch_add(&t->strays, i == n);
        atomic_fetch_add(&t->taken[number], 1);
        pb_in_flight_done(t->window, unit);
    }
    return NULL;
}

START_TEST(each_tile_of_a_unit_is_given_to_one_thread)
{
    for (int order = 0; order < 2; order++) {
        atomic_int taken[70] = {0};
        struct tile_taker t = {window_new((enum pb_order)order, 2, NULL, NULL),
                               (enum pb_order)order, taken, 0};
        pthread_t thread[4];
        ck_assert_uint_eq(pb_grid_count(&grid), 70);
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(pthread_create(&thread[i], NULL, take_tiles, &t), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < 70; i++)
            ck_assert_int_eq(taken[i], 1);
        ck_assert_int_eq(t.strays, 0);
        pb_in_flight_destroy(t.window);
    }
}
END_TEST

/* The first three tiles of a window of one unit of four: the fourth may be taken, the next unit
 * waits. */
START_TEST(unit_is_finished_by_others_while_the_next_waits)
{
    struct pb_in_flight *w = window_new(PB_ORDER_Z, 1, NULL, NULL);
    uint32_t unit, number;
    uint64_t parked = 0;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pb_in_flight_take_tile(w, &unit, &number, &parked), 0);
        ck_assert_uint_eq(unit, 0);
    }
    for (int i = 0; i < 4; i++)
        pb_in_flight_done(w, 0);
    ck_assert_int_eq(pb_in_flight_take_tile(w, &unit, &number, &parked), 0);
    ck_assert_uint_eq(unit, 1);
    pb_in_flight_abort(w); /* also with tiles of the unit left */
    ck_assert_int_eq(pb_in_flight_take_tile(w, &unit, &number, &parked), -ECANCELED);
    pb_in_flight_destroy(w);
}
END_TEST

/* A window of one unit of four: its tiles may be taken ahead, those of the next one may not yet. */
START_TEST(a_tile_is_taken_ahead_only_where_it_may_go)
{
    struct pb_in_flight *w = window_new(PB_ORDER_Z, 1, NULL, NULL);
    uint32_t unit = 9, number, tiles[4];
    ck_assert_uint_eq(pb_order_unit(&grid, PB_ORDER_Z, 0, tiles), 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pb_in_flight_try_tile(w, &unit, &number), 1);
        ck_assert_uint_eq(unit, 0);
        ck_assert_uint_eq(number, tiles[i]);
    }
    ck_assert_int_eq(pb_in_flight_try_tile(w, &unit, &number), 0);
    for (int i = 0; i < 4; i++)
        pb_in_flight_done(w, 0);
    ck_assert_int_eq(pb_in_flight_try_tile(w, &unit, &number), 1);
    ck_assert_uint_eq(unit, 1);
    pb_in_flight_abort(w);
    ck_assert_int_eq(pb_in_flight_try_tile(w, &unit, &number), 0);
    pb_in_flight_destroy(w);
}
END_TEST

struct taker {
    struct pb_in_flight *window;
    atomic_int taken, rc;
};

static void *take_all(void *arg)
{
    struct taker *t = arg;
    uint32_t unit;
    uint64_t parked = 0;
    int rc;
    while ((rc = pb_in_flight_take(t->window, &unit, &parked)) == 0)
        atomic_fetch_add(&t->taken, 1);
    atomic_store(&t->rc, rc);
    return NULL;
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

START_TEST(full_window_parks_until_its_first_unit_ends)
{
    struct taker t = {.window = window_new(PB_ORDER_ROWS, 3, NULL, NULL)};
    pthread_t thread;
    pthread_create(&thread, NULL, take_all, &t);
    for (int i = 0; i < 30000 && atomic_load(&t.taken) < 3; i++)
        nap(2);
    nap(30);
    ck_assert_int_eq(atomic_load(&t.taken), 3);
    for (int i = 0; i < 10; i++) /* unit 1 ends first: nothing may move */
        pb_in_flight_done(t.window, 1);
    nap(30);
    ck_assert_int_eq(atomic_load(&t.taken), 3);
    for (int i = 0; i < 10; i++)
        pb_in_flight_done(t.window, 0);
    for (int i = 0; i < 30000 && atomic_load(&t.taken) < 5; i++)
        nap(2);
    ck_assert_int_eq(atomic_load(&t.taken), 5);
    pb_in_flight_abort(t.window);
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&t.rc), -ECANCELED);
    pb_in_flight_destroy(t.window);
}
END_TEST

/* --- patterns with a way up ------------------------------------------------------------------- */

static void finish(struct pb_in_flight *w, enum pb_order order, uint32_t unit)
{
    uint32_t tiles[64], n = pb_order_unit(&grid, order, unit, tiles);
    for (uint32_t i = 0; i < n; i++)
        pb_in_flight_done(w, unit);
}

/* One thread takes units, until `wanted` are taken, and then no more. */
static void takes(struct taker *t, int wanted)
{
    for (int i = 0; i < 30000 && atomic_load(&t->taken) < wanted; i++)
        nap(2);
    nap(20);
    ck_assert_int_eq(atomic_load(&t->taken), wanted);
}

START_TEST(alternating_lets_one_unit_go_at_a_time)
{
    const struct wic_pattern *alternating = pattern_of("alternating");
    struct taker t = {.window = window_new(PB_ORDER_ROWS, 4, alternating, NULL)};
    pthread_t thread;
    pthread_create(&thread, NULL, take_all, &t);
    for (uint32_t unit = 0; unit < 7; unit++) {
        takes(&t, (int)unit + 1);
        finish(t.window, PB_ORDER_ROWS, unit);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&t.rc), -EPIPE);
    pb_in_flight_destroy(t.window);
}
END_TEST

START_TEST(multiple_posts_a_portion_per_returned_portion)
{
    const struct wic_pattern *multiple = pattern_of("multiple");
    const uint64_t args[] = {3, 2};
    struct taker t = {.window = window_new(PB_ORDER_ROWS, 5, multiple, args)};
    pthread_t thread;
    pthread_create(&thread, NULL, take_all, &t);
    takes(&t, 3);
    finish(t.window, PB_ORDER_ROWS, 1); /* any unit would do, except for the window */
    takes(&t, 3);
    finish(t.window, PB_ORDER_ROWS, 2);
    takes(&t, 5); /* the next is 5 units after the first: the window is full */
    finish(t.window, PB_ORDER_ROWS, 0);
    takes(&t, 6);
    finish(t.window, PB_ORDER_ROWS, 4); /* 4 are back */
    takes(&t, 7);
    pthread_join(thread, NULL);
    pb_in_flight_destroy(t.window);
}
END_TEST

/* --- the executor's end ------------------------------------------------------------------------
 */

static struct pb_arrivals *arrivals_new(enum pb_order order, uint32_t size,
                                        const struct wic_pattern *pattern)
{
    struct pb_exchange_config exchange = {.pattern = pattern};
    struct pb_tile_exchange walk;
    if (pattern != NULL)
        wic_pattern_defaults(pattern, exchange.args);
    ck_assert_int_eq(
        pb_tile_exchange_init(&walk, &exchange, pb_order_units(&grid, order), size, 1, NULL), 0);
    struct pb_part_exchange parts = {.parts = 0};
    struct pb_arrivals *a = pb_arrivals_create(&grid, order, size, &walk, &parts);
    ck_assert_ptr_nonnull(a);
    return a;
}

static int arrive(struct pb_arrivals *a, uint32_t unit, uint32_t number, const char *why)
{
    struct pb_err err = {0};
    struct pb_tile tile = {.number = number, .unit = unit};
    int rc = pb_arrivals_note(a, &tile, &err);
    ck_assert_msg(why == NULL ? rc == 0 : rc < 0 && strstr(err.msg, why) != NULL,
                  "%d '%s' for tile %u of unit %u", rc, err.msg, number, unit);
    return rc;
}

START_TEST(each_tile_arrives_once_in_any_order_of_the_window)
{
    for (int order = 0; order < 2; order++) {
        uint32_t size = 4, units = pb_order_units(&grid, (enum pb_order)order), tiles[64];
        struct pb_arrivals *a = arrivals_new((enum pb_order)order, size, NULL);
        for (uint32_t base = 0; base < units; base += size)
            for (uint32_t unit = base + size; unit-- > base;) {
                uint32_t n =
                    unit < units ? pb_order_unit(&grid, (enum pb_order)order, unit, tiles) : 0;
                while (n-- > 0)
                    arrive(a, unit, tiles[n], NULL);
            }
        arrive(a, units - 1, tiles[0], "is not of a unit that is under way");
        pb_arrivals_destroy(a);
    }
}
END_TEST

START_TEST(what_is_not_in_the_schedule_is_noticed)
{
    struct pb_arrivals *a = arrivals_new(PB_ORDER_ROWS, 2, NULL);
    arrive(a, 2, 20, "is not of a unit that is under way"); /* beyond the window */
    arrive(a, 7, 70, "is not of a unit that is under way");
    arrive(a, UINT32_MAX, 70, "is not of a unit that is under way");
    for (uint32_t i = 0; i < 10; i++)
        arrive(a, 1, 10 + i, NULL);
    arrive(a, 1, 13, "has arrived before");
    for (uint32_t i = 0; i < 9; i++)
        arrive(a, 0, i, NULL);
    arrive(a, 0, 3, "is not of its unit, or another one is not");
    pb_arrivals_destroy(a);
}
END_TEST

START_TEST(tile_before_its_step_is_noticed)
{
    struct pb_arrivals *a = arrivals_new(PB_ORDER_ROWS, 4, pattern_of("alternating"));
    for (uint32_t i = 0; i < 9; i++)
        arrive(a, 0, i, NULL);
    arrive(a, 1, 10, "arrived before the pattern's step that sends it");
    pb_arrivals_destroy(a);
    a = arrivals_new(PB_ORDER_ROWS, 4, pattern_of("alternating"));
    for (uint32_t i = 0; i < 10; i++)
        arrive(a, 0, i, NULL);
    arrive(a, 1, 10, NULL);
    pb_arrivals_destroy(a);
}
END_TEST

START_TEST(tile_without_all_its_parts_is_noticed)
{
    struct pb_exchange_config exchange = {
        .pattern = pattern_of("multiple"), .of = PB_EXCHANGE_PARTS, .args = {3, 1}};
    struct pb_part_exchange parts;
    struct pb_tile_exchange walk;
    struct pb_tile tile = {.parts = 3};
    struct pb_err err = {0};
    ck_assert_int_eq(pb_tile_exchange_init(&walk, &exchange, 10, 4, 1, &err), 0);
    ck_assert_int_eq(pb_part_exchange_init(&parts, &exchange, 3, 1, &err), 0);
    struct pb_arrivals *a = pb_arrivals_create(&grid, PB_ORDER_ROWS, 4, &walk, &parts);
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(pb_arrivals_note(a, &tile, &err), 0);
    tile = (struct pb_tile){.number = 1, .parts = 2};
    ck_assert_int_lt(pb_arrivals_note(a, &tile, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "arrived without all of its parts"));
    pb_arrivals_destroy(a);
}
END_TEST

/* --- rounds ----------------------------------------------------------------------------------- */

static void walk_again(struct pb_in_flight *w)
{
    const struct pb_exchange_config exchange = {.pattern = NULL};
    const uint32_t units = pb_order_units(&grid, PB_ORDER_ROWS);
    struct pb_tile_exchange walk;
    ck_assert_int_eq(pb_tile_exchange_init(&walk, &exchange, units, 4, 1, NULL), 0);
    pb_in_flight_again(w, &walk);
}

START_TEST(an_open_window_begins_anew_until_it_is_closed)
{
    const uint32_t units = pb_order_units(&grid, PB_ORDER_ROWS);
    struct pb_arrivals *a = arrivals_new(PB_ORDER_ROWS, 4, NULL);
    struct taker t = {.window = window_new(PB_ORDER_ROWS, 4, NULL, NULL)};
    pthread_t thread;
    pb_arrivals_repeat(a, &(struct pb_exchange_config){.pattern = NULL}, 1);
    pb_in_flight_open(t.window, true);
    pthread_create(&thread, NULL, take_all, &t);
    for (int round = 1; round <= 3; round++) {
        const int before = (round - 1) * (int)units;
        ck_assert_int_eq(pb_in_flight_wait(t.window, 5), -ETIMEDOUT);
        for (uint32_t unit = 0; unit < units; unit++) {
            for (int i = 0; i < 30000 && atomic_load(&t.taken) <= before + (int)unit; i++)
                nap(1);
            for (uint32_t i = 0; i < 10; i++)
                arrive(a, unit, 10 * unit + i, NULL);
            finish(t.window, PB_ORDER_ROWS, unit);
        }
        ck_assert_int_eq(pb_in_flight_wait(t.window, -1), 0);
        takes(&t, round * (int)units);
        if (round < 3)
            walk_again(t.window);
    }
    pb_in_flight_open(t.window, false);
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&t.rc), -EPIPE);
    pb_in_flight_destroy(t.window);
    pb_arrivals_destroy(a);
}
END_TEST

START_TEST(an_open_window_whose_tiles_end_is_aborted)
{
    struct pb_in_flight *w = window_new(PB_ORDER_ROWS, 4, NULL, NULL);
    uint32_t unit;
    uint64_t parked = 0;
    pb_in_flight_ended(w);
    ck_assert_int_eq(pb_in_flight_take(w, &unit, &parked), 0);
    pb_in_flight_open(w, true);
    pb_in_flight_ended(w);
    ck_assert_int_eq(pb_in_flight_wait(w, -1), -ECANCELED);
    ck_assert_int_eq(pb_in_flight_take(w, &unit, &parked), -ECANCELED);
    pb_in_flight_destroy(w);
}
END_TEST

/* --- patterns that fit tiles ----------------------------------------------------------------- */

static int judged(const struct wic_pattern *pattern, const uint64_t *args, uint32_t window,
                  const char *why)
{
    struct pb_exchange_config exchange = {.pattern = pattern};
    struct pb_tile_exchange walk;
    struct pb_err err = {0};
    memcpy(exchange.args, args, pattern->arg_count * sizeof *args);
    int rc = pb_tile_exchange_init(&walk, &exchange, 1000, window, 1, &err);
    rc = rc ? rc : pb_tile_exchange_check(&walk, &err);
    ck_assert_msg(why == NULL ? rc == 0 : strstr(err.msg, why) != NULL, "%d '%s'", rc, err.msg);
    return rc;
}

START_TEST(patterns_that_do_not_go_with_tiles_are_refused)
{
    const uint64_t none[3] = {0, 0, 0}, batch[] = {8, 4}, reach[] = {2}, rounds[] = {3, 0};
    const uint64_t chance[] = {4, 4, 0, 0}, data[] = {4, 4, 1, 0};
    judged(pattern_of("alternating"), none, 4, NULL);
    judged(pattern_of("multiple"), batch, 4, NULL);
    judged(&wic_pattern_unidirectional, reach, 5, NULL);
    judged(&wic_pattern_unidirectional, reach, 4, "unidirectional cannot do that");
    judged(pattern_of("probabilistic"), data, 4, NULL);
    ck_assert_int_lt(judged(pattern_of("probabilistic"), chance, 4, "before they are sent"), 0);
    ck_assert_int_lt(judged(pattern_of("alternating"), rounds, 4, "cannot do that"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tc = tcase_create("window");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, hands_out_every_unit_once_and_then_ends);
    tcase_add_test(tc, each_tile_of_a_unit_is_given_to_one_thread);
    tcase_add_test(tc, unit_is_finished_by_others_while_the_next_waits);
    tcase_add_test(tc, a_tile_is_taken_ahead_only_where_it_may_go);
    tcase_add_test(tc, full_window_parks_until_its_first_unit_ends);
    suite_add_tcase(suite, tc);
    TCase *exchange = tcase_create("exchange");
    tcase_add_checked_fixture(exchange, setup, NULL);
    tcase_add_test(exchange, alternating_lets_one_unit_go_at_a_time);
    tcase_add_test(exchange, multiple_posts_a_portion_per_returned_portion);
    tcase_add_test(exchange, each_tile_arrives_once_in_any_order_of_the_window);
    tcase_add_test(exchange, what_is_not_in_the_schedule_is_noticed);
    tcase_add_test(exchange, tile_before_its_step_is_noticed);
    tcase_add_test(exchange, tile_without_all_its_parts_is_noticed);
    tcase_add_test(exchange, patterns_that_do_not_go_with_tiles_are_refused);
    suite_add_tcase(suite, exchange);
    TCase *rounds = tcase_create("rounds");
    tcase_add_checked_fixture(rounds, setup, NULL);
    tcase_add_test(rounds, an_open_window_begins_anew_until_it_is_closed);
    tcase_add_test(rounds, an_open_window_whose_tiles_end_is_aborted);
    suite_add_tcase(suite, rounds);
    return run_suite(suite);
}
