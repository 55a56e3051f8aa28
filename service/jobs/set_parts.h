/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SET_PARTS_H
#define PB_SET_PARTS_H
/* Processed sets of loose files, for files that may join them (input.complete.reopen): rows of the
 * job store that stay when their jobs are deleted. A set has the id of its first job, and a part
 * for each of its successful jobs: the files delivered for that job, at their present place. A
 * trigger writes them with the job's row, and pb_kept_update sets their service time
 * (service_time.h), which is their order and age. Thread: same as the store's. */
#include "service/jobs/job_store.h"

#include "service/base/files.h"

struct pb_set_key {
    const char *pipeline, *scene; /* pipeline and scene of the job */
    const char *inbox;            /* path of the inbox */
    const char *folder;           /* path below the inbox; NULL = the inbox itself */
};

struct pb_set_last {
    char set_id[PB_JOB_ID_BYTES], job[PB_JOB_ID_BYTES]; /* the set and the job of its newest part */
    char busy[PB_JOB_ID_BYTES]; /* a waiting or running job of that scene; "" = no such job */
};

struct pb_set_part {
    char job[PB_JOB_ID_BYTES];
    /* last job that made its products: `job`, or one that made them again */
    char maker[PB_JOB_ID_BYTES];
    char path[PB_FILES_PATH_BYTES]; /* folder of its files */
    char
        directory[PB_FILES_PATH_BYTES]; /* directory of the products; "" if there are no products */
    const char *manifest;               /* JSON form of its job's manifest; NULL = unknown */
    const void *files;                  /* packed list of its files (file_list.h); NULL = unknown */
    size_t files_bytes;
};

/* Finds the set whose newest part is not older than since_ms (service time). Returns 1, 0: no set,
 * or a negative errno; *out is set unless it is negative. One prepared statement, because a scan
 * calls it for each set. */
int pb_set_parts_last(struct pb_job_store *store, const struct pb_set_key *key, int64_t since_ms,
                      struct pb_err *err, struct pb_set_last *out);
/* Returns 1 if a job of the set runs and may read its parts at their present place, otherwise 0. */
int pb_set_parts_in_use(struct pb_job_store *store, const char *set_id, struct pb_err *err);
/* Adds a job of loose files to the set of its scene that is not older than reopen_ms; if there is
 * no such set, the job keeps its set or gets a new one. Returns 0 or a negative errno. */
int pb_set_parts_join(struct pb_job_store *store, struct pb_job *job, int64_t reopen_ms,
                      struct pb_err *err);
/* Lists the parts of a set, newest first. visit borrows, must not call the store, and ends the
 * list by a value other than 0, which is returned. */
int pb_set_parts_list(struct pb_job_store *store, const char *set_id,
                      int (*visit)(void *user, const struct pb_set_part *part), void *user,
                      struct pb_err *err);
/* Lists the parts from the jobs in the store: also for a set whose parts are deleted. */
int pb_set_parts_list_jobs(struct pb_job_store *store, const char *set_id,
                           int (*visit)(void *user, const struct pb_set_part *part), void *user,
                           struct pb_err *err);
/* Returns 1 if the path is that of a part, otherwise 0. */
int pb_set_parts_hold(struct pb_job_store *store, const char *path, struct pb_err *err);
/* Finds the name of the first pipeline after `after` ("": the first of all) that has parts: 1, or
 * 0 if absent. */
int pb_set_parts_pipeline(struct pb_job_store *store, const char *after, struct pb_err *err,
                          char out_name[PB_JOB_NAME_BYTES]);
/* Deletes the sets of a pipeline whose newest part is older than reopen_ms at now_ms (service
 * time) and that no job waits for. reopen_ms is stored; -1: the pipeline is not configured, and
 * the stored value is used. Returns the number of deleted parts. */
int pb_set_parts_trim(struct pb_job_store *store, const char *pipeline, int64_t reopen_ms,
                      int64_t now_ms, struct pb_err *err);
#endif
