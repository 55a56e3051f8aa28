/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KEPT_H
#define PB_KEPT_H
/* Inputs of successful jobs where the service has put them: rows of the job store that stay when
 * the job is forgotten, so that only what it put there itself is ever removed. A trigger writes
 * them with the job's row. Thread: as the store's. */
#include "service/jobs/job_store.h"

#include "service/base/files.h"

struct pb_kept {
    int64_t row, since_ms; /* wall clock: when its place was stored */
    char path[PB_FILES_PATH_BYTES];
};

/* The oldest row behind (since, row) of *after (zeroed: of all) that is older than before_ms: 1 and
 * *out, 0 none, negative errno. */
int pb_kept_next(struct pb_job_store *store, const struct pb_kept *after, int64_t before_ms,
                 struct pb_err *err, struct pb_kept *out);
int pb_kept_forget(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
#endif
