/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PASSING_DEVICE_H
#define PB_PASSING_DEVICE_H
/* Count of the pixels that pass a gate, in planes that the gate's chain has made. C11 and C++17;
 * the function of CUDA is there in CUDA builds only. */
#include "kernels/pixel.h"
#include "kernels/reduce/statistics_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns true if a pixel of the plane passes: it is neither 0 nor invalid. */
PB_PIXEL bool pb_pixel_passes(float value)
{
    return value < 0.0f || value > 0.0f;
}

/* planes: n, device-readable until the stream (cudaStream_t) is done, of at most most_px pixels;
 * counts: n, device memory. -EINVAL, -EIO. Thread: any. */
int pb_passing_cuda(const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                    uint32_t *counts, void *stream);

#ifdef __cplusplus
}
#endif
#endif
