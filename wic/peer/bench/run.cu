// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "wic/peer/bench/run.cuh"

#include <unistd.h>

namespace
{
struct counts {
    unsigned long long wrong, vectors, words;
};

struct argument {
    counts *count; // in the memory of the party
    uint64_t last; // chunk at which the mistake is made
    peer_break mistake;
};

// Announces the chunk before its piece is stored.
__device__ void announce_early(const wic_peer_view &view, const wic_peer_piece &p)
{
    const uint32_t number = p.stage->number;
    if (view.plan.transport == WIC_PEER_LETTERS) {
        for (uint32_t i = p.thread; i < wic_peer_letters(view.plan); i += p.threads) {
            wic_peer_write(reinterpret_cast<uint64_t *>(p.stage->ring) + 2 * i, number + 1, 0, 0);
        }
    } else if (p.thread == 0) {
        wic_peer_post(wic_peer_line(view.out[p.peer].ready, blockIdx.x) + number % view.plan.slots,
                      static_cast<uint64_t>(number + 1) << 32, WIC_PEER_SYSTEM);
    }
    if (p.thread == 0) {
        for (uint32_t i = 0; i < 50; i++) {
            __nanosleep(1000);
        }
    }
    p.sync();
}

// The party's number is in the content, too, so that ways cannot be mixed up.
__device__ uint64_t content(uint64_t chunk, uint32_t party)
{
    return chunk + (uint64_t{party} << 24) * 7;
}

__device__ void make_piece(const wic_peer_view &view, const argument &a, const wic_peer_piece &p)
{
    const bool is_it = a.mistake != PEER_RIGHT && p.chunk == a.last;
    if (p.thread == 0) {
        p.send_value(static_cast<uint32_t>(p.chunk) * 3 + view.party);
    }
    if (is_it && a.mistake == PEER_LOST) {
        return;
    }
    if (is_it && a.mistake == PEER_EARLY) {
        announce_early(view, p);
    }
    const uint64_t of =
        content(is_it && a.mistake == PEER_TWICE ? p.chunk - 1 : p.chunk, view.party);
    uint4 *to = static_cast<uint4 *>(p.data);
    for (uint32_t i = p.thread; i < p.bytes / 16; i += p.threads) {
        uint4 value = peer_element(of, p.offset / 16 + i);
        value.y += is_it && a.mistake == PEER_WRONG && i == p.bytes / 32 ? 1 : 0;
        to[i] = value;
    }
}

__device__ void check_piece(const wic_peer_piece &p, counts *mine)
{
    const uint64_t of = content(p.chunk, p.peer);
    const uint4 *from = static_cast<const uint4 *>(p.data);
    for (uint32_t i = p.thread; i < p.bytes / 16; i += p.threads) {
        const uint4 got = from[i], want = peer_element(of, p.offset / 16 + i);
        mine->wrong += got.x != want.x || got.y != want.y || got.z != want.z || got.w != want.w;
        mine->vectors++;
    }
    if (p.thread == 0 && p.stage->is_last) {
        mine->wrong += p.value != static_cast<uint32_t>(p.chunk) * 3 + p.peer;
        mine->words++;
    }
}

template <int each>
__global__ void __launch_bounds__(peer_threads_most, each)
    peer_kernel(const __grid_constant__ wic_peer_view view, const __grid_constant__ argument a)
{
    counts mine = {0, 0, 0};
    wic_peer_run(
        view, [&](const wic_peer_piece &p) { make_piece(view, a, p); },
        [&](const wic_peer_piece &p) { check_piece(p, &mine); });
    if (mine.wrong > 0) {
        atomicAdd(&a.count->wrong, mine.wrong);
    }
    if (mine.vectors > 0) {
        atomicAdd(&a.count->vectors, mine.vectors);
    }
    if (mine.words > 0) {
        atomicAdd(&a.count->words, mine.words);
    }
}

// The counts of each party, in the memory of its GPU.
class counters
{
  public:
    counters(const peer_options &o, uint32_t parties) : all_(parties)
    {
        for (uint32_t i = 0; i < parties; i++) {
            PEER_MUST(cudaSetDevice(i % 2 == 0 ? o.from : o.to));
            PEER_MUST(cudaMalloc(&all_[i], sizeof(counts)));
            PEER_MUST(cudaMemset(all_[i], 0, sizeof(counts)));
        }
    }
    ~counters()
    {
        for (counts *one : all_) {
            cudaFree(one);
        }
    }
    counts *of(uint32_t party) const
    {
        return all_[party];
    }
    counts sum() const
    {
        counts all = {0, 0, 0};
        for (const counts *one : all_) {
            counts read;
            PEER_MUST(cudaMemcpy(&read, one, sizeof read, cudaMemcpyDefault));
            all.wrong += read.wrong;
            all.vectors += read.vectors;
            all.words += read.words;
        }
        return all;
    }

  private:
    std::vector<counts *> all_;
};

uint64_t chunks_of(const std::vector<wic_step> &steps)
{
    uint64_t chunks = 0;
    for (const wic_step &step : steps) {
        chunks += step.count;
    }
    return chunks;
}

void judge(const peer_task &task, const counters &count, peer_result *result)
{
    const uint64_t chunks = chunks_of(task.steps);
    const counts sum = count.sum();
    result->wrong = sum.wrong;
    result->used = sum.words;
    result->gb_s = static_cast<double>(chunks) * task.plan.chunk_bytes / result->seconds / 1e9;
    if (sum.words != chunks || sum.vectors != chunks * (task.plan.chunk_bytes / 16)) {
        result->why = "(NOT ALL CHUNKS WERE USED)";
    } else if (sum.wrong > 0) {
        result->why = "(WRONG)";
    } else {
        result->is_right = true;
    }
}
} // namespace

peer_result peer_run(const peer_task &task)
{
    const peer_options &o = task.options;
    const counters count(o, task.parties);
    std::vector<argument> arguments(task.parties);
    wic_peer_options options = {};
    wic_peer *peer = nullptr;
    peer_result result;
    options.parties = task.parties;
    options.plan = task.plan;
    options.steps = task.steps.data();
    options.step_count = task.steps.size();
    for (uint32_t i = 0; i < task.parties; i++) {
        arguments[i] = {count.of(i), chunks_of(task.steps) - 1, task.mistake};
        options.party[i] = {i % 2 == 0 ? o.from : o.to,
                            task.plan.each == 1 ? reinterpret_cast<const void *>(peer_kernel<1>)
                                                : reinterpret_cast<const void *>(peer_kernel<2>),
                            &arguments[i]};
    }
    int rc = wic_peer_create(&options, &peer);
    if (rc == 0) {
        rc = wic_peer_start(peer);
        const int joined = wic_peer_join(peer, 60000000000);
        rc = rc != 0 ? rc : joined;
    }
    if (rc == 0) {
        rc = wic_peer_seconds(peer, task.parties - 1, &result.seconds);
    }
    if (rc != 0) {
        result.why = std::string("(FAILED: ") + wic_link_why() + ")";
    } else {
        judge(task, count, &result);
    }
    if (wic_peer_destroy(peer) != 0) {
        fprintf(stderr, "wic-peer: a kernel did not leave\n");
        _exit(1);
    }
    return result;
}
