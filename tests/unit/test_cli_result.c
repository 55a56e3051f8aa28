/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_result.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct pb_run_result result;

/* What people see of the result. The caller frees it. */
static char *printed(void)
{
    FILE *saved = stdout;
    char *text = NULL;
    size_t bytes = 0;
    stdout = open_memstream(&text, &bytes);
    cli_result_text("in.tif", &result);
    (void)fclose(stdout);
    stdout = saved;
    return text;
}

static void make(void)
{
    memset(&result, 0, sizeof result);
    (void)strcpy(result.directory, "/p/scene");
    (void)strcpy(result.report.device, "cuda:0");
    result.report.elapsed_ms = 2000;
    result.report.link = (struct pb_link_report){.used = true,
                                                 .to_device_bytes = 5000000000,
                                                 .from_device_bytes = 1000000000,
                                                 .to_device_rate = 50e9,
                                                 .starved_ns = 1500000000};
}

START_TEST(the_link_has_a_line_with_shares_where_rates_are_known)
{
    char *text = printed();
    ck_assert_ptr_nonnull(
        strstr(text, "  cuda:0     5.0 GB to it (5% of the link), 1.0 GB from it, idle 1.5 s\n"));
    free(text);
}
END_TEST

START_TEST(a_run_without_a_link_has_none)
{
    result.report.link.used = false;
    char *text = printed();
    ck_assert_str_eq(text, "in.tif -> /p/scene  (2.0 s on cuda:0)\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_result");
    TCase *tests = tcase_create("cli_result");
    tcase_add_checked_fixture(tests, make, NULL);
    tcase_add_test(tests, the_link_has_a_line_with_shares_where_rates_are_known);
    tcase_add_test(tests, a_run_without_a_link_has_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
