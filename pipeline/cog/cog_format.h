/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_FORMAT_H
#define PB_COG_FORMAT_H
/* From the options of a COG to the format of its blocks, and what cannot be. Pure; any thread. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/cog_writer.h"

/* 0, or pipeline.product. err may be NULL. */
int pb_cog_format(const struct pb_cog_options *options, struct pb_err *err,
                  struct pb_block_format *out);
/* Levels of overviews. */
uint32_t pb_cog_overviews(const struct pb_cog_options *options);
#endif
