/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The tests give the folders fixed numbers of device and inode: a folder that was removed and made
 * again has the same ones, as happens by chance. */
#include "service/inbox/folder_watches.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64], sub[96];
static uv_loop_t loop;
static struct pb_changes changes;
static struct pb_folder_watches *watches;
static unsigned n_events;

static void on_event(void *user)
{
    (void)user;
    n_events++;
}

static void make(void)
{
    (void)snprintf(root, sizeof root, "%s", "/tmp/pb-watches-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(sub, sizeof sub, "%s/sub", root);
    ck_assert_int_eq(mkdir(sub, 0755), 0);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    n_events = 0;
    watches = pb_folder_watches_create(&loop, root, &changes, on_event, NULL);
    ck_assert_ptr_nonnull(watches);
}

static void unmake(void)
{
    char command[128];
    pb_folder_watches_stop(watches);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    pb_changes_fini(&changes);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* Returns true if there are new watches. */
static bool follow(void)
{
    struct pb_scan_folder folder[] = {{(char[]){""}, 1, 1}, {(char[]){"sub"}, 1, 2}};
    return pb_folder_watches_follow(watches, &(struct pb_scan_folders){folder, 2, 2});
}

/* Reads all events. Forgets earlier changes. */
static void read_all(void)
{
    pb_changes_fini(&changes);
    for (int i = 0; i < 16; i++)
        pb_folder_watches_read(watches);
    pb_changes_sort(&changes);
}

static bool reports_new_file(const char *name)
{
    char path[128];
    read_all();
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    (void)close(open(path, O_CREAT | O_WRONLY, 0644));
    read_all();
    return !changes.all && pb_changes_cover(&changes, name);
}

static void remake(const char *folder)
{
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
}

START_TEST(test_kept_folders_keep_their_watches)
{
    ck_assert(follow());
    ck_assert(pb_folder_watches_see_all(watches));
    ck_assert(!follow());
    ck_assert(reports_new_file("a.tif"));
    ck_assert(reports_new_file("sub/a.tif"));
    ck_assert(!follow());
}
END_TEST

START_TEST(test_folder_made_again_has_a_new_watch)
{
    ck_assert(follow());
    remake(sub);
    read_all();
    ck_assert(pb_changes_cover(&changes, "sub"));
    ck_assert(follow());
    ck_assert(reports_new_file("a.tif"));
    ck_assert(reports_new_file("sub/a.tif"));
}
END_TEST

START_TEST(test_inbox_made_again_has_a_new_watch)
{
    ck_assert(follow());
    ck_assert_int_eq(rmdir(sub), 0);
    remake(root);
    ck_assert_int_eq(mkdir(sub, 0755), 0);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_gt(n_events, 0);
    ck_assert(changes.all);
    ck_assert(follow());
    ck_assert(reports_new_file("a.tif"));
    ck_assert(reports_new_file("sub/a.tif"));
}
END_TEST

/* Causes more events than the kernel's queue can hold. */
static void overflow(void)
{
    char path[2][128];
    FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    int n = 0;
    ck_assert_ptr_nonnull(limit);
    ck_assert_int_eq(fscanf(limit, "%d", &n), 1);
    (void)fclose(limit);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/x%d.tif", root, i);
        (void)close(open(path[i], O_CREAT | O_WRONLY, 0644));
    }
    for (int i = 0; i <= n; i++) /* equal events in a row are one */
        ck_assert_int_eq(chmod(path[i % 2], 0644), 0);
}

/* Reads the events up to that of the overflow, however long the queue is. Forgets earlier changes.
 */
static void read_overflow(void)
{
    pb_changes_fini(&changes);
    do
        pb_folder_watches_read(watches);
    while (!changes.all);
}

START_TEST(test_lost_removal_of_a_folder_is_found)
{
    ck_assert(follow());
    overflow();
    remake(sub);
    read_overflow();
    ck_assert(follow());
    ck_assert(reports_new_file("a.tif"));
    ck_assert(reports_new_file("sub/a.tif"));
}
END_TEST

START_TEST(test_overflow_alone_makes_no_new_watches)
{
    ck_assert(follow());
    overflow();
    read_overflow();
    ck_assert(!follow());
    ck_assert(reports_new_file("a.tif"));
    ck_assert(reports_new_file("sub/a.tif"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("folder_watches");
    TCase *tcase = tcase_create("folder_watches");
    tcase_add_checked_fixture(tcase, make, unmake);
    tcase_add_test(tcase, test_kept_folders_keep_their_watches);
    tcase_add_test(tcase, test_folder_made_again_has_a_new_watch);
    tcase_add_test(tcase, test_inbox_made_again_has_a_new_watch);
    tcase_add_test(tcase, test_lost_removal_of_a_folder_is_found);
    tcase_add_test(tcase, test_overflow_alone_makes_no_new_watches);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
