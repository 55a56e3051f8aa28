/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_OPTIONS_H
#define PB_RUN_OPTIONS_H
/* What a run is told: its scene, its pipeline, where products go and who computes. */
#include "config/config.h"
#include "config/base/err.h"

#include <stdint.h>

struct pb_input_files;
struct pb_metadata_files;
struct pb_output_facts;
struct pb_remote;
struct pb_scene_files;
struct pb_sidecars;

struct pb_run_options {
    const struct pb_config *config; /* borrowed until destroy */
    const struct pb_pipeline_config *pipeline;
    const char *input;                        /* path of the scene; borrowed until destroy */
    const struct pb_scene_files *files;       /* of a scene that is a folder, handed before
                                                 (pb_scene_files_hand); NULL = the scene is one file;
                                                 borrowed until destroy */
    const struct pb_metadata_files *metadata; /* of a scene that is one file: the open files of
                                              pb_sidecar_open; NULL = the run opens it, when the
                                              pipeline names one; borrowed until destroy */
    const struct pb_sidecars *sidecars;       /* of the scene, handed before
                                                 (pb_raster_file_hand_sidecars); NULL = none; borrowed
                                                 until destroy */
    const char
        *products; /* directory that gets <scene>/<pipeline>/, created when missing; NULL = the run
                      is only there to be explained: no file is touched, no tile allocated */
    const char *scene; /* NULL = base name of input without its suffix; copied */
    /* Where to write instead of below products: a directory that the caller made, and publishes or
     * removes afterwards, for the scene directory `place`. So a process that decodes foreign files
     * needs no right to any other place. NULL = the run makes and publishes one. Borrowed until
     * destroy. */
    const char *directory, *place;
    /* With directory, for a place that depends on the metadata (place NULL): tells it; borrowed
     * until destroy, NULL = the run is cancelled. */
    const char *(*locate)(void *user, const struct pb_output_facts *facts);
    /* With directory: the files that are read, with their checksums, which the caller computes;
     * waits for them; borrowed until destroy. NULL = they are not known. */
    int (*inputs)(void *user, struct pb_err *err, const struct pb_input_files **out);
    const char *room; /* without products: the directory that they would get, for the space that is
                         free there; NULL = it is not looked at; borrowed until destroy */
    void *user;       /* of both */
    int32_t jobs_beside;    /* processes that compute at the same time, up to so many; 0: none */
    const char *stream_why; /* why kernels come and go, whatever compute.sync says; NULL: as
                               configured; borrowed until destroy */
    const struct pb_remote *remote; /* the process that computes; NULL = this one, on the device
                                       that config chooses; borrowed until destroy */
    const char *name; /* of the input as it was delivered; NULL = base name of input; copied */
    const char *job;  /* id for the manifest; NULL = none; copied */
    unsigned mode;    /* permissions of product files; see struct pb_publish_options */
};
#endif
