/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHORES_H
#define PB_CHORES_H
/* What keeps the job store small, on libuv's pool and one at a time: the oldest finished jobs are
 * forgotten, the write-ahead log goes into the database. Thread: loop. */
#include "service/jobs/job_store.h"

#include <uv.h>

struct pb_chores {
    uv_loop_t *loop;
    struct pb_job_store *store;
    uv_work_t work;
    bool works;
    bool prunes;
    int keep;
};

/* Starts what is due; counts: of jobs, as last read; keep: finished jobs that stay. */
void pb_chores_run(struct pb_chores *chores, const int64_t counts[PB_JOB_STATUS_COUNT], int keep);
#endif
