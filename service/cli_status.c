/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom status`: the list, one job in full, and the live view. The live view keeps one row a
 * job: on a terminal the rows of unfinished jobs are redrawn in place with a bar, elsewhere a line
 * is printed when a job changes its state. */
#include "service/cli.h"
#include "service/cli_service.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS_MAX = 256, REDRAW_MS = 200 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- one job
 * ------------------------------------------------------------------------------------------ */

static const char *text_of(const struct pb_json_value *job, const char *key)
{
    const char *text = pb_json_get_text(job, key);
    return text ? text : "";
}

static int64_t number_of(const struct pb_json_value *job, const char *key)
{
    int64_t n = 0;
    (void)pb_json_get_int(job, key, &n);
    return n;
}

static const char *base_of(const struct pb_json_value *job)
{
    const char *input = text_of(job, "input");
    const char *slash = strrchr(input, '/');
    return slash ? slash + 1 : input;
}

static bool is_finished(const char *status)
{
    return strcmp(status, "successful") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "dismissed") == 0;
}

static enum cli_color color_of(const char *status)
{
    return strcmp(status, "successful") == 0 ? CLI_GREEN
           : strcmp(status, "failed") == 0   ? CLI_RED
           : strcmp(status, "running") == 0  ? CLI_BLUE
                                             : CLI_DIM;
}

void cli_job_line(const struct pb_json_value *job)
{
    const char *status = text_of(job, "status");
    const struct pb_json_value *error = pb_json_get(job, "error", &(bool){false});
    printf("%-20s  %s%-10s%s %3d%%  %-12.12s  %.28s\n", text_of(job, "id"),
           cli_color(stdout, color_of(status)), status, cli_color(stdout, CLI_PLAIN),
           (int)number_of(job, "progress"), text_of(job, "pipeline"), base_of(job));
    if (strcmp(status, "failed") == 0)
        printf("    %s: %s\n", text_of(error, "code"), text_of(error, "message"));
}

static void print_products(const struct pb_json_value *job)
{
    const struct pb_json_value *products = pb_json_get(job, "products", &(bool){false});
    for (size_t i = 0; i < pb_json_count(products); i++) {
        const struct pb_json_value *p = pb_json_at(products, i);
        char size[16];
        printf("  %-10s %8s  %s\n", text_of(p, "type"),
               cli_bytes((double)number_of(p, "bytes"), size, sizeof size), text_of(p, "path"));
    }
}

static void print_job(const struct pb_json_value *job)
{
    static const char *const keys[] = {"input",  "pipeline", "status",  "stage",
                                       "device", "created",  "started", "finished"};
    const struct pb_json_value *error = pb_json_get(job, "error", &(bool){false});
    printf("%s%s%s\n", cli_color(stdout, CLI_BOLD), text_of(job, "id"),
           cli_color(stdout, CLI_PLAIN));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (text_of(job, keys[i])[0])
            printf("  %-10s %s\n", keys[i], text_of(job, keys[i]));
    printf("  %-10s %d%%, %lld of %lld tiles\n", "progress", (int)number_of(job, "progress"),
           (long long)number_of(job, "tiles_done"), (long long)number_of(job, "tiles_total"));
    printf("  %-10s %d\n", "attempts", (int)number_of(job, "attempts"));
    print_products(job);
    if (pb_json_is_object(error))
        printf("  %serror%s      %s: %s\n  to do      %s\n", cli_color(stdout, CLI_RED),
               cli_color(stdout, CLI_PLAIN), text_of(error, "code"), text_of(error, "message"),
               text_of(error, "hint"));
}

/* --- the live view
 * ------------------------------------------------------------------------------------ */

struct row {
    char id[CLI_ID_BYTES], status[16], stage[16], error[300];
    uint64_t tiles, total;
    struct cli_bar bar;
};

struct view {
    const struct cli_service_options *options;
    const char (*ids)[CLI_ID_BYTES]; /* wanted ones; n_ids 0 = all */
    size_t n_ids;
    struct row *row;
    size_t n_rows, drawn;
    long seen;
    bool terminal, failed;
};

static bool is_wanted(const struct view *v, const char *id)
{
    for (size_t i = 0; i < v->n_ids; i++)
        if (strcmp(v->ids[i], id) == 0)
            return true;
    return v->n_ids == 0;
}

static struct row *row_of(struct view *v, const char *id)
{
    for (size_t i = 0; i < v->n_rows; i++)
        if (strcmp(v->row[i].id, id) == 0)
            return &v->row[i];
    if (v->n_rows == ROWS_MAX)
        return NULL;
    struct row *row = &v->row[v->n_rows++];
    memset(row, 0, sizeof *row);
    (void)snprintf(row->id, sizeof row->id, "%s", id);
    v->seen++;
    return row;
}

static void erase(struct view *v)
{
    for (; v->drawn > 0; v->drawn--)
        fputs("\033[A\033[2K", stdout);
}

static void draw(struct view *v)
{
    char line[512];
    erase(v);
    for (size_t i = 0; v->terminal && i < v->n_rows; i++) {
        const struct row *row = &v->row[i];
        cli_bar_text(&row->bar, strcmp(row->status, "running") == 0 ? row->stage : row->status,
                     row->tiles, row->total, line, sizeof line);
        puts(line);
        v->drawn++;
    }
    fflush(stdout);
}

/* A finished job leaves the live rows and stays above them as a line. */
static void settle_row(struct view *v, struct row *row)
{
    erase(v);
    if (!v->options->json)
        printf("%s%-10s%s %s  %.40s%s%.300s\n", cli_color(stdout, color_of(row->status)),
               row->status, cli_color(stdout, CLI_PLAIN), row->id, row->bar.name,
               row->error[0] ? "\n    " : "", row->error);
    size_t i = (size_t)(row - v->row);
    memmove(row, row + 1, (v->n_rows - i - 1) * sizeof *row);
    v->n_rows--;
}

static void take_job(struct view *v, const struct pb_json_value *job, bool is_event)
{
    const char *id = text_of(job, "id"), *status = text_of(job, "status");
    bool known = false;
    for (size_t i = 0; i < v->n_rows; i++)
        known = known || strcmp(v->row[i].id, id) == 0;
    if (!is_wanted(v, id) || (is_finished(status) && !known && !is_event && v->n_ids == 0))
        return;
    struct row *row = row_of(v, id);
    if (row == NULL)
        return;
    bool changed = strcmp(row->status, status) != 0;
    (void)snprintf(row->status, sizeof row->status, "%s", status);
    (void)snprintf(row->stage, sizeof row->stage, "%s", text_of(job, "stage"));
    (void)snprintf(row->bar.name, sizeof row->bar.name, "%s", base_of(job));
    row->tiles = (uint64_t)number_of(job, "tiles_done");
    row->total = (uint64_t)number_of(job, "tiles_total");
    cli_bar_update(&row->bar, now_s(), row->tiles, row->total,
                   (uint64_t)number_of(job, "bytes_read"));
    if (v->options->json)
        puts(pb_json_source(job));
    if (!is_finished(status)) {
        if (changed && !v->terminal && !v->options->json)
            printf("%-10s %s  %s\n", status, row->id, row->bar.name);
        return;
    }
    if (strcmp(status, "successful") != 0) {
        const struct pb_json_value *error = pb_json_get(job, "error", &(bool){false});
        v->failed = true;
        (void)snprintf(row->error, sizeof row->error, "%s", text_of(error, "message"));
    }
    settle_row(v, row);
}

static bool is_over(const struct view *v)
{
    if (interrupted)
        return true;
    if (v->n_ids > 0)
        return v->seen >= (long)v->n_ids && v->n_rows == 0;
    return v->options->until_idle && v->n_rows == 0 && v->seen >= v->options->expect;
}

static int follow(struct view *v, struct pb_client *client)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *first = NULL;
    if (pb_client_call(client, "job.watch", NULL, &err, &reply, &first) < 0)
        return cli_service_exit(&err);
    const struct pb_json_value *jobs = pb_json_get(first, "jobs", &(bool){false});
    for (size_t i = 0; i < pb_json_count(jobs); i++)
        take_job(v, pb_json_at(jobs, i), false);
    pb_json_release(reply);
    while (!is_over(v)) {
        struct pb_json_value *event = NULL;
        const struct pb_json_value *job = NULL;
        int rc = pb_client_event(client, REDRAW_MS, &err, &event, &job);
        if (rc > 0)
            take_job(v, job, true);
        pb_json_release(event);
        if (rc < 0)
            return interrupted ? CLI_DONE : cli_service_exit(&err);
        if (v->terminal)
            draw(v);
    }
    erase(v);
    return v->failed && (v->n_ids > 0 || v->options->until_idle) ? CLI_JOB_FAILED : CLI_DONE;
}

int cli_watch_jobs(struct pb_client *client, const struct cli_service_options *options,
                   const char (*ids)[CLI_ID_BYTES], size_t n)
{
    struct view view = {.options = options, .ids = ids, .n_ids = n};
    struct sigaction action = {.sa_handler = on_signal};
    view.row = calloc(ROWS_MAX, sizeof *view.row);
    if (view.row == NULL)
        return CLI_JOB_FAILED;
    view.terminal = !options->json && cli_is_terminal(stdout);
    sigaction(SIGINT, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int rc = follow(&view, client);
    free(view.row);
    return rc;
}

/* --- the list
 * ----------------------------------------------------------------------------------------- */

static int show_one(struct pb_client *client, const struct cli_service_options *o)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "id", o->words[0]);
    pb_json_end(params);
    int rc = pb_client_call(client, "job.get", pb_json_text(params, NULL), &err, &reply, &job);
    pb_json_destroy(params);
    if (rc < 0)
        return cli_service_exit(&err);
    if (o->watch) {
        char id[1][CLI_ID_BYTES];
        (void)snprintf(id[0], sizeof id[0], "%s", text_of(job, "id"));
        pb_json_release(reply);
        return cli_watch_jobs(client, o, (const char(*)[CLI_ID_BYTES])id, 1);
    }
    if (o->json)
        puts(pb_json_source(job));
    else
        print_job(job);
    pb_json_release(reply);
    return CLI_DONE;
}

static int show_list(struct pb_client *client, const struct cli_service_options *o)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    const char *params = o->all ? "{\"limit\":1000}" : "{\"limit\":20}";
    if (pb_client_call(client, "job.list", params, &err, &reply, &result) < 0)
        return cli_service_exit(&err);
    const struct pb_json_value *jobs = pb_json_get(result, "jobs", &(bool){false});
    size_t n = pb_json_count(jobs);
    if (o->json) {
        puts(pb_json_source(jobs));
    } else if (n == 0) {
        puts("no jobs yet; put a scene into the inbox, or: pushbroom submit FILE");
    } else {
        printf("%sJOB                   STATUS     DONE  PIPELINE      INPUT%s\n",
               cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
        for (size_t i = 0; i < n; i++)
            cli_job_line(pb_json_at(jobs, i));
        if (n == 20 && !o->all)
            puts("the newest 20; --all shows more");
    }
    pb_json_release(reply);
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
        rc = show_one(client, &o);
    else if (o.watch)
        rc = cli_watch_jobs(client, &o, NULL, 0);
    else
        rc = show_list(client, &o);
    pb_client_close(client);
    return rc;
}
