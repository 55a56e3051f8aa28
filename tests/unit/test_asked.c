/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "service/inbox/gathering.h"
#include "service/worker/described.h"

#include "config/base/json_writer.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_asked *asked;
static const struct pb_described june = {.facts = {.date = "2026-06-15T10:50:31Z"}};

static void make(void)
{
    asked = pb_asked_create();
}

static void end(void)
{
    pb_asked_destroy(asked);
}

/* A scan that sees one file, and wants it when its answer is not known. */
static const struct pb_described *scan(unsigned long config, const char *name, uint64_t digest)
{
    pb_asked_begin(asked, config);
    const struct pb_described *answer = pb_asked_find(asked, name, digest);
    if (answer == NULL)
        ck_assert_int_eq(pb_asked_want(asked, name, digest, "p"), 0);
    pb_asked_end(asked);
    return answer;
}

/* Returns the ticket of the one question; 0 = no question. */
static uint64_t question(const char *name)
{
    struct pb_asked_question next;
    if (!pb_asked_next(asked, &next))
        return 0;
    ck_assert_str_eq(next.name, name);
    ck_assert_str_eq(next.pipeline, "p");
    free(next.name);
    free(next.pipeline);
    return next.ticket;
}

START_TEST(a_file_is_asked_once_and_its_answer_stays)
{
    ck_assert_ptr_null(scan(1, "a.tif", 7));
    uint64_t ticket = question("a.tif");
    ck_assert_uint_ne(ticket, 0);
    ck_assert_ptr_null(scan(1, "a.tif", 7));
    ck_assert_uint_eq(question("a.tif"), 0);
    ck_assert(pb_asked_answer(asked, ticket, &june));
    ck_assert_str_eq(scan(1, "a.tif", 7)->facts.date, june.facts.date);
    ck_assert_str_eq(scan(1, "a.tif", 7)->facts.date, june.facts.date);
    ck_assert_uint_eq(question("a.tif"), 0);
}
END_TEST

START_TEST(what_changed_or_is_configured_anew_is_asked_again)
{
    ck_assert_ptr_null(scan(1, "a.tif", 7));
    uint64_t first = question("a.tif");
    ck_assert_ptr_null(scan(1, "a.tif", 8));
    ck_assert(!pb_asked_answer(asked, first, &june)); /* ticket of the file before */
    uint64_t second = question("a.tif");
    ck_assert(pb_asked_answer(asked, second, &june));
    ck_assert_ptr_nonnull(scan(1, "a.tif", 8));
    ck_assert_ptr_null(scan(2, "a.tif", 8));
    ck_assert_uint_ne(question("a.tif"), 0);
}
END_TEST

START_TEST(what_could_not_be_asked_is_asked_later)
{
    ck_assert_ptr_null(scan(1, "a.tif", 7));
    uint64_t ticket = question("a.tif");
    pb_asked_drop(asked, ticket);
    ck_assert_uint_eq(question("a.tif"), ticket);
}
END_TEST

START_TEST(a_file_that_went_is_forgotten)
{
    ck_assert_ptr_null(scan(1, "a.tif", 7));
    uint64_t ticket = question("a.tif");
    ck_assert_ptr_null(scan(1, "b.tif", 7));
    ck_assert(!pb_asked_answer(asked, ticket, &june));
}
END_TEST

enum { FILES = 300 };

/* Answers the queries of the scans until each file has its answer. */
static void *answer_all(void *arg)
{
    struct pb_asked_question next;
    for (int n = 0; n < FILES;) {
        if (!pb_asked_next(asked, &next))
            continue;
        if (n == 0) /* it could not be sent at first */
            pb_asked_drop(asked, next.ticket);
        n += n == 0 || pb_asked_answer(asked, next.ticket, &june);
        free(next.name);
        free(next.pipeline);
    }
    return arg;
}

/* One scan of all files but the first n. Returns the count of answers. */
static int scan_all(int n)
{
    int answers = 0;
    pb_asked_begin(asked, 1);
    for (int i = n; i < FILES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d.tif", i * 7 % FILES); /* not in their order */
        if (pb_asked_find(asked, name, 7) != NULL)
            answers++;
        else
            ck_assert_int_eq(pb_asked_want(asked, name, 7, "p"), 0);
    }
    pb_asked_end(asked);
    return answers;
}

START_TEST(test_answers_arrive_during_scans)
{
    pthread_t loop;
    ck_assert_int_eq(pthread_create(&loop, NULL, answer_all, NULL), 0);
    while (scan_all(0) < FILES - 1)
        ;
    ck_assert_int_eq(pthread_join(loop, NULL), 0);
    while (scan_all(0) < FILES) {
        struct pb_asked_question next;
        if (!pb_asked_next(asked, &next))
            continue;
        ck_assert(pb_asked_answer(asked, next.ticket, &june));
        free(next.name);
        free(next.pipeline);
    }
    ck_assert_int_eq(scan_all(FILES - 2), 2);
    ck_assert_int_eq(scan_all(0), 2); /* the others were forgotten */
}
END_TEST

static int parse(const char *line, struct pb_described *out)
{
    return pb_described_parse(line, strlen(line), out);
}

START_TEST(what_a_worker_says_is_checked)
{
    struct pb_described told;
    ck_assert_int_eq(parse("{\"event\":\"described\",\"date\":\"2026-06-15T10:50:31Z\","
                           "\"tile\":\"T33XWJ\"}",
                           &told),
                     0);
    ck_assert_str_eq(told.facts.tile, "T33XWJ");
    ck_assert_int_eq(parse("{\"event\":\"described\",\"tile\":\"a/b\"}", &told), -EPROTO);
    ck_assert_int_eq(parse("{\"event\":\"described\",\"date\":\"2026-13-15T10:50:31Z\"}", &told),
                     -EPROTO);
    ck_assert_int_eq(parse("{\"event\":\"described\",\"date\":\"yesterday\"}", &told), -EPROTO);
    ck_assert_int_eq(parse("{\"event\":\"device\"}", &told), -EPROTO);
    ck_assert_int_eq(parse("{\"event\":\"described\",\"error\":{\"code\":\"no.code\"}}", &told),
                     -EPROTO);
    ck_assert_str_eq(told.facts.tile, "T33XWJ");
}
END_TEST

START_TEST(what_is_said_is_understood)
{
    struct pb_described said, told;
    struct pb_err err = {0};
    size_t bytes = 0;
    (void)pb_fail_at(&err, PB_E_INPUT_METADATA_MISSING, "a.tif", 0, 0, "nothing says the date");
    pb_described_fail_err(&said, &err);
    struct pb_json *json = pb_described_line(&said);
    const char *line = pb_json_text(json, &bytes);
    ck_assert_int_eq(pb_described_parse(line, bytes, &told), 0);
    ck_assert_str_eq(pb_code_id(told.code), "input.metadata_missing");
    ck_assert_str_eq(told.message, "a.tif: nothing says the date");
    pb_json_destroy(json);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("asked");
    TCase *tests = tcase_create("asked");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, a_file_is_asked_once_and_its_answer_stays);
    tcase_add_test(tests, what_changed_or_is_configured_anew_is_asked_again);
    tcase_add_test(tests, what_could_not_be_asked_is_asked_later);
    tcase_add_test(tests, a_file_that_went_is_forgotten);
    tcase_add_test(tests, test_answers_arrive_during_scans);
    tcase_add_test(tests, what_a_worker_says_is_checked);
    tcase_add_test(tests, what_is_said_is_understood);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
