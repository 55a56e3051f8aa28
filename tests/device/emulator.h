/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATOR_H
#define PB_EMULATOR_H
/* Runs device code on the host, for tests without a GPU: the blocks of a grid one after the other,
 * every thread of a block as a fiber. A fiber runs until it meets others in a collective (a
 * barrier, a shuffle, a vote). Included before the device code, by C++ files of tests only.
 *
 * Collectives must be reached by all threads of the warp, or of the block, as their masks contain
 * all. Between two collectives the fibers run one after the other, in an order that emulator.order
 * selects: results that depend on it show a missing barrier. Shared memory of a block is an
 * allocation of its own, so that the address sanitizer sees what leaves it. */
#include "tests/device/emulator_math.h"
#include "tests/device/emulator_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define PB_EMULATED 1
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}
static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
    return {x, y};
}

namespace emulator_inside
{
constexpr unsigned MOST_THREADS = 1024;
constexpr size_t STACK_BYTES = 256 << 10;

struct dim {
    unsigned x, y, z;
};

// Threads that meet: the value of each, for this meeting and the one before.
struct meeting {
    unsigned arrived = 0, round = 0;
    uint64_t slot[2][MOST_THREADS];
};

struct fiber {
    void *stack_pointer = nullptr;
    std::unique_ptr<unsigned char[]> stack;
    unsigned thread = 0;
    bool done = true;
#if !defined(__x86_64__)
    ucontext_t context;
#endif
};

struct machine {
    fiber fibers[MOST_THREADS];
    fiber host;
    fiber *current = nullptr;
    meeting warps[MOST_THREADS / 32], block;
    unsigned threads = 0, running = 0;
    unsigned next[MOST_THREADS]; // successor of each fiber
    dim block_index = {0, 0, 0}, grid = {1, 1, 1};
    unsigned char *shared = nullptr;
    std::function<void()> body;
    uint64_t collectives = 0;
};

inline machine &the_machine()
{
    static machine m;
    return m;
}

#if defined(__x86_64__)
// Saves the registers that a call keeps on the stack of `from`, and takes those of `to`.
extern "C" void emulator_switch(void **from, void *to);
asm(R"(
.text
.weak emulator_switch
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch, .-emulator_switch
)");
#endif

inline void change(fiber &to)
{
    machine &m = the_machine();
    fiber &from = *m.current;
    m.current = &to;
#if defined(__x86_64__)
    emulator_switch(&from.stack_pointer, to.stack_pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
}

// To the next fiber that is not done.
inline void yield()
{
    machine &m = the_machine();
    fiber *to = &m.fibers[m.next[m.current->thread]];
    while (to->done && to != m.current) {
        to = &m.fibers[m.next[to->thread]];
    }
    if (to != m.current) {
        change(*to);
    }
}

inline void entry()
{
    machine &m = the_machine();
    m.body();
    m.current->done = true;
    if (--m.running == 0) {
        change(m.host);
    }
    for (;;) {
        yield();
    }
}

inline void prepare(fiber &f, unsigned thread)
{
    if (!f.stack) {
        f.stack.reset(new unsigned char[STACK_BYTES]);
    }
    f.thread = thread;
    f.done = false;
#if defined(__x86_64__)
    // State of a call of entry() without a caller, with the stack that the ABI requires.
    auto top = reinterpret_cast<uintptr_t>(f.stack.get() + STACK_BYTES) & ~uintptr_t{15};
    auto *words = reinterpret_cast<uintptr_t *>(top);
    void (*const start)() = entry;
    words[-1] = 0;
    memcpy(&words[-2], &start, sizeof start);
    memset(&words[-8], 0, 6 * sizeof *words);
    f.stack_pointer = &words[-8];
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = STACK_BYTES;
    f.context.uc_link = nullptr;
    makecontext(&f.context, entry, 0);
#endif
}

inline const uint64_t *meet(meeting &where, unsigned members, unsigned index, uint64_t value)
{
    const unsigned round = where.round;
    where.slot[round & 1][index] = value;
    the_machine().collectives++;
    if (++where.arrived == members) {
        where.arrived = 0;
        where.round++;
    } else {
        while (where.round == round) {
            yield();
        }
    }
    return where.slot[round & 1];
}
inline const uint64_t *meet_warp(uint64_t value)
{
    machine &m = the_machine();
    return meet(m.warps[m.current->thread / 32], 32, m.current->thread % 32, value);
}
inline const uint64_t *meet_block(uint64_t value)
{
    machine &m = the_machine();
    return meet(m.block, m.threads, m.current->thread, value);
}
template <class T> inline uint64_t bits_of(T value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> inline T value_of(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline unsigned lane()
{
    return the_machine().current->thread % 32;
}
} // namespace emulator_inside

struct pb_emulator {
    unsigned order = 0; // odd numbers run backwards, larger ones leap
};
inline pb_emulator emulator;

// Runs body for every thread of every block. blocks x threads; threads is a multiple of 32.
inline void emulate(unsigned blocks, unsigned threads, size_t shared_bytes,
                    const std::function<void()> &body)
{
    using namespace emulator_inside;
    machine &m = the_machine();
    m.body = body;
    m.threads = threads;
    m.grid = {blocks, 1, 1};
    unsigned leap = emulator.order % 2 != 0 ? threads - 1 : 1;
    for (unsigned wanted = 1 + emulator.order / 2 * 2; wanted > 2 && wanted < threads; wanted++) {
        unsigned a = wanted, b = threads; // a leap that visits all
        while (b != 0) {
            std::swap(a, b);
            b %= a;
        }
        if (a == 1) {
            leap = wanted;
            break;
        }
    }
    for (unsigned t = 0; t < threads; t++) {
        m.next[t] = (t + leap) % threads;
    }
    for (unsigned b = 0; b < blocks; b++) {
        auto *memory =
            static_cast<unsigned char *>(aligned_alloc(16, (shared_bytes + 15) & ~size_t{15}));
        memset(memory, 0xcd, shared_bytes);
        m.shared = memory;
        m.block_index = {b, 0, 0};
        m.block.arrived = 0;
        for (unsigned t = 0; t < threads; t++) {
            prepare(m.fibers[t], t);
            m.warps[t / 32].arrived = 0;
        }
        m.running = threads;
        m.current = &m.host;
        change(m.fibers[0]);
        free(memory);
    }
}

#define emulated_shared (emulator_inside::the_machine().shared)
#define threadIdx       (emulator_inside::dim{emulator_inside::the_machine().current->thread, 0, 0})
#define blockIdx        (emulator_inside::the_machine().block_index)
#define blockDim        (emulator_inside::dim{emulator_inside::the_machine().threads, 1, 1})
#define gridDim         (emulator_inside::the_machine().grid)

template <class T> inline T __shfl_sync(unsigned, T v, int from)
{
    return emulator_inside::value_of<T>(
        emulator_inside::meet_warp(emulator_inside::bits_of(v))[from & 31]);
}
template <class T> inline T __shfl_up_sync(unsigned, T v, unsigned d)
{
    const uint64_t *s = emulator_inside::meet_warp(emulator_inside::bits_of(v));
    const unsigned lane = emulator_inside::lane();
    return lane >= d ? emulator_inside::value_of<T>(s[lane - d]) : v;
}
template <class T> inline T __shfl_down_sync(unsigned, T v, unsigned d)
{
    const uint64_t *s = emulator_inside::meet_warp(emulator_inside::bits_of(v));
    const unsigned lane = emulator_inside::lane();
    return lane + d < 32 ? emulator_inside::value_of<T>(s[lane + d]) : v;
}
template <class T> inline T __shfl_xor_sync(unsigned, T v, unsigned d)
{
    return emulator_inside::value_of<T>(
        emulator_inside::meet_warp(emulator_inside::bits_of(v))[emulator_inside::lane() ^ d]);
}
inline unsigned __ballot_sync(unsigned, int p)
{
    const uint64_t *s = emulator_inside::meet_warp(p != 0);
    unsigned mask = 0;
    for (unsigned i = 0; i < 32; i++) {
        mask |= static_cast<unsigned>(s[i]) << i;
    }
    return mask;
}
inline int __any_sync(unsigned all, int p)
{
    return __ballot_sync(all, p) != 0;
}
inline int __all_sync(unsigned all, int p)
{
    return __ballot_sync(all, p) == 0xffffffff;
}
template <class T> inline unsigned __match_any_sync(unsigned, T v)
{
    const uint64_t mine = emulator_inside::bits_of(v), *s = emulator_inside::meet_warp(mine);
    unsigned mask = 0;
    for (unsigned i = 0; i < 32; i++) {
        mask |= static_cast<unsigned>(s[i] == mine) << i;
    }
    return mask;
}
inline unsigned __reduce_max_sync(unsigned, unsigned v)
{
    const uint64_t *s = emulator_inside::meet_warp(v);
    return static_cast<unsigned>(*std::max_element(s, s + 32));
}
inline unsigned __reduce_min_sync(unsigned, unsigned v)
{
    const uint64_t *s = emulator_inside::meet_warp(v);
    return static_cast<unsigned>(*std::min_element(s, s + 32));
}
inline unsigned __reduce_add_sync(unsigned, unsigned v)
{
    const uint64_t *s = emulator_inside::meet_warp(v);
    unsigned sum = 0;
    for (unsigned i = 0; i < 32; i++) {
        sum += static_cast<unsigned>(s[i]);
    }
    return sum;
}
inline unsigned __reduce_or_sync(unsigned, unsigned v)
{
    const uint64_t *s = emulator_inside::meet_warp(v);
    unsigned all = 0;
    for (unsigned i = 0; i < 32; i++) {
        all |= static_cast<unsigned>(s[i]);
    }
    return all;
}
inline void __syncwarp()
{
    emulator_inside::meet_warp(0);
}
inline void __syncthreads()
{
    emulator_inside::meet_block(0);
}
inline int __syncthreads_count(int p)
{
    const uint64_t *s = emulator_inside::meet_block(p != 0);
    uint64_t n = 0;
    for (unsigned i = 0; i < emulator_inside::the_machine().threads; i++) {
        n += s[i];
    }
    return static_cast<int>(n);
}
inline int __syncthreads_or(int p)
{
    return __syncthreads_count(p) != 0;
}
inline void __threadfence_block()
{
}
inline void __threadfence()
{
}

using std::max;
using std::min;
#endif
