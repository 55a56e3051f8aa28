/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Patterns: the definition and the list, the order of a step's chunks, and the built-in one. */
#include "scripted_pattern.h"
#include "run_suite.h"
#include "wic/pattern/schedule.h"

#include <stdio.h>

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

START_TEST(random_is_determined_by_its_seed)
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
    /* Order that a device must reproduce. */
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

START_TEST(registered_patterns_are_found_after_built_in_ones)
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
    tcase_add_test(orders, random_is_determined_by_its_seed);
    suite_add_tcase(suite, orders);
    TCase *built_in = tcase_create("unidirectional");
    tcase_add_test(built_in, unidirectional_moves_all_one_way_in_one_step);
    tcase_add_test(built_in, unidirectional_with_a_reach_is_adjacent);
    tcase_add_test(built_in, unidirectional_refuses_a_way_back);
    tcase_add_test(built_in, unidirectional_serves_several_parties_in_turn);
    tcase_add_test(built_in, nothing_to_move_is_a_schedule_without_steps);
    suite_add_tcase(suite, built_in);
    TCase *registry = tcase_create("registry");
    tcase_add_test(registry, check_refuses_other_abis_sizes_and_missing_members);
    tcase_add_test(registry, check_refuses_bad_arguments);
    tcase_add_test(registry, arguments_are_set_by_name_within_their_range);
    tcase_add_test(registry, check_refuses_bad_names);
    tcase_add_test(registry, registered_patterns_are_found_after_built_in_ones);
    tcase_add_test(registry, registry_has_an_end);
    suite_add_tcase(suite, registry);
    return run_suite(suite);
}
