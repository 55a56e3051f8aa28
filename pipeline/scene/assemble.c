/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The entries are sorted by scene: a scene is a run of them. The scenes of the last listing are
 * kept until the next one: entries that are in the same scene as before are in their order already,
 * and a set with the same files is not checked again. */
#include "pipeline/scene/assemble.h"

#include "config/base/arena.h"
#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/belonging.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/scene_search.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Place of an entry in the order of the scenes. */
struct key {
    size_t entry, main; /* main: entry that determines the scene */
    bool is_set, is_beside;
    bool is_kept; /* the last listing had the entry in the same scene */
    size_t pipeline;
    const char *scene, *path;
};

/* Result of the check of a set, which its names determine. */
struct verdict {
    bool is_known;     /* false for a set that joins earlier files as well */
    uint32_t n;        /* count of its files */
    enum pb_code code; /* PB_OK: it is complete */
    const char *text;
};

struct pb_assembly {
    struct pb_arena *arena; /* texts of the scenes */
    struct pb_assembly_input input;
    struct pb_entry *listed;        /* entries of a walk (pb_assembly_folder) */
    struct pb_belonging *belonging; /* entry i has belonging[i] */
    struct key *key;
    size_t n_keys;
    struct pb_member *member; /* members of all scenes, one scene after the other */
    struct pb_assembled *scene;
    size_t n;
    struct pb_member *shared; /* members of all scenes of an archive */
    size_t n_shared;
    const char *why_none;
    struct verdict *verdict; /* one for each scene */
    uint32_t *scene_of;      /* index by entry; UINT32_MAX = none */
    uint32_t *key_of;        /* index by entry; UINT32_MAX = none */
    int64_t *awaited_ms; /* arrival of each pipeline's first unassigned file; INT64_MAX = none */
    const char **pipeline;
    struct pb_belonging_names *names;
    struct pb_assembly *before; /* scenes of the last listing; its entries may be gone */
};

struct pb_assembly *pb_assembly_create(void)
{
    return calloc(1, sizeof(struct pb_assembly));
}

void pb_scene_earlier_fini(struct pb_scene_earlier *earlier)
{
    for (size_t i = 0; i < earlier->n; i++)
        free(earlier->name[i]);
    free(earlier->name);
    *earlier = (struct pb_scene_earlier){.n = 0};
}

static void forget_before(struct pb_assembly *assembly)
{
    if (assembly->before != NULL)
        pb_assembly_clear(assembly->before);
    free(assembly->before);
    assembly->before = NULL;
}

void pb_assembly_clear(struct pb_assembly *assembly)
{
    for (size_t i = 0; i < assembly->n; i++)
        pb_scene_earlier_fini(&assembly->scene[i].earlier);
    forget_before(assembly);
    pb_belonging_names_destroy(assembly->names);
    pb_arena_destroy(assembly->arena);
    free(assembly->listed);
    free(assembly->belonging);
    free(assembly->key);
    free(assembly->member);
    free(assembly->shared);
    free(assembly->scene);
    free(assembly->verdict);
    free(assembly->scene_of);
    free(assembly->key_of);
    free(assembly->awaited_ms);
    free(assembly->pipeline);
    memset(assembly, 0, sizeof *assembly);
}

void pb_assembly_destroy(struct pb_assembly *assembly)
{
    if (assembly != NULL)
        pb_assembly_clear(assembly);
    free(assembly);
}

/* --- order ------------------------------------------------------------------------------------ */

/* Compares directories: files of different directories are never in one set. */
static int compare_directories(const char *a, const char *b)
{
    size_t n = (size_t)(pb_base_name(a) - a), m = (size_t)(pb_base_name(b) - b);
    int order = memcmp(a, b, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

static int compare_sets(const struct key *a, const struct key *b)
{
    if (a->pipeline != b->pipeline)
        return a->pipeline < b->pipeline ? -1 : 1;
    if (a->is_beside != b->is_beside)
        return a->is_beside ? 1 : -1;
    int order = strcmp(a->scene, b->scene);
    return order != 0 ? order : compare_directories(a->path, b->path);
}

static int compare_scenes(const struct key *a, const struct key *b)
{
    if (a->is_set != b->is_set)
        return a->is_set ? 1 : -1;
    return a->is_set ? compare_sets(a, b) : (a->main > b->main) - (a->main < b->main);
}

static int by_scene(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    int order = compare_scenes(left, right);
    if (order == 0 && !left->is_set && (left->entry == left->main) != (right->entry == right->main))
        return left->entry == left->main ? -1 : 1;
    order = order != 0 ? order : strcmp(left->path, right->path);
    return order != 0 ? order : (left->entry > right->entry) - (left->entry < right->entry);
}

static struct key key_of(const struct pb_assembly *assembly, size_t i)
{
    const struct pb_assembly_input *input = &assembly->input;
    const struct pb_belonging *file = &assembly->belonging[i];
    const bool follows = file->belongs == PB_BELONGS_BESIDE || file->belongs == PB_BELONGS_CONTENT;
    const size_t main = follows ? file->main : i;
    const struct pb_belonging *of = &assembly->belonging[main];
    const bool is_beside = of->belongs == PB_BELONGS_MAIN;
    struct key key = {.entry = i,
                      .main = main,
                      .is_set = is_beside || of->belongs == PB_BELONGS_SET,
                      .is_beside = is_beside,
                      .pipeline = SIZE_MAX,
                      .scene = is_beside ? pb_base_name(input->entry[main].path) : of->scene,
                      .path = input->entry[i].path};
    if (of->pipeline != NULL)
        key.pipeline = (size_t)(of->pipeline - input->config->pipelines);
    return key;
}

/* Returns true if the last listing had the entry in the same scene, so that its place among the
 * entries for which that is true is the same. */
static bool is_kept(const struct pb_assembly *assembly, const struct key *key)
{
    const struct pb_assembly *before = assembly->before;
    if (before == NULL)
        return false;
    const uint32_t *last = pb_belonging_names_last(assembly->names);
    const uint32_t number = last[key->entry];
    if (number == UINT32_MAX || before->key_of[number] == UINT32_MAX)
        return false;
    const struct key *old = &before->key[before->key_of[number]];
    return last[key->main] == old->main && key->is_set == old->is_set &&
           key->is_beside == old->is_beside && key->pipeline == old->pipeline &&
           (!key->is_set || key->is_beside || strcmp(key->scene, old->scene) == 0);
}

#ifndef NDEBUG
/* Debug builds check the order. */
static bool is_sorted(const struct pb_assembly *assembly)
{
    bool is = true;
    for (size_t i = 1; i < assembly->n_keys && is; i++)
        is = by_scene(&assembly->key[i - 1], &assembly->key[i]) < 0;
    return is;
}
#endif

static int sort_keys(struct pb_assembly *assembly)
{
    const struct pb_assembly *before = assembly->before;
    const size_t n_before = before != NULL ? before->input.n : 0;
    struct key *many = calloc(assembly->n_keys + 1, sizeof *many);
    struct key *few = calloc(assembly->n_keys + 1, sizeof *few);
    /* key + 1 of each entry of the last listing; 0 = it is not kept */
    uint32_t *kept = calloc(n_before + 1, sizeof *kept);
    size_t n = 0, m = 0;
    const bool good = many != NULL && few != NULL && kept != NULL;
    for (size_t i = 0; good && i < assembly->n_keys; i++) {
        struct key *key = &assembly->key[i];
        key->is_kept = is_kept(assembly, key);
        if (key->is_kept)
            kept[pb_belonging_names_last(assembly->names)[key->entry]] = (uint32_t)i + 1;
        else
            few[m++] = *key;
    }
    for (size_t i = 0; good && before != NULL && i < before->n_keys; i++)
        if (kept[before->key[i].entry] != 0)
            many[n++] = assembly->key[kept[before->key[i].entry] - 1];
    if (m > 1)
        qsort(few, m, sizeof *few, by_scene);
    if (good)
        pb_belonging_merge(assembly->key, sizeof *many, many, n, few, m, by_scene);
    assert(!good || is_sorted(assembly));
    free(many);
    free(few);
    free(kept);
    return good ? 0 : -ENOMEM;
}

/* --- scenes ----------------------------------------------------------------------------------- */

static bool has_expired(const struct pb_assembly *assembly, int64_t due_ms)
{
    return assembly->input.wall_is_trusted && assembly->input.wall_ms >= due_ms;
}

static const char *keep(const struct pb_assembly *assembly, const char *text)
{
    const char *kept = pb_arena_text(assembly->arena, text, strlen(text));
    return kept != NULL ? kept : "";
}

/* Registers a file whose set of the pipeline is not known yet. Sets of the pipeline wait for it if
 * their last file is newer, or if they lack files and expire later. */
static void await_file(struct pb_assembly *assembly, size_t pipeline, int64_t ctime_ns)
{
    if (ctime_ns / 1000000 < assembly->awaited_ms[pipeline])
        assembly->awaited_ms[pipeline] = ctime_ns / 1000000;
}

/* Lets a file whose set depends on its metadata wait until these are read. Absent metadata are
 * waited for as long as the set would wait for them. */
static void ask(struct pb_assembly *assembly, const struct pb_belonging *file,
                struct pb_assembled *scene)
{
    const struct pb_input_config *input = &file->pipeline->input;
    const int64_t arrived_ns = pb_assembled_entry(scene, 0)->ctime_ns;
    const int64_t due_ms = arrived_ns / 1000000 + input->complete.expire_ms;
    scene->form = PB_FORM_UNASSIGNED;
    scene->digest = file->digest;
    scene->may_be_asked = file->may_be_asked;
    if (file->lacks_metadata && !has_expired(assembly, due_ms)) {
        char missing[200];
        (void)snprintf(missing, sizeof missing,
                       "its metadata (%.120s) are missing, which determine its scene (input.by)",
                       input->metadata[0]);
        scene->state = PB_SCENE_INCOMPLETE;
        scene->missing = keep(assembly, missing);
        scene->due_ms = due_ms;
        return;
    }
    scene->state = PB_SCENE_NEEDS_FACTS;
    scene->missing = "its metadata are read first, which determine its scene (input.by)";
    await_file(assembly, scene->pipeline_number, arrived_ns);
}

/* Metadata that arrive before their scene wait for as long as the scene would wait for them; then
 * their job reports the missing scene. */
static void await_main(struct pb_assembly *assembly, const struct pb_belonging *file,
                       struct pb_assembled *scene)
{
    const int64_t due_ms =
        pb_assembled_entry(scene, 0)->ctime_ns / 1000000 + file->pipeline->input.complete.expire_ms;
    scene->form = PB_FORM_ORPHAN;
    scene->missing = "the file that it is metadata of is missing";
    scene->due_ms = due_ms;
    scene->state = has_expired(assembly, due_ms) ? PB_SCENE_READY : PB_SCENE_INCOMPLETE;
}

/* Decides about a scene that is no set. */
static void form_single(struct pb_assembly *assembly, const struct key *key,
                        struct pb_assembled *scene)
{
    const struct pb_belonging *file = &assembly->belonging[key->main];
    switch (file->belongs) {
    case PB_BELONGS_ASKED:
        ask(assembly, file, scene);
        break;
    case PB_BELONGS_AWAITS:
        await_main(assembly, file, scene);
        break;
    case PB_BELONGS_NOWHERE:
        scene->form = PB_FORM_ORPHAN;
        scene->state = PB_SCENE_INCOMPLETE;
        scene->missing = "the file that it belongs to is missing";
        scene->pipeline = "";
        scene->pipeline_number = SIZE_MAX;
        break;
    case PB_BELONGS_CONTENT:
        scene->form = PB_FORM_CONTENT;
        scene->name = file->scene;
        scene->root = file->root;
        break;
    default:
        scene->form = PB_FORM_ALONE;
        scene->state =
            assembly->input.entry[key->main].is_settled ? PB_SCENE_READY : PB_SCENE_UNSETTLED;
        break;
    }
}

static void begin_scene(struct pb_assembly *assembly, size_t at)
{
    const struct key *key = &assembly->key[at];
    struct pb_assembled *scene = &assembly->scene[assembly->n++];
    *scene = (struct pb_assembled){.name = key->is_set ? key->scene : key->path,
                                   .pipeline = "",
                                   .pipeline_number = key->pipeline,
                                   .form = key->is_beside ? PB_FORM_COMPOUND : PB_FORM_GROUP,
                                   .state = PB_SCENE_UNSETTLED,
                                   .entry = assembly->input.entry,
                                   .member = &assembly->member[at],
                                   .shared = assembly->shared,
                                   .n_shared = assembly->n_shared,
                                   .missing = ""};
    if (key->pipeline != SIZE_MAX)
        scene->pipeline = assembly->pipeline[key->pipeline];
    if (key->is_set && !key->is_beside)
        scene->reopen_ms =
            assembly->input.config->pipelines[key->pipeline].input.complete.reopen_ms;
}

static void form_scenes(struct pb_assembly *assembly)
{
    for (size_t i = 0; i < assembly->n_keys; i++) {
        const struct key *key = &assembly->key[i];
        const struct pb_belonging *file = &assembly->belonging[key->entry];
        assembly->member[i] = (struct pb_member){.entry = (uint32_t)key->entry, .role = file->role};
        const bool is_first = i == 0 || compare_scenes(key - 1, key) != 0;
        if (is_first)
            begin_scene(assembly, i);
        struct pb_assembled *scene = &assembly->scene[assembly->n - 1];
        scene->n++;
        if (scene->answer == NULL && file->answer != NULL && file->answer->code != PB_OK)
            scene->answer = file->answer;
        if (is_first && !key->is_set)
            form_single(assembly, key, scene);
        assembly->scene_of[key->entry] = (uint32_t)(assembly->n - 1);
        assembly->key_of[key->entry] = (uint32_t)i;
    }
}

static int make_room(struct pb_assembly *assembly)
{
    const size_t n = assembly->input.n, n_pipelines = assembly->input.config->n_pipelines;
    assembly->arena = pb_arena_create();
    assembly->belonging = calloc(n + 1, sizeof *assembly->belonging);
    assembly->key = calloc(n + 1, sizeof *assembly->key);
    assembly->member = calloc(n + 1, sizeof *assembly->member);
    assembly->shared = calloc(n + 1, sizeof *assembly->shared);
    assembly->scene = calloc(n + 1, sizeof *assembly->scene);
    assembly->verdict = calloc(n + 1, sizeof *assembly->verdict);
    assembly->scene_of = calloc(n + 1, sizeof *assembly->scene_of);
    assembly->key_of = calloc(n + 1, sizeof *assembly->key_of);
    assembly->awaited_ms = calloc(n_pipelines + 1, sizeof *assembly->awaited_ms);
    assembly->pipeline = calloc(n_pipelines + 1, sizeof *assembly->pipeline);
    if (assembly->arena == NULL || assembly->belonging == NULL || assembly->key == NULL ||
        assembly->member == NULL || assembly->shared == NULL || assembly->scene == NULL ||
        assembly->verdict == NULL || assembly->scene_of == NULL || assembly->key_of == NULL ||
        assembly->awaited_ms == NULL || assembly->pipeline == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n_pipelines; i++) {
        assembly->awaited_ms[i] = INT64_MAX;
        assembly->pipeline[i] = keep(assembly, assembly->input.config->pipelines[i].name);
    }
    return 0;
}

static int find_belonging(struct pb_assembly *assembly)
{
    const struct pb_assembly_input *input = &assembly->input;
    const struct pb_content_rules content = {.pipeline = input->only,
                                             .name = input->name,
                                             .is_archive = input->listing == PB_LISTING_ARCHIVE,
                                             .arena = assembly->arena};
    const struct pb_belonging_rules loose = {.config = input->config,
                                             .only = input->only,
                                             .facts = input->facts,
                                             .arena = assembly->arena,
                                             .names = assembly->names};
    if (input->listing == PB_LISTING_LOOSE)
        return pb_belonging_sort(input->entry, input->n, &loose, assembly->belonging);
    return pb_belonging_content(input->entry, input->n, &content, assembly->belonging,
                                &assembly->why_none);
}

/* Makes the keys of the entries that are members of one scene, and lists those of all scenes. */
static int sort_entries(struct pb_assembly *assembly)
{
    for (size_t i = 0; i < assembly->input.n; i++) {
        const enum pb_belongs belongs = assembly->belonging[i].belongs;
        assembly->scene_of[i] = assembly->key_of[i] = UINT32_MAX;
        if (belongs == PB_BELONGS_SHARED)
            assembly->shared[assembly->n_shared++] =
                (struct pb_member){.entry = (uint32_t)i, .role = PB_ROLE_UNUSED};
        else if (belongs != PB_BELONGS_OUTSIDE && !assembly->input.entry[i].is_companion)
            assembly->key[assembly->n_keys++] = key_of(assembly, i);
    }
    return sort_keys(assembly);
}

/* Keeps of the scenes, as those of the last listing, the keys and verdicts. */
static struct pb_assembly *keep_last(struct pb_assembly *assembly)
{
    struct pb_assembly *before = malloc(sizeof *before);
    if (before == NULL)
        return NULL;
    for (size_t i = 0; i < assembly->n; i++)
        pb_scene_earlier_fini(&assembly->scene[i].earlier);
    free(assembly->belonging);
    free(assembly->member);
    free(assembly->shared);
    free(assembly->scene);
    *before = *assembly;
    before->names = NULL;
    before->belonging = NULL;
    before->member = NULL;
    before->shared = NULL;
    before->scene = NULL;
    before->n = 0;
    return before;
}

/* Only loose files are listed again and again. */
static int begin(struct pb_assembly *assembly, const struct pb_assembly_input *input)
{
    const bool remembers = input->listing == PB_LISTING_LOOSE;
    struct pb_assembly *before = NULL;
    forget_before(assembly);
    if (remembers && assembly->names != NULL && assembly->input.config == input->config &&
        assembly->input.only == input->only)
        before = keep_last(assembly);
    if (before == NULL)
        pb_assembly_clear(assembly);
    struct pb_belonging_names *names = before != NULL ? assembly->names
                                       : remembers    ? pb_belonging_names_create()
                                                      : NULL;
    *assembly = (struct pb_assembly){.input = *input, .names = names, .before = before};
    return (names != NULL || !remembers) && input->n < UINT32_MAX ? make_room(assembly) : -ENOMEM;
}

int pb_assembly_group(struct pb_assembly *assembly, const struct pb_assembly_input *input)
{
    int rc = begin(assembly, input);
    rc = rc ? rc : find_belonging(assembly);
    rc = rc ? rc : sort_entries(assembly);
    if (rc == 0) {
        form_scenes(assembly);
        rc = pb_arena_failed(assembly->arena) ? -ENOMEM : 0;
    }
    if (rc != 0)
        pb_assembly_clear(assembly);
    return rc;
}

/* --- completeness of sets --------------------------------------------------------------------- */

static const char *member_name(const struct pb_assembled *set, size_t i)
{
    return pb_base_name(pb_assembled_entry(set, i)->path);
}

static bool has_metadata(const struct pb_assembled *set, const char *pattern, const char *scene)
{
    bool has = false;
    for (size_t i = 0; i < set->n && !has; i++)
        has = pb_metadata_is_of(pattern, scene, set->name, member_name(set, i));
    return has;
}

static bool has_sidecar(const struct pb_assembled *set, const char *ending)
{
    bool has = false;
    for (size_t i = 0; i < set->n && !has; i++)
        has = pb_sidecar_is_of(set->name, ending, member_name(set, i));
    return has;
}

/* Checks a file and the files that belong to it. */
static int check_beside(const struct pb_pipeline_config *pipeline, const struct pb_assembled *set,
                        struct pb_err *err)
{
    const struct pb_input_config *input = &pipeline->input;
    bool all = input->has_complete && input->complete.all != 0;
    char scene[256];
    pb_file_name_scene(set->name, scene, sizeof scene);
    for (size_t i = 0; i < input->n_metadata; i++)
        if (!has_metadata(set, input->metadata[i], scene))
            return pb_fail(err, PB_E_INPUT_INCOMPLETE, "its metadata are missing (%.200s)",
                           input->metadata[i]);
    for (size_t i = 0; all && i < input->n_sidecars; i++)
        if (!has_sidecar(set, input->sidecars[i]))
            return pb_fail(err, PB_E_INPUT_INCOMPLETE, "its sidecar %.100s is missing",
                           input->sidecars[i]);
    return 0;
}

#define EARLIER UINT32_MAX /* number of a file of an earlier job */

static int by_path(const void *a, const void *b)
{
    const struct pb_scene_entry *left = a, *right = b;
    int order = strcmp(left->path, right->path);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

static int add_path(struct pb_scene_walk *walk, const char *path, uint32_t number)
{
    struct pb_scene_entry *entry = &walk->entry[walk->n];
    *entry = (struct pb_scene_entry){.path = strdup(path), .number = number};
    walk->n += entry->path != NULL;
    return entry->path != NULL ? 0 : -ENOMEM;
}

static int add_members(const struct pb_assembled *scene, const struct pb_member *member, size_t n,
                       struct pb_scene_walk *walk)
{
    const bool is_content = scene->form == PB_FORM_CONTENT;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_entry *entry = &scene->entry[member[i].entry];
        if (entry->is_folder)
            continue;
        rc = add_path(walk,
                      is_content ? entry->path + scene->root + (scene->root > 0)
                                 : pb_base_name(entry->path),
                      member[i].entry);
    }
    return rc;
}

/* Removes the names of earlier jobs that are listed before. */
static void remove_repeated(struct pb_scene_walk *walk)
{
    size_t kept = 0;
    for (size_t i = 0; i < walk->n; i++) {
        struct pb_scene_entry *entry = &walk->entry[i];
        if (kept > 0 && entry->number == EARLIER &&
            strcmp(walk->entry[kept - 1].path, entry->path) == 0)
            free(entry->path);
        else
            walk->entry[kept++] = *entry;
    }
    walk->n = kept;
}

int pb_assembled_walk(const struct pb_assembled *scene, struct pb_scene_walk *out)
{
    *out = (struct pb_scene_walk){.fd = -1, .room = scene->n + scene->n_shared + scene->earlier.n};
    out->entry = calloc(out->room + 1, sizeof *out->entry);
    int rc = out->entry != NULL ? add_members(scene, scene->member, scene->n, out) : -ENOMEM;
    rc = rc ? rc : add_members(scene, scene->shared, scene->n_shared, out);
    for (size_t i = 0; i < scene->earlier.n && rc == 0; i++)
        rc = add_path(out, scene->earlier.name[i], EARLIER);
    if (rc == 0 && out->n > 0)
        qsort(out->entry, out->n, sizeof *out->entry, by_path);
    remove_repeated(out);
    return rc;
}

/* Checks the files of the scene, and those that it joins, like those of one folder. */
static int check(const struct pb_pipeline_config *pipeline, const struct pb_assembled *set,
                 struct pb_err *err)
{
    struct pb_scene_walk walk;
    if (set->form == PB_FORM_COMPOUND)
        return check_beside(pipeline, set, err);
    int rc = pb_assembled_walk(set, &walk);
    rc = rc ? pb_fail(err, PB_E_MEMORY, "out of memory")
            : pb_scene_files_check(pipeline, &walk, set->name, set->name, err);
    pb_scene_walk_close(&walk);
    return rc;
}

/* Finds the verdict of the last listing about a set of the same files; NULL if absent. */
static const struct verdict *find_verdict(const struct pb_assembly *assembly,
                                          const struct pb_assembled *set)
{
    const struct pb_assembly *before = assembly->before;
    const struct key *key = &assembly->key[set->member - assembly->member];
    bool is_same = before != NULL && set->earlier.n == 0;
    for (size_t i = 0; i < set->n && is_same; i++)
        is_same = key[i].is_kept;
    if (!is_same)
        return NULL;
    const uint32_t number = pb_belonging_names_last(assembly->names)[key->entry];
    const uint32_t scene = before->scene_of[number];
    const bool has = before->verdict[scene].is_known && before->verdict[scene].n == set->n;
    return has ? &before->verdict[scene] : NULL;
}

static struct verdict check_set(const struct pb_assembly *assembly,
                                const struct pb_pipeline_config *pipeline,
                                const struct pb_assembled *set)
{
    struct pb_err err = {0};
    struct verdict verdict = {set->earlier.n == 0, (uint32_t)set->n, PB_OK, ""};
    if (check(pipeline, set, &err) < 0) {
        verdict.code = err.code;
        verdict.text = keep(assembly, err.msg);
        verdict.is_known =
            verdict.is_known && err.code != PB_E_MEMORY && !pb_arena_failed(assembly->arena);
    }
    return verdict;
}

static struct verdict verdict_of(const struct pb_assembly *assembly,
                                 const struct pb_pipeline_config *pipeline,
                                 const struct pb_assembled *set)
{
    const struct verdict *last = find_verdict(assembly, set);
    if (last == NULL)
        return check_set(assembly, pipeline, set);
#ifndef NDEBUG
    const struct verdict again = check_set(assembly, pipeline, set);
    assert(!again.is_known || (again.code == last->code && strcmp(again.text, last->text) == 0));
#endif
    struct verdict verdict = *last;
    verdict.text = keep(assembly, last->text);
    verdict.is_known = !pb_arena_failed(assembly->arena); /* else it has no text */
    return verdict;
}

/* --- judgement -------------------------------------------------------------------------------- */

/* Lets the set wait for the end of a job, without a limit of time. */
static void await_job(struct pb_assembly *assembly, struct pb_assembled *set)
{
    char missing[200];
    (void)snprintf(missing, sizeof missing,
                   "%zu file%s to be joined with those of job %s when it is over", set->n,
                   set->n == 1 ? "" : "s", set->earlier.busy);
    set->state = PB_SCENE_INCOMPLETE;
    set->due_ms = 0;
    set->missing = keep(assembly, missing);
}

/* Decides whether the set is ready. Faults other than missing files (two files for one band) are
 * reported by its job. */
static void judge(struct pb_assembly *assembly, struct pb_assembled *set,
                  const struct pb_pipeline_config *pipeline)
{
    struct verdict *verdict = &assembly->verdict[set - assembly->scene];
    bool is_settled = true;
    for (size_t i = 0; i < set->n; i++) {
        const struct pb_entry *entry = pb_assembled_entry(set, i);
        is_settled = is_settled && entry->is_settled;
        set->bytes += entry->bytes;
        set->youngest_ns = entry->ctime_ns > set->youngest_ns ? entry->ctime_ns : set->youngest_ns;
    }
    const int64_t youngest_ms = set->youngest_ns / 1000000;
    const int64_t due_ms = youngest_ms + pipeline->input.complete.expire_ms;
    *verdict = verdict_of(assembly, pipeline, set);
    const bool is_incomplete = verdict->code == PB_E_INPUT_INCOMPLETE;
    const bool is_undecided = verdict->code == PB_E_MEMORY;
    /* A file that arrived before the set was over may belong to it. */
    const bool is_awaited =
        assembly->awaited_ms[set->pipeline_number] <= (is_incomplete ? due_ms : youngest_ms);
    if (is_incomplete) {
        set->missing = verdict->text;
        set->due_ms = due_ms;
    }
    if (is_settled && !is_undecided && !is_awaited &&
        (!is_incomplete || has_expired(assembly, due_ms)))
        set->state = PB_SCENE_READY;
    else
        set->state = is_incomplete ? PB_SCENE_INCOMPLETE : PB_SCENE_UNSETTLED;
    if (set->earlier.busy[0] != '\0')
        await_job(assembly, set);
}

void pb_assembly_know(struct pb_assembly *assembly, size_t i,
                      const struct pb_scene_earlier *earlier)
{
    pb_scene_earlier_fini(&assembly->scene[i].earlier);
    assembly->scene[i].earlier = *earlier;
}

int pb_assembly_judge(struct pb_assembly *assembly, const struct pb_config *config)
{
    for (size_t i = 0; i < assembly->n; i++)
        if (pb_assembled_is_set(&assembly->scene[i]) || assembly->scene[i].form == PB_FORM_CONTENT)
            judge(assembly, &assembly->scene[i],
                  &config->pipelines[assembly->scene[i].pipeline_number]);
    return pb_arena_failed(assembly->arena) ? -ENOMEM : 0;
}

int pb_assembly_folder(struct pb_assembly *assembly, const struct pb_config *config,
                       const struct pb_pipeline_config *pipeline, const struct pb_scene_walk *walk,
                       const char *name, int64_t wall_ms)
{
    struct pb_entry *entry = calloc(walk->n + 1, sizeof *entry);
    if (entry == NULL)
        return -ENOMEM;
    entry[0] = (struct pb_entry){
        .path = name, .ctime_ns = walk->youngest_ns, .is_folder = true, .is_settled = true};
    for (size_t i = 0; i < walk->n; i++)
        entry[i + 1] = (struct pb_entry){.path = walk->entry[i].path, .is_settled = true};
    const struct pb_assembly_input input = {.config = config,
                                            .listing = PB_LISTING_FOLDER,
                                            .name = name,
                                            .only = pipeline,
                                            .entry = entry,
                                            .n = walk->n + 1,
                                            .wall_ms = wall_ms,
                                            .wall_is_trusted = true};
    int rc = pb_assembly_group(assembly, &input);
    if (rc != 0) {
        free(entry);
        return rc;
    }
    assembly->listed = entry;
    return pb_assembly_judge(assembly, config);
}

/* --- result ----------------------------------------------------------------------------------- */

size_t pb_assembly_count(const struct pb_assembly *assembly)
{
    return assembly->n;
}

const struct pb_assembled *pb_assembly_at(const struct pb_assembly *assembly, size_t i)
{
    return &assembly->scene[i];
}

const struct pb_assembled *pb_assembly_of(const struct pb_assembly *assembly, size_t entry)
{
    const bool has = assembly->n > 0 && assembly->scene_of[entry] != UINT32_MAX;
    return has ? &assembly->scene[assembly->scene_of[entry]] : NULL;
}

const char *pb_assembly_why_none(const struct pb_assembly *assembly)
{
    return assembly->why_none;
}

const struct pb_entry *pb_assembled_entry(const struct pb_assembled *scene, size_t i)
{
    return &scene->entry[scene->member[i].entry];
}

const struct pb_entry *pb_assembled_main(const struct pb_assembled *scene)
{
    size_t i = 0;
    while (i < scene->n && scene->member[i].role != PB_ROLE_IMAGE &&
           scene->member[i].role != PB_ROLE_BAND)
        i++;
    return pb_assembled_entry(scene, i < scene->n ? i : 0);
}

bool pb_assembled_is_set(const struct pb_assembled *scene)
{
    return scene->form == PB_FORM_GROUP || scene->form == PB_FORM_COMPOUND;
}

int64_t pb_assembly_due_ms(const struct pb_assembly *assembly, int64_t wall_ms)
{
    int64_t due = -1;
    for (size_t i = 0; i < assembly->n; i++) {
        const struct pb_assembled *scene = &assembly->scene[i];
        int64_t left = scene->due_ms - wall_ms;
        if (scene->state == PB_SCENE_INCOMPLETE && left > 0 && (due < 0 || left < due))
            due = left;
    }
    return due;
}
