/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Check of the tree and the leaves of a warp, and the boxes that follow from them. A process that
 * computes for another gets these tables from it: an index beyond a table, or a position outside
 * the box of its square, would make a kernel read foreign memory. Therefore indices are checked,
 * and boxes, which decide which part of a scene is in a tile, are made here and never sent.
 *
 * pb_warp_create() cuts squares level by level, and numbers entries and leaves in that order. A
 * table of another order is refused, which excludes cycles and entries with two parents. */
#include "kernels/resample/warp_pixel.h"
#include "kernels/resample/warp_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define QUARTERS  4
#define TORN_MORE 2
#define FAR_PX    1e8 /* limit of positions, whose rounding is less than ROUNDING_PX then */
#define ROUNDING_PX                                                                                \
    1e-6 /* distance by which rounded sums may leave the box of a square's corners */
#define SCALE_MOST 1e9

/* --- the check -------------------------------------------------------------------------------- */

/* Numbers that the next entry of each kind must have. */
struct order {
    const struct pb_warp *warp;
    size_t child, leaf;
    size_t n_torn;
};

static bool is_near(const struct pb_warp_leaf *leaf, int n)
{
    bool near = true;

    for (int i = 0; i < n; i++)
        near = near && fabs(leaf->x[i]) <= FAR_PX && fabs(leaf->y[i]) <= FAR_PX;
    return near;
}

/* size: of the entry's square. */
static bool take_entry(struct order *o, uint32_t entry, double size)
{
    const struct pb_warp *const w = o->warp;
    const bool is_torn = (entry & PB_WARP_TORN) != 0;

    if (entry == PB_WARP_VOID)
        return true;
    if ((entry & PB_WARP_BRANCH) != 0) {
        const size_t n = is_torn ? QUARTERS + TORN_MORE : QUARTERS;

        if (size < 1.0 || (is_torn && size != 1.0) || PB_WARP_CHILD(entry) != o->child ||
            w->n_tree - o->child < n)
            return false;
        o->child += n;
        o->n_torn += is_torn;
        return true;
    }
    if (entry != o->leaf || o->leaf >= w->n_leaf)
        return false;
    return is_near(&w->leaf[o->leaf++], size < 1.0 ? 1 : PB_WARP_KNOWN);
}

/* The quarters of the pixels from `low` on, which are cut no further. */
static bool take_half_pixels(struct order *o, size_t low, size_t end)
{
    const uint32_t *const tree = o->warp->tree;
    bool sound = true;

    for (size_t i = low; i < end && sound; i++)
        for (uint32_t k = 0; k < QUARTERS && sound; k++)
            if (tree[i] != PB_WARP_VOID && (tree[i] & PB_WARP_BRANCH) != 0)
                sound = take_entry(o, tree[PB_WARP_CHILD(tree[i]) + k], 0.5);
    return sound;
}

/* The pieces of torn pixels, which follow all other leaves. */
static bool take_pieces(struct order *o, size_t low, size_t end)
{
    const struct pb_warp *const w = o->warp;

    for (size_t i = low; i < end; i++) {
        const bool is_torn = w->tree[i] != PB_WARP_VOID && (w->tree[i] & PB_WARP_TORN) != 0;
        const uint32_t *const more = &w->tree[is_torn ? PB_WARP_CHILD(w->tree[i]) + QUARTERS : 0];

        if (!is_torn)
            continue;
        if (more[0] != o->leaf || more[1] > w->n_leaf - o->leaf)
            return false;
        for (uint32_t k = 0; k < more[1]; k++)
            if (!is_near(&w->leaf[o->leaf++], PB_WARP_CORNERS))
                return false;
    }
    return true;
}

static bool is_scale(double scale)
{
    return scale >= 0 && scale <= SCALE_MOST;
}

bool pb_warp_is_sound(const struct pb_warp *warp)
{
    struct pb_warp laid = {.w = warp->w, .h = warp->h};

    if (warp->w < 1 || warp->h < 1 || warp->source_w < 1 || warp->source_h < 1 ||
        warp->source_w > FAR_PX || warp->source_h > FAR_PX || !is_scale(warp->scale_x) ||
        !is_scale(warp->scale_y) || warp->n_tree > PB_WARP_CHILD(UINT32_MAX) ||
        warp->n_leaf > PB_WARP_CHILD(UINT32_MAX))
        return false;
    pb_warp_lay(&laid);
    const size_t cells = (size_t)laid.cols * (size_t)laid.rows;
    struct order o = {.warp = warp, .child = cells};
    size_t low = 0, end = cells;
    bool sound = warp->n_tree >= cells;

    for (double size = laid.side; sound && size >= 1.0 && low < end; size /= 2) {
        for (size_t i = low; i < end && sound; i++)
            sound = take_entry(&o, warp->tree[i], size);
        if (sound && size == 1.0)
            sound = take_half_pixels(&o, low, end) && take_pieces(&o, low, end);
        low = end;
        end = o.child;
    }
    return sound && o.child == warp->n_tree && o.leaf == warp->n_leaf && o.n_torn == warp->n_torn;
}

/* --- boxes ------------------------------------------------------------------------------------ */

/* Limit of the distance by which a parabola leaves the box of its three points. */
static double bend(const double *v)
{
    double most = 0;

    for (int i = 0; i < 3; i++)
        most = fmax(most, fmax(fabs(v[3 * i] - 2 * v[3 * i + 1] + v[3 * i + 2]),
                               fabs(v[i] - 2 * v[3 + i] + v[6 + i])));
    return most;
}

static void add_leaf(const struct pb_warp_leaf *leaf, int n, double more, struct pb_warp_box *box)
{
    for (int i = 0; i < n; i++) {
        const struct pb_warp_box at = {leaf->x[i] - more, leaf->y[i] - more, leaf->x[i] + more,
                                       leaf->y[i] + more};

        pb_warp_box_join(box, &at);
    }
}

/* Adds the box of a square's positions. Squares of half a pixel have one position. */
static void add_square(const struct pb_warp *warp, uint32_t entry, double size,
                       struct pb_warp_box *box)
{
    if (entry == PB_WARP_VOID)
        return;
    if ((entry & PB_WARP_BRANCH) == 0) {
        const struct pb_warp_leaf *const leaf = &warp->leaf[entry];
        const double more = size < 1.0 ? 0 : fmax(bend(leaf->x), bend(leaf->y));

        add_leaf(leaf, size < 1.0 ? 1 : PB_WARP_KNOWN, ROUNDING_PX + more, box);
        return;
    }
    const uint32_t *const child = &warp->tree[PB_WARP_CHILD(entry)];
    for (int i = 0; i < QUARTERS; i++)
        add_square(warp, child[i], size / 2, box);
    for (uint32_t k = 0; (entry & PB_WARP_TORN) != 0 && k < child[QUARTERS + 1]; k++)
        add_leaf(&warp->leaf[child[QUARTERS] + k], PB_WARP_CORNERS, ROUNDING_PX, box);
}

int pb_warp_complete(struct pb_warp *warp)
{
    pb_warp_lay(warp);
    const size_t cells = (size_t)warp->cols * (size_t)warp->rows;

    free(warp->box);
    warp->box = malloc(cells * sizeof *warp->box);
    if (warp->box == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < cells; i++) {
        warp->box[i] = (struct pb_warp_box){INFINITY, INFINITY, -INFINITY, -INFINITY};
        add_square(warp, warp->tree[i], warp->side, &warp->box[i]);
    }
    return pb_warp_find_most(warp);
}
