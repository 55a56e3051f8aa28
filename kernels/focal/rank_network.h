/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANK_NETWORK_H
#define PB_RANK_NETWORK_H
/* What finds the value of one rank in all windows of a row at once: comparisons of rows of values,
 * one step after the other, without a branch that depends on a value. Each row of values belongs to
 * the columns of the image; a window's are those from its left column on. Columns are sorted once,
 * then pairs of neighbouring columns are merged, pairs of pairs and so on, each for all places; a
 * window of 7 columns is 4 + 2 + 1 of those, merged as far as the rank needs it. So most of the
 * work is shared by the windows that a column lies in. Merging is Batcher's odd-even merge (Knuth,
 * The Art of Computer Programming 3, 5.3.4); what the rank does not depend on is left out. Plain
 * data; any thread. */
#include <stdint.h>

#define PB_RANK_STEPS_MAX 4096
#define PB_RANK_ROWS_MAX  512
#define PB_RANK_NONE      UINT16_MAX

/* low[x] and high[x] become the lesser and the greater of a[x + shift_a] and b[x + shift_b]. A row
 * that is written may be one that is read. */
struct pb_rank_step {
    uint16_t a, b, low, high; /* rows; low, high: PB_RANK_NONE where it is not wanted */
    uint8_t shift_a, shift_b;
    uint8_t more; /* how many columns right of the last window's left one are made */
};

struct pb_rank_network {
    uint32_t n_steps, n_rows;
    uint16_t result; /* the row with the value of each window, at its left column plus the shift */
    uint8_t result_shift;
    struct pb_rank_step step[PB_RANK_STEPS_MAX];
};

/* For windows of side * side pixels, side odd, 3 to 15; rank from 0, the least. The first `side`
 * rows are those of the image. */
void pb_rank_network_make(int32_t side, int32_t rank, struct pb_rank_network *out);
#endif
