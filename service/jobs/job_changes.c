/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The changes that the service makes to its jobs, as parts of transactions (job_commit.c). */
#include "service/jobs/job_store_sql.h"

#include <errno.h>

#define PRUNE_AT_ONCE 64

static int apply_insert(struct pb_job_store *store, struct pb_job_change *change)
{
    for (size_t i = 0; i < change->n; i++) {
        int rc = pb_job_row_insert(store, change->jobs[i], &change->err);
        if (rc != 0 && rc != -EEXIST)
            return rc;
        change->results[i] = rc;
    }
    return 0;
}

int pb_job_store_insert_all(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                            int *out_results, struct pb_err *err)
{
    struct pb_job_change change = {
        .apply = apply_insert, .jobs = jobs, .n = n, .results = out_results, .bulk = true};
    return n == 0 ? 0 : pb_job_store_commit(store, &change, err);
}

int pb_job_store_insert(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    int result = 0;
    struct pb_job_change change = {.apply = apply_insert, .jobs = &job, .n = 1, .results = &result};
    int rc = pb_job_store_commit(store, &change, err);
    return rc ? rc : result;
}

static int apply_update(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_update(store, change->jobs[0], &change->err);
}

int pb_job_store_update(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_job *const jobs[] = {(struct pb_job *)job};
    struct pb_job_change change = {.apply = apply_update, .jobs = jobs, .n = 1};
    return pb_job_store_commit(store, &change, err);
}

/* Runs a statement. The result is the number of changed rows. */
static int apply_statement(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store, change->sql, change->number, &change->err);
}

/* Changes the jobs one by one, because each change is recorded in the journal. The result is their
 * number. */
static int apply_recover(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_job job;
    int rc, n = 0;
    while ((rc = pb_job_row_running(store, &change->err, &job)) > 0) {
        job.status = PB_JOB_ACCEPTED;
        job.updated_ms = change->number;
        job.started_ms = job.tiles_done = job.tiles_total = 0;
        job.progress = 0;
        job.stage[0] = job.device[0] = job.device_why[0] = '\0';
        rc = pb_job_row_update(store, &job, &change->err);
        pb_job_fini(&job);
        if (rc != 0)
            return rc;
        n++;
    }
    return rc < 0 ? rc : n;
}

int pb_job_store_recover(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_recover, .number = wall_ms};
    return pb_job_store_commit(store, &change, err);
}

/* Deletes a part at a time, so that other threads can store changes in between. */
int pb_job_store_prune(struct pb_job_store *store, int keep, struct pb_err *err)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    int rc = pb_job_store_counts(store, counts, err), pruned = 0;
    if (rc != 0)
        return rc;
    int64_t surplus =
        counts[PB_JOB_SUCCESSFUL] + counts[PB_JOB_FAILED] + counts[PB_JOB_DISMISSED] - keep;
    while (surplus > pruned) {
        struct pb_job_change change = {
            .apply = apply_statement,
            /* The jobs of an archive's scenes stay while its own job is there: it would compute
               them again in a retry. */
            .sql = "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE status > 1"
                   " AND (archive = '' OR NOT EXISTS"
                   " (SELECT 1 FROM jobs a WHERE a.id = jobs.archive))"
                   " ORDER BY " PB_JOB_PRUNE_ORDER " LIMIT ?1)",
            .number = surplus - pruned < PRUNE_AT_ONCE ? surplus - pruned : PRUNE_AT_ONCE,
            .bulk = true};
        rc = pb_job_store_commit(store, &change, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        pruned += rc;
    }
    return pruned;
}
