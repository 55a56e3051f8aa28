/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of nodes, their leases and requests. The server's clock does not wait for tests: rows
 * get earlier times. */
#include "config/base/clock.h"
#include "pipeline/publish/publish_root.h"
#include "service/jobs/nodes.h"

#include "store_suite.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEASE_MS 60000

static struct pb_job_store *a, *b; /* nodes of one store */
static const struct pb_node self = {.has_gpu = 1, .memory = 1 << 30};

static struct pb_job_store *open_node(const char *name)
{
    struct pb_err err = {0};
    char moved[4096];
    struct pb_job_store *store = NULL;
    place.node = name;
    ck_assert_msg(pb_job_store_open(&place, &err, moved, &store) == 0, "%s", err.msg);
    return store;
}

static int join(struct pb_job_store *store, const char *where, struct pb_err *err)
{
    char work[64], archive[64], quarantine[64], at[64];
    (void)snprintf(at, sizeof at, "%s", where);
    (void)snprintf(work, sizeof work, "/%s/work", where);
    (void)snprintf(archive, sizeof archive, "/%s/work/done", where);
    (void)snprintf(quarantine, sizeof quarantine, "/%s/quarantine", where);
    const struct pb_node node = {.place = at,
                                 .work = work,
                                 .archive = archive,
                                 .quarantine = quarantine,
                                 .lease_ms = LEASE_MS};
    return pb_nodes_join(store, &node, err);
}

static void begin(void)
{
    a = open_node("a");
    b = open_node("b");
    ck_assert_int_eq(join(a, "a", NULL), 0);
    ck_assert_int_eq(join(b, "b", NULL), 0);
    ck_assert_int_eq(pb_store_reap(a, 1, NULL), 0); /* the first pulse */
}

static void end(void)
{
    pb_job_store_close(a);
    pb_job_store_close(b);
}

static struct pb_job offer(const char *id)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    ck_assert_int_eq(pb_store_offer(a, &job, NULL), 0);
    return job;
}

static void take(struct pb_job_store *node, struct pb_job *job)
{
    struct pb_job *const jobs[] = {job};
    int result = 1;
    ck_assert_int_eq(pb_job_move(job, PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_store_take(node, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
}

static enum pb_job_status status_of(const struct pb_job *job)
{
    struct pb_job found;
    ck_assert_int_eq(pb_job_store_find(a, job->id, NULL, &found), 0);
    const enum pb_job_status status = found.status;
    pb_job_fini(&found);
    return status;
}

/* Makes the pulse so old that a reap moves it. */
static void age_pulse(void)
{
    change_rows("UPDATE pulse SET at_ms = at_ms - 3000");
}

START_TEST(test_session_ends_after_its_lease)
{
    struct pb_job lost = offer("aaaa"), kept = offer("bbbb");
    take(b, &lost);
    take(a, &kept);
    ck_assert_str_eq(lost.node, "b");
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000 WHERE node = 'b'");
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0); /* a node looked just now */
    age_pulse();
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 1);
    ck_assert_int_eq(status_of(&lost), PB_JOB_ACCEPTED);
    ck_assert_int_eq(status_of(&kept), PB_JOB_RUNNING);
    struct pb_job found;
    ck_assert_int_eq(pb_job_store_find(a, lost.id, NULL, &found), 0);
    ck_assert_int_eq(pb_job_shunned_at(&found, "b"), 0);
    pb_job_fini(&found);
    ck_assert_int_eq(pb_nodes_alive(a, &self, NULL), 0);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), -ESTALE);
    ck_assert_int_eq(pb_store_permit(b, lost.id, lost.epoch, NULL), -ESTALE);
    ck_assert_int_eq(pb_store_permit(a, kept.id, kept.epoch, NULL), 0);
    ck_assert_int_eq(join(b, "b", NULL), 0);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
    pb_job_fini(&lost);
    pb_job_fini(&kept);
}
END_TEST

START_TEST(test_report_renews_the_lease)
{
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000 WHERE node = 'b'");
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
}
END_TEST

START_TEST(test_outage_of_the_store_ends_no_session)
{
    struct pb_job job = offer("aaaa");
    take(b, &job);
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000");
    change_rows("UPDATE pulse SET at_ms = at_ms - 61000");
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
    ck_assert_int_eq(status_of(&job), PB_JOB_RUNNING);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_clock_set_back_ends_no_session)
{
    change_rows("UPDATE nodes SET seen_ms = seen_ms + 86400000");
    change_rows("UPDATE pulse SET at_ms = at_ms + 86400000");
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000 WHERE node = 'b'");
    age_pulse();
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 0);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), -ESTALE);
}
END_TEST

START_TEST(test_start_ends_the_earlier_session_of_the_node)
{
    struct pb_job job = offer("aaaa");
    take(b, &job);
    struct pb_job_store *again = open_node("b");
    ck_assert_int_eq(join(again, "b", NULL), 0);
    ck_assert_int_eq(pb_store_reap(again, 20, NULL), 1);
    ck_assert_int_eq(status_of(&job), PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), -ESTALE);
    pb_job_store_close(again);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_leave_ends_the_session_at_once)
{
    struct pb_nodes nodes;
    pb_nodes_leave(b);
    ck_assert_int_eq(pb_nodes_list(a, NULL, &nodes), 0);
    ck_assert(nodes.at[0].is_alive && !nodes.at[1].is_alive);
    pb_nodes_fini(&nodes);
    struct pb_job_store *twin = open_node("b");
    ck_assert_int_eq(join(twin, "elsewhere", NULL), 0);
    pb_job_store_close(twin);
}
END_TEST

START_TEST(test_name_of_another_service_is_refused)
{
    struct pb_err err = {0};
    struct pb_job_store *twin = open_node("b");
    ck_assert_int_lt(join(twin, "elsewhere", &err), 0);
    ck_assert_int_eq(err.code, PB_E_SERVICE_STATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "another pushbroomd is node b"));
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000 WHERE node = 'b'");
    ck_assert_int_eq(join(twin, "elsewhere", NULL), 0);
    pb_job_store_close(twin);
}
END_TEST

START_TEST(test_directory_of_another_node_is_refused)
{
    struct pb_err err = {0};
    const struct pb_node node = {.place = "c",
                                 .work = "/a/work",
                                 .archive = "/c/work/done",
                                 .quarantine = "/c/quarantine",
                                 .lease_ms = LEASE_MS};
    struct pb_job_store *c = open_node("c");
    ck_assert_int_lt(pb_nodes_join(c, &node, &err), 0);
    ck_assert_msg(strstr(err.msg, "node a of the job store has the same work") != NULL, "%s",
                  err.msg);
    ck_assert_int_eq(join(c, "c", NULL), 0);
    pb_job_store_close(c);
}
END_TEST

START_TEST(test_list_finds_the_home_of_an_input)
{
    struct pb_nodes nodes;
    struct pb_job job = offer("aaaa");
    take(b, &job);
    change_rows("UPDATE nodes SET session = 0 WHERE node = 'a'");
    ck_assert_int_eq(pb_nodes_list(b, NULL, &nodes), 0);
    ck_assert_uint_eq(nodes.n, 2);
    ck_assert_str_eq(nodes.at[0].name, "a");
    ck_assert(!nodes.at[0].is_alive && nodes.at[1].is_alive);
    ck_assert_int_eq(nodes.at[1].running, 1);
    ck_assert_str_eq(pb_nodes_home(&nodes, "/b/quarantine/x.tif")->name, "b");
    ck_assert_str_eq(pb_nodes_home(&nodes, "/a/work/done/x.tif")->name, "a");
    ck_assert_ptr_null(pb_nodes_home(&nodes, "/a/works/x.tif"));
    ck_assert_ptr_null(pb_nodes_home(&nodes, NULL));
    pb_nodes_fini(&nodes);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_request_is_taken_once)
{
    struct pb_node_request got[PB_NODE_REQUESTS_MAX];
    const struct pb_node_request request = {PB_REQUEST_RETRY, "20261121-082850-aaaa", "id"};
    struct pb_err err = {0};
    ck_assert_int_eq(pb_nodes_ask(a, "b", &request, NULL), 0);
    ck_assert_int_eq(pb_nodes_requests(a, NULL, got), 0);
    ck_assert_int_eq(pb_nodes_requests(b, NULL, got), 1);
    ck_assert_int_eq(got[0].kind, PB_REQUEST_RETRY);
    ck_assert_str_eq(got[0].job, request.job);
    ck_assert_str_eq(got[0].identity, "id");
    ck_assert_int_eq(pb_nodes_requests(b, NULL, got), 0);
    change_rows("UPDATE nodes SET session = 0 WHERE node = 'b'");
    ck_assert_int_lt(pb_nodes_ask(a, "b", &request, &err), 0);
    ck_assert_int_eq(err.code, PB_E_JOB_STATE);
}
END_TEST

static struct pb_nodes_news news; /* result of the last look */

static int look(struct pb_job_store *store)
{
    struct pb_err err = {0};
    pb_nodes_news_fini(&news);
    const int rc = pb_nodes_look(store, true, &err, &news);
    ck_assert_msg(rc >= 0, "%s", err.msg);
    return rc;
}

static void make_directory(const char *name, char out[PB_FILES_PATH_BYTES])
{
    ck_assert_int_eq(pb_files_join(out, directory, name), 0);
    ck_assert_int_eq(mkdir(out, 0755), 0);
}

static bool has_token(const char *products)
{
    return pb_publish_root_look(products, pb_nodes_root(a), NULL) == 0;
}

START_TEST(test_first_node_makes_the_token_of_products)
{
    struct pb_err err = {0};
    char one[PB_FILES_PATH_BYTES], two[PB_FILES_PATH_BYTES];
    make_directory("one", one);
    make_directory("two", two);
    ck_assert_int_eq(strlen(pb_nodes_root(a)), 36);
    ck_assert_str_eq(pb_nodes_root(b), pb_nodes_root(a));
    ck_assert(!has_token(one));
    ck_assert_msg(pb_nodes_make_root(a, one, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_nodes_make_root(b, two, &err) == 0, "%s", err.msg);
    ck_assert(has_token(one) && !has_token(two));
    char path[PB_FILES_PATH_BYTES];
    ck_assert_int_eq(pb_files_join(path, one, PB_PUBLISH_ROOT_FILE), 0);
    ck_assert_int_eq(unlink(path), 0);
    struct pb_job_store *c = open_node("c");
    ck_assert_int_eq(join(c, "c", NULL), 0);
    ck_assert_int_eq(pb_nodes_make_root(c, one, NULL), 0);
    ck_assert(!has_token(one));
    pb_job_store_close(c);
}
END_TEST

START_TEST(test_failed_token_is_made_by_the_next_node)
{
    struct pb_err err = {0};
    char one[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    ck_assert_int_eq(pb_files_join(one, directory, "one"), 0);
    ck_assert_int_eq(pb_nodes_make_root(a, one, &err), -ENODEV);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_ROOT);
    make_directory("one", one);
    ck_assert_int_eq(pb_files_join(path, one, PB_PUBLISH_ROOT_FILE), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert(fputs("another\n", file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(pb_nodes_make_root(a, one, NULL), -ENODEV);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(pb_publish_root_make(one, pb_nodes_root(b), NULL), 0); /* b ended after this */
    ck_assert_int_eq(pb_nodes_make_root(a, one, NULL), 0);
    ck_assert(has_token(one));
}
END_TEST

START_TEST(test_token_needs_products_of_the_last_jobs)
{
    struct pb_err err = {0};
    char one[PB_FILES_PATH_BYTES], scene[PB_FILES_PATH_BYTES];
    make_directory("one", one);
    ck_assert_int_eq(pb_files_join(scene, one, "scene"), 0);
    struct pb_job job = offer("aaaa");
    take(a, &job);
    ck_assert_int_eq(pb_job_set(&job.directory, scene), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_SUCCESSFUL, pb_clock_wall_ms()), 0);
    ck_assert_msg(pb_store_finish(a, &job, &err) >= 0, "%s", err.msg);
    ck_assert_int_lt(pb_nodes_make_root(b, one, &err), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_ROOT);
    ck_assert_msg(strstr(err.msg, pb_nodes_root(a)) != NULL, "%s", err.msg);
    ck_assert(!has_token(one));
    ck_assert_int_eq(mkdir(scene, 0755), 0); /* it is mounted */
    ck_assert_int_eq(pb_nodes_make_root(b, one, &err), 0);
    ck_assert(has_token(one));
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_look_sees_changes_of_other_nodes)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    ck_assert_int_eq(look(b), 1); /* the first one only notes where the journal ends */
    ck_assert_uint_eq(news.n, 0);
    ck_assert_int_eq(look(b), 0);
    const uint64_t before = pb_store_changes(b);
    struct pb_job job = offer("aaaa"), other = offer("bbbb");
    ck_assert_int_eq(look(b), 1);
    ck_assert(pb_store_changes(b) != before);
    ck_assert_uint_eq(news.n, 2);
    ck_assert_str_eq(news.jobs[0].id, job.id);
    ck_assert_str_eq(news.jobs[1].id, other.id);
    ck_assert(!news.has_requests && !news.has_more);
    pb_store_counts(b, counts);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], 2);
    ck_assert_int_eq(look(b), 0);
    ck_assert_int_eq(look(a), 1);
    pb_job_fini(&job);
    pb_job_fini(&other);
}
END_TEST

START_TEST(test_look_without_jobs_leaves_them_to_the_next)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    struct pb_err err = {0};
    (void)look(b);
    struct pb_job job = offer("aaaa");
    pb_nodes_news_fini(&news);
    ck_assert_int_eq(pb_nodes_look(b, false, &err, &news), 1);
    ck_assert_uint_eq(news.n, 0);
    pb_store_counts(b, counts);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], 1);
    ck_assert_int_eq(look(b), 1); /* a client may have connected meanwhile */
    ck_assert_uint_eq(news.n, 1);
    ck_assert_int_eq(look(b), 0);
    take(a, &job);
    change_rows("UPDATE jobs SET set_id = 'set'");
    ck_assert_int_eq(pb_nodes_look(b, false, &err, &news), 1);
    ck_assert_uint_eq(news.n, 1); /* files may wait for its end */
    pb_job_fini(&job);
}
END_TEST

static bool any(void *user, const struct pb_job *job)
{
    (void)job;
    return user == NULL || strcmp(job->id, user) == 0;
}

/* Returns the last letter of the id of the first job, or '-'. */
static char next_of(struct pb_job_store *reader, void *id)
{
    struct pb_job_place after = {0};
    struct pb_job job;
    const int rc = pb_job_store_next(reader, &after, 1000, any, id, NULL, &job);
    ck_assert_int_ge(rc, 0);
    const char letter = rc > 0 ? job.id[strlen(job.id) - 1] : '-';
    if (rc > 0)
        pb_job_fini(&job);
    return letter;
}

START_TEST(test_readers_reserve_different_jobs)
{
    struct pb_err err = {0};
    struct pb_job_store *one = NULL, *two = NULL;
    char last[] = "20261121-082850-hhhh";
    for (char c = 'a'; c <= 'h'; c++) {
        const char id[] = {c, c, c, c, '\0'};
        struct pb_job job = offer(id);
        pb_job_fini(&job);
    }
    ck_assert_msg(pb_job_store_open_reader(&place, &err, &one) == 0, "%s", err.msg);
    ck_assert_msg(pb_job_store_open_reader(&place, &err, &two) == 0, "%s", err.msg);
    pb_job_store_reserve(one, 1);
    ck_assert_int_eq(next_of(one, NULL), 'a'); /* reserves b and c as well */
    ck_assert_int_eq(next_of(two, NULL), 'a'); /* it reserves none */
    pb_job_store_reserve(two, 1);
    ck_assert_int_eq(next_of(two, NULL), 'd');
    ck_assert(!pb_job_store_unreserve(two));
    ck_assert_int_eq(next_of(one, last), 'h');
    pb_job_store_reserve(two, 1);
    ck_assert_int_eq(next_of(two, last), '-');
    ck_assert(pb_job_store_unreserve(two)); /* another node has what it wanted */
    ck_assert(!pb_job_store_unreserve(one));
    pb_job_store_reserve(two, 1);
    ck_assert_int_eq(next_of(two, NULL), 'a');
    pb_job_store_close(one); /* reservations end with the connection */
    pb_job_store_close(two);
}
END_TEST

START_TEST(test_look_of_many_events_has_more)
{
    char id[5];
    (void)look(b);
    for (int i = 0; i < 260; i++) {
        (void)snprintf(id, sizeof id, "%c%c%c%c", 'a' + i / 26 % 26, 'a' + i % 26, 'a', 'a');
        struct pb_job job = offer(id);
        pb_job_fini(&job);
    }
    ck_assert_int_eq(look(b), 1);
    ck_assert_uint_eq(news.n, 256);
    ck_assert(news.has_more);
    ck_assert_int_eq(look(b), 1);
    ck_assert_uint_eq(news.n, 4);
    ck_assert(!news.has_more);
    ck_assert_int_eq(look(b), 0);
}
END_TEST

START_TEST(test_look_shows_waiting_requests)
{
    struct pb_node_request got[PB_NODE_REQUESTS_MAX];
    const struct pb_node_request request = {PB_REQUEST_RETRY, "20261121-082850-aaaa", "id"};
    ck_assert_int_eq(pb_nodes_ask(a, "b", &request, NULL), 0);
    (void)look(a);
    ck_assert(!news.has_requests);
    (void)look(b);
    ck_assert(news.has_requests);
    ck_assert_int_eq(pb_nodes_requests(b, NULL, got), 1);
    (void)look(b);
    ck_assert(!news.has_requests);
}
END_TEST

/* Waits for what the server sends. Returns pb_nodes_listener_read. */
static int hear(struct pb_nodes_listener *listener)
{
    struct pollfd fd = {.fd = pb_nodes_listener_fd(listener), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    return pb_nodes_listener_read(listener);
}

START_TEST(test_changes_notify_other_nodes)
{
    const struct pb_node_request request = {PB_REQUEST_RETRY, "20261121-082850-aaaa", "id"};
    struct pb_nodes_listener *of_a = NULL, *of_b = NULL;
    struct pb_err err = {0};
    ck_assert_msg(pb_nodes_listen(a, &err, &of_a) == 0, "%s", err.msg);
    ck_assert_msg(pb_nodes_listen(b, &err, &of_b) == 0, "%s", err.msg);
    struct pb_job job = offer("aaaa"); /* its node is a */
    ck_assert_int_eq(hear(of_b), 1);
    ck_assert_int_eq(hear(of_a), 0); /* its own */
    ck_assert_int_eq(pb_nodes_listener_read(of_b), 0);
    ck_assert_int_eq(pb_nodes_alive(a, &self, NULL), 0); /* no change for others */
    ck_assert_int_eq(pb_nodes_ask(b, "a", &request, NULL), 0);
    ck_assert_int_eq(hear(of_a), 1);
    ck_assert_int_eq(hear(of_b), 0);
    change_rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN"
                " pushbroom' AND application_name = 'b' AND datname = current_database()");
    int rc; /* the server sends the reason first */
    while ((rc = hear(of_b)) == 0)
        ;
    ck_assert_int_lt(rc, 0);
    pb_nodes_listener_close(of_a);
    pb_nodes_listener_close(of_b);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_cancel_for_an_ended_node_is_taken_by_another)
{
    struct pb_node_request got[PB_NODE_REQUESTS_MAX];
    struct pb_job job = offer("aaaa");
    take(b, &job);
    struct pb_node_request request = {PB_REQUEST_CANCEL, "", ""};
    (void)snprintf(request.job, sizeof request.job, "%s", job.id);
    ck_assert_int_eq(pb_nodes_ask(a, "b", &request, NULL), 0);
    request.kind = PB_REQUEST_RETRY; /* needs the directories of b */
    ck_assert_int_eq(pb_nodes_ask(a, "b", &request, NULL), 0);
    ck_assert_int_eq(pb_nodes_requests(a, NULL, got), 0);
    change_rows("UPDATE nodes SET session = 0 WHERE node = 'b'");
    (void)look(a);
    ck_assert(!news.has_requests); /* the job is still stored as running on b */
    ck_assert_int_eq(pb_nodes_requests(a, NULL, got), 0);
    ck_assert_int_eq(pb_store_reap(a, 20, NULL), 1);
    (void)look(a);
    ck_assert(news.has_requests);
    ck_assert_int_eq(pb_nodes_requests(a, NULL, got), 1);
    ck_assert_int_eq(got[0].kind, PB_REQUEST_CANCEL);
    ck_assert_str_eq(got[0].job, job.id);
    ck_assert_int_eq(join(b, "b", NULL), 0);
    ck_assert_int_eq(pb_nodes_requests(b, NULL, got), 1);
    ck_assert_int_eq(got[0].kind, PB_REQUEST_RETRY);
    pb_job_fini(&job);
}
END_TEST

static bool sees_memory(void *user, const struct pb_job *job)
{
    (void)user;
    return job->error.memory_bytes == 1 << 20;
}

static bool needs_gpu(const struct pb_job *job)
{
    struct pb_job found;
    ck_assert_int_eq(pb_job_store_find(a, job->id, NULL, &found), 0);
    const bool needs = found.needs_gpu;
    pb_job_fini(&found);
    return needs;
}

static void set_needs(struct pb_job_store *store, bool gpu)
{
    struct pb_store_needs *needs = calloc(1, sizeof *needs + sizeof needs->at[0]);
    ck_assert_ptr_nonnull(needs);
    needs->gpu = gpu;
    needs->n = 1; /* jobs without a pipeline */
    ck_assert_int_eq(pb_store_set_needs(store, needs, NULL), 0);
}

START_TEST(test_job_needs_what_its_node_demands)
{
    struct pb_nodes nodes;
    struct pb_job_place after = {0};
    struct pb_job next;
    set_needs(a, true);
    struct pb_job job = offer("aaaa");
    ck_assert(needs_gpu(&job));
    set_needs(b, false); /* not a job of b */
    ck_assert(needs_gpu(&job));
    set_needs(a, false);
    ck_assert(!needs_gpu(&job));
    pb_job_fail_words(&job, "plan.memory", "too little", NULL);
    job.error.memory_bytes = 1 << 20;
    ck_assert_int_eq(pb_store_finish(a, &job, NULL), 0);
    ck_assert_int_eq(pb_job_store_next(a, &after, 1, sees_memory, NULL, NULL, &next), 1);
    ck_assert_int_eq(next.error.memory_bytes, 1 << 20);
    pb_job_fini(&next);
    ck_assert_int_eq(pb_nodes_alive(b, &self, NULL), 0);
    ck_assert_int_eq(pb_nodes_list(a, NULL, &nodes), 0);
    ck_assert(nodes.at[0].has_gpu < 0 && nodes.at[0].memory == 0); /* it did not report yet */
    ck_assert(nodes.at[1].has_gpu == 1 && nodes.at[1].memory == 1 << 30);
    pb_nodes_fini(&nodes);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_drain_is_seen_by_other_nodes)
{
    struct pb_nodes nodes;
    for (int drains = 0; drains < 2; drains++) {
        ck_assert_int_eq(pb_nodes_alive(b, &(struct pb_node){.drains = drains == 1}, NULL), 0);
        ck_assert_int_eq(pb_nodes_list(a, NULL, &nodes), 0);
        ck_assert(!nodes.at[0].drains && nodes.at[1].drains == (drains == 1));
        pb_nodes_fini(&nodes);
    }
    ck_assert_int_eq(join(b, "b", NULL), 0); /* a restart ends it */
    ck_assert_int_eq(pb_nodes_list(a, NULL, &nodes), 0);
    ck_assert(!nodes.at[1].drains);
    pb_nodes_fini(&nodes);
}
END_TEST

static struct pb_node_inbox held; /* result of the last hold */

/* Returns true if the node watches the inbox of the owner and has not to give it back. */
static bool holds(struct pb_job_store *node, const char *owner, bool is_busy)
{
    struct pb_err err = {0};
    held = (struct pb_node_inbox){.path = "/inbox", .owner = owner, .is_busy = is_busy};
    ck_assert_msg(pb_nodes_hold(node, &held, &err) == 0, "%s", err.msg);
    return held.is_held && !held.is_wanted;
}

START_TEST(test_inbox_is_watched_by_one_node)
{
    ck_assert(holds(a, NULL, false));
    ck_assert(holds(a, NULL, false));
    ck_assert(!holds(b, NULL, false)); /* both have it in their configuration */
    ck_assert_str_eq(held.holder, "a");
    change_rows("UPDATE nodes SET seen_ms = seen_ms - 61000 WHERE node = 'a'");
    ck_assert(!holds(b, NULL, false)); /* before its end is stored */
    age_pulse();
    ck_assert_int_eq(pb_store_reap(b, 20, NULL), 0);
    ck_assert(holds(b, NULL, false));
    ck_assert(!holds(a, NULL, false)); /* it slept */
    ck_assert_int_eq(join(a, "a", NULL), 0);
    ck_assert(!holds(a, NULL, false));
}
END_TEST

START_TEST(test_inbox_returns_to_its_owner)
{
    ck_assert(!holds(b, "a", false)); /* before a takes it */
    ck_assert(holds(a, "a", false));
    pb_nodes_leave(a);
    ck_assert(holds(b, "a", false));
    ck_assert_int_eq(join(a, "a", NULL), 0);
    ck_assert(!holds(a, "a", false));
    ck_assert(!holds(b, "a", true)); /* it still moves files */
    ck_assert(held.is_held && held.is_wanted);
    ck_assert(!holds(a, "a", false));
    ck_assert(!holds(b, "a", false));
    ck_assert(!held.is_held && !held.is_wanted);
    ck_assert(holds(a, "a", false));
}
END_TEST

START_TEST(test_node_that_drains_leaves_its_inbox)
{
    ck_assert(holds(a, "a", false));
    ck_assert_int_eq(pb_nodes_alive(a, &(struct pb_node){.drains = true}, NULL), 0);
    ck_assert(!holds(b, "a", false));
    ck_assert(!holds(a, "a", false));
    ck_assert(holds(b, "a", false));
    ck_assert(!holds(a, "a", false));
    ck_assert_int_eq(pb_nodes_alive(a, &self, NULL), 0);
    ck_assert(!holds(b, "a", false));
    ck_assert(holds(a, "a", false));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_session_ends_after_its_lease);
    tcase_add_test(tests, test_report_renews_the_lease);
    tcase_add_test(tests, test_outage_of_the_store_ends_no_session);
    tcase_add_test(tests, test_clock_set_back_ends_no_session);
    tcase_add_test(tests, test_start_ends_the_earlier_session_of_the_node);
    tcase_add_test(tests, test_leave_ends_the_session_at_once);
    tcase_add_test(tests, test_name_of_another_service_is_refused);
    tcase_add_test(tests, test_directory_of_another_node_is_refused);
    tcase_add_test(tests, test_list_finds_the_home_of_an_input);
    tcase_add_test(tests, test_request_is_taken_once);
    tcase_add_test(tests, test_first_node_makes_the_token_of_products);
    tcase_add_test(tests, test_failed_token_is_made_by_the_next_node);
    tcase_add_test(tests, test_token_needs_products_of_the_last_jobs);
    tcase_add_test(tests, test_look_sees_changes_of_other_nodes);
    tcase_add_test(tests, test_look_without_jobs_leaves_them_to_the_next);
    tcase_add_test(tests, test_readers_reserve_different_jobs);
    tcase_add_test(tests, test_look_of_many_events_has_more);
    tcase_add_test(tests, test_look_shows_waiting_requests);
    tcase_add_test(tests, test_changes_notify_other_nodes);
    tcase_add_test(tests, test_cancel_for_an_ended_node_is_taken_by_another);
    tcase_add_test(tests, test_job_needs_what_its_node_demands);
    tcase_add_test(tests, test_drain_is_seen_by_other_nodes);
    tcase_add_test(tests, test_node_that_drains_leaves_its_inbox);
    tcase_add_test(tests, test_inbox_is_watched_by_one_node);
    tcase_add_test(tests, test_inbox_returns_to_its_owner);
}

int main(void)
{
    return run_over_database("nodes", begin, end, add_tests);
}
