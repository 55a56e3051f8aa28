/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "service/jobs/journal.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "service/base/files.h"
#include "service/base/log.h"
#include "service/jobs/job_store_sql.h"
#include "service/status/status_reader.h"

#include "store_suite.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char moved[PB_FILES_PATH_BYTES];
static struct pb_job_store *store;
static struct pb_job job;

static void open_store(void)
{
    struct pb_err err = {0};
    ck_assert_msg(pb_job_store_open(&place, &err, moved, &store) == 0, "%s", err.msg);
}

static void setup(void)
{
    open_store();
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261123-000000-0001");
    (void)snprintf(job.name, sizeof job.name, "a.tif");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "vegetation");
    job.owned = true;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/work/a.tif"), 0);
}

static void teardown(void)
{
    pb_job_fini(&job);
    pb_job_store_close(store);
}

/* Names of events, a space after each; the number of the last one. */
struct seen {
    char names[4096];
    char data[4096]; /* data of the last event */
    int64_t last, n;
};

static void see(void *user, const struct pb_event *event)
{
    struct seen *seen = user;
    ck_assert_int_gt(event->seq, seen->last);
    seen->last = event->seq;
    seen->n++;
    (void)snprintf(seen->data, sizeof seen->data, "%s", event->data);
    size_t n = strlen(seen->names);
    (void)snprintf(seen->names + n, sizeof seen->names - n, "%s ", event->kind);
}

static struct seen all_after(int64_t after)
{
    struct pb_err err = {0};
    struct seen seen = {.last = after};
    ck_assert_int_ge(pb_journal_read(store, after, "", 1000, see, &seen, &err), 0);
    return seen;
}

static struct seen next_of(const char *name)
{
    struct pb_err err = {0};
    struct seen seen = {.n = 0};
    ck_assert_msg(pb_subscribers_next(store, name, 100, see, &seen, &err) >= 0, "%s", err.msg);
    return seen;
}

static void subscribe(const char *name, const char *events, const char *pipelines)
{
    char events_text[200], pipelines_text[200];
    struct pb_err err = {0};
    (void)snprintf(events_text, sizeof events_text, "%s", events);
    (void)snprintf(pipelines_text, sizeof pipelines_text, "%s", pipelines);
    const struct pb_subscriber one = {name, events_text, pipelines_text, 1000};
    int rc = pb_subscribers_set(store, &one, 1, &err);
    ck_assert_msg(rc >= 0, "%s", err.msg);
}

static void move_to(enum pb_job_status status)
{
    ck_assert_int_eq(pb_job_move(&job, status, 5000), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
}

static void run_to(enum pb_job_status status)
{
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    move_to(PB_JOB_RUNNING);
    if (status == PB_JOB_SUCCESSFUL)
        ck_assert_int_eq(pb_job_set(&job.products, "[{\"type\":\"cog\",\"path\":\"/p/a.tif\"},"
                                                   "{\"type\":\"stac\",\"path\":\"/p/a.json\"}]"),
                         0);
    move_to(status);
}

START_TEST(changes_of_state_are_the_only_events)
{
    run_to(PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/archive/a.tif"), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    struct seen seen = all_after(0);
    ck_assert_str_eq(seen.names, "job.accepted job.running job.successful product.published "
                                 "product.published ");
    ck_assert_ptr_nonnull(strstr(seen.data, "\"product\":{\"type\":\"stac\""));
    ck_assert_ptr_nonnull(strstr(seen.data, "\"status\":\"successful\""));
    ck_assert_ptr_null(strstr(seen.data, "\"report\""));
}
END_TEST

START_TEST(alerts_of_the_latest_run_are_events)
{
    const struct pb_job_alert alerts[] = {{.name = "fire",
                                           .band = "A",
                                           .number = 1,
                                           .pixels = 3,
                                           .line = 7,
                                           .sample = 9,
                                           .value = 2.5F,
                                           .has_place = true,
                                           .lon = 10.5,
                                           .lat = -20,
                                           .acquired_ns = 1500000000},
                                          {.band = "A", .number = 2, .pixels = 1}};
    struct pb_err err = {0};
    subscribe("a", "[\"alert.*\"]", "[]");
    ck_assert_int_eq(pb_journal_add_alerts(store, &job, alerts, 2, &err), 1); /* unknown */
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    move_to(PB_JOB_RUNNING);
    const struct pb_job first = job;
    ck_assert_int_eq(pb_journal_add_alerts(store, &job, alerts, 1, &err), 0);
    struct seen seen = next_of("a");
    ck_assert_str_eq(seen.names, "alert.raised ");
    ck_assert_ptr_nonnull(strstr(
        seen.data,
        "\"alert\":{\"name\":\"fire\",\"number\":1,\"band\":\"A\",\"value\":2.5,\"pixels\":3,"
        "\"line\":7,\"sample\":9,\"longitude\":10.5,\"latitude\":-20,"
        "\"datetime\":\"1970-01-01T00:00:01.500Z\"}"));
    ck_assert_ptr_nonnull(strstr(seen.data, "\"status\":\"running\""));
    move_to(PB_JOB_ACCEPTED);
    move_to(PB_JOB_RUNNING);
    ck_assert_int_eq(pb_journal_add_alerts(store, &first, &alerts[1], 1, &err), 1); /* too late */
    ck_assert_int_eq(pb_journal_add_alerts(store, &job, &alerts[1], 1, &err), 0);
    seen = next_of("a");
    ck_assert_str_eq(seen.names, "alert.raised alert.raised ");
    ck_assert_ptr_nonnull(strstr(seen.data, "\"name\":null,\"number\":2"));
    ck_assert_ptr_nonnull(
        strstr(seen.data, "\"longitude\":null,\"latitude\":null,\"datetime\":null"));
}
END_TEST

static int record_and_fail(struct pb_job_store *of, struct pb_job_change *change)
{
    const struct pb_job_before before = {.is_there = true, .status = PB_JOB_ACCEPTED};
    struct pb_job running = job;
    running.status = PB_JOB_RUNNING;
    ck_assert_int_eq(pb_journal_record(of, &before, &running, &change->err), 0);
    return -EIO;
}

START_TEST(lines_of_the_log_survive_a_transaction_that_fails)
{
    struct pb_err err = {0};
    struct pb_job_change change = {.apply = record_and_fail};
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_log(PB_LOG_NOTICE, "job %s: first line", job.id);
    ck_assert_int_eq(pb_job_store_commit(store, &change, &err), -EIO);
    pb_log(PB_LOG_NOTICE, "job %s: second line", job.id);
    move_to(PB_JOB_RUNNING);
    struct seen seen = all_after(0);
    ck_assert_str_eq(seen.names, "job.accepted job.running ");
    ck_assert_ptr_nonnull(strstr(seen.data, "first line"));
    ck_assert_ptr_nonnull(strstr(seen.data, "second line"));
    move_to(PB_JOB_FAILED);
    ck_assert_ptr_null(strstr(all_after(0).data, "first line")); /* stored once */
}
END_TEST

START_TEST(an_input_in_quarantine_is_an_event_of_its_own)
{
    run_to(PB_JOB_FAILED);
    int64_t before = all_after(0).last;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/quarantine/a.tif"), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    struct seen seen = all_after(before);
    ck_assert_str_eq(seen.names, "input.quarantined ");
    ck_assert_ptr_nonnull(strstr(seen.data, "/quarantine/a.tif"));
}
END_TEST

START_TEST(numbers_continue_after_restart_and_new_store)
{
    int64_t now_ms = pb_clock_wall_ms(), first = 0, last = 0, again_first = 0, again_last = 0;
    ck_assert_int_eq(pb_journal_range(store, &first, &last, NULL), 0);
    ck_assert_int_eq(first, last + 1);
    ck_assert_int_ge(last, now_ms - 60000);
    ck_assert_int_le(last, pb_clock_wall_ms());
    run_to(PB_JOB_RUNNING + 1);
    ck_assert_int_eq(pb_journal_range(store, &first, &last, NULL), 0);
    pb_job_store_close(store);
    open_store();
    ck_assert_int_eq(pb_journal_range(store, &again_first, &again_last, NULL), 0);
    ck_assert_int_eq(again_first, first);
    ck_assert_int_eq(again_last, last);
    pb_job_store_close(store);
    remove_store();
    while (pb_clock_wall_ms() <= last)
        (void)usleep(1000);
    open_store();
    ck_assert_int_eq(pb_journal_range(store, &again_first, &again_last, NULL), 0);
    ck_assert_int_ge(again_last, last);
}
END_TEST

START_TEST(a_restart_is_an_event_of_each_job_that_ran)
{
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    move_to(PB_JOB_RUNNING);
    int64_t before = all_after(0).last;
    pb_job_store_close(store);
    open_store();
    ck_assert_int_eq(pb_store_reap(store, 7000, NULL), 1);
    ck_assert_str_eq(all_after(before).names, "job.accepted ");
}
END_TEST

START_TEST(subscriber_gets_its_events_until_acknowledged)
{
    struct pb_err err = {0};
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    subscribe("c", "[\"job.*\"]", "[\"veg*\"]");
    ck_assert_int_eq(next_of("c").n, 0);
    move_to(PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_set(&job.products, "[{\"type\":\"cog\"}]"), 0);
    move_to(PB_JOB_SUCCESSFUL);
    struct seen seen = next_of("c");
    ck_assert_str_eq(seen.names, "job.running job.successful ");
    ck_assert_int_eq(pb_subscribers_ack(store, "c", seen.last, false, &err), 0);
    ck_assert_int_eq(pb_subscribers_ack(store, "c", seen.last - 1, false, &err), 0); /* late */
    ck_assert_int_eq(next_of("c").n, 0);
    pb_job_store_close(store);
    open_store();
    subscribe("c", "[\"job.*\"]", "[\"veg*\"]");
    ck_assert_int_eq(next_of("c").n, 0);
    subscribe("c", "[\"product.*\"]", "[]"); /* other patterns, the same place */
    ck_assert_str_eq(next_of("c").names, "product.published ");
    subscribe("d", "[\"*\"]", "[]"); /* c is forgotten, and d is new */
    ck_assert_int_eq(next_of("d").n, 0);
    ck_assert_int_lt(pb_subscribers_next(store, "c", 1, see, &seen, &err), 0);
    ck_assert_int_eq(err.code, PB_E_NOTIFY_UNKNOWN);
    ck_assert_int_lt(pb_subscribers_ack(store, "c", 1, false, &err), 0);
}
END_TEST

START_TEST(what_waits_is_counted_and_expires)
{
    struct pb_subscriber_state states[PB_SUBSCRIBERS_MAX];
    struct pb_err err = {0};
    subscribe("c", "[\"job.running\", \"job.failed\"]", "[]");
    int64_t begun_ms = pb_clock_wall_ms();
    run_to(PB_JOB_FAILED);
    ck_assert_int_eq(pb_subscribers_states(store, states, &err), 1);
    ck_assert_str_eq(states[0].name, "c");
    ck_assert_int_eq(states[0].waiting, 2);
    ck_assert_int_gt(states[0].oldest_ms, 0);
    ck_assert_int_eq(pb_journal_trim(store, begun_ms, &err), 0);
    ck_assert_int_eq(next_of("c").n, 2); /* nothing is old enough */
    ck_assert_int_eq(pb_journal_trim(store, pb_clock_wall_ms() + 5000, &err), 0);
    ck_assert_int_eq(next_of("c").n, 0);
    ck_assert_int_eq(pb_subscribers_states(store, states, &err), 1);
    ck_assert_int_eq(states[0].expired, 2);
    ck_assert_int_eq(states[0].waiting, 0);
    ck_assert_int_eq(all_after(0).n, 3); /* they stay for those who reconnect */
}
END_TEST

/* The journal is full of events that are not wanted: the newest stay, and those that wait. */
START_TEST(rows_stay_while_somebody_wants_them)
{
    struct pb_err err = {0};
    int64_t first = 0, last = 0;
    enum { ROUNDS = 40, JOBS = 300 };
    struct pb_job *jobs = calloc(JOBS, sizeof *jobs), *list[JOBS];
    int results[JOBS];
    subscribe("c", "[\"job.dismissed\"]", "[]");
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    move_to(PB_JOB_DISMISSED);
    int64_t wanted = next_of("c").last, wanted_ms = pb_clock_wall_ms(); /* not expired then */
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < JOBS; i++) {
            pb_job_init(&jobs[i]);
            (void)snprintf(jobs[i].id, sizeof jobs[i].id, "20261123-%06d-%04x", round, i);
            list[i] = &jobs[i];
        }
        ck_assert_int_eq(pb_store_offer_all(store, list, JOBS, results, &err), 0);
    }
    while (pb_journal_trim(store, wanted_ms, &err) > 0)
        ;
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(first, wanted);
    ck_assert_int_eq(next_of("c").n, 1);
    ck_assert_int_eq(pb_subscribers_ack(store, "c", wanted, false, &err), 0);
    while (pb_journal_trim(store, wanted_ms, &err) > 0)
        ;
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(last - first + 1, PB_JOURNAL_KEEP);
    free(jobs);
}
END_TEST

/* Counts the steps of the job after `since` that a client reads. */
static size_t steps_after(int64_t since)
{
    struct pb_err err = {0};
    struct pb_status_reader *reader = NULL;
    struct pb_json_value *steps = NULL;
    struct pb_reading *reading = pb_reading_create(PB_READ_HISTORY, job.id, NULL);
    ck_assert_ptr_nonnull(reading);
    reading->since = since;
    reading->limit = 100;
    ck_assert_msg(pb_status_reader_create(store, &err, &reader) == 0, "%s", err.msg);
    struct pollfd ready = {.fd = pb_status_reader_fd(reader), .events = POLLIN};
    pb_status_reader_push(reader, reading);
    while ((reading = pb_status_reader_pop(reader)) == NULL)
        ck_assert_int_ge(poll(&ready, 1, -1), 0);
    ck_assert_msg(reading->rc == 0, "%s", reading->err.msg);
    size_t bytes = 0;
    const char *text = pb_json_text(reading->json, &bytes);
    ck_assert_int_eq(pb_json_parse(text, bytes, 1 << 20, &steps), 0);
    const size_t n = pb_json_count(steps);
    pb_json_release(steps);
    pb_reading_destroy(reading);
    pb_status_reader_destroy(reader);
    return n;
}

/* After a failover the numbers of events continue far above the last one. */
START_TEST(test_left_out_numbers_hide_no_step)
{
    struct pb_err err = {0};
    int64_t first = 0, last = 0, after = 0;
    pb_job_store_admit_readers(store);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    move_to(PB_JOB_RUNNING);
    ck_assert_int_eq(pb_journal_newest(store, 2, &after, &err), 0);
    ck_assert_int_eq(all_after(after).n, 2);
    change_rows("INSERT INTO gaps SELECT max(seq) - 7000000, max(seq) - 5000000 FROM events;"
                "INSERT INTO gaps SELECT max(seq) - 5000000, max(seq) FROM events;"
                "UPDATE events SET seq = seq - 7000000");
    move_to(PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(steps_after(0), 3);
    ck_assert_int_eq(steps_after(-1), 3);
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(steps_after(first), 2);
    for (int n = 1; n <= 3; n++) {
        ck_assert_int_eq(pb_journal_newest(store, n, &after, &err), 0);
        ck_assert_int_eq(all_after(after).n, n);
    }
    ck_assert_int_eq(pb_journal_newest(store, 4, &after, &err), 0);
    ck_assert_int_lt(after, first);
    while (pb_journal_trim(store, pb_clock_wall_ms(), &err) > 0)
        ;
    ck_assert_int_eq(all_after(0).n, 3);
}
END_TEST

START_TEST(test_patterns_of_subscribers_are_globs)
{
    static const struct {
        const char *events, *pipelines;
        int n; /* count of its events of a successful job with two products */
    } cases[] = {
        {"[\"*\"]", "[]", 5},
        {"[\"job.*\"]", "[]", 3},
        {"[\"job.[ar]*\"]", "[\"*\"]", 2},
        {"[\"job.[^ar]*\",\"product.*\"]", "[\"x\",\"PIPELINE\"]", 3},
        {"[\"job.runnin?\"]", "[\"P*E\"]", 1},
        {"[\"job.runnin\",\"ob.running\",\"job?running.\"]", "[]", 0},
        {"[\"jobxrunning\",\"job+running\",\"(job.running)\",\"job.running|x\"]", "[]", 0},
        {"[\"*\"]", "[\"PIPELIN\",\"pipeline\"]", 0},
        {"[]", "[]", 0},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    struct pb_subscriber all[N];
    char names[N][8];
    struct pb_err err = {0};
    (void)snprintf(job.pipeline, sizeof job.pipeline, "PIPELINE");
    for (int i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%d", i);
        all[i] = (struct pb_subscriber){names[i], (char *)cases[i].events,
                                        (char *)cases[i].pipelines, 1000};
    }
    for (int i = 0; i < 2; i++) /* the second time they are there already */
        ck_assert_msg(pb_subscribers_set(store, all, N, &err) >= 0, "%s", err.msg);
    run_to(PB_JOB_SUCCESSFUL);
    for (int i = 0; i < N; i++) {
        const struct seen seen = next_of(names[i]);
        ck_assert_msg(seen.n == cases[i].n, "%s: %s", cases[i].events, seen.names);
    }
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, changes_of_state_are_the_only_events);
    tcase_add_test(tests, alerts_of_the_latest_run_are_events);
    tcase_add_test(tests, lines_of_the_log_survive_a_transaction_that_fails);
    tcase_add_test(tests, an_input_in_quarantine_is_an_event_of_its_own);
    tcase_add_test(tests, numbers_continue_after_restart_and_new_store);
    tcase_add_test(tests, a_restart_is_an_event_of_each_job_that_ran);
    tcase_add_test(tests, subscriber_gets_its_events_until_acknowledged);
    tcase_add_test(tests, test_patterns_of_subscribers_are_globs);
    tcase_add_test(tests, what_waits_is_counted_and_expires);
    tcase_add_test(tests, rows_stay_while_somebody_wants_them);
    tcase_add_test(tests, test_left_out_numbers_hide_no_step);
}

int main(void)
{
    return run_over_stores("journal", setup, teardown, add_tests, NULL);
}
