/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The allocator as a run sees it: its calls from our own code are counted and made to fail. (The
 * libraries' calls are left alone: GDAL does not survive them all.) Ours are recognized by their
 * return address in this program: the layers are linked into it, the libraries are shared. Not
 * under sanitizers, which bring their own allocator. */
#include "run_fixture.h"
#include "run_suite.h"

#include <stdatomic.h>

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

extern char __executable_start, etext;
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static _Atomic long calls;        /* ours so far */
static _Atomic long fail_at = -1; /* number of the call that fails */

static bool may(const void *caller)
{
    if ((const char *)caller < &__executable_start || (const char *)caller >= &etext)
        return true;
    if (atomic_fetch_add(&calls, 1) != atomic_load(&fail_at))
        return true;
    errno = ENOMEM;
    return false;
}

void *malloc(size_t bytes)
{
    return may(__builtin_return_address(0)) ? __libc_malloc(bytes) : NULL;
}

void *calloc(size_t n, size_t bytes)
{
    return may(__builtin_return_address(0)) ? __libc_calloc(n, bytes) : NULL;
}

void *realloc(void *memory, size_t bytes)
{
    return may(__builtin_return_address(0)) ? __libc_realloc(memory, bytes) : NULL;
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return may(__builtin_return_address(0)) ? __libc_memalign(align, bytes) : NULL;
}

static int run_all(struct pb_err *err)
{
    struct pb_run *run = NULL;
    struct pb_run_result result;
    struct pb_run_options options = options_of(input);
    int rc = pb_run_create(&options, err, &run);
    rc = rc ? rc : pb_run_start(run, err);
    rc = rc ? rc : pb_run_wait(run, -1, err);
    rc = rc ? rc : pb_run_publish(run, err, &result);
    pb_run_destroy(run);
    return rc;
}

START_TEST(failed_allocation_is_reported_and_leaves_nothing)
{
    struct pb_err err = {0};
    int fds = 0;
    config_use_steps("", "      - math: {bands: {S: 'A + B'}}\n" /* with a pass before */
                         "      - stretch: {bands: [S]}\n");
    ck_assert_int_eq(run_all(&err), 0); /* libraries have what they keep */
    long at = 0, failures = 0;
    for (; at < 5000; at++) {
        memset(&err, 0, sizeof err);
        char command[200];
        snprintf(command, sizeof command, "rm -rf %s", products);
        ck_assert_int_eq(system(command), 0);
        fds = entries("/proc/self/fd");
        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        int rc = run_all(&err);
        atomic_store(&fail_at, -1);
        bool reached = atomic_load(&calls) > at;
        ck_assert_int_eq(entries("/proc/self/fd"), fds);
        if (rc == 0) {
            ck_assert_int_eq(entries(products), 1); /* the run needs no such block */
        } else {
            failures++;
            ck_assert_msg(err.code == PB_E_MEMORY, "allocation %ld: %s: %s", at,
                          pb_code_id(err.code), err.msg);
            ck_assert_int_le(entries(products), 0);
        }
        if (!reached)
            break;
    }
    ck_assert_int_gt(failures, 50);
    ck_assert_int_lt(at, 5000);
}
END_TEST

/* Calls between start and the end of the computation. */
static long calls_of_compute(unsigned w, unsigned h)
{
    struct pb_err err = {0};
    scene_write(input, w, h, 1);
    struct pb_run *run = run_create();
    atomic_store(&calls, 0);
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_eq(pb_run_wait(run, -1, &err), 0);
    long n = atomic_load(&calls);
    pb_run_destroy(run);
    return n;
}

/* A thread allocates at its start: that of the input's checksum may do so after the end of a short
 * computation. One allocation a tile would be 288 more. */
START_TEST(the_way_of_a_tile_allocates_nothing)
{
    (void)calls_of_compute(64 * 8, 64 * 4);
    long few = calls_of_compute(64 * 8, 64 * 4);
    long many = calls_of_compute(64 * 8, 64 * 40);
    ck_assert_int_lt(labs(many - few), 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run memory");
    TCase *tc = tcase_create("run memory");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, failed_allocation_is_reported_and_leaves_nothing);
    tcase_add_test(tc, the_way_of_a_tile_allocates_nothing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
#endif
