/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_ENGINE_H
#define PB_PLAN_ENGINE_H
/* Decides which limits of the engines hold (pipeline/device/engine_limits.def). Pure; any thread.
 */
#include "pipeline/device/engine_limits.h"
#include "pipeline/plan/plan.h"

/* A pass for an engine, or one of its files. */
struct pb_engine_case {
    const struct pb_plan *plan;
    const struct pb_plan_request *request;
    int32_t side; /* GPU: side of tiles; 0: none has planes that are small enough */
    const struct pb_raster_info *info; /* FILE */
};

/* Reason why the engine does not do it, which is the first row of the table that holds; NULL: it
 * does, unless a limit of memory or shared memory holds, which the engine's own module finds.
 * Static, or a text of the request. */
const char *pb_engine_refuses(enum pb_engine_name engine, const struct pb_engine_case *facts);

/* An engine that a plan does not use, or uses in part. */
struct pb_engine_reason {
    enum pb_engine_name engine;
    const char *reason;
};
enum { PB_ENGINE_REASONS_MAX = PB_ENGINES };
/* Lists them, except those of products, with the reasons. Returns the count. */
size_t pb_engine_reasons(const struct pb_plan *plan, const struct pb_config *config,
                         struct pb_engine_reason out[PB_ENGINE_REASONS_MAX]);
#endif
