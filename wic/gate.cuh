// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_GATE_CUH
#define WIC_GATE_CUH
// A gate: where warps of a block are parked by the hardware. Each one opens once a round, when all
// its arrivals are in, and is closed again for the next round by that.
//   sm_90 and later: an mbarrier. A parked warp sits in try_wait with a suspend-time hint; the
//                    arrivals of warps and the bytes of a bulk copy open it.
//   before:          a named barrier. Who opens it calls bar.arrive, who waits bar.sync.
// With it what else differs between the two: how a piece gets into shared memory and out of it.
// Below, the loads and stores that cross between warps, blocks and the host.
// All functions are called by whole warps.
#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define WIC_MBARRIER 1
#else
#define WIC_MBARRIER 0
#endif

// How long a parked warp is suspended at most, if the hardware were to do as told: an H200 returns
// after some 4 us. So it looks around only once in a while.
#ifndef WIC_PARK_NS
#define WIC_PARK_NS 1000000u
#endif
#define WIC_PARK_LOOK 1024u

// A warp arrives as one, by lane 0 behind a __syncwarp. compute-sanitizer's racecheck does not see
// that this covers the other lanes: for it, every lane arrives.
#ifdef WIC_RACECHECK
#define WIC_ARRIVING_LANES 32u
#else
#define WIC_ARRIVING_LANES 1u
#endif

struct wic_gate {
    uint64_t *barrier; // in shared memory, mbarrier only
    uint32_t id;       // named barrier only
    uint32_t threads;  // named barrier only: of all who arrive or wait
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

// --- words that others write ---

__device__ __forceinline__ uint64_t wic_load_system(const uint64_t *p)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

__device__ __forceinline__ uint64_t wic_load_device(const uint64_t *p)
{
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

// Relaxed: for a word that hands nothing over.
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

// Relaxed, too.
__device__ __forceinline__ void wic_post_device(uint64_t *p, uint64_t value)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

// The old value. Everything before it, here and in the blocks that added before, is seen after it.
__device__ __forceinline__ uint32_t wic_add_device(uint32_t *p, uint32_t value)
{
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(value)
                 : "memory");
    return old;
}

// --- gates ---

__device__ __forceinline__ void wic_gate_init(const wic_gate &gate, uint32_t arrivals)
{
#if WIC_MBARRIER
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wic_shared_address(gate.barrier)),
                 "r"(arrivals * WIC_ARRIVING_LANES)
                 : "memory");
#endif
}

// One arrival, of this warp: what its lanes wrote before is seen by those who pass the gate.
__device__ __forceinline__ void wic_gate_arrive(const wic_gate &gate)
{
#if WIC_MBARRIER
    __syncwarp();
    if (wic_lane() < WIC_ARRIVING_LANES) {
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(
                         wic_shared_address(gate.barrier))
                     : "memory");
    }
#else
    __threadfence_block();
    asm volatile("bar.arrive %0, %1;" ::"r"(gate.id), "r"(gate.threads) : "memory");
#endif
}

#if WIC_MBARRIER
__device__ __forceinline__ bool wic_gate_try(const wic_gate &gate, uint32_t round)
{
    uint32_t open;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(open)
                 : "r"(wic_shared_address(gate.barrier)), "r"(round & 1), "r"(WIC_PARK_NS)
                 : "memory");
    return open != 0;
}
#endif

// Parks until the gate has opened in its round-th round (0, 1, ..). `aborted` is looked at now and
// then, for parked warps are released by their block's Activator, also after an abort; if that does
// not happen within 5 s of one, something in the block hangs: trap, for then the host sees a failed
// kernel and not one that never ends.
template <class Aborted>
__device__ __forceinline__ void wic_gate_park(const wic_gate &gate, uint32_t round, Aborted aborted)
{
#if WIC_MBARRIER
    uint64_t since = 0;
    for (uint32_t expired = 0; !wic_gate_try(gate, round);) {
        if (++expired % WIC_PARK_LOOK == 0 && aborted()) {
            since = since ? since : wic_now();
            if (wic_now() - since > 5000000000u) {
                __trap();
            }
        }
    }
#else
    asm volatile("bar.sync %0, %1;" ::"r"(gate.id), "r"(gate.threads) : "memory");
#endif
}

// --- pieces ---

// Starts the transfer of a piece, which opens the gate when it is there. bytes: a multiple of 16.
__device__ __forceinline__ void wic_pull(const wic_gate &gate, void *shared, const void *pinned,
                                         uint32_t bytes)
{
#if WIC_MBARRIER
    __syncwarp();
    const uint32_t barrier = wic_shared_address(gate.barrier);
    if (bytes == 0) {
        wic_gate_arrive(gate);
    } else if (wic_lane() > 0 && wic_lane() < WIC_ARRIVING_LANES) {
        asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier)
                     : "memory");
    } else if (wic_lane() == 0) {
        asm volatile(
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
            "r"(bytes)
            : "memory");
        // The board's word was acquired by ordinary loads; the copy is made in the async proxy.
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(wic_shared_address(shared)),
                     "l"(pinned), "r"(bytes), "r"(barrier)
                     : "memory");
    }
#else
    const uint4 *from = static_cast<const uint4 *>(pinned);
    uint4 *to = static_cast<uint4 *>(shared);
    for (uint32_t i = wic_lane(); i < bytes / 16; i += 32) {
        to[i] = __ldcv(from + i);
    }
    wic_gate_arrive(gate);
#endif
}

// Before the arrival that hands results in shared memory to the warp that stores them.
__device__ __forceinline__ void wic_results_written()
{
#if WIC_MBARRIER
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Stores a piece of results to pinned memory. wic_push_read: its shared memory is free again.
// wic_push_done: a release by lane 0 from here on covers the results.
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
    __syncwarp();
#endif
}
#endif
