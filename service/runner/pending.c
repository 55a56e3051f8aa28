/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A job's new state is stored by libuv's pool, never by the loop. A change that the store
 * refuses (a full disk, a locked file) is kept and shown unchanged, no second run of it is started,
 * and the runner's tick tries again. No job runs before its start is stored, so at most as many
 * changes are kept as jobs run at the same time. A restart in between finds the older state and
 * repeats the work.
 */
#include "service/runner/pending.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/publish/publish_root.h"
#include "service/base/log.h"
#include "service/inbox/input_store.h"
#include "service/inbox/intake.h"
#include "service/jobs/again_rows.h"
#include "service/jobs/archive_rows.h"
#include "service/jobs/kept.h"
#include "service/jobs/published.h"
#include "service/runner/fetched.h"
#include "service/runner/worker_pool.h"
#include "service/worker/joined.h"
#include "service/worker/outcome.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TROUBLE       "jobs"    /* changes that are kept */
#define PERMITS       "permits" /* runs that wait for one */
#define SAVE_EVERY_MS 5000
#define CHANGES_MAX   2 /* changes of one job: its run may end before the change of its start */
#define ASK_AGAIN_MS  500

static bool is_finished(const struct pb_job *job)
{
    return (PB_JOB_MASK(job->status) & PB_JOB_MASK_FINISHED) != 0;
}

/* --- on the pool --- */

/* Describes the other files of the job's scene, and the contents that its input is compared with.
 */
static int prepare(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    struct pb_job *job = &pending->job;
    int rc = job->set_id[0] != '\0' ? pb_joined_describe(list->store, job, &pending->err) : 0;
    if (rc == 0 && pending->fetches)
        rc = pb_fetched_check_parts(list->store, job, &pending->err);
    if (rc == 0 && pending->duplicates_ms > 0) {
        free(pending->known);
        pending->known =
            pb_duplicates_known(list->store, job, pb_clock_wall_ms() - pending->duplicates_ms);
    }
    return rc;
}

static int store_state(struct pb_pending *pending)
{
    int rc = pb_store_finish(pending->list->store, &pending->job, &pending->err);
    pending->stored = pending->stored || rc == 0;
    return rc;
}

/* Returns true if the list of a folder is needed when the place of the folder is stored: for
 * retention, a drop from quarantine, and files that join a set. Lists of large scenes would fill
 * the store. */
static bool needs_list(const struct pb_pending *pending)
{
    const struct pb_job *job = &pending->job;
    const bool archived = job->status == PB_JOB_SUCCESSFUL || pb_job_is_skipped(job);
    return !archived || pending->retains || job->set_id[0] != '\0';
}

/* Returns true if the input is in work/ of another node, which then puts it away. */
static bool is_elsewhere(const struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    const struct pb_job *job = &pending->job;
    const char *work = list->dirs->work, *input = job->manifest.input;
    const size_t n = strlen(work);
    return pb_store_is_shared(list->store) && job->owned && input != NULL &&
           (strncmp(input, work, n) != 0 || input[n] != '/');
}

/* Moves the input of a finished job, whose end is already stored, and stores its new place. */
static int put_away(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    struct pb_job *job = &pending->job;
    if (is_elsewhere(pending))
        return 0;
    if (pb_input_store_put(job, list->dirs, pending->on_success, &pending->dispose_err) != 0)
        return 0; /* the sweep of work/ tries again */
    pending->disposed = true;
    pb_input_lists_moved(&pending->lists, job);
    pending->lists.is_over = pending->lists.input.n > 1 && !needs_list(pending);
    return pb_kept_update(list->store, job, &pending->lists, &pending->err);
}

/* The products of a job of another node are there; the copies here have the same bytes. */
static void describe(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    char files[PB_FILES_PATH_BYTES];
    if (pending->job.home == NULL) {
        pb_published_describe(&pending->job, list->dirs->products, NULL);
        return;
    }
    pb_fetched_products(list->dirs->work, &pending->job, files);
    pb_published_describe(&pending->job, pending->job.home_products, files);
}

/* Stores the state first: an end that is not on the disk did not happen yet, and the input stays
 * in work/, so that a restart runs the job again. The list of the input's files is stored with it,
 * so that a restart finds an input whose move was not stored. */
static int store_end(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    struct pb_job *job = &pending->job;
    if (job->status == PB_JOB_SUCCESSFUL && !pending->stored)
        pb_duplicates_remember(list->store, job, pending->duplicates_ms > 0);
    if (job->status == PB_JOB_SUCCESSFUL && !pending->stored && job->published == NULL)
        describe(pending);
    if (!pending->disposed && pending->lists.input.n == 0) {
        pb_input_lists_fini(&pending->lists);
        pb_input_lists_make(job, &pending->lists);
    }
    int rc = pb_kept_update(list->store, job, &pending->lists, &pending->err);
    pending->stored = pending->stored || rc == 0;
    if (rc != 0 || pending->disposed || pb_job_is_scene(job)) /* the archive's job moves it */
        return rc;
    return put_away(pending);
}

static int store(struct pb_pending *pending)
{
    const int rc = is_finished(&pending->job) ? store_end(pending) : store_state(pending);
    if (pending->job.home != NULL && (pending->stored || rc == -ESTALE))
        pb_fetched_remove(pending->list->dirs->work, &pending->job);
    return rc;
}

/* Fails if a scene of a successful archive is being made again, from the input that would move. */
static int check_unused(struct pb_pending *pending)
{
    const struct pb_job *job = &pending->job;
    if (job->status != PB_JOB_SUCCESSFUL || !job->owned || job->manifest.input == NULL)
        return 0;
    const int rc = pb_again_holds(pending->list->store, job->manifest.input, &pending->err);
    return rc <= 0 ? rc
                   : pb_fail(&pending->err, PB_E_JOB_STATE,
                             "scenes of job %s are being made again; retry it when they are over",
                             job->id);
}

static int restore(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    struct pb_job *job = &pending->job;
    struct pb_input_lists lists;
    int rc = check_unused(pending);
    if (rc != 0)
        return rc;
    rc = pb_kept_lists(list->store, job, &pending->err, &lists);
    if (rc == 0)
        (void)pb_input_store_find(job, list->dirs, &lists);
    pb_input_lists_fini(&lists);
    rc = rc ? rc : pb_input_store_restore(job, list->dirs, &pending->err);
    if (rc != 0)
        return rc;
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    job->anyway = true;
    if (job->set_id[0] != '\0') /* products may have been made of its scene meanwhile */
        rc = pb_set_parts_join(list->store, job, pending->reopen_ms, &pending->err);
    return rc ? rc : pb_store_finish(list->store, job, &pending->err);
}

static int drop(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    struct pb_job *job = &pending->job;
    struct pb_input_lists lists;
    int rc = pb_kept_lists(list->store, job, &pending->err, &lists);
    rc = rc ? rc : pb_input_store_drop(job, list->dirs, &lists, &pending->err);
    pb_input_lists_fini(&lists);
    const int64_t now = pb_clock_wall_ms();
    if (rc == 0 && job->owned)
        pb_job_drop(job, now);
    if (rc == 0 && job->owned)
        return pb_archive_rows_drop(list->store, job, now, &pending->err);
    return rc ? rc : pb_store_finish(list->store, job, &pending->err);
}

static int again(struct pb_pending *pending)
{
    pending->again.work = pending->list->dirs->work;
    return pb_again_store(pending->list->store, &pending->again, &pending->job, &pending->err,
                          &pending->made);
}

/* The report of the run has the names of the scenes, and the archive if its checksum is known. */
static int split(struct pb_pending *pending)
{
    struct pb_json_value *report = NULL;
    struct pb_scene_manifest read = {.n_roots = 0};
    const char *text = pending->job.report;
    int rc = text != NULL ? pb_json_parse(text, strlen(text), strlen(text), &report) : -EINVAL;
    const struct pb_json_value *scenes = pb_json_get(report, "scenes", NULL);
    const size_t n = pb_json_count(scenes);
    const char **names = calloc(n + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < n; i++)
        names[i] = pb_json_text_of(pb_json_at(scenes, i));
    const struct pb_json_value *manifest = pb_json_get(report, "manifest", NULL);
    if (rc == 0 && manifest != NULL)
        rc = pb_scene_manifest_read(manifest, &read);
    const struct pb_archive_split what = {.archive = &pending->job,
                                          .scenes = names,
                                          .n = n,
                                          .read = &read,
                                          .wall_ms = pb_clock_wall_ms(),
                                          .make_id = pb_intake_make_id};
    if (rc != 0 || names == NULL)
        rc = pb_fail(&pending->err, PB_E_MEMORY, "out of memory for the scenes of an archive");
    else
        rc = pb_archive_rows_split(pending->list->store, &what, &pending->err, &pending->scenes,
                                   &pending->n_scenes);
    free(names);
    pb_scene_manifest_fini(&read);
    pb_json_release(report);
    return rc;
}

/* -ESTALE: the archive's job does not wait for its scenes any more, because its end was found in
 * the meantime by another look. */
static int sum(struct pb_pending *pending)
{
    struct pb_job now;
    int rc = pb_job_store_find(pending->list->store, pending->job.id, &pending->err, &now);
    if (rc != 0)
        return pending->err.code == PB_E_JOB_UNKNOWN ? -ESTALE : rc;
    const bool waits = now.status == PB_JOB_ACCEPTED && pb_job_has_scenes(&now);
    pb_job_fini(&now);
    if (!waits)
        return -ESTALE;
    return pb_archive_rows_sum(pending->list->store, &pending->job, &pending->err,
                               &pending->status);
}

/* Returns true if the directory of products that the nodes share is not there. */
static bool is_unseen(const struct pb_pending *pending)
{
    const char *root = pending->list->env->root;
    return root != NULL && root[0] != '\0' &&
           pb_publish_root_look(pending->products, root, NULL) != 0;
}

/* A look fences the runs of the job so far; therefore it is left out if a later one has begun. If
 * the store does not answer, its refusal of the change that follows drops the run. */
static int look(struct pb_pending *pending)
{
    struct pb_job *job = &pending->job;
    if (job->status == PB_JOB_RUNNING &&
        pb_store_permit(pending->list->store, job->id, job->epoch, NULL) == -ESTALE)
        return -ESTALE;
    bool unseen = is_unseen(pending);
    pending->published = pb_outcome_is_published(job, pending->products, pending->path);
    unseen = unseen || is_unseen(pending); /* it may be mounted or not for a moment */
    pending->unseen = !pending->published && unseen;
    return 0;
}

static int ask(struct pb_pending *pending)
{
    return pb_nodes_ask(pending->list->store, pending->node, &pending->request, &pending->err);
}

static void do_step(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    pending->err = pending->dispose_err = (struct pb_err){0};
    if (pending->step == PB_PENDING_LOOK) {
        pending->rc = look(pending);
        return;
    }
    if (pending->step == PB_PENDING_COMPARE) {
        pending->verdict = pending->job.set_id[0] != '\0'
                               ? pb_joined_judge(list->store, &pending->job)
                               : pb_duplicates_judge(list->store, &pending->job);
        return;
    }
    (void)pthread_rwlock_rdlock(list->moves);
    pending->rc = pending->step == PB_PENDING_STORE     ? store(pending)
                  : pending->step == PB_PENDING_PREPARE ? prepare(pending)
                  : pending->step == PB_PENDING_DROP    ? drop(pending)
                  : pending->step == PB_PENDING_AGAIN   ? again(pending)
                  : pending->step == PB_PENDING_SPLIT   ? split(pending)
                  : pending->step == PB_PENDING_SUM     ? sum(pending)
                  : pending->step == PB_PENDING_ASK     ? ask(pending)
                                                        : restore(pending);
    (void)pthread_rwlock_unlock(list->moves);
}

static void work(uv_work_t *request)
{
    do_step(request->data);
}

/* --- on the loop --- */

static void report(struct pb_pending *pending)
{
    const struct pb_err *why = &pending->dispose_err;
    if (pending->step != PB_PENDING_STORE || why->code == PB_OK)
        return;
    pb_log(PB_LOG_ERROR, "job %s: %s; this is tried again", pending->job.id, why->msg);
    /* cleared by pb_adopt_report */
    pb_trouble_raise(pending->list->troubles, "work", why->code, why->msg);
}

/* Drops a change that the store refused because the job was started or changed meanwhile. Requests
 * that wait for it are decided by the present state. */
static void drop_late(struct pb_pending *pending)
{
    const struct pb_pending_list *list = pending->list;
    pb_log(PB_LOG_WARNING,
           "job %s: the job store has a later run of it, or its end; the result of run %lld is "
           "dropped",
           pending->job.id, (long long)pending->job.epoch);
    for (struct pb_pending_waiter *w = pending->waiters; w != NULL; w = w->next)
        w->served = false;
    if (pending->slot != NULL)
        pending->slot->reserved = false;
    list->on_dropped(list->user, &pending->job);
    pb_pending_end(pending, 0, NULL);
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_pending *pending = request->data;
    (void)status;
    pending->works = false;
    pending->list->n_works--;
    if (pending->rc == -ESTALE && pending->err.code == PB_OK) {
        drop_late(pending);
        return;
    }
    report(pending);
    pending->then(pending->user, pending);
}

static struct pb_pending *add(struct pb_pending_list *list, struct pb_pending *pending,
                              struct pb_job *job)
{
    *pending = (struct pb_pending){.list = list};
    pending->work.data = pending;
    pending->job = *job;
    memset(job, 0, sizeof *job);
    pending->next = list->first;
    list->first = pending;
    list->n++;
    return pending;
}

struct pb_pending *pb_pending_add(struct pb_pending_list *list, struct pb_job *job)
{
    struct pb_pending *pending = malloc(sizeof *pending);
    if (pending != NULL)
        return add(list, pending, job);
    pb_job_fini(job);
    return NULL;
}

static void keep_spare(struct pb_pending_list *list, struct pb_pending *pending)
{
    pending->next = list->spare;
    list->spare = pending;
    list->n_spare++;
}

int pb_pending_reserve(struct pb_pending_list *list, int64_t n)
{
    n *= CHANGES_MAX;
    while (list->n_spare < n) {
        struct pb_pending *pending = malloc(sizeof *pending);
        if (pending == NULL)
            return -ENOMEM;
        keep_spare(list, pending);
    }
    list->n_reserved = n;
    return 0;
}

struct pb_pending *pb_pending_add_taken(struct pb_pending_list *list, struct pb_job *job)
{
    struct pb_pending *pending = list->spare;
    assert(pending != NULL);
    list->spare = pending->next;
    list->n_spare--;
    return add(list, pending, job);
}

void pb_pending_work(struct pb_pending *pending, enum pb_pending_step step,
                     void (*then)(void *user, struct pb_pending *pending), void *user)
{
    struct pb_pending_list *list = pending->list;
    (void)snprintf(pending->products, sizeof pending->products, "%s", list->dirs->products);
    const struct pb_pipeline_config *pipeline =
        pb_config_pipeline(list->env->config, pending->job.pipeline);
    (void)snprintf(pending->path, sizeof pending->path, "%s",
                   pipeline ? pipeline->output.path : PB_OUTPUT_PATH_DEFAULT);
    pending->reopen_ms = pipeline ? pipeline->input.complete.reopen_ms : 0;
    const struct pb_service_config *service = &list->env->config->service;
    pending->on_success = service->on_success;
    pending->fetches = service->has_fetch;
    pending->retains = service->retention.done_ms > 0;
    pending->duplicates_ms = service->has_duplicates ? service->duplicates.keep_ms : 0;
    pending->step = step;
    pending->then = then;
    pending->user = user;
    pending->works = true;
    list->n_works++;
    (void)uv_queue_work(list->loop, &pending->work, work, on_worked);
}

struct pb_pending *pb_pending_find(const struct pb_pending_list *list, const char *id)
{
    struct pb_pending *pending = list->first;
    while (pending != NULL && strcmp(pending->job.id, id) != 0)
        pending = pending->next;
    return pending;
}

struct pb_pending *pb_pending_find_scene(const struct pb_pending_list *list, const char *archive)
{
    struct pb_pending *pending = list->first;
    while (pending != NULL && strcmp(pending->job.archive, archive) != 0)
        pending = pending->next;
    return pending;
}

int pb_pending_count_free(const struct pb_pending_list *list)
{
    int n = 0;
    for (const struct pb_pending *pending = list->first; pending != NULL; pending = pending->next)
        n += pending->slot == NULL;
    return n;
}

void pb_pending_list_blocks(const struct pb_pending_list *list, struct pb_pending_block *out)
{
    for (const struct pb_pending *pending = list->first; pending != NULL;
         pending = pending->next, out++) {
        const bool blocks = pending->works || pending->failed;
        (void)snprintf(out->id, sizeof out->id, "%s", pending->job.id);
        (void)snprintf(out->scene, sizeof out->scene, "%s", blocks ? pending->job.scene : "");
    }
}

/* Tries to store a kept change again. */
static void save_again(struct pb_pending *pending)
{
    if (pending->failed && !pending->works)
        pb_pending_work(pending, PB_PENDING_STORE, pending->then, pending->user);
}

static void take_out(struct pb_pending *pending)
{
    struct pb_pending **link = &pending->list->first;
    while (*link != pending)
        link = &(*link)->next;
    *link = pending->next;
    pending->list->n--;
}

static void end_waiters(struct pb_pending_waiter *waiter, int rc, const struct pb_err *err)
{
    while (waiter != NULL) {
        struct pb_pending_waiter *next = waiter->next;
        waiter->next = NULL;
        waiter->done(waiter, rc, err);
        waiter = next;
    }
}

static void fini(struct pb_pending *pending)
{
    pb_job_fini(&pending->job);
    pb_input_lists_fini(&pending->lists);
    pb_job_fini(&pending->made);
    pb_archive_rows_free(pending->scenes, pending->n_scenes);
    pb_config_destroy(pending->config);
    free(pending->known);
}

/* Clears the trouble if no change is kept. */
static void clear_trouble(struct pb_pending_list *list)
{
    const struct pb_pending *pending = list->first;
    while (pending != NULL && !pending->failed)
        pending = pending->next;
    if (pending == NULL)
        pb_trouble_clear(list->troubles, TROUBLE);
}

void pb_pending_end(struct pb_pending *pending, int rc, const struct pb_err *err)
{
    struct pb_pending_list *list = pending->list;
    struct pb_pending_waiter *waiters = pending->waiters;
    take_out(pending);
    if (pending->failed) /* also one that the store refused */
        clear_trouble(list);
    end_waiters(waiters, rc, err);
    fini(pending);
    if (list->n_spare < list->n_reserved)
        keep_spare(list, pending);
    else
        free(pending);
    list->on_settled(list->user);
}

void pb_pending_answer(struct pb_pending *pending)
{
    struct pb_pending_waiter **link = &pending->waiters;
    while (*link != NULL) {
        struct pb_pending_waiter *waiter = *link;
        if (!waiter->served) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->next = NULL;
        waiter->done(waiter, 0, NULL);
    }
}

void pb_pending_wait(struct pb_pending *pending, struct pb_pending_waiter *waiter)
{
    struct pb_pending_waiter **link = &pending->waiters;
    while (*link != NULL)
        link = &(*link)->next;
    *link = waiter;
    save_again(pending); /* a client does not wait for the next tick */
}

static void keep(struct pb_pending *pending)
{
    struct pb_pending_list *list = pending->list;
    struct pb_pending_waiter *waiters = pending->waiters;
    if (!pending->failed)
        pb_log(PB_LOG_ERROR,
               "job %s: %s; this is tried again, and a restart before that repeats it",
               pending->job.id, pending->err.msg);
    pb_trouble_raise(list->troubles, TROUBLE, pending->err.code, pending->err.msg);
    pending->failed = true;
    pending->waiters = NULL;
    list->save_at_ms = pb_clock_mono_ms() + SAVE_EVERY_MS;
    list->on_kept(list->user);
    end_waiters(waiters, pending->rc, &pending->err);
}

void pb_pending_settle(struct pb_pending *pending)
{
    if (pending->rc != 0) {
        keep(pending);
        return;
    }
    if (pending->failed)
        pb_log(PB_LOG_NOTICE, "job %s: stored now as %s", pending->job.id,
               pb_job_status_name(pending->job.status));
    pb_pending_end(pending, 0, NULL);
}

/* --- permits -------------------------------------------------------------------------------- */

/* After a failure the others fail, too: each try may wait for a lock. */
static void ask_store(uv_work_t *request)
{
    struct pb_pending_list *list = request->data;
    struct pb_permits *permits = &list->permits;
    int failed = 0;
    permits->err = (struct pb_err){0};
    for (int i = 0; i < permits->n; i++) {
        int rc = failed;
        if (rc == 0)
            rc = pb_store_permit(list->store, permits->at[i].id, permits->at[i].epoch,
                                 &permits->err);
        permits->at[i].rc = rc;
        failed = rc == -ESTALE ? 0 : rc;
    }
}

static const struct pb_job *wants_permit(const struct pb_pending_list *list, int slot)
{
    struct pb_worker_slot *worker = list->pool->slots[slot].worker;
    return pb_worker_slot_wants_permit(worker) ? pb_worker_slot_job(worker) : NULL;
}

/* Answers the runs that still wait. Returns the first of those without an answer; NULL if all have
 * one. */
static const struct pb_job *answer_permits(struct pb_pending_list *list)
{
    const struct pb_job *unanswered = NULL;
    for (int i = 0; i < list->permits.n; i++) {
        const int slot = list->permits.at[i].slot, rc = list->permits.at[i].rc;
        const struct pb_job *job = wants_permit(list, slot);
        if (job == NULL || strcmp(job->id, list->permits.at[i].id) != 0 ||
            job->epoch != list->permits.at[i].epoch)
            continue;
        if (rc == 0 || rc == -ESTALE)
            pb_worker_slot_permit(list->pool->slots[slot].worker, rc == 0);
        else if (unanswered == NULL)
            unanswered = job;
    }
    return unanswered;
}

static void on_asked(uv_work_t *request, int status)
{
    struct pb_pending_list *list = request->data;
    struct pb_permits *permits = &list->permits;
    char text[512];
    (void)status;
    list->n_works--;
    permits->works = false;
    const struct pb_job *job = answer_permits(list);
    permits->failed = job != NULL;
    if (job == NULL) {
        pb_trouble_clear(list->troubles, PERMITS);
        pb_pending_permit(list); /* other runs may have begun to wait */
        return;
    }
    permits->at_ms = pb_clock_mono_ms() + ASK_AGAIN_MS;
    (void)snprintf(text, sizeof text,
                   "job %s has its products ready, and waits until the job store permits it to "
                   "publish them: %.300s",
                   job->id, permits->err.msg);
    pb_trouble_raise(list->troubles, PERMITS, permits->err.code, text);
}

void pb_pending_permit(struct pb_pending_list *list)
{
    struct pb_permits *permits = &list->permits;
    if (permits->works)
        return;
    permits->n = 0;
    for (int i = 0; i < PB_POOL_SLOTS_MAX; i++) {
        const struct pb_job *job = wants_permit(list, i);
        if (job == NULL)
            continue;
        permits->at[permits->n].slot = i;
        permits->at[permits->n].epoch = job->epoch;
        (void)snprintf(permits->at[permits->n].id, PB_JOB_ID_BYTES, "%s", job->id);
        permits->n++;
    }
    if (permits->n == 0) {
        permits->failed = false;
        pb_trouble_clear(list->troubles, PERMITS);
        return;
    }
    permits->works = true;
    permits->work.data = list;
    list->n_works++;
    (void)uv_queue_work(list->loop, &permits->work, ask_store, on_asked);
}

void pb_pending_hurry(struct pb_pending_list *list)
{
    list->save_at_ms = list->permits.at_ms = 0;
}

void pb_pending_tick(struct pb_pending_list *list, int64_t mono_ms)
{
    if (list->permits.failed && mono_ms >= list->permits.at_ms)
        pb_pending_permit(list);
    if (mono_ms < list->save_at_ms)
        return;
    list->save_at_ms = mono_ms + SAVE_EVERY_MS;
    for (struct pb_pending *pending = list->first; pending != NULL; pending = pending->next)
        save_again(pending);
}

void pb_pending_free(struct pb_pending_list *list, bool try_again)
{
    struct pb_pending *pending;
    while ((pending = list->first) != NULL) {
        list->first = pending->next;
        pending->step = PB_PENDING_STORE;
        if (try_again && pending->failed)
            do_step(pending);
        fini(pending);
        free(pending);
    }
    while ((pending = list->spare) != NULL) {
        list->spare = pending->next;
        free(pending);
    }
}
