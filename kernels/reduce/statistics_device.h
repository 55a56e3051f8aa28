/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATISTICS_DEVICE_H
#define PB_STATISTICS_DEVICE_H
/* Moments and histograms of planes on a device: what pb_moments_add and pb_histogram_part_add find
 * in the same planes, to the last bit, for the host to merge. C11 and C++17; the functions of CUDA
 * are there in CUDA builds only. */
#include "kernels/reduce/exact_sum.h"
#include "kernels/reduce/histogram_pixel.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plane of w x h pixels, rows row_px apart, in device memory; its first column is a multiple of
 * PB_MOMENTS_RUN of the image. */
struct pb_statistics_plane {
    const float *data; /* NULL: no pixel is valid */
    uint32_t row_px;
    int32_t w, h;
};

/* What was found in a plane. */
struct pb_statistics_part {
    uint64_t valid;
    uint32_t min,
        max; /* as keys that order as the values do; they mean nothing when none is valid */
    int64_t sum[PB_EXACT_LIMBS], squares[PB_EXACT_LIMBS];
    uint32_t bin[PB_HISTOGRAM_BINS]; /* by slot */
};

/* planes: n, device-readable until the stream (cudaStream_t) is done; parts: n, device memory; of
 * planes of at most most_px pixels. -EINVAL, -ENODEV, -EIO. Thread: any. */
int pb_statistics_cuda(const struct pb_statistics_plane *planes, uint32_t n, uint64_t most_px,
                       struct pb_statistics_part *parts, void *stream);

struct pb_moments;
struct pb_histogram_part;
/* On the host. False: no pixel of the plane is valid, and histogram is left alone. Its lanes are
 * zero before, as pb_histogram_part_begin wants them. */
bool pb_statistics_take(const struct pb_statistics_part *part, struct pb_moments *out_moments,
                        struct pb_histogram_part *out_histogram);

#ifdef __cplusplus
}
#endif
#endif
