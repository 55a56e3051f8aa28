/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/clock.h"

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

int64_t pb_clock_boot_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

uint64_t pb_clock_mono_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)pb_clock_ns(&now);
}

struct timespec pb_clock_mono_after(int64_t ms)
{
    struct timespec until = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Lists of jobs have thousands of times: with printf these would be a fifth of their cost. */
static char *put_digits(char *to, int value, int digits, char after)
{
    for (int i = digits; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    to[digits] = after;
    return to + digits + 1;
}

void pb_clock_text(int64_t wall_ms, char out[PB_CLOCK_TEXT_BYTES])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    out[0] = '\0';
    if (wall_ms <= 0 || gmtime_r(&seconds, &utc) == NULL || utc.tm_year > 9999 - 1900)
        return;
    char *to = put_digits(out, utc.tm_year + 1900, 4, '-');
    to = put_digits(to, utc.tm_mon + 1, 2, '-');
    to = put_digits(to, utc.tm_mday, 2, 'T');
    to = put_digits(to, utc.tm_hour, 2, ':');
    to = put_digits(to, utc.tm_min, 2, ':');
    to = put_digits(to, utc.tm_sec, 2, '.');
    to = put_digits(to, (int)(wall_ms % 1000), 3, 'Z');
    *to = '\0';
}

bool pb_clock_read(const char *text, int64_t *out_s)
{
    struct tm utc = {.tm_isdst = 0};
    if (strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) == NULL)
        return false;
    *out_s = (int64_t)timegm(&utc);
    return true;
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
