/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/stream/scene.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/io/path.h"
#include "pipeline/lines/segment.h"
#include "service/inbox/staging.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ID_TRIES 64

struct pb_stream_scene {
    struct pb_scene_source source;
    char id[PB_JOB_ID_BYTES];
    char name[PB_JOB_NAME_BYTES];
    char claim[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    struct pb_segment *segment;
    int32_t every;
    bool is_offered; /* its job is stored */
    int closed;      /* result of the close, and its error */
    struct pb_err why;
};

/* --- rules ------------------------------------------------------------------------------------ */

static void take_rules(const struct pb_pipeline_config *pipeline, struct pb_stream_rules *out)
{
    const struct pb_input_config *input = &pipeline->input;
    *out = (struct pb_stream_rules){.every = input->lines.every,
                                    .silence_ms = input->lines.silence_ms,
                                    .drops = input->lines.when_full == PB_FULL_DROP_OLDEST,
                                    .has_nodata = input->has_nodata,
                                    .nodata = input->nodata,
                                    .least_bands = 1};
    (void)snprintf(out->stream, sizeof out->stream, "%s", input->stream);
    (void)snprintf(out->pipeline, sizeof out->pipeline, "%s", pipeline->name);
    for (size_t i = 0; i < input->n_bands; i++)
        if ((uint32_t)input->bands[i].index > out->least_bands)
            out->least_bands = (uint32_t)input->bands[i].index;
}

bool pb_stream_rules_find(struct pb_intake *intake, const char *stream, struct pb_stream_rules *out)
{
    struct pb_config *config = pb_intake_hold_config(intake, NULL);
    const struct pb_pipeline_config *pipeline = pb_config_stream(config, stream);
    if (pipeline != NULL)
        take_rules(pipeline, out);
    pb_config_destroy(config);
    return pipeline != NULL;
}

/* --- begin ------------------------------------------------------------------------------------ */

/* Makes NAME_20261130T133652123_<line>.tif of the time and number of the first line; without a time
 * NAME_<id of the job>.tif. */
static void make_name(struct pb_stream_scene *scene, uint64_t line, int64_t time_ns)
{
    char when[80];
    const time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm utc;
    (void)snprintf(when, sizeof when, "%s", scene->id);
    if (time_ns > 0 && gmtime_r(&seconds, &utc) != NULL && utc.tm_year < 8100)
        (void)snprintf(when, sizeof when, "%04d%02d%02dT%02d%02d%02d%03d_%llu", utc.tm_year + 1900,
                       utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                       (int)(time_ns / 1000000 % 1000), (unsigned long long)line);
    (void)snprintf(scene->name, sizeof scene->name, "%s_%s.tif", scene->source.rules.stream, when);
}

static int make_claim(struct pb_stream_scene *scene, uint64_t line, int64_t time_ns,
                      struct pb_err *err)
{
    char origin[PB_STREAM_NAME_BYTES + sizeof PB_ORIGIN_STREAM];
    const char *work = scene->source.intake->dirs->work;
    int rc = -EEXIST;
    (void)snprintf(origin, sizeof origin, "%s%s", PB_ORIGIN_STREAM, scene->source.rules.stream);
    for (int i = 0; i < ID_TRIES && rc == -EEXIST; i++) {
        pb_intake_make_id(scene->id);
        make_name(scene, line, time_ns);
        rc = pb_files_join(scene->claim, work, scene->id);
        rc = rc ? rc : pb_files_join(scene->path, scene->claim, scene->name);
        if (rc == 0 && mkdir(scene->claim, 0755) != 0)
            rc = -errno;
    }
    if (rc == 0 && (rc = pb_origin_write(scene->claim, origin)) != 0)
        (void)rmdir(scene->claim);
    return rc ? pb_fail(err, rc == -EMFILE || rc == -ENFILE ? PB_E_SYSTEM_FILES : PB_E_SYSTEM,
                        "cannot create %s: %s", scene->claim, strerror(-rc))
              : 0;
}

/* Place of the scene's first line. */
static void set_place(const struct pb_stream_request *request, uint64_t line,
                      struct pb_segment_spec *spec)
{
    if (!request->has_transform)
        return;
    spec->has_transform = true;
    (void)memcpy(spec->transform, request->transform, sizeof spec->transform);
    spec->transform[0] += (double)line * request->transform[2];
    spec->transform[3] += (double)line * request->transform[5];
}

static struct pb_segment_spec spec_of(const struct pb_scene_source *source, uint64_t line)
{
    const struct pb_stream_request *request = &source->request;
    const bool is_real = request->type == PB_F32 || request->type == PB_F64;
    struct pb_segment_spec spec = {.width = (int32_t)request->format.samples,
                                   .height = source->rules.every,
                                   .n_bands = (int32_t)request->format.bands,
                                   .type = request->type,
                                   .has_nodata = true,
                                   .nodata = source->rules.has_nodata ? source->rules.nodata
                                             : is_real                ? (double)NAN
                                                                      : 0,
                                   .epsg = request->epsg,
                                   .is_geographic = source->is_geographic};
    set_place(request, line, &spec);
    return spec;
}

int pb_scene_begin(const struct pb_scene_source *source, uint64_t line, int64_t time_ns,
                   struct pb_err *err, struct pb_stream_scene **out_scene)
{
    const struct pb_segment_spec spec = spec_of(source, line);
    struct pb_stream_scene *scene = calloc(1, sizeof *scene);
    if (scene == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    scene->source = *source;
    scene->every = source->rules.every;
    int rc = pb_intake_check_space(source->intake, err);
    /* A sweep of work/ removes an empty claim, and closes a segment that is not locked yet. */
    (void)pthread_rwlock_rdlock(&source->intake->moves);
    rc = rc ? rc : make_claim(scene, line, time_ns, err);
    if (rc == 0) {
        rc = pb_segment_create(scene->path, &spec, err, &scene->segment);
        if (rc != 0)
            pb_origin_end(scene->claim);
    }
    (void)pthread_rwlock_unlock(&source->intake->moves);
    if (rc != 0) {
        free(scene);
        return rc;
    }
    *out_scene = scene;
    return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

int pb_scene_append(struct pb_stream_scene *scene, const struct pb_stream_group *group,
                    const int64_t *times_ns, const void *pixels, uint32_t skip, struct pb_err *err)
{
    const struct pb_stream_format *format = &scene->source.request.format;
    const size_t line_bytes = pb_stream_line_bytes(format);
    const struct pb_segment_group lines = {
        .data = (const unsigned char *)pixels + skip * line_bytes,
        .line_bytes = line_bytes,
        .band_bytes = line_bytes / format->bands,
        .n = group->lines - skip,
        .acquired_ns = times_ns + skip,
        .published_ns = group->published_ns,
    };
    return pb_segment_append(scene->segment, &lines, err);
}

bool pb_scene_fits(const struct pb_stream_scene *scene, uint64_t n)
{
    return n < (uint64_t)(scene->every - pb_scene_lines(scene));
}

int pb_scene_gap(struct pb_stream_scene *scene, uint64_t n, struct pb_err *err)
{
    const int rc = pb_segment_gap(scene->segment, (uint32_t)n, err);
    return rc < 0 ? rc : 0;
}

bool pb_scene_is_full(const struct pb_stream_scene *scene)
{
    return pb_scene_lines(scene) == scene->every;
}

int32_t pb_scene_lines(const struct pb_stream_scene *scene)
{
    return pb_segment_lines(scene->segment);
}

const char *pb_scene_name(const struct pb_stream_scene *scene)
{
    return scene->name;
}

/* --- end -------------------------------------------------------------------------------------- */

static int describe(const struct pb_stream_scene *scene, bool is_complete, struct pb_job *job)
{
    pb_job_init(job);
    job->owned = true;
    job->uid = scene->source.uid;
    (void)snprintf(job->id, sizeof job->id, "%s", scene->id);
    job->delivered_ms = pb_clock_wall_ms();
    return pb_intake_describe_lines(scene->source.intake, job, scene->source.rules.stream,
                                    scene->path, is_complete);
}

static int store(struct pb_stream_scene *scene, bool is_complete, struct pb_err *err,
                 struct pb_job *out_job)
{
    struct pb_intake *intake = scene->source.intake;
    struct pb_job job;
    int rc =
        describe(scene, is_complete, &job) != 0 ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
    if (rc == 0 && (rc = pb_store_offer(intake->store, &job, err)) == -EEXIST)
        rc = pb_fail(err, PB_E_SERVICE_STATE, "job %s exists already", scene->id);
    scene->is_offered = rc == 0;
    if (rc == 0)
        *out_job = job;
    else
        pb_job_fini(&job);
    return rc;
}

int pb_scene_offer(struct pb_stream_scene *scene, struct pb_err *err, struct pb_job *out_job)
{
    return store(scene, false, err, out_job);
}

bool pb_scene_is_offered(const struct pb_stream_scene *scene)
{
    return scene->is_offered;
}

void pb_scene_complete(struct pb_stream_scene *scene)
{
    if (pb_scene_lines(scene) > 0)
        scene->closed = pb_segment_close(scene->segment, &scene->why);
}

int pb_scene_end(struct pb_stream_scene *scene, struct pb_err *err, struct pb_job *out_job)
{
    struct pb_intake *intake = scene->source.intake;
    const bool is_empty = pb_scene_lines(scene) == 0;
    int rc = is_empty ? 1 : scene->closed;
    if (rc < 0 && err != NULL)
        *err = scene->why;
    rc = rc ? rc : pb_segment_sync(scene->segment, err);
    /* A sweep of work/ adopts a closed segment that is not locked any more and has no job. */
    (void)pthread_rwlock_rdlock(&intake->moves);
    pb_segment_destroy(scene->segment);
    *out_job = (struct pb_job){.seq = 0};
    if (is_empty) {
        (void)unlink(scene->path);
        pb_origin_end(scene->claim);
    } else if (rc == 0 && !scene->is_offered) {
        (void)pb_path_sync(scene->claim);
        rc = store(scene, true, err, out_job);
    }
    (void)pthread_rwlock_unlock(&intake->moves);
    if (rc < 0)
        atomic_store(&intake->left, true);
    free(scene);
    return rc;
}
