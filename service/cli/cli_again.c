/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom again`: makes the products of done jobs again, of the named jobs or of all jobs of a
 * pipeline. */
#include "service/cli/cli.h"
#include "service/cli/cli_service.h"

#include <inttypes.h>
#include <string.h>

struct again {
    struct pb_client *client;
    const struct cli_service_options *options;
    size_t n_made, n_gone, n_superseded, n_refused;
    int64_t bytes; /* bytes read by the earlier runs of the jobs that are made again */
};

static int call(struct again *again, const char *id, struct pb_err *err,
                struct pb_json_value **out_reply, const struct pb_json_value **out_job)
{
    const struct cli_service_options *o = again->options;
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "id", id);
    if (o->has_priority)
        pb_json_int(params, "priority", o->priority);
    if (o->dry_run)
        pb_json_bool(params, "dry_run", true);
    pb_json_end(params);
    int rc = cli_service_call(again->client, "job.again", pb_json_text(params, NULL), err,
                              out_reply, out_job);
    pb_json_destroy(params);
    return rc;
}

/* bulk: the job is from a list; then it is no failure if a later job made its products. */
static int refuse(struct again *again, const char *id, bool bulk, const struct pb_err *err)
{
    if (bulk && err->code == PB_E_JOB_SUPERSEDED) {
        again->n_superseded++;
        return CLI_DONE;
    }
    if (err->code == PB_E_INPUT_GONE)
        again->n_gone++;
    else
        again->n_refused++;
    if (!bulk || err->code != PB_E_INPUT_GONE)
        return cli_service_exit_of(id, err);
    cli_print_err_line(id, err);
    return CLI_JOB_FAILED;
}

static int make(struct again *again, const char *id, int64_t bytes, bool bulk)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *job = NULL;
    if (call(again, id, &err, &reply, &job) < 0)
        return refuse(again, id, bulk, &err);
    if (again->n_made++ == 0 && !again->options->json)
        cli_job_head();
    again->bytes += bytes >= 0 ? bytes : cli_job_number(job, "bytes_read");
    if (again->options->json)
        cli_put_json(job);
    else
        cli_job_line(job);
    pb_json_release(reply);
    return CLI_DONE;
}

static void sum_up(const struct again *again, bool bulk)
{
    const bool dry = again->options->dry_run;
    char size[16];
    if (again->options->json || (!bulk && !dry))
        return;
    printf("%zu %s%s%s", again->n_made, again->n_made == 1 ? "scene" : "scenes",
           dry ? " would be made again" : " queued", again->n_made > 0 ? ", reading " : "");
    if (again->n_made > 0)
        printf("%s", cli_bytes((double)again->bytes, size, sizeof size));
    if (again->n_gone > 0)
        printf("; %zu not in the archive any more", again->n_gone);
    if (again->n_superseded > 0)
        printf("; %zu left out, because later jobs made their products", again->n_superseded);
    if (again->n_refused > 0)
        printf("; %zu refused", again->n_refused);
    puts("");
}

/* Processes the successful jobs that the options' filters select, oldest first. */
static int make_listed(struct again *again)
{
    struct pb_err err = {0};
    struct cli_jobs jobs = {.n = 0};
    int rc = CLI_DONE;
    if (cli_jobs_read(again->client, again->options, "successful", CLI_JOBS_ALL, false, &err,
                      &jobs) < 0)
        return cli_service_exit(&err);
    for (size_t i = jobs.n; i > 0 && rc != CLI_UNREACHABLE; i--) {
        const struct pb_json_value *job = jobs.job[i - 1];
        if (strcmp(cli_job_text(job, "stage"), "scenes") == 0)
            continue; /* an archive: its scenes have jobs of their own */
        int one = make(again, cli_job_text(job, "id"), cli_job_number(job, "bytes_read"), true);
        rc = one != CLI_DONE ? one : rc;
    }
    cli_jobs_release(&jobs);
    return rc;
}

int cli_again(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct again again = {.options = &o};
    int rc = cli_service_parse("again", argc, argv, &o);
    const bool bulk = o.pipeline != NULL || o.since_ms > 0;
    if (rc == CLI_DONE && bulk == (o.n_words > 0))
        rc = cli_usage("again", bulk ? "name JOBs, or --pipeline and --since"
                                     : "which JOB? --pipeline and --since take all of a time");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &again.client);
    if (rc != CLI_DONE)
        return rc;
    if (bulk)
        rc = make_listed(&again);
    for (int i = 0; rc != CLI_UNREACHABLE && i < o.n_words; i++) {
        int one = make(&again, o.words[i], -1, false);
        rc = one != CLI_DONE ? one : rc;
    }
    if (rc != CLI_UNREACHABLE)
        sum_up(&again, bulk);
    pb_client_close(again.client);
    return rc;
}
