/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run --dry-run`: plans in this process, with the rights of the calling user. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/device_word.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/explain/explain.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/nameless.h"
#include "pipeline/run/run.h"
#include "pipeline/run/run_view.h"
#include "pipeline/scene/scene.h"
#include "pipeline/scene/scene_archive.h"
#include "service/cli/cli.h"
#include "service/cli/cli_as.h"
#include "service/cli/cli_plan.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_device(const struct cli_run_options *o, const struct pb_config *config)
{
    char device[64], why[200];
    struct pb_err err = {0};
    if (o->as == NULL && o->verbose && pb_run_device(&config->compute, device, why, &err) == 0 &&
        why[0] != '\0')
        (void)fprintf(stderr, "pushbroom: computing on the CPU: %s\n", why);
}

/* Scene of an input, of which an archive may hold several. */
struct part {
    char name[256];
    bool is_part;                    /* the archive holds several scenes */
    struct pb_archive_scenes scenes; /* their names, found when it was opened without is_part */
    bool told;                       /* the error was printed with the plan */
    void **made;                     /* products of the planned scenes (cli_made_find) */
};

/* Opens an archive. Its members are extracted to where the products would be, but never get a
 * name. */
static int open_archive(const struct cli_run_options *o, const struct pb_config *config,
                        const struct cli_input *input, struct part *part, struct pb_err *err,
                        struct pb_scene_files *files)
{
    struct pb_raster_file file;
    struct pb_scene_archive archive = {.file = &file,
                                       .scene = part->name,
                                       .is_part = part->is_part,
                                       .scenes = &part->scenes,
                                       .limits = &config->limits,
                                       .room_name = o->output};
    archive.room = pb_nameless_open(o->output);
    if (archive.room < 0) {
        archive.room_name = "/var/tmp"; /* the output directory does not exist yet */
        archive.room = pb_nameless_open(archive.room_name);
    }
    if (archive.room < 0)
        return pb_io_fail(err, -archive.room, "cannot make a temporary file in", archive.room_name);
    int rc = pb_raster_file_open(&file, input->path, err);
    rc = rc ? rc : pb_scene_archive_open(input->pipeline, &archive, err, files);
    pb_raster_file_close(&file);
    (void)close(archive.room);
    return rc;
}

static int open_scene(const struct cli_run_options *o, const struct pb_config *config,
                      const struct cli_input *input, struct part *part, struct pb_err *err,
                      struct pb_scene *scene)
{
    struct pb_scene_manifest manifest;
    const struct pb_scene_opening how = {
        .pipeline = input->pipeline, .name = part->name, .reader = -1, .manifest = &manifest};
    if (input->is_folder || input->is_group)
        pb_scene_files_name(input->path, part->name, sizeof part->name);
    else if (!part->is_part)
        pb_file_name_scene(input->path, part->name, sizeof part->name);
    if (pb_scene_init(scene, input->path) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", input->path);
    int rc = cli_input_files(input, &manifest, err);
    if (rc != 0)
        return rc;
    rc = input->is_archive ? open_archive(o, config, input, part, err, &scene->files)
                           : pb_scene_open(scene, &how, err);
    pb_scene_manifest_fini(&manifest);
    return rc;
}

static void say_why(const struct cli_run_options *o, const struct pb_config *config,
                    const struct cli_input *input, char *out, size_t bytes)
{
    const struct pb_pipeline_config *pipeline = input->pipeline;
    enum pb_config_kind kind = input->is_group    ? PB_INPUT_GROUP
                               : input->is_folder ? PB_INPUT_FOLDER
                                                  : PB_INPUT_FILE;
    char fits[200];
    if (o->pipeline != NULL)
        (void)snprintf(out, bytes, "chosen with -p");
    else if (!pb_config_match_why(pipeline, input->path, kind, fits, sizeof fits))
        out[0] = '\0';
    else if (config->n_pipelines == 1)
        (void)snprintf(out, bytes, "%s", fits);
    else if (pipeline == config->pipelines)
        (void)snprintf(out, bytes, "%s, and it is the first of %zu pipelines", fits,
                       config->n_pipelines);
    else
        (void)snprintf(out, bytes, "%s, and none before it (%d of %zu) takes it", fits,
                       (int)(pipeline - config->pipelines) + 1, config->n_pipelines);
}

/* Prints the plan; *err: the error that the run would have nevertheless. */
static int print_plan(const struct cli_run_options *o, const struct pb_config *config,
                      const struct cli_as *as, const struct cli_input *input,
                      const struct pb_run *run, struct pb_err *err)
{
    const struct pb_explain_options options = {
        .products = o->output, .loose = input->is_group ? &input->group->files : NULL};
    struct pb_json *json = pb_json_create(false);
    char why[300], name[CLI_INPUT_NAME_BYTES];
    size_t bytes = 0;
    cli_input_name(input, name);
    say_why(o, config, input, why, sizeof why);
    pb_json_object(json, NULL);
    pb_json_string(json, "why", why);
    int rc = pb_explain(run, &options, json, err);
    if (as->device != NULL) {
        pb_json_object(json, "as");
        struct pb_run_view view;
        pb_run_view(run, &view);
        cli_as_json_plan(as, view.plan, json);
        pb_json_end(json);
    }
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    struct pb_json_value *plan = NULL;
    if (text == NULL || pb_json_parse(text, bytes, bytes, &plan) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the plan");
    else if (o->json)
        cli_result_plan(input->path, input->part, input->pipeline->name, text, rc < 0 ? err : NULL);
    else
        cli_plan_text(name, input->pipeline->name, why, plan, o->verbose);
    pb_json_release(plan);
    pb_json_destroy(json);
    return rc;
}

static int explain(const struct cli_run_options *o, const struct pb_config *config,
                   const struct cli_as *as, const struct cli_input *input, struct part *part,
                   struct pb_err *err)
{
    struct pb_run *run = NULL;
    struct pb_scene opened = {.path = NULL};
    struct pb_run_options options = {.config = config,
                                     .pipeline = input->pipeline,
                                     .input = &opened,
                                     .scene = part->name,
                                     .room = o->output};
    if (as->device != NULL)
        options.remote = &as->remote;
    int rc = open_scene(o, config, input, part, err, &opened);
    pb_scene_hand(&opened);
    rc = rc ? rc : pb_run_create(&options, err, &run);
    if (rc == 0) {
        rc = print_plan(o, config, as, input, run, err);
        part->told = o->json;
    } else if (err->code == PB_OK) {
        (void)pb_fail(err, PB_E_SYSTEM, "%s", strerror(-rc));
    }
    pb_run_destroy(run);
    pb_scene_hand(NULL);
    pb_scene_close(&opened);
    return rc;
}

/* Reports an input whose products would be in the place of those of an earlier input. */
static void note_place(const struct cli_input *input, const struct part *part)
{
    const struct pb_output_config *output = &input->pipeline->output;
    const struct cli_made *made = cli_made_find(part->made, input->pipeline, part->name);
    char name[CLI_INPUT_NAME_BYTES];
    (void)cli_made_add(part->made, input, part->name, "");
    if (made == NULL || cli_made_is_of(made, input) || output->exists == PB_EXISTING_VERSION ||
        pb_output_path_needs_metadata(output->path))
        return;
    cli_input_name(input, name);
    (void)fprintf(stderr,
                  "pushbroom: %s: its products have the place of those of %s (scene %s); unless "
                  "their content is the same, it will be refused\n  to do: %s\n",
                  name, made->input, part->name, CLI_RIVAL_HINT);
}

/* Plans a scene; returns false after a failure, which is printed. */
static bool plan_scene(const struct cli_run_options *o, const struct pb_config *config,
                       const struct cli_as *as, const struct cli_input *input, struct part *part)
{
    struct pb_err err = input->err;
    char name[CLI_INPUT_NAME_BYTES];
    cli_input_name(input, name);
    if (err.code == PB_OK && explain(o, config, as, input, part, &err) == 0) {
        if (!o->quiet)
            note_place(input, part);
        return true;
    }
    if (part->scenes.n > 0) /* each has a plan of its own */
        return true;
    if (err.code == PB_E_INPUT_OUTSIDE) {
        if (o->json)
            cli_result_plan(input->path, input->part, input->pipeline->name, "null", &err);
        else
            cli_result_skipped(name, err.msg);
        return true;
    }
    if (!part->told)
        cli_input_failed(o, input, "", &err);
    return false;
}

/* Plans the scene of an input, or each scene of an archive. */
static bool plan_input(const struct cli_run_options *o, const struct pb_config *config,
                       const struct cli_as *as, const struct cli_input *input, void **made)
{
    struct part all = {.is_part = false, .made = made};
    bool good = plan_scene(o, config, as, input, &all);
    for (size_t i = 0; i < all.scenes.n; i++) {
        struct part one = {.is_part = true, .made = made};
        struct cli_input scene = *input;
        (void)snprintf(one.name, sizeof one.name, "%s", all.scenes.name[i]);
        scene.part = one.name;
        good = plan_scene(o, config, as, &scene, &one) && good;
    }
    free(all.scenes.name);
    return good;
}

int cli_dry_run(const struct cli_run_options *o, struct pb_config *config)
{
    int code = CLI_DONE;
    struct cli_as as = {.device = NULL};
    void *made = NULL;
    if (o->as != NULL) {
        code = cli_as_find("run", o->as, &as);
        if (code != CLI_DONE)
            return code;
        cli_as_apply(&as, &config->compute);
    }
    if (o->device != NULL)
        (void)pb_device_word(o->device, &config->compute);
    for (size_t i = 0; o->existing != NULL && i < config->n_pipelines; i++)
        config->pipelines[i].output.exists = (enum pb_existing)pb_existing_find(o->existing);
    if (!o->quiet && config->compute.device == PB_DEVICE_AUTO)
        say_device(o, config);
    for (int i = 0; i < o->n_inputs; i++) {
        struct cli_input input;
        cli_input_check(o, config, i, &input);
        if (!plan_input(o, config, &as, &input, &made))
            code = CLI_JOB_FAILED;
    }
    cli_made_free(&made);
    return code;
}
