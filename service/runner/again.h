/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_AGAIN_H
#define PB_AGAIN_H
/* Job that makes the products of a successful job again. It reads the input at its present place,
 * in the archive or where a client submitted it: no file is moved, therefore one row of the store
 * is the whole change. Its products replace only those of the earlier job (PB_EXISTING_OWN). */
#include "service/jobs/job_store.h"

struct pb_again {
    int priority;
    bool dry_run;                         /* only checks */
    const char *work;                     /* directory of the service; borrowed */
    char identity[PB_JOB_IDENTITY_BYTES]; /* present identity of a submitted file; "" = unknown */
};

/* Stores the job that makes the products of the successful job `of` again: *out, which the caller
 * must fini; a dry run does not change *out. input.gone: the archive no longer has the input, or
 * one of the inputs of the scene; job.superseded: another job has made the products since;
 * job.state: another job waits to make them already. Thread: pool. */
int pb_again_store(struct pb_job_store *store, const struct pb_again *again,
                   const struct pb_job *of, struct pb_err *err, struct pb_job *out);
#endif
