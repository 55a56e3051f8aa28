/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LIVE_H
#define PB_LIVE_H
/* Jobs of scenes whose lines still arrive. Such a job runs in addition to service.parallel_jobs,
 * because it mostly waits, and on the node that has the stream. A run that fails before the scene
 * is complete does not end the job: at most PB_LIVE_TRIES runs may fail while lines arrive, and the
 * next one computes the complete file like any other job. Thread: loop, except where noted. */
#include "config/config.h"
#include "service/jobs/job.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PB_LIVE_MAX = 8,   /* such jobs that run at the same time */
    PB_LIVE_TRIES = 3, /* runs of a job that may fail while lines arrive */
    PB_LIVE_KEPT = 32  /* jobs whose failed runs are counted; the oldest count is dropped */
};

struct pb_live {
    int64_t growing; /* count of scenes that have a job and whose lines still arrive */
    struct {
        char id[PB_JOB_ID_BYTES];
        int n;
    } failed[PB_LIVE_KEPT];
    unsigned next;
};

/* Returns true if lines of the job's scene still arrive. Reads its file. Thread: any. */
bool pb_live_is_growing(const struct pb_config *config, const struct pb_job *job);
/* Returns true if the job was stored before its scene was complete. Only the node that has the
 * stream knows whether it is now. Thread: any. */
bool pb_live_is_of_stream(const struct pb_config *config, const struct pb_job *job);
/* Notes that a run of the job failed while lines arrived. */
void pb_live_note_failed(struct pb_live *live, const char *id);
/* Returns true if the job may run again while lines arrive. Thread: any, of a copy. */
bool pb_live_may_try(const struct pb_live *live, const char *id);
#endif
