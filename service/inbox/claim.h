/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_H
#define PB_CLAIM_H
/* Turns the settled files of an inbox into jobs: a file, folder or set is claimed by renaming it
 * into work/<job id>/, then its job is stored. Thread: pool, one at a time for an inbox. */
#include "service/inbox/intake.h"

#define PB_CLAIM_BATCH 64 /* files that are claimed at a time */

/* Settled file, and the result of its claim. */
struct pb_claimed {
    const struct pb_settle_file *file;
    const struct pb_assembled *set; /* the set that file represents; NULL if a single file */
    /* error that its job is to fail with; NULL if no error is known */
    const struct pb_described *error;
    /* 0: *job is set, and the caller must fini it. -EAGAIN: the file changed meanwhile, is gone,
     * is open for writing, or lacks other files (input.incomplete in err), which is no error.
     * Otherwise *err: a code of PB_CLASS_INPUT concerns this file only; with any other code no
     * file can be taken now. */
    int rc;
    struct pb_err err;
    /* pipeline of a folder that lacks files, and the end of its wait, wall clock */
    char pipeline[PB_JOB_NAME_BYTES];
    int64_t due_ms;
    struct pb_job job;
};

/* Takes settled files of an inbox, PB_CLAIM_BATCH at most, with one sync of each directory and one
 * transaction. After any failure a file is in the inbox again, or in work/ where pb_adopt_work
 * finds it. Returns the count of files that were tried: fewer than n after a fault of the machine.
 */
size_t pb_claim_files(struct pb_intake *intake, const struct pb_inbox *inbox,
                      struct pb_claimed *files, size_t n);
#endif
