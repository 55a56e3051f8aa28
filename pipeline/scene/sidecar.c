/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/sidecar.h"

#include "config/base/base_name.h"
#include "config/pipeline_config.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/sidecar_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char folder[PATH_MAX]; /* folder of the scene's file */
    char name[NAME_MAX + 1];
    int fd; /* descriptor of the folder */
    int64_t reader;
};

static int missing(const struct place *at, const char *pattern, struct pb_err *err)
{
    return pb_fail_at(err, PB_E_INPUT_METADATA_MISSING, at->folder, 0, 0,
                      "the scene's metadata are not here: no file fits %.200s (input.metadata)",
                      pattern);
}

/* Finds the one name in the folder that matches; of several the one that belongs to the input by
 * its name. */
static int find(struct place *at, const char *pattern, const char *input, const char *scene,
                const char *filled, struct pb_err *err)
{
    bool is_own = false;
    DIR *directory = opendir(at->folder);
    int rc = 0;
    at->name[0] = '\0';
    if (directory == NULL)
        return missing(at, filled, err);
    for (struct dirent *entry; rc == 0 && (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.' || !pb_scene_walk_fits(filled, entry->d_name))
            continue;
        bool own = pb_metadata_is_of(pattern, scene, pb_base_name(input), entry->d_name);
        if (at->name[0] != '\0' && own != is_own) {
            if (own)
                (void)snprintf(at->name, sizeof at->name, "%s", entry->d_name);
            is_own = true;
            continue;
        }
        is_own = own;
        if (at->name[0] != '\0')
            rc = pb_fail_at(err, PB_E_INPUT_AMBIGUOUS, at->folder, 0, 0,
                            "two files fit input.metadata (%.100s): %.120s and %.120s", filled,
                            at->name, entry->d_name);
        (void)snprintf(at->name, sizeof at->name, "%s", entry->d_name);
    }
    at->fd = rc == 0 ? fcntl(dirfd(directory), F_DUPFD_CLOEXEC, 3) : -1;
    (void)closedir(directory);
    return rc == 0 && at->name[0] == '\0' ? missing(at, filled, err) : rc;
}

static int open_it(const struct place *at, struct pb_raster_file *out, struct pb_err *err)
{
    char path[PATH_MAX + NAME_MAX + 2];
    (void)snprintf(path, sizeof path, "%s/%s", at->folder, at->name);
    out->path = strdup(path);
    if (out->path == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", path);
    out->handed = true;
    const struct pb_scene_walk folder = {.fd = at->fd};
    int fd = pb_scene_walk_open_file(&folder, at->name, at->reader);
    out->fd = fd < 0 ? -1 : fd;
    if (fd == -ELOOP)
        return pb_fail_at(err, PB_E_INPUT_LINK, path, 0, 0, "the metadata are a symbolic link");
    if (fd == -EACCES || fd == -EPERM || fd == -ENOENT)
        return pb_fail_at(err, PB_E_INPUT_METADATA_MISSING, path, 0, 0,
                          "cannot open the scene's metadata: %s", strerror(-fd));
    if (fd < 0 || fstat(fd, &out->stat) < 0)
        return pb_raster_file_fail(err, fd < 0 ? -fd : errno, path, "cannot open the file");
    out->bytes = (uint64_t)out->stat.st_size;
    out->mtime_ns = pb_raster_file_mtime_ns(&out->stat);
    return S_ISREG(out->stat.st_mode) ? 0
                                      : pb_fail_at(err, PB_E_INPUT_METADATA_MISSING, path, 0, 0,
                                                   "the scene's metadata are no regular file");
}

static int open_one(const char *input, const char *scene, const char *form, int64_t reader,
                    struct pb_raster_file *out, struct pb_err *err)
{
    struct place at = {.fd = -1, .reader = reader};
    char pattern[PATH_MAX];
    pb_path_parent(input, at.folder);
    int rc = pb_scene_search_pattern(form, scene, pattern, err);
    rc = rc ? rc : find(&at, form, input, scene, pattern, err);
    rc = rc ? rc : open_it(&at, out, err);
    if (at.fd >= 0)
        (void)close(at.fd);
    return rc;
}

int pb_sidecar_open(const struct pb_pipeline_config *pipeline, const char *input, const char *scene,
                    int64_t reader, struct pb_metadata_files *out, struct pb_err *err)
{
    int rc = 0;
    pb_metadata_files_init(out);
    for (size_t i = 0; i < pipeline->input.n_metadata && rc == 0; i++)
        rc = open_one(input, scene, pipeline->input.metadata[i], reader, &out->file[out->n++], err);
    return rc;
}

/* --- of one loose file of several --- */

bool pb_sidecar_is_metadata(const struct pb_pipeline_config *pipeline, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < pipeline->input.n_metadata && !is; i++)
        is = pb_metadata_is_of(pipeline->input.metadata[i], NULL, NULL, pb_base_name(name));
    return is;
}

bool pb_sidecar_is_own(const struct pb_pipeline_config *pipeline, const char *input,
                       const char *name)
{
    bool is = false;
    for (size_t i = 0; i < pipeline->input.n_metadata && !is; i++)
        is = pb_metadata_is_of(pipeline->input.metadata[i], "", pb_base_name(input), name);
    return is;
}

static int open_named(struct place *at, const char *name, struct pb_metadata_files *out,
                      struct pb_err *err)
{
    if (out->n == PB_METADATA_FILES_MAX)
        return pb_fail_at(err, PB_E_INPUT_LIMIT, at->folder, 0, 0,
                          "more than %d files are its metadata (input.metadata)",
                          PB_METADATA_FILES_MAX);
    (void)snprintf(at->name, sizeof at->name, "%s", name);
    return open_it(at, &out->file[out->n++], err);
}

int pb_sidecar_open_own(const struct pb_pipeline_config *pipeline, const char *input,
                        int64_t reader, struct pb_metadata_files *out, struct pb_err *err)
{
    struct place at = {.reader = reader};
    int rc = 0;
    pb_metadata_files_init(out);
    pb_path_parent(input, at.folder);
    DIR *directory = opendir(at.folder);
    if (directory == NULL)
        return pb_raster_file_fail(err, errno, at.folder, "cannot list it");
    at.fd = dirfd(directory);
    for (const struct dirent *entry; rc == 0 && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' && pb_sidecar_is_own(pipeline, input, entry->d_name))
            rc = open_named(&at, entry->d_name, out, err);
    (void)closedir(directory);
    return rc;
}

bool pb_sidecar_main(const char *folder, char *out)
{
    struct stat st;
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, pb_base_name(folder));
    return n > 0 && n < PATH_MAX && lstat(out, &st) == 0 && S_ISREG(st.st_mode);
}
