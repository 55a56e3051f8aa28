/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SERVED_PARTS_H
#define PB_PLAN_SERVED_PARTS_H
/* Functions that the files of plan_served.h share. */
#include "pipeline/plan/plan_served.h"

/* Returns true if the numbers of the other process are possible for the pipeline of base. */
bool pb_served_is_sound(const struct pb_served_request *said, const struct pb_plan_request *base);
/* Bytes of all slots of a pass. */
uint64_t pb_served_slots_bytes(const struct pb_plan *pass);
#endif
