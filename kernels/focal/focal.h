/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_H
#define PB_FOCAL_H
/* A focal operation makes a plane from the neighbourhood of each pixel of another plane. The kinds
 * are listed in focal.def. A descriptor is plain data, so that it can be copied into a chain and to
 * a device. An invalid (NaN) neighbour makes the result invalid, but FLAT leaves it out, and see
 * EXTRAPOLATE; pixels outside the IMAGE (not the tile) follow the edge rule. C11 and C++17. Thread:
 * any. */
#include "kernels/view.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of weighted sums and of PB_FOCAL_FLAT; of the other kinds. */
#define PB_FOCAL_SIDE_MAX        31
#define PB_FOCAL_WINDOW_SIDE_MAX 15
/* On a GPU the threads of a block make patches of so many pixels a side, one after the other. */
#define PB_FOCAL_PATCH 32

/* REFLECT does not repeat the edge pixel: -1 is pixel 1 (an image of one pixel: that pixel).
 * EXTRAPOLATE, of window kinds only: outside, twice the edge pixel less the reflected one, along
 * the columns and then along the rows. EXTREME, GRADIENT and RELIEF then take an invalid neighbour
 * for the pixel in the middle. */
enum pb_edge { PB_EDGE_REFLECT, PB_EDGE_CLAMP, PB_EDGE_NODATA, PB_EDGE_EXTRAPOLATE, PB_EDGE_COUNT };
enum pb_focal_kind {
#define PB_FOCAL_SUM(NAME, name)    PB_FOCAL_##NAME,
#define PB_FOCAL_WINDOW(NAME, name) PB_FOCAL_##NAME,
#include "kernels/focal/focal.def"
    PB_FOCAL_COUNT
};

/* SEPARABLE: rows with weight_x, then columns with weight_y. FULL: side * side weights, row-major.
 * MAGNITUDE: sqrt(gx^2 + gy^2); gx: weight_x along x and weight_y along y; gy: exchanged. */
struct pb_focal {
    enum pb_focal_kind kind;
    enum pb_edge edge;
    int32_t radius; /* 1 .. 15, or .. 7 (pb_focal_side_max); side = 2 * radius + 1 */
    int32_t choice; /* window kinds: of what kernels/focal/<name>_pixel.h offers */
    float strength; /* ADAPTIVE */
    float weight_x[PB_FOCAL_SIDE_MAX], weight_y[PB_FOCAL_SIDE_MAX]; /* FLAT: flat_pixel.h */
    float weight[PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX];
};

/* One float32 plane: pixels of `rect` (image coordinates), rows rect.w apart. */
struct pb_plane {
    float *data;
    struct pb_rect rect;
};

/* The kind's name as in focal.def. */
const char *pb_focal_name(enum pb_focal_kind kind);

/* The longest side that the kind has. */
int32_t pb_focal_side_max(enum pb_focal_kind kind);

/* Whether each pixel made is one of its neighbourhood. */
bool pb_focal_chooses(const struct pb_focal *focal);

/* out->rect lies inside the image; in->rect holds out->rect grown by radius and clipped to the
 * image. temp: as many floats as pb_focal_temp_px says (NULL when that is 0); same memory kind as
 * the planes. The order of additions is fixed, so both devices give the same bits. */
size_t pb_focal_temp_px(const struct pb_focal *focal, const struct pb_rect *out_rect);
void pb_focal_run_cpu(const struct pb_focal *focal, const struct pb_plane *in,
                      const struct pb_plane *out, int32_t image_w, int32_t image_h, float *temp);
/* Shared memory that a block on a GPU needs for one patch; 0 for a radius out of range. */
size_t pb_focal_patch_bytes(const struct pb_focal *focal);
/* CUDA builds only. Queues on stream (cudaStream_t); 0, -EIO, or -EINVAL for a radius out of range.
 * Allocates nothing. */
int pb_focal_run_cuda(const struct pb_focal *focal, const struct pb_plane *in,
                      const struct pb_plane *out, int32_t image_w, int32_t image_h, void *stream);
#ifdef __cplusplus
}
#endif
#endif
