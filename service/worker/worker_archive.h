/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_ARCHIVE_H
#define PB_WORKER_ARCHIVE_H
/* Input that is an archive, in the process that computes: its members are unpacked there, where
 * only the descriptors of the archive and of a nameless file can be reached. */
#include "pipeline/scene/scene_archive.h"
#include "pipeline/scene/scene_files.h"
#include "service/worker/worker_child.h"

#include <stdatomic.h>

/* All-zero: no archive is unpacked. Thread: any. */
struct pb_worker_archive {
    atomic_bool is_unpacking, cancelled;
    _Atomic uint64_t bytes; /* bytes read of the archive, over all walks */
    /* used only by the job's thread: bytes of earlier walks, and of this one */
    uint64_t before, last;
    struct pb_archive_scenes scenes; /* with input.scenes; read after the job's thread ended */
};

/* Options of the command that runs the job. */
struct pb_worker_archive_how {
    const char *scene;
    bool is_part;    /* see struct pb_scene_archive */
    bool foreground; /* no free space is reserved */
};

/* Opens the scene in the archive and passes its files on (pb_scene_files_hand). *out needs close in
 * any case. Returns -ECANCELED without *err after a cancel. Thread: the job's. */
int pb_worker_archive_open(struct pb_worker_archive *unpacking, const struct pb_worker_child *child,
                           const struct pb_pipeline_config *pipeline,
                           const struct pb_worker_archive_how *how, struct pb_err *err,
                           struct pb_scene_files *out);
#endif
