/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/intake.h"

#include "pipeline/file_name.h"
#include "service/clock.h"
#include "service/dispose.h"
#include "service/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES 64

void pb_intake_make_id(char out[PB_JOB_ID_BYTES])
{
    uint32_t random = (uint32_t)getpid() ^ (uint32_t)pb_clock_mono_ms();
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        random *= 2654435761u;
    pb_job_make_id(pb_clock_wall_ms(), random, out);
}

void pb_intake_describe(const struct pb_intake *intake, struct pb_job *job, const char *name)
{
    pb_file_name_clean(name, job->name);
    pb_job_scene(job->name, job->scene);
    const struct pb_pipeline_config *pipeline = pb_config_match(intake->config, job->name);
    if (pipeline != NULL)
        (void)snprintf(job->pipeline, sizeof job->pipeline, "%s", pipeline->name);
    if (job->created_ms == 0)
        job->created_ms = job->updated_ms = pb_clock_wall_ms();
}

static int check_submitted(const struct pb_intake *intake, const char *path, const char *pipeline,
                           struct pb_err *err)
{
    if (pipeline != NULL && pb_config_pipeline(intake->config, pipeline) == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "there is no pipeline '%s' in %s", pipeline,
                       intake->config->path);
    if (pipeline == NULL && pb_config_match(intake->config, path) == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "no pipeline's input.match fits %s",
                       pb_files_base(path));
    return 0;
}

int pb_intake_submit(const struct pb_intake *intake, const char *path, const char *pipeline,
                     int64_t uid, const char *identity, struct pb_err *err, struct pb_job *out_job)
{
    struct pb_job job;
    int rc = check_submitted(intake, path, pipeline, err);
    if (rc != 0)
        return rc;
    pb_job_init(&job);
    job.uid = uid;
    (void)snprintf(job.identity, sizeof job.identity, "%s", identity);
    pb_intake_describe(intake, &job, pb_files_base(path));
    if (pipeline != NULL)
        (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", pipeline);
    if (pb_job_set(&job.input, path) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    for (int i = 0; i < ID_TRIES; i++) {
        pb_intake_make_id(job.id);
        rc = pb_job_store_insert(intake->store, &job, err);
        if (rc != -EEXIST)
            break;
    }
    if (rc == 0)
        *out_job = job;
    else
        pb_job_fini(&job);
    return rc;
}
