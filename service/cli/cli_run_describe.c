/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: queries the metadata of loose files, in the same way as the service
 * (service/processes/describer.h), before the first input runs. */
#include "service/base/loop.h"
#include "service/cli/cli_run.h"
#include "service/processes/describer.h"
#include "service/worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct query {
    char *path, *pipeline;
    bool has_answer;
    struct pb_described answer;
};

struct cli_told {
    struct query *query; /* sorted by path since cli_told_wait */
    size_t n, room, n_answered;
    uv_loop_t loop;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct query *)a)->path, ((const struct query *)b)->path);
}

static bool make_room(struct cli_told *told)
{
    if (told->n < told->room)
        return true;
    const size_t room = told->room ? 2 * told->room : 32;
    struct query *more = realloc(told->query, room * sizeof *more);
    if (more == NULL)
        return false;
    told->query = more;
    told->room = room;
    return true;
}

bool cli_told_add(struct cli_told **told, const char *pipeline, const char *path)
{
    if (*told == NULL && (*told = calloc(1, sizeof **told)) == NULL)
        return false;
    if (!make_room(*told))
        return false;
    struct query *query = &(*told)->query[(*told)->n++];
    *query = (struct query){.path = strdup(path), .pipeline = strdup(pipeline)};
    return query->path != NULL && query->pipeline != NULL;
}

static void forget(struct query *query)
{
    free(query->path);
    free(query->pipeline);
}

/* Sorts the queries and keeps one of each path. */
static void sort(struct cli_told *told)
{
    size_t kept = 0;
    qsort(told->query, told->n, sizeof *told->query, by_path);
    for (size_t i = 0; i < told->n; i++) {
        if (kept > 0 && by_path(&told->query[kept - 1], &told->query[i]) == 0)
            forget(&told->query[i]);
        else
            told->query[kept++] = told->query[i];
    }
    told->n = kept;
}

const struct pb_described *cli_told_find(void *user, const char *path, uint64_t digest)
{
    (void)digest; /* a run looks at its files once */
    const struct cli_told *told = user;
    const struct query key = {.path = (char *)path};
    const struct query *query =
        told != NULL ? bsearch(&key, told->query, told->n, sizeof key, by_path) : NULL;
    return query != NULL && query->has_answer ? &query->answer : NULL;
}

static void on_answer(void *user, uint64_t ticket, const struct pb_described *answer)
{
    struct cli_told *told = user;
    told->query[ticket].answer = *answer;
    told->query[ticket].has_answer = true;
    if (++told->n_answered == told->n)
        uv_stop(&told->loop);
}

static void on_say(void *user, enum pb_log_level level, const char *text)
{
    (void)user;
    (void)fprintf(stderr, level == PB_LOG_INFO ? "%s\n" : "pushbroom: %s\n", text);
}

bool cli_told_wait(struct cli_told *told, const struct pb_config *config)
{
    sort(told);
    const struct pb_describer_options options = {
        .loop = &told->loop,
        .program = {.main = told->n == 1 ? pb_worker_main_single : pb_worker_main_foreground},
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
        good = pb_describer_ask(describer, i, told->query[i].pipeline, told->query[i].path) == 0;
    if (good)
        (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    pb_describer_destroy(describer);
    (void)uv_run(&told->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&told->loop);
    return good;
}

void cli_told_destroy(struct cli_told *told)
{
    for (size_t i = 0; told != NULL && i < told->n; i++)
        forget(&told->query[i]);
    if (told != NULL)
        free(told->query);
    free(told);
}
