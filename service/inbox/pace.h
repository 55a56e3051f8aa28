/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PACE_H
#define PB_PACE_H
/* Time of the scan of an inbox. Files that one command renames in (a scene and its
 * sidecar, many scenes) should be found by one scan; therefore a scan waits until no event has
 * arrived for PB_PACE_QUIET_MS, but no longer than PB_PACE_GATHER_MS. Rounds of a huge inbox, under
 * constant writes or while many files settle, use a tenth of a core at most, as a mean over
 * PB_PACE_CREDIT_MS: a round after a quiet time needs no pause, others wait until the time that
 * their scans took is a tenth. Pure: the caller passes the monotonic time. All-zero: no event, no
 * round yet. Thread: loop. */
#include <stdbool.h>
#include <stdint.h>

#define PB_PACE_QUIET_MS  2
#define PB_PACE_GATHER_MS 50
#define PB_PACE_REST_MS   5
#define PB_PACE_CREDIT_MS 10000

struct pb_pace {
    int64_t first_ms;  /* first event since the last round began; 0 = no event */
    int64_t last_ms;   /* last event */
    int64_t paid_ms;   /* time until which scans have used up their share of the core */
    int64_t rested_ms; /* end of the pause after the last round */
};

/* Records an event. Returns the milliseconds until a scan is due at the earliest. */
int64_t pb_pace_event(struct pb_pace *pace, int64_t now_ms);
/* Returns true if an event was recorded since the last round began. */
bool pb_pace_has_event(const struct pb_pace *pace);
/* Returns true if more events are likely to arrive soon. */
bool pb_pace_gathers(const struct pb_pace *pace, int64_t now_ms);
void pb_pace_begin(struct pb_pace *pace); /* begins a round */
/* Ends the round, whose scan took scan_ms. */
void pb_pace_end(struct pb_pace *pace, int64_t now_ms, int64_t scan_ms);
/* Returns the rest of the pause, at least PB_PACE_QUIET_MS. */
int64_t pb_pace_rest(const struct pb_pace *pace, int64_t now_ms);
/* Delay of a round that is due in in_ms for another cause than an event: in_ms or, if it is longer,
 * the rest of the pause. */
int64_t pb_pace_delay(const struct pb_pace *pace, int64_t now_ms, int64_t in_ms);
/* Period of the listings of an inbox, one of which took cost_ms: rescan_ms, or longer for a huge
 * inbox, so that they use a tenth of a core at most. */
int64_t pb_pace_period(int64_t rescan_ms, int64_t cost_ms);
#endif
