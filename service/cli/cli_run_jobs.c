/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: runs its inputs, one after the other, through a worker slot like those of the
 * service (service/processes/worker_slot.h). The worker gets the next input while it runs one, so
 * that it continues without a pause. The worker is a fork of this process, which has no threads;
 * therefore the libraries are loaded once.
 *
 * A worker that crashes or is killed costs the input one of service.max_attempts. An error that a
 * run itself reports is final: the command does not wait until a full disk has room again. */
#include "config/base/clock.h"
#include "config/config.h"
#include "config/device_word.h"
#include "service/base/loop.h"
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_run.h"
#include "service/cli/cli_run_jobs_parts.h"
#include "service/cli/cli_run_owner.h"
#include "service/processes/worker_slot.h"
#include "service/worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define TICK_MS        100
#define LEAVE_MS       3000 /* time until a worker whose stdin was closed is killed */
#define KILLED_WAIT_MS 1000 /* time until the next attempt after the worker was killed */

/* When the terminal is closed (SIGHUP), the run ends as after ^C. */
static const int signals[CLI_JOBS_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

static void go_on(struct cli_jobs *jobs);

/* --- messages of the worker ------------------------------------------------------------------- */

static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    struct cli_jobs *jobs = user;
    (void)number;
    if (!at_once)
        cli_progress_show(&jobs->progress, job);
}

static void on_device(void *user, const char *device, const char *why)
{
    struct cli_jobs *jobs = user;
    struct pb_compute_config compute = jobs->config->compute;
    if (jobs->o->device != NULL)
        (void)pb_device_word(jobs->o->device, &compute);
    if (jobs->device_told || !jobs->o->verbose || compute.device != PB_DEVICE_AUTO)
        return;
    jobs->device_told = true;
    if (strcmp(device, "cpu") == 0 && why[0] != '\0')
        (void)fprintf(stderr, "pushbroom: computing on the CPU: %s\n", why);
}

/* Stores messages of the slot about a job; they are printed when the job is over. */
static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    struct cli_jobs *jobs = user;
    if (pid == 0)
        return;
    cli_progress_clear(&jobs->progress);
    if (level == PB_LOG_INFO) /* a message of a library */
        (void)fprintf(stderr, "%s\n", text);
    else
        (void)fprintf(stderr, "pushbroom: the worker %s\n", text);
}

/* --- one input after the other ---------------------------------------------------------------- */

static void fail(struct cli_jobs *jobs, const char *device_why, const struct pb_err *err)
{
    cli_progress_clear(&jobs->progress);
    cli_input_failed(jobs->o, &jobs->input, device_why, err);
    jobs->failed = true;
}

static void finish_input(struct cli_jobs *jobs)
{
    jobs->at++;
    jobs->attempt = 1;
}

/* Ends the worker, which is not needed any more. */
static void leave(struct cli_jobs *jobs)
{
    if (pb_worker_slot_is_idle(jobs->slot))
        pb_worker_slot_leave(jobs->slot, LEAVE_MS);
    if (pb_worker_slot_is_empty(jobs->slot))
        uv_stop(&jobs->loop);
    jobs->left = true;
}

static bool is_over(const struct cli_jobs *jobs)
{
    return jobs->interrupted != 0 || cli_flush() != 0 || jobs->at >= jobs->o->n_inputs;
}

/* Starts the inputs that can be started now; called again after each change. */
static void go_on(struct cli_jobs *jobs)
{
    bool ready = pb_worker_slot_is_empty(jobs->slot) || pb_worker_slot_is_idle(jobs->slot);
    while (ready && !is_over(jobs) && jobs->not_before_ms == 0) {
        struct pb_err err = {0};
        cli_jobs_take(jobs);
        if (jobs->input.err.code == PB_OK && cli_jobs_start(jobs, &err) == 0)
            return;
        fail(jobs, "", jobs->input.err.code != PB_OK ? &jobs->input.err : &err);
        finish_input(jobs);
    }
    if (ready && is_over(jobs))
        leave(jobs);
}

/* --- reports of the slot ---------------------------------------------------------------------- */

static void on_start(void *user, int number)
{
    (void)user;
    (void)number;
}

static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    struct cli_jobs *jobs = user;
    (void)number;
    (void)which;
    cli_progress_clear(&jobs->progress);
    (void)fprintf(stderr, "pushbroom: %s: runs %s\n", jobs->input.path, job->device_why);
}

static void on_clear(void *user, int number, const char *products)
{
    struct cli_jobs *jobs = user;
    (void)number;
    (void)pb_publish_sweep(products);
    pb_worker_slot_cleared(jobs->slot);
}

/* Removes the directory that a killed worker left. */
static void sweep(struct cli_jobs *jobs)
{
    if (jobs->sweep && pb_worker_slot_is_empty(jobs->slot)) {
        (void)pb_publish_sweep(jobs->products);
        jobs->sweep = false;
    }
}

/* Returns true if the input gets another attempt in another worker. */
static bool is_tried_again(struct cli_jobs *jobs, const struct pb_run_over *over)
{
    bool may = over->end == PB_RUN_CRASHED || (over->end == PB_RUN_FAILED && over->died);
    if (!may || jobs->interrupted || jobs->attempt >= jobs->config->service.max_attempts)
        return false;
    (void)fprintf(stderr, "pushbroom: %s: %s; it runs again\n", jobs->input.path,
                  over->job.error.message);
    jobs->attempt++;
    if (over->end == PB_RUN_FAILED)
        jobs->not_before_ms = pb_clock_mono_ms() + KILLED_WAIT_MS;
    return true;
}

static void report_failure(struct cli_jobs *jobs, const struct pb_run_over *over)
{
    struct pb_err err = {0};
    const struct pb_job *job = &over->job;
    if (over->end == PB_RUN_ENDED)
        (void)pb_fail(&err, PB_E_JOB_DISMISSED, "cancelled in stage %s",
                      job->stage[0] ? job->stage : "plan");
    else
        (void)pb_fail(&err, pb_code_find(job->error.code), "%s", job->error.message);
    fail(jobs, job->device_why, &err);
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    struct cli_jobs *jobs = user;
    (void)number;
    cli_progress_clear(&jobs->progress);
    jobs->sweep = jobs->sweep || over->end != PB_RUN_SUCCESSFUL;
    if (jobs->o->trace != NULL)
        pb_trace_file_add(jobs->o->trace, jobs->input.path);
    if (!is_tried_again(jobs, over)) {
        if (over->end != PB_RUN_SUCCESSFUL)
            report_failure(jobs, over);
        else if (jobs->o->json)
            cli_result_done(jobs->input.path, &over->job);
        else if (!jobs->o->quiet)
            cli_result_text(jobs->input.path, &over->job, jobs->o->verbose);
        finish_input(jobs);
    }
    pb_job_fini(&over->job);
    sweep(jobs);
    go_on(jobs);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    struct cli_jobs *jobs = user;
    (void)number;
    (void)pid;
    (void)hung;
    sweep(jobs);
    go_on(jobs);
}

/* --- clock and signals ----------------------------------------------------------------------*/

static void on_tick(uv_timer_t *timer)
{
    struct cli_jobs *jobs = timer->data;
    int64_t now = pb_clock_mono_ms();
    pb_worker_slot_tick(jobs->slot, now);
    if (jobs->not_before_ms == 0 || now < jobs->not_before_ms)
        return;
    jobs->not_before_ms = 0;
    go_on(jobs);
}

/* Returns true if the signal is ignored, as under nohup. */
static bool is_ignored(int number)
{
    struct sigaction is;
    return sigaction(number, NULL, &is) == 0 && is.sa_handler == SIG_IGN;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct cli_jobs *jobs = handle->data;
    jobs->interrupted = number;
    if (pb_worker_slot_job(jobs->slot) != NULL)
        pb_worker_slot_end(jobs->slot, PB_ENDING_CANCEL, PB_WORKER_SLOT_CANCEL_MS);
    else if (!jobs->left)
        go_on(jobs);
}

/* --- the whole run ---------------------------------------------------------------------------- */

static const char *on_owner(void *user, int number, bool wanted)
{
    const struct cli_jobs *jobs = user;
    (void)number;
    return wanted ? cli_run_owner_socket(jobs->device_owner) : NULL;
}

static void on_owner_ready(void *user)
{
    struct cli_jobs *jobs = user;
    jobs->owner.owner_why = cli_run_owner_why(jobs->device_owner);
    if (!jobs->left)
        go_on(jobs);
}

struct cli_jobs *cli_jobs_create(const struct cli_run_options *o)
{
    struct cli_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL || pb_loop_init(&jobs->loop) != 0) {
        free(jobs);
        return NULL;
    }
    jobs->o = o;
    jobs->attempt = 1;
    jobs->progress.wanted = !o->json && !o->quiet && cli_is_terminal(stderr);
    bool single = o->n_inputs == 1;
    jobs->owner = (struct pb_worker_slot_owner){
        .loop = &jobs->loop,
        .program = {.main = single ? pb_worker_main_single : pb_worker_main_foreground},
        .on_news = on_news,
        .on_device = on_device,
        .on_owner = on_owner,
        .on_start = on_start,
        .on_retry = on_retry,
        .on_clear = on_clear,
        .on_over = on_over,
        .on_gone = on_gone,
        .on_say = on_say,
        .user = jobs};
    (void)signal(SIGPIPE, SIG_IGN); /* the end of a worker is detected by its exit */
    (void)uv_timer_init(&jobs->loop, &jobs->tick);
    jobs->tick.data = jobs;
    for (size_t i = 0; i < CLI_JOBS_SIGNALS; i++) {
        (void)uv_signal_init(&jobs->loop, &jobs->signals[i]);
        jobs->signals[i].data = jobs;
    }
    jobs->slot = pb_worker_slot_create(&jobs->owner, 0);
    if (jobs->slot != NULL)
        (void)pb_worker_slot_start(jobs->slot, &jobs->start_err); /* else the first input tries */
    return jobs;
}

int cli_jobs_run(struct cli_jobs *jobs, const struct pb_config *config)
{
    struct pb_err err = {0};
    if (jobs == NULL || jobs->slot == NULL) {
        (void)pb_fail(&err, PB_E_MEMORY, "out of memory");
        cli_print_err(&err);
        return CLI_JOB_FAILED;
    }
    jobs->config = jobs->owner.config = config;
    for (size_t i = 0; i < CLI_JOBS_SIGNALS; i++)
        if (signals[i] != SIGHUP || !is_ignored(SIGHUP))
            (void)uv_signal_start(&jobs->signals[i], on_signal, signals[i]);
    (void)uv_timer_start(&jobs->tick, on_tick, TICK_MS, TICK_MS);
    jobs->device_owner =
        cli_run_owner_create(&jobs->loop, config, jobs->o->device, on_owner_ready, jobs);
    if (jobs->device_owner == NULL)
        go_on(jobs);
    if (!jobs->left || !pb_worker_slot_is_empty(jobs->slot))
        (void)uv_run(&jobs->loop, UV_RUN_DEFAULT);
    cli_progress_clear(&jobs->progress);
    bool unfinished = jobs->at < jobs->o->n_inputs;
    if (jobs->interrupted && (jobs->failed || unfinished)) {
        (void)fputs("pushbroom: interrupted; unfinished products were removed\n", stderr);
        jobs->ended_by = jobs->interrupted;
        return CLI_JOB_FAILED;
    }
    return jobs->failed || unfinished ? CLI_JOB_FAILED : CLI_DONE;
}

int cli_jobs_signal(const struct cli_jobs *jobs)
{
    return jobs ? jobs->ended_by : 0;
}

void cli_jobs_destroy(struct cli_jobs *jobs)
{
    if (jobs == NULL)
        return;
    pb_worker_slot_destroy(jobs->slot);
    cli_run_owner_destroy(jobs->device_owner);
    uv_close((uv_handle_t *)&jobs->tick, NULL);
    for (size_t i = 0; i < CLI_JOBS_SIGNALS; i++)
        uv_close((uv_handle_t *)&jobs->signals[i], NULL);
    (void)uv_run(&jobs->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&jobs->loop);
    free(jobs);
}
