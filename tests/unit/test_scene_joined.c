/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Scenes whose files are in many folders. */
#include "pipeline/scene/scene_joined.h"

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

int main(void)
{
    Suite *suite = suite_create("scene_joined");
    TCase *tests = tcase_create("scene_joined");

    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, there_may_be_more_folders_than_descriptors);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
