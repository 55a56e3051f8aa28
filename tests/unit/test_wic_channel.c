/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The contract of wic/wic.h, call by call, on one thread: every return code, the order of tickets,
 * what survives a time limit, the end of a channel, statistics. */
#include "test_wic_group.h"
#include "wic/spin.h"

#include <stdint.h>

/* --- hand-over --- */

static const uint32_t RINGS[] = {1, 2, 3, 7, 8, WIC_SLOTS_MAX};
static const uint64_t FIRSTS[] = {0,
                                  (UINT64_C(1) << 31) - 5,
                                  (UINT64_C(1) << 32) - 5,
                                  (UINT64_C(1) << 33) - 5,
                                  UINT64_C(3) * (UINT64_C(1) << 31) - 5,
                                  (UINT64_C(1) << 32) * 7 - 5,
                                  (UINT64_C(1) << 31) * WIC_SLOTS_MAX - 5,
                                  (UINT64_C(1) << 32) * WIC_SLOTS_MAX - 5,
                                  (UINT64_C(1) << 60) - 5};

START_TEST(tickets_come_in_order_with_their_data)
{
    for (size_t ring = 0; ring < sizeof(RINGS) / sizeof(RINGS[0]); ring++) {
        uint64_t first = FIRSTS[_i];
        struct wic_channel *channel = channel_at(RINGS[ring], 16, first, UINT32_MAX);
        for (uint64_t ticket = first; ticket < first + 30; ticket++) {
            struct wic_slot in = acquired(channel);
            ck_assert_uint_eq(in.ticket, ticket);
            memcpy(in.data, &ticket, sizeof(ticket));
            memset(in.user, (int)(ticket & 0xff), WIC_USER_BYTES);
            ck_assert_int_eq(wic_publish(channel, &in, ticket % 17), 0);
            struct wic_slot out = waited(channel);
            ck_assert_uint_eq(out.ticket, ticket);
            ck_assert_uint_eq(out.bytes, ticket % 17);
            ck_assert_int_eq(memcmp(out.data, &ticket, sizeof(ticket)), 0);
            ck_assert_uint_eq(((unsigned char *)out.user)[WIC_USER_BYTES - 1], ticket & 0xff);
            ck_assert_int_eq(wic_release(channel, &out), 0);
        }
        channel_free(channel);
    }
}
END_TEST

START_TEST(ring_holds_exactly_its_slots)
{
    for (size_t ring = 0; ring < sizeof(RINGS) / sizeof(RINGS[0]); ring++) {
        uint64_t first = FIRSTS[_i];
        struct wic_channel *channel = channel_at(RINGS[ring], 1, first, 0);
        struct wic_slot slot;
        for (int round = 0; round < 3; round++) {
            for (uint32_t i = 0; i < RINGS[ring]; i++) {
                publish_next(channel);
            }
            ck_assert_int_eq(wic_acquire(channel, 0, &slot), -ETIMEDOUT);
            for (uint32_t i = 0; i < RINGS[ring]; i++) {
                release_next(channel, first++);
            }
            ck_assert_int_eq(wic_wait(channel, 0, &slot), -ETIMEDOUT);
        }
        ck_assert_uint_eq(stats_of(channel).high_water, RINGS[ring]);
        channel_free(channel);
    }
}
END_TEST

START_TEST(several_tickets_go_round_with_one_call)
{
    for (size_t ring = 0; ring < sizeof(RINGS) / sizeof(RINGS[0]); ring++) {
        uint64_t first = FIRSTS[_i], ticket = first;
        struct wic_channel *channel = channel_at(RINGS[ring], 16, first, 0);
        struct wic_slot slots[8];
        int most = RINGS[ring] < 5 ? (int)RINGS[ring] : 5;
        for (int round = 0; round < 7; round++) {
            ck_assert_int_eq(wic_acquire_some(channel, 0, 5, slots), most);
            for (int i = 0; i < most; i++) {
                ck_assert_uint_eq(slots[i].ticket, ticket + (uint64_t)i);
                memcpy(slots[i].data, &slots[i].ticket, sizeof(slots[i].ticket));
                slots[i].bytes = (size_t)i;
            }
            ck_assert_int_eq(wic_publish_all(channel, slots, (uint32_t)most), 0);
            for (int taken = 0, n; taken < most; taken += n, ticket += (uint64_t)n) {
                n = wic_wait_some(channel, 0, 3, slots);
                ck_assert_int_eq(n, most - taken < 3 ? most - taken : 3);
                for (int i = 0; i < n; i++) {
                    ck_assert_uint_eq(slots[i].ticket, ticket + (uint64_t)i);
                    ck_assert_int_eq(memcmp(slots[i].data, &slots[i].ticket, 8), 0);
                    ck_assert_uint_eq(slots[i].bytes, (size_t)(taken + i));
                }
                ck_assert_int_eq(wic_release_all(channel, slots, (uint32_t)n), 0);
            }
            ck_assert_int_eq(wic_wait_some(channel, 0, 8, slots), -ETIMEDOUT);
        }
        ck_assert_uint_eq(stats_of(channel).published, 7 * (uint64_t)most);
        ck_assert_uint_eq(stats_of(channel).consumed, 7 * (uint64_t)most);
        ck_assert_uint_eq(stats_of(channel).high_water, (uint32_t)most);
        channel_free(channel);
    }
}
END_TEST

START_TEST(several_slots_are_handed_over_all_or_none)
{
    struct wic_channel *channel = channel_new(4, 8);
    struct wic_slot slots[8], got[8];
    ck_assert_int_eq(wic_acquire_some(channel, 0, 0, slots), -EINVAL);
    ck_assert_int_eq(wic_acquire_some(channel, 0, 3, slots), 3);
    const struct wic_slot swapped[] = {slots[1], slots[0]}, twice[] = {slots[0], slots[0]};
    ck_assert_int_eq(wic_publish_all(channel, swapped, 2), -EINVAL);
    ck_assert_int_eq(wic_publish_all(channel, twice, 2), -EINVAL);
    slots[2].bytes = 9;
    ck_assert_int_eq(wic_publish_all(channel, slots, 3), -EINVAL);
    slots[2].bytes = 8;
    ck_assert_int_eq(wic_publish_all(channel, slots, 0), 0);
    ck_assert_int_eq(wic_wait_some(channel, 0, 8, got), -ETIMEDOUT);
    ck_assert_uint_eq(stats_of(channel).published, 0);
    ck_assert_int_eq(wic_publish_all(channel, slots, 3), 0);
    ck_assert_int_eq(wic_publish_all(channel, slots, 3), -EINVAL);

    ck_assert_int_eq(wic_wait_some(channel, 0, 2, got), 2);
    struct wic_slot foreign[] = {got[0], got[1], slots[2]}; /* the third was not taken */
    ck_assert_int_eq(wic_release_all(channel, foreign, 3), -EINVAL);
    ck_assert_uint_eq(stats_of(channel).consumed, 0);
    ck_assert_int_eq(wic_release_all(channel, got, 2), 0);
    ck_assert_int_eq(wic_wait_some(channel, 0, 8, got), 1);
    wic_close(channel);
    ck_assert_int_eq(wic_release_all(channel, got, 1), 0);
    ck_assert_int_eq(wic_wait_some(channel, WIC_FOREVER, 8, got), -EPIPE);
    ck_assert_int_eq(wic_acquire_some(channel, WIC_FOREVER, 8, got), -EPIPE);
    channel_free(channel);
}
END_TEST

START_TEST(published_out_of_order_is_consumed_in_order)
{
    struct wic_channel *channel = channel_new(4, 8);
    struct wic_slot first = acquired(channel), second = acquired(channel), got;
    ck_assert_int_eq(wic_publish(channel, &second, 2), 0);
    ck_assert_int_eq(wic_wait(channel, 0, &got), -ETIMEDOUT);
    ck_assert_int_eq(wic_publish(channel, &first, 1), 0);
    release_next(channel, 0);
    release_next(channel, 1);
    channel_free(channel);
}
END_TEST

START_TEST(released_out_of_order_is_acquired_in_order)
{
    struct wic_channel *channel = channel_new(2, 8);
    publish_next(channel);
    publish_next(channel);
    struct wic_slot first = waited(channel), second = waited(channel), got;
    ck_assert_int_eq(wic_release(channel, &second), 0);
    ck_assert_int_eq(wic_acquire(channel, 0, &got), -ETIMEDOUT);
    ck_assert_int_eq(wic_release(channel, &first), 0);
    ck_assert_uint_eq(acquired(channel).ticket, 2);
    ck_assert_uint_eq(acquired(channel).ticket, 3);
    channel_free(channel);
}
END_TEST

/* --- arguments and tickets out of turn --- */

START_TEST(bad_arguments_are_rejected)
{
    struct wic_channel *channel = channel_new(2, 8);
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(NULL, 0, &slot), -EINVAL);
    ck_assert_int_eq(wic_acquire(channel, 0, NULL), -EINVAL);
    ck_assert_int_eq(wic_acquire(channel, -2, &slot), -EINVAL);
    ck_assert_int_eq(wic_wait(NULL, 0, &slot), -EINVAL);
    ck_assert_int_eq(wic_wait(channel, 0, NULL), -EINVAL);
    ck_assert_int_eq(wic_wait(channel, INT64_MIN, &slot), -EINVAL);
    slot = acquired(channel);
    ck_assert_int_eq(wic_publish(NULL, &slot, 0), -EINVAL);
    ck_assert_int_eq(wic_publish(channel, NULL, 0), -EINVAL);
    ck_assert_int_eq(wic_publish(channel, &slot, 9), -EINVAL);
    ck_assert_int_eq(wic_publish(channel, &slot, 8), 0);
    slot = waited(channel);
    ck_assert_int_eq(wic_release(NULL, &slot), -EINVAL);
    ck_assert_int_eq(wic_release(channel, NULL), -EINVAL);
    ck_assert_int_eq(wic_release(channel, &slot), 0);
    channel_free(channel);
}
END_TEST

START_TEST(tickets_out_of_turn_are_rejected)
{
    struct wic_channel *channel = channel_new(2, 8);
    struct wic_slot never = {.ticket = 0, .index = 0};
    ck_assert_int_eq(wic_publish(channel, &never, 0), -EINVAL);
    ck_assert_int_eq(wic_release(channel, &never), -EINVAL);
    struct wic_slot slot = acquired(channel);
    struct wic_slot elsewhere = slot, later = slot, wild = slot;
    elsewhere.index = 1;
    later.ticket = 2;
    wild.ticket = UINT64_MAX;
    wild.index = UINT64_MAX % 2;
    ck_assert_int_eq(wic_publish(channel, &elsewhere, 0), -EINVAL);
    ck_assert_int_eq(wic_publish(channel, &later, 0), -EINVAL);
    ck_assert_int_eq(wic_publish(channel, &wild, 0), -EINVAL);
    ck_assert_int_eq(wic_release(channel, &slot), -EINVAL); /* not published */
    ck_assert_int_eq(wic_publish(channel, &slot, 0), 0);
    ck_assert_int_eq(wic_publish(channel, &slot, 0), -EINVAL); /* twice */
    ck_assert_int_eq(wic_release(channel, &slot), -EINVAL);    /* not waited for */
    slot = waited(channel);
    ck_assert_int_eq(wic_publish(channel, &slot, 0), -EINVAL);
    ck_assert_int_eq(wic_release(channel, &slot), 0);
    ck_assert_int_eq(wic_release(channel, &slot), -EINVAL); /* twice */
    ck_assert_int_eq(wic_publish(channel, &slot, 0), -EINVAL);
    ck_assert_uint_eq(stats_of(channel).published, 1);
    ck_assert_uint_eq(stats_of(channel).consumed, 1);
    channel_free(channel);
}
END_TEST

START_TEST(failure_leaves_the_output_alone)
{
    struct wic_channel *channel = channel_new(1, 8);
    struct wic_slot slot, before;
    memset(&slot, 0x5a, sizeof(slot));
    before = slot;
    ck_assert_int_eq(wic_wait(channel, 0, &slot), -ETIMEDOUT);
    ck_assert_int_eq(wic_wait(channel, MS, &slot), -ETIMEDOUT);
    publish_next(channel);
    ck_assert_int_eq(wic_acquire(channel, MS, &slot), -ETIMEDOUT);
    wic_close(channel);
    ck_assert_int_eq(wic_acquire(channel, 0, &slot), -EPIPE);
    wic_abort(channel);
    ck_assert_int_eq(wic_wait(channel, 0, &slot), -ECANCELED);
    ck_assert_mem_eq(&slot, &before, sizeof(slot));
    channel_free(channel);
}
END_TEST

/* --- time limits --- */

START_TEST(time_limit_is_kept_and_burns_no_ticket)
{
    struct wic_channel *channel = channel_new(2, 8);
    struct wic_slot slot;
    int64_t before = clock_ns(CLOCK_MONOTONIC);
    ck_assert_int_eq(wic_wait(channel, 30 * MS, &slot), -ETIMEDOUT);
    int64_t took = clock_ns(CLOCK_MONOTONIC) - before;
    ck_assert_int_ge(took, 30 * MS);
    ck_assert_int_lt(took, 20000 * MS); /* not for ever, on a machine however busy */
    publish_next(channel);
    publish_next(channel);
    for (int i = 0; i < 5; i++) {
        before = clock_ns(CLOCK_MONOTONIC);
        ck_assert_int_eq(wic_acquire(channel, 10 * MS, &slot), -ETIMEDOUT);
        ck_assert_int_ge(clock_ns(CLOCK_MONOTONIC) - before, 10 * MS);
    }
    release_next(channel, 0);
    ck_assert_uint_eq(acquired(channel).ticket, 2);
    release_next(channel, 1);
    struct wic_stats stats = stats_of(channel);
    ck_assert_uint_ge(stats.consumer_parks, 1);
    ck_assert_uint_ge(stats.producer_parks, 5);
    ck_assert_uint_ge(stats.consumer_parked_ns, 29 * MS);
    ck_assert_uint_ge(stats.producer_parked_ns, 49 * MS);
    channel_free(channel);
}
END_TEST

START_TEST(longest_time_limit_does_not_overflow)
{
    struct wic_channel *channel = channel_new(1, 8);
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(channel, INT64_MAX, &slot), 0);
    ck_assert_int_eq(wic_publish(channel, &slot, 0), 0);
    ck_assert_int_eq(wic_wait(channel, INT64_MAX, &slot), 0);
    channel_free(channel);
}
END_TEST

/* --- the end --- */

START_TEST(closed_channel_is_drained_then_ends)
{
    struct wic_channel *channel = channel_at(3, 8, FIRSTS[_i], 0);
    struct wic_slot slot;
    publish_next(channel);
    publish_next(channel);
    wic_close(channel);
    wic_close(channel);
    ck_assert_int_eq(wic_acquire(channel, WIC_FOREVER, &slot), -EPIPE);
    release_next(channel, FIRSTS[_i]);
    release_next(channel, FIRSTS[_i] + 1);
    ck_assert_int_eq(wic_wait(channel, WIC_FOREVER, &slot), -EPIPE);
    ck_assert_int_eq(wic_wait(channel, 0, &slot), -EPIPE);
    ck_assert_int_eq(wic_acquire(channel, 0, &slot), -EPIPE);
    channel_free(channel);
}
END_TEST

START_TEST(unused_channel_can_be_closed)
{
    struct wic_channel *channel = channel_new(1, 8);
    struct wic_slot slot;
    wic_close(channel);
    ck_assert_int_eq(wic_wait(channel, WIC_FOREVER, &slot), -EPIPE);
    channel_free(channel);
}
END_TEST

START_TEST(slot_held_at_close_still_arrives)
{
    struct wic_channel *channel = channel_new(2, 8);
    struct wic_slot held = acquired(channel), slot;
    wic_close(channel);
    ck_assert_int_eq(wic_wait(channel, MS, &slot), -ETIMEDOUT);
    ck_assert_int_eq(wic_publish(channel, &held, 3), 0);
    release_next(channel, 0);
    ck_assert_int_eq(wic_wait(channel, WIC_FOREVER, &slot), -EPIPE);
    channel_free(channel);
}
END_TEST

START_TEST(aborted_channel_cancels_every_call)
{
    struct wic_channel *channel = channel_new(4, 8);
    publish_next(channel);
    publish_next(channel);
    struct wic_slot in = acquired(channel), out = waited(channel), slot;
    wic_abort(channel);
    wic_abort(channel);
    ck_assert_int_eq(wic_acquire(channel, WIC_FOREVER, &slot), -ECANCELED);
    ck_assert_int_eq(wic_wait(channel, WIC_FOREVER, &slot), -ECANCELED);
    ck_assert_int_eq(wic_publish(channel, &in, 0), -ECANCELED);
    ck_assert_int_eq(wic_release(channel, &out), -ECANCELED);
    wic_close(channel);
    ck_assert_int_eq(wic_acquire(channel, 0, &slot), -ECANCELED);
    ck_assert_int_eq(wic_wait(channel, 0, &slot), -ECANCELED);
    channel_free(channel);
}
END_TEST

/* --- statistics, spin --- */

START_TEST(high_water_counts_from_publication_to_release)
{
    struct wic_channel *channel = channel_new(8, 8);
    ck_assert_uint_eq(stats_of(channel).slots, 8);
    struct wic_slot held = acquired(channel);
    ck_assert_uint_eq(stats_of(channel).high_water, 0);
    ck_assert_int_eq(wic_publish(channel, &held, 0), 0);
    publish_next(channel);
    publish_next(channel);
    ck_assert_uint_eq(stats_of(channel).high_water, 3);
    struct wic_slot taken = waited(channel);
    publish_next(channel);
    ck_assert_uint_eq(stats_of(channel).high_water, 4); /* taken is still full */
    ck_assert_int_eq(wic_release(channel, &taken), 0);
    for (uint64_t ticket = 1; ticket < 20; ticket++) {
        publish_next(channel);
        release_next(channel, ticket);
    }
    struct wic_stats stats = stats_of(channel);
    ck_assert_uint_eq(stats.high_water, 4);
    ck_assert_uint_eq(stats.published, 23);
    ck_assert_uint_eq(stats.consumed, 20);
    ck_assert_uint_eq(stats.producer_parks + stats.consumer_parks, 0);
    ck_assert_uint_eq(stats.producer_parked_ns + stats.consumer_parked_ns, 0);
    channel_free(channel);
}
END_TEST

static int naps_made;

/* In place of libc's, which the library calls. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    naps_made++;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

START_TEST(test_naps_come_before_a_park_within_the_limit)
{
    const struct wic_options options = {.slots = 1, .slot_bytes = 8, .nap_ns = 1000};
    struct wic_channel *channel = channel_of(&options, 0, 0);
    struct wic_slot slot;
    naps_made = 0;
    ck_assert_int_eq(wic_wait(channel, 500, &slot), -ETIMEDOUT); /* shorter than a nap */
    ck_assert_int_eq(naps_made, 0);
    atomic_store(&channel->side[WIC_CONSUMER].spin, WIC_NAPS);
    ck_assert_int_eq(wic_wait(channel, 500 * MS, &slot), -ETIMEDOUT);
    ck_assert_int_le(naps_made, (int)WIC_NAPS);
    ck_assert_int_gt(naps_made, 0);
    ck_assert_uint_ge(stats_of(channel).consumer_parks, 1);
    atomic_store(&channel->side[WIC_CONSUMER].spin, 0); /* after parks that lasted long */
    naps_made = 0;
    ck_assert_int_eq(wic_wait(channel, MS, &slot), -ETIMEDOUT);
    ck_assert_int_eq(naps_made, 0);
    channel_free(channel);
}
END_TEST

START_TEST(spin_budget_learns_within_its_limit)
{
    uint32_t budget = 512;
    for (int i = 0; i < 20; i++) {
        budget = wic_spin_after_park(budget, 10 * MS, 512);
    }
    ck_assert_uint_eq(budget, 0); /* long parks: stop spinning */
    budget = wic_spin_after_park(budget, 1000, 512);
    ck_assert_uint_gt(budget, 0); /* a short one: try again */
    for (int i = 0; i < 20; i++) {
        budget = wic_spin_after_park(budget, 1000, 512);
    }
    ck_assert_uint_eq(budget, 512);
    for (int i = 0; i < 50; i++) {
        budget = wic_spin_after_success(budget, 10, 512);
    }
    ck_assert_uint_le(budget, 40); /* the need, with a margin */
    ck_assert_uint_ge(budget, 10);
    ck_assert_uint_eq(wic_spin_after_success(0, UINT32_MAX, 64), 64);
    ck_assert_uint_eq(wic_spin_after_success(0, 5, 0), 0); /* one core */
    ck_assert_uint_eq(wic_spin_after_park(0, 0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_channel");
    int firsts = sizeof(FIRSTS) / sizeof(FIRSTS[0]);
    TCase *tcase = tcase_create("contract");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, tickets_come_in_order_with_their_data, 0, firsts);
    tcase_add_loop_test(tcase, ring_holds_exactly_its_slots, 0, firsts);
    tcase_add_loop_test(tcase, several_tickets_go_round_with_one_call, 0, firsts);
    tcase_add_test(tcase, several_slots_are_handed_over_all_or_none);
    tcase_add_test(tcase, published_out_of_order_is_consumed_in_order);
    tcase_add_test(tcase, released_out_of_order_is_acquired_in_order);
    tcase_add_test(tcase, bad_arguments_are_rejected);
    tcase_add_test(tcase, tickets_out_of_turn_are_rejected);
    tcase_add_test(tcase, failure_leaves_the_output_alone);
    tcase_add_test(tcase, time_limit_is_kept_and_burns_no_ticket);
    tcase_add_test(tcase, longest_time_limit_does_not_overflow);
    tcase_add_loop_test(tcase, closed_channel_is_drained_then_ends, 0, firsts);
    tcase_add_test(tcase, unused_channel_can_be_closed);
    tcase_add_test(tcase, slot_held_at_close_still_arrives);
    tcase_add_test(tcase, aborted_channel_cancels_every_call);
    tcase_add_test(tcase, high_water_counts_from_publication_to_release);
    tcase_add_test(tcase, spin_budget_learns_within_its_limit);
    tcase_add_test(tcase, test_naps_come_before_a_park_within_the_limit);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
