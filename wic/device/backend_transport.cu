// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Posts tiles to a running kernel and finds out what became of them. A tile that the kernel pulls
// or reads in place is announced by its doorbell word at once; one that goes by copy engine
// (backend_engine.cu) with its batch. Nothing here blocks.
#include "wic/device/link_inside.h"

#include <cstring>

namespace
{
// By how many bytes the tile's units are shorter than the plan's.
uint32_t missing_bytes(const wic_transfer_plan &plan, const wic_link_tile &tile)
{
    return tile.unit_bytes == 0 ? 0 : plan.in_unit - tile.unit_bytes;
}

// Whether the doorbell's word can say how long the tile's units are.
bool can_say(const wic_transfer_plan &plan, const wic_link_tile &tile)
{
    const uint32_t missing = missing_bytes(plan, tile);
    return tile.unit_bytes <= plan.in_unit && missing % 16 == 0 &&
           (missing == 0 ? tile.units <= WIC_LINK_UNITS_MAX
                         : tile.units >> WIC_LINK_SHORT_UNITS == 0);
}

// The kernel checks nothing: more units than this would be lost, or read and written beyond the
// slot.
bool fits(const wic_view &view, const wic_link_tile &tile)
{
    const wic_transfer_plan &plan = view.plan;
    const uint64_t units = tile.units;
    return can_say(plan, tile) && units <= static_cast<uint64_t>(plan.pieces) * plan.piece_units &&
           units * (plan.in_unit - missing_bytes(plan, tile)) <= view.in_stride &&
           units * plan.out_unit <= view.out_stride && tile.bytes <= view.in_stride &&
           tile.out_bytes <= view.out_stride;
}

uint32_t size_of(const wic_transfer_plan &plan, const wic_link_tile &tile)
{
    const uint32_t missing = missing_bytes(plan, tile);
    return missing == 0 ? tile.units
                        : WIC_LINK_SHORT | missing / 16 << WIC_LINK_SHORT_UNITS | tile.units;
}

// Accounts for the tiles before this one.
void finish_until(wic_link *link, uint64_t end)
{
    for (; link->finished < end; link->finished++) {
        link->backlog -= wic_link_posted(link, link->finished).bytes;
    }
}
} // namespace

int wic_link_post(wic_link *link, const wic_link_tile *tile)
{
    const wic_view &view = link->view;
    if (!fits(view, *tile)) {
        return -EINVAL;
    }
    const uint64_t entry = tile->number & view.ring_mask;
    if (view.plan.user_bytes > 0) {
        memcpy(link->user + entry * view.plan.user_bytes, tile->user, view.plan.user_bytes);
    }
    const uint32_t size = size_of(view.plan, *tile);
    const bool engine =
        wic_way_choose(&link->way, tile->bytes, link->backlog, link->posted_end - link->finished,
                       link->to.next != link->to.ready);
    link->posted[entry] = {tile->bytes, tile->out_bytes, size, engine};
    link->backlog += tile->bytes;
    link->posted_end = tile->number + 1;
    if (engine) {
        link->to.ready = link->posted_end;
        link->to.ready_bytes += tile->bytes;
        wic_engine_send(link);
        return link->failure;
    }
    link->to.next = link->to.ready = link->posted_end;
    const uint64_t number = static_cast<uint32_t>(tile->number + 1);
    wic_link_store(&link->doorbell[entry], number << 32 | size);
    return 0;
}

bool wic_link_computed(wic_link *link, uint64_t tile)
{
    // A later tile of the same entry may be there already.
    const uint64_t done = wic_link_load(&link->done[tile & link->view.ring_mask]);
    return static_cast<int64_t>(done - (tile + 1)) >= 0;
}

bool wic_link_done(wic_link *link, uint64_t tile)
{
    const bool engine = wic_link_posted(link, tile).engine;
    if (engine ? tile >= link->back.arrived : !wic_link_computed(link, tile)) {
        if (link->way.engine || engine) {
            wic_engine_send(link);
            wic_engine_bring_back(link);
        }
        return false;
    }
    finish_until(link, tile + 1);
    return true;
}

void wic_link_beat(wic_link *link)
{
    __atomic_fetch_add(&link->control->beat, 1, __ATOMIC_RELAXED);
    if (link->launch) {
        wic_launch_beat(link->launch);
    }
}

void wic_link_close(wic_link *link, uint64_t tiles)
{
    uint64_t open = WIC_LINK_OPEN; // not over an abort
    __atomic_compare_exchange_n(&link->control->end, &open, tiles, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

void wic_link_abort(wic_link *link)
{
    wic_link_store(&link->control->end, WIC_LINK_ABORT);
}
