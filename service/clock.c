/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ms(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t pb_clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t pb_clock_mono_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

void pb_clock_text(int64_t wall_ms, char out[PB_CLOCK_TEXT_BYTES])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    out[0] = '\0';
    if (wall_ms <= 0 || gmtime_r(&seconds, &utc) == NULL)
        return;
    size_t n = strftime(out, PB_CLOCK_TEXT_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(out + n, PB_CLOCK_TEXT_BYTES - n, ".%03dZ", (int)(wall_ms % 1000));
}

bool pb_clock_retry(int64_t limit_ms, bool (*again)(void *user), void *user)
{
    const struct timespec pause = {0, 20 * 1000 * 1000};
    int64_t until = pb_clock_mono_ms() + limit_ms;
    while (!again(user)) {
        if (pb_clock_mono_ms() >= until)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return true;
}
