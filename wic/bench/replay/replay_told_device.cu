// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// D1 of exchanges whose steps are not known beforehand: one warp of the block walks the steps as
// they arrive, the others are parked at wic's barrier until there is a chunk for them.
#include "wic/bench/replay/told.cuh"
#include "wic/device/barrier.cuh"
#include "wic/pattern/replay.cuh"

using namespace told;

namespace
{
using namespace replay_wait;
constexpr unsigned workers = 7; // warps

// What the working warps are to do.
struct order {
    uint64_t *slot;
    uint64_t words, value;
    bool sends, leave;
};

struct block {
    table *t;
    order *now;
    uint32_t *wrong;
    wic_barrier full, done;
};

// By the walking warp. False: leave.
__device__ bool exceeds(const uint64_t *word, uint64_t value, const table *t)
{
    bool here = true;
    if (wic_lane() == 0) {
        const uint64_t since = wic_now();
        for (uint32_t look = 1; here && wic_load_system(word) <= value; look++) {
            here = look % look_interval != 0 ||
                   (!wic_load_system(&t->abort) && wic_now() - since <= limit_ns);
        }
    }
    return __shfl_sync(~0u, here, 0);
}

// As many steps are given as there are, or more than i.
__device__ wic_walked next_step(const table *t, uint64_t i, wic_step *out)
{
    uint32_t found = WIC_LEFT;
    if (wic_lane() == 0) {
        const uint64_t since = wic_now();
        for (uint32_t look = 1; found == WIC_LEFT; look++) {
            if (wic_load_system(&t->given) > i) {
                found = WIC_WALKED;
            } else if (wic_load_system(&t->last) <= i) {
                found = WIC_ENDED;
            } else if (look % look_interval == 0 &&
                       (wic_load_system(&t->abort) || wic_now() - since > limit_ns)) {
                break;
            }
        }
    }
    found = __shfl_sync(~0u, found, 0);
    if (found == WIC_WALKED) {
        *out = t->steps[i % ring_steps];
    }
    return static_cast<wic_walked>(found);
}

// Has the working warps do it.
__device__ void command(const block &b, const order &what, uint32_t *round)
{
    if (wic_lane() == 0) {
        *b.now = what;
    }
    __syncwarp();
    wic_barrier_arrive(b.full);
    if (!what.leave) {
        wic_barrier_park(b.done, (*round)++);
    }
}

__device__ wic_walked move_on_device(const block &b, const rules &r, side *s, uint32_t *round,
                                     const wic_step &step, uint64_t chunk)
{
    way &w = b.t->ways[step.from];
    const bool sends = step.from == 1;
    const uint64_t turn = s->turns[step.from]++, at = turn % ring_slots;
    if (!exceeds(sends ? &w.allowed : &w.published, turn, b.t)) {
        return WIC_LEFT;
    }
    const uint64_t words = !sends                     ? w.words[at]
                           : s->chunks[1] < r.ends[1] ? step.chunk_bytes / 8
                                                      : 0;
    const uint64_t value = chunk_value(step, chunk, sends ? s->got : s->sent);
    if (words > 0) {
        command(b, {w.slot[at], words, value, sends, false}, round);
        (sends ? s->sent : s->got) = value;
        s->chunks[step.from]++;
    }
    if (wic_lane() == 0) {
        if (sends) {
            w.words[at] = words;
        }
        wic_store_system(sends ? &w.published : &w.allowed, turn + 1 + (sends ? 0 : ring_slots));
    }
    return words > 0 ? WIC_WALKED : WIC_ENDED;
}

__device__ bool walk_on_device(const block &b, const rules &r)
{
    side s = {};
    uint32_t round = 0;
    uint64_t told = 0;
    const bool all = wic_replay_told(
        [&](uint64_t i, wic_step *out) { return next_step(b.t, i, out); },
        [&](const wic_step &step, uint64_t chunk) {
            return move_on_device(b, r, &s, &round, step, chunk);
        },
        [&](uint64_t, const wic_step &step, uint64_t count) {
            if (step.from == 1 && wic_lane() == 0) {
                b.t->outcomes[told % ring_steps] = {count, value_of(r.values, s.sent, s.got)};
                wic_store_system(&b.t->told, told + 1);
            }
            told += step.from == 1;
            return true;
        });
    command(b, {nullptr, 0, 0, false, true}, &round);
    return all;
}

__device__ void work(const block &b)
{
    const uint32_t thread = threadIdx.x - 32, threads = 32 * workers;
    for (uint32_t round = 0;; round++) {
        wic_barrier_park(b.full, round);
        const order what = *b.now;
        if (what.leave) {
            return;
        }
        for (uint64_t i = thread; i < what.words; i += threads) {
            if (what.sends) {
                what.slot[i] = what.value ^ i;
            } else if (what.slot[i] != (what.value ^ i)) {
                atomicAdd_block(b.wrong, 1);
            }
        }
        wic_barrier_arrive(b.done);
    }
}

__global__ void __launch_bounds__(32 * (workers + 1)) be_told(table *t, rules r)
{
    __shared__ order now;
    __shared__ uint32_t wrong;
    __shared__ uint64_t barriers[2];
    const block b = {t, &now, &wrong, {1, blockDim.x, &barriers[0]}, {2, blockDim.x, &barriers[1]}};
    if (threadIdx.x == 0) {
        wrong = 0;
        wic_barrier_init(b.full, 1);
        wic_barrier_init(b.done, workers);
    }
    __syncthreads();
    bool all = false;
    if (threadIdx.x < 32) {
        all = walk_on_device(b, r);
    } else {
        work(b);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        t->wrong = wrong;
        t->end = all ? DONE : LEFT;
    }
}
} // namespace

void told::launch(table *t, const rules &follows, cudaStream_t stream)
{
    be_told<<<1, 32 * (workers + 1), 0, stream>>>(t, follows);
    CUDA_MUST(cudaGetLastError());
}
