/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTCOME_H
#define PB_OUTCOME_H
/* How a job ended is decided by what a reader of products/ can see: it is successful when the
 * complete directory with the job's id in its manifest is in place, no matter how its worker ended
 * and what it reported last. So a failure reported after the rename, a worker killed before its
 * last line, a late cancel, a service that dies before it stores the end and an abandoned worker
 * that publishes late have the same result: the job is successful, and it is not run again. Checked
 * before a job fails, goes back into the queue or starts again. Thread: loop. */
#include "service/jobs/job.h"

/* Whether the job's products are in place; path: output.path of its pipeline. Then the job has
 * their directory and list, and no error; the error that it had is logged as a warning. */
bool pb_outcome_is_published(struct pb_job *job, const char *products, const char *path);
#endif
