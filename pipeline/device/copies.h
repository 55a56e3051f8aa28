/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COPIES_H
#define PB_COPIES_H
/* Throughput of copy engines alone on the current CUDA device: the upper bound of every
 * executor. CUDA builds only. */
#include "config/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define PB_COPIES_BYTES ((size_t)16 << 20) /* least bytes of a copy */

/* Slots of pinned memory, `stride` apart; a tile uses the first `bytes` of a slot. */
struct pb_copies_side {
    void *memory;
    size_t stride, bytes;
    uint32_t slots;
};

/* Measures the seconds to copy `tiles` tiles to the device and as many results back, both
 * directions at once, in long copies of many slots each, after a warm-up round through the
 * slots. Allocates as much device memory as the slots have, for the call. Thread: any, one at a
 * time. */
int pb_copies_measure(const struct pb_copies_side *in, const struct pb_copies_side *out,
                      uint64_t tiles, struct pb_err *err, double *out_seconds);
#endif
