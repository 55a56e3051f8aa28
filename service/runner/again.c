/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/again.h"

#include "config/base/clock.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/scene/manifest_match.h"
#include "service/base/files.h"
#include "service/inbox/intake.h"
#include "service/jobs/again_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_TRIES   64
#define PARTS_MAX  1000 /* limit of deliveries of a scene */
#define NOT_STORED "the archive does not have the input of job %s any more"

/* Id of the job at the root of a chain of repetitions: its products are made again. */
static const char *root_of(const struct pb_job *job)
{
    return job->again[0] != '\0' ? job->again : job->id;
}

static int check_waiting(struct pb_job_store *store, const struct pb_job *of, struct pb_err *err)
{
    char other[PB_JOB_ID_BYTES];
    int rc = pb_again_waits(store, root_of(of), err, other);
    return rc <= 0 ? rc
                   : pb_fail(err, PB_E_JOB_STATE, "job %s waits already to make %s again", other,
                             of->name);
}

/* Describes the files of the products by those of the job; "" if it is not known which files the
 * job read. */
static const char *compare_files(const struct pb_job *of, const struct pb_scene_manifest *products)
{
    struct pb_manifest_comparison result;
    bool is_known = false;
    for (size_t i = 0; i < of->manifest.n_entries; i++)
        is_known = is_known || of->manifest.entry[i].checksum != NULL;
    if (!is_known || pb_scene_manifest_compare(&of->manifest, products, &result) != 0)
        return "";
    return result.relation == PB_MANIFEST_SAME    ? ", from the same files"
           : result.relation == PB_MANIFEST_NEWER ? ", from more files"
           : result.changed != NULL               ? ", from other files"
                                                  : "";
}

/* Reads the id of the job that made the products of the job; "" = not found. Returns the result of
 * compare_files. */
static const char *read_maker(const struct pb_job *of, char out[PB_JOB_ID_BYTES])
{
    struct pb_manifest manifest = {0};
    const char *from = "";
    int fd = of->directory ? open(of->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    out[0] = '\0';
    if (fd >= 0 && pb_manifest_read(fd, &manifest) == 0) {
        (void)snprintf(out, PB_JOB_ID_BYTES, "%.*s", PB_JOB_ID_BYTES - 1, manifest.job);
        from = compare_files(of, &manifest.inputs);
    }
    pb_manifest_fini(&manifest);
    if (fd >= 0)
        (void)close(fd);
    return from;
}

/* Fails if the products are of another input, or of more files of the scene: they cannot be made
 * again from this job's input. */
static int check_products(struct pb_job_store *store, const struct pb_job *of, struct pb_err *err)
{
    char maker[PB_JOB_ID_BYTES];
    struct pb_job job;
    const char *from = read_maker(of, maker);
    if (maker[0] == '\0' || strcmp(maker, of->id) == 0 || strcmp(maker, root_of(of)) == 0)
        return 0;
    bool same = false;
    if (pb_job_is_id(maker) && pb_job_store_find(store, maker, NULL, &job) == 0) {
        same = strcmp(root_of(&job), root_of(of)) == 0;
        pb_job_fini(&job);
    }
    return same ? 0
                : pb_fail(err, PB_E_JOB_SUPERSEDED,
                          "job %s made the products in %.300s after job %s%s", maker, of->directory,
                          of->id, from);
}

/* Returns true if the input of a finished job is still in work/<id>/; the sweep moves it. */
static bool is_claimed(const struct pb_again *again, const struct pb_job *job)
{
    char claim[PB_FILES_PATH_BYTES];
    return job->owned && job->manifest.input != NULL &&
           pb_files_join(claim, again->work, job->id) == 0 &&
           strncmp(job->manifest.input, claim, strlen(claim)) == 0 &&
           job->manifest.input[strlen(claim)] == '/';
}

/* A delivered archive of a scene's job is where it stays after its own job is successful. */
static int check_archive(struct pb_job_store *store, const struct pb_again *again,
                         const struct pb_job *of, struct pb_err *err)
{
    struct pb_job job;
    if (of->archive[0] == '\0' || pb_job_store_find(store, of->archive, NULL, &job) != 0)
        return 0;
    const bool stays = !job.owned || job.manifest.input == NULL ||
                       (job.status == PB_JOB_SUCCESSFUL && !is_claimed(again, &job));
    const char *status = pb_job_status_name(job.status);
    pb_job_fini(&job);
    return stays ? 0
                 : pb_fail(err, PB_E_JOB_STATE,
                           "job %s, of the archive with this scene, is %s, and its input is not in "
                           "the archive directory",
                           of->archive, status);
}

/* A submitted file was checked by a separate process, because its storage may hang. */
static int check_input(const struct pb_again *again, const struct pb_job *job, struct pb_err *err)
{
    struct stat st;
    if (job->identity[0] != '\0')
        return 0;
    if (job->manifest.input == NULL)
        return pb_fail(err, PB_E_INPUT_GONE, NOT_STORED, job->id);
    if (is_claimed(again, job))
        return pb_fail(err, PB_E_JOB_STATE, "the input of job %s is not in the archive yet",
                       job->id);
    if (lstat(job->manifest.input, &st) != 0)
        return pb_fail(err, PB_E_INPUT_GONE, NOT_STORED ": %.400s: %s", job->id,
                       job->manifest.input, strerror(errno));
    return 0;
}

/* Checks all inputs of a scene of several deliveries: products are never made from fewer files. */
static int check_inputs(struct pb_job_store *store, const struct pb_again *again,
                        const struct pb_job *of, struct pb_err *err)
{
    struct pb_job job;
    char id[PB_JOB_ID_BYTES];
    int rc = check_archive(store, again, of, err);
    rc = rc ? rc : check_input(again, of, err);
    (void)snprintf(id, sizeof id, "%s", of->set_id[0] != '\0' ? of->replaces : "");
    for (int i = 0; rc == 0 && id[0] != '\0'; i++) {
        if (i == PARTS_MAX || pb_job_store_find(store, id, NULL, &job) != 0)
            return pb_fail(err, PB_E_INPUT_GONE,
                           "job %s joined the files of job %s, which the service has forgotten "
                           "(service.keep_jobs)",
                           of->id, id);
        rc = check_input(again, &job, err);
        (void)snprintf(id, sizeof id, "%s", job.replaces);
        pb_job_fini(&job);
    }
    return rc;
}

static int describe(const struct pb_again *again, const struct pb_job *of, struct pb_err *err,
                    struct pb_job *out)
{
    pb_job_init(out);
    (void)snprintf(out->name, sizeof out->name, "%s", of->name);
    (void)snprintf(out->scene, sizeof out->scene, "%s", of->scene);
    (void)snprintf(out->pipeline, sizeof out->pipeline, "%s", of->pipeline);
    (void)snprintf(out->set_id, sizeof out->set_id, "%s", of->set_id);
    (void)snprintf(out->replaces, sizeof out->replaces, "%s", of->replaces);
    (void)snprintf(out->again, sizeof out->again, "%s", root_of(of));
    (void)snprintf(out->archive, sizeof out->archive, "%s", of->archive);
    (void)snprintf(out->identity, sizeof out->identity, "%s",
                   again->identity[0] != '\0' ? again->identity : of->identity);
    (void)snprintf(out->datetime, sizeof out->datetime, "%s", of->datetime);
    out->priority = again->priority;
    out->uid = of->uid;
    out->anyway = true;
    out->created_ms = out->updated_ms = pb_clock_wall_ms();
    if (pb_job_set(&out->inbox, of->inbox) == 0 && pb_job_set(&out->folder, of->folder) == 0 &&
        pb_job_set(&out->bbox, of->bbox) == 0 &&
        pb_scene_manifest_copy(&out->manifest, &of->manifest) == 0) {
        pb_scene_manifest_remove(&out->manifest, PB_ROLE_COMPANION); /* was verified */
        return 0;
    }
    pb_job_fini(out);
    return pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int insert(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    int rc = -EEXIST;
    for (int i = 0; i < ID_TRIES && rc == -EEXIST; i++) {
        pb_intake_make_id(job->id);
        rc = pb_store_offer(store, job, err);
    }
    if (rc != 0)
        pb_job_fini(job);
    return rc;
}

int pb_again_store(struct pb_job_store *store, const struct pb_again *again,
                   const struct pb_job *of, struct pb_err *err, struct pb_job *out)
{
    int rc = check_waiting(store, of, err);
    rc = rc ? rc : check_products(store, of, err);
    rc = rc ? rc : check_inputs(store, again, of, err);
    if (rc != 0 || again->dry_run)
        return rc;
    rc = describe(again, of, err, out);
    return rc ? rc : insert(store, out, err);
}
