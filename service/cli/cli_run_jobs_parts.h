/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_JOBS_PARTS_H
#define PB_CLI_RUN_JOBS_PARTS_H
/* For the files of `pushbroom run` that give inputs to a worker. One thread. */
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
    struct pb_err start_err; /* of the first worker */
    char products[PATH_MAX]; /* the real path of the output directory; "" = not looked for yet */
    int at;                  /* the input whose turn it is */
    int attempt;             /* of it, from 1 */
    struct cli_input input;  /* it, and the one after it */
    struct cli_input next;
    int checked;           /* number of the input that is in `next`; 0 = none */
    int64_t not_before_ms; /* of the next attempt; 0 = at once */
    struct cli_progress progress;
    bool device_told, failed, left, sweep;
    int interrupted, ended_by; /* the signal, 0 = none; and when something was left undone */
};

/* --- cli_run_inputs.c --- */
/* Makes the input whose turn it is jobs->input: with the result of the check that was made while
 * its predecessor ran, if there is one. */
void cli_jobs_take(struct cli_jobs *jobs);
/* Gives it to the worker, and announces the next one. */
int cli_jobs_start(struct cli_jobs *jobs, struct pb_err *err);
#endif
