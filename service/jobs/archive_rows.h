/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_ROWS_H
#define PB_ARCHIVE_ROWS_H
/* Rows of an archive of several scenes: the job of the archive, which owns the file, and a job of
 * each scene (`archive` in struct pb_job), which only reads it. The archive's job waits as
 * accepted, in stage "scenes", while one of these is unfinished: pb_job_store_next passes over it.
 * Then it ends by their states, and its end moves the file. Its report lists the scenes:
 *
 *   {"scenes":[{"scene","job","status","code"}]}    "status" and "code" after its end only
 *
 * Thread: same as the store's. */
#include "service/jobs/job_store.h"

struct pb_archive_split {
    struct pb_job *archive; /* running; borrowed */
    const char *const *scenes;
    size_t n;
    /* the archive with its checksum and the state in which that was computed; NULL = unknown */
    const struct pb_scene_manifest *read;
    int64_t wall_ms;
    void (*make_id)(char out[PB_JOB_ID_BYTES]);
};

/* Stores a job of each scene without a job, and returns those that failed or were cancelled to the
 * queue, with `anyway` of the archive's job also skipped duplicates; successful ones stay. The
 * manifest of a job that waits gets the checksum of the archive; a known one is dropped. In the
 * same transaction the archive's job begins to wait for them. 0 and *out_jobs, the jobs that wait
 * now (pb_archive_rows_free); on failure nothing is stored, and the archive's job is unchanged. */
int pb_archive_rows_split(struct pb_job_store *store, const struct pb_archive_split *split,
                          struct pb_err *err, struct pb_job **out_jobs, size_t *out_n);
void pb_archive_rows_free(struct pb_job *jobs, size_t n);

/* Ids of jobs; the caller frees `id`, also after a failure. */
struct pb_archive_ids {
    char (*id)[PB_JOB_ID_BYTES];
    size_t n;
};

/* Lists the unfinished jobs of scenes of the archive, the oldest first. 0 or *err; *out then has
 * those that were read. */
int pb_archive_rows_list_open(struct pb_job_store *store, const char *archive, struct pb_err *err,
                              struct pb_archive_ids *out);

/* Completes the report of an archive's job whose scenes are over, and sets *out_status: failed if
 * one failed or the report is damaged, else dismissed if one was cancelled (all with an error),
 * else successful. Skipped duplicates count as successful. 0, or *err. */
int pb_archive_rows_sum(struct pb_job_store *store, struct pb_job *archive, struct pb_err *err,
                        enum pb_job_status *out_status);
/* Stores a job whose input was dropped from quarantine, and drops (pb_job_drop) the jobs of its
 * scenes that failed, if it is that of an archive. */
int pb_archive_rows_drop(struct pb_job_store *store, const struct pb_job *archive, int64_t wall_ms,
                         struct pb_err *err);
/* Returns 1 if a job of a scene of the archive is unfinished, else 0; negative errno. */
int pb_archive_rows_is_open(struct pb_job_store *store, const char *archive, struct pb_err *err);
/* Returns 1 if a scene of the archive was skipped as a duplicate, else 0; negative errno. */
int pb_archive_rows_skipped(struct pb_job_store *store, const char *archive, struct pb_err *err);
#endif
