/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/child_files.h"

#include "pipeline/raster/raster_file.h"

#include <unistd.h>

/* The descriptors stay the reader's. */
static bool take_sources(struct pb_source_files *sources, const struct pb_json_value *list,
                         const struct pb_line_reader *reader)
{
    size_t n = pb_json_count(list), next = 1;
    if (n >= PB_FILES_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        int64_t error = 0;
        if (pb_json_get_int(pb_json_at(list, i), "error", &error) != 0 || error < 0 ||
            error > 4095 || (error == 0 && next >= reader->n_passed))
            return false;
        sources->fd[i] = error > 0 ? -(int)error : reader->passed[next++];
    }
    sources->n = n;
    return next == reader->n_passed;
}

int pb_child_files_take(struct pb_child_files *files, struct pb_line_reader *reader,
                        const struct pb_json_value *command, const struct pb_config *config,
                        struct pb_err *err)
{
    const char *name = pb_json_get_text(command, "pipeline");
    const struct pb_json_value *list = pb_json_get(command, "sources", NULL);
    if (!take_sources(&files->sources, list, reader)) {
        files->sources.n = 0;
        while (reader->n_passed > 0)
            (void)close(reader->passed[--reader->n_passed]);
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "a run command whose descriptors are not those of its files");
    }
    files->input = reader->passed[0];
    reader->n_passed = 0;
    pb_raster_file_hand(pb_json_get_text(command, "input"), files->input);
    pb_source_files_hand(config, pb_config_pipeline(config, name),
                         pb_json_get_text(command, "scene"), &files->sources);
    return 0;
}

void pb_child_files_forget(struct pb_child_files *files)
{
    pb_raster_file_hand("", -1);
    pb_source_files_hand(NULL, NULL, NULL, NULL);
    pb_source_files_close(&files->sources);
    if (files->input >= 0)
        (void)close(files->input);
    files->input = -1;
}
