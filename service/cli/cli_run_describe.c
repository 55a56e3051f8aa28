/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: what metadata say of loose files, asked as the service does
 * (service/processes/describer.h), before the first input runs. */
#include "config/base/base_name.h"
#include "config/group_pattern.h"
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

/* A file; its path has the same folder as the input that made it be asked for. */
struct one {
    char *path;
    const struct pb_pipeline_config *pipeline;
    bool is_input;
    struct pb_described answer;
};

struct cli_told {
    struct one *one;
    size_t n, room, n_answered;
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
    told->one[told->n++] = (struct one){.path = copy, .pipeline = pipeline, .is_input = is_input};
    return true;
}

/* Bytes of the folder's part of a path, its slash among them. */
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
        if (pb_group_pattern_fits(pipeline->input.group_pattern, e->d_name, NULL, scene) &&
            snprintf(other, sizeof other, "%.*s%s", n, path, e->d_name) < (int)sizeof other &&
            stat(other, &st) == 0 && S_ISREG(st.st_mode))
            good = add(told, pipeline, other, false);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return good;
}

/* Whether a file beside that one was asked for already, so that all of them were. */
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
    if (++told->n_answered == told->n)
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
        if (!one->is_input && one->answer.error.code[0] != '\0')
            (void)fprintf(stderr, "pushbroom: %s is left out: %s\n", one->path,
                          one->answer.error.message);
    }
}

bool cli_told_wait(struct cli_told *told, const struct pb_config *config,
                   const struct cli_run_options *o)
{
    const struct pb_describer_options options = {
        .loop = &told->loop,
        .program = {.main = told->n == 1 ? pb_worker_main_single : pb_worker_main_foreground},
        .config = config,
        .on_answer = on_answer,
        .on_say = on_say,
        .user = told};
    if (uv_loop_init(&told->loop) != 0)
        return false;
    struct pb_describer *describer = pb_describer_create(&options);
    bool good = describer != NULL;
    for (size_t i = 0; good && i < told->n; i++)
        good = pb_describer_ask(describer, i, told->one[i].pipeline->name, told->one[i].path) == 0;
    if (good)
        (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    pb_describer_destroy(describer);
    (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&told->loop);
    if (good && !o->quiet)
        say_left_out(told);
    return good;
}

static bool scene_of(const struct one *one, char scene[256])
{
    return one->answer.error.code[0] == '\0' &&
           pb_group_pattern_fits(one->pipeline->input.group_pattern, pb_base_name(one->path),
                                 &one->answer.facts, scene) &&
           scene[0] != '\0';
}

bool cli_told_find(const struct cli_told *told, const struct pb_pipeline_config *pipeline,
                   const char *path, struct cli_group *out_group, char scene[256])
{
    const struct one *own = find(told, pipeline, path);
    const size_t n = folder_bytes(path);
    if (!scene_of(own, scene)) {
        const struct pb_job_error *error = &own->answer.error;
        (void)pb_fail(&out_group->err, error->code[0] ? pb_code_find(error->code) : PB_E_SYSTEM,
                      "%s", error->code[0] ? error->message : "its scene would have no name");
        return true;
    }
    out_group->names = calloc(told->n, sizeof *out_group->names);
    for (size_t i = 0; out_group->names != NULL && i < told->n; i++) {
        const struct one *one = &told->one[i];
        char other[256];
        if (one->pipeline == pipeline && folder_bytes(one->path) == n &&
            strncmp(one->path, path, n) == 0 && scene_of(one, other) && strcmp(other, scene) == 0)
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
