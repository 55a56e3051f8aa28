/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_JOB_STORE_FIXTURE_H
#define PB_TEST_JOB_STORE_FIXTURE_H
/* A store, and jobs in it. */
#include "service/base/files.h"
#include "service/jobs/job_store.h"
#include "service/jobs/set_parts.h"

#include "store_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char moved[PB_FILES_PATH_BYTES];
static struct pb_job_store *store;

static inline void open_store(void)
{
    struct pb_err err = {0};
    int rc = pb_job_store_open(&place, &err, moved, &store);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

static inline void close_store(void)
{
    pb_job_store_close(store);
}

static inline void make(void)
{
    place_in_directory();
    open_store();
}

static inline void end(void)
{
    close_store();
    remove_directory();
}

static inline void insert(const char *id, enum pb_job_status status)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.name, sizeof job.name, "%s.tif", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    job.status = status;
    job.created_ms = 1000;
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    ck_assert_int_gt(job.seq, 0);
    pb_job_fini(&job);
}

static inline enum pb_job_status status_of(const char *id)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    enum pb_job_status status = job.status;
    pb_job_fini(&job);
    return status;
}

static inline bool any(void *user, const struct pb_job *job)
{
    const char *not_this = user;
    return not_this == NULL || strcmp(job->id, not_this) != 0;
}

static inline int count(void *user, struct pb_job *job)
{
    char *ids = user;
    (void)strcat(ids, job->id + 16);
    return 0;
}

/* Appends the ends of the ids of listed jobs to ids. */
static inline int list_jobs(unsigned mask, int64_t before_seq, int64_t limit, char *ids)
{
    const struct pb_job_query query = {
        .status_mask = mask, .before_seq = before_seq, .limit = limit};
    return pb_job_store_list(store, &query, count, ids, NULL);
}

static inline void insert_with(const char *id, int priority)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    job.priority = priority;
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
}

/* Lets none through. */
static inline bool collect(void *user, const struct pb_job *job)
{
    char *ids = user;
    (void)strcat(ids, job->id + 16);
    return false;
}
#endif
