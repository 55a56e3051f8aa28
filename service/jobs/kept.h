/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KEPT_H
#define PB_KEPT_H
/* Inputs of finished jobs, and their companions, where the service has put them: rows of the job
 * store that stay when the job is forgotten, so that only what it put there itself is ever removed.
 * Triggers make a row with the end of the job, when the input is still in work/<id>/, and change
 * its path with the job's. A row has the list of the files (file_list.h). Thread: as the
 * store's. */
#include "service/jobs/file_list.h"
#include "service/jobs/job_store.h"

#include "service/base/files.h"

enum pb_kept_kind {
    PB_KEPT_ARCHIVED,    /* or a companion there */
    PB_KEPT_QUARANTINED, /* without a companion */
    PB_KEPT_COMPANION    /* in quarantine */
};

struct pb_kept {
    int64_t row;
    int64_t up_ms;             /* service time (service_time.h) since it is counted */
    int64_t since_ms;          /* wall clock: when its place was stored */
    bool is_said;              /* pb_kept_say */
    char job[PB_JOB_ID_BYTES]; /* "": a store of an earlier version did not have it */
    char path[PB_FILES_PATH_BYTES];
};

/* Lists what the input and the companion of a finished job consist of. A list that cannot be made
 * stays empty. */
void pb_input_lists_make(const struct pb_job *job, struct pb_input_lists *out);
/* After pb_input_store_put: sets the paths to the present ones of the job. */
void pb_input_lists_moved(struct pb_input_lists *lists, const struct pb_job *job);
/* The lists as stored for a job. *out is the caller's to fini. 0 or a negative errno. */
int pb_kept_lists(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err,
                  struct pb_input_lists *out);
/* pb_job_store_update for a finished job, with its lists. An empty list leaves the stored one. Rows
 * without a service time, of kept and of a part of a set, count from now on. */
int pb_kept_update(struct pb_job_store *store, const struct pb_job *job,
                   const struct pb_input_lists *lists, struct pb_err *err);

/* Rows that have no service time yet count from now on. */
int pb_kept_count(struct pb_job_store *store, struct pb_err *err);
/* The oldest row of a kind after (up_ms, row) of *after (zeroed: of all) that is counted since a
 * service time before before_ms: 1 and *out, 0: no row, negative errno. */
int pb_kept_next(struct pb_job_store *store, enum pb_kept_kind kind, const struct pb_kept *after,
                 int64_t before_ms, struct pb_err *err, struct pb_kept *out);
/* The row of a path: 1 and *out, 0 none, negative errno. */
int pb_kept_find(struct pb_job_store *store, const char *path, struct pb_err *err,
                 struct pb_kept *out);
/* The list of a row; empty if absent. 0 or a negative errno. */
int pb_kept_files(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err,
                  struct pb_file_list *out);
/* A quarantined input that the store does not know: makes its row, which counts from now on. path,
 * job and since_ms are set. */
int pb_kept_add(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
/* Marks a row whose input stays: the log has the reason. */
int pb_kept_say(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
int pb_kept_forget(struct pb_job_store *store, const struct pb_kept *kept, struct pb_err *err);
/* The first row after *after (zeroed: of all), by path, whose path is in <work>/<its job>/: the end
 * of the job is stored, and a move is not. 1 and *out, 0: no row, negative errno. */
int pb_kept_unmoved(struct pb_job_store *store, const char *work, const struct pb_kept *after,
                    struct pb_err *err, struct pb_kept *out);
#endif
