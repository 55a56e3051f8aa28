/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/chores.h"

#include "config/base/clock.h"
#include "config/service_config.h"
#include "service/jobs/contents.h"

#include <string.h>

#define PRUNE_FROM   32 /* excess of jobs at which the oldest are forgotten */
#define TRIM_FROM    64 /* commits since the last deletion */
#define LOOK_MS      1000
#define TRIM_MS      60000
#define TRIM_ROWS_MS 1000 /* delay if more rows remain to be deleted */

static void work(uv_work_t *request)
{
    struct pb_chores *chores = request->data;
    int deleted = 0;
    if (chores->prunes) {
        const int pruned = pb_job_store_prune(chores->store, chores->keep, NULL);
        chores->rest = chores->finished - (pruned > 0 ? pruned : 0);
    }
    if (chores->trims)
        deleted = pb_journal_trim(chores->store, pb_clock_wall_ms(), NULL);
    if (chores->trims && chores->contents_ms > 0 &&
        pb_contents_trim(chores->store, pb_clock_wall_ms() - chores->contents_ms, NULL) > 0)
        deleted = 1; /* there may be more */
    if (chores->looks)
        chores->n_read = pb_subscribers_states(chores->reader, chores->read, NULL);
    if (pb_job_store_log_is_long(chores->store))
        (void)pb_job_store_checkpoint(chores->store, NULL);
    if (deleted > 0)
        chores->trim_ms = pb_clock_mono_ms() + TRIM_ROWS_MS;
}

/* Copies the count of expired events from the last reading of this subscriber, if there was one. */
static void keep_before(const struct pb_chores *chores, struct pb_subscriber_state *state)
{
    for (int i = 0; i < chores->n_subscribers; i++) {
        const struct pb_subscriber_state *old = &chores->subscribers[i];
        if (strcmp(old->name, state->name) == 0 && old->expired <= state->expired)
            state->expired_before = old->expired;
    }
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_chores *chores = request->data;
    (void)status;
    chores->works = false;
    if (chores->trims)
        chores->trimmed_at = pb_store_changes(chores->store);
    if (!chores->looks || chores->n_read < 0)
        return;
    for (int i = 0; i < chores->n_read; i++)
        keep_before(chores, &chores->read[i]);
    (void)memcpy(chores->subscribers, chores->read, sizeof chores->read);
    chores->n_subscribers = chores->n_read;
    if (chores->done != NULL)
        chores->done(chores->user);
}

static bool is_one_waiting(const struct pb_chores *chores)
{
    bool waits = false;
    for (int i = 0; i < chores->n_subscribers; i++)
        waits = waits || chores->subscribers[i].waiting > 0;
    return waits;
}

/* Returns true if events must be deleted: soon after many commits, within a minute after a few.
 * Without commits, events may still expire. */
static bool trim_is_due(struct pb_chores *chores, uint64_t commits, int64_t now_ms)
{
    bool due =
        commits - chores->trimmed_at >= TRIM_FROM ||
        (now_ms >= chores->trim_ms && (commits != chores->trimmed_at || is_one_waiting(chores)));
    if (due)
        chores->trim_ms = now_ms + TRIM_MS;
    return due;
}

static bool look_is_due(struct pb_chores *chores, uint64_t commits, int64_t now_ms)
{
    bool due =
        now_ms >= chores->look_ms && (commits + 1 != chores->looked_at || is_one_waiting(chores));
    if (due) {
        chores->look_ms = now_ms + LOOK_MS;
        chores->looked_at = commits + 1;
    }
    return due;
}

void pb_chores_run(struct pb_chores *chores, const int64_t counts[PB_JOB_STATUS_COUNT],
                   const struct pb_service_config *service)
{
    int keep = service->keep_jobs;
    int64_t finished = counts[PB_JOB_SUCCESSFUL] + counts[PB_JOB_FAILED] + counts[PB_JOB_DISMISSED];
    int64_t now_ms = pb_clock_mono_ms();
    if (chores->works)
        return;
    uint64_t commits = pb_store_changes(chores->store);
    /* Jobs of scenes are in these counts and not in `keep`. */
    if (keep != chores->keep || finished < chores->rest)
        chores->rest = keep;
    chores->prunes = finished - (chores->rest > keep ? chores->rest : keep) >= PRUNE_FROM;
    chores->trims = trim_is_due(chores, commits, now_ms);
    chores->looks = look_is_due(chores, commits, now_ms);
    if (!chores->prunes && !chores->trims && !chores->looks &&
        !pb_job_store_log_is_long(chores->store))
        return;
    chores->keep = keep;
    chores->finished = finished;
    chores->contents_ms = service->has_duplicates ? service->duplicates.keep_ms : 0;
    chores->works = true;
    chores->work.data = chores;
    (void)uv_queue_work(chores->loop, &chores->work, work, on_worked);
}
