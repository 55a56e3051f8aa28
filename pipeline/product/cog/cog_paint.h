/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COG_PAINT_H
#define PB_COG_PAINT_H
/* Painter of a COG that is a picture, from its configuration alone. Pure, except for memory; any
 * thread. */
#include "pipeline/paint/painter.h"
#include "pipeline/product/cog/cog.h"

struct pb_product_check;

/* Returns true if pixels of a product of n_bands, including shade, are valid where any of its
 * bands is. */
bool pb_cog_any(const struct pb_cog_config *config, uint32_t n_bands);
/* Ramp of a picture over its range, or over 0 to 1 with gamma. NULL: no ramp, or out of memory. */
struct pb_ramp_table *pb_cog_ramp(const struct pb_cog_config *config);
/* ramp may be NULL for the plan, which needs only the count of channels. */
struct pb_painter pb_cog_painter(const struct pb_cog_config *config, uint32_t n_bands,
                                 const struct pb_ramp_table *ramp);
/* Fills config->steps of a picture whose keys are checked. */
void pb_cog_find_steps(struct pb_cog_config *config, const struct pb_product_check *check);
#endif
