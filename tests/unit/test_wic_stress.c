/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The state machine with a stall at every step: channel.c is compiled into this program once more,
 * with WIC_STALL yielding or sleeping at random, so that threads meet in the gaps that are a few
 * instructions wide in the product. A lost wake-up shows as a hang, which Check ends. */
static void stall(void);
#define WIC_STALL() stall()
#include "wic/channel.c"

#include "test_wic_crew.h"

#include <sched.h>

static _Thread_local unsigned stall_state;
static atomic_uint stall_seed;

static unsigned random_of(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void stall(void)
{
    if (stall_state == 0) {
        stall_state = 2 * atomic_fetch_add(&stall_seed, 77777) + 1;
    }
    unsigned what = random_of(&stall_state) % 64;
    if (what == 0) {
        sleep_ns(random_of(&stall_state) % 50000);
    } else if (what < 16) {
        sched_yield();
    }
}

static const struct {
    int producers, consumers;
    uint32_t slots;
    int64_t timeout_ns;
} SHAPES[] = {{1, 1, 1, WIC_FOREVER}, {1, 1, 3, WIC_FOREVER}, {4, 4, 1, WIC_FOREVER},
              {4, 4, 2, WIC_FOREVER}, {2, 6, 4, WIC_FOREVER}, {6, 2, 4, WIC_FOREVER},
              {4, 4, 3, 20000},       {3, 3, 1, 1000},        {2, 5, 2, 200000}};

START_TEST(no_ticket_and_no_wake_is_lost)
{
    struct crew crew = {.producers = SHAPES[_i].producers,
                        .consumers = SHAPES[_i].consumers,
                        .timeout_ns = SHAPES[_i].timeout_ns};
    uint64_t first = (UINT64_C(1) << 32) - 1000;
    struct wic_channel *channel =
        channel_at(SHAPES[_i].slots, SLOT_U64 * sizeof(uint64_t), first, UINT32_MAX - 100);
    crew_start(&crew, channel, first, 2500);
    crew_finish(&crew);
    channel_free(channel);
}
END_TEST

START_TEST(close_at_any_moment_loses_no_acquired_ticket)
{
    unsigned state = (unsigned)_i + 1;
    for (int round = 0; round < 60; round++) {
        struct crew crew = {.producers = 1 + (int)(random_of(&state) % 4),
                            .consumers = 1 + (int)(random_of(&state) % 4),
                            .timeout_ns = round % 3 == 0 ? 100000 : WIC_FOREVER};
        struct wic_channel *channel =
            channel_new(1 + random_of(&state) % 4, SLOT_U64 * sizeof(uint64_t));
        crew_start(&crew, channel, 0, 1000000);
        sleep_ns(random_of(&state) % 1500000);
        wic_close(channel);
        crew_join(&crew, 0, crew.producers + crew.consumers);
        struct wic_stats stats = stats_of(channel);
        for (int i = 0; i < crew.producers + crew.consumers; i++) {
            ck_assert_int_eq(crew.last_rc[i], -EPIPE);
        }
        ck_assert_uint_eq(crew.wrong, 0);
        ck_assert_uint_eq(stats.published, stats.consumed);
        for (uint64_t ticket = 0; ticket < 1000; ticket++) {
            ck_assert_uint_eq(crew.seen[ticket], ticket < stats.published);
        }
        free(crew.seen);
        channel_free(channel);
    }
}
END_TEST

START_TEST(abort_at_any_moment_ends_everybody)
{
    unsigned state = (unsigned)_i + 100;
    for (int round = 0; round < 80; round++) {
        struct crew crew = {.producers = 1 + (int)(random_of(&state) % 4),
                            .consumers = (int)(random_of(&state) % 5),
                            .timeout_ns = WIC_FOREVER};
        struct wic_channel *channel =
            channel_new(1 + random_of(&state) % 3, SLOT_U64 * sizeof(uint64_t));
        crew_start(&crew, channel, 0, 1000000);
        sleep_ns(random_of(&state) % 1000000);
        crew_abort(&crew);
        channel_free(channel);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_stress");
    TCase *tcase = tcase_create("stalls");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, no_ticket_and_no_wake_is_lost, 0,
                        sizeof(SHAPES) / sizeof(SHAPES[0]));
    tcase_add_loop_test(tcase, close_at_any_moment_loses_no_acquired_ticket, 0, 3);
    tcase_add_loop_test(tcase, abort_at_any_moment_ends_everybody, 0, 3);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
