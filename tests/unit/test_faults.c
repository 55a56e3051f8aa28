/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/faults.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct pb_troubles troubles;
static int freed;

static void count_freed(void *user)
{
    ck_assert_ptr_eq(user, &freed);
    freed++;
}

static void ignore_change(void *user)
{
    (void)user;
}

static struct pb_faults make_faults(void)
{
    troubles = (struct pb_troubles){.on_change = ignore_change};
    freed = 0;
    return (struct pb_faults){.troubles = &troubles, .on_freed = count_freed, .user = &freed};
}

static struct pb_job make_job(int64_t seq, enum pb_job_status status, const char *stage)
{
    struct pb_job job;
    pb_job_init(&job);
    job.seq = seq;
    job.status = status;
    (void)snprintf(job.pipeline, sizeof job.pipeline, "p");
    (void)snprintf(job.stage, sizeof job.stage, "%s", stage);
    return job;
}

START_TEST(test_archive_of_scenes_proves_no_pipeline)
{
    struct pb_faults faults = make_faults();
    struct pb_job waits = make_job(1, PB_JOB_RUNNING, "");
    const struct pb_job archive = make_job(2, PB_JOB_SUCCESSFUL, "scenes"),
                        scene = make_job(3, PB_JOB_SUCCESSFUL, "done");
    pb_job_fail(&waits, PB_E_PIPELINE_BAND, "no band N");
    ck_assert_int_eq(pb_faults_config(&faults, &waits), 1);
    pb_faults_end(&faults, &archive, true);
    ck_assert_int_eq(freed, 0);
    ck_assert_uint_eq(faults.waits.n, 1);
    pb_faults_end(&faults, &scene, true);
    ck_assert_int_eq(freed, 1);
    ck_assert_uint_eq(faults.waits.n, 0);
    pb_faults_fini(&faults);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *tests = tcase_create("faults");
    tcase_add_test(tests, test_archive_of_scenes_proves_no_pipeline);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
