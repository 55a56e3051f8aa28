/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Multiprocessors and blocks of a kernel that shares a GPU (wic/device/share.h). */
#include "wic/device/share.h"

#include <string.h>

#include "run_suite.h"

static const struct wic_share_room gpu = {.multiprocessors = 132, .part = 16, .blocks_each = 2};

static struct wic_shaped settle(struct wic_share share, uint32_t blocks,
                                const struct wic_share_room *room)
{
    struct wic_shaped shaped = {.why = "no green contexts"};
    wic_share_settle(&share, blocks, room, &shaped);
    return shaped;
}

static void has(const struct wic_shaped *shaped, enum wic_share_way way, uint32_t multiprocessors,
                uint32_t blocks)
{
    ck_assert_int_eq(shaped->way, way);
    ck_assert_uint_eq(shaped->multiprocessors, multiprocessors);
    ck_assert_uint_eq(shaped->blocks, blocks);
}

START_TEST(unshaped_kernel_has_its_blocks_anywhere)
{
    const enum wic_share_way ways[] = {WIC_SHARE_UNSHAPED, WIC_SHARE_PRIORITY};
    for (size_t i = 0; i < 2; i++) {
        const struct wic_shaped shaped = settle((struct wic_share){.way = ways[i]}, 264, &gpu);
        has(&shaped, ways[i], 132, 264);
        ck_assert_str_eq(shaped.why, "");
    }
}
END_TEST

START_TEST(padded_block_has_a_multiprocessor)
{
    struct wic_share share = {.way = WIC_SHARE_PADDED};
    struct wic_shaped shaped = settle(share, 51, &gpu);
    has(&shaped, WIC_SHARE_PADDED, 51, 51);
    shaped = settle(share, 264, &gpu);
    has(&shaped, WIC_SHARE_PADDED, 132, 132);
    share.multiprocessors = 8;
    shaped = settle(share, 51, &gpu);
    has(&shaped, WIC_SHARE_PADDED, 8, 8);
    shaped = settle(share, 4, &gpu);
    has(&shaped, WIC_SHARE_PADDED, 8, 4);
}
END_TEST

START_TEST(part_has_the_blocks_that_fit_on_it)
{
    const struct wic_share share = {.way = WIC_SHARE_GREEN, .multiprocessors = 16};
    struct wic_shaped shaped = settle(share, 51, &gpu);
    has(&shaped, WIC_SHARE_GREEN, 16, 32);
    ck_assert_str_eq(shaped.why, "");
    shaped = settle(share, 20, &gpu);
    has(&shaped, WIC_SHARE_GREEN, 16, 20);
}
END_TEST

START_TEST(driver_without_parts_limits_the_blocks)
{
    const struct wic_share_room room = {.multiprocessors = 132, .blocks_each = 2};
    struct wic_share share = {.way = WIC_SHARE_GREEN, .multiprocessors = 16};
    struct wic_shaped shaped = settle(share, 51, &room);
    has(&shaped, WIC_SHARE_UNSHAPED, 132, 16);
    ck_assert_str_eq(shaped.why, "no green contexts");
    share.multiprocessors = 0; /* one for each block */
    shaped = settle(share, 51, &room);
    has(&shaped, WIC_SHARE_UNSHAPED, 132, 51);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic share");
    TCase *t = tcase_create("share");
    tcase_add_test(t, unshaped_kernel_has_its_blocks_anywhere);
    tcase_add_test(t, padded_block_has_a_multiprocessor);
    tcase_add_test(t, part_has_the_blocks_that_fit_on_it);
    tcase_add_test(t, driver_without_parts_limits_the_blocks);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
