/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/file_list.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct pb_file_list list;

static void shell(const char *command)
{
    char line[512];
    (void)snprintf(line, sizeof line, "cd %s && %s", root, command);
    ck_assert_int_eq(system(line), 0);
}

static const char *at(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    shell("mkdir -p in/scene/a/b out && echo one > in/scene/a/x && echo two > in/scene/a/b/y &&"
          " echo three > in/scene/z && ln -s z in/scene/link && echo file > in/file");
    list = (struct pb_file_list){NULL, 0};
}

static void end(void)
{
    char command[128];
    pb_file_list_fini(&list);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void read_list(const char *name)
{
    pb_file_list_fini(&list);
    ck_assert_int_eq(pb_file_list_read(at(name), &list), 0);
}

/* The result of a removal of in/<name>, and the other file. */
static int removed(const char *name, char other[4096])
{
    int directory = open(at("in"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    other[0] = '\0';
    int rc = pb_file_list_remove(&list, 0, directory, name, other);
    (void)close(directory);
    return rc;
}

START_TEST(list_has_all_entries_in_order)
{
    static const struct {
        const char *path;
        char kind;
    } want[] = {{"", 'd'},    {"a", 'd'},    {"a/b", 'd'}, {"a/b/y", 'f'},
                {"a/x", 'f'}, {"link", 'o'}, {"z", 'f'}};
    read_list("in/scene");
    ck_assert_uint_eq(list.n, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < list.n; i++) {
        ck_assert_str_eq(list.file[i].path, want[i].path);
        ck_assert_int_eq(list.file[i].kind, want[i].kind);
    }
    ck_assert_int_eq(list.file[6].bytes, 6);
    pb_file_list_fini(&list);
    ck_assert_int_eq(pb_file_list_read(at("in/absent"), &list), -ENOENT);
    ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(packed_list_is_the_same)
{
    struct pb_file_list copy;
    size_t bytes = 0;
    shell("echo odd > \"$(printf 'in/scene/a b\\n\\377 c')\"");
    read_list("in/scene");
    char *data = pb_file_list_pack(&list, &bytes);
    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(pb_file_list_unpack(data, bytes, &copy), 0);
    ck_assert_uint_eq(copy.n, list.n);
    for (size_t i = 0; i < list.n; i++) {
        ck_assert_str_eq(copy.file[i].path, list.file[i].path);
        ck_assert_uint_eq(copy.file[i].inode, list.file[i].inode);
        ck_assert_int_eq(copy.file[i].ctime_ns, list.file[i].ctime_ns);
    }
    pb_file_list_fini(&copy);
    ck_assert_int_eq(pb_file_list_unpack(data, bytes - 1, &copy), -EINVAL);
    ck_assert_int_eq(pb_file_list_unpack("f 1 2 3 x\0", 10, &copy), -EINVAL);
    ck_assert_int_eq(pb_file_list_unpack(NULL, 0, &copy), 0);
    ck_assert_uint_eq(copy.n, 0);
    free(data);
}
END_TEST

START_TEST(moved_input_is_found_under_any_name)
{
    char name[256];
    read_list("in/scene");
    shell("mv in/scene out/scene.7 && mkdir out/scene && echo three > out/scene/z");
    ck_assert(pb_file_list_find(&list, at("out"), name));
    ck_assert_str_eq(name, "scene.7");
    ck_assert(!pb_file_list_find(&list, at("in"), name));
    shell("rm -r out/scene.7/*"); /* the inode alone is no proof */
    ck_assert(!pb_file_list_find(&list, at("out"), name));
    read_list("in/file");
    shell("mv in/file out/.file");
    ck_assert(!pb_file_list_find(&list, at("out"), name));
    shell("mv out/.file out/other");
    ck_assert(pb_file_list_find(&list, at("out"), name));
    ck_assert_str_eq(name, "other");
    shell("echo more >> out/other");
    ck_assert(!pb_file_list_find(&list, at("out"), name));
}
END_TEST

START_TEST(move_of_a_file_is_no_change)
{
    char other[4096];
    read_list("in/file");
    shell("mv in/file in/moved");
    ck_assert_int_eq(removed("moved", other), 1);
    pb_file_list_moved(&list, at("in/moved"));
    ck_assert_int_eq(removed("moved", other), 0);
    ck_assert_int_ne(access(at("in/moved"), F_OK), 0);
}
END_TEST

START_TEST(unchanged_folder_is_removed)
{
    char other[4096];
    read_list("in/scene");
    shell("mv in/scene in/elsewhere && rm in/elsewhere/a/x");
    ck_assert_int_eq(removed("elsewhere", other), 0);
    ck_assert_int_ne(access(at("in/elsewhere"), F_OK), 0);
    ck_assert_int_eq(removed("elsewhere", other), 0); /* it is gone */
}
END_TEST

static const struct {
    const char *change, *other;
} changes[] = {
    {"echo note > in/scene/a/b/note", "a/b/note"},
    {"mkdir in/scene/a/mine", "a/mine"},
    {"echo ONE > in/scene/a/x", "a/x"},
    {"touch -r in/scene/a/x ref && echo ONE > in/scene/a/x && touch -r ref in/scene/a/x", "a/x"},
    {"cp in/scene/a/x t && mv t in/scene/a/x", "a/x"},
    {"ln -sf a in/scene/link", "link"},
    {"rm in/scene/z && mkdir in/scene/z", "z"},
    {"rm -r in/scene/a && ln -s ../../out in/scene/a", "a"},
    {"ln in/scene/a/x out/x", "a/x"},
};

START_TEST(changed_folder_stays_whole)
{
    char other[4096];
    read_list("in/scene");
    shell(changes[_i].change);
    shell("find in out | sort > before");
    ck_assert_int_eq(removed("scene", other), 1);
    ck_assert_str_eq(other, changes[_i].other);
    shell("find in out | sort | cmp - before");
}
END_TEST

START_TEST(changed_file_is_itself_the_other)
{
    char other[4096];
    read_list("in/file");
    shell("echo FILE > in/file");
    ck_assert_int_eq(removed("file", other), 1);
    ck_assert_str_eq(other, "");
    shell("rm in/file && ln -s scene in/file");
    ck_assert_int_eq(removed("file", other), 1);
}
END_TEST

/* Inputs of an earlier version have no list. */
START_TEST(without_a_list_times_decide)
{
    char other[4096];
    struct stat st;
    int directory = open(at("in"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(stat(at("in/scene"), &st), 0);
    const int64_t later_ms = ((int64_t)st.st_ctim.tv_sec + 100) * 1000;
    ck_assert_int_eq(pb_file_list_remove(&list, later_ms - 3600000, directory, "scene", other), 1);
    ck_assert_int_eq(pb_file_list_remove(&list, later_ms, directory, "scene", other), 0);
    shell("ln -s scene in/link");
    ck_assert_int_eq(pb_file_list_remove(&list, later_ms, directory, "link", other), 1);
    (void)close(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_list");
    TCase *tests = tcase_create("file_list");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, list_has_all_entries_in_order);
    tcase_add_test(tests, packed_list_is_the_same);
    tcase_add_test(tests, moved_input_is_found_under_any_name);
    tcase_add_test(tests, move_of_a_file_is_no_change);
    tcase_add_test(tests, unchanged_folder_is_removed);
    tcase_add_loop_test(tests, changed_folder_stays_whole, 0,
                        (int)(sizeof changes / sizeof changes[0]));
    tcase_add_test(tests, changed_file_is_itself_the_other);
    tcase_add_test(tests, without_a_list_times_decide);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
