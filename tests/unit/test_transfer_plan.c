/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/transfer_plan.h"
#include "wic/device/link.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct wic_gpu h200 = {"NVIDIA H200", 90, 132, 233472, 232448};
static const struct wic_gpu t4 = {"Tesla T4", 75, 40, 65536, 65536};
static const struct wic_gpu unknown = {"Some GPU of 2030", 130, 200, 262144, 262144};

/* Conditions for any plan. */
static void check_plan(const struct wic_gpu *gpu, const struct wic_tile_shape *shape,
                       const struct wic_transfer_plan *plan)
{
    size_t units = (shape->slot_bytes + shape->in_unit - 1) / shape->in_unit;
    size_t piece_units = plan->in_piece / plan->in_unit;
    ck_assert_uint_eq(plan->in_piece % 16, 0);
    ck_assert_uint_eq(plan->out_piece % 16, 0);
    ck_assert_uint_gt(plan->in_piece, 0);
    ck_assert_uint_eq(plan->in_piece % plan->in_unit, 0);
    ck_assert_uint_eq(piece_units * plan->out_unit, plan->out_piece);
    ck_assert_uint_ge(plan->pieces * piece_units, units);
    ck_assert_uint_lt((plan->pieces - 1) * piece_units, units);
    ck_assert_uint_ge(plan->depth, 1);
    ck_assert_uint_le(plan->depth, WIC_PLAN_DEPTH_MAX);
    ck_assert_uint_ge(plan->pulls, 1);
    ck_assert_uint_le(plan->pulls, plan->blocks);
    ck_assert_uint_ge(plan->blocks, gpu->multiprocessors / 3);
    ck_assert_uint_le(plan->warps + WIC_SERVICE_WARPS, 32);
    ck_assert_uint_le(wic_transfer_plan_shared_bytes(plan), gpu->shared_block_bytes);
    ck_assert_uint_le((size_t)wic_transfer_plan_shared_bytes(plan) *
                          ((plan->blocks + gpu->multiprocessors - 1) / gpu->multiprocessors),
                      gpu->shared_bytes);
}

START_TEST(every_shape_is_cut_into_fitting_covering_pieces)
{
    const struct wic_gpu *gpus[] = {&h200, &t4, &unknown};
    const size_t sizes[] = {1, 16, 1000, 4096, 16384, 65537, 1 << 20, 4 << 20, 1 << 30};
    const uint32_t unit_sizes[] = {1, 2, 3, 4, 6, 13, 52, 255, 1000};
    for (size_t g = 0; g < 3; g++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            for (size_t i = 0; i < 9; i++) {
                for (size_t o = 0; o < 9; o++) {
                    struct wic_tile_shape shape = {sizes[s], unit_sizes[i], unit_sizes[o]};
                    struct wic_transfer_plan plan;
                    ck_assert_int_eq(wic_transfer_plan_choose(gpus[g], &shape, NULL, &plan), 0);
                    check_plan(gpus[g], &shape, &plan);
                }
            }
        }
    }
}
END_TEST

START_TEST(newer_gpus_pull_by_bulk_copy_older_ones_by_loads)
{
    struct wic_tile_shape shape = {1 << 20, 4, 2};
    struct wic_transfer_plan plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, NULL, &plan), 0);
    ck_assert_int_eq(plan.transport, WIC_PULL_BULK);
    ck_assert_int_eq(wic_transfer_plan_choose(&unknown, &shape, NULL, &plan), 0);
    ck_assert_int_eq(plan.transport, WIC_PULL_BULK);
    ck_assert_int_eq(wic_transfer_plan_choose(&t4, &shape, NULL, &plan), 0);
    ck_assert_int_eq(plan.transport, WIC_PULL_LOADS);
}
END_TEST

/* At full rate, so that other kernels find room. */
START_TEST(measured_gpu_keeps_3_of_5_multiprocessors_free)
{
    struct wic_tile_shape shape = {1 << 20, 4, 2};
    struct wic_work all = {0, 0, 0, 1};
    struct wic_transfer_plan plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, NULL, &plan), 0);
    ck_assert_uint_le(5 * plan.blocks, 2 * h200.multiprocessors);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, &all, &plan), 0);
    ck_assert_uint_eq(plan.blocks, h200.multiprocessors);
}
END_TEST

START_TEST(bytes_in_flight_keep_the_link_busy_for_any_piece)
{
    const size_t sizes[] = {4096, 16384, 1 << 20};
    for (size_t i = 0; i < 3; i++) {
        struct wic_tile_shape shape = {sizes[i], 4, 2};
        struct wic_transfer_plan plan;
        ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, NULL, &plan), 0);
        ck_assert_uint_ge(plan.pulls * plan.in_piece, 128 * 1024);
        ck_assert_uint_le(plan.pulls * plan.in_piece, 512 * 1024);
    }
}
END_TEST

START_TEST(refuses_what_cannot_be)
{
    struct wic_gpu tiny = {"tiny", 75, 1, 1300, 1300};
    struct wic_gpu old = {"old", 70, 80, 98304, 98304};
    struct wic_tile_shape good = {1 << 20, 4, 2};
    struct wic_tile_shape empty = {0, 4, 2};
    struct wic_tile_shape no_unit = {1 << 20, 0, 2};
    struct wic_tile_shape wide = {1 << 20, (256 << 10) + 1, 2};
    struct wic_tile_shape many = {1 << 20, 255, 255}; /* 16 units of it do not fit there */
    struct wic_transfer_plan plan;
    memset(&plan, 0x5a, sizeof(plan));
    struct wic_transfer_plan before = plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &empty, NULL, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &no_unit, NULL, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &wide, NULL, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_choose(NULL, &good, NULL, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_choose(&old, &good, NULL, &plan), -ENODEV);
    ck_assert_ptr_nonnull(strstr(wic_link_why(), "7.5 is the oldest"));
    ck_assert_int_eq(wic_transfer_plan_choose(&tiny, &many, NULL, &plan), -E2BIG);
    ck_assert_ptr_nonnull(strstr(wic_link_why(), "bytes of shared memory for one piece"));
    struct wic_transfer_plan other;
    ck_assert_int_eq(wic_transfer_plan_choose(&t4, &good, NULL, &other), 0);
    ck_assert_str_eq(wic_link_why(), "");
    ck_assert_mem_eq(&plan, &before, sizeof(plan));
}
END_TEST

static const struct wic_work some_work = {4, 100000, 96, 0};

START_TEST(work_gets_its_part_of_a_block)
{
    struct wic_tile_shape lines = {1024 * 8192, 8192, 0};
    struct wic_work more_warps = {30, 0, 0, 0}, odd = {4, 0, 24, 0};
    struct wic_transfer_plan plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &lines, &some_work, &plan), 0);
    check_plan(&h200, &lines, &plan);
    ck_assert_uint_eq(plan.warps, 4);
    ck_assert_uint_ge(plan.work_bytes, 100000);
    ck_assert_uint_eq(plan.user_bytes, 96);
    ck_assert_int_eq(plan.results, WIC_PUSH_STORES);
    ck_assert_uint_eq(wic_transfer_plan_shared_bytes(&plan),
                      WIC_STAGES_OFFSET + plan.depth * plan.in_piece + plan.work_bytes);
    ck_assert_int_eq(wic_transfer_plan_choose(&t4, &lines, &some_work, &plan), -E2BIG);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &lines, &more_warps, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &lines, &odd, &plan), -EINVAL);
}
END_TEST

START_TEST(a_unit_may_be_longer_than_the_piece_of_the_table)
{
    struct wic_tile_shape lines = {1024 * 53248, 53248, 0};
    struct wic_transfer_plan plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &lines, NULL, &plan), 0);
    check_plan(&h200, &lines, &plan);
    ck_assert_uint_eq(plan.piece_units, 1);
    ck_assert_uint_eq(plan.pieces, 1024);
}
END_TEST

START_TEST(whole_tiles_are_cut_by_units_and_not_pulled)
{
    struct wic_transfer_plan plan;
    char text[160];
    ck_assert_int_eq(wic_transfer_plan_whole(&h200, WIC_COPY, 64, &some_work, &plan), 0);
    ck_assert_uint_eq(plan.in_piece, 0);
    ck_assert_uint_eq(plan.piece_units, 1);
    ck_assert_uint_eq(plan.pieces, 64);
    ck_assert_uint_eq(plan.pulls, plan.blocks);
    ck_assert_int_eq(plan.results, WIC_PUSH_STORES);
    ck_assert_int_gt(wic_transfer_plan_print(&plan, text, sizeof(text)), 0);
    ck_assert_ptr_nonnull(strstr(text, "copy engine"));
    ck_assert_ptr_nonnull(strstr(text, "64 pieces"));
    ck_assert_int_eq(wic_transfer_plan_whole(&t4, WIC_COPY, 64, &some_work, &plan), -E2BIG);
    struct wic_work two = {8, 100000, 96, 2}, large = {8, 200000, 96, 2};
    ck_assert_int_eq(wic_transfer_plan_whole(&h200, WIC_COPY, 64, &two, &plan), 0);
    ck_assert_uint_eq(plan.blocks, 2 * h200.multiprocessors);
    ck_assert_int_eq(wic_transfer_plan_whole(&h200, WIC_COPY, 64, &large, &plan), 0);
    ck_assert_uint_eq(plan.blocks, h200.multiprocessors);
    ck_assert_int_eq(wic_transfer_plan_whole(&h200, WIC_PULL_BULK, 64, NULL, &plan), -EINVAL);
    ck_assert_int_eq(wic_transfer_plan_whole(&h200, WIC_COPY, 0, NULL, &plan), -EINVAL);
}
END_TEST

START_TEST(results_much_longer_than_the_input_keep_their_size)
{
    struct wic_tile_shape shape = {1 << 20, 1, 256 * 1024};
    struct wic_transfer_plan plan;
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, NULL, &plan), 0);
    ck_assert_uint_gt(plan.out_piece, 0);
    ck_assert_uint_eq(plan.out_piece, (uint64_t)plan.piece_units * plan.out_unit);
    ck_assert_uint_ge((uint64_t)plan.pieces * plan.piece_units, 1 << 20);
}
END_TEST

START_TEST(says_what_it_chose)
{
    struct wic_tile_shape shape = {1 << 20, 4, 2};
    struct wic_transfer_plan plan;
    char text[160];
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &shape, NULL, &plan), 0);
    int n = wic_transfer_plan_print(&plan, text, sizeof(text));
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, (int)sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "bulk copy"));
    ck_assert_ptr_nonnull(strstr(text, "16384 bytes"));
    ck_assert_ptr_nonnull(strstr(text, "33920 bytes shared memory"));
}
END_TEST

START_TEST(test_tiles_have_order_and_batch_or_are_refused)
{
    const struct wic_tile_grid grid = {3, 5};
    const struct wic_work work = {8, 40000, 0, 2};
    struct wic_tile_way way = {WIC_COPY, WIC_ORDER_SNAKE, 15};
    struct wic_transfer_plan plan;
    char text[160];
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), 0);
    ck_assert_uint_eq(plan.pieces, 15);
    ck_assert_uint_eq(plan.batch, 15);
    ck_assert_uint_eq(plan.blocks, 264);
    ck_assert_uint_eq(plan.engine_backlog, 0);
    ck_assert_int_eq(plan.order, WIC_ORDER_SNAKE);
    (void)wic_transfer_plan_print(&plan, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "15 tiles by snake, 15 a copy"));
    way.batch = 16;
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), -EINVAL);
    way.batch = 0;
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), -EINVAL);
    way.transport = WIC_PULL_LOADS;
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), 0);
    way.batch = 1;
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), -EINVAL);
    way = (struct wic_tile_way){WIC_PULL_BULK, WIC_ORDER_ROWS, 0};
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), -EINVAL);
    way = (struct wic_tile_way){WIC_IN_PLACE, WIC_ORDERS, 0};
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &work, &plan), -EINVAL);
    const struct wic_work large = {8, 400000, 0, 1};
    way.order = WIC_ORDER_ROWS;
    ck_assert_int_eq(wic_transfer_plan_tiles(&h200, &way, &grid, &large, &plan), -E2BIG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transfer_plan");
    TCase *tests = tcase_create("plan");
    tcase_add_test(tests, every_shape_is_cut_into_fitting_covering_pieces);
    tcase_add_test(tests, newer_gpus_pull_by_bulk_copy_older_ones_by_loads);
    tcase_add_test(tests, bytes_in_flight_keep_the_link_busy_for_any_piece);
    tcase_add_test(tests, measured_gpu_keeps_3_of_5_multiprocessors_free);
    tcase_add_test(tests, refuses_what_cannot_be);
    tcase_add_test(tests, work_gets_its_part_of_a_block);
    tcase_add_test(tests, a_unit_may_be_longer_than_the_piece_of_the_table);
    tcase_add_test(tests, whole_tiles_are_cut_by_units_and_not_pulled);
    tcase_add_test(tests, results_much_longer_than_the_input_keep_their_size);
    tcase_add_test(tests, says_what_it_chose);
    tcase_add_test(tests, test_tiles_have_order_and_batch_or_are_refused);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
