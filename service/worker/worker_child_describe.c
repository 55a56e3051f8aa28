/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The child that reads the metadata of one loose file: one thread, one line, no command. */
#include "service/worker/worker_child.h"

#include "config/base/json_writer.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/run/file_facts.h"
#include "pipeline/scene/sidecar.h"
#include "service/base/line_reader.h"
#include "service/worker/described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_facts(const struct pb_worker_child *child,
                      const struct pb_pipeline_config *pipeline, struct pb_err *err,
                      struct pb_group_facts *out)
{
    static const struct pb_group_facts none = {.date = "", .tile = "x"};
    struct pb_metadata_files metadata = {.n = 0};
    struct pb_raster_file file = {.path = strdup(child->input), .fd = child->input_fd};
    struct pb_file_facts facts;
    const struct pb_file_wants wants = {
        .date = pb_group_pattern_lacks(pipeline->input.group_pattern, &none) != NULL};
    if (child->metadata != NULL)
        metadata = *child->metadata; /* descriptors and paths belong to the caller */
    int rc = file.path == NULL                 ? pb_fail(err, PB_E_MEMORY, "out of memory")
             : fstat(file.fd, &file.stat) != 0 ? pb_fail(err, PB_E_INPUT_IO, "cannot stat it")
                                               : 0;
    file.bytes = (uint64_t)file.stat.st_size;
    file.mtime_ns = pb_raster_file_mtime_ns(&file.stat);
    file.handed = true;
    rc = rc ? rc
            : pb_file_facts_read(metadata.file, metadata.n, &file, &child->config->limits, &wants,
                                 &facts, err);
    free(file.path);
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
    int rc = pb_confine_apply(child->confine, &err, text);
    if (child->sidecars != NULL)
        pb_raster_file_hand_sidecars(child->sidecars->file, child->sidecars->n);
    rc = rc ? rc : read_facts(child, pipeline, &err, &described.facts);
    if (rc != 0 && err.line == 0 && strcmp(err.file, child->input) == 0)
        err.file[0] = '\0'; /* the service adds the name */
    if (rc != 0)
        pb_described_fail_err(&described, &err);
    const char *line = pb_json_text(pb_described_line(&described), &bytes);
    _exit(line != NULL && pb_line_send(child->socket, line, bytes, NULL, 0) ? 0 : 1);
}
