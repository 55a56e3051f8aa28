/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NOTIFY_H
#define PB_NOTIFY_H
/* Reports the service's state to systemd (sd_notify). Without systemd every call does nothing. Only
 * the loop feeds the watchdog, so that systemd detects a loop that hangs. Thread: loop. */
#include <stdint.h>

void pb_notify_ready(const char *status);
void pb_notify_status(const char *status);
void pb_notify_reloading(void); /* end it with pb_notify_ready */
void pb_notify_stopping(void);
void pb_notify_watchdog(void);
/* Interval for triggering the watchdog, half its limit; 0 if there is no watchdog. */
int64_t pb_notify_watchdog_ms(void);
#endif
