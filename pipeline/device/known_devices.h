/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KNOWN_DEVICES_H
#define PB_KNOWN_DEVICES_H
/* Devices for which plans can be made in their absence, with their makers' figures
 * (known_devices.def), and estimates of their decoding and encoding rates: measured on an H200,
 * scaled by multiprocessors x clock. Arithmetic only. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_device_traits;

struct pb_known_device {
    const char *name, *model, *source;
    int32_t compute; /* 87 for 8.7 */
    uint32_t multiprocessors, clock_mhz;
    uint32_t shared_kib, shared_block_kib; /* shared memory of a multiprocessor; limit of a block */
    uint32_t memory_gb;
    double memory_gb_s, link_gb_s; /* link: one direction; 0 = shares the CPU's memory */
    int32_t cores;                 /* cores of its CPU; 0 = a card, with this machine's CPU */
    bool integrated;
};

/* Estimated rates in bytes per second of pixels in memory. */
struct pb_device_estimate {
    uint32_t blocks_each; /* blocks of decoding threads that fit on a multiprocessor */
    uint32_t streams;     /* blocks of files decoded concurrently */
    double inflate_least, inflate_most;
    double encode_least, encode_most;
    double core_inflate; /* rate of one core of the measured machine */
};

/* Finds a device by name; NULL if unknown. */
const struct pb_known_device *pb_known_device_find(const char *name);
/* Returns device `number`; NULL after the last. */
const struct pb_known_device *pb_known_device_at(size_t number);
/* Gets the result that pb_device_traits() would have for it, without tuning. */
void pb_known_device_traits(const struct pb_known_device *device,
                            struct pb_device_traits *out_traits);
void pb_known_device_estimate(const struct pb_known_device *device,
                              struct pb_device_estimate *out_estimate);
#endif
