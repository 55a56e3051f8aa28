/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_WHOLE_H
#define PB_PLAN_WHOLE_H
#include "pipeline/plan/plan.h"

/* For the chain, sources, sums, gate and kind of memory of the plan: whether blocks go to the GPU
 * as they are stored, or why not. A why_not that the plan has already stays. Arithmetic only. */
struct pb_plan_whole pb_plan_whole(const struct pb_plan *plan,
                                   const struct pb_plan_request *request);
/* Whether a plan of which plan->out is known gains nothing by this way: the host decodes all, and
 * makes all products. Then whole.host_why is why it is not used. */
bool pb_plan_whole_is_vain(const struct pb_plan *plan, const struct pb_plan_request *request);
/* Whether so many cores are a good part of what they and a GPU that decodes so many streams at once
 * can do, so that both decode. */
bool pb_plan_whole_shares(uint32_t streams, double n_cores);
/* Of a pass that leaves its pixels on the GPU: files of which the passes after it read more bands
 * bring those with the others, behind the pass's own, where a window is one file and there is room.
 * False: nothing changes. */
bool pb_plan_whole_widen(struct pb_plan *plan, const struct pb_plan_request *request);
/* Whether a pass finds all pixels that it reads on the GPU, where the pass before has left them. */
bool pb_plan_whole_holds(const struct pb_plan *before, const struct pb_plan *plan);
/* What readers hold that decode some of it, for the plan's number of them. */
struct pb_plan_decoding pb_plan_whole_decoding(const struct pb_plan *plan,
                                               const struct pb_plan_request *request);
#endif
