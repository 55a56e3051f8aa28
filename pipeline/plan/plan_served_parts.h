/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SERVED_PARTS_H
#define PB_PLAN_SERVED_PARTS_H
/* Functions that the files of plan_served.h share. */
#include "pipeline/plan/plan_served.h"

/* Returns true if the numbers of the other process are possible for the pipeline of base. */
bool pb_served_is_sound(const struct pb_served_request *said, const struct pb_plan_request *base);
/* The same for facts of the tail. */
bool pb_served_is_rule(const struct pb_calibrated *rule);
bool pb_served_is_area(const struct pb_served_request *said, const struct pb_plan_area *area,
                       const struct pb_pipeline_config *pipeline);
bool pb_served_is_unit(const struct pb_ground_unit *unit);
/* True if x is of the size of coordinates and scales on a raster. */
bool pb_served_is_near(double x);
/* Bytes of all slots of a pass. */
uint64_t pb_served_slots_bytes(const struct pb_plan *pass);
#endif
