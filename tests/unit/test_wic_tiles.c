/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Policies and orders of tiles (wic/device/tiles.h) against brute force: for every pair of a
 * consumer and a producer, the definition of a policy decides whether one needs the other. */
#include "wic/device/tiles.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

enum { MOST = 12, TILES = MOST * MOST };

static bool axis_needs(const struct wic_tile_axis *axis, uint32_t consumer, uint32_t producer)
{
    const int64_t first = axis->first + (int64_t)axis->step * consumer;
    for (uint32_t k = 0; k < axis->count && k < 4 * MOST; k++)
        if (first + (int64_t)axis->stride * k == producer)
            return true;
    return false;
}

static bool needs(const struct wic_tile_policy *policy, struct wic_tile consumer,
                  struct wic_tile producer)
{
    return axis_needs(&policy->row, consumer.row, producer.row) &&
           axis_needs(&policy->col, consumer.col, producer.col);
}

static struct wic_tile tile_of(struct wic_tile_grid grid, uint32_t i)
{
    return (struct wic_tile){i / grid.cols, i % grid.cols};
}

static uint32_t tiles_of(struct wic_tile_grid grid)
{
    return grid.rows * grid.cols;
}

/* Every producer in the ranges of a consumer, and no other one. */
static void check_ranges(const struct wic_tile_stages *s, struct wic_tile consumer)
{
    const struct wic_tile_range row =
        wic_tile_needs(&s->policy.row, consumer.row, s->producers.rows);
    const struct wic_tile_range col =
        wic_tile_needs(&s->policy.col, consumer.col, s->producers.cols);
    bool in[TILES] = {false};
    uint32_t n = 0;
    for (uint32_t r = 0; r < row.count; r++)
        for (uint32_t c = 0; c < col.count; c++)
            in[(row.first + r * row.stride) * s->producers.cols + col.first + c * col.stride] =
                true;
    for (uint32_t p = 0; p < tiles_of(s->producers); p++) {
        const bool needed = needs(&s->policy, consumer, tile_of(s->producers, p));
        ck_assert_int_eq(in[p], needed);
        n += needed;
    }
    ck_assert_uint_eq(wic_tile_needed(&s->policy, s->producers, consumer), n);
}

/* Times that the producer counts in the counter of each consumer: once if it is needed. */
static void check_users(const struct wic_tile_stages *s, struct wic_tile producer)
{
    const struct wic_tile_axis *row = &s->policy.row, *col = &s->policy.col;
    uint32_t times[TILES] = {0};
    for (uint32_t i = 0; i < wic_tile_users(row, s->producers.rows); i++) {
        for (uint32_t k = 0; k < wic_tile_users(col, s->producers.cols); k++) {
            struct wic_tile group;
            if (wic_tile_user(row, producer.row, i, s->producers.rows, s->consumers.rows,
                              &group.row) &&
                wic_tile_user(col, producer.col, k, s->producers.cols, s->consumers.cols,
                              &group.col))
                times[wic_tile_counter(&s->policy, s->consumers, group)]++;
        }
    }
    for (uint32_t c = 0; c < tiles_of(s->consumers); c++) {
        const struct wic_tile consumer = tile_of(s->consumers, c);
        const uint32_t counter = wic_tile_counter(&s->policy, s->consumers, consumer);
        ck_assert_uint_lt(counter, wic_tile_counters(&s->policy, s->consumers));
        ck_assert_uint_eq(times[counter], needs(&s->policy, consumer, producer));
    }
}

/* A consumer is ready after the last producer that it needs, and not before. */
static void check_unlock(const struct wic_tile_stages *s)
{
    uint32_t counters[TILES], list[TILES], ready[TILES + 1], place[TILES];
    const uint32_t n = tiles_of(s->producers), consumers = tiles_of(s->consumers);
    bool listed[TILES] = {false};
    ck_assert_uint_eq(wic_tiles_unlock(s, counters, list, ready), consumers);
    for (uint32_t i = 0; i < n; i++) {
        const struct wic_tile tile = wic_tile_at(s->order, s->producers, i);
        place[tile.row * s->producers.cols + tile.col] = i;
    }
    ck_assert_uint_eq(ready[n], consumers);
    for (uint32_t i = 0, done = 0; i < consumers; i++) {
        uint32_t last = 0;
        for (uint32_t p = 0; p < n; p++)
            if (needs(&s->policy, tile_of(s->consumers, list[i]), tile_of(s->producers, p)))
                last = place[p] + 1 > last ? place[p] + 1 : last;
        while (ready[done] <= i)
            done++;
        ck_assert_uint_eq(done, last);
        ck_assert(!listed[list[i]]);
        listed[list[i]] = true;
    }
}

static void check_policy(const struct wic_tile_policy *policy)
{
    const struct wic_tile_grid grids[] = {{1, 1}, {1, 7}, {5, 1}, {3, 4}, {6, 5}};
    ck_assert(wic_policy_is_valid(policy));
    for (size_t p = 0; p < 5; p++) {
        for (size_t c = 0; c < 5; c++) {
            struct wic_tile_stages s = {grids[p], grids[c], *policy, WIC_ORDER_ROWS};
            for (uint32_t i = 0; i < tiles_of(s.consumers); i++)
                check_ranges(&s, tile_of(s.consumers, i));
            for (uint32_t i = 0; i < tiles_of(s.producers); i++)
                check_users(&s, tile_of(s.producers, i));
            for (uint32_t order = 0; order < WIC_ORDERS; order++) {
                s.order = (enum wic_tile_order)order;
                check_unlock(&s);
            }
        }
    }
}

START_TEST(test_named_policies_are_what_they_say)
{
    const struct wic_tile_policy tile = wic_policy_tile(), row = wic_policy_row(),
                                 near = wic_policy_neighbours(), three = wic_policy_strided(4, 3);
    const struct wic_tile at = {2, 3};
    for (uint32_t p = 0; p < TILES; p++) {
        const struct wic_tile other = {p / MOST, p % MOST};
        const int dr = (int)other.row - 2, dc = (int)other.col - 3;
        ck_assert_int_eq(needs(&tile, at, other), dr == 0 && dc == 0);
        ck_assert_int_eq(needs(&row, at, other), dr == 0);
        ck_assert_int_eq(needs(&near, at, other), dr * dr <= 1 && dc * dc <= 1);
        ck_assert_int_eq(needs(&three, at, other), dr == 0 && (dc == 0 || dc == 4 || dc == 8));
    }
}
END_TEST

START_TEST(test_policies_agree_with_brute_force)
{
    const struct wic_tile_policy policies[] = {
        wic_policy_tile(),           wic_policy_row(),          wic_policy_neighbours(),
        wic_policy_strided(4, 3),    wic_policy_strided(1, 12), wic_policy_strided(3, 2),
        {{0, 0, 1, 1}, {0, 1, 1, 1}}};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        check_policy(&policies[i]);
}
END_TEST

START_TEST(test_random_policies_agree_with_brute_force)
{
    uint64_t state = 20261129;
    for (int i = 0; i < 60; i++) {
        uint32_t v[8];
        for (int k = 0; k < 8; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            v[k] = (uint32_t)(state >> 33);
        }
        const struct wic_tile_policy policy = {
            {(int32_t)(v[0] % 15) - 7, v[1] % 4, v[2] % 5 == 0 ? WIC_TILES_ALL : 1 + v[2] % 6,
             1 + v[3] % 4},
            {(int32_t)(v[4] % 15) - 7, v[5] % 4, v[6] % 5 == 0 ? WIC_TILES_ALL : 1 + v[6] % 6,
             1 + v[7] % 4}};
        check_policy(&policy);
    }
}
END_TEST

START_TEST(test_orders_visit_every_tile_once)
{
    for (uint32_t rows = 1; rows <= 35; rows++) {
        for (uint32_t cols = 1; cols <= 9; cols++) {
            for (uint32_t order = 0; order < WIC_ORDERS; order++) {
                const struct wic_tile_grid grid = {rows, cols};
                bool seen[35 * 9] = {false};
                for (uint32_t i = 0; i < rows * cols; i++) {
                    const struct wic_tile t = wic_tile_at((enum wic_tile_order)order, grid, i);
                    ck_assert_uint_lt(t.row, rows);
                    ck_assert_uint_lt(t.col, cols);
                    ck_assert(!seen[t.row * cols + t.col]);
                    seen[t.row * cols + t.col] = true;
                }
            }
        }
    }
}
END_TEST

START_TEST(test_orders_are_what_they_say)
{
    const struct wic_tile_grid grid = {10, 3};
    const struct {
        enum wic_tile_order order;
        struct wic_tile second, fourth, ninth, last;
    } want[] = {{WIC_ORDER_ROWS, {0, 1}, {1, 0}, {2, 2}, {9, 2}},
                {WIC_ORDER_COLUMNS, {1, 0}, {3, 0}, {8, 0}, {9, 2}},
                {WIC_ORDER_SNAKE, {0, 1}, {1, 2}, {2, 2}, {9, 0}},
                {WIC_ORDER_BANDS, {1, 0}, {3, 0}, {0, 1}, {9, 2}}};
    for (size_t i = 0; i < WIC_ORDERS; i++) {
        const struct wic_tile got[] = {
            wic_tile_at(want[i].order, grid, 1), wic_tile_at(want[i].order, grid, 3),
            wic_tile_at(want[i].order, grid, 8), wic_tile_at(want[i].order, grid, 29)};
        ck_assert_mem_eq(&got[0], &want[i].second, sizeof got[0]);
        ck_assert_mem_eq(&got[1], &want[i].fourth, sizeof got[0]);
        ck_assert_mem_eq(&got[2], &want[i].ninth, sizeof got[0]);
        ck_assert_mem_eq(&got[3], &want[i].last, sizeof got[0]);
    }
    ck_assert_str_eq(wic_order_name(WIC_ORDER_BANDS), "bands");
    ck_assert_str_eq(wic_order_name(WIC_ORDERS), "unknown");
}
END_TEST

START_TEST(test_refuses_policies_out_of_bounds)
{
    const struct wic_tile_axis bad[] = {
        {0, 1, 0, 1},       {0, 1, 1, 0},       {1 << 16, 1, 1, 1}, {-(1 << 16), 1, 1, 1},
        {0, 1 << 16, 1, 1}, {0, 1, 1 << 16, 1}, {0, 1, 1, 1u << 16}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wic_tile_policy policy = wic_policy_row();
        policy.row = bad[i];
        ck_assert(!wic_policy_is_valid(&policy));
        policy = wic_policy_row();
        policy.col = bad[i];
        ck_assert(!wic_policy_is_valid(&policy));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tiles");
    TCase *tests = tcase_create("tiles");
    tcase_add_test(tests, test_named_policies_are_what_they_say);
    tcase_add_test(tests, test_policies_agree_with_brute_force);
    tcase_add_test(tests, test_random_policies_agree_with_brute_force);
    tcase_add_test(tests, test_orders_visit_every_tile_once);
    tcase_add_test(tests, test_orders_are_what_they_say);
    tcase_add_test(tests, test_refuses_policies_out_of_bounds);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
