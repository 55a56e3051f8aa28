/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Commands that use the service: submit, cancel, retry, drain, metrics; status and watching are in
 * cli_status.c. */
#include "config/base/clock.h"
#include "config/units.h"
#include "service/cli/cli.h"
#include "service/base/files.h"
#include "service/cli/cli_service.h"
#include "config/base/json_path.h"
#include "service/status/status.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIST_MAX = 1000, /* maximum that job.list accepts */
    /* A user's other clients need room for their changes. */
    LANES_MAX = PB_STATUS_USER_CALLS_MAX / 2,
    /* Pauses after service.busy: 50 ms, doubled up to 3.2 s, 9.6 s in all. */
    BUSY_TRIES = 8,
    BUSY_FIRST_MS = 50,
    BUSY_LAST_MS = 3200,
    DRAIN_LOOK_MS = 500 /* time between questions how many jobs run */
};

/* Returns -1 if the option does not exist. */
static int take_option(const char *command, struct cli_service_options *o, int c)
{
    char *end;
    switch (c) {
    case 's':
        o->socket = optarg;
        break;
    case 'p':
        o->pipeline = optarg;
        break;
    case 'e':
        o->expect = strtol(optarg, &end, 10);
        if (end == optarg || *end != '\0' || o->expect < 0)
            return cli_usage(command, "--expect wants a number of jobs, not '%s'", optarg);
        break;
    case 'n':
        o->dry_run = true;
        break;
    case 'l':
        cli_list_wide();
        break;
    case 'P':
        o->has_priority = true;
        o->priority = strtol(optarg, &end, 10);
        if (end == optarg || *end != '\0' || o->priority < -100 || o->priority > 100)
            return cli_usage(command, "--priority wants a whole number from -100 to 100, not '%s'",
                             optarg);
        break;
    case 'f':
        o->failed = true;
        break;
    case 'S':
        if (pb_units_duration(optarg, &o->since_ms) != 0 || o->since_ms <= 0)
            return cli_usage(command, "--since wants a duration such as 1d or 30m, not '%s'",
                             optarg);
        break;
    case 'j':
        o->json = true;
        break;
    case 'v':
        o->verbose = true;
        break;
    case 'T':
        o->textfile = optarg;
        break;
    case 'w':
        o->wait = true;
        break;
    case 'W':
        o->watch = true;
        break;
    case 'a':
        o->all = true;
        break;
    case 'i':
        o->until_idle = true;
        break;
    case 'N':
        o->now = true;
        break;
    case 'o':
        o->off = true;
        break;
    case 'x':
        o->no_wait = true;
        break;
    default:
        return -1;
    }
    return CLI_DONE;
}

int cli_service_parse(const char *command, int argc, char **argv, struct cli_service_options *o)
{
    static const struct option longs[] = {{"socket", 1, 0, 's'},
                                          {"json", 0, 0, 'j'},
                                          {"pipeline", 1, 0, 'p'},
                                          {"wait", 0, 0, 'w'},
                                          {"watch", 0, 0, 'W'},
                                          {"all", 0, 0, 'a'},
                                          {"until-idle", 0, 0, 'i'},
                                          {"expect", 1, 0, 'e'},
                                          {"textfile", 1, 0, 'T'},
                                          {"failed", 0, 0, 'f'},
                                          {"since", 1, 0, 'S'},
                                          {"priority", 1, 0, 'P'},
                                          {"dry-run", 0, 0, 'n'},
                                          {"wide", 0, 0, 'l'},
                                          {"verbose", 0, 0, 'v'},
                                          {"now", 0, 0, 'N'},
                                          {"off", 0, 0, 'o'},
                                          {"no-wait", 0, 0, 'x'},
                                          {0, 0, 0, 0}};
    static const char *const of_submit = "sjpwP", *const of_status = "sjWaiefSplv",
                             *const of_again = "sjSpPn", *const of_metrics = "sjT",
                             *const of_lists = "sjfSp", *const of_drain = "sjNox",
                             *const others = "sj";
    bool lists = strcmp(command, "retry") == 0 || strcmp(command, "quarantine") == 0;
    const char *allowed = strcmp(command, "submit") == 0    ? of_submit
                          : strcmp(command, "status") == 0  ? of_status
                          : strcmp(command, "again") == 0   ? of_again
                          : strcmp(command, "metrics") == 0 ? of_metrics
                          : strcmp(command, "drain") == 0   ? of_drain
                          : lists                           ? of_lists
                                                            : others;
    struct option mine[sizeof longs / sizeof longs[0]] = {{0}};
    for (size_t i = 0, n = 0; longs[i].name != NULL; i++)
        if (strchr(allowed, longs[i].val) != NULL)
            mine[n++] = longs[i];
    const char *letters = strchr(allowed, 'v') ? ":p:v" : strchr(allowed, 'p') ? ":p:" : ":";
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, letters, mine, NULL)) != -1;) {
        int rc = take_option(command, o, c);
        if (rc != CLI_DONE)
            return rc < 0 ? cli_bad_option(command, argv, c, mine) : rc;
    }
    if ((o->until_idle || o->expect > 0) && !o->watch)
        return cli_usage(command, "--until-idle and --expect need --watch");
    if (o->watch && (o->failed || o->pipeline != NULL))
        return cli_usage(command, "--watch shows all jobs; it excludes --failed and --pipeline");
    if (o->watch && o->since_ms > 0 && (o->expect == 0 || optind < argc))
        return cli_usage(command, "--watch takes --since with --expect only, and without a JOB");
    o->words = argv + optind;
    o->n_words = argc - optind;
    if (o->verbose && (o->json || o->watch || o->n_words > 0))
        return cli_usage(command, "--verbose excludes --json, --watch and a JOB");
    return CLI_DONE;
}

int cli_service_open(const struct cli_service_options *o, struct pb_client **out_client)
{
    struct pb_err err = {0};
    if (pb_client_open(o->socket, CLI_TIMEOUT_MS, &err, out_client) == 0)
        return CLI_DONE;
    cli_print_err(&err);
    return CLI_UNREACHABLE;
}

int cli_service_exit(const struct pb_err *err)
{
    return cli_service_exit_of(NULL, err);
}

int cli_service_exit_of(const char *job, const struct pb_err *err)
{
    cli_print_err_of(job, err);
    return err->code == PB_E_SERVICE_UNREACHABLE || err->code == PB_E_SERVICE_PROTOCOL
               ? CLI_UNREACHABLE
               : CLI_JOB_FAILED;
}

/* Pauses after a reply that is service.busy, which means that nothing was done. Returns true if the
 * request may be sent again. tries: count of earlier pauses. */
static bool is_sent_again(struct pb_client *client, const struct pb_err *err, int tries)
{
    int pause_ms = BUSY_FIRST_MS;
    if (err->code != PB_E_SERVICE_BUSY || tries == BUSY_TRIES)
        return false;
    for (int i = 0; i < tries && pause_ms < BUSY_LAST_MS; i++)
        pause_ms *= 2;
    (void)poll(NULL, 0, pause_ms);
    return pb_client_reopen(client, NULL) == 0;
}

int cli_service_call(struct pb_client *client, const char *method, const char *params,
                     struct pb_err *err, struct pb_json_value **out_reply,
                     const struct pb_json_value **out_result)
{
    for (int i = 0;; i++) {
        *err = (struct pb_err){0};
        const int rc = pb_client_call(client, method, params, err, out_reply, out_result);
        if (rc >= 0 || !is_sent_again(client, err, i))
            return rc;
    }
}

/* Sends the method with the parameters {"id": id}. */
static int ask_change(struct pb_client *client, const char *method, const char *id,
                      struct pb_err *err)
{
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "id", id);
    pb_json_end(params);
    int rc = pb_client_send(client, method, pb_json_text(params, NULL), err);
    pb_json_destroy(params);
    return rc;
}

/* A connection with at most one change that is not answered yet. */
struct lane {
    struct pb_client *client;
    const char *method, *id; /* id: NULL = no change */
    int sent;                /* result of ask_change, which may have filled err */
    struct pb_err err;
};

static void send_change(struct lane *lane)
{
    lane->err = (struct pb_err){0};
    lane->sent = ask_change(lane->client, lane->method, lane->id, &lane->err);
}

/* Waits for the reply; sends the change again while the user has too many others. */
static int receive_change(struct lane *lane, struct pb_json_value **out_reply,
                          const struct pb_json_value **out_job)
{
    for (int i = 0;; i++) {
        int rc = lane->sent;
        rc = rc < 0 ? rc : pb_client_receive(lane->client, &lane->err, out_reply, out_job);
        if (rc >= 0 || !is_sent_again(lane->client, &lane->err, i))
            return rc;
        send_change(lane);
    }
}

/* Waits for the reply and prints it. */
static int take_change(struct lane *lane, const struct cli_service_options *o)
{
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    int rc = CLI_DONE;
    if (receive_change(lane, &reply, &job) < 0)
        rc = cli_service_exit_of(lane->id, &lane->err);
    else if (o->json)
        cli_put_json(job);
    else
        cli_job_line(job);
    pb_json_release(reply);
    return rc;
}

int cli_job_change(struct pb_client *client, const struct cli_service_options *o,
                   const char *method, const char *id)
{
    struct lane lane = {.client = client, .method = method, .id = id};
    send_change(&lane);
    return take_change(&lane, o);
}

/* Reads a page of a list: the jobs older than `before` (NULL: from the newest on). */
static int read_page(struct pb_client *client, const struct cli_service_options *o,
                     const char *status, const char *before, int64_t limit, struct pb_err *err,
                     struct pb_json_value **out_reply)
{
    const struct pb_json_value *result = NULL;
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_int(params, "limit", limit < LIST_MAX ? limit : LIST_MAX);
    pb_json_string(params, "fields", "brief");
    if (before != NULL)
        pb_json_string(params, "before", before);
    if (o->failed || status != NULL)
        pb_json_string(params, "status", status != NULL ? status : "failed");
    if (o->since_ms > 0)
        pb_json_int(params, "since_ms", pb_clock_wall_ms() - o->since_ms);
    if (o->pipeline != NULL)
        pb_json_string(params, "pipeline", o->pipeline);
    pb_json_end(params);
    int rc =
        cli_service_call(client, "job.list", pb_json_text(params, NULL), err, out_reply, &result);
    pb_json_destroy(params);
    return rc;
}

/* Adds the jobs of a page; takes the reply. */
static int add_page(struct cli_jobs *jobs, struct pb_json_value *reply)
{
    const struct pb_json_value *result = pb_json_get(reply, "result", NULL);
    const struct pb_json_value *list = pb_json_get(result, "jobs", NULL);
    const size_t n = pb_json_count(list);
    struct pb_json_value **replies =
        realloc(jobs->reply, (jobs->n_replies + 1) * sizeof(struct pb_json_value *));
    jobs->reply = replies ? replies : jobs->reply;
    const struct pb_json_value **job =
        realloc(jobs->job, (jobs->n + n + 1) * sizeof(const struct pb_json_value *));
    jobs->job = job ? job : jobs->job;
    if (replies == NULL || job == NULL) {
        pb_json_release(reply);
        return -ENOMEM;
    }
    replies[jobs->n_replies++] = reply;
    if (jobs->old == NULL && pb_json_get_text(result, "as_of") != NULL)
        jobs->old = result;
    for (size_t i = 0; i < n; i++)
        job[jobs->n++] = pb_json_at(list, i);
    return 0;
}

int cli_jobs_read(struct pb_client *client, const struct cli_service_options *o, const char *status,
                  int64_t limit, bool may_be_old, struct pb_err *err, struct cli_jobs *out)
{
    size_t before = 0;
    int rc = 0;
    *out = (struct cli_jobs){.n = 0};
    do {
        struct pb_json_value *reply = NULL;
        const char *last = out->n > 0 ? pb_json_get_text(out->job[out->n - 1], "id") : NULL;
        before = out->n;
        rc = read_page(client, o, status, last, limit - (int64_t)out->n, err, &reply);
        if (rc >= 0 && add_page(out, reply) != 0)
            rc = pb_fail(err, PB_E_MEMORY, "out of memory for the list of jobs");
        if (rc >= 0 && out->old != NULL && !may_be_old)
            rc = pb_fail(err, PB_E_SERVICE_STATE,
                         "the job store does not answer, and its last list is %lld s old; try "
                         "again when 'pushbroom status' shows no age",
                         (long long)cli_job_number(out->old, "age_s"));
    } while (rc >= 0 && out->n - before == LIST_MAX && (int64_t)out->n < limit);
    if (rc < 0)
        cli_jobs_release(out);
    return rc;
}

void cli_jobs_release(struct cli_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n_replies; i++)
        pb_json_release(jobs->reply[i]);
    free(jobs->reply);
    free(jobs->job);
    *jobs = (struct cli_jobs){.n = 0};
}

/* Connections on which the service works at the same time. */
struct lanes {
    const struct cli_service_options *o;
    struct lane lane[LANES_MAX];
    size_t n, next;
    int rc;
};

static void finish_lane(struct lanes *lanes, struct lane *lane)
{
    if (lane->id == NULL)
        return;
    int one = take_change(lane, lanes->o);
    if (one != CLI_DONE && lanes->rc != CLI_UNREACHABLE)
        lanes->rc = one;
    lane->id = NULL;
}

/* Opens connections in addition to the first one, until one is refused. */
static void open_lanes(struct lanes *lanes, struct pb_client *first, size_t n_jobs)
{
    lanes->lane[0].client = first;
    for (lanes->n = 1; lanes->n < LANES_MAX && lanes->n < n_jobs; lanes->n++) {
        struct lane *lane = &lanes->lane[lanes->n];
        if (pb_client_open(lanes->o->socket, CLI_TIMEOUT_MS, NULL, &lane->client) != 0)
            break;
    }
}

/* Replies are printed in the order of the jobs. */
static void change_each(struct lanes *lanes, const char *method, const struct cli_jobs *jobs)
{
    for (size_t i = jobs->n; i > 0 && lanes->rc != CLI_UNREACHABLE; i--) { /* oldest first */
        struct lane *lane = &lanes->lane[lanes->next++ % lanes->n];
        finish_lane(lanes, lane);
        lane->method = method;
        lane->id = cli_job_text(jobs->job[i - 1], "id");
        send_change(lane);
    }
    for (size_t i = 0; i < lanes->n; i++)
        finish_lane(lanes, &lanes->lane[lanes->next++ % lanes->n]);
}

bool cli_job_is_scene(const struct pb_json_value *job)
{
    return cli_job_text(job, "archive")[0] != '\0' && cli_job_text(job, "again_of")[0] == '\0';
}

int cli_job_change_listed(struct pb_client *client, const struct cli_service_options *o,
                          const char *method, bool (*wanted)(const struct pb_json_value *job))
{
    struct pb_err err = {0};
    struct cli_jobs jobs;
    struct lanes lanes = {.o = o, .rc = CLI_DONE};
    size_t n = 0;
    if (cli_jobs_read(client, o, NULL, CLI_JOBS_ALL, false, &err, &jobs) < 0)
        return cli_service_exit(&err);
    for (size_t i = 0; i < jobs.n; i++)
        if (!cli_job_is_scene(jobs.job[i]) && (wanted == NULL || wanted(jobs.job[i])))
            jobs.job[n++] = jobs.job[i];
    jobs.n = n;
    open_lanes(&lanes, client, n);
    change_each(&lanes, method, &jobs);
    if (n == 0 && !o->json)
        puts("there are no such jobs");
    for (size_t i = 1; i < lanes.n; i++)
        pb_client_close(lanes.lane[i].client);
    cli_jobs_release(&jobs);
    return lanes.rc;
}

static int job_command(const char *command, const char *method, int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    int rc = cli_service_parse(command, argc, argv, &o);
    bool retries = strcmp(command, "retry") == 0;
    if (rc == CLI_DONE && !o.failed && (o.since_ms > 0 || o.pipeline != NULL))
        rc = cli_usage(command, "--since and --pipeline need --failed");
    if (rc == CLI_DONE && o.failed == (o.n_words > 0))
        rc = cli_usage(command, o.failed ? "name JOBs, or --failed" : "which JOB?%s",
                       retries ? " --failed takes all that failed" : "");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (client != NULL && rc == CLI_DONE && o.failed)
        rc = cli_job_change_listed(client, &o, method, NULL);
    for (int i = 0; client != NULL && rc != CLI_UNREACHABLE && i < o.n_words; i++) {
        int one = cli_job_change(client, &o, method, o.words[i]);
        rc = one != CLI_DONE ? one : rc; /* the other jobs are processed anyway */
    }
    pb_client_close(client);
    return rc;
}

int cli_cancel(int argc, char **argv)
{
    return job_command("cancel", "job.cancel", argc, argv);
}

int cli_retry(int argc, char **argv)
{
    return job_command("retry", "job.retry", argc, argv);
}

/* --- drain ----------------------------------------------------------------------------------- */

static void print_runs(int64_t runs)
{
    if (runs > 0)
        printf("%lld job%s, no other begins\n", (long long)runs, runs == 1 ? " runs" : "s run");
    else
        puts("nothing runs, and no job begins; 'pushbroom drain --off' or a restart ends that");
}

/* Waits until nothing runs; takes the reply of a drain or of service.info. */
static int wait_drained(struct pb_client *client, const struct cli_service_options *o,
                        struct pb_json_value *reply)
{
    struct pb_err err = {0};
    int64_t printed = -1;
    int rc = CLI_DONE;
    for (;;) {
        const struct pb_json_value *info = pb_json_get(reply, "result", NULL);
        const int64_t runs = cli_job_number(info, "runs");
        bool draining = false;
        (void)pb_json_get_bool(info, "draining", &draining);
        if (!draining) {
            (void)pb_fail(&err, PB_E_SERVICE_STATE, "another command ended the drain");
            rc = cli_service_exit(&err);
            break;
        }
        if (runs != printed && !o->json)
            print_runs(runs);
        printed = runs;
        if (runs == 0 || o->no_wait) {
            if (o->json)
                cli_put_json(info);
            break;
        }
        (void)fflush(stdout);
        pb_json_release(reply);
        reply = NULL;
        (void)poll(NULL, 0, DRAIN_LOOK_MS);
        if (cli_service_call(client, "service.info", NULL, &err, &reply, &info) < 0) {
            rc = cli_service_exit(&err);
            break;
        }
    }
    pb_json_release(reply);
    return rc;
}

int cli_drain(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *info = NULL;
    struct pb_err err = {0};
    int rc = cli_service_parse("drain", argc, argv, &o);
    if (rc == CLI_DONE && o.n_words > 0)
        rc = cli_usage("drain", "'%s' is too much, drain takes no names", o.words[0]);
    if (rc == CLI_DONE && o.off && (o.now || o.no_wait))
        rc = cli_usage("drain", "--off excludes --now and --no-wait");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (rc == CLI_DONE && cli_service_call(client, "service.drain",
                                           o.off   ? "{\"off\":true}"
                                           : o.now ? "{\"now\":true}"
                                                   : NULL,
                                           &err, &reply, &info) < 0)
        rc = cli_service_exit(&err);
    else if (rc == CLI_DONE && !o.off)
        rc = wait_drained(client, &o, reply);
    else if (rc == CLI_DONE) {
        if (o.json)
            cli_put_json(info);
        else
            puts("jobs and files are taken again");
        pb_json_release(reply);
    }
    pb_client_close(client);
    return rc;
}

/* Writes the file for the textfile collector of the node exporter by a rename, because the
 * collector may read it at any time. */
static int write_metrics(const char *path, const char *text)
{
    struct pb_err err = {0};
    if (pb_files_write(path, text, strlen(text), &err) == 0)
        return CLI_DONE;
    cli_print_err(&err);
    return CLI_JOB_FAILED;
}

int cli_metrics(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    struct pb_err err = {0};
    int rc = cli_service_parse("metrics", argc, argv, &o);
    if (rc == CLI_DONE && o.n_words > 0)
        rc = cli_usage("metrics", "'%s' is too much, metrics takes no names", o.words[0]);
    if (rc == CLI_DONE && o.json && o.textfile != NULL)
        rc = cli_usage("metrics", "--textfile writes Prometheus text; it excludes --json");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (rc == CLI_DONE &&
        pb_client_call(client, "service.metrics", NULL, &err, &reply, &result) < 0)
        rc = cli_service_exit(&err);
    const char *text = pb_json_get_text(result, "text");
    if (rc == CLI_DONE && o.json)
        cli_put_json(result);
    else if (rc == CLI_DONE && o.textfile != NULL)
        rc = write_metrics(o.textfile, text ? text : "");
    else if (rc == CLI_DONE)
        fputs(text ? text : "", stdout);
    pb_json_release(reply);
    pb_client_close(client);
    return rc;
}

/* --- submit ---------------------------------------------------------------------------------- */

static int submit_one(struct pb_client *client, const struct cli_service_options *o,
                      const char *file, struct pb_err *err, struct pb_json_value **out_reply,
                      const struct pb_json_value **out_job)
{
    char path[PATH_MAX];
    if (realpath(file, path) == NULL)
        return pb_fail_at(err, PB_E_INPUT_MISSING, file, 0, 0, "there is no such file");
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return pb_fail_at(err, PB_E_INPUT_MISSING, file, 0, 0, "%s", strerror(errno));
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_path(params, "input", path);
    if (o->pipeline != NULL)
        pb_json_string(params, "pipeline", o->pipeline);
    if (o->priority != 0)
        pb_json_int(params, "priority", o->priority);
    pb_json_bool(params, "descriptor", true); /* it proves that this user can read the file */
    pb_json_end(params);
    pb_client_pass(client, fd);
    int rc =
        cli_service_call(client, "job.submit", pb_json_text(params, NULL), err, out_reply, out_job);
    pb_client_pass(client, -1);
    pb_json_destroy(params);
    (void)close(fd);
    return rc;
}

int cli_submit(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    int rc = cli_service_parse("submit", argc, argv, &o);
    if (rc == CLI_DONE && o.n_words == 0)
        rc = cli_usage("submit", "no FILE given");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (rc != CLI_DONE || o.n_words == 0)
        return rc;
    char(*ids)[CLI_ID_BYTES] = calloc((size_t)o.n_words, sizeof *ids);
    size_t n = 0;
    for (int i = 0; ids != NULL && rc != CLI_UNREACHABLE && i < o.n_words; i++) {
        struct pb_err err = {0};
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *job = NULL;
        if (submit_one(client, &o, o.words[i], &err, &reply, &job) < 0) {
            rc = cli_service_exit(&err);
        } else {
            const char *id = pb_json_get_text(job, "id");
            (void)snprintf(ids[n++], CLI_ID_BYTES, "%s", id ? id : "");
            if (o.json && !o.wait)
                cli_put_json(job);
            else if (!o.json)
                cli_job_line(job);
        }
        pb_json_release(reply);
    }
    if (o.wait && n > 0 && rc != CLI_UNREACHABLE) {
        int waited = cli_watch_jobs(client, &o, (const char(*)[CLI_ID_BYTES])ids, n);
        rc = rc == CLI_DONE ? waited : rc;
    }
    free(ids);
    pb_client_close(client);
    return rc;
}
