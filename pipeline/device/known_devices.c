/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The estimate scales measurements of an H200 at 1870 MHz with 528 streams (four per
 * multiprocessor): 46 GB/s of inflate, 120 to 226 GB/s of encode, depending on the pixels. The
 * rate of a stream with fewer streams on its multiprocessor was not measured: the lower bound
 * assumes the rate of a stream with four, the upper bound the rate of a multiprocessor with
 * four. */
#include "pipeline/device/known_devices.h"
#include "pipeline/device/device.h"

#include "kernels/codec/decode_device.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1024, MEASURED_EACH = 4 };
#define MEASURED_SM_MHZ    (132 * 1870.0)
#define MEASURED_INFLATE   46e9
#define MEASURED_ENCODE_LO 120e9
#define MEASURED_ENCODE_HI 226e9
#define MEASURED_CORE      250e6
#define GB                 UINT64_C(1000000000)

static const struct pb_known_device known[] = {
#define X(n, m, cc, sms, mhz, shared, block, memory, rate, link, cpu, from)                        \
    {.name = (n),                                                                                  \
     .model = (m),                                                                                 \
     .source = (from),                                                                             \
     .compute = (cc),                                                                              \
     .multiprocessors = (sms),                                                                     \
     .clock_mhz = (mhz),                                                                           \
     .shared_kib = (shared),                                                                       \
     .shared_block_kib = (block),                                                                  \
     .memory_gb = (memory),                                                                        \
     .memory_gb_s = (rate),                                                                        \
     .link_gb_s = (link),                                                                          \
     .cores = (cpu),                                                                               \
     .integrated = (link) == 0},
#include "pipeline/device/known_devices.def"
#undef X
};

const struct pb_known_device *pb_known_device_at(size_t number)
{
    return number < sizeof known / sizeof known[0] ? &known[number] : NULL;
}

const struct pb_known_device *pb_known_device_find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

void pb_known_device_traits(const struct pb_known_device *device,
                            struct pb_device_traits *out_traits)
{
    *out_traits = (struct pb_device_traits){.integrated = device->integrated,
                                            .managed = !device->integrated,
                                            .memory_bytes = device->memory_gb * GB};
    struct wic_gpu *gpu = &out_traits->gpu;
    (void)snprintf(gpu->name, sizeof gpu->name, "%s", device->model);
    gpu->compute = device->compute;
    gpu->multiprocessors = device->multiprocessors;
    gpu->shared_bytes = device->shared_kib * KIB;
    gpu->shared_block_bytes = device->shared_block_kib * KIB;
}

void pb_known_device_estimate(const struct pb_known_device *device,
                              struct pb_device_estimate *out_estimate)
{
    uint32_t each = pb_decode_streams_each(device->shared_kib * KIB);
    double scale = device->multiprocessors * (double)device->clock_mhz / MEASURED_SM_MHZ;
    *out_estimate = (struct pb_device_estimate){
        .blocks_each = each,
        .streams = each * device->multiprocessors,
        .inflate_least = MEASURED_INFLATE * scale * each / MEASURED_EACH,
        .inflate_most = each > 0 ? MEASURED_INFLATE * scale : 0,
        .encode_least = MEASURED_ENCODE_LO * scale,
        .encode_most = MEASURED_ENCODE_HI * scale,
        .core_inflate = MEASURED_CORE};
}
