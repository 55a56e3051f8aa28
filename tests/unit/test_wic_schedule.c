/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: steps that a pattern may yield, and the reports of steps whose chunks are not known
 * before.
 */
#include "scripted_pattern.h"
#include "run_suite.h"
#include "wic/pattern/schedule.h"
#include "wic/wic.h"

/* --- reports --- */

static const struct wic_pattern_params open_way = {
    .parties = 2, .slots = 4, .chunk_bytes = 64, .chunks[0][1] = WIC_OPEN};

START_TEST(end_of_the_stream_decides_an_open_total)
{
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(wic_schedule_init(&schedule, &wic_pattern_unidirectional, &open_way, NULL, 0),
                     0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 1);
    ck_assert_uint_eq(step.flags, WIC_STEP_TOLD);
    ck_assert_uint_eq(step.count, WIC_PATTERN_CHUNKS_MAX);
    struct wic_step again;
    ck_assert_int_eq(wic_schedule_next(&schedule, &again, text, sizeof(text)), -EAGAIN);
    ck_assert_ptr_nonnull(strstr(text, "was not reported"));
    struct wic_outcome outcome = {step.count + 1, 0};
    ck_assert_int_eq(wic_schedule_tell(&schedule, &outcome, NULL, 0), -EINVAL);
    outcome.count = 12345;
    ck_assert_int_eq(wic_schedule_tell(&schedule, &outcome, NULL, 0), 0);
    ck_assert_uint_eq(schedule.moved[0][1], 12345);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_tell(&schedule, &outcome, text, sizeof(text)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(text, "no step waits"));
    wic_schedule_fini(&schedule);
}
END_TEST

START_TEST(open_steps_are_not_recorded)
{
    struct wic_step steps[2];
    size_t count = 7;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(wic_schedule_record(&wic_pattern_unidirectional, &open_way, steps, 2, &count,
                                         text, sizeof(text)),
                     -ENOTSUP);
    ck_assert_ptr_nonnull(strstr(text, "depend on what arrives"));
    ck_assert_uint_eq(count, 7);
}
END_TEST

START_TEST(what_a_known_way_moved_cannot_be_told_otherwise)
{
    const struct wic_step asks = {.to = 1, .count = 10, .chunk_bytes = 1, .flags = WIC_STEP_TOLD};
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    script = (struct script){&asks, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &one_way, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 1);
    ck_assert_int_eq(wic_schedule_tell(&schedule, &(struct wic_outcome){9, 0}, text, sizeof(text)),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(text, "9 chunks arrived of a step of 10"));
    ck_assert_int_eq(wic_schedule_tell(&schedule, &(struct wic_outcome){10, 77}, NULL, 0), 0);
    ck_assert_uint_eq(told_value, 77);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 0);
    wic_schedule_fini(&schedule);
}
END_TEST

START_TEST(an_error_of_told_is_final)
{
    const struct wic_step asks = {.to = 1, .count = 10, .chunk_bytes = 1, .flags = WIC_STEP_TOLD};
    struct wic_schedule schedule;
    struct wic_step step;
    script = (struct script){&asks, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &one_way, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 1);
    ck_assert_int_eq(wic_schedule_tell(&schedule, &(struct wic_outcome){10, 13}, NULL, 0), -EDOM);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), -EDOM);
    wic_schedule_fini(&schedule);
}
END_TEST

/* --- what a pattern may yield --- */

START_TEST(any_mixture_of_good_steps_passes)
{
    const struct wic_step good[] = {
        {.from = 0, .to = 1, .count = 2, .chunk_bytes = 4096},
        {.from = 1, .count = 6, .chunk_bytes = 1, .access = WIC_RANDOM, .seed = 9},
        {.to = 1,
         .first = 2,
         .count = 6,
         .chunk_bytes = 2,
         .access = WIC_SCATTER_GATHER,
         .stride = 3},
        {.to = 1,
         .first = 8,
         .count = 2,
         .chunk_bytes = 2,
         .access = WIC_ADJACENT,
         .reach = 1,
         .after_party = 1,
         .after_steps = 3},
    };
    struct wic_step steps[4];
    size_t count = 0;
    script = (struct script){good, 4, 0, 0};
    destroyed = 0;
    ck_assert_int_eq(wic_schedule_record(&scripted, &both_ways, steps, 4, &count, NULL, 0), 0);
    ck_assert_uint_eq(count, 4);
    ck_assert_int_eq(memcmp(steps, good, sizeof(good)), 0);
    ck_assert_int_eq(destroyed, 1);
    count = 99;
    ck_assert_int_eq(wic_schedule_record(&scripted, &both_ways, steps, 3, &count, NULL, 0),
                     -ENOSPC);
    ck_assert_uint_eq(count, 99);
    ck_assert_int_eq(destroyed, 2);
}
END_TEST

static const struct {
    struct wic_step step;
    const char *why;
} bad_steps[] = {
    {{.from = 2, .to = 1, .count = 1, .chunk_bytes = 1}, "from one party to another"},
    {{.from = 0, .to = UINT16_MAX, .count = 1, .chunk_bytes = 1}, "from one party to another"},
    {{.from = 1, .to = 1, .count = 1, .chunk_bytes = 1}, "from one party to another"},
    {{.to = 1, .count = 0, .chunk_bytes = 1}, "moves nothing"},
    {{.to = 1, .first = 1, .count = 1, .chunk_bytes = 1}, "left off"},
    {{.to = 1, .first = UINT64_MAX, .count = 1, .chunk_bytes = 1}, "left off"},
    {{.to = 1, .count = 11, .chunk_bytes = 1}, "beyond the last"},
    {{.to = 1, .count = UINT64_MAX, .chunk_bytes = 1}, "beyond the last"},
    {{.from = 1, .count = 7, .chunk_bytes = 1}, "beyond the last"},
    {{.to = 1, .count = 1}, "does not fit a slot"},
    {{.to = 1, .count = 1, .chunk_bytes = 4097}, "does not fit a slot"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .reserved = 1}, "does not know"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .flags = 2}, "does not know"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .after_steps = 1}, "not before it"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .after_party = 2}, "not before it"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .access = 4}, "unknown access"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .reach = 1}, "is not 0"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .stride = 1}, "is not 0"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .seed = 1}, "is not 0"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .access = WIC_ADJACENT}, "reach is 0"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .access = WIC_ADJACENT, .reach = 2}, "more slots"},
    {{.to = 1, .count = 1, .chunk_bytes = 1, .access = WIC_ADJACENT, .reach = UINT32_MAX},
     "more slots"},
    {{.to = 1, .count = 4, .chunk_bytes = 1, .access = WIC_SCATTER_GATHER}, "no multiple"},
    {{.to = 1, .count = 4, .chunk_bytes = 1, .access = WIC_SCATTER_GATHER, .stride = 3},
     "no multiple"},
};

#define BAD_STEPS (int)(sizeof(bad_steps) / sizeof(bad_steps[0]))

START_TEST(bad_step_is_refused_with_a_reason)
{
    struct wic_schedule schedule;
    struct wic_step step = {.count = 123};
    char text[WIC_TEXT_BYTES] = "";
    script = (struct script){&bad_steps[_i].step, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &both_ways, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, text, sizeof(text)), -EPROTO);
    ck_assert_msg(strstr(text, bad_steps[_i].why) != NULL, "'%s' lacks '%s'", text,
                  bad_steps[_i].why);
    ck_assert_uint_eq(step.count, 123);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, text, sizeof(text)), -EPROTO);
    wic_schedule_fini(&schedule);
}
END_TEST

static const struct {
    struct wic_step step;
    const char *why;
} bad_open_steps[] = {
    {{.to = 1, .count = 1, .chunk_bytes = 1}, "its outcome is not reported"},
    {{.to = 1, .count = WIC_PATTERN_CHUNKS_MAX + 1, .chunk_bytes = 1, .flags = WIC_STEP_TOLD},
     "beyond the last"},
    {{.to = 1, .count = 2, .chunk_bytes = 1, .flags = WIC_STEP_TOLD, .access = WIC_RANDOM},
     "as they arrive"},
    {{.to = 1,
      .count = 2,
      .chunk_bytes = 1,
      .flags = WIC_STEP_TOLD,
      .access = WIC_SCATTER_GATHER,
      .stride = 2},
     "as they arrive"},
};

START_TEST(bad_step_of_an_open_way_is_refused)
{
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    script = (struct script){&bad_open_steps[_i].step, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &open_way, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, text, sizeof(text)), -EPROTO);
    ck_assert_msg(strstr(text, bad_open_steps[_i].why) != NULL, "'%s' lacks '%s'", text,
                  bad_open_steps[_i].why);
    wic_schedule_fini(&schedule);
}
END_TEST

START_TEST(only_a_pattern_that_listens_may_ask)
{
    const struct wic_step asks = {.to = 1, .count = 10, .chunk_bytes = 1, .flags = WIC_STEP_TOLD};
    struct wic_pattern deaf = SCRIPTED;
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    deaf.told = NULL;
    script = (struct script){&asks, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &deaf, &one_way, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, text, sizeof(text)), -EPROTO);
    ck_assert_ptr_nonnull(strstr(text, "no function for that"));
    wic_schedule_fini(&schedule);
}
END_TEST

START_TEST(steps_may_not_overlap_or_leave_gaps)
{
    const struct wic_step again[] = {{.to = 1, .count = 2, .chunk_bytes = 1},
                                     {.to = 1, .count = 2, .chunk_bytes = 1}};
    struct wic_step steps[4];
    size_t count;
    script = (struct script){again, 2, 0, 0};
    ck_assert_int_eq(wic_schedule_record(&scripted, &one_way, steps, 4, &count, NULL, 0), -EPROTO);
}
END_TEST

START_TEST(end_before_all_is_moved_is_refused)
{
    const struct wic_step part = {.to = 1, .count = 9, .chunk_bytes = 1};
    struct wic_step steps[4];
    size_t count;
    char text[WIC_TEXT_BYTES] = "";
    script = (struct script){&part, 1, 0, 0};
    ck_assert_int_eq(wic_schedule_record(&scripted, &one_way, steps, 4, &count, text, sizeof(text)),
                     -EPROTO);
    ck_assert_ptr_nonnull(strstr(text, "after 9 of 10"));
}
END_TEST

START_TEST(errors_and_nonsense_of_next_are_passed_on)
{
    struct wic_step steps[4];
    size_t count;
    script = (struct script){NULL, 0, 0, -ENOMEM};
    ck_assert_int_eq(wic_schedule_record(&scripted, &one_way, steps, 4, &count, NULL, 0), -ENOMEM);
    script = (struct script){NULL, 0, 0, 2};
    ck_assert_int_eq(wic_schedule_record(&scripted, &one_way, steps, 4, &count, NULL, 0), -EPROTO);
}
END_TEST

START_TEST(parameters_out_of_range_are_refused)
{
    const struct wic_pattern_params bad[] = {
        {.parties = 2, .slots = 0, .chunk_bytes = 1},
        {.parties = 2, .slots = WIC_SLOTS_MAX + 1, .chunk_bytes = 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 0},
        {.parties = 1, .slots = 1, .chunk_bytes = 1},
        {.parties = WIC_PARTIES_MAX + 1, .slots = 1, .chunk_bytes = 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .reserved = 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .chunks[0][1] = WIC_PATTERN_CHUNKS_MAX + 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .chunks[1][0] = WIC_OPEN - 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .chunks[1][1] = 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .chunks[0][2] = 1},
        {.parties = 2, .slots = 1, .chunk_bytes = 1, .chunks[2][0] = WIC_OPEN},
    };
    struct wic_schedule schedule;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &bad[i], NULL, 0), -EINVAL);
    }
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, NULL, NULL, 0), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_schedule");
    TCase *told = tcase_create("told");
    tcase_add_test(told, end_of_the_stream_decides_an_open_total);
    tcase_add_test(told, open_steps_are_not_recorded);
    tcase_add_test(told, what_a_known_way_moved_cannot_be_told_otherwise);
    tcase_add_test(told, an_error_of_told_is_final);
    suite_add_tcase(suite, told);
    TCase *steps = tcase_create("steps");
    tcase_add_test(steps, any_mixture_of_good_steps_passes);
    tcase_add_loop_test(steps, bad_step_is_refused_with_a_reason, 0, BAD_STEPS);
    tcase_add_loop_test(steps, bad_step_of_an_open_way_is_refused, 0,
                        (int)(sizeof(bad_open_steps) / sizeof(bad_open_steps[0])));
    tcase_add_test(steps, only_a_pattern_that_listens_may_ask);
    tcase_add_test(steps, steps_may_not_overlap_or_leave_gaps);
    tcase_add_test(steps, end_before_all_is_moved_is_refused);
    tcase_add_test(steps, errors_and_nonsense_of_next_are_passed_on);
    tcase_add_test(steps, parameters_out_of_range_are_refused);
    suite_add_tcase(suite, steps);
    return run_suite(suite);
}
