/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_REPORT_H
#define PB_DEVICE_REPORT_H
/* What a GPU that decodes blocks did, and for what the threads waited that feed it. Times are sums
 * over the passes of a run. */
#include <stdbool.h>
#include <stdint.h>

enum pb_device_work { PB_DEVICE_DECODE, PB_DEVICE_COMPUTE, PB_DEVICE_ENCODE, PB_DEVICE_WORKS };

enum pb_device_wait {
#define PB_DEVICE_WAIT(name, thread, what) PB_DEVICE_WAIT_##name,
#include "pipeline/run/base/device_waits.def"
#undef PB_DEVICE_WAIT
    PB_DEVICE_WAITS
};

struct pb_device_report {
    bool used; /* the rest counts only then */
    /* By the device's clock: while work of this run was under way there, and while work of each
     * kind was; kinds overlap. */
    uint64_t occupied_ns, work_ns[PB_DEVICE_WORKS];
    uint64_t set_up_ns, pin_ns; /* before the first tile, in all; pinning slots, of that */
    uint64_t wait_ns[PB_DEVICE_WAITS];
    uint64_t blocks, core_blocks; /* that were decoded; by cores, of these */
    uint64_t kept_bytes; /* pixels that passes after the first one took from the device's memory */
};

/* "decode", "compute", "encode". Static, as the next two. */
const char *pb_device_work_name(enum pb_device_work work);
const char *pb_device_wait_thread(enum pb_device_wait wait);
const char *pb_device_wait_name(enum pb_device_wait wait);
/* *to += *more. */
void pb_device_report_add(struct pb_device_report *to, const struct pb_device_report *more);
#endif
