/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void setup(void)
{
    strcpy(root, "/tmp/pb-publish-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *directory, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static const char *get(const char *name)
{
    static char text[64];
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "r");
    text[0] = '\0';
    if (f != NULL) {
        if (fgets(text, sizeof text, f) == NULL)
            text[0] = '\0';
        fclose(f);
    }
    return text;
}

START_TEST(shows_nothing_before_commit_and_everything_after)
{
    struct pb_publish *p;
    char path[PATH_MAX + 64];
    struct pb_err err = {0};
    ck_assert_int_eq(pb_publish_open(root, "scene", &err, &p), 0);
    put(pb_publish_directory(p), "a", "new");
    ck_assert_str_eq(get("scene/a"), "");
    ck_assert_int_eq(pb_publish_commit(p, &err, path), 0);
    ck_assert_str_eq(get("scene/a"), "new");
    ck_assert_ptr_nonnull(strstr(path, "/scene"));
    pb_publish_close(p);
    ck_assert_str_eq(get("scene/a"), "new");
}
END_TEST

START_TEST(replaces_older_products_as_a_whole)
{
    char path[PATH_MAX + 64];
    for (int round = 0; round < 2; round++) {
        struct pb_publish *p;
        struct pb_err err = {0};
        ck_assert_int_eq(pb_publish_open(root, "scene", &err, &p), 0);
        put(pb_publish_directory(p), round ? "b" : "a", "x");
        ck_assert_int_eq(pb_publish_commit(p, &err, path), 0);
        pb_publish_close(p);
    }
    ck_assert_str_eq(get("scene/a"), "");
    ck_assert_str_eq(get("scene/b"), "x");
    ck_assert_int_eq(pb_publish_sweep(root), 0);
}
END_TEST

START_TEST(removes_what_was_not_committed)
{
    struct pb_publish *p;
    struct pb_err err = {0};
    char temp[PATH_MAX];
    ck_assert_int_eq(pb_publish_open(root, "scene", &err, &p), 0);
    snprintf(temp, sizeof temp, "%s", pb_publish_directory(p));
    put(temp, "a", "x");
    pb_publish_close(p);
    ck_assert_int_ne(access(temp, F_OK), 0);
}
END_TEST

START_TEST(sweeps_leftovers_of_the_dead_and_spares_the_living)
{
    struct pb_publish *p;
    struct pb_err err = {0};
    char dead[128], other[128];
    ck_assert_int_eq(pb_publish_open(root, "alive", &err, &p), 0);
    snprintf(dead, sizeof dead, "%s/.gone.77-0.tmp", root);
    snprintf(other, sizeof other, "%s/scene", root);
    ck_assert_int_eq(mkdir(dead, 0755), 0);
    ck_assert_int_eq(mkdir(other, 0755), 0);
    put(dead, "a", "x");
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert_int_ne(access(dead, F_OK), 0);
    ck_assert_int_eq(access(other, F_OK), 0);
    ck_assert_int_eq(access(pb_publish_directory(p), F_OK), 0);
    pb_publish_close(p);
}
END_TEST

START_TEST(starts_although_a_dead_process_had_our_number)
{
    struct pb_publish *p;
    struct pb_err err = {0};
    char dead[128];
    for (int i = 0; i < 8; i++) {
        snprintf(dead, sizeof dead, "%s/.scene.%d-%d.tmp", root, (int)getpid(), i);
        ck_assert_int_eq(mkdir(dead, 0755), 0);
    }
    ck_assert_msg(pb_publish_open(root, "scene", &err, &p) == 0, "%s", err.msg);
    pb_publish_close(p);
    ck_assert_int_eq(pb_publish_sweep(root), 0); /* open has done it */
}
END_TEST

static atomic_bool enough;

static void *sweep(void *arg)
{
    while (!atomic_load(&enough))
        (void)pb_publish_sweep(arg);
    return NULL;
}

START_TEST(a_sweep_takes_nothing_that_is_just_being_made)
{
    pthread_t sweeper[2];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&sweeper[i], NULL, sweep, root), 0);
    for (int i = 0; i < 300; i++) {
        struct pb_publish *p;
        struct pb_err err = {0};
        char path[PATH_MAX];
        ck_assert_msg(pb_publish_open(root, "scene", &err, &p) == 0, "%s", err.msg);
        put(pb_publish_directory(p), "a", "x");
        ck_assert_msg(pb_publish_commit(p, &err, path) == 0, "%s", err.msg);
        pb_publish_close(p);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++)
        pthread_join(sweeper[i], NULL);
}
END_TEST

START_TEST(takes_names_as_long_as_names_can_be)
{
    struct pb_publish *p;
    struct pb_err err = {0};
    char scene[256] = "a", path[PATH_MAX];
    for (int i = 0; i < 127; i++)
        strcat(scene, "\u00e9");
    ck_assert_msg(pb_publish_open(root, scene, &err, &p) == 0, "%s", err.msg);
    const char *cut = strstr(pb_publish_directory(p), "\u00e9.");
    ck_assert_ptr_nonnull(cut); /* between two characters */
    ck_assert_msg(pb_publish_commit(p, &err, path) == 0, "%s", err.msg);
    ck_assert_ptr_nonnull(strstr(path, scene));
    pb_publish_close(p);
}
END_TEST

START_TEST(refuses_names_that_hide_or_lead_elsewhere)
{
    static const char *const bad[] = {"", ".", "..", ".x", "a/b", ".x.tmp"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pb_publish *p;
        struct pb_err err = {0};
        ck_assert_msg(pb_publish_open(root, bad[i], &err, &p) < 0, "'%s' was taken", bad[i]);
        ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    }
}
END_TEST

START_TEST(sweeps_only_what_runs_have_made)
{
    static const char *const others[] = {
        ".mine.tmp", ".a.1-2", ".1-2.tmp",  ".a.b-1.tmp",   ".a.1-.tmp",         ".a.-1.tmp",
        "a.1-2.tmp", ".tmp",   ".a.12.tmp", ".a.1-2.x.tmp", ".a.1-2.tmp.old.tmp"};
    char path[128];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, others[i]);
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    snprintf(path, sizeof path, "%s/.a.b.1-2.tmp", root);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
}
END_TEST

START_TEST(says_which_path_cannot_be_created)
{
    struct pb_publish *p;
    struct pb_err err = {0};
    put(root, "file", "x");
    char below[128];
    snprintf(below, sizeof below, "%s/file/deeper", root);
    ck_assert_int_lt(pb_publish_open(below, "scene", &err, &p), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, below));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish");
    TCase *tc = tcase_create("publish");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, shows_nothing_before_commit_and_everything_after);
    tcase_add_test(tc, replaces_older_products_as_a_whole);
    tcase_add_test(tc, removes_what_was_not_committed);
    tcase_add_test(tc, sweeps_leftovers_of_the_dead_and_spares_the_living);
    tcase_add_test(tc, starts_although_a_dead_process_had_our_number);
    tcase_add_test(tc, a_sweep_takes_nothing_that_is_just_being_made);
    tcase_add_test(tc, takes_names_as_long_as_names_can_be);
    tcase_add_test(tc, refuses_names_that_hide_or_lead_elsewhere);
    tcase_add_test(tc, sweeps_only_what_runs_have_made);
    tcase_add_test(tc, says_which_path_cannot_be_created);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
