/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "publish_fixture.h"
#include "run_suite.h"

#include <pthread.h>
#include <stdbool.h>

START_TEST(later_run_of_a_job_fences_the_earlier_one)
{
    static const char *const before[] = {"", "old"}; /* a free place, and an exchange */
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        struct pb_err err = {0};
        struct pb_publish_options o = options_for(i ? "b" : "a", 1);
        if (before[i][0] != '\0')
            publish(&o, before[i]);
        o.job = "20260101-120000-abcd";
        o.epoch = 1;
        struct pb_publish *late = begin(&o);
        write_product(late, "late");
        int fd = open(pb_publish_directory(late), O_RDONLY | O_DIRECTORY);
        o.epoch = 2;
        struct pb_publish *next = begin(&o);
        ck_assert_ptr_nonnull(strstr(pb_publish_directory(next), ".20260101-120000-abcd.2."));
        ck_assert(!there(pb_publish_directory(late) + strlen(root) + 1));
        struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
        ck_assert_int_lt(pb_publish_commit(late, &file, 1, &err, path), 0);
        ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
        ck_assert_str_eq(get(i ? "b/p/a.txt" : "a/p/a.txt"), before[i]);
        ck_assert_msg(commit(next, "next", &err, path) == 0, "%s", err.msg);
        pb_publish_close(late);
        pb_publish_close(next);
        close(fd);
        ck_assert_str_eq(get(i ? "b/p/a.txt" : "a/p/a.txt"), "next");
        ck_assert_int_eq(hidden(), 0);
    }
}
END_TEST

static void *publish_late(void *arg)
{
    struct pb_publish *late = arg;
    char path[PATH_MAX];
    struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
    (void)pb_publish_commit(late, &file, 1, NULL, path); /* before the fence, or not at all */
    return NULL;
}

START_TEST(late_run_never_replaces_its_successor)
{
    struct pb_publish_options o = options_for("scene", 1);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        char command[PATH_MAX + 16];
        o.epoch++;
        struct pb_publish *late = begin(&o);
        write_product(late, "late");
        ck_assert_int_eq(pthread_create(&thread, NULL, publish_late, late), 0);
        (void)usleep((useconds_t)(i * 37 % 1500));
        o.epoch++;
        publish(&o, "next");
        pthread_join(thread, NULL);
        pb_publish_close(late);
        ck_assert_str_eq(get("scene/p/a.txt"), "next");
        (void)pb_publish_sweep(root); /* removes files that both left at the same time */
        ck_assert_int_eq(hidden(), 0);
        snprintf(command, sizeof command, "rm -r %s/scene", root);
        if (i % 2 == 0) /* each second time the place is free */
            ck_assert_int_eq(system(command), 0);
    }
}
END_TEST

/* Commits "late"; returns false if it was refused because of a later run. */
static bool commits_late(struct pb_publish *p)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
    const int rc = pb_publish_commit(p, &file, 1, &err, path);
    pb_publish_close(p);
    ck_assert_msg(rc == 0 || strstr(err.msg, "a later run of the job"), "%s", err.msg);
    return rc == 0;
}

START_TEST(test_run_begun_after_its_successor_is_refused)
{
    static const char *const paths[] = {"{scene}/{pipeline}", "{scene}"};
    static const enum pb_existing rules[] = {PB_EXISTING_REFUSE, PB_EXISTING_VERSION};
    for (int i = 0; i < 4; i++) {
        char scene[16], file[64];
        struct pb_publish_options o = options_for(scene, 1);
        snprintf(scene, sizeof scene, "s%d", i);
        snprintf(file, sizeof file, i % 2 ? "%s/a.txt" : "%s/p/a.txt", scene);
        o.path = paths[i % 2];
        o.existing = rules[i / 2];
        publish(&o, "old");
        struct pb_publish_options late = o, next = o;
        o.job = late.job = next.job = "20260101-120000-abcd";
        late.epoch = 1;
        next.epoch = 2;
        struct pb_publish *b = begin(&next), *a = begin(&late); /* after the fence */
        write_product(a, "late");
        char path[PATH_MAX];
        ck_assert_int_eq(commit(b, "next", NULL, path), 0);
        pb_publish_close(b);
        ck_assert(!commits_late(a));
        ck_assert_str_eq(get(file), "next");
        refuse(&late, PB_E_OUTPUT_WRITE, "a later run of the job"); /* after its end */
        refuse(&next, PB_E_OUTPUT_WRITE, "a later run of the job"); /* another try of the run */
        next.epoch = 3;
        publish(&next, "after");
        ck_assert_str_eq(get(file), "after");
        ck_assert_int_eq(hidden(), 0);
    }
}
END_TEST

START_TEST(test_later_run_is_found_for_a_changed_input)
{
    struct pb_publish_options late = options_for("scene", 1), next = options_for("scene", 2);
    late.existing = next.existing = PB_EXISTING_VERSION;
    publish(&next, "old");
    late.job = next.job = "20260101-120000-abcd";
    late.epoch = 1;
    next.epoch = 2;
    publish(&next, "next");
    refuse(&late, PB_E_OUTPUT_WRITE, "a later run of the job");
    ck_assert_str_eq(get("scene/p/a.txt"), "next");
    ck_assert(!there("scene~2"));
}
END_TEST

START_TEST(test_run_stops_if_a_later_one_has_a_directory)
{
    struct pb_publish_options o = options_for("scene", 1);
    o.job = "20260101-120000-abcd";
    o.epoch = 3;
    struct pb_publish *later = begin(&o);
    o.epoch = 2;
    refuse(&o, PB_E_OUTPUT_WRITE, "a later run of the job has begun");
    o.job = "20260101-120000-efgh";
    publish(&o, "other");
    write_product(later, "late");
    ck_assert(commits_late(later));
}
END_TEST

static struct pb_publish *begin_run(const char *scene, const char *job, uint64_t epoch)
{
    struct pb_publish_options o = options_for(scene, 1);
    o.job = job;
    o.epoch = epoch;
    struct pb_publish *p = begin(&o);
    write_product(p, "late");
    return p;
}

START_TEST(test_fence_takes_files_of_runs_up_to_an_epoch)
{
    static const char job[] = "20260101-120000-abcd";
    struct pb_publish *first = begin_run("a", job, 1), *third = begin_run("b", job, 3),
                      *other = begin_run("a", "20260101-120000-efgh", 1);
    ck_assert_int_eq(pb_publish_fence(root, job, 0), 0);
    ck_assert_int_eq(pb_publish_fence(root, job, 2), 0);
    ck_assert(!commits_late(first));
    ck_assert(commits_late(third));
    ck_assert(commits_late(other));
    ck_assert_int_eq(hidden(), 0);
    ck_assert_int_eq(pb_publish_fence(root, job, 3), 0); /* published products are not touched */
    ck_assert_str_eq(get("b/p/a.txt"), "late");
}
END_TEST

START_TEST(test_fence_reaches_runs_of_other_machines)
{
    static const char name[] = ".a.20260101-120000-abcd.1.0123456789ab.7-7-0.tmp";
    char path[PATH_MAX + 300];
    ck_assert_int_eq(mkdir(at(name), 0755), 0);
    snprintf(path, sizeof path, "%s/scene", at(name));
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/scene/fenced-area", at(name)); /* a pipeline's name */
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(pb_publish_fence(root, "20260101-120000-efgh", 9), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(pb_publish_fence(root, "20260101-120000-abcd", 1), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/fenced-0/.fenced-0", at(name));
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fence");
    TCase *tc = tcase_create("fence");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, later_run_of_a_job_fences_the_earlier_one);
    tcase_add_test(tc, late_run_never_replaces_its_successor);
    tcase_add_test(tc, test_run_begun_after_its_successor_is_refused);
    tcase_add_test(tc, test_later_run_is_found_for_a_changed_input);
    tcase_add_test(tc, test_run_stops_if_a_later_one_has_a_directory);
    tcase_add_test(tc, test_fence_takes_files_of_runs_up_to_an_epoch);
    tcase_add_test(tc, test_fence_reaches_runs_of_other_machines);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
