/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which job runs next, and where. The queue is the store: the oldest accepted job whose scene is
 * not running already (two runs of one scene would publish into one directory) and that need not
 * wait on its own account. While the queue is held (hold.h) one job at a time starts, as a probe.
 */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define BATCH       16
#define LOOKS       2000 /* at waiting jobs, before the loop goes on */
#define PENDING_MAX 64   /* jobs that wait for the disk before no further one is started */

static bool is_in_the_way(const struct pb_job *running, const struct pb_job *job)
{
    return strcmp(running->scene, job->scene) == 0 || strcmp(running->id, job->id) == 0;
}

bool pb_runner_may_start(const struct pb_runner *runner, const struct pb_job *job)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        const struct pb_job *running = pb_place_job(&runner->places[i]);
        if (running != NULL && is_in_the_way(running, job))
            return false;
    }
    for (const struct pb_pending *pending = runner->pending; pending != NULL;
         pending = pending->next) {
        if (strcmp(pending->job.id, job->id) == 0 ||
            (pending->works && strcmp(pending->job.scene, job->scene) == 0))
            return false;
    }
    return !pb_config_waits_has(&runner->waits, job->seq) &&
           pb_hold_may_try(&runner->hold, job->seq, pb_clock_mono_ms());
}

static bool may_start(void *user, const struct pb_job *job)
{
    return pb_runner_may_start(user, job);
}

/* The choice of a probe: jobs of that rank, and the least rank seen above it. */
struct probe {
    const struct pb_runner *runner;
    int64_t rank, next;
};

static bool may_probe(void *user, const struct pb_job *job)
{
    struct probe *probe = user;
    if (!pb_runner_may_start(probe->runner, job))
        return false;
    int64_t rank = pb_hold_rank(&probe->runner->hold, job->seq);
    if (rank > probe->rank && rank < probe->next)
        probe->next = rank;
    return rank == probe->rank;
}

/* 1 and the job (the caller's), 0 none, negative errno. */
static int next_job(struct pb_runner *runner, int64_t now_ms, struct pb_err *err, bool *out_express,
                    struct pb_job *out_job)
{
    struct pb_job_store *store = runner->options.reader;
    int64_t *after = &runner->next_after;
    *out_express = pb_express_ordinary(runner) >= runner->config->service.parallel_jobs;
    if (*out_express)
        return pb_express_next(runner, now_ms, err, out_job);
    struct probe probe = {runner, 0, INT64_MAX};
    int64_t before = *after;
    bool holds = runner->hold.on;
    int rc = pb_job_store_next(store, after, LOOKS, holds ? may_probe : may_start,
                               holds ? (void *)&probe : runner, err, out_job);
    if (rc == 0 && probe.next != INT64_MAX) {
        probe.rank = probe.next;
        *after = before;
        rc = pb_job_store_next(store, after, LOOKS, may_probe, &probe, err, out_job);
    }
    runner->more = runner->more || *after != 0; /* there are more behind those */
    return rc;
}

int64_t pb_runner_taken(const struct pb_runner *runner)
{
    int64_t n = 0;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        n += pb_place_is_taken(&runner->places[i]);
    return n;
}

struct pb_place *pb_runner_free_place(struct pb_runner *runner)
{
    struct pb_place *empty = NULL;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        struct pb_place *place = &runner->places[i];
        if (place->reserved)
            continue;
        if (pb_worker_slot_is_idle(place->slot))
            return place;
        if (empty == NULL && pb_worker_slot_is_empty(place->slot))
            empty = place;
    }
    return empty;
}

/* Workers that were given up end when their storage answers again. */
static void reap(struct pb_runner *runner)
{
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        if (runner->hung[i] != 0 && waitpid(runner->hung[i], NULL, WNOHANG) != 0)
            runner->hung[i] = 0;
    }
}

/* With nothing waiting and nothing running, nobody would ever end the hold. */
static void clear_if_empty(struct pb_runner *runner)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    if (runner->hold.on && pb_runner_busy(runner) == 0 && runner->pending == NULL &&
        pb_job_store_counts(runner->options.reader, counts, NULL) == 0 &&
        counts[PB_JOB_ACCEPTED] == 0)
        pb_runner_hold_clear(runner);
}

static void start_jobs(struct pb_runner *runner)
{
    int64_t now = pb_clock_mono_ms();
    for (int i = 0; runner->drain_ms == 0 && pb_hold_may_start(&runner->hold, now); i++) {
        struct pb_job job;
        struct pb_err err = {0};
        /* A crowd that no pipeline fits must not hold up the loop. */
        if (i == BATCH || runner->n_pending >= PENDING_MAX) {
            runner->more = true;
            break;
        }
        struct pb_place *place = pb_runner_free_place(runner);
        bool express = false;
        int rc = place ? next_job(runner, now, &err, &express, &job) : 0;
        if (rc == 0)
            break;
        place->express = express;
        if (rc > 0)
            pb_runner_start(runner, place, &job);
        else
            pb_runner_cannot_start(runner, &err);
    }
}

void pb_runner_kick(struct pb_runner *runner)
{
    pb_runner_wake(runner);
    if (runner->kicks) { /* what a start brought about: the next tick goes on */
        runner->more = true;
        return;
    }
    runner->kicks = true;
    runner->more = false;
    reap(runner);
    start_jobs(runner);
    clear_if_empty(runner);
    runner->kicks = false;
}
