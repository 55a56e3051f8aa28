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
// needs `temp`. Radii up to 7 have code of their own, with loops unrolled; larger ones, which some
// kinds have, share one text that gets the radius as a number.
#include "kernels/thread_group.cuh"
#include "kernels/focal/focal.h"
#include "kernels/focal/focal_pixel.h"
#include "kernels/focal/focal_window.h"

namespace pb_device
{
constexpr int PATCH = PB_FOCAL_PATCH;

// How far a neighbourhood reaches: known when the code is compiled, or not.
template <int R> struct fixed_reach {
    static constexpr int radius = R;
    static constexpr bool is_fixed = true;
};
struct any_reach {
    int radius;
    static constexpr bool is_fixed = false;
};
constexpr int FIXED_REACH_MAX = PB_FOCAL_WINDOW_SIDE_MAX / 2;

// Whether the kind of this radius is made by the code for fixed reaches.
inline __host__ __device__ bool is_of_fixed_reach(const pb_focal &focal)
{
    return focal.radius <= FIXED_REACH_MAX && focal.kind != PB_FOCAL_FLAT;
}
// Whether code is made for the window kind and a reach of this type.
template <class Reach> __host__ __device__ constexpr bool has_kind(pb_focal_kind kind)
{
    return Reach::is_fixed == (kind != PB_FOCAL_FLAT);
}

// Floats from row to row of a patch in shared memory, and of all its rows. Rows summed along x come
// behind it, PATCH floats each.
template <class Reach> __host__ __device__ constexpr int pitch_of(Reach reach)
{
    return PATCH + 2 * reach.radius;
}
template <class Reach> __host__ __device__ constexpr int patch_px(Reach reach)
{
    return pitch_of(reach) * pitch_of(reach);
}
template <class Reach> __host__ __device__ constexpr int band_px(Reach reach)
{
    return pitch_of(reach) * PATCH;
}

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

// A pixel of the image, which the plane has.
inline __device__ float pixel_at(const patch_task &task, int32_t x, int32_t y)
{
    const pb_rect in = task.in.rect;
    return task.in.data[static_cast<size_t>(y - in.y) * in.w + (x - in.x)];
}

// What stands at a place of the image or outside of it: columns first, as on the CPU.
inline __device__ float extrapolated_row(const patch_task &task, int32_t x, int32_t y)
{
    if (x >= 0 && x < task.image_w) {
        return pixel_at(task, x, y);
    }
    return pb_focal_beyond(pixel_at(task, pb_focal_index(x, task.image_w, PB_EDGE_CLAMP), y),
                           pixel_at(task, pb_focal_index(x, task.image_w, PB_EDGE_REFLECT), y));
}

inline __device__ float extrapolated(const patch_task &task, int32_t x, int32_t y)
{
    if (y >= 0 && y < task.image_h) {
        return extrapolated_row(task, x, y);
    }
    return pb_focal_beyond(
        extrapolated_row(task, x, pb_focal_index(y, task.image_h, PB_EDGE_CLAMP)),
        extrapolated_row(task, x, pb_focal_index(y, task.image_h, PB_EDGE_REFLECT)));
}

// Whether all pixels that the patch is made from are pixels of the image, and all that it makes are
// wanted.
template <class Reach> __device__ bool is_inside(Reach reach, const patch_task &task)
{
    const pb_rect out = task.out.rect;
    const int32_t left = out.x + task.x, top = out.y + task.y;
    return task.x + PATCH <= out.w && task.y + PATCH <= out.h && left >= reach.radius &&
           top >= reach.radius && left + PATCH + reach.radius <= task.image_w &&
           top + PATCH + reach.radius <= task.image_h;
}

// pixel: of a place of the patch and its surroundings, from their upper left corner.
template <class Reach, class F>
__device__ void fill_patch(Reach reach, const warp_lane &me, float *to, F pixel)
{
    for (int i = me.warp; i < pitch_of(reach); i += me.warps) {
        for (int j = me.lane; j < pitch_of(reach); j += PATCH) {
            to[i * pitch_of(reach) + j] = pixel(i, j);
        }
    }
}

// A pixel by the edge rule; x, y: of the patch's surroundings, in the rectangle wanted. Past the
// rectangle (last patches of a row or column) there may be no pixels, and nobody uses them.
template <class Reach>
__device__ float pixel_by_rule(Reach reach, const patch_task &task, int32_t x, int32_t y)
{
    const pb_rect out = task.out.rect;
    const int32_t row = y < out.h + reach.radius
                            ? pb_focal_index(out.y + y, task.image_h, task.edge)
                            : PB_FOCAL_NONE;
    const int32_t column = x < out.w + reach.radius
                               ? pb_focal_index(out.x + x, task.image_w, task.edge)
                               : PB_FOCAL_NONE;
    if (row == PB_FOCAL_NONE || column == PB_FOCAL_NONE) {
        return pb_pixel_nan();
    }
    return task.edge == PB_EDGE_EXTRAPOLATE ? extrapolated(task, column, row)
                                            : pixel_at(task, column, row);
}

// The pixels from `reach` to the left and above of the patch to as far right and below of it.
template <class Reach>
__device__ void load_patch(Reach reach, const patch_task &task, const warp_lane &me, float *to)
{
    const int32_t x0 = task.x - reach.radius, y0 = task.y - reach.radius;
    if (is_inside(reach, task)) {
        const pb_rect in = task.in.rect, out = task.out.rect;
        const float *const corner =
            task.in.data + static_cast<size_t>(out.y + y0 - in.y) * in.w + (out.x + x0 - in.x);
        fill_patch(reach, me, to,
                   [&](int i, int j) { return corner[static_cast<size_t>(i) * in.w + j]; });
    } else {
        fill_patch(reach, me, to,
                   [&](int i, int j) { return pixel_by_rule(reach, task, x0 + j, y0 + i); });
    }
}

template <class Reach>
__device__ void sum_rows(Reach reach, const float *weight, const warp_lane &me, const float *from,
                         float *to)
{
    for (int i = me.warp; i < pitch_of(reach); i += me.warps) {
        const float *const row = from + i * pitch_of(reach) + me.lane;
        float sum = pb_focal_first(weight[0], row[0]);
#pragma unroll
        for (int k = 1; k <= 2 * reach.radius; k++) {
            sum = pb_focal_next(sum, weight[k], row[k]);
        }
        to[i * PATCH + me.lane] = sum;
    }
}

template <class Reach>
__device__ float sum_column(Reach reach, const float *weight, const warp_lane &me,
                            const float *from, int row)
{
    const float *const column = from + row * PATCH + me.lane;
    float sum = pb_focal_first(weight[0], column[0]);
#pragma unroll
    for (int k = 1; k <= 2 * reach.radius; k++) {
        sum = pb_focal_next(sum, weight[k], column[k * PATCH]);
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
template <class Reach, class Group>
__device__ void separable_patch(Reach reach, const float *weight_x, const float *weight_y,
                                const patch_task &task, float *shared, const Group &group)
{
    const warp_lane me = find_warp_lane(group);
    float *const rows = shared + patch_px(reach);
    load_patch(reach, task, me, shared); // nobody reads the last patch's any more: there was a sync
    group.sync();
    sum_rows(reach, weight_x, me, shared, rows);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        store_pixel(task, me, i, sum_column(reach, weight_y, me, rows, i));
    }
}

template <class Reach, class Group>
__device__ void magnitude_patch(Reach reach, const float *weight_x, const float *weight_y,
                                const patch_task &task, float *shared, const Group &group)
{
    const warp_lane me = find_warp_lane(group);
    float *const rows_x = shared + patch_px(reach), *const rows_y = rows_x + band_px(reach);
    load_patch(reach, task, me, shared);
    group.sync();
    sum_rows(reach, weight_x, me, shared, rows_x);
    sum_rows(reach, weight_y, me, shared, rows_y);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        const float gx = sum_column(reach, weight_y, me, rows_x, i);
        const float gy = sum_column(reach, weight_x, me, rows_y, i);
        store_pixel(task, me, i, pb_focal_magnitude(gx, gy));
    }
}

// `again`: another patch of this kind follows.
template <class Reach, class Group>
__device__ void full_patch(Reach reach, const float *weight, const patch_task &task, float *shared,
                           const Group &group, bool again)
{
    const int side = 2 * reach.radius + 1;
    const warp_lane me = find_warp_lane(group);
    load_patch(reach, task, me, shared);
    group.sync();
    for (int i = me.warp; i < PATCH; i += me.warps) {
        const float *row = shared + i * pitch_of(reach) + me.lane;
        float sum = pb_focal_first(weight[0], row[0]);
        for (int r = 0; r < side; r++) {
#pragma unroll
            for (int k = 0; k < side; k++) {
                if (r + k > 0) {
                    sum = pb_focal_next(sum, weight[r * side + k], row[k]);
                }
            }
            row += pitch_of(reach);
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
    template <class Reach, class Group>                                                            \
    __device__ void name##_patch(Reach reach, const pb_focal &focal, const patch_task &task,       \
                                 float *shared, const Group &group, bool again)                    \
    {                                                                                              \
        const warp_lane me = find_warp_lane(group);                                                \
        load_patch(reach, task, me, shared);                                                       \
        group.sync();                                                                              \
        for (int i = me.warp; i < PATCH; i += me.warps) {                                          \
            store_pixel(task, me, i,                                                               \
                        pb_focal_##name(shared + i * pitch_of(reach) + me.lane, pitch_of(reach),   \
                                        reach.radius, &focal));                                    \
        }                                                                                          \
        if (again) {                                                                               \
            group.sync(); /* the next patch is loaded over this one */                             \
        }                                                                                          \
    }
#include "kernels/focal/focal.def"

// One patch of any kind.
template <class Reach, class Group>
__device__ void run_patch(Reach reach, const pb_focal &focal, const float *weight_x,
                          const float *weight_y, const patch_task &task, float *shared,
                          const Group &group)
{
    switch (focal.kind) {
    case PB_FOCAL_SEPARABLE:
        separable_patch(reach, weight_x, weight_y, task, shared, group);
        break;
    case PB_FOCAL_MAGNITUDE:
        magnitude_patch(reach, weight_x, weight_y, task, shared, group);
        break;
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    case PB_FOCAL_##NAME:                                                                          \
        if constexpr (has_kind<Reach>(PB_FOCAL_##NAME)) {                                          \
            name##_patch(reach, focal, task, shared, group, true);                                 \
        }                                                                                          \
        break;
#include "kernels/focal/focal.def"
    default:
        full_patch(reach, focal.weight, task, shared, group, true);
        break;
    }
}

// All patches of a plane. The weights along x and y of a fixed reach are read once: for all that
// the compiler knows every pixel stored might change them.
template <class Reach, class Group>
__device__ void run_patches(Reach reach, const pb_focal &focal, patch_task task, float *shared,
                            const Group &group)
{
    constexpr int held = Reach::is_fixed ? 2 * FIXED_REACH_MAX + 1 : 1;
    float weight_x[held], weight_y[held];
    if constexpr (Reach::is_fixed) {
#pragma unroll
        for (int k = 0; k <= 2 * reach.radius; k++) {
            weight_x[k] = focal.weight_x[k];
            weight_y[k] = focal.weight_y[k];
        }
    }
    for (task.y = 0; task.y < task.out.rect.h; task.y += PATCH) {
        for (task.x = 0; task.x < task.out.rect.w; task.x += PATCH) {
            if constexpr (Reach::is_fixed) {
                run_patch(reach, focal, weight_x, weight_y, task, shared, group);
            } else {
                run_patch(reach, focal, focal.weight_x, focal.weight_y, task, shared, group);
            }
        }
    }
}

// One focal operation over a plane, as pb_focal_run_cpu, by a thread group. `shared`:
// pb_focal_patch_bytes of shared memory that nobody uses meanwhile. The thread group must sync
// afterwards, before `shared` or out's pixels are used. The radius is one that the kind has.
template <class Group>
__device__ void run_focal(const pb_focal &focal, const pb_plane &in, const pb_plane &out,
                          int32_t image_w, int32_t image_h, float *shared, const Group &group)
{
    const patch_task task = {in, out, image_w, image_h, focal.edge, 0, 0};
    switch (is_of_fixed_reach(focal) ? focal.radius : 0) {
    case 1:
        run_patches(fixed_reach<1>{}, focal, task, shared, group);
        break;
    case 2:
        run_patches(fixed_reach<2>{}, focal, task, shared, group);
        break;
    case 3:
        run_patches(fixed_reach<3>{}, focal, task, shared, group);
        break;
    case 4:
        run_patches(fixed_reach<4>{}, focal, task, shared, group);
        break;
    case 5:
        run_patches(fixed_reach<5>{}, focal, task, shared, group);
        break;
    case 6:
        run_patches(fixed_reach<6>{}, focal, task, shared, group);
        break;
    case 7:
        run_patches(fixed_reach<7>{}, focal, task, shared, group);
        break;
    default:
        run_patches(any_reach{focal.radius}, focal, task, shared, group);
        break;
    }
}
} // namespace pb_device
#endif
