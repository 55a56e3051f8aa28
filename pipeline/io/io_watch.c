/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/io_watch.h"

#include "config/base/clock.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <stdatomic.h>

static _Atomic int64_t under_way;
static _Atomic int64_t moved_ms; /* begin of the first call or end of the last; monotonic clock */

void pb_io_begin(void)
{
    int64_t now = pb_clock_mono_ms(); /* read before the call counts */
    if (atomic_load(&under_way) == 0)
        atomic_store(&moved_ms, now);
    atomic_fetch_add(&under_way, 1);
    pb_work_storage_begin();
}

void pb_io_end(void)
{
    int error = errno;
    pb_work_end();
    atomic_store(&moved_ms, pb_clock_mono_ms());
    atomic_fetch_sub(&under_way, 1);
    errno = error;
}

int64_t pb_io_stuck_ms(void)
{
    int64_t now = pb_clock_mono_ms();
    if (atomic_load(&under_way) == 0)
        return 0;
    int64_t stuck_ms = now - atomic_load(&moved_ms);
    return stuck_ms > 0 ? stuck_ms : 0;
}
