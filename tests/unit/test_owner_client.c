/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The connection of a job to the process that owns a device, which ends meanwhile. */
#include "service/device/owner_client.h"

#include "run_suite.h"

#include <check.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[] = "/tmp/pb-owner-XXXXXX", path[60];

static int listen_at(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    return fd;
}

/* An owner that was killed closes a connection that it has not answered; the next owner answers. */
static void *own(void *arg)
{
    const int listener = *(int *)arg;
    char hello[2000];
    for (int n = 0; n < 2; n++) {
        const int fd = accept(listener, NULL, NULL);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_gt(recv(fd, hello, sizeof hello, 0), 0);
        if (n > 0)
            ck_assert_int_eq(send(fd, "{}\n", 3, MSG_NOSIGNAL), 3);
        (void)close(fd);
    }
    return NULL;
}

START_TEST(test_connection_that_was_dropped_is_made_again)
{
    const struct pb_owner_hello hello = {"job", "text", "name", "pipeline"};
    struct pb_err err = {0};
    pthread_t thread;
    char answer[10];
    int listener = listen_at();
    ck_assert_int_eq(pthread_create(&thread, NULL, own, &listener), 0);
    const int fd = pb_owner_connect(path, &hello, &err);
    ck_assert_msg(fd >= 0, "%s", err.msg);
    ck_assert_int_eq(recv(fd, answer, sizeof answer, 0), 3);
    (void)close(fd);
    (void)shutdown(listener, SHUT_RDWR); /* ends a wait for a connection that is not made */
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(listener);
}
END_TEST

START_TEST(test_absent_owner_is_reported)
{
    const struct pb_owner_hello hello = {"job", "text", "name", "pipeline"};
    struct pb_err err = {0};
    ck_assert_int_lt(pb_owner_connect(path, &hello, &err), 0);
    ck_assert_int_eq(err.code, PB_E_DEVICE_LOST);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
}
END_TEST

static void begin(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
}

static void end(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

int main(void)
{
    Suite *suite = suite_create("owner_client");
    TCase *tests = tcase_create("connection");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, test_connection_that_was_dropped_is_made_again);
    tcase_add_test(tests, test_absent_owner_is_reported);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
