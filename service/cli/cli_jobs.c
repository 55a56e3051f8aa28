/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Commands that use the service: submit, cancel, retry, metrics; status and watching are in
 * cli_status.c. */
#include "service/cli/cli.h"
#include "service/base/files.h"
#include "service/cli/cli_service.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_service_parse(const char *command, int argc, char **argv, struct cli_service_options *o)
{
    static const struct option longs[] = {{"socket", 1, 0, 's'},     {"json", 0, 0, 'j'},
                                          {"pipeline", 1, 0, 'p'},   {"wait", 0, 0, 'w'},
                                          {"watch", 0, 0, 'W'},      {"all", 0, 0, 'a'},
                                          {"until-idle", 0, 0, 'i'}, {"expect", 1, 0, 'e'},
                                          {"textfile", 1, 0, 'T'},   {0, 0, 0, 0}};
    static const char *const of_submit = "sjpw", *const of_status = "sjWaie",
                             *const of_metrics = "sjT", *const others = "sj";
    const char *allowed = strcmp(command, "submit") == 0    ? of_submit
                          : strcmp(command, "status") == 0  ? of_status
                          : strcmp(command, "metrics") == 0 ? of_metrics
                                                            : others;
    struct option mine[sizeof longs / sizeof longs[0]] = {{0}};
    char *end;
    for (size_t i = 0, n = 0; longs[i].name != NULL; i++)
        if (strchr(allowed, longs[i].val) != NULL)
            mine[n++] = longs[i];
    opterr = 0;
    for (int c;
         (c = getopt_long(argc, argv, strchr(allowed, 'p') ? ":p:" : ":", mine, NULL)) != -1;) {
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
        case 'j':
            o->json = true;
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
        default:
            return cli_bad_option(command, argv, c, mine);
        }
    }
    if ((o->until_idle || o->expect > 0) && !o->watch)
        return cli_usage(command, "--until-idle and --expect go with --watch");
    o->words = argv + optind;
    o->n_words = argc - optind;
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
    cli_print_err(err);
    return err->code == PB_E_SERVICE_UNREACHABLE || err->code == PB_E_SERVICE_PROTOCOL
               ? CLI_UNREACHABLE
               : CLI_JOB_FAILED;
}

/* {"id": word} */
static int call_on_job(struct pb_client *client, const char *method, const char *id,
                       struct pb_err *err, struct pb_json_value **out_reply,
                       const struct pb_json_value **out_job)
{
    struct pb_json *params = pb_json_create(false);
    pb_json_object(params, NULL);
    pb_json_string(params, "id", id);
    pb_json_end(params);
    int rc = pb_client_call(client, method, pb_json_text(params, NULL), err, out_reply, out_job);
    pb_json_destroy(params);
    return rc;
}

static int job_command(const char *command, const char *method, int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    int rc = cli_service_parse(command, argc, argv, &o);
    if (rc == CLI_DONE && o.n_words == 0)
        rc = cli_usage(command, "which JOB?");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    for (int i = 0; client != NULL && rc != CLI_UNREACHABLE && i < o.n_words; i++) {
        struct pb_err err = {0};
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *job = NULL;
        if (call_on_job(client, method, o.words[i], &err, &reply, &job) < 0)
            rc = cli_service_exit(&err); /* the others are taken all the same */
        else if (o.json)
            puts(pb_json_source(job));
        else
            cli_job_line(job);
        pb_json_release(reply);
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

/* For the textfile collector of the node exporter, which may read at any time: by a rename. */
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
        rc = cli_usage("metrics", "--textfile writes Prometheus text; it does not go with --json");
    if (rc == CLI_DONE)
        rc = cli_service_open(&o, &client);
    if (rc == CLI_DONE &&
        pb_client_call(client, "service.metrics", NULL, &err, &reply, &result) < 0)
        rc = cli_service_exit(&err);
    const char *text = pb_json_get_text(result, "text");
    if (rc == CLI_DONE && o.json)
        puts(pb_json_source(result));
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
    pb_json_string(params, "input", path);
    if (o->pipeline != NULL)
        pb_json_string(params, "pipeline", o->pipeline);
    pb_json_bool(params, "descriptor", true); /* it proves that we can read the file */
    pb_json_end(params);
    pb_client_pass(client, fd);
    int rc =
        pb_client_call(client, "job.submit", pb_json_text(params, NULL), err, out_reply, out_job);
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
    for (int i = 0; ids != NULL && i < o.n_words; i++) {
        struct pb_err err = {0};
        struct pb_json_value *reply = NULL;
        const struct pb_json_value *job = NULL;
        if (submit_one(client, &o, o.words[i], &err, &reply, &job) < 0) {
            rc = cli_service_exit(&err);
        } else {
            const char *id = pb_json_get_text(job, "id");
            (void)snprintf(ids[n++], CLI_ID_BYTES, "%s", id ? id : "");
            if (o.json && !o.wait)
                puts(pb_json_source(job));
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
