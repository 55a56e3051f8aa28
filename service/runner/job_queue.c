/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/job_queue.h"

#include <sys/stat.h>

#define READ_MAX          2000 /* waiting jobs read by one call, before it returns to the loop */
#define READ_SMALLEST_MAX 1000

/* The jobs of a rank, and the lowest rank above it that was found. */
struct ranked {
    const struct pb_job_filter *filter;
    int64_t rank, next;
    int highest; /* priority of the first job that may start */
    bool any;
};

static int64_t rank_of(struct ranked *ranked, const struct pb_job *job)
{
    const struct pb_job_filter *filter = ranked->filter;
    int64_t rank = filter->rank != NULL ? filter->rank(filter->user, job) : 0;
    if (!ranked->any)
        ranked->highest = job->priority;
    ranked->any = true;
    return filter->by_rank_alone ? rank : (ranked->highest - job->priority) * PB_JOB_RANKS + rank;
}

static bool may_start(void *user, const struct pb_job *job)
{
    struct ranked *ranked = user;
    const struct pb_job_filter *filter = ranked->filter;
    if (!filter->may(filter->user, job))
        return false;
    int64_t rank = rank_of(ranked, job);
    if (rank > ranked->rank && rank < ranked->next)
        ranked->next = rank;
    return rank == ranked->rank;
}

int pb_job_queue_next(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                      struct pb_err *err, bool *out_more, struct pb_job *out_job)
{
    struct ranked ranked = {.filter = filter, .next = INT64_MAX};
    struct pb_job_place before = queue->after;
    int rc =
        pb_job_store_next(queue->reader, &queue->after, READ_MAX, may_start, &ranked, err, out_job);
    if (rc == 0 && ranked.next != INT64_MAX) {
        ranked.rank = ranked.next;
        queue->after = before;
        rc = pb_job_store_next(queue->reader, &queue->after, READ_MAX, may_start, &ranked, err,
                               out_job);
    }
    *out_more = queue->after.seq != 0;
    return rc;
}

/* Reads the size only of files in the service's directories: a submitted path may be on storage
 * that hangs. */
static int64_t input_bytes(const struct pb_job *job)
{
    struct stat st;
    bool known = job->owned && job->manifest.input != NULL &&
                 lstat(job->manifest.input, &st) == 0 && S_ISREG(st.st_mode);
    return known ? (int64_t)st.st_size : INT64_MAX - 1;
}

struct smallest {
    const struct pb_job_filter *filter;
    int64_t seq, bytes; /* the smallest so far; seq 0 = not found */
    int priority;
};

/* Filter that rejects all jobs, so that all are visited. */
static bool compare(void *user, const struct pb_job *job)
{
    struct smallest *smallest = user;
    if (!smallest->filter->may(smallest->filter->user, job))
        return false;
    int64_t bytes = input_bytes(job);
    if (smallest->seq == 0 || bytes < smallest->bytes) {
        smallest->seq = job->seq;
        smallest->priority = job->priority;
        smallest->bytes = bytes;
    }
    return false;
}

static bool is_it(void *user, const struct pb_job *job)
{
    return job->seq == *(const int64_t *)user;
}

int pb_job_queue_smallest(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                          struct pb_err *err, struct pb_job *out_job)
{
    struct smallest smallest = {.filter = filter};
    struct pb_job_place after = {0};
    int rc = pb_job_store_next(queue->reader, &after, READ_SMALLEST_MAX, compare, &smallest, err,
                               out_job);
    if (rc < 0 || smallest.seq == 0)
        return rc;
    after = (struct pb_job_place){smallest.priority, smallest.seq - 1};
    return pb_job_store_next(queue->reader, &after, 1, is_it, &smallest.seq, err, out_job);
}

bool pb_job_queue_has(struct pb_job_queue *queue, const struct pb_job_filter *filter)
{
    struct pb_job job;
    struct pb_job_place after = {0};
    if (pb_job_store_next(queue->reader, &after, READ_SMALLEST_MAX, filter->may, filter->user, NULL,
                          &job) <= 0)
        return false;
    pb_job_fini(&job);
    return true;
}

bool pb_job_queue_is_empty(struct pb_job_queue *queue)
{
    int64_t counts[PB_JOB_STATUS_COUNT];
    return pb_job_store_counts(queue->reader, counts, NULL) == 0 && counts[PB_JOB_ACCEPTED] == 0;
}

int pb_job_queue_is_open(struct pb_job_queue *queue, const char *archive, struct pb_err *err)
{
    return pb_archive_rows_is_open(queue->reader, archive, err);
}

int pb_job_queue_scenes(struct pb_job_queue *queue, const char *archive, struct pb_err *err,
                        struct pb_archive_ids *out)
{
    return pb_archive_rows_list_open(queue->reader, archive, err, out);
}

int pb_job_queue_skipped(struct pb_job_queue *queue, const char *archive, struct pb_err *err)
{
    return pb_archive_rows_skipped(queue->reader, archive, err);
}

int pb_job_queue_find(struct pb_job_queue *queue, const char *id, struct pb_err *err,
                      struct pb_job *out_job)
{
    return pb_job_store_find(queue->reader, id, err, out_job);
}
