/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_streams.h"
#include "pipeline/device/engine_limits.h"

#include <string.h>

void pb_owner_stream_why(const struct pb_owner_facts *facts, char why[PB_OWNER_WHY_BYTES])
{
    char pid[32] = "";
    if (facts->other_pid != 0)
        (void)snprintf(pid, sizeof pid, " (PID %d)", facts->other_pid);
    why[0] = '\0';
    if (facts->time_limited)
        (void)snprintf(why, PB_OWNER_WHY_BYTES, "%s", pb_limit_reason(PB_LIMIT_RESIDENT_DISPLAY));
    else if (facts->calls_wait)
        (void)snprintf(why, PB_OWNER_WHY_BYTES,
                       "with this driver calls that allocate memory wait for a kernel that stays");
    else if (facts->others > 0 && !facts->mps)
        (void)snprintf(why, PB_OWNER_WHY_BYTES,
                       "%d other process%s%s on the GPU, and without MPS they take turns with a "
                       "kernel that stays",
                       facts->others, facts->others == 1 ? " computes" : "es compute", pid);
    else if (facts->full)
        (void)snprintf(why, PB_OWNER_WHY_BYTES,
                       "other programs filled the GPU less than a minute ago");
}

void pb_owner_streams_say(struct pb_owner_streams *streams, const char *device, const char *why,
                          FILE *log)
{
    if (strcmp(streams->said, why) == 0)
        return;
    if (why[0] != '\0')
        (void)fprintf(log, "%s: jobs use streams: %s\n", device, why);
    else
        (void)fprintf(log, "%s: kernels stay again\n", device);
    (void)snprintf(streams->said, sizeof streams->said, "%s", why);
}
