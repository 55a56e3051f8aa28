/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "job_store_fixture.h"

START_TEST(every_member_comes_back_after_reopening)
{
    struct pb_job job, back;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-abcd");
    (void)snprintf(job.name, sizeof job.name, "a'b\".tif");
    job.owned = true;
    job.created_ms = 1;
    job.uid = 4000000000;
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 2), 0);
    (void)snprintf(job.stage, sizeof job.stage, "compute");
    (void)snprintf(job.device, sizeof job.device, "cuda:0");
    (void)snprintf(job.device_why, sizeof job.device_why, "on the CPU after device.lost: x");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "p");
    (void)snprintf(job.identity, sizeof job.identity, "1 2 3 4");
    job.progress = 42;
    job.tiles_done = 1;
    job.tiles_total = 2;
    job.bytes_read = INT64_C(1) << 40;
    job.bytes_written = 3;
    job.elapsed_ms = 4;
    job.epoch = INT64_C(1) << 33;
    job.is_long = true;
    pb_job_shun(&job, "hot-1");
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/in"), 0);
    ck_assert_int_eq(pb_job_set(&job.products, "[]"), 0);
    pb_job_fail_words(&job, "input.damaged", "m", "h");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 9), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_store_close(store);
    open_store();
    ck_assert_str_eq(moved, "");
    ck_assert_int_eq(pb_job_store_find(store, job.id, NULL, &back), 0);
    ck_assert_str_eq(back.name, job.name);
    ck_assert(back.owned);
    ck_assert_int_eq(back.status, PB_JOB_FAILED);
    ck_assert_int_eq(back.attempts, 1);
    ck_assert_int_eq(back.epoch, INT64_C(1) << 33);
    ck_assert(back.is_long);
    ck_assert_str_eq(back.shunned, "hot-1 ");
    ck_assert_int_eq(back.created_ms, 1);
    ck_assert_int_eq(back.started_ms, 2);
    ck_assert_int_eq(back.finished_ms, 9);
    ck_assert_int_eq(back.progress, 42);
    ck_assert_int_eq(back.bytes_read, INT64_C(1) << 40);
    ck_assert_int_eq(back.elapsed_ms, 4);
    ck_assert_str_eq(back.stage, "compute");
    ck_assert_str_eq(back.device, "cuda:0");
    ck_assert_str_eq(back.manifest.input, "/in");
    ck_assert_int_eq(back.uid, 4000000000);
    ck_assert_str_eq(back.identity, "1 2 3 4");
    ck_assert_str_eq(back.products, "[]");
    ck_assert_ptr_null(back.report);
    ck_assert_ptr_null(back.directory);
    ck_assert_str_eq(back.error.code, "input.damaged");
    ck_assert_str_eq(back.error.message, "m");
    ck_assert_str_eq(back.error.hint, "h");
    pb_job_fini(&back);
    pb_job_fini(&job);
}
END_TEST

START_TEST(the_same_id_twice_is_refused)
{
    struct pb_job job;
    insert("20261121-082850-abcd", PB_JOB_ACCEPTED);
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-abcd");
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), -EEXIST);
    pb_job_fini(&job);
}
END_TEST

START_TEST(a_unique_end_of_an_id_finds_the_job)
{
    struct pb_job job;
    struct pb_err err = {0};
    insert("20261121-082850-abcd", PB_JOB_ACCEPTED);
    insert("20261121-082851-abcd", PB_JOB_ACCEPTED);
    insert("20261121-082851-wxyz", PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(store, "yz", NULL, &job), 0);
    ck_assert_str_eq(job.id, "20261121-082851-wxyz");
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "51-abcd", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "abcd", &err, &job), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "several"));
    ck_assert_int_eq(pb_job_store_find(store, "nope", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "%", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "' OR 1=1 --", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "", NULL, &job), -ENOENT);
}
END_TEST

START_TEST(next_is_the_oldest_accepted_job_that_may_run)
{
    struct pb_job job;
    struct pb_job_place after = {0};
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 0);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082859-bbbb", PB_JOB_ACCEPTED);
    insert("20261121-082851-cccc", PB_JOB_ACCEPTED);
    char first[] = "20261121-082859-bbbb";
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 1);
    ck_assert_str_eq(job.id, first);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, first, NULL, &job), 1);
    ck_assert_str_eq(job.id, "20261121-082851-cccc");
    pb_job_fini(&job);
}
END_TEST

static bool is_last(void *user, const struct pb_job *job)
{
    ++*(int *)user;
    return strcmp(job->id + 16, "eeee") == 0 && strcmp(job->scene, job->id) == 0;
}

START_TEST(next_looks_at_so_many_jobs_at_a_time)
{
    static const char *const ids[] = {"20261121-082850-aaaa", "20261121-082850-bbbb",
                                      "20261121-082850-cccc", "20261121-082850-dddd",
                                      "20261121-082850-eeee"};
    struct pb_job job;
    struct pb_job_place after = {0};
    int looks = 0;
    for (int i = 0; i < 5; i++)
        insert(ids[i], PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 0);
    ck_assert_int_eq(looks, 2);
    ck_assert_int_gt(after.seq, 0);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 0);
    ck_assert_int_eq(looks, 4);
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, is_last, &looks, NULL, &job), 1);
    ck_assert_str_eq(job.id, ids[4]);
    ck_assert_str_eq(job.name, "20261121-082850-eeee.tif");
    ck_assert_int_eq(after.seq, 0);
    pb_job_fini(&job);
    /* All were looked at: the next one begins again. */
    ck_assert_int_eq(pb_job_store_next(store, &after, 6, any, (void *)"none", NULL, &job), 1);
    pb_job_fini(&job);
    ck_assert_int_eq(after.seq, 0);
}
END_TEST

START_TEST(next_goes_by_priority_and_then_by_age)
{
    struct pb_job job;
    struct pb_job_place after = {0};
    char ids[64] = "";
    insert_with("20261121-082850-aaaa", 0);
    insert_with("20261121-082850-bbbb", 10);
    insert_with("20261121-082850-cccc", -5);
    insert_with("20261121-082850-dddd", 10);
    insert_with("20261121-082850-eeee", 0);
    do /* two at a time: places are gone on from */
        ck_assert_int_eq(pb_job_store_next(store, &after, 2, collect, ids, NULL, &job), 0);
    while (after.seq != 0);
    ck_assert_str_eq(ids, "bbbbddddaaaaeeeecccc");
    ck_assert_int_eq(pb_job_store_next(store, &after, 2, any, NULL, NULL, &job), 1);
    ck_assert_int_eq(job.priority, 10);
    pb_job_fini(&job);
}
END_TEST

START_TEST(recover_requeues_running_jobs_and_no_others)
{
    insert("20261121-082850-aaaa", PB_JOB_RUNNING);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_store_reap(store, 5, NULL), 1);
    ck_assert_int_eq(status_of("aaaa"), PB_JOB_ACCEPTED);
    ck_assert_int_eq(status_of("bbbb"), PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_store_reap(store, 6, NULL), 0);
}
END_TEST

START_TEST(list_and_counts_filter_by_status_newest_first)
{
    char ids[64] = "";
    int64_t counts[PB_JOB_STATUS_COUNT];
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    insert("20261121-082850-cccc", PB_JOB_FAILED);
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "ccccbbbbaaaa");
    ids[0] = '\0';
    ck_assert_int_eq(list_jobs(PB_JOB_MASK(PB_JOB_FAILED), INT64_MAX, 1, ids), 0);
    ck_assert_str_eq(ids, "cccc");
    pb_store_counts(store, counts);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 2);
    ck_assert_int_eq(counts[PB_JOB_SUCCESSFUL], 1);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], 0);
}
END_TEST

START_TEST(a_list_goes_on_below_a_job_of_any_state)
{
    char ids[64] = "";
    struct pb_job job;
    unsigned mask = PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK(PB_JOB_DISMISSED);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    insert("20261121-082850-bbbb", PB_JOB_DISMISSED);
    insert("20261121-082850-cccc", PB_JOB_ACCEPTED);
    insert("20261121-082850-dddd", PB_JOB_FAILED);
    ck_assert_int_eq(list_jobs(mask, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "ddddbbbbaaaa");
    ck_assert_int_eq(pb_job_store_find(store, "cccc", NULL, &job), 0);
    ids[0] = '\0';
    ck_assert_int_eq(list_jobs(mask, job.seq, 1, ids), 0);
    ck_assert_str_eq(ids, "bbbb");
    ids[0] = '\0';
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, job.seq, 10, ids), 0);
    ck_assert_str_eq(ids, "bbbbaaaa");
    ids[0] = '\0';
    ck_assert_int_eq(list_jobs(0, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "");
    pb_job_fini(&job);
}
END_TEST

/* The cost of a question must not follow the number of jobs: 1,000 rows are a scan of over 5,000
 * steps. */
START_TEST(questions_cost_the_same_with_a_thousand_jobs)
{
    enum { JOBS = 1000, STEPS_OF_A_SCAN = 5 * JOBS };
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char id[PB_JOB_ID_BYTES], ids[4096] = "";
    int64_t counts[PB_JOB_STATUS_COUNT];
    struct pb_job job;
    for (unsigned i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "20261121-082850-0%c%c%c", digits[i >> 10 & 31],
                       digits[i >> 5 & 31], digits[i & 31]);
        insert(id, i == 3 ? PB_JOB_FAILED : i % 2 ? PB_JOB_ACCEPTED : PB_JOB_SUCCESSFUL);
    }
    uint64_t before = pb_job_store_steps(store);
    ck_assert_int_eq(pb_job_store_find(store, "20261121-082850-0003", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "50-0004", NULL, &job), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "zzzz", NULL, &job), -ENOENT);
    ck_assert_int_eq(pb_job_store_find(store, "4", NULL, &job), -ENOENT);
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 5, ids), 0);
    ck_assert_int_eq(
        list_jobs(PB_JOB_MASK(PB_JOB_FAILED) | PB_JOB_MASK_FINISHED, INT64_MAX, 5, ids), 0);
    ck_assert_int_eq(list_jobs(PB_JOB_MASK(PB_JOB_RUNNING), INT64_MAX, 5, ids), 0);
    pb_store_counts(store, counts);
    ck_assert_int_eq(pb_job_store_prune(store, JOBS, NULL), 0);
    struct pb_job_place after = {0};
    ck_assert_int_eq(pb_job_store_next(store, &after, 1000, any, NULL, NULL, &job), 1);
    pb_job_fini(&job);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], JOBS / 2 - 1);
    ck_assert_uint_lt(pb_job_store_steps(store) - before, STEPS_OF_A_SCAN);
}
END_TEST

/* The store is closed, changed and opened again, which is no reason to move it aside. */
START_TEST(reader_sees_committed_rows_and_changes_nothing)
{
    struct pb_job_store *reader = NULL;
    struct pb_job job;
    int64_t counts[PB_JOB_STATUS_COUNT];
    ck_assert_int_eq(pb_job_store_open_reader(&place, NULL, &reader), 0);
    ck_assert_int_eq(pb_job_store_find(reader, "aaaa", NULL, &job), -ENOENT);
    insert("20261121-082850-aaaa", PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_find(reader, "aaaa", NULL, &job), 0);
    pb_store_counts(store, counts);
    ck_assert_int_eq(counts[PB_JOB_FAILED], 1);
    ck_assert_int_ne(pb_store_finish(reader, &job, NULL), 0);
    pb_job_fini(&job);
    pb_job_store_close(reader);
}
END_TEST

START_TEST(prune_forgets_the_oldest_finished_jobs_only)
{
    char ids[64] = "";
    insert("20261121-082850-aaaa", PB_JOB_ACCEPTED);
    insert("20261121-082850-bbbb", PB_JOB_SUCCESSFUL);
    insert("20261121-082850-cccc", PB_JOB_FAILED);
    insert("20261121-082850-dddd", PB_JOB_DISMISSED);
    insert("20261121-082850-eeee", PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_store_prune(store, 5, NULL), 0);
    ck_assert_int_eq(pb_job_store_prune(store, 1, NULL), 2);
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "eeeeddddaaaa");
}
END_TEST

START_TEST(test_prune_forgets_foreign_files_first)
{
    char ids[64] = "", id[PB_JOB_ID_BYTES];
    struct pb_job job;
    insert("20261121-082850-aaaa", PB_JOB_SUCCESSFUL);
    insert("20261121-082850-bbbb", PB_JOB_FAILED);
    for (char end = 'c'; end <= 'f'; end++) {
        (void)snprintf(id, sizeof id, "20261121-082850-%c%c%c%c", end, end, end, end);
        pb_job_init(&job);
        (void)snprintf(job.id, sizeof job.id, "%s", id);
        job.status = PB_JOB_FAILED;
        pb_job_fail(&job, PB_E_INPUT_NO_PIPELINE, "no pattern fits");
        ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
        pb_job_fini(&job);
    }
    ck_assert_int_eq(pb_job_store_prune(store, 3, NULL), 3);
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "ffffbbbbaaaa");
    ck_assert_int_eq(pb_job_store_prune(store, 1, NULL), 2);
    ids[0] = '\0';
    ck_assert_int_eq(list_jobs(PB_JOB_MASK_ALL, INT64_MAX, 10, ids), 0);
    ck_assert_str_eq(ids, "bbbb");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, every_member_comes_back_after_reopening);
    tcase_add_test(tests, the_same_id_twice_is_refused);
    tcase_add_test(tests, a_unique_end_of_an_id_finds_the_job);
    tcase_add_test(tests, next_is_the_oldest_accepted_job_that_may_run);
    tcase_add_test(tests, next_goes_by_priority_and_then_by_age);
    tcase_add_test(tests, next_looks_at_so_many_jobs_at_a_time);
    tcase_add_test(tests, recover_requeues_running_jobs_and_no_others);
    tcase_add_test(tests, list_and_counts_filter_by_status_newest_first);
    tcase_add_test(tests, a_list_goes_on_below_a_job_of_any_state);
    tcase_add_test(tests, reader_sees_committed_rows_and_changes_nothing);
    tcase_add_test(tests, prune_forgets_the_oldest_finished_jobs_only);
    tcase_add_test(tests, test_prune_forgets_foreign_files_first);
}

/* PostgreSQL does not count its steps. */
static void add_tests_of_file(TCase *tests)
{
    tcase_add_test(tests, questions_cost_the_same_with_a_thousand_jobs);
}

int main(void)
{
    return run_over_stores("job_store", open_store, close_store, add_tests, add_tests_of_file);
}
