/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_TUNE_H
#define PB_CLI_TUNE_H
/* `pushbroom devices --tune`. One thread. */
#include "pipeline/device/device.h"
#include "pipeline/tune/tune.h"

struct pb_json;

/* Measures a GPU's transfer plans and stores them (pipeline/device/tuning.h); prints a table,
 * or adds members to the device's object. Returns an exit code: CLI_JOB_FAILED, with the reason on
 * stderr, if the service uses the GPU, a measurement fails or the file cannot be written. */
int cli_tune(const struct pb_device *device, struct pb_json *json);
/* Measures channels between kernels of two GPUs, which are kept nowhere, because no job moves data
 * between GPUs. CLI_JOB_FAILED as in cli_tune(). */
int cli_tune_peer(const struct pb_device *from, const struct pb_device *to,
                  struct pb_tune_peer *out_peer);
/* Reports the source of the plans of a GPU: prints a line, or adds members to the device's object.
 */
void cli_tune_origin(const struct pb_device *device, struct pb_json *json);
#endif
