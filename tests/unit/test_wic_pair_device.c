/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads early
 *
 * Applications between two kernels (wic/apps/pair), both parties by threads of the host: short
 * rings, shapes, mistakes for either receiver, and a host that stops the round. */
#include "tests/device/emulate_apps.h"
#include "tests/device/emulate_pair.h"

#include "run_suite.h"

START_TEST(test_all_steps_are_right)
{
    const struct emulate_pair how[] = {
        {.blocks = {1, 1}, .threads = 1, .places = 1, .rounds = 2},
        {.blocks = {2, 3}, .threads = 1, .places = 1, .rounds = 2},
        {.blocks = {2, 1}, .threads = 2, .places = 8, .rounds = 2},
    };
    char why[200];
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        ck_assert_msg(emulate_pair_rounds((unsigned)_i, &how[i], why) == 2, "%s: %s",
                      emulate_pair_app((unsigned)_i), why);
}
END_TEST

START_TEST(test_party_repeats_round_alone)
{
    const struct emulate_pair how = {
        .blocks = {2, 1}, .threads = 2, .places = 2048, .rounds = 1, .alone = true};
    char why[200];
    ck_assert_msg(emulate_pair_rounds((unsigned)_i, &how, why) == 1, "%s: %s",
                  emulate_pair_app((unsigned)_i), why);
}
END_TEST

START_TEST(test_every_way_to_send_is_right)
{
    struct emulate_pair how = {.blocks = {2, 3}, .threads = 2, .places = 1, .rounds = 1};
    char why[200];
    for (how.send = EMULATE_PUT_SIGNAL; how.send <= EMULATE_LETTERS; how.send++)
        ck_assert_msg(emulate_pair_rounds((unsigned)_i, &how, why) == 1, "%s, way %d: %s",
                      emulate_pair_app((unsigned)_i), how.send, why);
}
END_TEST

START_TEST(test_every_mistake_is_found)
{
    const unsigned app = (unsigned)_i / (EMULATE_LETTERS + 1);
    struct emulate_pair how = {.blocks = {2, 1},
                               .threads = 1,
                               .places = 1,
                               .rounds = 1,
                               .send = _i % (EMULATE_LETTERS + 1)};
    char why[200];
    for (how.fault = EMULATE_EARLY_READ; how.fault <= EMULATE_STALE; how.fault++)
        for (how.receiver = 0; how.receiver < 2; how.receiver++) {
            unsigned found = 0;
            for (how.step = 0; how.step < 6; how.step++) /* some have no chunks that way */
                found += emulate_pair_rounds(app, &how, why) == 0;
            ck_assert_msg(found > 0, "%s, way %d: mistake %d for party %d", emulate_pair_app(app),
                          how.send, how.fault, how.receiver);
        }
}
END_TEST

START_TEST(test_kernels_leave_if_the_host_stops)
{
    const struct emulate_pair how = {
        .blocks = {2, 2}, .threads = 2, .places = 1, .rounds = 1, .stops = true};
    char why[200];
    ck_assert_uint_eq(emulate_pair_rounds((unsigned)_i, &how, why), 0); /* it returns */
}
END_TEST

int main(void)
{
    int apps = 0;
    while (emulate_pair_app((unsigned)apps) != NULL)
        apps++;
    Suite *suite = suite_create("wic_pair");
    TCase *tc = tcase_create("pair");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_all_steps_are_right, 0, apps);
    tcase_add_loop_test(tc, test_party_repeats_round_alone, 0, apps);
    tcase_add_loop_test(tc, test_every_way_to_send_is_right, 0, apps);
    tcase_add_loop_test(tc, test_every_mistake_is_found, 0, apps * (EMULATE_LETTERS + 1));
    tcase_add_loop_test(tc, test_kernels_leave_if_the_host_stops, 0, apps);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
