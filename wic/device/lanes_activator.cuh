// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_LANES_ACTIVATOR_CUH
#define WIC_LANES_ACTIVATOR_CUH
// The Activator of a block that serves several lanes (wic/device/lanes.cuh).
#include "wic/device/lanes_monitor.cuh"

// A thread's part of the Activator's state: what is next of its lane, and the word that it polls.
// The threads of a lane hold the same but for `last` and the beat.
struct wic_seat {
    uint64_t opened = 0; // the number of the lane's last opening
    bool open = false;
    wic_cursor at = {0, 0};
    wic_credits credits;
    uint64_t in_at = 0, out_at = 0; // where the tile's slots begin
    uint64_t served = 0;            // wic/device/lane.h
    uint64_t starved = 0, pulled = 0, since = 0, beat = 0, beat_at = 0;

    __device__ static uint32_t lane()
    {
        return wic_lane() / wic_lane_words;
    }
    __device__ static uint32_t word()
    {
        return wic_lane() % wic_lane_words;
    }
    __device__ void find_slots(const wic_view &view)
    {
        in_at = (view.in_first + at.tile) % view.in_slots * view.in_stride;
        out_at = (view.out_first + at.tile) % view.out_slots * view.out_stride;
    }
};

enum class wic_event { TAKE, OPEN, LEAVE_LANE, LEAVE };

struct wic_turn {
    wic_event event;
    uint32_t lane;
    uint32_t low; // TAKE: the low half of the ready board's word
    bool below;   // TAKE: a lane of a higher priority has a piece as well
};

// One bit a lane, at its first thread.
__device__ __forceinline__ uint32_t wic_lanes_with(bool mine, uint32_t word)
{
    return __ballot_sync(~0u, mine && wic_seat::word() == word) >> word;
}

__device__ __forceinline__ uint32_t wic_first_lane(uint32_t lanes)
{
    return (__ffs(lanes) - 1) / wic_lane_words;
}

// The highest of what the lanes have.
__device__ __forceinline__ int32_t wic_highest(int32_t of_lane)
{
    for (uint32_t i = wic_lane_words; i < 32; i *= 2) {
        of_lane = max(of_lane, __shfl_xor_sync(~0u, of_lane, i));
    }
    return of_lane;
}

// The credits of this thread's lane, which is open, while `busy` lanes have tiles (one bit each):
// together they put no more on the link than one would, and share that as they share the blocks.
__device__ __forceinline__ uint32_t wic_lane_pulls(const wic_lanes_block &block,
                                                   const wic_seat &seat, uint32_t busy)
{
    const wic_view *const view = seat.open ? block.view(wic_seat::lane()) : nullptr;
    const uint32_t pulls = view ? view->plan.pulls : 1;
    if ((busy & (busy - 1)) == 0) {
        return pulls;
    }
    const bool has = (busy >> (wic_lane_words * wic_seat::lane()) & 1) != 0;
    const int32_t own = has && view ? view->priority : INT32_MIN;
    const bool below = own < wic_highest(own);
    const uint32_t high = wic_lanes_with(has && !below, 0), low = wic_lanes_with(has && below, 0);
    return wic_lane_share(pulls, __popc(high), __popc(low), below);
}

// Of the lanes that have a piece to take, that whose turn it is. *clock: of the block.
__device__ __forceinline__ uint32_t wic_choose_lane(const wic_lanes_block &block,
                                                    const wic_seat &seat, uint32_t ready,
                                                    uint64_t clock, bool *out_below)
{
    const bool has = (ready >> (wic_lane_words * wic_seat::lane()) & 1) != 0;
    const int32_t own = has ? block.view(wic_seat::lane())->priority : INT32_MIN;
    const bool below = own < wic_highest(own);
    uint64_t best =
        has ? wic_lane_key(wic_lane_start(seat.served, clock), clock, below, wic_seat::lane())
            : UINT64_MAX;
    for (uint32_t i = wic_lane_words; i < 32; i *= 2) {
        best = min(best, static_cast<uint64_t>(__shfl_xor_sync(~0u, best, i)));
    }
    const uint32_t lane = wic_lane_of_key(best);
    *out_below = __shfl_sync(~0u, below, wic_lane_words * lane);
    return lane;
}

// What a thread found in its word.
struct wic_finding {
    bool here, near, over, free, opening, end;
};

__device__ __forceinline__ wic_finding wic_judge_word(const wic_seat &seat, uint64_t value,
                                                      uint32_t pulls)
{
    wic_finding f = {};
    if (!seat.open) {
        f.opening = value != seat.opened; // of word 0
        f.end = value != WIC_LINK_OPEN;   // of word 1
        return f;
    }
    const int32_t ahead = wic_tiles_ahead(value, seat.at.tile);
    f.here = ahead >= 0;
    // What is in device memory does not cross the link: it needs no credits.
    f.near = ahead == 0 && (value & WIC_LINK_ENGINE) != 0;
    f.over = seat.at.tile >= value || value == WIC_LINK_ABORT;
    f.free = seat.credits.open(pulls, value);
    return f;
}

// The time without a tile, and whether the lane's Monitor has ended without a word (of word 3).
__device__ __forceinline__ bool wic_pass_time(wic_seat *seat, uint64_t value, uint32_t busy,
                                              uint64_t beat_ns)
{
    const uint64_t now = wic_warp_now();
    if (!seat->open) {
        return false;
    }
    if ((busy >> (wic_lane_words * wic_seat::lane()) & 1) != 0) {
        seat->starved += seat->since ? now - seat->since : 0;
        seat->since = 0; // the tile is there and waits for credits or its turn
    } else {
        seat->since = seat->since ? seat->since : now;
    }
    if (seat->beat_at == 0 || value != seat->beat) {
        seat->beat = value;
        seat->beat_at = now;
    }
    return now - seat->beat_at > 2 * beat_ns;
}

__device__ __forceinline__ const uint64_t *wic_word_of(const wic_lanes &lanes, const wic_view &view,
                                                       const wic_seat &seat, uint32_t pulls)
{
    const uint32_t word = wic_seat::word();
    if (!seat.open) {
        return word == 0 ? &lanes.open[wic_seat::lane()] : &lanes.base.state->end;
    }
    return word == 0   ? &view.ready_board[seat.at.tile & view.ring_mask]
           : word == 1 ? &view.state->end
           : word == 2 ? seat.credits.ahead(view, pulls)
                       : &view.state->beat;
}

// Whose turn it is of the lanes that are ready, with what its word of the ready board says.
__device__ __forceinline__ wic_turn wic_turn_of(const wic_lanes_block &block, const wic_seat &seat,
                                                uint32_t ready, const uint64_t *word,
                                                uint64_t clock)
{
    wic_turn turn = {wic_event::TAKE, wic_first_lane(ready), 0, false};
    if ((ready & (ready - 1)) != 0) {
        turn.lane = wic_choose_lane(block, seat, ready, clock, &turn.below);
    }
    const uint32_t first = wic_lane_words * turn.lane;
    uint32_t low = 0;
    if (wic_lane() == first) {
        const uint64_t acquired = wic_load_device(word);
        low = wic_tiles_ahead(acquired, seat.at.tile) == 0 ? static_cast<uint32_t>(acquired) : 0;
    }
    turn.low = __shfl_sync(~0u, low, first);
    return turn;
}

// Waits until something is to be done. *busy: the lanes that have tiles, as they were seen last.
// Polls and the reading of a word that is there are those of wic_ready_board_wait.
__device__ inline wic_turn wic_lanes_wait(const wic_lanes_block &block, wic_seat *seat,
                                          uint64_t clock, uint32_t *busy)
{
    const wic_lanes &lanes = block.lanes;
    const wic_view &view = *block.view(wic_seat::lane()); // of an open lane only
    const uint32_t pulls = wic_lane_pulls(block, *seat, *busy);
    const uint64_t *const word = wic_word_of(lanes, view, *seat, pulls);
    const uint64_t beat_ns = seat->open ? view.beat_ns : 0;
    uint64_t last = 0;
    for (uint32_t idle = 0;; idle++) {
        const uint64_t value = wic_peek_device(word);
        if (idle % 1024 != 0 && !__any_sync(~0u, value != last)) {
            wic_nap(idle);
            continue;
        }
        last = value;
        const wic_finding f = wic_judge_word(*seat, value, pulls);
        *busy = wic_lanes_with(f.here, 0);
        const uint32_t opening = wic_lanes_with(f.opening, 0), over = wic_lanes_with(f.over, 1);
        const uint32_t ready =
            *busy & (wic_lanes_with(f.near, 0) | wic_lanes_with(f.free, 2)) & ~over;
        if (opening != 0) {
            return {wic_event::OPEN, wic_first_lane(opening), 0, false};
        }
        if (over != 0) {
            return {wic_event::LEAVE_LANE, wic_first_lane(over), 0, false};
        }
        if (ready != 0) {
            return wic_turn_of(block, *seat, ready, word, clock);
        }
        if (wic_lanes_with(f.end, 1) != 0 && __ballot_sync(~0u, seat->open) == 0) {
            return {wic_event::LEAVE, 0, 0, false};
        }
        const bool lost = wic_pass_time(seat, value, *busy, beat_ns);
        const uint32_t dead = wic_lanes_with(lost, 3);
        if (dead != 0) {
            return {wic_event::LEAVE_LANE, wic_first_lane(dead), 0, false};
        }
    }
}

__device__ inline void wic_open_lane(const wic_lanes_block &block, uint32_t lane, wic_seat *seat)
{
    const uint64_t *const word = &block.lanes.open[lane];
    uint64_t opened = wic_lane() == 0 ? wic_load_system(word) : 0;
    opened = __shfl_sync(~0u, opened, 0);
    wic_view *const view = block.view(lane);
    wic_copy_view(block.lanes, lane, view);
    if (wic_seat::lane() == lane) {
        const uint32_t pieces = view->plan.pieces;
        const uint64_t served = seat->served;
        *seat = wic_seat();
        seat->served = served;
        seat->opened = opened;
        seat->open = true;
        seat->at = {view->first_tile + blockIdx.x / pieces, blockIdx.x % pieces};
        seat->find_slots(*view);
    }
    if (wic_lane() == 0) {
        atomicAdd(&view->state->started, 1);
    }
}

// To the next piece of this lane. Another block may wait for the credit: the divisions come later.
__device__ __forceinline__ void wic_pass_piece(const wic_view &view, wic_seat *seat)
{
    seat->credits.passed++;
    if (wic_seat::word() == 0) {
        wic_post_device(seat->credits.own(view), seat->credits.passed);
    }
    seat->at.next(view.plan.pieces);
    seat->find_slots(view);
    seat->since = 0;
}

// The bytes that a piece counts for: of a tile that lies where the device sees it, its part.
__device__ __forceinline__ uint32_t wic_piece_bytes(const wic_view &view, uint32_t pulled)
{
    return view.plan.in_piece > 0 ? pulled
                                  : static_cast<uint32_t>(view.in_stride / view.plan.pieces);
}

__device__ inline void wic_take_piece(const wic_lanes_block &block, const wic_turn &turn,
                                      wic_stage_position *position, wic_seat *seat, uint64_t *clock)
{
    const uint32_t from = wic_lane_words * turn.lane;
    const wic_block own = block.of(turn.lane);
    const wic_found found = {
        {__shfl_sync(~0u, seat->at.tile, from), __shfl_sync(~0u, seat->at.piece, from)},
        __shfl_sync(~0u, seat->in_at, from),
        __shfl_sync(~0u, seat->out_at, from),
        turn.low,
        turn.lane};
    const uint32_t bytes = wic_fetch(own, *position, found);
    const bool mine = wic_seat::lane() == turn.lane;
    if (mine) {
        wic_pass_piece(own.view, seat);
    }
    __syncwarp();
    if (bytes != UINT32_MAX) {
        *clock = wic_lane_start(__shfl_sync(~0u, seat->served, from), *clock);
        position->next(block.lanes.base.plan.depth);
        seat->pulled += mine ? bytes : 0;
        seat->served = mine ? *clock + wic_lane_cost(wic_piece_bytes(own.view, bytes), turn.below)
                            : seat->served;
    }
}

// The mark goes behind the lane's pieces.
__device__ inline void wic_end_lane(const wic_lanes_block &block, uint32_t lane,
                                    wic_stage_position *position, wic_seat *seat)
{
    if (wic_lane() == wic_lane_words * lane) {
        wic_link_state *const state = block.view(lane)->state;
        atomicAdd(reinterpret_cast<unsigned long long *>(&state->starved_ns), seat->starved);
        atomicAdd(reinterpret_cast<unsigned long long *>(&state->pulled_bytes), seat->pulled);
    }
    if (wic_seat::lane() == lane) {
        seat->open = false;
    }
    __syncwarp();
    wic_fill_stage(block.base, *position, {WIC_LANE_LEAVE, nullptr, nullptr, 0, 0, 0, lane});
    // Each use of a stage is a phase of the barrier that counts its bytes.
    uint64_t *const bytes = block.base.bytes(position->stage);
    wic_pull(bytes, {nullptr, nullptr, 0}, {nullptr, nullptr, 0});
    wic_pulled(bytes, position->round);
    wic_barrier_arrive(block.base.full(position->stage));
    position->next(block.lanes.base.plan.depth);
}

__device__ inline void wic_activate_lanes(const wic_lanes_block &block)
{
    wic_stage_position position(block.base.view);
    wic_seat seat;
    uint64_t clock = 0;
    uint32_t busy = 0;
    bool empty = true; // the stage at `position`
    for (;;) {
        if (!empty) {
            wic_barrier_park(block.base.empty(position.stage), position.round - 1);
            empty = true;
        }
        const uint32_t before = position.stage, round = position.round;
        const wic_turn turn = wic_lanes_wait(block, &seat, clock, &busy);
        if (turn.event == wic_event::LEAVE) {
            break;
        }
        if (turn.event == wic_event::OPEN) {
            wic_open_lane(block, turn.lane, &seat);
        } else if (turn.event == wic_event::LEAVE_LANE) {
            wic_end_lane(block, turn.lane, &position, &seat);
        } else {
            wic_take_piece(block, turn, &position, &seat, &clock);
        }
        const bool moved = position.stage != before || position.round != round;
        empty = !moved || !position.used;
    }
    wic_fill_stage(block.base, position, {WIC_LEAVE, nullptr, nullptr, 0, 0, 0});
    wic_barrier_arrive(block.base.full(position.stage));
}
#endif
