// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// cuSync's wait, written for sm_90: two kernels in two streams. A warp of the producer counts its
// tile in the counters of its consumers, a lane each; one thread of a consumer block spins until
// its counter is at the run's epoch, the others are at the barrier. spin-depth has a counter for
// each producer tile and waits along the depth of the second product (cuSync's TileSync); spin has
// one for each set of needs (RowSync, Conv2DTileSync, StridedSync).
//
// It cannot deadlock. The consumer kernel follows a kernel of one thread in its stream, which ends
// when the last block of the producer has started. From then on each producer block is on the GPU
// or done, waits for nothing, and therefore ends; a consumer block only takes room that is left.
// All waits end at a time limit.
#include "wic/stages/kernels.cuh"

namespace
{
__device__ void wait_for(const stage_words &words, const uint32_t *word, uint32_t value)
{
    wic_watchdog dog = {0, 0};
    for (uint32_t polls = 0; !wic_word_is_at(wic_word_see(word), value); polls++) {
        if (polls % 64 != 63) {
            continue;
        }
        if (wic_word_peek(words.stop) != 0) {
            return;
        }
        if (wic_watchdog_expired(&dog, wic_depend_now(), words.limit_ns)) {
            (void)wic_swap(words.stop, 0, 1);
        }
    }
}

__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    producers(const __grid_constant__ stages s, const __grid_constant__ stage_words words)
{
    const wic_tile tile = wic_tile_at(s.order, s.producers, blockIdx.x);
    const bool early = s.mistake == STAGE_EARLY && stage_is_last(s, tile);
    if (threadIdx.x == 0) {
        (void)wic_count(words.started, 1);
        if (early) {
            stage_announce(s, words, tile, 0, 1, [](wic_tile) {});
        }
    }
    stage_producer(s, tile, stage_memory());
    __syncthreads();
    if (threadIdx.x < 32 && !early) {
        stage_announce(s, words, tile, threadIdx.x, 32, [](wic_tile) {});
    }
}

__global__ void all_started(const __grid_constant__ stage_words words, uint32_t blocks)
{
    wait_for(words, words.started, words.epoch * blocks);
}

__device__ void wait_for_tile(const stages &s, const stage_words &words, wic_tile consumer)
{
    if (threadIdx.x == 0) {
        wait_for(words, &words.counter[wic_tile_counter(&s.policy, s.consumers, consumer)],
                 words.epoch * wic_tile_needed(&s.policy, s.producers, consumer));
    }
    __syncthreads();
}

// by_depth: the policy and its consumers are steps along the depth, not tiles of the result.
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    consumers(const __grid_constant__ stages s, const __grid_constant__ stages waits,
              const __grid_constant__ stage_words words, bool by_depth)
{
    constexpr uint32_t steps = TILE_COLS / TILE_STEP; // steps of a producer tile
    const wic_tile tile = wic_tile_at(s.order, s.consumers, blockIdx.x);
    stage_consumer(s, tile, stage_memory(), [&](uint32_t step) {
        if (by_depth ? step % steps == 0 : step == 0) {
            wait_for_tile(waits, words, by_depth ? wic_tile{tile.row, step / steps} : tile);
        }
    });
}

class spinning : public stage_strategy
{
  public:
    explicit spinning(bool by_depth) : by_depth_(by_depth)
    {
        CUDA_MUST(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
        CUDA_MUST(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming));
    }
    ~spinning() override
    {
        (void)cudaEventDestroy(begin_);
        (void)cudaEventDestroy(end_);
    }
    const char *name() const override
    {
        return by_depth_ ? "spin-depth" : "spin";
    }
    bool prepare(const stages &s) override
    {
        waits_ = s;
        if (by_depth_) {
            waits_.policy = wic_policy_tile();
            waits_.consumers = s.producers;
        }
        words_.allocate(wic_tile_counters(&waits_.policy, waits_.consumers));
        allow_shared(producers);
        allow_shared(consumers);
        return !by_depth_ || s.kind == STAGE_PRODUCT;
    }
    void queue(const stages &s, cudaStream_t main, cudaStream_t side) override
    {
        const stage_words &words = words_.next();
        waits_.mistake = s.mistake;
        waits_.first = s.first;
        CUDA_MUST(cudaEventRecord(begin_, main));
        CUDA_MUST(cudaStreamWaitEvent(side, begin_, 0));
        producers<<<tiles_of(s.producers), TILE_THREADS, TILE_SHARED, main>>>(waits_, words);
        all_started<<<1, 1, 0, side>>>(words, tiles_of(s.producers));
        consumers<<<tiles_of(s.consumers), TILE_THREADS, TILE_SHARED, side>>>(s, waits_, words,
                                                                              by_depth_);
        CUDA_MUST(cudaGetLastError());
        CUDA_MUST(cudaEventRecord(end_, side));
        CUDA_MUST(cudaStreamWaitEvent(main, end_, 0));
    }
    uint32_t stopped() override
    {
        return words_.stopped();
    }

  private:
    const bool by_depth_;
    stages waits_ = {};
    device_words words_;
    cudaEvent_t begin_, end_;
};
} // namespace

std::unique_ptr<stage_strategy> make_spin()
{
    return std::make_unique<spinning>(false);
}

std::unique_ptr<stage_strategy> make_spin_depth()
{
    return std::make_unique<spinning>(true);
}
