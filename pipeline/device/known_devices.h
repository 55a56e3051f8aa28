/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KNOWN_DEVICES_H
#define PB_KNOWN_DEVICES_H
/* Devices that are planned for without being here, by their makers' figures
 * (known_devices.def), and what such a device decodes and encodes: measured on an H200, scaled by
 * multiprocessors x clock. Arithmetic only. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_device_traits;

struct pb_known_device {
    const char *name, *model, *source;
    int32_t compute; /* 87 for 8.7 */
    uint32_t multiprocessors, clock_mhz;
    uint32_t shared_kib, shared_block_kib; /* of a multiprocessor; of a block, at most */
    uint32_t memory_gb;
    double memory_gb_s, link_gb_s; /* link: one way; 0 = it shares the CPU's memory */
    int32_t cores;                 /* of its CPU; 0 = it is a card, and the CPU is this machine's */
    bool integrated;
};

/* What it does in a second, in bytes of pixels as they are in memory. Estimates. */
struct pb_device_estimate {
    uint32_t blocks_each; /* of decoding threads that fit on a multiprocessor */
    uint32_t streams;     /* blocks of files that are decoded at a time */
    double inflate_least, inflate_most;
    double encode_least, encode_most;
    double core_inflate; /* one core of the machine that was measured */
};

/* NULL: there is none of that name. */
const struct pb_known_device *pb_known_device_find(const char *name);
/* The number'th; NULL after the last. */
const struct pb_known_device *pb_known_device_at(size_t number);
/* As pb_device_traits() would tell of it; nothing was tuned on it. */
void pb_known_device_traits(const struct pb_known_device *device,
                            struct pb_device_traits *out_traits);
void pb_known_device_estimate(const struct pb_known_device *device,
                              struct pb_device_estimate *out_estimate);
#endif
