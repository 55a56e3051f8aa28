/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTCOME_H
#define PB_OUTCOME_H
/* How a job ended is decided by what a reader of products/ can see: it is successful when the
 * complete directory with the job's id in its manifest is in place, whatever became of its worker
 * and its last words. So a failure that is told after the rename, a worker that is killed before
 * its last line, a cancel that comes too late, a service that dies before it stores the end and a
 * worker that was given up and publishes late all end the same: the job is successful, and it is
 * not run again. Asked before a job fails, goes back into the queue or starts again. Thread: loop.
 */
#include "service/jobs/job.h"

/* Whether the job's products are in place. Then the job has their directory and list, and a warning
 * of what it failed with is in the log; it has no error any more. */
bool pb_outcome_is_published(struct pb_job *job, const char *products);
#endif
