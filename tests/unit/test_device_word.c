/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/device_word.h"

#include "config/compute_config.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>

START_TEST(words_become_a_device_and_an_index)
{
    static const struct {
        const char *word;
        enum pb_device_kind device;
        int32_t index;
    } cases[] = {{"auto", PB_DEVICE_AUTO, -1},
                 {"cpu", PB_DEVICE_CPU, -1},
                 {"cuda", PB_DEVICE_CUDA, -1},
                 {"cuda:0", PB_DEVICE_CUDA, 0},
                 {"cuda:255", PB_DEVICE_CUDA, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_compute_config compute = {.device_index = 7};
        ck_assert_int_eq(pb_device_word(cases[i].word, &compute), 0);
        ck_assert_int_eq(compute.device, cases[i].device);
        ck_assert_int_eq(compute.device_index, cases[i].index);
    }
}
END_TEST

START_TEST(other_words_change_nothing)
{
    static const char *const words[] = {"",        "gpu",       "cuda:",   "cuda:-1", "cuda:256",
                                        "cuda:1x", "cuda:0001", "cuda: 1", "CPU",     "auto "};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct pb_compute_config compute = {.device = PB_DEVICE_CUDA, .device_index = 7};
        ck_assert_msg(pb_device_word(words[i], &compute) == -EINVAL, "'%s'", words[i]);
        ck_assert(compute.device == PB_DEVICE_CUDA && compute.device_index == 7);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_word");
    TCase *tests = tcase_create("device_word");
    tcase_add_test(tests, words_become_a_device_and_an_index);
    tcase_add_test(tests, other_words_change_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
