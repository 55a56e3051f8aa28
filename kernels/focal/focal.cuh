// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_FOCAL_CUH
#define PB_FOCAL_CUH
// Focal operations on a GPU. A thread group makes a patch of 32 x 32 pixels: it brings the patch's
// neighbourhood into shared memory once (there the edge rule is applied, so that the sums see no
// edges), sums along x and then along y as the CPU does, term by term in the same order. A lane of
// a warp has a column, a warp has every so many-th row. The plain kernels of focal.cu give a block
// one patch and keep the weights in constant memory, one broadcast for a warp; run_focal lets a
// thread group inside another kernel make a whole plane, weights from wherever they are. Nothing
// needs `temp`.
#include "kernels/thread_group.cuh"
#include "kernels/focal/focal.h"
#include "kernels/focal/focal_pixel.h"
#include "kernels/focal/focal_window.h"

namespace pb_device
{
constexpr int PATCH = PB_FOCAL_PATCH;

template <int R> using patch = float[PATCH + 2 * R][PATCH + 2 * R];
template <int R> using band = float[PATCH + 2 * R][PATCH];

// Where one patch comes from and goes to. x, y: its corner in the rectangle wanted.
struct patch_task {
    pb_plane in, out;
    int32_t image_w, image_h;
    pb_edge edge;
    int32_t x, y;
};

// Lane and warp of a thread of a thread group.
struct warp_lane {
    int lane, warp, warps;
};

template <class Group> __device__ warp_lane find_warp_lane(const Group &group)
{
    return {static_cast<int>(group.thread % PATCH), static_cast<int>(group.thread / PATCH),
            static_cast<int>(group.threads / PATCH)};
}

// The pixels from R to the left and above of the patch to R right and below of it. Past the
// rectangle wanted (last patches of a row or column) there may be no pixels, and nobody uses them.
template <int R>
__device__ void load_patch(const patch_task &task, const warp_lane &me, patch<R> &to)
{
    const pb_rect in = task.in.rect, out = task.out.rect;
    const int32_t x0 = task.x - R, y0 = task.y - R;
    for (int i = me.warp; i < PATCH + 2 * R; i += me.warps) {
        const int32_t row =
            y0 + i < out.h + R ? pb_focal_index(out.y + y0 + i, task.image_h, task.edge) : -1;
        for (int j = me.lane; j < PATCH + 2 * R; j += PATCH) {
            const int32_t column =
                x0 + j < out.w + R ? pb_focal_index(out.x + x0 + j, task.image_w, task.edge) : -1;
            to[i][j] = row < 0 || column < 0
                           ? pb_pixel_nan()
                           : task.in.data[static_cast<size_t>(row - in.y) * in.w + (column - in.x)];
        }
    }
}

template <int R>
__device__ void sum_rows(const float *weight, const warp_lane &me, const patch<R> &from,
                         band<R> &to)
{
    for (int i = me.warp; i < PATCH + 2 * R; i += me.warps) {
        float sum = pb_focal_first(weight[0], from[i][me.lane]);
#pragma unroll
        for (int k = 1; k <= 2 * R; k++) {
            sum = pb_focal_next(sum, weight[k], from[i][me.lane + k]);
        }
        to[i][me.lane] = sum;
    }
}

template <int R>
__device__ float sum_column(const float *weight, const warp_lane &me, const band<R> &from, int row)
{
    float sum = pb_focal_first(weight[0], from[row][me.lane]);
#pragma unroll
    for (int k = 1; k <= 2 * R; k++) {
        sum = pb_focal_next(sum, weight[k], from[row + k][me.lane]);
    }
    return sum;
}

inline __device__ void store_pixel(const patch_task &task, const warp_lane &me, int row,
                                   float value)
{
    const int32_t x = task.x + me.lane, y = task.y + row;
    if (x < task.out.rect.w && y < task.out.rect.h) {
        task.out.data[static_cast<size_t>(y) * task.out.rect.w + x] = pb_pixel_result(value);
    }
}

// The three kinds over one patch. `shared`: pb_focal_patch_bytes. The next patch of the same
// kind and radius may follow at once; before other use of `shared`, or of the pixels made, the
// thread group must sync.
template <int R, class Group>
__device__ void separable_patch(const float *weight_x, const float *weight_y,
                                const patch_task &task, float *shared, const Group &group)
{
    const warp_lane me = find_warp_lane(group);
    patch<R> &pixels = *reinterpret_cast<patch<R> *>(shared);
    band<R> &rows = *reinterpret_cast<band<R> *>(&pixels + 1);
    load_patch<R>(task, me, pixels); // nobody reads the last patch's any more: there was a sync
    group.sync();
    sum_rows<R>(weight_x, me, pixels, rows);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        store_pixel(task, me, i, sum_column<R>(weight_y, me, rows, i));
    }
}

template <int R, class Group>
__device__ void magnitude_patch(const float *weight_x, const float *weight_y,
                                const patch_task &task, float *shared, const Group &group)
{
    const warp_lane me = find_warp_lane(group);
    patch<R> &pixels = *reinterpret_cast<patch<R> *>(shared);
    band<R> &rows_x = *reinterpret_cast<band<R> *>(&pixels + 1), &rows_y = *(&rows_x + 1);
    load_patch<R>(task, me, pixels);
    group.sync();
    sum_rows<R>(weight_x, me, pixels, rows_x);
    sum_rows<R>(weight_y, me, pixels, rows_y);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        const float gx = sum_column<R>(weight_y, me, rows_x, i);
        const float gy = sum_column<R>(weight_x, me, rows_y, i);
        store_pixel(task, me, i, pb_focal_magnitude(gx, gy));
    }
}

// `again`: another patch of this kind follows.
template <int R, class Group>
__device__ void full_patch(const float *weight, const patch_task &task, float *shared,
                           const Group &group, bool again)
{
    constexpr int side = 2 * R + 1;
    const warp_lane me = find_warp_lane(group);
    patch<R> &pixels = *reinterpret_cast<patch<R> *>(shared);
    load_patch<R>(task, me, pixels);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        float sum = pb_focal_first(weight[0], pixels[i][me.lane]);
        for (int r = 0; r < side; r++) {
#pragma unroll
            for (int k = 0; k < side; k++) {
                if (r + k > 0) {
                    sum = pb_focal_next(sum, weight[r * side + k], pixels[i + r][me.lane + k]);
                }
            }
        }
        store_pixel(task, me, i, sum);
    }
    if (again) {
        group.sync(); // the next patch is loaded over this one
    }
}

// A window kind over one patch.
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    template <int R, class Group>                                                                  \
    __device__ void name##_patch(const pb_focal &focal, const patch_task &task, float *shared,     \
                                 const Group &group, bool again)                                   \
    {                                                                                              \
        const warp_lane me = find_warp_lane(group);                                                \
        patch<R> &pixels = *reinterpret_cast<patch<R> *>(shared);                                  \
        load_patch<R>(task, me, pixels);                                                           \
        group.sync();                                                                              \
        for (int i = me.warp; i < PATCH; i += me.warps) {                                          \
            store_pixel(task, me, i,                                                               \
                        pb_focal_##name(&pixels[i][me.lane], PATCH + 2 * R, R, &focal));           \
        }                                                                                          \
        if (again) {                                                                               \
            group.sync(); /* the next patch is loaded over this one */                             \
        }                                                                                          \
    }
#include "kernels/focal/focal.def"

// All patches of a plane. The weights along x and y are read once: for all that the compiler knows
// every pixel stored might change them.
template <int R, class Group>
__device__ void run_patches(const pb_focal &focal, patch_task task, float *shared,
                            const Group &group)
{
    float weight_x[2 * R + 1], weight_y[2 * R + 1];
#pragma unroll
    for (int k = 0; k <= 2 * R; k++) {
        weight_x[k] = focal.weight_x[k];
        weight_y[k] = focal.weight_y[k];
    }
    for (task.y = 0; task.y < task.out.rect.h; task.y += PATCH) {
        for (task.x = 0; task.x < task.out.rect.w; task.x += PATCH) {
            switch (focal.kind) {
            case PB_FOCAL_SEPARABLE:
                separable_patch<R>(weight_x, weight_y, task, shared, group);
                break;
            case PB_FOCAL_MAGNITUDE:
                magnitude_patch<R>(weight_x, weight_y, task, shared, group);
                break;
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    case PB_FOCAL_##NAME:                                                                          \
        name##_patch<R>(focal, task, shared, group, true);                                         \
        break;
#include "kernels/focal/focal.def"
            default:
                full_patch<R>(focal.weight, task, shared, group, true);
                break;
            }
        }
    }
}

// One focal operation over a plane, as pb_focal_run_cpu, by a thread group. `shared`:
// pb_focal_patch_bytes of shared memory that nobody uses meanwhile. The thread group must sync
// afterwards, before `shared` or out's pixels are used. The radius is 1 .. 7.
template <class Group>
__device__ void run_focal(const pb_focal &focal, const pb_plane &in, const pb_plane &out,
                          int32_t image_w, int32_t image_h, float *shared, const Group &group)
{
    const patch_task task = {in, out, image_w, image_h, focal.edge, 0, 0};
    switch (focal.radius) {
    case 1:
        run_patches<1>(focal, task, shared, group);
        break;
    case 2:
        run_patches<2>(focal, task, shared, group);
        break;
    case 3:
        run_patches<3>(focal, task, shared, group);
        break;
    case 4:
        run_patches<4>(focal, task, shared, group);
        break;
    case 5:
        run_patches<5>(focal, task, shared, group);
        break;
    case 6:
        run_patches<6>(focal, task, shared, group);
        break;
    default:
        run_patches<7>(focal, task, shared, group);
        break;
    }
}
} // namespace pb_device
#endif
