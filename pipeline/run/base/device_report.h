/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_REPORT_H
#define PB_DEVICE_REPORT_H
/* Work of a GPU that decodes blocks, and waiting times of the threads that feed it. Times are sums
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
    bool used; /* false: the other members are unset */
    /* Times by the device's clock with any work of this run on the device, and with work of each
     * kind; kinds overlap. */
    uint64_t occupied_ns, work_ns[PB_DEVICE_WORKS];
    uint64_t set_up_ns, pin_ns; /* whole time before the first tile; its part for pinning slots */
    uint64_t wait_ns[PB_DEVICE_WAITS];
    uint64_t blocks, core_blocks; /* decoded blocks; those of them that cores decoded */
    uint64_t kept_bytes; /* pixels that passes after the first one found in device memory */
    /* The device looked for a valid pixel of a warped scene, and found one. */
    bool looked, has_valid;
    /* Managed planes: size of the largest pass's, the most of it on the device at a time, and what
     * was moved to the device and back; 0: planes are device memory. */
    uint64_t managed_bytes, managed_most_bytes, managed_in_bytes, managed_out_bytes;
};

/* "decode", "compute", "encode". Static, like the next two. */
const char *pb_device_work_name(enum pb_device_work work);
const char *pb_device_wait_thread(enum pb_device_wait wait);
const char *pb_device_wait_name(enum pb_device_wait wait);
/* *to += *more. */
void pb_device_report_add(struct pb_device_report *to, const struct pb_device_report *more);
#endif
