/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_JOBS_PARTS_H
#define PB_CLI_RUN_JOBS_PARTS_H
/* Shared by the files of `pushbroom run` that pass inputs to workers. One thread. */
#include "service/cli/cli_run.h"
#include "service/cli/cli_run_owner.h"
#include "service/processes/turns.h"
#include "service/processes/worker_slot.h"

#include <limits.h>
#include <uv.h>

enum { CLI_JOBS_SIGNALS = 3, CLI_FAILED_NAMED = 5 };

/* An input from its start until its result is printed. */
struct cli_task {
    struct cli_task *next; /* the input after it, if that has begun */
    int number;            /* index of the input */
    int attempt;           /* from 1 */
    int64_t not_before_ms; /* time of the next attempt; 0 = immediately */
    struct cli_input input;
    char scene[PB_JOB_NAME_BYTES];
    /* number of its scene in an archive of several, from 1; 0 = the input is one scene */
    int part;
    struct pb_scene_manifest archive; /* a part: its archive with the checksum, if that is known */
    bool waits;                       /* a part that has not begun */
    bool is_split;     /* its input is an archive of several scenes; the parts follow it */
    bool over;         /* it has its result: err, or the job if err.code is PB_OK */
    struct pb_job job; /* with products and report; its device_why holds also for an error */
    struct pb_err err;
};

struct cli_slot {
    struct pb_worker_slot *worker;
    struct cli_task *task; /* task that it runs or will try again; NULL if absent */
    struct cli_task *next; /* task that was announced to its worker; NULL if absent */
    bool publishes;        /* its task computes no more, and counts no more */
};

/* Numbers of results. */
struct cli_sum {
    int done, skipped, failed;
    char names[1100]; /* names of the first CLI_FAILED_NAMED failed inputs */
};

struct cli_jobs {
    const struct cli_run_options *o;
    const struct pb_config *config;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t signals[CLI_JOBS_SIGNALS];
    struct pb_worker_slot_owner owner;
    struct cli_slot slot[PB_TURNS_MAX];
    int n_slots; /* jobs that may run at the same time: slots in use */
    struct pb_turns turns;
    struct cli_run_owner *device_owner;
    struct pb_err start_err; /* error from the start of the first worker */
    char products[PATH_MAX]; /* real path of the output directory; "" = not determined yet */
    int at;                  /* index of the next input that is checked */
    void *made;              /* products of the inputs that are done (cli_made_find) */
    struct cli_task *held;   /* the next input that begins; NULL if not checked yet */
    /* inputs that have begun, in their order, and scenes of archives */
    struct cli_task *first, *last;
    struct cli_progress progress;
    int shown; /* index of the input that the progress bar is about, -1 = no input */
    struct cli_sum sum;
    bool device_told, failed, left, sweep;
    /* the signal, 0 = no signal; ended_by is set if it left an input undone */
    int interrupted, ended_by;
};

/* --- cli_run_inputs.c --- */
/* Begins the next input; inputs that cannot run are over immediately. after: the slot that runs it
 * after its present task; NULL: it runs now. NULL if the input has to wait until another one is
 * over (their products belong in one place, or both change the same file), or if all have begun. */
struct cli_task *cli_task_take(struct cli_jobs *jobs, const struct cli_slot *after);
/* Passes the slot's task to its worker, and announces the next one if inputs are left for the other
 * slots. */
int cli_task_start(struct cli_jobs *jobs, struct cli_slot *slot, struct pb_err *err);
/* Ends a task: with an error, or, err NULL, with its products. Prints the results that are next in
 * the order of the inputs. */
void cli_task_over(struct cli_jobs *jobs, struct cli_task *task, const struct pb_err *err);
/* Makes a task of each scene in the task's archive; they follow it. names: JSON {"scenes": [...]}.
 * Returns false if out of memory. */
bool cli_task_split(struct cli_jobs *jobs, struct cli_task *task, const char *names);
/* Prints the remaining results, and forgets all tasks. Returns true if an input has no result. */
bool cli_tasks_end(struct cli_jobs *jobs);
/* Prints the number of results on stderr if one of several inputs failed; not with --json. */
void cli_tasks_sum(const struct cli_jobs *jobs);
#endif
