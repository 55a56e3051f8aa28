/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What positions on ground of any height between the lowest and the highest lie in. A parabola
 * through three positions leaves the box around these by an eighth of their second difference at
 * most; that is measured at LATTICE x LATTICE places of each square and doubled, as it hardly
 * changes from one to the next. */
#include "kernels/resample/warp_pixel.h"
#include "kernels/resample/warp_tree.h"

#include <math.h>

#define LATTICE 5
#define BEND    (2.0 / 8.0)

static struct pb_warp_at position(const struct pb_warp *level, double x, double y)
{
    const struct pb_warp_square square = pb_warp_find(level, x, y);
    const struct pb_warp_row row = pb_warp_row_of(level, &square, y);

    return pb_warp_row_at(&row, x);
}

/* The larger second difference of the two coordinates; 0 where one of the positions is nowhere. */
static double second_difference(const struct pb_warp *warp, uint32_t first, double x, double y)
{
    const struct pb_warp_at a = position(pb_warp_level(warp, first), x, y),
                            b = position(pb_warp_level(warp, first + 1), x, y),
                            c = position(pb_warp_level(warp, first + 2), x, y);
    const double most = fmax(fabs(a.x - 2 * b.x + c.x), fabs(a.y - 2 * b.y + c.y));

    return isfinite(most) ? most : 0;
}

static double most_of_cell(const struct pb_warp *warp, size_t cell)
{
    const size_t column = cell % (size_t)warp->cols, row = cell / (size_t)warp->cols;
    const double left = (double)column * warp->side, top = (double)row * warp->side;
    const double part = (double)warp->side / LATTICE;
    double most = 0;

    for (uint32_t first = 0; first + 2 < warp->n_heights; first += 2)
        for (int i = 0; i < LATTICE * LATTICE; i++) {
            const int right = i % LATTICE, down = i / LATTICE;

            most =
                fmax(most, second_difference(warp, first, left + right * part, top + down * part));
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
