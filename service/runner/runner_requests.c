/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What people ask of single jobs: to end one, to run one again. A request about a job whose state
 * is on its way to the disk waits for that, and is looked at anew then. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pb_request_answer(struct pb_runner *runner, struct pb_runner_request *request, int rc,
                       const struct pb_err *err)
{
    runner->options.on_answer(runner->options.user, request->ticket, request->id, rc, err);
    free(request);
}

static void refuse(struct pb_runner *runner, struct pb_runner_request *request,
                   const struct pb_job *job)
{
    struct pb_err err = {0};
    int rc = pb_fail(&err, PB_E_JOB_STATE, "job %s is %s and cannot be %s", job->id,
                     pb_job_status_name(job->status), request->retries ? "retried" : "cancelled");
    pb_request_answer(runner, request, rc, &err);
}

static struct pb_place *place_of(struct pb_runner *runner, const char *id)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        const struct pb_job *job = pb_place_job(&runner->places[i]);
        if (job != NULL && strcmp(job->id, id) == 0)
            return &runner->places[i];
    }
    return NULL;
}

/* A running job. One that no worker has just now ends at once: then its end is the answer. */
static void cancel_running(struct pb_runner *runner, struct pb_place *place,
                           struct pb_runner_request *request)
{
    pb_worker_slot_end(place->slot, PB_ENDING_CANCEL, PB_WORKER_SLOT_CANCEL_MS);
    struct pb_pending *pending = pb_pending_find(runner, request->id);
    if (pending == NULL) {
        pb_request_answer(runner, request, 0, NULL);
        return;
    }
    request->served = true;
    pb_pending_wait(pending, request);
}

static void cancel_looked(struct pb_pending *pending)
{
    if (pending->published)
        pb_pending_is_done(pending); /* too late */
    else
        pb_pending_dismiss(pending);
}

static void retried(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    struct pb_err err = pending->err;
    if (pending->rc == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: waits to run again", pending->job.id);
        runner->options.on_change(runner->options.user, &pending->job);
    }
    pb_pending_end(pending, pending->rc, &err);
    pb_runner_kick(runner);
}

/* A job that waits or is over. */
static void change_stored(struct pb_runner *runner, struct pb_runner_request *request,
                          struct pb_job *job)
{
    bool ran = job->attempts > 0 || job->error.code[0] != '\0';
    bool may = request->retries
                   ? job->status != PB_JOB_RUNNING && pb_job_may(job->status, PB_JOB_ACCEPTED)
                   : job->status == PB_JOB_ACCEPTED;
    if (!may) {
        refuse(runner, request, job);
        pb_job_fini(job);
        return;
    }
    if (request->identity[0] != '\0') /* the file is the one meant from now on */
        (void)snprintf(job->identity, sizeof job->identity, "%s", request->identity);
    struct pb_pending *pending = pb_pending_add(runner, job);
    if (pending == NULL) {
        struct pb_err err = {0};
        pb_request_answer(runner, request, pb_fail(&err, PB_E_MEMORY, "out of memory"), &err);
        return;
    }
    request->served = true;
    pb_pending_wait(pending, request);
    if (request->retries)
        pb_pending_work(pending, PB_PENDING_RESTORE, retried);
    else if (ran)
        pb_pending_work(pending, PB_PENDING_LOOK, cancel_looked);
    else
        pb_pending_dismiss(pending);
}

void pb_request_step(struct pb_runner *runner, struct pb_runner_request *request)
{
    struct pb_err err = {0};
    struct pb_job job;
    struct pb_pending *pending = pb_pending_find(runner, request->id);
    struct pb_place *place = place_of(runner, request->id);
    if (pending != NULL) {
        pb_pending_wait(pending, request);
    } else if (place != NULL && !request->retries) {
        cancel_running(runner, place, request);
    } else if (place != NULL) {
        refuse(runner, request, pb_place_job(place));
    } else {
        int rc = pb_job_store_find(runner->options.reader, request->id, &err, &job);
        if (rc != 0)
            pb_request_answer(runner, request, rc, &err);
        else
            change_stored(runner, request, &job);
    }
}

static void ask(struct pb_runner *runner, const struct pb_runner_request *asked)
{
    struct pb_err err = {0};
    struct pb_runner_request *request = malloc(sizeof *request);
    if (request == NULL) {
        int rc = pb_fail(&err, PB_E_MEMORY, "out of memory");
        runner->options.on_answer(runner->options.user, asked->ticket, asked->id, rc, &err);
        return;
    }
    *request = *asked;
    pb_request_step(runner, request);
}

void pb_runner_cancel(struct pb_runner *runner, uint64_t ticket, const char *id)
{
    struct pb_runner_request request = {.ticket = ticket};
    (void)snprintf(request.id, sizeof request.id, "%s", id);
    ask(runner, &request);
}

void pb_runner_retry(struct pb_runner *runner, uint64_t ticket, const char *id,
                     const char *identity)
{
    struct pb_runner_request request = {.ticket = ticket, .retries = true};
    (void)snprintf(request.id, sizeof request.id, "%s", id);
    (void)snprintf(request.identity, sizeof request.identity, "%s", identity);
    ask(runner, &request);
}
