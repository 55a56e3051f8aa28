/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Way of tiles (wic/device/way.h), in a simulated link: tiles arrive at a rate, the kernel pulls at
 * another, the copy engine takes batches at a third, with a delay for each. */
#include "run_suite.h"
#include "wic/device/way.h"

#include <check.h>

#define MIB       ((size_t)1 << 20)
#define THRESHOLD (4 * MIB)
#define TILE      ((size_t)16384)
#define RING      16384u /* tiles of the simulation's memory */

/* Bytes a microsecond, and microseconds. */
struct link_model {
    double offered; /* 0: as many tiles as there are slots, always */
    double pull, engine;
    double copy_delay, pull_delay; /* time between the end of a copy or pull and the result */
    uint64_t slots;
    double held_up_us; /* at the beginning, the host posts nothing for so long */
};

struct outcome {
    uint64_t tiles, by_engine; /* counts of the second half of the time */
    double mean_us;            /* mean time of a tile between arrival and result */
    double rate;
};

struct sim {
    const struct link_model *model;
    struct wic_way way;
    double now, pull_free, engine_free; /* when that is idle again */
    double due[RING], arrived[RING];    /* indexed by tile; time of its result, -1: not known yet */
    uint64_t posted, finished, waiting; /* waiting: the first that is in no batch */
    size_t ready;                       /* bytes from there on */
    double batch_end[8];
    uint32_t batches, oldest;
};

static void retire(struct sim *s)
{
    while (s->batches > 0 && s->batch_end[s->oldest % 8] <= s->now) {
        s->oldest++;
        s->batches--;
    }
}

static void copy_batch(struct sim *s, size_t most)
{
    size_t bytes = 0;
    uint64_t end = s->waiting;
    for (; end < s->posted && bytes < most; end++) {
        bytes += TILE;
    }
    double start = s->engine_free > s->now ? s->engine_free : s->now;
    s->engine_free = start + 3 + (double)bytes / s->model->engine;
    double result = s->engine_free + s->model->copy_delay;
    for (; s->waiting < end; s->waiting++) {
        s->due[s->waiting % RING] = result;
    }
    s->batch_end[(s->oldest + s->batches++) % 8] = result;
    s->ready -= bytes;
}

static void send_batches(struct sim *s)
{
    const size_t most = wic_batch_most(s->model->slots, TILE);
    retire(s);
    if (s->ready > 0 && wic_batch_is_due(s->batches, s->ready, most)) {
        copy_batch(s, most);
    }
}

static bool post_tile(struct sim *s, double arrival)
{
    const bool engine = wic_way_choose(&s->way, TILE, (size_t)(s->posted - s->finished) * TILE,
                                       s->posted - s->finished, s->waiting < s->posted);
    const uint64_t tile = s->posted++;
    s->arrived[tile % RING] = arrival;
    s->due[tile % RING] = -1;
    if (engine) {
        s->ready += TILE;
        return true;
    }
    ck_assert_uint_eq(s->waiting, tile); /* none is pulled past one that waits */
    s->waiting = tile + 1;
    s->pull_free = (s->pull_free > s->now ? s->pull_free : s->now) + (double)TILE / s->model->pull;
    s->due[tile % RING] = s->pull_free + s->model->pull_delay;
    return false;
}

static struct outcome simulate(const struct link_model *model, double us)
{
    static struct sim s;
    struct outcome got = {0};
    s = (struct sim){.model = model};
    wic_way_reset(&s.way, THRESHOLD, false);
    for (; s.now < us; s.now += 0.5) {
        const bool counts = s.now >= us / 2;
        const uint64_t here =
            model->offered > 0 ? (uint64_t)(s.now * model->offered / (double)TILE) : UINT64_MAX;
        while (s.now >= model->held_up_us && s.posted < here &&
               s.posted - s.finished < model->slots) {
            const double arrival =
                model->offered > 0 ? (double)(s.posted + 1) * (double)TILE / model->offered : s.now;
            got.by_engine += post_tile(&s, arrival) && counts;
            got.tiles += counts;
        }
        send_batches(&s);
        for (; s.finished < s.posted && s.due[s.finished % RING] >= 0 &&
               s.due[s.finished % RING] <= s.now;
             s.finished++) {
            got.mean_us += counts ? s.now - s.arrived[s.finished % RING] : 0;
        }
    }
    got.mean_us /= (double)got.tiles;
    got.rate = (double)got.tiles * (double)TILE / (us / 2);
    return got;
}

static double share(const struct outcome *got)
{
    return (double)got->by_engine / (double)got->tiles;
}

/* GB/s are bytes a nanosecond. */
static const struct link_model usual = {
    .pull = 49500, .engine = 53000, .copy_delay = 30, .pull_delay = 8, .slots = RING};

START_TEST(host_that_was_held_up_pulls_again)
{
    static const double loads[] = {13000, 26000, 42000};
    struct link_model model = usual;
    model.offered = loads[_i];
    model.held_up_us = 600; /* 8 MiB at the least load: more than the threshold */
    const struct outcome got = simulate(&model, 40000);
    ck_assert_msg(share(&got) < 0.01, "%.3f of the tiles still go by engine", share(&got));
    ck_assert_msg(got.mean_us < 20, "%.1f us", got.mean_us);
}
END_TEST

START_TEST(engine_keeps_what_pulling_cannot_carry)
{
    struct link_model model = usual;
    model.offered = 42000;
    model.pull = 38000;
    const struct outcome got = simulate(&model, 100000);
    ck_assert_msg(share(&got) > 0.95, "%.3f of the tiles go by engine", share(&got));
    ck_assert_msg(got.mean_us < 120, "%.1f us", got.mean_us);
    ck_assert_double_ge(got.rate, 0.99 * 42000);
}
END_TEST

START_TEST(full_slots_go_by_engine)
{
    static const uint64_t slots[] = {RING, 1024, 512, 300};
    struct link_model model = usual;
    model.slots = slots[_i];
    const struct outcome got = simulate(&model, 400000);
    ck_assert_msg(share(&got) > 0.96, "%.3f of the tiles go by engine", share(&got));
    ck_assert_msg(got.rate > 0.94 * usual.engine || _i > 1, "%.0f", got.rate);
}
END_TEST

START_TEST(light_load_is_pulled)
{
    struct link_model model = usual;
    model.offered = 26000;
    ck_assert_uint_eq(simulate(&model, 10000).by_engine, 0);
}
END_TEST

START_TEST(one_tile_alone_is_pulled_however_long)
{
    struct wic_way way;
    wic_way_reset(&way, THRESHOLD, false);
    ck_assert(!wic_way_choose(&way, 16 * THRESHOLD, 0, 0, false));
    ck_assert(!wic_way_choose(&way, 16 * THRESHOLD, 16 * THRESHOLD, 1, false));
    ck_assert(wic_way_choose(&way, 16 * THRESHOLD, 32 * THRESHOLD, 2, false));
}
END_TEST

START_TEST(way_without_a_threshold_stays)
{
    struct wic_way way;
    for (int engine = 0; engine < 2; engine++) {
        wic_way_reset(&way, 0, engine);
        for (size_t backlog = 0; backlog < 100 * THRESHOLD; backlog += THRESHOLD) {
            ck_assert_int_eq(wic_way_choose(&way, THRESHOLD, backlog, 100, false), engine);
        }
    }
}
END_TEST

START_TEST(trials_in_vain_get_rarer)
{
    struct wic_way way;
    uint64_t last = 0;
    wic_way_reset(&way, THRESHOLD, true);
    for (int trial = 0; trial < 4; trial++) {
        uint64_t tiles = 0;
        while (wic_way_choose(&way, TILE, THRESHOLD, 2, false)) {
            tiles++;
        }
        ck_assert(way.trial);
        ck_assert_uint_ge(tiles, trial < 3 ? 4 * last : last);
        ck_assert_uint_le(tiles * TILE, (uint64_t)WIC_WAY_LONGEST * THRESHOLD + TILE);
        last = tiles;
        while (!wic_way_choose(&way, TILE, THRESHOLD, 2, false)) {
        }
    }
}
END_TEST

START_TEST(trials_in_vain_are_forgotten_when_the_load_is_gone)
{
    struct wic_way way;
    wic_way_reset(&way, THRESHOLD, true);
    for (int trial = 0; trial < 3; trial++) {
        while (wic_way_choose(&way, TILE, THRESHOLD, 2, false)) {
        }
        while (!wic_way_choose(&way, TILE, THRESHOLD, 2, false)) {
        }
    }
    ck_assert_uint_gt(way.patience, (uint64_t)WIC_WAY_PATIENCE * THRESHOLD);
    ck_assert(!wic_way_choose(&way, TILE, 0, 0, false));
    ck_assert_uint_eq(way.patience, (uint64_t)WIC_WAY_PATIENCE * THRESHOLD);
    ck_assert(wic_way_choose(&way, TILE, THRESHOLD, 2, false));
}
END_TEST

START_TEST(batch_is_due_when_the_engine_would_idle)
{
    ck_assert(wic_batch_is_due(0, 1, 8 * MIB));
    ck_assert(!wic_batch_is_due(1, MIB / 8, 8 * MIB));
    ck_assert(wic_batch_is_due(1, MIB / 4, 8 * MIB));
    ck_assert(wic_batch_is_due(WIC_BATCHES_MAX - 1, MIB / 4, 8 * MIB));
    ck_assert(!wic_batch_is_due(WIC_BATCHES_MAX, 100 * MIB, 8 * MIB));
    ck_assert(wic_batch_is_due(1, TILE, 2 * TILE)); /* few slots: most is little */
    ck_assert(!wic_batch_is_due(1, 0, 0));
    ck_assert_uint_eq(wic_batch_most(4096, 4096), 16 * MIB / 6);
    ck_assert_uint_eq(wic_batch_most(4096, MIB), 8 * MIB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_way");
    TCase *tcase = tcase_create("way");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, host_that_was_held_up_pulls_again, 0, 3);
    tcase_add_test(tcase, engine_keeps_what_pulling_cannot_carry);
    tcase_add_loop_test(tcase, full_slots_go_by_engine, 0, 4);
    tcase_add_test(tcase, light_load_is_pulled);
    tcase_add_test(tcase, one_tile_alone_is_pulled_however_long);
    tcase_add_test(tcase, way_without_a_threshold_stays);
    tcase_add_test(tcase, trials_in_vain_get_rarer);
    tcase_add_test(tcase, trials_in_vain_are_forgotten_when_the_load_is_gone);
    tcase_add_test(tcase, batch_is_due_when_the_engine_would_idle);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
