/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_archive.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/archive/archive.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/assemble.h"
#include "pipeline/scene/scene_search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct content {
    struct pb_archive list;
    struct pb_entry *entry; /* the members without litter */
    size_t *member;         /* entry i is member[i] of the list */
    size_t n;
    struct pb_config config; /* the pipeline alone; borrowed by the assembly */
    struct pb_assembly *assembly;
    const struct pb_assembled *scene; /* the one to open; NULL: not chosen yet */
    char name[256];                   /* its clean name */
    struct pb_scene_walk walk;        /* its files */
    struct pb_archive_scenes scenes;
};

/* --- scenes ----------------------------------------------------------------------------------- */

/* Returns true for files that macOS adds to an archive. */
static bool is_litter(const char *path)
{
    const char *base = pb_base_name(path);
    return strncmp(path, "__MACOSX", 8) == 0 || strncmp(base, "._", 2) == 0 ||
           strcmp(base, ".DS_Store") == 0;
}

static int no_memory(const struct content *c, struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the members of %s", c->list.name);
}

/* Assembles the members into scenes. */
static int assemble(const struct pb_pipeline_config *pipeline,
                    const struct pb_scene_archive *archive, struct content *c, struct pb_err *err)
{
    c->config.pipelines = (struct pb_pipeline_config *)pipeline;
    c->config.n_pipelines = 1;
    c->entry = calloc(c->list.n + 1, sizeof *c->entry);
    c->member = calloc(c->list.n + 1, sizeof *c->member);
    c->assembly = pb_assembly_create();
    if (c->entry == NULL || c->member == NULL || c->assembly == NULL)
        return no_memory(c, err);
    for (size_t i = 0; i < c->list.n; i++) {
        const struct pb_archive_member *member = &c->list.member[i];
        if (is_litter(member->path))
            continue;
        c->member[c->n] = i;
        c->entry[c->n++] = (struct pb_entry){
            .path = member->path, .is_folder = member->is_folder, .is_settled = true};
    }
    const struct pb_assembly_input input = {.config = &c->config,
                                            .listing = PB_LISTING_ARCHIVE,
                                            .name = archive->is_part ? "" : archive->scene,
                                            .only = pipeline,
                                            .entry = c->entry,
                                            .n = c->n,
                                            .wall_ms = INT64_MAX};
    if (pb_assembly_group(c->assembly, &input) != 0)
        return no_memory(c, err);
    const char *why = pb_assembly_why_none(c->assembly);
    if (why != NULL && !archive->is_part)
        return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0, "%s", why);
    return 0;
}

static bool has_name(const struct pb_archive_scenes *scenes, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < scenes->n && !has; i++)
        has = strcmp(scenes->name[i], name) == 0;
    return has;
}

static int fail_twice(const struct content *c, const struct pb_assembled *other, struct pb_err *err)
{
    return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0,
                      "two folders in it are scene %.80s, %.*s and %.*s", c->name,
                      (int)c->scene->root, pb_assembled_entry(c->scene, 0)->path, (int)other->root,
                      pb_assembled_entry(other, 0)->path);
}

/* Lists the clean names of the scenes, and chooses the requested one, or the only one. */
static int choose_scene(const struct pb_scene_archive *archive, struct content *c,
                        struct pb_err *err)
{
    struct pb_archive_scenes *scenes = &c->scenes;
    const struct pb_assembled *other = NULL;
    const size_t n = pb_assembly_count(c->assembly);
    if (n > PB_ARCHIVE_SCENES_MAX)
        return pb_fail_at(err, PB_E_INPUT_LIMIT, c->list.name, 0, 0, "it holds more than %d scenes",
                          PB_ARCHIVE_SCENES_MAX);
    scenes->name = calloc(n + 1, sizeof *scenes->name);
    if (scenes->name == NULL)
        return no_memory(c, err);
    for (size_t i = 0; i < n; i++) {
        const struct pb_assembled *scene = pb_assembly_at(c->assembly, i);
        char *name = scenes->name[scenes->n];
        pb_file_name_clean(scene->name, name);
        if (c->scene != NULL && strcmp(name, c->name) == 0)
            other = scene;
        else if (c->scene == NULL && (!archive->is_part || strcmp(name, archive->scene) == 0)) {
            c->scene = scene;
            memcpy(c->name, name, sizeof c->name);
        }
        scenes->n += !has_name(scenes, name);
    }
    if (c->scene == NULL)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, c->list.name, 0, 0,
                          "it holds no scene %.200s any more", archive->scene);
    if (!archive->is_part && scenes->n > 1)
        return pb_fail_at(err, PB_E_INPUT_SCENES, c->list.name, 0, 0,
                          "it holds %zu scenes, %.100s, %.100s%s", scenes->n, scenes->name[0],
                          scenes->name[1], scenes->n > 2 ? ", ..." : "");
    return other == NULL ? 0 : fail_twice(c, other, err);
}

static int open_part(const struct pb_scene_archive *archive, const struct pb_archive_wish *wish,
                     const char *inner, struct pb_raster_file *out, struct pb_err *err)
{
    size_t bytes = strlen(archive->file->path) + strlen(inner) + 2;
    out->path = malloc(bytes);
    out->fd = fcntl(wish->part.fd, F_DUPFD_CLOEXEC, 3);
    out->base = wish->part.base;
    out->bytes = wish->part.bytes;
    out->mtime_ns = archive->file->mtime_ns;
    out->handed = true;
    if (out->path == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", archive->file->path);
    (void)snprintf(out->path, bytes, "%s/%s", archive->file->path, inner);
    if (out->fd < 0 || fstat(out->fd, &out->stat) != 0)
        return pb_raster_file_fail(err, errno, out->path, "cannot open the file");
    return 0;
}

/* --- required files --------------------------------------------------------------------------- */

static int take_found(const struct pb_pipeline_config *pipeline,
                      const struct pb_scene_archive *archive, struct content *c,
                      const struct pb_scene_found *found, struct pb_err *err,
                      struct pb_scene_files *out)
{
    struct pb_archive_wish wish[PB_SCENE_FDS_MAX];
    struct pb_scene_wanted wanted[PB_SCENE_FDS_MAX];
    size_t n = 0;
    int rc = pb_scene_files_want(pipeline, &c->walk, found, err, out, wanted, &n);
    for (size_t i = 0; i < n; i++)
        wish[i] = (struct pb_archive_wish){.member = c->member[wanted[i].entry->number]};
    rc = rc ? rc
            : pb_archive_take(&c->list, wish, n, archive->room, archive->room_name,
                              archive->least_free, err);
    out->n_members = c->list.n;
    for (size_t i = 0; i < n && rc == 0; i++) {
        out->n_unpacked += !wish[i].in_place;
        out->unpacked_bytes += wish[i].in_place ? 0 : wish[i].part.bytes;
        rc = open_part(archive, &wish[i], wanted[i].entry->path, wanted[i].to, err);
    }
    return rc;
}

static int open_all(const struct pb_pipeline_config *pipeline,
                    const struct pb_scene_archive *archive, struct content *c, struct pb_err *err,
                    struct pb_scene_files *out)
{
    const struct pb_file_part part = pb_raster_file_part(archive->file);
    struct pb_scene_found found;
    int rc = pb_archive_list(&c->list, &part, archive->file->path, archive->limits, err);
    rc = rc ? rc : assemble(pipeline, archive, c, err);
    rc = rc ? rc : choose_scene(archive, c, err);
    if (rc == 0 && pb_assembled_walk(c->scene, &c->walk) != 0)
        rc = no_memory(c, err);
    if (rc < 0)
        return rc;
    memcpy(out->scene, c->name, sizeof out->scene);
    rc = pb_scene_search(pipeline, &c->walk, archive->file->path, c->scene->name, err, &found);
    rc = rc ? rc : take_found(pipeline, archive, c, &found, err, out);
    return rc ? rc : pb_raster_file_unchanged(archive->file, err);
}

int pb_scene_archive_open(const struct pb_pipeline_config *pipeline,
                          const struct pb_scene_archive *archive, struct pb_err *err,
                          struct pb_scene_files *out)
{
    struct content c = {.list = {.goes_on = archive->goes_on, .user = archive->user},
                        .walk = {.fd = -1}};
    int rc = pb_scene_files_begin(pipeline, archive->file->path, err, out);
    rc = rc ? rc : open_all(pipeline, archive, &c, err, out);
    pb_scene_walk_close(&c.walk);
    pb_assembly_destroy(c.assembly);
    pb_archive_close(&c.list);
    free(c.entry);
    free(c.member);
    if (rc < 0 && err->code == PB_E_INPUT_SCENES && archive->scenes != NULL)
        *archive->scenes = c.scenes;
    else
        free(c.scenes.name);
    if (rc == 0)
        pb_scene_files_count(out);
    return rc;
}
