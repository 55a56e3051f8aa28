/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The applications of wic/apps on the host: each is right however its work is dealt out, and finds
 * a chunk that is read too early, lost or stale, in every round and both ways. */
#include "tests/device/emulate_apps.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>

static const struct emulate_apps plain = {.threads = 1, .pieces = 1, .rounds = 2};

START_TEST(test_result_does_not_depend_on_threads)
{
    const struct emulate_apps how[] = {
        plain,
        {.threads = 3, .pieces = 1, .rounds = 2},
        {.threads = 64, .pieces = 5, .backwards = true, .rounds = 2},
        {.threads = 4, .pieces = 2, .parallel = true, .rounds = 2},
    };
    char why[200];
    bool met;
    uint32_t steps;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        ck_assert_msg(emulate_rounds((unsigned)_i, &how[i], &met, &steps, why) == 2, "%s: %s",
                      emulate_app((unsigned)_i), why);
    ck_assert(!met && steps > 0);
}
END_TEST

/* One fault; returns whether the step has a chunk for its receiver. */
static bool finds(unsigned app, struct emulate_apps how)
{
    char why[200];
    bool met;
    uint32_t steps;
    const unsigned right = emulate_rounds(app, &how, &met, &steps, why);
    ck_assert_msg(right == (met ? how.rounds - 1 : how.rounds),
                  "%s: fault %d for %d, round %u, step %u: %u right (%s)", emulate_app(app),
                  how.fault, how.receiver, how.round, how.step, right, why);
    return met;
}

START_TEST(test_every_break_is_found)
{
    const unsigned app = (unsigned)_i;
    char why[200];
    bool met;
    uint32_t steps;
    emulate_rounds(app, &plain, &met, &steps, why);
    for (int fault = EMULATE_EARLY_READ; fault <= EMULATE_STALE; fault++) {
        unsigned found[2] = {0, 0};
        for (uint32_t i = 0; i < 2 * steps; i++) { /* each step, both ways, in turn in each round */
            struct emulate_apps how = {.threads = 4, .pieces = 2, .rounds = 2, .fault = fault};
            how.receiver = (int)(i % 2);
            how.step = i / 2;
            how.round = (how.step + i) % 2;
            found[how.receiver] += finds(app, how);
        }
        ck_assert_msg(found[0] > 0 && found[1] > 0, "%s: no fault %d", emulate_app(app), fault);
    }
}
END_TEST

int main(void)
{
    int apps = 0;
    while (emulate_app((unsigned)apps) != NULL)
        apps++;
    Suite *suite = suite_create("wic_apps");
    TCase *tc = tcase_create("apps");
    tcase_add_loop_test(tc, test_result_does_not_depend_on_threads, 0, apps);
    tcase_add_loop_test(tc, test_every_break_is_found, 0, apps);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
