/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_JOBS_PARTS_H
#define PB_CLI_RUN_JOBS_PARTS_H
/* Shared by the files of `pushbroom run` that pass inputs to a worker. One thread. */
#include "service/cli/cli_run.h"
#include "service/cli/cli_run_owner.h"
#include "service/processes/worker_slot.h"

#include <limits.h>
#include <uv.h>

enum { CLI_JOBS_SIGNALS = 3 };

struct cli_jobs {
    const struct cli_run_options *o;
    const struct pb_config *config;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t signals[CLI_JOBS_SIGNALS];
    struct pb_worker_slot_owner owner;
    struct pb_worker_slot *slot;
    struct cli_run_owner *device_owner;
    struct pb_err start_err; /* error from the start of the first worker */
    char products[PATH_MAX]; /* real path of the output directory; "" = not determined yet */
    int at;                  /* index of the current input */
    int attempt;             /* attempt of the current input, from 1 */
    struct cli_input input;  /* the current input, and the one after it */
    struct cli_input next;
    int checked;           /* number of the input in `next`; 0 = empty */
    int64_t not_before_ms; /* time of the next attempt; 0 = immediately */
    struct cli_progress progress;
    bool device_told, failed, left, sweep;
    /* the signal, 0 = no signal; ended_by is set if it left an input undone */
    int interrupted, ended_by;
};

/* --- cli_run_inputs.c --- */
/* Sets jobs->input to the current input, with the result of the check that was made while its
 * predecessor ran, if there was such a check. */
void cli_jobs_take(struct cli_jobs *jobs);
/* Passes the current input to the worker, and announces the next one. */
int cli_jobs_start(struct cli_jobs *jobs, struct pb_err *err);
#endif
