/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run --dry-run`: plans in this process, with the rights of who calls it. */
#include "config/device_word.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene_files.h"
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_run.h"

#include <string.h>

static void say_device(const struct pb_config *config)
{
    char device[64], why[200];
    struct pb_err err = {0};
    if (pb_run_device(&config->compute, device, why, &err) == 0 && why[0] != '\0')
        (void)fprintf(stderr, "pushbroom: computing on the CPU: %s\n", why);
}

static int explain(const struct cli_run_options *o, const struct pb_config *config,
                   const struct cli_input *input, struct pb_err *err)
{
    char text[8192], scene[256];
    struct pb_run *run = NULL;
    struct pb_scene_files files = {.folder = NULL};
    struct pb_run_options options = {
        .config = config, .pipeline = input->pipeline, .input = input->path};
    int rc = 0;
    if (input->is_folder || input->is_group) {
        pb_scene_files_name(input->path, scene, sizeof scene);
        rc = input->is_group
                 ? pb_scene_files_open_group(input->pipeline, input->path, -1, err, &files)
                 : pb_scene_files_open(input->pipeline, input->path, scene, -1, err, &files);
        pb_scene_files_hand(&files);
        options.scene = scene;
        options.files = &files;
    }
    rc = rc ? rc : pb_run_create(&options, err, &run);
    if (rc == 0)
        (void)pb_run_explain(run, text, sizeof text);
    if (rc == 0 && o->json)
        cli_result_plan(input->path, input->pipeline->name, text);
    else if (rc == 0)
        (void)fputs(text, stdout);
    else if (err->code == PB_OK)
        (void)pb_fail(err, PB_E_SYSTEM, "%s", strerror(-rc));
    pb_run_destroy(run);
    if (options.files != NULL)
        pb_scene_files_hand(NULL);
    pb_scene_files_close(&files);
    return rc;
}

int cli_dry_run(const struct cli_run_options *o, struct pb_config *config)
{
    int code = CLI_DONE;
    if (o->device != NULL)
        (void)pb_device_word(o->device, &config->compute);
    if (!o->quiet && config->compute.device == PB_DEVICE_AUTO)
        say_device(config);
    for (int i = 0; i < o->n_inputs; i++) {
        struct cli_input input;
        cli_input_check(o, config, i, &input);
        struct pb_err err = input.err;
        if (err.code == PB_OK && explain(o, config, &input, &err) == 0)
            continue;
        cli_input_failed(o, &input, "", &err);
        code = CLI_JOB_FAILED;
    }
    return code;
}
