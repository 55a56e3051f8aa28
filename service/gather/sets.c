/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/gather/sets.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/sidecar_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    size_t pipeline;
    char scene[256];
    bool is_beside;
    struct pb_set_file file;
};

struct pb_sets {
    struct member *member;
    size_t n_members, members_room;
    struct pb_set_file *file; /* files of all sets, one set after the other */
    struct pb_set *set;
    size_t n;
    int64_t *awaited_ms; /* arrival of the first such file of each pipeline (pb_sets_await) */
    size_t n_awaited;    /* entries of awaited_ms; an entry INT64_MAX: no file is awaited */
};

struct pb_sets *pb_sets_create(void)
{
    return calloc(1, sizeof(struct pb_sets));
}

void pb_set_earlier_fini(struct pb_set_earlier *earlier)
{
    for (size_t i = 0; i < earlier->n; i++)
        free(earlier->name[i]);
    free(earlier->name);
    *earlier = (struct pb_set_earlier){.n = 0};
}

static void forget_sets(struct pb_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        pb_set_earlier_fini(&sets->set[i].earlier);
    free(sets->file);
    free(sets->set);
    sets->file = NULL;
    sets->set = NULL;
    sets->n = 0;
}

void pb_sets_destroy(struct pb_sets *sets)
{
    if (sets == NULL)
        return;
    forget_sets(sets);
    free(sets->member);
    free(sets->awaited_ms);
    free(sets);
}

void pb_sets_begin(struct pb_sets *sets)
{
    sets->n_awaited = 0;
    forget_sets(sets);
    sets->n_members = 0;
}

int pb_sets_add(struct pb_sets *sets, size_t pipeline, const char *scene, bool is_beside,
                const struct pb_set_file *file)
{
    if (sets->n_members == sets->members_room) {
        size_t room = sets->members_room ? sets->members_room * 2 : 32;
        struct member *more = realloc(sets->member, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        sets->member = more;
        sets->members_room = room;
    }
    struct member *member = &sets->member[sets->n_members++];
    member->pipeline = pipeline;
    member->is_beside = is_beside;
    member->file = *file;
    (void)snprintf(member->scene, sizeof member->scene, "%s", scene);
    return 0;
}

/* Compares directories: files of different directories are never in one set. */
static int compare_directories(const char *a, const char *b)
{
    size_t n = (size_t)(pb_base_name(a) - a), m = (size_t)(pb_base_name(b) - b);
    int order = memcmp(a, b, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

static int compare_sets(const struct member *a, const struct member *b)
{
    if (a->pipeline != b->pipeline)
        return a->pipeline < b->pipeline ? -1 : 1;
    if (a->is_beside != b->is_beside)
        return a->is_beside ? 1 : -1;
    int order = strcmp(a->scene, b->scene);
    return order != 0 ? order : compare_directories(a->file.name, b->file.name);
}

static int by_set(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = compare_sets(left, right);
    return order != 0 ? order : strcmp(left->file.name, right->file.name);
}

static bool has_metadata(const struct pb_set *set, const char *pattern, const char *scene)
{
    bool has = false;
    for (size_t i = 0; i < set->n && !has; i++)
        has = pb_metadata_is_of(pattern, scene, set->scene, pb_base_name(set->file[i].name));
    return has;
}

static bool has_sidecar(const struct pb_set *set, const char *ending)
{
    bool has = false;
    for (size_t i = 0; i < set->n && !has; i++)
        has = pb_sidecar_is_of(set->scene, ending, pb_base_name(set->file[i].name));
    return has;
}

/* Checks a file and the files that belong to it. */
static int check_beside(const struct pb_pipeline_config *pipeline, const struct pb_set *set,
                        struct pb_err *err)
{
    const struct pb_input_config *input = &pipeline->input;
    bool all = input->has_complete && input->complete.all != 0;
    char scene[256];
    pb_file_name_scene(set->scene, scene, sizeof scene);
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

static bool has_name(const struct pb_scene_walk *walk, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < walk->n && !has; i++)
        has = strcmp(walk->entry[i].path, name) == 0;
    return has;
}

/* Checks the names of the set, and of the files that it joins, like those of one folder. */
static int check(const struct pb_pipeline_config *pipeline, const struct pb_set *set,
                 struct pb_err *err)
{
    struct pb_scene_walk walk = {.fd = -1, .n = set->n};
    const struct pb_set_earlier *earlier = &set->earlier;
    if (set->is_beside)
        return check_beside(pipeline, set, err);
    walk.entry = calloc(set->n + earlier->n + 1, sizeof *walk.entry);
    if (walk.entry == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    for (size_t i = 0; i < set->n; i++)
        walk.entry[i].path = (char *)pb_base_name(set->file[i].name);
    for (size_t i = 0; i < earlier->n; i++)
        if (!has_name(&walk, earlier->name[i]))
            walk.entry[walk.n++].path = earlier->name[i];
    int rc = pb_scene_files_check(pipeline, &walk, set->scene, set->scene, err);
    free(walk.entry);
    return rc;
}

/* Lets the set wait for the end of a job, without a limit of time. */
static void await_job(struct pb_set *set)
{
    set->is_incomplete = true;
    set->is_due = false;
    set->expires_ms = 0;
    (void)snprintf(set->missing, sizeof set->missing,
                   "%zu file%s to be joined with those of job %s when it is over", set->n,
                   set->n == 1 ? "" : "s", set->earlier.busy);
}

/* Returns true if a file that arrived before the set was over may belong to it. */
static bool is_awaited(const struct pb_sets *sets, const struct pb_set *set)
{
    return set->pipeline_number < sets->n_awaited &&
           sets->awaited_ms[set->pipeline_number] <=
               (set->is_incomplete ? set->expires_ms : set->youngest_ns / 1000000);
}

/* Decides whether the set is due. The job reports faults other than missing files (two files for
 * one band). */
static void judge(const struct pb_sets *sets, struct pb_set *set,
                  const struct pb_pipeline_config *pipeline, const struct pb_sets_now *now)
{
    struct pb_err err = {0};
    bool is_still = true;
    for (size_t i = 0; i < set->n; i++) {
        const struct pb_set_file *file = &set->file[i];
        is_still = is_still && file->is_still;
        set->bytes += file->size;
        set->youngest_ns = file->ctime_ns > set->youngest_ns ? file->ctime_ns : set->youngest_ns;
    }
    set->expires_ms = set->youngest_ns / 1000000 + pipeline->input.complete.expire_ms;
    bool failed = check(pipeline, set, &err) < 0;
    set->is_incomplete = failed && err.code == PB_E_INPUT_INCOMPLETE;
    if (set->is_incomplete)
        (void)snprintf(set->missing, sizeof set->missing, "%s", err.msg);
    bool expired = now->wall_is_trusted && now->wall_ms >= set->expires_ms;
    bool undecided = failed && err.code == PB_E_MEMORY;
    set->is_due =
        is_still && !undecided && !is_awaited(sets, set) && (!set->is_incomplete || expired);
    if (set->earlier.busy[0] != '\0')
        await_job(set);
}

int pb_sets_await(struct pb_sets *sets, size_t pipeline, int64_t ctime_ns)
{
    if (pipeline >= sets->n_awaited) {
        int64_t *more = realloc(sets->awaited_ms, (pipeline + 1) * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        sets->awaited_ms = more;
        while (sets->n_awaited <= pipeline)
            more[sets->n_awaited++] = INT64_MAX;
    }
    if (ctime_ns / 1000000 < sets->awaited_ms[pipeline])
        sets->awaited_ms[pipeline] = ctime_ns / 1000000;
    return 0;
}

int pb_sets_end(struct pb_sets *sets, const struct pb_config *config)
{
    size_t n = sets->n_members;
    if (n == 0)
        return 0;
    qsort(sets->member, n, sizeof *sets->member, by_set);
    sets->file = calloc(n, sizeof *sets->file);
    size_t n_sets = 1;
    for (size_t i = 1; i < n; i++)
        n_sets += compare_sets(&sets->member[i - 1], &sets->member[i]) != 0;
    sets->set = calloc(n_sets, sizeof *sets->set);
    if (sets->file == NULL || sets->set == NULL) {
        forget_sets(sets);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const struct member *member = &sets->member[i];
        struct pb_set *set = &sets->set[sets->n - (sets->n > 0)];
        sets->file[i] = member->file;
        if (i == 0 || compare_sets(member - 1, member) != 0) {
            set = &sets->set[sets->n++];
            set->file = &sets->file[i];
            set->is_beside = member->is_beside;
            set->pipeline_number = member->pipeline;
            if (!member->is_beside)
                set->reopen_ms = config->pipelines[member->pipeline].input.complete.reopen_ms;
            (void)snprintf(set->scene, sizeof set->scene, "%s", member->scene);
            (void)snprintf(set->pipeline, sizeof set->pipeline, "%s",
                           config->pipelines[member->pipeline].name);
        }
        set->n++;
    }
    return 0;
}

void pb_sets_know(struct pb_sets *sets, size_t i, const struct pb_set_earlier *earlier)
{
    pb_set_earlier_fini(&sets->set[i].earlier);
    sets->set[i].earlier = *earlier;
}

void pb_sets_judge(struct pb_sets *sets, const struct pb_config *config,
                   const struct pb_sets_now *now)
{
    for (size_t i = 0; i < sets->n; i++)
        judge(sets, &sets->set[i], &config->pipelines[sets->set[i].pipeline_number], now);
}

size_t pb_sets_count(const struct pb_sets *sets)
{
    return sets->n;
}

const struct pb_set *pb_sets_at(const struct pb_sets *sets, size_t i)
{
    return &sets->set[i];
}

int64_t pb_sets_due_ms(const struct pb_sets *sets, int64_t wall_ms)
{
    int64_t due = -1;
    for (size_t i = 0; i < sets->n; i++) {
        const struct pb_set *set = &sets->set[i];
        int64_t left = set->expires_ms > wall_ms ? set->expires_ms - wall_ms : 0;
        if (set->is_incomplete && !set->is_due && left > 0 && (due < 0 || left < due))
            due = left;
    }
    return due;
}
