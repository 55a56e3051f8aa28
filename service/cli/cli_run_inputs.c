/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Makes jobs for the worker from the inputs of `pushbroom run`. */
#include "config/base/json_writer.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_files.h"
#include "service/base/files.h"
#include "service/cli/cli_run_jobs_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_run_how how_of(const struct cli_jobs *jobs, const struct cli_input *input)
{
    return (struct pb_run_how){.products = jobs->products,
                               .device = jobs->o->device,
                               .foreground = true,
                               .path = input->pipeline->output.path,
                               .existing = jobs->o->existing};
}

/* Sets the names of the files whose metadata determine the scene. */
static int set_files(struct pb_job *job, const struct cli_group *group)
{
    if (group == NULL || group->names == NULL)
        return 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_array(json, NULL);
    for (size_t i = 0; i < group->n; i++)
        pb_json_string(json, NULL, group->names[i]);
    pb_json_end(json);
    int rc = pb_job_set(&job->files, pb_json_text(json, NULL));
    pb_json_destroy(json);
    return rc ? rc : job->files != NULL ? 0 : -ENOMEM;
}

static int make_job(const struct cli_jobs *jobs, int at, const struct cli_input *input,
                    struct pb_job *out_job)
{
    const char *base = strrchr(input->path, '/');
    pb_job_init(out_job);
    (void)snprintf(out_job->id, sizeof out_job->id, "%d", at + 1);
    (void)snprintf(out_job->name, sizeof out_job->name, "%s", base ? base + 1 : input->path);
    (void)snprintf(out_job->pipeline, sizeof out_job->pipeline, "%s", input->pipeline->name);
    if (input->is_folder || input->is_group)
        pb_scene_files_name(input->path, out_job->scene, sizeof out_job->scene);
    else
        pb_file_name_scene(input->path, out_job->scene, sizeof out_job->scene);
    out_job->attempts = jobs->attempt;
    int rc = pb_job_set(&out_job->input, input->path);
    return rc ? rc : set_files(out_job, input->group);
}

/* Takes the result of the check that was made while the previous input ran. */
void cli_jobs_take(struct cli_jobs *jobs)
{
    if (jobs->checked == jobs->at && jobs->at > 0)
        jobs->input = jobs->next;
    else
        cli_input_check(jobs->o, jobs->config, jobs->at, &jobs->input);
}

/* Checks the next input and announces it to the worker while an input runs. */
static void prepare_next(struct cli_jobs *jobs)
{
    struct pb_run_how how;
    struct pb_job job;
    int at = jobs->at + 1;
    /* the trace is written between two inputs */
    if (at >= jobs->o->n_inputs || jobs->o->trace != NULL)
        return;
    cli_input_check(jobs->o, jobs->config, at, &jobs->next);
    jobs->checked = at;
    if (jobs->next.err.code != PB_OK)
        return;
    how = how_of(jobs, &jobs->next);
    if (make_job(jobs, at, &jobs->next, &job) == 0)
        pb_worker_slot_tell_next(jobs->slot, &job, &how);
    pb_job_fini(&job);
}

/* Finds the real path of the output directory, for the worker. The worker makes the directory and
 * reports an error if it cannot. */
static void find_products(struct cli_jobs *jobs)
{
    const char *output = jobs->o->output;
    if (jobs->products[0] != '\0')
        return;
    (void)pb_files_make_directory(output, "output", NULL);
    if (realpath(output, jobs->products) == NULL)
        (void)snprintf(jobs->products, sizeof jobs->products, "%s", output);
}

int cli_jobs_start(struct cli_jobs *jobs, struct pb_err *err)
{
    find_products(jobs);
    struct pb_run_how how = how_of(jobs, &jobs->input);
    struct pb_job job;
    if (pb_worker_slot_is_empty(jobs->slot) && pb_worker_slot_start(jobs->slot, err) != 0)
        return pb_code_errno(err->code);
    if (make_job(jobs, jobs->at, &jobs->input, &job) != 0) {
        pb_job_fini(&job);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the run");
    }
    cli_progress_begin(&jobs->progress, jobs->input.path);
    pb_worker_slot_run(jobs->slot, &job, &how);
    prepare_next(jobs);
    return 0;
}
