/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads early
 *
 * The frame of the strategies with a resident kernel (wic/apps/strategies/resident.cuh), both
 * parties by threads of the host: short rings, shapes, mistakes, and a host that gives up.
 */
#include "tests/device/emulate_apps.h"
#include "tests/device/emulate_resident.h"

#include "run_suite.h"

#include <check.h>

enum { MISTAKES = 2 }; /* steps in which they are made */

static unsigned rounds(unsigned app, const struct emulate_resident *how, bool *met, uint32_t *steps,
                       char why[200])
{
    return emulate_resident_rounds(app, how, met, steps, why);
}

START_TEST(test_all_steps_are_right)
{
    const struct emulate_resident how[] = {
        {.blocks = 1, .threads = 1, .slots = 1, .rounds = 2},
        {.blocks = 1, .threads = 3, .slots = 2, .rounds = 2},
        {.blocks = 3, .threads = 1, .slots = 2, .rounds = 2},
        {.blocks = 2, .threads = 2, .sliced = true, .slots = 2, .rounds = 2},
    };
    char why[200];
    bool met;
    uint32_t steps;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        ck_assert_msg(rounds((unsigned)_i, &how[i], &met, &steps, why) == 2, "%s: %s",
                      emulate_app((unsigned)_i), why);
    ck_assert(!met && steps > 0);
}
END_TEST

START_TEST(test_every_mistake_is_found)
{
    const unsigned app = (unsigned)_i;
    struct emulate_resident how = {.blocks = 2, .threads = 1, .slots = 2, .rounds = 1};
    char why[200];
    bool met;
    uint32_t steps;
    ck_assert_uint_eq(rounds(app, &how, &met, &steps, why), 1);
    for (how.fault = EMULATE_EARLY_READ; how.fault <= EMULATE_STALE; how.fault++) {
        unsigned found = 0;
        for (how.step = 0; how.step < steps && how.step < MISTAKES; how.step++) {
            const unsigned right = rounds(app, &how, &met, &steps, why);
            ck_assert_msg(right == !met, "%s: mistake %d in step %u: %u right (%s)",
                          emulate_app(app), how.fault, how.step, right, why);
            found += met;
        }
        ck_assert_uint_gt(found, 0);
    }
}
END_TEST

START_TEST(test_kernel_leaves_if_the_host_gives_up)
{
    const struct emulate_resident how = {
        .blocks = 3, .threads = 2, .slots = 2, .rounds = 1, .late = 1};
    char why[200];
    bool met;
    uint32_t steps;
    (void)rounds((unsigned)_i, &how, &met, &steps, why); /* it returns */
}
END_TEST

int main(void)
{
    int apps = 0;
    while (emulate_app((unsigned)apps) != NULL)
        apps++;
    Suite *suite = suite_create("wic_resident");
    TCase *tc = tcase_create("resident");
    tcase_add_loop_test(tc, test_all_steps_are_right, 0, apps);
    tcase_add_loop_test(tc, test_every_mistake_is_found, 0, apps);
    tcase_add_loop_test(tc, test_kernel_leaves_if_the_host_gives_up, 0, apps);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
