/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "service/device/admission.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum { WAITERS = 5 };

struct waiter {
    struct pb_admission *admission;
    int64_t priority;
    atomic_bool gone, waited;
    int rc, place; /* in the order of admission, from 1 */
    pthread_t thread;
};

static atomic_int places;

static bool is_gone(void *user)
{
    struct waiter *w = user;
    atomic_store(&w->waited, true);
    return atomic_load(&w->gone);
}

static void *enter(void *user)
{
    struct waiter *w = user;
    w->rc = pb_admission_enter(w->admission, w->priority, is_gone, w);
    ck_assert(atomic_load(&w->waited));
    if (w->rc == 0) {
        w->place = atomic_fetch_add(&places, 1) + 1;
        pb_admission_leave(w->admission);
    }
    return NULL;
}

static void until_waiting(struct pb_admission *a, uint64_t number)
{
    for (uint64_t last = 0; last < number; usleep(1000)) {
        pthread_mutex_lock(&a->lock);
        last = a->last;
        pthread_mutex_unlock(&a->lock);
    }
}

START_TEST(the_highest_priority_goes_first_then_the_oldest)
{
    static const int64_t priority[WAITERS] = {0, 5, 0, 9, 5};
    static const int expected[WAITERS] = {4, 2, 5, 1, 3};
    struct pb_admission a;
    struct waiter w[WAITERS] = {0}, first = {0};
    pb_admission_init(&a, 1);
    ck_assert_int_eq(pb_admission_enter(&a, 0, is_gone, &first), 0);
    ck_assert(!atomic_load(&first.waited));
    for (int i = 0; i < WAITERS; i++) {
        w[i] = (struct waiter){.admission = &a, .priority = priority[i]};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, enter, &w[i]), 0);
        until_waiting(&a, (uint64_t)i + 2);
    }
    pb_admission_leave(&a);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < WAITERS; i++)
        ck_assert_int_eq(w[i].place, expected[i]);
}
END_TEST

START_TEST(who_is_gone_waits_no_longer)
{
    struct pb_admission a;
    struct waiter w = {.admission = &a}, first = {0};
    pb_admission_init(&a, 1);
    ck_assert_int_eq(pb_admission_enter(&a, 0, is_gone, &first), 0);
    ck_assert_int_eq(pthread_create(&w.thread, NULL, enter, &w), 0);
    until_waiting(&a, 2);
    atomic_store(&w.gone, true);
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, -ECANCELED);
    pb_admission_leave(&a);
    ck_assert_int_eq(pb_admission_enter(&a, 0, is_gone, &first), 0);
    ck_assert(!atomic_load(&first.waited));
}
END_TEST

START_TEST(so_many_at_a_time)
{
    struct pb_admission a;
    struct waiter w = {.admission = &a}, first = {0};
    pb_admission_init(&a, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pb_admission_enter(&a, 0, is_gone, &first), 0);
        ck_assert(!atomic_load(&first.waited));
    }
    ck_assert_int_eq(pthread_create(&w.thread, NULL, enter, &w), 0);
    until_waiting(&a, 4);
    pb_admission_leave(&a);
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission");
    TCase *tc = tcase_create("admission");
    tcase_add_test(tc, the_highest_priority_goes_first_then_the_oldest);
    tcase_add_test(tc, who_is_gone_waits_no_longer);
    tcase_add_test(tc, so_many_at_a_time);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
