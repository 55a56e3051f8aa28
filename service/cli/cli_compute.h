/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_COMPUTE_H
#define PB_CLI_COMPUTE_H
/* One input of `pushbroom run`. On the CPU it is computed apart, in a confined child as the
 * service's (worker_fork.h), which this process only listens to: a decoder that the file takes over
 * has nothing of the user's. With a GPU it is computed here: a device that fails makes this process
 * replace itself (cli_reexec.h). One thread. */
#include "config/base/err.h"
#include "pipeline/run/run.h"

#include <signal.h>
#include <stdbool.h>

struct cli_compute {
    struct pb_run_options options; /* as for pb_run_create; the config is not const for the child */
    struct pb_config *config;
    bool json, quiet;
    const char *device_why; /* as in cli_result_json */
};

/* What to call on signals: computing ends soon after. Safe in a signal handler. */
void cli_compute_interrupt(void);
bool cli_compute_is_interrupted(void);
/* Whether inputs are computed apart under this configuration, as it is now. */
bool cli_compute_is_apart(const struct pb_config *config);
/* Initialises libraries for many children. */
void cli_compute_warm(void);
/* Both compute, publish and print the result, or fill *err. */
int cli_compute_apart(const struct cli_compute *compute, struct pb_err *err);
int cli_compute_here(const struct cli_compute *compute, struct pb_err *err);
#endif
