/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The search for the best transfer plan: candidates and halving with a GPU that is made of numbers,
 * measuring with a link that a thread answers. */
#include "wic/device/tune.h"

#include "fake_link.h"
#include "run_suite.h"

#include <check.h>
#include <math.h>

#define KIB    1024u
#define MIB    (1u << 20)
#define BUDGET UINT64_C(250000000)
#define AROUND UINT64_C(700000) /* time of making a link */

static const struct wic_gpu h200 = {"NVIDIA H200", 90, 132, 233472, 232448};
static const struct wic_gpu t4 = {"Tesla T4", 75, 40, 65536, 65536};
static const struct wic_tile_shape lines = {4 * MIB, 4096, 0};

static struct wic_tune_trial trials[WIC_TUNE_TRIALS_MAX];

/* --- a GPU of numbers --- */

struct model {
    double best_piece, best_link, least_blocks,
        engine;   /* engine: rate of copy engines, of pulling */
    double noise; /* noise of a measurement of 1 ms */
    uint64_t now, random;
    unsigned measured, failing; /* failing: this and every 7th measurement does not fit */
    int fatal;                  /* result of the 20th measurement */
};

static double uniform(struct model *m)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(m->random >> 11) / 9007199254740992.0;
}

static double true_rate(const struct model *m, const struct wic_transfer_plan *plan)
{
    double piece = fabs(log2(plan->in_piece / m->best_piece)),
           link = fabs(log2((double)plan->pulls * plan->in_piece / m->best_link));
    double blocks = plan->blocks / m->least_blocks;
    double pulled = 50e9 * (1 - 0.05 * piece) * (1 - 0.04 * link) * (blocks < 1 ? blocks : 1);
    double backlog = fabs(log2((double)plan->engine_backlog / (4 * MIB)));
    return plan->engine_backlog > 0 ? 50e9 * m->engine * (1 - 0.01 * backlog) : pulled;
}

static int model_measure(void *context, const struct wic_transfer_plan *plan, uint64_t ns,
                         double *out_rate)
{
    struct model *m = context;
    double bell = 0; /* variance 1 */
    for (int i = 0; i < 12; i++) {
        bell += uniform(m);
    }
    m->now += ns + AROUND;
    m->measured++;
    ck_assert_uint_ge(ns, WIC_TUNE_LEAST_NS);
    if (m->fatal != 0 && m->measured == 20) {
        return m->fatal;
    }
    if (m->failing > 0 && m->measured % 7 == 0) {
        return -ENOSPC;
    }
    *out_rate = true_rate(m, plan) * (1 + m->noise * (bell - 6) / sqrt((double)ns / 1e6));
    return 0;
}

static uint64_t model_now(void *context)
{
    return ((const struct model *)context)->now;
}

static const struct model quiet = {
    .best_piece = 16384, .best_link = 512 << 10, .least_blocks = 60, .engine = 0.8, .random = 1};

static size_t n; /* trials */

static int race(struct model *m)
{
    struct wic_tune_meter meter = {model_measure, model_now, m};
    n = wic_tune_enumerate(&h200, &lines, NULL, trials);
    return wic_tune_halve(trials, n, &meter, BUDGET);
}

static double best_of(const struct model *m)
{
    double best = 0;
    for (size_t i = 0; i < n; i++) {
        best = fmax(best, true_rate(m, &trials[i].plan));
    }
    return best;
}

/* --- candidates --- */

START_TEST(candidates_fit_and_differ_and_the_table_is_first)
{
    const struct wic_gpu *gpus[] = {&h200, &t4};
    for (size_t g = 0; g < 2; g++) {
        struct wic_transfer_plan table;
        size_t engines = 0;
        n = wic_tune_enumerate(gpus[g], &lines, NULL, trials);
        ck_assert_int_eq(wic_transfer_plan_choose(gpus[g], &lines, NULL, &table), 0);
        ck_assert_mem_eq(&trials[0].plan, &table, sizeof(table));
        ck_assert_uint_gt(n, 20);
        ck_assert_uint_lt(n, WIC_TUNE_TRIALS_MAX);
        for (size_t i = 0; i < n; i++) {
            const struct wic_tune_trial *t = &trials[i];
            struct wic_transfer_plan again;
            ck_assert_uint_eq(t->number, i);
            ck_assert(wic_transfer_row_is_valid(&t->row));
            ck_assert_int_eq(wic_transfer_plan_by(gpus[g], &lines, NULL, &t->row, &again), 0);
            ck_assert_mem_eq(&t->plan, &again, sizeof(again));
            ck_assert_uint_le(wic_transfer_plan_shared_bytes(&t->plan),
                              gpus[g]->shared_block_bytes);
            ck_assert(t->handicap >= 0 && t->handicap <= WIC_TUNE_PREFERENCE);
            engines += t->plan.engine_backlog > 0;
            for (size_t k = 0; k < i; k++) {
                ck_assert_int_ne(memcmp(&trials[k].plan, &t->plan, sizeof(t->plan)), 0);
            }
        }
        ck_assert_uint_ge(engines, 3);
        ck_assert_uint_lt(engines, n);
    }
}
END_TEST

START_TEST(rows_good_elsewhere_are_candidates_too)
{
    const struct wic_tile_shape small = {16 * KIB, 4096, 0};
    struct wic_transfer_row rows[3], table;
    struct wic_transfer_plan built_in;
    ck_assert_int_eq(wic_transfer_row_find(&h200, lines.slot_bytes, &table), 0);
    rows[0] = rows[1] = rows[2] = table;
    rows[1].blocks = 20;
    rows[2].piece = 32 * KIB;
    ck_assert_uint_eq(wic_tune_rows(&h200, &lines, NULL, rows, 3, trials), 3);
    ck_assert_uint_eq(trials[0].plan.blocks, 132 * 39 / 100);
    ck_assert_uint_eq(trials[1].plan.blocks, 26);
    ck_assert_uint_eq(trials[2].plan.in_piece, 32 * KIB);
    /* Tiles of 16 KiB have no longer pieces: the last row makes the first one's plan. */
    ck_assert_uint_eq(wic_tune_rows(&h200, &small, NULL, rows, 3, trials), 2);
    ck_assert_int_eq(wic_transfer_plan_choose(&h200, &small, NULL, &built_in), 0);
    ck_assert_mem_eq(&trials[0].plan, &built_in, sizeof(built_in));
}
END_TEST

START_TEST(what_has_no_plan_has_no_candidates)
{
    const struct wic_gpu old = {"old", 70, 80, 98304, 98304};
    const struct wic_tile_shape empty = {0, 4, 2};
    ck_assert_uint_eq(wic_tune_enumerate(&old, &lines, NULL, trials), 0);
    ck_assert_uint_eq(wic_tune_enumerate(&h200, &empty, NULL, trials), 0);
    ck_assert_uint_eq(wic_tune_enumerate(NULL, &lines, NULL, trials), 0);
}
END_TEST

/* --- tiles with a halo --- */

static const struct wic_tile_grid grid = {8, 16};
static const struct wic_work two_blocks = {8, 37440, 0, 2};

START_TEST(test_tile_plans_fit_and_differ)
{
    size_t of_transport[5] = {0}, of_order[WIC_ORDERS] = {0};
    n = wic_tune_tiles(&h200, &grid, &two_blocks, trials);
    ck_assert_uint_gt(n, 20);
    ck_assert_uint_lt(n, WIC_TUNE_TRIALS_MAX);
    ck_assert_int_eq(trials[0].plan.transport, WIC_COPY);
    ck_assert_int_eq(trials[0].plan.order, WIC_ORDER_ROWS);
    for (size_t i = 0; i < n; i++) {
        const struct wic_transfer_plan *plan = &trials[i].plan;
        ck_assert_uint_eq(trials[i].number, i);
        ck_assert_uint_eq(plan->pieces, 128);
        ck_assert_uint_le(plan->batch, 128);
        ck_assert_int_eq(plan->batch > 0, plan->transport == WIC_COPY);
        ck_assert(plan->blocks == 132 || plan->blocks == 264);
        ck_assert(trials[i].handicap >= 0 && trials[i].handicap <= WIC_TUNE_PREFERENCE);
        of_transport[plan->transport]++;
        of_order[plan->order]++;
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(memcmp(&trials[k].plan, plan, sizeof(*plan)), 0);
    }
    ck_assert_uint_eq(of_transport[WIC_PULL_LOADS], 2 * WIC_ORDERS);
    ck_assert_uint_eq(of_transport[WIC_IN_PLACE], 2 * WIC_ORDERS);
    for (size_t i = 0; i < WIC_ORDERS; i++)
        ck_assert_uint_eq(of_order[i], n / WIC_ORDERS);
    ck_assert_uint_eq(wic_tune_tiles(NULL, &grid, NULL, trials), 0);
    ck_assert_uint_eq(wic_tune_tiles(&h200, &(struct wic_tile_grid){0, 4}, NULL, trials), 0);
}
END_TEST

/* The time of a copy, then bytes at the rate of the place; an order may be the better one. */
struct tile_model {
    struct model m; /* its noise, clock and random numbers */
    double copy_ns, rate[5], by_order[WIC_ORDERS];
};

static double tile_rate(const struct tile_model *t, const struct wic_transfer_plan *plan)
{
    const double bytes = 128 * 128 * 128 * 2, copies = plan->batch > 0 ? 128.0 / plan->batch : 0;
    const double tail = plan->batch > 0 ? 0.3 * plan->batch / 128 : 0;
    const double ns = bytes * (1 + tail) / t->rate[plan->transport] * 1e9 + copies * t->copy_ns;
    return bytes * 1e9 / ns * t->by_order[plan->order];
}

static int tile_measure(void *context, const struct wic_transfer_plan *plan, uint64_t ns,
                        double *out_rate)
{
    struct tile_model *t = context;
    t->m.now += ns + AROUND / 10;
    *out_rate =
        tile_rate(t, plan) * (1 + t->m.noise * (2 * uniform(&t->m) - 1) / sqrt((double)ns / 1e6));
    return 0;
}

static uint64_t tile_now(void *context)
{
    return ((const struct tile_model *)context)->m.now;
}

START_TEST(test_search_of_tile_plans_is_within_2_percent)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct tile_model t = {.m = quiet, .copy_ns = 1000.0 * (double)(1 + seed % 9)};
        const struct wic_tune_meter meter = {tile_measure, tile_now, &t};
        double best = 0;
        t.m.random = seed * 7919;
        t.m.noise = 0.01;
        t.rate[WIC_COPY] = 40e9 + 2e9 * (double)(seed % 8);
        t.rate[WIC_PULL_LOADS] = 25e9 + 5e9 * (double)(seed % 7);
        t.rate[WIC_IN_PLACE] = 20e9 + 7e9 * (double)(seed % 5);
        for (uint32_t i = 0; i < WIC_ORDERS; i++)
            t.by_order[i] = seed % WIC_ORDERS == i ? 1 : 0.97;
        n = wic_tune_tiles(&h200, &grid, &two_blocks, trials);
        ck_assert_int_eq(wic_tune_halve(trials, n, &meter, BUDGET), 0);
        for (size_t i = 0; i < n; i++)
            best = fmax(best, tile_rate(&t, &trials[i].plan));
        ck_assert_msg(tile_rate(&t, &trials[0].plan) >= 0.98 * best, "seed %llu",
                      (unsigned long long)seed);
    }
}
END_TEST

/* --- halving --- */

START_TEST(finds_a_plan_within_2_percent_despite_noise)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct model m = quiet;
        m.random = seed * 7919;
        m.noise = 0.01;
        m.best_piece = 8192 << seed % 3;
        m.best_link = (256 << 10) << seed % 5;
        m.least_blocks = 30 + (double)(seed % 100);
        m.engine = 0.7 + 0.05 * (double)(seed % 8);
        ck_assert_int_eq(race(&m), 0);
        ck_assert_uint_le(m.now, BUDGET + AROUND);
        ck_assert_msg(true_rate(&m, &trials[0].plan) >= 0.98 * best_of(&m),
                      "seed %llu: %.3g of %.3g", (unsigned long long)seed,
                      true_rate(&m, &trials[0].plan), best_of(&m));
    }
}
END_TEST

START_TEST(those_that_are_left_are_measured_longer)
{
    struct model m = quiet;
    ck_assert_int_eq(race(&m), 0);
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < n; i++) {
        least = trials[i].ns < least ? trials[i].ns : least;
        most = trials[i].ns > most ? trials[i].ns : most;
    }
    ck_assert_uint_gt(least, 0);
    ck_assert_uint_gt(most, 10 * least);
    ck_assert_uint_gt(2 * trials[0].ns, most);
    ck_assert_uint_eq(trials[n - 1].rounds, 1);
    for (size_t i = 1; i < n; i++) {
        ck_assert_uint_le(trials[i].rounds, trials[i - 1].rounds);
    }
    ck_assert_uint_gt(m.now, BUDGET / 2);
}
END_TEST

START_TEST(of_equals_the_one_that_takes_least_of_the_gpu_wins)
{
    struct model m = quiet;
    m.least_blocks = 1; /* blocks do not matter */
    m.engine = 0.1;
    ck_assert_int_eq(race(&m), 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_le(trials[0].plan.blocks, trials[i].plan.blocks);
    }
    ck_assert_uint_eq(trials[0].plan.engine_backlog, 0);
}
END_TEST

START_TEST(a_plan_that_does_not_work_is_left_out)
{
    struct model m = quiet;
    m.failing = 1;
    ck_assert_int_eq(race(&m), 0);
    ck_assert_int_eq(trials[0].error, 0);
    ck_assert(trials[0].rate > 0);
}
END_TEST

START_TEST(a_device_that_fails_ends_the_search)
{
    const int errors[] = {-EIO, -ETIMEDOUT, -EBUSY, -ENODEV};
    for (size_t i = 0; i < 4; i++) {
        struct model m = quiet;
        m.fatal = errors[i];
        ck_assert_int_eq(race(&m), errors[i]);
        ck_assert_uint_eq(m.measured, 20);
    }
}
END_TEST

static int never_fits(void *context, const struct wic_transfer_plan *plan, uint64_t ns,
                      double *out_rate)
{
    (void)context, (void)plan, (void)ns, (void)out_rate;
    return -ENOSPC;
}

START_TEST(says_when_nothing_could_be_measured)
{
    struct model m = quiet;
    struct wic_tune_meter meter = {model_measure, model_now, &m};
    struct wic_tune_meter none = {never_fits, model_now, &m};
    n = wic_tune_enumerate(&h200, &lines, NULL, trials);
    ck_assert_int_eq(wic_tune_halve(trials, n, &meter, WIC_TUNE_LEAST_NS), -ETIME);
    ck_assert_int_eq(wic_tune_halve(trials, n, &none, BUDGET), -ENODEV);
    ck_assert_int_eq(wic_tune_halve(trials, 0, &meter, BUDGET), -EINVAL);
    ck_assert_int_eq(wic_tune_halve(trials, 10000, &meter, BUDGET), -EINVAL);
}
END_TEST

/* --- a link --- */

static unsigned char in_slots[16 * 64], out_slots[16 * 64], user[FAKE_USER];

static struct wic_tune_stream stream_of_tiles(void)
{
    struct wic_tune_stream s = {.link = {.in = in_slots,
                                         .out = out_slots,
                                         .in_stride = 64,
                                         .out_stride = 64,
                                         .in_slots = 16,
                                         .out_slots = 16},
                                .tile = {.units = 48, .bytes = 48, .out_bytes = 48, .user = user}};
    return s;
}

START_TEST(measures_a_link_and_takes_it_down)
{
    struct wic_tune_stream s = stream_of_tiles();
    struct wic_transfer_plan plan = {.in_unit = 1, .pieces = 1, .user_bytes = FAKE_USER};
    double rate = 0;
    fake_reset();
    fake.script.stalls = true;
    for (int i = 0; i < 5; i++) {
        uint64_t before = fake.worked;
        ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), 0);
        ck_assert(rate > 0);
        ck_assert_uint_gt(fake.worked, before);
        ck_assert_uint_eq(fake.links, 0);
    }
    ck_assert_uint_eq(fake.wrong, 0);
}
END_TEST

START_TEST(a_link_that_fails_is_taken_down_too)
{
    struct wic_tune_stream s = stream_of_tiles();
    struct wic_transfer_plan plan = {.in_unit = 1, .pieces = 1, .user_bytes = FAKE_USER};
    double rate = -1;
    fake_reset();
    fake.script.create_rc = -ENOSPC;
    ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), -ENOSPC);
    fake_reset();
    fake.script.busy = 1;
    ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), -EBUSY);
    fake_reset();
    fake.script.die_at = 10;
    ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), -EIO);
    fake_reset();
    fake.script.silent_at = 10;
    ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), -EIO);
    fake_reset();
    atomic_store(&fake.script.stuck, true);
    ck_assert_int_eq(wic_tune_measure(&s, &plan, 3000000, &rate), -ETIMEDOUT);
    ck_assert_uint_eq(fake.links, 0);
    ck_assert_uint_eq(fake.wrong, 0);
    ck_assert(rate < 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tune");
    TCase *tests = tcase_create("tune");
    tcase_add_test(tests, candidates_fit_and_differ_and_the_table_is_first);
    tcase_add_test(tests, rows_good_elsewhere_are_candidates_too);
    tcase_add_test(tests, what_has_no_plan_has_no_candidates);
    tcase_add_test(tests, test_tile_plans_fit_and_differ);
    tcase_add_test(tests, test_search_of_tile_plans_is_within_2_percent);
    tcase_add_test(tests, finds_a_plan_within_2_percent_despite_noise);
    tcase_add_test(tests, those_that_are_left_are_measured_longer);
    tcase_add_test(tests, of_equals_the_one_that_takes_least_of_the_gpu_wins);
    tcase_add_test(tests, a_plan_that_does_not_work_is_left_out);
    tcase_add_test(tests, a_device_that_fails_ends_the_search);
    tcase_add_test(tests, says_when_nothing_could_be_measured);
    tcase_add_test(tests, measures_a_link_and_takes_it_down);
    tcase_add_test(tests, a_link_that_fails_is_taken_down_too);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
