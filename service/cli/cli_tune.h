/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_TUNE_H
#define PB_CLI_TUNE_H
/* `pushbroom devices --tune`. One thread. */
#include "pipeline/device/device.h"

struct pb_json;

/* Measures a GPU's transfer plans and keeps them (pipeline/device/tuning_file.h); prints a table,
 * or members of the device's object. An exit code: CLI_JOB_FAILED, and why on stderr, when the
 * service uses the GPU, something cannot be measured or the file cannot be written. */
int cli_tune(const struct pb_device *device, struct pb_json *json);
/* Where the plans of a GPU come from: a line, or members of the device's object. */
void cli_tune_origin(const struct pb_device *device, struct pb_json *json);
#endif
