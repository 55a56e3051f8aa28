/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_REEXEC_H
#define PB_CLI_REEXEC_H
/* `pushbroom run` after a device failed: the process replaces itself (exec) by a fresh one that
 * does what is left, beginning with the same input. Nothing of a CUDA context survives that, while
 * the process id, the streams and the exit status stay what the caller knows. What the fresh
 * process has to know travels in an environment variable, which it takes out at once. One thread.
 */
#include "service/runner/device_retry.h"

struct cli_reexec {
    enum pb_device_try device_try; /* of the first input; FIRST: nothing has failed */
    bool failed;                   /* an input before it did */
    char why[512];                 /* what happened to the first input's device; "" = nothing */
};

/* What the process that was here before left; all zero when there was none. */
void cli_reexec_take(struct cli_reexec *out_again);
/* Becomes `pushbroom run` with these options and inputs (both end with NULL). Returns only when
 * that failed, with a negative errno. */
int cli_reexec(const char *const *options, char *const *inputs, const struct cli_reexec *again);
#endif
