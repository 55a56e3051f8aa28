/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ROOM_H
#define PB_RUN_ROOM_H
/* The space that the products of a run take, before the first pixel is read. Without compression it
 * is known. Compressed ones may be of any size: a thousandth is the most that deflate makes of
 * anything, so a run is refused where that is too much; the rest is seen while it writes. */
#include "pipeline/product/product.h"
#include "pipeline/run/base/run_options.h"

struct pb_run_room {
    uint64_t exact, packed; /* bytes of files without compression; of others before theirs */
};

/* Adds the products of a scene or of one tile; after pb_run_make_plan(). */
void pb_run_room_add(struct pb_run_room *room, const struct pb_product_env *env);
/* output.limit: more than limits.output, or than the whole file system of the products;
 * output.full: than is free there. */
int pb_run_room_check(const struct pb_run_room *room, const struct pb_run_options *options,
                      struct pb_err *err);
#endif
