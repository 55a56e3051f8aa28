/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/published.h"

#include "config/base/json_reader.h"
#include "run_suite.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[32];
static struct pb_job job;
static struct pb_json_value *described;

static void setup(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-published-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    pb_job_init(&job);
    described = NULL;
}

static void teardown(void)
{
    char command[64];
    pb_json_release(described);
    pb_job_fini(&job);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* An item of about that many bytes. */
static void put_item(const char *name, size_t bytes)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "{\"type\": \"Feature\", \"id\": \"%s\", \"fill\": \"", name);
    for (size_t i = 0; i < bytes; i++)
        (void)fputc('x', file);
    (void)fputs("\"}", file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Describes stac products of these names, n of them. */
static void describe(const char *const *name, size_t n)
{
    char text[1 << 14] = "[";
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used,
                       "%s{\"type\": \"stac\", \"path\": \"%s%s%s\", \"name\": null}", i ? "," : "",
                       name[i][0] == '/' ? "" : root, name[i][0] == '/' ? "" : "/", name[i]);
    }
    (void)strcat(text, "]");
    ck_assert_int_eq(pb_job_set(&job.products, text), 0);
    pb_published_describe(&job, root, NULL);
    ck_assert_ptr_nonnull(job.published);
    ck_assert_int_eq(pb_json_parse(job.published, strlen(job.published), 1 << 24, &described), 0);
    ck_assert_uint_eq(pb_json_count(described), n);
}

static const struct pb_json_value *item_of(size_t i)
{
    return pb_json_get(pb_json_at(described, i), "item", NULL);
}

START_TEST(holds_the_item_and_its_place)
{
    const char *const name[] = {"a.stac.json"};
    put_item(name[0], 10);
    describe(name, 1);
    ck_assert_str_eq(pb_json_get_text(item_of(0), "id"), "a.stac.json");
    ck_assert_str_eq(pb_json_get_text(pb_json_at(described, 0), "place"), "a.stac.json");
    ck_assert(pb_json_is_null(pb_json_get(pb_json_at(described, 0), "name", NULL)));
}
END_TEST

START_TEST(leaves_out_an_item_over_the_limit)
{
    const char *const name[] = {"large", "small"};
    put_item(name[0], PB_PUBLISHED_ITEM_MAX);
    put_item(name[1], PB_PUBLISHED_ITEM_MAX - 100);
    describe(name, 2);
    ck_assert_ptr_null(item_of(0));
    ck_assert_str_eq(pb_json_get_text(pb_json_at(described, 0), "place"), "large");
    ck_assert_ptr_nonnull(item_of(1));
}
END_TEST

START_TEST(limits_the_items_of_a_job_together)
{
    enum { N = 12 };
    static char names[N][8];
    const char *name[N];
    size_t held = 0;
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        name[i] = names[i];
        put_item(name[i], 100000);
    }
    describe(name, N);
    for (size_t i = 0; i < N; i++)
        held += item_of(i) != NULL;
    ck_assert_uint_eq(held, PB_PUBLISHED_ALL_MAX / 100100);
}
END_TEST

START_TEST(reads_no_other_files)
{
    char link[PATH_MAX];
    const char *const name[] = {"link", "/etc/passwd", "fifo", "text"};
    put_item("target", 1);
    (void)snprintf(link, sizeof link, "%s/link", root);
    ck_assert_int_eq(symlink("target", link), 0);
    (void)snprintf(link, sizeof link, "%s/fifo", root);
    ck_assert_int_eq(mkfifo(link, 0600), 0);
    (void)snprintf(link, sizeof link, "%s/text", root);
    FILE *file = fopen(link, "w");
    (void)fputs("{\"type\": \"Collection\"}", file);
    (void)fclose(file);
    describe(name, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_ptr_null(item_of(i));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("published");
    TCase *tcase = tcase_create("published");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, holds_the_item_and_its_place);
    tcase_add_test(tcase, leaves_out_an_item_over_the_limit);
    tcase_add_test(tcase, limits_the_items_of_a_job_together);
    tcase_add_test(tcase, reads_no_other_files);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
