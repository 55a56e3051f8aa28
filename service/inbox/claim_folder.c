/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder of the inbox is checked twice, before and after its rename into work/: a file that was
 * written in between has other times, and a file that is still open for writing has a writer. No
 * leases are held, because a scene may have more files than a process may have descriptors. */
#include "service/inbox/intake.h"

#include "config/base/clock.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_walk.h"
#include "service/inbox/inbox.h"
#include "service/inbox/writers.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool is_written(const struct pb_scene_walk *walk)
{
    bool written = false;
    for (size_t i = 0; i < walk->n && !written; i++) {
        int fd =
            walk->entry[i].is_link ? -1 : pb_scene_walk_open_file(walk, walk->entry[i].path, -1);
        if (fd < 0)
            continue; /* the job reports it if it needs the file */
        written = pb_writers_look(fd) == -EBUSY;
        (void)close(fd);
    }
    return written;
}

static bool is_as_settled(const struct pb_settle_file *folder, const struct pb_scene_walk *walk,
                          bool moved)
{
    struct pb_settle_file now = {.size = 0};
    pb_inbox_folder_facts(walk, &now);
    return now.size == folder->size && now.ctime_ns == folder->ctime_ns &&
           (moved || now.mtime_ns == folder->mtime_ns);
}

/* Returns 0 also if the folder is incomplete but has waited for long enough; then the job reports
 * the missing files. -EAGAIN: the folder waits for the files that *err names. */
static int is_due(struct pb_intake *intake, const struct pb_settle_file *folder, const char *path,
                  const struct pb_scene_walk *walk, struct pb_err *err)
{
    char scene[256];
    int rc = 0;
    struct pb_err why = {0};
    int64_t waited_ms = pb_clock_wall_ms() - folder->mtime_ns / 1000000;
    pb_scene_files_name(path, scene, sizeof scene);
    (void)pthread_rwlock_rdlock(&intake->lock);
    const struct pb_pipeline_config *pipeline =
        pb_config_match_folder(intake->config, folder->name);
    if (pipeline != NULL && pb_scene_files_check(pipeline, walk, path, scene, &why) < 0 &&
        why.code == PB_E_INPUT_INCOMPLETE && waited_ms < pipeline->input.complete.expire_ms)
        rc = -EAGAIN;
    (void)pthread_rwlock_unlock(&intake->lock);
    if (rc != 0)
        (void)pb_fail(err, why.code, "%s", why.msg);
    return rc;
}

int pb_intake_check_folder(struct pb_intake *intake, const struct pb_settle_file *folder,
                           const char *path, bool moved, struct pb_err *err)
{
    struct pb_scene_walk walk;
    struct pb_err why = {0};
    int rc = pb_scene_walk_open(path, &why, &walk);
    if (rc < 0 && (why.code == PB_E_INPUT_LIMIT || why.code == PB_E_INPUT_DENIED))
        rc = pb_fail(err, why.code, "%s", why.msg);
    else if (rc < 0 && pb_code_class(why.code) != PB_CLASS_INPUT)
        rc = pb_fail(err, why.code, "%s", why.msg);
    else if (rc < 0 || !is_as_settled(folder, &walk, moved) || is_written(&walk))
        rc = -EAGAIN;
    else if (walk.n_linked > 0)
        rc = pb_fail(err, PB_E_INPUT_LINK,
                     "%zu of its files have several names (hard links) and may be another user's; "
                     "copy them",
                     walk.n_linked);
    else if (!moved)
        rc = is_due(intake, folder, path, &walk, err);
    pb_scene_walk_close(&walk);
    return rc;
}
