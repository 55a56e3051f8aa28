/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_archive.h"

#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/archive/archive.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/sidecars.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WISHES_MAX (PB_INPUT_NAMES_MAX + PB_SIDECARS_MAX)

struct content {
    struct pb_archive list;
    struct pb_scene_walk walk;       /* files of the scene, by their paths in it */
    size_t *member;                  /* index of the member for each entry of the walk */
    char root[256];                  /* folder that is the scene; "" = the archive */
    char scene[256];                 /* its clean name */
    char part[256];                  /* value of {scene}: its name as the members have it */
    struct pb_archive_scenes scenes; /* scenes in the archive */
    bool one_of_several;             /* true if input.group finds more scenes than this one */
};

/* --- the scene's folder ----------------------------------------------------------------------- */

/* Returns true for files that macOS adds to an archive. */
static bool is_litter(const char *path)
{
    const char *base = pb_base_name(path);
    return strncmp(path, "__MACOSX", 8) == 0 || strncmp(base, "._", 2) == 0 ||
           strcmp(base, ".DS_Store") == 0;
}

/* Copies the first component of a path with several, or of a folder; returns false for a file at
 * the top. */
static bool top_of(const struct pb_archive_member *member, char out[256])
{
    size_t n = strcspn(member->path, "/");
    (void)snprintf(out, 256, "%.*s", (int)n, member->path);
    return member->path[n] != '\0' || member->is_folder;
}

/* Adds a scene's name once. */
static int add_scene(struct content *c, const char *name, struct pb_err *err)
{
    struct pb_archive_scenes *scenes = &c->scenes;
    for (size_t i = 0; i < scenes->n; i++)
        if (strcmp(scenes->name[i], name) == 0)
            return 0;
    if (scenes->n == PB_ARCHIVE_SCENES_MAX)
        return pb_fail_at(err, PB_E_INPUT_LIMIT, c->list.name, 0, 0, "it holds more than %d scenes",
                          PB_ARCHIVE_SCENES_MAX);
    if (scenes->name == NULL)
        scenes->name = calloc(PB_ARCHIVE_SCENES_MAX, sizeof *scenes->name);
    if (scenes->name == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the scenes of an archive");
    (void)snprintf(scenes->name[scenes->n++], sizeof scenes->name[0], "%s", name);
    return 0;
}

/* Returns 1 if the archive holds several scenes: it is the requested one, else an error. */
static int choose_scene(const struct pb_scene_archive *archive, struct content *c,
                        struct pb_err *err)
{
    const struct pb_archive_scenes *scenes = &c->scenes;
    for (size_t i = 0; archive->is_part && i < scenes->n; i++)
        if (strcmp(scenes->name[i], archive->scene) == 0) {
            (void)snprintf(c->scene, sizeof c->scene, "%s", archive->scene);
            return 1;
        }
    if (archive->is_part)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, c->list.name, 0, 0,
                          "it holds no scene %.200s any more", archive->scene);
    if (scenes->n < 2)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_SCENES, c->list.name, 0, 0,
                      "it holds %zu scenes, %.100s, %.100s%s", scenes->n, scenes->name[0],
                      scenes->name[1], scenes->n > 2 ? ", ..." : "");
}

/* Finds the folders at the top; *out_flat: there are files, too. */
static int look_at_top(const struct pb_pipeline_config *pipeline, struct content *c,
                       char first[256], char second[256], bool *out_flat, struct pb_err *err)
{
    char top[256], name[256];
    int rc = 0;
    *out_flat = false;
    for (size_t i = 0; i < c->list.n && rc == 0; i++) {
        if (is_litter(c->list.member[i].path))
            continue;
        if (!top_of(&c->list.member[i], top)) {
            *out_flat = true;
            continue;
        }
        pb_scene_files_name(top, name, sizeof name);
        if (pb_config_takes_folder(pipeline, top))
            rc = add_scene(c, name, err);
        if (first[0] == '\0')
            (void)snprintf(first, 256, "%s", top);
        else if (strcmp(first, top) != 0)
            (void)snprintf(second, 256, "%s", top);
    }
    return rc;
}

/* Finds the folder of the scene with that name, which has one folder. */
static int find_root(const struct pb_pipeline_config *pipeline, const char *scene,
                     struct content *c, struct pb_err *err)
{
    char top[256], name[256];
    for (size_t i = 0; i < c->list.n; i++) {
        if (is_litter(c->list.member[i].path) || !top_of(&c->list.member[i], top) ||
            !pb_config_takes_folder(pipeline, top))
            continue;
        pb_scene_files_name(top, name, sizeof name);
        if (strcmp(name, scene) != 0 || strcmp(c->root, top) == 0)
            continue;
        if (c->root[0] != '\0')
            return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0,
                              "two folders in it are scene %.80s, %.100s and %.100s", scene,
                              c->root, top);
        (void)snprintf(c->root, sizeof c->root, "%s", top);
    }
    return 0;
}

static int choose_root(const struct pb_pipeline_config *pipeline,
                       const struct pb_scene_archive *archive, struct content *c,
                       struct pb_err *err)
{
    char first[256] = "", second[256] = "";
    bool flat;
    c->root[0] = '\0';
    int rc = look_at_top(pipeline, c, first, second, &flat, err);
    if (rc == 0 && pipeline->input.group_pattern == NULL)
        rc = choose_scene(archive, c, err);
    if (rc < 0)
        return rc;
    rc = c->scenes.n == 0 ? 0 : find_root(pipeline, rc == 1 ? c->scene : c->scenes.name[0], c, err);
    if (rc < 0 || c->root[0] != '\0' || flat)
        return rc;
    if (second[0] != '\0' && pipeline->input.group_pattern == NULL)
        return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0,
                          "input.scene (%.80s) fits none of the folders in it, %.80s, %.80s, ...",
                          pipeline->input.scene ? pipeline->input.scene : "not set", first, second);
    if (first[0] == '\0')
        return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0, "it holds no files");
    if (second[0] == '\0')
        (void)snprintf(c->root, sizeof c->root, "%s", first);
    return 0;
}

/* --- its files -------------------------------------------------------------------------------*/

static bool is_inside(const struct content *c, const struct pb_archive_member *member)
{
    size_t n = strlen(c->root);
    bool inside = n == 0 || (strncmp(member->path, c->root, n) == 0 && member->path[n] == '/');
    return inside && !member->is_folder && !is_litter(member->path);
}

/* Returns true if input.group takes the member. scene: its part of the name; clean: the name of the
 * scene that results from it. */
static bool is_grouped(const struct pb_group_pattern *group, const struct content *c,
                       const struct pb_archive_member *member, char scene[256], char clean[256])
{
    if (!is_inside(c, member) ||
        !pb_group_pattern_fits(group, pb_base_name(member->path), NULL, scene))
        return false;
    pb_file_name_clean(scene, clean);
    return true;
}

/* Sets the chosen scene. */
static void set_group(const struct pb_group_pattern *group, const char *name, struct content *c)
{
    char scene[256], clean[256];
    (void)snprintf(c->scene, sizeof c->scene, "%s", name);
    (void)snprintf(c->part, sizeof c->part, "%s", name);
    for (size_t i = 0; i < c->list.n; i++)
        if (is_grouped(group, c, &c->list.member[i], scene, clean) &&
            strcmp(clean, c->scene) == 0) {
            (void)snprintf(c->part, sizeof c->part, "%s", scene);
            return;
        }
}

/* Finds, for a pipeline with input.group, the scene of the files. The name of the archive replaces
 * a scene's name from metadata. */
static int find_group(const struct pb_group_pattern *group, const struct pb_scene_archive *archive,
                      struct content *c, struct pb_err *err)
{
    char scene[256], clean[256];
    int rc = 0;
    for (size_t i = 0; i < c->list.n && rc == 0; i++)
        if (is_grouped(group, c, &c->list.member[i], scene, clean))
            rc = add_scene(c, pb_group_pattern_asks(group) ? archive->scene : clean, err);
    rc = rc ? rc : choose_scene(archive, c, err);
    if (rc == 0 && c->scenes.n == 0)
        return pb_fail_at(err, PB_E_INPUT_ARCHIVE_SCENE, c->list.name, 0, 0,
                          "input.group fits none of the files in it");
    if (rc >= 0)
        set_group(group, rc == 1 ? archive->scene : c->scenes.name[0], c);
    c->one_of_several = rc == 1;
    return rc < 0 ? rc : 0;
}

static int name_scene(const struct pb_pipeline_config *pipeline,
                      const struct pb_scene_archive *archive, struct content *c, struct pb_err *err)
{
    if (pipeline->input.group_pattern != NULL)
        return find_group(pipeline->input.group_pattern, archive, c, err);
    if (c->root[0] != '\0' && pb_config_takes_folder(pipeline, c->root))
        pb_scene_files_name(c->root, c->scene, sizeof c->scene);
    else
        (void)snprintf(c->scene, sizeof c->scene, "%s", archive->scene);
    memcpy(c->part, c->scene, sizeof c->part);
    return 0;
}

/* Returns false for files of other scenes: of several scenes of a group each has the files that the
 * pattern gives it, and those that the pattern does not take (sidecars, metadata). */
static bool is_of_scene(const struct pb_pipeline_config *pipeline, const struct content *c,
                        const struct pb_archive_member *member)
{
    char scene[256], clean[256];
    return is_inside(c, member) &&
           (!c->one_of_several ||
            !is_grouped(pipeline->input.group_pattern, c, member, scene, clean) ||
            strcmp(clean, c->scene) == 0);
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(const struct pb_archive_member *const *)a)->path,
                  (*(const struct pb_archive_member *const *)b)->path);
}

/* Lists files in the order of their paths, like the walk of a folder, whatever the order in the
 * archive. */
static int walk_list(const struct pb_pipeline_config *pipeline, struct content *c,
                     struct pb_err *err)
{
    size_t skip = c->root[0] != '\0' ? strlen(c->root) + 1 : 0, n = 0;
    const struct pb_archive_member **sorted = calloc(c->list.n + 1, sizeof *sorted);
    c->walk.entry = calloc(c->list.n + 1, sizeof *c->walk.entry);
    c->member = calloc(c->list.n + 1, sizeof *c->member);
    bool good = sorted != NULL && c->walk.entry != NULL && c->member != NULL;
    for (size_t i = 0; good && i < c->list.n; i++)
        if (is_of_scene(pipeline, c, &c->list.member[i]))
            sorted[n++] = &c->list.member[i];
    if (good)
        qsort(sorted, n, sizeof *sorted, by_path);
    for (size_t i = 0; good && i < n; i++) {
        struct pb_scene_entry *entry = &c->walk.entry[c->walk.n];
        entry->path = strdup(sorted[i]->path + skip);
        c->member[c->walk.n] = (size_t)(sorted[i] - c->list.member);
        c->walk.n += entry->path != NULL;
        good = entry->path != NULL;
    }
    free(sorted);
    return good ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for the members of an archive");
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

struct wanted {
    const struct pb_scene_entry *entry;
    struct pb_raster_file *to;
    size_t stem; /* for a sidecar: see struct pb_raster_file */
};

static size_t want_found(const struct pb_scene_found *found, struct pb_scene_files *out,
                         struct wanted *wanted)
{
    size_t n = 0;
    out->n_left_out = found->n_left_out;
    memcpy(out->left_out, found->left_out, sizeof out->left_out);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        if (found->file[i] != NULL)
            wanted[n++] = (struct wanted){found->file[i], &out->file[i], 0};
    for (size_t i = 0; i < found->n_spare; i++)
        wanted[n++] = (struct wanted){found->spare[i], &out->file[out->n + out->n_spare++], 0};
    if (found->list != NULL)
        wanted[n++] = (struct wanted){found->list, &out->list, 0};
    for (size_t i = 0; i < found->n_metadata; i++)
        wanted[n++] =
            (struct wanted){found->metadata[i], &out->metadata.file[out->metadata.n++], 0};
    return n;
}

/* Adds the sidecars of the files with bands. */
static int want_sidecars(const struct pb_pipeline_config *pipeline, const struct content *c,
                         const struct pb_scene_found *found, struct pb_err *err,
                         struct pb_scene_files *out, struct wanted *wanted, size_t *n)
{
    struct pb_sidecars_found sidecars;
    const char *main[PB_SCENE_FILES_MAX];
    size_t n_main = 0;
    out->sidecars = calloc(1, sizeof *out->sidecars);
    if (out->sidecars == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", c->list.name);
    for (size_t i = 0; i < PB_FILES_MAX; i++)
        if (found->file[i] != NULL)
            main[n_main++] = found->file[i]->path;
    for (size_t i = 0; i < found->n_spare; i++)
        main[n_main++] = found->spare[i]->path;
    int rc = pb_sidecars_find(pipeline, &c->walk, c->list.name, main, n_main, err, out->sidecars,
                              &sidecars);
    for (size_t i = 0; i < sidecars.n && rc == 0; i++) {
        struct pb_raster_file *to = &out->sidecars->file[out->sidecars->n++];
        to->fd = -1;
        wanted[(*n)++] = (struct wanted){sidecars.entry[i], to, sidecars.stem[i]};
    }
    return rc;
}

static int take_found(const struct pb_pipeline_config *pipeline,
                      const struct pb_scene_archive *archive, struct content *c,
                      const struct pb_scene_found *found, struct pb_err *err,
                      struct pb_scene_files *out)
{
    struct pb_archive_wish wish[WISHES_MAX];
    struct wanted wanted[WISHES_MAX];
    size_t n = want_found(found, out, wanted);
    int rc = want_sidecars(pipeline, c, found, err, out, wanted, &n);
    for (size_t i = 0; i < n; i++)
        wish[i] = (struct pb_archive_wish){.member = c->member[wanted[i].entry - c->walk.entry]};
    rc = rc ? rc
            : pb_archive_take(&c->list, wish, n, archive->room, archive->room_name,
                              archive->least_free, err);
    out->n_members = c->list.n;
    for (size_t i = 0; i < n && rc == 0; i++) {
        out->n_unpacked += !wish[i].in_place;
        out->unpacked_bytes += wish[i].in_place ? 0 : wish[i].part.bytes;
        rc = open_part(archive, &wish[i], wanted[i].entry->path, wanted[i].to, err);
        wanted[i].to->stem = wanted[i].stem;
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
    rc = rc ? rc : choose_root(pipeline, archive, c, err);
    rc = rc ? rc : name_scene(pipeline, archive, c, err);
    rc = rc ? rc : walk_list(pipeline, c, err);
    if (rc < 0)
        return rc;
    (void)snprintf(out->scene, sizeof out->scene, "%s", c->scene);
    rc = pb_scene_search(pipeline, &c->walk, archive->file->path, c->part, err, &found);
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
    pb_archive_close(&c.list);
    free(c.member);
    if (rc < 0 && err->code == PB_E_INPUT_SCENES && archive->scenes != NULL)
        *archive->scenes = c.scenes;
    else
        free(c.scenes.name);
    if (rc == 0)
        pb_scene_files_count(out);
    return rc;
}
