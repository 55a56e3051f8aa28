/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * A channel between threads: every ticket once and whole, back-pressure, parked threads that
 * cost nothing, one wake a ticket, time limits under load, close and abort while both sides are
 * parked. */
#include "test_wic_group.h"

#include <signal.h>
#include <sys/time.h>

#ifdef __SANITIZE_THREAD__
#define TICKETS 4000u
#else
#define TICKETS 40000u
#endif

/* --- every ticket once --- */

static const struct {
    int producers, consumers;
    uint32_t slots, most;
} SHAPES[] = {{1, 1, 1, 0},  {1, 1, 2, 0}, {1, 1, 8, 0},  {1, 1, 61, 0}, {4, 4, 1, 0},
              {4, 4, 3, 0},  {4, 4, 8, 0}, {4, 4, 64, 0}, {1, 4, 5, 0},  {4, 1, 5, 0},
              {8, 8, 16, 0}, {1, 1, 1, 3}, {1, 1, 61, 8}, {4, 4, 8, 3},  {2, 2, 16, 8}};

START_TEST(every_ticket_is_consumed_once_and_whole)
{
    struct group group = {.producers = SHAPES[_i].producers,
                          .consumers = SHAPES[_i].consumers,
                          .timeout_ns = WIC_FOREVER,
                          .most = SHAPES[_i].most};
    struct wic_channel *channel = channel_new(SHAPES[_i].slots, SLOT_U64 * sizeof(uint64_t));
    group_start(&group, channel, 0, TICKETS);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

START_TEST(test_naps_lose_no_ticket)
{
    const struct wic_options options = {
        .slots = SHAPES[_i].slots, .slot_bytes = SLOT_U64 * sizeof(uint64_t), .nap_ns = 2000};
    struct group group = {.producers = SHAPES[_i].producers,
                          .consumers = SHAPES[_i].consumers,
                          .timeout_ns = WIC_FOREVER,
                          .most = SHAPES[_i].most};
    struct wic_channel *channel = channel_of(&options, 0, 0);
    group_start(&group, channel, 0, TICKETS / 10);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

/* Tickets, and the words that are slept on, pass 2^31 and 2^32 while threads park. */
START_TEST(counters_pass_32_bits_while_threads_park)
{
    uint64_t first = (UINT64_C(1) << (_i == 0 ? 32 : 31)) - 200;
    struct group group = {.producers = 2, .consumers = 2, .timeout_ns = WIC_FOREVER};
    struct wic_channel *channel = channel_at(3, SLOT_U64 * sizeof(uint64_t), first, UINT32_MAX - 9);
    group_start(&group, channel, first, 400);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

static void publish_as_group(struct group *group)
{
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(group->channel, 0, &slot), 0);
    group_fill(group, &slot);
    ck_assert_int_eq(
        wic_publish(group->channel, &slot, 1 + slot.ticket % (SLOT_U64 * sizeof(uint64_t))), 0);
}

START_TEST(consumer_parks_across_the_wrap_of_its_signal)
{
    struct group group = {.producers = 0, .consumers = 1, .timeout_ns = WIC_FOREVER};
    struct wic_channel *channel = channel_at(1, SLOT_U64 * sizeof(uint64_t), 0, UINT32_MAX - 1);
    group_start(&group, channel, 0, 3);
    for (uint32_t ticket = 0; ticket < 3; ticket++) {
        until_waiting(channel, WIC_CONSUMER, 1);
        ck_assert_uint_eq(atomic_load(&channel->side[WIC_CONSUMER].futex),
                          UINT32_MAX - 1 + 2 * ticket);
        publish_as_group(&group);
        while (stats_of(channel).consumed <= ticket) {
            sleep_ns(MS);
        }
    }
    group_finish(&group);
    channel_free(channel);
}
END_TEST

/* --- parking --- */

START_TEST(full_ring_holds_the_producer_back)
{
    struct group group = {.producers = 1, .consumers = 0, .timeout_ns = WIC_FOREVER};
    struct wic_channel *channel = channel_new(3, SLOT_U64 * sizeof(uint64_t));
    struct wic_slot slot;
    group_start(&group, channel, 0, 10);
    for (uint64_t ticket = 0; ticket < 7; ticket++) {
        until_waiting(channel, WIC_PRODUCER, 1);
        ck_assert_uint_eq(stats_of(channel).published, ticket + 3);
        ck_assert_int_eq(wic_wait(channel, 0, &slot), 0);
        ck_assert_int_eq(wic_release(channel, &slot), 0);
        while (stats_of(channel).published == ticket + 3) {
            sleep_ns(MS);
        }
    }
    group_join(&group, 0, 1);
    struct wic_stats stats = stats_of(channel);
    ck_assert_uint_ge(stats.producer_parks, 7);
    ck_assert_uint_ge(stats.producer_parked_ns, 7 * 5 * MS);
    ck_assert_uint_eq(stats.high_water, 3);
    free(group.seen);
    channel_free(channel);
}
END_TEST

START_TEST(parked_threads_use_no_cpu)
{
    struct group idle = {.producers = 0, .consumers = 4, .timeout_ns = WIC_FOREVER};
    struct group full = {.producers = 4, .consumers = 0, .timeout_ns = WIC_FOREVER};
    struct wic_channel *empty_ring = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    struct wic_channel *full_ring = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    group_start(&idle, empty_ring, 0, 1);
    group_start(&full, full_ring, 0, 8);
    until_waiting(empty_ring, WIC_CONSUMER, 4);
    until_waiting(full_ring, WIC_PRODUCER, 4);
    int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ns(300 * MS);
    int64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
    ck_assert_msg(used < 20 * MS, "eight parked threads used %lld us of 300 ms",
                  (long long)used / 1000);
    group_abort(&idle);
    group_abort(&full);
    ck_assert_uint_ge(stats_of(empty_ring).consumer_parked_ns, 4 * 300 * MS);
    ck_assert_uint_ge(stats_of(full_ring).producer_parked_ns, 4 * 300 * MS);
    channel_free(empty_ring);
    channel_free(full_ring);
}
END_TEST

START_TEST(publication_wakes_one_of_many)
{
    struct group group = {.producers = 0, .consumers = 4, .timeout_ns = WIC_FOREVER};
    struct wic_channel *channel = channel_new(8, SLOT_U64 * sizeof(uint64_t));
    struct wic_slot slots[3];
    group_start(&group, channel, 0, 3);
    until_waiting(channel, WIC_CONSUMER, 4);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(wic_acquire(channel, 0, &slots[i]), 0);
        group_fill(&group, &slots[i]);
    }
    /* Not the next ticket: no thread is woken. */
    ck_assert_int_eq(wic_publish(channel, &slots[1], 2), 0);
    sleep_ns(50 * MS);
    ck_assert_uint_eq(stats_of(channel).consumer_parks, 0); /* counted on waking */
    /* The next one: one thread for it, one for the one after it. */
    ck_assert_int_eq(wic_publish(channel, &slots[0], 1), 0);
    while (stats_of(channel).consumed < 2) {
        sleep_ns(MS);
    }
    until_waiting(channel, WIC_CONSUMER, 4);
    ck_assert_uint_ge(stats_of(channel).consumer_parks, 1);
    ck_assert_uint_le(stats_of(channel).consumer_parks, 2);
    group_abort(&group);
    channel_free(channel);
}
END_TEST

/* --- time limits under load --- */

START_TEST(time_limits_lose_no_ticket)
{
    struct group group = {.producers = 3, .consumers = 3, .timeout_ns = 1000 * (1 + 30 * _i)};
    struct wic_channel *channel = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    group_start(&group, channel, 0, TICKETS / 8);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

/* --- the end --- */

START_TEST(close_ends_parked_threads_of_both_sides)
{
    struct group idle = {.producers = 0, .consumers = 4, .timeout_ns = WIC_FOREVER};
    struct group full = {.producers = 4, .consumers = 0, .timeout_ns = WIC_FOREVER};
    struct wic_channel *empty_ring = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    struct wic_channel *full_ring = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    group_start(&idle, empty_ring, 0, 1);
    group_start(&full, full_ring, 0, 8);
    until_waiting(empty_ring, WIC_CONSUMER, 4);
    until_waiting(full_ring, WIC_PRODUCER, 4);
    wic_close(empty_ring);
    wic_close(full_ring);
    group_join(&idle, 0, 4);
    group_join(&full, 0, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(idle.last_rc[i], -EPIPE);
        ck_assert_int_eq(full.last_rc[i], -EPIPE);
    }
    struct wic_slot slot;
    for (uint64_t ticket = 0; ticket < 2; ticket++) {
        ck_assert_int_eq(wic_wait(full_ring, 0, &slot), 0);
        ck_assert_uint_eq(slot.ticket, ticket);
    }
    ck_assert_int_eq(wic_wait(full_ring, WIC_FOREVER, &slot), -EPIPE);
    free(idle.seen);
    free(full.seen);
    channel_free(empty_ring);
    channel_free(full_ring);
}
END_TEST

/* Closed while a producer still holds the last ticket: one consumer gets it, the others learn that
 * it was the last though nothing is published any more. */
START_TEST(last_ticket_after_close_ends_all_consumers)
{
    struct group group = {.producers = 0, .consumers = 4, .timeout_ns = WIC_FOREVER};
    struct wic_channel *channel = channel_new(2, SLOT_U64 * sizeof(uint64_t));
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(channel, 0, &slot), 0);
    group_start(&group, channel, 0, 1);
    group_fill(&group, &slot);
    until_waiting(channel, WIC_CONSUMER, 4);
    wic_close(channel);
    until_waiting(channel, WIC_CONSUMER, 4);
    ck_assert_int_eq(wic_publish(channel, &slot, 1), 0);
    group_finish(&group);
    channel_free(channel);
}
END_TEST

static unsigned random_of(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

START_TEST(abort_at_any_moment_ends_everybody)
{
    unsigned state = (unsigned)_i + 1;
    for (int round = 0; round < 60; round++) {
        struct group group = {.producers = 1 + (int)(random_of(&state) % 4),
                              .consumers = (int)(random_of(&state) % 5),
                              .timeout_ns = round % 3 == 0 ? 100000 : WIC_FOREVER};
        struct wic_channel *channel =
            channel_new(1 + random_of(&state) % 4, SLOT_U64 * sizeof(uint64_t));
        group_start(&group, channel, 0, 1000000);
        sleep_ns(random_of(&state) % 2000000);
        group_abort(&group);
        channel_free(channel);
    }
}
END_TEST

static struct wic_channel *signalled;

static void abort_on_signal(int number)
{
    (void)number;
    wic_abort(signalled);
}

/* In the very thread that is parked, from its signal handler. */
START_TEST(abort_works_in_a_signal_handler)
{
    struct sigaction action = {.sa_handler = abort_on_signal};
    struct itimerval soon = {.it_value = {.tv_usec = 30000}};
    struct wic_slot slot;
    signalled = channel_new(1, 8);
    ck_assert_int_eq(wic_acquire(signalled, 0, &slot), 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    errno = EDOM;
    ck_assert_int_eq(wic_wait(signalled, WIC_FOREVER, &slot), -ECANCELED);
    ck_assert_int_eq(errno, EDOM);
    channel_free(signalled);
}
END_TEST

static void ignore_signal(int number)
{
    (void)number;
}

START_TEST(signal_does_not_end_a_wait)
{
    struct sigaction action = {.sa_handler = ignore_signal};
    struct itimerval often = {.it_interval = {.tv_usec = 3000}, .it_value = {.tv_usec = 3000}};
    struct itimerval never = {0};
    struct wic_channel *channel = channel_new(1, 8);
    struct wic_slot slot;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    /* Each wait parks once without a signal. How many reach one wait is up to the scheduler. */
    uint64_t waits = 0;
    do {
        int64_t before = clock_ns(CLOCK_MONOTONIC);
        ck_assert_int_eq(wic_wait(channel, 50 * MS, &slot), -ETIMEDOUT);
        ck_assert_int_ge(clock_ns(CLOCK_MONOTONIC) - before, 50 * MS);
        waits++;
    } while (stats_of(channel).consumer_parks < waits + 3);
    setitimer(ITIMER_REAL, &never, NULL);
    channel_free(channel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_threads");
    TCase *tcase = tcase_create("threads");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, every_ticket_is_consumed_once_and_whole, 0,
                        sizeof(SHAPES) / sizeof(SHAPES[0]));
    tcase_add_loop_test(tcase, test_naps_lose_no_ticket, 0, sizeof(SHAPES) / sizeof(SHAPES[0]));
    tcase_add_loop_test(tcase, counters_pass_32_bits_while_threads_park, 0, 2);
    tcase_add_test(tcase, consumer_parks_across_the_wrap_of_its_signal);
    tcase_add_test(tcase, full_ring_holds_the_producer_back);
    tcase_add_test(tcase, parked_threads_use_no_cpu);
    tcase_add_test(tcase, publication_wakes_one_of_many);
    tcase_add_loop_test(tcase, time_limits_lose_no_ticket, 0, 3);
    tcase_add_test(tcase, close_ends_parked_threads_of_both_sides);
    tcase_add_test(tcase, last_ticket_after_close_ends_all_consumers);
    tcase_add_loop_test(tcase, abort_at_any_moment_ends_everybody, 0, 4);
    tcase_add_test(tcase, abort_works_in_a_signal_handler);
    tcase_add_test(tcase, signal_does_not_end_a_wait);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
