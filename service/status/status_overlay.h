/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_OVERLAY_H
#define PB_STATUS_OVERLAY_H
/* Jobs whose present state differs from the job store: running jobs with their progress, jobs
 * whose last change could not be stored yet (a full disk), and jobs that are about to end. Thread:
 * status. */
#include "service/jobs/job_store.h"

struct pb_overlay_entry {
    struct pb_job job;
    int64_t held_ms; /* time since which it is held; 0 = not held */
};

struct pb_overlay {
    struct pb_overlay_entry *at;
    size_t n, room;
};

/* Jobs as they are at one moment, newest first. */
struct pb_job_listing {
    struct pb_job *jobs;
    size_t n, room, printed;
};

void pb_overlay_fini(struct pb_overlay *overlay);
/* Finds the job in the state that the service reported last; NULL: the stored state is valid.
 * Borrowed until the next change. */
const struct pb_job *pb_overlay_find(const struct pb_overlay *overlay, const char *id);
/* Call after a change of a job: keeps it unless the store has the change already. held: keeps it
 * in any case, until its next put (or for a minute). */
void pb_overlay_put(struct pb_overlay *overlay, struct pb_job_store *store,
                    const struct pb_job *job, bool held);
/* Lists the jobs that the query fits in their present states; in the store they may have others.
 * Free with pb_job_listing_free. */
int pb_overlay_list(const struct pb_overlay *overlay, struct pb_job_store *store,
                    const struct pb_job_query *query, struct pb_err *err,
                    struct pb_job_listing **out_listing);
void pb_job_listing_free(struct pb_job_listing *listing); /* NULL is allowed */
/* Removes jobs that the store has in the same state. */
void pb_overlay_sweep(struct pb_overlay *overlay, struct pb_job_store *store);
#endif
