/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAID_BLOCKS_H
#define PB_SAID_BLOCKS_H
/* Block sizes and layouts that the GPU owner receives, to decode blocks as files store them and to
 * place their pixels without the files. */
#include "pipeline/plan/served.h"
#include "pipeline/raster/raw_blocks.h"

/* Adds the layouts of a plan's sources to the request, and the sizes of their blocks to its tail.
 */
int pb_said_blocks_make(const struct pb_plan *plan, const struct pb_raster *const *raster,
                        struct pb_served_request *request, struct pb_served_tail *tail,
                        struct pb_err *err);

/* Receiver's side: blocks of each source of a plan that was made from this request, without
 * positions in files. */
struct pb_said_blocks {
    struct pb_raw_blocks blocks[PB_FILES_MAX];
    struct pb_block_layout layout[PB_FILES_MAX], mask[PB_FILES_MAX];
    struct pb_block_fill fill[PB_FILES_MAX];
};
/* tail: the sizes are next. service.protocol: they do not fit the layouts. The result is the
 * caller's, released by pb_said_blocks_free. */
int pb_said_blocks_take(const struct pb_plan *plan, const struct pb_served_request *request,
                        struct pb_served_tail *tail, struct pb_err *err,
                        struct pb_said_blocks **out);
void pb_said_blocks_free(struct pb_said_blocks *said); /* NULL is fine */
#endif
