/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Answers of the job store for the methods of the status socket. A call waits for its reading, not
 * the thread. After a failure, or a reading without an answer within its time, calls
 * wait no more until the store answers again: they are answered at once from the picture, which
 * was read about a second before, together with the overlay. */
#include "config/base/clock.h"
#include "service/jobs/nodes.h"
#include "service/status/status_methods_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_ROWS     64   /* rows of a list beyond those that the overlay may replace */
#define PICTURE_MS     2000 /* time between two pictures of a store that changes */
#define PICTURE_MAX_MS 10000
#define READS_MAX      8

/* --- readings of calls ------------------------------------------------------------------------ */

static struct pb_reading *make_list(const struct pb_status_methods *methods,
                                    const struct pb_request *request)
{
    const bool is_watch = request->method == PB_METHOD_JOB_WATCH;
    struct pb_reading *reading = pb_reading_create(
        PB_READ_LIST, is_watch ? NULL : request->pipeline, is_watch ? NULL : request->before);
    if (reading == NULL)
        return NULL;
    reading->query = pb_status_query(request);
    reading->query.limit += (int64_t)methods->overlay.n + SPARE_ROWS;
    reading->with_range = is_watch;
    return reading;
}

/* Makes the reading of the call. *out_needs: false if the call does not use the store. */
static struct pb_reading *make(const struct pb_status_methods *methods, const struct pb_call *call,
                               bool *out_needs)
{
    const struct pb_request *const request = call->request;
    struct pb_reading *reading = NULL;
    *out_needs = true;
    switch (request->method) {
    case PB_METHOD_JOB_LIST:
        reading = make_list(methods, request);
        break;
    case PB_METHOD_JOB_WATCH:
        if (request->job == NULL)
            reading = make_list(methods, request);
        else if ((reading = pb_reading_create(PB_READ_JOB, request->job, NULL)) != NULL)
            reading->with_range = true;
        if (reading != NULL)
            reading->since = request->seq;
        break;
    case PB_METHOD_JOB_GET:
    case PB_METHOD_JOB_CANCEL:
    case PB_METHOD_JOB_RETRY:
    case PB_METHOD_JOB_DROP:
    case PB_METHOD_JOB_AGAIN:
        reading = pb_reading_create(PB_READ_JOB, request->job, NULL);
        break;
    case PB_METHOD_EVENT_LIST:
        reading = pb_reading_create(PB_READ_EVENTS, request->target, NULL);
        if (reading != NULL)
            reading->limit = (int)request->limit;
        break;
    case PB_METHOD_JOB_EVENTS:
        reading = pb_reading_create(PB_READ_HISTORY, request->job, NULL);
        if (reading != NULL) {
            reading->since = request->seq;
            reading->limit = (int)request->limit;
        }
        break;
    case PB_METHOD_SERVICE_INFO:
    case PB_METHOD_SERVICE_DRAIN: /* its result is that of service.info */
    case PB_METHOD_SERVICE_METRICS:
        reading = pb_reading_create(PB_READ_STATES, NULL, NULL);
        break;
    default:
        *out_needs = false;
        break;
    }
    if (reading == NULL)
        return NULL;
    reading->ticket = call->ticket;
    reading->uid = call->peer.uid;
    reading->version = methods->overlay.version;
    return reading;
}

/* --- answers of the picture ------------------------------------------------------------------- */

/* The next job, newest first, of both lists of the picture, of which one may have it as well. */
static const struct pb_job *next_kept(const struct pb_reading *picture, size_t *a, size_t *b)
{
    const struct pb_job_listing *jobs = &picture->jobs, *running = &picture->running;
    const struct pb_job *one = *a < jobs->n ? &jobs->jobs[*a] : NULL;
    const struct pb_job *other = *b < running->n ? &running->jobs[*b] : NULL;
    if (one != NULL && (other == NULL || one->seq >= other->seq)) {
        *a += 1;
        *b += other != NULL && other->seq == one->seq;
        return one;
    }
    *b += other != NULL;
    return other;
}

/* Finds a job by its id or an end of it. */
static const struct pb_job *find_kept(const struct pb_reading *picture, const char *id)
{
    const struct pb_job *job, *found = NULL;
    const size_t n = strlen(id);
    size_t a = 0, b = 0;
    while ((job = next_kept(picture, &a, &b)) != NULL) {
        const size_t all = strlen(job->id);
        if (all < n || strcmp(job->id + all - n, id) != 0)
            continue;
        if (all == n)
            return job;
        if (found != NULL)
            return NULL;
        found = job;
    }
    return found;
}

static int refuse(const struct pb_status_methods *methods, struct pb_reading *reading,
                  const char *what)
{
    return pb_fail(&reading->err, PB_E_SERVICE_STATE,
                   "%s, and %s not kept in memory; try again when it answers", methods->why, what);
}

static int answer_list(const struct pb_status_methods *methods, struct pb_reading *reading)
{
    const struct pb_reading *picture = methods->picture;
    const struct pb_job_query *query = &reading->query;
    const struct pb_job *job;
    int64_t before_seq = query->before_seq;
    size_t a = 0, b = 0;
    if (reading->before != NULL) {
        const struct pb_job *before = find_kept(picture, reading->before);
        if (before == NULL)
            return refuse(methods, reading, "jobs as old as these are");
        before_seq = before->seq;
    }
    reading->query.before_seq = before_seq;
    reading->query.pipeline = reading->text;
    while ((job = next_kept(picture, &a, &b)) != NULL && (int64_t)reading->jobs.n < query->limit) {
        if (!pb_overlay_fits(query, job))
            continue;
        struct pb_job *copy = pb_job_listing_add(&reading->jobs);
        if (copy == NULL || pb_job_copy(copy, job) != 0)
            return pb_fail(&reading->err, PB_E_MEMORY, "out of memory for a list of jobs");
    }
    reading->is_incomplete = picture->jobs.n >= PB_PICTURE_JOBS;
    if (reading->is_incomplete && reading->before != NULL && reading->jobs.n == 0)
        return refuse(methods, reading, "jobs as old as these are");
    return 0;
}

static int answer_job(const struct pb_status_methods *methods, struct pb_reading *reading)
{
    const struct pb_job *job = find_kept(methods->picture, reading->text);
    if (job == NULL)
        return refuse(methods, reading, "this job is");
    return pb_job_copy(&reading->job, job) == 0
               ? 0
               : pb_fail(&reading->err, PB_E_MEMORY, "out of memory for a job");
}

/* Answers from the picture. */
static void answer(const struct pb_status_methods *methods, struct pb_reading *reading)
{
    const struct pb_reading *picture = methods->picture;
    if (picture == NULL) {
        reading->rc = pb_fail(&reading->err, PB_E_SERVICE_STATE, "%s", methods->why);
        return;
    }
    reading->as_of_ms = pb_clock_wall_ms() - (pb_clock_mono_ms() - methods->seen_ms);
    reading->first = picture->first;
    reading->last = picture->last;
    switch (reading->kind) {
    case PB_READ_JOB:
        reading->rc = answer_job(methods, reading);
        break;
    case PB_READ_LIST:
        reading->rc = answer_list(methods, reading);
        break;
    case PB_READ_STATES:
        memcpy(reading->states, picture->states, sizeof reading->states);
        reading->n_states = picture->n_states;
        break;
    default:
        reading->rc = refuse(methods, reading, "events are");
        break;
    }
}

static bool is_failed(const struct pb_reading *reading)
{
    return reading->rc != 0 && reading->err.code == PB_E_SERVICE_STATE;
}

int pb_status_read(struct pb_status_methods *methods, struct pb_call *call, struct pb_err *err)
{
    bool needs = true;
    if (call->reading != NULL && (!is_failed(call->reading) || methods->picture == NULL))
        return 0;
    const bool waits = call->reading == NULL && !call->is_unanswered && !methods->is_silent;
    pb_reading_destroy(call->reading);
    call->reading = make(methods, call, &needs);
    if (call->reading == NULL)
        return needs ? pb_fail(err, PB_E_MEMORY, "out of memory") : 0;
    if (!waits) {
        answer(methods, call->reading);
        return 0;
    }
    call->reads++;
    pb_status_reader_push(methods->reader, call->reading);
    call->reading = NULL;
    return 1;
}

int pb_status_read_again(struct pb_status_methods *methods, struct pb_call *call,
                         struct pb_err *err)
{
    if (call->reads >= READS_MAX)
        return pb_fail(err, PB_E_SERVICE_BUSY,
                       "jobs change faster than a list of them is read; try again");
    pb_reading_destroy(call->reading);
    call->reading = NULL;
    return pb_status_read(methods, call, err);
}

int64_t pb_status_age_s(const struct pb_reading *reading, char out[32])
{
    out[0] = '\0';
    if (reading == NULL || reading->as_of_ms == 0)
        return -1;
    const int64_t age_ms = pb_clock_wall_ms() - reading->as_of_ms;
    pb_clock_text(reading->as_of_ms, out);
    return age_ms > 0 ? age_ms / 1000 : 0;
}

int pb_status_read_rows(void *user, uint64_t ticket, int64_t since, const char *job)
{
    struct pb_status_methods *methods = user;
    struct pb_reading *reading =
        methods->is_silent ? NULL : pb_reading_create(PB_READ_ROWS, job, NULL);
    if (reading == NULL)
        return -1;
    reading->ticket = ticket;
    reading->since = since;
    reading->uid = -1;
    pb_status_reader_push(methods->reader, reading);
    return 0;
}

void pb_status_forget(void *user, uint64_t ticket)
{
    struct pb_status_methods *methods = user;
    pb_status_reader_forget(methods->reader, ticket);
}

/* --- answers of the store --------------------------------------------------------------------- */

static void become_silent(struct pb_status_methods *methods, const char *why)
{
    methods->is_silent = true;
    (void)snprintf(methods->why, sizeof methods->why, "%.255s", why);
}

/* Takes a comparison, and the picture if it has one. */
static void take_check(struct pb_status_methods *methods, struct pb_reading *check)
{
    methods->checks = false;
    pb_overlay_compare(&methods->overlay, pb_store_node(methods->store), check);
    if (check->rc != 0) {
        pb_reading_destroy(check);
        return;
    }
    if (check->is_picture) {
        pb_reading_destroy(methods->picture);
        methods->picture = check;
        methods->last = check->last;
        methods->seen_ms = check->begun_ms;
        return;
    }
    if (check->with_range)
        methods->last = check->last;
    if (check->with_range && methods->picture != NULL && methods->last == methods->picture->last)
        methods->seen_ms = check->begun_ms;
    pb_reading_destroy(check);
}

void pb_status_take_answers(struct pb_status_methods *methods)
{
    struct pb_reading *reading;
    while ((reading = pb_status_reader_pop(methods->reader)) != NULL) {
        const bool was_picture = reading->kind == PB_READ_CHECK;
        const bool failed = is_failed(reading);
        if (!failed)
            methods->is_silent = false;
        else if (methods->picture != NULL)
            become_silent(methods, reading->err.msg);
        if (was_picture) {
            take_check(methods, reading);
            if (!failed)
                pb_status_check(methods, false);
        } else if (reading->kind == PB_READ_ROWS) {
            pb_status_rows(methods->status, reading);
            pb_reading_destroy(reading);
        } else {
            pb_status_resume(methods->status, reading);
        }
    }
}

/* Returns true if the store has changed since the picture: an event, or (later) anything else. */
static bool is_outdated(const struct pb_status_methods *methods)
{
    const struct pb_reading *picture = methods->picture;
    if (picture == NULL)
        return true;
    const int64_t age_ms = pb_clock_mono_ms() - picture->begun_ms;
    return (methods->last != picture->last && age_ms >= PICTURE_MS) ||
           (pb_store_changes(methods->store) != picture->mark && age_ms >= PICTURE_MAX_MS);
}

void pb_status_check(struct pb_status_methods *methods, bool is_beat)
{
    if (pb_status_reader_is_stuck(methods->reader)) {
        if (!methods->is_silent)
            become_silent(methods, "the job store does not answer");
        pb_status_resume_all(methods->status);
    }
    if (methods->checks || (!is_beat && (methods->overlay.n_new == 0 || methods->is_silent)))
        return;
    struct pb_reading *check = pb_reading_create(PB_READ_CHECK, NULL, NULL);
    if (check == NULL)
        return; /* the next beat tries again */
    check->uid = -1;
    check->mark = pb_store_changes(methods->store);
    check->is_picture = is_beat && is_outdated(methods);
    check->with_range = is_beat;
    pb_overlay_choose(&methods->overlay, pb_store_node(methods->store), is_beat, check);
    methods->checks = true;
    pb_status_reader_push(methods->reader, check);
}
