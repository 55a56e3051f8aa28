/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LINE_TIMES_H
#define PB_LINE_TIMES_H
/* The product line_times: a table of the lines of a stream. */
#include "config/product_config.h"

struct pb_line_times_config {
    struct pb_product_config product;
};
#endif
