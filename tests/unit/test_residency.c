/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/residency.h"

#include "run_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

enum { KERNELS = 3, SETUPS = 2, ROUNDS = 300 };

static atomic_int staying, set_up, wrong, stays;
static atomic_bool stop;

/* Stays until it is wanted no longer. */
static void *kernel(void *user)
{
    while (!atomic_load(&stop)) {
        pb_residency_enter();
        atomic_fetch_add(&staying, 1);
        while (!pb_residency_is_unwanted() && !atomic_load(&stop))
            wrong += atomic_load(&set_up) != 0;
        atomic_fetch_add(&stays, 1);
        atomic_fetch_sub(&staying, 1);
        pb_residency_left();
    }
    return user;
}

static void *setup(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        pb_residency_setup_begin();
        atomic_fetch_add(&set_up, 1);
        wrong += atomic_load(&staying) != 0;
        pb_residency_setup_begin(); /* of one inside another */
        pb_residency_setup_end();
        wrong += atomic_load(&staying) != 0;
        atomic_fetch_sub(&set_up, 1);
        pb_residency_setup_end();
    }
    return user;
}

START_TEST(setups_and_kernels_are_never_there_together)
{
    pthread_t kernels[KERNELS], setups[SETUPS];
    for (int i = 0; i < KERNELS; i++)
        ck_assert_int_eq(pthread_create(&kernels[i], NULL, kernel, NULL), 0);
    for (int i = 0; i < SETUPS; i++)
        ck_assert_int_eq(pthread_create(&setups[i], NULL, setup, NULL), 0);
    for (int i = 0; i < SETUPS; i++)
        pthread_join(setups[i], NULL);
    ck_assert(!pb_residency_is_unwanted());
    atomic_store(&stop, true);
    for (int i = 0; i < KERNELS; i++)
        pthread_join(kernels[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    ck_assert_int_gt(atomic_load(&stays), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("residency");
    TCase *tc = tcase_create("residency");
    tcase_add_test(tc, setups_and_kernels_are_never_there_together);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
