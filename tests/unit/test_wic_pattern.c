/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Patterns: what is one, what it may yield, the order of a step's chunks, and the built-in one. */
#include "test_wic_group.h"
#include "wic/pattern/schedule.h"

#include <stdio.h>

/* --- a pattern that yields what it is told to --- */

struct script {
    const struct wic_step *steps;
    size_t count, at;
    int last; /* what next returns after the steps */
};

static struct script script;
static int destroyed;

static int script_create(const struct wic_pattern_params *params, void **out_state)
{
    ck_assert_uint_eq(params->size, sizeof(*params));
    script.at = 0;
    *out_state = &script;
    return 0;
}

static int script_next(void *state, struct wic_step *out_step)
{
    struct script *self = state;
    static const struct wic_step zero;
    ck_assert_int_eq(memcmp(out_step, &zero, sizeof(zero)), 0);
    if (self->at == self->count) {
        return self->last;
    }
    *out_step = self->steps[self->at++];
    return 1;
}

static uint64_t told_value;

static int script_told(void *state, const struct wic_step *step, const struct wic_outcome *outcome)
{
    ck_assert_ptr_eq(state, &script);
    ck_assert_uint_eq(step->flags, WIC_STEP_TOLD);
    told_value = outcome->value;
    return outcome->value == 13 ? -EDOM : 0;
}

static void script_destroy(void *state)
{
    ck_assert_ptr_eq(state, &script);
    destroyed++;
}

#define SCRIPTED                                                                                   \
    {                                                                                              \
        .abi = WIC_PATTERN_ABI, .size = sizeof(struct wic_pattern), .name = "scripted",            \
        .doc = "a test", .create = script_create, .next = script_next, .told = script_told,        \
        .destroy = script_destroy                                                                  \
    }

static const struct wic_pattern scripted = SCRIPTED;

static const struct wic_pattern_params one_way = {
    .parties = 2, .slots = 4, .chunk_bytes = 4096, .chunks[0][1] = 10};
static const struct wic_pattern_params both_ways = {
    .parties = 2, .slots = 4, .chunk_bytes = 4096, .chunks = {{0, 10}, {6}}};

/* --- orders --- */

static void covers_each_once(const struct wic_step *step)
{
    unsigned char *seen = calloc(step->count, 1);
    for (uint64_t k = 0; k < step->count; k++) {
        uint64_t chunk = wic_step_chunk(step, k);
        ck_assert_uint_ge(chunk, step->first);
        ck_assert_uint_lt(chunk - step->first, step->count);
        ck_assert_uint_eq(seen[chunk - step->first]++, 0);
    }
    free(seen);
}

START_TEST(streaming_and_adjacent_take_chunks_as_they_come)
{
    for (uint32_t access = WIC_STREAMING; access <= WIC_ADJACENT; access++) {
        struct wic_step step = {.access = access, .first = 7, .count = 5};
        for (uint64_t k = 0; k < 5; k++) {
            ck_assert_uint_eq(wic_step_chunk(&step, k), 7 + k);
        }
    }
}
END_TEST

START_TEST(scatter_gather_goes_by_columns)
{
    struct wic_step step = {.access = WIC_SCATTER_GATHER, .first = 100, .count = 6, .stride = 3};
    const uint64_t wanted[] = {100, 103, 101, 104, 102, 105};
    for (uint64_t k = 0; k < 6; k++) {
        ck_assert_uint_eq(wic_step_chunk(&step, k), wanted[k]);
    }
    step = (struct wic_step){.access = WIC_SCATTER_GATHER, .count = 1200, .stride = 40};
    covers_each_once(&step);
}
END_TEST

START_TEST(random_takes_each_chunk_once_whatever_the_count)
{
    for (uint64_t count = 1; count <= 300; count++) {
        struct wic_step step = {
            .access = WIC_RANDOM, .first = count, .count = count, .seed = 77 * count};
        covers_each_once(&step);
    }
    struct wic_step large = {.access = WIC_RANDOM, .count = 70000, .seed = 1};
    covers_each_once(&large);
}
END_TEST

START_TEST(random_is_the_same_for_a_seed_and_another_for_another)
{
    struct wic_step a = {.access = WIC_RANDOM, .count = 1000, .seed = 5};
    struct wic_step b = a;
    struct wic_step c = a;
    c.seed = 6;
    int same = 0;
    int in_place = 0;
    for (uint64_t k = 0; k < 1000; k++) {
        ck_assert_uint_eq(wic_step_chunk(&a, k), wic_step_chunk(&b, k));
        same += wic_step_chunk(&a, k) == wic_step_chunk(&c, k);
        in_place += wic_step_chunk(&a, k) == k;
    }
    ck_assert_int_lt(same, 20);
    ck_assert_int_lt(in_place, 20);
    /* What a device must reproduce. */
    const uint64_t known[] = {3, 5, 8, 6, 4, 2, 0, 9, 7, 1};
    struct wic_step ten = {.access = WIC_RANDOM, .count = 10, .seed = 42};
    for (uint64_t k = 0; k < 10; k++) {
        ck_assert_uint_eq(wic_step_chunk(&ten, k), known[k]);
    }
}
END_TEST

/* --- the built-in one --- */

START_TEST(unidirectional_moves_all_one_way_in_one_step)
{
    struct wic_step steps[8];
    size_t count = 0;
    const struct wic_pattern *pattern = wic_pattern_find("unidirectional");
    ck_assert_ptr_eq(pattern, &wic_pattern_unidirectional);
    ck_assert_int_eq(wic_schedule_record(pattern, &one_way, steps, 8, &count, NULL, 0), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(steps[0].from, 0);
    ck_assert_uint_eq(steps[0].to, 1);
    ck_assert_uint_eq(steps[0].flags, 0);
    ck_assert_uint_eq(steps[0].access, WIC_STREAMING);
    ck_assert_uint_eq(steps[0].first, 0);
    ck_assert_uint_eq(steps[0].count, 10);
    ck_assert_uint_eq(steps[0].chunk_bytes, 4096);
}
END_TEST

START_TEST(unidirectional_with_a_reach_is_adjacent)
{
    uint64_t reach = 1;
    struct wic_pattern_params params = one_way;
    struct wic_schedule schedule;
    struct wic_step steps[8];
    size_t count = 0;
    params.args = &reach;
    ck_assert_int_eq(
        wic_schedule_record(&wic_pattern_unidirectional, &params, steps, 8, &count, NULL, 0), 0);
    ck_assert_uint_eq(steps[0].access, WIC_ADJACENT);
    ck_assert_uint_eq(steps[0].reach, 1);
    reach = 2; /* takes 5 of 4 slots */
    ck_assert_int_eq(wic_schedule_init(&schedule, &wic_pattern_unidirectional, &params, NULL, 0),
                     -EINVAL);
    reach = 2049;
    ck_assert_int_eq(wic_schedule_init(&schedule, &wic_pattern_unidirectional, &params, NULL, 0),
                     -ERANGE);
}
END_TEST

START_TEST(unidirectional_refuses_a_way_back)
{
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(
        wic_schedule_init(&schedule, &wic_pattern_unidirectional, &both_ways, text, sizeof(text)),
        -EINVAL);
    ck_assert_ptr_nonnull(strstr(text, "unidirectional cannot do that"));
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), -EINVAL);
    wic_schedule_fini(&schedule);
}
END_TEST

START_TEST(unidirectional_serves_several_parties_in_turn)
{
    struct wic_pattern_params params = {
        .parties = 3, .slots = 4, .chunk_bytes = 64, .chunks[0] = {0, 6, 5}};
    struct wic_step steps[8];
    size_t count = 0;
    const uint64_t wanted[4][3] = {{1, 0, 4}, {2, 0, 4}, {1, 4, 2}, {2, 4, 1}};
    ck_assert_int_eq(
        wic_schedule_record(&wic_pattern_unidirectional, &params, steps, 8, &count, NULL, 0), 0);
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(steps[i].from, 0);
        ck_assert_uint_eq(steps[i].to, wanted[i][0]);
        ck_assert_uint_eq(steps[i].first, wanted[i][1]);
        ck_assert_uint_eq(steps[i].count, wanted[i][2]);
    }
}
END_TEST

/* --- what is told --- */

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
    ck_assert_ptr_nonnull(strstr(text, "was not told"));
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
    ck_assert_ptr_nonnull(strstr(text, "9 chunks came of a step of 10"));
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

START_TEST(nothing_to_move_is_a_schedule_without_steps)
{
    struct wic_pattern_params params = {.parties = 2, .slots = 1, .chunk_bytes = 1};
    struct wic_schedule schedule;
    struct wic_step step;
    ck_assert_int_eq(wic_schedule_init(&schedule, &wic_pattern_unidirectional, &params, NULL, 0),
                     0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 0);
    ck_assert_int_eq(wic_schedule_next(&schedule, &step, NULL, 0), 0);
    wic_schedule_fini(&schedule);
    wic_schedule_fini(NULL);
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
    {{.to = 1, .count = 1, .chunk_bytes = 1}, "it is not told"},
    {{.to = 1, .count = WIC_PATTERN_CHUNKS_MAX + 1, .chunk_bytes = 1, .flags = WIC_STEP_TOLD},
     "beyond the last"},
    {{.to = 1, .count = 2, .chunk_bytes = 1, .flags = WIC_STEP_TOLD, .access = WIC_RANDOM},
     "as they come"},
    {{.to = 1,
      .count = 2,
      .chunk_bytes = 1,
      .flags = WIC_STEP_TOLD,
      .access = WIC_SCATTER_GATHER,
      .stride = 2},
     "as they come"},
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

/* --- what is a pattern, and which there are --- */

static int checked(struct wic_pattern pattern)
{
    char text[WIC_TEXT_BYTES] = "";
    int rc = wic_pattern_check(&pattern, text, sizeof(text));
    ck_assert_int_eq(rc == 0, text[0] == '\0');
    return rc;
}

START_TEST(check_refuses_other_abis_sizes_and_missing_members)
{
    const struct wic_pattern good = SCRIPTED;
    struct wic_pattern p;
    char doc[WIC_PATTERN_DOC_MAX + 1];
    memset(doc, 'x', sizeof(doc));
    doc[WIC_PATTERN_DOC_MAX] = '\0';
    ck_assert_int_eq(checked(good), 0);
    ck_assert_int_eq(wic_pattern_check(NULL, NULL, 0), -EINVAL);
    ck_assert_int_eq((p = good, p.abi = 0, checked(p)), -EPROTO);
    ck_assert_int_eq((p = good, p.abi++, checked(p)), -EPROTO);
    ck_assert_int_eq((p = good, p.size--, checked(p)), -EPROTO);
    ck_assert_int_eq((p = good, p.size = UINT32_MAX, checked(p)), -EPROTO);
    ck_assert_int_eq((p = good, p.size += 8, checked(p)), 0);
    ck_assert_int_eq((p = good, p.doc = NULL, checked(p)), -EINVAL);
    ck_assert_int_eq((p = good, p.doc = doc, checked(p)), -EINVAL);
    ck_assert_int_eq((p = good, p.create = NULL, checked(p)), -EINVAL);
    ck_assert_int_eq((p = good, p.next = NULL, checked(p)), -EINVAL);
    ck_assert_int_eq((p = good, p.destroy = NULL, checked(p)), -EINVAL);
}
END_TEST

static const struct wic_pattern_arg good_arg = {"speed", "How fast.", 1, 9, 5};

START_TEST(check_refuses_bad_arguments)
{
    struct wic_pattern p = SCRIPTED;
    struct wic_pattern_arg args[2] = {good_arg, good_arg};
    args[1].name = "other";
    p.args = args;
    ck_assert_int_eq((p.arg_count = 2, checked(p)), 0);
    ck_assert_int_eq((p.args = NULL, checked(p)), -EINVAL);
    p.args = args;
    ck_assert_int_eq((p.arg_count = WIC_PATTERN_ARGS_MAX + 1, checked(p)), -EINVAL);
    p.arg_count = 2;
    ck_assert_int_eq((args[1] = good_arg, checked(p)), -EINVAL); /* twice */
    p.arg_count = 1;
    ck_assert_int_eq((args[0].name = NULL, checked(p)), -EINVAL);
    ck_assert_int_eq((args[0].name = "Not", checked(p)), -EINVAL);
    ck_assert_int_eq((args[0].name = "pattern", checked(p)), -EINVAL);
    ck_assert_int_eq((args[0] = good_arg, args[0].doc = NULL, checked(p)), -EINVAL);
    ck_assert_int_eq((args[0] = good_arg, args[0].def = 0, checked(p)), -EINVAL);
    ck_assert_int_eq((args[0] = good_arg, args[0].def = 10, checked(p)), -EINVAL);
    ck_assert_int_eq((args[0] = good_arg, checked(p)), 0);
}
END_TEST

START_TEST(arguments_are_set_by_name_within_their_range)
{
    struct wic_pattern p = SCRIPTED;
    uint64_t args[WIC_PATTERN_ARGS_MAX];
    char text[WIC_TEXT_BYTES] = "";
    p.args = &good_arg;
    p.arg_count = 1;
    wic_pattern_defaults(&p, args);
    ck_assert_uint_eq(args[0], 5);
    ck_assert_int_eq(wic_pattern_set(&p, args, "speed", 9, text, sizeof(text)), 0);
    ck_assert_uint_eq(args[0], 9);
    ck_assert_int_eq(wic_pattern_set(&p, args, "speed", 0, text, sizeof(text)), -ERANGE);
    ck_assert_ptr_nonnull(strstr(text, "speed is 0; allowed are 1 to 9"));
    ck_assert_int_eq(wic_pattern_set(&p, args, "sped", 1, text, sizeof(text)), -ENOENT);
    ck_assert_ptr_nonnull(strstr(text, "no argument 'sped'"));
    ck_assert_uint_eq(args[0], 9);
}
END_TEST

START_TEST(check_refuses_bad_names)
{
    const char *bad[] = {
        NULL, "", "Upper", "1st", "_x", "a-b", "a/b", "a\nb", "a23456789012345678901234567890123"};
    struct wic_pattern pattern = SCRIPTED;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        pattern.name = bad[i];
        ck_assert_int_eq(checked(pattern), -EINVAL);
    }
    pattern.name = "a2_345678901234567890123456789_1";
    ck_assert_int_eq(checked(pattern), -EINVAL);
    pattern.name = "a2_345678901234567890123456789_";
    ck_assert_int_eq(checked(pattern), 0);
}
END_TEST

START_TEST(registered_patterns_are_found_after_the_built_in_ones)
{
    struct wic_pattern other = SCRIPTED;
    ck_assert_ptr_null(wic_pattern_find("scripted"));
    ck_assert_ptr_null(wic_pattern_find(NULL));
    ck_assert_int_eq(wic_pattern_register(&scripted, NULL, 0), 0);
    ck_assert_int_eq(wic_pattern_register(&scripted, NULL, 0), 0);
    ck_assert_int_eq(wic_pattern_register(&other, NULL, 0), -EEXIST);
    ck_assert_ptr_eq(wic_pattern_find("scripted"), &scripted);
    ck_assert_ptr_eq(wic_pattern_at(0), &wic_pattern_unidirectional);
    ck_assert_ptr_eq(wic_pattern_at(1), &scripted);
    ck_assert_ptr_null(wic_pattern_at(2));
    other.name = "unidirectional";
    ck_assert_int_eq(wic_pattern_register(&other, NULL, 0), -EEXIST);
    other.abi = 7;
    ck_assert_int_eq(wic_pattern_register(&other, NULL, 0), -EPROTO);
}
END_TEST

START_TEST(registry_has_an_end)
{
    static struct wic_pattern many[WIC_PATTERNS_MAX];
    static char names[WIC_PATTERNS_MAX][8];
    int rc = 0;
    int i = 0;
    for (; i < WIC_PATTERNS_MAX && rc == 0; i++) {
        many[i] = scripted;
        snprintf(names[i], sizeof(names[i]), "p%d", i);
        many[i].name = names[i];
        rc = wic_pattern_register(&many[i], NULL, 0);
    }
    ck_assert_int_eq(i, WIC_PATTERNS_MAX);
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_ptr_nonnull(wic_pattern_at(WIC_PATTERNS_MAX - 1));
    ck_assert_ptr_null(wic_pattern_at(WIC_PATTERNS_MAX));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_pattern");
    TCase *orders = tcase_create("orders");
    tcase_add_test(orders, streaming_and_adjacent_take_chunks_as_they_come);
    tcase_add_test(orders, scatter_gather_goes_by_columns);
    tcase_add_test(orders, random_takes_each_chunk_once_whatever_the_count);
    tcase_add_test(orders, random_is_the_same_for_a_seed_and_another_for_another);
    suite_add_tcase(suite, orders);
    TCase *built_in = tcase_create("unidirectional");
    tcase_add_test(built_in, unidirectional_moves_all_one_way_in_one_step);
    tcase_add_test(built_in, unidirectional_with_a_reach_is_adjacent);
    tcase_add_test(built_in, unidirectional_refuses_a_way_back);
    tcase_add_test(built_in, unidirectional_serves_several_parties_in_turn);
    tcase_add_test(built_in, nothing_to_move_is_a_schedule_without_steps);
    suite_add_tcase(suite, built_in);
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
    TCase *registry = tcase_create("registry");
    tcase_add_test(registry, check_refuses_other_abis_sizes_and_missing_members);
    tcase_add_test(registry, check_refuses_bad_arguments);
    tcase_add_test(registry, arguments_are_set_by_name_within_their_range);
    tcase_add_test(registry, check_refuses_bad_names);
    tcase_add_test(registry, registered_patterns_are_found_after_the_built_in_ones);
    tcase_add_test(registry, registry_has_an_end);
    suite_add_tcase(suite, registry);
    return run_suite(suite);
}
