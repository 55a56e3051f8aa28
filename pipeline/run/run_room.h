/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ROOM_H
#define PB_RUN_ROOM_H
/* Disk space for the products of a run, checked before the first pixel is read. Without compression
 * it is exact. Compressed products may be of any size: deflate shrinks data to a thousandth at
 * most, therefore a run is refused if even that does not fit; any other lack of space is found
 * while writing. */
#include "pipeline/product/product.h"
#include "pipeline/run/base/run_options.h"

struct pb_run_room {
    /* Bytes of uncompressed files; bytes of the others before compression. */
    uint64_t exact, packed;
};

/* Adds the products of a scene or of one tile; call it after pb_run_make_plan(). */
void pb_run_room_add(struct pb_run_room *room, const struct pb_product_env *env);
/* output.limit: the products need more than limits.output, or than the size of their file system;
 * output.full: they need more than its free space. */
int pb_run_room_check(const struct pb_run_room *room, const struct pb_run_options *options,
                      struct pb_err *err);
#endif
