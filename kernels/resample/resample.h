/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESAMPLE_H
#define PB_RESAMPLE_H
/* From grid to grid: a plane over one grid made from a plane over another. A descriptor is plain
 * data. An invalid (NaN) pixel takes no part in sums and counts; the weights of the others are
 * scaled to a sum of 1. Thread: any. */
#include "kernels/focal/focal.h"
#include "kernels/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The footprint of a pixel is the area of the source that it covers.
 *   NEAREST   the source pixel that holds the centre
 *   BILINEAR  triangle of 1 pixel; CUBIC: Keys' kernel with a = -0.5, of 2 pixels; LANCZOS: of 3.
 *             All are as wide as the footprint when that is more than a pixel. Invalid where the
 *             source pixel that holds the centre is invalid, so that valid areas do not grow
 *   AVERAGE   mean over the footprint, weighted by area
 *   MODE      the value with the largest area of the footprint; of equal ones the smallest */
enum pb_resampling {
    PB_NEAREST,
    PB_BILINEAR,
    PB_CUBIC,
    PB_AVERAGE,
    PB_MODE,
    PB_LANCZOS,
    PB_RESAMPLING_COUNT
};

/* Scales that a map may have, and the most pixels that a footprint or kernel meets along an axis.
 */
#define PB_RESAMPLE_SCALE_MAX 64
#define PB_RESAMPLE_TAPS_MAX  (6 * PB_RESAMPLE_SCALE_MAX + 2)

struct pb_resample {
    enum pb_resampling how;
    int32_t source_w, source_h; /* size of the source's grid */
    struct pb_map map;          /* from the made grid to the source's */
};

/* "nearest", "bilinear", ... */
const char *pb_resampling_name(enum pb_resampling how);
/* Whether every value that is made is one of the source. */
bool pb_resampling_chooses(enum pb_resampling how);
/* Pixels of the source beyond what a rect covers that making it reads, on every side; the rect of
 * the made grid grown by margin before. */
int32_t pb_resample_reach(const struct pb_resample *resample, int32_t margin);
/* Floats of temporary memory for a made plane of w pixels a row. */
size_t pb_resample_temp_px(const struct pb_resample *resample, size_t w);
/* in->rect holds what out->rect needs, clipped to the source's grid; it may be empty. */
void pb_resample_run_cpu(const struct pb_resample *resample, const struct pb_plane *in,
                         const struct pb_plane *out, float *temp);
/* CUDA builds only. The same bits; queues on stream (cudaStream_t). 0 or -EIO. Allocates nothing.
 */
int pb_resample_run_cuda(const struct pb_resample *resample, const struct pb_plane *in,
                         const struct pb_plane *out, void *stream);
#ifdef __cplusplus
}
#endif
#endif
