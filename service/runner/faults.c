/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The trouble "queue" lasts from the first fault of the machine until a job is successful, the
 * trouble "config" while a job waits for another configuration. */
#include "service/runner/faults.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "service/base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TROUBLE        "queue"
#define TROUBLE_CONFIG "config"
#define TROUBLE_FETCH  "fetch"
/* Number of own faults beyond max_attempts until a job is set aside (hold.h). */
#define EXTRA_FAULTS 1

static enum pb_hold_verdict judge(struct pb_faults *faults, int64_t seq, int64_t began_ms,
                                  enum pb_code code)
{
    struct pb_hold_fault fault = {.job = seq,
                                  .started_ms = began_ms,
                                  .code = code,
                                  .limit =
                                      faults->env->config->service.max_attempts + EXTRA_FAULTS};
    if (getrandom(&fault.random, sizeof fault.random, GRND_NONBLOCK) !=
        (ssize_t)sizeof fault.random)
        fault.random = 0;
    return pb_hold_fault(&faults->hold, &fault, pb_clock_mono_ms());
}

static void raise_trouble(struct pb_faults *faults, enum pb_code code, const char *message)
{
    char text[512];
    int64_t wait_ms = faults->hold.until_ms - pb_clock_mono_ms();
    (void)snprintf(text, sizeof text,
                   "the queue is held: %.300s; fault %u since the last success, the next job is "
                   "tried %lld s after it",
                   message, faults->hold.faults,
                   (long long)(wait_ms > 0 ? wait_ms + 999 : 0) / 1000);
    pb_trouble_raise(faults->troubles, TROUBLE, code, text);
}

enum pb_hold_verdict pb_faults_machine(struct pb_faults *faults, struct pb_job *job,
                                       int64_t began_ms)
{
    enum pb_code code = pb_code_find(job->error.code);
    if (code == PB_E_COUNT)
        code = PB_E_SYSTEM;
    faults->env->metrics->setbacks++;
    pb_log(PB_LOG_WARNING, "job %s: %s: %s; this is no fault of its input", job->id,
           job->error.code, job->error.message);
    enum pb_hold_verdict verdict = judge(faults, job->seq, began_ms, code);
    if (verdict == PB_HOLD_QUEUE)
        raise_trouble(faults, code, job->error.message);
    if (verdict == PB_HOLD_ASIDE) {
        char message[sizeof job->error.message];
        (void)memcpy(message, job->error.message, sizeof message);
        (void)snprintf(job->error.message, sizeof job->error.message,
                       "%.900s; so it went time and again while other jobs were successful",
                       message);
    }
    return verdict;
}

static void show_waits(struct pb_faults *faults, const struct pb_job *job)
{
    char text[640];
    if (faults->waits.n == 0) {
        pb_trouble_clear(faults->troubles, TROUBLE_CONFIG);
        return;
    }
    if (job == NULL)
        return; /* the count has fallen; the text stays */
    (void)snprintf(text, sizeof text,
                   "the configuration keeps %zu job%s waiting until it is corrected and loaded "
                   "(SIGHUP); %.100s, pipeline '%.60s': %.240s",
                   faults->waits.n, faults->waits.n == 1 ? "" : "s", job->name, job->pipeline,
                   job->error.message);
    pb_trouble_raise(faults->troubles, TROUBLE_CONFIG, pb_code_find(job->error.code), text);
}

void pb_faults_fetch(struct pb_faults *faults, const struct pb_job *job)
{
    char text[720];
    if (job == NULL) {
        pb_trouble_clear(faults->troubles, TROUBLE_FETCH);
        return;
    }
    (void)snprintf(text, sizeof text, "job %s (%.100s) waits: %.300s", job->id, job->name,
                   job->error.message);
    pb_trouble_raise(faults->troubles, TROUBLE_FETCH, PB_E_INPUT_FETCH, text);
}

int pb_faults_config(struct pb_faults *faults, const struct pb_job *job)
{
    int rc = pb_config_waits_fault(&faults->waits, job->seq, job->pipeline,
                                   pb_code_find(job->error.code));
    if (rc <= 0)
        return rc;
    pb_log(PB_LOG_WARNING, "job %s: %s: %s; it waits for another configuration", job->id,
           job->error.code, job->error.message);
    show_waits(faults, job);
    return 1;
}

void pb_faults_config_changed(struct pb_faults *faults)
{
    pb_hold_hurry(&faults->hold, pb_clock_mono_ms());
    pb_config_waits_clear(&faults->waits);
    show_waits(faults, NULL);
}

static void end_waits(struct pb_faults *faults, const struct pb_job *job, bool over)
{
    bool freed = false;
    if (over)
        pb_config_waits_over(&faults->waits, job->seq);
    if (job->status == PB_JOB_SUCCESSFUL && !pb_job_has_scenes(job)) /* it computed nothing */
        freed = pb_config_waits_success(&faults->waits, job->pipeline);
    show_waits(faults, NULL);
    if (freed)
        faults->on_freed(faults->user);
}

void pb_faults_cannot_start(struct pb_faults *faults, const struct pb_err *err)
{
    (void)judge(faults, 0, pb_clock_mono_ms(), err->code);
    raise_trouble(faults, err->code, err->msg);
}

void pb_faults_end(struct pb_faults *faults, const struct pb_job *job, bool over)
{
    end_waits(faults, job, over);
    if (job->status == PB_JOB_SUCCESSFUL && !pb_job_has_scenes(job)) {
        pb_hold_success(&faults->hold, job->seq, pb_clock_mono_ms());
        pb_trouble_clear(faults->troubles, TROUBLE);
    } else {
        pb_hold_end(&faults->hold, job->seq, over);
    }
}

void pb_faults_clear(struct pb_faults *faults)
{
    pb_hold_clear(&faults->hold);
    pb_trouble_clear(faults->troubles, TROUBLE);
}

void pb_faults_fini(struct pb_faults *faults)
{
    pb_config_waits_clear(&faults->waits);
}
