/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/sidecars.h"

#include "config/base/base_name.h"
#include "config/base/json_writer.h"
#include "config/pipeline_config.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/scene_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pb_metadata_files_init(struct pb_metadata_files *files)
{
    *files = (struct pb_metadata_files){.n = 0};
    for (size_t i = 0; i < PB_METADATA_OPEN_MAX; i++)
        files->file[i].fd = -1;
}

void pb_metadata_files_close(struct pb_metadata_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        pb_raster_file_close(&files->file[i]);
    pb_metadata_files_init(files);
}

size_t pb_metadata_files_fds(const struct pb_metadata_files *files, int *out)
{
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++)
        if (files->file[i].fd >= 0)
            out[n++] = files->file[i].fd;
    return n;
}

/* --- metadata --------------------------------------------------------------------------------- */

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

static int open_metadata(const char *input, const char *scene, const char *form, int64_t reader,
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
        rc = open_metadata(input, scene, pipeline->input.metadata[i], reader, &out->file[out->n++],
                           err);
    return rc;
}

bool pb_sidecar_is_metadata(const struct pb_pipeline_config *pipeline, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < pipeline->input.n_metadata && !is; i++)
        is = pb_metadata_is_of(pipeline->input.metadata[i], NULL, NULL, pb_base_name(name));
    return is;
}

/* Returns true if the file of that name is metadata of `input`, in the same folder. */
static bool is_own(const struct pb_pipeline_config *pipeline, const char *input, const char *name)
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
        if (entry->d_name[0] != '.' && is_own(pipeline, input, entry->d_name))
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

/* --- sidecars --------------------------------------------------------------------------------- */

struct looking {
    const struct pb_input_config *input;
    const struct pb_scene_walk *walk; /* walk of the folder in which names are opened */
    const char *folder;
    int64_t reader;
    struct pb_err *err;
    struct pb_sidecars *out;
};

static int too_many(const struct looking *s)
{
    return pb_fail_at(s->err, PB_E_INPUT_LIMIT, s->folder, 0, 0,
                      "more than %d files fit input.sidecars", PB_SIDECARS_MAX);
}

/* stem: see struct pb_raster_file. */
static int open_one(const struct looking *s, const struct pb_scene_entry *entry, size_t stem)
{
    struct pb_sidecars *out = s->out;
    if (out->n == PB_SIDECARS_MAX)
        return too_many(s);
    struct pb_raster_file *file = &out->file[out->n];
    *file = (struct pb_raster_file){.fd = -1, .stem = stem};
    int rc = pb_scene_walk_open_raster(s->walk, s->folder, entry, s->reader, s->err, file);
    out->n += file->path != NULL;
    if (file->path == NULL)
        pb_raster_file_close(file);
    return rc;
}

static void remember(struct pb_sidecars *out, const char *path)
{
    out->n_unused_all++;
    if (out->n_unused < PB_SIDECARS_TOLD_MAX)
        (void)snprintf(out->unused[out->n_unused++], sizeof out->unused[0], "%s", path);
}

enum kind { OTHER, LISTED, UNUSED };

/* Classifies a name next to `main`, both inside the folder; records files that are not read. */
static enum kind look(const struct looking *s, const char *main, const char *path)
{
    const struct pb_input_config *input = s->input;
    const char *name = pb_base_name(path), *own = pb_base_name(main);
    if (pb_sidecar_is_any_of(own, input->sidecars, input->n_sidecars, false, name))
        return LISTED;
    bool is_metadata = false;
    for (size_t i = 0; i < input->n_metadata && !is_metadata; i++)
        is_metadata = pb_metadata_is_of(pb_base_name(input->metadata[i]), NULL, NULL, name);
    if (is_metadata || !pb_sidecar_is_any_of(own, NULL, 0, true, name))
        return OTHER;
    remember(s->out, path);
    return UNUSED;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pb_raster_file *)a)->path,
                  ((const struct pb_raster_file *)b)->path);
}

static int check_complete(const struct looking *s, const char *main)
{
    const struct pb_input_config *input = s->input;
    bool all = input->has_complete && input->complete.all != 0 && input->n_files == 0;
    for (size_t i = 0; all && i < input->n_sidecars; i++) {
        bool has = false;
        for (size_t k = 0; k < s->out->n && !has; k++)
            has = pb_sidecar_is_of(main, input->sidecars[i], pb_base_name(s->out->file[k].path));
        if (!has)
            return pb_fail_at(s->err, PB_E_INPUT_INCOMPLETE, s->folder, 0, 0,
                              "the sidecar %.60s of %.200s is missing", input->sidecars[i], main);
    }
    return 0;
}

int pb_sidecars_take_loose(const struct pb_pipeline_config *pipeline, const char *folder,
                           int64_t reader, const struct pb_raster_file *file, size_t n,
                           struct pb_err *err, struct pb_sidecars *out)
{
    memset(out, 0, sizeof *out);
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return pb_raster_file_fail(err, errno, folder, "cannot list it");
    const struct pb_scene_walk walk = {.fd = dirfd(directory)};
    const struct looking s = {&pipeline->input, &walk, folder, reader, err, out};
    int rc = 0;
    for (const struct dirent *e; rc == 0 && (e = readdir(directory)) != NULL;) {
        enum kind kind = e->d_name[0] != '.' && e->d_type != DT_DIR ? OTHER : UNUSED;
        for (size_t i = 0; kind == OTHER && i < n; i++) {
            if (file[i].path == NULL)
                continue;
            kind = look(&s, file[i].path, e->d_name);
            if (kind == LISTED)
                rc = open_one(&s, &(struct pb_scene_entry){.path = (char *)e->d_name},
                              pb_sidecar_shared(pb_base_name(file[i].path), e->d_name));
        }
    }
    (void)closedir(directory);
    if (out->n > 1)
        qsort(out->file, out->n, sizeof out->file[0], by_name);
    return rc;
}

int pb_sidecars_open(const struct pb_pipeline_config *pipeline, const char *input, int64_t reader,
                     struct pb_err *err, struct pb_sidecars *out)
{
    char folder[PATH_MAX];
    const struct pb_raster_file main = {.path = (char *)input};
    const struct looking s = {&pipeline->input, NULL, folder, reader, err, out};
    pb_path_parent(input, folder);
    int rc = pb_sidecars_take_loose(pipeline, folder, reader, &main, 1, err, out);
    return rc ? rc : check_complete(&s, pb_base_name(input));
}

static bool in_one_directory(const char *a, const char *b)
{
    size_t n = (size_t)(pb_base_name(a) - a);
    return (size_t)(pb_base_name(b) - b) == n && strncmp(a, b, n) == 0;
}

int pb_sidecars_find(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                     const char *folder, const char *const *main, size_t n, struct pb_err *err,
                     struct pb_sidecars *out, struct pb_sidecars_found *found)
{
    const struct looking s = {&pipeline->input, walk, folder, -1, err, out};
    found->n = 0;
    for (size_t i = 0; i < walk->n; i++) {
        const char *path = walk->entry[i].path;
        enum kind kind = OTHER;
        for (size_t k = 0; kind == OTHER && k < n; k++) {
            kind = in_one_directory(main[k], path) ? look(&s, main[k], path) : OTHER;
            if (kind != LISTED)
                continue;
            if (found->n == PB_SIDECARS_MAX)
                return too_many(&s);
            found->stem[found->n] = pb_sidecar_shared(pb_base_name(main[k]), pb_base_name(path));
            found->entry[found->n++] = &walk->entry[i];
        }
    }
    return 0;
}

void pb_sidecars_close(struct pb_sidecars *sidecars)
{
    for (size_t i = 0; i < sidecars->n; i++)
        pb_raster_file_close(&sidecars->file[i]);
    memset(sidecars, 0, sizeof *sidecars);
}

void pb_sidecars_text(const struct pb_sidecars *sidecars, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sidecars->n_unused && used < bytes; i++)
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", sidecars->unused[i]);
    if (sidecars->n_unused_all > sidecars->n_unused && used < bytes)
        (void)snprintf(text + used, bytes - used, " and %zu more",
                       sidecars->n_unused_all - sidecars->n_unused);
}

void pb_sidecars_print(const struct pb_sidecars *sidecars, struct pb_json *json)
{
    if (sidecars == NULL || sidecars->n + sidecars->n_unused == 0)
        return;
    pb_json_object(json, "sidecars");
    pb_json_array(json, "read");
    for (size_t i = 0; i < sidecars->n; i++)
        pb_json_string(json, NULL, pb_base_name(sidecars->file[i].path));
    pb_json_end(json);
    pb_json_array(json, "unused");
    for (size_t i = 0; i < sidecars->n_unused; i++)
        pb_json_string(json, NULL, sidecars->unused[i]);
    pb_json_end(json);
    pb_json_end(json);
}
