/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * AVERAGE and MODE on the CPU: footprints of a group of pixels side by side, their four edges in
 * each row of the old grid, then column by column the sums up to it, whose differences are the
 * weights. The operations of a pixel, and their order, are those of warp_area.h, and so are the
 * bits. Edges that no footprint of the group has in a row are left out. Footprints that are wider
 * than a group has room for, and those of several pieces, are made by the pixel function. */
#include "kernels/resample/warp_area.h"
#include "kernels/resample/warp_part.h"

#include <string.h>

#define LANES     PB_WARP_AREA_LANES
#define FEW       PB_WARP_AREA_FEW
#define EDGES     4
#define SPAN_MOST 64 /* columns and rows of a footprint of a group */

/* The footprints of a group of pixels; corners: 0 upper left, on around the pixel. */
struct pb_warp_group {
    double x[EDGES][LANES], y[EDGES][LANES];
    double slope[EDGES][LANES], bend[EDGES][LANES];
    double low[EDGES][LANES], length[EDGES][LANES], dy[EDGES][LANES];
    double area[LANES], least[LANES], sign[LANES];
    double before[LANES], sum[LANES], mean[LANES], total[LANES];
    double reach[LANES]; /* columns of a footprint in the row at hand */
    int32_t at[LANES], cols[LANES], rows[LANES];
    bool is_hidden[LANES];
    int32_t n, cols_most, rows_most;
    int32_t active[EDGES], n_active;
    bool is_cut; /* a footprint begins left of its first column */
    /* Of MODE: the pixels of the footprints. */
    float value[FEW][LANES];
    double weight[FEW][LANES];
};
static_assert(sizeof(struct pb_warp_group) <= sizeof(((struct pb_warp_part *)0)->group),
              "a part has room for a group");

/* --- corners ---------------------------------------------------------------------------------- */

static inline double least_of(double a, double b)
{
    return a < b ? a : b;
}

static inline double most_of(double a, double b)
{
    return a > b ? a : b;
}

/* First pixel and number of pixels along an axis; makes the corners relative to it. */
PB_CLONES static int32_t find_extent(double (*restrict v)[LANES], int32_t size,
                                     double *restrict first, int32_t *restrict n)
{
    int32_t most = 0;

    for (int i = 0; i < LANES; i++) {
        const double low = least_of(least_of(least_of(v[0][i], v[1][i]), v[2][i]), v[3][i]);
        const double high = most_of(most_of(most_of(v[0][i], v[1][i]), v[2][i]), v[3][i]);
        const double from = pb_warp_clamp(floor(low + PB_WARP_EDGE_PX), 0.0, size);
        const double to = pb_warp_clamp(ceil(high - PB_WARP_EDGE_PX), from, size);
        const double length = to - from <= SPAN_MOST ? to - from : SPAN_MOST + 1.0;

        first[i] = from;
        n[i] = (int32_t)length;
        most = n[i] > most ? n[i] : most;
        for (int k = 0; k < EDGES; k++)
            v[k][i] = v[k][i] - from;
    }
    return most;
}

PB_CLONES static void find_edge(struct pb_warp_group *restrict g, int k)
{
    const int next = (k + 1) % EDGES;

    for (int i = 0; i < LANES; i++) {
        const struct pb_warp_edge edge =
            pb_warp_edge_of(g->x[k][i], g->y[k][i], g->x[next][i], g->y[next][i]);

        g->slope[k][i] = edge.slope;
        g->bend[k][i] = edge.bend;
    }
}

PB_CLONES static void find_areas(struct pb_warp_group *restrict g)
{
    for (int i = 0; i < LANES; i++) {
        double twice = 0.0;

        for (int k = 0; k < EDGES; k++) {
            const int next = (k + 1) % EDGES;

            twice = twice + (g->x[k][i] * g->y[next][i] - g->x[next][i] * g->y[k][i]);
        }
        g->area[i] = 0.5 * fabs(twice);
        g->least[i] = g->area[i] < 1.0 ? PB_WARP_AREA_LEAST * g->area[i] : PB_WARP_AREA_LEAST;
        g->sign[i] = twice > 0.0 ? -1.0 : 1.0;
    }
}

/* Takes the corners of n pixels from two rows of corners, upper and lower; lanes beyond repeat the
 * last pixel. */
static void take_corners(const struct pb_warp_corner_rows *rows, int32_t first, int32_t n,
                         struct pb_warp_group *g)
{
    g->n = n;
    for (int i = 0; i < LANES; i++) {
        const int32_t at = first + (i < n ? i : n - 1);

        g->x[0][i] = rows->x[0][at];
        g->y[0][i] = rows->y[0][at];
        g->x[1][i] = rows->x[0][at + 1];
        g->y[1][i] = rows->y[0][at + 1];
        g->x[2][i] = rows->x[1][at + 1];
        g->y[2][i] = rows->y[1][at + 1];
        g->x[3][i] = rows->x[1][at];
        g->y[3][i] = rows->y[1][at];
    }
}

/* Footprints of which a corner is nowhere get a place without a pixel. */
PB_CLONES static void hide(struct pb_warp_group *restrict g)
{
    for (int i = 0; i < LANES; i++) {
        double sum = 0.0;

        for (int k = 0; k < EDGES; k++)
            sum = sum + (g->x[k][i] - g->x[k][i]) + (g->y[k][i] - g->y[k][i]);
        g->is_hidden[i] = !(sum == 0.0);
        for (int k = 0; k < EDGES; k++) {
            g->x[k][i] = sum == 0.0 ? g->x[k][i] : -2.0;
            g->y[k][i] = sum == 0.0 ? g->y[k][i] : -2.0;
        }
    }
}

PB_CLONES static bool begins_left(const struct pb_warp_group *restrict g)
{
    int any = 0;

    for (int k = 0; k < EDGES; k++)
        for (int i = 0; i < LANES; i++)
            any |= g->x[k][i] < 0.0;
    return any != 0;
}

/* Whether the footprints fit a group and lie in the plane; finds where. */
static bool find_footprints(const struct pb_warp_job *job, const struct pb_plane *in,
                            struct pb_warp_group *g)
{
    double first_x[LANES], first_y[LANES];
    const struct pb_rect *const rect = &in->rect;

    hide(g);
    g->cols_most = find_extent(g->x, job->source_w, first_x, g->cols);
    g->rows_most = find_extent(g->y, job->source_h, first_y, g->rows);
    if (g->cols_most > SPAN_MOST || g->rows_most > SPAN_MOST)
        return false;
    for (int i = 0; i < LANES; i++) {
        const bool is_empty = g->cols[i] <= 0 || g->rows[i] <= 0;

        g->cols[i] = is_empty ? 0 : g->cols[i];
        g->rows[i] = is_empty ? 0 : g->rows[i];
        g->at[i] =
            is_empty ? 0
                     : ((int32_t)first_y[i] - rect->y) * rect->w + ((int32_t)first_x[i] - rect->x);
    }
    g->is_cut = begins_left(g);
    for (int k = 0; k < EDGES; k++)
        find_edge(g, k);
    find_areas(g);
    return true;
}

/* --- weights ---------------------------------------------------------------------------------- */

PB_CLONES static bool find_span(struct pb_warp_group *restrict g, int k, double row)
{
    const int next = (k + 1) % EDGES;
    int any = 0;

    for (int i = 0; i < LANES; i++) {
        const struct pb_warp_edge edge = {g->x[k][i], g->y[k][i], g->y[next][i], g->slope[k][i],
                                          g->bend[k][i]};
        const struct pb_warp_span span = pb_warp_span_of(&edge, row);

        g->low[k][i] = span.low;
        g->length[k][i] = span.length;
        g->dy[k][i] = span.dy;
        any |= span.dy != 0.0;
    }
    return any != 0;
}

/* The sums of n active edges up to column c. n is a constant where it is called. */
static inline __attribute__((always_inline)) void add_edges(struct pb_warp_group *restrict g,
                                                            double c, int n)
{
    for (int i = 0; i < LANES; i++) {
        double sum = 0.0;

        for (int e = 0; e < n; e++) {
            const int k = g->active[e];
            const struct pb_warp_span span = {g->low[k][i], g->length[k][i], g->dy[k][i]};

            sum = sum + pb_warp_span_sum(&span, g->bend[k][i], c);
        }
        g->sum[i] = sum;
    }
}

PB_CLONES static void add_two(struct pb_warp_group *restrict g, double c)
{
    add_edges(g, c, 2);
}

PB_CLONES static void add_three(struct pb_warp_group *restrict g, double c)
{
    add_edges(g, c, 3);
}

PB_CLONES static void add_four(struct pb_warp_group *restrict g, double c)
{
    add_edges(g, c, 4);
}

/* Fewer than two edges are in a row where no footprint is. */
static void sum_up(struct pb_warp_group *g, double c)
{
    if (g->n_active == 2)
        add_two(g, c);
    else if (g->n_active == 3)
        add_three(g, c);
    else if (g->n_active == 4)
        add_four(g, c);
    else
        add_edges(g, c, g->n_active);
}

static void find_row(struct pb_warp_group *g, int32_t row)
{
    g->n_active = 0;
    for (int k = 0; k < EDGES; k++)
        if (find_span(g, k, row))
            g->active[g->n_active++] = k;
    if (g->is_cut) {
        sum_up(g, 0.0);
        memcpy(g->before, g->sum, sizeof g->before);
    } else { /* no edge is left of the first column */
        memset(g->before, 0, sizeof g->before);
    }
}

/* Adds the pixels of one column of a row: their weights come from the sums at both of its sides. */
PB_CLONES static void add_pixels(struct pb_warp_group *restrict g, const float *restrict data,
                                 int32_t col)
{
    const double column = col;

    for (int i = 0; i < LANES; i++) {
        const double v = (double)data[g->at[i] + (col < g->cols[i] ? col : 0)];
        const double weight = (g->sum[i] - g->before[i]) * g->sign[i];
        const bool counts = (column < g->reach[i]) & (weight > g->least[i]) & (v == v);
        const double w = counts ? weight : 0.0;
        const double value = w > 0.0 ? v : 0.0;

        g->mean[i] = g->mean[i] + w * value;
        g->total[i] = g->total[i] + w;
        g->before[i] = g->sum[i];
    }
}

PB_CLONES static void keep_pixels(struct pb_warp_group *restrict g, const float *restrict data,
                                  int32_t col, int32_t n)
{
    const double column = col;
    float *restrict const kept = g->value[n];
    double *restrict const weights = g->weight[n];

    for (int i = 0; i < LANES; i++) {
        const float v = data[g->at[i] + (col < g->cols[i] ? col : 0)];
        const double weight = (g->sum[i] - g->before[i]) * g->sign[i];
        const bool counts = (column < g->reach[i]) & (weight > g->least[i]) & (v == v);
        const double w = counts ? weight : 0.0;

        kept[i] = v;
        weights[i] = w;
        g->total[i] = g->total[i] + w;
        g->before[i] = g->sum[i];
    }
}

/* Below its last row a footprint has no column, and stays where it is. */
PB_CLONES static void begin_row(struct pb_warp_group *restrict g, int32_t row, int32_t row_px)
{
    for (int i = 0; i < LANES; i++) {
        g->at[i] = row > 0 && row < g->rows[i] ? g->at[i] + row_px : g->at[i];
        g->reach[i] = row < g->rows[i] ? (double)g->cols[i] : 0.0;
    }
}

/* --- results ---------------------------------------------------------------------------------- */

static void make_averages(struct pb_warp_group *g, const struct pb_plane *in, float *out)
{
    memset(g->mean, 0, sizeof g->mean);
    memset(g->total, 0, sizeof g->total);
    for (int32_t row = 0; row < g->rows_most; row++) {
        begin_row(g, row, in->rect.w);
        find_row(g, row);
        for (int32_t col = 0; col < g->cols_most; col++) {
            sum_up(g, col + 1.0);
            add_pixels(g, in->data, col);
        }
    }
    for (int32_t i = 0; i < g->n; i++)
        out[i] = pb_warp_mean(g->mean[i], g->total[i]);
}

/* The share of the value of pixel k in each footprint. */
PB_CLONES static void weigh_value(struct pb_warp_group *restrict g, int32_t k, int32_t n)
{
    double area[LANES];

    for (int i = 0; i < LANES; i++)
        area[i] = 0.0;
    for (int32_t m = 0; m < n; m++)
        for (int i = 0; i < LANES; i++)
            area[i] = area[i] + (g->value[m][i] == g->value[k][i] ? g->weight[m][i] : 0.0);
    for (int i = 0; i < LANES; i++) {
        const bool counts = (g->weight[k][i] > 0.0) & (g->total[i] > 0.0);

        g->mean[i] = counts ? pb_warp_share(area[i], g->total[i]) : 0.0;
        g->sum[i] = (double)g->value[k][i];
    }
}

/* The mode of one footprint: areas of its values, added in the order of its pixels. */
static float mode_of_lane(const struct pb_warp_group *g, int32_t n, int lane)
{
    struct pb_warp_slot kind[FEW];
    struct pb_warp_best best = {pb_pixel_nan(), -1, 0.0};
    int32_t kinds = 0, at = 0;

    for (int32_t m = 0; m < n; m++) {
        const float value = g->value[m][lane];

        if (!(g->weight[m][lane] > 0.0))
            continue;
        if (kinds == 0 || kind[at].value != value) /* it is mostly that of the pixel before */
            for (at = 0; at < kinds && kind[at].value != value;)
                at++;
        if (at == kinds)
            kind[kinds++] = (struct pb_warp_slot){.value = value, .area = 0.0};
        kind[at].area = kind[at].area + g->weight[m][lane];
        kind[at].last = m;
    }
    for (int32_t k = 0; k < kinds; k++)
        pb_warp_better(&kind[k], g->total[lane], &best);
    return best.value;
}

/* The value of the pixel in the middle mostly has more than half of the area, so no other can win;
 * footprints in which it has not are looked at one by one. */
static void find_modes(struct pb_warp_group *g, int32_t n, float *out)
{
    if (n > 0)
        weigh_value(g, g->rows_most / 2 * g->cols_most + g->cols_most / 2, n);
    for (int i = 0; i < g->n; i++)
        out[i] = n > 0 && g->mean[i] > PB_WARP_SHARES / 2.0 + 1.0 ? (float)g->sum[i]
                                                                  : mode_of_lane(g, n, i);
}

static bool make_modes(struct pb_warp_group *g, const struct pb_plane *in, float *out)
{
    int32_t n = 0;

    if (g->rows_most * g->cols_most > FEW)
        return false;
    memset(g->total, 0, sizeof g->total);
    for (int32_t row = 0; row < g->rows_most; row++) {
        begin_row(g, row, in->rect.w);
        find_row(g, row);
        for (int32_t col = 0; col < g->cols_most; col++) {
            sum_up(g, col + 1.0);
            keep_pixels(g, in->data, col, n++);
        }
    }
    find_modes(g, n, out);
    return true;
}

/* Footprints without an area are made singly. */
static bool has_points(const struct pb_warp_group *g)
{
    bool any = false;

    for (int32_t i = 0; i < LANES; i++)
        any |= (g->area[i] < PB_WARP_AREA_VOID) & !g->is_hidden[i];
    return any;
}

bool pb_warp_make_areas(const struct pb_warp_job *job, const struct pb_plane *in,
                        struct pb_warp_part *part, int32_t first, int32_t n, float *out)
{
    struct pb_warp_group *const g = (struct pb_warp_group *)part->group;

    if ((int64_t)in->rect.w * in->rect.h > INT32_MAX || in->rect.w <= 0 || in->rect.h <= 0)
        return false;
    take_corners(&part->corners, first, n, g);
    if (!find_footprints(job, in, g) || has_points(g))
        return false;
    if (job->how == PB_MODE)
        return make_modes(g, in, out);
    make_averages(g, in, out);
    return true;
}
