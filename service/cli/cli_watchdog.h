/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_WATCHDOG_H
#define PB_CLI_WATCHDOG_H
/* Bounds what may wait for a GPU's driver without end (finding a device, setting it up): the call
 * cannot be given up, only its process. Main thread. */
#include <stdint.h>

/* From now on the process ends (exit status 1) when stop is not called in limit_ms: after
 * expired(user), which says why and runs in a thread of its own. Without threads nothing is
 * bounded. */
void cli_watchdog_start(int64_t limit_ms, void (*expired)(void *user), void *user);
/* Also when it was not started. */
void cli_watchdog_stop(void);
#endif
