/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Pixels that a pass leaves on the GPU for later passes (run/whole/whole_kept.h). */
#include "pipeline/plan/plan_whole.h"

static bool has_band(const struct pb_plan_source *source, int32_t band)
{
    for (size_t k = 0; k < source->n_bands; k++)
        if (source->bands[k] == band)
            return true;
    return false;
}

static bool is_alone(const struct pb_plan *plan, size_t source)
{
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (i != source && plan->work.source[i].n_bands > 0 &&
            plan->work.source[i].window == plan->work.source[source].window)
            return false;
    return true;
}

/* Adds the bands of a source that only later passes read, after its own. */
static void add_later_bands(struct pb_plan *plan, size_t i)
{
    struct pb_plan_source *own = &plan->work.source[i];
    for (const struct pb_plan *later = plan->next; later != NULL; later = later->next)
        for (size_t k = 0; k < later->work.source[i].n_bands; k++)
            if (own->n_bands < PB_BANDS_MAX && !has_band(own, later->work.source[i].bands[k]))
                own->bands[own->n_bands++] = later->work.source[i].bands[k];
    own->n_later = own->n_bands;
}

bool pb_plan_whole_widen(struct pb_plan *plan, const struct pb_plan_request *request)
{
    struct pb_plan wide = *plan;
    bool more = false;
    for (size_t i = 0; i < plan->work.n_sources; i++)
        if (plan->work.source[i].n_bands > 0 && is_alone(plan, i)) {
            add_later_bands(&wide, i);
            more = more || wide.work.source[i].n_bands > plan->work.source[i].n_bands;
        }
    wide.engine.whole = more ? pb_plan_whole(&wide, request) : plan->engine.whole;
    if (!more || !wide.engine.whole.keeps)
        return false;
    *plan = wide;
    return true;
}

bool pb_plan_whole_holds(const struct pb_plan *before, const struct pb_plan *plan)
{
    bool all = before->engine.whole.keeps && plan->engine.whole.used;
    for (size_t i = 0; i < plan->work.n_sources && all; i++)
        for (size_t k = 0; k < plan->work.source[i].n_bands && all; k++)
            all = has_band(&before->work.source[i], plan->work.source[i].bands[k]);
    return all;
}
