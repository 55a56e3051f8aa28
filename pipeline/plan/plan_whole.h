/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_WHOLE_H
#define PB_PLAN_WHOLE_H
#include "pipeline/plan/plan.h"

/* For the chain, sources, sums, gate and kind of memory of the plan: decides if blocks are sent to
 * the GPU as they are stored, or why not. An existing why_not of the plan is kept. Arithmetic only.
 */
struct pb_plan_whole pb_plan_whole(const struct pb_plan *plan,
                                   const struct pb_plan_request *request);
/* Returns true if GPU decoding is useless for a plan whose plan->out is known: the host would
 * decode every block and make every product. Then whole.host_why is the reason. */
bool pb_plan_whole_is_vain(const struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if n_cores are a considerable part of the speed that they and a GPU with `streams`
 * decoding streams have together, so that both should decode. */
bool pb_plan_whole_shares(uint32_t streams, double n_cores);
/* For a pass that leaves its pixels on the GPU: also reads the bands that only later passes need,
 * after the pass's own, for files that are alone in a window, if there is room.
 * False: nothing changes. */
bool pb_plan_whole_widen(struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if the pass before has left all pixels on the GPU that a pass reads. */
bool pb_plan_whole_holds(const struct pb_plan *before, const struct pb_plan *plan);
/* Memory of the readers, for the plan's number of them, that decode some of the blocks. */
struct pb_plan_decoding pb_plan_whole_decoding(const struct pb_plan *plan,
                                               const struct pb_plan_request *request);
#endif
