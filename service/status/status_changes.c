/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the changes that clients request, before they are passed to the loop: the user, the owner
 * of the job, and for a file the right of the client to read it. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/status/status_methods_parts.h"
#include "config/base/json_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int push(struct pb_status_methods *methods, const struct pb_task *task, struct pb_err *err)
{
    return pb_tasks_push(methods->tasks, task) == 0 ? 0
                                                    : pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int may_wait(const struct pb_status_methods *methods, const struct pb_call *call,
                    struct pb_err *err)
{
    const enum pb_rights rights = pb_facts_rights(methods->facts, &call->peer);
    const enum pb_method method = call->request->method;
    const bool acts = method == PB_METHOD_JOB_CANCEL || method == PB_METHOD_JOB_RETRY ||
                      method == PB_METHOD_JOB_AGAIN || method == PB_METHOD_JOB_DROP ||
                      method == PB_METHOD_JOB_SUBMIT;
    if (rights == PB_RIGHTS_VIEWER || (rights == PB_RIGHTS_ACTOR && !acts))
        return pb_fail(err, PB_E_SERVICE_DENIED, "user %lld may %s: it is service.web_user",
                       (long long)call->peer.uid,
                       rights == PB_RIGHTS_VIEWER ? "query only" : "query and change jobs only");
    return call->may_wait ? 0
                          : pb_fail(err, PB_E_SERVICE_BUSY,
                                    "%d requests of user %lld are being worked on; wait for a "
                                    "reply",
                                    PB_STATUS_USER_CALLS_MAX, (long long)call->peer.uid);
}

/* Holds the task until the file was checked. */
static int check_first(struct pb_status_methods *methods, struct pb_call *call,
                       const struct pb_task *task, const char *path, enum pb_check_proof proof,
                       struct pb_err *err)
{
    int rc = pb_tasks_hold(&methods->held, task);
    if (rc != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    rc = methods->checker->fd < 0
             ? -EPIPE
             : pb_checker_ask(methods->checker, call->ticket, path, &call->peer, call->fd, proof);
    if (rc == 0)
        return 0;
    pb_tasks_drop(pb_tasks_release(&methods->held, call->ticket));
    return rc == -EAGAIN || rc == -ENOBUFS
               ? pb_fail(err, PB_E_SERVICE_BUSY, "too many files are being checked")
               : pb_fail(err, PB_E_SERVICE_STATE, "the process that looks at files is gone: %s",
                         strerror(-rc));
}

/* Checks the right to set the priority: a higher one may delay jobs of other users. */
static int check_priority(const struct pb_status_methods *methods, const struct pb_call *call,
                          struct pb_err *err)
{
    if (call->request->priority <= 0 || pb_facts_may_change(methods->facts, &call->peer, -1))
        return 0;
    return pb_fail(err, PB_E_SERVICE_DENIED,
                   "user %lld may lower the priority of a job, not raise it above 0; root, the "
                   "service's user and service.admins may",
                   (long long)call->peer.uid);
}

/* Returns the job of the call. While the store does not answer, jobs that run are found by their
 * complete ids; those of the picture are not taken, because their change could not be stored. */
static const struct pb_job *find(const struct pb_status_methods *methods,
                                 const struct pb_call *call, struct pb_err *err)
{
    const struct pb_reading *reading = call->reading;
    if (reading->rc == 0 && reading->as_of_ms == 0)
        return &reading->job;
    const struct pb_job *live = reading->rc == 0 || reading->err.code == PB_E_SERVICE_STATE
                                    ? pb_overlay_find(&methods->overlay, call->request->job)
                                    : NULL;
    if (live == NULL && reading->rc != 0)
        *err = reading->err;
    else if (live == NULL)
        (void)pb_fail(err, PB_E_SERVICE_STATE, "%s, so nothing was changed; try again when it does",
                      methods->why);
    return live;
}

int pb_status_change(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    struct pb_task task = {.ticket = call->ticket,
                           .method = call->request->method,
                           .priority = (int)call->request->priority,
                           .dry_run = call->request->dry_run};
    const bool runs = task.method == PB_METHOD_JOB_RETRY || task.method == PB_METHOD_JOB_AGAIN;
    int rc = may_wait(methods, call, err);
    rc = rc ? rc : check_priority(methods, call, err);
    const struct pb_job *job = rc == 0 ? find(methods, call, err) : NULL;
    if (job == NULL)
        return rc ? rc : -EIO;
    task.uid = call->peer.uid;
    (void)snprintf(task.job, sizeof task.job, "%s", job->id);
    if (!pb_facts_may_change(methods->facts, &call->peer, job->uid))
        return pb_fail(err, PB_E_SERVICE_DENIED, "job %s is not of user %lld", job->id,
                       (long long)call->peer.uid);
    return runs && job->identity[0] != '\0'
               ? check_first(methods, call, &task, job->manifest.input, PB_CHECK_BY_USER, err)
               : push(methods, &task, err);
}

/* pushbroom-web sees only products: the file that it submits for a person is checked with the
 * rights of the service. */
static enum pb_check_proof proof_of(const struct pb_status_methods *methods,
                                    const struct pb_call *call)
{
    return call->request->descriptor ? PB_CHECK_BY_DESCRIPTOR
           : pb_facts_rights(methods->facts, &call->peer) == PB_RIGHTS_ACTOR ? PB_CHECK_BY_SERVICE
                                                                             : PB_CHECK_BY_USER;
}

int pb_status_submit(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    const struct pb_request *request = call->request;
    struct pb_task task = {.ticket = call->ticket, .method = PB_METHOD_JOB_SUBMIT};
    char room[PB_JSON_PATH_BYTES];
    const char *path = pb_json_path_of(request->input, room);
    int rc = may_wait(methods, call, err);
    if (rc == 0 && (path == NULL || path[0] != '/'))
        rc = pb_fail(err, PB_E_USAGE, "%.200s: the service needs an absolute path", request->input);
    if (rc == 0 && strlen(path) >= PB_CHECKER_PATH_BYTES)
        rc = pb_fail(err, PB_E_USAGE, "the path is too long");
    rc = rc ? rc : check_priority(methods, call, err);
    if (rc != 0)
        return rc;
    char *input = strdup(path);
    char *pipeline = request->pipeline ? strdup(request->pipeline) : NULL;
    task.uid = call->peer.uid;
    task.priority = (int)request->priority;
    task.input = input;
    task.pipeline = pipeline;
    rc = input == NULL ? pb_fail(err, PB_E_MEMORY, "out of memory")
                       : check_first(methods, call, &task, input, proof_of(methods, call), err);
    call->wants_descriptor = rc == 0 && request->descriptor;
    free(input);
    free(pipeline);
    return rc;
}

int pb_status_drain(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    const struct pb_request *request = call->request;
    const struct pb_task task = {.ticket = call->ticket,
                                 .method = PB_METHOD_SERVICE_DRAIN,
                                 .uid = call->peer.uid,
                                 .now = request->now,
                                 .off = request->off};
    int rc = may_wait(methods, call, err);
    if (rc != 0)
        return rc;
    if (!pb_facts_may_change(methods->facts, &call->peer, -1))
        return pb_fail(err, PB_E_SERVICE_DENIED,
                       "user %lld may not drain the service; root, the service's user and "
                       "service.admins may",
                       (long long)call->peer.uid);
    if (request->now && request->off)
        return pb_fail(err, PB_E_USAGE, "now and off exclude each other");
    return push(methods, &task, err);
}

int pb_status_push_ack(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    const struct pb_request *request = call->request;
    struct pb_task task = {
        .ticket = call->ticket, .method = PB_METHOD_EVENT_ACK, .uid = call->peer.uid};
    int rc = may_wait(methods, call, err);
    if (rc != 0)
        return rc;
    task.target = (char *)request->target; /* push copies it */
    task.seq = request->seq;
    task.given_up = request->given_up;
    return push(methods, &task, err);
}

/* A retry that cannot be checked keeps its present identity: the worker refuses another file. */
static void on_checked(struct pb_status_methods *methods, const struct pb_check_result *result)
{
    struct pb_outcome outcome = {0};
    struct pb_task *task = pb_tasks_release(&methods->held, result->ticket);
    if (task == NULL)
        return;
    bool keeps = (task->method == PB_METHOD_JOB_RETRY || task->method == PB_METHOD_JOB_AGAIN) &&
                 result->code == PB_E_SERVICE_DENIED;
    if (result->code != PB_OK && !keeps)
        (void)pb_fail(&outcome.err, result->code, "%s", result->text);
    else if (!keeps)
        (void)snprintf(task->identity, sizeof task->identity, "%s", result->identity);
    task->is_folder = result->is_folder;
    if (outcome.err.code != PB_OK || push(methods, task, &outcome.err) != 0)
        pb_status_answer(methods->status, task->ticket, &outcome);
    pb_tasks_drop(task);
}

static void fail_held(struct pb_status_methods *methods, const char *why)
{
    struct pb_task *task;
    while ((task = STAILQ_FIRST(&methods->held)) != NULL) {
        struct pb_outcome outcome = {0};
        (void)pb_fail(&outcome.err, PB_E_SERVICE_STATE, "the process that looks at files %s", why);
        pb_status_answer(methods->status, task->ticket, &outcome);
        pb_tasks_drop(pb_tasks_release(&methods->held, task->ticket));
    }
}

static void start_anew(struct pb_status_methods *methods, const char *why)
{
    pb_log(PB_LOG_ERROR, "status: the process that checks submitted files %s; it is started again",
           why);
    fail_held(methods, why);
    pb_checker_stop(methods->checker); /* this also removes the descriptor from epoll */
    if (pb_checker_start(methods->checker) == 0)
        (void)pb_status_poll(methods->status, methods->checker->fd);
}

void pb_status_read_checks(struct pb_status_methods *methods)
{
    struct pb_check_result result;
    int rc;
    while ((rc = pb_checker_read(methods->checker, &result)) > 0)
        on_checked(methods, &result);
    if (rc < 0)
        start_anew(methods, "ended");
}

void pb_status_watch_checks(struct pb_status_methods *methods)
{
    if (!STAILQ_EMPTY(&methods->held))
        pb_status_read_checks(methods); /* results that arrived while this process was stopped */
    const struct pb_task *oldest = STAILQ_FIRST(&methods->held);
    if (oldest != NULL && pb_clock_mono_ms() - oldest->since_ms >= PB_CHECKER_HANGS_MS)
        start_anew(methods, "does not answer");
}
