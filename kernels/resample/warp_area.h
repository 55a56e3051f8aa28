/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WARP_AREA_H
#define PB_WARP_AREA_H
/* AVERAGE and MODE of a warp, for both devices: the footprint of a new pixel on the old grid is the
 * polygon of its four corners; where positions jump between these (the antimeridian, a pole), the
 * pieces that warp_tear.c has cut it into. A pixel of the old grid weighs as much as the area that
 * the footprint has of it.
 *
 * The area of a polygon in a row of pixels up to column c is a sum over its edges: an edge that
 * crosses the row from y to y + dy takes part with dy times the mean of max(c - x, 0) along it. The
 * weight of a pixel is the difference of that sum at its two sides. All is float64, in one order,
 * so the CPU's rows, the pixel function and a GPU make the same bits. */
#include "kernels/resample/warp_pixel.h"

/* Smaller parts of a footprint, or of a pixel, come from rounding and do not count. */
#define PB_WARP_AREA_LEAST 1e-9
/* A footprint of less is the pixel that holds its middle. */
#define PB_WARP_AREA_VOID 1e-12
/* Edges that are shorter along an axis are straight along the other. */
#define PB_WARP_EDGE_FLAT 1e-12

struct pb_warp_polygon {
    double x[PB_WARP_CORNERS], y[PB_WARP_CORNERS];
    int32_t n;
};

/* An edge, relative to the first pixel of the footprint. */
struct pb_warp_edge {
    double x, y, end_y; /* where it begins, and how far down it ends */
    double slope;       /* columns a row */
    double bend;        /* half of the rows a column, negative upwards */
};

/* An edge's part in one row: dy rows long, negative upwards, from column `low` on. */
struct pb_warp_span {
    double low, length, dy;
};

/* The pixels of a polygon, row by row. */
struct pb_warp_walk {
    struct pb_warp_edge edge[PB_WARP_CORNERS];
    struct pb_warp_span span[PB_WARP_CORNERS];
    int32_t n;
    int32_t first_x, first_y, cols, rows; /* inside the source's grid */
    double area, least;                   /* in pixels; the least weight that counts */
    double sign;                          /* of weights: of the way around the polygon */
    int32_t col, row;                     /* the next pixel */
    double before;                        /* the sum up to it */
    bool is_point;                        /* a polygon without an area: one pixel */
};

PB_PIXEL double pb_warp_clamp(double v, double low, double high)
{
    const double above = v > low ? v : low;
    return above < high ? above : high;
}

PB_PIXEL struct pb_warp_edge pb_warp_edge_of(double x, double y, double end_x, double end_y)
{
    const double dx = end_x - x, dy = end_y - y;
    const bool is_level = fabs(dy) < PB_WARP_EDGE_FLAT, is_upright = fabs(dx) < PB_WARP_EDGE_FLAT;
    const double bend = 0.5 * dy / fabs(dx);
    const double slope = dx / dy;
    struct pb_warp_edge edge;
    edge.x = x;
    edge.y = y;
    edge.end_y = end_y;
    edge.slope = is_level || is_upright ? 0.0 : slope;
    edge.bend = is_level || is_upright ? 0.0 : bend;
    return edge;
}

/* In the row that begins at `row`. */
PB_PIXEL struct pb_warp_span pb_warp_span_of(const struct pb_warp_edge *edge, double row)
{
    const double from = pb_warp_clamp(edge->y, row, row + 1.0);
    const double to = pb_warp_clamp(edge->end_y, row, row + 1.0);
    const double one = edge->x + (from - edge->y) * edge->slope;
    const double other = edge->x + (to - edge->y) * edge->slope;
    struct pb_warp_span span;
    span.low = one < other ? one : other;
    span.length = (one < other ? other : one) - span.low;
    span.dy = to - from;
    return span;
}

/* What the edge adds to the sum up to column c. */
PB_PIXEL double pb_warp_span_sum(const struct pb_warp_span *span, double bend, double c)
{
    const double beyond = c - span->low;
    const double reach = beyond > 0.0 ? beyond : 0.0;
    const double on = reach < span->length ? reach : span->length;
    return span->dy * (reach - on) + on * on * bend;
}

/* First pixel and number of pixels from `low` to `high` inside a grid. */
PB_PIXEL int32_t pb_warp_extent(double low, double high, int32_t size, int32_t *out_n)
{
    const double from = pb_warp_clamp(floor(low + PB_WARP_EDGE_PX), 0.0, size);
    const double to = pb_warp_clamp(ceil(high - PB_WARP_EDGE_PX), from, size);
    *out_n = (int32_t)(to - from);
    return (int32_t)from;
}

/* A polygon without an area: the pixel that holds its middle, where that is on the grid. */
PB_PIXEL void pb_warp_walk_point(struct pb_warp_walk *walk, const struct pb_warp_polygon *p,
                                 int32_t source_w, int32_t source_h)
{
    double x = 0.0, y = 0.0;
    for (int32_t i = 0; i < p->n; i++) {
        x = x + p->x[i];
        y = y + p->y[i];
    }
    x = floor(x / p->n + PB_WARP_EDGE_PX);
    y = floor(y / p->n + PB_WARP_EDGE_PX);
    const bool is_on = x >= 0.0 && x < source_w && y >= 0.0 && y < source_h;
    walk->is_point = true;
    walk->first_x = is_on ? (int32_t)x : 0;
    walk->first_y = is_on ? (int32_t)y : 0;
    walk->cols = walk->rows = is_on ? 1 : 0;
    walk->area = 1.0;
    walk->least = PB_WARP_AREA_LEAST;
}

/* The sum over all edges up to column c of the row whose spans are there. */
PB_PIXEL double pb_warp_walk_sum(const struct pb_warp_walk *walk, double c)
{
    double sum = 0.0;
    for (int32_t i = 0; i < walk->n; i++) {
        sum = sum + pb_warp_span_sum(&walk->span[i], walk->edge[i].bend, c);
    }
    return sum;
}

PB_PIXEL void pb_warp_walk_row(struct pb_warp_walk *walk)
{
    for (int32_t i = 0; i < walk->n; i++) {
        walk->span[i] = pb_warp_span_of(&walk->edge[i], walk->row);
    }
    walk->col = 0;
    walk->before = pb_warp_walk_sum(walk, 0.0);
}

PB_PIXEL void pb_warp_walk_edges(struct pb_warp_walk *walk, const struct pb_warp_polygon *p)
{
    double twice = 0.0;
    walk->n = p->n;
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t k = i + 1 < p->n ? i + 1 : 0;
        const double x = p->x[i] - walk->first_x, y = p->y[i] - walk->first_y;
        const double end_x = p->x[k] - walk->first_x, end_y = p->y[k] - walk->first_y;
        walk->edge[i] = pb_warp_edge_of(x, y, end_x, end_y);
        twice = twice + (x * end_y - end_x * y);
    }
    walk->area = 0.5 * fabs(twice);
    walk->least = walk->area < 1.0 ? PB_WARP_AREA_LEAST * walk->area : PB_WARP_AREA_LEAST;
    walk->sign = twice > 0.0 ? -1.0 : 1.0;
}

PB_PIXEL void pb_warp_walk_begin(struct pb_warp_walk *walk, const struct pb_warp_polygon *p,
                                 int32_t source_w, int32_t source_h)
{
    double x0 = p->x[0], x1 = x0, y0 = p->y[0], y1 = y0;
    for (int32_t i = 1; i < p->n; i++) {
        x0 = p->x[i] < x0 ? p->x[i] : x0;
        x1 = p->x[i] > x1 ? p->x[i] : x1;
        y0 = p->y[i] < y0 ? p->y[i] : y0;
        y1 = p->y[i] > y1 ? p->y[i] : y1;
    }
    walk->first_x = pb_warp_extent(x0, x1, source_w, &walk->cols);
    walk->first_y = pb_warp_extent(y0, y1, source_h, &walk->rows);
    walk->is_point = false;
    walk->row = walk->col = 0;
    pb_warp_walk_edges(walk, p);
    if (walk->area < PB_WARP_AREA_VOID) {
        pb_warp_walk_point(walk, p, source_w, source_h);
    }
    if (walk->cols > 0 && walk->rows > 0 && !walk->is_point) {
        pb_warp_walk_row(walk);
    }
}

/* The next pixel that the polygon has a part of, and how much; false: there is no other. */
PB_PIXEL bool pb_warp_walk_next(struct pb_warp_walk *walk, int32_t *out_x, int32_t *out_y,
                                double *out_weight)
{
    double weight = 0.0;
    while (walk->cols > 0 && walk->row < walk->rows) {
        *out_x = walk->first_x + walk->col;
        *out_y = walk->first_y + walk->row;
        if (walk->is_point) {
            weight = 1.0;
        } else {
            const double sum = pb_warp_walk_sum(walk, walk->col + 1.0);
            weight = (sum - walk->before) * walk->sign;
            walk->before = sum;
        }
        walk->col = walk->col + 1;
        if (walk->col == walk->cols) {
            walk->row = walk->row + 1;
            if (walk->row < walk->rows) {
                pb_warp_walk_row(walk);
            }
        }
        if (weight > walk->least) {
            *out_weight = weight;
            return true;
        }
    }
    return false;
}

/* --- footprints ------------------------------------------------------------------------------- */

/* The corners of a pixel, or the pieces of some pixels of the warp's new grid. */
struct pb_warp_footprint {
    struct pb_warp_polygon corners;
    int32_t left, top, cols, rows; /* pixels of the new grid; cols 0: the corners are all of it */
};

/* The corners of a pixel of the new grid as a polygon of the plane's grid; false: one of them is
 * nowhere. */
PB_PIXEL bool pb_warp_corners(const struct pb_warp_job *job, const struct pb_plane *heights,
                              int32_t column, int32_t row, struct pb_warp_polygon *out)
{
    bool is_there = true;
    out->n = 4;
    for (int32_t i = 0; i < 4; i++) {
        const struct pb_warp_at at =
            pb_warp_ground(job, heights, column + (i == 1 || i == 2), row + (i > 1));
        out->x[i] = at.x;
        out->y[i] = at.y;
        is_there = is_there && at.x - at.x == 0.0 && at.y - at.y == 0.0;
    }
    return is_there;
}

PB_PIXEL double pb_warp_inside(double v, int32_t size)
{
    return pb_warp_clamp(v, 0.0, size - 1.0);
}

/* First and number of the pixels of the new grid whose middles lie in pixel `at` of the made plane;
 * the one that holds its middle, if none does. */
PB_PIXEL int32_t pb_warp_covered(int32_t at, double scale, double offset, int32_t size,
                                 int32_t *out_n)
{
    const double first = ceil(at * scale + offset - 0.5);
    const double end = ceil((at + 1.0) * scale + offset - 0.5);
    const double low =
        pb_warp_inside(first < end ? first : floor((at + 0.5) * scale + offset), size);
    const double high = pb_warp_inside(end - 1.0, size);
    *out_n = high > low ? (int32_t)(high - low) + 1 : 1;
    return (int32_t)low;
}

/* Where positions jump between the corners of a pixel of the made plane, its footprint is that of
 * the new grid's pixels that it holds. */
PB_PIXEL bool pb_warp_is_torn(const struct pb_warp_job *job, int32_t column, int32_t row,
                              struct pb_warp_footprint *f)
{
    const struct pb_warp *const warp = job->warp;
    bool is_torn = false;
    uint32_t first = 0;
    f->cols = f->rows = 0;
    if (warp->n_torn == 0 || warp->n_heights > 1) {
        return false;
    }
    f->left = pb_warp_covered(column, job->to.scale_x, job->to.offset_x, warp->w, &f->cols);
    f->top = pb_warp_covered(row, job->to.scale_y, job->to.offset_y, warp->h, &f->rows);
    for (int32_t k = 0; k < f->cols * f->rows && !is_torn; k++) {
        is_torn = pb_warp_tear(warp, f->left + k % f->cols, f->top + k / f->cols, &first) >= 0;
    }
    f->cols = is_torn ? f->cols : 0;
    return is_torn;
}

/* The footprint of pixel (column, row) of the made plane; false: it is nowhere. */
PB_PIXEL bool pb_warp_footprint_of(const struct pb_warp_job *job, const struct pb_plane *heights,
                                   int32_t column, int32_t row, struct pb_warp_footprint *out)
{
    const struct pb_map to = job->to;
    if (!pb_warp_is_on(column + 0.5, to.scale_x, to.offset_x, job->warp->w) ||
        !pb_warp_is_on(row + 0.5, to.scale_y, to.offset_y, job->warp->h)) {
        return false;
    }
    return pb_warp_is_torn(job, column, row, out) ||
           pb_warp_corners(job, heights, column, row, &out->corners);
}

/* Piece k of those of pixel `at` of a footprint of several; false: there is no such piece. */
PB_PIXEL bool pb_warp_piece(const struct pb_warp_job *job, const struct pb_warp_footprint *f,
                            int32_t at, int32_t k, struct pb_warp_polygon *out)
{
    const struct pb_map none = pb_map_identity();
    const int32_t column = f->left + at % f->cols, row = f->top + at / f->cols;
    uint32_t first = 0;
    const int32_t n = pb_warp_tear(job->warp, column, row, &first);
    if (n < 0) {
        struct pb_warp_job own = *job;
        own.to = none;
        return k == 0 && pb_warp_corners(&own, NULL, column, row, out);
    }
    if (k >= n) {
        return false;
    }
    const struct pb_warp_leaf *const leaf = &job->warp->leaf[first + (uint32_t)k];
    out->n = PB_WARP_CORNERS;
    for (int32_t i = 0; i < PB_WARP_CORNERS; i++) {
        out->x[i] = leaf->x[i] * job->from.scale_x + job->from.offset_x;
        out->y[i] = leaf->y[i] * job->from.scale_y + job->from.offset_y;
    }
    return true;
}

/* The pixels of all polygons of a footprint, one after the other. */
struct pb_warp_steps {
    struct pb_warp_footprint of;
    struct pb_warp_walk walk;
    int32_t at, piece; /* of the next polygon */
};

/* Begins the next polygon that has pixels; false: there is none. */
PB_PIXEL bool pb_warp_steps_polygon(const struct pb_warp_job *job, struct pb_warp_steps *s)
{
    struct pb_warp_polygon p;
    if (s->of.cols == 0) {
        if (s->piece++ > 0) {
            return false;
        }
        pb_warp_walk_begin(&s->walk, &s->of.corners, job->source_w, job->source_h);
        return true;
    }
    while (s->at < s->of.cols * s->of.rows) {
        if (pb_warp_piece(job, &s->of, s->at, s->piece, &p)) {
            s->piece++;
            pb_warp_walk_begin(&s->walk, &p, job->source_w, job->source_h);
            if (!s->walk.is_point) {
                return true;
            }
        } else {
            s->at++;
            s->piece = 0;
        }
    }
    return false;
}

PB_PIXEL void pb_warp_steps_begin(struct pb_warp_steps *s)
{
    struct pb_warp_walk *const walk = &s->walk;
    s->at = s->piece = 0;
    walk->n = walk->cols = walk->rows = 0; /* no pixel of no polygon */
    walk->first_x = walk->first_y = walk->col = walk->row = 0;
    walk->area = walk->least = walk->before = 0.0;
    walk->sign = 1.0;
    walk->is_point = false;
}

PB_PIXEL bool pb_warp_steps_next(const struct pb_warp_job *job, struct pb_warp_steps *s,
                                 int32_t *out_x, int32_t *out_y, double *out_weight)
{
    while (!pb_warp_walk_next(&s->walk, out_x, out_y, out_weight)) {
        if (!pb_warp_steps_polygon(job, s)) {
            return false;
        }
    }
    return true;
}

/* --- AVERAGE ---------------------------------------------------------------------------------- */

PB_PIXEL float pb_warp_mean(double sum, double total)
{
    return total > 0.0 ? pb_pixel_result((float)(sum / total)) : pb_pixel_nan();
}

PB_PIXEL float pb_warp_average(const struct pb_warp_job *job,
                               const struct pb_resample_source *source, struct pb_warp_steps *s)
{
    double sum = 0.0, total = 0.0, weight;
    int32_t x, y;
    pb_warp_steps_begin(s);
    while (pb_warp_steps_next(job, s, &x, &y, &weight)) {
        const float v = pb_resample_at(source, x, y);
        if (v == v) {
            sum = sum + weight * (double)v;
            total = total + weight;
        }
    }
    return pb_warp_mean(sum, total);
}

/* --- MODE ------------------------------------------------------------------------------------- */

/* A table's, 32 KiB, and a thread's of a GPU, 1 KiB; powers of two. What comes out is the same with
 * any number. */
#if defined(__CUDA_ARCH__) || defined(PB_EMULATED)
#define PB_WARP_SLOTS_MOST 64
#else
#define PB_WARP_SLOTS_MOST 2048
#endif
#define PB_WARP_PARTS_MOST (1u << 20)
/* Areas are compared in these parts of the footprint's, so that equal ones are equal. */
#define PB_WARP_SHARES 1073741824.0

/* A value, the area that it has so far, and which of the pixels brought the last part of that; -1:
 * the slot is free. */
struct pb_warp_slot {
    float value;
    int32_t last;
    double area;
};

/* The value with the largest area; of equal ones the one that had it first. */
struct pb_warp_best {
    float value;
    int32_t last;
    double share;
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

PB_PIXEL double pb_warp_share(double area, double whole)
{
    return floor(area / whole * PB_WARP_SHARES + 0.5);
}

PB_PIXEL void pb_warp_better(const struct pb_warp_slot *slot, double whole,
                             struct pb_warp_best *best)
{
    const double share = pb_warp_share(slot->area, whole);
    if (share > best->share || (share == best->share && slot->last < best->last)) {
        best->value = slot->value;
        best->last = slot->last;
        best->share = share;
    }
}

/* Adds to the area of a value; false: the table is three quarters full. */
PB_PIXEL bool pb_warp_tally(struct pb_warp_slot *table, uint32_t slots, uint32_t hash, float value,
                            double weight, int32_t pixel, uint32_t *used)
{
    uint32_t at = hash & (slots - 1);
    while (table[at].last >= 0 && table[at].value != value) {
        at = (at + 1) & (slots - 1);
    }
    if (table[at].last < 0) {
        if (*used >= slots / 4 * 3) {
            return false;
        }
        *used = *used + 1;
        table[at].value = value;
        table[at].area = 0.0;
    }
    table[at].last = pixel;
    table[at].area = table[at].area + weight;
    return true;
}

/* Adds up the values of which the upper bits of the hash are `part`, of `parts`. False: they are
 * more than the table holds. */
PB_PIXEL bool pb_warp_mode_part(const struct pb_warp_job *job,
                                const struct pb_resample_source *source, struct pb_warp_steps *s,
                                struct pb_warp_slot *table, uint32_t slots, uint32_t part,
                                uint32_t parts, struct pb_warp_best *best)
{
    uint32_t used = 0;
    double weight, whole = 0.0;
    int32_t x, y, pixel = 0;
    for (uint32_t i = 0; i < slots; i++) {
        table[i].last = -1;
    }
    pb_warp_steps_begin(s);
    while (pb_warp_steps_next(job, s, &x, &y, &weight)) {
        const float v = pb_resample_at(source, x, y);
        const uint32_t hash = pb_warp_hash(v);
        if (v != v) {
            continue;
        }
        whole = whole + weight;
        if (((hash >> 12) & (parts - 1)) == part &&
            !pb_warp_tally(table, slots, hash, v, weight, pixel, &used)) {
            return false;
        }
        pixel = pixel + 1;
    }
    for (uint32_t i = 0; i < slots; i++) {
        if (table[i].last >= 0) {
            pb_warp_better(&table[i], whole, best);
        }
    }
    return true;
}

/* The value with the largest area. A footprint of many values takes as many rounds as it takes for
 * those of each to fit into the table. */
PB_PIXEL float pb_warp_mode(const struct pb_warp_job *job, const struct pb_resample_source *source,
                            struct pb_warp_steps *s)
{
    struct pb_warp_slot table[PB_WARP_SLOTS_MOST];
    const struct pb_warp_best none = {pb_pixel_nan(), -1, 0.0};
    struct pb_warp_best best = none;
    uint32_t slots = 16, parts = 1, part = 0;
    while (part < parts) {
        if (pb_warp_mode_part(job, source, s, table, slots, part, parts, &best)) {
            part = part + 1;
        } else {
            parts = slots < PB_WARP_SLOTS_MOST ? parts : parts * 2;
            slots = slots * 4 < PB_WARP_SLOTS_MOST ? slots * 4 : PB_WARP_SLOTS_MOST;
            part = 0;
            best = none;
        }
        if (parts > PB_WARP_PARTS_MOST) {
            return pb_pixel_nan();
        }
    }
    return best.value;
}

/* Pixel (column, row) of the made plane's grid. heights: at its corners; NULL where positions do
 * not depend on them. */
PB_PIXEL float pb_warp_area_pixel(const struct pb_warp_job *job,
                                  const struct pb_resample_source *source, int32_t column,
                                  int32_t row, const struct pb_plane *heights)
{
    struct pb_warp_steps s;
    if (!pb_warp_footprint_of(job, heights, column, row, &s.of)) {
        return pb_pixel_nan();
    }
    return job->how == PB_MODE ? pb_warp_mode(job, source, &s) : pb_warp_average(job, source, &s);
}

/* Pixel (column, row) of the made plane's grid, at that position (of its centre). heights: at the
 * pixel, or at its corners for areas; NULL where positions do not depend on them. */
PB_PIXEL float pb_warp_pixel(const struct pb_warp_job *job, const struct pb_resample_source *source,
                             int32_t column, int32_t row, const struct pb_warp_at *at,
                             const struct pb_plane *heights)
{
    return pb_warp_is_area(job->how) ? pb_warp_area_pixel(job, source, column, row, heights)
                                     : pb_warp_kernel_pixel(job, source, at);
}
#endif
