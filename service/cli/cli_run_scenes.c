/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: assembles the named files, and those of named folders, into scenes in the same
 * way as an inbox (pipeline/scene/assemble.h). A scene of several files becomes one input. */
#include "config/base/base_name.h"
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/io/path.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/assemble.h"
#include "pipeline/scene/belonging.h"
#include "service/base/files.h"
#include "service/cli/cli_run.h"
#include "service/inbox/settle.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum origin {
    NAMED,    /* an input of the command line */
    LISTED,   /* in a folder of the command line */
    NEIGHBOUR /* in the folder of such a file */
};

struct origin_of {
    enum origin origin;
    int input; /* number of the input that caused it */
    char *path;
};

/* Spelling of a folder by the first input in it. */
struct spelling {
    dev_t device;
    ino_t inode;
    char *prefix; /* begin of paths, with its slash; "" = the working directory */
};

struct cli_scenes {
    struct pb_entry *entry;
    struct origin_of *of; /* entry i has of[i] */
    size_t n, room;
    bool *is_made; /* true if scene i is an input already */
    struct pb_assembly *assembly;
    struct cli_told *told;
    struct spelling *folder;
    size_t n_folders;
};

/* --- spelling --------------------------------------------------------------------------------- */

static size_t folder_bytes(const char *path)
{
    return (size_t)(pb_base_name(path) - path);
}

/* Finds the first spelling of a folder ("" for "./" after "a.tif"): files of one scene have paths
 * in one folder. Returns prefix if the folder is not found, NULL if out of memory. */
static const char *first_spelling(struct cli_scenes *s, const char *prefix)
{
    struct stat st;
    if (stat(prefix[0] != '\0' ? prefix : ".", &st) != 0)
        return prefix;
    for (size_t i = s->n_folders; i > 0; i--)
        if (s->folder[i - 1].inode == st.st_ino && s->folder[i - 1].device == st.st_dev)
            return s->folder[i - 1].prefix;
    struct spelling *folder = realloc(s->folder, (s->n_folders + 1) * sizeof *folder);
    if (folder == NULL)
        return NULL;
    s->folder = folder;
    folder[s->n_folders] = (struct spelling){st.st_dev, st.st_ino, strdup(prefix)};
    return folder[s->n_folders].prefix != NULL ? folder[s->n_folders++].prefix : NULL;
}

/* Makes the path of a file with the first spelling of its folder; malloc'd. */
static char *spell(struct cli_scenes *s, const char *path)
{
    char prefix[PB_FILES_PATH_BYTES];
    const size_t n = folder_bytes(path);
    if (n >= sizeof prefix)
        return strdup(path);
    (void)snprintf(prefix, sizeof prefix, "%.*s", (int)n, path);
    const char *first = first_spelling(s, prefix);
    const size_t bytes = first != NULL ? strlen(first) + strlen(path + n) + 1 : 0;
    char *out = first != NULL ? malloc(bytes) : NULL;
    if (out != NULL)
        (void)snprintf(out, bytes, "%s%s", first, path + n);
    return out;
}

/* --- listing ---------------------------------------------------------------------------------- */

/* Adds a plain file; other kinds are left out. Takes ownership of path; NULL: out of memory. */
static bool add_file(struct cli_scenes *s, char *path, enum origin origin, int input)
{
    struct stat st;
    if (path == NULL)
        return false;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        free(path);
        return true;
    }
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 32;
        struct pb_entry *entry = realloc(s->entry, room * sizeof *entry);
        s->entry = entry != NULL ? entry : s->entry;
        struct origin_of *of = realloc(s->of, room * sizeof *of);
        s->of = of != NULL ? of : s->of;
        if (entry == NULL || of == NULL) {
            free(path);
            return false;
        }
        s->room = room;
    }
    s->entry[s->n] = (struct pb_entry){
        .path = path, .bytes = (uint64_t)st.st_size, .inode = st.st_ino, .is_settled = true};
    s->of[s->n++] = (struct origin_of){origin, input, path};
    return true;
}

/* Returns true if the folder is not a scene itself, and a pipeline takes loose files. */
static bool may_hold_files(const struct cli_run_options *o, const struct pb_config *config,
                           const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    if (o->pipeline == NULL)
        return pb_config_match_folder(config, path) == NULL;
    return pb_config_pipeline(config, o->pipeline)->input.group_pattern != NULL;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Returns true if a file of that name may be one of several of a scene, or metadata of these. */
static bool may_be_part(const struct pb_config *config, const char *name)
{
    char scene[256];
    return pb_config_match_group(config, name, NULL, scene) != NULL ||
           pb_belonging_metadata(config, name) != NULL;
}

/* Adds the files of a folder, except those that an inbox would not take. prefix: begin of their
 * paths, with its slash; "" is the working directory. parts: adds only files that may be parts of
 * scenes by this configuration; NULL: all. */
static bool add_folder(struct cli_scenes *s, const char *prefix, const struct pb_config *parts,
                       enum origin origin, int input)
{
    struct dirent **entry = NULL;
    const int n = scandir(prefix[0] != '\0' ? prefix : ".", &entry, NULL, by_name);
    bool good = true;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        const size_t bytes = strlen(prefix) + strlen(name) + 1;
        const bool counts =
            good && !pb_settle_is_left_alone(name) && (parts == NULL || may_be_part(parts, name));
        char *path = counts ? malloc(bytes) : NULL;
        if (path != NULL)
            (void)snprintf(path, bytes, "%s%s", prefix, name);
        free(entry[i]);
        good = good && (!counts || add_file(s, path, origin, input));
    }
    free(entry);
    return good;
}

static bool add_inputs(const struct cli_run_options *o, const struct pb_config *config)
{
    bool good = true;
    for (int i = 0; good && i < o->n_inputs; i++) {
        char prefix[PB_FILES_PATH_BYTES];
        const char *path = o->inputs[i], *first;
        if (!may_hold_files(o, config, path)) {
            good = add_file(o->scenes, spell(o->scenes, path), NAMED, i);
        } else if (snprintf(prefix, sizeof prefix, "%s/", path) < (int)sizeof prefix) {
            first = first_spelling(o->scenes, prefix);
            good = first != NULL && add_folder(o->scenes, first, NULL, LISTED, i);
        }
    }
    return good;
}

/* --- assembly --------------------------------------------------------------------------------- */

/* A run waits for no file: the time of every wait is over. */
static bool assemble(const struct cli_run_options *o, const struct pb_config *config)
{
    struct cli_scenes *s = o->scenes;
    const struct pb_entry_facts facts = {cli_told_find, s->told};
    const struct pb_assembly_input input = {
        .config = config,
        .only = o->pipeline != NULL ? pb_config_pipeline(config, o->pipeline) : NULL,
        .entry = s->entry,
        .n = s->n,
        .facts = &facts,
        .wall_ms = INT64_MAX,
        .wall_is_trusted = true};
    return pb_assembly_group(s->assembly, &input) == 0;
}

static bool is_orphan_metadata(const struct pb_assembled *scene)
{
    return scene->form == PB_FORM_ORPHAN && scene->member[0].role == PB_ROLE_METADATA &&
           scene->pipeline_number != SIZE_MAX;
}

/* Orders entries by their folder, and those of one folder by their position. */
static int by_folder(const void *a, const void *b)
{
    const struct pb_entry *one = *(const struct pb_entry *const *)a;
    const struct pb_entry *other = *(const struct pb_entry *const *)b;
    const size_t n = folder_bytes(one->path), m = folder_bytes(other->path);
    const int order = strncmp(one->path, other->path, n < m ? n : m);
    if (order != 0 || n != m)
        return order != 0 ? order : n < m ? -1 : 1;
    return one < other ? -1 : one > other;
}

/* Neighbours of a file that are needed to assemble its scene. */
enum wish { NOTHING, PARTS, ALL };

/* Moves the wishes of all entries to the first of each folder. Returns false if out of memory. */
static bool keep_first(const struct cli_scenes *s, enum wish *wish)
{
    const struct pb_entry **sorted = calloc(s->n + 1, sizeof(struct pb_entry *));
    size_t n = 0;
    for (size_t i = 0; sorted != NULL && i < s->n; i++)
        if (wish[i] != NOTHING)
            sorted[n++] = &s->entry[i];
    if (sorted != NULL)
        qsort(sorted, n, sizeof *sorted, by_folder);
    for (size_t i = 1, first = 0; sorted != NULL && i < n; i++) {
        const char *path = sorted[i]->path, *before = sorted[first]->path;
        const size_t bytes = folder_bytes(path);
        enum wish *own = &wish[sorted[i] - s->entry], *kept = &wish[sorted[first] - s->entry];
        if (folder_bytes(before) != bytes || strncmp(before, path, bytes) != 0) {
            first = i;
            continue;
        }
        *kept = *own > *kept ? *own : *kept;
        *own = NOTHING;
    }
    const bool good = sorted != NULL;
    free(sorted);
    return good;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Removes neighbours, which are the entries from n on, that are inputs, too. Returns false if out
 * of memory. */
static bool drop_known(struct cli_scenes *s, size_t n)
{
    const char **known = calloc(n + 1, sizeof(char *));
    size_t kept = n;
    if (known == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        known[i] = s->of[i].path;
    qsort(known, n, sizeof *known, by_text);
    for (size_t i = n; i < s->n; i++) {
        if (bsearch(&s->of[i].path, known, n, sizeof *known, by_text) != NULL) {
            free(s->of[i].path);
            continue;
        }
        s->entry[kept] = s->entry[i];
        s->of[kept++] = s->of[i];
    }
    s->n = kept;
    free(known);
    return true;
}

/* Adds the neighbours of files whose scene is not known by their names: its other files, too, are
 * known by their metadata alone (*out_asks: there is such a file); and those of a named file of
 * several. */
static bool add_neighbours(struct cli_scenes *s, const struct pb_config *config, bool *out_asks)
{
    const size_t n = s->n;
    enum wish *wish = calloc(n + 1, sizeof *wish);
    *out_asks = false;
    for (size_t i = 0; wish != NULL && i < n; i++) {
        const struct pb_assembled *scene = pb_assembly_of(s->assembly, i);
        const bool asks = scene->form == PB_FORM_UNASSIGNED || is_orphan_metadata(scene);
        const bool is_part = scene->form == PB_FORM_GROUP && s->of[i].origin == NAMED;
        wish[i] = asks ? ALL : is_part ? PARTS : NOTHING;
        *out_asks = *out_asks || asks;
    }
    bool good = wish != NULL && keep_first(s, wish);
    for (size_t i = 0; good && i < n; i++) {
        char prefix[PB_FILES_PATH_BYTES];
        if (wish[i] != NOTHING &&
            snprintf(prefix, sizeof prefix, "%.*s", (int)folder_bytes(s->entry[i].path),
                     s->entry[i].path) < (int)sizeof prefix)
            good =
                add_folder(s, prefix, wish[i] == PARTS ? config : NULL, NEIGHBOUR, s->of[i].input);
    }
    free(wish);
    return good && drop_known(s, n);
}

/* Reports neighbours that might belong to the scenes, but whose metadata have no facts. */
static void report_left_out(const struct cli_scenes *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct pb_described *answer = cli_told_find(s->told, s->entry[i].path, 0);
        if (s->of[i].origin == NEIGHBOUR && answer != NULL && answer->code != PB_OK)
            (void)fprintf(stderr, "pushbroom: %s is left out: %s\n", s->entry[i].path,
                          answer->message);
    }
}

/* Queries the metadata of all files that need it at the same time. */
static bool ask(const struct cli_run_options *o, const struct pb_config *config)
{
    struct cli_scenes *s = o->scenes;
    const size_t n = s->n, room = s->room;
    bool asks = false, good = add_neighbours(s, config, &asks);
    if (!good || (!asks && s->n == n && s->room == room)) /* the assembly borrows the entries */
        return good;
    good = assemble(o, config);
    for (size_t i = 0; asks && good && i < pb_assembly_count(s->assembly); i++) {
        const struct pb_assembled *scene = pb_assembly_at(s->assembly, i);
        if (scene->form == PB_FORM_UNASSIGNED)
            good = cli_told_add(&s->told, scene->pipeline, scene->name);
    }
    good = good && (s->told == NULL || cli_told_wait(s->told, config));
    if (good && !o->quiet)
        report_left_out(s);
    return good && assemble(o, config);
}

/* --- inputs ----------------------------------------------------------------------------------- */

/* Makes "DIR/SCENE"; malloc'd. */
static char *path_of(const char *file, const char *scene)
{
    const size_t n = folder_bytes(file), bytes = n + strlen(scene) + 3;
    char *path = malloc(bytes);
    if (path != NULL)
        (void)snprintf(path, bytes, "%.*s%s", n ? (int)n : 2, n ? file : "./", scene);
    return path;
}

/* Adds a file of the scene to the manifest. Returns 0 or a negative errno. */
static int add_member(const struct pb_assembled *scene, size_t i, int root,
                      struct pb_scene_manifest *out)
{
    const struct pb_manifest_entry entry = {
        .path = (char *)pb_base_name(pb_assembled_entry(scene, i)->path),
        .root = (uint16_t)root,
        .bytes = -1};
    struct pb_member member = scene->member[i];
    const int index = pb_scene_manifest_add(out, &entry);
    member.entry = (uint32_t)index;
    return index < 0 ? index : pb_scene_manifest_assign(out, &member);
}

/* Lists the files of a scene of loose files at that path. Returns false if out of memory. */
static bool list_files(const struct pb_assembled *scene, const char *path, struct cli_group *group)
{
    char folder[PATH_MAX], real[PATH_MAX];
    pb_path_parent(path, folder);
    int root =
        realpath(folder, real) != NULL ? pb_scene_manifest_root(&group->files, real) : -errno;
    int rc = root < 0 ? root : 0;
    for (size_t i = 0; i < scene->n && rc == 0; i++)
        if (scene->member[i].role != PB_ROLE_SIDECAR)
            rc = add_member(scene, i, root, &group->files);
    if (rc == -E2BIG)
        (void)pb_fail_at(&group->err, PB_E_INPUT_LIMIT, path, 0, 0,
                         "the scene has more than %d files, or too long paths of these",
                         PB_SCENE_MANIFEST_ENTRIES_MAX);
    else if (rc != 0 && rc != -ENOMEM)
        (void)pb_raster_file_fail(&group->err, -rc, path, "cannot list the files of the scene");
    return rc != -ENOMEM;
}

/* Appends an input. Takes ownership of path (NULL: out of memory) and of the group's content. */
static bool append(struct cli_run_options *o, char *path, struct cli_group *group)
{
    const size_t n = (size_t)o->n_made;
    char **made = path != NULL ? realloc(o->made, (n + 1) * sizeof *made) : NULL;
    o->made = made != NULL ? made : o->made;
    struct cli_group *groups = realloc(o->groups, (n + 1) * sizeof *groups);
    o->groups = groups != NULL ? groups : o->groups;
    if (made == NULL || groups == NULL) {
        free(path);
        pb_scene_manifest_fini(&group->files);
        return false;
    }
    o->made[n] = path;
    o->groups[n] = *group;
    o->n_made++;
    return true;
}

/* Appends the scene as an input. */
static bool append_scene(struct cli_run_options *o, const struct pb_config *config,
                         const struct pb_assembled *scene)
{
    const struct pb_pipeline_config *pipeline =
        scene->pipeline_number != SIZE_MAX ? &config->pipelines[scene->pipeline_number] : NULL;
    struct cli_group group = {.pipeline = NULL};
    if (scene->form == PB_FORM_GROUP) {
        char *path = path_of(pb_assembled_entry(scene, 0)->path, scene->name);
        group.pipeline = pipeline;
        if (path != NULL && !list_files(scene, path, &group)) {
            free(path);
            path = NULL;
        }
        return append(o, path, &group);
    }
    if (scene->answer != NULL) {
        group.pipeline = pipeline;
        (void)pb_fail(&group.err, scene->answer->code, "%s", scene->answer->message);
    } else if (is_orphan_metadata(scene)) {
        group.pipeline = pipeline;
        (void)pb_fail(&group.err, PB_E_INPUT_INCOMPLETE, "%s", scene->missing);
    }
    const struct pb_entry *main = pb_assembled_main(scene);
    const struct origin_of *of = &o->scenes->of[main - o->scenes->entry];
    return append(o, strdup(of->origin == NAMED ? o->inputs[of->input] : main->path), &group);
}

/* Returns true if the file makes its scene an input: any named one; of a folder, only files of a
 * pipeline with input.group. */
static bool makes_input(const struct cli_scenes *s, const struct pb_config *config, size_t entry)
{
    const struct pb_assembled *scene = pb_assembly_of(s->assembly, entry);
    const bool is_lost = is_orphan_metadata(scene) &&
                         config->pipelines[scene->pipeline_number].input.group_pattern != NULL;
    return s->of[entry].origin == NAMED || scene->form == PB_FORM_GROUP || scene->answer != NULL ||
           is_lost;
}

static bool make_inputs(struct cli_run_options *o, const struct pb_config *config)
{
    struct cli_group none = {.pipeline = NULL};
    struct cli_scenes *s = o->scenes;
    bool good = true;
    size_t at = 0;
    s->is_made = calloc(pb_assembly_count(s->assembly) + 1, sizeof *s->is_made);
    good = s->is_made != NULL;
    for (int i = 0; good && i < o->n_inputs; i++) {
        bool any = false;
        for (; good && at < s->n && s->of[at].input == i && s->of[at].origin != NEIGHBOUR; at++) {
            const struct pb_assembled *scene = pb_assembly_of(s->assembly, at);
            bool *is_made = &s->is_made[scene - pb_assembly_at(s->assembly, 0)];
            if (!makes_input(s, config, at))
                continue;
            any = true;
            good = *is_made || append_scene(o, config, scene);
            *is_made = true;
        }
        if (good && !any) /* it is no plain file, or a folder without files that are taken */
            good = append(o, strdup(o->inputs[i]), &none);
    }
    return good;
}

/* Replaces inputs such as "." and "scene/.." by their real paths: the name of a folder determines
 * its pipeline and its scene. */
static bool resolve_dots(struct cli_run_options *o)
{
    o->real = calloc((size_t)o->n_inputs, sizeof *o->real);
    for (int i = 0; o->real != NULL && i < o->n_inputs; i++) {
        const char *base = pb_base_name(o->inputs[i]);
        char *real = pb_path_is_dots(base) ? realpath(o->inputs[i], NULL) : NULL;
        if (real != NULL)
            o->inputs[i] = o->real[o->n_real++] = real;
    }
    return o->real != NULL;
}

bool cli_input_gather(struct cli_run_options *o, const struct pb_config *config)
{
    o->scenes = calloc(1, sizeof *o->scenes);
    if (o->scenes == NULL || (o->scenes->assembly = pb_assembly_create()) == NULL)
        return false;
    if (!resolve_dots(o) || !add_inputs(o, config) || !assemble(o, config) || !ask(o, config) ||
        !make_inputs(o, config))
        return false;
    o->inputs = o->made;
    o->n_inputs = o->n_made;
    return true;
}

void cli_input_forget(struct cli_run_options *o)
{
    struct cli_scenes *s = o->scenes;
    for (int i = 0; i < o->n_made; i++) {
        free(o->made[i]);
        pb_scene_manifest_fini(&o->groups[i].files);
    }
    for (int i = 0; i < o->n_real; i++)
        free(o->real[i]);
    free(o->real);
    free(o->made);
    free(o->groups);
    for (size_t i = 0; s != NULL && i < s->n; i++)
        free(s->of[i].path);
    if (s != NULL) {
        pb_assembly_destroy(s->assembly);
        cli_told_destroy(s->told);
        for (size_t i = 0; i < s->n_folders; i++)
            free(s->folder[i].prefix);
        free(s->folder);
        free(s->entry);
        free(s->of);
        free(s->is_made);
    }
    free(s);
}
