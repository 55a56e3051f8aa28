/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroom run` in one process for many command lines, which are lines of stdin with a tab
 * between two arguments. Each runs in a fork; a line {"exit": CODE} follows its output. The linker
 * puts the function below in front of pb_explain (--wrap). It adds to the plan of a run with --as
 * NAME: "served"  the passes as the process that owns the GPU plans them from the run's requests
 *   "own"     the passes of a process that computes on such a GPU itself */
#include "config/base/json_writer.h"
#include "pipeline/plan/choose.h"
#include "pipeline/explain/explain.h"
#include "pipeline/explain/explain_plan.h"
#include "pipeline/plan/served.h"
#include "pipeline/raster/raster.h"
#include "pipeline/run/run_inside.h"
#include "pipeline/run/served/said_blocks.h"
#include "service/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 64 };

int __real_pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
                      struct pb_json *json, struct pb_err *err);
int __wrap_pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
                      struct pb_json *json, struct pb_err *err);

static void put_refusal(const struct pb_err *err, struct pb_json *json)
{
    pb_json_object(json, "refused");
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", err->msg);
    pb_json_end(json);
}

/* Plan of one pass in the process that owns the GPU: *out_plan owns *out_pass. */
static int serve(const struct pb_run *run, uint32_t number, struct pb_err *err,
                 struct pb_plan **out_plan, struct pb_plan **out_pass)
{
    const struct pb_plan *plan = run->plan;
    const struct pb_plan *pass = number < plan->n_earlier ? plan->earlier[number] : plan;
    const struct pb_plan_request owner = {.config = run->options.config,
                                          .pipeline = run->options.pipeline,
                                          .cuda = true,
                                          .traits = run->options.remote->traits};
    struct pb_served_request *request = malloc(sizeof *request);
    struct pb_served_tail tail = {.data = NULL};
    if (request == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = pb_served_request_make(&run->facts, plan, number, err, request, &tail);
    if (rc == 0 && pass->engine.whole.used)
        rc = pb_said_blocks_make(pass, (const struct pb_raster *const *)run->sources.raster,
                                 request, &tail, err);
    rc = rc ? rc : pb_plan_serve(&owner, request, &tail, err, out_plan, out_pass);
    pb_served_tail_free(&tail);
    free(request);
    return rc;
}

static void put_served(const struct pb_run *run, struct pb_json *json)
{
    pb_json_array(json, "served");
    for (uint32_t i = 0; i <= run->plan->n_earlier; i++) {
        struct pb_plan *plan = NULL, *pass = NULL;
        struct pb_err err = {0};
        pb_json_object(json, NULL);
        if (serve(run, i, &err, &plan, &pass) == 0)
            pb_explain_pass(pass, json);
        else
            put_refusal(&err, json);
        pb_json_end(json);
        pb_plan_destroy(plan);
    }
    pb_json_end(json);
}

static void put_own(const struct pb_run *run, struct pb_json *json)
{
    struct pb_plan_request request = run->facts;
    struct pb_plan *plan = NULL;
    struct pb_err err = {0};
    request.remote = false;
    request.cuda = true;
    request.traits = run->options.remote->traits;
    pb_json_object(json, "own");
    if (pb_plan_create(&request, &err, &plan) == 0)
        pb_explain_passes(plan, json);
    else
        put_refusal(&err, json);
    pb_json_end(json);
    pb_plan_destroy(plan);
}

int __wrap_pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
                      struct pb_json *json, struct pb_err *err)
{
    int rc = __real_pb_explain(run, options, json, err);
    if (run->options.remote == NULL)
        return rc;
    if (run->remote != NULL)
        put_served(run, json);
    put_own(run, json);
    return rc;
}

/* Runs the command line of a fork of this process; returns its exit code. */
static int run_line(char *line)
{
    char *argument[ARGUMENTS_MAX + 1], *save = NULL;
    int n = 0;
    for (char *word = strtok_r(line, "\t\n", &save); word != NULL && n < ARGUMENTS_MAX;
         word = strtok_r(NULL, "\t\n", &save))
        argument[n++] = word;
    argument[n] = NULL;
    optind = 0;
    int code = n > 0 && strcmp(argument[0], "run") == 0 ? cli_run(n, argument) : CLI_USAGE;
    return cli_flush() == 0 ? code : CLI_JOB_FAILED;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    struct pb_err err = {0};
    if (pb_raster_ready(&err) != 0) {
        (void)fprintf(stderr, "golden_plans: %s\n", err.msg);
        return 1;
    }
    while (getline(&line, &room, stdin) > 0) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0)
            exit(run_line(line));
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 1;
        printf("{\"exit\": %d}\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
