/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INDEX_EXPAND_H
#define PB_INDEX_EXPAND_H
/* From a row of the index catalogue to an expression over bands. Pure text; any thread. */
#include "kernels/index/index_table.h"

/* The kernels of spyndex, the client library of the catalogue:
 * rbf exp(-(a - b)^2 / (2 sigma^2)), linear a * b, poly (a * b + c)^p. */
enum pb_index_kernel { PB_INDEX_RBF, PB_INDEX_LINEAR, PB_INDEX_POLY };

/* What constants are called in the expression, so that they cannot be mistaken for bands. */
#define PB_INDEX_CONSTANT_PREFIX "constant_"

/* Writes the row's formula with its kernel terms written out and its constants renamed. 0, or
 * -ENOSPC when bytes are too few. */
int pb_index_expand(const struct pb_index *index, enum pb_index_kernel kernel, char *text,
                    size_t bytes);
#endif
