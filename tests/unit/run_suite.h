/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_RUN_SUITE_H
#define PB_TEST_RUN_SUITE_H
#include <check.h>
#include <stdlib.h>

/* Runs the suite (each test in a process of its own unless CK_FORK=no) and frees it. Returns the
 * exit status of main. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
