/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_reader.h"

#include "config/base/clock.h"
#include "config/notify/events.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "service/jobs/nodes.h"
#include "service/status/status_proto.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENT_BYTES_MAX (4 << 20)

STAILQ_HEAD(pb_reading_queue, pb_reading);

struct pb_status_reader {
    struct pb_job_store *store; /* used by the thread alone */
    pthread_t thread;
    int fd;
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t wake;
    struct pb_reading_queue queue, done;
    int64_t begun_ms; /* begin of the present reading; 0: the thread is idle */
    int64_t last_uid; /* user of the last reading */
    bool stops;
};

/* --- readings --------------------------------------------------------------------------------- */

struct pb_job *pb_job_listing_add(struct pb_job_listing *listing)
{
    if (listing->n == listing->room) {
        const size_t room = listing->room ? listing->room * 2 : 16;
        struct pb_job *more = realloc(listing->jobs, room * sizeof *more);
        if (more == NULL)
            return NULL;
        listing->jobs = more;
        listing->room = room;
    }
    struct pb_job *const job = &listing->jobs[listing->n++];
    pb_job_init(job);
    return job;
}

void pb_job_listing_fini(struct pb_job_listing *listing)
{
    for (size_t i = 0; i < listing->n; i++)
        pb_job_fini(&listing->jobs[i]);
    free(listing->jobs);
    *listing = (struct pb_job_listing){.n = 0};
}

struct pb_reading *pb_reading_create(enum pb_reading_kind kind, const char *text,
                                     const char *before)
{
    struct pb_reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return NULL;
    reading->kind = kind;
    reading->first = 1;
    reading->last = -1;
    pb_job_init(&reading->job);
    reading->text = text != NULL ? strdup(text) : NULL;
    reading->before = before != NULL ? strdup(before) : NULL;
    if ((text != NULL && reading->text == NULL) || (before != NULL && reading->before == NULL)) {
        pb_reading_destroy(reading);
        return NULL;
    }
    return reading;
}

void pb_reading_add_id(struct pb_reading *reading, const char *id)
{
    if (reading->checked == NULL)
        reading->checked = calloc(PB_READING_CHECKED, sizeof *reading->checked);
    if (reading->checked != NULL && reading->n_checked < PB_READING_CHECKED)
        (void)snprintf(reading->checked[reading->n_checked++].id, PB_JOB_ID_BYTES, "%s", id);
}

void pb_reading_destroy(struct pb_reading *reading)
{
    if (reading == NULL)
        return;
    pb_job_fini(&reading->job);
    pb_job_listing_fini(&reading->jobs);
    pb_job_listing_fini(&reading->running);
    pb_json_destroy(reading->json);
    for (int i = 0; i < reading->n_rows; i++)
        pb_json_destroy(reading->rows[i].json);
    for (size_t i = 0; i < reading->n_checked; i++)
        if (reading->checked[i].is_there)
            pb_job_fini(&reading->checked[i].job);
    free(reading->checked);
    free(reading->text);
    free(reading->before);
    free(reading);
}

static int add_job(void *user, struct pb_job *stored)
{
    struct pb_job *job = pb_job_listing_add(user);
    if (job == NULL)
        return -ENOMEM;
    *job = *stored;
    pb_job_init(stored);
    return 0;
}

static int read_list(struct pb_job_store *store, const struct pb_job_query *query,
                     struct pb_err *err, struct pb_job_listing *out)
{
    int rc = pb_job_store_list(store, query, add_job, out, err);
    return rc == -ENOMEM ? pb_fail(err, PB_E_MEMORY, "out of memory for a list of jobs") : rc;
}

static int read_jobs(struct pb_job_store *store, struct pb_reading *reading)
{
    if (reading->before != NULL) {
        struct pb_job job;
        int rc = pb_job_store_find(store, reading->before, &reading->err, &job);
        if (rc != 0)
            return rc;
        reading->query.before_seq = job.seq;
        pb_job_fini(&job);
    }
    reading->query.pipeline = reading->text;
    return read_list(store, &reading->query, &reading->err, &reading->jobs);
}

static void print_event(void *user, const struct pb_event *event)
{
    pb_event_write(user, NULL, event);
}

static int read_events(struct pb_job_store *store, struct pb_reading *reading)
{
    reading->json = pb_json_create(false);
    pb_json_array(reading->json, NULL);
    int rc = pb_subscribers_next(store, reading->text, reading->limit, print_event, reading->json,
                                 &reading->err);
    pb_json_end(reading->json);
    return rc < 0 ? rc : 0;
}

/* Writes members of an object of JSON; null if absent. */
static void copy_members(struct pb_json *json, const struct pb_json_value *from,
                         const char *const *members)
{
    for (; *members != NULL; members++) {
        const struct pb_json_value *value = pb_json_get(from, *members, NULL);
        const char *source = value ? pb_json_source(value) : NULL;
        pb_json_raw(json, *members, source ? source : "null");
    }
}

/* Prints an event without the state of its job, which is long and repeats itself. */
static void print_step(void *user, const struct pb_event *event)
{
    static const char *const of_job[] = {"attempts", "node", "device", "error", NULL},
                             *const of_product[] = {"type", "path", "bytes", NULL};
    struct pb_json *json = user;
    struct pb_json_value *data = NULL;
    char when[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(event->time_ms, when);
    (void)pb_json_parse(event->data, strlen(event->data), EVENT_BYTES_MAX, &data);
    const struct pb_json_value *product = pb_json_get(data, "product", NULL);
    pb_json_object(json, NULL);
    pb_json_int(json, "seq", event->seq);
    pb_json_string(json, "event", event->kind);
    pb_json_string(json, "time", when);
    copy_members(json, pb_json_get(data, "job", NULL), of_job);
    if (product != NULL) {
        pb_json_object(json, "product");
        copy_members(json, product, of_product);
        pb_json_end(json);
    } else {
        pb_json_null(json, "product");
    }
    const char *const member = pb_event_subject(PB_EVENT_ALERT);
    const struct pb_json_value *alert = pb_json_get(data, member, NULL);
    const char *const source = alert != NULL ? pb_json_source(alert) : NULL;
    pb_json_raw(json, member, source != NULL ? source : "null");
    const struct pb_json_value *log = pb_json_get(data, "log", NULL);
    pb_json_raw(json, "log", log != NULL ? pb_json_source(log) : "[]");
    pb_json_end(json);
    pb_json_release(data);
}

static int read_history(struct pb_job_store *store, struct pb_reading *reading)
{
    int64_t after = 0; /* older events are there only while receivers do not get them */
    int rc = pb_job_store_find(store, reading->text, &reading->err, &reading->job);
    rc = rc ? rc : pb_journal_newest(store, PB_JOURNAL_KEEP, &after, &reading->err);
    if (rc != 0)
        return rc;
    if (after < reading->since)
        after = reading->since;
    reading->json = pb_json_create(false);
    pb_json_array(reading->json, NULL);
    rc = pb_journal_read(store, after, reading->job.id, reading->limit, print_step, reading->json,
                         &reading->err);
    pb_json_end(reading->json);
    return rc < 0 ? rc : 0;
}

static int read_states(struct pb_job_store *store, struct pb_reading *reading)
{
    const int n = pb_subscribers_states(store, reading->states, &reading->err);
    reading->n_states = n < 0 ? 0 : n;
    return n < 0 ? n : 0;
}

static void add_row(void *user, const struct pb_event *event)
{
    struct pb_reading *reading = user;
    if (reading->n_rows == PB_READING_ROWS)
        return;
    struct pb_json *json = pb_json_create(false);
    pb_change_print(json, event);
    reading->rows[reading->n_rows].seq = event->seq;
    reading->rows[reading->n_rows++].json = json;
}

/* A number of a lost event is followed by a gap; a watcher of one job has gaps of other jobs. */
static int read_rows(struct pb_job_store *store, struct pb_reading *reading)
{
    int64_t first = 0, last = 0;
    const int n = pb_journal_read(store, reading->since, reading->text, PB_READING_ROWS, add_row,
                                  reading, &reading->err);
    if (n > 0 && reading->rows[0].seq == reading->since + 1)
        return 0;
    int rc = n < 0 ? n : pb_journal_is_lost(store, reading->since, &reading->err);
    reading->is_lost = rc > 0;
    if (n == 0 && rc == 0) {
        rc = pb_journal_range(store, &first, &last, &reading->err);
        reading->is_lost = rc == 0 && last < reading->since;
    }
    return rc < 0 ? rc : 0;
}

static int read_picture(struct pb_job_store *store, struct pb_reading *reading)
{
    struct pb_job_query query = {
        .status_mask = PB_JOB_MASK_ALL, .before_seq = INT64_MAX, .limit = PB_PICTURE_JOBS};
    int rc = read_states(store, reading);
    rc = rc ? rc : read_list(store, &query, &reading->err, &reading->jobs);
    query.status_mask = PB_JOB_MASK(PB_JOB_RUNNING);
    return rc ? rc : read_list(store, &query, &reading->err, &reading->running);
}

static int read_check(struct pb_job_store *store, struct pb_reading *reading)
{
    for (size_t i = 0; i < reading->n_checked; i++) {
        struct pb_checked *checked = &reading->checked[i];
        struct pb_err err = {0};
        int rc = pb_job_store_find(store, checked->id, &err, &checked->job);
        checked->is_there = rc == 0;
        checked->is_known = rc == 0 || err.code == PB_E_JOB_UNKNOWN;
        if (!checked->is_known) {
            reading->err = err;
            return rc;
        }
    }
    return reading->is_picture ? read_picture(store, reading) : 0;
}

static int64_t cpu_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Reads the store. */
static void answer(struct pb_job_store *store, struct pb_reading *reading)
{
    const int64_t start_us = cpu_us();
    int64_t first = 0, last = 0;
    int rc = 0;
    if (reading->with_range && (rc = pb_journal_range(store, &first, &last, &reading->err)) == 0) {
        reading->first = first;
        reading->last = last;
    }
    if (reading->with_range && rc == 0 && reading->since > 0 &&
        (rc = pb_journal_is_lost(store, reading->since, &reading->err)) >= 0) {
        reading->is_lost = rc > 0;
        rc = 0;
    }
    if (rc == 0)
        switch (reading->kind) {
        case PB_READ_JOB:
            rc = pb_job_store_find(store, reading->text, &reading->err, &reading->job);
            break;
        case PB_READ_LIST:
            rc = read_jobs(store, reading);
            break;
        case PB_READ_EVENTS:
            rc = read_events(store, reading);
            break;
        case PB_READ_HISTORY:
            rc = read_history(store, reading);
            break;
        case PB_READ_STATES:
            rc = read_states(store, reading);
            break;
        case PB_READ_ROWS:
            rc = read_rows(store, reading);
            break;
        case PB_READ_CHECK:
            rc = read_check(store, reading);
            break;
        }
    reading->rc = rc < 0 ? rc : 0;
    reading->cost_us = cpu_us() - start_us;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Takes the next reading: the first of another user than the last one's, if there is one. */
static struct pb_reading *take_next(struct pb_status_reader *reader)
{
    struct pb_reading *reading = STAILQ_FIRST(&reader->queue);
    while (reading != NULL && reading->uid == reader->last_uid)
        reading = STAILQ_NEXT(reading, next);
    if (reading == NULL)
        reading = STAILQ_FIRST(&reader->queue);
    STAILQ_REMOVE(&reader->queue, reading, pb_reading, next);
    reader->last_uid = reading->uid;
    return reading;
}

static void *run(void *user)
{
    struct pb_status_reader *reader = user;
    const uint64_t one = 1;
    (void)pthread_setname_np(pthread_self(), "pb-reader");
    (void)pthread_mutex_lock(&reader->lock);
    while (!reader->stops) {
        if (STAILQ_EMPTY(&reader->queue)) {
            (void)pthread_cond_wait(&reader->wake, &reader->lock);
            continue;
        }
        struct pb_reading *reading = take_next(reader);
        reader->begun_ms = reading->begun_ms = pb_clock_mono_ms();
        (void)pthread_mutex_unlock(&reader->lock);
        answer(reader->store, reading);
        (void)pthread_mutex_lock(&reader->lock);
        reader->begun_ms = 0;
        STAILQ_INSERT_TAIL(&reader->done, reading, next);
        (void)!write(reader->fd, &one, sizeof one);
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return NULL;
}

static int start_thread(struct pb_status_reader *reader)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&reader->thread, NULL, run, reader);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

static void free_all(struct pb_reading_queue *queue)
{
    struct pb_reading *reading;
    while ((reading = STAILQ_FIRST(queue)) != NULL) {
        STAILQ_REMOVE_HEAD(queue, next);
        pb_reading_destroy(reading);
    }
}

static void free_reader(struct pb_status_reader *reader)
{
    free_all(&reader->queue);
    free_all(&reader->done);
    pb_job_store_close(reader->store);
    if (reader->fd >= 0)
        (void)close(reader->fd);
    (void)pthread_cond_destroy(&reader->wake);
    (void)pthread_mutex_destroy(&reader->lock);
    free(reader);
}

int pb_status_reader_create(const struct pb_job_store *store, struct pb_err *err,
                            struct pb_status_reader **out_reader)
{
    struct pb_status_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    STAILQ_INIT(&reader->queue);
    STAILQ_INIT(&reader->done);
    (void)pthread_mutex_init(&reader->lock, NULL);
    (void)pthread_cond_init(&reader->wake, NULL);
    reader->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = reader->fd < 0 ? pb_fail(err, PB_E_SYSTEM,
                                      "cannot start a reader of the job store: %s", strerror(errno))
                            : pb_job_store_create_reader(store, err, &reader->store);
    if (rc == 0 && (rc = start_thread(reader)) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot start a reader of the job store: %s", strerror(-rc));
    if (rc == 0)
        *out_reader = reader;
    else
        free_reader(reader);
    return rc;
}

void pb_status_reader_destroy(struct pb_status_reader *reader)
{
    if (reader == NULL)
        return;
    (void)pthread_mutex_lock(&reader->lock);
    reader->stops = true;
    (void)pthread_cond_signal(&reader->wake);
    (void)pthread_mutex_unlock(&reader->lock);
    (void)pthread_join(reader->thread, NULL);
    free_reader(reader);
}

int pb_status_reader_fd(const struct pb_status_reader *reader)
{
    return reader->fd;
}

void pb_status_reader_push(struct pb_status_reader *reader, struct pb_reading *reading)
{
    (void)pthread_mutex_lock(&reader->lock);
    STAILQ_INSERT_TAIL(&reader->queue, reading, next);
    (void)pthread_cond_signal(&reader->wake);
    (void)pthread_mutex_unlock(&reader->lock);
}

struct pb_reading *pb_status_reader_pop(struct pb_status_reader *reader)
{
    uint64_t count;
    (void)!read(reader->fd, &count, sizeof count);
    (void)pthread_mutex_lock(&reader->lock);
    struct pb_reading *reading = STAILQ_FIRST(&reader->done);
    if (reading != NULL)
        STAILQ_REMOVE_HEAD(&reader->done, next);
    (void)pthread_mutex_unlock(&reader->lock);
    return reading;
}

void pb_status_reader_forget(struct pb_status_reader *reader, uint64_t ticket)
{
    struct pb_reading *reading;
    (void)pthread_mutex_lock(&reader->lock);
    STAILQ_FOREACH(reading, &reader->queue, next)
    {
        if (reading->ticket == ticket)
            break;
    }
    if (reading != NULL)
        STAILQ_REMOVE(&reader->queue, reading, pb_reading, next);
    (void)pthread_mutex_unlock(&reader->lock);
    pb_reading_destroy(reading);
}

bool pb_status_reader_is_stuck(struct pb_status_reader *reader)
{
    (void)pthread_mutex_lock(&reader->lock);
    const int64_t begun_ms = reader->begun_ms;
    (void)pthread_mutex_unlock(&reader->lock);
    const int64_t patience_ms =
        pb_store_is_shared(reader->store) ? PB_READING_PATIENCE_MS : PB_READING_FILE_MS;
    return begun_ms != 0 && pb_clock_mono_ms() - begun_ms >= patience_ms;
}
