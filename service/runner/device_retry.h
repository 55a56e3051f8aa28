/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_RETRY_H
#define PB_DEVICE_RETRY_H
/* What becomes of a run that a device ended: a CUDA context that is gone does not come back in its
 * process, so the run is tried once more in a fresh one, and then on the CPU, which gives the same
 * products. The service and `pushbroom run` hold to this alike. Pure. Thread: any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum pb_device_try {
    PB_DEVICE_TRY_FIRST,  /* as configured */
    PB_DEVICE_TRY_FRESH,  /* as configured, in a process that no device has failed in */
    PB_DEVICE_TRY_STREAM, /* the same, but kernels come and go: compute.sync is stream */
    PB_DEVICE_TRY_CPU,    /* on the CPU, whatever is configured, in a fresh process too */
    PB_DEVICE_TRY_OVER,   /* the failure stands */
};

/* What follows a try that ended with the error of that dotted word. After device.lost and
 * device.failed a fresh process, then the CPU, then nothing; a device that went missing between two
 * tries (it left the bus) counts as failed. After device.busy streams, for a kernel that stays
 * found no room, and what fails there goes to the CPU. All other errors are the input's or the
 * configuration's, and stand. */
enum pb_device_try pb_device_try_next(enum pb_device_try now, const char *code);
/* Does a process whose run ended so have to go, for its CUDA context is gone? */
bool pb_device_is_lost(const char *code);
/* "fresh", "stream", "cpu", ...: for logs, metrics and a process's environment. Static. */
const char *pb_device_try_name(enum pb_device_try which);
/* "on the CPU after device.lost: the GPU failed ...": what a reader of the result wants to know.
 * demanded: the configuration asks for a GPU and nothing else, which the words then mention. */
void pb_device_try_why(enum pb_device_try which, bool demanded, const char *code,
                       const char *message, char *out, size_t bytes);
#endif
