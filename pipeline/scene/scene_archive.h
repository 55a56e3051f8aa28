/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_ARCHIVE_H
#define PB_SCENE_ARCHIVE_H
/* The files of a scene that is a ZIP or TAR archive of a folder, as those of the folder: which one
 * each band is, and each open as a part of the archive, or of a nameless file into which it was
 * unpacked. To be called in the process that decodes the job. One thread. */
#include "config/config.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/scene_files.h"

struct pb_scene_archive {
    const struct pb_raster_file *file; /* the archive, open; borrowed until the call ends */
    const char *scene;                 /* for {scene}, unless a folder in it tells */
    const struct pb_limits *limits;
    int room;              /* an empty file to unpack into (pb_nameless_open); borrowed */
    const char *room_name; /* its directory, for messages */
    uint64_t least_free;   /* bytes that stay free there */
    /* Called while the archive is read; false ends that with -ECANCELED. NULL: nobody waits. */
    bool (*goes_on)(void *user, uint64_t read_bytes);
    void *user;
};

/* The scene is the one folder in the archive that input.scene fits; where none does, the files at
 * the top, or the only folder there; for input.group the files there of one scene. What macOS adds
 * (__MACOSX, ._NAME) is ignored. The members that the pipeline needs are verified, and unpacked
 * where need be. On failure *err names the archive and has the codes of pb_archive_list,
 * pb_archive_take and pb_scene_search, and input.archive_scene: several folders are scenes, or none
 * is. *out needs close in any case. */
int pb_scene_archive_open(const struct pb_pipeline_config *pipeline,
                          const struct pb_scene_archive *archive, struct pb_err *err,
                          struct pb_scene_files *out);
#endif
