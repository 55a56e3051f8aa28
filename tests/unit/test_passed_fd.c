/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/passed_fd.h"

#include "run_suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_descriptors(void)
{
    int n = 0;
    DIR *directory = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory) != NULL)
        n++;
    (void)closedir(directory);
    return n;
}

START_TEST(bytes_and_their_descriptor_arrive_together)
{
    int pair[2], passed;
    char text[8] = "";
    struct stat sent, received;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pb_passed_fd_send(pair[0], "with", 5, file, 0), 5);
    ck_assert_int_eq(pb_passed_fd_receive(pair[1], text, sizeof text, &passed, 0), 5);
    ck_assert_str_eq(text, "with");
    ck_assert_int_ge(passed, 0);
    ck_assert_int_eq(fcntl(passed, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fstat(file, &sent), 0);
    ck_assert_int_eq(fstat(passed, &received), 0);
    ck_assert_int_eq(sent.st_ino, received.st_ino);
    ck_assert_int_eq(pb_passed_fd_send(pair[0], "none", 5, -1, 0), 5);
    ck_assert_int_eq(pb_passed_fd_receive(pair[1], text, sizeof text, &passed, 0), 5);
    ck_assert_str_eq(text, "none");
    ck_assert_int_eq(passed, -1);
    (void)close(pair[0]);
    ck_assert_int_eq(pb_passed_fd_receive(pair[1], text, sizeof text, &passed, 0), 0);
    ck_assert_int_eq(passed, -1);
}
END_TEST

START_TEST(one_of_several_descriptors_is_taken_others_closed)
{
    int pair[2], passed, files[2];
    char byte;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (int i = 0; i < 2; i++)
        files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    union {
        char bytes[CMSG_SPACE(sizeof files)];
        struct cmsghdr header;
    } control = {.bytes = {0}};
    struct iovec part = {(char[]){'x'}, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof files)};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(&control.header), files, sizeof files);
    ck_assert_int_eq(sendmsg(pair[0], &message, 0), 1);
    int before = open_descriptors();
    ck_assert_int_eq(pb_passed_fd_receive(pair[1], &byte, 1, &passed, 0), 1);
    ck_assert_int_ge(passed, 0);
    ck_assert_int_eq(open_descriptors(), before + 1);
    (void)close(passed);
}
END_TEST

START_TEST(several_descriptors_arrive_in_their_order)
{
    int pair[2], files[PB_PASSED_MAX], passed[PB_PASSED_MAX];
    char text[8] = "";
    size_t n = 7;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (int i = 0; i < PB_PASSED_MAX; i++)
        ck_assert_int_eq(lseek(files[i] = open("/proc/self/maps", O_RDONLY), i, SEEK_SET), i);
    int before = open_descriptors();
    for (size_t sent = 0; sent <= PB_PASSED_MAX; sent++) {
        ck_assert_int_eq(pb_passed_fds_send(pair[0], "some", 5, files, sent, 0), 5);
        ck_assert_int_eq(pb_passed_fds_receive(pair[1], text, sizeof text, passed, &n, 0), 5);
        ck_assert_uint_eq(n, sent);
        ck_assert_int_eq(open_descriptors(), before + (int)sent);
        for (size_t i = 0; i < sent; i++) {
            ck_assert_int_eq(lseek(passed[i], 0, SEEK_CUR), (int)i); /* one open file */
            ck_assert_int_eq(close(passed[i]), 0);
        }
    }
    ck_assert_int_eq(pb_passed_fds_send(pair[0], "many", 5, files, PB_PASSED_MAX + 1, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(errors_are_those_of_the_call)
{
    int pair[2], passed = 7;
    char byte;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    ck_assert_int_eq(pb_passed_fd_receive(pair[1], &byte, 1, &passed, MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(passed, -1);
    (void)close(pair[1]);
    ck_assert_int_eq(pb_passed_fd_send(pair[0], "x", 1, -1, 0), -1); /* and no SIGPIPE */
    ck_assert_int_eq(errno, EPIPE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("passed_fd");
    TCase *tcase = tcase_create("passed_fd");
    tcase_add_test(tcase, bytes_and_their_descriptor_arrive_together);
    tcase_add_test(tcase, one_of_several_descriptors_is_taken_others_closed);
    tcase_add_test(tcase, several_descriptors_arrive_in_their_order);
    tcase_add_test(tcase, errors_are_those_of_the_call);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
