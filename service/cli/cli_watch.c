/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Live view of `pushbroom status --watch` and `pushbroom submit --wait`: one row for each job. On
 * a terminal the rows of unfinished jobs are redrawn in place with a bar, elsewhere a line is
 * printed when a job changes its state. At most as many rows are drawn as the terminal has lines,
 * because the cursor cannot move above the first. */
#include "service/cli/cli.h"
#include "config/base/clock.h"
#include "service/cli/cli_service.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1024, REDRAW_MS = 200, ERROR_COLUMN = 4, NAME_COLUMNS = 46 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static double now_s(void)
{
    return (double)pb_clock_mono_ns() * 1e-9;
}

struct row {
    char id[CLI_ID_BYTES], status[16], stage[16], error[400];
    uint64_t tiles, total;
    struct cli_bar bar;
};

struct view {
    const struct cli_service_options *options;
    const char (*ids)[CLI_ID_BYTES]; /* ids to watch; n_ids 0 = all */
    size_t n_ids;
    struct row *row;
    size_t n_rows, drawn;
    long seen;
    struct cli_jobs before; /* jobs of --since when the watch began */
    bool terminal, failed;
};

static bool is_wanted(const struct view *v, const char *id)
{
    for (size_t i = 0; i < v->n_ids; i++)
        if (strcmp(v->ids[i], id) == 0)
            return true;
    return v->n_ids == 0;
}

/* Returns true if the job had ended, and was counted, before the watch began. */
static bool was_counted(const struct view *v, const char *id)
{
    for (size_t i = 0; i < v->before.n; i++)
        if (cli_job_finished(cli_job_text(v->before.job[i], "status")) &&
            strcmp(cli_job_text(v->before.job[i], "id"), id) == 0)
            return true;
    return false;
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
    v->seen += !was_counted(v, id);
    return row;
}

static void erase(struct view *v)
{
    for (; v->drawn > 0; v->drawn--)
        fputs("\033[A\033[2K", stdout);
}

static void draw_row(struct view *v, const struct row *row)
{
    char line[512];
    cli_bar_text(&row->bar, strcmp(row->status, "running") == 0 ? row->stage : row->status,
                 row->tiles, row->total, cli_columns(stdout) - 1, line, sizeof line);
    puts(line);
    v->drawn++;
}

/* Draws running jobs first, then waiting ones as far as there is room. */
static void draw(struct view *v)
{
    size_t room = (size_t)(cli_lines(stdout) > 3 ? cli_lines(stdout) - 2 : 1);
    erase(v);
    for (int running = 1; running >= 0; running--)
        for (size_t i = 0; i < v->n_rows && v->drawn < room; i++)
            if ((strcmp(v->row[i].status, "running") == 0) == running)
                draw_row(v, &v->row[i]);
    if (v->n_rows > v->drawn) {
        printf("and %zu more\n", v->n_rows - v->drawn);
        v->drawn++;
    } else if (v->n_rows == 0) {
        puts("nothing to do; Ctrl-C ends");
        v->drawn++;
    }
    fflush(stdout);
}

static void print_end(const struct row *row)
{
    char name[300];
    printf("%s%-10s%s %s  %s\n", cli_color(stdout, cli_job_color(row->status)), row->status,
           cli_color(stdout, CLI_PLAIN), row->id,
           cli_fit(row->bar.name, NAME_COLUMNS, name, sizeof name));
    if (row->error[0] != '\0') {
        printf("%*s", ERROR_COLUMN, "");
        cli_wrap(stdout, ERROR_COLUMN, cli_columns(stdout), row->error);
    }
}

/* Removes a finished job from the live rows and prints it as a line above them. */
static void settle_row(struct view *v, struct row *row)
{
    erase(v);
    if (!v->options->json)
        print_end(row);
    size_t i = (size_t)(row - v->row);
    memmove(row, row + 1, (v->n_rows - i - 1) * sizeof *row);
    v->n_rows--;
}

static void take_job(struct view *v, const struct pb_json_value *job, bool is_event)
{
    const char *id = cli_job_text(job, "id"), *status = cli_job_text(job, "status");
    bool known = false;
    for (size_t i = 0; i < v->n_rows; i++)
        known = known || strcmp(v->row[i].id, id) == 0;
    if (!is_wanted(v, id) || (cli_job_finished(status) && !known && !is_event && v->n_ids == 0))
        return;
    struct row *row = row_of(v, id);
    if (row == NULL)
        return;
    bool changed = strcmp(row->status, status) != 0;
    (void)snprintf(row->status, sizeof row->status, "%s", status);
    (void)snprintf(row->stage, sizeof row->stage, "%s", cli_job_text(job, "stage"));
    (void)snprintf(row->bar.name, sizeof row->bar.name, "%s", cli_job_base(job));
    row->tiles = (uint64_t)cli_job_number(job, "tiles_done");
    row->total = (uint64_t)cli_job_number(job, "tiles_total");
    cli_bar_update(&row->bar, now_s(), row->tiles, (uint64_t)cli_job_number(job, "bytes_read"));
    if (v->options->json)
        cli_put_json(job);
    if (!cli_job_finished(status)) {
        if (changed && !v->terminal && !v->options->json)
            printf("%-10s %s  %s\n", status, row->id, row->bar.name);
        return;
    }
    if (strcmp(status, "successful") != 0) {
        const struct pb_json_value *error = pb_json_get(job, "error", &(bool){false});
        v->failed = true;
        (void)snprintf(row->error, sizeof row->error, "%s: %s", cli_job_text(error, "code"),
                       cli_job_text(error, "message"));
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

/* Takes requested jobs that ended before the watch began: these have no event. */
static int take_finished(struct view *v, struct pb_client *client, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < v->n_ids; i++) {
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *job = NULL;
        bool known = false;
        for (size_t k = 0; k < v->n_rows; k++)
            known = known || strcmp(v->row[k].id, v->ids[i]) == 0;
        if (known)
            continue;
        rc = cli_job_get(client, v->ids[i], err, &reply, &job);
        if (rc >= 0)
            take_job(v, job, false);
        pb_json_release(reply);
    }
    return rc;
}

/* Counts the jobs of --since that have ended, because a script may start the watch after that. */
static int count_before(struct view *v, struct pb_client *client, struct pb_err *err)
{
    if (v->options->since_ms <= 0)
        return 0;
    const int rc = cli_jobs_read(client, v->options, NULL, LONG_MAX, false, err, &v->before);
    for (size_t i = v->before.n; rc >= 0 && i-- > 0;) {
        const struct pb_json_value *job = v->before.job[i];
        const char *status = cli_job_text(job, "status");
        if (!cli_job_finished(status))
            continue;
        v->seen++;
        v->failed = v->failed || strcmp(status, "successful") != 0;
        if (v->options->json)
            cli_put_json(job);
        else
            printf("%-10s %s  %s\n", status, cli_job_text(job, "id"), cli_job_base(job));
    }
    return rc;
}

static int follow(struct view *v, struct pb_client *client)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *first = NULL;
    if (pb_client_call(client, "job.watch", NULL, &err, &reply, &first) < 0)
        return cli_service_exit(&err);
    const struct pb_json_value *jobs = pb_json_get(first, "jobs", &(bool){false});
    for (size_t i = pb_json_count(jobs); i-- > 0;) /* the newest are first, but run last */
        take_job(v, pb_json_at(jobs, i), false);
    pb_json_release(reply);
    int rc = take_finished(v, client, &err);
    rc = rc < 0 ? rc : count_before(v, client, &err);
    if (rc < 0)
        return cli_service_exit(&err);
    while (!is_over(v)) {
        if (v->terminal)
            draw(v);
        struct pb_json_value *event = NULL;
        const struct pb_json_value *job = NULL;
        rc = pb_client_event(client, REDRAW_MS, &err, &event, &job);
        if (rc > 0)
            take_job(v, job, true);
        pb_json_release(event);
        if (rc < 0 && !interrupted) {
            erase(v);
            return cli_service_exit(&err);
        }
    }
    erase(v);
    if (interrupted && (v->n_ids > 0 || v->options->until_idle)) {
        fputs("pushbroom: not waiting any longer; the jobs continue\n", stderr);
        cli_end_by(SIGINT);
    }
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
    cli_jobs_release(&view.before);
    return rc;
}
