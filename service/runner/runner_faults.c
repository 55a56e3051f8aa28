/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that a fault of the machine ended go back into the queue, and the queue is held as hold.h
 * says. The trouble "queue" stands from the first fault until a job is successful. Jobs that the
 * configuration ended wait for another one, as config_waits.h says: the trouble "config". */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define TROUBLE        "queue"
#define TROUBLE_CONFIG "config"
/* Faults of its own, over max_attempts, until a job is set aside. */
#define EXTRA_FAULTS 1

static enum pb_hold_verdict judge(struct pb_runner *runner, int64_t seq, int64_t began_ms,
                                  enum pb_code code)
{
    struct pb_hold_fault fault = {.job = seq,
                                  .started_ms = began_ms,
                                  .code = code,
                                  .limit = runner->config->service.max_attempts + EXTRA_FAULTS};
    if (getrandom(&fault.random, sizeof fault.random, GRND_NONBLOCK) !=
        (ssize_t)sizeof fault.random)
        fault.random = 0;
    return pb_hold_fault(&runner->hold, &fault, pb_clock_mono_ms());
}

static void raise_trouble(struct pb_runner *runner, enum pb_code code, const char *message)
{
    char text[512];
    int64_t wait_ms = runner->hold.until_ms - pb_clock_mono_ms();
    (void)snprintf(text, sizeof text,
                   "no job is started: %.300s; fault %u since the last success, the next try is "
                   "in %lld s",
                   message, runner->hold.faults,
                   (long long)(wait_ms > 0 ? wait_ms + 999 : 0) / 1000);
    pb_trouble_raise(runner->options.troubles, TROUBLE, code, text);
}

static void set_back_looked(struct pb_pending *pending)
{
    struct pb_runner *runner = pending->runner;
    struct pb_job *job = &pending->job;
    if (pending->published) {
        pb_pending_finish(pending, PB_JOB_SUCCESSFUL);
        return;
    }
    enum pb_code code = pb_code_find(job->error.code);
    if (code == PB_E_COUNT)
        code = PB_E_SYSTEM;
    runner->options.metrics->setbacks++;
    pb_log(PB_LOG_WARNING, "job %s: %s: %s; this is no fault of its input", job->id,
           job->error.code, job->error.message);
    char message[sizeof job->error.message];
    (void)memcpy(message, job->error.message, sizeof message);
    switch (judge(runner, job->seq, pending->began_ms, code)) {
    case PB_HOLD_QUEUE:
        raise_trouble(runner, code, message);
        job->attempts--;
        pb_pending_put_back(pending);
        break;
    case PB_HOLD_JOB:
        job->attempts--;
        pb_pending_put_back(pending);
        break;
    case PB_HOLD_ASIDE:
        (void)snprintf(job->error.message, sizeof job->error.message,
                       "%.900s; so it went time and again while other jobs were successful",
                       message);
        pb_pending_finish(pending, PB_JOB_FAILED);
        break;
    }
}

void pb_runner_set_back(struct pb_runner *runner, struct pb_job *job, int64_t began_ms)
{
    runner->options.on_hold(runner->options.user, job);
    struct pb_pending *pending = pb_pending_add(runner, job);
    if (pending == NULL)
        return;
    pending->began_ms = began_ms;
    pb_pending_work(pending, PB_PENDING_LOOK, set_back_looked);
}

static void show_waits(struct pb_runner *runner, const struct pb_job *job)
{
    char text[640];
    if (runner->waits.n == 0) {
        pb_trouble_clear(runner->options.troubles, TROUBLE_CONFIG);
        return;
    }
    if (job == NULL)
        return; /* fewer wait; the words stand */
    (void)snprintf(text, sizeof text,
                   "the configuration keeps %zu job%s waiting until it is corrected and loaded "
                   "(SIGHUP); %.100s, pipeline '%.60s': %.240s",
                   runner->waits.n, runner->waits.n == 1 ? "" : "s", job->name, job->pipeline,
                   job->error.message);
    pb_trouble_raise(runner->options.troubles, TROUBLE_CONFIG, pb_code_find(job->error.code), text);
}

void pb_runner_await_config(struct pb_runner *runner, struct pb_job *job, int64_t began_ms)
{
    /* Who submits a file keeps it, and wants to be told. */
    int rc = job->owned ? pb_config_waits_fault(&runner->waits, job->seq, job->pipeline,
                                                pb_code_find(job->error.code))
                        : 0;
    if (rc < 0) {
        pb_runner_set_back(runner, job, began_ms);
    } else if (rc == 0) {
        pb_runner_finish(runner, job, PB_JOB_FAILED);
    } else {
        pb_log(PB_LOG_WARNING, "job %s: %s: %s; it waits for another configuration", job->id,
               job->error.code, job->error.message);
        show_waits(runner, job);
        job->attempts--;
        pb_runner_put_back(runner, job);
    }
}

void pb_runner_config_is_new(struct pb_runner *runner)
{
    pb_config_waits_clear(&runner->waits);
    show_waits(runner, NULL);
    runner->more = true;
    pb_runner_wake(runner);
}

static void note_end(struct pb_runner *runner, const struct pb_job *job, bool over)
{
    bool freed = false;
    if (over)
        pb_config_waits_over(&runner->waits, job->seq);
    if (job->status == PB_JOB_SUCCESSFUL)
        freed = pb_config_waits_success(&runner->waits, job->pipeline);
    show_waits(runner, NULL);
    if (!freed)
        return;
    runner->more = true;
    pb_runner_wake(runner);
}

void pb_runner_cannot_start(struct pb_runner *runner, const struct pb_err *err)
{
    (void)judge(runner, 0, pb_clock_mono_ms(), err->code);
    raise_trouble(runner, err->code, err->msg);
}

void pb_runner_hold_end(struct pb_runner *runner, const struct pb_job *job, bool over)
{
    note_end(runner, job, over);
    if (job->status == PB_JOB_SUCCESSFUL) {
        pb_hold_success(&runner->hold, job->seq, pb_clock_mono_ms());
        pb_trouble_clear(runner->options.troubles, TROUBLE);
    } else {
        pb_hold_end(&runner->hold, job->seq, over);
    }
}

void pb_runner_hold_clear(struct pb_runner *runner)
{
    pb_hold_clear(&runner->hold);
    pb_trouble_clear(runner->options.troubles, TROUBLE);
}
