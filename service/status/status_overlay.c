/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_overlay.h"

#include "config/base/clock.h"
#include "service/jobs/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_MS 60000

void pb_overlay_fini(struct pb_overlay *overlay)
{
    for (size_t i = 0; i < overlay->n; i++)
        pb_job_fini(&overlay->at[i].job);
    free(overlay->at);
    *overlay = (struct pb_overlay){0};
}

const struct pb_job *pb_overlay_find(const struct pb_overlay *overlay, const char *id)
{
    for (size_t i = 0; i < overlay->n; i++) {
        if (strcmp(overlay->at[i].job.id, id) == 0)
            return &overlay->at[i].job;
    }
    return NULL;
}

static void forget(struct pb_overlay *overlay, const char *id)
{
    for (size_t i = 0; i < overlay->n; i++) {
        if (strcmp(overlay->at[i].job.id, id) != 0)
            continue;
        pb_job_fini(&overlay->at[i].job);
        overlay->at[i] = overlay->at[--overlay->n];
        return;
    }
}

/* Returns true if the store has the job in this state. Progress is never stored; that of another
 * node is unknown. A job that the store does not have any more was pruned. */
static bool is_stored(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_job row;
    struct pb_err err = {0};
    if (job->status == PB_JOB_RUNNING)
        return strcmp(job->node, pb_store_node(store)) != 0;
    if (pb_job_store_find(store, job->id, &err, &row) != 0)
        return err.code == PB_E_JOB_UNKNOWN;
    bool same = row.status == job->status && row.updated_ms >= job->updated_ms;
    pb_job_fini(&row);
    return same;
}

void pb_overlay_put(struct pb_overlay *overlay, struct pb_job_store *store,
                    const struct pb_job *job, bool held)
{
    struct pb_overlay_entry entry = {.held_ms = held ? pb_clock_mono_ms() : 0};
    forget(overlay, job->id);
    if (!held && is_stored(store, job))
        return;
    if (overlay->n == overlay->room) {
        size_t room = overlay->room ? overlay->room * 2 : 16;
        struct pb_overlay_entry *more = realloc(overlay->at, room * sizeof *more);
        if (more == NULL)
            return; /* the stored state is shown then */
        overlay->at = more;
        overlay->room = room;
    }
    if (pb_job_copy(&entry.job, job) == 0)
        overlay->at[overlay->n++] = entry;
}

/* --- lists --- */

/* A row of the store is replaced by the present state of its job. Jobs of the overlay whose rows
 * have another status than the query's are added at their places. */
struct collection {
    const struct pb_overlay *overlay;
    const struct pb_job_query *query;
    struct pb_job_listing *listing;
    int64_t above_seq; /* jobs of the overlay from this number on are listed */
};

void pb_job_listing_free(struct pb_job_listing *listing)
{
    if (listing == NULL)
        return;
    for (size_t i = 0; i < listing->n; i++)
        pb_job_fini(&listing->jobs[i]);
    free(listing->jobs);
    free(listing);
}

static bool fits(const struct pb_job_query *query, const struct pb_job *job)
{
    return (PB_JOB_MASK(job->status) & query->status_mask) != 0 && job->seq < query->before_seq &&
           job->updated_ms >= query->since_ms &&
           (query->pipeline == NULL || strcmp(query->pipeline, job->pipeline) == 0);
}

static bool is_full(const struct collection *collection)
{
    return (int64_t)collection->listing->n >= collection->query->limit;
}

/* Returns the place of the next job in the list; NULL = out of memory. */
static struct pb_job *add(struct pb_job_listing *listing)
{
    if (listing->n == listing->room) {
        const size_t room = listing->room ? listing->room * 2 : 16;
        struct pb_job *more = realloc(listing->jobs, room * sizeof *more);
        if (more == NULL)
            return NULL;
        listing->jobs = more;
        listing->room = room;
    }
    struct pb_job *const job = &listing->jobs[listing->n++];
    pb_job_init(job);
    return job;
}

/* Finds the newest job of the overlay with a number from seq on, below that of the last one. */
static const struct pb_job *find_newest(const struct collection *collection, int64_t seq)
{
    const struct pb_job *newest = NULL;
    for (size_t i = 0; i < collection->overlay->n; i++) {
        const struct pb_job *job = &collection->overlay->at[i].job;
        if (job->seq >= seq && job->seq < collection->above_seq &&
            (newest == NULL || job->seq > newest->seq))
            newest = job;
    }
    return newest;
}

/* Lists the jobs of the overlay with numbers from seq on. */
static int add_live(struct collection *collection, int64_t seq)
{
    const struct pb_job *live;
    while ((live = find_newest(collection, seq)) != NULL && !is_full(collection)) {
        struct pb_job *job = fits(collection->query, live) ? add(collection->listing) : NULL;
        if (fits(collection->query, live) && (job == NULL || pb_job_copy(job, live) != 0))
            return -ENOMEM;
        collection->above_seq = live->seq;
    }
    return 0;
}

/* Returns 1 if the list is full. */
static int add_row(void *user, struct pb_job *stored)
{
    struct collection *collection = user;
    if (add_live(collection, stored->seq) != 0)
        return -ENOMEM;
    if (pb_overlay_find(collection->overlay, stored->id) == NULL && !is_full(collection)) {
        struct pb_job *job = add(collection->listing);
        if (job == NULL)
            return -ENOMEM;
        *job = *stored;
        pb_job_init(stored);
    }
    return is_full(collection);
}

int pb_overlay_list(const struct pb_overlay *overlay, struct pb_job_store *store,
                    const struct pb_job_query *query, struct pb_err *err,
                    struct pb_job_listing **out_listing)
{
    struct pb_job_query rows = *query;
    struct collection collection = {overlay, query, calloc(1, sizeof(struct pb_job_listing)),
                                    INT64_MAX};
    int rc = collection.listing != NULL ? 0 : -ENOMEM;
    rows.limit += (int64_t)overlay->n; /* rows that may be left out */
    rc = rc ? rc : pb_job_store_list(store, &rows, add_row, &collection, err);
    rc = rc ? rc : add_live(&collection, 0);
    if (rc >= 0) {
        *out_listing = collection.listing;
        return 0;
    }
    pb_job_listing_free(collection.listing);
    return rc == -ENOMEM ? pb_fail(err, PB_E_MEMORY, "out of memory") : rc;
}

/* --- the sweep --- */

/* Returns true if another node has run a job since the state that is shown. */
static bool is_lost(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_job row;
    if (!pb_store_is_shared(store) || pb_job_store_find(store, job->id, NULL, &row) != 0)
        return false;
    const bool lost = row.epoch > job->epoch;
    pb_job_fini(&row);
    return lost;
}

void pb_overlay_sweep(struct pb_overlay *overlay, struct pb_job_store *store)
{
    int64_t now_ms = pb_clock_mono_ms();
    for (size_t i = overlay->n; i-- > 0;) {
        bool held = overlay->at[i].held_ms != 0 && now_ms - overlay->at[i].held_ms < HOLD_MS;
        const struct pb_job *job = &overlay->at[i].job;
        if ((!held && is_stored(store, job)) || is_lost(store, job))
            forget(overlay, job->id);
    }
}
