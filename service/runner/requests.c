/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request about a job whose state is being stored waits for the end of that, and is decided by
 * the new state. */
#include "service/runner/requests.h"

#include "config/config.h"
#include "service/base/log.h"
#include "service/jobs/nodes.h"
#include "service/runner/again.h"
#include "service/runner/fetched.h"
#include "service/runner/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* waiter must be first: pending.c knows only this part */
struct request {
    struct pb_pending_waiter waiter;
    struct request *next_held; /* waits for the end of a take */
    struct pb_lookup lookup;   /* its job, as stored */
    bool silent; /* a part of the request for the job of an archive, which was answered */
    struct pb_requests *requests;
    enum pb_request_kind kind;
    uint64_t ticket;
    char id[PB_JOB_ID_BYTES];
    char identity[PB_JOB_IDENTITY_BYTES];
    int priority;
    bool dry_run;
};

/* Words for a change that is impossible in the job's state. */
static const char *const kinds[] = {[PB_REQUEST_CANCEL] = "cancelled",
                                    [PB_REQUEST_RETRY] = "retried",
                                    [PB_REQUEST_DROP] = "dropped",
                                    [PB_REQUEST_AGAIN] = "made again"};

static void step(struct request *request);

static void answer(struct request *request, int rc, const struct pb_err *err)
{
    const struct pb_requests *requests = request->requests;
    if (!request->silent)
        requests->on_answer(requests->answer_user, request->ticket, request->id, rc, err);
    free(request);
}

static void on_done(struct pb_pending_waiter *waiter, int rc, const struct pb_err *err)
{
    struct request *request = (struct request *)waiter;
    if (rc == 0 && !waiter->served)
        step(request);
    else
        answer(request, rc, err);
}

/* Returns true if the request concerns the input of the scene's job, which its archive's has. */
static bool is_for_archive(const struct request *request, const struct pb_job *job)
{
    return pb_job_is_scene(job) &&
           (request->kind == PB_REQUEST_RETRY || request->kind == PB_REQUEST_DROP);
}

static void refuse(struct request *request, const struct pb_job *job)
{
    struct pb_err err = {0};
    if (is_for_archive(request, job)) {
        int rc = pb_fail(&err, PB_E_JOB_STATE,
                         "job %s is one of the scenes in %.200s, and cannot be %s without the "
                         "others; use job %s, of the archive%s",
                         job->id, job->name, kinds[request->kind], job->archive,
                         request->kind == PB_REQUEST_RETRY
                             ? ": it computes the scenes that failed, were cancelled or were "
                               "skipped as duplicates"
                             : "");
        answer(request, rc, &err);
        return;
    }
    if (pb_job_has_scenes(job) && request->kind == PB_REQUEST_AGAIN) {
        int rc = pb_fail(&err, PB_E_JOB_STATE,
                         "job %s has no products itself; its report lists the jobs of its scenes, "
                         "which can be made again",
                         job->id);
        answer(request, rc, &err);
        return;
    }
    if (pb_job_has_scenes(job) && job->status == PB_JOB_SUCCESSFUL &&
        request->kind == PB_REQUEST_RETRY) {
        int rc = pb_fail(&err, PB_E_JOB_STATE,
                         "all scenes of job %s have products; its report lists their jobs, which "
                         "'pushbroom again' takes",
                         job->id);
        answer(request, rc, &err);
        return;
    }
    const bool is_done = request->kind == PB_REQUEST_RETRY && job->status == PB_JOB_SUCCESSFUL;
    int rc = pb_fail(&err, PB_E_JOB_STATE, "job %s is %s and cannot be %s%s%s%s", job->id,
                     pb_job_status_name(job->status), kinds[request->kind],
                     is_done ? "; 'pushbroom again " : "", is_done ? job->id : "",
                     is_done ? "' makes its products again" : "");
    answer(request, rc, &err);
}

/* Refuses to cancel a job whose input another part of the service still writes. */
static void refuse_growing(struct request *request)
{
    struct pb_err err = {0};
    const int rc = pb_fail(&err, PB_E_JOB_STATE,
                           "lines of the scene of job %s still arrive; cancel the job when its "
                           "scene is complete, or end the stream's writer",
                           request->id);
    answer(request, rc, &err);
}

static bool is_growing(const struct request *request, const struct pb_job *job)
{
    return request->kind == PB_REQUEST_CANCEL &&
           pb_live_is_growing(request->requests->env->config, job);
}

/* Cancels a running job. If its worker has gone, the run ends immediately, and its end is the
 * answer. */
static void cancel_running(struct request *request, struct pb_pool_slot *slot)
{
    pb_worker_slot_end(slot->worker, PB_ENDING_CANCEL, PB_WORKER_SLOT_CANCEL_MS);
    struct pb_pending *pending = pb_pending_find(request->requests->pending, request->id);
    if (pending == NULL) {
        answer(request, 0, NULL);
        return;
    }
    request->waiter.served = true;
    pb_pending_wait(pending, &request->waiter);
}

static void cancel_looked(void *user, struct pb_pending *pending)
{
    struct pb_requests *requests = user;
    if (pending->published) {
        pb_log(PB_LOG_NOTICE, "job %s: its products are in place; the cancel was too late",
               pending->job.id);
        pb_job_end_is_done(requests->ends, pending);
    } else
        pb_job_end_dismiss(requests->ends, pending);
}

static void retried(void *user, struct pb_pending *pending)
{
    struct pb_requests *requests = user;
    struct pb_err err = pending->err;
    if (pending->rc == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: waits to run again", pending->job.id);
        requests->env->on_change(requests->env->user, &pending->job);
    }
    pb_pending_end(pending, pending->rc, &err);
}

static void dropped(void *user, struct pb_pending *pending)
{
    const struct pb_requests *requests = user;
    struct pb_err err = pending->err;
    if (pending->rc == 0) {
        pb_log(PB_LOG_NOTICE, "job %s: its input was removed from quarantine", pending->job.id);
        requests->env->on_change(requests->env->user, &pending->job);
    }
    pb_pending_end(pending, pending->rc, &err);
}

/* Answers the requests that wait for the old job; the request that made the new job gets the new
 * job. */
static void made_again(void *user, struct pb_pending *pending)
{
    struct request *request = user;
    struct pb_requests *requests = request->requests;
    const struct pb_job *made = &pending->made;
    struct pb_err err = pending->err;
    if (pending->rc == 0 && made->id[0] != '\0') {
        pb_log(PB_LOG_NOTICE, "job %s: makes %s again, as job %s did, at priority %d", made->id,
               made->name, made->again, made->priority);
        pb_metrics_count(requests->env->metrics, made);
        requests->env->on_change(requests->env->user, made);
        (void)snprintf(request->id, sizeof request->id, "%s", made->id);
    }
    pb_pending_end(pending, pending->rc, &err);
}

static void make_again(struct request *request, struct pb_pending *pending)
{
    const struct pb_config *config = request->requests->env->config;
    struct pb_err err = {0};
    int rc = 0;
    if (pb_config_pipeline(config, pending->job.pipeline) == NULL)
        rc = pb_fail(&err, PB_E_INPUT_NO_PIPELINE,
                     "job %s went through pipeline '%s', which is not in %s any more",
                     pending->job.id, pending->job.pipeline, config->path);
    if (rc != 0) {
        pb_pending_end(pending, rc, &err);
        return;
    }
    pending->again = (struct pb_again){.priority = request->priority, .dry_run = request->dry_run};
    (void)snprintf(pending->again.identity, sizeof pending->again.identity, "%s",
                   request->identity);
    pb_pending_work(pending, PB_PENDING_AGAIN, made_again, request);
}

static bool may(const struct request *request, const struct pb_job *job)
{
    const enum pb_job_status status = job->status;
    if (is_for_archive(request, job))
        return false;
    if (request->kind == PB_REQUEST_AGAIN)
        return status == PB_JOB_SUCCESSFUL && !pb_job_has_scenes(job);
    if (request->kind == PB_REQUEST_CANCEL)
        return status == PB_JOB_ACCEPTED;
    if (request->kind == PB_REQUEST_RETRY && status == PB_JOB_SUCCESSFUL && pb_job_has_scenes(job))
        return request->lookup.skipped;
    return status != PB_JOB_RUNNING && pb_job_may(status, PB_JOB_ACCEPTED);
}

/* Finds a change of another job that uses the same archive: a retry moves the file that scenes are
 * made again from. NULL if absent. */
static struct pb_pending *find_other(const struct request *request, const struct pb_job *job)
{
    const struct pb_pending_list *list = request->requests->pending;
    if (request->kind == PB_REQUEST_AGAIN && job->archive[0] != '\0')
        return pb_pending_find(list, job->archive);
    if (request->kind == PB_REQUEST_RETRY && pb_job_has_scenes(job))
        return pb_pending_find_scene(list, job->id);
    return NULL;
}

static bool is_in(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return path != NULL && strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* Finds the other node that must handle the request: the one that runs the job, or the one whose
 * directories have its input. NULL: this one. */
static const char *other_node(const struct request *request, const struct pb_job *job)
{
    const struct pb_runner_env *env = request->requests->env;
    if (env->node[0] == '\0')
        return NULL;
    if (request->kind == PB_REQUEST_CANCEL && job->status == PB_JOB_RUNNING)
        return strcmp(job->node, env->node) != 0 ? job->node : NULL;
    if (request->kind == PB_REQUEST_CANCEL) {
        const struct pb_node *home = may(request, job) && pb_job_began(job)
                                         ? pb_fetched_home(env, job)
                                         : NULL; /* it looks for the products of the earlier run */
        return home != NULL ? home->name : NULL;
    }
    if (!job->owned || request->kind == PB_REQUEST_AGAIN || !may(request, job))
        return NULL;
    const struct pb_node *home = pb_nodes_home(env->nodes, job->manifest.input);
    return home != NULL && strcmp(home->name, env->node) != 0 ? home->name : NULL;
}

static void was_asked(void *user, struct pb_pending *pending)
{
    struct pb_err err = pending->err;
    (void)user;
    if (pending->rc == 0)
        pb_log(PB_LOG_NOTICE, "job %s: the request is for node %s", pending->job.id, pending->node);
    pb_pending_end(pending, pending->rc, &err);
}

/* Passes the request about the job (taken) to another node. Its answer is that this is stored. */
static void pass_on(struct request *request, struct pb_job *job, const char *node)
{
    struct pb_node_request asked = {.kind = request->kind};
    char name[PB_JOB_NODE_BYTES];
    (void)snprintf(name, sizeof name, "%s", node);
    (void)snprintf(asked.job, sizeof asked.job, "%s", job->id);
    (void)snprintf(asked.identity, sizeof asked.identity, "%s", request->identity);
    struct pb_pending *pending = pb_pending_add(request->requests->pending, job);
    if (pending == NULL) {
        struct pb_err err = {0};
        answer(request, pb_fail(&err, PB_E_MEMORY, "out of memory"), &err);
        return;
    }
    (void)snprintf(pending->node, sizeof pending->node, "%s", name);
    pending->request = asked;
    request->waiter.served = true;
    pb_pending_wait(pending, &request->waiter);
    pb_pending_work(pending, PB_PENDING_ASK, was_asked, request->requests);
}

/* Fails a request to make products again whose input another node is about to archive. */
static bool is_unarchived(const struct request *request, const struct pb_job *job)
{
    const struct pb_runner_env *env = request->requests->env;
    if (env->node[0] == '\0' || request->kind != PB_REQUEST_AGAIN)
        return false;
    const struct pb_node *home = pb_nodes_home(env->nodes, job->manifest.input);
    return home != NULL && is_in(job->manifest.input, home->work) &&
           !is_in(job->manifest.input, home->archive);
}

/* Changes a job (taken) that waits or is over. */
static void change_stored(struct request *request, struct pb_job *job)
{
    struct pb_requests *requests = request->requests;
    bool ran = pb_job_began(job);
    const char *node = other_node(request, job);
    if (node != NULL) {
        pass_on(request, job, node);
        return;
    }
    if (is_unarchived(request, job)) {
        struct pb_err err = {0};
        int rc =
            pb_fail(&err, PB_E_JOB_STATE, "the input of job %s is not in the archive yet", job->id);
        pb_job_fini(job);
        answer(request, rc, &err);
        return;
    }
    struct pb_pending *other = find_other(request, job);
    if (other != NULL) {
        pb_pending_wait(other, &request->waiter);
        pb_job_fini(job);
        return;
    }
    if (!may(request, job)) {
        refuse(request, job);
        pb_job_fini(job);
        return;
    }
    if (is_growing(request, job)) {
        refuse_growing(request);
        pb_job_fini(job);
        return;
    }
    if (request->identity[0] != '\0' && request->kind != PB_REQUEST_AGAIN)
        /* the job uses the file with this identity from now on */
        (void)snprintf(job->identity, sizeof job->identity, "%s", request->identity);
    enum pb_request_kind kind = request->kind;
    struct pb_pending *pending = pb_pending_add(requests->pending, job);
    if (pending == NULL) {
        struct pb_err err = {0};
        answer(request, pb_fail(&err, PB_E_MEMORY, "out of memory"), &err);
        return;
    }
    request->waiter.served = true;
    pb_pending_wait(pending, &request->waiter);
    if (kind == PB_REQUEST_AGAIN)
        make_again(request, pending);
    else if (kind == PB_REQUEST_RETRY)
        pb_pending_work(pending, PB_PENDING_RESTORE, retried, requests);
    else if (kind == PB_REQUEST_DROP)
        pb_pending_work(pending, PB_PENDING_DROP, dropped, requests);
    else if (ran)
        pb_pending_work(pending, PB_PENDING_LOOK, cancel_looked, requests);
    else
        pb_job_end_dismiss(requests->ends, pending);
}

static struct request *make(struct pb_requests *requests, enum pb_request_kind kind, const char *id)
{
    struct request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return NULL;
    request->waiter.done = on_done;
    request->requests = requests;
    request->kind = kind;
    (void)snprintf(request->id, sizeof request->id, "%s", id);
    return request;
}

/* Cancels the scenes that the archive's job waits for; the job ends when they are over. */
static void cancel_scenes(struct request *request)
{
    const struct pb_archive_ids *scenes = &request->lookup.scenes;
    struct pb_err err = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < scenes->n; i++) {
        struct request *one = make(request->requests, PB_REQUEST_CANCEL, scenes->id[i]);
        if (one == NULL) {
            rc = pb_fail(&err, PB_E_MEMORY, "out of memory");
        } else {
            one->silent = true;
            step(one);
        }
    }
    answer(request, rc, &err);
}

/* The job may have been taken or changed while it was read: the request is then decided by its new
 * state. */
static void found(void *user, struct pb_lookup *lookup)
{
    struct request *request = user;
    const struct pb_requests *requests = request->requests;
    struct pb_archive_ids scenes = lookup->scenes; /* the request frees the lookup */
    struct pb_job job = lookup->job;
    if (requests->queue->takes || pb_pending_find(requests->pending, request->id) != NULL ||
        pb_pool_find(requests->pool, request->id) != NULL) {
        if (lookup->rc == 0)
            pb_job_fini(&job);
        step(request);
    } else if (lookup->rc != 0) {
        const struct pb_err err = lookup->err;
        answer(request, lookup->rc, &err);
    } else if (request->kind == PB_REQUEST_CANCEL && job.status == PB_JOB_ACCEPTED &&
               pb_job_has_scenes(&job)) {
        pb_job_fini(&job);
        cancel_scenes(request);
    } else {
        change_stored(request, &job);
    }
    free(scenes.id);
}

/* Does the next step of the request (taken). While jobs are being taken, their states are unknown.
 */
static void step(struct request *request)
{
    struct pb_requests *requests = request->requests;
    struct pb_pending *pending = pb_pending_find(requests->pending, request->id);
    struct pb_pool_slot *slot = pb_pool_find(requests->pool, request->id);
    if (pending != NULL) {
        pb_pending_wait(pending, &request->waiter);
    } else if (slot != NULL && is_growing(request, pb_pool_job(slot))) {
        refuse_growing(request);
    } else if (slot != NULL && request->kind == PB_REQUEST_CANCEL) {
        cancel_running(request, slot);
    } else if (slot != NULL) {
        refuse(request, pb_pool_job(slot));
    } else if (requests->queue->takes) {
        struct request **last = &requests->held;
        while (*last != NULL)
            last = &(*last)->next_held;
        *last = request;
    } else {
        (void)snprintf(request->lookup.id, sizeof request->lookup.id, "%s", request->id);
        request->lookup.kind = PB_LOOKUP_JOB;
        request->lookup.then = found;
        request->lookup.user = request;
        pb_job_queue_find(requests->queue, &request->lookup);
    }
}

void pb_requests_go_on(struct pb_requests *requests)
{
    struct request *request = requests->held;
    requests->held = NULL;
    while (request != NULL) {
        struct request *next = request->next_held;
        request->next_held = NULL;
        step(request);
        request = next;
    }
}

void pb_requests_take(struct pb_requests *requests, const struct pb_node_request *asked)
{
    struct request *request = make(requests, asked->kind, asked->job);
    if (request == NULL)
        return;
    request->silent = true;
    (void)snprintf(request->identity, sizeof request->identity, "%s", asked->identity);
    step(request);
}

void pb_requests_ask(struct pb_requests *requests, const struct pb_job_request *asked)
{
    struct pb_err err = {0};
    struct request *request = make(requests, asked->kind, asked->id);
    if (request == NULL) {
        int rc = pb_fail(&err, PB_E_MEMORY, "out of memory");
        requests->on_answer(requests->answer_user, asked->ticket, asked->id, rc, &err);
        return;
    }
    request->ticket = asked->ticket;
    request->priority = asked->priority;
    request->dry_run = asked->dry_run;
    (void)snprintf(request->identity, sizeof request->identity, "%s", asked->identity);
    step(request);
}
