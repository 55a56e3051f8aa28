/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: runs its inputs through worker slots like those of the service
 * (service/processes/worker_slot.h), as many at the same time as turns.h allows; one at a time on a
 * device. A worker gets the next input while it runs one, so that it continues without a pause. The
 * workers are forks of this process, which has no threads; therefore the libraries are loaded once.
 *
 * A worker that crashes or is killed costs the input one of service.max_attempts. An error that a
 * run itself reports is final: the command does not wait until a full disk has room again. */
#include "config/base/clock.h"
#include "config/config.h"
#include "config/device_word.h"
#include "pipeline/run/run_areas.h"
#include "service/base/loop.h"
#include "service/cli/cli.h"
#include "service/cli/cli_run.h"
#include "service/cli/cli_run_jobs_parts.h"
#include "service/cli/cli_run_owner.h"
#include "service/processes/worker_slot.h"
#include "service/worker/worker.h"

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
static void give_turns(struct cli_jobs *jobs);

/* --- messages of the worker ------------------------------------------------------------------- */

/* A job that publishes makes room for another one, for service.publishing_jobs of them. */
static void note_publishing(struct cli_jobs *jobs, struct cli_slot *slot, const struct pb_job *job)
{
    int n = 0;
    if (slot->publishes || !pb_job_publishes(job))
        return;
    for (int i = 0; i < jobs->n_slots; i++)
        n += jobs->slot[i].publishes;
    if (n >= pb_publishing_jobs(&jobs->config->service))
        return;
    slot->publishes = true;
    pb_turns_end(&jobs->turns, (int)(slot - jobs->slot));
    give_turns(jobs);
    go_on(jobs);
}

/* Shows the first input that is not over. */
static void on_news(void *user, int number, const struct pb_job *job, bool at_once)
{
    struct cli_jobs *jobs = user;
    struct cli_slot *slot = &jobs->slot[number];
    const struct cli_task *task = slot->task;
    if (at_once || task == NULL)
        return;
    if (task == jobs->first && jobs->shown != task->number) {
        cli_progress_begin(&jobs->progress, task->input.path);
        jobs->shown = task->number;
    }
    if (task == jobs->first)
        cli_progress_show(&jobs->progress, job);
    note_publishing(jobs, slot, job);
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

/* --- the inputs ------------------------------------------------------------------------------- */

static bool is_ended(const struct cli_jobs *jobs)
{
    return jobs->interrupted != 0 || cli_flush() != 0;
}

/* Returns the task that the slot runs now; NULL if it has to wait, or if no task is left. */
static struct cli_task *choose_task(struct cli_jobs *jobs, struct cli_slot *slot)
{
    if (slot->task != NULL) /* another attempt */
        return slot->task->not_before_ms == 0 ? slot->task : NULL;
    struct cli_task *task = slot->next;
    slot->next = NULL;
    if (task == NULL && (jobs->n_slots == 1 || pb_turns_may_begin(&jobs->turns)))
        task = cli_task_take(jobs, NULL);
    return task;
}

static void start_slot(struct cli_jobs *jobs, struct cli_slot *slot)
{
    struct cli_task *task;
    if (!pb_worker_slot_is_empty(slot->worker) && !pb_worker_slot_is_idle(slot->worker))
        return;
    while (!is_ended(jobs) && (task = choose_task(jobs, slot)) != NULL) {
        struct pb_err err = {0};
        slot->task = task;
        if (cli_task_start(jobs, slot, &err) == 0)
            return;
        slot->task = NULL;
        cli_task_over(jobs, task, &err);
    }
}

static bool is_busy(const struct cli_jobs *jobs, const struct cli_slot *slot)
{
    return pb_worker_slot_job(slot->worker) != NULL || (slot->task != NULL && !is_ended(jobs));
}

/* Ends the workers, which are not needed any more. */
static void leave(struct cli_jobs *jobs)
{
    bool empty = true;
    for (int i = 0; i < jobs->n_slots; i++) {
        struct pb_worker_slot *worker = jobs->slot[i].worker;
        if (pb_worker_slot_is_idle(worker))
            pb_worker_slot_leave(worker, LEAVE_MS);
        empty = empty && pb_worker_slot_is_empty(worker);
    }
    if (empty)
        uv_stop(&jobs->loop);
    jobs->left = true;
}

/* Starts the inputs that can be started now; called again after each change. */
static void go_on(struct cli_jobs *jobs)
{
    bool busy = false;
    for (int i = 0; i < jobs->n_slots; i++) {
        start_slot(jobs, &jobs->slot[i]);
        busy = busy || is_busy(jobs, &jobs->slot[i]);
    }
    if (!busy)
        leave(jobs);
}

static void give_turns(struct cli_jobs *jobs)
{
    for (int i; (i = pb_turns_next(&jobs->turns)) >= 0;)
        pb_worker_slot_turn(jobs->slot[i].worker);
}

/* --- reports of the slot ---------------------------------------------------------------------- */

static void on_start(void *user, int number)
{
    (void)user;
    (void)number;
}

static void on_turn(void *user, int number, int64_t tiles, int64_t memory_bytes)
{
    struct cli_jobs *jobs = user;
    pb_turns_plan(&jobs->turns, number, tiles, memory_bytes);
    give_turns(jobs);
    go_on(jobs);
}

static void on_retry(void *user, int number, const struct pb_job *job, enum pb_device_try which)
{
    struct cli_jobs *jobs = user;
    char name[CLI_INPUT_NAME_BYTES];
    (void)which;
    cli_progress_clear(&jobs->progress);
    cli_input_name(&jobs->slot[number].task->input, name);
    (void)fprintf(stderr, "pushbroom: %s: runs %s\n", name, job->device_why);
}

static void on_clear(void *user, int number, const char *products)
{
    struct cli_jobs *jobs = user;
    (void)pb_publish_sweep(products);
    pb_worker_slot_cleared(jobs->slot[number].worker);
}

/* Removes the directories that killed workers left. */
static void sweep(struct cli_jobs *jobs, int number)
{
    if (jobs->sweep && pb_worker_slot_is_empty(jobs->slot[number].worker)) {
        (void)pb_publish_sweep(jobs->products);
        jobs->sweep = false;
    }
}

/* Returns true if the input gets another attempt in another worker. */
static bool is_tried_again(struct cli_jobs *jobs, struct cli_task *task,
                           const struct pb_run_over *over)
{
    bool may = over->end == PB_RUN_CRASHED || (over->end == PB_RUN_FAILED && over->died);
    if (!may || jobs->interrupted || task->attempt >= jobs->config->service.max_attempts)
        return false;
    char name[CLI_INPUT_NAME_BYTES];
    cli_input_name(&task->input, name);
    (void)fprintf(stderr, "pushbroom: %s: %s; it runs again\n", name, over->job.error.message);
    task->attempt++;
    if (over->end == PB_RUN_FAILED)
        task->not_before_ms = pb_clock_mono_ms() + KILLED_WAIT_MS;
    return true;
}

static void end_task(struct cli_jobs *jobs, struct cli_task *task, struct pb_run_over *over)
{
    struct pb_err err = {0};
    struct pb_job *job = &task->job;
    *job = over->job;
    pb_job_init(&over->job);
    if (pb_code_find(job->error.code) == PB_E_INPUT_SCENES && job->report != NULL &&
        task->input.is_archive && task->part == 0) {
        task->is_split = cli_task_split(jobs, task, job->report);
        cli_task_over(
            jobs, task,
            task->is_split ? NULL : &(struct pb_err){.code = PB_E_MEMORY, .msg = "out of memory"});
        return;
    }
    if (over->end == PB_RUN_ENDED)
        (void)pb_fail(&err, PB_E_JOB_DISMISSED, "cancelled in stage %s",
                      job->stage[0] ? job->stage : "plan");
    else if (over->end != PB_RUN_SUCCESSFUL)
        (void)pb_fail(&err, pb_code_find(job->error.code), "%s", job->error.message);
    cli_task_over(jobs, task, err.code != PB_OK ? &err : NULL);
}

static void on_over(void *user, int number, struct pb_run_over *over)
{
    struct cli_jobs *jobs = user;
    struct cli_slot *slot = &jobs->slot[number];
    pb_turns_end(&jobs->turns, number);
    slot->publishes = false;
    cli_progress_clear(&jobs->progress);
    jobs->sweep = jobs->sweep || over->end != PB_RUN_SUCCESSFUL;
    if (jobs->o->trace != NULL)
        pb_trace_file_add(jobs->o->trace, slot->task->input.path);
    if (!is_tried_again(jobs, slot->task, over)) {
        end_task(jobs, slot->task, over);
        slot->task = NULL;
    }
    pb_job_fini(&over->job);
    sweep(jobs, number);
    give_turns(jobs);
    go_on(jobs);
}

static void on_gone(void *user, int number, int pid, bool hung)
{
    struct cli_jobs *jobs = user;
    (void)pid;
    (void)hung;
    sweep(jobs, number);
    go_on(jobs);
}

/* --- clock and signals ----------------------------------------------------------------------*/

static void on_tick(uv_timer_t *timer)
{
    struct cli_jobs *jobs = timer->data;
    int64_t now = pb_clock_mono_ms();
    bool due = false;
    for (int i = 0; i < jobs->n_slots; i++)
        pb_worker_slot_tick(jobs->slot[i].worker, now);
    for (int i = 0; i < jobs->n_slots; i++) {
        struct cli_task *task = jobs->slot[i].task;
        if (task == NULL || task->not_before_ms == 0 || now < task->not_before_ms)
            continue;
        task->not_before_ms = 0;
        due = true;
    }
    if (due)
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
    for (int i = 0; i < jobs->n_slots; i++)
        if (pb_worker_slot_job(jobs->slot[i].worker) != NULL)
            pb_worker_slot_end(jobs->slot[i].worker, PB_ENDING_CANCEL, PB_WORKER_SLOT_CANCEL_MS);
    if (!jobs->left)
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
    jobs->n_slots = 1;
    jobs->shown = -1;
    jobs->progress.wanted = !o->json && !o->quiet && cli_is_terminal(stderr);
    bool single = o->n_inputs == 1;
    jobs->owner = (struct pb_worker_slot_owner){
        .loop = &jobs->loop,
        .program = {.main = single ? pb_worker_main_single : pb_worker_main_foreground},
        .on_news = on_news,
        .on_device = on_device,
        .on_owner = on_owner,
        .on_start = on_start,
        .on_turn = on_turn,
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
    jobs->slot[0].worker = pb_worker_slot_create(&jobs->owner, 0);
    if (jobs->slot[0].worker != NULL) /* if it fails, the first input tries again */
        (void)pb_worker_slot_start(jobs->slot[0].worker, &jobs->start_err);
    return jobs;
}

static int fail_memory(void)
{
    struct pb_err err = {0};
    (void)pb_fail(&err, PB_E_MEMORY, "out of memory");
    cli_print_err(&err);
    return CLI_JOB_FAILED;
}

/* Makes the slots: one if a device computes, or if a trace is recorded. */
static bool make_slots(struct cli_jobs *jobs)
{
    int n = 1;
    pb_turns_share(&jobs->turns, &jobs->config->compute, pb_run_areas_read_polygons(jobs->config));
    if (jobs->device_owner == NULL && jobs->o->trace == NULL)
        n = (int)jobs->turns.cores + pb_publishing_jobs(&jobs->config->service);
    if (n > PB_TURNS_MAX)
        n = PB_TURNS_MAX;
    if (n > jobs->o->n_inputs)
        n = jobs->o->n_inputs;
    while (jobs->n_slots < n) {
        struct pb_worker_slot *worker = pb_worker_slot_create(&jobs->owner, jobs->n_slots);
        if (worker == NULL)
            return false;
        jobs->slot[jobs->n_slots++].worker = worker;
    }
    return true;
}

int cli_jobs_run(struct cli_jobs *jobs, const struct pb_config *config)
{
    if (jobs == NULL || jobs->slot[0].worker == NULL)
        return fail_memory();
    jobs->config = jobs->owner.config = config;
    jobs->device_owner =
        cli_run_owner_create(&jobs->loop, config, jobs->o->device, on_owner_ready, jobs);
    if (!make_slots(jobs))
        return fail_memory();
    for (size_t i = 0; i < CLI_JOBS_SIGNALS; i++)
        if (signals[i] != SIGHUP || !is_ignored(SIGHUP))
            (void)uv_signal_start(&jobs->signals[i], on_signal, signals[i]);
    (void)uv_timer_start(&jobs->tick, on_tick, TICK_MS, TICK_MS);
    if (jobs->device_owner == NULL)
        go_on(jobs);
    (void)uv_run(&jobs->loop, UV_RUN_DEFAULT);
    cli_progress_clear(&jobs->progress);
    bool unfinished = cli_tasks_end(jobs);
    if (jobs->interrupted && (jobs->failed || unfinished)) {
        (void)fputs("pushbroom: interrupted; unfinished products were removed\n", stderr);
        jobs->ended_by = jobs->interrupted;
        return CLI_JOB_FAILED;
    }
    cli_tasks_sum(jobs);
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
    for (int i = 0; i < jobs->n_slots; i++)
        pb_worker_slot_destroy(jobs->slot[i].worker);
    cli_run_owner_destroy(jobs->device_owner);
    uv_close((uv_handle_t *)&jobs->tick, NULL);
    for (size_t i = 0; i < CLI_JOBS_SIGNALS; i++)
        uv_close((uv_handle_t *)&jobs->signals[i], NULL);
    (void)uv_run(&jobs->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&jobs->loop);
    cli_made_free(&jobs->made);
    free(jobs);
}
