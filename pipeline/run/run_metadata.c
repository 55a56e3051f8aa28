/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_metadata.h"

#include "config/base/base_name.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/sidecar.h"

#include <stdio.h>
#include <time.h>

static void set_names(struct pb_run_metadata *out, const struct pb_run_options *options)
{
    const struct pb_input_config *input = &options->pipeline->input;
    const struct pb_scene_files *files = options->files;
    out->name[0] = files ? files->file[0].path : options->name ? options->name : options->input;
    for (size_t i = 0; i < input->n_sources; i++)
        out->name[i + 1] = files != NULL && files->file[i + 1].path != NULL
                               ? files->file[i + 1].path
                               : input->sources[i].file;
}

int pb_run_metadata_read(struct pb_run_metadata *out, const struct pb_run_options *options,
                         const char *scene, struct pb_err *err)
{
    struct pb_raster_file own = {.fd = -1}, file = {.fd = -1};
    int rc = 0;
    pb_metadata_init(&out->facts);
    set_names(out, options);
    if (options->pipeline->input.metadata == NULL)
        return 0;
    if (options->files != NULL)
        file = options->files->metadata; /* its descriptor stays the owner's */
    else if (options->metadata != NULL)
        file = *options->metadata;
    if (file.fd < 0) {
        rc = pb_sidecar_open(options->pipeline, options->input, scene, &own, err);
        file = own;
    }
    if (rc == 0)
        (void)snprintf(out->file, sizeof out->file, "%s", pb_base_name(file.path));
    rc = rc ? rc : pb_metadata_read_file(&file, &out->facts, err);
    pb_raster_file_close(&own);
    return rc;
}

void pb_run_metadata_output(const struct pb_run_metadata *metadata,
                            struct pb_output_facts *out_facts)
{
    const struct pb_metadata *f = &metadata->facts;
    struct tm tm = {.tm_isdst = 0};
    *out_facts = (struct pb_output_facts){.sensor = NULL};
    if (f->family == NULL)
        return;
    out_facts->sensor = f->platform[0] != '\0' ? f->platform : NULL;
    out_facts->has_time = strptime(f->datetime, "%Y-%m-%dT%H:%M:%S", &tm) != NULL;
    out_facts->time_s = out_facts->has_time ? (int64_t)timegm(&tm) : 0;
}
