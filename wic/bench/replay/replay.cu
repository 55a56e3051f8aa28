// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Both back ends replay the same schedule: this thread is D0, a resident block (or a warp) is D1,
// and both walk the same recorded steps, the host by wic/pattern/replay.h, the device by
// wic/pattern/replay.cuh. Chunks go through two small rings in pinned memory, one each way. What a
// sender writes depends on the way, on the chunk's number and on what it got last, so that
// another order within a direction or between the directions is detected; this is tested as well.
// Every wait ends at the abort word or after 2 s.
#include "wic/bench/base/bench.cuh"
#include "wic/bench/replay/replay.cuh"
#include "wic/device/barrier.cuh"
#include "wic/pattern/replay.cuh"
#include "wic/pattern/replay.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace
{
using namespace replay_wait;
constexpr uint32_t ring_slots = 4;
constexpr size_t chunk_words = 512, steps_max = 4096; // of 8 bytes

enum device_end : uint64_t { NONE, DONE, LEFT };

// Pinned. A word has one writer; words that one side writes lie on lines of their own.
struct way {
    alignas(128) uint64_t published; // chunks, by the sender
    alignas(128) uint64_t allowed;   // chunks that may be published, by the receiver
    alignas(128) uint64_t slot[ring_slots][chunk_words];
};

struct table {
    way ways[2];                      // by the sender's number
    alignas(128) uint64_t abort;      // by the host
    alignas(128) uint64_t end, wrong; // by the device
};

// What has gone by on one side.
struct side {
    uint64_t moved[2];
    uint64_t sent, got; // the last chunk's value each way
    uint64_t wrong;     // words; on the device, threads that saw one
};

__host__ __device__ uint64_t chunk_value(const wic_step &step, uint64_t chunk, uint64_t got_before)
{
    return (got_before + chunk + 1) * UINT64_C(0x9e3779b97f4a7c15) + step.from;
}

// --- D1 ---

// By thread 0. False: leave.
__device__ bool exceeds(const uint64_t *word, uint64_t value, const table *t)
{
    const uint64_t since = wic_now();
    for (uint32_t look = 1; wic_load_system(word) <= value; look++) {
        if (look % look_interval == 0 &&
            (wic_load_system(&t->abort) || wic_now() - since > limit_ns)) {
            return false;
        }
    }
    return true;
}

// By all threads of the block.
__device__ bool move_on_device(table *t, side *s, const wic_step &step, uint64_t chunk)
{
    way &w = t->ways[step.from];
    const bool sends = step.from == 1;
    const uint64_t turn = s->moved[step.from]++, words = step.chunk_bytes / 8;
    const bool here = threadIdx.x > 0 || exceeds(sends ? &w.allowed : &w.published, turn, t);
    if (!__syncthreads_and(here)) {
        return false;
    }
    uint64_t *slot = w.slot[turn % ring_slots];
    const uint64_t value = chunk_value(step, chunk, sends ? s->got : s->sent);
    uint32_t wrong = 0;
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
        if (sends) {
            slot[i] = value ^ i;
        } else {
            wrong += slot[i] != (value ^ i);
        }
    }
    (sends ? s->sent : s->got) = value;
    s->wrong += __syncthreads_count(wrong > 0); // the barrier: all have read or written
    if (threadIdx.x == 0) {
        wic_store_system(sends ? &w.published : &w.allowed, turn + 1 + (sends ? 0 : ring_slots));
    }
    return true;
}

__global__ void __launch_bounds__(1024) be_d1(table *t, const wic_step *steps, uint64_t count)
{
    side s = {};
    const bool all = wic_replay(steps, count, [&](const wic_step &step, uint64_t chunk) {
        return move_on_device(t, &s, step, chunk);
    });
    if (threadIdx.x == 0) {
        t->wrong = s.wrong;
        t->end = all ? DONE : LEFT;
    }
}

// --- D0 ---

struct host {
    table *t;
    side s;
    uint64_t moves, stop_at; // ends the walk instead of that move; 0: does not
};

int move_on_host(void *context, const wic_step *step, uint64_t chunk)
{
    host *h = static_cast<host *>(context);
    way &w = h->t->ways[step->from];
    const bool sends = step->from == 0;
    const uint64_t turn = h->s.moved[step->from]++;
    if (++h->moves == h->stop_at) {
        return -ECANCELED;
    }
    const int rc = wait_above(sends ? &w.allowed : &w.published, turn);
    if (rc != 0) {
        return rc;
    }
    uint64_t *slot = w.slot[turn % ring_slots];
    const uint64_t value = chunk_value(*step, chunk, sends ? h->s.got : h->s.sent);
    for (uint64_t i = 0; i < step->chunk_bytes / 8; i++) {
        if (sends) {
            slot[i] = value ^ i;
        } else {
            h->s.wrong += slot[i] != (value ^ i);
        }
    }
    (sends ? h->s.sent : h->s.got) = value;
    store(sends ? &w.published : &w.allowed, turn + 1 + (sends ? 0 : ring_slots));
    return 0;
}

// --- schedules ---

// (D0->D1)^12, (D1->D0)^6 and so on, each step by one access pattern, or by each in turn. As a
// plugin would be, so that what it yields is checked.
struct mixer {
    uint64_t left[2], moved[2], access, turn, seed;
};
constexpr uint64_t all_in_turn = 4, mix_count[2] = {12, 6}, mix_stride = 3;

int mixer_create(const wic_pattern_params *params, void **out_state)
{
    *out_state = new mixer{
        {params->chunks[0][1], params->chunks[1][0]}, {0, 0}, params->args[0], 0, params->seed};
    return 0;
}

int mixer_next(void *state, wic_step *out)
{
    mixer *m = static_cast<mixer *>(state);
    if (m->left[0] + m->left[1] == 0) {
        return 0;
    }
    const uint64_t turn = m->turn++;
    const uint16_t way = turn % 2 && m->left[1] > 0 ? 1 : m->left[0] > 0 ? 0 : 1;
    out->from = way;
    out->to = 1 - way;
    out->access = static_cast<uint16_t>(m->access < all_in_turn ? m->access : turn / 2 % 4);
    out->first = m->moved[way];
    out->count = std::min(mix_count[way], m->left[way]);
    out->chunk_bytes = 8 * (1 + turn * 97 % chunk_words);
    out->reach = out->access == WIC_ADJACENT;
    out->stride = out->access == WIC_SCATTER_GATHER ? mix_stride : 0;
    out->seed = out->access == WIC_RANDOM ? m->seed + turn : 0;
    m->moved[way] += out->count;
    m->left[way] -= out->count;
    return 1;
}

void mixer_destroy(void *state)
{
    delete static_cast<mixer *>(state);
}

const wic_pattern_arg mixer_args[] = {{"access", "Of each step; 4: each in turn.", 0, 4, 4}};

const wic_pattern mixed = {
    WIC_PATTERN_ABI, sizeof(wic_pattern), "mixed", "for this test", mixer_args, 1,
    mixer_create,    mixer_next,          nullptr, mixer_destroy};

// args: all of the pattern's.
std::vector<wic_step> record(const wic_pattern &pattern, uint64_t forth, uint64_t back,
                             const std::vector<uint64_t> &args, uint64_t seed)
{
    wic_pattern_params params = {};
    params.parties = 2;
    params.slots = ring_slots;
    params.chunk_bytes = 8 * chunk_words;
    params.chunks[0][1] = forth;
    params.chunks[1][0] = back;
    params.seed = seed;
    params.args = args.data();
    std::vector<wic_step> steps(steps_max);
    size_t count = 0;
    char text[WIC_TEXT_BYTES] = "";
    if (wic_schedule_record(&pattern, &params, steps.data(), steps_max, &count, text,
                            sizeof text) != 0) {
        bench_fail(text, __LINE__);
    }
    steps.resize(count);
    return steps;
}

// --- both ---

struct outcome {
    int rc;                   // of the host's walk
    uint64_t end;             // of the device's
    uint64_t moves, wrong[2]; // seen by the host, by the device
    double us_each, left_ms;  // from the end of the host's walk
};

class stage
{
  public:
    stage()
    {
        CUDA_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        CUDA_MUST(cudaHostAlloc(&t_, sizeof(table), cudaHostAllocMapped));
        CUDA_MUST(cudaMalloc(&steps_, steps_max * sizeof(wic_step)));
    }

    ~stage()
    {
        cudaStreamDestroy(stream_);
        cudaFreeHost(t_);
        cudaFree(steps_);
    }

    // The host walks `own`, a block of so many threads `other`.
    outcome replay(const std::vector<wic_step> &own, const std::vector<wic_step> &other,
                   unsigned threads, uint64_t stop_at)
    {
        memset(t_, 0, sizeof *t_);
        t_->ways[0].allowed = t_->ways[1].allowed = ring_slots;
        CUDA_MUST(cudaMemcpyAsync(steps_, other.data(), other.size() * sizeof(wic_step),
                                  cudaMemcpyHostToDevice, stream_));
        CUDA_MUST(cudaStreamSynchronize(stream_));
        host h = {t_, {}, 0, stop_at};
        be_d1<<<1, threads, 0, stream_>>>(t_, steps_, other.size());
        CUDA_MUST(cudaGetLastError());
        const double start = bench_seconds();
        const int rc = wic_replay_steps(own.data(), own.size(), move_on_host, &h);
        const double end = bench_seconds();
        if (rc != 0) {
            store(&t_->abort, 1);
        }
        leave(end + 2e-9 * limit_ns);
        const double us = 1e6 * (end - start) / static_cast<double>(h.moves);
        return {rc, t_->end, h.moves, {h.s.wrong, t_->wrong}, us, 1e3 * (bench_seconds() - end)};
    }

  private:
    void leave(double limit)
    {
        while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
            if (bench_seconds() > limit) {
                bench_fail("the kernel that replays does not leave", __LINE__);
            }
        }
        CUDA_MUST(cudaStreamSynchronize(stream_));
    }

    cudaStream_t stream_;
    table *t_;
    wic_step *steps_;
};

bool print(const std::string &name, unsigned threads, const outcome &o, bool good)
{
    printf("replay %-38s %3u threads %s: %llu chunks, %llu + %llu wrong, %.2f us each, status %d, "
           "kernel %s %.2f ms later\n",
           name.c_str(), threads, good ? "ok" : "FAIL", static_cast<unsigned long long>(o.moves),
           static_cast<unsigned long long>(o.wrong[0]), static_cast<unsigned long long>(o.wrong[1]),
           o.us_each, o.rc, o.end == DONE ? "done" : "left", o.left_ms);
    fflush(stdout);
    return good;
}

bool agree(stage *s, const std::string &name, const std::vector<wic_step> &steps, uint64_t chunks)
{
    bool good = true;
    for (const unsigned threads : {32u, 256u}) { // a warp, a block
        const outcome o = s->replay(steps, steps, threads, 0);
        good =
            print(name, threads, o,
                  o.rc == 0 && o.end == DONE && o.moves == chunks && !o.wrong[0] && !o.wrong[1]) &&
            good;
    }
    return good;
}

// What must be noticed, and what must end.
bool disagree(stage *s, const std::vector<wic_step> &random, std::vector<wic_step> other_order)
{
    outcome o = s->replay(random, other_order, 256, 0);
    bool good = print("against another order: noticed", 256, o,
                      o.rc == 0 && o.end == DONE && o.wrong[0] && o.wrong[1]);
    std::vector<wic_step> turned = random;
    std::swap(turned[0], turned[1]);
    o = s->replay(random, turned, 256, 0);
    good =
        print("against other turns: both give up", 256, o, o.rc == -ETIMEDOUT && o.end == LEFT) &&
        good;
    o = s->replay(random, random, 256, 500);
    return print("aborted on the way", 256, o,
                 o.rc == -ECANCELED && o.end == LEFT && o.moves == 500 && o.left_ms < 50) &&
           good;
}
} // namespace

bool replay()
{
    stage s;
    const wic_pattern &one_way = wic_pattern_unidirectional;
    bool good = agree(&s, "unidirectional", record(one_way, 2000, 0, {0}, 0), 2000);
    good = agree(&s, "unidirectional, reach 1", record(one_way, 2000, 0, {1}, 0), 2000) && good;
    good = agree(&s, "alternating", record(wic_pattern_alternating, 1500, 1500, {0, 0}, 0), 3000) &&
           good;
    good =
        agree(&s, "multiple, 4 and 1", record(wic_pattern_multiple, 2400, 600, {4, 1}, 0), 3000) &&
        good;
    good = agree(&s, "probabilistic",
                 record(wic_pattern_probabilistic, 2000, 1000, {9, 5, 0, 0}, 3), 3000) &&
           good;
    good = agree(&s, "probabilistic, shuffled",
                 record(wic_pattern_probabilistic, 2000, 1000, {9, 5, 0, 1}, 4), 3000) &&
           good;
    const char *const names[] = {"streaming", "adjacent", "scatter-gather", "random",
                                 "each in turn"};
    for (uint64_t access = 0; access <= all_in_turn; access++) {
        const std::vector<wic_step> steps = record(mixed, 2400, 1200, {access}, 7);
        good = agree(&s, std::string("both ways, ") + names[access], steps, 3600) && good;
    }
    good = replay_told() && good;
    good = replay_device() && good;
    return disagree(&s, record(mixed, 2400, 1200, {WIC_RANDOM}, 7),
                    record(mixed, 2400, 1200, {WIC_RANDOM}, 8)) &&
           good;
}
