/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What positions on ground of any height between the lowest and the highest lie in. A parabola
 * through three positions leaves the box around these by an eighth of their second difference at
 * most. Where three trees have one leaf each, that difference is a polynomial of degree two along
 * each axis, and so nowhere larger than 1.25 * 1.25 times the largest of its values at 3 x 3
 * places. */
#include "kernels/resample/warp_pixel.h"
#include "kernels/resample/warp_tree.h"

#include <math.h>

#define TREES 3              /* whose positions a parabola goes through */
#define BEND  (1.5625 / 8.0) /* 1.25 * 1.25 / 8 */

/* A part of a square of the tree that has it as a leaf, or is cut further: left, top and side as
 * parts of the square's side. */
struct part {
    const struct pb_warp *warp;
    uint32_t entry;
    double left, top, side;
};

static bool is_branch(const struct part *p)
{
    return (p->entry & PB_WARP_BRANCH) != 0;
}

static struct part quarter_of(const struct part *p, int quarter)
{
    const int right = quarter & 1, low = quarter >> 1;

    if (is_branch(p))
        return (struct part){p->warp, p->warp->tree[PB_WARP_CHILD(p->entry) + (uint32_t)quarter], 0,
                             0, 1};
    return (struct part){p->warp, p->entry, p->left + right * p->side / 2,
                         p->top + low * p->side / 2, p->side / 2};
}

/* size: of the part, in pixels. Squares of half a pixel have one position. */
static struct pb_warp_at position(const struct part *p, double size, double across, double down)
{
    const struct pb_warp_leaf *const leaf = &p->warp->leaf[p->entry];
    struct pb_warp_at at = {leaf->x[0], leaf->y[0]};

    if (size / p->side >= 1.0)
        pb_warp_leaf_at(leaf, p->left + across * p->side, p->top + down * p->side, &at);
    return at;
}

/* The largest second difference of the coordinates at 3 x 3 places of leaves. */
static double most_of_leaves(const struct part part[TREES], double size)
{
    double most = 0;

    for (int i = 0; i < 9; i++) {
        const int column = i % 3, row = i / 3;
        const double across = column / 2.0, down = row / 2.0;
        const struct pb_warp_at a = position(&part[0], size, across, down),
                                b = position(&part[1], size, across, down),
                                c = position(&part[2], size, across, down);

        most = fmax(most, fmax(fabs(a.x - 2 * b.x + c.x), fabs(a.y - 2 * b.y + c.y)));
    }
    return most;
}

/* The same of a square that the trees cut differently; 0 where one of them has no position. Cut
 * squares are at least a pixel wide, hence the depth is bounded. */
static double most_of_square(const struct part part[TREES], double size)
{
    bool is_cut = false;
    double most = 0;

    for (int t = 0; t < TREES; t++) {
        if (part[t].entry == PB_WARP_VOID)
            return 0;
        is_cut = is_cut || is_branch(&part[t]);
    }
    if (!is_cut)
        return most_of_leaves(part, size);
    for (int quarter = 0; quarter < 4; quarter++) {
        struct part of[TREES];

        for (int t = 0; t < TREES; t++)
            of[t] = quarter_of(&part[t], quarter);
        most = fmax(most, most_of_square(of, size / 2));
    }
    return most;
}

static double most_of_cell(const struct pb_warp *warp, size_t cell)
{
    double most = 0;

    for (uint32_t first = 0; first + 2 < warp->n_heights; first += 2) {
        struct part part[TREES];

        for (uint32_t t = 0; t < TREES; t++) {
            const struct pb_warp *const level = pb_warp_level(warp, first + t);

            part[t] = (struct part){level, level->tree[cell], 0, 0, 1};
        }
        most = fmax(most, most_of_square(part, warp->side));
    }
    return most;
}

void pb_warp_join_boxes(struct pb_warp *warp)
{
    const size_t n = (size_t)warp->cols * (size_t)warp->rows;

    for (size_t i = 0; i < n; i++) {
        struct pb_warp_box *const box = &warp->box[i];

        for (uint32_t k = 1; k < warp->n_heights; k++)
            pb_warp_box_join(box, &warp->above[k - 1].box[i]);
        if (box->x1 < box->x0)
            continue;
        const double more = BEND * most_of_cell(warp, i);
        box->x0 -= more;
        box->y0 -= more;
        box->x1 += more;
        box->y1 += more;
    }
}
