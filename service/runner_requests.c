/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What people ask of single jobs: to end one, to run one again. */
#include "service/clock.h"
#include "service/dispose.h"
#include "service/log.h"
#include "service/runner_place.h"

#include <string.h>

static int state_error(const struct pb_job *job, const char *verb, struct pb_err *err)
{
    return pb_fail(err, PB_E_JOB_STATE, "job %s is %s and cannot be %s", job->id,
                   pb_job_status_name(job->status), verb);
}

/* The job as it is now: what is not stored yet has to be before anything else happens to it. */
static int find_stored(struct pb_runner *runner, const char *id, struct pb_err *err,
                       struct pb_job *out_job)
{
    int rc = pb_job_store_find(runner->options.store, id, err, out_job);
    if (rc != 0 || pb_unsaved_find(runner, out_job->id) == NULL)
        return rc;
    pb_job_fini(out_job);
    if (!pb_unsaved_save(runner, err))
        return pb_fail(err, PB_E_SYSTEM, "the job's last change cannot be stored");
    return pb_job_store_find(runner->options.store, id, err, out_job);
}

int pb_runner_cancel(struct pb_runner *runner, const char *id, struct pb_err *err)
{
    struct pb_job job;
    int rc = find_stored(runner, id, err, &job);
    if (rc != 0)
        return rc;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        struct pb_place *place = &runner->places[i];
        if (place->busy && strcmp(place->job.id, job.id) == 0) {
            pb_place_end(place, PB_ENDING_CANCEL, PB_PLACE_CANCEL_MS);
            pb_job_fini(&job);
            return 0;
        }
    }
    if (job.status == PB_JOB_ACCEPTED && pb_runner_is_done(runner, &job)) {
        rc = 0; /* too late */
    } else if (job.status == PB_JOB_ACCEPTED) {
        pb_job_fail(&job, PB_E_JOB_DISMISSED, "cancelled on request before it ran");
        rc = pb_runner_dismiss(runner, &job, err);
    } else {
        rc = state_error(&job, "cancelled", err);
    }
    pb_job_fini(&job);
    return rc;
}

int pb_runner_retry(struct pb_runner *runner, const char *id, struct pb_err *err)
{
    struct pb_job job;
    int rc = find_stored(runner, id, err, &job);
    if (rc != 0)
        return rc;
    if (job.status == PB_JOB_RUNNING || !pb_job_may(job.status, PB_JOB_ACCEPTED))
        rc = state_error(&job, "retried", err);
    rc = rc ? rc : pb_dispose_restore(&job, runner->options.dirs, err);
    if (rc == 0) {
        (void)pb_job_move(&job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
        rc = pb_job_store_update(runner->options.store, &job, err);
    }
    if (rc == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: waits to run again", job.id);
        runner->options.on_change(runner->options.user, &job);
    }
    pb_job_fini(&job);
    pb_runner_kick(runner);
    return rc;
}
