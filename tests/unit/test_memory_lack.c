/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Allocations of libraries fail. Not under sanitizers, which bring their own allocator. */
#include "config/base/json_reader.h"
#include "run_suite.h"
#include "service/base/loop.h"
#include "service/confine/confine.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
int main(void)
{
    printf("skipped: the allocator belongs to the sanitizer\n");
    return 77;
}
#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static _Atomic long calls, fail_from = -1, fail_to = -1; /* calls from one to before the other */

static bool may(void)
{
    long call = atomic_fetch_add(&calls, 1);
    if (call < atomic_load(&fail_from) || call >= atomic_load(&fail_to))
        return true;
    errno = ENOMEM;
    return false;
}

static void fail_between(long from, long to)
{
    atomic_store(&calls, 0);
    atomic_store(&fail_from, from);
    atomic_store(&fail_to, to);
}

void *malloc(size_t bytes)
{
    return may() ? __libc_malloc(bytes) : NULL;
}

void *calloc(size_t n, size_t bytes)
{
    return may() ? __libc_calloc(n, bytes) : NULL;
}

void *realloc(void *memory, size_t bytes)
{
    return may() ? __libc_realloc(memory, bytes) : NULL;
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return may() ? __libc_memalign(align, bytes) : NULL;
}

static const char document[] =
    "{\"name\":\"a \\\"long\\\" text of more than 32 "
    "bytes\\n\\u0001\",\"list\":[1,-2,3.50,true,null,"
    "\"\",18446744073709551615,18446744073709551616,[],{}],\"inner\":{\"k0\":0,\"k1\":1,\"k2\":2,"
    "\"k3\":3,\"k4\":4,\"k5\":5,\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9,\"k10\":10,\"k11\":11,"
    "\"k12\":12}}";

START_TEST(json_is_whole_or_refused)
{
    bool failed = true;
    for (long n = 0; failed; n++) {
        struct pb_json_value *value = NULL;
        fail_between(n, n + 1);
        int rc = pb_json_parse(document, strlen(document), sizeof document, &value);
        const char *source = rc == 0 ? pb_json_source(value) : NULL;
        failed = atomic_load(&calls) > n;
        fail_between(-1, -1);
        ck_assert(rc == 0 || rc == -ENOMEM);
        ck_assert(failed || source != NULL);
        if (source != NULL)
            ck_assert_str_eq(source, document);
        pb_json_release(value);
    }
}
END_TEST

/* In a process of its own. */
static int confine(void)
{
    struct pb_err err = {0};
    fail_between(0, 1000000);
    pb_seccomp_prepare();
    int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? pb_seccomp_apply(&err) : -1;
    if (rc == 0)
        return 77; /* no filters in this kernel */
    if (rc == 1 && getppid() > 0)
        (void)socket(AF_UNIX, SOCK_STREAM, 0);
    return 1;
}

START_TEST(a_filter_is_whole_without_memory)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(confine());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 77)
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
END_TEST

START_TEST(a_loop_waits_for_memory)
{
    uv_loop_t loop;
    long n = 0;
    for (bool failed = true; failed; n++) {
        fail_between(n, n + 1);
        int rc = pb_loop_init(&loop);
        failed = atomic_load(&calls) > n;
        fail_between(-1, -1);
        ck_assert(rc == 0 || rc == UV_ENOMEM);
        if (rc == 0)
            ck_assert_int_eq(uv_loop_close(&loop), 0);
    }
    ck_assert_int_gt(n, 1);
}
END_TEST

START_TEST(a_loop_without_memory_ends_the_process)
{
    int ends[2], status = 0;
    char said[200] = "";
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        uv_loop_t loop;
        (void)dup2(ends[1], STDERR_FILENO);
        fail_between(1, 1000000); /* the first is the loop's own, whose lack libuv reports */
        _exit(pb_loop_init(&loop) == 0 ? 0 : 3);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
    ck_assert_int_gt(read(ends[0], said, sizeof said - 1), 0);
    ck_assert_ptr_nonnull(strstr(said, "[memory]"));
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory_lack");
    TCase *tests = tcase_create("memory_lack");
    tcase_add_test(tests, json_is_whole_or_refused);
    tcase_add_test(tests, a_filter_is_whole_without_memory);
    tcase_add_test(tests, a_loop_waits_for_memory);
    tcase_add_test(tests, a_loop_without_memory_ends_the_process);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
#endif
