/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The child that reads the metadata of one loose file: one thread, one line, no command. */
#include "service/worker/worker_child.h"

#include "config/base/base_name.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/run/file_facts.h"
#include "pipeline/scene/scene_walk.h"
#include "service/base/line_reader.h"
#include "service/worker/described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Page of the file's bands, by the first pattern of input.files that it matches; 0 without one. */
static int32_t page_of(const struct pb_input_config *input, const char *path)
{
    for (size_t i = 0; i < input->n_files; i++)
        if (pb_scene_walk_fits(input->files[i].match, pb_base_name(path)))
            return input->files[i].page;
    return 0;
}

static int read_facts(const struct pb_worker_child *child,
                      const struct pb_pipeline_config *pipeline, struct pb_err *err,
                      struct pb_group_facts *out)
{
    static const struct pb_group_facts none = {.date = "", .tile = "x"};
    struct pb_metadata_files metadata = child->scene->metadata; /* files belong to the caller */
    struct pb_raster_file file = child->scene->file;
    struct pb_file_facts facts;
    const struct pb_file_wants wants = {
        .date = pb_group_pattern_lacks(pipeline->input.group_pattern, &none) != NULL,
        .page = page_of(&pipeline->input, file.path)};
    file.handed = true;
    int rc = pb_file_facts_read(metadata.file, metadata.n, &file, &child->config->limits, &wants,
                                &facts, err);
    if (rc == 0) {
        (void)snprintf(out->date, sizeof out->date, "%s", facts.datetime);
        (void)snprintf(out->tile, sizeof out->tile, "%s", facts.tile);
    }
    return rc;
}

_Noreturn void pb_worker_child_describe(const struct pb_worker_child *child,
                                        const struct pb_pipeline_config *pipeline)
{
    struct pb_described described = {.facts = {.date = ""}};
    struct pb_err err = {0};
    char text[PB_CONFINE_TEXT_BYTES];
    size_t bytes = 0;
    pb_raster_init(); /* the worker may fork before it prepared GDAL */
    int rc = pb_confine_apply(child->confine, &err, text);
    pb_raster_file_hand_sidecars(child->scene->sidecars.file, child->scene->sidecars.n);
    rc = rc ? rc : read_facts(child, pipeline, &err, &described.facts);
    if (rc != 0 && err.line == 0 && strcmp(err.file, child->scene->path) == 0)
        err.file[0] = '\0'; /* the service adds the name */
    if (rc != 0)
        pb_described_fail_err(&described, &err);
    const char *line = pb_json_text(pb_described_line(&described), &bytes);
    _exit(line != NULL && pb_line_send(child->socket, line, bytes, NULL, 0) ? 0 : 1);
}
