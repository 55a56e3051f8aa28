/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_CACHE_H
#define PB_PLAN_CACHE_H
/* How decoded pixels are shared among readers: part of making a plan (see plan_cache.c). Pure. */
#include "pipeline/raster/block_cache.h"
#include "pipeline/plan/plan.h"

/* Whether tiles are read straight into their slots, because no two of them share a block. */
bool pb_plan_reads_direct(const struct pb_plan *plan, const struct pb_raster_info *info);
/* For the order, stripes and readers of the plan. growth: 2^growth times the usual rows a cell; for
 * pb_plan_cache_grow(). */
struct pb_plan_decoding pb_plan_cache(const struct pb_plan *plan, const struct pb_raster_info *info,
                                      uint32_t growth);
/* Whether taller cells mean less decoding, and how often they can be doubled. */
uint32_t pb_plan_cache_grow(const struct pb_plan *plan, const struct pb_raster_info *info);
/* The options of the block cache. */
struct pb_block_cache_options pb_plan_cache_options(const struct pb_plan *plan, size_t source,
                                                    enum pb_plan_part part);
/* What pb_plan_cache() does, for all sources of a chain whose products are on a grid of their own:
 * tiles meet blocks anywhere, so that every source has cells. */
struct pb_plan_decoding pb_plan_cache_mapped(const struct pb_plan *plan,
                                             const struct pb_plan_request *request);
#endif
