/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Answers of a gate that a device computes, for the readers that wait for them. */
#include "pipeline/run/stream/gate_answers.h"

#include "run_suite.h"

#include <errno.h>
#include <pthread.h>

enum { TILES = 1000 };

START_TEST(answers_are_known_up_to_the_first_gap)
{
    struct pb_gate_answers *a = pb_gate_answers_create(4);
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(pb_gate_answers_put(a, 1, true), 0);
    ck_assert_uint_eq(pb_gate_answers_known(a), 0);
    ck_assert_int_eq(pb_gate_answers_put(a, 0, false), 0);
    ck_assert_uint_eq(pb_gate_answers_known(a), 2);
    ck_assert(!pb_gate_answers_passes(a, 0) && pb_gate_answers_passes(a, 1));
    ck_assert_int_eq(pb_gate_answers_put(a, 1, true), -EPROTO);
    ck_assert_int_eq(pb_gate_answers_put(a, 4, true), -EPROTO);
    ck_assert_int_eq(pb_gate_answers_wait(a, 1), 0);
    pb_gate_answers_destroy(a);
}
END_TEST

/* Puts the answers of the even tiles, the last one first. */
static void *put_even(void *answers)
{
    for (uint32_t i = TILES; i > 0; i--)
        if ((i - 1) % 2 == 0)
            ck_assert_int_eq(pb_gate_answers_put(answers, i - 1, (i - 1) % 3 == 0), 0);
    return NULL;
}

START_TEST(readers_wait_for_the_answers_of_writers)
{
    struct pb_gate_answers *a = pb_gate_answers_create(TILES);
    pthread_t writer;
    ck_assert_int_eq(pthread_create(&writer, NULL, put_even, a), 0);
    for (uint32_t i = 1; i < TILES; i += 2)
        ck_assert_int_eq(pb_gate_answers_put(a, i, i % 3 == 0), 0);
    for (uint32_t i = 0; i < TILES; i++) {
        ck_assert_int_eq(pb_gate_answers_wait(a, i), 0);
        ck_assert(pb_gate_answers_passes(a, i) == (i % 3 == 0));
    }
    (void)pthread_join(writer, NULL);
    pb_gate_answers_destroy(a);
}
END_TEST

static void *wait_last(void *answers)
{
    ck_assert_int_eq(pb_gate_answers_wait(answers, 1), -ECANCELED);
    return NULL;
}

START_TEST(abort_wakes_a_reader)
{
    struct pb_gate_answers *a = pb_gate_answers_create(2);
    pthread_t reader;
    ck_assert_int_eq(pthread_create(&reader, NULL, wait_last, a), 0);
    ck_assert_int_eq(pb_gate_answers_put(a, 0, true), 0);
    pb_gate_answers_abort(a);
    (void)pthread_join(reader, NULL);
    ck_assert_int_eq(pb_gate_answers_wait(a, 0), -ECANCELED);
    pb_gate_answers_destroy(a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gate_answers");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, answers_are_known_up_to_the_first_gap);
    tcase_add_test(tc, readers_wait_for_the_answers_of_writers);
    tcase_add_test(tc, abort_wakes_a_reader);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
