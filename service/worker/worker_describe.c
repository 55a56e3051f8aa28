/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_describe.h"
#include "config/base/json_path.h"
#include "config/config.h"
#include "config/pipeline_config.h"

#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "pipeline/io/path.h"
#include "pipeline/scene/sidecars.h"
#include "service/worker/described.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void answer(struct worker *worker, const struct pb_described *described)
{
    size_t bytes = 0;
    struct pb_json *json = pb_described_line(described);
    const char *text = pb_json_text(json, &bytes);
    pb_worker_say(worker, text, bytes);
    pb_json_destroy(json);
}

void pb_worker_describe_fail(struct worker *worker, const struct pb_err *err)
{
    struct pb_described described;
    pb_described_fail_err(&described, err);
    answer(worker, &described);
}

static int open_files(struct pb_worker_job *job, struct pb_err *err)
{
    char folder[PATH_MAX];
    struct pb_scene *scene = &job->scene;
    pb_path_parent(scene->path, folder);
    int rc = pb_raster_file_open(&scene->file, scene->path, err);
    rc = rc ? rc : pb_sidecar_open_own(job->pipeline, scene->path, -1, &scene->metadata, err);
    return rc ? rc
              : pb_sidecars_take_loose(job->pipeline, folder, -1, &scene->file, 1, err,
                                       &scene->sidecars);
}

static int open_job(struct worker *worker, const struct pb_json_value *command, struct pb_err *err)
{
    struct pb_worker_job *job = &worker->job;
    const char *name = pb_json_get_text(command, "pipeline");
    char room[PB_JSON_PATH_BYTES];
    const char *path = pb_json_get_path(command, "input", room);
    memset(job, 0, sizeof *job);
    job->room = -1;
    job->command = command;
    job->describes = true;
    job->pipeline = name != NULL ? pb_config_pipeline(worker->config, name) : NULL;
    if (job->pipeline == NULL || job->pipeline->input.group_pattern == NULL || path == NULL)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a description of a file of no input.group");
    if (pb_scene_init(&job->scene, path) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    return open_files(job, err);
}

/* Reads the child's only line. If the child ends without one, ends this process in the same way. */
static void hear(struct worker *worker, struct pb_described *out)
{
    size_t bytes = 0;
    char *text = NULL;
    while ((text = pb_line_reader_next(&worker->child.lines, &bytes)) == NULL &&
           pb_line_reader_fill(&worker->child.lines))
        ;
    if (text != NULL && pb_described_parse(text, bytes, out) == 0) {
        pb_worker_fork_end(&worker->child);
        return;
    }
    if (text != NULL)
        (void)fprintf(stderr, "the process that reads metadata breaks the protocol\n");
    if (text != NULL)
        pb_worker_end(worker, 1);
    pb_worker_fork_die_like(pb_worker_fork_wait(&worker->child));
}

/* Lists the names of its metadata: "a.json, b.xml". */
static void list_metadata(const struct pb_worker_job *job, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < job->scene.metadata.n && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%.120s", i ? ", " : "",
                                 pb_base_name(job->scene.metadata.file[i].path));
}

/* Reports the missing fact and the files that were searched for it. */
static void say_lacks(const struct pb_worker_job *job, const char *fact, struct pb_described *out)
{
    char names[400], looked[500];
    struct pb_err err = {0};
    const bool is_date = strcmp(fact, "meta.date") == 0;
    list_metadata(job, names, sizeof names);
    if (job->scene.metadata.n > 0)
        (void)snprintf(looked, sizeof looked, "%.300s %s not have it", names,
                       job->scene.metadata.n == 1 ? "does" : "do");
    else
        (void)snprintf(looked, sizeof looked, "%s",
                       job->pipeline->input.n_metadata == 0
                           ? "input.metadata is not set"
                           : "no file of input.metadata is next to it");
    (void)pb_fail(&err, PB_E_INPUT_METADATA_MISSING,
                  "the %s that input.by of pipeline %.60s takes is unknown: %s%s",
                  is_date ? "date of the acquisition" : "tile", job->pipeline->name, looked,
                  is_date ? ", and the file has no ACQUISITIONDATETIME (domain IMAGERY)" : "");
    pb_described_fail_err(out, &err);
}

/* Checks that the facts can be part of a folder's name. */
static void check_scene(const struct pb_worker_job *job, struct pb_described *out)
{
    char scene[256] = "";
    struct pb_err err = {0};
    if (pb_group_pattern_fits(job->pipeline->input.group_pattern, pb_base_name(job->scene.path),
                              &out->facts, scene) &&
        scene[0] != '\0')
        return;
    (void)pb_fail(
        &err, PB_E_INPUT_METADATA_VALUE,
        "of its metadata (date '%.39s', tile '%.39s') input.by of pipeline %.60s makes no "
        "name of a scene",
        out->facts.date, out->facts.tile, job->pipeline->name);
    pb_described_fail_err(out, &err);
}

/* Reports an error without the file's name, which the service adds. */
static void fail(const struct pb_worker_job *job, const struct pb_err *err,
                 struct pb_described *out)
{
    struct pb_err said = *err;
    if (job->scene.path != NULL && said.line == 0 && strcmp(said.file, job->scene.path) == 0)
        said.file[0] = '\0';
    pb_described_fail_err(out, &said);
}

void pb_worker_describe(struct worker *worker, const struct pb_json_value *command)
{
    struct pb_worker_job *job = &worker->job;
    struct pb_described described = {.facts = {.date = ""}};
    struct pb_err err = {0};
    int rc = open_job(worker, command, &err);
    rc = rc ? rc : pb_worker_fork_start(&worker->child, worker->config, job, &err);
    if (rc == 0)
        hear(worker, &described);
    else
        fail(job, &err, &described);
    const char *lacks =
        described.code == PB_OK
            ? pb_group_pattern_lacks(job->pipeline->input.group_pattern, &described.facts)
            : NULL;
    if (lacks != NULL)
        say_lacks(job, lacks, &described);
    else if (described.code == PB_OK)
        check_scene(job, &described);
    pb_worker_job_close(job);
    answer(worker, &described);
}
