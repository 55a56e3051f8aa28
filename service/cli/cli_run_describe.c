/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: queries the metadata of loose files, in the same way as the service
 * (service/processes/describer.h), before the first input runs. */
#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/sidecar.h"
#include "service/base/loop.h"
#include "service/base/files.h"
#include "service/cli/cli_run.h"
#include "service/processes/describer.h"
#include "service/worker/worker.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

/* A file; its path has the same folder as the input that caused its query. */
struct one {
    char *path;
    const struct pb_pipeline_config *pipeline;
    bool is_input;
    /* metadata of other files, not queried; it belongs to the scene of these files */
    bool is_metadata;
    struct pb_described answer;
};

struct cli_told {
    struct one *one;
    size_t n, room, n_asked, n_answered;
    uv_loop_t loop;
};

static struct one *find(const struct cli_told *told, const struct pb_pipeline_config *pipeline,
                        const char *path)
{
    for (size_t i = 0; i < told->n; i++)
        if (told->one[i].pipeline == pipeline && strcmp(told->one[i].path, path) == 0)
            return &told->one[i];
    return NULL;
}

static bool add(struct cli_told *told, const struct pb_pipeline_config *pipeline, const char *path,
                bool is_input)
{
    struct one *known = find(told, pipeline, path);
    if (known != NULL) {
        known->is_input = known->is_input || is_input;
        return true;
    }
    if (told->n == told->room) {
        size_t room = told->room ? 2 * told->room : 32;
        struct one *more = realloc(told->one, room * sizeof *more);
        if (more == NULL)
            return false;
        told->one = more;
        told->room = room;
    }
    char *copy = strdup(path);
    if (copy == NULL)
        return false;
    const bool is_metadata = pb_sidecar_is_metadata(pipeline, path);
    told->one[told->n++] = (struct one){
        .path = copy, .pipeline = pipeline, .is_input = is_input, .is_metadata = is_metadata};
    told->n_asked += is_metadata ? 0 : 1;
    return true;
}

/* Length of the folder's part of a path, including its slash. */
static size_t folder_bytes(const char *path)
{
    return (size_t)(pb_base_name(path) - path);
}

static bool add_beside(struct cli_told *told, const struct pb_pipeline_config *pipeline,
                       const char *path)
{
    char folder[PB_FILES_PATH_BYTES], scene[256], other[PB_FILES_PATH_BYTES];
    const int n = (int)folder_bytes(path);
    bool good = true;
    (void)snprintf(folder, sizeof folder, "%.*s", n > 0 ? n : 1, n > 0 ? path : ".");
    DIR *directory = opendir(folder);
    for (const struct dirent *e; good && directory != NULL && (e = readdir(directory)) != NULL;) {
        struct stat st;
        if ((pb_group_pattern_fits(pipeline->input.group_pattern, e->d_name, NULL, scene) ||
             pb_sidecar_is_metadata(pipeline, e->d_name)) &&
            snprintf(other, sizeof other, "%.*s%s", n, path, e->d_name) < (int)sizeof other &&
            stat(other, &st) == 0 && S_ISREG(st.st_mode))
            good = add(told, pipeline, other, false);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return good;
}

/* Returns true if the folder of that path has been queried already, with all its files. */
static bool has_folder(const struct cli_told *told, const struct pb_pipeline_config *pipeline,
                       const char *path)
{
    const size_t n = folder_bytes(path);
    bool has = false;
    for (size_t i = 0; i < told->n && !has; i++)
        has = told->one[i].pipeline == pipeline && folder_bytes(told->one[i].path) == n &&
              strncmp(told->one[i].path, path, n) == 0;
    return has;
}

bool cli_told_want(struct cli_told **told, const struct pb_pipeline_config *pipeline,
                   const char *path)
{
    if (*told == NULL && (*told = calloc(1, sizeof **told)) == NULL)
        return false;
    if (!has_folder(*told, pipeline, path) && !add_beside(*told, pipeline, path))
        return false;
    return add(*told, pipeline, path, true);
}

/* --- the answers ------------------------------------------------------------------------------*/

static void on_answer(void *user, uint64_t ticket, const struct pb_described *answer)
{
    struct cli_told *told = user;
    told->one[ticket].answer = *answer;
    if (++told->n_answered == told->n_asked)
        uv_stop(&told->loop);
}

static void on_say(void *user, enum pb_log_level level, const char *text)
{
    (void)user;
    (void)fprintf(stderr, level == PB_LOG_INFO ? "%s\n" : "pushbroom: %s\n", text);
}

static void say_left_out(const struct cli_told *told)
{
    for (size_t i = 0; i < told->n; i++) {
        const struct one *one = &told->one[i];
        if (!one->is_input && one->answer.code != PB_OK)
            (void)fprintf(stderr, "pushbroom: %s is left out: %s\n", one->path,
                          one->answer.message);
    }
}

bool cli_told_wait(struct cli_told *told, const struct pb_config *config,
                   const struct cli_run_options *o)
{
    const struct pb_describer_options options = {
        .loop = &told->loop,
        .program = {.main = told->n_asked == 1 ? pb_worker_main_single : pb_worker_main_foreground},
        .config = config,
        .on_answer = on_answer,
        .on_say = on_say,
        .user = told,
        .gives_up = true};
    if (pb_loop_init(&told->loop) != 0)
        return false;
    struct pb_describer *describer = pb_describer_create(&options);
    bool good = describer != NULL;
    for (size_t i = 0; good && i < told->n; i++)
        good = told->one[i].is_metadata ||
               pb_describer_ask(describer, i, told->one[i].pipeline->name, told->one[i].path) == 0;
    if (good)
        (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    pb_describer_destroy(describer);
    (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&told->loop);
    if (good && !o->quiet)
        say_left_out(told);
    return good;
}

static bool tells_scene(const struct one *one, char scene[256])
{
    return one->answer.code == PB_OK &&
           pb_group_pattern_fits(one->pipeline->input.group_pattern, pb_base_name(one->path),
                                 &one->answer.facts, scene) &&
           scene[0] != '\0';
}

static bool lies_beside(const struct one *a, const struct one *b)
{
    const size_t n = folder_bytes(a->path);
    return a->pipeline == b->pipeline && folder_bytes(b->path) == n &&
           strncmp(a->path, b->path, n) == 0;
}

/* Finds the file whose answer determines the scene of `one`: the file itself, or, for metadata, a
 * file that they belong to, preferably one with a scene; NULL if absent. */
static const struct one *told_by(const struct cli_told *told, const struct one *one)
{
    const struct one *found = NULL;
    char scene[256];
    if (!one->is_metadata)
        return one;
    for (size_t i = 0; i < told->n; i++) {
        const struct one *main = &told->one[i];
        if (main->is_metadata || !lies_beside(main, one) ||
            !pb_sidecar_is_own(one->pipeline, main->path, pb_base_name(one->path)))
            continue;
        if (found == NULL || (!tells_scene(found, scene) && tells_scene(main, scene)))
            found = main;
    }
    return found;
}

static void say_why(const struct one *by, struct pb_err *err)
{
    if (by == NULL)
        (void)pb_fail(err, PB_E_INPUT_INCOMPLETE,
                      "the image file that these metadata belong to is not in the same directory");
    else if (by->answer.code != PB_OK)
        (void)pb_fail(err, by->answer.code, "%s", by->answer.message);
    else
        (void)pb_fail(err, PB_E_SYSTEM, "its scene would have no name");
}

bool cli_told_find(const struct cli_told *told, const struct pb_pipeline_config *pipeline,
                   const char *path, struct cli_group *out_group, char scene[256])
{
    const struct one *own = told != NULL ? find(told, pipeline, path) : NULL;
    if (own == NULL) {
        (void)pb_fail(&out_group->err, PB_E_INPUT_INCOMPLETE,
                      "it arrived while the metadata of the others were read; run it again");
        return true;
    }
    const struct one *by = told_by(told, own);
    if (by == NULL || !tells_scene(by, scene)) {
        say_why(by, &out_group->err);
        return true;
    }
    out_group->names = calloc(told->n, sizeof *out_group->names);
    for (size_t i = 0; out_group->names != NULL && i < told->n; i++) {
        const struct one *one = &told->one[i], *other_by = told_by(told, one);
        char other[256];
        if (lies_beside(one, own) && other_by != NULL && tells_scene(other_by, other) &&
            strcmp(other, scene) == 0)
            out_group->names[out_group->n++] = pb_base_name(one->path);
    }
    return out_group->names != NULL;
}

void cli_told_destroy(struct cli_told *told)
{
    for (size_t i = 0; told != NULL && i < told->n; i++)
        free(told->one[i].path);
    if (told != NULL)
        free(told->one);
    free(told);
}
