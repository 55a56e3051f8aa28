/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Jobs are chosen by a reader of the store, which waits for no commit; the store then takes only
 * those that still wait in the same epoch. A job that it refuses was taken or changed since it was
 * read: the choice begins again, without that one. A reader reserves the jobs that it chooses,
 * because nodes that choose at the same time would choose the same job. If only jobs that others
 * have reserved are left, reservations do not count, because a node may give up a job that it
 * reserved. */
#include "service/runner/job_queue.h"

#include "config/base/clock.h"
#include "service/jobs/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define READ_MAX          2000 /* waiting jobs among which the lowest rank is first */
#define READ_SMALLEST_MAX 1000
#define TRIES_MAX         8

/* --- the choice, on the pool ----------------------------------------------------------------- */

/* The jobs of a rank, and the lowest rank above it that was found. */
struct ranked {
    struct pb_job_queue *queue;
    int64_t rank, next;
    int highest; /* priority of the first job that may start */
    bool any;
};

/* Returns true if the directory is there. The last answers are kept for the take. */
static bool is_there(struct pb_job_queue *queue, const char *directory)
{
    struct stat st;
    if (strcmp(directory, queue->seen) == 0)
        return true;
    if (strcmp(directory, queue->unseen) == 0)
        return false;
    const bool there = stat(directory, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
    (void)snprintf(there ? queue->seen : queue->unseen, sizeof queue->seen, "%s", directory);
    return there;
}

/* Returns true if this node can have the input of a job that another node offered. An input that is
 * missing in a directory that is there is gone everywhere. A claimed one is in a directory of its
 * own, which may be gone as well. */
static bool may_see(struct pb_job_queue *queue, const struct pb_job *job)
{
    char directory[PB_FILES_PATH_BYTES];
    if (queue->ask.fetches || job->node[0] == '\0' || job->manifest.input == NULL ||
        strcmp(job->node, pb_store_node(queue->store)) == 0)
        return true;
    (void)snprintf(directory, sizeof directory, "%s", job->manifest.input);
    for (int i = 0; i <= (int)job->owned; i++) {
        char *slash = strrchr(directory, '/');
        if (slash == NULL || slash == directory)
            return true;
        *slash = '\0';
    }
    return is_there(queue, directory);
}

/* Jobs that are chosen already are not in the store's answer yet, nor are changes of those that the
 * store refused. */
static bool may_start(struct pb_job_queue *queue, const struct pb_job *job)
{
    for (int i = 0; i < queue->n_refused; i++)
        if (queue->refused[i] == job->seq)
            return false;
    for (int i = 0; i < queue->n; i++) {
        const struct pb_job *chosen = &queue->jobs[i].job;
        if (strcmp(chosen->id, job->id) == 0 || strcmp(chosen->scene, job->scene) == 0)
            return false;
    }
    return queue->ask.may(queue->ask.user, job) && may_see(queue, job);
}

static int64_t rank_of(struct ranked *ranked, const struct pb_job *job)
{
    const struct pb_job_ask *ask = &ranked->queue->ask;
    int64_t rank = ask->rank != NULL ? ask->rank(ask->user, job) : 0;
    if (!ranked->any)
        ranked->highest = job->priority;
    ranked->any = true;
    return ask->by_rank_alone ? rank : (ranked->highest - job->priority) * PB_JOB_RANKS + rank;
}

static bool has_rank(void *user, const struct pb_job *job)
{
    struct ranked *ranked = user;
    struct pb_job_queue *queue = ranked->queue;
    if (!may_start(queue, job))
        return false;
    int64_t rank = rank_of(ranked, job);
    if (rank > ranked->rank && rank < ranked->next)
        ranked->next = rank;
    return rank == ranked->rank;
}

/* Finds the first job of the lowest rank: 1 and *out_job; 0: no job; negative errno. */
static int choose_first(struct pb_job_queue *queue, struct pb_job *out_job)
{
    struct pb_job_place after = {0};
    int rc;
    do {
        struct ranked ranked = {.queue = queue, .next = INT64_MAX};
        struct pb_job_place before = after;
        rc = pb_job_store_next(queue->reader, &after, READ_MAX, has_rank, &ranked, &queue->err,
                               out_job);
        if (rc == 0 && ranked.next != INT64_MAX) {
            ranked.rank = ranked.next;
            after = before;
            rc = pb_job_store_next(queue->reader, &after, READ_MAX, has_rank, &ranked, &queue->err,
                                   out_job);
        }
    } while (rc == 0 && after.seq != 0);
    return rc;
}

struct smallest {
    struct pb_job_queue *queue;
    int64_t seq, bytes; /* the smallest so far; seq 0 = not found */
    int priority;
};

/* Filter that rejects all jobs, so that all are visited. */
static bool compare(void *user, const struct pb_job *job)
{
    struct smallest *smallest = user;
    if (!may_start(smallest->queue, job))
        return false;
    const int64_t bytes = job->bytes > 0 ? job->bytes : INT64_MAX;
    if (smallest->seq == 0 || bytes < smallest->bytes) {
        smallest->seq = job->seq;
        smallest->priority = job->priority;
        smallest->bytes = bytes;
    }
    return false;
}

static bool is_it(void *user, const struct pb_job *job)
{
    return job->seq == *(const int64_t *)user;
}

static int choose_smallest(struct pb_job_queue *queue, struct pb_job *out_job)
{
    struct smallest smallest = {.queue = queue};
    struct pb_job_place after = {0};
    int rc = pb_job_store_next(queue->reader, &after, READ_SMALLEST_MAX, compare, &smallest,
                               &queue->err, out_job);
    if (rc < 0 || smallest.seq == 0)
        return rc;
    /* A place with seq 0 is before all jobs of all priorities. */
    after = (struct pb_job_place){smallest.priority, smallest.seq > 1 ? smallest.seq - 1 : -1};
    return pb_job_store_next(queue->reader, &after, 1, is_it, &smallest.seq, &queue->err, out_job);
}

/* --- the start, on the pool ------------------------------------------------------------------ */

/* Moves the chosen job to running, except one whose scenes are over: it ends. A job whose
 * input cannot be examined is moved as well, because the fault concerns this job alone. */
static int prepare(struct pb_job_queue *queue, struct pb_taken *taken)
{
    const struct pb_job_ask *ask = &queue->ask;
    struct pb_job *job = &taken->job;
    taken->unmatched = (struct pb_err){0};
    taken->before = job->error;
    taken->ran = pb_job_began(job);
    if (pb_job_has_scenes(job))
        return 0;
    if (ask->match != NULL)
        ask->match(ask->user, taken);
    return pb_job_move(job, PB_JOB_RUNNING, pb_clock_wall_ms());
}

/* Returns false if a job was changed while it was read. */
static bool choose(struct pb_job_queue *queue)
{
    const struct pb_job_ask *ask = &queue->ask;
    const int n = ask->n > 0 && ask->n <= PB_JOB_TAKE_MAX ? ask->n : 1;
    while (queue->n < n) {
        struct pb_taken *taken = &queue->jobs[queue->n];
        int rc =
            ask->smallest ? choose_smallest(queue, &taken->job) : choose_first(queue, &taken->job);
        if (rc > 0) {
            queue->found = true;
            rc = ask->n > 0 ? prepare(queue, taken) : -ECANCELED;
            queue->n += rc == 0;
            if (rc != 0)
                pb_job_fini(&taken->job);
            else
                continue;
        }
        queue->rc = rc == -ECANCELED || rc == -EPERM ? 0 : rc;
        return rc != -EPERM;
    }
    return true;
}

static void drop(struct pb_job_queue *queue, int i)
{
    pb_job_fini(&queue->jobs[i].job);
    memmove(&queue->jobs[i], &queue->jobs[i + 1], (size_t)(--queue->n - i) * sizeof queue->jobs[0]);
}

/* Moves a job back, which did not run, until it is known whether its start was stored. */
static void doubt(struct pb_job_queue *queue, int i)
{
    struct pb_taken *taken = &queue->jobs[i];
    struct pb_job *job = &queue->doubts[queue->n_doubts++];
    *job = taken->job;
    pb_job_init(&taken->job);
    (void)pb_job_move(job, PB_JOB_ACCEPTED, pb_clock_wall_ms());
    job->attempts--;
    job->error = taken->before;
}

static void forget_doubts(struct pb_job_queue *queue)
{
    for (int i = 0; i < queue->n_doubts; i++)
        pb_job_fini(&queue->doubts[i]);
    queue->n_doubts = 0;
}

/* Puts the jobs back whose starts may have been stored by the last take. */
static int put_back(struct pb_job_queue *queue)
{
    struct pb_job *jobs[PB_JOB_TAKE_MAX];
    for (int i = 0; i < queue->n_doubts; i++)
        jobs[i] = &queue->doubts[i];
    const int rc = pb_store_untake(queue->store, jobs, (size_t)queue->n_doubts, &queue->err);
    if (rc == 0)
        forget_doubts(queue);
    return rc;
}

/* Stores the starts. Returns the number of refused jobs, which are dropped. */
static int store(struct pb_job_queue *queue)
{
    struct pb_job *jobs[PB_JOB_TAKE_MAX];
    int results[PB_JOB_TAKE_MAX], at[PB_JOB_TAKE_MAX], n = 0, refused = 0;
    for (int i = 0; i < queue->n; i++)
        if (queue->jobs[i].job.status == PB_JOB_RUNNING) {
            at[n] = i;
            jobs[n++] = &queue->jobs[i].job;
        }
    if (n == 0)
        return 0;
    struct pb_err err = {0};
    const int rc = pb_store_take(queue->store, jobs, (size_t)n, results, &err);
    if (rc != 0) {
        queue->rc = rc;
        queue->err = err;
    }
    for (int i = n - 1; i >= 0; i--) {
        if (rc == 0 && results[i] == 0)
            continue;
        if (rc != 0)
            doubt(queue, at[i]);
        else if (queue->n_refused < PB_JOB_TAKE_MAX)
            queue->refused[queue->n_refused++] = jobs[i]->seq;
        drop(queue, at[i]);
        refused++;
    }
    return refused;
}

void pb_job_queue_take_now(struct pb_job_queue *queue)
{
    queue->n = queue->rc = queue->n_refused = 0;
    queue->found = false;
    queue->seen[0] = queue->unseen[0] = '\0';
    queue->err = (struct pb_err){0};
    (void)pthread_rwlock_rdlock(queue->moves);
    queue->rc = put_back(queue);
    const bool is_ready = queue->ask.ready == NULL || queue->ask.ready(queue->ask.user);
    bool reserves = queue->ask.n > 0;
    for (int i = 0; i < TRIES_MAX && is_ready && queue->rc == 0; i++) {
        if (reserves)
            pb_job_store_reserve(queue->reader, queue->ask.n);
        const bool changed = !choose(queue);
        const int refused = store(queue);
        const bool has_passed = reserves && pb_job_store_unreserve(queue->reader);
        if ((!changed && refused == 0 && !has_passed) || queue->n > 0 || queue->rc != 0)
            break;
        reserves = reserves && !has_passed;
    }
    (void)pthread_rwlock_unlock(queue->moves);
}

void pb_job_queue_fini(struct pb_job_queue *queue)
{
    forget_doubts(queue);
}

static void take(uv_work_t *request)
{
    pb_job_queue_take_now(request->data);
}

/* --- on the loop ----------------------------------------------------------------------------- */

static void on_taken(uv_work_t *request, int status)
{
    struct pb_job_queue *queue = request->data;
    (void)status;
    queue->n_works--;
    queue->takes = false;
    queue->taken(queue->ask.user);
}

void pb_job_queue_take(struct pb_job_queue *queue, const struct pb_job_ask *ask,
                       void (*taken)(void *user))
{
    queue->ask = *ask;
    queue->taken = taken;
    queue->takes = true;
    queue->n_works++;
    queue->work.data = queue;
    (void)uv_queue_work(queue->loop, &queue->work, take, on_taken);
}

/* --- finding jobs ---------------------------------------------------------------------------- */

static int find_archive(struct pb_lookup *lookup)
{
    struct pb_job_store *reader = lookup->queue->reader;
    int rc = pb_archive_rows_is_open(reader, lookup->id, &lookup->err);
    if (rc == 0)
        rc = pb_job_store_find(reader, lookup->id, &lookup->err, &lookup->job);
    if (rc == 0 && (lookup->job.status != PB_JOB_ACCEPTED || !pb_job_has_scenes(&lookup->job))) {
        pb_job_fini(&lookup->job);
        rc = -ENOENT;
    }
    return rc > 0 ? -ENOENT : rc;
}

static int find_job(struct pb_lookup *lookup)
{
    struct pb_job_store *reader = lookup->queue->reader;
    const struct pb_job *job = &lookup->job;
    int rc = pb_job_store_find(reader, lookup->id, &lookup->err, &lookup->job);
    if (rc != 0 || !pb_job_has_scenes(job))
        return rc;
    if (job->status == PB_JOB_ACCEPTED)
        rc = pb_archive_rows_list_open(reader, job->id, &lookup->err, &lookup->scenes);
    else if (job->status == PB_JOB_SUCCESSFUL)
        lookup->skipped = pb_archive_rows_skipped(reader, job->id, NULL) == 1;
    if (rc != 0)
        pb_job_fini(&lookup->job);
    return rc;
}

static void look(uv_work_t *request)
{
    struct pb_lookup *lookup = request->data;
    lookup->err = (struct pb_err){0};
    lookup->scenes = (struct pb_archive_ids){.n = 0};
    lookup->skipped = false;
    lookup->rc = lookup->kind == PB_LOOKUP_ARCHIVE ? find_archive(lookup) : find_job(lookup);
}

static void on_looked(uv_work_t *request, int status)
{
    struct pb_lookup *lookup = request->data;
    (void)status;
    lookup->queue->n_works--;
    lookup->then(lookup->user, lookup);
}

void pb_job_queue_find(struct pb_job_queue *queue, struct pb_lookup *lookup)
{
    lookup->queue = queue;
    lookup->work.data = lookup;
    queue->n_works++;
    (void)uv_queue_work(queue->loop, &lookup->work, look, on_looked);
}
