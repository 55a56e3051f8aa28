/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_MEDIAN_H
#define PB_FOCAL_MEDIAN_H
/* Medians of 3 x 3 and 5 x 5 pixels on a CPU, whose comparisons fit into registers: beside the
 * network of rank_network.h they are two to three times as fast, because that loads and stores
 * every value that it compares. Any thread. */
#include "kernels/focal/focal.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether this is PB_FOCAL_RANK of such a window and of its middle. */
bool pb_focal_is_small_median(const struct pb_focal *focal);
/* The medians of w windows beside each other into out. window: the upper left pixel of the first
 * one; stride: of its rows, in pixels. A window with an invalid pixel gives an invalid one. */
void pb_focal_small_median_row(int32_t side, const float *window, int32_t stride, int32_t w,
                               float *out);
#endif
