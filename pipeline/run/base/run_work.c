/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/base/run_work.h"
#include "config/base/clock.h"

#include <sys/resource.h>

void pb_run_work_begin(struct pb_run_work *work)
{
    work->start_ns = pb_clock_mono_ns();
    pb_work_enter(&work->ledger);
}

void pb_run_work_end(struct pb_run_work *work, enum pb_run_part part)
{
    struct pb_part_report *report = &work->part[part];
    struct pb_work_times now, since;
    pb_work_leave();
    pb_work_read(&work->ledger, &now);
    since = now;
    pb_work_since(&since, &work->before);
    pb_work_add(&report->work, &since);
    report->wall_ns += pb_clock_mono_ns() - work->start_ns;
    work->before = now;
}

const char *pb_run_part_name(enum pb_run_part part)
{
    static const char *const names[] = {"open", "tiles", "finish", "publish"};
    return names[part];
}

static uint64_t ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

uint64_t pb_run_work_process_ns(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? ns(usage.ru_utime) + ns(usage.ru_stime) : 0;
}
