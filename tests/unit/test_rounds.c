/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Rounds follow a pattern: the installed one, and patterns that do not take turns. */
#include "config/patterns.h"
#include "pipeline/run/passes/reducing.h"

#include "run_suite.h"

#include <check.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct pb_exchange_config alternating(uint64_t rounds)
{
    struct pb_exchange_config exchange = {0};
    char text[WIC_TEXT_BYTES] = "";
    int rc = pb_pattern_find("alternating", &exchange.pattern, text, sizeof text);
    ck_assert_msg(rc == 0, "%s", text);
    wic_pattern_defaults(exchange.pattern, exchange.args);
    ck_assert_int_eq(
        wic_pattern_set(exchange.pattern, exchange.args, "rounds", rounds, text, sizeof text), 0);
    ck_assert_int_eq(
        wic_pattern_set(exchange.pattern, exchange.args, "until_zero", 1, text, sizeof text), 0);
    return exchange;
}

/* Returns the number of rounds when the numbers rest in the round rest_in. */
static int count_rounds(const struct pb_exchange_config *exchange, int rest_in)
{
    struct pb_rounds *rounds = NULL;
    struct pb_err err = {0};
    bool more = true;
    int n = 0;
    ck_assert_int_eq(pb_rounds_create(exchange, 64, &err, &rounds), 0);
    while (more) {
        n++;
        int rc = pb_rounds_next(rounds, n < rest_in ? 3 : 0, &more, &err);
        ck_assert_msg(rc == 0, "%s", err.msg);
    }
    pb_rounds_destroy(rounds);
    return n;
}

START_TEST(rounds_end_at_rest_or_with_their_number)
{
    const struct pb_exchange_config exchange = alternating(5);
    ck_assert_int_eq(count_rounds(&exchange, 1), 1);
    ck_assert_int_eq(count_rounds(&exchange, 3), 3);
    ck_assert_int_eq(count_rounds(&exchange, 5), 5);
    ck_assert_int_eq(count_rounds(&exchange, 100), 5);
    const struct pb_exchange_config one = alternating(1);
    ck_assert_int_eq(count_rounds(&one, 100), 1);
}
END_TEST

/* Direction of its first step, and of the second. */
static uint16_t way[2];
static size_t steps_taken;

static int odd_create(const struct wic_pattern_params *params, void **out_state)
{
    (void)params;
    steps_taken = 0;
    *out_state = &steps_taken;
    return 0;
}

static int odd_next(void *state, struct wic_step *out)
{
    (void)state;
    if (steps_taken == 2)
        return 0;
    out->from = way[steps_taken];
    out->to = (uint16_t)!out->from;
    out->first = steps_taken == 1 && way[0] == way[1];
    out->count = 1;
    out->chunk_bytes = 64;
    out->flags = WIC_STEP_TOLD;
    steps_taken++;
    return 1;
}

static int odd_told(void *state, const struct wic_step *step, const struct wic_outcome *outcome)
{
    (void)state;
    (void)step;
    (void)outcome;
    return 0;
}

static void odd_destroy(void *state)
{
    (void)state;
}

static const struct wic_pattern odd = {.abi = WIC_PATTERN_ABI,
                                       .size = sizeof(struct wic_pattern),
                                       .name = "odd",
                                       .doc = "any two steps",
                                       .create = odd_create,
                                       .next = odd_next,
                                       .told = odd_told,
                                       .destroy = odd_destroy};

START_TEST(a_pattern_that_does_not_take_turns_is_an_error)
{
    const struct pb_exchange_config exchange = {.pattern = &odd};
    struct pb_rounds *rounds = NULL;
    struct pb_err err = {0};
    bool more = true;
    way[0] = 1;
    ck_assert_int_lt(pb_rounds_create(&exchange, 64, &err, &rounds), 0);
    ck_assert_ptr_null(rounds);
    ck_assert_msg(strstr(err.msg, "it does not take turns") != NULL, "%s", err.msg);
    way[0] = way[1] = 0; /* down, and down again */
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_rounds_create(&exchange, 64, &err, &rounds), 0);
    ck_assert_int_lt(pb_rounds_next(rounds, 1, &more, &err), 0);
    pb_rounds_destroy(rounds);
    way[1] = 1; /* one round for any value */
    ck_assert_int_eq(pb_rounds_create(&exchange, 64, &err, &rounds), 0);
    ck_assert_int_eq(pb_rounds_next(rounds, 1, &more, &err), 0);
    ck_assert(!more);
    pb_rounds_destroy(rounds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rounds");
    TCase *tc = tcase_create("rounds");
    tcase_add_test(tc, rounds_end_at_rest_or_with_their_number);
    tcase_add_test(tc, a_pattern_that_does_not_take_turns_is_an_error);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
