/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The names are sorted once, without regard to case; the main file of another file is then found
 * by the part of the name that both have. Matching and sorting 100,000 names takes much longer than
 * the rest; therefore both are remembered. */
#include "pipeline/scene/belonging.h"

#include "config/base/arena.h"
#include "config/base/base_name.h"
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/sidecars.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAY_BE_BITS 64

struct named {
    const char *name;
    size_t number;
    uint64_t may_be; /* bits of the patterns of metadata, of all pipelines, that it matches */
};

/* An entry, and what follows from its name alone. */
struct remembered {
    const char *path, *scene;
    const struct pb_pipeline_config *pipeline;
    enum pb_belongs belongs;
    enum pb_role role;
    bool is_folder;
};

struct pb_belonging_names {
    struct pb_arena *arena; /* texts */
    struct remembered *entry;
    size_t n;
    struct named *named; /* sorted; their names are in the arena */
    size_t n_named;
    uint32_t *last; /* see pb_belonging_names_last */
};

/* One of the paths that differ in case only. These files have the same metadata, which are searched
 * once for a pipeline: there may be 65,536 of them. */
struct spelling {
    size_t first; /* number of the first of these files in the order; it has the members below */
    /* last pipelines whose metadata were counted, followed a file, became companions */
    const struct pb_pipeline_config *counted, *followed, *companions;
    uint64_t digest; /* digest of the states of the metadata */
    bool is_settled; /* true if all metadata stopped changing */
    bool has_any;
    int followed_rank; /* greatest rank_of of a file that the metadata followed */
};

struct sorter {
    const struct pb_entry *entry;
    struct pb_belonging *file; /* entry i has file[i] */
    size_t n;
    const struct named *named; /* all files except folders, by name */
    size_t n_named;
    const struct pb_config *config;
    const struct pb_belonging_rules *rules;
    struct pb_belonging_names names; /* names of this listing */
    struct spelling *spelling;       /* entry i has spelling[i] */
};

static int by_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcasecmp(left->name, right->name);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* Finds the first name in the order that is not before the given one. */
static size_t lower_bound(const struct sorter *s, const char *name)
{
    size_t low = 0, high = s->n_named;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcasecmp(s->named[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- sidecars --- */

/* Main file of the files of one name without regard to case. */
struct mains {
    size_t best;  /* n = not found */
    size_t other; /* main file of `best` itself; n = not found */
};

/* Searches files whose names begin with `begin`, or equal it: prefers a file of a set over others
 * that a pipeline takes. */
static struct mains find_scene(const struct sorter *s, const char *begin, size_t length, bool whole)
{
    struct mains found = {s->n, s->n};
    const size_t bytes = strlen(begin);
    for (size_t i = lower_bound(s, begin); i < s->n_named; i++) {
        const char *name = s->named[i].name;
        const struct pb_belonging *file = &s->file[s->named[i].number];
        if (strncasecmp(name, begin, bytes) != 0 || (whole && name[length] != '\0'))
            break;
        if ((!whole && strrchr(name, '.') != name + length) || file->pipeline == NULL)
            continue;
        if (found.best == s->n || file->belongs == PB_BELONGS_SET)
            found.best = s->named[i].number;
        else if (found.other == s->n)
            found.other = s->named[i].number;
    }
    return found;
}

/* Finds the scene with this path, or with this path and some suffix. */
static struct mains find_main(const struct sorter *s, const char *stem)
{
    char begin[PATH_MAX + 1];
    const struct mains found = find_scene(s, stem, strlen(stem), true);
    (void)snprintf(begin, sizeof begin, "%s.", stem);
    return found.best < s->n ? found : find_scene(s, begin, strlen(stem), false);
}

/* Tries an ending for the files `from` to `to` in the order, whose names differ in case only. */
static void try_ending(struct sorter *s, size_t from, size_t to, const char *ending)
{
    const char *path = s->named[from].name;
    char stem[PATH_MAX];
    size_t bytes = pb_sidecar_stem(path, ending);
    if (bytes == 0 || bytes >= sizeof stem || path[bytes - 1] == '/')
        return;
    (void)snprintf(stem, sizeof stem, "%.*s", (int)bytes, path);
    const struct mains found = find_main(s, stem);
    for (size_t i = from; i < to; i++) {
        struct pb_belonging *file = &s->file[s->named[i].number];
        const size_t main = found.best != s->named[i].number ? found.best : found.other;
        if (file->belongs != PB_BELONGS_ALONE && file->belongs != PB_BELONGS_NOWHERE)
            continue;
        file->belongs = main < s->n ? PB_BELONGS_BESIDE : PB_BELONGS_NOWHERE;
        file->role = PB_ROLE_SIDECAR;
        if (main < s->n)
            file->main = main;
    }
}

/* Finds the main file. A longer ending may lead to another file than a shorter one: x.tif.msk.ovr.
 */
static void look_for_main(struct sorter *s, size_t from, size_t to)
{
    const struct pb_config *config = s->config;
    const char *ending;
    for (size_t i = 0; (ending = pb_sidecar_known(i)) != NULL; i++)
        try_ending(s, from, to, ending);
    for (size_t p = 0; p < config->n_pipelines; p++) {
        const struct pb_input_config *input = &config->pipelines[p].input;
        for (size_t i = 0; i < input->n_sidecars; i++)
            try_ending(s, from, to, input->sidecars[i]);
    }
}

/* Finds the names that differ in case only. */
static void find_spellings(struct sorter *s)
{
    for (size_t i = 0; i < s->n_named; i++) {
        const struct named *one = &s->named[i], *before = i > 0 ? one - 1 : NULL;
        const bool is_same = before != NULL && strcasecmp(one->name, before->name) == 0;
        s->spelling[one->number].first = is_same ? s->spelling[before->number].first : one->number;
    }
}

static struct spelling *spelling_of(struct sorter *s, size_t number)
{
    return &s->spelling[s->spelling[number].first];
}

/* Handles names that differ in case only together. */
static void look_for_all_mains(struct sorter *s)
{
    for (size_t from = 0, to; from < s->n_named; from = to) {
        const struct spelling *first = spelling_of(s, s->named[from].number);
        bool any = false;
        for (to = from; to < s->n_named && spelling_of(s, s->named[to].number) == first; to++)
            any = any || s->file[s->named[to].number].belongs == PB_BELONGS_ALONE;
        if (any)
            look_for_main(s, from, to);
    }
}

/* --- metadata --- */

/* Bits of the patterns of metadata that a name matches. A pattern that begins with wildcards makes
 * all files candidates of each file: its bit excludes the files that match it for no scene.
 * Patterns beyond the number of bits exclude no file. */
static uint64_t metadata_bits(const struct pb_config *config, const char *name)
{
    uint64_t bits = 0;
    size_t bit = 0;
    for (size_t p = 0; p < config->n_pipelines; p++) {
        const struct pb_input_config *input = &config->pipelines[p].input;
        for (size_t k = 0; k < input->n_metadata && bit < MAY_BE_BITS; k++, bit++) {
            const char *pattern = input->metadata[k], *scene = strstr(pattern, "{scene}");
            bool any = scene != NULL && strstr(scene + 1, "{scene}") != NULL;
            if (any || pb_metadata_is_of(pattern, NULL, NULL, name))
                bits |= (uint64_t)1 << bit;
        }
    }
    return bits;
}

/* Number of the bit of the first pattern of a pipeline. */
static size_t first_bit(const struct pb_config *config, const struct pb_pipeline_config *pipeline)
{
    size_t bit = 0;
    for (size_t p = 0; &config->pipelines[p] != pipeline; p++)
        bit += config->pipelines[p].input.n_metadata;
    return bit;
}

struct wanted {
    const char *pattern, *scene;
    uint64_t bit; /* bit of may_be; 0 if it has no bit */
    /* Called for each file that is metadata of main. */
    void (*meet)(struct sorter *s, size_t main, size_t metadata);
};

static void become_companion(struct sorter *s, size_t main, size_t metadata)
{
    struct pb_belonging *file = &s->file[metadata];
    if (file->belongs == PB_BELONGS_SET || file->belongs == PB_BELONGS_ASKED ||
        file->belongs == PB_BELONGS_BESIDE)
        return;
    file->belongs = PB_BELONGS_BESIDE;
    file->main = main;
    file->role = PB_ROLE_METADATA;
}

static void meet_metadata(struct sorter *s, size_t main, const struct wanted *wanted,
                          const char *begin)
{
    const char *own = pb_base_name(s->entry[main].path);
    for (size_t i = lower_bound(s, begin); i < s->n_named; i++) {
        const char *path = s->named[i].name, *base = pb_base_name(path);
        if (strncasecmp(path, begin, strlen(begin)) != 0)
            break;
        if (wanted->bit != 0 && (s->named[i].may_be & wanted->bit) == 0)
            continue;
        if (s->named[i].number != main && strchr(path + strlen(begin), '/') == NULL &&
            pb_metadata_is_of(wanted->pattern, wanted->scene, own, base))
            wanted->meet(s, main, s->named[i].number);
    }
}

/* Searches the files for a pattern. Candidates begin with the text before the pattern's first
 * wildcard; after a *, with a part of main's own name before that. */
static void look_for_pattern(struct sorter *s, size_t main, const char *pattern, size_t bit,
                             void (*meet)(struct sorter *s, size_t main, size_t metadata))
{
    const char *path = s->entry[main].path, *own = pb_base_name(path);
    char scene[256], filled[PATH_MAX], begin[PATH_MAX];
    int directory = (int)(own - path);
    pb_file_name_scene(own, scene, sizeof scene);
    if (strchr(pattern, '/') != NULL || pb_scene_search_pattern(pattern, scene, filled, NULL) != 0)
        return;
    const char *text = filled[0] == '*' ? filled + 1 : filled;
    int literal = (int)strcspn(text, "*?[]\\@+!(");
    size_t most = filled[0] == '*' ? strlen(own) : 0;
    if (most > 1 && literal == 0)
        most = 1; /* longer names begin in the same way */
    const struct wanted wanted = {pattern, scene, bit < MAY_BE_BITS ? (uint64_t)1 << bit : 0, meet};
    for (size_t n = most > 0; n <= most; n++) {
        (void)snprintf(begin, sizeof begin, "%.*s%.*s%.*s", directory, path, (int)n, own, literal,
                       text);
        meet_metadata(s, main, &wanted, begin);
    }
}

/* Finds the files that are metadata of main by the patterns of its pipeline. */
static void look_for_metadata(struct sorter *s, size_t main,
                              void (*meet)(struct sorter *s, size_t main, size_t metadata))
{
    const struct pb_pipeline_config *pipeline = s->file[main].pipeline;
    const size_t bit = first_bit(s->config, pipeline);
    for (size_t i = 0; i < pipeline->input.n_metadata; i++)
        look_for_pattern(s, main, pipeline->input.metadata[i], bit + i, meet);
}

/* --- sets by metadata --- */

/* Terms are summed, so that the order does not count. */
static uint64_t mixed(uint64_t state)
{
    state = (state ^ (state >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return state ^ (state >> 29);
}

/* Hash of the state of an entry; it differs after a change. */
static uint64_t state_of(const struct pb_entry *entry)
{
    const uint64_t parts[] = {entry->inode, entry->bytes, (uint64_t)entry->mtime_ns,
                              (uint64_t)entry->ctime_ns};
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int shift = 0; shift < 64; shift += 8)
            hash = (hash ^ (parts[i] >> shift & 0xff)) * UINT64_C(1099511628211);
    return hash;
}

static void count_metadata(struct sorter *s, size_t main, size_t metadata)
{
    struct spelling *first = spelling_of(s, main);
    first->digest += mixed(state_of(&s->entry[metadata]));
    first->is_settled = first->is_settled && s->entry[metadata].is_settled;
    first->has_any = true;
}

/* Counts the metadata of the file; the result is that of all with its spelling. */
static const struct spelling *count_all_metadata(struct sorter *s, size_t number)
{
    struct spelling *first = spelling_of(s, number);
    if (first->counted == s->file[number].pipeline)
        return first;
    first->counted = s->file[number].pipeline;
    first->digest = 0;
    first->is_settled = true;
    first->has_any = false;
    look_for_metadata(s, number, count_metadata);
    return first;
}

/* Assigns the file by its metadata, if these are known. */
static void look_for_answer(struct sorter *s, size_t number)
{
    struct pb_belonging *file = &s->file[number];
    const struct pb_entry *entry = &s->entry[number];
    const struct pb_entry_facts *facts = s->rules->facts;
    const struct pb_input_config *input = &file->pipeline->input;
    const struct spelling *metadata = count_all_metadata(s, number);
    char scene[256] = "";
    file->digest = state_of(entry) + metadata->digest;
    file->may_be_asked = entry->is_settled && metadata->is_settled;
    file->lacks_metadata = input->n_metadata > 0 && !metadata->has_any;
    file->answer = facts != NULL ? facts->find(facts->user, entry->path, file->digest) : NULL;
    if (file->answer == NULL)
        return;
    bool has = file->answer->code == PB_OK &&
               pb_group_pattern_fits(input->group_pattern, pb_base_name(entry->path),
                                     &file->answer->facts, scene) &&
               scene[0] != '\0';
    file->belongs = has ? PB_BELONGS_SET : PB_BELONGS_ALONE;
    file->scene = has ? pb_arena_text(s->rules->arena, scene, strlen(scene)) : "";
}

/* Chooses the file with which shared metadata are moved: first one that is not assigned yet, so
 * that the metadata stay until all are; then one of a set, before one without a set. */
static int rank_of(const struct pb_belonging *main)
{
    return main->belongs == PB_BELONGS_ASKED ? 2 : main->belongs == PB_BELONGS_SET ? 1 : 0;
}

static void follow(struct sorter *s, size_t main, size_t metadata)
{
    struct pb_belonging *file = &s->file[metadata];
    const bool follows = file->belongs == PB_BELONGS_BESIDE;
    if (file->belongs != PB_BELONGS_ALONE && file->belongs != PB_BELONGS_ASKED && !follows)
        return;
    if (follows && rank_of(&s->file[file->main]) >= rank_of(&s->file[main]))
        return;
    file->belongs = PB_BELONGS_BESIDE;
    file->main = main;
    file->role = PB_ROLE_METADATA;
}

/* Lets the metadata of the file follow it. Those that followed a file of its spelling, which had
 * the same rank, stay with that. */
static void let_follow(struct sorter *s, size_t number)
{
    struct spelling *first = spelling_of(s, number);
    const int rank = rank_of(&s->file[number]);
    if (first->followed == s->file[number].pipeline && first->followed_rank >= rank)
        return;
    first->followed = s->file[number].pipeline;
    first->followed_rank = rank;
    look_for_metadata(s, number, follow);
}

/* Metadata are moved with their file and determine no scene themselves: without it they wait. */
static void sort_asked(struct sorter *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->file[i].is_asked = s->file[i].belongs == PB_BELONGS_ASKED &&
                              !pb_sidecar_is_metadata(s->file[i].pipeline, s->entry[i].path);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].is_asked)
            look_for_answer(s, i);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].is_asked)
            let_follow(s, i);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].belongs == PB_BELONGS_ASKED && !s->file[i].is_asked) {
            s->file[i].belongs = PB_BELONGS_AWAITS;
            s->file[i].role = PB_ROLE_METADATA;
        }
}

/* --- all --- */

/* Returns true if a file of that name is metadata that the pipeline reads with another file. */
static bool has_metadata(const struct pb_pipeline_config *pipeline, const char *name)
{
    const struct pb_input_config *input = &pipeline->input;
    const bool beside = input->n_files == 0 || (input->group_pattern != NULL &&
                                                pb_group_pattern_asks(input->group_pattern));
    return beside && pb_sidecar_is_metadata(pipeline, name);
}

const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (has_metadata(&config->pipelines[i], name))
            return &config->pipelines[i];
    return NULL;
}

/* Finds the pipeline that takes a file as one of several, and the scene. */
static const struct pb_pipeline_config *group_of(const struct sorter *s, const char *path,
                                                 char scene[256])
{
    const struct pb_pipeline_config *only = s->rules->only;
    if (only == NULL)
        return pb_config_match_group(s->config, path, NULL, scene);
    const struct pb_group_pattern *group = only->input.group_pattern;
    return group != NULL && pb_group_pattern_fits(group, pb_base_name(path), NULL, scene) ? only
                                                                                          : NULL;
}

/* Finds the pipeline of a file that no input.group takes. */
static const struct pb_pipeline_config *alone_of(const struct sorter *s, const char *path)
{
    const struct pb_pipeline_config *only = s->rules->only;
    if (only == NULL)
        return pb_config_match(s->config, path);
    return only->input.n_files > 0 && pb_sidecar_is_metadata(only, path) ? NULL : only;
}

/* Finds the pipeline of a file by its name; scene is that of a set, or "". */
static void name_pipeline(const struct sorter *s, const struct pb_entry *entry,
                          struct remembered *out, char scene[256])
{
    *out = (struct remembered){
        .belongs = PB_BELONGS_ALONE, .role = PB_ROLE_IMAGE, .is_folder = entry->is_folder};
    scene[0] = '\0';
    if (entry->is_folder)
        return;
    out->pipeline = group_of(s, entry->path, scene);
    if (out->pipeline == NULL) {
        out->pipeline = alone_of(s, entry->path);
        scene[0] = '\0';
        return;
    }
    out->role = PB_ROLE_BAND;
    out->belongs = scene[0] != '\0' ? PB_BELONGS_SET : PB_BELONGS_ASKED;
}

/* Returns true if a folder of its name can contain the file under the same name. A single file for
 * a pipeline of many files is an archive that contains its own metadata, or a file without a scene,
 * which is moved with the files next to it. */
static bool can_be_main(const struct sorter *s, size_t number)
{
    const struct pb_belonging *file = &s->file[number];
    const char *base = pb_base_name(s->entry[number].path);
    char clean[256];
    if (file->belongs != PB_BELONGS_ALONE || s->entry[number].is_folder || file->pipeline == NULL ||
        (file->pipeline->input.n_files > 0 && !file->is_asked))
        return false;
    pb_file_name_clean(base, clean);
    return strcmp(clean, base) == 0;
}

/* Searches the companions of a scene whose files are waited for. Files whose names differ in case
 * only have the same ones, which belong to the first. */
static void look_for_companions(struct sorter *s, size_t number)
{
    struct pb_belonging *file = &s->file[number];
    if (!can_be_main(s, number))
        return;
    const struct pb_input_config *input = &file->pipeline->input;
    if (input->n_metadata + input->n_sidecars == 0)
        return;
    file->belongs = PB_BELONGS_MAIN;
    struct spelling *first = spelling_of(s, number);
    if (first->companions != file->pipeline)
        look_for_metadata(s, number, become_companion);
    first->companions = file->pipeline;
}

static const struct pb_pipeline_config *metadata_of(const struct sorter *s, const char *path)
{
    const struct pb_pipeline_config *only = s->rules->only;
    if (only == NULL)
        return pb_belonging_metadata(s->config, path);
    return has_metadata(only, path) ? only : NULL;
}

/* Decides about a file after all relations are known: whether its main file can be one, and whether
 * it is metadata that wait. */
static void decide(struct sorter *s, size_t number)
{
    struct pb_belonging *one = &s->file[number];
    const struct pb_entry *entry = &s->entry[number];
    struct pb_belonging *main = one->belongs == PB_BELONGS_BESIDE ? &s->file[one->main] : NULL;
    bool alone_without = one->pipeline == NULL;
    if (main != NULL && can_be_main(s, one->main))
        main->belongs = PB_BELONGS_MAIN;
    if (main != NULL && main->belongs != PB_BELONGS_MAIN && main->belongs != PB_BELONGS_SET &&
        main->belongs != PB_BELONGS_ASKED)
        one->belongs = PB_BELONGS_NOWHERE;
    else if (one->belongs == PB_BELONGS_ALONE && one->pipeline == NULL && !entry->is_folder)
        one->pipeline = metadata_of(s, entry->path);
    if (one->belongs == PB_BELONGS_ALONE && alone_without && one->pipeline != NULL) {
        one->belongs = PB_BELONGS_AWAITS;
        one->role = PB_ROLE_METADATA;
    }
}

/* --- names --- */

struct pb_belonging_names *pb_belonging_names_create(void)
{
    return calloc(1, sizeof(struct pb_belonging_names));
}

static void free_names(struct pb_belonging_names *names)
{
    pb_arena_destroy(names->arena);
    free(names->entry);
    free(names->named);
    free(names->last);
    *names = (struct pb_belonging_names){.n = 0};
}

void pb_belonging_names_destroy(struct pb_belonging_names *names)
{
    if (names != NULL)
        free_names(names);
    free(names);
}

const uint32_t *pb_belonging_names_last(const struct pb_belonging_names *names)
{
    return names->last;
}

void pb_belonging_merge(void *out, size_t bytes, const void *many, size_t n, const void *few,
                        size_t m, int (*compare)(const void *a, const void *b))
{
    const char *from = many, *add = few;
    char *to = out;
    size_t done = 0;
    for (size_t i = 0; i < m; i++, add += bytes) {
        size_t low = done, high = n;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (compare(from + middle * bytes, add) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        (void)memcpy(to, from + done * bytes, (low - done) * bytes);
        to += (low - done) * bytes;
        (void)memcpy(to, add, bytes);
        to += bytes;
        done = low;
    }
    (void)memcpy(to, from + done * bytes, (n - done) * bytes);
}

/* Finds the entries that the last listing had. Both listings are sorted by path; an entry that is
 * out of order counts as new. */
static void find_last(struct sorter *s, const struct pb_belonging_names *last)
{
    int order = 1;
    for (size_t i = 0, k = 0; i < s->n; i++) {
        while (k < last->n && (order = strcmp(last->entry[k].path, s->entry[i].path)) < 0)
            k++;
        const bool has =
            k < last->n && order == 0 && last->entry[k].is_folder == s->entry[i].is_folder;
        s->names.last[i] = has ? (uint32_t)k++ : UINT32_MAX;
    }
}

#ifndef NDEBUG
/* Debug builds compare the remembered facts with new ones. */
static bool is_same(const struct sorter *s, size_t number, const struct remembered *last)
{
    struct remembered one;
    char scene[256];
    name_pipeline(s, &s->entry[number], &one, scene);
    return one.pipeline == last->pipeline && one.belongs == last->belongs &&
           one.role == last->role && strcmp(scene, last->scene) == 0;
}

/* Debug builds check the order of the names. */
static bool is_sorted(const struct pb_belonging_names *names)
{
    bool is = true;
    for (size_t i = 1; i < names->n_named && is; i++)
        is = by_name(&names->named[i - 1], &names->named[i]) < 0;
    return is;
}
#endif

/* Finds what the name of an entry determines. */
static void name_entry(struct sorter *s, size_t number, const struct pb_belonging_names *last)
{
    const uint32_t k = s->names.last[number];
    const char *path = s->entry[number].path, *found = NULL;
    struct remembered *one = &s->names.entry[number];
    char scene[256];
    if (k != UINT32_MAX) {
        *one = last->entry[k];
        found = one->scene;
        assert(is_same(s, number, one));
    } else {
        name_pipeline(s, &s->entry[number], one, scene);
        found = scene;
    }
    one->path = pb_arena_text(s->names.arena, path, strlen(path));
    one->scene = found[0] != '\0' ? pb_arena_text(s->names.arena, found, strlen(found)) : "";
    s->file[number] = (struct pb_belonging){
        .belongs = one->belongs, .role = one->role, .pipeline = one->pipeline, .scene = ""};
    if (found[0] != '\0')
        s->file[number].scene = pb_arena_text(s->rules->arena, found, strlen(found));
}

/* Sorts the names: those of the last listing are in their order already. */
static int sort_names(struct sorter *s, const struct pb_belonging_names *last)
{
    struct named *few = calloc(s->n + 1, sizeof *few), *many = calloc(s->n + 1, sizeof *many);
    uint32_t *number_of = malloc((last->n + 1) * sizeof *number_of);
    size_t n = 0, m = 0;
    const bool good = few != NULL && many != NULL && number_of != NULL;
    for (size_t k = 0; good && k < last->n; k++)
        number_of[k] = UINT32_MAX;
    for (size_t i = 0; good && i < s->n; i++) {
        const struct remembered *one = &s->names.entry[i];
        if (s->names.last[i] != UINT32_MAX)
            number_of[s->names.last[i]] = (uint32_t)i;
        else if (!one->is_folder)
            few[m++] =
                (struct named){one->path, i, metadata_bits(s->config, pb_base_name(one->path))};
    }
    for (size_t k = 0; good && k < last->n_named; k++) {
        const uint32_t i = number_of[last->named[k].number];
        if (i != UINT32_MAX)
            many[n++] = (struct named){s->names.entry[i].path, i, last->named[k].may_be};
    }
    if (m > 1)
        qsort(few, m, sizeof *few, by_name);
    if (good)
        pb_belonging_merge(s->names.named, sizeof *many, many, n, few, m, by_name);
    s->names.n_named = n + m;
    free(few);
    free(many);
    free(number_of);
    return good ? 0 : -ENOMEM;
}

static int look_at_names(struct sorter *s, const struct pb_belonging_names *last)
{
    struct pb_belonging_names *names = &s->names;
    names->n = s->n;
    names->arena = pb_arena_create();
    names->entry = calloc(s->n + 1, sizeof *names->entry);
    names->named = calloc(s->n + 1, sizeof *names->named);
    names->last = calloc(s->n + 1, sizeof *names->last);
    if (names->arena == NULL || names->entry == NULL || names->named == NULL || names->last == NULL)
        return -ENOMEM;
    find_last(s, last);
    for (size_t i = 0; i < s->n; i++)
        name_entry(s, i, last);
    int rc = pb_arena_failed(names->arena) ? -ENOMEM : sort_names(s, last);
    assert(rc != 0 || is_sorted(names));
    s->named = names->named;
    s->n_named = names->n_named;
    return rc;
}

/* --- result --- */

int pb_belonging_sort(const struct pb_entry *entry, size_t n,
                      const struct pb_belonging_rules *rules, struct pb_belonging *out)
{
    const struct pb_belonging_names none = {.n = 0};
    struct sorter s = {
        .entry = entry, .file = out, .n = n, .config = rules->config, .rules = rules};
    s.spelling = calloc(n + 1, sizeof *s.spelling);
    int rc = s.spelling != NULL ? look_at_names(&s, rules->names != NULL ? rules->names : &none)
                                : -ENOMEM;
    if (rc != 0) {
        free_names(&s.names);
        free(s.spelling);
        return rc;
    }
    find_spellings(&s);
    sort_asked(&s);
    look_for_all_mains(&s);
    for (size_t i = 0; i < n; i++)
        look_for_companions(&s, i);
    for (size_t i = 0; i < n; i++)
        decide(&s, i);
    free(s.spelling);
    if (rules->names == NULL) {
        free_names(&s.names);
    } else {
        free_names(rules->names);
        *rules->names = s.names;
    }
    return pb_arena_failed(rules->arena) ? -ENOMEM : 0;
}

/* --- content of a folder or an archive --- */

struct content {
    const struct pb_entry *entry;
    size_t n;
    const struct pb_content_rules *rules;
    struct pb_belonging *file; /* entry i has file[i] */
    struct named *named;       /* the name that the files of a scene share */
    size_t n_named;
    const char *why;
};

static const char *keep(const struct content *c, const char *text)
{
    const char *kept = pb_arena_text(c->rules->arena, text, strlen(text));
    return kept != NULL ? kept : "";
}

/* Assigns an entry to the scene whose files share the name. scene: for {scene}. */
static void assign(struct content *c, size_t number, const char *shared, const char *scene)
{
    c->file[number].belongs = PB_BELONGS_CONTENT;
    c->file[number].scene = keep(c, scene);
    c->named[c->n_named++] = (struct named){keep(c, shared), number, 0};
}

/* Bytes of the first folder of the path; 0: a file at the top. */
static size_t top_bytes(const struct pb_entry *entry)
{
    const size_t n = strcspn(entry->path, "/");
    return entry->path[n] != '\0' || entry->is_folder ? n : 0;
}

/* Assigns the files in folders at the top that input.scene takes. */
static void find_folders(struct content *c)
{
    char top[256], scene[256];
    for (size_t i = 0; i < c->n; i++) {
        const size_t n = top_bytes(&c->entry[i]);
        (void)snprintf(top, sizeof top, "%.*s", (int)n, c->entry[i].path);
        if (n == 0 || n >= sizeof top || !pb_config_takes_folder(c->rules->pipeline, top))
            continue;
        pb_scene_files_name(top, scene, sizeof scene);
        assign(c, i, top, scene);
        c->file[i].root = n;
    }
}

static bool has_top(const struct pb_entry *entry, const char *top, size_t n)
{
    return top_bytes(entry) == n && strncmp(entry->path, top, n) == 0;
}

/* Finds the folder that contains all files; *out_bytes 0: not found. */
static void find_root(struct content *c, size_t *out_bytes)
{
    const struct pb_input_config *input = &c->rules->pipeline->input;
    const char *first = c->n > 0 ? c->entry[0].path : "";
    const size_t n = c->n > 0 ? top_bytes(&c->entry[0]) : 0;
    size_t other = 1;
    char why[400];
    *out_bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        if (top_bytes(&c->entry[i]) == 0)
            return;
    while (other < c->n && has_top(&c->entry[other], first, n))
        other++;
    if (c->n == 0)
        c->why = "it holds no files";
    else if (other == c->n)
        *out_bytes = n;
    if (other >= c->n || input->group_pattern != NULL)
        return;
    (void)snprintf(why, sizeof why,
                   "input.scene (%.80s) fits none of the folders in it, %.*s, %.*s, ...",
                   input->scene != NULL ? input->scene : "not set", (int)(n < 80 ? n : 80), first,
                   (int)strcspn(c->entry[other].path, "/"), c->entry[other].path);
    c->why = keep(c, why);
}

/* Assigns the files that input.group takes; all scenes share the others. If metadata determine the
 * scene, the archive is one. */
static void find_groups(struct content *c, size_t root)
{
    const struct pb_group_pattern *group = c->rules->pipeline->input.group_pattern;
    const bool asks = pb_group_pattern_asks(group);
    char scene[256], clean[256];
    for (size_t i = 0; i < c->n; i++) {
        const struct pb_entry *entry = &c->entry[i];
        if (entry->is_folder)
            continue;
        c->file[i].root = root;
        c->file[i].belongs = PB_BELONGS_SHARED;
        if (!pb_group_pattern_fits(group, pb_base_name(entry->path), NULL, scene))
            continue;
        if (!asks)
            pb_file_name_clean(scene, clean);
        assign(c, i, asks ? c->rules->name : clean, asks ? c->rules->name : scene);
    }
    if (c->n_named == 0)
        c->why = "input.group fits none of the files in it";
}

static void find_scenes(struct content *c)
{
    size_t root = 0;
    if (c->rules->is_archive)
        find_folders(c);
    if (c->n_named > 0)
        return;
    if (c->rules->is_archive)
        find_root(c, &root);
    if (c->why == NULL && c->rules->is_archive && c->rules->pipeline->input.group_pattern != NULL)
        find_groups(c, root);
    else
        for (size_t i = 0; c->why == NULL && i < c->n; i++) {
            assign(c, i, "", c->rules->name);
            c->file[i].root = root;
        }
}

static int by_shared_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

int pb_belonging_content(const struct pb_entry *entry, size_t n,
                         const struct pb_content_rules *rules, struct pb_belonging *out,
                         const char **out_why)
{
    struct content c = {.entry = entry, .n = n, .rules = rules, .file = out};
    c.named = calloc(n + 1, sizeof *c.named);
    if (c.named == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct pb_belonging){.belongs = PB_BELONGS_OUTSIDE,
                                       .role = PB_ROLE_UNUSED,
                                       .pipeline = rules->pipeline,
                                       .scene = ""};
    find_scenes(&c);
    if (c.n_named > 1)
        qsort(c.named, c.n_named, sizeof *c.named, by_shared_name);
    for (size_t i = 0; i < c.n_named; i++) {
        const bool is_first = i == 0 || strcmp(c.named[i - 1].name, c.named[i].name) != 0;
        const size_t number = c.named[i].number;
        out[number].main = is_first ? number : out[c.named[i - 1].number].main;
    }
    free(c.named);
    *out_why = c.why;
    return pb_arena_failed(rules->arena) ? -ENOMEM : 0;
}
