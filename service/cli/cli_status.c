/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom status`: prints the list, or all about one job. The live view is in cli_watch.c. */
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_service.h"

#include "config/base/clock.h"
#include "config/base/text_clean.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BEFORE_PIPELINE = 47, /* columns, with the two after PIPELINE */
    PIPELINE_MIN = 12,
    PIPELINE_MAX = 255,
    NODE_MAX = 20,
    KEY_COLUMN = 13,
    TROUBLE_COLUMN = 9,
    LISTED = 20,
    SETS_LISTED = 10
};

/* --- one job --------------------------------------------------------------------------------- */

void cli_put_json(const struct pb_json_value *value)
{
    const char *text = pb_json_source(value);
    if (text == NULL) {
        (void)fputs("pushbroom: out of memory for an answer\n", stderr);
        exit(CLI_JOB_FAILED);
    }
    (void)puts(text);
}

const char *cli_job_text(const struct pb_json_value *job, const char *key)
{
    enum { BUFFERS = 16, BYTES = 4200 };
    static char buffer[BUFFERS][BYTES];
    static unsigned next;
    const char *text = pb_json_get_text(job, key);
    uint32_t code = 0;
    for (const char *c = text; c != NULL && *c != '\0';) {
        size_t bytes = pb_text_character(c, &code);
        if (bytes == 0 ||
            pb_text_is_control(code)) { /* it could start a control sequence of the terminal */
            char *clean = buffer[next++ % BUFFERS];
            (void)pb_text_clean(text, clean, BYTES);
            return clean;
        }
        c += bytes;
    }
    return text ? text : "";
}

int64_t cli_job_number(const struct pb_json_value *job, const char *key)
{
    int64_t n = 0;
    (void)pb_json_get_int(job, key, &n);
    return n;
}

const char *cli_job_base(const struct pb_json_value *job)
{
    const char *name = cli_job_text(job, "name");
    if (name[0] != '\0')
        return name;
    const char *input = cli_job_text(job, "input");
    const char *slash = strrchr(input, '/');
    return slash ? slash + 1 : input;
}

bool cli_job_finished(const char *status)
{
    return strcmp(status, "successful") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "dismissed") == 0;
}

enum cli_color cli_job_color(const char *status)
{
    return strcmp(status, "successful") == 0 ? CLI_GREEN
           : strcmp(status, "failed") == 0   ? CLI_RED
           : strcmp(status, "running") == 0  ? CLI_BLUE
                                             : CLI_DIM;
}

/* Age of the last change of the job: "45s", "12m", "3h", "9d"; "" if unknown. */
static const char *ago(const struct pb_json_value *job, char out[8])
{
    int64_t updated = 0;
    out[0] = '\0';
    if (!pb_clock_read(cli_job_text(job, "updated"), &updated))
        return out;
    int64_t s = pb_clock_wall_ms() / 1000 - updated;
    s = s < 0 ? 0 : s;
    if (s < 100)
        (void)snprintf(out, 8, "%ds", (int)s);
    else if (s < 100 * 60)
        (void)snprintf(out, 8, "%dm", (int)(s / 60));
    else if (s < 100 * 3600)
        (void)snprintf(out, 8, "%dh", (int)(s / 3600));
    else
        (void)snprintf(out, 8, "%dd", (int)(s / 86400 > 999 ? 999 : s / 86400));
    return out;
}

/* --- lines of lists -------------------------------------------------------------------------- */

static bool wide;
static int pipeline_columns = PIPELINE_MIN;

void cli_list_wide(void)
{
    wide = true;
}

/* Columns of lists; 0 = no limit. */
static int list_columns(void)
{
    const int columns = wide ? 0 : cli_list_columns(stdout);
    return columns > 0 && columns < 80 ? 80 : columns;
}

/* Width of the column NODE; 0: no job has a node. */
static int node_columns;

void cli_list_fit(const struct cli_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const int width = (int)strlen(cli_job_text(jobs->job[i], "node"));
        if (width > node_columns)
            node_columns = width < NODE_MAX ? width : NODE_MAX;
    }
    if (node_columns > 0 && node_columns < 4)
        node_columns = 4;

    const int columns = list_columns();
    const int most = columns > 0 ? PIPELINE_MIN + (columns - 80) / 3 : PIPELINE_MAX;
    for (size_t i = 0; i < jobs->n; i++) {
        const int width = (int)strlen(cli_job_text(jobs->job[i], "pipeline"));
        if (width > pipeline_columns)
            pipeline_columns = width < most ? width : most;
    }
}

void cli_job_head(void)
{
    printf("%sJOB                   STATUS     DONE   AGO  %-*s%s%-*s  INPUT%s\n",
           cli_color(stdout, CLI_BOLD), pipeline_columns, "PIPELINE", node_columns > 0 ? "  " : "",
           node_columns, node_columns > 0 ? "NODE" : "", cli_color(stdout, CLI_PLAIN));
}

/* Prints control characters as spaces; a longer text ends in "...". columns 0: not shortened. */
static void print_error_line(const struct pb_json_value *error, int columns)
{
    char line[1200];
    (void)snprintf(line, sizeof line, "    %s: %s", cli_job_text(error, "code"),
                   cli_job_text(error, "message"));
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';
    /* `pushbroom status JOB` shows all of it */
    if (columns > 0 && strlen(line) > (size_t)columns)
        (void)snprintf(line + columns - 3, 4, "...");
    puts(line);
}

/* Prints the path below the inbox under which the input was delivered. */
void cli_job_line(const struct pb_json_value *job)
{
    const char *status = cli_job_text(job, "status"), *folder = cli_job_text(job, "folder");
    const int all = list_columns(), columns = all > 0 && all < 1000 ? all : 1000;
    const int node_all = node_columns > 0 ? node_columns + 2 : 0;
    char name[1100], pipeline[PIPELINE_MAX + 1], node[PIPELINE_MAX + 1], when[8], path[1500];
    (void)snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "",
                   cli_job_text(job, "name"));
    printf(
        "%-20s  %s%-10s%s %3d%%  %4s  %-*s%s%-*s  %s\n", cli_job_text(job, "id"),
        cli_color(stdout, cli_job_color(status)), status, cli_color(stdout, CLI_PLAIN),
        (int)cli_job_number(job, "progress"), ago(job, when), pipeline_columns,
        cli_fit(cli_job_text(job, "pipeline"), all > 0 ? pipeline_columns : PIPELINE_MAX, pipeline,
                sizeof pipeline),
        node_columns > 0 ? "  " : "", node_columns,
        cli_fit(cli_job_text(job, "node"), node_columns, node, sizeof node),
        cli_fit(path, columns - BEFORE_PIPELINE - pipeline_columns - node_all, name, sizeof name));
    if (strcmp(status, "failed") == 0)
        print_error_line(pb_json_get(job, "error", NULL), all);
}

/* --- details of one job ----------------------------------------------------------------------- */

static void print_products(const struct pb_json_value *job)
{
    const struct pb_json_value *products = pb_json_get(job, "products", &(bool){false});
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *p = pb_json_at(products, i);
        char size[16];
        printf("  %-10s %8s  %s\n", cli_job_text(p, "type"),
               cli_bytes((double)cli_job_number(p, "bytes"), size, sizeof size),
               cli_job_text(p, "path"));
    }
}

static void print_error(const struct pb_json_value *error)
{
    char text[1200];
    (void)snprintf(text, sizeof text, "%s: %s", cli_job_text(error, "code"),
                   cli_job_text(error, "message"));
    printf("  %serror%s      ", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
    cli_wrap(stdout, KEY_COLUMN, cli_columns(stdout), text);
    if (cli_job_text(error, "hint")[0] == '\0')
        return;
    printf("  to do      ");
    cli_wrap(stdout, KEY_COLUMN, cli_columns(stdout), cli_job_text(error, "hint"));
}

/* Prints the paths of the files at their delivery. */
static void print_delivered(const struct pb_json_value *job)
{
    const struct pb_json_value *paths = pb_json_get(job, "delivered", NULL);
    char clean[4200];
    for (size_t i = 0; i < pb_json_count(paths); i++) {
        const char *path = pb_json_text_of(pb_json_at(paths, i));
        (void)pb_text_clean(path ? path : "", clean, sizeof clean);
        printf("  %-10s %s\n", i == 0 ? "delivered" : "", clean);
    }
}

/* Prints the jobs of the scenes in an archive. */
static void print_scenes(const struct pb_json_value *job)
{
    const struct pb_json_value *report = pb_json_get(job, "report", NULL);
    const struct pb_json_value *scenes = pb_json_get(report, "scenes", NULL);
    for (size_t i = 0; i < pb_json_count(scenes); i++) {
        const struct pb_json_value *scene = pb_json_at(scenes, i);
        const char *status = cli_job_text(scene, "status"), *code = cli_job_text(scene, "code");
        printf("  %-10s %s: job %s%s%s%s%s\n", i == 0 ? "scenes" : "", cli_job_text(scene, "scene"),
               cli_job_text(scene, "job"), status[0] != '\0' ? ", " : "", status,
               code[0] != '\0' ? ": " : "", code);
    }
}

static void print_job(const struct pb_json_value *job)
{
    static const char *const keys[] = {"folder", "input",  "pipeline", "status",  "stage",
                                       "node",   "device", "created",  "started", "finished"};
    const struct pb_json_value *error = pb_json_get(job, "error", &(bool){false});
    printf("%s%s%s\n", cli_color(stdout, CLI_BOLD), cli_job_text(job, "id"),
           cli_color(stdout, CLI_PLAIN));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (cli_job_text(job, keys[i])[0])
            printf("  %-10s %s\n", keys[i], cli_job_text(job, keys[i]));
    print_delivered(job);
    if (cli_job_text(job, "archive")[0])
        printf("  %-10s job %s, of which this is scene %s\n", "archive",
               cli_job_text(job, "archive"), cli_job_text(job, "scene"));
    if (cli_job_text(job, "again_of")[0])
        printf("  %-10s job %s\n", "again of", cli_job_text(job, "again_of"));
    else if (cli_job_text(job, "replaces")[0])
        printf("  %-10s job %s, with its files and those delivered now\n", "replaces",
               cli_job_text(job, "replaces"));
    if (cli_job_text(job, "device_why")[0]) {
        printf("  retried    ");
        cli_wrap(stdout, KEY_COLUMN, cli_columns(stdout), cli_job_text(job, "device_why"));
    }
    printf("  %-10s %d%%, %lld of %lld tiles\n", "progress", (int)cli_job_number(job, "progress"),
           (long long)cli_job_number(job, "tiles_done"),
           (long long)cli_job_number(job, "tiles_total"));
    printf("  %-10s %d\n", "attempts", (int)cli_job_number(job, "attempts"));
    if (cli_job_number(job, "priority") != 0)
        printf("  %-10s %d\n", "priority", (int)cli_job_number(job, "priority"));
    print_products(job);
    print_scenes(job);
    cli_result_tiles(pb_json_get(pb_json_get(job, "report", NULL), "tiles", NULL));
    cli_result_calibration(pb_json_get(pb_json_get(job, "report", NULL), "calibration", NULL));
    cli_result_sidecars(pb_json_get(pb_json_get(job, "report", NULL), "sidecars", NULL));
    cli_result_notes(pb_json_get(pb_json_get(job, "report", NULL), "notes", NULL));
    cli_result_limit(pb_json_get(job, "report", NULL), true);
    if (pb_json_is_object(error))
        print_error(error);
}

/* --- the list -------------------------------------------------------------------------------- */

int cli_job_get(struct pb_client *client, const char *id, struct pb_err *err,
                struct pb_json_value **out_reply, const struct pb_json_value **out_job)
{
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "id", id);
    pb_json_end(params);
    int rc = pb_client_call(client, "job.get", pb_json_text(params, NULL), err, out_reply, out_job);
    pb_json_destroy(params);
    return rc;
}

int cli_job_show(struct pb_client *client, const struct cli_service_options *o, const char *word)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    if (cli_job_get(client, word, &err, &reply, &job) < 0)
        return cli_service_exit(&err);
    if (o->watch) {
        char id[1][CLI_ID_BYTES];
        (void)snprintf(id[0], sizeof id[0], "%s", cli_job_text(job, "id"));
        pb_json_release(reply);
        return cli_watch_jobs(client, o, (const char(*)[CLI_ID_BYTES])id, 1);
    }
    if (o->json)
        cli_put_json(job);
    else
        print_job(job);
    if (!o->json)
        cli_print_age(stdout, job);
    pb_json_release(reply);
    return CLI_DONE;
}

void cli_print_age(FILE *out, const struct pb_json_value *result)
{
    bool is_incomplete = false;
    if (result == NULL || cli_job_text(result, "as_of")[0] == '\0')
        return;
    (void)pb_json_get_bool(result, "incomplete", &is_incomplete);
    (void)fprintf(out, "%sas of %lld s ago%s: the job store does not answer%s\n",
                  cli_color(out, CLI_RED), (long long)cli_job_number(result, "age_s"),
                  cli_color(out, CLI_PLAIN), is_incomplete ? "; older jobs are not shown" : "");
}

/* Prints the scenes in the inbox that wait for files. */
static void show_gathering(const struct pb_json_value *info)
{
    const struct pb_json_value *sets = pb_json_get(info, "gathering", &(bool){false});
    int64_t more = cli_job_number(info, "gathering_sets");
    char text[1200];
    for (size_t i = 0; i < pb_json_count(sets) && i < SETS_LISTED; i++, more--) {
        const struct pb_json_value *set = pb_json_at(sets, i);
        const char *expires = cli_job_text(set, "expires");
        (void)snprintf(text, sizeof text, "%s: %s; %s%s", cli_job_text(set, "scene"),
                       cli_job_text(set, "missing"), expires[0] ? "waits until " : "waits",
                       expires);
        printf("gathers  ");
        cli_wrap(stdout, TROUBLE_COLUMN, cli_columns(stdout), text);
    }
    if (more > 0)
        printf("gathers  %lld scenes more\n", (long long)more);
}

/* Prints the entries of the inbox that are not taken. word: "refused" or "foreign", 7 characters.
 */
static void show_stays(const struct pb_json_value *info, const char *word, enum cli_color color)
{
    const struct pb_json_value *stays = pb_json_get(info, word, &(bool){false});
    char text[1200], total[24];
    (void)snprintf(total, sizeof total, "inbox_%s", word);
    int64_t more = cli_job_number(info, total);
    for (size_t i = 0; i < pb_json_count(stays) && i < SETS_LISTED; i++, more--) {
        const struct pb_json_value *stay = pb_json_at(stays, i);
        const char *hint = cli_job_text(stay, "hint");
        (void)snprintf(text, sizeof text, "%s: %s%s%s", cli_job_text(stay, "name"),
                       cli_job_text(stay, "message"), hint[0] != '\0' ? "; " : "", hint);
        printf("%s%s%s  ", cli_color(stdout, color), word, cli_color(stdout, CLI_PLAIN));
        cli_wrap(stdout, TROUBLE_COLUMN, cli_columns(stdout), text);
    }
    if (more > 0)
        printf("%s  %lld entries more\n", word, (long long)more);
}

static void show_service(const struct pb_json_value *info)
{
    static const char *const directories[] = {"products", "work", "quarantine", "archive", "state"};
    const struct pb_json_value *inboxes = pb_json_get(info, "inboxes", &(bool){false});
    printf("service  version %s, pid %lld, started %s, device %s\n", cli_job_text(info, "version"),
           (long long)cli_job_number(info, "pid"), cli_job_text(info, "started"),
           cli_job_text(info, "device"));
    printf("config   %s, loaded %s, SHA-256 %s\n", cli_job_text(info, "config"),
           cli_job_text(info, "config_loaded"), cli_job_text(info, "config_sha256"));
    for (size_t i = 0; i < pb_json_count(inboxes); i++) {
        const char *path = pb_json_text_of(pb_json_at(inboxes, i));
        printf("inbox    %s\n", path != NULL ? path : "");
    }
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        printf("%-10s %s\n", directories[i], cli_job_text(info, directories[i]));
}

/* Prints a line if the service takes no job. */
static void show_drain(const struct pb_json_value *info)
{
    bool draining = false;
    char text[200], count[40] = "no job runs";
    (void)pb_json_get_bool(info, "draining", &draining);
    if (!draining)
        return;
    const int64_t runs = cli_job_number(info, "runs");
    if (runs > 0)
        (void)snprintf(count, sizeof count, "%lld job%s", (long long)runs,
                       runs == 1 ? " runs" : "s run");
    (void)snprintf(text, sizeof text,
                   "%s, no other begins and no file is taken; 'pushbroom drain --off' or a restart "
                   "ends that",
                   count);
    printf("%sdrains%s   ", cli_color(stdout, CLI_YELLOW), cli_color(stdout, CLI_PLAIN));
    cli_wrap(stdout, TROUBLE_COLUMN, cli_columns(stdout), text);
}

/* Prints the nodes of the job store, if it has several. */
static void show_nodes(const struct pb_json_value *info)
{
    const struct pb_json_value *nodes = pb_json_get(info, "nodes", &(bool){false});
    for (size_t i = 0; i < pb_json_count(nodes); i++) {
        const struct pb_json_value *node = pb_json_at(nodes, i);
        const char *name = cli_job_text(node, "name");
        bool reports = true, drains = false, gpu = false;
        (void)pb_json_get_bool(node, "gpu", &gpu);
        (void)pb_json_get_bool(node, "reports", &reports);
        (void)pb_json_get_bool(node, "draining", &drains);
        printf("node     %s%s: ", name,
               strcmp(name, cli_job_text(info, "node")) == 0 ? " (this)" : "");
        if (reports)
            printf("%s%lld running, last report %lld s ago%s\n", drains ? "drains, " : "",
                   (long long)cli_job_number(node, "running"),
                   (long long)cli_job_number(node, "silent_s"), gpu ? ", GPU" : "");
        else
            printf("%sdoes not report%s since %lld s\n", cli_color(stdout, CLI_RED),
                   cli_color(stdout, CLI_PLAIN), (long long)cli_job_number(node, "silent_s"));
    }
}

static void show_settling(const struct pb_json_value *info)
{
    int64_t n = cli_job_number(info, "inbox_settling"), settled = 0;
    if (n == 0)
        return;
    printf("settles  %lld %s", (long long)n, n == 1 ? "entry" : "entries");
    if (pb_clock_read(cli_job_text(info, "inbox_settled"), &settled)) {
        int64_t s = settled + 1 - pb_clock_wall_ms() / 1000;
        bool long_one = s >= 100;
        s = s < 0 ? 0 : s;
        printf(" (%lld %s left)", (long long)(long_one ? s / 60 : s), long_one ? "min" : "s");
    }
    puts("");
}

/* Prints the streams and their writers. */
static void show_streams(const struct pb_json_value *info)
{
    const struct pb_json_value *streams = pb_json_get(info, "streams", &(bool){false});
    char text[500], loss[120], late[80];
    for (size_t i = 0; i < pb_json_count(streams); i++) {
        const struct pb_json_value *stream = pb_json_at(streams, i);
        int64_t writer = -1;
        const bool has_writer = pb_json_get_int(stream, "writer", &writer) == 0;
        const long long gaps = (long long)cli_job_number(stream, "gap_lines");
        const long long dropped = (long long)cli_job_number(stream, "dropped");
        loss[0] = '\0';
        if (gaps + dropped > 0)
            (void)snprintf(loss, sizeof loss, ", %lld lines missing, %lld of them dropped here",
                           gaps, dropped);
        const struct pb_json_value *latency = pb_json_get(stream, "latency", NULL);
        int64_t most_us = 0;
        late[0] = '\0';
        if (pb_json_get_int(latency, "p99_us", &most_us) == 0)
            (void)snprintf(late, sizeof late, ", 99 %% computed within %g ms of their arrival",
                           (double)most_us / 1e3);
        if (has_writer)
            (void)snprintf(text, sizeof text,
                           "%.63s: user %lld writes %lld lines/s; %lld lines%s%s",
                           cli_job_text(stream, "name"), (long long)writer,
                           (long long)cli_job_number(stream, "lines_per_second"),
                           (long long)cli_job_number(stream, "lines"), loss, late);
        else
            (void)snprintf(text, sizeof text, "%.63s: no writer; %lld lines%s%s",
                           cli_job_text(stream, "name"), (long long)cli_job_number(stream, "lines"),
                           loss, late);
        printf("stream   ");
        cli_wrap(stdout, TROUBLE_COLUMN, cli_columns(stdout), text);
    }
}

static bool is_inbox_empty(const struct pb_json_value *info)
{
    return cli_job_number(info, "inbox_waiting") == 0 &&
           cli_job_number(info, "gathering_sets") == 0 &&
           cli_job_number(info, "inbox_refused") == 0 && cli_job_number(info, "inbox_foreign") == 0;
}

/* Prints the pending work of the service before the list. Returns true if no entry waits or stays
 * in the inbox and there is no trouble, or if the reply lacks the members. */
static bool show_waiting(struct pb_client *client, bool verbose)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    char text[1200];
    if (pb_client_call(client, "service.info", "{}", &err, &reply, &result) < 0)
        return true;
    if (verbose)
        show_service(result);
    const struct pb_json_value *troubles = pb_json_get(result, "troubles", &(bool){false});
    for (size_t i = 0; i < pb_json_count(troubles); i++) {
        const struct pb_json_value *trouble = pb_json_at(troubles, i);
        const char *hint = cli_job_text(trouble, "hint");
        if (strcmp(cli_job_text(trouble, "key"), "refused") == 0)
            continue; /* show_stays prints these entries, each with its reason */
        (void)snprintf(text, sizeof text, "%s: %s%s%s", cli_job_text(trouble, "code"),
                       cli_job_text(trouble, "message"), hint[0] != '\0' ? "; " : "", hint);
        printf("%strouble%s  ", cli_color(stdout, CLI_RED), cli_color(stdout, CLI_PLAIN));
        cli_wrap(stdout, TROUBLE_COLUMN, cli_columns(stdout), text);
    }
    show_drain(result);
    show_nodes(result);
    show_stays(result, "refused", CLI_RED);
    show_stays(result, "foreign", CLI_YELLOW);
    show_gathering(result);
    show_settling(result);
    show_streams(result);
    bool is_empty = is_inbox_empty(result) && pb_json_count(troubles) == 0;
    pb_json_release(reply);
    return is_empty;
}

static int show_list(struct pb_client *client, const struct cli_service_options *o)
{
    struct pb_err err = {0};
    struct cli_jobs jobs;
    const bool filters = o->failed || o->since_ms > 0 || o->pipeline != NULL;
    const int64_t limit = o->all    ? CLI_JOBS_ALL
                          : o->json ? LISTED
                                    : LISTED + 1; /* one more shows whether there are more */
    if (cli_jobs_read(client, o, NULL, limit, true, &err, &jobs) < 0) {
        if (!o->json && err.code == PB_E_SERVICE_STATE)
            (void)show_waiting(client, o->verbose); /* has the reason, which the error lacks */
        (void)cli_flush();
        return cli_service_exit(&err);
    }
    bool is_empty = o->json || show_waiting(client, o->verbose);
    cli_print_age(o->json ? stderr : stdout, jobs.old);
    if (jobs.n == 0 && !o->json)
        puts(filters     ? "there are no such jobs"
             : !is_empty ? "no jobs yet"
                         : "no jobs yet; deliver a scene: pushbroom put SCENE");
    cli_list_fit(&jobs);
    for (size_t i = 0; i < jobs.n && (o->all || i < LISTED); i++) {
        if (i == 0 && !o->json)
            cli_job_head();
        if (o->json)
            cli_put_json(jobs.job[i]);
        else
            cli_job_line(jobs.job[i]);
    }
    if (jobs.n > LISTED && !o->all)
        printf("the newest %d; --all shows more\n", LISTED);
    cli_jobs_release(&jobs);
    return CLI_DONE;
}

int cli_status(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    int rc = cli_service_parse("status", argc, argv, &o);
    if (rc == CLI_DONE && o.n_words > 1)
        rc = cli_usage("status", "one JOB at a time, '%s' is too many", o.words[1]);
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (rc != CLI_DONE)
        return rc;
    if (o.n_words == 1)
        rc = cli_job_show(client, &o, o.words[0]);
    else if (o.watch)
        rc = cli_watch_jobs(client, &o, NULL, 0);
    else
        rc = show_list(client, &o);
    pb_client_close(client);
    return rc;
}
