/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_archive.h"

#include "config/config.h"
#include "pipeline/scene/scene_archive.h"

static bool goes_on(void *user, uint64_t read_bytes)
{
    struct pb_worker_archive *u = user;
    if (read_bytes < u->last)
        u->before += u->last;
    u->last = read_bytes;
    if (u->before + read_bytes > atomic_load(&u->bytes))
        atomic_store(&u->bytes, u->before + read_bytes);
    return !atomic_load(&u->cancelled);
}

int pb_worker_archive_open(struct pb_worker_archive *unpacking, const struct pb_worker_child *child,
                           const struct pb_pipeline_config *pipeline,
                           const struct pb_worker_archive_how *how, struct pb_err *err,
                           struct pb_scene_files *out)
{
    const struct pb_config *config = child->config;
    struct pb_raster_file file;
    struct pb_scene_archive archive = {
        .file = &file,
        .scene = how->scene,
        .is_part = how->is_part,
        .scenes = &unpacking->scenes,
        .limits = &config->limits,
        .room = child->room,
        .room_name = child->room_name,
        .least_free = how->foreground ? 0 : config->service.retention.min_free_bytes,
        .goes_on = goes_on,
        .user = unpacking};
    out->folder = NULL;
    int rc = pb_raster_file_open(&file, child->scene->path, err);
    atomic_store(&unpacking->is_unpacking, true);
    rc = rc ? rc : pb_scene_archive_open(pipeline, &archive, err, out);
    atomic_store(&unpacking->is_unpacking, false);
    if (rc == 0)
        pb_scene_files_hand(out);
    pb_raster_file_close(&file);
    return rc;
}
