/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLOCK_H
#define PB_CLOCK_H
/* The two clocks: wall time for output, monotonic time for every wait. Thread: any. */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define PB_CLOCK_TEXT_BYTES 32

/* A time in nanoseconds: since 1970 if it is one of a file or of the wall clock. */
static inline int64_t pb_clock_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int64_t pb_clock_wall_ms(void); /* milliseconds since 1970, UTC */
int64_t pb_clock_mono_ms(void); /* never goes back */
/* The same, with the time in which the machine was suspended: for leases, which end then, too. */
int64_t pb_clock_boot_ms(void);
uint64_t pb_clock_mono_ns(void);
/* That many milliseconds from now on the monotonic clock, for pthread_cond_timedwait. */
struct timespec pb_clock_mono_after(int64_t ms);
/* Calls again(user) every 20 ms until it returns true or limit_ms have passed; returns whether it
 * did. Blocks: for the start of the service only. A service that was killed a moment ago may have
 * left a child between fork and exec, which holds its lock and its socket for that long. */
bool pb_clock_retry(int64_t limit_ms, bool (*again)(void *user), void *user);
/* "2026-11-21T08:15:30.123Z"; "" for wall_ms <= 0. */
void pb_clock_text(int64_t wall_ms, char out[PB_CLOCK_TEXT_BYTES]);
/* Seconds since 1970 of a text that begins as those of pb_clock_text do; text after the seconds is
 * ignored. Returns false, and leaves *out_s, if it does not begin with a time. */
bool pb_clock_read(const char *text, int64_t *out_s);
#endif
