/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a warp as a whole: how large its pixels are, and which part of the old grid a
 * part of the new one lies on. */
#include "kernels/resample/warp_pixel.h"
#include "kernels/resample/warp_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SAMPLES  8    /* along an axis of the old grid, at which scales are measured */
#define STEPS    16   /* of Newton's method, which finds these on the new grid */
#define FOUND_PX 1e-6 /* where it ends */
#define SCALE_UNIT                                                                                 \
    65536.0              /* scales are whole in parts of that: rounding of positions is not seen */
#define SCALE_LEAST 1.05 /* of smaller ones nothing is seen; as GDAL's warper has it */
#define SCALE_NEAR  0.05 /* nearly whole scales are whole; likewise */

/* --- how large a new pixel is on the old grid ------------------------------------------------- */

/* A place of the old grid that is looked for on the new one. */
struct sample {
    double x, y;    /* on the old grid */
    double at[2];   /* on the new one: the nearest position known */
    double nearest; /* square of its distance; infinite: there is none */
};

struct scales {
    const struct pb_warp *warp;
    pb_warp_points *points;
    void *of;
    struct sample sample[SAMPLES * SAMPLES];
    int32_t n_samples;
    double x, y;
    int32_t n;
};

/* What a position and its derivatives are at a place of the new grid. */
struct slope {
    double x, y, x_right, y_right, x_down, y_down;
};

static struct slope slope_at(const struct scales *s, const double at[2])
{
    double x[5] = {at[0], at[0] - 0.5, at[0] + 0.5, at[0], at[0]};
    double y[5] = {at[1], at[1], at[1], at[1] - 0.5, at[1] + 0.5};

    s->points(s->of, 5, x, y);
    return (struct slope){x[0], y[0], x[2] - x[1], y[2] - y[1], x[4] - x[3], y[4] - y[3]};
}

static void add_scale(struct scales *s, const struct slope *slope)
{
    const double dx = hypot(slope->x_right, slope->x_down);
    const double dy = hypot(slope->y_right, slope->y_down);

    if (!isfinite(dx) || !isfinite(dy))
        return;
    s->x += dx;
    s->y += dy;
    s->n++;
}

/* Follows the slope from the nearest position known to the sample, beyond the new grid, too: so
 * the scale does not depend on which part of the old grid the new one covers. */
static void find_sample(struct scales *s, const struct sample *sample)
{
    double at[2] = {sample->at[0], sample->at[1]};

    for (int i = 0; i < STEPS && isfinite(at[0]) && isfinite(at[1]); i++) {
        const struct slope d = slope_at(s, at);
        const double x = sample->x - d.x, y = sample->y - d.y;
        const double area = d.x_right * d.y_down - d.x_down * d.y_right;

        if (fabs(x) < FOUND_PX && fabs(y) < FOUND_PX) {
            add_scale(s, &d);
            return;
        }
        at[0] += (x * d.y_down - y * d.x_down) / area;
        at[1] += (y * d.x_right - x * d.y_right) / area;
    }
}

/* Looks at a position that a leaf knows: x, y on the old grid, of (column, row) on the new one. */
static void come_near(struct scales *s, double x, double y, double column, double row)
{
    for (int32_t i = 0; i < s->n_samples; i++) {
        struct sample *const sample = &s->sample[i];
        const double far = (x - sample->x) * (x - sample->x) + (y - sample->y) * (y - sample->y);

        if (far < sample->nearest) {
            sample->nearest = far;
            sample->at[0] = column;
            sample->at[1] = row;
        }
    }
}

/* All leaves of a square of the tree. */
static void come_near_all(struct scales *s, uint32_t entry, double x, double y, double size)
{
    if (entry == PB_WARP_VOID)
        return;
    if ((entry & PB_WARP_BRANCH) != 0) {
        for (uint32_t i = 0; i < 4; i++)
            come_near_all(s, s->warp->tree[PB_WARP_CHILD(entry) + i], x + (i & 1 ? size / 2 : 0),
                          y + (i >> 1 ? size / 2 : 0), size / 2);
        return;
    }
    const struct pb_warp_leaf *const leaf = &s->warp->leaf[entry];
    const int middle = size < 1.0 ? 0 : PB_WARP_KNOWN / 2;
    const double half = size < 1.0 ? 0.0 : size / 2;

    come_near(s, leaf->x[middle], leaf->y[middle], x + half, y + half);
}

static void place_samples(struct scales *s)
{
    const struct pb_warp *const w = s->warp;
    const int32_t across = w->source_w < SAMPLES ? w->source_w : SAMPLES;
    const int32_t down = w->source_h < SAMPLES ? w->source_h : SAMPLES;

    s->n_samples = across * down;
    for (int32_t i = 0; i < s->n_samples; i++) {
        const int32_t row = i / across;

        s->sample[i] = (struct sample){.x = (i % across + 0.5) * (w->source_w / (double)across),
                                       .y = (row + 0.5) * (w->source_h / (double)down),
                                       .nearest = INFINITY};
    }
    for (int32_t i = 0; i < w->cols * w->rows; i++) {
        const int32_t row = i / w->cols;

        come_near_all(s, w->tree[i], (double)(i % w->cols) * w->side, row * w->side, w->side);
    }
}

static double rounded(double scale)
{
    return floor(scale * SCALE_UNIT + 0.5) / SCALE_UNIT;
}

/* Means of the samples that are found; where none is, of the new grid where it comes nearest. 1
 * where the tree has no leaf, hence no pixel is made. */
static void measure(struct pb_warp *warp, pb_warp_points *points, void *of)
{
    struct scales s = {.warp = warp, .points = points, .of = of};

    place_samples(&s);
    for (int32_t i = 0; i < s.n_samples; i++)
        find_sample(&s, &s.sample[i]);
    for (int32_t i = 0, found = s.n; found == 0 && i < s.n_samples; i++)
        if (s.sample[i].nearest < INFINITY) {
            const struct slope d = slope_at(&s, s.sample[i].at);

            add_scale(&s, &d);
        }
    warp->scale_x = s.n > 0 ? rounded(s.x / s.n) : 1;
    warp->scale_y = s.n > 0 ? rounded(s.y / s.n) : 1;
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

/* The largest part of the old grid that n x n squares lie on. box: of n - 1 x n - 1 squares, which
 * become those of n x n; n = 1: of one each. */
static void most_of(const struct pb_warp *warp, struct pb_warp_box *box, size_t n, double out[2])
{
    const size_t cols = (size_t)warp->cols, rows = (size_t)warp->rows;

    out[0] = out[1] = 0;
    for (size_t i = 0; i < cols * rows; i++) {
        const bool right = n > 1 && i % cols + 1 < cols, below = n > 1 && i / cols + 1 < rows;

        if (right)
            pb_warp_box_join(&box[i], &box[i + 1]);
        if (below)
            pb_warp_box_join(&box[i], &box[i + cols]);
        if (right && below)
            pb_warp_box_join(&box[i], &box[i + cols + 1]);
        const double x0 = fmax(box[i].x0, 0), x1 = fmin(box[i].x1, warp->source_w);
        const double y0 = fmax(box[i].y0, 0), y1 = fmin(box[i].y1, warp->source_h);
        out[0] = x1 > x0 ? fmax(out[0], x1 - x0) : out[0];
        out[1] = y1 > y0 ? fmax(out[1], y1 - y0) : out[1];
    }
}

int pb_warp_find_most(struct pb_warp *warp)
{
    const size_t n = (size_t)warp->cols * (size_t)warp->rows;
    struct pb_warp_box *const box = malloc(n * sizeof *box);

    free(warp->most);
    warp->n_most = (size_t)(warp->cols > warp->rows ? warp->cols : warp->rows);
    warp->most = calloc(warp->n_most * 2, sizeof *warp->most);
    if (box == NULL || warp->most == NULL) {
        free(box);
        return -ENOMEM;
    }
    memcpy(box, warp->box, n * sizeof *box);
    for (size_t k = 0; k < warp->n_most; k++)
        most_of(warp, box, k + 1, warp->most + 2 * k);
    free(box);
    return 0;
}

void pb_warp_most(const struct pb_warp *warp, double w, double h, double *out_w, double *out_h)
{
    /* A length touches a square more than it fills, at each end. */
    const double longest = ceil((w > h ? w : h) / warp->side) + 1;
    const size_t n = longest < (double)warp->n_most ? (size_t)longest : warp->n_most;

    *out_w = warp->most[2 * (n - 1)];
    *out_h = warp->most[2 * (n - 1) + 1];
}

/* --- life ------------------------------------------------------------------------------------- */

static void fini(struct pb_warp *warp)
{
    for (uint32_t i = 1; i < warp->n_heights; i++)
        fini(&warp->above[i - 1]);
    free(warp->above);
    free(warp->tree);
    free(warp->leaf);
    free(warp->box);
    free(warp->most);
}

static void destroy(struct pb_warp *warp)
{
    fini(warp);
    free(warp);
}

int pb_warp_create(const struct pb_warp_want *want, pb_warp_points *points, void *of,
                   struct pb_warp **out_warp)
{
    struct pb_warp *const warp = calloc(1, sizeof *warp);
    int rc = -ENOMEM;

    if (warp == NULL)
        return rc;
    *warp = (struct pb_warp){.w = want->w,
                             .h = want->h,
                             .source_w = want->source_w,
                             .source_h = want->source_h,
                             .n_heights = 1,
                             .users = 1};
    rc = pb_warp_fill(warp, points, of, want);
    rc = rc ? rc : pb_warp_complete(warp);
    if (rc < 0) {
        destroy(warp);
        return rc;
    }
    measure(warp, points, of);
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
    size_t bytes = warp->n_tree * sizeof *warp->tree + warp->n_leaf * sizeof *warp->leaf +
                   (size_t)warp->cols * (size_t)warp->rows * sizeof *warp->box +
                   warp->n_most * 2 * sizeof *warp->most;

    for (uint32_t i = 1; i < warp->n_heights; i++)
        bytes += sizeof *warp->above + pb_warp_bytes(&warp->above[i - 1]);
    return bytes;
}

int pb_warp_stack(struct pb_warp *const *warps, uint32_t n_heights, double low, double step,
                  struct pb_warp **out_warp)
{
    struct pb_warp *const first = warps[0];

    first->above = calloc(n_heights - 1, sizeof *first->above);
    if (first->above == NULL) {
        for (uint32_t i = 0; i < n_heights; i++)
            destroy(warps[i]);
        return -ENOMEM;
    }
    for (uint32_t i = 1; i < n_heights; i++) {
        first->above[i - 1] = *warps[i];
        free(warps[i]);
    }
    first->n_heights = n_heights;
    first->low = low;
    first->step = step;
    pb_warp_join_boxes(first);
    const int rc = pb_warp_find_most(first);
    if (rc < 0)
        destroy(first);
    else
        *out_warp = first;
    return rc;
}
