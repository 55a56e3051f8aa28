/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_AS_H
#define PB_CLI_AS_H
/* `--as NAME`: plans as on a device that is not here, from its maker's figures. One thread. */
#include "pipeline/device/device.h"
#include "pipeline/device/known_devices.h"
#include "pipeline/run/base/remote.h"

struct pb_json;
struct pb_plan;

struct cli_as {
    const struct pb_known_device *device;
    struct pb_device_traits traits;
    struct pb_remote remote; /* for a run that is only explained: the device as a process has it */
};

/* CLI_DONE; CLI_USAGE after it said that there is no such device, and which there are. *as stays
 * where it is: it refers to itself. */
int cli_as_find(const char *command, const char *name, struct cli_as *as);
/* Puts the device into the place of the configured one, and its cores into that of all cores. */
void cli_as_apply(const struct cli_as *as, struct pb_compute_config *compute);
/* `pushbroom devices --as`: what it is, what is estimated and planned. The exit code. */
int cli_as_show(const char *name, bool as_json);
/* Members of the open object: the figures and the estimate; of a scene's plan also who decodes. */
void cli_as_json(const struct cli_as *as, struct pb_json *json);
void cli_as_json_plan(const struct cli_as *as, const struct pb_plan *plan, struct pb_json *json);
#endif
