/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_H
#define PB_WARP_H
/* From a grid to one in another coordinate system. Where a pixel of the new grid lies on the old
 * one is interpolated by parabolas between points of a quadtree, whose squares are cut into four
 * until that is right to PB_WARP_ERROR_PX at sixteen points between; PROJ is asked for these points
 * only, before the first pixel. A square of half a pixel is not cut: centres and corners of pixels
 * are corners of such squares, so along a jump (the antimeridian) or an edge (of where the
 * projection is defined) every position is exact.
 *
 * Where positions depend on the height of the ground, there is such a tree for each of some
 * heights, evenly spaced, and a position is a parabola through those of three of them.
 *
 * Positions are sums and products of float64 without contraction: the same bits on every device.
 * Immutable once made; any thread. */
#include "kernels/resample/resample.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_WARP_ERROR_PX   (1.0 / 65536.0) /* wanted, in pixels of the old grid */
#define PB_WARP_ERROR_MOST 0.125           /* allowed where memory does not last for that */
#define PB_WARP_TREE_BYTES ((size_t)64 << 20)

#define PB_WARP_HEIGHTS_MOST 9
#define PB_WARP_RELIEF_PX    (1.0 / 256.0) /* wanted of positions between the heights */

/* Entries of the tree: one of these with a number, or VOID: no pixel of the old grid is near. */
#define PB_WARP_VOID UINT32_MAX
#define PB_WARP_BRANCH                                                                             \
    0x80000000u /* the first of four entries: upper left, upper right, lower .. */
/* With BRANCH: a pixel whose positions jump. Two more entries follow its four: the first leaf and
 * the number of the pieces of its footprint. */
#define PB_WARP_TORN         0x40000000u
#define PB_WARP_CHILD(entry) ((entry) & ~(PB_WARP_BRANCH | PB_WARP_TORN))

/* Positions of a square at its corners, the middles of its edges and its own, row by row; of a
 * piece of a footprint the corners of a polygon of up to PB_WARP_CORNERS, the last one repeated. */
#define PB_WARP_KNOWN   9
#define PB_WARP_CORNERS 5
struct pb_warp_leaf {
    double x[PB_WARP_KNOWN], y[PB_WARP_KNOWN];
};

/* A rectangle of positions; x1 < x0: there is none. */
struct pb_warp_box {
    double x0, y0, x1, y1;
};

struct pb_warp {
    int32_t w, h;               /* of the new grid */
    int32_t source_w, source_h; /* of the old one */
    int32_t side, cols, rows;   /* of the squares that the tree begins with, in pixels */
    uint32_t *tree;             /* the first cols * rows: these squares, row by row */
    struct pb_warp_leaf *leaf;
    size_t n_tree, n_leaf;
    size_t n_torn;           /* pixels whose footprints are pieces */
    struct pb_warp_box *box; /* of each of these squares: what its positions lie in, of all
                                heights */
    double scale_x, scale_y; /* pixels of the old grid for one of the new, at least 1 */
    double error_px;
    double *most; /* n_most pairs: width and height of what k + 1 squares a side lie in, at most */
    size_t n_most;
    struct pb_warp *above; /* n_heights - 1, for the greater heights, ascending */
    uint32_t n_heights;    /* odd; 1: positions do not depend on a height */
    double low, step;      /* metres: the height of this one, and to the next */
    uint32_t users;
};

/* From pixels of the new grid (x, y) to positions on the old one, in place; NaN: there is none. */
typedef void pb_warp_points(void *of, size_t n, double *x, double *y);

struct pb_warp_want {
    int32_t w, h, source_w, source_h; /* of the new grid and of the old one */
    double error_px;                  /* by which positions may be off; PB_WARP_ERROR_PX at least */
    double beyond_px; /* positions that lie so far beyond the old grid are kept, too */
    bool has_areas;   /* pixels are made by AVERAGE or MODE, too: footprints are cut at jumps */
};

/* 0; -ENOMEM; -E2BIG: more points are needed than PB_WARP_TREE_BYTES hold. The caller is its one
 * user. Thread: any, one. */
int pb_warp_create(const struct pb_warp_want *want, pb_warp_points *points, void *of,
                   struct pb_warp **out_warp);
/* Returns true if tree and leaves of one height are as pb_warp_create() makes them: sizes are
 * possible, each entry names the next unused entries or the next leaf, and positions are finite and
 * near enough for exact sums. Checks tables of another process. Takes linear time. */
bool pb_warp_is_sound(const struct pb_warp *warp);
/* Makes the squares, the boxes and `most` from tree and leaves of one height, which are sound.
 * Returns 0 or -ENOMEM. Thread: any, one. */
int pb_warp_complete(struct pb_warp *warp);
/* Makes one of n_heights that were made for the heights low, low + step, ..., of equal sizes; takes
 * them. 0; -ENOMEM, then all are gone. Thread: any, one. */
int pb_warp_stack(struct pb_warp *const *warps, uint32_t n_heights, double low, double step,
                  struct pb_warp **out_warp);
/* Another user; the last that puts it frees it. NULL is fine. Thread: one at a time. */
struct pb_warp *pb_warp_get(struct pb_warp *warp);
void pb_warp_put(struct pb_warp *warp);
size_t pb_warp_bytes(const struct pb_warp *warp);

/* The width and height that pb_warp_bounds() (warp_pixel.h) of w x h pixels has at most, wherever
 * they are. */
void pb_warp_most(const struct pb_warp *warp, double w, double h, double *out_w, double *out_h);

/* Pixels of one plane made from those of another. */
struct pb_warp_job {
    enum pb_resampling how;
    const struct pb_warp *warp;
    struct pb_map to, from;     /* from the made plane's grid to the warp's new one; from its old
                                   one to the grid of the plane that it is made from */
    int32_t source_w, source_h; /* of that */
    double scale_x, scale_y;    /* of its pixels for a made one, at least 1 */
};

/* Fills in the scales. */
void pb_warp_job_scale(struct pb_warp_job *job);
/* Pixels beyond the positions of a rect that making it reads. */
int32_t pb_warp_reach(const struct pb_warp_job *job);
/* Floats of temporary memory for a made plane of w pixels a row. */
size_t pb_warp_temp_px(const struct pb_warp_job *job, size_t w);
/* in->rect holds what out->rect needs, clipped to the source's grid; it may be empty. heights: at
 * the pixels of out, or at their corners for areas, where the warp is of several; else NULL. */
void pb_warp_run_cpu(const struct pb_warp_job *job, const struct pb_plane *in,
                     const struct pb_plane *heights, const struct pb_plane *out, float *temp);
/* CUDA builds only. The same bits; job->warp and what it points to are in device memory. Queues on
 * stream (cudaStream_t). 0 or -EIO. Allocates nothing. */
int pb_warp_run_cuda(const struct pb_warp_job *job, const struct pb_plane *in,
                     const struct pb_plane *heights, const struct pb_plane *out, void *stream);
#ifdef __cplusplus
}
#endif
#endif
