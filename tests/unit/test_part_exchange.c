/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The walk along the exchange of the parts of tiles, with the patterns that operators choose, and
 * with those that do not fit tiles. */
#include "config/patterns.h"
#include "pipeline/plan/exchange.h"
#include "run_suite.h"

#include <stdio.h>
#include <string.h>

static struct pb_part_exchange walk;

static void begin(const char *name, uint64_t n0, uint64_t n1, uint64_t by_data, uint32_t parts)
{
    struct pb_exchange_config exchange = {.of = PB_EXCHANGE_PARTS};
    struct pb_err err = {0};
    ck_assert_int_eq(pb_pattern_find(name, &exchange.pattern, NULL, 0), 0);
    wic_pattern_defaults(exchange.pattern, exchange.args);
    const uint64_t args[] = {n0, n1, by_data};
    memcpy(exchange.args, args, sizeof args);
    int rc = pb_part_exchange_init(&walk, &exchange, parts, 1, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

/* Returns the steps of a tile that needs this many parts, as text: "012^". */
static const char *tile(uint32_t needed)
{
    static char text[16 + sizeof(struct pb_err)];
    struct pb_err err = {0};
    uint32_t part = 0, n = 0;
    int rc;
    while ((rc = pb_part_exchange_next(&walk, n == needed, &part, &err)) == 1)
        text[n++] = (char)('0' + part);
    text[n] = '\0';
    (void)snprintf(text + n, sizeof text - n, "%s", rc == 0 ? "^" : err.msg);
    return text;
}

START_TEST(several_files_go_down_and_one_result_up)
{
    begin("multiple", 3, 1, 0, 3);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(tile(3), "012^");
    pb_part_exchange_fini(&walk);
}
END_TEST

START_TEST(data_decides_whether_the_rest_goes_down)
{
    begin("probabilistic", 1, 1, 1, 3);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(tile(3), "012^");
        ck_assert_str_eq(tile(1), "0^");
    }
    ck_assert_str_eq(tile(2), "01^");
    pb_part_exchange_fini(&walk);
}
END_TEST

START_TEST(without_a_pattern_all_parts_go_down)
{
    walk = (struct pb_part_exchange){.parts = 2};
    ck_assert_str_eq(tile(2), "01^");
    ck_assert_str_eq(tile(2), "01^");
}
END_TEST

START_TEST(what_does_not_go_with_tiles_is_refused)
{
    static const struct {
        const char *pattern;
        uint64_t n0, n1, by_data;
        uint32_t parts, needed;
        const char *why;
    } cases[] = {
        {"multiple", 2, 1, 0, 3, 3,
         "01exchange: the pattern 'multiple' wants a tile's result before"},
        {"multiple", 4, 1, 0, 3, 3, "exchange: the pattern 'multiple' sends more parts than"},
        {"multiple", 3, 2, 0, 3, 3, "012exchange: the pattern 'multiple' wants several results"},
        {"multiple", 3, 1, 0, 3, 1, "0exchange: the pattern 'multiple' sends parts that the tile"},
        {"alternating", 0, 0, 0, 2, 2,
         "0exchange: the pattern 'alternating' wants a tile's result"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].pattern, cases[i].n0, cases[i].n1, cases[i].by_data, cases[i].parts);
        const char *said = tile(cases[i].needed);
        ck_assert_msg(strncmp(said, cases[i].why, strlen(cases[i].why)) == 0, "%zu: %s", i, said);
        pb_part_exchange_fini(&walk);
    }
}
END_TEST

START_TEST(tile_that_lacks_a_part_is_noticed)
{
    struct pb_err err = {0};
    begin("multiple", 3, 1, 0, 3);
    ck_assert_int_eq(pb_part_exchange_tile(&walk, 3, &err), 0);
    ck_assert_int_lt(pb_part_exchange_tile(&walk, 2, &err), 0);
    pb_part_exchange_fini(&walk);
    begin("multiple", 3, 1, 0, 3);
    ck_assert_int_lt(pb_part_exchange_tile(&walk, 4, &err), 0);
    pb_part_exchange_fini(&walk);
    begin("probabilistic", 1, 1, 1, 3);
    ck_assert_int_eq(pb_part_exchange_check(&walk, true, &err), 0);
    begin("multiple", 3, 1, 0, 3);
    ck_assert_int_lt(pb_part_exchange_check(&walk, true, &err), 0); /* nothing for a gate */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("part_exchange");
    TCase *tc = tcase_create("part_exchange");
    tcase_add_test(tc, several_files_go_down_and_one_result_up);
    tcase_add_test(tc, data_decides_whether_the_rest_goes_down);
    tcase_add_test(tc, without_a_pattern_all_parts_go_down);
    tcase_add_test(tc, what_does_not_go_with_tiles_is_refused);
    tcase_add_test(tc, tile_that_lacks_a_part_is_noticed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
