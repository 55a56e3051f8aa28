/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCENE_ARCHIVE_H
#define PB_SCENE_ARCHIVE_H
/* Files of a scene that is a ZIP or TAR archive of a folder, treated like those of the folder:
 * assigns files to bands and opens each as a part of the archive, or of a nameless file into
 * which it was unpacked. Call it in the process that decodes the job. One thread. */
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/scene_files.h"

struct pb_limits;
struct pb_pipeline_config;

#define PB_ARCHIVE_SCENES_MAX 1000

/* Names of the scenes in an archive, in the order of its members. */
struct pb_archive_scenes {
    char (*name)[256]; /* malloc'd */
    size_t n;
};

struct pb_scene_archive {
    const struct pb_raster_file *file; /* the archive, open; borrowed until the call ends */
    const char *scene;                 /* for {scene}, unless a folder in the archive defines it */
    bool is_part; /* the archive holds several scenes, of which this one is opened */
    struct pb_archive_scenes *scenes; /* set with input.scenes; the caller's; NULL: not wanted */
    const struct pb_limits *limits;
    int room;              /* an empty file to unpack into (pb_nameless_open); borrowed */
    const char *room_name; /* its directory, for messages */
    uint64_t least_free;   /* bytes that must remain free there */
    /* Called while the archive is read; false ends that with -ECANCELED. NULL: not called. */
    bool (*goes_on)(void *user, uint64_t read_bytes);
    void *user;
};

/* A scene is each folder at the top of the archive that matches input.scene; without a match, the
 * files at the top, or the only folder there; for input.group the files of one name. Several
 * scenes without is_part are the error input.scenes.
 * Files of macOS (__MACOSX, ._NAME) are ignored. The members that the pipeline needs are
 * verified, and unpacked if necessary. On failure *err names the archive and has the codes of
 * pb_archive_list, pb_archive_take and pb_scene_search, and input.archive_scene: no folder
 * is a scene. *out needs close in any case. */
int pb_scene_archive_open(const struct pb_pipeline_config *pipeline,
                          const struct pb_scene_archive *archive, struct pb_err *err,
                          struct pb_scene_files *out);
#endif
