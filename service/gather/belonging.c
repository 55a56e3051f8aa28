/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The names are sorted once, without regard to case; the main file of another file is then found
 * by the part of the name that both have. */
#include "service/gather/belonging.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/sidecar.h"
#include "pipeline/scene/sidecar_names.h"

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

struct sorter {
    struct pb_belonging *file;
    size_t n;
    struct named *named; /* all files except folders, by name */
    size_t n_named;
    const struct pb_config *config;
};

static int by_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    return strcasecmp(left->name, right->name);
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

/* Searches files whose names begin with `begin`, or equal it: prefers a file of a set over others
 * that a pipeline takes; n = not found. */
static size_t find_scene(const struct sorter *s, const char *begin, size_t length, bool whole,
                         size_t self)
{
    size_t found = s->n;
    for (size_t i = lower_bound(s, begin); i < s->n_named; i++) {
        const char *name = s->named[i].name, *dot = strrchr(name, '.');
        const struct pb_belonging *file = &s->file[s->named[i].number];
        if (strncasecmp(name, begin, strlen(begin)) != 0 || (whole && name[length] != '\0'))
            break;
        if ((!whole && dot != name + length) || s->named[i].number == self ||
            file->pipeline == NULL)
            continue;
        if (found == s->n || file->belongs == PB_BELONGS_SET)
            found = s->named[i].number;
    }
    return found;
}

/* Finds the scene with this path, or with this path and some suffix; n = not found. */
static size_t find_main(const struct sorter *s, const char *stem, size_t self)
{
    char begin[PATH_MAX + 1];
    size_t found = find_scene(s, stem, strlen(stem), true, self);
    (void)snprintf(begin, sizeof begin, "%s.", stem);
    return found < s->n ? found : find_scene(s, begin, strlen(stem), false, self);
}

static bool tries_ending(struct sorter *s, size_t number, const char *ending)
{
    struct pb_belonging *file = &s->file[number];
    char stem[PATH_MAX];
    size_t bytes = pb_sidecar_stem(file->name, ending);
    if (bytes == 0 || bytes >= sizeof stem || file->name[bytes - 1] == '/')
        return false;
    (void)snprintf(stem, sizeof stem, "%.*s", (int)bytes, file->name);
    size_t main = find_main(s, stem, number);
    if (main < s->n) {
        file->belongs = PB_BELONGS_BESIDE;
        file->main = main;
    } else if (file->belongs == PB_BELONGS_ALONE) {
        file->belongs = PB_BELONGS_NOWHERE;
    }
    return main < s->n;
}

/* Finds the main file. A longer ending may lead to another file than a shorter one: x.tif.msk.ovr.
 */
static void look_for_main(struct sorter *s, size_t number)
{
    const struct pb_config *config = s->config;
    bool found = false;
    const char *ending;
    for (size_t i = 0; !found && (ending = pb_sidecar_known(i)) != NULL; i++)
        found = tries_ending(s, number, ending);
    for (size_t p = 0; !found && p < config->n_pipelines; p++) {
        const struct pb_input_config *input = &config->pipelines[p].input;
        for (size_t i = 0; !found && i < input->n_sidecars; i++)
            found = tries_ending(s, number, input->sidecars[i]);
    }
}

/* --- metadata --- */

/* A pattern that begins with wildcards makes all files candidates of each file: a bit for each
 * pattern excludes the files that match it for no scene. Patterns beyond the number of bits
 * exclude no file. */
static void mark_metadata(struct sorter *s)
{
    size_t bit = 0;
    for (size_t p = 0; p < s->config->n_pipelines; p++) {
        const struct pb_input_config *input = &s->config->pipelines[p].input;
        for (size_t k = 0; k < input->n_metadata && bit < MAY_BE_BITS; k++, bit++) {
            const char *pattern = input->metadata[k], *scene = strstr(pattern, "{scene}");
            bool any = scene != NULL && strstr(scene + 1, "{scene}") != NULL;
            for (size_t i = 0; i < s->n_named; i++)
                if (any || pb_metadata_is_of(pattern, NULL, NULL, pb_base_name(s->named[i].name)))
                    s->named[i].may_be |= (uint64_t)1 << bit;
        }
    }
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
}

static void meet_metadata(struct sorter *s, size_t main, const struct wanted *wanted,
                          const char *begin)
{
    const char *own = pb_base_name(s->file[main].name);
    for (size_t i = lower_bound(s, begin); i < s->n_named; i++) {
        struct pb_belonging *file = &s->file[s->named[i].number];
        const char *base = pb_base_name(file->name);
        if (strncasecmp(file->name, begin, strlen(begin)) != 0)
            break;
        if (wanted->bit != 0 && (s->named[i].may_be & wanted->bit) == 0)
            continue;
        if (s->named[i].number != main && strchr(file->name + strlen(begin), '/') == NULL &&
            pb_metadata_is_of(wanted->pattern, wanted->scene, own, base))
            wanted->meet(s, main, s->named[i].number);
    }
}

/* Searches the files for a pattern. Candidates begin with the text before the pattern's first
 * wildcard; after a *, with a part of main's own name before that. */
static void look_for_pattern(struct sorter *s, size_t main, const char *pattern, size_t bit,
                             void (*meet)(struct sorter *s, size_t main, size_t metadata))
{
    const struct pb_belonging *file = &s->file[main];
    const char *own = pb_base_name(file->name);
    char scene[256], filled[PATH_MAX], begin[PATH_MAX];
    int directory = (int)(own - file->name);
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
        (void)snprintf(begin, sizeof begin, "%.*s%.*s%.*s", directory, file->name, (int)n, own,
                       literal, text);
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

static void count_metadata(struct sorter *s, size_t main, size_t metadata)
{
    struct pb_belonging *file = &s->file[main];
    file->digest += mixed(s->file[metadata].state);
    file->may_be_asked = file->may_be_asked && s->file[metadata].is_still;
    file->lacks_metadata = false;
}

/* Assigns the file by its metadata, if these are known. */
static void look_for_answer(struct sorter *s, size_t number,
                            const struct pb_belonging_answers *answers)
{
    struct pb_belonging *file = &s->file[number];
    const struct pb_input_config *input = &file->pipeline->input;
    const char *base = pb_base_name(file->name);
    file->digest = file->state;
    file->may_be_asked = file->is_still;
    file->lacks_metadata = input->n_metadata > 0;
    look_for_metadata(s, number, count_metadata);
    file->answer = answers->find(answers->user, file->name, file->digest);
    if (file->answer == NULL)
        return;
    bool told =
        file->answer->error.code[0] == '\0' &&
        pb_group_pattern_fits(input->group_pattern, base, &file->answer->facts, file->scene) &&
        file->scene[0] != '\0';
    file->belongs = told ? PB_BELONGS_SET : PB_BELONGS_ALONE;
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
}

/* Metadata are moved with their file and determine no scene themselves: without it they wait. */
static void sort_asked(struct sorter *s, const struct pb_belonging_answers *answers)
{
    for (size_t i = 0; i < s->n; i++)
        s->file[i].is_asked = s->file[i].belongs == PB_BELONGS_ASKED &&
                              !pb_sidecar_is_metadata(s->file[i].pipeline, s->file[i].name);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].is_asked)
            look_for_answer(s, i, answers);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].is_asked)
            look_for_metadata(s, i, follow);
    for (size_t i = 0; i < s->n; i++)
        if (s->file[i].belongs == PB_BELONGS_ASKED && !s->file[i].is_asked)
            s->file[i].belongs = PB_BELONGS_AWAITS;
}

/* --- all --- */

const struct pb_pipeline_config *pb_belonging_metadata(const struct pb_config *config,
                                                       const char *name)
{
    for (size_t i = 0; i < config->n_pipelines; i++) {
        const struct pb_input_config *input = &config->pipelines[i].input;
        const bool beside = input->n_files == 0 || (input->group_pattern != NULL &&
                                                    pb_group_pattern_asks(input->group_pattern));
        if (beside && pb_sidecar_is_metadata(&config->pipelines[i], name))
            return &config->pipelines[i];
    }
    return NULL;
}

static void name_pipeline(struct sorter *s, size_t number)
{
    struct pb_belonging *file = &s->file[number];
    file->belongs = PB_BELONGS_ALONE;
    file->pipeline = NULL;
    if (file->is_folder)
        return;
    s->named[s->n_named++] = (struct named){file->name, number, 0};
    file->pipeline = pb_config_match_group(s->config, file->name, NULL, file->scene);
    if (file->pipeline != NULL)
        file->belongs = file->scene[0] != '\0' ? PB_BELONGS_SET : PB_BELONGS_ASKED;
    else
        file->pipeline = pb_config_match(s->config, file->name);
}

/* Returns true if a folder of its name can contain the file under the same name. A single file for
 * a pipeline of many files is an archive that contains its own metadata, or a file without a scene,
 * which is moved with the files next to it. */
static bool can_be_main(const struct pb_belonging *file)
{
    char clean[256];
    if (file->belongs != PB_BELONGS_ALONE || file->is_folder || file->pipeline == NULL ||
        (file->pipeline->input.n_files > 0 && !file->is_asked))
        return false;
    pb_file_name_clean(pb_base_name(file->name), clean);
    return strcmp(clean, pb_base_name(file->name)) == 0;
}

/* Searches the companions of a scene whose files are waited for. */
static void look_for_companions(struct sorter *s, size_t number)
{
    struct pb_belonging *file = &s->file[number];
    if (!can_be_main(file))
        return;
    const struct pb_input_config *input = &file->pipeline->input;
    if (input->n_metadata + input->n_sidecars == 0)
        return;
    file->belongs = PB_BELONGS_MAIN;
    look_for_metadata(s, number, become_companion);
}

int pb_belonging_sort(struct pb_belonging *file, size_t n, const struct pb_config *config,
                      const struct pb_belonging_answers *answers)
{
    struct sorter s = {.file = file, .n = n, .config = config};
    s.named = calloc(n + 1, sizeof *s.named);
    if (s.named == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        name_pipeline(&s, i);
    if (s.n_named > 1)
        qsort(s.named, s.n_named, sizeof *s.named, by_name);
    mark_metadata(&s);
    sort_asked(&s, answers);
    for (size_t i = 0; i < n; i++)
        if (file[i].belongs == PB_BELONGS_ALONE && !file[i].is_folder)
            look_for_main(&s, i);
    for (size_t i = 0; i < n; i++)
        look_for_companions(&s, i);
    for (size_t i = 0; i < n; i++) {
        struct pb_belonging *one = &file[i];
        struct pb_belonging *main = one->belongs == PB_BELONGS_BESIDE ? &file[one->main] : NULL;
        bool alone_without = one->pipeline == NULL;
        if (main != NULL && can_be_main(main))
            main->belongs = PB_BELONGS_MAIN;
        if (main != NULL && main->belongs != PB_BELONGS_MAIN && main->belongs != PB_BELONGS_SET &&
            main->belongs != PB_BELONGS_ASKED)
            one->belongs = PB_BELONGS_NOWHERE;
        else if (one->belongs == PB_BELONGS_ALONE && one->pipeline == NULL && !one->is_folder)
            one->pipeline = pb_belonging_metadata(config, one->name);
        if (one->belongs == PB_BELONGS_ALONE && alone_without && one->pipeline != NULL)
            one->belongs = PB_BELONGS_AWAITS;
    }
    free(s.named);
    return 0;
}
