/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/clock.h"
#include "pipeline/scene/manifest_match.h"
#include "service/jobs/job.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_change_of_state_follows_the_design)
{
    /* rows: from; columns: accepted running successful failed dismissed */
    static const int may[5][5] = {
        {0, 1, 0, 0, 1}, {1, 0, 1, 1, 1}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 1}, {1, 0, 0, 0, 0},
    };
    for (int from = 0; from < PB_JOB_STATUS_COUNT; from++) {
        for (int to = 0; to < PB_JOB_STATUS_COUNT; to++) {
            struct pb_job job;
            pb_job_init(&job);
            job.status = (enum pb_job_status)from;
            int rc = pb_job_move(&job, (enum pb_job_status)to, 1000);
            ck_assert_int_eq(rc, may[from][to] ? 0 : -EPERM);
            ck_assert_int_eq(job.status, may[from][to] ? to : from);
            ck_assert_int_eq(job.updated_ms, may[from][to] ? 1000 : 0);
            pb_job_fini(&job);
        }
    }
    ck_assert(!pb_job_may(PB_JOB_STATUS_COUNT, PB_JOB_ACCEPTED));
}
END_TEST

START_TEST(run_sets_times_and_attempts_and_retry_clears_them)
{
    struct pb_job job;
    pb_job_init(&job);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 20), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 30), 0);
    ck_assert_int_eq(job.attempts, 2);
    ck_assert_int_eq(job.started_ms, 30);
    job.tiles_done = 5;
    pb_job_fail(&job, PB_E_INPUT_TRUNCATED, "tile %d", 3);
    ck_assert_int_eq(pb_job_set(&job.products, "[1]"), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 40), 0);
    ck_assert_int_eq(job.finished_ms, 40);
    ck_assert_str_eq(job.error.code, "input.truncated");
    ck_assert_str_eq(job.error.message, "tile 3");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 50), 0);
    ck_assert_int_eq(job.attempts, 0);
    ck_assert_int_eq(job.finished_ms, 0);
    ck_assert_int_eq(job.tiles_done, 0);
    ck_assert_ptr_null(job.products);
    ck_assert_str_eq(job.error.code, "");
    pb_job_fini(&job);
}
END_TEST

START_TEST(dropped_job_is_dismissed_and_keeps_its_error)
{
    struct pb_job job;
    pb_job_init(&job);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    pb_job_drop(&job, 15);
    ck_assert_int_eq(job.status, PB_JOB_RUNNING);
    pb_job_fail(&job, PB_E_INPUT_TRUNCATED, "tile %d", 3);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 20), 0);
    pb_job_drop(&job, 30);
    ck_assert_int_eq(job.status, PB_JOB_DISMISSED);
    ck_assert_int_eq(job.finished_ms, 20);
    ck_assert_int_eq(job.updated_ms, 30);
    ck_assert_str_eq(job.error.code, "input.truncated");
    ck_assert_ptr_nonnull(strstr(job.error.hint, "dropped"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(restart_keeps_only_identity_attempt_and_reason)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-abcd");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 100), 0);
    (void)snprintf(job.device_why, sizeof job.device_why, "why");
    (void)snprintf(job.stage, sizeof job.stage, "compute");
    (void)snprintf(job.device, sizeof job.device, "cuda:0");
    job.progress = 70;
    job.tiles_done = 7;
    job.tiles_total = 10;
    job.elapsed_ms = 5;
    pb_job_restart(&job, 200);
    ck_assert_int_eq(job.status, PB_JOB_RUNNING);
    ck_assert_str_eq(job.id, "20261121-082850-abcd");
    ck_assert_str_eq(job.device_why, "why");
    ck_assert_int_eq(job.attempts, 1);
    ck_assert_int_eq(job.started_ms, 100);
    ck_assert_int_eq(job.updated_ms, 200);
    ck_assert_int_eq(job.progress, 0);
    ck_assert_int_eq(job.tiles_done + job.tiles_total + job.elapsed_ms, 0);
    ck_assert_str_eq(job.stage, "");
    ck_assert_str_eq(job.device, "");
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_epoch_counts_starts_and_never_falls)
{
    struct pb_job job;
    pb_job_init(&job);
    ck_assert_int_eq(job.epoch, 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    job.attempts--; /* put back by a fault of the machine */
    pb_job_restart(&job, 15);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 20), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 30), 0);
    ck_assert_int_eq(job.attempts, 1);
    ck_assert_int_eq(job.epoch, 2);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 40), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 50), 0); /* a retry */
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 60), 0);
    ck_assert_int_eq(job.attempts, 1);
    ck_assert_int_eq(job.epoch, 3);
    pb_job_fini(&job);
}
END_TEST

START_TEST(success_means_100_percent)
{
    struct pb_job job;
    pb_job_init(&job);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    job.progress = 40;
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_SUCCESSFUL, 20), 0);
    ck_assert_int_eq(job.progress, 100);
    pb_job_fini(&job);
}
END_TEST

START_TEST(ids_sort_by_time_and_are_recognised)
{
    char early[PB_JOB_ID_BYTES], late[PB_JOB_ID_BYTES];
    pb_job_make_id(1795249730123, 0xffffffffu, early);
    pb_job_make_id(1795249731000, 0, late);
    ck_assert_int_lt(strcmp(early, late), 0);
    ck_assert_str_eq(early, "20261121-082850-zzzz");
    ck_assert(pb_job_is_id(early));
    ck_assert(pb_job_is_suffix("4f2a"));
    ck_assert(!pb_job_is_suffix(""));
    ck_assert(!pb_job_is_suffix("%"));
    ck_assert(!pb_job_is_suffix("20261121-082850-zzzz-and-more"));
    static const char *const no[] = {
        "", "done", "20261121-082850-zzz", "....", "2026112--082850-zzzz", "20261121-082850-zz-z"};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        ck_assert(!pb_job_is_id(no[i]));
}
END_TEST

START_TEST(a_job_on_the_wire_has_every_member_of_the_design)
{
    static const char *const keys[] = {
        "id",         "input",       "pipeline", "status", "progress",  "stage",
        "tiles_done", "tiles_total", "attempts", "device", "created",   "started",
        "updated",    "finished",    "products", "error",  "device_why"};
    struct pb_job job;
    pb_job_init(&job);
    job.created_ms = 1795249730123;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/x/\"\xff.tif"), 0);
    struct pb_json *json = pb_json_create(false);
    pb_job_print(json, NULL, &job);
    const char *text = pb_json_text(json, NULL);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char key[40];
        (void)snprintf(key, sizeof key, "\"%s\":", keys[i]);
        ck_assert_msg(strstr(text, key) != NULL, "%s is missing in %s", key, text);
    }
    ck_assert_ptr_nonnull(strstr(text, "\"created\":\"2026-11-21T08:28:50.123Z\""));
    ck_assert_ptr_nonnull(strstr(text, "\"finished\":null"));
    ck_assert_ptr_nonnull(strstr(text, "\"error\":null"));
    pb_json_destroy(json);
    pb_job_fini(&job);
}
END_TEST

START_TEST(words_of_a_worker_are_taken_with_defaults_and_cut)
{
    struct pb_job job;
    char *flood = malloc(100000);
    memset(flood, 'x', 99999);
    flood[99999] = '\0';
    pb_job_init(&job);
    pb_job_fail_words(&job, NULL, "", NULL);
    ck_assert_str_eq(job.error.code, "system");
    ck_assert_uint_gt(strlen(job.error.message), 5);
    pb_job_fail_words(&job, flood, flood, flood);
    ck_assert_uint_eq(strlen(job.error.code), sizeof job.error.code - 1);
    free(flood);
    pb_job_fini(&job);
}
END_TEST

/* --- files ----------------------------------------------------------------------------------- */

#define SUM              "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SIZED            "\"bytes\":1,\"checksum\":\"" SUM "\""
#define DELIVERED(files) "{\"version\":1,\"roots\":[{\"path\":\"/in\",\"files\":[" files "]}]}"
#define READ(files)      "{\"version\":1,\"roots\":[{\"path\":\"/\",\"files\":[" files "]}]}"

static const struct {
    const char *delivered, *read, *then;
} reads[] = {
    /* a set in a sub-folder of the inbox: the roles of the delivery stay, a file is not read */
    {DELIVERED("{\"path\":\"s/a_B4.tif\",\"roles\":[[\"band\",0,3]]},"
               "{\"path\":\"s/a.xml\",\"roles\":[[\"metadata\",0,0]]},"
               "{\"path\":\"s/a_B8.tif\",\"roles\":[[\"band\",0,1]]},{\"path\":\"s/a.csv\"}"),
     READ("{\"path\":\"a.csv\"," SIZED ",\"roles\":[[\"list\",0,0]]},"
          "{\"path\":\"a.xml\"," SIZED ",\"roles\":[[\"metadata\",0,0]]},"
          "{\"path\":\"a_B4.tif\"," SIZED ",\"roles\":[[\"band\",0,0]]},"
          "{\"path\":\"earlier_B3.tif\"," SIZED ",\"roles\":[[\"band\",0,0]]},"
          "{\"path\":\"a_B8.tif\"," SIZED ",\"roles\":[[\"source\",0,0]]}"),
     DELIVERED("{\"path\":\"s/a_B4.tif\",\"checksum\":\"" SUM "\",\"roles\":[[\"band\",0,3]]},"
               "{\"path\":\"s/a.xml\",\"checksum\":\"" SUM "\",\"roles\":[[\"metadata\",0,0]]},"
               "{\"path\":\"s/a_B8.tif\",\"roles\":[[\"unused\",0,0]]},"
               "{\"path\":\"s/a.csv\",\"checksum\":\"" SUM "\",\"roles\":[[\"list\",0,0]]}")},
    /* a folder gets the files in it; its companion stays */
    {DELIVERED("{\"path\":\"S.SAFE\",\"folder\":true},"
               "{\"path\":\"S.SAFE.md5\",\"roles\":[[\"companion\",0,0]]}"),
     READ("{\"path\":\"d/B4.jp2\"," SIZED ",\"roles\":[[\"band\",1,0]]}"),
     DELIVERED("{\"path\":\"S.SAFE\",\"folder\":true},"
               "{\"path\":\"S.SAFE.md5\",\"roles\":[[\"companion\",0,0]]},"
               "{\"path\":\"S.SAFE/d/B4.jp2\"," SIZED ",\"roles\":[[\"band\",0,0]]}")},
    /* one image, with a name that is recorded as UTF-8 */
    {DELIVERED("{\"path\":\"bytes:%FF.tif\"}"),
     READ("{\"path\":\"?.tif\"," SIZED ",\"roles\":[[\"image\",0,0]]}"),
     DELIVERED("{\"path\":\"bytes:%FF.tif\",\"checksum\":\"" SUM
               "\",\"roles\":[[\"image\",0,0]]}")},
    /* members of an archive are not files of the delivery */
    {DELIVERED("{\"path\":\"a.zip\"}"),
     READ("{\"path\":\"B4.tif\"," SIZED ",\"roles\":[[\"band\",0,0]]}"),
     DELIVERED("{\"path\":\"a.zip\"}")},
};

START_TEST(files_get_the_roles_in_which_they_were_read)
{
    struct pb_job job;
    struct pb_scene_manifest read;
    pb_job_init(&job);
    ck_assert_int_eq(pb_scene_manifest_parse(reads[_i].delivered, &job.manifest), 0);
    ck_assert_int_eq(pb_scene_manifest_parse(reads[_i].read, &read), 0);
    for (int times = 0; times < 2; times++) { /* a failed write of the row repeats it */
        ck_assert_int_eq(pb_scene_manifest_complete(&job.manifest, &read), 0);
        struct pb_json *json = pb_json_create(false);
        pb_scene_manifest_print(&job.manifest, json, NULL);
        ck_assert_str_eq(pb_json_text(json, NULL), reads[_i].then);
        ck_assert_uint_le(strlen(reads[_i].then), job.manifest.json_bytes);
        pb_json_destroy(json);
    }
    pb_scene_manifest_fini(&read);
    pb_job_fini(&job);
}
END_TEST

/* Half of the read files are not in the delivery. Quadratic work would exceed the time limit of a
 * test by far. */
START_TEST(takes_the_files_of_a_large_set)
{
    enum { N = PB_SCENE_MANIFEST_ENTRIES_MAX };
    struct pb_job job;
    struct pb_scene_manifest read = {.n_roots = 0};
    char name[16];
    pb_job_init(&job);
    ck_assert_int_eq(pb_scene_manifest_root(&read, "/"), 0);
    for (int i = 0; i < N; i++) {
        struct pb_manifest_entry file = {.path = name, .bytes = 1};
        (void)snprintf(name, sizeof name, "%05d", i);
        ck_assert_int_eq(pb_job_add_delivered(&job, "/in", &file, NULL), 0);
        (void)snprintf(name, sizeof name, "%05d", 2 * (N - i));
        file.checksum = SUM;
        ck_assert_int_eq(pb_scene_manifest_add(&read, &file), i);
    }
    for (uint32_t i = 0; i < N; i++) {
        const struct pb_member member = {.entry = i, .role = PB_ROLE_BAND};
        ck_assert_int_eq(pb_scene_manifest_assign(&read, &member), 0);
    }
    ck_assert_int_eq(pb_scene_manifest_complete(&job.manifest, &read), 0);
    ck_assert_uint_eq(job.manifest.n_entries, N);
    ck_assert_uint_eq(job.manifest.n_members, N);
    for (size_t i = 0; i < N; i++) {
        const bool was_read = i % 2 == 0 && i > 0;
        ck_assert_int_eq(pb_scene_manifest_role(&job.manifest, i),
                         was_read ? PB_ROLE_BAND : PB_ROLE_UNUSED);
        ck_assert(was_read == (job.manifest.entry[i].checksum != NULL));
    }
    pb_scene_manifest_fini(&read);
    pb_job_fini(&job);
}
END_TEST

START_TEST(files_in_a_folder_are_not_printed_as_delivered)
{
    struct pb_job job;
    struct pb_json *json = pb_json_create(false);
    pb_job_init(&job);
    ck_assert_int_eq(pb_scene_manifest_parse(reads[1].then, &job.manifest), 0);
    pb_json_object(json, NULL);
    pb_job_print_delivered(json, "delivered", &job);
    pb_json_end(json);
    ck_assert_str_eq(pb_json_text(json, NULL), "{\"delivered\":[\"/in/S.SAFE\"]}");
    pb_json_destroy(json);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_nodes_of_failed_runs_are_in_order)
{
    struct pb_job job;
    char name[PB_JOB_NODE_BYTES];
    pb_job_init(&job);
    ck_assert_int_eq(pb_job_shunned_at(&job, "a"), -1);
    ck_assert_int_eq(pb_job_shunned_at(&job, ""), -1);
    pb_job_shun(&job, "");
    ck_assert_str_eq(job.shunned, "");
    pb_job_shun(&job, "a");
    pb_job_shun(&job, "ab");
    pb_job_shun(&job, "b");
    ck_assert_str_eq(job.shunned, "a ab b ");
    ck_assert_int_eq(pb_job_shunned_at(&job, "a"), 0);
    ck_assert_int_eq(pb_job_shunned_at(&job, "ab"), 2);
    ck_assert_int_eq(pb_job_shunned_at(&job, "b"), 5);
    ck_assert_int_eq(pb_job_shunned_at(&job, "c"), -1);
    pb_job_shun(&job, "a");
    ck_assert_str_eq(job.shunned, "ab b a ");
    for (int i = 0; i < 9; i++) { /* long names: only the newest have room */
        (void)snprintf(name, sizeof name, "%d%062d", i, 0);
        pb_job_shun(&job, name);
        ck_assert_int_ge(pb_job_shunned_at(&job, name), 0);
    }
    (void)snprintf(name, sizeof name, "5%062d", 0);
    ck_assert_int_lt(pb_job_shunned_at(&job, name), 0);
    (void)snprintf(name, sizeof name, "6%062d", 0);
    ck_assert_int_eq(pb_job_shunned_at(&job, name), 0);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_request_of_a_client_ends_shunning)
{
    struct pb_job job;
    pb_job_init(&job);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 1), 0);
    pb_job_shun(&job, "a");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 2), 0);
    ck_assert_str_eq(job.shunned, "a ");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 3), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 4), 0);
    ck_assert_str_eq(job.shunned, "a ");
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_ACCEPTED, 5), 0);
    ck_assert_str_eq(job.shunned, "");
    pb_job_fini(&job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job");
    TCase *tests = tcase_create("job");
    tcase_add_test(tests, every_change_of_state_follows_the_design);
    tcase_add_test(tests, run_sets_times_and_attempts_and_retry_clears_them);
    tcase_add_test(tests, test_epoch_counts_starts_and_never_falls);
    tcase_add_test(tests, dropped_job_is_dismissed_and_keeps_its_error);
    tcase_add_test(tests, restart_keeps_only_identity_attempt_and_reason);
    tcase_add_test(tests, success_means_100_percent);
    tcase_add_test(tests, ids_sort_by_time_and_are_recognised);
    tcase_add_test(tests, a_job_on_the_wire_has_every_member_of_the_design);
    tcase_add_test(tests, words_of_a_worker_are_taken_with_defaults_and_cut);
    tcase_add_loop_test(tests, files_get_the_roles_in_which_they_were_read, 0,
                        sizeof reads / sizeof *reads);
    tcase_add_test(tests, takes_the_files_of_a_large_set);
    tcase_add_test(tests, files_in_a_folder_are_not_printed_as_delivered);
    tcase_add_test(tests, test_nodes_of_failed_runs_are_in_order);
    tcase_add_test(tests, test_request_of_a_client_ends_shunning);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
