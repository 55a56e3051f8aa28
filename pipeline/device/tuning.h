/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNING_H
#define PB_TUNING_H
/* What was measured of a GPU: the rows by which transfer plans are made instead of those of the
 * built-in table (wic/device/transfer_plan.h). Plain data. Thread: any. */
#include "wic/device/transfer_plan.h"

#include <stddef.h>
#include <stdint.h>

enum { PB_TUNING_ROWS_MAX = 16, PB_TUNING_DATE_BYTES = 24, PB_TUNING_WHY_BYTES = 160 };

/* A full tile of this input and these results was fastest by this row. */
struct pb_tuning_row {
    uint64_t in_bytes, out_bytes;
    struct wic_transfer_row plan;
    uint64_t rate;   /* measured, bytes of input a second */
    uint64_t copies; /* the same for copies of these tiles alone, both ways; 0: not measured */
};

struct pb_tuning {
    uint32_t n_rows;                 /* 0: nothing was measured */
    char date[PB_TUNING_DATE_BYTES]; /* "2026-11-21T08:15Z"; "" = nothing was measured */
    char why[PB_TUNING_WHY_BYTES];   /* why a file of measurements was ignored; "" = it was not */
    struct pb_tuning_row rows[PB_TUNING_ROWS_MAX];
};

/* The row that was measured with the tile most like this one: first by the ratio of input to
 * results, then by size. NULL: nothing was measured. */
const struct pb_tuning_row *pb_tuning_find(const struct pb_tuning *tuning, uint64_t in_bytes,
                                           uint64_t out_bytes);
#endif
