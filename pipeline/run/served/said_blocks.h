/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAID_BLOCKS_H
#define PB_SAID_BLOCKS_H
/* What the process that owns a device is told of the blocks that come to it as files store them:
 * enough to decode them and to put their pixels in their places, without the files. */
#include "pipeline/plan/plan_served.h"
#include "pipeline/raster/raw_blocks.h"

/* Adds the layouts of a plan's sources to the request; *out_stored is the caller's, free(). */
int pb_said_blocks_make(const struct pb_plan *plan, const struct pb_raster *const *raster,
                        struct pb_served_request *request, struct pb_err *err,
                        uint32_t **out_stored, uint32_t *out_n);

/* The other side: blocks of each source of a plan that was made of this request, without places in
 * files. */
struct pb_said_blocks {
    struct pb_raw_blocks blocks[PB_FILES_MAX];
    struct pb_block_layout layout[PB_FILES_MAX];
    struct pb_block_fill fill[PB_FILES_MAX];
};
/* service.protocol: the sizes do not fit the layouts. Everything is the caller's, free with fini.
 */
int pb_said_blocks_take(const struct pb_plan *plan, const struct pb_served_request *request,
                        const struct pb_served_stored *stored, struct pb_err *err,
                        struct pb_said_blocks **out);
void pb_said_blocks_free(struct pb_said_blocks *said); /* NULL is fine */
#endif
