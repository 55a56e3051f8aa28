/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each test confines a process of its own and calls what libraries call there, and what they do
 * not. tests/integration/test_taken_over.py attacks from a whole worker. */
#include "service/confine/confine.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In a confined process: ends the test with the line of the mistake. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)
#define FAILS(call, error) NEED((errno = 0, (call)) == -1 && errno == (error))

#ifdef PB_SANITIZED
#define SANITIZED 1 /* their runtimes make more calls, see confine_seccomp.c */
#else
#define SANITIZED 0
#endif

static char root[] = "/tmp/pb-confine-XXXXXX";
static char own[64], inside[80], outside[80]; /* a directory, a file in it, a file next to it */

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "content", 7), 7);
    ck_assert_int_eq(close(fd), 0);
}

static void make_files(void)
{
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(own, sizeof own, "%s/own", root);
    (void)snprintf(inside, sizeof inside, "%s/inside", own);
    (void)snprintf(outside, sizeof outside, "%s/outside", root);
    ck_assert_int_eq(mkdir(own, 0700), 0);
    write_file(inside);
    write_file(outside);
}

static void remove_files(void)
{
    char made[80];
    (void)snprintf(made, sizeof made, "%s/made", own);
    (void)unlink(made);
    (void)unlink(inside);
    (void)unlink(outside);
    (void)rmdir(own);
    (void)rmdir(root);
    (void)memcpy(root + sizeof root - 7, "XXXXXX", 6);
}

/* The wait status of a confined process that runs body: 0, or the line of a mistake as its exit
 * code, modulo 256. */
static int status_of(int (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        const struct pb_confine confine = {.directory = own};
        struct pb_err err = {0};
        char text[PB_CONFINE_TEXT_BYTES];
        if (pb_confine_apply(&confine, &err, text) != 0)
            _exit(1);
        int line = body();
        if (line != 0)
            (void)!dprintf(STDERR_FILENO, "line %d: %s\n", line, strerror(errno));
        _exit(line != 0 ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int ask_facts(void)
{
    struct stat by_path, by_link, by_descriptor, by_empty;
    struct statfs by_file_system;
    int fd = open(inside, O_RDONLY | O_CLOEXEC);
    NEED(fd >= 0 && fstat(fd, &by_descriptor) == 0 && by_descriptor.st_size == 7);
    NEED(stat(inside, &by_path) == 0 && lstat(inside, &by_link) == 0);
    NEED(fstatat(fd, "", &by_empty, AT_EMPTY_PATH) == 0);
    NEED(by_path.st_ino == by_descriptor.st_ino && by_path.st_mode == by_descriptor.st_mode);
    NEED(by_link.st_ino == by_path.st_ino && by_empty.st_ino == by_path.st_ino);
    NEED(stat(own, &by_path) == 0 && S_ISDIR(by_path.st_mode));
    NEED(statfs(own, &by_file_system) == 0 && by_file_system.f_bsize > 0);
    NEED(access(inside, F_OK) == 0 && access(inside, R_OK) == 0);
    FAILS(fstat(999, &by_path), EBADF);
    FAILS(access("/usr/lib/no-such-file", F_OK), ENOENT);
    FAILS(stat("/usr/lib/no-such-file", &by_path), ENOENT);
    errno = 42;
    NEED(stat(inside, &by_path) == 0 && errno == 42);
    return 0;
}

START_TEST(what_may_be_read_has_facts)
{
    ck_assert_int_eq(status_of(ask_facts), 0);
}
END_TEST

static int ask_foreign_facts(void)
{
    struct stat st;
    struct statfs file_system;
    char text[600];
    FAILS(stat(outside, &st), ENOENT);
    FAILS(lstat(root, &st), ENOENT);
    FAILS(syscall(SYS_newfstatat, AT_FDCWD, outside, &st, AT_EMPTY_PATH), ENOENT);
    FAILS(statfs("/", &file_system), ENOENT);
    FAILS(access(outside, F_OK), ENOENT);
    FAILS(access(inside, W_OK), EACCES);
    FAILS(readlink("/proc/self/exe", text, sizeof text), EINVAL);
    FAILS(syscall(SYS_statx, AT_FDCWD, outside, 0, 0x7ff, text), ENOSYS);
    FAILS(chdir("/"), EPERM);
    FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
    return 0;
}

START_TEST(other_paths_do_not_exist)
{
    if (pb_landlock_abi() > 0 && !SANITIZED)
        ck_assert_int_eq(status_of(ask_foreign_facts), 0);
}
END_TEST

/* Installs what a container's filter does: landlock_create_ruleset fails with `error`. */
static int describe_under_filter(int error, const char *wanted)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {sizeof code / sizeof *code, code};
    const struct pb_confine confine = {.address_bytes = 0};
    char text[PB_CONFINE_TEXT_BYTES];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    pb_confine_describe(&confine, text);
    return strstr(text, wanted) != NULL ? 0 : 2;
}

START_TEST(a_filter_that_hides_landlock_is_named)
{
    static const struct {
        int error;
        const char *wanted;
    } cases[] = {
        {ENOSYS, "no Landlock (this kernel lacks it, or a container's filter hides it)"},
        {EPERM, "no Landlock (a filter of system calls, such as a container's, forbids it)"},
        {EOPNOTSUPP, "no Landlock (it is off in this kernel"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(describe_under_filter(cases[i].error, cases[i].wanted));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

static int open_files(void)
{
    char made[80];
    struct stat st;
    (void)snprintf(made, sizeof made, "%s/made", own);
    FAILS(open(inside, O_PATH), EPERM);
    FAILS(open(inside, O_RDONLY | O_TRUNC), EPERM);
    NEED(stat(inside, &st) == 0 && st.st_size == 7);
    int fd = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    NEED(fd >= 0 && write(fd, "text", 4) == 4 && ftruncate(fd, 2) == 0 && fsync(fd) == 0);
    NEED(open(made, O_WRONLY | O_TRUNC | O_CLOEXEC) >= 0);
    FAILS(truncate(made, 0), EACCES);
    FAILS(chmod(made, 0777), EPERM);
    FAILS(fchmod(fd, 0777), EPERM);
    FAILS(futimens(fd, NULL), EPERM);
    NEED(unlink(made) == 0);
    return 0;
}

START_TEST(files_are_opened_to_be_read_or_written)
{
    ck_assert_int_eq(status_of(open_files), 0);
}
END_TEST

static int use_descriptors(void)
{
    int fd = open(inside, O_RDONLY | O_CLOEXEC), owner = getpid();
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    NEED(copy > fd && fcntl(copy, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_GETFL) >= 0);
    FAILS(ioctl(fd, FIOSETOWN, &owner), ENOTTY);
    if (SANITIZED)
        return 0;
    FAILS(fcntl(fd, F_SETOWN, owner), EPERM);
    FAILS(fcntl(fd, F_SETSIG, SIGKILL), EPERM);
    FAILS(fcntl(fd, F_SETFL, O_ASYNC), EPERM);
    FAILS(fcntl(fd, F_SETLEASE, F_RDLCK), EPERM);
    FAILS(fcntl(fd, F_SETLK, &lock), EPERM);
    return 0;
}

START_TEST(descriptors_keep_owner_flags_and_locks)
{
    ck_assert_int_eq(status_of(use_descriptors), 0);
}
END_TEST

static int use_memory(void)
{
    const int private = MAP_PRIVATE | MAP_ANONYMOUS;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, private, -1, 0);
    NEED(page != MAP_FAILED && mprotect(page, 4096, PROT_READ) == 0);
    NEED(madvise(page, 8192, MADV_DONTNEED) == 0);
    FAILS(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM);
    NEED(mmap(NULL, 4096, PROT_READ | PROT_EXEC, private, -1, 0) == MAP_FAILED);
    int fd = open(inside, O_RDONLY | O_CLOEXEC);
    NEED(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    NEED(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    return 0;
}

START_TEST(memory_does_not_become_code)
{
    ck_assert_int_eq(status_of(use_memory), 0);
}
END_TEST

static int use_time_zone(void)
{
    struct tm tm;
    const time_t noon = 43200;
    NEED(localtime_r(&noon, &tm) != NULL && tm.tm_year >= 69);
    NEED(getenv("TZ") != NULL);
    return 0;
}

START_TEST(local_time_needs_no_file)
{
    const time_t noon = 43200;
    struct tm tm;
    (void)unsetenv("TZ");
    ck_assert_ptr_nonnull(localtime_r(&noon, &tm));
    ck_assert_int_eq(status_of(use_time_zone), 0);
}
END_TEST

/* Looks at a file like the process that does it for a client. */
static int look_at(void)
{
    struct stat st;
    char byte;
    int fd = open(outside, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    NEED(fd >= 0 && fstat(fd, &st) == 0 && stat(inside, &st) == 0);
    NEED(read(fd, &byte, 1) == 1 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    FAILS(open(outside, O_WRONLY | O_CLOEXEC), EPERM);
    FAILS(open(outside, O_RDONLY | O_TRUNC | O_CLOEXEC), EPERM);
    FAILS(open(outside, O_RDONLY | O_CREAT | O_CLOEXEC, 0600), EPERM);
    FAILS(chmod(outside, 0777), EPERM);
    FAILS(kill(getppid(), 0), EPERM);
    return 0;
}

START_TEST(a_look_reads_and_changes_nothing)
{
    int status = 0;
    pb_seccomp_prepare_look();
    pid_t pid = fork();
    if (pid == 0) {
        int line = pb_seccomp_apply_look() == 0 ? look_at() : __LINE__;
        if (line != 0)
            (void)!dprintf(STDERR_FILENO, "line %d: %s\n", line, strerror(errno));
        _exit(line != 0 ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static int use_priority(void)
{
    const int before = getpriority(PRIO_PROCESS, 0);
    const int after = before < 19 ? before + 1 : before; /* 19: the lowest */
    NEED(setpriority(PRIO_PROCESS, 0, after) == 0);
    NEED(getpriority(PRIO_PROCESS, 0) == after);
    FAILS(getpriority(PRIO_PROCESS, (id_t)getppid()), EPERM);
    return 0;
}

static int slow_the_parent(void)
{
    FAILS(setpriority(PRIO_PROCESS, (id_t)getppid(), 19), EPERM);
    return 0;
}

START_TEST(test_threads_lower_their_own_priority_only)
{
    if (SANITIZED)
        return;
    ck_assert_int_eq(status_of(use_priority), 0);
    const int status = status_of(slow_the_parent);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

static int abort_at_once(void)
{
    abort();
}

static int run_program(void)
{
    char path[] = "/bin/true";
    char *const arguments[] = {path, NULL};
    FAILS(execve(path, arguments, NULL), EPERM);
    return 0;
}

START_TEST(ends_are_told_apart)
{
    int status = status_of(abort_at_once);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    status = status_of(run_program);
    if (SANITIZED)
        ck_assert_int_eq(status, 0);
    else
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("confine");
    TCase *tcase = tcase_create("confine");
    tcase_add_checked_fixture(tcase, make_files, remove_files);
    tcase_add_test(tcase, what_may_be_read_has_facts);
    tcase_add_test(tcase, other_paths_do_not_exist);
    tcase_add_test(tcase, a_filter_that_hides_landlock_is_named);
    tcase_add_test(tcase, files_are_opened_to_be_read_or_written);
    tcase_add_test(tcase, descriptors_keep_owner_flags_and_locks);
    tcase_add_test(tcase, memory_does_not_become_code);
    tcase_add_test(tcase, local_time_needs_no_file);
    tcase_add_test(tcase, a_look_reads_and_changes_nothing);
    tcase_add_test(tcase, test_threads_lower_their_own_priority_only);
    tcase_add_test(tcase, ends_are_told_apart);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
