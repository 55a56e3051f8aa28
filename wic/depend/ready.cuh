// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_READY_CUH
#define WIC_READY_CUH
// Rings of ready tasks (ready.h) as workers use them. A worker is a group of threads, whole warps,
// of a resident kernel:
//
//   for (uint32_t turn = 0; wic_take(ready, seats, turn, group, &task); turn++) { ... }
//
// One warp of it is the Activator: while nothing is ready it polls one line of device memory, a
// load a poll, and naps in between; the others are parked at the group's barrier and issue nothing.
// A task is pushed when all that it needs is there, and no task waits for another: a worker that
// has taken one ends it whatever the others do, so workers need not all be resident together, and
// any number of them gets everything done. The only wait inside is for a pusher that has its ticket
// and is about to write the entry; it is bounded as well.
//
// All workers leave when the stop word is set. Each looks at it with every poll, and sets it if it
// found nothing to do for limit_ns.
#include "wic/depend/ready.h"

#include "wic/depend/words.cuh"
#include "wic/watchdog.h"

constexpr uint32_t WIC_READY_NONE = 0xffffffff;
constexpr uint32_t WIC_READY_POLLS = 1 << 22; // of an entry that its pusher does not write: seconds

struct wic_task {
    uint32_t ring, task;
};

// Of a worker, in shared memory: what its Activator took. Two, used in turn: when the group meets
// for the next one, nobody reads the one before any more.
struct wic_seats {
    wic_task task[2];
};

// Tasks task, task + 1, .. are ready, n of them. One thread, which has seen all that they need:
// by wic_arrive, or because its group made it.
__device__ inline void wic_push(const wic_ready &ready, uint32_t ring, uint32_t task, uint32_t n)
{
    const uint32_t ticket = wic_count(&ready.tickets->pushed[ring], n);
    wic_release();
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t own = ticket + i;
        wic_entry_store(&ready.entry[ring][own & ready.mask[ring]],
                        static_cast<uint64_t>(own + 1) << 32 | (task + i));
    }
    (void)wic_count(&ready.line->ready[ring], n);
}

// The first to stop says why; for one thread.
__device__ inline void wic_stop(const wic_ready &ready, uint32_t why)
{
    (void)wic_swap(ready.stop, 0, why);
}

// One thread: counts what streams have brought since somebody looked. Who counts it has acquired
// what was brought, and releases it to who claims it.
__device__ inline void wic_list(const wic_ready &ready, uint32_t ring)
{
    const uint32_t brought = static_cast<uint32_t>(wic_brought_see(&ready.line->brought[ring]));
    const uint32_t listed = wic_word_peek(&ready.line->listed[ring]);
    if (static_cast<int32_t>(brought - listed) > 0 &&
        wic_swap(&ready.line->listed[ring], listed, brought)) {
        wic_offer(&ready.line->ready[ring], brought - listed);
    }
}

// One thread. The task of a ring if there is one that nobody has taken, else WIC_READY_NONE. First
// a task is claimed, then a ticket is taken, which has an entry: both by an addition, so that many
// who take at a time do not make each other begin anew, as they would with compare and swap.
__device__ inline uint32_t wic_try(const wic_ready &ready, uint32_t ring)
{
    if (wic_claim(&ready.line->ready[ring]) <= 0) {
        (void)wic_count(&ready.line->ready[ring], 1);
        return WIC_READY_NONE;
    }
    const uint32_t taken = wic_count(&ready.tickets->taken[ring], 1);
    const uint64_t *const entry = &ready.entry[ring][taken & ready.mask[ring]];
    uint64_t value = wic_entry_see(entry);
    for (uint32_t polls = 0; static_cast<uint32_t>(value >> 32) != static_cast<uint32_t>(taken + 1);
         polls++) {
        if (polls == WIC_READY_POLLS) {
            wic_stop(ready, WIC_READY_LATE);
        }
        if (polls % 1024 == 1023 && wic_word_peek(ready.stop) != 0) {
            return WIC_READY_NONE;
        }
        value = wic_entry_see(entry);
    }
    return static_cast<uint32_t>(value);
}

// What a warp sees of the line with one load a lane.
struct wic_look {
    uint32_t ready;   // rings that have tasks, as bits
    uint32_t brought; // those for which streams brought more
    bool stop;
};

__device__ inline wic_look wic_look_at(const wic_ready &ready, uint32_t lane)
{
    constexpr uint32_t N = WIC_READY_RINGS;
    const uint32_t *const line = ready.line->ready; // then `listed`, and `brought` by low halves
    uint32_t value = 0;
    if (lane < 3 * N) {
        value = wic_word_peek(&line[lane < 2 * N ? lane : 2 * N + 2 * (lane - 2 * N)]);
    } else if (lane == 31) {
        value = wic_word_peek(ready.stop);
    }
    const uint32_t brought = __shfl_down_sync(~0u, value, N);
    wic_look look;
    look.ready = __ballot_sync(~0u, lane<N &&static_cast<int32_t>(value)> 0);
    look.brought =
        __ballot_sync(~0u, lane >= N && lane<2 * N &&static_cast<int32_t>(brought - value)> 0) >> N;
    look.stop = __any_sync(~0u, lane == 31 && value != 0);
    return look;
}

// By a warp: waits for a task, the most urgent first. False: leave.
__device__ inline bool wic_await_task(const wic_ready &ready, uint32_t lane, wic_task *out)
{
    wic_watchdog dog = {0, 0};
    for (uint32_t idle = 0;; idle++) {
        const wic_look look = wic_look_at(ready, lane);
        if (look.stop) {
            return false;
        }
        for (uint32_t rings = look.brought; rings != 0 && lane == 0; rings &= rings - 1) {
            wic_list(ready, static_cast<uint32_t>(__ffs(static_cast<int>(rings))) - 1);
        }
        for (uint32_t rings = look.ready | look.brought; rings != 0; rings &= rings - 1) {
            const uint32_t ring = static_cast<uint32_t>(__ffs(static_cast<int>(rings))) - 1;
            const uint32_t own = lane == 0 ? wic_try(ready, ring) : 0;
            const uint32_t task = __shfl_sync(~0u, own, 0);
            if (task != WIC_READY_NONE) {
                *out = {ring, task};
                return true;
            }
        }
        const bool late = idle % 64 == 63 && lane == 0 &&
                          wic_watchdog_expired(&dog, wic_depend_now(), ready.limit_ns);
        if (late) {
            wic_stop(ready, WIC_READY_LATE);
        }
        wic_depend_nap(idle);
    }
}

// By all threads of the group; turn: 0, 1, .. by call. False: leave.
template <class Group>
__device__ bool wic_take(const wic_ready &ready, wic_seats &seats, uint32_t turn,
                         const Group &group, wic_task *out)
{
    wic_task &seat = seats.task[turn % 2];
    if (group.thread < 32) {
        wic_task task = {0, WIC_READY_NONE};
        (void)wic_await_task(ready, group.thread, &task);
        if (group.thread == 0) {
            seat = task;
        }
    }
    group.sync(); // opens the barrier at which the other warps are parked
    *out = seat;
    return out->task != WIC_READY_NONE;
}

// By all threads of the group: their group's part of what `counter` counts is done. True in all of
// them where it completes an epoch. `flag`: a word of shared memory.
template <class Group>
__device__ bool wic_arrive_all(uint32_t *counter, uint32_t needed, uint32_t *flag,
                               const Group &group)
{
    group.sync(); // all that the group wrote, before the release of one thread
    if (group.thread == 0) {
        *flag = wic_arrive(counter, needed);
    }
    group.sync();
    return *flag != 0;
}
#endif
