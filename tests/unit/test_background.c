/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/io/background.h"

#include "run_suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>

enum { N = 1000 };

static int taken[N], n_taken;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* locked by each part during its work */

static int note(void *user, const struct pb_background_part *part)
{
    (void)user;
    pthread_mutex_lock(&gate);
    taken[n_taken++] = (int)part->at;
    pthread_mutex_unlock(&gate);
    return part->at == 5 ? EIO : part->at == 7 ? ENOSPC : 0;
}

START_TEST(parts_are_taken_in_their_order)
{
    struct pb_background b;
    pb_background_init(&b, note, NULL);
    for (uint64_t i = 0; i < N; i++) {
        const struct pb_background_part part = {.at = i};
        pb_background_wait_for(&b, PB_BACKGROUND_PARTS - 1);
        pb_background_give(&b, &part);
    }
    ck_assert_int_eq(pb_background_wait(&b), EIO); /* the first one */
    ck_assert_int_eq(n_taken, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(taken[i], i);
    pb_background_fini(&b);
}
END_TEST

START_TEST(the_owner_goes_on_until_no_part_is_free)
{
    struct pb_background b;
    pb_background_init(&b, note, NULL);
    pthread_mutex_lock(&gate);
    for (uint64_t i = 0; i < PB_BACKGROUND_PARTS; i++) {
        const struct pb_background_part part = {.at = i};
        pb_background_wait_for(&b, PB_BACKGROUND_PARTS - 1);
        pb_background_give(&b, &part);
    }
    ck_assert_int_eq(n_taken, 0);
    pthread_mutex_unlock(&gate);
    pb_background_wait_for(&b, PB_BACKGROUND_PARTS - 1);
    pthread_mutex_lock(&gate);
    ck_assert_int_ge(n_taken, 1);
    pthread_mutex_unlock(&gate);
    pb_background_fini(&b); /* with parts that wait: they are done */
    ck_assert_int_eq(n_taken, PB_BACKGROUND_PARTS);
}
END_TEST

static int threads_of_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

START_TEST(idle_has_no_thread_and_restarts_with_the_next_part)
{
    struct pb_background b;
    int threads = 0;
    pb_background_init(&b, note, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        const struct pb_background_part part = {.at = 100 + round};
        pb_background_give(&b, &part);
        pb_background_rest(&b);
        if (round == 0) /* a sanitizer may have a thread since the first one was started */
            threads = threads_of_process();
        while (threads_of_process() >
               threads) /* the kernel forgets what is joined a little later */
            sched_yield();
        ck_assert_int_eq(n_taken, (int)round + 1);
    }
    ck_assert_int_eq(pb_background_wait(&b), 0);
    pb_background_fini(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("background");
    TCase *tc = tcase_create("background");
    tcase_add_test(tc, parts_are_taken_in_their_order);
    tcase_add_test(tc, the_owner_goes_on_until_no_part_is_free);
    tcase_add_test(tc, idle_has_no_thread_and_restarts_with_the_next_part);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
