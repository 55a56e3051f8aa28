/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TUNING_H
#define PB_TUNING_H
/* Measurements of a GPU: rows from which transfer plans are made instead of the built-in table
 * (wic/device/transfer_plan.h). Plain data. Thread: any. */
#include "wic/device/transfer_plan.h"

#include <stddef.h>
#include <stdint.h>

enum { PB_TUNING_ROWS_MAX = 16, PB_TUNING_DATE_BYTES = 24, PB_TUNING_WHY_BYTES = 160 };

/* Fastest plan for full tiles of this input and these results. */
struct pb_tuning_row {
    uint64_t in_bytes, out_bytes;
    struct wic_transfer_row plan;
    uint64_t rate;   /* measured, bytes of input a second */
    uint64_t copies; /* rate of copies of these tiles alone, both directions; 0: not measured */
};

struct pb_tuning {
    uint32_t n_rows;                 /* 0: no measurements */
    char date[PB_TUNING_DATE_BYTES]; /* "2026-11-21T08:15Z"; "" = no measurements */
    char why[PB_TUNING_WHY_BYTES];   /* reason why a file of measurements was ignored; "" = not
                                        ignored */
    struct pb_tuning_row rows[PB_TUNING_ROWS_MAX];
};

/* Finds the row measured with the most similar tile: first by the ratio of input to results,
 * then by size. NULL: no measurements. */
const struct pb_tuning_row *pb_tuning_find(const struct pb_tuning *tuning, uint64_t in_bytes,
                                           uint64_t out_bytes);
#endif
