/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HALVE_DEVICE_H
#define PB_HALVE_DEVICE_H
/* Halving on a device: parts of planes into quarters of overview blocks, the same bits as
 * pipeline/cog/halve.h. The host lists the parts; those of one call do not depend on each other.
 * Present in CUDA builds only. */
#include "kernels/codec/pixel_join.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Planes of w x h pixels into planes of ceil(w/2) x ceil(h/2). */
struct pb_halve_part {
    const float *from; /* plane p at from + p * from_plane_px, rows from_row_px apart; device
                          memory. NULL: no pixel is valid */
    float *to;         /* the same; does not overlap */
    uint64_t from_plane_px, to_plane_px;
    uint32_t from_row_px, to_row_px;
    int32_t w, h;
    struct pb_pixel_join join; /* how averages take pixels of several planes */
};

/* parts: n of them, device-readable, until the stream (cudaStream_t) is done; each has n_planes
 * planes of at most most_rows rows. -EINVAL, -ENODEV, -EIO. Thread: any. */
int pb_halve_cuda(const struct pb_halve_part *parts, uint32_t n, uint32_t n_planes,
                  int32_t most_rows, bool nearest, void *stream);

#ifdef __cplusplus
}
#endif
#endif
