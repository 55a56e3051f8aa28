/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/lane.h"

#include <check.h>
#include <stdlib.h>

/* A block that takes pieces as the Activator does (wic/device/lanes.cuh), from lanes that always
 * have one while their bit is in `ready`. */
struct block {
    uint64_t served[WIC_LANES_MAX], clock;
    int priority[WIC_LANES_MAX];
    uint32_t bytes[WIC_LANES_MAX]; /* size of a piece */
    uint64_t taken[WIC_LANES_MAX]; /* bytes */
};

static bool is_below(const struct block *b, uint32_t ready, uint32_t lane)
{
    for (uint32_t i = 0; i < WIC_LANES_MAX; i++) {
        if ((ready >> i & 1) != 0 && b->priority[i] > b->priority[lane]) {
            return true;
        }
    }
    return false;
}

static uint32_t take(struct block *b, uint32_t ready)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t i = 0; i < WIC_LANES_MAX; i++) {
        if ((ready >> i & 1) != 0) {
            uint64_t key = wic_lane_key(wic_lane_start(b->served[i], b->clock), b->clock,
                                        is_below(b, ready, i), i);
            best = key < best ? key : best;
        }
    }
    uint32_t lane = wic_lane_of_key(best);
    b->clock = wic_lane_start(b->served[lane], b->clock);
    b->served[lane] = b->clock + wic_lane_cost(b->bytes[lane], is_below(b, ready, lane));
    b->taken[lane] += b->bytes[lane];
    return lane;
}

static struct block block_of(uint32_t bytes)
{
    struct block b = {.clock = 0};
    for (uint32_t i = 0; i < WIC_LANES_MAX; i++) {
        b.bytes[i] = bytes;
    }
    return b;
}

START_TEST(lanes_of_one_priority_get_equal_bytes_for_any_size)
{
    struct block b = block_of(4096);
    b.bytes[3] = 16384;
    b.bytes[5] = 1000;
    for (int i = 0; i < 30000; i++) {
        (void)take(&b, 1u << 0 | 1u << 3 | 1u << 5);
    }
    for (uint32_t i = 3; i <= 5; i += 2) {
        uint64_t most = b.taken[0] > b.taken[i] ? b.taken[0] : b.taken[i];
        uint64_t least = b.taken[0] + b.taken[i] - most;
        ck_assert_uint_le(most - least, 2 * 16384);
    }
}
END_TEST

START_TEST(one_lane_alone_is_taken_each_time)
{
    struct block b = block_of(8192);
    b.priority[6] = -5;
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(take(&b, 1u << 6), 6);
    }
}
END_TEST

START_TEST(who_had_nothing_to_take_is_not_owed_it)
{
    struct block b = block_of(4096);
    for (int i = 0; i < 100000; i++) {
        (void)take(&b, 1u << 1);
    }
    uint64_t before = b.taken[1];
    for (int i = 0; i < 100; i++) {
        (void)take(&b, 1u << 1 | 1u << 2);
    }
    ck_assert_uint_ge(b.taken[1] - before, 49 * 4096);
    ck_assert_uint_ge(b.taken[2], 49 * 4096);
}
END_TEST

START_TEST(higher_priority_is_first_with_eightfold_bytes)
{
    struct block b = block_of(4096);
    b.priority[7] = 3;
    b.priority[0] = -2;
    ck_assert_uint_eq(take(&b, 1u << 0 | 1u << 7), 7);
    for (int i = 0; i < 9000; i++) {
        (void)take(&b, 1u << 0 | 1u << 7);
    }
    ck_assert_uint_ge(b.taken[7], 79 * b.taken[0] / 10);
    ck_assert_uint_le(b.taken[7], 81 * b.taken[0] / 10);
}
END_TEST

START_TEST(a_lower_priority_has_all_that_the_higher_leaves)
{
    struct block b = block_of(4096);
    b.priority[1] = 1;
    for (int i = 0; i < 1000; i++) {
        (void)take(&b, i % 100 == 0 ? 1u << 0 | 1u << 1 : 1u << 0);
    }
    ck_assert_uint_ge(b.taken[0], 980 * 4096);
    ck_assert_uint_ge(b.taken[1], 8 * 4096);
}
END_TEST

START_TEST(pieces_without_bytes_take_turns_too)
{
    struct block b = block_of(0);
    int of[2] = {0, 0};
    for (int i = 0; i < 100; i++) {
        of[take(&b, 3)]++;
    }
    ck_assert_int_eq(of[0], 50);
    ck_assert_int_eq(of[1], 50);
}
END_TEST

START_TEST(keys_keep_their_order_however_far_ahead_a_lane_is)
{
    ck_assert_uint_lt(wic_lane_key(5, 5, true, 7), wic_lane_key(6, 5, false, 0));
    ck_assert_uint_lt(wic_lane_key(5, 5, false, 7), wic_lane_key(5, 5, true, 0));
    ck_assert_uint_lt(wic_lane_key(UINT64_MAX / 64, 0, false, 3),
                      wic_lane_key(UINT64_MAX, 0, false, 2));
    ck_assert_uint_eq(wic_lane_of_key(wic_lane_key(UINT64_MAX, 0, true, 6)), 6);
}
END_TEST

START_TEST(credits_are_shared_like_blocks_with_one_for_each)
{
    ck_assert_uint_eq(wic_lane_share(16, 1, 0, false), 16);
    ck_assert_uint_eq(wic_lane_share(16, 2, 0, false), 8);
    ck_assert_uint_eq(wic_lane_share(16, 8, 0, false), 2);
    ck_assert_uint_eq(wic_lane_share(16, 1, 1, false), 14);
    ck_assert_uint_eq(wic_lane_share(16, 1, 1, true), 1);
    ck_assert_uint_eq(wic_lane_share(1, 4, 4, true), 1);
    ck_assert_uint_eq(wic_lane_share(90, 1, 1, true), 10);
    ck_assert_uint_eq(wic_lane_share(4, 0, 0, false), 4); /* nothing was seen yet */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    TCase *tc = tcase_create("lane");
    tcase_add_test(tc, lanes_of_one_priority_get_equal_bytes_for_any_size);
    tcase_add_test(tc, one_lane_alone_is_taken_each_time);
    tcase_add_test(tc, who_had_nothing_to_take_is_not_owed_it);
    tcase_add_test(tc, higher_priority_is_first_with_eightfold_bytes);
    tcase_add_test(tc, a_lower_priority_has_all_that_the_higher_leaves);
    tcase_add_test(tc, pieces_without_bytes_take_turns_too);
    tcase_add_test(tc, keys_keep_their_order_however_far_ahead_a_lane_is);
    tcase_add_test(tc, credits_are_shared_like_blocks_with_one_for_each);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
