/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_files.h"

#include "config/base/base_name.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/sidecars.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- opening ---------------------------------------------------------------------------------*/

/* Lists the files that were found. Returns their count. */
static size_t want_found(const struct pb_scene_found *found, struct pb_scene_files *out,
                         struct pb_scene_wanted *wanted)
{
    size_t n = 0;
    out->n_left_out = found->n_left_out;
    memcpy(out->left_out, found->left_out, sizeof out->left_out);
    for (size_t i = 0; i < out->n; i++)
        if (found->file[i] != NULL)
            wanted[n++] = (struct pb_scene_wanted){found->file[i], &out->file[i]};
    for (size_t i = 0; i < found->n_spare; i++)
        wanted[n++] =
            (struct pb_scene_wanted){found->spare[i], &out->file[out->n + out->n_spare++]};
    for (size_t i = 0; i < found->n_metadata; i++)
        wanted[n++] =
            (struct pb_scene_wanted){found->metadata[i], &out->metadata.file[out->metadata.n++]};
    if (found->list != NULL)
        wanted[n++] = (struct pb_scene_wanted){found->list, &out->list};
    return n;
}

int pb_scene_files_want(const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                        const struct pb_scene_found *found, struct pb_err *err,
                        struct pb_scene_files *out, struct pb_scene_wanted *wanted, size_t *out_n)
{
    struct pb_sidecars_found sidecars = {.n = 0};
    const char *main[PB_SCENE_FILES_MAX];
    size_t n_main = 0;
    for (size_t i = 0; i < out->n; i++)
        if (found->file[i] != NULL)
            main[n_main++] = found->file[i]->path;
    for (size_t i = 0; i < found->n_spare; i++)
        main[n_main++] = found->spare[i]->path;
    size_t n = want_found(found, out, wanted);
    out->sidecars = calloc(1, sizeof *out->sidecars);
    int rc = out->sidecars != NULL
                 ? 0
                 : pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", out->folder);
    if (rc == 0 && walk != NULL)
        rc = pb_sidecars_find(pipeline, walk, out->folder, main, n_main, err, out->sidecars,
                              &sidecars);
    for (size_t i = 0; rc == 0 && i < sidecars.n; i++) {
        struct pb_raster_file *to = &out->sidecars->file[out->sidecars->n++];
        *to = (struct pb_raster_file){.fd = -1, .stem = sidecars.stem[i]};
        wanted[n++] = (struct pb_scene_wanted){sidecars.entry[i], to};
    }
    *out_n = n;
    return rc;
}

static size_t rasters_of(const struct pb_scene_files *files)
{
    return files->n + files->n_spare;
}

static size_t all_of(const struct pb_scene_files *files)
{
    return rasters_of(files) + files->metadata.n + 1;
}

/* Returns file i of all: rasters, those with the metadata, the list. */
static const struct pb_raster_file *file_at(const struct pb_scene_files *files, size_t i)
{
    const size_t n = rasters_of(files), m = n + files->metadata.n;
    return i < n ? &files->file[i] : i < m ? &files->metadata.file[i - n] : &files->list;
}

void pb_scene_files_count(struct pb_scene_files *files)
{
    for (size_t i = 0; i < all_of(files); i++) {
        const struct pb_raster_file *file = file_at(files, i);
        if (file->fd < 0)
            continue;
        files->bytes += file->bytes;
        files->mtime_ns = file->mtime_ns > files->mtime_ns ? file->mtime_ns : files->mtime_ns;
    }
}

int pb_scene_files_begin(const struct pb_pipeline_config *pipeline, const char *folder,
                         struct pb_err *err, struct pb_scene_files *out)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < PB_SCENE_FILES_MAX; i++)
        out->file[i].fd = -1;
    pb_metadata_files_init(&out->metadata);
    out->list.fd = -1;
    out->n = 1 + pipeline->input.n_sources;
    out->folder = strndup(folder, length);
    return out->folder != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
}

/* Distribution of a scene's files over folders. */
struct layout {
    /* files of the scene in a folder with other files; NULL: all files of the folder */
    const struct pb_scene_manifest *loose;
    const struct pb_scene_joined *joined; /* and in other folders; NULL: no other folders */
    int64_t reader;                       /* see scene_walk.h */
};

static int walk_files(const struct layout *how, struct pb_err *err, struct pb_scene_walk *walk,
                      struct pb_scene_files *out)
{
    int rc = how->loose != NULL ? pb_scene_walk_open_loose(out->folder, how->loose, err, walk)
                                : pb_scene_walk_open(out->folder, err, walk);
    if (rc == 0 && how->joined != NULL)
        rc = pb_scene_joined_add(how->joined, out->folder, walk, err);
    if (rc == 0 && walk->n_joined > 0)
        out->joined = calloc(walk->n_joined, sizeof *out->joined);
    for (size_t i = 0; rc == 0 && i < walk->n_joined; i++) {
        char *folder = out->joined ? strdup(walk->joined[i].folder) : NULL;
        if (folder == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", out->folder);
        out->joined[out->n_joined++] = folder;
    }
    return rc;
}

/* Sidecars of loose files are searched next to the opened files, because the walk has the names of
 * the scene alone. */
static int open_found(const struct pb_pipeline_config *pipeline, const struct layout *how,
                      const struct pb_scene_walk *walk, const struct pb_scene_found *found,
                      struct pb_err *err, struct pb_scene_files *out)
{
    struct pb_scene_wanted wanted[PB_SCENE_FDS_MAX];
    size_t n = 0;
    int rc = pb_scene_files_want(pipeline, how->loose != NULL ? NULL : walk, found, err, out,
                                 wanted, &n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = pb_scene_walk_open_raster(walk, out->folder, wanted[i].entry, how->reader, err,
                                       wanted[i].to);
    return rc == 0 && how->loose != NULL
               ? pb_sidecars_take_loose(pipeline, out->folder, how->reader, out->file,
                                        rasters_of(out), err, out->sidecars)
               : rc;
}

static int open_files(const struct pb_pipeline_config *pipeline, const char *folder,
                      const struct layout *how, const char *scene, struct pb_err *err,
                      struct pb_scene_files *out)
{
    struct pb_scene_walk walk;
    struct pb_scene_found found;
    int rc = pb_scene_files_begin(pipeline, folder, err, out);
    if (rc < 0)
        return rc;
    (void)snprintf(out->scene, sizeof out->scene, "%s", scene);
    rc = walk_files(how, err, &walk, out);
    rc = rc ? rc : pb_scene_search(pipeline, &walk, out->folder, scene, err, &found);
    rc = rc ? rc : open_found(pipeline, how, &walk, &found, err, out);
    pb_scene_walk_close(&walk);
    if (rc == 0)
        pb_scene_files_count(out);
    return rc;
}

int pb_scene_files_open(const struct pb_pipeline_config *pipeline, const char *folder,
                        const char *scene, int64_t reader, struct pb_err *err,
                        struct pb_scene_files *out)
{
    return open_files(pipeline, folder, &(struct layout){.reader = reader}, scene, err, out);
}

int pb_scene_files_open_joined(const struct pb_pipeline_config *pipeline, const char *folder,
                               const char *scene, const struct pb_scene_joined *joined,
                               struct pb_err *err, struct pb_scene_files *out)
{
    const struct layout how = {.joined = joined, .reader = -1};
    return open_files(pipeline, folder, &how, scene, err, out);
}

int pb_scene_files_open_group(const struct pb_pipeline_config *pipeline, const char *path,
                              const struct pb_scene_manifest *manifest, struct pb_err *err,
                              struct pb_scene_files *out)
{
    char folder[PATH_MAX];
    const struct layout how = {.loose = manifest, .reader = -1};
    pb_path_parent(path, folder);
    return open_files(pipeline, folder, &how, pb_base_name(path), err, out);
}

int pb_scene_files_check(const struct pb_pipeline_config *pipeline,
                         const struct pb_scene_walk *walk, const char *folder, const char *scene,
                         struct pb_err *err)
{
    struct pb_scene_found found;
    int rc = pb_scene_search(pipeline, walk, folder, scene, err, &found);
    if (rc == 0 && found.n_absent > 0)
        rc = pb_fail_at(err, PB_E_INPUT_INCOMPLETE, folder, 0, 0,
                        "%zu optional file%s of the scene may still arrive", found.n_absent,
                        found.n_absent == 1 ? "" : "s");
    return rc;
}

void pb_scene_files_close(struct pb_scene_files *files)
{
    if (files->folder == NULL)
        return;
    for (size_t i = 0; i < PB_SCENE_FILES_MAX; i++)
        pb_raster_file_close(&files->file[i]);
    pb_metadata_files_close(&files->metadata);
    pb_raster_file_close(&files->list);
    if (files->sidecars != NULL)
        pb_sidecars_close(files->sidecars);
    free(files->sidecars);
    for (size_t i = 0; i < files->n_joined; i++)
        free(files->joined[i]);
    free(files->joined);
    free(files->folder);
    memset(files, 0, sizeof *files);
}

/* --- for readers ------------------------------------------------------------------------------ */

void pb_scene_files_hand(const struct pb_scene_files *files)
{
    for (size_t i = 0; i < PB_FILES_MAX; i++) {
        const bool open = files != NULL && files->folder != NULL;
        /* The pipeline's sources outside the scene were handed before. */
        if (!open || (i < files->n && files->file[i].fd >= 0))
            pb_raster_file_hand_open(i, open ? &files->file[i] : NULL);
    }
    const struct pb_sidecars *sidecars = files != NULL ? files->sidecars : NULL;
    pb_raster_file_hand_sidecars(sidecars ? sidecars->file : NULL, sidecars ? sidecars->n : 0);
}

size_t pb_scene_files_fds(const struct pb_scene_files *files, int *out)
{
    size_t n = 0;
    for (size_t i = 0; files->folder != NULL && i < rasters_of(files); i++)
        if (files->file[i].fd >= 0)
            out[n++] = files->file[i].fd;
    if (files->folder != NULL)
        n += pb_metadata_files_fds(&files->metadata, out + n);
    if (files->folder != NULL && files->list.fd >= 0)
        out[n++] = files->list.fd;
    for (size_t i = 0; files->sidecars != NULL && i < files->sidecars->n; i++)
        out[n++] = files->sidecars->file[i].fd;
    return n;
}

size_t pb_scene_files_names(const struct pb_scene_files *files, const char **out)
{
    size_t n = 0;
    for (size_t i = 0; i < all_of(files); i++) {
        const struct pb_raster_file *file = file_at(files, i);
        const char *name = file->fd >= 0 ? pb_scene_files_inner(files, file->path) : NULL;
        for (size_t k = 0; name != NULL && k < n; k++)
            if (strcmp(out[k], name) == 0)
                name = NULL;
        if (name != NULL)
            out[n++] = name;
    }
    return n;
}

const char *pb_scene_files_inner(const struct pb_scene_files *files, const char *path)
{
    const char *inner = pb_path_below(path, files->folder);
    for (size_t i = 0; inner == NULL && i < files->n_joined; i++)
        inner = pb_path_below(path, files->joined[i]);
    return inner != NULL ? inner : path;
}

static bool has_file(const char *folder, const char *inner, uint64_t bytes)
{
    char path[PATH_MAX];
    struct stat st;
    return snprintf(path, sizeof path, "%s/%s", folder, inner) < (int)sizeof path &&
           lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes;
}

bool pb_scene_files_has(const struct pb_scene_files *files, const char *inner, uint64_t bytes)
{
    bool has = has_file(files->folder, inner, bytes);
    for (size_t i = 0; !has && i < files->n_joined; i++)
        has = has_file(files->joined[i], inner, bytes);
    return has;
}

void pb_scene_files_blame(const struct pb_scene_files *files, struct pb_err *err)
{
    if (err == NULL || err->file[0] == '\0' || files->folder == NULL)
        return;
    for (size_t i = 0; i < all_of(files); i++) {
        const struct pb_raster_file *file = file_at(files, i);
        struct pb_err place = {0}, named = {0};
        if (file->path == NULL)
            continue;
        (void)pb_fail_at(&place, err->code, file->path, 0, 0,
                         "file"); /* in the form of err->file */
        if (strcmp(place.file, err->file) != 0)
            continue;
        char line[16] = "";
        if (err->line > 0)
            (void)snprintf(line, sizeof line, "%d:", err->line);
        (void)pb_fail_at(&named, err->code, files->folder, 0, 0, "%s:%s %s",
                         pb_scene_files_inner(files, file->path), line, err->msg);
        *err = named;
        return;
    }
}

/* --- input.list ------------------------------------------------------------------------------- */

static int invalid(const struct pb_raster_file *file, int line, const char *why, struct pb_err *err)
{
    return pb_fail_at(err, PB_E_INPUT_METADATA_INVALID, file->path, line, 0, "%s", why);
}

/* Reads the complete file and appends a NUL. */
static int load(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out)
{
    if (file->bytes > PB_SCENE_LIST_BYTES_MAX)
        return invalid(file, 0, "it is larger than 1 MiB, and was to list files", err);
    const size_t bytes = (size_t)file->bytes;
    out->text = malloc(bytes + 1);
    out->one = calloc(PB_SCENE_LIST_MAX, sizeof *out->one);
    if (out->text == NULL || out->one == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to read %s", file->path);
    ssize_t n = pb_raster_file_read(file, 0, out->text, bytes);
    if (n < 0)
        return pb_raster_file_check(file, err);
    out->text[n] = '\0';
    return memchr(out->text, '\0', (size_t)n) == NULL
               ? 0
               : invalid(file, 0, "it is no text, and was to list files", err);
}

/* Removes blanks around the line, and terminates it. */
static char *trim(char *line)
{
    line += strspn(line, " \t");
    size_t n = strlen(line);
    while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
        line[--n] = '\0';
    return line;
}

int pb_scene_list_read(struct pb_raster_file *file, struct pb_err *err, struct pb_scene_list *out)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark of UTF-8 */
    *out = (struct pb_scene_list){.n = 0};
    int rc = load(file, err, out), line = 0;
    char *next = rc == 0 ? out->text : NULL;
    if (next != NULL && strncmp(next, mark, sizeof mark - 1) == 0)
        next += sizeof mark - 1;
    for (char *text; rc == 0 && (text = strsep(&next, "\n")) != NULL;) {
        text = trim(text);
        line++;
        if (text[0] == '\0' || text[0] == '#')
            continue;
        text += strncmp(text, "./", 2) == 0 ? 2 : 0; /* allows names that begin with # or a blank */
        if (text[0] == '\0')
            rc = invalid(file, line, "it lists ./, which is no file", err);
        else if (out->n == PB_SCENE_LIST_MAX)
            rc = invalid(file, line, "it lists more files than a scene has", err);
        else
            out->one[out->n++] = (struct pb_scene_list_line){text, line};
    }
    return rc == 0 && out->n == 0 ? invalid(file, 0, "it lists no file", err) : rc;
}

void pb_scene_list_fini(struct pb_scene_list *list)
{
    free(list->text);
    free(list->one);
    *list = (struct pb_scene_list){.n = 0};
}

bool pb_scene_list_means(const struct pb_scene_list_line *line, const char *path)
{
    return strcmp(line->name, strchr(line->name, '/') != NULL ? path : pb_base_name(path)) == 0;
}
