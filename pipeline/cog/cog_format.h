/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_FORMAT_H
#define PB_COG_FORMAT_H
/* Derives the format of a COG's blocks from its options, and checks these. Pure; any thread. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/cog_writer.h"

/* 0, or pipeline.product. err may be NULL. */
int pb_cog_format(const struct pb_cog_options *options, struct pb_err *err,
                  struct pb_block_format *out);
/* Count of overview levels. */
uint32_t pb_cog_overviews(const struct pb_cog_options *options);
#endif
