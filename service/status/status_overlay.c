/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_overlay.h"

#include "config/base/clock.h"

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

/* Returns true if the store has the job in this state. Progress is never stored. A job that the
 * store does not have any more was pruned. */
static bool is_stored(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_job row;
    struct pb_err err = {0};
    if (job->status == PB_JOB_RUNNING)
        return false;
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

void pb_overlay_sweep(struct pb_overlay *overlay, struct pb_job_store *store)
{
    int64_t now_ms = pb_clock_mono_ms();
    for (size_t i = overlay->n; i-- > 0;) {
        bool held = overlay->at[i].held_ms != 0 && now_ms - overlay->at[i].held_ms < HOLD_MS;
        if (!held && is_stored(store, &overlay->at[i].job))
            forget(overlay, overlay->at[i].job.id);
    }
}
