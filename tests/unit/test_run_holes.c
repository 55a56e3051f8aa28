/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* A run whose threads end early without a word: this program has its own tile_worker.c. Nothing
 * failed, but no tile arrived either: it must not be published. */
#include "run_fixture.h"
#include "run_suite.h"

#include "pipeline/run/stream/tile_worker.h"

int pb_tile_workers_create(struct pb_stream *stream, void *exec, struct pb_err *err,
                           struct pb_tile_workers **out_workers)
{
    (void)stream;
    (void)exec;
    (void)err;
    *out_workers = NULL;
    return 0;
}

void pb_tile_workers_destroy(struct pb_tile_workers *workers)
{
    (void)workers;
}

void pb_tile_worker_run(struct pb_tile_workers *workers, uint32_t number)
{
    (void)workers;
    (void)number;
}

START_TEST(tiles_that_never_came_fail_the_run)
{
    struct pb_err err = {0};
    struct pb_run_result result;
    struct pb_run *run = run_create();
    ck_assert_int_eq(pb_run_start(run, &err), 0);
    ck_assert_int_lt(pb_run_wait(run, -1, &err), 0);
    ck_assert_int_eq(err.code, PB_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(err.msg, "0 of 40 tiles"));
    ck_assert_int_lt(pb_run_publish(run, NULL, &result), 0);
    pb_run_destroy(run);
    ck_assert_int_eq(entries(products), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run holes");
    TCase *tc = tcase_create("run holes");
    tcase_add_checked_fixture(tc, run_setup, run_teardown);
    tcase_add_test(tc, tiles_that_never_came_fail_the_run);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
