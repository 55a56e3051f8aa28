// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_ACTIVATOR_CUH
#define WIC_ACTIVATOR_CUH
// The Activator: one warp per block polls the ready board for the tile of the block's next piece,
// copies the piece into a stage and opens the barrier at which the working warps are parked.
#include "wic/device/stage.cuh"

// The credit limiter. The link needs some 100 KB in flight to be busy; with much more it gets
// slower, as the reads of many blocks then reach the host's memory out of order. So piece g is
// pulled only when piece g - pulls has arrived: the bytes in flight are bounded and contiguous.
// Each block counts the pieces it has pulled or skipped; the count of the block that pulls piece g
// - pulls is polled along with the ready board.
struct wic_credits {
    uint64_t passed = 0; // pieces of this block

    __device__ uint64_t *own(const wic_view &view) const
    {
        return view.passed + blockIdx.x;
    }
    __device__ const uint64_t *ahead(const wic_view &view, uint32_t pulls) const
    {
        return view.passed + blockIdx.x - pulls + (blockIdx.x < pulls ? gridDim.x : 0);
    }
    // Whether the count of that block lets the next piece pass.
    __device__ bool open(uint32_t pulls, uint64_t count) const
    {
        return blockIdx.x < pulls ? count >= passed : count > passed;
    }
    __device__ void pass(const wic_view &view)
    {
        passed++;
        if (wic_lane() == 0) {
            wic_post_device(own(view), passed);
        }
    }
};

// By how many tiles the tile in this word of the ready board is after `tile`; < 0: it is before, or
// there is none.
__device__ __forceinline__ int32_t wic_tiles_ahead(uint64_t word, uint64_t tile)
{
    return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) -
                                static_cast<uint32_t>(tile + 1));
}

// Waits until the tile is on the ready board and the credit limiter is open; returns the low half
// of its word (size, and whether a copy engine brought it), or UINT64_MAX: leave. Adds the time
// without the tile to *starved.
//
// The polls are relaxed, and the word is loaded once more when it is there: a load that acquires
// empties the L1 cache of the multiprocessor, which other kernels use.
//
// A short tile without a piece for this block may be done before the block reads its word, and the
// word may already hold the tile one ring further on. That one is posted only when this one is
// done, so no units are left: returns 0.
__device__ inline uint64_t wic_ready_board_wait(const wic_view &view, uint64_t tile,
                                                const wic_credits &credits, uint64_t *starved)
{
    const uint32_t lane = wic_lane();
    const uint64_t *word = lane == 0   ? &view.ready_board[tile & view.ring_mask]
                           : lane == 1 ? &view.state->end
                           : lane == 2 ? credits.ahead(view, view.plan.pulls)
                                       : &view.state->beat;
    uint64_t last = 0, since = 0, beat = 0, beat_at = 0;
    for (uint32_t idle = 0;; idle++) {
        uint64_t value = wic_peek_device(word);
        if (idle % 1024 != 0 && !__any_sync(~0u, value != last)) {
            wic_nap(idle);
            continue;
        }
        last = value;
        const int32_t ahead = wic_tiles_ahead(value, tile);
        const bool here = ahead >= 0;
        const bool over = tile >= value || value == WIC_LINK_ABORT;
        const bool open = credits.open(view.plan.pulls, value);
        // What is in device memory does not cross the link: it needs no credits.
        const bool near = lane == 0 && ahead == 0 && (value & WIC_LINK_ENGINE) != 0;
        const uint32_t seen = __ballot_sync(~0u, lane == 0   ? here
                                                 : lane == 1 ? over
                                                             : lane == 2 && open) |
                              __ballot_sync(~0u, near) << 2;
        if (seen & 2 || seen == 5) {
            *starved += since ? wic_now() - since : 0;
            value = wic_load_device(word);
            const uint32_t low =
                wic_tiles_ahead(value, tile) == 0 ? static_cast<uint32_t>(value) : 0;
            return seen == 5 ? __shfl_sync(~0u, low, 0) : UINT64_MAX;
        }
        const uint64_t now = wic_warp_now(), new_beat = __shfl_sync(~0u, value, 3);
        if (seen & 1) { // the tile is there and waits for credits: the link is busy
            *starved += since ? now - since : 0;
            since = 0;
        } else {
            since = since ? since : now;
        }
        if (beat_at == 0 || new_beat != beat) {
            beat = new_beat;
            beat_at = now;
        } else if (now - beat_at > 2 * view.beat_ns) {
            return UINT64_MAX; // the Monitor has ended
        }
    }
}

// How much of a tile there is, from the low half of its word.
struct wic_tile_size {
    uint32_t units, unit_bytes;

    __device__ wic_tile_size(const wic_transfer_plan &plan, uint32_t low)
        : units(low & WIC_LINK_UNITS_MAX), unit_bytes(plan.in_unit)
    {
        if ((low & WIC_LINK_SHORT) != 0) {
            unit_bytes -= 16 * (units >> WIC_LINK_SHORT_UNITS);
            units &= (1u << WIC_LINK_SHORT_UNITS) - 1;
        }
    }
};

// Iterates over this block's (tile, piece) pairs: the piece index advances by gridDim.x.
struct wic_cursor {
    uint64_t tile;
    uint32_t piece;

    __device__ void next(uint32_t pieces)
    {
        piece += gridDim.x;
        tile += piece / pieces;
        piece %= pieces;
    }
};

__device__ __forceinline__ void
wic_fill_stage(const wic_block &block, const wic_stage_position &position, const wic_stage &content)
{
    if (wic_lane() == 0) {
        volatile wic_stage *stage = block.stage(position.stage);
        stage->tile = content.tile;
        stage->in = content.in;
        stage->out = content.out;
        stage->piece = content.piece;
        stage->pieces = content.pieces;
        stage->units = content.units;
        stage->lane = content.lane;
    }
}

// A piece of a tile that is on the ready board: where the tile's slots begin, and the low half of
// its word.
struct wic_found {
    wic_cursor at;
    uint64_t in_at, out_at;
    uint32_t low, lane;
};

// Fills the stage with the piece and opens its barrier. Returns the bytes pulled; UINT32_MAX: a
// short tile, which has no such piece.
__device__ __forceinline__ uint32_t wic_fetch(const wic_block &block,
                                              const wic_stage_position &position,
                                              const wic_found &found)
{
    const wic_view &view = block.view;
    const wic_transfer_plan &plan = view.plan;
    const uint32_t tile_units = plan.piece_units * plan.pieces;
    const uint32_t before = found.at.piece * plan.piece_units;
    const wic_tile_size size(plan, found.low);
    const uint32_t units = size.units;
    const bool engine = (found.low & WIC_LINK_ENGINE) != 0;
    const unsigned char *in = (engine ? view.in_copies : view.in) + found.in_at;
    unsigned char *out = (engine ? view.out_copies : view.out) + found.out_at;
    if (before >= units && found.at.piece > 0) {
        return UINT32_MAX; // an empty tile has one piece
    }
    const uint32_t mine = min(units - before, plan.piece_units);
    const uint32_t pieces = units + plan.piece_units > tile_units
                                ? plan.pieces
                                : max(1u, (units + plan.piece_units - 1) / plan.piece_units);
    wic_fill_stage(block, position,
                   {found.at.tile, in, out, found.at.piece, pieces, mine, found.lane});
    const wic_copy_request piece = {block.in(position.stage),
                                    in + static_cast<uint64_t>(before) * size.unit_bytes,
                                    (mine * size.unit_bytes + 15) / 16 * 16};
    const wic_copy_request user = {block.user(position.stage),
                                   (engine ? view.user_copies : view.user) +
                                       (found.at.tile & view.ring_mask) * plan.user_bytes,
                                   plan.user_bytes};
    wic_pull(block.bytes(position.stage), piece, user);
    wic_pulled(block.bytes(position.stage), position.round);
    wic_barrier_arrive(block.full(position.stage));
    return piece.bytes;
}

// Divisions and the wait for an empty stage come before the ready board is polled, to shorten the
// time from the tile's arrival to its transfer.
__device__ inline void wic_activate(const wic_block &block)
{
    const wic_view &view = block.view;
    const wic_transfer_plan &plan = view.plan;
    uint64_t starved = 0, pulled = 0;
    wic_cursor at = {view.first_tile + blockIdx.x / plan.pieces, blockIdx.x % plan.pieces};
    wic_credits credits;
    wic_stage_position position(view);
    bool empty = true; // the stage at `position`
    for (;; at.next(plan.pieces), credits.pass(view)) {
        const uint64_t in_at = (view.in_first + at.tile) % view.in_slots * view.in_stride;
        const uint64_t out_at = (view.out_first + at.tile) % view.out_slots * view.out_stride;
        if (!empty) {
            wic_barrier_park(block.empty(position.stage), position.round - 1);
            empty = true;
        }
        const uint64_t found = wic_ready_board_wait(view, at.tile, credits, &starved);
        if (found == UINT64_MAX) {
            break;
        }
        const uint32_t bytes =
            wic_fetch(block, position, {at, in_at, out_at, static_cast<uint32_t>(found), 0});
        if (bytes == UINT32_MAX) {
            continue;
        }
        pulled += bytes;
        position.next(plan.depth);
        empty = !position.used;
    }
    wic_fill_stage(block, position, {WIC_LEAVE, nullptr, nullptr, 0, 0, 0});
    wic_barrier_arrive(block.full(position.stage));
    if (wic_lane() == 0) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&view.state->starved_ns), starved);
        atomicAdd(reinterpret_cast<unsigned long long *>(&view.state->pulled_bytes), pulled);
    }
}
#endif
