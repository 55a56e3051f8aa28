/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Starts and offers of services that change one database at the same time, and of one whose
 * connection is lost meanwhile. */
#include "database_fixture.h"
#include "service/jobs/job_store_sql.h"
#include "service/runner/job_queue.h"

#include <inttypes.h>
#include <pthread.h>

/* The other service stores its start between the two statements of this one. */
START_TEST(test_take_of_a_scene_of_another_service_fails)
{
    int result = 0;
    struct pb_job job, *jobs[] = {&job};
    insert(A, PB_JOB_ACCEPTED);
    insert(B, PB_JOB_ACCEPTED);
    change_rows("UPDATE pushbroom.jobs SET scene = 's'");
    ck_assert(pb_sql_begin(db));
    ck_assert(pb_postgres_execute(db, "UPDATE jobs SET status = 1 WHERE id = '" A "'"));
    ck_assert(pb_sql_commit(db));
    ck_assert_int_eq(pb_job_store_find(store, B, NULL, &job), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, -ESTALE);
    ck_assert(!pb_postgres_execute(db, "UPDATE jobs SET status = 1 WHERE id = '" B "'"));
    ck_assert(pb_sql_may_repeat(db));
    pb_job_fini(&job);
}
END_TEST

/* Another service starts the job at the same time. */
START_TEST(test_take_does_not_wait_for_others)
{
    int result = 0;
    struct pb_job job, *jobs[] = {&job};
    insert(A, PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(store, A, NULL, &job), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 10), 0);
    execute("BEGIN; SELECT 1 FROM jobs WHERE id = '" A "' FOR UPDATE");
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, -ESTALE);
    execute("ROLLBACK");
    ck_assert_int_eq(pb_store_take(store, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
    pb_job_fini(&job);
}
END_TEST

static void *untake_one(void *user)
{
    struct pb_job *const jobs[] = {user};
    return pb_store_untake(store, jobs, 1, NULL) == 0 ? user : NULL;
}

/* The server commits the lost take only after the client has connected again. */
START_TEST(test_untake_waits_for_the_lost_take)
{
    char text[160];
    pthread_t thread;
    struct pb_job job;
    void *done = NULL;
    insert(A, PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(store, A, NULL, &job), 0);
    job.epoch = 1;
    (void)snprintf(text, sizeof text,
                   "BEGIN; UPDATE jobs SET status = 1, epoch = 1, session = %" PRId64,
                   store->session);
    execute(text);
    ck_assert_int_eq(pthread_create(&thread, NULL, untake_one, &job), 0);
    while (query("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
        (void)usleep(1000);
    execute("COMMIT");
    ck_assert_int_eq(pthread_join(thread, &done), 0);
    ck_assert_ptr_nonnull(done);
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE status = 0"), 1);
    pb_job_fini(&job);
}
END_TEST

/* --- connection lost before the answer to COMMIT ---------------------------------------------- */

/* Connects the store again as a user whose COMMIT is executed but never answered. */
static void answer_no_commit(void)
{
    static char as_waiter[POSTGRES_CONNINFO_BYTES + 16];
    execute("CREATE ROLE waiter LOGIN SUPERUSER");
    close_store();
    (void)snprintf(as_waiter, sizeof as_waiter, "%s user=waiter", conninfo);
    place.postgresql = as_waiter;
    place.node = "waits";
    open_store();
    insert(A, PB_JOB_ACCEPTED);
    insert(B, PB_JOB_ACCEPTED);
    execute("ALTER ROLE waiter SET synchronous_commit = on");
    end_connections_of("waits");
}

/* Waits until the store waits for the answer, and ends its connection; the next one is answered. */
static void lose_commit(void)
{
    while (query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waits' AND"
                 " wait_event = 'SyncRep'") == 0)
        (void)usleep(1000);
    execute("ALTER ROLE waiter RESET synchronous_commit");
    end_connections_of("waits");
}

static void drop_waiter(void)
{
    close_store();
    store = NULL;
    execute("DROP ROLE waiter");
}

static struct pb_job_queue queue;
static pthread_rwlock_t moves = PTHREAD_RWLOCK_INITIALIZER;

static bool any_job(void *user, const struct pb_job *job)
{
    (void)user;
    (void)job;
    return true;
}

static void *take_jobs(void *user)
{
    queue.ask = (struct pb_job_ask){.n = 2, .may = any_job};
    pb_job_queue_take_now(&queue);
    return user;
}

/* Otherwise the jobs would be running in this session without a worker. */
START_TEST(test_jobs_of_a_lost_take_wait_again)
{
    pthread_t thread;
    answer_no_commit();
    queue = (struct pb_job_queue){.store = store, .reader = store, .moves = &moves};
    ck_assert_int_eq(pthread_create(&thread, NULL, take_jobs, NULL), 0);
    lose_commit();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(queue.n, 0);
    ck_assert_int_lt(queue.rc, 0);
    ck_assert_msg(strstr(queue.err.msg, "may be there or not") != NULL, "%s", queue.err.msg);
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE status = 1"), 2);
    (void)take_jobs(NULL);
    ck_assert_msg(queue.rc == 0, "%s", queue.err.msg);
    ck_assert_int_eq(queue.n, 2);
    for (int i = 0; i < queue.n; i++) {
        ck_assert_int_eq(queue.jobs[i].job.status, PB_JOB_RUNNING);
        ck_assert_int_eq(queue.jobs[i].job.attempts, 1); /* the lost take was no attempt */
        ck_assert_int_eq(queue.jobs[i].job.epoch, 2);
        pb_job_fini(&queue.jobs[i].job);
    }
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE status = 1 AND epoch = 2"), 2);
    pb_job_queue_fini(&queue);
    drop_waiter();
}
END_TEST

/* Another service starts the first job. A node that had chosen the same job takes the next one. */
START_TEST(test_nodes_do_not_choose_the_same_job_again)
{
    insert(A, PB_JOB_ACCEPTED);
    insert(B, PB_JOB_ACCEPTED);
    atomic_store(&store->n_alive, 2);
    queue = (struct pb_job_queue){.store = store, .reader = store, .moves = &moves};
    queue.ask = (struct pb_job_ask){.n = 1, .may = any_job};
    execute("BEGIN; SELECT 1 FROM jobs WHERE id = '" A "' FOR UPDATE");
    pb_job_queue_take_now(&queue);
    execute("ROLLBACK");
    ck_assert_int_eq(queue.n, 1);
    ck_assert_str_eq(queue.jobs[0].job.id, B);
    pb_job_fini(&queue.jobs[0].job);
    pb_job_queue_take_now(&queue);
    ck_assert_int_eq(queue.n, 1);
    ck_assert_str_eq(queue.jobs[0].job.id, A);
    pb_job_fini(&queue.jobs[0].job);
    pb_job_queue_fini(&queue);
}
END_TEST

struct one_take {
    pthread_t thread;
    struct pb_job job;
    int rc, result;
};

static void *take_one(void *user)
{
    struct one_take *take = user;
    struct pb_job *const jobs[] = {&take->job};
    take->rc = pb_store_take(store, jobs, 1, &take->result, NULL);
    return NULL;
}

static int waiting_changes(void)
{
    const struct pb_job_change *change;
    int n = 0;
    (void)pthread_mutex_lock(&store->lock);
    STAILQ_FOREACH(change, &store->changes, next)
    {
        n++;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return n;
}

/* The transaction with both starts is stored, but unanswered; then each start is tried alone. */
START_TEST(test_repeated_take_is_not_refused)
{
    struct one_take takes[2] = {{.result = 1}, {.result = 1}};
    answer_no_commit();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pb_job_store_find(store, i == 0 ? A : B, NULL, &takes[i].job), 0);
        ck_assert_int_eq(pb_job_move(&takes[i].job, PB_JOB_RUNNING, 10), 0);
    }
    pb_job_store_lock(store);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&takes[i].thread, NULL, take_one, &takes[i]), 0);
    while (waiting_changes() < 2)
        (void)usleep(1000);
    pb_job_store_unlock(store);
    lose_commit();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(takes[i].thread, NULL), 0);
        ck_assert_int_eq(takes[i].rc, 0);
        ck_assert_int_eq(takes[i].result, 0);
        pb_job_fini(&takes[i].job);
    }
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE status = 1 AND epoch = 1"), 2);
    drop_waiter();
}
END_TEST

static void *offer_one(void *user)
{
    struct one_take *offer = user;
    offer->rc = pb_store_offer(store, &offer->job, NULL);
    return NULL;
}

/* Otherwise the caller would offer the input again, with another id. */
START_TEST(test_repeated_offer_is_not_refused)
{
    struct one_take offers[2] = {{.rc = 1}, {.rc = 1}};
    answer_no_commit();
    execute("DELETE FROM jobs");
    for (int i = 0; i < 2; i++) {
        pb_job_init(&offers[i].job);
        (void)snprintf(offers[i].job.id, sizeof offers[i].job.id, "%s", i == 0 ? A : B);
        ck_assert_int_eq(
            pb_scene_manifest_set_input(&offers[i].job.manifest, i == 0 ? "/w/a" : "/w/b"), 0);
    }
    pb_job_store_lock(store);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&offers[i].thread, NULL, offer_one, &offers[i]), 0);
    while (waiting_changes() < 2)
        (void)usleep(1000);
    pb_job_store_unlock(store);
    lose_commit();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(offers[i].thread, NULL), 0);
        ck_assert_int_eq(offers[i].rc, 0);
        ck_assert_int_gt(offers[i].job.seq, 0);
        pb_job_fini(&offers[i].job);
    }
    ck_assert_int_eq(query("SELECT count(*) FROM jobs"), 2);
    drop_waiter();
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_take_of_a_scene_of_another_service_fails);
    tcase_add_test(tests, test_take_does_not_wait_for_others);
    tcase_add_test(tests, test_untake_waits_for_the_lost_take);
    tcase_add_test(tests, test_jobs_of_a_lost_take_wait_again);
    tcase_add_test(tests, test_nodes_do_not_choose_the_same_job_again);
    tcase_add_test(tests, test_repeated_take_is_not_refused);
    tcase_add_test(tests, test_repeated_offer_is_not_refused);
}

int main(void)
{
    return run_over_database("store_takes", connect_database, disconnect_database, add_tests);
}
