/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The host's part of wic/stream.hpp, with a thread in the place of the GPU (fake_link.h). */
#include "fake_link.h"
#include "tests/device/emulate_stream.h"

#include "run_suite.h"

static char words[EMULATE_WORDS];

static void is_good(const char *wrong)
{
    ck_assert_msg(wrong == NULL, "%s (%s)", wrong, words);
    ck_assert_uint_eq(fake.wrong, 0);
    ck_assert_uint_eq(fake.links, 0);
}

static void has_words(const char *part)
{
    ck_assert_msg(strstr(words, part) != NULL, "%s", words);
}

START_TEST(test_one_thread_gets_each_result)
{
    fake_reset();
    is_good(emulate_stream_frames(400, _i % 2 ? 1 : 8, _i / 2 % 2, _i < 4, words));
    ck_assert_str_eq(words, "");
}
END_TEST

START_TEST(test_dropped_frame_has_empty_result)
{
    fake_reset();
    is_good(emulate_stream_dropped_frame(words));
    ck_assert_str_eq(words, "");
}
END_TEST

START_TEST(test_full_stream_refuses_push_and_loses_nothing)
{
    fake_reset();
    is_good(emulate_stream_full(words));
    has_words("push: no slot became free in time: pop results");
}
END_TEST

START_TEST(test_frame_of_wrong_size_is_refused)
{
    fake_reset();
    is_good(emulate_stream_wrong_size(false, words));
    has_words("push: 501 units, and a frame has up to 500");
    is_good(emulate_stream_wrong_size(true, words));
    has_words("push: 499 units, and a frame has 500");
}
END_TEST

START_TEST(test_open_failure_has_words)
{
    fake_reset();
    is_good(emulate_stream_open(500, 4, true, words));
    ck_assert_str_eq(words, "");
    is_good(emulate_stream_open(0, 4, false, words));
    has_words("open: a tile has 1 byte to 2 GiB");
    is_good(emulate_stream_open(500, 0, false, words));
    has_words("open: no memory for 0 slots of 500 and 500 bytes");
    fake.script.create_rc = -ENOSPC;
    is_good(emulate_stream_open(500, 4, false, words));
    has_words("open: ");
}
END_TEST

START_TEST(test_failed_kernel_ends_all_calls_with_words)
{
    fake_reset();
    fake.script.die_at = 10;
    is_good(emulate_stream_failure(words));
    has_words("pop: the kernel or a copy failed");
}
END_TEST

START_TEST(test_silent_kernel_ends_with_words)
{
    fake_reset();
    fake.script.silent_at_once = true;
    is_good(emulate_stream_failure(words));
    has_words("no heartbeat");
}
END_TEST

START_TEST(test_cancel_wakes_reader)
{
    fake_reset();
    is_good(emulate_stream_cancel(words));
    has_words("push: ");
}
END_TEST

static void until_kernel_runs(void)
{
    while (atomic_load(&fake.link.running) != 1) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

START_TEST(test_stop_ends_frames_under_way)
{
    fake_reset();
    fake.script.stuck = true;
    is_good(emulate_stream_stop(true, until_kernel_runs, words));
    ck_assert_str_eq(words, "");
}
END_TEST

START_TEST(test_kernel_that_stays_keeps_its_memory)
{
    fake_reset();
    fake.script.stuck = fake.script.deaf = true;
    is_good(emulate_stream_stop(false, until_kernel_runs, words));
    has_words("stop: a kernel or a copy is still on the GPU");
}
END_TEST

START_TEST(test_kernel_of_guests_stays_without_frames)
{
    fake_reset();
    is_good(emulate_stream_guests(until_kernel_runs, words));
    ck_assert_str_eq(words, "");
    ck_assert_uint_eq(fake.starts, 1);
}
END_TEST

START_TEST(test_kernel_of_guests_that_leaves_has_words)
{
    fake_reset();
    fake.script.silent_at_once = true;
    is_good(emulate_stream_guests_without_kernel(words));
    has_words("the kernel that guests depend on left");
    ck_assert_uint_eq(fake.starts, 1);
}
END_TEST

START_TEST(test_guests_of_no_units_are_refused)
{
    fake_reset();
    is_good(emulate_stream_guests_open(0, false, words));
    has_words("open: a frame has 1 to");
}
END_TEST

START_TEST(test_guests_refuse_one_thread)
{
    fake_reset();
    is_good(emulate_stream_guests_open(100, true, words));
    has_words("open: one_thread is not for guests");
}
END_TEST

START_TEST(test_rows_have_whole_frames)
{
    fake_reset();
    is_good(emulate_stream_rows(words));
    ck_assert_str_eq(words, "");
}
END_TEST

START_TEST(test_each_pixel_has_one_thread)
{
    is_good(emulate_stream_pixels());
}
END_TEST

START_TEST(test_image_finds_pixels_of_all_layouts)
{
    is_good(emulate_stream_layouts());
}
END_TEST

START_TEST(test_reduction_has_a_value_per_piece)
{
    fake_reset();
    is_good(emulate_stream_parts(words));
    ck_assert_str_eq(words, "");
}
END_TEST

START_TEST(test_tree_combines_each_value_once)
{
    is_good(emulate_stream_tree());
}
END_TEST

START_TEST(test_wrong_image_is_refused_with_words)
{
    fake_reset();
    is_good(emulate_stream_wrong_image(0, 10, 1, 0, words));
    has_words("open: the image is empty or over 2 GiB");
    is_good(emulate_stream_wrong_image(10, 0, 1, 0, words));
    is_good(emulate_stream_wrong_image(10, 10, 0, 0, words));
    is_good(emulate_stream_wrong_image(10, 10, 1, 23, words));
    is_good(emulate_stream_wrong_image(40000, 40000, 1, 0, words));
    has_words("not a multiple of its pixels' 2 bytes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic stream");
    TCase *t = tcase_create("stream");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_one_thread_gets_each_result, 0, 8);
    tcase_add_test(t, test_dropped_frame_has_empty_result);
    tcase_add_test(t, test_full_stream_refuses_push_and_loses_nothing);
    tcase_add_test(t, test_frame_of_wrong_size_is_refused);
    tcase_add_test(t, test_open_failure_has_words);
    tcase_add_test(t, test_failed_kernel_ends_all_calls_with_words);
    tcase_add_test(t, test_silent_kernel_ends_with_words);
    tcase_add_test(t, test_cancel_wakes_reader);
    tcase_add_test(t, test_stop_ends_frames_under_way);
    tcase_add_test(t, test_kernel_that_stays_keeps_its_memory);
    tcase_add_test(t, test_kernel_of_guests_stays_without_frames);
    tcase_add_test(t, test_kernel_of_guests_that_leaves_has_words);
    tcase_add_test(t, test_guests_of_no_units_are_refused);
    tcase_add_test(t, test_guests_refuse_one_thread);
    tcase_add_test(t, test_rows_have_whole_frames);
    tcase_add_test(t, test_each_pixel_has_one_thread);
    tcase_add_test(t, test_image_finds_pixels_of_all_layouts);
    tcase_add_test(t, test_wrong_image_is_refused_with_words);
    tcase_add_test(t, test_reduction_has_a_value_per_piece);
    tcase_add_test(t, test_tree_combines_each_value_once);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
