/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PERCENTILES_DEVICE_H
#define PB_PERCENTILES_DEVICE_H
/* Percentiles of planes on a device: a state that pb_percentiles_begin or pb_percentiles_again has
 * made (pb_percentiles_bytes) is copied to device memory, the planes are added to it there, and the
 * host merges what comes back, as it does with the states of threads. C11 and C++17; CUDA builds
 * only. */
#include "kernels/reduce/statistics_device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pb_percentiles;

/* As pb_percentiles_add, of n planes of at most most_px pixels, which are device-readable until the
 * stream (cudaStream_t) is done. state: device memory, 8-byte aligned. -EINVAL, -ENODEV, -EIO.
 * Thread: any; several streams may add to one state. */
int pb_percentiles_cuda(struct pb_percentiles *state, const struct pb_statistics_plane *planes,
                        uint32_t n, uint64_t most_px, void *stream);

#ifdef __cplusplus
}
#endif
#endif
