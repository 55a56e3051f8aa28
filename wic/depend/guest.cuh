// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_GUEST_CUH
#define WIC_GUEST_CUH
// Guests: blocks of ordinary kernels that wait for tiles of a link which others built, read them
// and write results (wic/guest.hpp has this for streams). The link's own kernel is the Monitor
// alone, one block of a few warps that needs no shared memory worth mentioning.
//
//   Monitor          ready_board[t], end    the link's kernel (wic_guest_host)
//   guest, a block   one thread polls ready_board[t], the others are parked at the block's barrier;
//                    all read the tile's slot and write results; then the block arrives
//   last of `readers` blocks to arrive      done[t]: the host has slot and results again
//
// A guest never prevents the event for which it waits. The Monitor is resident before a guest gets
// the link's view (wic_guest_desk), and leaves only after it has set the end word or, without a
// heartbeat, the abort word; both make guests leave. Data is from the host or a copy engine,
// neither of which needs room on a multiprocessor. So guests may fill the device, and a grid may
// have more blocks than fit at once, if no block waits for more than one tile. Blocks that wait for
// several tiles need each other, as a tile is done when all have read it: they must all be
// resident. A wait has a time limit in any case.
//
// On the host (tests without a GPU, thread sanitizer) words are C11's, as in wic/depend/words.cuh.
#include "wic/depend/words.cuh"
#include "wic/device/link.h"
#include "wic/watchdog.h"

#define WIC_GUEST_LOOKS 16u // polls of the board between two looks at the end word and the clock

enum wic_guest_end : uint32_t {
    WIC_GUEST_HERE,
    WIC_GUEST_OVER, // the stream ends before this tile
    WIC_GUEST_LEFT, // it was aborted, or its kernel lost the heartbeat of the host
    WIC_GUEST_LATE, // the time limit has passed
    WIC_GUEST_GONE, // the tile is done, and its entry has a later one
};

// The part of a link's view that guests need.
struct wic_guest_view {
    const uint64_t *ready_board, *end;
    uint32_t *arrived;
    uint64_t *done;
    const unsigned char *in, *in_copies;
    unsigned char *out, *out_copies;
    uint64_t in_stride, out_stride, in_first, out_first;
    uint32_t in_slots, out_slots, ring_mask;
    uint32_t readers; // count of blocks that finish each tile
    uint64_t limit_ns;
};

struct wic_guest_tile {
    const void *in;
    void *out;
    uint32_t units;
};

__device__ __forceinline__ uint64_t wic_guest_peek(const uint64_t *word)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// How many tiles later than `tile` the entry's word is; below 0: not there yet.
__device__ __forceinline__ int32_t wic_guest_ahead(uint64_t word, uint64_t tile)
{
    return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) -
                                static_cast<uint32_t>(tile + 1));
}

// One thread waits; *low: low half of the tile's word. Acquires: a barrier of the block must
// follow, before its other threads read the tile.
__device__ inline wic_guest_end wic_guest_await(const wic_guest_view &view, uint64_t tile,
                                                uint32_t *low)
{
    const uint64_t *word = &view.ready_board[tile & view.ring_mask];
    wic_watchdog dog = {0, 0};
    for (uint32_t idle = 0;; idle++) {
        if (wic_guest_ahead(wic_guest_peek(word), tile) >= 0) {
            const uint64_t seen = wic_entry_see(word);
            *low = static_cast<uint32_t>(seen);
            return wic_guest_ahead(seen, tile) == 0 ? WIC_GUEST_HERE : WIC_GUEST_GONE;
        }
        if (idle % WIC_GUEST_LOOKS == 0) {
            const uint64_t end = wic_guest_peek(view.end);
            if (end == WIC_LINK_ABORT || tile >= end) {
                return end == WIC_LINK_ABORT ? WIC_GUEST_LEFT : WIC_GUEST_OVER;
            }
            if (wic_watchdog_expired(&dog, wic_depend_now(), view.limit_ns)) {
                return WIC_GUEST_LATE;
            }
        }
        wic_depend_nap(idle);
    }
}

__device__ __forceinline__ wic_guest_tile wic_guest_find(const wic_guest_view &view, uint64_t tile,
                                                         uint32_t low)
{
    const uint64_t in = (view.in_first + tile) % view.in_slots * view.in_stride;
    const uint64_t out = (view.out_first + tile) % view.out_slots * view.out_stride;
    const bool engine = (low & WIC_LINK_ENGINE) != 0;
    return {(engine ? view.in_copies : view.in) + in, (engine ? view.out_copies : view.out) + out,
            low & WIC_LINK_UNITS_MAX};
}

// One thread, after a barrier of its block: the block has read the tile and written its results.
__device__ inline void wic_guest_finish(const wic_guest_view &view, uint64_t tile)
{
    uint32_t *arrived = &view.arrived[tile & view.ring_mask];
    if (!wic_arrive(arrived, view.readers)) {
        return;
    }
    *arrived = 0; // for the next tile of this entry, which the host posts after `done`
    uint64_t *done = &view.done[tile & view.ring_mask];
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(done), "l"(tile + 1) : "memory");
#else
    __atomic_store_n(done, tile + 1, __ATOMIC_RELEASE);
#endif
}

// Pinned memory in which the link's kernel leaves its view.
struct wic_guest_desk {
    wic_view view;
    uint64_t is_open; // 1: the kernel is resident, and `view` is there
};

inline wic_guest_view wic_guest_view_of(const wic_view &v, uint32_t readers, uint64_t limit_ns)
{
    return {v.ready_board, &v.state->end, v.arrived,   v.done,       v.in,       v.in_copies,
            v.out,         v.out_copies,  v.in_stride, v.out_stride, v.in_first, v.out_first,
            v.in_slots,    v.out_slots,   v.ring_mask, readers,      limit_ns};
}

#ifdef __CUDACC__
#include "wic/device/monitor.cuh"

// The link's kernel: a plan of one block.
__device__ inline void wic_guest_host(const wic_view &view, wic_guest_desk *desk)
{
    if (threadIdx.x == 0) {
        desk->view = view;
        wic_add_device(&view.state->started, 1);
        wic_store_system(&desk->is_open, 1);
        wic_store_system(view.started, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        wic_monitor(view);
    }
}
#endif
#endif
