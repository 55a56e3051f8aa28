/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_inputs.h"

#include "config/base/base_name.h"
#include "config/pipeline_config.h"
#include "pipeline/raster/source_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct pb_input_part part[PB_INPUT_FILES_MAX];
    size_t n;
    struct pb_raster_file source[PB_FILES_MAX]; /* owned */
    size_t n_sources;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pb_input_part *)a)->name, ((const struct pb_input_part *)b)->name);
}

static void add(struct list *list, const struct pb_raster_file *file, const char *name,
                enum pb_input_role role, bool beside)
{
    if (file != NULL && file->fd >= 0 && list->n < PB_INPUT_FILES_MAX)
        list->part[list->n++] = (struct pb_input_part){file, name, role, beside};
}

/* Sidecars may mask or place the pixels, therefore they belong to the input. */
static void add_sidecars(struct list *list, const struct pb_sidecars *sidecars,
                         const struct pb_scene_files *files)
{
    for (size_t i = 0; sidecars != NULL && i < sidecars->n; i++) {
        const char *path = sidecars->file[i].path;
        add(list, &sidecars->file[i],
            files ? pb_scene_files_inner(files, path) : pb_base_name(path), PB_INPUT_SIDECAR,
            false);
    }
}

static void add_scene(struct list *list, const struct pb_scene *scene)
{
    const struct pb_scene_files *files = pb_scene_several(scene);
    if (files == NULL) {
        bool alone = scene->sidecars.n == 0;
        add(list, &scene->file, alone ? NULL : pb_base_name(scene->file.path), PB_INPUT_PIXELS,
            false);
        add_sidecars(list, &scene->sidecars, NULL);
        for (size_t i = 0; i < scene->metadata.n; i++)
            add(list, &scene->metadata.file[i], pb_base_name(scene->metadata.file[i].path),
                PB_INPUT_METADATA, true);
        return;
    }
    for (size_t i = 0; i < files->n + files->n_spare; i++)
        if (files->file[i].fd >= 0)
            add(list, &files->file[i], pb_scene_files_inner(files, files->file[i].path),
                PB_INPUT_PIXELS, false);
    for (size_t i = 0; i < files->metadata.n; i++)
        add(list, &files->metadata.file[i],
            pb_scene_files_inner(files, files->metadata.file[i].path), PB_INPUT_METADATA, false);
    if (files->list.fd >= 0)
        add(list, &files->list, pb_scene_files_inner(files, files->list.path), PB_INPUT_METADATA,
            false);
    add_sidecars(list, files->sidecars, files);
    qsort(list->part, list->n, sizeof *list->part, by_name);
}

/* A source that cannot be opened is omitted here: the run fails with the reason. */
static void add_sources(struct list *list, const struct pb_scene_inputs *in)
{
    const struct pb_input_config *input = &in->pipeline->input;
    char path[PATH_MAX];
    for (size_t i = 0; i < input->n_sources; i++) {
        const struct pb_source_config *source = &input->sources[i];
        struct pb_raster_file *file = &list->source[list->n_sources];
        struct pb_err ignored = {0};
        if (source->of_scene || strstr(source->file, "{scene}") == NULL ||
            pb_source_path(in->config, source, in->name, path, &ignored) < 0)
            continue;
        list->n_sources++;
        if (pb_raster_file_open(file, path, &ignored) == 0)
            add(list, file, pb_base_name(file->path), PB_INPUT_SOURCE, true);
    }
}

int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_input_sum **out_sum)
{
    struct list list = {.n = 0};
    add_scene(&list, inputs->scene);
    add_sources(&list, inputs);
    int rc =
        pb_input_sum_create(list.part, list.n, inputs->pipeline->output.checksum, err, out_sum);
    for (size_t i = 0; i < list.n_sources; i++)
        pb_raster_file_close(&list.source[i]);
    return rc;
}
