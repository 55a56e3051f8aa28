/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "pipeline/grid/tile.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

static struct pb_grid grid_of(int32_t w, int32_t h, int32_t side)
{
    struct pb_grid grid;
    ck_assert_int_eq(pb_grid_init(&grid, w, h, side), 0);
    return grid;
}

START_TEST(refuses_empty_images_and_sides)
{
    struct pb_grid grid;
    ck_assert_int_eq(pb_grid_init(&grid, 0, 5, 4), -EINVAL);
    ck_assert_int_eq(pb_grid_init(&grid, 5, -1, 4), -EINVAL);
    ck_assert_int_eq(pb_grid_init(&grid, 5, 5, 0), -EINVAL);
    ck_assert_int_eq(pb_grid_init(&grid, INT32_MAX, INT32_MAX, 64), -EINVAL);
}
END_TEST

START_TEST(cores_cover_the_image_once)
{
    static const int32_t sizes[][3] = {{1, 1, 64}, {7, 5, 3}, {9, 9, 3}, {1, 40, 8}, {64, 3, 64}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int32_t w = sizes[s][0], h = sizes[s][1];
        struct pb_grid grid = grid_of(w, h, sizes[s][2]);
        char *seen = calloc((size_t)(w * h), 1);
        for (uint32_t i = 0; i < pb_grid_count(&grid); i++) {
            struct pb_rect core = pb_grid_core(&grid, i);
            ck_assert(core.w >= 1 && core.h >= 1 && core.w <= sizes[s][2]);
            for (int32_t y = core.y; y < core.y + core.h; y++)
                for (int32_t x = core.x; x < core.x + core.w; x++)
                    seen[y * w + x]++;
        }
        for (int32_t i = 0; i < w * h; i++)
            ck_assert_int_eq(seen[i], 1);
        free(seen);
    }
}
END_TEST

START_TEST(survives_the_largest_sides)
{
    struct pb_grid grid = grid_of(INT32_MAX, 3, 1 << 20);
    struct pb_rect core = pb_grid_core(&grid, pb_grid_count(&grid) - 1);
    ck_assert_int_eq((int64_t)core.x + core.w, INT32_MAX);
    struct pb_rect grown = pb_rect_grow(&core, 7, INT32_MAX, 3);
    ck_assert_int_eq(grown.x, core.x - 7);
    ck_assert_int_eq(grown.w, core.w + 7);
    ck_assert_int_eq(grown.h, 3);
}
END_TEST

START_TEST(grows_and_clips)
{
    struct pb_rect r = pb_rect_grow(&(struct pb_rect){4, 0, 4, 4}, 2, 20, 20);
    ck_assert_int_eq(r.x, 2);
    ck_assert_int_eq(r.y, 0);
    ck_assert_int_eq(r.w, 8);
    ck_assert_int_eq(r.h, 6);
}
END_TEST

static void check_stripes(int32_t cols, int32_t rows, enum pb_order order, int32_t stripe_cols,
                          int32_t unit_cols)
{
    struct pb_grid grid = grid_of(cols * 4 - 1, rows * 4 - 3, 4);
    grid.stripe_cols = stripe_cols;
    grid.unit_cols = unit_cols;
    ck_assert_int_eq(grid.cols, cols);
    ck_assert_int_eq(grid.rows, rows);
    uint32_t *tiles = malloc(pb_order_unit_max(&grid, order) * sizeof *tiles);
    char *seen = calloc(pb_grid_count(&grid), 1);
    for (uint32_t u = 0; u < pb_order_units(&grid, order); u++) {
        uint32_t n = pb_order_unit(&grid, order, u, tiles);
        ck_assert_uint_ge(n, 1);
        ck_assert_uint_le(n, pb_order_unit_max(&grid, order));
        for (uint32_t i = 0; i < n; i++)
            seen[tiles[i]]++;
    }
    for (uint32_t i = 0; i < pb_grid_count(&grid); i++)
        ck_assert_int_eq(seen[i], 1);
    free(seen);
    free(tiles);
}

static void check_order(int32_t cols, int32_t rows, enum pb_order order)
{
    check_stripes(cols, rows, order, 0, 0);
    if (order == PB_ORDER_ROWS)
        for (int32_t stripe = 0; stripe <= 20; stripe += 4)
            for (int32_t unit = 0; unit <= 5; unit++)
                check_stripes(cols, rows, order, stripe, unit);
}

START_TEST(rows_of_a_stripe_come_before_the_next_stripe)
{
    static const uint32_t expected[] = {0, 1, 2, 5, 6,  7, 10, 11, 12, /* columns 0 to 2 */
                                        3, 4, 8, 9, 13, 14};
    struct pb_grid grid = grid_of(20, 12, 4);
    grid.stripe_cols = 3;
    for (grid.unit_cols = 1; grid.unit_cols <= 3; grid.unit_cols++) {
        uint32_t place = 0, tiles[3];
        for (uint32_t u = 0; u < pb_order_units(&grid, PB_ORDER_ROWS); u++) {
            uint32_t n = pb_order_unit(&grid, PB_ORDER_ROWS, u, tiles);
            for (uint32_t i = 0; i < n; i++)
                ck_assert_uint_eq(tiles[i], expected[place++]);
        }
        ck_assert_uint_eq(place, 15);
    }
}
END_TEST

static void check_positions(const struct pb_grid *grid, enum pb_order order)
{
    uint32_t *tiles = malloc(pb_order_unit_max(grid, order) * sizeof *tiles), place = 0;
    uint32_t cols = (uint32_t)grid->cols;
    for (uint32_t u = 0; u < pb_order_units(grid, order); u++) {
        uint32_t n = pb_order_unit(grid, order, u, tiles);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_uint_eq(pb_order_position(grid, order, tiles[i] % cols, tiles[i] / cols),
                              place++);
    }
    ck_assert_uint_eq(place, pb_grid_count(grid));
    uint32_t unit = 0, number = 0;
    for (place = 0; place < pb_grid_count(grid); place++) {
        uint32_t n = pb_order_unit(grid, order, unit, tiles), i = 0;
        while (i < n && tiles[i] != number)
            i++;
        ck_assert_uint_lt(i, n);
        ck_assert_uint_eq(pb_order_position(grid, order, number % cols, number / cols), place);
        ck_assert_int_eq(pb_order_next(grid, order, &unit, &number),
                         place + 1 < pb_grid_count(grid));
    }
    for (uint32_t i = 0; i < place; i++) {
        uint32_t col = i % cols, row = i / cols, here = pb_order_position(grid, order, col, row);
        ck_assert(col == 0 || here > pb_order_position(grid, order, col - 1, row));
        ck_assert(row == 0 || here > pb_order_position(grid, order, col, row - 1));
    }
    free(tiles);
}

START_TEST(a_tile_s_position_is_its_place_in_the_visit)
{
    for (int32_t cols = 1; cols < 20; cols += 3)
        for (int32_t rows = 1; rows < 20; rows += 2) {
            struct pb_grid grid = grid_of(cols * 4 - 1, rows * 4 - 3, 4);
            check_positions(&grid, PB_ORDER_Z);
            for (grid.stripe_cols = 0; grid.stripe_cols < 9; grid.stripe_cols++)
                for (grid.unit_cols = 0; grid.unit_cols < 4; grid.unit_cols++)
                    check_positions(&grid, PB_ORDER_ROWS);
        }
}
END_TEST

START_TEST(every_order_visits_every_tile_once)
{
    static const int32_t sizes[][2] = {{1, 1},  {1, 2}, {2, 1},   {3, 3},    {5, 2},
                                       {13, 7}, {8, 8}, {1, 300}, {10000, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        check_order(sizes[s][0], sizes[s][1], PB_ORDER_ROWS);
        check_order(sizes[s][0], sizes[s][1], PB_ORDER_Z);
    }
}
END_TEST

START_TEST(z_order_has_no_units_outside_the_image)
{
    struct pb_grid grid = grid_of(1, 10000, 1);
    ck_assert_uint_eq(pb_order_units(&grid, PB_ORDER_Z), 5000);
}
END_TEST

/* Every aligned square of cells must be visited in one piece: this lets parents complete early. */
START_TEST(z_order_finishes_one_square_before_the_next)
{
    struct pb_grid grid = grid_of(26, 14, 1);
    for (uint32_t side = 2; side <= 8; side *= 2) {
        uint32_t tiles[4], last_square = UINT32_MAX;
        char left[64] = {0};
        for (uint32_t u = 0; u < pb_order_units(&grid, PB_ORDER_Z); u++) {
            pb_order_unit(&grid, PB_ORDER_Z, u, tiles);
            uint32_t square = tiles[0] / 26 / (2 * side) * 8 + tiles[0] % 26 / (2 * side);
            ck_assert_int_eq(left[square], 0);
            if (last_square != square && last_square != UINT32_MAX)
                left[last_square] = 1;
            last_square = square;
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tile");
    TCase *tc = tcase_create("geometry");
    tcase_add_test(tc, refuses_empty_images_and_sides);
    tcase_add_test(tc, cores_cover_the_image_once);
    tcase_add_test(tc, survives_the_largest_sides);
    tcase_add_test(tc, grows_and_clips);
    tcase_add_test(tc, every_order_visits_every_tile_once);
    tcase_add_test(tc, a_tile_s_position_is_its_place_in_the_visit);
    tcase_add_test(tc, rows_of_a_stripe_come_before_the_next_stripe);
    tcase_add_test(tc, z_order_has_no_units_outside_the_image);
    tcase_add_test(tc, z_order_finishes_one_square_before_the_next);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
