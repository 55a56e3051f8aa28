/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ctest: threads */
#include "service/runner/job_start.h"

#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    "pipelines:\n"
    "  bulk:\n"
    "    priority: -10\n"
    "    input: {group: '(?<scene>s\\d)_R.tif', files: {R: '{scene}_R.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  urgent:\n"
    "    priority: 5\n"
    "    input: {match: ['u*']}\n"
    "    products: [statistics: {}]\n"
    "  folders:\n"
    "    priority: 2\n"
    "    input: {scene: 'u?_SAFE', files: {R: 'B04.tif'}}\n"
    "    products: [statistics: {}]\n"
    "  rest:\n"
    "    input: {match: ['r*']}\n"
    "    products: [statistics: {}]\n";

START_TEST(job_of_unknown_pipeline_starts_last)
{
    static const struct {
        const char *name, *pipeline;
        bool owned;
        int64_t rank;
    } cases[] = {
        {"u1.tif", "urgent", true, 0}, {"r1.tif", "rest", true, 5},
        {"s1", "bulk", true, 15},      {"u1.tif", "gone", true, 0},
        {"r1.tif", "gone", true, 5},   {"u1_SAFE", "gone", true, 3}, /* a folder, probably */
        {"s1", "gone", true, 15},      {"s1", "", true, 15},
        {"u1.tif", "gone", false, 15},
    };
    struct pb_err_list errors = {0};
    struct pb_config *config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_job job;
        pb_job_init(&job);
        job.owned = cases[i].owned;
        (void)snprintf(job.name, sizeof job.name, "%s", cases[i].name);
        (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", cases[i].pipeline);
        const int64_t rank = pb_job_start_rank(config, &job);
        ck_assert_msg(rank == cases[i].rank, "%zu: %lld", i, (long long)rank);
        pb_job_fini(&job);
    }
    pb_config_destroy(config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_start");
    TCase *tests = tcase_create("job_start");
    tcase_add_test(tests, job_of_unknown_pipeline_starts_last);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
