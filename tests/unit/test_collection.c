/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/json_reader.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/publish_lock.h"
#include "tests/unit/run_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[] = "/tmp/pb-collection-XXXXXX";
static int products;

static void setup(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/pb-collection-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    products = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(products, 0);
}

static void teardown(void)
{
    (void)unlinkat(products, PB_COLLECTION_FILE, 0);
    (void)unlinkat(products, "catalog.json", 0);
    pb_publish_lock_sweep(products, PB_PUBLISH_LOCK_DIRECTORY);
    (void)unlinkat(products, "i.json", 0);
    (void)close(products);
    (void)rmdir(directory);
}

static struct pb_collection_extent item(double west, double south, double east, double north,
                                        const char *start, const char *end)
{
    struct pb_collection_extent out = {.has_bbox = true, .bbox = {west, south, east, north}};
    (void)snprintf(out.start, sizeof out.start, "%s", start);
    (void)snprintf(out.end, sizeof out.end, "%s", end);
    return out;
}

static struct pb_page_items items; /* items of the next publication */

/* Writes like a publication; tries again after a broken lock. */
static int write_collection(const char *id, const struct pb_collection_extent *item,
                            const char **why)
{
    const struct pb_collection_change change = {.id = id, .extent = *item, .items = items};
    int rc = -ESTALE;
    while (rc == -ESTALE) {
        struct pb_publish_lock *lock = NULL;
        rc = pb_publish_lock_take(products, PB_PUBLISH_LOCK_WAIT_MS, &lock);
        rc = rc ? rc : pb_collection_stage(lock, products, &change, why);
        rc = rc ? rc : pb_publish_lock_place(lock);
        pb_publish_lock_drop(lock);
    }
    return rc;
}

static char *text_of(const char *name)
{
    int fd = openat(products, name, O_RDONLY | O_CLOEXEC);
    char *text = calloc(1, 1 << 16);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, (1 << 16) - 1), 0);
    (void)close(fd);
    return text;
}

static void put(const char *name, const char *text)
{
    int fd = openat(products, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, 0640), 0);
    (void)close(fd);
}

static struct pb_collection_extent extent_now(void)
{
    struct pb_collection_extent extent;
    struct pb_json_value *value = NULL;
    char *text = text_of(PB_COLLECTION_FILE);
    ck_assert_int_eq(pb_json_parse(text, strlen(text), 1 << 16, &value), 0);
    ck_assert(pb_collection_extent_parse(pb_json_get(value, "extent", NULL), &extent));
    pb_json_release(value);
    free(text);
    return extent;
}

static void assert_box(const struct pb_collection_extent *e, double w, double s, double east,
                       double n)
{
    ck_assert_msg(e->bbox[0] == w && e->bbox[1] == s && e->bbox[2] == east && e->bbox[3] == n,
                  "%g %g %g %g", e->bbox[0], e->bbox[1], e->bbox[2], e->bbox[3]);
}

#define DAY(d) "2020-01-" d "T00:00:00Z"

static void write_item(struct pb_collection_extent e)
{
    const char *why = NULL;
    ck_assert_int_eq(write_collection("c", &e, &why), 0);
}

START_TEST(extent_is_that_of_the_items)
{
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("05")));
    struct pb_collection_extent e = extent_now();
    assert_box(&e, 10, 40, 11, 41);
    write_item(item(8, 40.5, 9, 42, DAY("03"), DAY("04")));
    write_item(item(9, 41, 10, 41, DAY("05"), "2020-01-05T00:00:00.5Z"));
    e = extent_now();
    assert_box(&e, 8, 40, 11, 42);
    ck_assert_str_eq(e.start, DAY("03"));
    ck_assert_str_eq(e.end, "2020-01-05T00:00:00.5Z");
}
END_TEST

START_TEST(what_grows_nothing_writes_nothing)
{
    struct stat before, after;
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("06")));
    ck_assert_int_eq(fstatat(products, PB_COLLECTION_FILE, &before, 0), 0);
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("06")));
    ck_assert_int_eq(fstatat(products, PB_COLLECTION_FILE, &after, 0), 0);
    ck_assert(before.st_ino == after.st_ino);
}
END_TEST

START_TEST(boxes_go_round_the_antimeridian)
{
    static const struct {
        double a[2], b[2], both[2];
    } cases[] = {{{170, -170}, {-175, -160}, {170, -160}}, {{170, -170}, {160, 175}, {160, -170}},
                 {{175, 179}, {-179, -175}, {175, -175}},  {{10, 20}, {15, 30}, {10, 30}},
                 {{-170, -160}, {150, 160}, {150, -160}},  {{-180, 180}, {170, -170}, {-180, 180}},
                 {{0, 170}, {-170, -10}, {-170, 170}},     {{-100, 100}, {90, -90}, {-180, 180}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            const double *a = swapped ? cases[i].b : cases[i].a;
            const double *b = swapped ? cases[i].a : cases[i].b;
            struct pb_collection_extent e = item(a[0], 0, a[1], 1, DAY("01"), DAY("01"));
            struct pb_collection_extent o = item(b[0], 0, b[1], 1, DAY("01"), DAY("01"));
            (void)pb_collection_extent_grow(&e, &o);
            assert_box(&e, cases[i].both[0], 0, cases[i].both[1], 1);
        }
}
END_TEST

START_TEST(sides_are_not_rounded)
{
    static const double boxes[][2] = {
        {61.383898, 63.544452}, {-66.192223, -65.647672}, {-120.7, -119.3}, {12.1, 12.7}};
    const size_t n = sizeof boxes / sizeof *boxes;
    struct pb_collection_extent e = item(boxes[0][0], 0, boxes[0][1], 1, DAY("01"), DAY("01"));
    for (size_t i = 1; i < n; i++) {
        struct pb_collection_extent o = item(boxes[i][0], 0, boxes[i][1], 1, DAY("01"), DAY("01"));
        ck_assert(pb_collection_extent_grow(&e, &o) == (i < n - 1));
        ck_assert(!pb_collection_extent_grow(&e, &o));
    }
    assert_box(&e, -120.7, 0, 63.544452, 1);
}
END_TEST

START_TEST(items_without_a_place_do_not_widen_the_extent)
{
    struct pb_collection_extent e = item(0, 0, 0, 0, DAY("05"), DAY("05"));
    e.has_bbox = false;
    write_item(e);
    e = extent_now();
    assert_box(&e, -180, -90, 180, 90);
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("05")));
    e = extent_now();
    assert_box(&e, 10, 40, 11, 41);
}
END_TEST

START_TEST(what_others_wrote_into_it_stays)
{
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("05")));
    put(PB_COLLECTION_FILE,
        "{\"type\":\"Collection\",\"id\":\"c\",\"description\":\"ours \\u00e4\",\"n\":1.50,"
        "\"providers\":[{\"name\":\"A\",\"x\":null}],\"pushbroom:extent\":\"items\",\"extent\":"
        "{\"spatial\":{\"bbox\":[[0,0,1,1]]},\"temporal\":{\"interval\":[[null,\"" DAY("01") "\"]]}"
                                                                                             "}}");
    write_item(item(10, 40, 11, 41, DAY("05"), DAY("05")));
    char *text = text_of(PB_COLLECTION_FILE);
    static const char *const parts[] = {"ours \xc3\xa4", "1.50", "\"x\": null", "\"name\": \"A\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no %s in %s", parts[i], text);
    free(text);
    struct pb_collection_extent e = extent_now();
    assert_box(&e, 0, 0, 11, 41);
    ck_assert_str_eq(e.start, ""); /* open */
    ck_assert_str_eq(e.end, DAY("05"));
    struct stat st;
    ck_assert_int_eq(fstatat(products, PB_COLLECTION_FILE, &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(what_is_not_ours_is_left_alone)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"{\"type\":\"Collection\",\"id\":\"c\",\"extent\":{}}", 0}, /* without our mark */
        {"{\"type\":\"Collection\",\"id\":\"c\",\"pushbroom:extent\":\"items\",\"extent\":3}", 0},
        {"{\"type\":\"Collection\",\"id\":\"d\",\"pushbroom:extent\":\"items\"}", 1},
        {"{\"type\":\"Catalog\",\"id\":\"c\"}", 1},
        {"no json", 1}};
    struct pb_collection_extent e = item(10, 40, 11, 41, DAY("05"), DAY("05"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = NULL;
        put(PB_COLLECTION_FILE, cases[i].text);
        ck_assert_int_eq(write_collection("c", &e, &why), cases[i].rc);
        char *text = text_of(PB_COLLECTION_FILE);
        ck_assert_str_eq(text, cases[i].text);
        free(text);
    }
}
END_TEST

START_TEST(items_are_read_or_refused)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"{\"collection\":\"c\",\"bbox\":[1,2,3,4],\"properties\":{\"datetime\":\"" DAY(
             "01") "\"}}",
         true},
        {"{\"collection\":\"c\",\"properties\":{\"datetime\":null,\"start_datetime\":\"" DAY(
             "01") "\",\"end_datetime\":\"" DAY("02") "\"}}",
         true},
        {"{\"collection\":\"d\",\"bbox\":[1,2,3,4],\"properties\":{\"datetime\":\"" DAY(
             "01") "\"}}",
         false},
        {"{\"collection\":\"c\",\"bbox\":[1,2,3,94],\"properties\":{\"datetime\":\"" DAY(
             "01") "\"}}",
         false},
        {"{\"collection\":\"c\",\"bbox\":[1,2,3],\"properties\":{\"datetime\":\"" DAY("01") "\"}}",
         false},
        {"{\"collection\":\"c\",\"properties\":{\"datetime\":\"yesterday\"}}", false},
        {"{\"collection\":\"c\",\"properties\":{\"datetime\":null}}", false},
        {"[", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_collection_extent e;
        put("i.json", cases[i].text);
        int rc = pb_collection_extent_read(products, "i.json", "c", &e);
        ck_assert_msg((rc == 0) == cases[i].good, "%s", cases[i].text);
    }
}
END_TEST

/* Grows in every step; ends by itself only when it is not killed. */
static _Noreturn void write_many(int seed, int n)
{
    const char *why;
    for (int i = 0; i < n; i++) {
        double at = (seed * 31 + i) % 80;
        struct pb_collection_extent e = item(-at, -at, at, at, DAY("05"), DAY("05"));
        (void)write_collection("c", &e, &why);
    }
    _exit(0);
}

enum { WRITERS = 6 };

START_TEST(many_processes_lose_no_item_and_kill_harms_nothing)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    pid_t pid[WRITERS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < WRITERS; i++)
            if ((pid[i] = fork()) == 0)
                write_many(round + i, 1000);
            else
                ck_assert_int_gt(pid[i], 0); /* kill(-1) would end everything */
        for (int i = 0; i < WRITERS; i++) {
            (void)nanosleep(&moment, NULL);
            (void)kill(pid[i], SIGKILL);
        }
        for (int i = 0; i < WRITERS; i++)
            (void)waitpid(pid[i], NULL, 0);
        if (faccessat(products, PB_COLLECTION_FILE, F_OK, 0) == 0)
            (void)extent_now(); /* whole and valid */
    }
    (void)unlinkat(products, PB_COLLECTION_FILE, 0);
    for (int i = 0; i < WRITERS; i++)
        if ((pid[i] = fork()) == 0) {
            const char *why;
            struct pb_collection_extent e = item(i, 0, i + 1, 1 + i, DAY("05"), DAY("05"));
            _exit(write_collection("c", &e, &why) == 0 ? 0 : 1);
        }
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        (void)waitpid(pid[i], &status, 0);
        ck_assert_int_eq(status, 0);
    }
    struct pb_collection_extent e = extent_now();
    assert_box(&e, 0, 0, WRITERS, WRITERS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collection");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, extent_is_that_of_the_items);
    tcase_add_test(all, what_grows_nothing_writes_nothing);
    tcase_add_test(all, boxes_go_round_the_antimeridian);
    tcase_add_test(all, sides_are_not_rounded);
    tcase_add_test(all, items_without_a_place_do_not_widen_the_extent);
    tcase_add_test(all, what_others_wrote_into_it_stays);
    tcase_add_test(all, what_is_not_ours_is_left_alone);
    tcase_add_test(all, items_are_read_or_refused);
    tcase_add_test(all, many_processes_lose_no_item_and_kill_harms_nothing);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
