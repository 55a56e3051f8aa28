// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BARRIER_CUH
#define WIC_BARRIER_CUH
// A barrier parks warps of a block in the hardware until other warps of the block arrive. It is a
// named barrier (PTX bar) on every architecture: the warp that opens it calls bar.arrive, the
// waiting warp is in bar.sync and issues no instruction. (The alternative, an mbarrier, was
// rejected: its try_wait returns every 4 us on an H200 whatever suspend-time hint it gets, which
// makes 2,000 instructions a millisecond in each parked warp.) On sm_90 the arrival of a piece's
// bytes completes an mbarrier, as bulk copies can signal nothing else; a block's Activator waits
// for that and opens the barrier. This file also has what else differs between architectures
// (copies into and out of shared memory), and the loads and stores that cross between warps, blocks
// and the host. All functions are called by whole warps.
#include "wic/watchdog.h"

#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define WIC_MBARRIER 1
#else
#define WIC_MBARRIER 0
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
#define WIC_CP_ASYNC 1
#else
#define WIC_CP_ASYNC 0
#endif

#define WIC_SUSPEND_NS 20000u      // hint: how long one wait for bytes is suspended
#define WIC_STUCK_NS   5000000000u // bytes that did not arrive within this time are lost

struct wic_barrier {
    uint32_t id;
    uint32_t threads;  // all that arrive or wait
    uint64_t *barrier; // in shared memory; for WIC_RACECHECK only
};

__device__ __forceinline__ uint32_t wic_lane()
{
    return threadIdx.x % 32;
}

__device__ __forceinline__ uint32_t wic_shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ uint64_t wic_now()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The time of lane 0, for decisions that all lanes must make alike.
__device__ __forceinline__ uint64_t wic_warp_now()
{
    return __shfl_sync(~0u, wic_now(), 0);
}

// --- words that others write ---

__device__ __forceinline__ uint64_t wic_load_system(const uint64_t *p)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

// Two words side by side, 16-byte aligned; each is loaded as a whole, in any order.
struct wic_word_pair {
    uint64_t first, second;
};

__device__ __forceinline__ wic_word_pair wic_load_pair_system(const uint64_t *p)
{
    wic_word_pair pair;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "l"(p)
                 : "memory");
    return pair;
}

// Relaxed, for polls: a load that acquires empties the L1 cache of the multiprocessor.
__device__ __forceinline__ wic_word_pair wic_peek_pair_system(const uint64_t *p)
{
    wic_word_pair pair;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(pair.first), "=l"(pair.second)
                 : "l"(p)
                 : "memory");
    return pair;
}

// Acquires what the words that were peeked at publish.
__device__ __forceinline__ void wic_acquire_system()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

__device__ __forceinline__ uint64_t wic_load_device(const uint64_t *p)
{
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

// Relaxed: what the word publishes must not be read yet.
__device__ __forceinline__ uint64_t wic_peek_device(const uint64_t *p)
{
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

__device__ __forceinline__ void wic_store_device(uint64_t *p, uint64_t value)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

__device__ __forceinline__ void wic_store_system(uint64_t *p, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

// Relaxed: for a word that publishes no other data.
__device__ __forceinline__ void wic_post_device(uint64_t *p, uint64_t value)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

// Returns the old value. Acquire and release: all that this block and the blocks that added before
// wrote is visible after it.
__device__ __forceinline__ uint32_t wic_add_device(uint32_t *p, uint32_t value)
{
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(value)
                 : "memory");
    return old;
}

// --- barriers ---

// compute-sanitizer's racecheck (CUDA 13.0) cannot check these barriers: it follows bar.arrive one
// way only, and not from a named barrier on through an mbarrier, so it reports hazards that are
// none. For racecheck (-DWIC_RACECHECK, sm_90) they are all made of mbarriers at which every lane
// arrives, with the same counts; tests/gpu/gates.cu has mistakes that must be found with these. The
// order that the named barriers give is in tests/model/handover.litmus.

// Called by one thread, before any use.
__device__ __forceinline__ void wic_barrier_init(const wic_barrier &barrier,
                                                 uint32_t arriving_warps)
{
#ifdef WIC_RACECHECK
    if (barrier.barrier) {
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wic_shared_address(barrier.barrier)),
            "r"(32 * arriving_warps)
            : "memory");
    }
#endif
}

// One arrival of this warp: what its lanes wrote before is visible to the warps that pass the
// barrier.
__device__ __forceinline__ void wic_barrier_arrive(const wic_barrier &barrier)
{
#ifdef WIC_RACECHECK
    if (barrier.barrier) {
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                         wic_shared_address(barrier.barrier))
                     : "memory");
        return;
    }
#endif
    __threadfence_block();
    __syncwarp(); // bar is undefined for a warp that has not converged
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier.id), "r"(barrier.threads) : "memory");
}

#if WIC_MBARRIER
__device__ __forceinline__ bool wic_barrier_try(uint64_t *barrier, uint32_t round)
{
    uint32_t open;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(open)
                 : "r"(wic_shared_address(barrier)), "r"(round & 1), "r"(WIC_SUSPEND_NS)
                 : "memory");
    return open != 0;
}
#endif

// Parks until all arrivals of that round (0, 1, ..) are made, this one included; the barrier is
// then closed for the next round. Only the last bit of `round` is used.
__device__ __forceinline__ void wic_barrier_park(const wic_barrier &barrier, uint32_t round)
{
#ifdef WIC_RACECHECK
    if (barrier.barrier) {
        while (!wic_barrier_try(barrier.barrier, round)) {
        }
        return;
    }
#endif
    __syncwarp(); // as in wic_barrier_arrive
    asm volatile("bar.sync %0, %1;" ::"r"(barrier.id), "r"(barrier.threads) : "memory");
}

// --- pieces ---

__device__ __forceinline__ void wic_bytes_init(uint64_t *barrier)
{
#if WIC_MBARRIER
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(wic_shared_address(barrier))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// A copy to shared memory. bytes: a multiple of 16; 0 = none.
struct wic_copy_request {
    void *shared;
    const void *pinned;
    uint32_t bytes;
};

#if WIC_MBARRIER
__device__ __forceinline__ void wic_bulk_copy(uint32_t barrier, const wic_copy_request &request)
{
    if (request.bytes > 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(wic_shared_address(request.shared)),
                     "l"(request.pinned), "r"(request.bytes), "r"(barrier)
                     : "memory");
    }
}
#else
// (Eight loads before the first store were slower than this loop.)
__device__ __forceinline__ void wic_warp_copy(const wic_copy_request &request)
{
    const uint4 *from = static_cast<const uint4 *>(request.pinned);
    uint4 *to = static_cast<uint4 *>(request.shared);
    for (uint32_t i = wic_lane(); i < request.bytes / 16; i += 32) {
#if WIC_CP_ASYNC
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(wic_shared_address(to + i)),
                     "l"(from + i)
                     : "memory");
#else
        to[i] = __ldcv(from + i);
#endif
    }
}
#endif

// Starts the transfer of a piece to shared memory, and of the tile's user bytes.
__device__ __forceinline__ void wic_pull(uint64_t *barrier, const wic_copy_request &piece,
                                         const wic_copy_request &beside)
{
    __syncwarp(); // one lane acquired the ready board's word; the reads of all lanes must come
                  // after that
#if WIC_MBARRIER
    if (wic_lane() == 0) {
        const uint32_t word = wic_shared_address(barrier), bytes = piece.bytes + beside.bytes;
        asm volatile(
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(word),
            "r"(bytes)
            : "memory");
        // The ready board's word was acquired by ordinary loads, the stage's last reads are ordered
        // by a barrier; bulk copies belong to the async proxy. Also if nothing is pulled: the copy
        // of the results, by another warp of this block, relies on it.
        asm volatile("fence.proxy.async;" ::: "memory");
        if (bytes > 0) {
            wic_bulk_copy(word, piece);
            wic_bulk_copy(word, beside);
        }
    }
#else
    wic_warp_copy(piece);
    wic_warp_copy(beside);
#endif
}

// Waits until the bytes of that pull (0, 1, ..) with this barrier have arrived. That takes
// microseconds, also after an abort; after 5 s the device counts as broken and the warp traps, so
// that the host sees a failed kernel and not one that never ends. Time in which this warp did not
// run does not count.
__device__ __forceinline__ void wic_pulled(uint64_t *barrier, uint32_t round)
{
#if WIC_MBARRIER
    wic_watchdog dog = {0, 0};
    while (!wic_barrier_try(barrier, round)) {
        if (wic_watchdog_expired(&dog, wic_now(), WIC_STUCK_NS) &&
            !wic_barrier_try(barrier, round)) {
            __trap();
        }
    }
#elif WIC_CP_ASYNC
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
#endif
}

// To be called before the arrival that passes results in shared memory to the Publisher.
__device__ __forceinline__ void wic_results_written()
{
#if WIC_MBARRIER
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Stores the results of a piece to its tile. After wic_push_read their shared memory may be
// overwritten; after wic_push_done a release by any lane covers the results.
__device__ __forceinline__ void wic_push(void *pinned, const void *shared, uint32_t bytes)
{
#if WIC_MBARRIER
    if (wic_lane() == 0 && bytes > 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(pinned),
                     "r"(wic_shared_address(shared)), "r"(bytes)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
#else
    const uint4 *from = static_cast<const uint4 *>(shared);
    uint4 *to = static_cast<uint4 *>(pinned);
    for (uint32_t i = wic_lane(); i < bytes / 16; i += 32) {
        to[i] = from[i];
    }
#endif
}

__device__ __forceinline__ void wic_push_read()
{
#if WIC_MBARRIER
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

__device__ __forceinline__ void wic_push_done()
{
#if WIC_MBARRIER
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
#else
    __threadfence_system();
#endif
    __syncwarp();
}
#endif
