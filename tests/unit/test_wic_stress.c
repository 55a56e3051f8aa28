/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads early
 *
 * The state machine with a stall at every step: take.c and channel.c are compiled into this program
 * a second time, with WIC_STALL yielding or sleeping at random, so that threads meet in the gaps
 * that are a few instructions wide in the product. A lost wake-up shows as a hang, which Check
 * ends. */
static void stall(void);
#define WIC_STALL() stall()
#include "wic/take.c"
#include "wic/channel.c"

#include "test_wic_group.h"

#include <sched.h>

static _Thread_local unsigned stall_state;
static atomic_uint stall_seed;

static unsigned random_of(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct wic_channel *disturbed; /* its consumers' signal changes at every step */

static void stall(void)
{
    if (disturbed != NULL) {
        atomic_fetch_add(&disturbed->side[WIC_CONSUMER].futex, 1);
        return;
    }
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
    uint32_t most;
} SHAPES[] = {{1, 1, 1, WIC_FOREVER, 0}, {1, 1, 3, WIC_FOREVER, 0}, {4, 4, 1, WIC_FOREVER, 0},
              {4, 4, 2, WIC_FOREVER, 0}, {2, 6, 4, WIC_FOREVER, 0}, {6, 2, 4, WIC_FOREVER, 0},
              {4, 4, 3, 20000, 0},       {3, 3, 1, 1000, 0},        {2, 5, 2, 200000, 0},
              {1, 1, 8, WIC_FOREVER, 5}, {3, 3, 4, WIC_FOREVER, 3}, {2, 4, 5, 20000, 8}};

START_TEST(no_ticket_and_no_wake_is_lost)
{
    struct group group = {.producers = SHAPES[_i].producers,
                          .consumers = SHAPES[_i].consumers,
                          .timeout_ns = SHAPES[_i].timeout_ns,
                          .most = SHAPES[_i].most};
    uint64_t first = (UINT64_C(1) << 32) - 1000;
    struct wic_channel *channel =
        channel_at(SHAPES[_i].slots, SLOT_U64 * sizeof(uint64_t), first, UINT32_MAX - 100);
    group_start(&group, channel, first, 2500);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

struct waiter {
    struct wic_channel *channel;
    int64_t timeout_ns;
    int rc;
};

static void *wait_once(void *argument)
{
    struct waiter *self = argument;
    struct wic_slot slot;
    self->rc = wic_wait(self->channel, self->timeout_ns, &slot);
    return NULL;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { WAKE_ROUNDS = 400 }; /* threads take longer to start */
#else
enum { WAKE_ROUNDS = 1500 };
#endif

/* One ticket for two sleepers, one of which gives up for good at about that moment: if the wake was
 * meant for that one, the ticket must be its own, or the other one's. */
START_TEST(wake_that_meets_a_time_limit_is_not_lost)
{
    unsigned state = 1;
    for (int round = 0; round < WAKE_ROUNDS; round++) {
        struct wic_channel *channel = channel_new(2, 8);
        int64_t limit = 100000 + random_of(&state) % 200000;
        struct waiter patient = {.channel = channel, .timeout_ns = 20000 * MS};
        struct waiter hasty = {.channel = channel, .timeout_ns = limit};
        struct wic_slot slot;
        pthread_t threads[2];
        ck_assert_int_eq(wic_acquire(channel, 0, &slot), 0);
        ck_assert_int_eq(pthread_create(&threads[0], NULL, wait_once, &hasty), 0);
        ck_assert_int_eq(pthread_create(&threads[1], NULL, wait_once, &patient), 0);
        sleep_ns(limit - 100000 + random_of(&state) % 100000);
        ck_assert_int_eq(wic_publish(channel, &slot, 0), 0);
        pthread_join(threads[0], NULL);
        ck_assert(hasty.rc == 0 || hasty.rc == -ETIMEDOUT);
        if (hasty.rc == 0) {
            wic_close(channel);
        }
        int64_t before = clock_ns(CLOCK_MONOTONIC);
        pthread_join(threads[1], NULL);
        ck_assert_int_lt(clock_ns(CLOCK_MONOTONIC) - before, 10000 * MS);
        ck_assert_int_eq(patient.rc, hasty.rc == 0 ? -EPIPE : 0);
        channel_free(channel);
    }
}
END_TEST

/* The word changes so often that the kernel never lets the waiter sleep, nor looks at its time
 * limit. */
START_TEST(waiter_that_never_gets_to_sleep_still_times_out)
{
    struct wic_channel *channel = channel_new(1, 8);
    struct wic_slot slot;
    disturbed = channel;
    int64_t before = clock_ns(CLOCK_MONOTONIC);
    ck_assert_int_eq(wic_wait(channel, 20 * MS, &slot), -ETIMEDOUT);
    ck_assert_int_ge(clock_ns(CLOCK_MONOTONIC) - before, 20 * MS);
    ck_assert_uint_eq(stats_of(channel).consumer_parks, 0);
    disturbed = NULL;
    channel_free(channel);
}
END_TEST

START_TEST(close_at_any_moment_loses_no_acquired_ticket)
{
    unsigned state = (unsigned)_i + 1;
    for (int round = 0; round < 60; round++) {
        struct group group = {.producers = 1 + (int)(random_of(&state) % 4),
                              .consumers = 1 + (int)(random_of(&state) % 4),
                              .timeout_ns = round % 3 == 0 ? 100000 : WIC_FOREVER,
                              .most = round % 2 == 0 ? 0 : 2};
        struct wic_channel *channel =
            channel_new(1 + random_of(&state) % 4, SLOT_U64 * sizeof(uint64_t));
        group_start(&group, channel, 0, 1000000);
        sleep_ns(random_of(&state) % 1500000);
        wic_close(channel);
        group_join(&group, 0, group.producers + group.consumers);
        struct wic_stats stats = stats_of(channel);
        for (int i = 0; i < group.producers + group.consumers; i++) {
            ck_assert_int_eq(group.last_rc[i], -EPIPE);
        }
        ck_assert_uint_eq(group.wrong, 0);
        ck_assert_uint_eq(stats.published, stats.consumed);
        for (uint64_t ticket = 0; ticket < 1000; ticket++) {
            ck_assert_uint_eq(group.seen[ticket], ticket < stats.published);
        }
        free(group.seen);
        channel_free(channel);
    }
}
END_TEST

START_TEST(abort_at_any_moment_ends_everybody)
{
    unsigned state = (unsigned)_i + 100;
    for (int round = 0; round < 80; round++) {
        struct group group = {.producers = 1 + (int)(random_of(&state) % 4),
                              .consumers = (int)(random_of(&state) % 5),
                              .timeout_ns = WIC_FOREVER};
        struct wic_channel *channel =
            channel_new(1 + random_of(&state) % 3, SLOT_U64 * sizeof(uint64_t));
        group_start(&group, channel, 0, 1000000);
        sleep_ns(random_of(&state) % 1000000);
        group_abort(&group);
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
    tcase_add_test(tcase, wake_that_meets_a_time_limit_is_not_lost);
    tcase_add_test(tcase, waiter_that_never_gets_to_sleep_still_times_out);
    tcase_add_loop_test(tcase, close_at_any_moment_loses_no_acquired_ticket, 0, 3);
    tcase_add_loop_test(tcase, abort_at_any_moment_ends_everybody, 0, 3);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
