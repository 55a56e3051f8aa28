/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_AS_H
#define PB_CLI_AS_H
/* Option `--as NAME`: plans for a device that is not present, with its maker's figures. One
 * thread. */
#include "pipeline/device/device.h"
#include "pipeline/device/known_devices.h"
#include "pipeline/run/base/remote.h"

struct pb_json;
struct pb_plan;

struct cli_as {
    const struct pb_known_device *device;
    struct pb_device_traits traits;
    /* for a run that is only explained: the device as its owner process would report it */
    struct pb_remote remote;
};

/* Returns CLI_DONE, or CLI_USAGE after a message that lists the known devices. *as must not be
 * moved: it has pointers to itself. */
int cli_as_find(const char *command, const char *name, struct cli_as *as);
/* Replaces the configured device by this one, and the number of all cores by its cores. */
void cli_as_apply(struct cli_as *as, struct pb_compute_config *compute);
/* `pushbroom devices --as`: prints the device, its estimate and its plan. Returns the exit code. */
int cli_as_show(const char *name, bool as_json);
/* Adds members to the open object: figures and estimate; in the plan of a scene also the decoder.
 */
void cli_as_json(const struct cli_as *as, struct pb_json *json);
void cli_as_json_plan(const struct cli_as *as, const struct pb_plan *plan, struct pb_json *json);
#endif
