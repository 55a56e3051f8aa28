/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Computing in this process: with a GPU. */
#include "service/cli/cli_compute.h"

#include "pipeline/io/thread.h"
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_watchdog.h"
#include "config/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { STEP_MS = 100 }; /* between two looks at the progress */

static void show_progress(struct pb_run *run, struct cli_bar *bar)
{
    struct pb_run_progress p;
    char line[256], state[40], size[16];
    pb_run_progress(run, &p);
    cli_bar_update(bar, (double)pb_clock_mono_ms() / 1e3, p.tiles_done, p.bytes_read);
    (void)snprintf(state, sizeof state, "%s", pb_stage_name(p.stage));
    if (p.stage == PB_STAGE_PUBLISH)
        (void)snprintf(state, sizeof state, "publish %s",
                       cli_bytes((double)p.bytes_written, size, sizeof size));
    cli_bar_text(bar, state, p.tiles_done, p.tiles_total, cli_columns(stderr) - 1, line,
                 sizeof line);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

static int wait_for(struct pb_run *run, struct cli_bar *bar, struct pb_err *err)
{
    int rc;
    while ((rc = pb_run_wait(run, STEP_MS, err)) == -ETIMEDOUT) {
        if (cli_compute_is_interrupted())
            pb_run_abort(run);
        if (bar != NULL)
            show_progress(run, bar);
    }
    return rc;
}

/* Publishing takes as long as the disk does: it has a thread of its own, so that this one can show
 * it and end it. */
struct publishing {
    struct pb_run *run;
    struct pb_err *err;
    struct pb_run_result *result;
    int rc;
    pthread_mutex_t lock; /* over */
    pthread_cond_t ended;
    bool over;
};

static void *publish_body(void *arg)
{
    struct publishing *p = arg;
    p->rc = pb_run_publish(p->run, p->err, p->result);
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Waits a step; true: it is over. */
static bool publish_step(struct publishing *p)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* a clock that is set costs one step */
    until.tv_nsec += STEP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&p->lock);
    if (!p->over)
        (void)pthread_cond_timedwait(&p->ended, &p->lock, &until);
    bool over = p->over;
    pthread_mutex_unlock(&p->lock);
    return over;
}

static int publish(struct pb_run *run, struct cli_bar *bar, struct pb_err *err,
                   struct pb_run_result *result)
{
    struct publishing p = {.run = run,
                           .err = err,
                           .result = result,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .ended = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    int rc = pb_thread_start(&thread, publish_body, &p);
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot start a thread: %s", strerror(-rc));
    do {
        if (cli_compute_is_interrupted())
            pb_run_abort(run);
        if (bar != NULL)
            show_progress(run, bar);
    } while (!publish_step(&p));
    (void)pthread_join(thread, NULL);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    return p.rc;
}

static int compute_and_publish(struct pb_run *run, const char *input, bool bar_wanted,
                               struct pb_err *err, struct pb_run_result *result)
{
    struct cli_bar bar = {0}, *shown = bar_wanted ? &bar : NULL;
    const char *base = strrchr(input, '/');
    (void)snprintf(bar.name, sizeof bar.name, "%s", base ? base + 1 : input);
    int rc = wait_for(run, shown, err);
    if (rc == 0)
        rc = publish(run, shown, err, result);
    if (bar_wanted)
        fputs("\r\033[K", stderr);
    return rc;
}

/* The device was not there in time. */
static void say_stalled(void *user)
{
    const struct cli_compute *compute = user;
    const struct pb_run_options *options = &compute->options;
    struct pb_err err = {0};
    (void)pb_fail_at(&err, PB_E_JOB_STALLED, options->input, 0, 0,
                     "the run was not set up within %lld s (service.stall): the GPU or the storage "
                     "of the input does not answer",
                     (long long)(options->config->service.stall_ms / 1000));
    if (compute->json)
        cli_result_json(options->input, options->pipeline->name, compute->device_why, &err, NULL);
    else
        cli_print_err(&err);
}

int cli_compute_here(const struct cli_compute *compute, struct pb_err *err)
{
    const struct pb_run_options *options = &compute->options;
    struct pb_run *run = NULL;
    struct pb_run_result result = {0};
    bool bar_wanted = !compute->json && !compute->quiet && cli_is_terminal(stderr);
    cli_watchdog_start(options->config->service.stall_ms, say_stalled, (void *)(uintptr_t)compute);
    int rc = pb_run_create(options, err, &run);
    cli_watchdog_stop();
    if (rc == 0)
        rc = pb_run_start(run, err);
    if (rc == 0)
        rc = compute_and_publish(run, options->input, bar_wanted, err, &result);
    if (rc == 0 && compute->json)
        cli_result_json(options->input, options->pipeline->name, compute->device_why, NULL,
                        &result);
    else if (rc == 0 && !compute->quiet)
        cli_result_text(options->input, &result);
    pb_run_destroy(run);
    return rc;
}
