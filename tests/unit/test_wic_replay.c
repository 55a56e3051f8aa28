/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The host's replay: the chunks that it moves, and their order, for every access pattern and both
 * directions, from recorded steps and from a dynamic schedule. The replay of a device is compared
 * with this by `wic-bench --replay`. */
#include "run_suite.h"
#include "wic/pattern/replay.h"

#include <errno.h>
#include <stdlib.h>

#define MOVES_MAX 64

struct moved {
    uint32_t from;
    uint64_t chunk, bytes;
};

struct record {
    struct moved moves[MOVES_MAX];
    size_t count;
    size_t fail_at; /* this move fails; 0: none */
};

static int note(void *context, const struct wic_step *step, uint64_t chunk)
{
    struct record *record = context;
    ck_assert_uint_lt(record->count, MOVES_MAX);
    record->moves[record->count++] = (struct moved){step->from, chunk, step->chunk_bytes};
    return record->count == record->fail_at ? -ECANCELED : 0;
}

static void moves_are(const struct record *record, const struct moved *wanted, size_t count)
{
    ck_assert_uint_eq(record->count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(record->moves[i].from, wanted[i].from);
        ck_assert_uint_eq(record->moves[i].chunk, wanted[i].chunk);
        ck_assert_uint_eq(record->moves[i].bytes, wanted[i].bytes);
    }
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* All access patterns, both directions, sizes that change from step to step. */
static const struct wic_step mixed[] = {
    {.to = 1, .access = WIC_STREAMING, .count = 3, .chunk_bytes = 10},
    {.from = 1, .access = WIC_SCATTER_GATHER, .count = 6, .stride = 3, .chunk_bytes = 20},
    {.to = 1, .access = WIC_ADJACENT, .first = 3, .count = 2, .reach = 1, .chunk_bytes = 30},
    {.from = 1, .access = WIC_RANDOM, .first = 6, .count = 10, .seed = 42, .chunk_bytes = 40},
};

static const struct moved mixed_moves[] = {
    {0, 0, 10},  {0, 1, 10},  {0, 2, 10}, {1, 0, 20}, {1, 3, 20},  {1, 1, 20},  {1, 4, 20},
    {1, 2, 20},  {1, 5, 20},  {0, 3, 30}, {0, 4, 30}, {1, 9, 40},  {1, 11, 40}, {1, 14, 40},
    {1, 12, 40}, {1, 10, 40}, {1, 8, 40}, {1, 6, 40}, {1, 15, 40}, {1, 13, 40}, {1, 7, 40},
};

START_TEST(every_access_pattern_moves_its_chunks_in_its_order)
{
    struct record record = {.count = 0};
    ck_assert_int_eq(wic_replay_steps(mixed, COUNT(mixed), note, &record), 0);
    moves_are(&record, mixed_moves, COUNT(mixed_moves));
}
END_TEST

START_TEST(no_steps_are_no_moves)
{
    struct record record = {.count = 0};
    ck_assert_int_eq(wic_replay_steps(NULL, 0, note, &record), 0);
    ck_assert_uint_eq(record.count, 0);
}
END_TEST

START_TEST(a_move_that_fails_ends_the_walk_at_once)
{
    struct record record = {.fail_at = 5}; /* within the second step */
    ck_assert_int_eq(wic_replay_steps(mixed, COUNT(mixed), note, &record), -ECANCELED);
    moves_are(&record, mixed_moves, 5);
}
END_TEST

/* --- a dynamic schedule --- */

struct script {
    const struct wic_step *steps;
    size_t count, at;
};

static struct script script;

static int script_create(const struct wic_pattern_params *params, void **out_state)
{
    (void)params;
    script.at = 0;
    *out_state = &script;
    return 0;
}

static int script_next(void *state, struct wic_step *out_step)
{
    struct script *self = state;
    if (self->at == self->count) {
        return 0;
    }
    *out_step = self->steps[self->at++];
    return 1;
}

static void script_destroy(void *state)
{
    (void)state;
}

static const struct wic_pattern scripted = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "scripted",
    .doc = "a test",
    .create = script_create,
    .next = script_next,
    .destroy = script_destroy,
};

static int replay_scripted(const struct wic_step *steps, size_t count, uint64_t forth,
                           uint64_t back, struct record *record, char *text)
{
    struct wic_pattern_params params = {
        .parties = 2, .slots = 4, .chunk_bytes = 64, .chunks = {{0, forth}, {back}}, .seed = 1};
    struct wic_schedule schedule;
    script = (struct script){steps, count, 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &scripted, &params, text, WIC_TEXT_BYTES), 0);
    struct wic_replay replay = {.move = note, .context = record};
    int rc = wic_replay_schedule(&schedule, &replay, text, WIC_TEXT_BYTES);
    wic_schedule_fini(&schedule);
    return rc;
}

START_TEST(a_schedule_that_is_asked_gives_the_same_moves)
{
    struct record record = {.count = 0};
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(replay_scripted(mixed, COUNT(mixed), 5, 16, &record, text), 0);
    moves_are(&record, mixed_moves, COUNT(mixed_moves));
}
END_TEST

START_TEST(a_bad_step_ends_the_walk_after_the_good_ones)
{
    struct record record = {.count = 0};
    char text[WIC_TEXT_BYTES] = "";
    /* The last step exceeds the data. */
    ck_assert_int_eq(replay_scripted(mixed, COUNT(mixed), 5, 15, &record, text), -EPROTO);
    ck_assert_ptr_nonnull(strstr(text, "beyond the last chunk"));
    moves_are(&record, mixed_moves, 11);
}
END_TEST

START_TEST(a_move_that_fails_ends_an_asked_schedule_too)
{
    struct record record = {.fail_at = 10};
    char text[WIC_TEXT_BYTES] = "";
    ck_assert_int_eq(replay_scripted(mixed, COUNT(mixed), 5, 16, &record, text), -ECANCELED);
    moves_are(&record, mixed_moves, 10);
    ck_assert_uint_eq(script.at, 3); /* and makes no more queries */
}
END_TEST

START_TEST(the_built_in_pattern_is_replayed_in_order)
{
    struct wic_pattern_params params = {
        .parties = 2, .slots = 4, .chunk_bytes = 64, .chunks[0][1] = 10};
    struct wic_schedule schedule;
    struct record record = {.count = 0};
    ck_assert_int_eq(wic_schedule_init(&schedule, &wic_pattern_unidirectional, &params, NULL, 0),
                     0);
    struct wic_replay replay = {.move = note, .context = &record};
    ck_assert_int_eq(wic_replay_schedule(&schedule, &replay, NULL, 0), 0);
    wic_schedule_fini(&schedule);
    ck_assert_uint_eq(record.count, 10);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(record.moves[i].from, 0);
        ck_assert_uint_eq(record.moves[i].chunk, i);
        ck_assert_uint_eq(record.moves[i].bytes, 64);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_replay");
    TCase *steps = tcase_create("steps");
    tcase_add_test(steps, every_access_pattern_moves_its_chunks_in_its_order);
    tcase_add_test(steps, no_steps_are_no_moves);
    tcase_add_test(steps, a_move_that_fails_ends_the_walk_at_once);
    suite_add_tcase(suite, steps);
    TCase *asked = tcase_create("asked");
    tcase_add_test(asked, a_schedule_that_is_asked_gives_the_same_moves);
    tcase_add_test(asked, a_bad_step_ends_the_walk_after_the_good_ones);
    tcase_add_test(asked, a_move_that_fails_ends_an_asked_schedule_too);
    tcase_add_test(asked, the_built_in_pattern_is_replayed_in_order);
    suite_add_tcase(suite, asked);
    return run_suite(suite);
}
