/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COPIES_H
#define PB_COPIES_H
/* What copy engines alone reach on the current CUDA device: the ceiling of every executor. CUDA
 * builds only. */
#include "config/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define PB_COPIES_BYTES ((size_t)16 << 20) /* of a copy, at least, where slots allow */

/* Slots of pinned memory, `stride` apart, of which a tile takes the first `bytes`. */
struct pb_copies_side {
    void *memory;
    size_t stride, bytes;
    uint32_t slots;
};

/* Seconds to copy `tiles` tiles to the device and as many results back, both ways at once, in long
 * copies of many slots each, after a round through the slots. Allocates as much device memory as
 * the slots take, for the call. Thread: any, one at a time. */
int pb_copies_measure(const struct pb_copies_side *in, const struct pb_copies_side *out,
                      uint64_t tiles, struct pb_err *err, double *out_seconds);
#endif
