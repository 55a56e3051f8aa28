/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/dirs.h"

#include "run_suite.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PATH_MAX];
static struct pb_dirs dirs;
static char *const paths[] = {dirs.inbox[0],   dirs.work,     dirs.archive,
                              dirs.quarantine, dirs.products, dirs.state};
static const char *const names[] = {"inbox",      "work",     "work/done",
                                    "quarantine", "products", "state"};
enum { N = 6, ARCHIVE = 2, PRODUCTS = 4 };

static void place(char *out, const char *name)
{
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%.2000s/%.200s", root, name);
    (void)mkdir(out, 0755);
}

static void setup(void)
{
    char made[] = "/tmp/pb-apart-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, root));
    for (int i = 0; i < N; i++)
        place(paths[i], names[i]);
    dirs.n_inboxes = 1;
}

static void teardown(void)
{
    char command[PATH_MAX + 64];
    (void)snprintf(command, sizeof command, "rm -rf --one-file-system %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void refused(const char *word)
{
    struct pb_err err = {0};
    ck_assert_int_ne(pb_dirs_check_apart(&dirs, NULL, &err), 0);
    ck_assert_int_eq(err.code, PB_E_CONFIG_VALUE);
    ck_assert_msg(strstr(err.msg, word) != NULL, "%s", err.msg);
}

static void accepted(const char *socket)
{
    struct pb_err err = {0};
    ck_assert_msg(pb_dirs_check_apart(&dirs, socket, &err) == 0, "%s", err.msg);
}

START_TEST(siblings_and_the_default_archive_are_fine)
{
    char socket[PB_FILES_PATH_BYTES];
    place(socket, "s.sock"); /* next to them: its directory contains them all */
    accepted(socket);
    (void)strcat(dirs.products, "/not/there/yet");
    accepted(NULL);
}
END_TEST

START_TEST(no_directory_lies_in_another)
{
    for (int outer = 0; outer < N; outer++) {
        for (int inner = 0; inner < N; inner++) {
            char inside[64], was[PB_FILES_PATH_BYTES];
            if (inner == outer || (outer == 1 && inner == ARCHIVE) ||
                (inner == 1 && outer == ARCHIVE))
                continue;
            (void)strcpy(was, paths[inner]);
            (void)snprintf(inside, sizeof inside, "%s/deep", names[outer]);
            place(paths[inner], inside);
            refused("is inside");
            (void)strcpy(paths[inner], paths[outer]);
            refused(outer == ARCHIVE ? "work/done" : "the same directory");
            (void)strcpy(paths[inner], was);
            accepted(NULL);
        }
    }
    place(dirs.archive, "work/other"); /* only work/done is the default */
    refused("archive");
}
END_TEST

START_TEST(the_socket_lies_in_none)
{
    for (int i = 0; i < N; i++) {
        char socket[PB_FILES_PATH_BYTES + 16];
        struct pb_err err = {0};
        (void)snprintf(socket, sizeof socket, "%s/s.sock", paths[i]);
        ck_assert_int_ne(pb_dirs_check_apart(&dirs, socket, &err), 0);
        ck_assert_ptr_nonnull(strstr(err.msg, "the socket"));
    }
}
END_TEST

/* A mount of `what` at a new directory of the name; false: not allowed here. */
static bool bind_mount(const char *what, const char *name, char *out)
{
    place(out, name);
    return mount(what, out, NULL, MS_BIND, NULL) == 0;
}

START_TEST(bind_mounts_are_seen_through)
{
    char inner[PB_FILES_PATH_BYTES], was[PB_FILES_PATH_BYTES], mounted[PB_FILES_PATH_BYTES];
    place(inner, "products/sub");
    (void)strcpy(was, dirs.archive);
    if (!bind_mount(inner, "bound", mounted)) {
        (void)printf("skipped: bind_mounts_are_seen_through: cannot mount: %s\n", strerror(errno));
        return;
    }
    (void)strcpy(dirs.archive, mounted);
    refused("archive");
    (void)strcat(dirs.archive, "/deeper");
    refused("archive");
    (void)umount(mounted);
    (void)strcpy(dirs.archive, was);
    ck_assert(bind_mount(dirs.products, "bound", mounted)); /* products under another name */
    (void)strcpy(dirs.state, mounted);
    refused("the same directory");
    (void)umount(mounted);
    place(dirs.state, "state");
    accepted(NULL);
    ck_assert(mount(dirs.products, dirs.archive, NULL, MS_BIND, NULL) == 0); /* at work/done */
    refused("archive");
    (void)umount(dirs.archive);
    accepted(NULL);
    ck_assert(mount("none", dirs.products, "tmpfs", 0, NULL) ==
              0); /* another file system is fine */
    accepted(NULL);
    (void)umount(dirs.products);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dirs_apart");
    TCase *tc = tcase_create("dirs_apart");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, siblings_and_the_default_archive_are_fine);
    tcase_add_test(tc, no_directory_lies_in_another);
    tcase_add_test(tc, the_socket_lies_in_none);
    tcase_add_test(tc, bind_mounts_are_seen_through);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
