/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_OVERLAY_H
#define PB_STATUS_OVERLAY_H
/* The jobs whose current state differs from the job store: running ones with their progress, those
 * whose last change could not be stored yet (a full disk), and those that are just ending. Thread:
 * status. */
#include "service/jobs/job_store.h"

struct pb_overlay_entry {
    struct pb_job job;
    int64_t held_ms; /* since when, or 0 = not */
};

struct pb_overlay {
    struct pb_overlay_entry *at;
    size_t n, room;
};

void pb_overlay_fini(struct pb_overlay *overlay);
/* The job as the service reported it last, or NULL: as it is stored. Borrowed until the next
 * change. */
const struct pb_job *pb_overlay_find(const struct pb_overlay *overlay, const char *id);
/* A job changed; it is kept unless the store shows the change already. held: kept in any case,
 * until the next put of it (or a minute long). */
void pb_overlay_put(struct pb_overlay *overlay, struct pb_job_store *store,
                    const struct pb_job *job, bool held);
/* Removes jobs that the store has in the same state. */
void pb_overlay_sweep(struct pb_overlay *overlay, struct pb_job_store *store);
#endif
