/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The steps of the patterns that are plugins, written as words: ">3" is a step of 3 chunks down,
 * "<1" one of 1 up; with several parties the other one's number follows. */
#include "plugin_pattern.h"
#include "run_suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define END UINT64_MAX /* in a list of outcomes */

struct asked {
    const char *pattern;
    uint32_t parties; /* 0: 2 */
    uint64_t down, up;
    struct {
        const char *name;
        uint64_t value;
    } args[3];
    /* Results of the dynamic steps, in turn; then all their chunks and 0. */
    struct wic_outcome told[8];
    size_t n_told;
};

static int begin(const struct asked *asked, uint64_t seed, struct wic_schedule *schedule)
{
    const struct wic_pattern *pattern = plugin_pattern(asked->pattern);
    uint64_t args[WIC_PATTERN_ARGS_MAX];
    struct wic_pattern_params params = {.parties = asked->parties ? asked->parties : 2,
                                        .slots = 4,
                                        .chunk_bytes = 64,
                                        .seed = seed,
                                        .args = args};
    for (uint32_t peer = 1; peer < params.parties; peer++) {
        params.chunks[0][peer] = asked->down;
        params.chunks[peer][0] = asked->up;
    }
    wic_pattern_defaults(pattern, args);
    for (size_t i = 0; i < 3 && asked->args[i].name != NULL; i++) {
        ck_assert_int_eq(
            wic_pattern_set(pattern, args, asked->args[i].name, asked->args[i].value, NULL, 0), 0);
    }
    return wic_schedule_init(schedule, pattern, &params, NULL, 0);
}

/* The schedule in words, up to `most` steps. */
static const char *steps_of(const struct asked *asked, uint64_t seed, size_t most)
{
    static char words[8192];
    struct wic_schedule schedule;
    struct wic_step step;
    char text[WIC_TEXT_BYTES] = "";
    size_t told = 0;
    size_t used = 0;
    int rc = begin(asked, seed, &schedule);
    words[0] = '\0';
    ck_assert_int_eq(rc, 0);
    while (most-- > 0 && (rc = wic_schedule_next(&schedule, &step, text, sizeof(text))) == 1) {
        used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s%llu", used ? " " : "",
                                 step.from == 0 ? ">" : "<", (unsigned long long)step.count);
        if (asked->parties > 2) {
            used +=
                (size_t)snprintf(words + used, sizeof(words) - used, "@%u", step.from + step.to);
        }
        if (step.flags & WIC_STEP_TOLD) {
            struct wic_outcome all = {step.count, 0};
            const struct wic_outcome *o = told < asked->n_told ? &asked->told[told] : &all;
            struct wic_outcome outcome = {o->count == END ? step.count : o->count, o->value};
            told++;
            ck_assert_msg(wic_schedule_tell(&schedule, &outcome, text, sizeof(text)) == 0, "%s",
                          text);
        }
    }
    ck_assert_msg(rc >= 0, "%s after '%s'", text, words);
    wic_schedule_fini(&schedule);
    return words;
}

static void steps_are(struct asked asked, const char *words)
{
    ck_assert_str_eq(steps_of(&asked, 1, 100), words);
}

/* --- alternating --- */

START_TEST(alternating_gives_a_chunk_each_way_in_turn)
{
    steps_are((struct asked){"alternating", .down = 3, .up = 3}, ">1 <1 >1 <1 >1 <1");
    steps_are((struct asked){"alternating", .down = 0, .up = 0}, "");
    steps_are((struct asked){"alternating", .parties = 3, .down = 2, .up = 2},
              ">1@1 <1@1 >1@2 <1@2 >1@1 <1@1 >1@2 <1@2");
}
END_TEST

START_TEST(alternating_ends_after_its_rounds)
{
    steps_are(
        (struct asked){"alternating", .down = WIC_OPEN, .up = WIC_OPEN, .args = {{"rounds", 2}}},
        ">1 <1 >1 <1");
    steps_are((struct asked){"alternating", .parties = 3, .down = WIC_OPEN, .up = WIC_OPEN,
                             .args = {{"rounds", 1}}},
              ">1@1 <1@1 >1@2 <1@2");
}
END_TEST

START_TEST(alternating_ends_when_nothing_changes)
{
    steps_are((struct asked){"alternating", .down = WIC_OPEN, .up = WIC_OPEN,
                             .args = {{"rounds", 9}, {"until_zero", 1}},
                             .told = {{1, 0}, {1, 70}, {1, 0}, {1, 3}, {1, 0}, {1, 0}},
                             .n_told = 6},
              ">1 <1 >1 <1 >1 <1");
    /* The rounds are the limit. */
    steps_are((struct asked){"alternating", .down = WIC_OPEN, .up = WIC_OPEN,
                             .args = {{"rounds", 2}, {"until_zero", 1}},
                             .told = {{1, 0}, {1, 70}, {1, 0}, {1, 3}}, .n_told = 4},
              ">1 <1 >1 <1");
}
END_TEST

START_TEST(alternating_ends_with_the_stream)
{
    /* No third chunk was sent down, therefore no answer is waited for. */
    steps_are((struct asked){"alternating", .down = WIC_OPEN, .up = WIC_OPEN,
                             .told = {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {0, 0}}, .n_told = 5},
              ">1 <1 >1 <1 >1");
    steps_are((struct asked){"alternating", .down = WIC_OPEN, .up = WIC_OPEN,
                             .told = {{1, 0}, {0, 0}}, .n_told = 2},
              ">1 <1");
}
END_TEST

START_TEST(alternating_refuses_what_is_not)
{
    struct wic_schedule schedule;
    const struct asked bad[] = {
        {"alternating", .down = 3, .up = 2},
        {"alternating", .down = WIC_OPEN, .up = 2},
        {"alternating", .down = 3, .up = 3, .args = {{"rounds", 2}}},
        {"alternating", .down = 3, .up = 3, .args = {{"until_zero", 1}}},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(begin(&bad[i], 1, &schedule), -EINVAL);
    }
}
END_TEST

/* --- multiple --- */

START_TEST(multiple_gives_its_portions_in_turn)
{
    steps_are((struct asked){"multiple", .down = 9, .up = 3, .args = {{"n0", 3}}},
              ">3 <1 >3 <1 >3 <1");
    steps_are((struct asked){"multiple", .down = 4, .up = 8, .args = {{"n0", 2}, {"n1", 4}}},
              ">2 <4 >2 <4");
    /* The rest makes shorter steps, or more of them. */
    steps_are((struct asked){"multiple", .down = 7, .up = 4, .args = {{"n0", 3}}},
              ">3 <1 >3 <1 >1 <1 <1");
    steps_are((struct asked){"multiple", .parties = 3, .down = 3, .up = 1, .args = {{"n0", 2}}},
              ">2@1 <1@1 >2@2 <1@2 >1@1 >1@2");
}
END_TEST

START_TEST(multiple_ends_with_the_stream)
{
    /* The last input is short of two chunks: the existing part is answered. */
    steps_are((struct asked){"multiple", .down = WIC_OPEN, .up = WIC_OPEN, .args = {{"n0", 3}},
                             .told = {{3, 0}, {1, 0}, {1, 0}, {1, 0}}, .n_told = 4},
              ">3 <1 >3 <1");
    steps_are((struct asked){"multiple", .down = WIC_OPEN, .up = WIC_OPEN, .args = {{"n0", 3}},
                             .told = {{3, 0}, {1, 0}, {0, 0}}, .n_told = 3},
              ">3 <1 >3");
    /* The inputs are known, the results are not. */
    steps_are((struct asked){"multiple", .down = 5, .up = WIC_OPEN, .args = {{"n0", 3}}},
              ">3 <1 >2 <1");
}
END_TEST

/* --- probabilistic --- */

START_TEST(probabilistic_is_determined_by_its_seed)
{
    const struct asked asked = {"probabilistic", .down = 60, .up = 20,
                                .args = {{"n0", 7}, {"n1", 1}}};
    char first[8192];
    strcpy(first, steps_of(&asked, 5, 200));
    ck_assert_str_eq(steps_of(&asked, 5, 200), first);
    ck_assert_str_ne(steps_of(&asked, 6, 200), first);
    ck_assert_ptr_nonnull(strstr(first, ">7"));
    ck_assert_ptr_null(strstr(first, ">8"));
    ck_assert_ptr_nonnull(strstr(first, "<1"));
    ck_assert_ptr_null(strstr(first, "<2"));
}
END_TEST

START_TEST(probabilistic_by_chance_ends_with_the_stream)
{
    const struct asked asked = {"probabilistic", .down = WIC_OPEN, .up = 5,
                                .told = {{END, 0}, {END, 0}, {0, 0}}, .n_told = 3};
    ck_assert_uint_gt(strlen(steps_of(&asked, 5, 200)), 0);
    ck_assert_uint_lt(strlen(steps_of(&asked, 5, 200)), 100);
}
END_TEST

/* A tile's mask is first; the sender sets the number of bands that follow it, 0 under cloud. */
START_TEST(probabilistic_by_data_does_as_the_values_say)
{
    steps_are((struct asked){"probabilistic", .down = WIC_OPEN, .args = {{"n0", 8}, {"by_data", 1}},
                             .told = {{8, 2 * 3}, {3, 0}, {8, 0}, {8, 2 * 5}, {5, 0}, {2, 0}},
                             .n_told = 6},
              ">8 >3 >8 >8 >5 >8");
    /* 2 * 2 + 1: two chunks up. More than n1 are cut. */
    steps_are((struct asked){"probabilistic", .down = WIC_OPEN, .up = WIC_OPEN,
                             .args = {{"n0", 1}, {"n1", 3}, {"by_data", 1}},
                             .told = {{1, 2 * 2 + 1}, {2, 0}, {1, 2 * 9 + 1}, {3, 0}, {0, 0}},
                             .n_told = 5},
              ">1 <2 >1 <3 >1");
}
END_TEST

START_TEST(probabilistic_by_data_moves_all_for_any_values)
{
    struct asked asked = {"probabilistic", .parties = 4, .down = 9,
                          .up = 5,         .n_told = 8,  .args = {{"by_data", 1}}};
    uint64_t random = 1;
    for (int i = 0; i < 500; i++) {
        for (size_t k = 0; k < asked.n_told; k++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            asked.told[k] = (struct wic_outcome){END, random >> (33 + random % 30)};
        }
        steps_of(&asked, 1, 1000); /* checks that all is moved */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_cycle");
    TCase *alternating = tcase_create("alternating");
    tcase_add_test(alternating, alternating_gives_a_chunk_each_way_in_turn);
    tcase_add_test(alternating, alternating_ends_after_its_rounds);
    tcase_add_test(alternating, alternating_ends_when_nothing_changes);
    tcase_add_test(alternating, alternating_ends_with_the_stream);
    tcase_add_test(alternating, alternating_refuses_what_is_not);
    suite_add_tcase(suite, alternating);
    TCase *multiple = tcase_create("multiple");
    tcase_add_test(multiple, multiple_gives_its_portions_in_turn);
    tcase_add_test(multiple, multiple_ends_with_the_stream);
    suite_add_tcase(suite, multiple);
    TCase *probabilistic = tcase_create("probabilistic");
    tcase_add_test(probabilistic, probabilistic_is_determined_by_its_seed);
    tcase_add_test(probabilistic, probabilistic_by_chance_ends_with_the_stream);
    tcase_add_test(probabilistic, probabilistic_by_data_does_as_the_values_say);
    tcase_add_test(probabilistic, probabilistic_by_data_moves_all_for_any_values);
    suite_add_tcase(suite, probabilistic);
    return run_suite(suite);
}
