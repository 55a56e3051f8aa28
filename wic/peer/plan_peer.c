/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/stay.h"
#include "wic/peer/peer_inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PIECE_BYTES 16384u
#define WARPS       16u

static bool is_cut(const struct wic_peer_plan *p)
{
    if (p->chunk_bytes == 0 || p->piece_bytes == 0)
        return p->chunk_bytes == p->piece_bytes;
    if (p->transport == WIC_PEER_LETTERS && p->piece_bytes != p->chunk_bytes)
        return false;
    return p->piece_bytes % 16 == 0 && p->chunk_bytes % p->piece_bytes == 0;
}

static bool is_plan(const struct wic_peer_plan *p)
{
    return (uint32_t)p->transport < WIC_PEER_TRANSPORTS && p->lanes - 1 < WIC_PEER_LANES_MAX &&
           p->slots - 1 < WIC_PEER_SLOTS_MAX && (p->slots & (p->slots - 1)) == 0 &&
           p->depth - 1 < WIC_PEER_DEPTH_MAX && p->warps - 1 < 32 - WIC_PEER_SERVICE &&
           p->each - 1 < 2 && is_cut(p);
}

/* moved: chunks of the way before the step. */
static int check_step(const struct wic_peer_options *o, const struct wic_step *step, uint64_t moved)
{
    if (step->from >= o->parties || step->to >= o->parties || step->from == step->to)
        return wic_stay_refuse(-EINVAL, "a step from party %u to %u, of %u parties", step->from,
                               step->to, o->parties);
    if (step->first != moved)
        return wic_stay_refuse(-EINVAL, "the steps from party %u to %u have a gap", step->from,
                               step->to);
    if (o->plan.chunk_bytes > 0 && step->chunk_bytes != o->plan.chunk_bytes)
        return wic_stay_refuse(-EINVAL, "a step has chunks of %llu bytes and the plan of %u",
                               (unsigned long long)step->chunk_bytes, o->plan.chunk_bytes);
    if (step->flags != 0)
        return wic_stay_refuse(-EOPNOTSUPP, "a step has an outcome, which kernels cannot report");
    if (step->after_steps > 0)
        return wic_stay_refuse(-EOPNOTSUPP, "a step depends on another one");
    if (step->reach > 0)
        return wic_stay_refuse(-EOPNOTSUPP, "a step needs the neighbours of a chunk");
    return 0;
}

int wic_peer_check(const struct wic_peer_options *o, struct wic_peer_ways *out_ways)
{
    uint64_t moved[WIC_PARTIES_MAX][WIC_PARTIES_MAX];
    memset(moved, 0, sizeof moved);
    memset(out_ways, 0, sizeof *out_ways);
    if (o->parties < 2 || o->parties > WIC_PARTIES_MAX)
        return wic_stay_refuse(-EINVAL, "%u parties, not 2 to %u", o->parties, WIC_PARTIES_MAX);
    if (!is_plan(&o->plan))
        return wic_stay_refuse(-EINVAL, "the plan is not valid");
    if (o->steps == NULL || o->step_count == 0)
        return wic_stay_refuse(-EINVAL, "the schedule has no steps");
    for (uint32_t i = 0; i < o->parties; i++)
        if (o->party[i].kernel == NULL)
            return wic_stay_refuse(-EINVAL, "party %u has no kernel", i);
    for (size_t i = 0; i < o->step_count; i++) {
        const struct wic_step *step = &o->steps[i];
        const bool has_way = step->from < o->parties && step->to < o->parties;
        uint64_t *of = has_way ? &moved[step->from][step->to] : NULL;
        const int rc = check_step(o, step, of == NULL ? 0 : *of);
        if (rc != 0)
            return rc;
        *of += step->count;
        out_ways->is_used[step->from][step->to] = true;
    }
    return 0;
}

uint32_t wic_peer_threads(const struct wic_peer_plan *plan)
{
    return 32 * (plan->warps + WIC_PEER_SERVICE);
}

size_t wic_peer_shared_bytes(const struct wic_peer_plan *plan)
{
    const size_t staged = plan->transport == WIC_PEER_STORES ? 0 : plan->piece_bytes;
    return WIC_PEER_HEAD + plan->depth * staged;
}

size_t wic_peer_ring_bytes(const struct wic_peer_plan *plan)
{
    const bool has_letters = plan->transport == WIC_PEER_LETTERS && plan->chunk_bytes > 0;
    const size_t letters = plan->chunk_bytes / WIC_PEER_LETTER + 1;
    return (size_t)plan->lanes * plan->slots * (has_letters ? 16 * letters : plan->chunk_bytes);
}

size_t wic_peer_words_bytes(const struct wic_peer_plan *plan)
{
    return (size_t)plan->lanes * WIC_PEER_LINE;
}

int wic_peer_plan_make(uint32_t multiprocessors, uint32_t parties, uint32_t chunk_bytes,
                       enum wic_peer_transport transport, struct wic_peer_plan *out_plan)
{
    uint32_t piece = chunk_bytes < PIECE_BYTES ? chunk_bytes : PIECE_BYTES;
    if (chunk_bytes % 16 != 0 || parties == 0 || multiprocessors < parties)
        return wic_stay_refuse(-EINVAL, "chunks of %u bytes, not a multiple of 16, or %u parties",
                               chunk_bytes, parties);
    while (piece > 0 && chunk_bytes % piece != 0)
        piece -= 16;
    if (transport == WIC_PEER_LETTERS)
        piece = chunk_bytes;
    *out_plan = (struct wic_peer_plan){.transport = transport,
                                       .lanes = multiprocessors / parties,
                                       .slots = chunk_bytes > PIECE_BYTES ? 4 : 8,
                                       .depth = 3,
                                       .warps = WARPS,
                                       .each = 1,
                                       .chunk_bytes = chunk_bytes,
                                       .piece_bytes = piece};
    return 0;
}

const char *wic_peer_transport_name(enum wic_peer_transport transport)
{
    static const char *const names[] = {"stores", "bulk stores", "pull", "letters"};
    return (uint32_t)transport < WIC_PEER_TRANSPORTS ? names[transport] : "";
}

const char *wic_peer_end_text(enum wic_peer_end end)
{
    static const char *const texts[] = {
        [WIC_PEER_STAYS] = "the kernel has not left",
        [WIC_PEER_ENDED] = "all chunks were made and used",
        [WIC_PEER_STOPPED] = "the host stopped it",
        [WIC_PEER_SILENT] = "the heartbeat of the host stopped",
        [WIC_PEER_LATE] = "a wait lasted longer than its limit",
        [WIC_PEER_DESERTED] = "another block or party left early",
    };
    return (size_t)end < sizeof texts / sizeof *texts ? texts[end] : "";
}

int wic_peer_plan_print(const struct wic_peer_plan *plan, char *text, size_t bytes)
{
    return snprintf(text, bytes,
                    "%s, %u lanes of %u slots, %u a multiprocessor, pieces of %u bytes, %u deep, "
                    "%u + %u warps",
                    wic_peer_transport_name(plan->transport), plan->lanes, plan->slots, plan->each,
                    plan->piece_bytes, plan->depth, plan->warps, WIC_PEER_SERVICE);
}
