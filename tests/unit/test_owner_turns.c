/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * A process that owns the CPU and serves one session at a time, and jobs that wait for it. */
#include "config/config.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/device/owner.h"
#include "service/device/owner_client.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 64 };

static const char text[] = "compute: {device: cpu, memory: 64MiB}\n"
                           "pipelines:\n"
                           "  low: {input: {bands: {A: 1}}, products: [statistics: {}]}\n"
                           "  high: {priority: 7, input: {bands: {A: 1}}, products: [statistics: "
                           "{}]}\n";

static char directory[64], path[100];
static struct pb_config *config;
static struct pb_plan *whole, *pass;
static pid_t owner;
static int alive; /* the owner ends when it is closed */
static FILE *said;

static const struct pb_served_request request = {
    .side_px = SIDE,
    .in_slots = 2,
    .out_slots = 2,
    .workers = 1,
    .window_units = 1,
    .has_transform = 1,
    .transform = {0, 1, 0, 0, 0, -1},
    .n_sources = 1,
    .source = {{.w = SIDE, .h = SIDE, .n_bands = 1, .placed = 1, .map = {1, 1, 0, 0}}}};

static void start_owner(void)
{
    int in[2], err[2];
    ck_assert(pipe(in) == 0 && pipe(err) == 0);
    owner = fork();
    ck_assert_int_ge(owner, 0);
    if (owner == 0) {
        (void)close(in[1]);
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        (void)dup2(err[1], STDERR_FILENO);
        _exit(pb_owner_main("cpu", path, 1, 100));
    }
    (void)close(in[0]);
    (void)close(err[1]);
    alive = in[1];
    said = fdopen(err[0], "r");
}

static void begin(void)
{
    struct pb_err err = {0};
    struct pb_err_list errors = {0};
    (void)strcpy(directory, "/tmp/pb-turns-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/owner", directory);
    ck_assert_msg(pb_config_parse(text, strlen(text), "c", &pb_products, &errors, &config) == 0,
                  "%s", errors.err[0].msg);
    const struct pb_plan_request base = {
        .config = config, .pipeline = &config->pipelines[0], .device_index = -1};
    struct pb_served_tail none = {.data = NULL};
    ck_assert_msg(pb_plan_serve(&base, &request, &none, &err, &whole, &pass) == 0, "%s", err.msg);
    start_owner();
}

static void end(void)
{
    char command[100];
    int status;
    (void)close(alive);
    ck_assert_int_eq(waitpid(owner, &status, 0), owner);
    ck_assert_int_eq(status, 0);
    (void)fclose(said);
    pb_plan_destroy(whole);
    pb_config_destroy(config);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

struct job {
    const char *name, *pipeline;
    int fd;
    struct pb_owner_client client;
    struct pb_remote_session session;
    atomic_bool open;
    pthread_t thread;
};

static void *open_session(void *user)
{
    struct job *job = user;
    struct pb_err err = {0};
    const struct pb_owner_hello hello = {job->name, text, "c", job->pipeline};
    job->fd = pb_owner_connect(path, &hello, &err);
    ck_assert_msg(job->fd >= 0, "%s", err.msg);
    ck_assert_msg(pb_owner_client_begin(&job->client, job->fd, &err) == 0, "%s", err.msg);
    const struct pb_remote *remote = &job->client.remote;
    int rc = remote->open(remote->user, pass, &request, &(struct pb_served_tail){.data = NULL},
                          &err, &job->session);
    ck_assert_msg(rc == 0, "%s", err.msg);
    atomic_store(&job->open, true);
    return NULL;
}

static void start_job(struct job *job)
{
    ck_assert_int_eq(pthread_create(&job->thread, NULL, open_session, job), 0);
}

static void end_job(struct job *job)
{
    job->client.remote.close(job->client.remote.user, &job->session);
    pb_line_reader_fini(&job->client.lines);
    (void)close(job->fd);
}

static void until_said(const char *words)
{
    char line[300] = "";
    while (strstr(line, words) == NULL)
        ck_assert_ptr_nonnull(fgets(line, sizeof line, said));
}

START_TEST(job_of_a_higher_priority_precedes_waiting_jobs)
{
    static struct job first = {.name = "first", .pipeline = "low"},
                      low = {.name = "second", .pipeline = "low"},
                      high = {.name = "third", .pipeline = "high"};
    struct pb_owner_load load;
    open_session(&first);
    start_job(&low);
    until_said("job second: waits for other jobs on cpu");
    start_job(&high);
    until_said("job third: waits for other jobs on cpu");
    ck_assert(pb_owner_load_at(path, &load));
    ck_assert_int_eq(load.sessions, 3);
    end_job(&first);
    pthread_join(high.thread, NULL);
    ck_assert(atomic_load(&high.open) && !atomic_load(&low.open));
    end_job(&high);
    pthread_join(low.thread, NULL);
    end_job(&low);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owner_turns");
    TCase *tc = tcase_create("owner_turns");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, job_of_a_higher_priority_precedes_waiting_jobs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
