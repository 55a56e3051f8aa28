/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_HEIGHTS_H
#define PB_PLAN_HEIGHTS_H
#include "pipeline/plan/plan.h"

/* Bands that are heights of the ground for a step: the grids of their files, and the range of their
 * values in the area of the scene, which is read for that. Thread: that of the plan. */

/* Range of a band in an area of its file. */
struct pb_plan_heights_seen {
    uint32_t input;
    struct pb_rect area; /* w 0: no area was read */
    double range[2];
};

/* Bands of the pipeline's files; all borrowed. */
struct pb_plan_heights {
    const struct pb_plan_request *request;
    const struct pb_chain_input *input;
    const int32_t *number; /* band number in its file, from 1 */
    const uint32_t *file;  /* 0: the scene's file; else the number in request->others, from 1 */
    struct pb_err err;     /* why pixels could not be read; zero at first */
    int rc;
    struct pb_plan_heights_seen seen; /* zero at first */
};

/* heights must not change while the result is used. */
struct pb_ground_heights pb_plan_heights(struct pb_plan_heights *heights);
#endif
