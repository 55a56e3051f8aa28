/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONTENTS_H
#define PB_CONTENTS_H
/* Contents of processed inputs: rows of the job store, which stay when their jobs are forgotten.
 * There is one row for each content and pipeline, of the last job that processed it. Thread: same
 * as the store's. */
#include "service/jobs/job_store.h"

#include "service/base/files.h"

#define PB_CONTENTS_MAX 4096 /* maximum number of checksums that pb_contents_like lists */

struct pb_content {
    const char *pipeline;
    const char *scene; /* scene of an archive of several; "" = the whole input */
    int64_t bytes;
    const char *checksum; /* text of pipeline/io/checksum.h; not NONE */
};

/* Job that processed it, its time (wall clock) and the directory of its products. */
struct pb_content_done {
    char job[PB_JOB_ID_BYTES];
    int64_t time_ms;
    char directory[PB_FILES_PATH_BYTES];
};

int pb_contents_add(struct pb_job_store *store, const struct pb_content *content,
                    const struct pb_content_done *done, struct pb_err *err);
/* Lists the checksums of contents of that pipeline, scene and size (content->checksum is not used)
 * that were processed since since_ms, the newest PB_CONTENTS_MAX, a space after each: malloc'd;
 * NULL if there are no such contents. */
int pb_contents_like(struct pb_job_store *store, const struct pb_content *content, int64_t since_ms,
                     struct pb_err *err, char **out_sums);
/* Returns 1 and *out, 0 if absent, negative errno. */
int pb_contents_find(struct pb_job_store *store, const struct pb_content *content,
                     struct pb_err *err, struct pb_content_done *out);
int pb_contents_forget(struct pb_job_store *store, const struct pb_content *content,
                       struct pb_err *err);
/* Deletes a part of the contents that were processed before before_ms. Returns the number of
 * deleted rows. */
int pb_contents_trim(struct pb_job_store *store, int64_t before_ms, struct pb_err *err);
#endif
