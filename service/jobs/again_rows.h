/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AGAIN_ROWS_H
#define PB_AGAIN_ROWS_H
/* Rows of jobs that make the products of an earlier job again (`again` in struct pb_job) and read
 * its input at its place in the archive. Thread: same as the store's. */
#include "service/jobs/job_store.h"

/* Finds the job that waits or runs to make the products of that job again: 1 and its id, 0 = not
 * found, negative errno. */
int pb_again_waits(struct pb_job_store *store, const char *job, struct pb_err *err,
                   char out_job[PB_JOB_ID_BYTES]);
/* Returns 1 if such a job waits for, or reads, the archived input with that path; 0, or negative
 * errno. */
int pb_again_holds(struct pb_job_store *store, const char *path, struct pb_err *err);
#endif
