// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_STRATEGY_CUH
#define WIC_APP_STRATEGY_CUH
// A strategy: how chunks move between party 0, the host, and party 1, a GPU, and how either waits
// for them. It never computes: on the host it calls app_run, on the device the functions of the
// application (wic/apps/app.cuh) with the view of its place. A strategy "x" is, in x.cuh,
//
//   template <class A>
//   std::unique_ptr<app_strategy<A>> app_by_x(const app_place<A> &place, std::string *why);
//
// and a line in strategies.def. It opens the strategy for one application and size. NULL: this GPU
// cannot do it, for the reason *why (no such driver, blocks that are not all resident, too much
// managed memory); the table then has that reason. `place` outlives the strategy. It allocates all
// memory, streams and events that its rounds need, and proves that blocks which wait for each other
// or for the host are resident at once. Several strategies are open at a time, but only one has
// work on the device: between rounds none has a kernel there. The destructor closes it.
//
// A round of the program:
//
//   the inputs of the round are in app_run and in the memory of place.view, all else is poison
//   ready()     not timed. Poisons the memory of chunks (app_poison) on both sides, resets flags
//               and counters, puts a resident kernel in place; that touches no view yet. All of its
//               blocks have started when ready() returns.
//   run(host)   timed. All steps, until host.next() is false, party 0 has settled the last step
//               and party 1 has written the last byte of its memory.
//   rest()      not timed. The device is idle when it returns.
//   verification, by the program
//
// run() is, for each step that host.next() returns, in the order of A::facts.order:
//
//   host.produce(step, chunk, to)      for each chunk c < step.down; `to` has place.bytes[1] bytes
//   host.independent(step)             once; before, between or after the chunks from party 1
//   host.consume(step, chunk, from)    for each chunk that party 1 made, of place.bytes[0] bytes;
//                                      A::ups(view, step) of them, which only party 1 knows if
//                                      the data decides (else it is step.up)
//   host.settle(step)                  once, after all of these; then host.next()
//
// all from one thread (a call may use more threads inside). A step has any number of chunks either
// way, or none. Only APP_PIPED has more chunks in a step than a strategy should have room for:
// `place.slots` at a time, each way. Others have at most place.most.down and .up in a step; there
// party 0 can be in a step after that of party 1, but not vice versa. On the device: the same
// functions as in app.cuh, with <1>; phases that "|" separates have a barrier of all threads
// between them (acquire and release at gpu scope), or are kernels of their own.
//
// Giving up. Each wait on the host calls host.is_late(). Each wait on the device looks at
// *place.stop (mapped host memory, set by is_late(); read it seldom, or by one warp of the GPU) and
// gives up place.limit_ns after its begin; then all threads of the kernel leave. run() is then
// false. No call of CUDA may wait for a kernel that waits for the host.
//
// Mistakes. If host.is_wrong(step, chunk), with the last chunk of a step, party 1 does not wait for
// that chunk as it must. The mistake has to happen each time, not only by chance:
//   APP_EARLY_READ   party 1 reads the chunk's memory before the data is put there: poison it, let
//                    `dependent` read, put the data there afterwards (or never)
//   APP_LOST_LAST    party 1 never calls `dependent` for the chunk; all else continues
//   APP_STALE        the data is not put there: party 1 reads what the same memory held before
//                    (another chunk, an earlier step, or poison)
// The party 0 of app_run makes those in which the host is the receiver; a strategy need not care.
//
// Stamps. Blocks 0 .. app_stamp_blocks - 1 write app_stamp(place.stamps, row, block), for rows
// below app_stamp_rows: by app_now() of one thread, of each step, or with APP_PIPED of each chunk.
// A block that has no part in it leaves zeros.
//   begin            the block begins the step, or to wait for the chunk
//   independent_end  it is done with `independent` (APP_PIPED: = begin)
//   in_hand          it can read the last chunk of the step, or the chunk (no chunks: not written)
//   dependent_end    it is done with its last `dependent` (APP_PIPED: and `make`)
// The program adds `ready`, the end of the last host.produce() of the row.
#include "wic/apps/app.cuh"
#include "wic/apps/figures.h"

#include <chrono>
#include <cstdio>
#include <cuda_runtime.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

constexpr uint32_t app_stamp_rows = 1024, app_stamp_blocks = 4;

#define APP_MUST(call) app_must((call), #call, __FILE__, __LINE__)

inline void app_must(cudaError_t error, const char *what, const char *file, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "wic-apps: %s: %s (%s:%d)\n", what, cudaGetErrorString(error), file, line);
        fflush(nullptr);
        _Exit(1); // a kernel may still wait: do not join it
    }
}

// --- device -----------------------------------------------------------------------------------

__device__ inline uint64_t app_now()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

// NULL for rows and blocks without stamps.
__device__ inline app_stamps *app_stamp(app_stamps *stamps, uint32_t row, uint32_t block)
{
    return row < app_stamp_rows && block < app_stamp_blocks
               ? stamps + row * app_stamp_blocks + block
               : nullptr;
}

// A barrier of all threads of all blocks of a kernel, which are resident at once. *arrived: device
// memory, 0 before the kernel; *barriers: of the calling thread, 0 at first. False for all threads
// if the host stops the round or a block is missing: leave the kernel.
__device__ inline bool app_barrier(uint32_t *arrived, uint32_t *barriers, const uint32_t *stop,
                                   uint64_t limit_ns)
{
    __shared__ uint32_t is_left;
    const uint32_t all = ++*barriers * gridDim.x;
    __syncthreads();
    if (gridDim.x == 1) {
        return true;
    }
    if (threadIdx.x == 0) {
        uint32_t now = 0;
        is_left = 0;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        const uint64_t begin = app_now();
        for (uint32_t turn = 1; is_left == 0; turn++) {
            asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                         : "=r"(now)
                         : "l"(arrived)
                         : "memory");
            if (now >= all) {
                break;
            }
            if (turn % 1024 == 0 && (*static_cast<const volatile uint32_t *>(stop) != 0 ||
                                     app_now() - begin > limit_ns)) {
                is_left = 1;
            }
        }
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    }
    __syncthreads();
    return is_left == 0;
}

// --- host -------------------------------------------------------------------------------------

inline uint64_t app_host_now() // ns, steady
{
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

// Shared by the strategies of one application and size.
template <class A> struct app_place {
    app_size size;
    app_step most;   // A::most(size)
    size_t bytes[2]; // size of a chunk, by receiver, a multiple of 16: distance between chunks
    uint32_t slots;  // APP_PIPED: chunks to have room for, each way
    int device, processors;      // current device, its multiprocessors
    typename A::view view;       // party 1, in device memory
    app_stamps *stamps;          // device memory: [row][block], zero before a round
    const uint32_t *stop;        // mapped: the same address on both sides
    uint64_t limit_ns;           // longest wait
    std::vector<app_step> steps; // steps of some round, a forecast for the others
    uint32_t settles_most;       // the most phases of settle in a step
};

// The host's party in a round, with its times, mistakes and records.
template <class A> class app_run
{
  public:
    virtual ~app_run() = default;
    virtual bool next(app_step *step) = 0;
    virtual void produce(const app_step &step, uint32_t chunk, void *to) = 0;
    virtual void independent(const app_step &step) = 0;
    virtual void consume(const app_step &step, uint32_t chunk, const void *from) = 0;
    virtual void settle(const app_step &step) = 0;

    // The round takes too long: leave run().
    virtual bool is_late() = 0;

    // Party 1 has to receive this chunk by the mistake fault.kind.
    bool is_wrong(const app_step &step, uint32_t chunk) const
    {
        return fault.kind != APP_BREAK_NONE && fault.receiver == 1 && fault.round == step.round &&
               fault.step == step.index && chunk + 1 == step.down;
    }

    app_fault fault = {};
};

template <class A> class app_strategy
{
  public:
    app_strategy() = default;
    virtual ~app_strategy() = default;
    app_strategy(const app_strategy &) = delete;
    app_strategy &operator=(const app_strategy &) = delete;

    // False: it tries its shapes in the next rounds, whose times do not count.
    virtual bool is_settled() const
    {
        return true;
    }
    virtual void ready() = 0;
    virtual bool run(app_run<A> &host) = 0;
    virtual void rest() = 0;
};
#endif
