/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Scenes whose files are in many folders. */
#include "pipeline/scene/scene_walk.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS = 300, DESCRIPTORS = 40 };

static char root[64];

static void make(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-joined-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void end(void)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* A folder with the files x<i>.tif and below/y<i>.tif, each holding their number. */
static char *make_part(int i)
{
    static const char *const names[] = {"x", "below/y"};
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%d", root, i);
    char *const folder = strdup(path);
    (void)snprintf(path, sizeof path, "%s/%d/below", root, i);
    ck_assert(mkdir(folder, 0755) == 0 && mkdir(path, 0755) == 0);
    for (int k = 0; k < 2; k++) {
        (void)snprintf(path, sizeof path, "%s/%d/%s%03d.tif", root, i, names[k], i);
        FILE *const out = fopen(path, "w");
        ck_assert_ptr_nonnull(out);
        (void)fprintf(out, "%d", i);
        ck_assert_int_eq(fclose(out), 0);
    }
    return folder;
}

static int number_in(const struct pb_scene_entry *entry)
{
    char text[16] = "";
    const int fd = pb_scene_walk_open_file(entry->joined, entry->path, -1);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    (void)close(fd);
    return atoi(text);
}

START_TEST(there_may_be_more_folders_than_descriptors)
{
    const struct rlimit few = {DESCRIPTORS, DESCRIPTORS};
    char *folder[PARTS], own[128];
    struct pb_scene_walk walk;
    struct pb_err err = {0};

    (void)snprintf(own, sizeof own, "%s/own", root);
    ck_assert_int_eq(mkdir(own, 0755), 0);
    for (int i = 0; i < PARTS; i++)
        folder[i] = make_part(i);
    struct pb_scene_manifest manifest = {.n_roots = 0};
    ck_assert_int_eq(pb_scene_manifest_root(&manifest, own), 0);
    for (int i = 0; i < PARTS; i++)
        ck_assert_int_eq(pb_scene_manifest_root(&manifest, folder[i]), i + 1);
    const struct pb_scene_joined joined = {.manifest = &manifest, .by = "a job"};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(pb_scene_walk_open(own, &err, &walk), 0);
    ck_assert_msg(pb_scene_joined_add(&joined, own, &walk, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(walk.n, 2 * PARTS);
    for (size_t i = 0; i < walk.n; i++)
        ck_assert_int_eq(number_in(&walk.entry[i]), (int)(i % PARTS));
    pb_scene_walk_close(&walk);
    pb_scene_manifest_fini(&manifest);
    for (int i = 0; i < PARTS; i++)
        free(folder[i]);
}
END_TEST

static const char *make_file(const char *folder, const char *name, const char *text)
{
    static char path[192];

    (void)snprintf(path, sizeof path, "%s/%s", root, folder);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *const out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return path;
}

/* Adds the file with its state, or (known false) its name alone. */
static void deliver(struct pb_scene_manifest *manifest, int at, const char *path, bool known)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    const struct pb_manifest_entry entry = {
        .path = strrchr(path, '/') + 1,
        .root = (uint16_t)at,
        .bytes = known ? st.st_size : -1,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
    ck_assert_int_ge(pb_scene_manifest_add(manifest, &entry), 0);
}

struct folders {
    char own[96];
    struct pb_scene_manifest manifest;
};

/* The scene's folder has a; "new" has a, b and, not delivered, extra; the files of "old", b, c and
 * extra, are known by name alone. */
static void make_folders(struct folders *out)
{
    static const char *const names[] = {"own", "new", "old"};
    char path[96];

    *out = (struct folders){.manifest = {.n_roots = 0}};
    (void)make_file("own", "a", "own");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, names[i]);
        ck_assert_int_eq(pb_scene_manifest_root(&out->manifest, path), i);
    }
    (void)snprintf(out->own, sizeof out->own, "%s/own", root);
    deliver(&out->manifest, 1, make_file("new", "a", "new"), true);
    deliver(&out->manifest, 1, make_file("new", "b", "new"), true);
    (void)make_file("new", "extra", "new");
    deliver(&out->manifest, 2, make_file("old", "b", "old"), false);
    deliver(&out->manifest, 2, make_file("old", "c", "old"), false);
    (void)make_file("old", "extra", "old");
}

START_TEST(each_path_is_taken_from_one_folder)
{
    static const char *const taken[][2] = {{"a", ""}, {"b", "new"}, {"c", "old"}, {"extra", "old"}};
    struct folders folders;
    struct pb_scene_walk walk;
    struct pb_err err = {0};

    make_folders(&folders);
    const struct pb_scene_joined joined = {.manifest = &folders.manifest, .by = "a job"};
    ck_assert_int_eq(pb_scene_walk_open(folders.own, &err, &walk), 0);
    ck_assert_msg(pb_scene_joined_add(&joined, folders.own, &walk, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(walk.n, 4);
    for (size_t i = 0; i < walk.n; i++) {
        const struct pb_scene_walk *const from = walk.entry[i].joined;
        ck_assert_str_eq(walk.entry[i].path, taken[i][0]);
        ck_assert_str_eq(from != NULL ? strrchr(from->folder, '/') + 1 : "", taken[i][1]);
    }
    pb_scene_walk_close(&walk);
    pb_scene_manifest_fini(&folders.manifest);
}
END_TEST

/* a of "new" is replaced by that of the scene's folder, therefore it need not be unchanged. */
START_TEST(fails_if_a_delivered_file_changed_or_is_gone)
{
    struct folders folders;
    struct pb_scene_walk walk;
    struct pb_err err = {0};

    make_folders(&folders);
    const struct pb_scene_joined joined = {.manifest = &folders.manifest, .by = "a job"};
    (void)make_file("new", "a", "changed");
    (void)make_file("new", "b", "changed");
    ck_assert_int_eq(pb_scene_walk_open(folders.own, &err, &walk), 0);
    ck_assert_int_lt(pb_scene_joined_add(&joined, folders.own, &walk, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_GONE);
    ck_assert_ptr_nonnull(strstr(err.msg, "b of that was changed"));
    pb_scene_walk_close(&walk);

    err = (struct pb_err){0};
    deliver(&folders.manifest, 2, make_file("old", "d", "old"), false);
    ck_assert_int_eq(unlink(make_file("old", "d", "old")), 0);
    ck_assert_int_eq(unlink(make_file("new", "b", "")), 0); /* b of "old" replaces it */
    ck_assert_int_eq(pb_scene_walk_open(folders.own, &err, &walk), 0);
    ck_assert_int_lt(pb_scene_joined_add(&joined, folders.own, &walk, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_GONE);
    ck_assert_ptr_nonnull(strstr(err.msg, "1 of the 5 files of that is in the archive no more: d"));
    pb_scene_walk_close(&walk);
    pb_scene_manifest_fini(&folders.manifest);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scene_joined");
    TCase *tests = tcase_create("scene_joined");

    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, there_may_be_more_folders_than_descriptors);
    tcase_add_test(tests, each_path_is_taken_from_one_folder);
    tcase_add_test(tests, fails_if_a_delivered_file_changed_or_is_gone);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
