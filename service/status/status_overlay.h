/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_OVERLAY_H
#define PB_STATUS_OVERLAY_H
/* Jobs whose present state differs from the job store: running jobs with their progress, jobs
 * whose last change could not be stored yet (a full disk), and jobs that are about to end. Thread:
 * status. */
#include "service/status/status_reader.h"

struct pb_overlay_entry {
    struct pb_job job;
    int64_t held_ms; /* time since which it is held; 0 = not held */
    bool is_new;     /* its row was not compared yet */
};

struct pb_overlay {
    struct pb_overlay_entry *at;
    size_t n, room;
    size_t n_new;     /* number of new entries */
    size_t turn;      /* first entry of the next comparison of others than new ones */
    unsigned version; /* counts the jobs that were removed */
};

void pb_overlay_fini(struct pb_overlay *overlay);
/* Finds the job in the state that the service reported last; NULL: the stored state is valid.
 * Borrowed until the next change. */
const struct pb_job *pb_overlay_find(const struct pb_overlay *overlay, const char *id);
/* Returns true if the query lists the job. */
bool pb_overlay_fits(const struct pb_job_query *query, const struct pb_job *job);
/* Call after a change of a job: keeps it until its row was compared. held: keeps it until its next
 * put (or for a minute). node: name of this node, because the progress of jobs of other nodes is
 * unknown. */
void pb_overlay_put(struct pb_overlay *overlay, const char *node, const struct pb_job *job,
                    bool held);
/* Lists the jobs that the query fits in their present states. rows: at most rows_limit jobs that
 * the store lists for the query, which should be more than those of the query by the number of
 * jobs here; they are taken out of it. Returns 0, -ENOMEM, or -EAGAIN: rows are missing. Free
 * *out_listing with pb_job_listing_free. */
int pb_overlay_list(const struct pb_overlay *overlay, const struct pb_job_query *query,
                    struct pb_job_listing *rows, int64_t rows_limit,
                    struct pb_job_listing **out_listing);
void pb_job_listing_free(struct pb_job_listing *listing); /* NULL is allowed */
/* Adds jobs whose rows must be compared to a PB_READ_CHECK: new ones; with `all` then others, in
 * turn. */
void pb_overlay_choose(struct pb_overlay *overlay, const char *node, bool all,
                       struct pb_reading *check);
/* Removes the jobs of that reading which the store has in the same state, does not have any more,
 * or has in a later epoch. */
void pb_overlay_compare(struct pb_overlay *overlay, const char *node,
                        const struct pb_reading *check);
#endif
