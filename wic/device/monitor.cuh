// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_MONITOR_CUH
#define WIC_MONITOR_CUH
// The Monitor: the one warp of a grid that looks over PCIe for what the host says. All lanes look
// at once: 30 at the doorbell's next words, one at the end, one at the beat. What is there goes to
// the board and the state in device memory, where the Activators look.
#include "wic/device/stage.cuh"

// Where a copy engine posts to the board itself, only end and beat are looked at.
//
// (Two looks on the transport at a time, half a round trip apart, were slower: the release of the
// board's words waits for the look that is under way.)
__device__ inline void wic_monitor(const wic_view &view)
{
    const uint32_t lane = wic_lane();
    const bool engine = wic_by_engine(view);
    const bool doorbell = lane < WIC_DOOR_WORDS;
    const uint64_t *control = lane == WIC_DOOR_WORDS ? &view.control->end : &view.control->beat;
    uint64_t next = view.first_tile;
    uint64_t known = lane == WIC_DOOR_WORDS ? WIC_LINK_OPEN : 0; // end, beat
    uint64_t beat_at = wic_warp_now();
    for (uint32_t idle = 0;;) {
        const uint64_t tile = next + lane;
        const uint64_t value =
            doorbell && engine
                ? 0
                : wic_load_system(doorbell ? &view.doorbell[tile & view.ring_mask] : control);
        const bool here = static_cast<uint32_t>(value >> 32) == static_cast<uint32_t>(tile + 1);
        const uint32_t seen = __ballot_sync(~0u, doorbell ? here : value != known);
        if ((seen & 1) == 0 && seen >> WIC_DOOR_WORDS == 0) {
            if (++idle % 1024 != 0 || wic_warp_now() - beat_at <= view.beat_ns) {
                wic_nap(idle);
                continue;
            }
            known = WIC_LINK_ABORT; // the host died or hangs
        }
        const uint32_t run = __ffs(~(seen & ((1u << WIC_DOOR_WORDS) - 1))) - 1;
        if (lane < run) {
            wic_store_device(&view.board[tile & view.ring_mask], value);
        }
        next += run;
        idle = run > 0 ? 0 : idle;
        if (known != WIC_LINK_ABORT) {
            known = value;
        }
        if (seen >> WIC_DOOR_WORDS != 0) {
            beat_at = wic_warp_now();
        }
        if (!doorbell && (seen >> WIC_DOOR_WORDS != 0 || known == WIC_LINK_ABORT)) {
            wic_store_device(lane == WIC_DOOR_WORDS ? &view.state->end : &view.state->beat, known);
        }
        const uint64_t end = __shfl_sync(~0u, known, WIC_DOOR_WORDS);
        if (end == WIC_LINK_ABORT || (engine ? end != WIC_LINK_OPEN : next >= end)) {
            return;
        }
    }
}
#endif
