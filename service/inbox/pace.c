/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/pace.h"

#define SHARE 10 /* scans use this fraction of a core: 1 / SHARE */

int64_t pb_pace_event(struct pb_pace *pace, int64_t now_ms)
{
    pace->last_ms = now_ms;
    if (pace->first_ms == 0)
        pace->first_ms = now_ms;
    return pb_pace_rest(pace, now_ms);
}

bool pb_pace_has_event(const struct pb_pace *pace)
{
    return pace->first_ms != 0;
}

bool pb_pace_gathers(const struct pb_pace *pace, int64_t now_ms)
{
    return pace->first_ms != 0 && now_ms < pace->last_ms + PB_PACE_QUIET_MS &&
           now_ms < pace->first_ms + PB_PACE_GATHER_MS;
}

void pb_pace_begin(struct pb_pace *pace)
{
    pace->first_ms = 0;
}

void pb_pace_end(struct pb_pace *pace, int64_t now_ms, int64_t scan_ms)
{
    if (pace->paid_ms < now_ms - PB_PACE_CREDIT_MS)
        pace->paid_ms = now_ms - PB_PACE_CREDIT_MS;
    pace->paid_ms += SHARE * scan_ms;
    pace->rested_ms = now_ms + PB_PACE_REST_MS;
    if (pace->rested_ms < pace->paid_ms)
        pace->rested_ms = pace->paid_ms;
}

int64_t pb_pace_rest(const struct pb_pace *pace, int64_t now_ms)
{
    int64_t left = pace->rested_ms - now_ms;
    return left > PB_PACE_QUIET_MS ? left : PB_PACE_QUIET_MS;
}

int64_t pb_pace_delay(const struct pb_pace *pace, int64_t now_ms, int64_t in_ms)
{
    const int64_t rest_ms = pb_pace_rest(pace, now_ms);
    return in_ms > rest_ms ? in_ms : rest_ms;
}

int64_t pb_pace_period(int64_t rescan_ms, int64_t cost_ms)
{
    return rescan_ms > SHARE * cost_ms ? rescan_ms : SHARE * cost_ms;
}
