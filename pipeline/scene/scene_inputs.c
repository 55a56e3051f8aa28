/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_inputs.h"

#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/pipeline_config.h"
#include "pipeline/io/path.h"
#include "pipeline/raster/source_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX                                                                                  \
    (2 * PB_FILES_MAX + PB_SPARE_FILES_MAX + PB_METADATA_OPEN_MAX + 1 + PB_SIDECARS_MAX)

/* A file that is read. */
struct item {
    const struct pb_raster_file *file;
    const char *name; /* inside the scene; NULL = the file is the whole input */
    struct pb_member member;
    bool beside; /* is not part of the input's checksum */
};

struct list {
    struct item item[FILES_MAX];
    size_t n;
    struct pb_raster_file source[PB_FILES_MAX]; /* owned */
    size_t n_sources;
};

/* --- the files ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

/* number: of the band, the source, or the file among those of its role. */
static void add(struct list *list, const struct pb_raster_file *file, const char *name,
                enum pb_role role, size_t number)
{
    const bool is_band = role == PB_ROLE_BAND || role == PB_ROLE_SOURCE;
    const struct pb_member member = {.role = role,
                                     .source = is_band ? (uint16_t)number : 0,
                                     .nth = is_band ? 0 : (uint16_t)number};
    if (file->fd >= 0 && list->n < FILES_MAX)
        list->item[list->n++] = (struct item){file, name, member, role == PB_ROLE_SOURCE};
}

/* Sidecars may mask or place the pixels, therefore they belong to the input. */
static void add_sidecars(struct list *list, const struct pb_sidecars *sidecars,
                         const struct pb_scene_files *files)
{
    for (size_t i = 0; sidecars != NULL && i < sidecars->n; i++) {
        const char *path = sidecars->file[i].path;
        add(list, &sidecars->file[i],
            files ? pb_scene_files_inner(files, path) : pb_base_name(path), PB_ROLE_SIDECAR, i);
    }
}

static void add_single(struct list *list, const struct pb_scene *scene)
{
    const bool alone = scene->sidecars.n == 0;
    add(list, &scene->file, alone ? NULL : pb_base_name(scene->file.path), PB_ROLE_IMAGE, 0);
    add_sidecars(list, &scene->sidecars, NULL);
    const size_t n = list->n;
    for (size_t i = 0; i < scene->metadata.n; i++)
        add(list, &scene->metadata.file[i], pb_base_name(scene->metadata.file[i].path),
            PB_ROLE_METADATA, i);
    for (size_t i = n; i < list->n; i++)
        list->item[i].beside = true;
}

static void add_several(struct list *list, const struct pb_scene_files *files)
{
    for (size_t i = 0; i < files->n + files->n_spare; i++)
        if (files->file[i].fd >= 0)
            add(list, &files->file[i], pb_scene_files_inner(files, files->file[i].path),
                PB_ROLE_BAND, i);
    for (size_t i = 0; i < files->metadata.n; i++)
        add(list, &files->metadata.file[i],
            pb_scene_files_inner(files, files->metadata.file[i].path), PB_ROLE_METADATA, i);
    if (files->list.fd >= 0)
        add(list, &files->list, pb_scene_files_inner(files, files->list.path), PB_ROLE_LIST, 0);
    add_sidecars(list, files->sidecars, files);
    qsort(list->item, list->n, sizeof *list->item, by_name);
}

/* A source that cannot be opened is omitted here: the run fails with the reason. */
static void add_sources(struct list *list, const struct pb_scene_inputs *in)
{
    const struct pb_input_config *input = &in->pipeline->input;
    char path[PATH_MAX];
    for (size_t i = 0; i < input->n_sources; i++) {
        const struct pb_source_config *source = &input->sources[i];
        struct pb_raster_file *file = &list->source[list->n_sources];
        struct pb_err ignored = {0};
        if (source->of_scene || strstr(source->file, "{scene}") == NULL ||
            pb_source_path(in->config, source, in->name, path, &ignored) < 0)
            continue;
        list->n_sources++;
        if (pb_raster_file_open(file, path, &ignored) == 0)
            add(list, file, pb_base_name(file->path), PB_ROLE_SOURCE, i);
    }
}

/* --- the manifest ---------------------------------------------------------------------------- */

struct lister {
    const struct pb_scene_inputs *in;
    const struct pb_scene_files *several;
    bool is_folder; /* the scene is a folder or an archive */
};

/* Returns the root of the file: the directory of the scene's folder or of the file. All files of a
 * scene of loose files are listed below its folder, also those of earlier deliveries. */
static int find_root(const struct lister *lister, const struct item *item,
                     struct pb_scene_manifest *files)
{
    char directory[PATH_MAX], real[PATH_MAX];
    const bool is_source = item != NULL && item->member.role == PB_ROLE_SOURCE;
    const struct pb_scene_files *several = is_source ? NULL : lister->several;
    if (several != NULL && !lister->is_folder)
        (void)snprintf(directory, sizeof directory, "%s", several->folder);
    else
        pb_path_parent(several != NULL ? several->folder : item->file->path, directory);
    return pb_scene_manifest_root(files, realpath(directory, real) != NULL ? real : "/");
}

static int list_file(const struct lister *lister, const struct item *item,
                     struct pb_scene_manifest *files)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    const char *delivered = lister->in->delivered;
    const bool is_in_folder = lister->is_folder && item->member.role != PB_ROLE_SOURCE;
    const int root = find_root(lister, item, files);
    const int n = snprintf(path, sizeof path, "%s%s%s", is_in_folder ? delivered : "",
                           is_in_folder ? "/" : "", item->name != NULL ? item->name : delivered);
    if (root < 0 || n >= (int)sizeof path)
        return root < 0 ? root : -E2BIG;
    const struct pb_manifest_entry entry = {
        .path = path, .root = (uint16_t)root, .bytes = (int64_t)item->file->bytes};
    struct pb_member member = item->member;
    const int index = pb_scene_manifest_add(files, &entry);
    member.entry = (uint32_t)index;
    return index < 0 ? index : pb_scene_manifest_assign(files, &member);
}

static int list_folder(const struct lister *lister, struct pb_scene_manifest *files)
{
    const int root = find_root(lister, NULL, files);
    const struct pb_manifest_entry entry = {.path = (char *)lister->in->delivered,
                                            .root = (uint16_t)(root < 0 ? 0 : root),
                                            .is_folder = true,
                                            .bytes = -1};
    const int index = root < 0 ? root : pb_scene_manifest_add(files, &entry);
    return index < 0 ? index : 0;
}

static int list_files(const struct pb_scene_inputs *in, const struct list *list, struct pb_err *err,
                      struct pb_scene_manifest *out)
{
    const struct pb_scene_files *several = pb_scene_several(in->scene);
    const struct lister lister = {in, several,
                                  several != NULL && in->pipeline->input.group == NULL};
    int rc = 0;
    *out = (struct pb_scene_manifest){.n_roots = 0};
    for (size_t i = 0; i < list->n && rc == 0; i++)
        rc = list_file(&lister, &list->item[i], out);
    if (rc == 0 && lister.is_folder)
        rc = list_folder(&lister, out);
    if (rc == 0)
        return 0;
    pb_scene_manifest_fini(out);
    return rc == -ENOMEM ? pb_fail(err, PB_E_MEMORY, "out of memory for the list of files")
                         : pb_fail_at(err, PB_E_INPUT_LIMIT, in->scene->path, 0, 0,
                                      "the paths of its files are too long to be recorded");
}

static bool is_in_state(const struct pb_raster_file *file, const struct pb_manifest_entry *entry)
{
    struct pb_manifest_entry now = {.bytes = -1};
    pb_scene_inputs_state(&file->stat, &now);
    return file->base == 0 && entry->inode != 0 && entry->inode == now.inode &&
           entry->bytes == now.bytes && entry->mtime_ns == now.mtime_ns &&
           entry->ctime_ns == now.ctime_ns;
}

/* Returns the known checksum of the file in its present state; NULL = unknown. */
static const char *known_checksum(const struct pb_scene_inputs *in,
                                  const struct pb_raster_file *file)
{
    for (size_t i = 0; in->known != NULL && i < in->known->n_entries; i++)
        if (in->known->entry[i].checksum != NULL && is_in_state(file, &in->known->entry[i]))
            return in->known->entry[i].checksum;
    return NULL;
}

static int create_sum(const struct pb_scene_inputs *in, const struct list *list, struct pb_err *err,
                      struct pb_input_sum **out_sum)
{
    struct pb_input_part part[FILES_MAX];
    for (size_t i = 0; i < list->n; i++)
        part[i] = (struct pb_input_part){.file = list->item[i].file,
                                         .name = list->item[i].name,
                                         .beside = list->item[i].beside,
                                         .checksum = known_checksum(in, list->item[i].file)};
    return pb_input_sum_create(part, list->n, in->pipeline->output.checksum, err, out_sum);
}

void pb_scene_inputs_state(const struct stat *st, struct pb_manifest_entry *out)
{
    out->bytes = (int64_t)st->st_size;
    out->inode = (uint64_t)st->st_ino;
    out->mtime_ns = pb_clock_ns(&st->st_mtim);
    out->ctime_ns = pb_clock_ns(&st->st_ctim);
}

int pb_scene_inputs_sum(const struct pb_scene_inputs *inputs, struct pb_err *err,
                        struct pb_scene_manifest *out_files, struct pb_input_sum **out_sum)
{
    struct list list = {.n = 0};
    struct pb_scene_manifest files;
    const struct pb_scene_files *several = pb_scene_several(inputs->scene);
    if (several != NULL)
        add_several(&list, several);
    else
        add_single(&list, inputs->scene);
    add_sources(&list, inputs);
    int rc = list_files(inputs, &list, err, &files);
    if (rc == 0 && out_sum != NULL && (rc = create_sum(inputs, &list, err, out_sum)) < 0)
        pb_scene_manifest_fini(&files);
    if (rc == 0)
        *out_files = files;
    for (size_t i = 0; i < list.n_sources; i++)
        pb_raster_file_close(&list.source[i]);
    return rc;
}

int pb_scene_inputs_know(const struct pb_input_sum *sum, enum pb_checksum kind,
                         struct pb_scene_manifest *files)
{
    for (size_t i = 0; i < pb_input_sum_count(sum) && i < files->n_entries; i++) {
        struct pb_input_sum_file file;
        pb_input_sum_file(sum, i, kind, &file);
        char *checksum = file.checksum[0] != '\0' ? strdup(file.checksum) : NULL;
        if (file.checksum[0] != '\0' && checksum == NULL)
            return -ENOMEM;
        free(files->entry[i].checksum);
        files->entry[i].checksum = checksum;
        files->entry[i].bytes = (int64_t)file.bytes;
    }
    return 0;
}
