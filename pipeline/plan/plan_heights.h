/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_HEIGHTS_H
#define PB_PLAN_HEIGHTS_H
/* Bands that are heights of the ground for a step: where their files lie, and which values they
 * have in the area of the scene, which are read for it. Thread: that of the plan. */
#include "pipeline/plan/plan.h"

/* The range that a band has in an area of its file. */
struct pb_plan_heights_seen {
    uint32_t input;
    struct pb_rect area; /* w 0: nothing was seen */
    double range[2];
};

/* The bands of the pipeline's files; all borrowed. */
struct pb_plan_heights {
    const struct pb_plan_request *request;
    const struct pb_chain_input *input;
    const int32_t *number; /* in its file, from 1 */
    const uint32_t *file;  /* 0: the scene's, else of request->others, from 1 */
    struct pb_err err;     /* why pixels could not be read; zero at first */
    int rc;
    struct pb_plan_heights_seen seen; /* zero at first */
};

/* heights stays as it is while the result is used. */
struct pb_ground_heights pb_plan_heights(struct pb_plan_heights *heights);
#endif
