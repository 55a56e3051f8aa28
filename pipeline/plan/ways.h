/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_WAYS_H
#define PB_PLAN_WAYS_H
#include "kernels/graph/way.h"
#include "pipeline/plan/served_tail.h"
#include "pipeline/plan/values.h"
#include "pipeline/raster/ground.h"

/* Ways to other coordinate systems (kernels/graph/way.h) as facts of a plan. The process with the
 * files makes them, and records them in the order of the steps; a process that computes for it
 * takes them in that order, and needs neither GDAL nor PROJ. Thread: the plan's. */

/* Made ways, and the plan that records them. */
struct pb_plan_ways_made {
    struct pb_plan *plan;
    const struct pb_plan_request *request;
    const struct pb_plan_inputs *in;
    struct pb_ground_source source;
    struct pb_ground_finder finder;
    struct pb_ground_heights heights;
    struct pb_way_maker maker;
};
/* Makes ways, and records them in the plan. All arguments are borrowed while the finder is used.
 * A range of heights that request->heights lacks is -EIO, and is recorded there. */
struct pb_way_finder pb_plan_ways_make(struct pb_plan_ways_made *of, struct pb_plan *plan,
                                       const struct pb_plan_request *request,
                                       const struct pb_plan_inputs *in);
/* Takes ways from the tail instead. A way that is impossible, or of another grid than the step
 * needs, is -EPROTO. */
struct pb_way_finder pb_plan_ways_take(struct pb_served_tail *tail);

/* Appends the recorded ways to the tail. */
int pb_plan_ways_send(const struct pb_plan *plan, struct pb_served_tail *tail, struct pb_err *err);
/* Returns false if another process would refuse the tables of a way. */
bool pb_plan_ways_are_sound(const struct pb_plan *plan);
void pb_plan_ways_free(struct pb_plan *plan);
#endif
