// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_MONITOR_CUH
#define WIC_MONITOR_CUH
// The Monitor: one warp per grid polls the host's pinned words over PCIe: lanes 0 to 29 the next
// doorbell words, lane 30 the end word, lane 31 the heartbeat. It copies changes to the ready board
// and the state in device memory, which the Activators poll. A round trip takes microseconds while
// the link is busy, so a lane reads two doorbell words with one load.
#include "wic/device/stage.cuh"

// Whether the tile that this doorbell word announces may be posted to the ready board: one that
// goes by copy engine when it has landed. *known: what this lane has seen of view.landed, by lane
// of the link.
__device__ __forceinline__ bool wic_has_landed(const wic_view &view, uint64_t word, uint64_t tile,
                                               uint64_t known[WIC_LINK_LANES])
{
    if ((word & WIC_LINK_ENGINE) == 0) {
        return true;
    }
    const bool second = (word & WIC_LINK_LANE) != 0;
    if (tile >= (second ? known[1] : known[0])) {
        const uint64_t landed = wic_load_system(&view.landed[second]);
        known[0] = second ? known[0] : landed;
        known[1] = second ? landed : known[1];
    }
    return tile < (second ? known[1] : known[0]);
}

// What a lane of the doorbell sees: two words, and whether they announce their tiles. Pairs begin
// with an even tile: the tile before `next` counts as here.
struct wic_doorbell_look {
    uint64_t tile; // of the first word
    wic_word_pair words;
    bool first, second;
};

__device__ __forceinline__ bool wic_announces(uint64_t word, uint64_t tile)
{
    return static_cast<uint32_t>(word >> 32) == static_cast<uint32_t>(tile + 1);
}

__device__ __forceinline__ void wic_judge(const wic_view &view, uint64_t next,
                                          uint64_t landed[WIC_LINK_LANES], wic_doorbell_look *look)
{
    const uint64_t tile = look->tile;
    look->first = tile < next || (wic_announces(look->words.first, tile) &&
                                  wic_has_landed(view, look->words.first, tile, landed));
    look->second = wic_announces(look->words.second, tile + 1) &&
                   wic_has_landed(view, look->words.second, tile + 1, landed);
}

// Posts this lane's tiles from `next` to `end`, exclusive, to the ready board.
__device__ __forceinline__ void wic_post_tiles(const wic_view &view, const wic_doorbell_look &look,
                                               uint64_t next, uint64_t end)
{
    if (look.tile >= next && look.tile < end) {
        wic_store_device(&view.ready_board[look.tile & view.ring_mask], look.words.first);
    }
    if (look.tile + 1 < end) {
        wic_store_device(&view.ready_board[(look.tile + 1) & view.ring_mask], look.words.second);
    }
}

// The first tile from `next` on that is not here.
__device__ __forceinline__ uint64_t wic_first_missing(uint64_t next, uint32_t first,
                                                      uint32_t second)
{
    const uint32_t lanes = (1u << WIC_DOORBELL_LANES) - 1;
    const uint32_t even = __ffs(~(first & lanes)) - 1, odd = __ffs(~(second & lanes)) - 1;
    return next / 2 * 2 + min(2 * even, 2 * odd + 1);
}

// (Two polls in flight, half a round trip apart, were slower: the release of the ready board's
// words waits for the poll in flight.)
//
// is_quiet: its polls leave the L1 cache of the multiprocessor alone, which a poll that acquires
// empties; a fence acquires what is new. For kernels whose work lives from L1. In a ring of 4 KiB
// chunks the fences cost throughput.
template <bool is_quiet = false> __device__ inline void wic_monitor(const wic_view &view)
{
    const uint32_t lane = wic_lane();
    const bool doorbell = lane < WIC_DOORBELL_LANES;
    uint64_t next = view.first_tile;
    uint64_t known = lane == WIC_DOORBELL_LANES ? WIC_LINK_OPEN : 0; // end, beat
    uint64_t landed[WIC_LINK_LANES] = {0, 0};
    uint64_t beat_at = wic_warp_now();
    for (uint32_t idle = 0;;) {
        wic_doorbell_look look = {next / 2 * 2 + 2 * lane, {0, 0}, false, false};
        const uint64_t at = look.tile & view.ring_mask;
        if constexpr (is_quiet) {
            look.words = wic_peek_pair_system(doorbell ? &view.doorbell[at] : &view.control->end);
        } else {
            look.words = wic_load_pair_system(doorbell ? &view.doorbell[at] : &view.control->end);
        }
        const uint64_t value = lane == WIC_DOORBELL_LANES ? look.words.first : look.words.second;
        if (doorbell) {
            wic_judge(view, next, landed, &look);
        }
        const uint32_t first = __ballot_sync(~0u, doorbell ? look.first : value != known);
        const uint64_t stop = wic_first_missing(next, first, __ballot_sync(~0u, look.second));
        const bool told = first >> WIC_DOORBELL_LANES != 0;
        if (stop == next && !told) {
            if (++idle % 1024 != 0 || wic_warp_now() - beat_at <= view.beat_ns) {
                wic_nap(idle);
                continue;
            }
            known = WIC_LINK_ABORT; // the host died or hangs
        }
        if constexpr (is_quiet) {
            wic_acquire_system();
        }
        if (doorbell) {
            wic_post_tiles(view, look, next, stop);
        }
        idle = stop > next ? 0 : idle;
        next = stop;
        if (known != WIC_LINK_ABORT) {
            known = value;
        }
        if (told) {
            beat_at = wic_warp_now();
        }
        if (!doorbell && (told || known == WIC_LINK_ABORT)) {
            wic_store_device(lane == WIC_DOORBELL_LANES ? &view.state->end : &view.state->beat,
                             known);
        }
        const uint64_t end = __shfl_sync(~0u, known, WIC_DOORBELL_LANES);
        if (end == WIC_LINK_ABORT || next >= end) {
            return;
        }
    }
}
#endif
