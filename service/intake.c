/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/intake.h"

#include "pipeline/file_name.h"
#include "pipeline/path.h"
#include "service/clock.h"
#include "service/dispose.h"
#include "service/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
    struct stat st;
    if (path[0] != '/')
        return pb_fail(err, PB_E_USAGE, "%s: the service needs an absolute path", path);
    if (strlen(path) >= PB_FILES_PATH_BYTES)
        return pb_fail(err, PB_E_USAGE, "the path is too long");
    if (stat(path, &st) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return pb_fail(err, PB_E_INPUT_MISSING, "%s is not a plain file", path);
    if (access(path, R_OK) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "%s: %s; the service runs as user id %d", path,
                       strerror(errno), (int)geteuid());
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

/* The plain file in work/<id>: 1 and its path, 0 when there is none. */
static int claimed_file(const char *claim, char out_path[PB_FILES_PATH_BYTES])
{
    DIR *directory = opendir(claim);
    const struct dirent *entry;
    struct stat st;
    int found = 0;
    while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
        found = pb_files_join(out_path, claim, entry->d_name) == 0 && lstat(out_path, &st) == 0 &&
                S_ISREG(st.st_mode);
    }
    if (directory != NULL)
        (void)closedir(directory);
    return found;
}

static int adopt_file(const struct pb_intake *intake, const char *id, const char *path,
                      struct pb_err *err)
{
    struct pb_job job;
    struct stat st;
    pb_job_init(&job);
    job.owned = true;
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    pb_intake_describe(intake, &job, pb_files_base(path));
    job.uid = lstat(path, &st) == 0 ? (int64_t)st.st_uid : -1;
    int rc = pb_job_set(&job.input, path);
    rc = rc ? rc : pb_job_store_insert(intake->store, &job, err);
    if (rc == 0)
        pb_log(PB_LOG_NOTICE, "work: %s belonged to no job and is job %s now", path, id);
    pb_job_fini(&job);
    return rc;
}

static int adopt(const struct pb_intake *intake, const char *id, struct pb_err *err)
{
    char claim[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    struct pb_job job;
    struct pb_err unknown = {0};
    if (pb_files_join(claim, intake->dirs->work, id) != 0 || !claimed_file(claim, path)) {
        (void)rmdir(claim);
        return 0;
    }
    if (pb_job_store_find(intake->store, id, &unknown, &job) != 0) {
        if (unknown.code != PB_E_JOB_UNKNOWN)
            return pb_fail(err, unknown.code, "%s", unknown.msg);
        int rc = adopt_file(intake, id, path, err);
        return rc == 0 ? 1 : rc;
    }
    int rc = pb_job_set(&job.input, path);
    if (rc == 0 && (PB_JOB_MASK(job.status) & PB_JOB_MASK_FINISHED) != 0)
        rc = pb_dispose(&job, intake->dirs, intake->config->service.on_success, err);
    rc = rc ? rc : pb_job_store_update(intake->store, &job, err);
    pb_job_fini(&job);
    return rc;
}

int pb_intake_adopt(const struct pb_intake *intake, struct pb_err *err)
{
    DIR *directory = opendir(intake->dirs->work);
    if (directory == NULL)
        return pb_fail(err, PB_E_SYSTEM, "cannot read %s: %s", intake->dirs->work, strerror(errno));
    int adopted = 0, rc = 0;
    const struct dirent *entry;
    while (rc >= 0 && (entry = readdir(directory)) != NULL) {
        if (!pb_job_is_id(entry->d_name))
            continue;
        rc = adopt(intake, entry->d_name, err);
        adopted += rc > 0;
    }
    (void)closedir(directory);
    return rc < 0 ? rc : adopted;
}
