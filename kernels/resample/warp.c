/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a warp as a whole: how large its pixels are, and which part of the old grid a
 * part of the new one lies on. */
#include "kernels/resample/warp_pixel.h"
#include "kernels/resample/warp_tree.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLES     64   /* along an axis, at which scales are measured */
#define SCALE_LEAST 1.05 /* of smaller ones nothing is seen; as GDAL's warper has it */
#define SCALE_NEAR  0.05 /* nearly whole scales are whole; likewise */

/* --- how large a new pixel is on the old grid ------------------------------------------------- */

struct scales {
    double x, y;
    size_t n;
};

static void measure_at(const struct pb_warp_job *job, double x, double y, struct scales *sum)
{
    const struct pb_warp *const w = job->warp;
    const struct pb_warp_at at = pb_warp_position(job, x, y);
    const struct pb_warp_at right = pb_warp_position(job, x + 1, y);
    const struct pb_warp_at below = pb_warp_position(job, x, y + 1);
    const double dx = hypot(right.x - at.x, below.x - at.x);
    const double dy = hypot(right.y - at.y, below.y - at.y);

    if (!(at.x >= 0 && at.y >= 0 && at.x < w->source_w && at.y < w->source_h) ||
        !(dx < w->source_w / 2.0 + 1) || !(dy < w->source_h / 2.0 + 1))
        return; /* outside, or at a jump */
    sum->x += dx;
    sum->y += dy;
    sum->n++;
}

static void measure(struct pb_warp *warp, struct scales *sum)
{
    const struct pb_warp_job job = {
        .warp = warp, .to = pb_map_identity(), .from = pb_map_identity()};
    const int32_t across = warp->w < SAMPLES ? warp->w : SAMPLES;
    const int32_t down = warp->h < SAMPLES ? warp->h : SAMPLES;

    for (int32_t i = 0; i < across * down; i++)
        measure_at(&job, floor((i % across + 0.5) * (warp->w / (double)across)),
                   floor((i / across + 0.5) * (warp->h / (double)down)), sum);
}

void pb_warp_job_scale(struct pb_warp_job *job)
{
    const double scale[2] = {job->warp->scale_x * job->from.scale_x * job->to.scale_x,
                             job->warp->scale_y * job->from.scale_y * job->to.scale_y};
    double out[2];

    for (int i = 0; i < 2; i++) {
        const double whole = floor(scale[i] + 0.5);

        out[i] = fabs(scale[i] - whole) < SCALE_NEAR && whole >= 1 ? whole : scale[i];
        out[i] = out[i] < SCALE_LEAST ? 1.0 : out[i];
    }
    job->scale_x = out[0];
    job->scale_y = out[1];
}

/* --- parts ------------------------------------------------------------------------------------ */

static void join(struct pb_warp_box *to, const struct pb_warp_box *box)
{
    if (box->x1 < box->x0)
        return;
    to->x0 = fmin(to->x0, box->x0);
    to->y0 = fmin(to->y0, box->y0);
    to->x1 = fmax(to->x1, box->x1);
    to->y1 = fmax(to->y1, box->y1);
}

struct pb_warp_box pb_warp_bounds(const struct pb_warp *warp, const struct pb_warp_box *area)
{
    const int32_t col0 = pb_warp_cell(area->x0, warp->side, warp->cols);
    const int32_t col1 = pb_warp_cell(area->x1, warp->side, warp->cols);
    const int32_t row0 = pb_warp_cell(area->y0, warp->side, warp->rows);
    const int32_t row1 = pb_warp_cell(area->y1, warp->side, warp->rows);
    struct pb_warp_box out = {INFINITY, INFINITY, -INFINITY, -INFINITY};

    for (int32_t row = row0; row <= row1; row++)
        for (int32_t col = col0; col <= col1; col++)
            join(&out, &warp->box[(size_t)row * (size_t)warp->cols + (size_t)col]);
    return out;
}

/* The largest part of the old grid that n x n squares lie on. box: of n - 1 x n - 1 squares, which
 * become those of n x n. */
static void most_of(const struct pb_warp *warp, struct pb_warp_box *box, double out[2])
{
    const size_t cols = (size_t)warp->cols, rows = (size_t)warp->rows;

    out[0] = out[1] = 0;
    for (size_t i = 0; i < cols * rows; i++) {
        const bool right = i % cols + 1 < cols, below = i / cols + 1 < rows;

        if (right)
            join(&box[i], &box[i + 1]);
        if (below)
            join(&box[i], &box[i + cols]);
        if (right && below)
            join(&box[i], &box[i + cols + 1]);
        const double x0 = fmax(box[i].x0, 0), x1 = fmin(box[i].x1, warp->source_w);
        const double y0 = fmax(box[i].y0, 0), y1 = fmin(box[i].y1, warp->source_h);
        out[0] = x1 > x0 ? fmax(out[0], x1 - x0) : out[0];
        out[1] = y1 > y0 ? fmax(out[1], y1 - y0) : out[1];
    }
}

static int find_most(struct pb_warp *warp)
{
    const size_t n = (size_t)warp->cols * (size_t)warp->rows;
    struct pb_warp_box *const box = malloc(n * sizeof *box);

    warp->n_most = (size_t)(warp->cols > warp->rows ? warp->cols : warp->rows);
    warp->most = calloc(warp->n_most * 2, sizeof *warp->most);
    if (box == NULL || warp->most == NULL) {
        free(box);
        return -ENOMEM;
    }
    memcpy(box, warp->box, n * sizeof *box);
    for (size_t k = 1; k < warp->n_most; k++)
        most_of(warp, box, warp->most + 2 * k);
    free(box);
    return 0;
}

void pb_warp_most(const struct pb_warp *warp, double w, double h, double *out_w, double *out_h)
{
    /* A length touches a square more than it fills, at each end. */
    const double longest = ceil((w > h ? w : h) / warp->side) + 1;
    const size_t n = longest < (double)warp->n_most ? (size_t)longest : warp->n_most;

    *out_w = n > 1 ? warp->most[2 * (n - 1)] : warp->source_w;
    *out_h = n > 1 ? warp->most[2 * (n - 1) + 1] : warp->source_h;
}

/* --- life ------------------------------------------------------------------------------------- */

static void destroy(struct pb_warp *warp)
{
    free(warp->tree);
    free(warp->leaf);
    free(warp->box);
    free(warp->most);
    free(warp);
}

int pb_warp_create(int32_t w, int32_t h, int32_t source_w, int32_t source_h, pb_warp_points *points,
                   void *of, struct pb_warp **out_warp)
{
    struct pb_warp *const warp = calloc(1, sizeof *warp);
    struct scales sum = {0, 0, 0};
    int rc = -ENOMEM;

    if (warp == NULL)
        return rc;
    *warp =
        (struct pb_warp){.w = w, .h = h, .source_w = source_w, .source_h = source_h, .users = 1};
    rc = pb_warp_fill(warp, points, of);
    rc = rc ? rc : find_most(warp);
    if (rc == 0)
        measure(warp, &sum);
    if (rc < 0) {
        destroy(warp);
        return rc;
    }
    warp->scale_x = sum.n > 0 ? sum.x / (double)sum.n : 1;
    warp->scale_y = sum.n > 0 ? sum.y / (double)sum.n : 1;
    *out_warp = warp;
    return 0;
}

struct pb_warp *pb_warp_get(struct pb_warp *warp)
{
    warp->users++;
    return warp;
}

void pb_warp_put(struct pb_warp *warp)
{
    if (warp != NULL && --warp->users == 0)
        destroy(warp);
}

size_t pb_warp_bytes(const struct pb_warp *warp)
{
    return warp->n_tree * sizeof *warp->tree + warp->n_leaf * sizeof *warp->leaf +
           (size_t)warp->cols * (size_t)warp->rows * sizeof *warp->box +
           warp->n_most * 2 * sizeof *warp->most;
}
