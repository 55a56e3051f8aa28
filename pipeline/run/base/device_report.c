/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/base/device_report.h"

const char *pb_device_work_name(enum pb_device_work work)
{
    static const char *const names[PB_DEVICE_WORKS] = {"decode", "compute", "encode"};
    return names[work];
}

static const struct {
    const char *thread, *what;
} waits[PB_DEVICE_WAITS] = {
#define PB_DEVICE_WAIT(name, thread, what) {thread, what},
#include "pipeline/run/base/device_waits.def"
#undef PB_DEVICE_WAIT
};

const char *pb_device_wait_thread(enum pb_device_wait wait)
{
    return waits[wait].thread;
}

const char *pb_device_wait_name(enum pb_device_wait wait)
{
    return waits[wait].what;
}

void pb_device_report_add(struct pb_device_report *to, const struct pb_device_report *more)
{
    to->used = to->used || more->used;
    to->occupied_ns += more->occupied_ns;
    to->set_up_ns += more->set_up_ns;
    to->pin_ns += more->pin_ns;
    to->blocks += more->blocks;
    to->core_blocks += more->core_blocks;
    to->kept_bytes += more->kept_bytes;
    to->looked = to->looked || more->looked;
    to->has_valid = to->has_valid || more->has_valid;
    to->managed_in_bytes += more->managed_in_bytes;
    to->managed_out_bytes += more->managed_out_bytes;
    if (more->managed_bytes > to->managed_bytes)
        to->managed_bytes = more->managed_bytes;
    if (more->managed_most_bytes > to->managed_most_bytes)
        to->managed_most_bytes = more->managed_most_bytes;
    for (int i = 0; i < PB_DEVICE_WORKS; i++)
        to->work_ns[i] += more->work_ns[i];
    for (int i = 0; i < PB_DEVICE_WAITS; i++)
        to->wait_ns[i] += more->wait_ns[i];
}
