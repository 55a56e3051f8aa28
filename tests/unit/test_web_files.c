/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "service/web/files.h"

#include "run_suite.h"
#include "service/confine/confine.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

static char root[64];

/* A path below the folder of the test; of the last four calls. */
static const char *at(const char *name)
{
    static _Thread_local char paths[4][160];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static const char *const folders[] = {"products", "products/scene", "tokens", "other", "run"};
static const char *const files[] = {"products/file",
                                    "products/scene/a.png",
                                    "products/scene/b.png",
                                    "products/scene/.pushbroom.json",
                                    "tokens/file",
                                    "other/file",
                                    "run/file"};

static void make_files(void)
{
    static const char manifest[] =
        "{\"manifest\":1,\"pushbroom\":\"0\",\"scene\":\"s\",\"input\":{\"name\":\"s.tif\","
        "\"bytes\":1,\"mtime_ns\":1},\"pipeline\":\"p\",\"job\":\"j\",\"files\":[{\"type\":"
        "\"quicklook\",\"file\":\"a.png\",\"bytes\":3,\"media_type\":\"image/png\"}]}";
    (void)snprintf(root, sizeof root, "/tmp/pb-web-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ck_assert_int_eq(mkdir(at(folders[i]), 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *file = fopen(at(files[i]), "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(manifest, file), 0);
        ck_assert_int_eq(fclose(file), 0);
    }
}

static void remove_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)unlink(at(files[i]));
    for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;)
        (void)rmdir(at(folders[i]));
    ck_assert_int_eq(rmdir(root), 0);
}

/* The errno of opening a file, 0 if that is possible. */
static int try_open(const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    const int error = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    return error;
}

static int try_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error =
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    (void)close(fd);
    return error;
}

/* Returns 0, or the line of what was possible. */
static int check_refused(void)
{
    NEED(try_open(at("other/file"), O_RDONLY) == EACCES);
    NEED(try_open("/etc/passwd", O_RDONLY) == EACCES);
    NEED(try_open(at("products/file"), O_WRONLY) == EACCES);
    NEED(try_open(at("products/new"), O_WRONLY | O_CREAT) == EACCES);
    NEED(unlink(at("products/file")) != 0 && errno == EACCES);
    NEED(try_open(at("run/file"), O_RDONLY) == EACCES);
    NEED(pb_landlock_abi() < 4 || try_connect() == EACCES);
    return 0;
}

static void *run_thread(void *line)
{
    *(int *)line = check_refused();
    return NULL;
}

static int check_all(void)
{
    struct pb_err err = {0};
    struct pb_web_file file;
    pthread_t thread;
    int line = 0;
    NEED(pb_web_files_confine(at("products"), at("tokens/file"), at("run/file"), &err) == 1);
    if ((line = check_refused()) != 0)
        return line;
    NEED(pthread_create(&thread, NULL, run_thread, &line) == 0);
    NEED(pthread_join(thread, NULL) == 0 && line == 0);
    NEED(try_open(at("tokens/file"), O_RDONLY) == 0);
    NEED(pb_web_file_open(at("products"), "scene/a.png", &file) == 0 && close(file.fd) == 0);
    NEED(pb_web_file_open(at("products"), "scene/b.png", &file) == -ENOENT);
    NEED(unlink(at("run/file")) == 0);
    return 0;
}

static int check_absent(void)
{
    struct pb_err err = {0};
    NEED(pb_web_files_confine(at("absent"), "a-credential", NULL, &err) == 1);
    NEED(try_open(at("tokens/file"), O_RDONLY) == EACCES);
    return 0;
}

/* Runs the body in a process of its own, which loses its rights for good. */
static void check(int (*body)(void))
{
    int status = 0;
    if (pb_landlock_abi() <= 0) {
        (void)printf("skipped: the kernel has no Landlock\n");
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        const int line = body();
        if (line != 0)
            (void)!dprintf(STDERR_FILENO, "line %d: %s\n", line, strerror(errno));
        _exit(line != 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(test_only_products_are_readable)
{
    check(check_all);
}
END_TEST

START_TEST(test_absent_paths_are_skipped)
{
    check(check_absent);
}
END_TEST

START_TEST(test_root_is_no_directory_of_its_own)
{
    static const char *const in_root[] = {"/x", "//x", "/./x", "/tmp/../x"};
    static const char *const others[] = {"/tmp/x", "x", "tmp/x", "/nowhere/x", NULL};
    for (size_t i = 0; i < sizeof in_root / sizeof in_root[0]; i++)
        ck_assert_msg(pb_web_files_in_root(in_root[i]), "%s", in_root[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!pb_web_files_in_root(others[i]), "%s", others[i] ? others[i] : "NULL");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_files");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, make_files, remove_files);
    tcase_add_test(all, test_only_products_are_readable);
    tcase_add_test(all, test_absent_paths_are_skipped);
    tcase_add_test(all, test_root_is_no_directory_of_its_own);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
