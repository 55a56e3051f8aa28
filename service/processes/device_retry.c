/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/device_retry.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *code, enum pb_code which)
{
    return code != NULL && strcmp(code, pb_code_id(which)) == 0;
}

enum pb_device_try pb_device_try_next(enum pb_device_try now, const char *code)
{
    bool busy = is(code, PB_E_DEVICE_BUSY);
    bool failed = busy || is(code, PB_E_DEVICE_LOST) || is(code, PB_E_DEVICE_FAILED) ||
                  (now != PB_DEVICE_TRY_FIRST && is(code, PB_E_DEVICE_MISSING));
    if (!failed || now >= PB_DEVICE_TRY_CPU)
        return PB_DEVICE_TRY_OVER;
    if (busy && now < PB_DEVICE_TRY_STREAM)
        return PB_DEVICE_TRY_STREAM;
    return now == PB_DEVICE_TRY_FIRST ? PB_DEVICE_TRY_FRESH : PB_DEVICE_TRY_CPU;
}

const char *pb_device_try_name(enum pb_device_try which)
{
    static const char *const names[] = {[PB_DEVICE_TRY_FIRST] = "first",
                                        [PB_DEVICE_TRY_FRESH] = "fresh",
                                        [PB_DEVICE_TRY_STREAM] = "stream",
                                        [PB_DEVICE_TRY_CPU] = "cpu",
                                        [PB_DEVICE_TRY_OVER] = "over"};
    return names[which];
}

void pb_device_try_why(enum pb_device_try which, bool demanded, const char *code,
                       const char *message, char *out, size_t bytes)
{
    const char *how = which == PB_DEVICE_TRY_STREAM ? "by streams in a fresh process"
                      : which != PB_DEVICE_TRY_CPU  ? "again in a fresh process"
                      : demanded ? "on the CPU, although the configuration demands a GPU,"
                                 : "on the CPU";
    (void)snprintf(out, bytes, "%s after %s: %s", how, code && *code ? code : "a failure",
                   message && *message ? message : "no reason was given");
}
