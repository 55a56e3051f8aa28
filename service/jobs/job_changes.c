/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The changes that the service makes to its jobs, as parts of transactions (job_commit.c). */
#include "service/jobs/job_store_sql.h"
#include "service/jobs/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PRUNE_AT_ONCE  16 /* jobs, each with the scenes of its archive */
#define NEEDS_A_COMMIT 500

static int apply_offer(struct pb_job_store *store, struct pb_job_change *change)
{
    int rc = pb_job_row_insert(store, change->jobs, change->n, change->results, &change->err);
    for (size_t i = 0; rc == 0 && change->may_be_stored && i < change->n; i++) {
        if (change->results[i] != -EEXIST)
            continue;
        const int found = pb_job_row_find_own(store, change->jobs[i], &change->err);
        change->results[i] = found;
        rc = found == -EEXIST ? 0 : found;
    }
    return rc;
}

int pb_store_offer_all(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                       int *out_results, struct pb_err *err)
{
    struct pb_job_change change = {
        .apply = apply_offer, .jobs = jobs, .n = n, .results = out_results, .bulk = true};
    return n == 0 ? 0 : pb_job_store_commit(store, &change, err);
}

int pb_store_offer(struct pb_job_store *store, struct pb_job *job, struct pb_err *err)
{
    int result = 0;
    struct pb_job_change change = {.apply = apply_offer, .jobs = &job, .n = 1, .results = &result};
    int rc = pb_job_store_commit(store, &change, err);
    return rc ? rc : result;
}

struct needing {
    struct pb_job_change change;
    struct pb_store_needs *needs, *before;
    bool is_set, is_part; /* is_part: further rows may have another digest */
};

static int apply_needs(struct pb_job_store *store, struct pb_job_change *change)
{
    struct needing *needing = (struct needing *)change;
    const struct pb_store_needs *needs = needing->needs;
    if (!needing->is_set) {
        needing->before = store->needs;
        store->needs = needing->needs;
        needing->is_set = true;
    }
    needing->is_part = false;
    for (size_t i = 0; i < needs->n; i++) {
        struct pb_sql_statement *s = pb_job_store_prepare(
            store, "update",
            "UPDATE jobs SET needs = ?1, needs_gpu = ?5, error_memory = CASE WHEN needs = ?1 THEN"
            " error_memory ELSE 0 END WHERE seq IN (SELECT seq FROM jobs WHERE status < 2"
            " AND node = ?2 AND pipeline = ?3 AND (needs <> ?1 OR needs_gpu <> ?5) LIMIT ?4)",
            &change->err);
        pb_sql_set_text(s, 1, needs->at[i].digest);
        pb_sql_set_text(s, 2, pb_store_node(store));
        pb_sql_set_text(s, 3, needs->at[i].pipeline);
        pb_sql_set_int(s, 4, NEEDS_A_COMMIT);
        pb_sql_set_int(s, 5, needs->gpu);
        const int rc = pb_job_store_run(store, "update", s, &change->err);
        if (rc < 0)
            return rc;
        needing->is_part = needing->is_part || rc == NEEDS_A_COMMIT;
    }
    return 0;
}

/* In parts, because other nodes wait for the rows of a transaction. */
int pb_store_set_needs(struct pb_job_store *store, struct pb_store_needs *needs, struct pb_err *err)
{
    struct needing needing = {.change = {.apply = apply_needs}, .needs = needs};
    int rc;
    do {
        needing.is_part = false;
        rc = pb_job_store_commit(store, &needing.change, err);
    } while (rc >= 0 && needing.is_part);
    free(needing.is_set ? needing.before : needs);
    return rc;
}

/* Result of a call for that of its change. */
static int call_result(int result)
{
    return result == PB_JOB_STALE ? -ESTALE : result;
}

static int apply_take(struct pb_job_store *store, struct pb_job_change *change)
{
    for (size_t i = 0; i < change->n; i++) {
        (void)snprintf(change->jobs[i]->node, sizeof change->jobs[i]->node, "%s",
                       pb_store_node(store));
        int rc = pb_job_row_take(store, change->jobs[i], change->may_be_stored, &change->err);
        if (rc < 0)
            return rc;
        change->results[i] = call_result(rc);
    }
    return 0;
}

int pb_store_take(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                  int *out_results, struct pb_err *err)
{
    struct pb_job_change change = {
        .apply = apply_take, .jobs = jobs, .n = n, .results = out_results};
    return n == 0 ? 0 : pb_job_store_commit(store, &change, err);
}

static int apply_untake(struct pb_job_store *store, struct pb_job_change *change)
{
    for (size_t i = 0; i < change->n; i++) {
        const int rc = pb_job_row_untake(store, change->jobs[i], &change->err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pb_store_untake(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                    struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_untake, .jobs = jobs, .n = n};
    return n == 0 ? 0 : pb_job_store_commit(store, &change, err);
}

int pb_store_permit(struct pb_job_store *store, const char *id, int64_t epoch, struct pb_err *err)
{
    pb_job_store_lock(store);
    int rc = pb_job_row_is_running(store, id, epoch, err);
    pb_job_store_unlock(store);
    return rc < 0 ? rc : rc > 0 ? 0 : -ESTALE;
}

static int apply_finish(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_update(store, change->jobs[0], &change->err);
}

int pb_store_finish(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_job *const jobs[] = {(struct pb_job *)job};
    struct pb_job_change change = {.apply = apply_finish, .jobs = jobs, .n = 1};
    return call_result(pb_job_store_commit(store, &change, err));
}

/* Runs a statement. The result is the number of changed rows. */
static int apply_statement(struct pb_job_store *store, struct pb_job_change *change)
{
    return pb_job_row_execute(store, change->sql, change->number, &change->err);
}

/* Changes the jobs one by one, because each change is recorded in the journal. The result is their
 * number. */
static int apply_reap(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_job job;
    int rc = pb_nodes_end_sessions(store, &change->err), n = 0;
    if (rc != 0)
        return rc;
    while ((rc = pb_job_row_running(store, &change->err, &job)) > 0) {
        job.status = PB_JOB_ACCEPTED;
        job.updated_ms = change->number;
        pb_job_shun(&job, job.node);
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

int pb_store_reap(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_reap, .number = wall_ms};
    return pb_job_store_commit(store, &change, err);
}

/* Counts the jobs beyond `keep`; negative errno. Their order makes SQLite use the index of the
 * prunable jobs. */
static int64_t count_surplus(struct pb_job_store *store, int keep, struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, "count",
        "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE " PB_JOB_PRUNABLE
        " ORDER BY " PB_JOB_PRUNE_ORDER " LIMIT 9223372036854775807 OFFSET ?1) AS surplus",
        err);
    pb_sql_set_int(s, 1, keep);
    const int rc = pb_job_store_step(store, "count", s, err);
    const int64_t n = rc > 0 ? pb_sql_int(s, 0) : rc;
    pb_sql_finalize(s);
    pb_job_store_unlock(store);
    return n;
}

/* Deletes a part at a time, so that other threads can store changes in between. An archive's job
 * and those of its scenes are one part: a scene cannot be retried without the archive's job, which
 * would compute forgotten scenes again. */
int pb_job_store_prune(struct pb_job_store *store, int keep, struct pb_err *err)
{
    int64_t surplus = count_surplus(store, keep, err);
    int pruned = 0;
    if (surplus < 0)
        return (int)surplus;
    while (surplus > 0) {
        struct pb_job_change change = {
            .apply = apply_statement,
            .sql = "WITH chosen AS (SELECT id FROM jobs WHERE " PB_JOB_PRUNABLE
                   " ORDER BY " PB_JOB_PRUNE_ORDER " LIMIT ?1)"
                   " DELETE FROM jobs WHERE id IN (SELECT id FROM chosen) OR"
                   " (archive <> '' AND again = '' AND archive IN (SELECT id FROM chosen))",
            .number = surplus < PRUNE_AT_ONCE ? surplus : PRUNE_AT_ONCE,
            .bulk = true};
        int rc = pb_job_store_commit(store, &change, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
        surplus -= change.number;
        pruned += rc;
    }
    return pruned;
}
