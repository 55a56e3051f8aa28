/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Compares a row with its previous content, so that every change of a state causes exactly one
 * event, in every code path that changes it. */
#include "service/jobs/journal.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/notify/events.h"
#include "service/base/log.h"
#include "service/jobs/job_store_sql.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PRODUCTS_BYTES_MAX (4 * 1024 * 1024)

static_assert((int)PB_EVENT_ACCEPTED == (int)PB_JOB_ACCEPTED &&
                  (int)PB_EVENT_DISMISSED == (int)PB_JOB_DISMISSED,
              "an event for each state of a job, in the same order");

void pb_journal_print_line(void *user, int64_t wall_ms, enum pb_log_level level, const char *text)
{
    struct pb_json *json = user;
    char when[PB_CLOCK_TEXT_BYTES];
    pb_clock_text(wall_ms, when);
    pb_json_object(json, NULL);
    pb_json_string(json, "time", when);
    pb_json_string(json, "level", pb_log_level_word(level));
    pb_json_string(json, "text", text);
    pb_json_end(json);
}

/* Sets the parameters of an event. about: JSON of the product or alert that is its subject; NULL:
 * the event has the lines of the log about the job since its last event. */
static int set_event(struct pb_sql_statement *s, enum pb_event_kind kind, const struct pb_job *job,
                     const char *about, struct pb_err *err)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_job_print_brief(json, "job", job);
    if (about != NULL) {
        pb_json_raw(json, pb_event_subject(kind), about);
    } else {
        pb_json_array(json, "log");
        pb_log_take(job->id, pb_journal_print_line, json);
        pb_json_end(json);
    }
    pb_json_end(json);
    const char *data = pb_json_text(json, NULL);
    pb_sql_set_int(s, 1, pb_clock_wall_ms());
    pb_sql_set_text(s, 2, pb_event_name(kind));
    pb_sql_set_text(s, 3, job->id);
    pb_sql_set_text(s, 4, job->pipeline);
    const bool is_set = data != NULL && pb_sql_copy_text(s, 5, data, strlen(data));
    pb_json_destroy(json);
    return is_set ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for an event");
}

static int add(struct pb_job_store *store, enum pb_event_kind kind, const struct pb_job *job,
               const char *about, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOURNAL_ADD, err);
    if (s == NULL)
        return -EIO;
    int rc = set_event(s, kind, job, about, err);
    rc = rc ? rc : pb_job_store_step(store, "event", s, err);
    pb_sql_reset(s);
    store->has_news = true;
    store->wakes = store->wakes || kind == PB_EVENT_ACCEPTED;
    return rc;
}

static int add_products(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err)
{
    struct pb_json_value *products = NULL;
    const char *text = job->published != NULL ? job->published : job->products;
    int rc = text == NULL ? 0 : pb_json_parse(text, strlen(text), PRODUCTS_BYTES_MAX, &products);
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory for an event");
    rc = 0;
    for (size_t i = 0; i < pb_json_count(products) && rc == 0; i++) {
        const char *product = pb_json_source(pb_json_at(products, i));
        rc = product != NULL ? add(store, PB_EVENT_PUBLISHED, job, product, err)
                             : pb_fail(err, PB_E_MEMORY, "out of memory for an event");
    }
    pb_json_release(products);
    return rc;
}

/* Returns true if an input was moved to quarantine: its row has a new place and the same state. */
static bool is_put_away(const struct pb_job_before *before, const struct pb_job *job)
{
    return before->is_there && job->owned && job->manifest.input != NULL &&
           (job->status == PB_JOB_FAILED || job->status == PB_JOB_DISMISSED) &&
           !pb_job_is_skipped(job) && before->status == job->status &&
           strcmp(before->input, job->manifest.input) != 0;
}

int pb_journal_record(struct pb_job_store *store, const struct pb_job_before *before,
                      const struct pb_job *job, struct pb_err *err)
{
    if (is_put_away(before, job))
        return add(store, PB_EVENT_QUARANTINED, job, NULL, err);
    if (before->is_there && before->status == job->status)
        return 0;
    int rc = add(store, (enum pb_event_kind)job->status, job, NULL, err);
    return rc || job->status != PB_JOB_SUCCESSFUL ? rc : add_products(store, job, err);
}

struct new_rows {
    struct pb_job *const *jobs;
    const int *results;
    size_t next; /* job to look at for the next event */
    struct pb_err *err;
    int rc;
};

static bool set_new(void *user, size_t i, struct pb_sql_statement *s)
{
    struct new_rows *rows = user;
    (void)i;
    while (rows->results[rows->next] != 0)
        rows->next++;
    const struct pb_job *job = rows->jobs[rows->next++];
    rows->rc = set_event(s, (enum pb_event_kind)job->status, job, NULL, rows->err);
    return rows->rc == 0;
}

int pb_journal_record_new(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                          const int *results, struct pb_err *err)
{
    struct new_rows rows = {.jobs = jobs, .results = results, .err = err};
    struct pb_sql_runs runs = {.set = set_new, .user = &rows};
    for (size_t i = 0; i < n; i++)
        runs.n += results[i] == 0;
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOURNAL_ADD, err);
    if (s == NULL)
        return -EIO;
    store->has_news = store->has_news || runs.n > 0;
    store->wakes = store->wakes || runs.n > 0;
    if (!pb_sql_run_all(s, &runs))
        return rows.rc ? rows.rc : pb_job_store_fail(store, "event", err);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (results[i] == 0 && jobs[i]->status == PB_JOB_SUCCESSFUL)
            rc = add_products(store, jobs[i], err);
    return rc;
}

/* --- alerts --- */

struct alerting {
    struct pb_job_change change;
    const struct pb_job *job;
    const struct pb_job_alert *alerts;
    size_t n;
};

static int add_alert(struct pb_job_store *store, const struct pb_job *job,
                     const struct pb_job_alert *alert, struct pb_err *err)
{
    struct pb_json *json = pb_json_create(false);
    pb_job_alert_print(json, NULL, alert);
    const char *text = pb_json_text(json, NULL);
    const int rc = text != NULL ? add(store, PB_EVENT_ALERT, job, text, err)
                                : pb_fail(err, PB_E_MEMORY, "out of memory for an event");
    pb_json_destroy(json);
    return rc;
}

static int apply_alerts(struct pb_job_store *store, struct pb_job_change *change)
{
    const struct alerting *alerting = (const struct alerting *)change;
    int rc = pb_job_row_is_latest(store, alerting->job, &change->err);
    if (rc <= 0)
        return rc < 0 ? rc : 1;
    rc = 0;
    for (size_t i = 0; i < alerting->n && rc == 0; i++)
        rc = add_alert(store, alerting->job, &alerting->alerts[i], &change->err);
    return rc;
}

int pb_journal_add_alerts(struct pb_job_store *store, const struct pb_job *job,
                          const struct pb_job_alert *alerts, size_t n, struct pb_err *err)
{
    struct alerting alerting = {
        .change = {.apply = apply_alerts}, .job = job, .alerts = alerts, .n = n};
    return pb_job_store_commit(store, &alerting.change, err);
}

void pb_journal_take(struct pb_sql_statement *s, struct pb_event *out)
{
    out->seq = pb_sql_int(s, 0);
    out->time_ms = pb_sql_int(s, 1);
    pb_sql_read_text(s, 2, out->kind, sizeof out->kind);
    pb_sql_read_text(s, 3, out->job, sizeof out->job);
    out->data = pb_sql_text(s, 4);
    if (out->data == NULL)
        out->data = "{}";
}

static int read_range(struct pb_job_store *store, int64_t *out_first, int64_t *out_last,
                      struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOURNAL_RANGE, err);
    if (s == NULL)
        return -EIO;
    int rc = pb_job_store_step(store, "events", s, err);
    if (rc > 0) {
        *out_last = pb_sql_int(s, 1);
        *out_first = pb_sql_is_null(s, 0) ? *out_last + 1 : pb_sql_int(s, 0);
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : 0;
}

int pb_journal_range(struct pb_job_store *store, int64_t *out_first, int64_t *out_last,
                     struct pb_err *err)
{
    pb_job_store_lock(store);
    int rc = read_range(store, out_first, out_last, err);
    pb_job_store_unlock(store);
    return rc;
}

/* Numbers in (last_seq, next_seq] of a gap belong to no event. */
int pb_journal_find_newest(struct pb_job_store *store, int64_t count, int64_t *out_after,
                           struct pb_err *err)
{
    int64_t first = 0, last = 0;
    int rc = read_range(store, &first, &last, err);
    struct pb_sql_statement *s = rc == 0 ? pb_job_row_begin(store, PB_JOURNAL_GAPS, err) : NULL;
    if (s == NULL)
        return rc < 0 ? rc : -EIO;
    int64_t after = last - count;
    while ((rc = pb_job_store_step(store, "events", s, err)) > 0 && after < pb_sql_int(s, 1))
        after -= pb_sql_int(s, 1) - pb_sql_int(s, 0);
    pb_sql_reset(s);
    if (rc < 0)
        return rc;
    *out_after = after;
    return 0;
}

int pb_journal_newest(struct pb_job_store *store, int64_t count, int64_t *out_after,
                      struct pb_err *err)
{
    pb_job_store_lock(store);
    const int rc = pb_journal_find_newest(store, count, out_after, err);
    pb_job_store_unlock(store);
    return rc;
}

int pb_journal_is_lost(struct pb_job_store *store, int64_t seq, struct pb_err *err)
{
    pb_job_store_lock(store);
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOURNAL_LOST, err);
    if (s != NULL)
        pb_sql_set_int(s, 1, seq);
    const int rc = s != NULL ? pb_job_store_step(store, "events", s, err) : -EIO;
    pb_sql_reset(s);
    pb_job_store_unlock(store);
    return rc;
}

static int read_rows(struct pb_job_store *store, int64_t after, const char *job, int limit,
                     void (*visit)(void *user, const struct pb_event *event), void *user,
                     struct pb_err *err)
{
    struct pb_event event;
    int rc, n = 0;
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_JOURNAL_READ, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_int(s, 1, after);
    pb_sql_set_int(s, 2, limit);
    pb_sql_set_text(s, 3, job);
    for (; (rc = pb_job_store_step(store, "events", s, err)) > 0; n++) {
        pb_journal_take(s, &event);
        visit(user, &event);
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : n;
}

int pb_journal_read(struct pb_job_store *store, int64_t after, const char *job, int limit,
                    void (*visit)(void *user, const struct pb_event *event), void *user,
                    struct pb_err *err)
{
    pb_job_store_lock(store);
    int rc = read_rows(store, after, job, limit, visit, user, err);
    pb_job_store_unlock(store);
    return rc;
}

void pb_event_id(const struct pb_event *event, char out[PB_JOB_ID_BYTES + 24])
{
    (void)snprintf(out, PB_JOB_ID_BYTES + 24, "%s-%" PRId64, event->job, event->seq);
}

void pb_event_write(struct pb_json *json, const char *key, const struct pb_event *event)
{
    char id[PB_JOB_ID_BYTES + 24], when[PB_CLOCK_TEXT_BYTES];
    pb_event_id(event, id);
    pb_clock_text(event->time_ms, when);
    pb_json_object(json, key);
    pb_json_int(json, "seq", event->seq);
    pb_json_string(json, "id", id);
    pb_json_string(json, "event", event->kind);
    pb_json_string(json, "time", when);
    pb_json_raw(json, "data", event->data);
    pb_json_end(json);
}
