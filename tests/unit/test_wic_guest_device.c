/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Guests at a link, by threads of the host: frames that are read by several blocks, slots that are
 * used again, and each way in which a wait ends. */
#include "tests/device/emulate_guest.h"

#include "run_suite.h"

enum { HERE, OVER, LEFT, LATE, GONE }; /* enum wic_guest_end */

START_TEST(test_each_frame_is_read_by_all_blocks)
{
    const struct emulate_guest how[] = {
        {.blocks = 1, .slots = 1, .frames = 100},
        {.blocks = 3, .slots = 2, .frames = 200},
        {.blocks = 3, .slots = 8, .frames = 200},
        {.blocks = 2, .slots = 4, .frames = 100, .each_frame = true},
    };
    uint32_t left;
    ck_assert_uint_eq(emulate_guest_frames(&how[_i], &left), how[_i].frames);
    ck_assert_uint_eq(left, how[_i].blocks);
}
END_TEST

START_TEST(test_abort_ends_all_waits)
{
    const struct emulate_guest how = {.blocks = 3, .slots = 2, .frames = 100, .abort = 20};
    uint32_t left;
    ck_assert_uint_eq(emulate_guest_frames(&how, &left), how.abort);
    ck_assert_uint_eq(left, how.blocks);
}
END_TEST

START_TEST(test_wait_ends_with_its_reason)
{
    uint32_t ends[5];
    emulate_guest_ends(ends);
    ck_assert_uint_eq(ends[0], HERE);
    ck_assert_uint_eq(ends[1], GONE);
    ck_assert_uint_eq(ends[2], OVER);
    ck_assert_uint_eq(ends[3], LEFT);
    ck_assert_uint_eq(ends[4], LATE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic guest");
    TCase *t = tcase_create("guest");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_each_frame_is_read_by_all_blocks, 0, 4);
    tcase_add_test(t, test_abort_ends_all_waits);
    tcase_add_test(t, test_wait_ends_with_its_reason);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
