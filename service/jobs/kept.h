/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KEPT_H
#define PB_KEPT_H
/* Present places of the inputs of finished jobs, and of their companions: rows of the job store
 * that stay when the job is deleted, so that only files which the service put there itself are
 * ever removed. Triggers make a row with the end of the job, when the input is still in
 * work/<id>/, and change its path with the job's. A row has the list of the files (file_list.h).
 * Thread: same as the store's. */
#include "service/jobs/file_list.h"
#include "service/jobs/job_store.h"

#include "service/base/files.h"

enum pb_kept_kind {
    PB_KEPT_ARCHIVED,    /* in the archive: an input or a companion */
    PB_KEPT_QUARANTINED, /* in quarantine: an input */
    PB_KEPT_COMPANION    /* in quarantine: a companion */
};

struct pb_kept {
    int64_t row;
    int64_t up_ms;             /* service time (service_time.h) at which its age begins */
    int64_t since_ms;          /* wall clock: time at which its place was stored */
    bool is_said;              /* set by pb_kept_say */
    char job[PB_JOB_ID_BYTES]; /* "" if a store of an earlier version did not have it */
    char path[PB_FILES_PATH_BYTES];
};

/* Lists the files of the input and of the companion of a finished job. A list that cannot be made
 * stays empty. */
void pb_input_lists_make(const struct pb_job *job, struct pb_input_lists *out);
/* Call after pb_input_store_put: sets the paths in the lists to the present paths of the job. */
void pb_input_lists_moved(struct pb_input_lists *lists, const struct pb_job *job);
/* Reads the stored lists of a job; the caller must fini *out. Returns 0 or a negative errno. */
int pb_kept_lists(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err,
                  struct pb_input_lists *out);
/* Does the same as pb_store_finish for a finished job, and stores its lists. An empty list
 * leaves the stored one. For rows without a service time, of kept and of a part of a set, the age
 * begins now. */
int pb_kept_update(struct pb_job_store *store, const struct pb_job *job,
                   const struct pb_input_lists *lists, struct pb_err *err);

/* Begins the age of all rows that have no service time yet. */
int pb_kept_count(struct pb_job_store *store, struct pb_err *err);
/* Finds the oldest row of a kind after (up_ms, row) of *after (all-zero: the oldest of all) whose
 * age began before the service time before_ms: 1 and *out, 0: no row, negative errno. */
int pb_kept_next(struct pb_job_store *store, enum pb_kept_kind kind, const struct pb_kept *after,
                 int64_t before_ms, struct pb_err *err, struct pb_kept *out);
/* Finds the row of a path: 1 and *out, 0 if absent, negative errno. */
int pb_kept_find(struct pb_job_store *store, const char *path, struct pb_err *err,
                 struct pb_kept *out);
/* Reads the list of a row; empty if absent. Returns 0 or a negative errno. */
int pb_kept_files(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err,
                  struct pb_file_list *out);
/* Adds a row for a quarantined input that the store does not have; its age begins now. path, job
 * and since_ms are set by the caller. */
int pb_kept_add(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
/* Marks a row whose input stays, after the reason was logged. */
int pb_kept_say(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
int pb_kept_forget(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
/* Finds the first row after *after (all-zero: the first of all), by path, whose path is in
 * <work>/<its job>/: the end of the job is stored, but not a move. 1 and *out, 0: no row, negative
 * errno. */
int pb_kept_unmoved(struct pb_job_store *store, const char *work, const struct pb_kept *after,
                    struct pb_err *err, struct pb_kept *out);
#endif
