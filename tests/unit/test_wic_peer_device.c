/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Channels between kernels (wic/peer), their roles by threads of the host: transports, shapes,
 * schedules of several parties, mistakes, and every reason to leave early. */
#include "tests/device/emulate_peer.h"
#include "wic/device/link.h"
#include "wic/pattern/schedule.h"
#include "wic/peer/peer_inside.h"

#include "run_suite.h"

#include <errno.h>
#include <string.h>

#define STEPS_MAX 256

static struct emulate_peer shape_of(uint32_t transport)
{
    return (struct emulate_peer){.plan = {.transport = (enum wic_peer_transport)transport,
                                          .lanes = 2,
                                          .slots = 2,
                                          .depth = 2,
                                          .warps = 2,
                                          .each = 1,
                                          .chunk_bytes = 64,
                                          .piece_bytes = transport == WIC_PEER_LETTERS ? 64 : 32},
                                 .parties = 2,
                                 .limit_ns = UINT64_MAX,
                                 .beat_ns = UINT64_MAX,
                                 .beats = true};
}

/* `count` steps round the parties, each of `portion` chunks. */
static size_t round_steps(struct wic_step *steps, size_t count, uint32_t parties, uint32_t portion,
                          uint32_t chunk_bytes)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t from = (uint32_t)(i % parties);
        steps[i] = (struct wic_step){.from = (uint16_t)from,
                                     .to = (uint16_t)((from + 1) % parties),
                                     .first = i / parties * portion,
                                     .count = portion,
                                     .chunk_bytes = chunk_bytes > 0 ? chunk_bytes : 1};
    }
    return count;
}

static void check_run(const struct emulate_peer *how)
{
    struct emulate_peer_result result;
    uint64_t chunks = 0;
    for (size_t i = 0; i < how->step_count; i++)
        chunks += how->steps[i].count;
    emulate_peer_run(how, &result);
    for (uint32_t party = 0; party < how->parties; party++)
        ck_assert_int_eq(result.end[party], WIC_PEER_ENDED);
    ck_assert_uint_eq(result.wrong, 0);
    ck_assert_uint_eq(result.used, chunks);
    ck_assert_uint_eq(result.bytes, chunks * how->plan.chunk_bytes);
}

START_TEST(test_all_chunks_are_right)
{
    const struct wic_step step = {.to = 1, .count = 101, .chunk_bytes = 64};
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = &step;
    how.step_count = 1;
    check_run(&how);
    how.plan.depth = 1;
    how.plan.slots = 1;
    check_run(&how);
    how.plan = (struct wic_peer_plan){how.plan.transport, 3, 4, 5, 1, 1, 64, 64};
    how.near = 3;
    check_run(&how);
}
END_TEST

START_TEST(test_parties_answer_each_other)
{
    struct wic_step steps[STEPS_MAX];
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = steps;
    for (how.parties = 2; how.parties < 5; how.parties++) {
        how.step_count = round_steps(steps, 24 * how.parties / 2, how.parties, 3, 64);
        check_run(&how);
    }
}
END_TEST

/* The stage of an answer is filled before the chunk that it answers is there: with and without a
 * stage for it, and a place in the ring. */
START_TEST(test_answers_are_prepared)
{
    struct wic_step steps[STEPS_MAX];
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = steps;
    how.plan.piece_bytes = 64;
    for (how.plan.depth = 1; how.plan.depth < 4; how.plan.depth++)
        for (how.plan.slots = 1; how.plan.slots < 5; how.plan.slots *= 2)
            for (uint32_t portion = 1; portion < 4; portion++) {
                how.step_count = round_steps(steps, 40, 2, portion, 64);
                check_run(&how);
            }
}
END_TEST

START_TEST(test_words_need_no_chunks)
{
    struct wic_step steps[STEPS_MAX];
    struct emulate_peer how = shape_of(WIC_PEER_STORES);
    how.plan.chunk_bytes = how.plan.piece_bytes = 0;
    how.plan.lanes = 1;
    how.steps = steps;
    how.step_count = round_steps(steps, 60, 2, 1, 0);
    check_run(&how);
}
END_TEST

/* Chunks in an order of the pattern: the k-th of a step is not its k-th by number. */
START_TEST(test_order_of_access_is_kept)
{
    const struct wic_step steps[] = {
        {.to = 1, .count = 37, .chunk_bytes = 64, .access = WIC_RANDOM, .seed = 9},
        {.to = 1,
         .first = 37,
         .count = 24,
         .chunk_bytes = 64,
         .access = WIC_SCATTER_GATHER,
         .stride = 4},
    };
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = steps;
    how.step_count = 2;
    check_run(&how);
}
END_TEST

START_TEST(test_every_mistake_is_found)
{
    const struct wic_step step = {.to = 1, .count = 40, .chunk_bytes = 64};
    struct emulate_peer_result result;
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = &step;
    how.step_count = 1;
    for (int fault = EMULATE_PEER_WRONG; fault <= EMULATE_PEER_TWICE; fault++) {
        how.fault = (enum emulate_peer_fault)fault;
        emulate_peer_run(&how, &result);
        ck_assert_msg(result.wrong > 0, "mistake %d by transport %d", fault, _i);
    }
}
END_TEST

START_TEST(test_parties_leave_when_the_host_stops_them)
{
    const struct wic_step step = {.to = 1, .count = UINT32_MAX, .chunk_bytes = 64};
    struct emulate_peer_result result;
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.steps = &step;
    how.step_count = 1;
    how.stop_at = 20;
    how.absent = 0;
    emulate_peer_run(&how, &result); /* returns */
    for (uint32_t party = 0; party < 2; party++)
        ck_assert(result.end[party] == WIC_PEER_STOPPED || result.end[party] == WIC_PEER_DESERTED);
    ck_assert_uint_eq(result.wrong, 0);
}
END_TEST

/* The party that waits, and what ends its wait. */
static enum wic_peer_end end_of_wait(struct emulate_peer *how, uint32_t waiting)
{
    const struct wic_step step = {.to = 1, .count = 40, .chunk_bytes = 64};
    struct emulate_peer_result result;
    how->steps = &step;
    how->step_count = 1;
    how->plan.lanes = 1;
    how->absent = 1u << (1 - waiting);
    emulate_peer_run(how, &result);
    ck_assert_int_eq(result.end[1 - waiting], WIC_PEER_STAYS);
    return result.end[waiting];
}

START_TEST(test_party_leaves_without_its_peer)
{
    for (uint32_t waiting = 0; waiting < 2; waiting++) {
        struct emulate_peer how = shape_of((uint32_t)_i);
        how.limit_ns = 5000;
        ck_assert_int_eq(end_of_wait(&how, waiting), WIC_PEER_LATE);
    }
}
END_TEST

START_TEST(test_party_leaves_when_the_heartbeat_stops)
{
    for (uint32_t waiting = 0; waiting < 2; waiting++) {
        struct emulate_peer how = shape_of((uint32_t)_i);
        how.beat_ns = 5000;
        how.beats = false;
        ck_assert_int_eq(end_of_wait(&how, waiting), WIC_PEER_SILENT);
    }
}
END_TEST

/* A third party is missing: the first one gives up, and the second one leaves because of that. */
START_TEST(test_party_leaves_when_another_one_left)
{
    const struct wic_step steps[] = {
        {.from = 2, .to = 0, .count = 10, .chunk_bytes = 64},
        {.from = 0, .to = 1, .count = 10, .chunk_bytes = 64},
    };
    struct emulate_peer_result result;
    struct emulate_peer how = shape_of((uint32_t)_i);
    how.parties = 3;
    how.steps = steps;
    how.step_count = 2;
    how.absent = 1u << 2;
    how.limit_ns = 5000;
    emulate_peer_run(&how, &result);
    for (uint32_t party = 0; party < 2; party++)
        ck_assert(result.end[party] == WIC_PEER_LATE || result.end[party] == WIC_PEER_DESERTED);
    ck_assert_uint_eq(result.used, 0);
}
END_TEST

START_TEST(test_options_that_cannot_work_are_refused)
{
    struct wic_step step = {.to = 1, .count = 5, .chunk_bytes = 64};
    struct wic_peer_options o = {.parties = 2, .steps = &step, .step_count = 1};
    struct wic_peer_ways ways;
    o.plan = shape_of(WIC_PEER_PULL).plan;
    o.party[0].kernel = o.party[1].kernel = &o;
    ck_assert_int_eq(wic_peer_check(&o, &ways), 0);
    ck_assert(ways.is_used[0][1] && !ways.is_used[1][0]);
    const struct {
        struct wic_step step;
        int rc;
        const char *why;
    } refused[] = {
        {{.to = 2, .count = 5, .chunk_bytes = 64}, -EINVAL, "party"},
        {{.to = 0, .count = 5, .chunk_bytes = 64}, -EINVAL, "party"},
        {{.to = 1, .first = 1, .count = 5, .chunk_bytes = 64}, -EINVAL, "gap"},
        {{.to = 1, .count = 5, .chunk_bytes = 32}, -EINVAL, "32 bytes"},
        {{.to = 1, .count = 5, .chunk_bytes = 64, .flags = WIC_STEP_TOLD}, -EOPNOTSUPP, "outcome"},
        {{.to = 1, .count = 5, .chunk_bytes = 64, .after_steps = 1}, -EOPNOTSUPP, "depends"},
        {{.to = 1, .count = 5, .chunk_bytes = 64, .reach = 1}, -EOPNOTSUPP, "neighbours"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        step = refused[i].step;
        ck_assert_int_eq(wic_peer_check(&o, &ways), refused[i].rc);
        ck_assert_ptr_nonnull(strstr(wic_link_why(), refused[i].why));
    }
    step = (struct wic_step){.to = 1, .count = 5, .chunk_bytes = 64};
    o.plan.slots = 3;
    ck_assert_int_eq(wic_peer_check(&o, &ways), -EINVAL);
    o.plan.slots = 2;
    o.plan.piece_bytes = 48;
    ck_assert_int_eq(wic_peer_check(&o, &ways), -EINVAL);
    o.plan.piece_bytes = 64;
    o.parties = 1;
    ck_assert_int_eq(wic_peer_check(&o, &ways), -EINVAL);
}
END_TEST

START_TEST(test_plan_cuts_chunks_into_equal_pieces)
{
    struct wic_peer_plan plan;
    char text[160];
    ck_assert_int_eq(wic_peer_plan_make(132, 2, 48 * 1024 + 16, WIC_PEER_BULK, &plan), 0);
    ck_assert_uint_eq(plan.lanes, 66);
    ck_assert_uint_eq(plan.chunk_bytes % plan.piece_bytes, 0);
    ck_assert_uint_le(plan.piece_bytes, 16384);
    ck_assert_int_gt(wic_peer_plan_print(&plan, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "bulk stores"));
    ck_assert_int_eq(wic_peer_plan_make(132, 2, 40, WIC_PEER_BULK, &plan), -EINVAL);
    ck_assert_int_eq(wic_peer_plan_make(132, 1, 0, WIC_PEER_STORES, &plan), 0);
    ck_assert_uint_eq(wic_peer_shared_bytes(&plan), WIC_PEER_HEAD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_peer");
    TCase *tc = tcase_create("peer");
    const int all = WIC_PEER_TRANSPORTS;
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_all_chunks_are_right, 0, all);
    tcase_add_loop_test(tc, test_parties_answer_each_other, 0, all);
    tcase_add_loop_test(tc, test_answers_are_prepared, 0, all);
    tcase_add_test(tc, test_words_need_no_chunks);
    tcase_add_loop_test(tc, test_order_of_access_is_kept, 0, all);
    tcase_add_loop_test(tc, test_every_mistake_is_found, 0, all);
    tcase_add_loop_test(tc, test_parties_leave_when_the_host_stops_them, 0, all);
    tcase_add_loop_test(tc, test_party_leaves_without_its_peer, 0, all);
    tcase_add_loop_test(tc, test_party_leaves_when_the_heartbeat_stops, 0, all);
    tcase_add_loop_test(tc, test_party_leaves_when_another_one_left, 0, all);
    tcase_add_test(tc, test_options_that_cannot_work_are_refused);
    tcase_add_test(tc, test_plan_cuts_chunks_into_equal_pieces);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
