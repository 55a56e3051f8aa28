/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Group commit. One thread at a time uses the database; changes that arrive meanwhile are queued.
 * The next thread makes one transaction of all waiting changes, with one sync, and the other
 * threads find their changes done. A bulk change (claims of the inbox, pruning) is left out while
 * others wait, but not twice in a row; therefore a change of one job waits for at most one
 * transaction with one bulk change, and then for its own.
 *
 * If a transaction of several changes fails, each of them is tried alone: a change that the disk
 * refuses does not affect the others. */
#include "service/base/log.h"
#include "service/jobs/nodes.h"
#include "service/jobs/sql_engine.h"

#include <errno.h>

#define REPEATS 8

void pb_job_store_lock(struct pb_job_store *store)
{
    (void)pthread_mutex_lock(&store->lock);
    while (store->in_use)
        (void)pthread_cond_wait(&store->freed, &store->lock);
    store->in_use = true;
    (void)pthread_mutex_unlock(&store->lock);
}

void pb_job_store_unlock(struct pb_job_store *store)
{
    (void)pthread_mutex_lock(&store->lock);
    store->in_use = false;
    (void)pthread_cond_broadcast(&store->freed);
    (void)pthread_mutex_unlock(&store->lock);
}

static int begin(struct pb_job_store *store, struct pb_err *err)
{
    int rc = pb_job_store_ready(store, err);
    return rc || pb_sql_begin(store->db) ? rc : pb_job_store_fail(store, "begin", err);
}

/* Applies all changes of the group, or none of them and *err. */
static int apply_all(struct pb_job_store *store, struct pb_job_change_queue *group,
                     struct pb_err *err)
{
    struct pb_job_change *change;
    const int64_t takes = pb_log_takes();
    int rc = 0;
    STAILQ_FOREACH(change, group, next)
    {
        change->err = (struct pb_err){0};
        change->result = change->apply(store, change);
        if (change->result < 0) {
            *err = change->err;
            rc = change->result;
            break;
        }
    }
    if (rc == 0 && !pb_sql_commit(store->db)) {
        rc = pb_job_store_fail(store, "commit", err);
        STAILQ_FOREACH(change, group, next)
        {
            change->may_be_stored = true;
        }
    }
    if (rc != 0) {
        pb_sql_rollback(store->db);
        pb_log_give_back(takes); /* events of the next try have the lines of the log */
    }
    return rc;
}

/* Does the same in a transaction that has begun. If other nodes changed the same rows first, it is
 * repeated, and sees what they stored. */
static int transact(struct pb_job_store *store, struct pb_job_change_queue *group,
                    struct pb_err *err)
{
    int rc = apply_all(store, group, err);
    for (int i = 0; rc != 0 && i < REPEATS && pb_sql_may_repeat(store->db); i++) {
        rc = begin(store, err);
        rc = rc ? rc : apply_all(store, group, err);
    }
    return rc;
}

static void fail_all(struct pb_job_change_queue *group, int rc, const struct pb_err *err)
{
    struct pb_job_change *change;
    STAILQ_FOREACH(change, group, next)
    {
        change->result = rc;
        change->err = *err;
    }
}

static void transact_alone(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_job_change_queue one = STAILQ_HEAD_INITIALIZER(one);
    struct pb_err err = {0};
    STAILQ_INSERT_TAIL(&one, change, next);
    int rc = begin(store, &err);
    rc = rc ? rc : transact(store, &one, &err);
    if (rc != 0)
        fail_all(&one, rc, &err);
}

/* Runs a group. If the transaction cannot begin (a locked or missing database), single changes
 * would fail as well and are not tried. */
static void run_group(struct pb_job_store *store, struct pb_job_change_queue *group)
{
    struct pb_job_change_queue tried = STAILQ_HEAD_INITIALIZER(tried);
    struct pb_err err = {0};
    struct pb_job_change *change;
    int rc = begin(store, &err);
    if (rc != 0) {
        fail_all(group, rc, &err);
        return;
    }
    rc = transact(store, group, &err);
    if (rc != 0 && STAILQ_NEXT(STAILQ_FIRST(group), next) == NULL)
        fail_all(group, rc, &err);
    if (rc == 0 || STAILQ_NEXT(STAILQ_FIRST(group), next) == NULL)
        return;
    while ((change = STAILQ_FIRST(group)) != NULL) {
        STAILQ_REMOVE_HEAD(group, next);
        transact_alone(store, change);
        STAILQ_INSERT_TAIL(&tried, change, next);
    }
    STAILQ_CONCAT(group, &tried);
}

/* Chooses the changes of the next transaction. Called with the lock held. */
static void gather(struct pb_job_store *store, struct pb_job_change_queue *group)
{
    struct pb_job_change *change, *next;
    struct pb_job_change_queue rest = STAILQ_HEAD_INITIALIZER(rest);
    bool urgent = false;
    STAILQ_FOREACH(change, &store->changes, next)
    {
        urgent = urgent || !change->bulk;
    }
    bool leaves_bulk = urgent && !store->bulk_waited;
    store->bulk_waited = false;
    for (change = STAILQ_FIRST(&store->changes); change != NULL; change = next) {
        next = STAILQ_NEXT(change, next);
        bool left = change->bulk && leaves_bulk;
        store->bulk_waited = store->bulk_waited || left;
        if (left)
            STAILQ_INSERT_TAIL(&rest, change, next);
        else
            STAILQ_INSERT_TAIL(group, change, next);
    }
    STAILQ_INIT(&store->changes);
    STAILQ_CONCAT(&store->changes, &rest);
}

/* Makes a transaction of the waiting changes in the calling thread. Called with the lock held;
 * releases it meanwhile. */
static void lead(struct pb_job_store *store)
{
    struct pb_job_change_queue group = STAILQ_HEAD_INITIALIZER(group);
    struct pb_job_change *change, *next;
    bool any_stored = false;
    gather(store, &group);
    store->in_use = true;
    (void)pthread_mutex_unlock(&store->lock);
    run_group(store, &group);
    if (pb_nodes_reporting(store) <= PB_NODES_FEW) /* else the next look counts */
        pb_job_row_count(store);
    atomic_fetch_add(&store->commits, 1);
    (void)pthread_mutex_lock(&store->lock);
    for (change = STAILQ_FIRST(&group); change != NULL; change = next) {
        next = STAILQ_NEXT(change, next);
        any_stored = any_stored || change->result >= 0 || change->may_be_stored;
        change->done = true; /* the stack of its thread may be gone from now on */
    }
    if (store->kind->settle != NULL && any_stored) {
        (void)pthread_cond_broadcast(&store->freed);
        (void)pthread_mutex_unlock(&store->lock);
        store->kind->settle(store);
        atomic_fetch_add(&store->commits, 1);
        (void)pthread_mutex_lock(&store->lock);
    }
    store->in_use = false;
    (void)pthread_cond_broadcast(&store->freed);
}

int pb_job_store_commit(struct pb_job_store *store, struct pb_job_change *change,
                        struct pb_err *err)
{
    (void)pthread_mutex_lock(&store->lock);
    STAILQ_INSERT_TAIL(&store->changes, change, next);
    while (!change->done) {
        if (store->in_use)
            (void)pthread_cond_wait(&store->freed, &store->lock);
        else
            lead(store);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (change->result < 0 && err != NULL)
        *err = change->err;
    return change->result;
}

uint64_t pb_store_changes(const struct pb_job_store *store)
{
    return atomic_load(&store->commits);
}
