/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Tile geometry and visiting orders.
 *
 * The Z curve runs over cells of 2x2 tiles. Cells outside the image have no numbers: unit u
 * is the u-th cell of the curve inside the image. It is found by descending the quadtree: the
 * count of cells of a quadrant inside the image is a product of two clipped lengths, so every step
 * either skips a whole quadrant or enters it. At most 31 steps, no table, and a 1 x 10000 grid has
 * 5000 units.
 *
 * Rows are visited in stripes: all stripes but the last have the same units, so a unit is found by
 * division. */
#include "pipeline/grid/tile.h"

#include <errno.h>

static int32_t parts(int32_t length, int32_t side)
{
    return length / side + (length % side != 0);
}

int pb_grid_init(struct pb_grid *grid, int32_t image_w, int32_t image_h, int32_t side_px)
{
    if (image_w < 1 || image_h < 1 || side_px < 1)
        return -EINVAL;
    int32_t cols = parts(image_w, side_px), rows = parts(image_h, side_px);
    if ((int64_t)cols * rows > INT32_MAX)
        return -EINVAL;
    *grid = (struct pb_grid){image_w, image_h, side_px, cols, rows, 0, 0};
    return 0;
}

uint32_t pb_grid_count(const struct pb_grid *grid)
{
    return (uint32_t)grid->cols * (uint32_t)grid->rows;
}

/* Length of the part that starts at `start`, at most `side` and at most up to `end`. */
static int32_t clipped(int64_t start, int32_t side, int32_t end)
{
    int64_t left = end - start;
    return (int32_t)(left < side ? left : side);
}

struct pb_rect pb_grid_core(const struct pb_grid *grid, uint32_t i)
{
    int64_t x = (int64_t)(i % (uint32_t)grid->cols) * grid->side_px;
    int64_t y = (int64_t)(i / (uint32_t)grid->cols) * grid->side_px;
    return (struct pb_rect){(int32_t)x, (int32_t)y, clipped(x, grid->side_px, grid->image_w),
                            clipped(y, grid->side_px, grid->image_h)};
}

/* Columns and rows of cells of 2x2 tiles. */
static uint32_t cell_cols(const struct pb_grid *grid)
{
    return ((uint32_t)grid->cols + 1) / 2;
}

static uint32_t cell_rows(const struct pb_grid *grid)
{
    return ((uint32_t)grid->rows + 1) / 2;
}

int32_t pb_grid_stripe_cols(const struct pb_grid *grid)
{
    bool whole = grid->stripe_cols < 1 || grid->stripe_cols > grid->cols;
    return whole ? grid->cols : grid->stripe_cols;
}

static uint32_t unit_cols(const struct pb_grid *grid)
{
    uint32_t most = (uint32_t)pb_grid_stripe_cols(grid);
    return grid->unit_cols < 1 || (uint32_t)grid->unit_cols > most ? most
                                                                   : (uint32_t)grid->unit_cols;
}

/* Count of units in one row of a stripe that is `cols` wide. */
static uint32_t row_units(const struct pb_grid *grid, uint32_t cols)
{
    uint32_t each = unit_cols(grid);
    return cols / each + (cols % each != 0);
}

uint32_t pb_order_units(const struct pb_grid *grid, enum pb_order order)
{
    if (order == PB_ORDER_Z)
        return cell_cols(grid) * cell_rows(grid);
    uint32_t stripe = (uint32_t)pb_grid_stripe_cols(grid), cols = (uint32_t)grid->cols;
    return (cols / stripe * row_units(grid, stripe) + row_units(grid, cols % stripe)) *
           (uint32_t)grid->rows;
}

uint32_t pb_order_unit_max(const struct pb_grid *grid, enum pb_order order)
{
    return order == PB_ORDER_ROWS ? unit_cols(grid) : 4;
}

static uint32_t rows_unit(const struct pb_grid *grid, uint32_t u, uint32_t *out_tiles)
{
    uint32_t cols = (uint32_t)grid->cols, width = (uint32_t)pb_grid_stripe_cols(grid),
             each = unit_cols(grid), n = 0;
    uint32_t per_stripe = row_units(grid, width) * (uint32_t)grid->rows;
    uint32_t stripe = u / per_stripe, left = u % per_stripe;
    uint32_t first = stripe * width, end = first + width < cols ? first + width : cols;
    uint32_t per_row = row_units(grid, end - first);
    uint32_t row = left / per_row, col = first + left % per_row * each;
    for (; n < each && col < end; col++)
        out_tiles[n++] = row * cols + col;
    return n;
}

/* Length of the part of [start, start + side) below `end`. */
static uint64_t inside(uint64_t start, uint64_t side, uint64_t end)
{
    if (start >= end)
        return 0;
    return end - start < side ? end - start : side;
}

static void find_cell(const struct pb_grid *grid, uint32_t u, uint64_t *out_x, uint64_t *out_y)
{
    uint64_t w = cell_cols(grid), h = cell_rows(grid), x = 0, y = 0, left = u, side = 1;
    while (side < w || side < h)
        side *= 2;
    while (side > 1) {
        side /= 2;
        for (int quadrant = 0; quadrant < 4; quadrant++) {
            uint64_t qx = x + (quadrant & 1 ? side : 0), qy = y + (quadrant & 2 ? side : 0);
            uint64_t n = inside(qx, side, w) * inside(qy, side, h);
            if (left < n) {
                x = qx;
                y = qy;
                break;
            }
            left -= n;
        }
    }
    *out_x = x;
    *out_y = y;
}

uint32_t pb_order_unit(const struct pb_grid *grid, enum pb_order order, uint32_t u,
                       uint32_t *out_tiles)
{
    uint32_t cols = (uint32_t)grid->cols, rows = (uint32_t)grid->rows, n = 0;
    if (order == PB_ORDER_ROWS)
        return rows_unit(grid, u, out_tiles);
    uint64_t x, y;
    find_cell(grid, u, &x, &y);
    for (uint64_t row = 2 * y; row < 2 * y + 2 && row < rows; row++)
        for (uint64_t col = 2 * x; col < 2 * x + 2 && col < cols; col++)
            out_tiles[n++] = (uint32_t)(row * cols + col);
    return n;
}

static uint32_t rows_position(const struct pb_grid *grid, uint32_t col, uint32_t row)
{
    uint32_t cols = (uint32_t)grid->cols, width = (uint32_t)pb_grid_stripe_cols(grid);
    uint32_t first = col / width * width;
    uint32_t own = cols - first < width ? cols - first : width;
    return first * (uint32_t)grid->rows + row * own + (col - first);
}

/* The 16 bits of v at the even positions of the result. */
static uint32_t spread(uint32_t v)
{
    v = (v | v << 8) & 0x00ff00ffu;
    v = (v | v << 4) & 0x0f0f0f0fu;
    v = (v | v << 2) & 0x33333333u;
    return (v | v << 1) & 0x55555555u;
}

/* Cells and the tiles in them follow the same curve, so the descent continues to tiles. In a
 * square inside the grid, the remaining index is the interleaved bits of column and row. */
static uint32_t z_position(const struct pb_grid *grid, uint32_t col, uint32_t row)
{
    uint64_t w = (uint64_t)grid->cols, h = (uint64_t)grid->rows, x = 0, y = 0, before = 0, side = 1;
    while (side < w || side < h)
        side *= 2;
    while (side > 1) {
        if (side <= 1u << 16 && x + side <= w && y + side <= h)
            return (uint32_t)before +
                   (spread((uint32_t)(col - x)) | spread((uint32_t)(row - y)) << 1);
        side /= 2;
        bool right = col >= x + side, down = row >= y + side;
        uint64_t left_w = inside(x, side, w), upper_h = inside(y, side, h);
        if (down) {
            before += (left_w + inside(x + side, side, w)) * upper_h;
            upper_h = inside(y + side, side, h);
        }
        if (right)
            before += left_w * upper_h;
        x += right ? side : 0;
        y += down ? side : 0;
    }
    return (uint32_t)before;
}

uint32_t pb_order_position(const struct pb_grid *grid, enum pb_order order, uint32_t col,
                           uint32_t row)
{
    return order == PB_ORDER_ROWS ? rows_position(grid, col, row) : z_position(grid, col, row);
}

static bool rows_next(const struct pb_grid *grid, uint32_t *unit, uint32_t *number)
{
    uint32_t cols = (uint32_t)grid->cols, width = (uint32_t)pb_grid_stripe_cols(grid);
    uint32_t col = *number % cols, row = *number / cols, first = col / width * width;
    uint32_t end = first + width < cols ? first + width : cols;
    if (col + 1 < end) {
        *unit += (col + 1 - first) % unit_cols(grid) == 0;
        ++*number;
        return true;
    }
    bool below = row + 1 < (uint32_t)grid->rows;
    if (!below && end == cols)
        return false;
    ++*unit;
    *number = below ? (row + 1) * cols + first : end;
    return true;
}

static bool z_next(const struct pb_grid *grid, uint32_t *unit, uint32_t *number)
{
    uint32_t tiles[4], n = pb_order_unit(grid, PB_ORDER_Z, *unit, tiles), i = 0;
    while (i < n && tiles[i] != *number)
        i++;
    if (i + 1 < n) {
        *number = tiles[i + 1];
        return true;
    }
    if (*unit + 1 == pb_order_units(grid, PB_ORDER_Z))
        return false;
    (void)pb_order_unit(grid, PB_ORDER_Z, ++*unit, tiles);
    *number = tiles[0];
    return true;
}

bool pb_order_next(const struct pb_grid *grid, enum pb_order order, uint32_t *unit,
                   uint32_t *number)
{
    return order == PB_ORDER_ROWS ? rows_next(grid, unit, number) : z_next(grid, unit, number);
}
