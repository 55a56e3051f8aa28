/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AGAIN_H
#define PB_AGAIN_H
/* A job that makes the products of a successful job again. It reads the input where it is, in the
 * archive or where a client submitted it: nothing is moved, so that one row of the store is the
 * whole change. Its products replace those of the earlier job alone (PB_EXISTING_OWN). */
#include "service/jobs/job_store.h"

struct pb_again {
    int priority;
    bool dry_run;                         /* only the checks */
    const char *work;                     /* directory of the service; borrowed */
    char identity[PB_JOB_IDENTITY_BYTES]; /* identity of a submitted file now; "" = not known */
};

/* Stores the job that makes the products of the successful job `of` again: *out, the caller's to
 * fini; a dry run leaves it as it is. input.gone: the archive does not have the input, or one of
 * the inputs of the scene, any more; job.superseded: another job made the products since;
 * job.state: a job waits for that already. Thread: pool. */
int pb_again_store(struct pb_job_store *store, const struct pb_again *again,
                   const struct pb_job *of, struct pb_err *err, struct pb_job *out);
#endif
