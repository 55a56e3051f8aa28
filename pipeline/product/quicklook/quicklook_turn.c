/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/quicklook/quicklook_turn.h"

#include <math.h>

struct pb_turn pb_turn_of(const struct pb_raster_info *info)
{
    const double *d = info->orientation; /* x per column and row, y per column and row */
    struct pb_turn turn = {false, false, false};
    if (!info->has_orientation)
        return turn;
    turn.transposed = fabs(d[1]) > fabs(d[0]) && fabs(d[2]) > fabs(d[3]);
    turn.flip_cols = (turn.transposed ? d[1] : d[0]) < 0;
    turn.flip_rows = (turn.transposed ? d[2] : d[3]) > 0;
    return turn;
}

size_t pb_turn_pixel(const struct pb_turn *turn, int32_t w, int32_t h, int32_t x, int32_t y,
                     size_t row_px)
{
    size_t across = (size_t)(turn->flip_cols ? w - 1 - x : x);
    size_t down = (size_t)(turn->flip_rows ? h - 1 - y : y);
    return turn->transposed ? across * row_px + down : down * row_px + across;
}

void pb_turn_corners(const struct pb_turn *turn, int8_t out[4])
{
    static const int8_t stored[2][2] = {{0, 3}, {1, 2}}; /* [row][column] */
    for (int i = 0; i < 4; i++) {
        const bool across = (i == 1 || i == 2) != turn->flip_cols;
        const bool down = (i >= 2) != turn->flip_rows;
        out[i] = turn->transposed ? stored[across][down] : stored[down][across];
    }
}

const char *pb_turn_text(const struct pb_turn *turn)
{
    static const char *const texts[2][2][2] = {
        {{"as stored", "columns reversed"}, {"rows reversed", "rows and columns reversed"}},
        {{"transposed", "transposed, columns reversed"},
         {"transposed, rows reversed", "transposed, rows and columns reversed"}}};
    return texts[turn->transposed][turn->flip_rows][turn->flip_cols];
}
