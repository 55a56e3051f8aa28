/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/watchdog.h"

#include "run_suite.h"

#include <check.h>

#define MS    UINT64_C(1000000)
#define LIMIT (5000 * MS)

/* Looks every `step` from *now until `end`; whether one of them expired. */
static bool look(struct wic_watchdog *dog, uint64_t *now, uint64_t end, uint64_t step)
{
    bool expired = false;
    for (; *now < end; *now += step)
        expired = wic_watchdog_expired(dog, *now, LIMIT) || expired;
    return expired;
}

START_TEST(expires_after_the_limit_and_not_before)
{
    struct wic_watchdog dog = {0, 0};
    uint64_t now = 77 * MS;
    ck_assert(!look(&dog, &now, now + LIMIT, MS));
    ck_assert(look(&dog, &now, now + 10 * MS, MS));
}
END_TEST

/* The waiter was stopped for longer than the limit: the first look after that decides nothing. */
START_TEST(time_without_a_look_does_not_count)
{
    struct wic_watchdog dog = {0, 0};
    uint64_t now = 77 * MS;
    ck_assert(!look(&dog, &now, now + LIMIT - 10 * MS, MS));
    now += 3 * LIMIT;
    ck_assert(!look(&dog, &now, now + LIMIT, MS));
    ck_assert(look(&dog, &now, now + 10 * MS, MS));
}
END_TEST

START_TEST(counts_again_after_every_gap)
{
    struct wic_watchdog dog = {0, 0};
    uint64_t now = 77 * MS;
    for (int i = 0; i < 100; i++) {
        ck_assert(!look(&dog, &now, now + 200 * MS, MS));
        now += WIC_WATCHDOG_GAP_NS + MS;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watchdog");
    TCase *tests = tcase_create("watchdog");
    tcase_add_test(tests, expires_after_the_limit_and_not_before);
    tcase_add_test(tests, time_without_a_look_does_not_count);
    tcase_add_test(tests, counts_again_after_every_gap);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
