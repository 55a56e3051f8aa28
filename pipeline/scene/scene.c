/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
