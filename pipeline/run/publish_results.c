/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/publish_results.h"
#include "config/pipeline_config.h"
#include "pipeline/run/finish.h"
#include "pipeline/scene/scene.h"
#include "pipeline/scene/scene_inputs.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACES_MAX 1000 /* more conflicts are probably caused on purpose */

int pb_publish_begin(const struct pb_run_options *run, const struct pb_output_facts *facts,
                     const struct pb_raster_info *info, struct pb_err *err,
                     struct pb_publish **out_publish)
{
    const struct pb_scene_files *files = pb_scene_several(run->input);
    struct pb_publish_options options = {.products = run->products,
                                         .scene = facts->scene,
                                         .sensor = facts->sensor,
                                         .has_time = facts->has_time,
                                         .time_s = facts->time_s,
                                         .pipeline = run->pipeline->name,
                                         .path = run->pipeline->output.path,
                                         .collection = pb_products_collection(run->pipeline),
                                         .job = run->job,
                                         .input_path = run->input->path,
                                         .is_folder =
                                             files != NULL && run->pipeline->input.group == NULL,
                                         .set = run->pipeline->input.group != NULL ? files : NULL,
                                         .is_open = run->pipeline->input.complete.reopen_ms > 0,
                                         .existing = run->pipeline->output.exists,
                                         .mode = run->mode};
    struct pb_scene scene = *run->input; /* only its file is opened here */
    const struct pb_scene_inputs inputs = {.config = run->config,
                                           .pipeline = run->pipeline,
                                           .name = facts->scene,
                                           .delivered = options.input.name,
                                           .scene = &scene};
    pb_input_id_set(&options.input,
                    run->name ? run->name
                    : files   ? files->folder
                              : run->input->path,
                    files ? files->bytes : info->file_bytes,
                    files ? files->mtime_ns : info->file_mtime_ns);
    int rc = files != NULL ? 0 : pb_raster_file_open(&scene.file, scene.path, err);
    rc = rc ? rc : pb_scene_inputs_sum(&inputs, err, &options.files, &options.sum);
    if (files == NULL)
        pb_raster_file_close(&scene.file);
    return rc ? rc : pb_publish_open(&options, err, out_publish);
}

static int describe(const struct pb_product_result *results, size_t n,
                    struct pb_manifest_file *files, struct pb_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct pb_product_result *from = &results[i];
        struct pb_manifest_file *to = &files[i];
        (void)snprintf(to->type, sizeof to->type, "%s", from->kind->section.name);
        (void)snprintf(to->name, sizeof to->name, "%s", from->name ? from->name : "");
        (void)snprintf(to->media_type, sizeof to->media_type, "%s", from->media_type);
        (void)snprintf(to->checksum, sizeof to->checksum, "%s", from->checksum);
        to->bytes = from->bytes;
        if ((size_t)snprintf(to->file, sizeof to->file, "%s", from->file) >= sizeof to->file)
            return pb_fail(err, PB_E_OUTPUT_NAME, "the file name %.200s... is too long",
                           from->file);
    }
    return 0;
}

int pb_publish_results(struct pb_publish *publish, const struct pb_run_products *products,
                       struct pb_product_result *results, size_t n, struct pb_err *err,
                       char *out_directory)
{
    struct pb_manifest_file *files = calloc(n + 1, sizeof *files);
    if (files == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for publishing");
    int rc = PB_PUBLISH_MOVED;
    for (int i = 0; i < PLACES_MAX && rc == PB_PUBLISH_MOVED; i++) {
        if (i > 0 && products == NULL) /* products of tiles, whose items are already written */
            rc = pb_fail(err, PB_E_OUTPUT_EXISTS,
                         "another input took the place of this scene meanwhile; run it again");
        else
            rc = i == 0 ? 0 : pb_finish_items(products, err, results);
        rc = rc ? rc : describe(results, n, files, err);
        rc = rc ? rc : pb_publish_commit(publish, files, n, err, out_directory);
    }
    free(files);
    if (rc == PB_PUBLISH_MOVED)
        rc = pb_fail(err, PB_E_OUTPUT_EXISTS, "others took %d places for this scene meanwhile",
                     PLACES_MAX);
    return rc;
}
