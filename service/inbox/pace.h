/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PACE_H
#define PB_PACE_H
/* When an inbox is scanned after events. What one command renames in (a scene and its sidecar, many
 * scenes) is to be seen together, so a scan waits until no event came for PB_PACE_QUIET_MS, and no
 * longer than PB_PACE_GATHER_MS. Between two rounds there is a pause, which grows with the time a
 * scan takes, so that a huge inbox under constant writes costs a tenth of a core at most. Pure: the
 * caller gives the monotonic time. Zero bytes: no event, no round yet. Thread: loop. */
#include <stdbool.h>
#include <stdint.h>

#define PB_PACE_QUIET_MS  2
#define PB_PACE_GATHER_MS 50
#define PB_PACE_REST_MS   5

struct pb_pace {
    int64_t first_ms;  /* the first event since the last round began; 0 = none */
    int64_t last_ms;   /* the last event */
    int64_t rested_ms; /* when the pause after the last round is over */
};

/* An event came. Milliseconds until a scan is due at the earliest. */
int64_t pb_pace_event(struct pb_pace *pace, int64_t now_ms);
/* Whether more events are likely to come at once. */
bool pb_pace_gathers(const struct pb_pace *pace, int64_t now_ms);
void pb_pace_begin(struct pb_pace *pace); /* a round */
/* The round is over; its scan took that long. */
void pb_pace_end(struct pb_pace *pace, int64_t now_ms, int64_t scan_ms);
/* What is left of the pause, PB_PACE_QUIET_MS at least. */
int64_t pb_pace_rest(const struct pb_pace *pace, int64_t now_ms);
#endif
