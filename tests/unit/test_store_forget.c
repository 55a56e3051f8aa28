/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Removal of a node that has more jobs than a batch, while others use the store. */
#include "service/jobs/store_forget.h"

#include "database_fixture.h"

#define JOBS 5000 /* jobs of the node: more than two batches */
#define TIED "SELECT count(*) FROM jobs WHERE node = 'gone' AND status < 2 AND needs <> ''"

/* Adds n jobs of a node; their numbers begin at `first`. */
static void add_jobs(const char *node, int first, int n, enum pb_job_status status)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "INSERT INTO jobs (id, name, created_ms, status, owned, scene, pipeline, input, attempts,"
        " started_ms, updated_ms, finished_ms, progress, stage, device, tiles_done, tiles_total,"
        " bytes_read, bytes_written, elapsed_ms, error_code, error_message, error_hint, node,"
        " needs, needs_gpu) SELECT 'j' || i, 'a.tif', 1, %d, 1, 's' || i, 'p', '/%s/work/' || i,"
        " 0, 0, 0, 0, 0, '', '', 0, 0, 0, 0, 0, '', '', '', '%s', 'digest', 1"
        " FROM generate_series(%d, %d) AS i",
        (int)status, node, node, first, first + n - 1);
    execute(text);
}

static void make_node(void)
{
    connect_database();
    execute("INSERT INTO nodes (node, session, place, work, archive, quarantine, lease_ms,"
            " started_ms, seen_ms) VALUES ('gone', 7, '/gone', '/gone/work', '/gone/archive',"
            " '/gone/quarantine', 1, 1, 1)");
    add_jobs("gone", 0, JOBS, PB_JOB_ACCEPTED);
    add_jobs("gone", JOBS, 3, PB_JOB_FAILED);
    add_jobs("other", JOBS + 3, 10, PB_JOB_ACCEPTED);
    execute("INSERT INTO requests (node, job, kind, identity) VALUES ('gone', 'j1', 1, '')");
}

/* Options and results of a call of pb_store_forget. */
struct forgetting {
    void (*meanwhile)(const struct forgetting *call);
    int n;          /* batches so far */
    int64_t n_seen; /* jobs so far */
    char jobs[400]; /* the point about jobs */
    int to_mend;
};

static void note(void *user, const struct pb_store_point *point)
{
    struct forgetting *call = user;
    call->to_mend += point->grade == PB_STORE_MEND;
    if (strcmp(point->name, "jobs") == 0)
        (void)snprintf(call->jobs, sizeof call->jobs, "%s", point->text);
}

static void progress(void *user, int64_t n_seen)
{
    struct forgetting *call = user;
    call->n++;
    call->n_seen = n_seen;
    if (call->meanwhile != NULL)
        call->meanwhile(call);
}

static int forget(struct forgetting *call, struct pb_err *err)
{
    const struct pb_store_forgetting options = {note, progress, call};
    return pb_store_forget(conninfo, "gone", &options, err);
}

static void expect_forgotten(const struct forgetting *call)
{
    ck_assert_int_eq(call->n_seen, JOBS + 13);
    ck_assert_ptr_nonnull(strstr(call->jobs, "5000 that wait or ran there"));
    ck_assert_int_eq(query(TIED), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE needs_gpu = 1 AND status = 0"), 10);
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE needs = 'digest'"), 13);
    ck_assert_int_eq(query("SELECT count(*) FROM nodes WHERE node = 'gone'"), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM requests"), 0);
}

START_TEST(test_jobs_are_changed_in_batches)
{
    struct pb_err err = {0};
    struct forgetting call = {.n = 0};
    const int rc = forget(&call, &err);
    ck_assert_msg(rc == call.to_mend, "%s", err.msg);
    ck_assert_int_eq(call.n, 3);
    expect_forgotten(&call);
}
END_TEST

static void end_process(const struct forgetting *call)
{
    if (call->n == 2)
        _exit(7);
}

START_TEST(test_interrupted_call_can_be_repeated)
{
    struct pb_err err = {0};
    struct forgetting call = {.meanwhile = end_process};
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(forget(&call, &err) < 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    ck_assert_int_eq(query(TIED), 1000);
    ck_assert_int_eq(query("SELECT count(*) FROM nodes WHERE node = 'gone'"), 1);
    call = (struct forgetting){.n = 0};
    const int rc = forget(&call, &err);
    ck_assert_msg(rc >= 0, "%s", err.msg);
    expect_forgotten(&call);
}
END_TEST

/* Locks a job in a transaction of another node, which ends after the first walk. */
static void lock_job(const struct forgetting *call)
{
    if (call->n == 1)
        execute("BEGIN; SELECT 1 FROM jobs WHERE id = 'j3000' FOR UPDATE");
    if (call->n == 3) {
        ck_assert_int_eq(query(TIED), 1);
        execute("ROLLBACK");
    }
}

START_TEST(test_locked_jobs_are_changed_later)
{
    struct pb_err err = {0};
    struct forgetting call = {.meanwhile = lock_job};
    const int rc = forget(&call, &err);
    ck_assert_msg(rc >= 0, "%s", err.msg);
    ck_assert_int_eq(call.n, 6);
    expect_forgotten(&call);
}
END_TEST

static void join_again(const struct forgetting *call)
{
    if (call->n == 1)
        execute("UPDATE nodes SET session = 8, lease_ms = 3600000, seen_ms = pb_now_ms()");
}

START_TEST(test_node_that_joins_meanwhile_stays)
{
    struct pb_err err = {0};
    struct forgetting call = {.meanwhile = join_again};
    ck_assert_int_lt(forget(&call, &err), 0);
    ck_assert_int_eq(err.code, PB_E_JOB_STATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "node gone reports"));
    ck_assert_int_eq(call.n, 1);
    ck_assert_int_eq(query("SELECT count(*) FROM nodes WHERE node = 'gone'"), 1);
    ck_assert_int_eq(query("SELECT count(*) FROM requests"), 1);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_jobs_are_changed_in_batches);
    tcase_add_test(tests, test_interrupted_call_can_be_repeated);
    tcase_add_test(tests, test_locked_jobs_are_changed_later);
    tcase_add_test(tests, test_node_that_joins_meanwhile_stays);
}

int main(void)
{
    return run_over_database("store_forget", make_node, disconnect_database, add_tests);
}
