/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Inputs of `pushbroom run` as tasks: makes jobs for the workers from them, and prints the results
 * in the order of the inputs. */
#include "config/base/base_name.h"
#include "config/base/json_reader.h"
#include "config/base/text_clean.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/product/product.h"
#include "pipeline/scene/scene_files.h"
#include "service/base/files.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_run_jobs_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- results ---------------------------------------------------------------------------------- */

static void count_result(struct cli_sum *sum, const struct cli_task *task)
{
    const bool is_left_out = pb_job_is_left_out(&task->job);
    char name[200];
    struct cli_input base = task->input;
    char full[CLI_INPUT_NAME_BYTES];
    if (task->err.code == PB_OK) {
        sum->done += !is_left_out;
        sum->skipped += is_left_out;
        return;
    }
    if (++sum->failed > CLI_FAILED_NAMED)
        return;
    const size_t used = strlen(sum->names);
    base.path = pb_base_name(base.path);
    cli_input_name(&base, full);
    if (strstr(sum->names, full) != NULL) /* inputs of one name are named by their paths */
        cli_input_name(&task->input, full);
    (void)pb_text_clean(full, name, sizeof name);
    (void)snprintf(sum->names + used, sizeof sum->names - used, "%s%s", used > 0 ? ", " : "", name);
}

void cli_tasks_sum(const struct cli_jobs *jobs)
{
    const struct cli_sum *sum = &jobs->sum;
    if (jobs->o->json || sum->failed == 0 || sum->done + sum->skipped + sum->failed < 2)
        return;
    (void)fprintf(stderr, "%d done, ", sum->done);
    if (sum->skipped > 0)
        (void)fprintf(stderr, "%d skipped, ", sum->skipped);
    (void)fprintf(stderr, "%d failed: %s", sum->failed, sum->names);
    if (sum->failed > CLI_FAILED_NAMED)
        (void)fprintf(stderr, " and %d more", sum->failed - CLI_FAILED_NAMED);
    (void)fputc('\n', stderr);
}

static void print_result(struct cli_jobs *jobs, const struct cli_task *task)
{
    const struct cli_run_options *o = jobs->o;
    char name[CLI_INPUT_NAME_BYTES];
    cli_input_name(&task->input, name);
    cli_progress_clear(&jobs->progress);
    if (task->is_split) /* its parts have results */
        return;
    count_result(&jobs->sum, task);
    if (task->err.code != PB_OK)
        cli_input_failed(o, &task->input, task->job.device_why, &task->err);
    else if (o->json)
        cli_result_done(task->input.path, task->input.part, &task->job);
    else if (!o->quiet)
        cli_result_text(name, &task->job, o->verbose);
}

static void destroy(struct cli_task *task)
{
    if (task != NULL) {
        pb_job_fini(&task->job);
        pb_scene_manifest_fini(&task->archive);
    }
    free(task);
}

static void print_ready(struct cli_jobs *jobs)
{
    while (jobs->first != NULL && jobs->first->over) {
        struct cli_task *task = jobs->first;
        print_result(jobs, task);
        jobs->first = task->next;
        destroy(task);
    }
    if (jobs->first == NULL)
        jobs->last = NULL;
}

/* Records the place of the products. If only metadata determine places, an earlier input's products
 * may have been replaced; that is reported. */
static void note_made(struct cli_jobs *jobs, struct cli_task *task)
{
    const struct cli_made *rival = task->input.rival;
    const char *directory = task->job.directory != NULL ? task->job.directory : "";
    char name[CLI_INPUT_NAME_BYTES];
    cli_input_name(&task->input, name);
    if (rival == NULL) {
        if (!cli_made_add(&jobs->made, &task->input, task->scene, directory))
            (void)pb_fail(&task->err, PB_E_MEMORY, "out of memory");
    } else if (strcmp(rival->directory, directory) == 0 && !cli_made_is_of(rival, &task->input) &&
               !jobs->o->quiet) {
        cli_progress_clear(&jobs->progress);
        (void)fprintf(stderr, "pushbroom: %s: its products replaced those of %s\n", name,
                      rival->input);
    }
}

void cli_task_over(struct cli_jobs *jobs, struct cli_task *task, const struct pb_err *err)
{
    task->over = true;
    if (err != NULL)
        task->err = *err;
    else if (!task->is_split && !pb_job_is_left_out(&task->job))
        note_made(jobs, task);
    jobs->failed = jobs->failed || task->err.code != PB_OK;
    print_ready(jobs);
}

bool cli_tasks_end(struct cli_jobs *jobs)
{
    bool unfinished = jobs->held != NULL || jobs->at < jobs->o->n_inputs;
    destroy(jobs->held);
    jobs->held = NULL;
    while (jobs->first != NULL) {
        struct cli_task *task = jobs->first;
        if (task->over)
            print_result(jobs, task);
        unfinished = unfinished || !task->over;
        jobs->first = task->next;
        destroy(task);
    }
    return unfinished;
}

/* --- the next input --------------------------------------------------------------------------- */

static void append(struct cli_jobs *jobs, struct cli_task *task)
{
    if (jobs->last != NULL)
        jobs->last->next = task;
    else
        jobs->first = task;
    jobs->last = task;
}

/* Returns NULL if all inputs have begun, or out of memory. */
static struct cli_task *check_next(struct cli_jobs *jobs)
{
    struct cli_task *task = jobs->at < jobs->o->n_inputs ? calloc(1, sizeof *task) : NULL;
    if (task == NULL)
        return NULL;
    const struct cli_input *input = &task->input;
    task->number = jobs->at++;
    task->attempt = 1;
    cli_input_check(jobs->o, jobs->config, task->number, &task->input);
    if (input->is_folder || input->is_group)
        pb_scene_files_name(input->path, task->scene, sizeof task->scene);
    else
        pb_file_name_scene(input->path, task->scene, sizeof task->scene);
    return task;
}

/* Returns true if their products may have one place. */
static bool are_rivals(const struct cli_task *a, const struct cli_task *b)
{
    return a->input.pipeline == b->input.pipeline && strcmp(a->scene, b->scene) == 0;
}

/* Returns true if the result of one of them depends on the end of the other. */
static bool are_bound(const struct cli_task *a, const struct cli_task *b)
{
    return strcmp(a->scene, b->scene) == 0 ||
           (pb_products_share(a->input.pipeline) && pb_products_share(b->input.pipeline));
}

static bool has_to_wait(const struct cli_jobs *jobs, const struct cli_task *held,
                        const struct cli_slot *after)
{
    for (const struct cli_task *task = jobs->first; task != NULL; task = task->next)
        if (!task->over && !task->waits && are_bound(task, held) &&
            (after == NULL || task != after->task || are_rivals(task, held)))
            return true;
    return false;
}

/* --- scenes of an archive --------------------------------------------------------------------- */

static struct cli_task *make_part(const struct cli_task *task, int number, const char *scene,
                                  const struct pb_json_value *archive)
{
    struct cli_task *part = calloc(1, sizeof *part);
    if (part == NULL || (archive != NULL && pb_scene_manifest_read(archive, &part->archive) != 0)) {
        free(part);
        return NULL;
    }
    part->number = task->number;
    part->attempt = 1;
    part->input = task->input;
    part->part = number;
    part->waits = true;
    (void)snprintf(part->scene, sizeof part->scene, "%s", scene);
    part->input.part = part->scene;
    return part;
}

bool cli_task_split(struct cli_jobs *jobs, struct cli_task *task, const char *names)
{
    struct pb_json_value *value = NULL;
    struct cli_task *after = task;
    bool good = pb_json_parse(names, strlen(names), strlen(names), &value) == 0;
    const struct pb_json_value *scenes = pb_json_get(value, "scenes", NULL);
    for (size_t i = 0; good && i < pb_json_count(scenes); i++) {
        struct cli_task *part = make_part(task, (int)i + 1, pb_json_text_of(pb_json_at(scenes, i)),
                                          pb_json_get(value, "manifest", NULL));
        good = part != NULL;
        if (good) {
            part->next = after->next;
            after->next = part;
            after = part;
        }
    }
    if (jobs->last == task)
        jobs->last = after;
    pb_json_release(value);
    return good;
}

static struct cli_task *first_waiting(const struct cli_jobs *jobs)
{
    struct cli_task *task = jobs->first;
    while (task != NULL && !task->waits)
        task = task->next;
    return task;
}

static void find_rival(const struct cli_jobs *jobs, struct cli_task *task)
{
    task->input.rival = cli_made_find(&jobs->made, task->input.pipeline, task->scene);
}

struct cli_task *cli_task_take(struct cli_jobs *jobs, const struct cli_slot *after)
{
    struct cli_task *part = first_waiting(jobs);
    if (part != NULL) {
        part->waits = has_to_wait(jobs, part, after);
        find_rival(jobs, part);
        return part->waits ? NULL : part;
    }
    for (;;) {
        struct cli_task *task = jobs->held = jobs->held ? jobs->held : check_next(jobs);
        const bool fails = task != NULL && task->input.err.code != PB_OK;
        if (task == NULL || (!fails && has_to_wait(jobs, task, after)))
            return NULL;
        jobs->held = NULL;
        append(jobs, task);
        find_rival(jobs, task);
        if (!fails)
            return task;
        cli_task_over(jobs, task, &task->input.err);
    }
}

/* --- jobs ------------------------------------------------------------------------------------- */

static struct pb_run_how how_of(const struct cli_jobs *jobs, const struct cli_input *input)
{
    return (struct pb_run_how){
        .products = jobs->products,
        .device = jobs->o->device,
        .foreground = true,
        .turn = jobs->n_slots > 1,
        .path = input->pipeline->output.path,
        /* only what was there before the command is replaced */
        .existing = cli_input_is_rivalled(jobs->o, input) ? "refuse" : jobs->o->existing};
}

int cli_input_files(const struct cli_input *input, struct pb_scene_manifest *out,
                    struct pb_err *err)
{
    static const struct pb_scene_manifest none;
    if (pb_scene_manifest_copy(out, input->is_group ? &input->group->files : &none) == 0 &&
        pb_scene_manifest_set_input(out, input->path) == 0)
        return 0;
    pb_scene_manifest_fini(out);
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", input->path);
}

static int make_job(const struct cli_task *task, struct pb_job *out_job, struct pb_err *err)
{
    const struct cli_input *input = &task->input;
    const char *base = strrchr(input->path, '/');
    pb_job_init(out_job);
    if (task->part > 0)
        (void)snprintf(out_job->id, sizeof out_job->id, "%d.%d", task->number + 1, task->part);
    else
        (void)snprintf(out_job->id, sizeof out_job->id, "%d", task->number + 1);
    if (task->part > 0)
        (void)snprintf(out_job->archive, sizeof out_job->archive, "%d", task->number + 1);
    (void)snprintf(out_job->name, sizeof out_job->name, "%s", base ? base + 1 : input->path);
    (void)snprintf(out_job->pipeline, sizeof out_job->pipeline, "%s", input->pipeline->name);
    (void)snprintf(out_job->scene, sizeof out_job->scene, "%s", task->scene);
    out_job->attempts = task->attempt;
    if (task->part == 0)
        return cli_input_files(input, &out_job->manifest, err);
    return pb_scene_manifest_copy(&out_job->manifest, &task->archive) == 0 &&
                   pb_scene_manifest_set_input(&out_job->manifest, input->path) == 0
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory for the run");
}

/* Returns true if an input may be bound to a slot: inputs are left even if each free slot takes
 * one. */
static bool may_announce(const struct cli_jobs *jobs)
{
    if (jobs->n_slots > 1 && jobs->turns.apart) /* it would begin at any time */
        return false;
    int left = jobs->o->n_inputs - jobs->at + (jobs->held != NULL);
    for (const struct cli_task *task = jobs->first; task != NULL; task = task->next)
        left += task->waits;
    for (int i = 0; i < jobs->n_slots; i++)
        left -= jobs->slot[i].task == NULL && jobs->slot[i].next == NULL;
    return left > 0;
}

/* Announces the next input to the worker, which runs one. Another slot cannot take it any more;
 * therefore the last inputs are left for the free slots. */
static void prepare_next(struct cli_jobs *jobs, struct cli_slot *slot)
{
    struct pb_job job;
    if (jobs->o->trace == NULL && may_announce(jobs)) /* the trace is written between two inputs */
        slot->next = cli_task_take(jobs, slot);
    if (slot->next == NULL)
        return;
    const struct pb_run_how how = how_of(jobs, &slot->next->input);
    if (make_job(slot->next, &job, NULL) == 0)
        pb_worker_slot_tell_next(slot->worker, &job, &how);
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

int cli_task_start(struct cli_jobs *jobs, struct cli_slot *slot, struct pb_err *err)
{
    find_products(jobs);
    const struct pb_run_how how = how_of(jobs, &slot->task->input);
    struct pb_job job;
    if (pb_worker_slot_is_empty(slot->worker) && pb_worker_slot_start(slot->worker, err) != 0)
        return pb_code_errno(err->code);
    if (make_job(slot->task, &job, err) != 0) {
        pb_job_fini(&job);
        return pb_code_errno(err->code);
    }
    pb_turns_begin(&jobs->turns, (int)(slot - jobs->slot));
    pb_worker_slot_run(slot->worker, &job, &how);
    if (slot->next == NULL)
        prepare_next(jobs, slot);
    return 0;
}
