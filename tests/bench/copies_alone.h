/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COPIES_ALONE_H
#define PB_COPIES_ALONE_H
/* What copy engines alone reach on the current CUDA device: the ceiling of every executor. */
#include <stddef.h>
#include <stdint.h>

#define COPIES_BYTES ((size_t)16 << 20) /* of a copy, at least, where slots allow */

/* Slots of pinned memory, `stride` apart, of which a tile takes the first `bytes`. */
struct copies_side {
    void *memory;
    size_t stride, bytes;
    uint32_t slots;
};

/* Seconds to copy `tiles` tiles to the device and as many results back, both ways at once, in long
 * copies of many slots each. Ends the process when CUDA fails. */
double copies_alone(const struct copies_side *in, const struct copies_side *out, uint64_t tiles);
#endif
