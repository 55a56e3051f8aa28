/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene.h"

#include "config/base/archive_name.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_identity.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/sidecars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct pb_scene pb_scene_at(const char *path)
{
    struct pb_scene scene = {.path = (char *)path, .file = {.fd = -1}};
    pb_metadata_files_init(&scene.metadata);
    return scene;
}

int pb_scene_init(struct pb_scene *scene, const char *path)
{
    *scene = pb_scene_at(strdup(path));
    return scene->path != NULL ? 0 : -ENOMEM;
}

void pb_scene_close(struct pb_scene *scene)
{
    if (scene->path == NULL)
        return;
    pb_raster_file_close(&scene->file);
    pb_metadata_files_close(&scene->metadata);
    pb_sidecars_close(&scene->sidecars);
    pb_scene_files_close(&scene->files);
    free(scene->path);
    *scene = pb_scene_at(NULL);
}

/* --- opening --------------------------------------------------------------------------------- */

/* Checks that the folder is the one that was submitted. */
static int check_folder(const char *path, struct pb_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !pb_file_identity_is_expected(&st))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, path, 0, 0,
                          "it is not the folder that was submitted: replaced, or files were added "
                          "or removed since; submit it again");
    return 0;
}

static int open_folder(struct pb_scene *scene, const struct pb_scene_opening *how,
                       struct pb_err *err)
{
    const struct pb_scene_joined joined = {how->manifest, how->joins};
    if (how->joins != NULL)
        return pb_scene_files_open_joined(how->pipeline, scene->path, how->name, &joined, err,
                                          &scene->files);
    int rc =
        pb_scene_files_open(how->pipeline, scene->path, how->name, how->reader, err, &scene->files);
    return rc ? rc : check_folder(scene->path, err);
}

static int open_file(struct pb_scene *scene, const struct pb_scene_opening *how, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = how->pipeline;
    int rc = pb_raster_file_open(&scene->file, scene->path, err);
    if (rc != 0 || pipeline->input.n_files > 0) /* an archive contains the files next to it */
        return rc == 0 && pb_archive_name_stem(scene->path) == 0
                   ? pb_fail_at(err, PB_E_INPUT_NO_PIPELINE, scene->path, 0, 0,
                                "pipeline %s takes folders (input.scene) and archives of them "
                                "(" PB_ARCHIVE_NAME_SUFFIXES "), and this is another file",
                                pipeline->name)
                   : rc;
    rc = pb_sidecar_open(pipeline, scene->path, how->name, how->reader, &scene->metadata, err);
    return rc ? rc : pb_sidecars_open(pipeline, scene->path, how->reader, err, &scene->sidecars);
}

int pb_scene_open(struct pb_scene *scene, const struct pb_scene_opening *how, struct pb_err *err)
{
    const struct pb_input_config *input = &how->pipeline->input;
    struct stat st;
    const bool is_there = stat(scene->path, &st) == 0;
    if (input->n_files > 0 && is_there && S_ISDIR(st.st_mode))
        return open_folder(scene, how, err);
    if (input->n_files > 0 && !is_there && input->group_pattern != NULL && how->manifest != NULL)
        return pb_scene_files_open_group(how->pipeline, scene->path, how->manifest, err,
                                         &scene->files);
    return open_file(scene, how, err);
}

/* --- the open files -------------------------------------------------------------------------- */

const struct pb_scene_files *pb_scene_several(const struct pb_scene *scene)
{
    return scene->files.folder != NULL ? &scene->files : NULL;
}

const struct pb_sidecars *pb_scene_sidecars(const struct pb_scene *scene)
{
    return scene->files.folder != NULL ? scene->files.sidecars : &scene->sidecars;
}

void pb_scene_hand(const struct pb_scene *scene)
{
    const struct pb_scene_files *several = scene != NULL ? pb_scene_several(scene) : NULL;
    if (scene == NULL || several != NULL) {
        pb_scene_files_hand(several);
        return;
    }
    if (scene->file.fd >= 0)
        pb_raster_file_hand(scene->path, scene->file.fd);
    pb_raster_file_hand_sidecars(scene->sidecars.file, scene->sidecars.n);
}

size_t pb_scene_fds(const struct pb_scene *scene, int *out)
{
    size_t n = 0;
    if (scene->files.folder != NULL)
        return pb_scene_files_fds(&scene->files, out);
    if (scene->file.fd >= 0)
        out[n++] = scene->file.fd;
    for (size_t i = 0; i < scene->sidecars.n; i++)
        out[n++] = scene->sidecars.file[i].fd;
    return n + pb_metadata_files_fds(&scene->metadata, out + n);
}
