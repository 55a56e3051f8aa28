/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/alerts.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/notify/events.h"
#include "service/base/log.h"
#include "service/jobs/journal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000, EVENT_BYTES_MAX = 1 << 20 };

/* Alerts of one event of a worker. The pool owns the batch while `works`. */
struct pb_alerts_batch {
    uv_work_t work;
    struct pb_alerts *alerts;
    struct pb_alerts_batch *next;
    struct pb_job job;
    struct pb_alerts_numbers numbers; /* before the batch; set to those after it */
    int rc;
    struct pb_err err;
    size_t n_taken, n; /* n_taken: count at first; n: count in `at`, after store() of new alerts */
    struct pb_job_alert at[];
};

/* --- numbers ---------------------------------------------------------------------------------- */

/* Finds or adds the largest number of a product. NULL: there are too many products. */
static uint32_t *number_of(struct pb_alerts_numbers *numbers, const char *name)
{
    for (size_t i = 0; i < numbers->n; i++)
        if (strcmp(numbers->product[i].name, name) == 0)
            return &numbers->product[i].number;
    if (numbers->n == PB_ALERTS_NAMES)
        return NULL;
    (void)snprintf(numbers->product[numbers->n].name, PB_JOB_ALERT_NAME, "%s", name);
    numbers->product[numbers->n].number = 0;
    return &numbers->product[numbers->n++].number;
}

/* Notes the number. Returns true if it is a new one. */
static bool is_new(struct pb_alerts_numbers *numbers, const char *name, uint32_t number)
{
    uint32_t *const last = number_of(numbers, name);
    const bool is = last == NULL || number > *last;
    if (last != NULL && is)
        *last = number;
    return is;
}

static void note_event(void *user, const struct pb_event *event)
{
    struct pb_json_value *data = NULL;
    int64_t number = 0;
    if (strcmp(event->kind, pb_event_name(PB_EVENT_ALERT)) != 0 ||
        pb_json_parse(event->data, strlen(event->data), EVENT_BYTES_MAX, &data) != 0)
        return;
    const struct pb_json_value *alert = pb_json_get(data, pb_event_subject(PB_EVENT_ALERT), NULL);
    const char *name = pb_json_get_text(alert, "name");
    if (pb_json_get_int(alert, "number", &number) == 0 && number > 0 &&
        number <= PB_JOB_ALERT_NUMBER)
        (void)is_new(user, name != NULL ? name : "", (uint32_t)number);
    pb_json_release(data);
}

/* Finds the entry of the job. The first run of a job has no earlier events. */
static struct pb_alerts_numbers *find(struct pb_alerts *alerts, const struct pb_job *job)
{
    for (size_t i = 0; i < PB_ALERTS_JOBS; i++)
        if (strcmp(alerts->numbers[i].job, job->id) == 0)
            return &alerts->numbers[i];
    struct pb_alerts_numbers *const numbers = &alerts->numbers[alerts->next++ % PB_ALERTS_JOBS];
    *numbers = (struct pb_alerts_numbers){.is_known = job->epoch == 1};
    (void)snprintf(numbers->job, sizeof numbers->job, "%s", job->id);
    return numbers;
}

/* --- the store -------------------------------------------------------------------------------- */

/* Runs on the pool. */
static void store(uv_work_t *request)
{
    struct pb_alerts_batch *batch = request->data;
    const struct pb_alerts *alerts = batch->alerts;
    struct pb_alerts_numbers numbers = batch->numbers;
    batch->err = (struct pb_err){.code = PB_OK};
    batch->rc = numbers.is_known ? 0
                                 : pb_journal_read(alerts->reader, 0, batch->job.id, INT_MAX,
                                                   note_event, &numbers, &batch->err);
    if (batch->rc < 0)
        return;
    numbers.is_known = true;
    size_t n = 0;
    for (size_t i = 0; i < batch->n; i++)
        if (is_new(&numbers, batch->at[i].name, batch->at[i].number))
            batch->at[n++] = batch->at[i];
    batch->n = n;
    batch->rc =
        n > 0 ? pb_journal_add_alerts(alerts->store, &batch->job, batch->at, n, &batch->err) : 0;
    if (batch->rc >= 0)
        batch->numbers = numbers;
}

static void begin(struct pb_alerts *alerts);

static void on_stored(uv_work_t *request, int status)
{
    struct pb_alerts_batch *batch = request->data;
    struct pb_alerts *alerts = batch->alerts;
    (void)status;
    alerts->works = false;
    if (batch->rc < 0) {
        if (alerts->again_ms == 0)
            pb_log(PB_LOG_WARNING, "job %s: its alerts are not stored, which is tried again: %s",
                   batch->job.id, batch->err.msg);
        alerts->again_ms = pb_clock_mono_ms() + AGAIN_MS;
        return;
    }
    alerts->again_ms = 0;
    alerts->first = batch->next;
    if (alerts->first == NULL)
        alerts->last = &alerts->first;
    alerts->n_waiting -= batch->n_taken;
    if (batch->rc == 0)
        *find(alerts, &batch->job) = batch->numbers;
    const struct pb_pool_slot *slot = pb_pool_find(alerts->pool, batch->job.id);
    if (batch->rc == 0 && batch->n > 0 && slot != NULL) /* wakes watchers */
        alerts->env->on_change(alerts->env->user, pb_pool_job(slot));
    pb_job_fini(&batch->job);
    free(batch);
    begin(alerts);
}

static void begin(struct pb_alerts *alerts)
{
    struct pb_alerts_batch *batch = alerts->first;
    if (batch == NULL || alerts->works)
        return;
    batch->numbers = *find(alerts, &batch->job);
    alerts->works = true;
    batch->work.data = batch;
    (void)uv_queue_work(alerts->loop, &batch->work, store, on_stored);
}

void pb_alerts_take(struct pb_alerts *alerts, const struct pb_job *job,
                    const struct pb_job_alert *alert, size_t n)
{
    char words[400];
    struct pb_alerts_numbers *const numbers = find(alerts, job);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *const last = number_of(numbers, alert[i].name);
        if (last != NULL && alert[i].number <= *last)
            continue;
        pb_job_alert_words(&alert[i], words);
        pb_log(PB_LOG_NOTICE, "job %s: %s", job->id, words);
    }
    struct pb_alerts_batch *batch = alerts->n_waiting + n <= PB_ALERTS_WAIT
                                        ? calloc(1, sizeof *batch + n * sizeof *alert)
                                        : NULL;
    if (batch == NULL || pb_job_copy(&batch->job, job) != 0) {
        free(batch);
        pb_log(PB_LOG_ERROR,
               "job %s: too many alerts wait for the job store, or out of memory; "
               "%zu are no events",
               job->id, n);
        return;
    }
    batch->alerts = alerts;
    batch->n = batch->n_taken = n;
    (void)memcpy(batch->at, alert, n * sizeof *alert);
    if (alerts->first == NULL)
        alerts->last = &alerts->first;
    *alerts->last = batch;
    alerts->last = &batch->next;
    alerts->n_waiting += n;
    if (alerts->again_ms == 0)
        begin(alerts);
}

bool pb_alerts_tick(struct pb_alerts *alerts)
{
    if (alerts->again_ms != 0 && pb_clock_mono_ms() >= alerts->again_ms)
        begin(alerts);
    return alerts->first != NULL;
}

void pb_alerts_fini(struct pb_alerts *alerts)
{
    struct pb_alerts_batch *batch;
    while ((batch = alerts->first) != NULL) {
        alerts->first = batch->next;
        pb_job_fini(&batch->job);
        free(batch);
    }
}
