/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/in_flight.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static struct pb_grid grid;

static void setup(void)
{
    ck_assert_int_eq(pb_grid_init(&grid, 1000, 700, 100), 0);
}

START_TEST(hands_out_every_unit_once_and_then_ends)
{
    for (int order = 0; order < 2; order++) {
        struct pb_in_flight *w = pb_in_flight_create(&grid, (enum pb_order)order, 4);
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

START_TEST(parks_when_the_window_is_full_and_goes_on_when_its_first_unit_ends)
{
    struct taker t = {.window = pb_in_flight_create(&grid, PB_ORDER_ROWS, 3)};
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

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tc = tcase_create("window");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, hands_out_every_unit_once_and_then_ends);
    tcase_add_test(tc, parks_when_the_window_is_full_and_goes_on_when_its_first_unit_ends);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
