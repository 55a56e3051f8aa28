/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "config/base/clock.h"
#include "pipeline/device/residency.h"

#include "wic/device/pause.h"

#include "run_suite.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { KERNELS = 3, FREES = 2, ROUNDS = 300 };

static atomic_int staying, freeing, wrong, stays, taken;
static atomic_bool stop;

/* Stays until it is wanted no longer. */
static void *kernel(void *user)
{
    struct pb_resident own = {0};
    pb_residency_join(&own, *(const int *)user);
    while (!atomic_load(&stop)) {
        int share = (int)pb_residency_enter(&own);
        wic_gpu_enter();
        wrong += atomic_fetch_add(&taken, share) + share > PB_RESIDENCY_WHOLE;
        atomic_fetch_add(&staying, 1);
        while (!wic_gpu_is_paused() && !pb_residency_is_unwanted(&own) && !atomic_load(&stop))
            wrong += atomic_load(&freeing) != 0;
        atomic_fetch_add(&stays, 1);
        atomic_fetch_sub(&staying, 1);
        atomic_fetch_sub(&taken, share);
        pb_residency_left(&own);
        wic_gpu_left();
    }
    pb_residency_part(&own);
    return NULL;
}

static void *free_memory(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        wrong += wic_gpu_pause(WIC_GPU_PAUSE_NS) != 0;
        atomic_fetch_add(&freeing, 1);
        wrong += atomic_load(&staying) != 0;
        wrong += wic_gpu_pause(WIC_GPU_PAUSE_NS) != 0; /* one pause inside another */
        wic_gpu_resume();
        wrong += atomic_load(&staying) != 0;
        atomic_fetch_sub(&freeing, 1);
        wic_gpu_resume();
    }
    return user;
}

START_TEST(no_kernel_is_there_while_memory_is_freed)
{
    static const int priority[KERNELS] = {0, 0, 1};
    pthread_t kernels[KERNELS], frees[FREES];
    atomic_store(&stop, false);
    for (int i = 0; i < KERNELS; i++)
        ck_assert_int_eq(pthread_create(&kernels[i], NULL, kernel, (void *)&priority[i]), 0);
    while (atomic_load(&staying) == 0)
        (void)sched_yield();
    for (int i = 0; i < FREES; i++)
        ck_assert_int_eq(pthread_create(&frees[i], NULL, free_memory, NULL), 0);
    for (int i = 0; i < FREES; i++)
        pthread_join(frees[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < KERNELS; i++)
        pthread_join(kernels[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    ck_assert_int_gt(atomic_load(&stays), 0);
}
END_TEST

/* --- shares --------------------------------------------------------------------------------- */

/* A kernel that enters in a thread of its own, because it may have to wait. */
struct entering {
    struct pb_resident own;
    atomic_int share;
    pthread_t thread;
};

static void *enter(void *user)
{
    struct entering *e = user;
    atomic_store(&e->share, (int)pb_residency_enter(&e->own));
    return NULL;
}

static void begin(struct entering *e, int64_t priority)
{
    *e = (struct entering){.share = 0};
    pb_residency_join(&e->own, priority);
}

static void begin_enter(struct entering *e)
{
    atomic_store(&e->share, 0);
    ck_assert_int_eq(pthread_create(&e->thread, NULL, enter, e), 0);
}

static void end(struct entering *e)
{
    if (e->own.share > 0)
        pb_residency_left(&e->own);
    pb_residency_part(&e->own);
}

static void until_unwanted(struct entering *e)
{
    while (!pb_residency_is_unwanted(&e->own))
        usleep(1000);
}

/* Both have kernels, with these shares. */
static void share(struct entering *a, struct entering *b, int share_a, int share_b)
{
    ck_assert_uint_eq(pb_residency_enter(&a->own), PB_RESIDENCY_WHOLE);
    ck_assert(!pb_residency_is_unwanted(&a->own));
    a->own.waits = true; /* it counts until it enters again, however late that is */
    begin_enter(b);
    until_unwanted(a);
    ck_assert_int_eq(atomic_load(&b->share), 0); /* there is no room yet */
    pb_residency_left(&a->own);
    ck_assert_uint_eq(pb_residency_enter(&a->own), share_a);
    pthread_join(b->thread, NULL);
    ck_assert_int_eq(atomic_load(&b->share), share_b);
    ck_assert(!pb_residency_is_unwanted(&a->own));
    ck_assert(!pb_residency_is_unwanted(&b->own));
}

START_TEST(a_kernel_alone_has_all_and_two_have_half_each)
{
    struct entering a, b;
    begin(&a, 0);
    begin(&b, 0);
    share(&a, &b, 500, 500);
    pb_residency_left(&b.own);
    pb_residency_part(&b.own);
    ck_assert(pb_residency_is_unwanted(&a.own)); /* it may have all now */
    pb_residency_left(&a.own);
    ck_assert_uint_eq(pb_residency_enter(&a.own), PB_RESIDENCY_WHOLE);
    end(&a);
}
END_TEST

START_TEST(who_has_no_kernel_for_a_while_counts_no_longer)
{
    struct entering a, b;
    begin(&a, 0);
    begin(&b, 0);
    share(&a, &b, 500, 500);
    uint64_t before = pb_clock_mono_ns();
    pb_residency_left(&b.own);
    until_unwanted(&a);
    /* It might have been back sooner. */
    ck_assert_uint_ge(pb_clock_mono_ns() - before, PB_RESIDENCY_LINGER_NS);
    pb_residency_left(&a.own);
    ck_assert_uint_eq(pb_residency_enter(&a.own), PB_RESIDENCY_WHOLE);
    ck_assert(!pb_residency_is_unwanted(&a.own));
    end(&a);
    end(&b);
}
END_TEST

START_TEST(a_higher_priority_has_eight_times_the_share)
{
    struct entering low, high;
    begin(&low, -3);
    begin(&high, 5);
    share(&low, &high, 111, 888);
    end(&low);
    end(&high);
}
END_TEST

START_TEST(launches_have_a_share_while_they_are_joined)
{
    struct pb_resident launches = {0};
    struct entering a;
    begin(&a, 0);
    ck_assert_uint_eq(pb_residency_enter(&a.own), PB_RESIDENCY_WHOLE);
    pb_residency_join_launches(&launches, 0);
    ck_assert(pb_residency_is_unwanted(&a.own)); /* it has to return with its part */
    pb_residency_left(&a.own);
    ck_assert_uint_eq(pb_residency_enter(&a.own), PB_RESIDENCY_WHOLE / 2);
    ck_assert(!pb_residency_is_unwanted(&a.own));
    pb_residency_part(&launches);
    ck_assert(pb_residency_is_unwanted(&a.own));
    pb_residency_part(&launches); /* it has parted already */
    pb_residency_left(&a.own);
    ck_assert_uint_eq(pb_residency_enter(&a.own), PB_RESIDENCY_WHOLE);
    end(&a);
}
END_TEST

START_TEST(a_kernel_of_three_jobs_has_three_times_the_share)
{
    struct entering one, three;
    begin(&one, 0);
    begin(&three, -1);
    pb_residency_weigh(&three.own, 0, 3);
    share(&one, &three, 250, 750);
    end(&one);
    end(&three);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("residency");
    TCase *tc = tcase_create("residency");
    tcase_add_test(tc, no_kernel_is_there_while_memory_is_freed);
    tcase_add_test(tc, a_kernel_alone_has_all_and_two_have_half_each);
    tcase_add_test(tc, who_has_no_kernel_for_a_while_counts_no_longer);
    tcase_add_test(tc, a_higher_priority_has_eight_times_the_share);
    tcase_add_test(tc, launches_have_a_share_while_they_are_joined);
    tcase_add_test(tc, a_kernel_of_three_jobs_has_three_times_the_share);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
