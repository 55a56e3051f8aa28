/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_PIXEL_H
#define PB_WARP_PIXEL_H
/* One pixel of a warped plane, for both devices. */
#include "kernels/resample/resample_pixel.h"
#include "kernels/resample/warp.h"

/* Positions that are whole but for what float64 rounds away belong to the pixel that begins there.
 * GDAL's warper adds the same. */
#define PB_WARP_EDGE_PX 1e-10

struct pb_warp_at {
    double x, y; /* NaN: nowhere */
};

/* A square of the tree that holds a place: where it begins, and how large it is. */
struct pb_warp_square {
    double x, y, size;
    uint32_t entry;
};

PB_PIXEL int32_t pb_warp_cell(double at, int32_t side, int32_t n)
{
    const int32_t cell = (int32_t)(at / side);
    return cell < 0 ? 0 : cell < n ? cell : n - 1;
}

PB_PIXEL void pb_warp_box_join(struct pb_warp_box *to, const struct pb_warp_box *box)
{
    if (box->x1 >= box->x0) {
        to->x0 = fmin(to->x0, box->x0);
        to->y0 = fmin(to->y0, box->y0);
        to->x1 = fmax(to->x1, box->x1);
        to->y1 = fmax(to->y1, box->y1);
    }
}

/* What positions of the rect lie in; *area in pixels of the new grid. */
PB_PIXEL struct pb_warp_box pb_warp_bounds(const struct pb_warp *warp,
                                           const struct pb_warp_box *area)
{
    const int32_t col0 = pb_warp_cell(area->x0, warp->side, warp->cols);
    const int32_t col1 = pb_warp_cell(area->x1, warp->side, warp->cols);
    const int32_t row0 = pb_warp_cell(area->y0, warp->side, warp->rows);
    const int32_t row1 = pb_warp_cell(area->y1, warp->side, warp->rows);
    struct pb_warp_box out;
    out.x0 = out.y0 = (double)INFINITY;
    out.x1 = out.y1 = -(double)INFINITY;
    for (int32_t row = row0; row <= row1; row++) {
        for (int32_t col = col0; col <= col1; col++) {
            pb_warp_box_join(&out, &warp->box[(size_t)row * (size_t)warp->cols + (size_t)col]);
        }
    }
    return out;
}

/* The square that the tree begins with around a place on the new grid. */
PB_PIXEL struct pb_warp_square pb_warp_root(const struct pb_warp *warp, double x, double y)
{
    const int32_t col = pb_warp_cell(x, warp->side, warp->cols);
    const int32_t row = pb_warp_cell(y, warp->side, warp->rows);
    struct pb_warp_square s;
    s.size = warp->side;
    s.x = (double)col * s.size;
    s.y = (double)row * s.size;
    s.entry = warp->tree[(size_t)row * (size_t)warp->cols + (size_t)col];
    return s;
}

/* Makes a square that is cut the quarter of it that holds the place; returns the quarter's entry.
 */
PB_PIXEL uint32_t pb_warp_quarter(const struct pb_warp *warp, struct pb_warp_square *s, double x,
                                  double y)
{
    uint32_t child = PB_WARP_CHILD(s->entry);
    s->size = s->size * 0.5;
    if (x >= s->x + s->size) {
        s->x = s->x + s->size;
        child = child + 1;
    }
    if (y >= s->y + s->size) {
        s->y = s->y + s->size;
        child = child + 2;
    }
    return warp->tree[child];
}

/* x, y: a place on the new grid, in pixels; inside of it. */
PB_PIXEL struct pb_warp_square pb_warp_find(const struct pb_warp *warp, double x, double y)
{
    struct pb_warp_square s = pb_warp_root(warp, x, y);
    while (s.entry != PB_WARP_VOID && (s.entry & PB_WARP_BRANCH) != 0) {
        s.entry = pb_warp_quarter(warp, &s, x, y);
    }
    return s;
}

/* The pieces of the footprint of a pixel of the new grid (leaves from *out_first on) where its
 * positions jump: their number, or -1 where its corners say it all. */
PB_PIXEL int32_t pb_warp_tear(const struct pb_warp *warp, int32_t column, int32_t row,
                              uint32_t *out_first)
{
    const double x = column + 0.5, y = row + 0.5;
    struct pb_warp_square s = pb_warp_root(warp, x, y);
    while (s.entry != PB_WARP_VOID && (s.entry & PB_WARP_BRANCH) != 0) {
        if ((s.entry & PB_WARP_TORN) != 0) {
            const uint32_t child = PB_WARP_CHILD(s.entry);
            *out_first = warp->tree[child + 4];
            return (int32_t)warp->tree[child + 5];
        }
        s.entry = pb_warp_quarter(warp, &s, x, y);
    }
    return -1;
}

/* v + f * (b + f * c), which is `at` at 0, 1/2 and 1. */
struct pb_warp_curve {
    double v, b, c;
};

PB_PIXEL struct pb_warp_curve pb_warp_curve_of(double first, double middle, double last)
{
    struct pb_warp_curve curve;
    curve.v = first;
    curve.b = 4.0 * middle - 3.0 * first - last;
    curve.c = 2.0 * first - 4.0 * middle + 2.0 * last;
    return curve;
}

PB_PIXEL double pb_warp_curve_at(const struct pb_warp_curve *curve, double f)
{
    return curve->v + f * (curve->b + f * curve->c);
}

/* Along a row of a square, f of its height below its upper edge. */
PB_PIXEL struct pb_warp_curve pb_warp_across(const double *known, double f)
{
    double at[3];
    for (int i = 0; i < 3; i++) {
        const struct pb_warp_curve down = pb_warp_curve_of(known[i], known[3 + i], known[6 + i]);
        at[i] = pb_warp_curve_at(&down, f);
    }
    return pb_warp_curve_of(at[0], at[1], at[2]);
}

/* A pixel of a plane that holds it. */
PB_PIXEL const float *pb_plane_at(const struct pb_plane *plane, int32_t column, int32_t row)
{
    return plane->data + (size_t)(row - plane->rect.y) * (size_t)plane->rect.w +
           (size_t)(column - plane->rect.x);
}

/* Positions along a row of a square. */
struct pb_warp_row {
    struct pb_warp_curve x, y;
    double left, per_px; /* of the square, on the new grid */
};

PB_PIXEL struct pb_warp_row pb_warp_row_of(const struct pb_warp *warp,
                                           const struct pb_warp_square *s, double y)
{
    struct pb_warp_row row;
    row.left = s->x;
    row.per_px = 1.0 / s->size;
    if (s->entry == PB_WARP_VOID || s->size < 1.0) {
        row.x.b = row.x.c = row.y.b = row.y.c = 0.0;
        row.x.v = row.y.v = (double)pb_pixel_nan();
        if (s->entry != PB_WARP_VOID) {
            row.x.v = warp->leaf[s->entry].x[0];
            row.y.v = warp->leaf[s->entry].y[0];
        }
        return row;
    }
    const double f = (y - s->y) * row.per_px;
    row.x = pb_warp_across(warp->leaf[s->entry].x, f);
    row.y = pb_warp_across(warp->leaf[s->entry].y, f);
    return row;
}

PB_PIXEL struct pb_warp_at pb_warp_row_at(const struct pb_warp_row *row, double x)
{
    const double f = (x - row->left) * row->per_px;
    struct pb_warp_at at;
    at.x = pb_warp_curve_at(&row->x, f);
    at.y = pb_warp_curve_at(&row->y, f);
    return at;
}

/* A place inside of a square of more than half a pixel, in parts of its side. */
PB_PIXEL void pb_warp_leaf_at(const struct pb_warp_leaf *leaf, double across, double down,
                              struct pb_warp_at *out)
{
    const struct pb_warp_curve x = pb_warp_across(leaf->x, down);
    const struct pb_warp_curve y = pb_warp_across(leaf->y, down);
    out->x = pb_warp_curve_at(&x, across);
    out->y = pb_warp_curve_at(&y, across);
}

/* A place along an axis of the new grid; one beyond it is at its edge, as the tree ends there. */
PB_PIXEL double pb_warp_to(double at, double scale, double offset, int32_t size)
{
    const double to = at * scale + offset;
    return to < 0.0 ? 0.0 : to > size ? (double)size : to;
}

/* A corner of a pixel on the grid of the plane that it is made from, by one height's tree; pixels
 * that end beyond the new grid are made of their part that is on it. */
PB_PIXEL struct pb_warp_at pb_warp_corner(const struct pb_warp_job *job, const struct pb_warp *warp,
                                          double x, double y)
{
    const double to_x = pb_warp_to(x, job->to.scale_x, job->to.offset_x, warp->w);
    const double to_y = pb_warp_to(y, job->to.scale_y, job->to.offset_y, warp->h);
    const struct pb_warp_square square = pb_warp_find(warp, to_x, to_y);
    const struct pb_warp_row row = pb_warp_row_of(warp, &square, to_y);
    struct pb_warp_at at = pb_warp_row_at(&row, to_x);
    at.x = at.x * job->from.scale_x + job->from.offset_x;
    at.y = at.y * job->from.scale_y + job->from.offset_y;
    return at;
}

/* Three heights that a position is interpolated between. */
struct pb_warp_piece {
    uint32_t first; /* of the heights of the warp */
    double f;       /* where the height lies between the first of them and the last */
};

PB_PIXEL struct pb_warp_piece pb_warp_piece_of(const struct pb_warp *warp, float height)
{
    const double last = (double)((warp->n_heights - 1) / 2 - 1);
    double at = ((double)height - warp->low) / (2.0 * warp->step);
    at = at < 0.0 ? 0.0 : at; /* the boxes hold positions of these heights alone */
    at = at > last + 1.0 ? last + 1.0 : at;
    double whole = floor(at);
    struct pb_warp_piece piece;
    whole = whole > 0.0 ? whole : 0.0; /* of no height, too */
    whole = whole < last ? whole : last;
    piece.first = 2 * (uint32_t)whole;
    piece.f = at - whole;
    return piece;
}

PB_PIXEL const struct pb_warp *pb_warp_level(const struct pb_warp *warp, uint32_t i)
{
    return i == 0 ? warp : warp->above + (i - 1);
}

/* By the positions of the three heights of a piece. */
PB_PIXEL struct pb_warp_at pb_warp_between(const struct pb_warp_at *low,
                                           const struct pb_warp_at *middle,
                                           const struct pb_warp_at *high, double f)
{
    const struct pb_warp_curve x = pb_warp_curve_of(low->x, middle->x, high->x);
    const struct pb_warp_curve y = pb_warp_curve_of(low->y, middle->y, high->y);
    struct pb_warp_at at;
    at.x = pb_warp_curve_at(&x, f);
    at.y = pb_warp_curve_at(&y, f);
    return at;
}

/* The same for ground of that height, of a warp of several; one that is invalid is nowhere. */
PB_PIXEL struct pb_warp_at pb_warp_on_ground(const struct pb_warp_job *job, double x, double y,
                                             float height)
{
    const struct pb_warp_piece piece = pb_warp_piece_of(job->warp, height);
    const struct pb_warp_at low = pb_warp_corner(job, pb_warp_level(job->warp, piece.first), x, y);
    const struct pb_warp_at middle =
        pb_warp_corner(job, pb_warp_level(job->warp, piece.first + 1), x, y);
    const struct pb_warp_at high =
        pb_warp_corner(job, pb_warp_level(job->warp, piece.first + 2), x, y);
    return pb_warp_between(&low, &middle, &high, piece.f);
}

/* The height is not looked at where positions do not depend on it. */
PB_PIXEL struct pb_warp_at pb_warp_place(const struct pb_warp_job *job, double x, double y,
                                         float height)
{
    return job->warp->n_heights == 1 ? pb_warp_corner(job, job->warp, x, y)
                                     : pb_warp_on_ground(job, x, y, height);
}

/* Whether a place of the made plane's grid lies on the warp's new grid, along an axis. */
PB_PIXEL bool pb_warp_is_on(double at, double scale, double offset, int32_t size)
{
    const double to = at * scale + offset;
    return to >= 0.0 && to <= size;
}

/* Where a place of the made plane's grid lies on the grid of the plane that it is made from;
 * nowhere, beyond the new grid. */
PB_PIXEL struct pb_warp_at pb_warp_position(const struct pb_warp_job *job, double x, double y,
                                            float height)
{
    struct pb_warp_at at;
    at.x = at.y = (double)pb_pixel_nan();
    if (pb_warp_is_on(x, job->to.scale_x, job->to.offset_x, job->warp->w) &&
        pb_warp_is_on(y, job->to.scale_y, job->to.offset_y, job->warp->h)) {
        at = pb_warp_place(job, x, y, height);
    }
    return at;
}

/* Taps from .. to - 1 that lie inside the grid. */
PB_PIXEL void pb_warp_clip(struct pb_taps *taps, double from, double to, int32_t size)
{
    from = from > 0.0 ? from : 0.0;
    to = to < size ? to : size;
    taps->first = to > from ? (int32_t)from : 0;
    taps->n = to > from ? (int32_t)(to - from) : 0;
}

/* Of a kernel around a centre: the pixels whose centres are nearer than it reaches. */
PB_PIXEL struct pb_taps pb_warp_taps(enum pb_resampling how, double centre, double width,
                                     int32_t size)
{
    const double reach = pb_tap_reach(how) * width;
    const double holds = floor(centre + PB_WARP_EDGE_PX);
    struct pb_taps taps;
    taps.centre = holds >= 0.0 && holds < size ? (int32_t)holds : -1;
    taps.low = centre;
    taps.high = width;
    taps.first = taps.n = 0;
    if (taps.centre < 0) {
        return taps;
    }
    if (how == PB_NEAREST) {
        pb_warp_clip(&taps, holds, holds + 1.0, size);
    } else {
        pb_warp_clip(&taps, floor(centre - reach - 0.5) + 1.0, ceil(centre + reach - 0.5), size);
    }
    return taps;
}

PB_PIXEL bool pb_warp_is_area(enum pb_resampling how)
{
    return how == PB_AVERAGE || how == PB_MODE;
}

/* --- kernels of their own width: PB_WARP_NARROW_MOST taps a side at most ---------------------- */

#define PB_WARP_NARROW_MOST 6

/* Finds the first of `taps` pixels along an axis, clipped to where all of them are there; true
 * where nothing was clipped. */
PB_PIXEL bool pb_warp_first_tap(double centre, int taps, double low, double high, double *out)
{
    const int before = taps / 2 - 1;
    const double first = floor(centre - 0.5) - before;
    const double clipped = first >= low ? first : low;
    *out = clipped <= high ? clipped : high;
    return first >= low && first <= high;
}

PB_PIXEL float pb_warp_weight(enum pb_resampling how, double centre, double tap)
{
    const float t = (float)fabs(tap + 0.5 - centre);
    return how == PB_CUBIC     ? pb_tap_cubic(t)
           : how == PB_LANCZOS ? pb_tap_lanczos(t)
           : t < 1.0f          ? 1.0f - t
                               : 0.0f;
}

/* How many taps a side the job's kernel has; 0: it is none, or a wider one. */
PB_PIXEL int pb_warp_narrow(const struct pb_warp_job *job)
{
    return pb_tap_is_kernel(job->how) && job->scale_x == 1.0 && job->scale_y == 1.0
               ? 2 * (int)pb_tap_reach(job->how)
               : 0;
}

/* A corner of a pixel, on the ground's height there. */
PB_PIXEL struct pb_warp_at pb_warp_ground(const struct pb_warp_job *job,
                                          const struct pb_plane *heights, int32_t column,
                                          int32_t row)
{
    return heights == NULL
               ? pb_warp_corner(job, job->warp, column, row)
               : pb_warp_on_ground(job, column, row, *pb_plane_at(heights, column, row));
}

/* Pixel (column, row) of the made plane's grid by a kernel or NEAREST around the position of its
 * centre. */
PB_PIXEL float pb_warp_kernel_pixel(const struct pb_warp_job *job,
                                    const struct pb_resample_source *source,
                                    const struct pb_warp_at *at)
{
    struct pb_resample resample;
    struct pb_taps x, y;
    if (at->x != at->x || at->y != at->y) {
        return pb_pixel_nan();
    }
    resample.how = job->how;
    resample.source_w = job->source_w;
    resample.source_h = job->source_h;
    resample.map = pb_map_identity();
    x = pb_warp_taps(job->how, at->x, job->scale_x, job->source_w);
    y = pb_warp_taps(job->how, at->y, job->scale_y, job->source_h);
    return pb_resample_pixel(&resample, source, &x, &y);
}
#endif
