/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/daemon/notify.h"

#include <systemd/sd-daemon.h>

void pb_notify_ready(const char *status)
{
    (void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void pb_notify_status(const char *status)
{
    (void)sd_notifyf(0, "STATUS=%s", status);
}

void pb_notify_reloading(void)
{
    (void)sd_notify(0, "RELOADING=1\nSTATUS=reading the config again");
}

void pb_notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void pb_notify_watchdog(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

int64_t pb_notify_watchdog_ms(void)
{
    uint64_t limit_us = 0;
    if (sd_watchdog_enabled(0, &limit_us) <= 0)
        return 0;
    int64_t half_ms = (int64_t)(limit_us / 2000);
    return half_ms > 0 ? half_ms : 1;
}
