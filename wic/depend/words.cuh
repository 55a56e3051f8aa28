// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_WORDS_CUH
#define WIC_WORDS_CUH
// Words in device memory by which the blocks of a resident kernel depend on each other. Words and
// counters go up and are never reset: a word is compared with an epoch, a counter completes every
// `needed` arrivals, so a second run over the same board needs no kernel and no barrier that clears
// it.
//
// The caller's group has met before one of its threads posts or arrives, and meets after one of its
// threads has seen a word: the barrier of the group and the release or acquire here are one chain
// of causality (PTX memory model, base causality order), so all that the group wrote is visible to
// the other. On the host (tests without a GPU, thread sanitizer) the words are C11's.
#include <cstdint>

// Acquire; pairs with wic_word_post.
__device__ __forceinline__ uint32_t wic_word_see(const uint32_t *word)
{
#ifdef __CUDA_ARCH__
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

// Relaxed: for polls, and words that publish nothing but themselves.
__device__ __forceinline__ uint32_t wic_word_peek(const uint32_t *word)
{
#ifdef __CUDA_ARCH__
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Release: what the thread's group wrote before is there for who sees the value.
__device__ __forceinline__ void wic_word_post(uint32_t *word, uint32_t value)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

// The same for the host, which polls a word in pinned memory.
__device__ __forceinline__ void wic_word_post_host(uint32_t *word, uint32_t value)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

// Whether a word that only goes up has come to that epoch; epochs may wrap.
__device__ __forceinline__ bool wic_word_is_at(uint32_t value, uint32_t epoch)
{
    return static_cast<int32_t>(value - epoch) >= 0;
}

// One arrival of `needed` > 0, of fewer than 2^32 in all unless `needed` is a power of two. True in
// who completes an epoch: to it all that the others wrote before they arrived is visible, and it
// may push what waited for them. One thread.
__device__ __forceinline__ bool wic_arrive(uint32_t *counter, uint32_t needed)
{
    uint32_t old;
#ifdef __CUDA_ARCH__
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(old)
                 : "l"(counter)
                 : "memory");
#else
    old = __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
#endif
    return (old + 1) % needed == 0;
}

// --- of rings of tasks (ready.cuh) ---

// Acquire; pairs with wic_entry_store behind wic_release.
__device__ __forceinline__ uint64_t wic_entry_see(const uint64_t *entry)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(entry) : "memory");
    return value;
#else
    return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
#endif
}

// What the thread's group wrote, and what it has seen of others, is there for who sees an entry
// that it stores from now on: one fence for many entries.
__device__ __forceinline__ void wic_release()
{
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

__device__ __forceinline__ void wic_entry_store(uint64_t *entry, uint64_t value)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(entry), "l"(value) : "memory");
#else
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
#endif
}

// Acquire at system scope: a stream wrote the word behind what a copy engine brought.
__device__ __forceinline__ uint64_t wic_brought_see(const uint64_t *word)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

// Relaxed; returns the old value.
__device__ __forceinline__ uint32_t wic_count(uint32_t *word, uint32_t n)
{
    uint32_t old;
#ifdef __CUDA_ARCH__
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(word), "r"(n)
                 : "memory");
#else
    old = __atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
    return old;
}

__device__ __forceinline__ uint64_t wic_count_long(uint64_t *word, uint64_t n)
{
    uint64_t old;
#ifdef __CUDA_ARCH__
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(n)
                 : "memory");
#else
    old = __atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
    return old;
}

// Release: of what the thread has acquired, to who claims some of it.
__device__ __forceinline__ void wic_offer(uint32_t *word, uint32_t n)
{
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(n) : "memory");
#else
    (void)__atomic_fetch_add(word, n, __ATOMIC_RELEASE);
#endif
}

// Acquire; pairs with wic_offer. Takes one; returns how many there were.
__device__ __forceinline__ int32_t wic_claim(uint32_t *word)
{
    uint32_t old;
#ifdef __CUDA_ARCH__
    asm volatile("atom.acquire.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(word), "r"(~0u)
                 : "memory");
#else
    old = __atomic_fetch_add(word, ~0u, __ATOMIC_ACQUIRE);
#endif
    return static_cast<int32_t>(old);
}

// Relaxed; whether it was `wanted`, and is `value` now.
__device__ __forceinline__ bool wic_swap(uint32_t *word, uint32_t wanted, uint32_t value)
{
#ifdef __CUDA_ARCH__
    return atomicCAS(word, wanted, value) == wanted;
#else
    return __atomic_compare_exchange_n(word, &wanted, value, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
#endif
}

// --- time ---

// Nanoseconds; on the host a clock that goes on by a microsecond a look, so that waits end there,
// too.
__device__ __forceinline__ uint64_t wic_depend_now()
{
#ifdef __CUDA_ARCH__
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    static uint64_t now;
    return 1000 * __atomic_add_fetch(&now, 1, __ATOMIC_RELAXED);
#endif
}

// Between two polls that found nothing: the longer it lasts the longer naps are, up to a
// microsecond.
__device__ __forceinline__ void wic_depend_nap(uint32_t idle)
{
#ifdef __CUDA_ARCH__
    __nanosleep(idle < 16 ? 32 : idle < 256 ? 128 : 512);
#else
    (void)idle;
#endif
}
#endif
