/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_files.h"
#include "pipeline/io/path.h"
#include "config/base/base_name.h"

#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_walk.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char SCENE[] = "{scene}";
static const char SAFE[] = ".SAFE";

void pb_scene_files_name(const char *folder, char *out, size_t bytes)
{
    char name[PATH_MAX], clean[256];
    size_t n;
    const char *base = pb_base_name_folder(folder, &n);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, base);
    pb_file_name_clean(name, clean);
    size_t length = strlen(clean);
    if (length > sizeof SAFE - 1 && strcasecmp(clean + length - (sizeof SAFE - 1), SAFE) == 0)
        clean[length - (sizeof SAFE - 1)] = '\0';
    if (clean[0] == '.')
        clean[0] = '_';
    (void)snprintf(out, bytes, "%s", clean[0] != '\0' ? clean : "scene");
}

/* --- what is looked for ----------------------------------------------------------------------*/

struct search {
    const struct pb_pipeline_config *pipeline;
    const char *folder, *scene;
    const struct pb_scene_walk *walk;
    int64_t reader;
    struct pb_scene_files *files; /* NULL: nothing is opened */
    struct pb_err *err;
    char missing[300]; /* "SCL (SCL.tif), B (B02.tif)" */
    size_t n_missing, n_wanted;
};

int pb_scene_files_pattern(const char *pattern, const char *scene, char *out, struct pb_err *err)
{
    size_t n = 0;
    for (const char *p = pattern; *p != '\0' && n + 2 < PATH_MAX;) {
        if (strncmp(p, SCENE, sizeof SCENE - 1) != 0) {
            out[n++] = *p++;
            continue;
        }
        for (const char *q = scene; *q != '\0' && n + 3 < PATH_MAX; q++) {
            if (strchr("*?[]\\", *q) != NULL)
                out[n++] = '\\';
            out[n++] = *q;
        }
        p += sizeof SCENE - 1;
    }
    out[n] = '\0';
    return n + 3 < PATH_MAX
               ? 0
               : pb_fail(err, PB_E_CONFIG_VALUE, "the pattern %.100s... is too long", pattern);
}

static void note_missing(struct search *s, const char *what, const char *pattern)
{
    size_t used = strlen(s->missing);
    s->n_missing++;
    if (used + strlen(what) + strlen(pattern) + 6 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, "%s%s (%s)", used ? ", " : "",
                       what, pattern);
    else if (used > 3 && strcmp(s->missing + used - 3, "...") != 0 && used + 6 < sizeof s->missing)
        (void)snprintf(s->missing + used, sizeof s->missing - used, ", ...");
}

static int two_files(const struct search *s, const char *what, const struct pb_scene_entry *a,
                     const struct pb_scene_entry *b)
{
    return pb_fail_at(s->err, PB_E_INPUT_AMBIGUOUS, s->folder, 0, 0,
                      "two files fit %s: %.150s and %.150s", what, a->path, b->path);
}

/* The one entry that fits; *out NULL: none does. */
static int find(struct search *s, const char *what, const char *pattern,
                const struct pb_scene_entry **out)
{
    char filled[PATH_MAX];
    *out = NULL;
    int rc = pb_scene_files_pattern(pattern, s->scene, filled, s->err);
    for (size_t i = 0; i < s->walk->n && rc == 0; i++) {
        const struct pb_scene_entry *entry = &s->walk->entry[i];
        if (!pb_scene_walk_fits(filled, entry->path))
            continue;
        if (*out != NULL)
            return two_files(s, what, *out, entry);
        *out = entry;
    }
    if (rc == 0 && *out == NULL)
        note_missing(s, what, pattern);
    return rc;
}

static int open_entry(struct search *s, const struct pb_scene_entry *entry,
                      struct pb_raster_file *file)
{
    const char *folder = s->folder;
    int fd = entry->is_link ? -ELOOP : pb_scene_walk_open_file(s->walk, entry->path, s->reader);
    if (fd == -ELOOP)
        return pb_fail_at(s->err, PB_E_INPUT_LINK, folder, 0, 0,
                          "%.200s is a symbolic link, or lies behind one", entry->path);
    size_t bytes = strlen(folder) + strlen(entry->path) + 2;
    file->path = malloc(bytes);
    file->fd = fd;
    file->handed = true;
    if (file->path == NULL)
        return pb_fail(s->err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    (void)snprintf(file->path, bytes, "%s/%s", folder, entry->path);
    if (fd == -ENOENT)
        return pb_fail_at(s->err, PB_E_INPUT_CHANGED, folder, 0, 0,
                          "%.200s went away while the scene was opened", entry->path);
    if (fd == -EACCES || fd == -EPERM)
        return pb_fail_at(s->err, PB_E_INPUT_MISSING, folder, 0, 0, "cannot open %.200s: %s",
                          entry->path, strerror(-fd));
    if (fd < 0 || fstat(fd, &file->stat) != 0)
        return pb_raster_file_fail(s->err, fd < 0 ? -fd : errno, file->path,
                                   "cannot open the file");
    if (!S_ISREG(file->stat.st_mode))
        return pb_fail_at(s->err, PB_E_INPUT_CHANGED, folder, 0, 0,
                          "%.200s was replaced while the scene was opened", entry->path);
    file->bytes = (uint64_t)file->stat.st_size;
    return 0;
}

/* One file of the scene: looked for when it belongs to a complete one, opened when needed. */
static int take(struct search *s, const char *what, const char *pattern, bool is_needed,
                struct pb_raster_file *file)
{
    const struct pb_scene_entry *entry;
    if (!is_needed && s->pipeline->input.complete.all == 0)
        return 0;
    s->n_wanted++;
    int rc = find(s, what, pattern, &entry);
    return rc < 0 || entry == NULL || !is_needed || file == NULL ? rc : open_entry(s, entry, file);
}

static int take_all(struct search *s)
{
    const struct pb_input_config *input = &s->pipeline->input;
    char what[100];
    (void)snprintf(what, sizeof what, "band %s", input->bands[0].name);
    struct pb_scene_files *files = s->files;
    int rc = take(s, what, input->file, true, files ? &files->file[0] : NULL);
    for (size_t i = 0; i < input->n_sources && rc == 0; i++) {
        const struct pb_source_config *source = &input->sources[i];
        (void)snprintf(what, sizeof what, "band %s", source->name);
        if (source->of_scene)
            rc = take(s, what, source->file, source->is_needed, files ? &files->file[i + 1] : NULL);
    }
    if (rc == 0 && input->metadata != NULL)
        rc = take(s, "metadata", input->metadata, true, files ? &files->metadata : NULL);
    if (rc == 0 && s->n_missing > 0)
        rc = pb_fail_at(s->err, PB_E_INPUT_INCOMPLETE, s->folder, 0, 0,
                        "%zu of %zu files of the scene %s missing: %s", s->n_missing, s->n_wanted,
                        s->n_missing == 1 ? "is" : "are", s->missing);
    return rc;
}

static void sum_up(struct pb_scene_files *files)
{
    for (size_t i = 0; i <= files->n; i++) {
        const struct pb_raster_file *file = i < files->n ? &files->file[i] : &files->metadata;
        if (file->fd < 0)
            continue;
        int64_t ns = (int64_t)file->stat.st_mtim.tv_sec * 1000000000 + file->stat.st_mtim.tv_nsec;
        files->bytes += file->bytes;
        files->mtime_ns = ns > files->mtime_ns ? ns : files->mtime_ns;
    }
}

/* group: of loose files; NULL: all that lies in the folder is the scene. */
static int open_files(const struct pb_pipeline_config *pipeline, const char *folder,
                      const struct pb_group_pattern *group, const char *scene, int64_t reader,
                      struct pb_err *err, struct pb_scene_files *out)
{
    struct pb_scene_walk walk;
    struct search s = {.pipeline = pipeline,
                       .scene = scene,
                       .walk = &walk,
                       .reader = reader,
                       .files = out,
                       .err = err};
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        out->file[i].fd = -1;
    out->metadata.fd = -1;
    out->n = 1 + pipeline->input.n_sources;
    out->folder = strndup(folder, length);
    if (out->folder == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    s.folder = out->folder;
    int rc = group != NULL ? pb_scene_walk_open_group(out->folder, group, scene, err, &walk)
                           : pb_scene_walk_open(out->folder, err, &walk);
    rc = rc ? rc : take_all(&s);
    pb_scene_walk_close(&walk);
    if (rc == 0)
        sum_up(out);
    return rc;
}

int pb_scene_files_open(const struct pb_pipeline_config *pipeline, const char *folder,
                        const char *scene, int64_t reader, struct pb_err *err,
                        struct pb_scene_files *out)
{
    return open_files(pipeline, folder, NULL, scene, reader, err, out);
}

int pb_scene_files_open_group(const struct pb_pipeline_config *pipeline, const char *path,
                              int64_t reader, struct pb_err *err, struct pb_scene_files *out)
{
    char folder[PATH_MAX];
    pb_path_parent(path, folder);
    return open_files(pipeline, folder, pipeline->input.group_pattern, pb_base_name(path), reader,
                      err, out);
}

int pb_scene_files_check(const struct pb_pipeline_config *pipeline,
                         const struct pb_scene_walk *walk, const char *folder, const char *scene,
                         struct pb_err *err)
{
    struct search s = {.pipeline = pipeline,
                       .folder = folder,
                       .scene = scene,
                       .walk = walk,
                       .reader = -1,
                       .err = err};
    return take_all(&s);
}

void pb_scene_files_close(struct pb_scene_files *files)
{
    if (files->folder == NULL)
        return;
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        pb_raster_file_close(&files->file[i]);
    pb_raster_file_close(&files->metadata);
    free(files->folder);
    memset(files, 0, sizeof *files);
}

/* --- for those who read ----------------------------------------------------------------------*/

void pb_scene_files_hand(const struct pb_scene_files *files)
{
    for (size_t i = 0; i < PB_FILES_MAX; i++) {
        const struct pb_raster_file *file = files != NULL ? &files->file[i] : NULL;
        pb_raster_file_hand_open(i, file != NULL && file->fd >= 0 ? file : NULL);
    }
}

size_t pb_scene_files_fds(const struct pb_scene_files *files, int *out)
{
    size_t n = 0;
    for (size_t i = 0; files->folder != NULL && i < files->n; i++)
        if (files->file[i].fd >= 0)
            out[n++] = files->file[i].fd;
    if (files->folder != NULL && files->metadata.fd >= 0)
        out[n++] = files->metadata.fd;
    return n;
}

const char *pb_scene_files_inner(const struct pb_scene_files *files, const char *path)
{
    size_t n = strlen(files->folder);
    return strncmp(path, files->folder, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

void pb_scene_files_blame(const struct pb_scene_files *files, struct pb_err *err)
{
    if (err == NULL || err->file[0] == '\0' || files->folder == NULL)
        return;
    for (size_t i = 0; i <= files->n; i++) {
        const struct pb_raster_file *file = i < files->n ? &files->file[i] : &files->metadata;
        struct pb_err place = {0}, named = {0};
        if (file->path == NULL)
            continue;
        (void)pb_fail_at(&place, err->code, file->path, 0, 0, "file"); /* as it is displayed */
        if (strcmp(place.file, err->file) != 0)
            continue;
        (void)pb_fail_at(&named, err->code, files->folder, 0, 0, "%s: %s",
                         pb_scene_files_inner(files, file->path), err->msg);
        *err = named;
        return;
    }
}
