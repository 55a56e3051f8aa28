/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_RETRY_H
#define PB_DEVICE_RETRY_H
/* Selects the next try after a run that failed because of its device. A lost CUDA context cannot
 * be restored in its process; therefore the run is tried again in a fresh process, and then on the
 * CPU, which makes the same products. The service and `pushbroom run` both do this. Pure. Thread:
 * any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum pb_device_try {
    PB_DEVICE_TRY_FIRST,  /* as configured */
    PB_DEVICE_TRY_FRESH,  /* as configured, in a process in which no device has failed */
    PB_DEVICE_TRY_STREAM, /* like FRESH with compute.sync: stream, without a resident kernel */
    PB_DEVICE_TRY_CPU,    /* on the CPU, whatever is configured, also in a fresh process */
    PB_DEVICE_TRY_OVER,   /* no further try */
};

/* Returns the next try after one that ended with the error `code`. After device.lost and
 * device.failed: a fresh process, then the CPU, then no try; a device that disappeared between two
 * tries (it left the bus) counts as failed. After device.busy: streams, because there was no room
 * for a resident kernel, then the CPU. All other errors belong to the input or the configuration
 * and are final. */
enum pb_device_try pb_device_try_next(enum pb_device_try now, const char *code);
/* Name for logs, metrics and a process's environment: "fresh", "stream", "cpu", ... Static. */
const char *pb_device_try_name(enum pb_device_try which);
/* Makes the text for device_why: "on the CPU after device.lost: the GPU failed ...". demanded: the
 * configuration allows only a GPU; the text mentions that. */
void pb_device_try_why(enum pb_device_try which, bool demanded, const char *code,
                       const char *message, char *out, size_t bytes);
#endif
