/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_result.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct pb_job job;

/* Returns the printed result. The caller frees it. */
static char *printed(void)
{
    FILE *saved = stdout;
    char *text = NULL;
    size_t bytes = 0;
    stdout = open_memstream(&text, &bytes);
    cli_result_text("in.tif", &job, true);
    (void)fclose(stdout);
    stdout = saved;
    return text;
}

#define REPORT "{\"device\":\"cuda:0\",\"elapsed_ms\":1900,\"publish_ms\":100%s}"
#define LINK                                                                                       \
    ",\"link\":{\"to_device_bytes\":5000000000,\"from_device_bytes\":1000000000,"                  \
    "\"to_device_share\":0.05,\"from_device_share\":null,\"starved_ms\":1500}"

static void make(const char *link)
{
    char report[900];
    (void)snprintf(report, sizeof report, REPORT, link);
    pb_job_init(&job);
    (void)pb_job_set(&job.directory, "/p/scene/veg");
    (void)pb_job_set(&job.report, report);
    (void)pb_job_set(&job.products, "[{\"type\":\"cog\",\"path\":\"/p/scene/veg/s.tif\","
                                    "\"bytes\":1500000}]");
}

START_TEST(link_line_has_shares_where_rates_are_known)
{
    make(LINK);
    char *text = printed();
    ck_assert_ptr_nonnull(
        strstr(text, "  cuda:0     5.0 GB to it (5% of the link), 1.0 GB from it, idle 1.5 s\n"));
    free(text);
    pb_job_fini(&job);
}
END_TEST

START_TEST(a_gpu_that_decodes_has_a_line_of_its_own)
{
    make(LINK ",\"gpu\":{\"occupied_ms\":950,\"occupied_share\":0.5,\"set_up_ms\":400,\"blocks\":"
              "484,\"core_blocks\":120,\"kept_bytes\":964000000,"
              "\"work\":[{\"name\":\"decode\",\"ms\":900},{\"name\":\"compute\",\"ms\":200},"
              "{\"name\":\"encode\",\"ms\":0}]},\"limit\":\"read: 5% of both cores\","
              "\"limited_by\":\"decoding on the GPU: under way 90% of the 1.00 s of tiles\"");
    char *text = printed();
    ck_assert_ptr_nonnull(strstr(
        text, "  cuda:0     5.0 GB to it (5% of the link), 1.0 GB from it\n"
              "  gpu        occupied 0.95 s (50%): decode 0.90 s, compute 0.20 s; 120 of 484 "
              "blocks decoded by cores; 1.0 GB of pixels taken from its memory by later "
              "passes; set up in "
              "0.40 s\n"
              "  limited by decoding on the GPU: under way 90% of the 1.00 s of tiles\n"
              "  cores      read: 5% of both cores\n"));
    free(text);
    pb_job_fini(&job);
}
END_TEST

START_TEST(a_run_without_a_link_has_none)
{
    make("");
    char *text = printed();
    ck_assert_str_eq(text, "in.tif -> /p/scene/veg  (2.0 s on cuda:0)\n"
                           "  cog          1.5 MB  s.tif\n");
    free(text);
    pb_job_fini(&job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_result");
    TCase *tests = tcase_create("cli_result");
    tcase_add_test(tests, link_line_has_shares_where_rates_are_known);
    tcase_add_test(tests, a_gpu_that_decodes_has_a_line_of_its_own);
    tcase_add_test(tests, a_run_without_a_link_has_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
