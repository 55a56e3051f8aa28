// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_MONITOR_CUH
#define WIC_MONITOR_CUH
// The Monitor: one warp per grid polls the host's pinned words over PCIe: lanes 0 to 29 the next
// doorbell words, lane 30 the end word, lane 31 the heartbeat. It copies changes to the ready board
// and the state in device memory, which the Activators poll.
#include "wic/device/stage.cuh"

// Where a copy engine posts to the ready board, the Monitor reads end and beat only.
//
// (Two polls in flight, half a round trip apart, were slower: the release of the ready board's
// words waits for the poll in flight.)
__device__ inline void wic_monitor(const wic_view &view)
{
    const uint32_t lane = wic_lane();
    const bool engine = wic_by_engine(view);
    const bool doorbell = lane < WIC_DOORBELL_WORDS;
    const uint64_t *control = lane == WIC_DOORBELL_WORDS ? &view.control->end : &view.control->beat;
    uint64_t next = view.first_tile;
    uint64_t known = lane == WIC_DOORBELL_WORDS ? WIC_LINK_OPEN : 0; // end, beat
    uint64_t beat_at = wic_warp_now();
    for (uint32_t idle = 0;;) {
        const uint64_t tile = next + lane;
        const uint64_t value =
            doorbell && engine
                ? 0
                : wic_load_system(doorbell ? &view.doorbell[tile & view.ring_mask] : control);
        const bool here = static_cast<uint32_t>(value >> 32) == static_cast<uint32_t>(tile + 1);
        const uint32_t seen = __ballot_sync(~0u, doorbell ? here : value != known);
        if ((seen & 1) == 0 && seen >> WIC_DOORBELL_WORDS == 0) {
            if (++idle % 1024 != 0 || wic_warp_now() - beat_at <= view.beat_ns) {
                wic_nap(idle);
                continue;
            }
            known = WIC_LINK_ABORT; // the host died or hangs
        }
        const uint32_t run = __ffs(~(seen & ((1u << WIC_DOORBELL_WORDS) - 1))) - 1;
        if (lane < run) {
            wic_store_device(&view.ready_board[tile & view.ring_mask], value);
        }
        next += run;
        idle = run > 0 ? 0 : idle;
        if (known != WIC_LINK_ABORT) {
            known = value;
        }
        if (seen >> WIC_DOORBELL_WORDS != 0) {
            beat_at = wic_warp_now();
        }
        if (!doorbell && (seen >> WIC_DOORBELL_WORDS != 0 || known == WIC_LINK_ABORT)) {
            wic_store_device(lane == WIC_DOORBELL_WORDS ? &view.state->end : &view.state->beat,
                             known);
        }
        const uint64_t end = __shfl_sync(~0u, known, WIC_DOORBELL_WORDS);
        if (end == WIC_LINK_ABORT || (engine ? end != WIC_LINK_OPEN : next >= end)) {
            return;
        }
    }
}
#endif
