/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_overlay.h"

#include "config/base/clock.h"

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

static struct pb_overlay_entry *find_entry(struct pb_overlay *overlay, const char *id)
{
    for (size_t i = 0; i < overlay->n; i++) {
        if (strcmp(overlay->at[i].job.id, id) == 0)
            return &overlay->at[i];
    }
    return NULL;
}

static void forget(struct pb_overlay *overlay, struct pb_overlay_entry *entry)
{
    if (entry == NULL)
        return;
    pb_job_fini(&entry->job);
    overlay->n_new -= entry->is_new;
    *entry = overlay->at[--overlay->n];
    overlay->version++;
}

void pb_overlay_put(struct pb_overlay *overlay, const char *node, const struct pb_job *job,
                    bool held)
{
    struct pb_overlay_entry entry = {.held_ms = held ? pb_clock_mono_ms() : 0,
                                     .is_new = !held && job->status != PB_JOB_RUNNING};
    const unsigned version = overlay->version;
    forget(overlay, find_entry(overlay, job->id));
    if (!held && job->status == PB_JOB_RUNNING && strcmp(job->node, node) != 0) {
        overlay->version++;
        return;
    }
    if (overlay->n == overlay->room) {
        size_t room = overlay->room ? overlay->room * 2 : 16;
        struct pb_overlay_entry *more = realloc(overlay->at, room * sizeof *more);
        if (more == NULL)
            return; /* the stored state is shown then */
        overlay->at = more;
        overlay->room = room;
    }
    if (pb_job_copy(&entry.job, job) != 0)
        return;
    overlay->at[overlay->n++] = entry;
    overlay->version = version;
    overlay->n_new += entry.is_new;
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
    pb_job_listing_fini(listing);
    free(listing);
}

bool pb_overlay_fits(const struct pb_job_query *query, const struct pb_job *job)
{
    return (PB_JOB_MASK(job->status) & query->status_mask) != 0 && job->seq < query->before_seq &&
           job->updated_ms >= query->since_ms &&
           (query->pipeline == NULL || strcmp(query->pipeline, job->pipeline) == 0);
}

static bool is_full(const struct collection *collection)
{
    return (int64_t)collection->listing->n >= collection->query->limit;
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
        struct pb_job *job = pb_overlay_fits(collection->query, live)
                                 ? pb_job_listing_add(collection->listing)
                                 : NULL;
        if (pb_overlay_fits(collection->query, live) &&
            (job == NULL || pb_job_copy(job, live) != 0))
            return -ENOMEM;
        collection->above_seq = live->seq;
    }
    return 0;
}

/* Returns 1 if the list is full. */
static int add_row(struct collection *collection, struct pb_job *stored)
{
    if (add_live(collection, stored->seq) != 0)
        return -ENOMEM;
    if (pb_overlay_find(collection->overlay, stored->id) == NULL && !is_full(collection)) {
        struct pb_job *job = pb_job_listing_add(collection->listing);
        if (job == NULL)
            return -ENOMEM;
        *job = *stored;
        pb_job_init(stored);
    }
    return is_full(collection);
}

int pb_overlay_list(const struct pb_overlay *overlay, const struct pb_job_query *query,
                    struct pb_job_listing *rows, int64_t rows_limit,
                    struct pb_job_listing **out_listing)
{
    struct collection collection = {overlay, query, calloc(1, sizeof(struct pb_job_listing)),
                                    INT64_MAX};
    int rc = collection.listing != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < rows->n && rc == 0; i++)
        rc = add_row(&collection, &rows->jobs[i]);
    if (rc == 0 && (int64_t)rows->n >= rows_limit && !is_full(&collection))
        rc = -EAGAIN;
    rc = rc < 0 ? rc : add_live(&collection, 0);
    if (rc == 0)
        *out_listing = collection.listing;
    else
        pb_job_listing_free(collection.listing);
    return rc;
}

/* --- comparison with the store --- */

void pb_overlay_choose(struct pb_overlay *overlay, const char *node, bool all,
                       struct pb_reading *check)
{
    for (size_t i = 0; overlay->n_new > 0 && i < overlay->n; i++)
        if (overlay->at[i].is_new)
            pb_reading_add_id(check, overlay->at[i].job.id);
    for (size_t i = 0; all && i < overlay->n; i++) {
        const struct pb_overlay_entry *entry = &overlay->at[(overlay->turn + i) % overlay->n];
        /* Without other nodes a running job is always shown as it is here. */
        if (!entry->is_new && (entry->job.status != PB_JOB_RUNNING || node[0] != '\0'))
            pb_reading_add_id(check, entry->job.id);
    }
    overlay->turn += all ? PB_READING_CHECKED : 0;
}

/* Returns true if the store has the job in this state. Progress is never stored. A job that the
 * store does not have any more was pruned. */
static bool is_stored(const struct pb_job *job, const struct pb_checked *checked)
{
    return job->status != PB_JOB_RUNNING &&
           (!checked->is_there ||
            (checked->job.status == job->status && checked->job.updated_ms >= job->updated_ms));
}

void pb_overlay_compare(struct pb_overlay *overlay, const char *node,
                        const struct pb_reading *check)
{
    const int64_t now_ms = pb_clock_mono_ms();
    for (size_t i = 0; i < check->n_checked; i++) {
        const struct pb_checked *checked = &check->checked[i];
        struct pb_overlay_entry *entry = find_entry(overlay, checked->id);
        if (entry == NULL || !checked->is_known)
            continue;
        overlay->n_new -= entry->is_new;
        entry->is_new = false;
        const bool held = entry->held_ms != 0 && now_ms - entry->held_ms < HOLD_MS;
        /* another node has run the job since, or this service did */
        const bool lost =
            node[0] != '\0' && checked->is_there && checked->job.epoch > entry->job.epoch;
        if ((!held && is_stored(&entry->job, checked)) || lost)
            forget(overlay, entry);
    }
}
