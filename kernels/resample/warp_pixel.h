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

/* x, y: a place on the new grid, in pixels; inside of it. */
PB_PIXEL struct pb_warp_square pb_warp_find(const struct pb_warp *warp, double x, double y)
{
    const int32_t col = pb_warp_cell(x, warp->side, warp->cols);
    const int32_t row = pb_warp_cell(y, warp->side, warp->rows);
    struct pb_warp_square s;
    s.size = warp->side;
    s.x = (double)col * s.size;
    s.y = (double)row * s.size;
    s.entry = warp->tree[(size_t)row * (size_t)warp->cols + (size_t)col];
    while (s.entry != PB_WARP_VOID && (s.entry & PB_WARP_BRANCH) != 0) {
        uint32_t child = s.entry & ~PB_WARP_BRANCH;
        s.size = s.size * 0.5;
        if (x >= s.x + s.size) {
            s.x = s.x + s.size;
            child = child + 1;
        }
        if (y >= s.y + s.size) {
            s.y = s.y + s.size;
            child = child + 2;
        }
        s.entry = warp->tree[child];
    }
    return s;
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

/* Of an area, which reaches from one position to another. */
PB_PIXEL struct pb_taps pb_warp_area(double one, double other, int32_t size)
{
    struct pb_taps taps;
    taps.low = one < other ? one : other;
    taps.high = one < other ? other : one;
    taps.first = taps.n = 0;
    taps.centre = -1;
    if (taps.high > 0.0 && taps.low < size) {
        pb_warp_clip(&taps, floor(taps.low + PB_WARP_EDGE_PX), ceil(taps.high - PB_WARP_EDGE_PX),
                     size);
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

/* How often the value stands in the area up to pixel (x_at, y_at), row by row. */
PB_PIXEL int32_t pb_warp_count(const struct pb_resample_source *source, const struct pb_taps *x,
                               const struct pb_taps *y, int32_t x_at, int32_t y_at, float value)
{
    int32_t n = 0;
    for (int32_t j = y->first; j <= y_at; j++) {
        const int32_t end = j < y_at ? x->first + x->n : x_at + 1;
        for (int32_t i = x->first; i < end; i++) {
            n += pb_resample_at(source, i, j) == value;
        }
    }
    return n;
}

#define PB_WARP_FEW_PX 16 /* an area of so few pixels is counted without a table */
/* A table's, 32 KiB, and a thread's of a GPU, 512 bytes; powers of two. What comes out is the same
 * with any number. */
#if defined(__CUDA_ARCH__) || defined(PB_EMULATED)
#define PB_WARP_SLOTS_MOST 64
#else
#define PB_WARP_SLOTS_MOST 4096
#endif
#define PB_WARP_PARTS_MOST (1u << 20)

/* A value and how often it came so far. */
struct pb_warp_slot {
    float value;
    int32_t n; /* 0: the slot is free */
};

/* What is there most often, how often, and after how many pixels of the area it was so. */
struct pb_warp_most_often {
    float value;
    int32_t n, after;
};

PB_PIXEL uint32_t pb_warp_hash(float value)
{
    union {
        float value;
        uint32_t bits;
    } of;
    of.value = value + 0.0f; /* -0 is 0 */
    of.bits = (of.bits ^ (of.bits >> 16)) * 0x7feb352du;
    of.bits = (of.bits ^ (of.bits >> 15)) * 0x846ca68bu;
    return of.bits ^ (of.bits >> 16);
}

/* Counts the value; its slot, or NULL: the table is three quarters full. */
PB_PIXEL struct pb_warp_slot *pb_warp_tally(struct pb_warp_slot *table, uint32_t slots,
                                            uint32_t hash, float value, uint32_t *used)
{
    uint32_t at = hash & (slots - 1);
    while (table[at].n > 0 && table[at].value != value) {
        at = (at + 1) & (slots - 1);
    }
    if (table[at].n == 0) {
        if (*used >= slots / 4 * 3) {
            return NULL;
        }
        *used = *used + 1;
        table[at].value = value;
    }
    table[at].n = table[at].n + 1;
    return &table[at];
}

/* Looks at the values of which the upper bits of the hash are `part`, of `parts`. False: they are
 * more than the table holds. */
PB_PIXEL bool pb_warp_mode_part(const struct pb_resample_source *source, const struct pb_taps *x,
                                const struct pb_taps *y, struct pb_warp_slot *table, uint32_t slots,
                                uint32_t part, uint32_t parts, struct pb_warp_most_often *best)
{
    struct pb_warp_most_often own = {pb_pixel_nan(), 0, 0};
    uint32_t used = 0;
    int32_t after = 0;
    for (uint32_t i = 0; i < slots; i++) {
        table[i].n = 0;
    }
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        for (int32_t i = x->first; i < x->first + x->n; i++) {
            const float v = pb_resample_at(source, i, j);
            const uint32_t hash = pb_warp_hash(v);
            after = after + 1;
            if (v != v || ((hash >> 12) & (parts - 1)) != part) {
                continue;
            }
            const struct pb_warp_slot *const slot = pb_warp_tally(table, slots, hash, v, &used);
            if (slot == NULL) {
                return false;
            }
            if (slot->n > own.n) {
                own.value = v;
                own.n = slot->n;
                own.after = after;
            }
        }
    }
    if (own.n > best->n || (own.n == best->n && own.n > 0 && own.after < best->after)) {
        *best = own;
    }
    return true;
}

/* Each pixel's value is looked for in all before it. */
PB_PIXEL float pb_warp_mode_plain(const struct pb_resample_source *source, const struct pb_taps *x,
                                  const struct pb_taps *y)
{
    float best = pb_pixel_nan();
    int32_t most = 0;
    for (int32_t j = y->first; j < y->first + y->n; j++) {
        for (int32_t i = x->first; i < x->first + x->n; i++) {
            const float v = pb_resample_at(source, i, j);
            const int32_t n = v == v ? pb_warp_count(source, x, y, i, j, v) : 0;
            best = n > most ? v : best;
            most = n > most ? n : most;
        }
    }
    return best;
}

/* The value that stands in the area most often; of equal ones the one that does so first. Values of
 * a large area are counted in a table, in as many rounds as it takes for those of each to fit. */
PB_PIXEL float pb_warp_mode(const struct pb_resample_source *source, const struct pb_taps *x,
                            const struct pb_taps *y)
{
    struct pb_warp_slot table[PB_WARP_SLOTS_MOST];
    struct pb_warp_most_often best = {pb_pixel_nan(), 0, 0};
    const int64_t n = (int64_t)x->n * y->n;
    uint32_t slots = 32, parts = 1, part = 0;
    assert(pb_resample_holds(source, x, y));
    while (slots < PB_WARP_SLOTS_MOST && slots < 2 * n) {
        slots = slots * 2;
    }
    while (part < parts) {
        if (n <= PB_WARP_FEW_PX || parts > n || parts > PB_WARP_PARTS_MOST) {
            return pb_warp_mode_plain(source, x, y);
        }
        if (pb_warp_mode_part(source, x, y, table, slots, part, parts, &best)) {
            part = part + 1;
        } else {
            parts = parts * 2;
            part = 0;
            best.n = 0;
            best.value = pb_pixel_nan();
        }
    }
    return best.value;
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

/* Pixel (column, row) of the made plane's grid, at that position (of its centre). heights: at the
 * pixel, or at its corners for areas; NULL where positions do not depend on them. */
PB_PIXEL float pb_warp_pixel(const struct pb_warp_job *job, const struct pb_resample_source *source,
                             int32_t column, int32_t row, const struct pb_warp_at *at,
                             const struct pb_plane *heights)
{
    struct pb_resample resample;
    struct pb_taps x, y;
    resample.how = job->how;
    resample.source_w = job->source_w;
    resample.source_h = job->source_h;
    resample.map = pb_map_identity();
    if (pb_warp_is_area(job->how)) {
        const struct pb_warp_at one = pb_warp_ground(job, heights, column, row);
        const struct pb_warp_at other = pb_warp_ground(job, heights, column + 1, row + 1);
        if (!pb_warp_is_on(column + 0.5, job->to.scale_x, job->to.offset_x, job->warp->w) ||
            !pb_warp_is_on(row + 0.5, job->to.scale_y, job->to.offset_y, job->warp->h) ||
            one.x != one.x || one.y != one.y || other.x != other.x || other.y != other.y) {
            return pb_pixel_nan();
        }
        x = pb_warp_area(one.x, other.x, job->source_w);
        y = pb_warp_area(one.y, other.y, job->source_h);
    } else {
        if (at->x != at->x || at->y != at->y) {
            return pb_pixel_nan();
        }
        x = pb_warp_taps(job->how, at->x, job->scale_x, job->source_w);
        y = pb_warp_taps(job->how, at->y, job->scale_y, job->source_h);
    }
    return job->how == PB_MODE ? pb_warp_mode(source, &x, &y)
                               : pb_resample_pixel(&resample, source, &x, &y);
}
#endif
