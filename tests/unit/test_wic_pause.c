/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Pauses of resident kernels, deferred frees, and waits that must not take a resident kernel for a
 * device that hangs (wic/device/pause.h). A kernel is a thread that counts itself. */
#include "wic/device/pause.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "run_suite.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS        1000000

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static atomic_uint freed, inside;
static atomic_bool entered;

static void free_one(void *user)
{
    (void)atomic_fetch_add(&freed, *(const unsigned *)user);
}

static const unsigned one = 1, ten = 10, hundred = 100;

START_TEST(deferred_free_waits_until_no_kernel_is_there)
{
    wic_gpu_free_later(free_one, (void *)&one, 1);
    ck_assert_uint_eq(atomic_load(&freed), 1);
    wic_gpu_enter();
    wic_gpu_enter();
    wic_gpu_free_later(free_one, (void *)&ten, 1);
    wic_gpu_free_later(free_one, (void *)&hundred, 1);
    wic_gpu_left();
    ck_assert_uint_eq(atomic_load(&freed), 1);
    ck_assert(!wic_gpu_is_paused()); /* the kernel need not leave for that */
    wic_gpu_left();
    ck_assert_uint_eq(atomic_load(&freed), 111);
    ck_assert(!wic_gpu_is_paused());
}
END_TEST

static void *free_much(void *user)
{
    wic_gpu_free_later(free_one, user, WIC_GPU_LATER_BYTES + 1);
    return NULL;
}

START_TEST(much_deferred_memory_makes_kernels_leave)
{
    pthread_t thread;
    wic_gpu_enter();
    ck_assert_int_eq(pthread_create(&thread, NULL, free_much, (void *)&ten), 0);
    while (!wic_gpu_is_paused()) {
        sleep_ns(MS);
    }
    ck_assert_uint_eq(atomic_load(&freed), 0);
    wic_gpu_left();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(atomic_load(&freed), 10);
    ck_assert(!wic_gpu_is_paused());
}
END_TEST

START_TEST(pause_reports_a_kernel_that_does_not_leave)
{
    wic_gpu_enter();
    ck_assert_int_eq(wic_gpu_pause(10 * MS), -ETIMEDOUT);
    ck_assert(wic_gpu_is_paused());
    wic_gpu_resume();
    ck_assert(!wic_gpu_is_paused());
    wic_gpu_left();
    ck_assert_int_eq(wic_gpu_pause(0), 0);
    wic_gpu_resume();
}
END_TEST

static void *enter(void *user)
{
    wic_gpu_enter();
    atomic_store(&entered, true);
    return user;
}

START_TEST(no_kernel_enters_during_a_pause)
{
    pthread_t thread;
    ck_assert_int_eq(wic_gpu_pause(WIC_GPU_PAUSE_NS), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, enter, NULL), 0);
    sleep_ns(50 * MS);
    ck_assert(!atomic_load(&entered));
    wic_gpu_resume();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&entered));
    wic_gpu_left();
}
END_TEST

/* Polls like a wait that looks every 10 ms of a clock of its own, from *now on for so long. */
static bool poll_for(struct wic_gpu_wait *wait, uint64_t *now, uint64_t ns)
{
    bool hangs = false;
    for (uint64_t end = *now + ns; *now < end && !hangs; *now += 10 * MS) {
        hangs = wic_gpu_hangs(wait, *now, 60 * SECOND_NS);
    }
    return hangs;
}

START_TEST(device_that_does_not_answer_hangs_after_the_limit)
{
    struct wic_gpu_wait wait = {{0, 0}, 0, false};
    uint64_t now = SECOND_NS;
    ck_assert(!poll_for(&wait, &now, 60 * SECOND_NS));
    ck_assert(poll_for(&wait, &now, SECOND_NS));
    ck_assert(!wic_gpu_is_paused());
    wic_gpu_waited(&wait);
}
END_TEST

START_TEST(time_behind_a_resident_kernel_is_no_hang)
{
    struct wic_gpu_wait wait = {{0, 0}, 0, false};
    uint64_t now = SECOND_NS;
    wic_gpu_enter();
    ck_assert(!poll_for(&wait, &now, WIC_GPU_PATIENCE_NS));
    ck_assert(!wic_gpu_is_paused());
    ck_assert(!poll_for(&wait, &now, 200 * SECOND_NS));
    ck_assert(wic_gpu_is_paused()); /* the kernel has to leave, and the wait gets its turn */
    wic_gpu_left();
    ck_assert(!poll_for(&wait, &now, 60 * SECOND_NS));
    ck_assert(wic_gpu_is_paused());
    ck_assert(poll_for(&wait, &now, SECOND_NS)); /* nothing was in its way for the limit */
    wic_gpu_waited(&wait);
    ck_assert(!wic_gpu_is_paused());
}
END_TEST

enum { KERNELS = 3, PAUSERS = 2, ROUNDS = 300 };
static atomic_bool stop, wrong;

static void *stay(void *user)
{
    while (!atomic_load(&stop)) {
        wic_gpu_enter();
        (void)atomic_fetch_add(&inside, 1);
        while (!wic_gpu_is_paused() && !atomic_load(&stop)) {
        }
        (void)atomic_fetch_sub(&inside, 1);
        wic_gpu_left();
    }
    return user;
}

static void *pause_often(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (wic_gpu_pause(WIC_GPU_PAUSE_NS) != 0 || atomic_load(&inside) != 0) {
            atomic_store(&wrong, true);
        }
        wic_gpu_free_later(free_one, user, 1);
        wic_gpu_resume();
    }
    return NULL;
}

START_TEST(no_kernel_is_inside_any_of_many_pauses)
{
    pthread_t kernel[KERNELS], pauser[PAUSERS];
    for (int i = 0; i < KERNELS; i++) {
        ck_assert_int_eq(pthread_create(&kernel[i], NULL, stay, NULL), 0);
    }
    for (int i = 0; i < PAUSERS; i++) {
        ck_assert_int_eq(pthread_create(&pauser[i], NULL, pause_often, (void *)&one), 0);
    }
    for (int i = 0; i < PAUSERS; i++) {
        (void)pthread_join(pauser[i], NULL);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < KERNELS; i++) {
        (void)pthread_join(kernel[i], NULL);
    }
    wic_gpu_free_all();
    ck_assert(!atomic_load(&wrong));
    ck_assert_uint_eq(atomic_load(&freed), PAUSERS * ROUNDS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic pause");
    TCase *t = tcase_create("pause");
    tcase_add_test(t, deferred_free_waits_until_no_kernel_is_there);
    tcase_add_test(t, much_deferred_memory_makes_kernels_leave);
    tcase_add_test(t, pause_reports_a_kernel_that_does_not_leave);
    tcase_add_test(t, no_kernel_enters_during_a_pause);
    tcase_add_test(t, device_that_does_not_answer_hangs_after_the_limit);
    tcase_add_test(t, time_behind_a_resident_kernel_is_no_hang);
    tcase_add_test(t, no_kernel_is_inside_any_of_many_pauses);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
