/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/chores.h"

#define PRUNE_FROM 32 /* jobs too many, before any is forgotten */

static void work(uv_work_t *request)
{
    struct pb_chores *chores = request->data;
    if (chores->prunes)
        (void)pb_job_store_prune(chores->store, chores->keep, NULL);
    if (pb_job_store_log_is_long(chores->store))
        (void)pb_job_store_checkpoint(chores->store, NULL);
}

static void on_worked(uv_work_t *request, int status)
{
    struct pb_chores *chores = request->data;
    (void)status;
    chores->works = false;
}

void pb_chores_run(struct pb_chores *chores, const int64_t counts[PB_JOB_STATUS_COUNT], int keep)
{
    int64_t finished = counts[PB_JOB_SUCCESSFUL] + counts[PB_JOB_FAILED] + counts[PB_JOB_DISMISSED];
    bool prunes = finished - keep >= PRUNE_FROM;
    if (chores->works || (!prunes && !pb_job_store_log_is_long(chores->store)))
        return;
    chores->prunes = prunes;
    chores->keep = keep;
    chores->works = true;
    chores->work.data = chores;
    (void)uv_queue_work(chores->loop, &chores->work, work, on_worked);
}
