// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Workers of one resident kernel (wic/depend): all producer tiles are ready at the start; the
// worker that completes a counter pushes its consumer tiles. No worker waits for a tile: while some
// are not ready it takes others, therefore one stage's last wave is filled by the other.
//
// - Producer tiles have precedence: with the consumer's first, the rest of the producer is left for
//   the end, where it does not fill the GPU; 2.5 waves took 9 % longer.
// - A fifth warp that claims tiles ahead and announces them was tried: its registers leave 168 to
//   each thread that computes, and tiles took 17 % longer.
// - Two sets of rings take turns: a run copies the image of fresh rings to those of the next run.
#include "wic/depend/ready.cuh"
#include "wic/stages/kernels.cuh"

#include <vector>

namespace
{
enum { PRODUCERS, CONSUMERS }; // rings, in the order of precedence

struct whole_block {
    uint32_t thread;
    __device__ void sync() const
    {
        tile_sync();
    }
};

// For the next run.
struct fresh_rings {
    const uint4 *from;
    uint4 *to;
    uint32_t parts;
};

__device__ void push_group(const stages &s, const wic_ready &ready, wic_tile group)
{
    const bool rows = s.policy.row.step == 0, cols = s.policy.col.step == 0;
    const uint32_t n = cols ? s.consumers.cols : 1; // one after the other
    for (uint32_t r = rows ? 0 : group.row; r < (rows ? s.consumers.rows : group.row + 1); r++) {
        wic_push(ready, CONSUMERS, r * s.consumers.cols + (cols ? 0 : group.col), n);
    }
}

__device__ void announce(const stages &s, const wic_ready &ready, const stage_words &words,
                         wic_tile tile)
{
    stage_announce(s, words, tile, 0, 1, [&](wic_tile group) { push_group(s, ready, group); });
}

__device__ wic_tile tile_of(const stages &s, wic_task task)
{
    const uint32_t cols = task.ring == CONSUMERS ? s.consumers.cols : s.producers.cols;
    return {task.task / cols, task.task % cols};
}

// Called by one thread when the task is done, and visible to it.
__device__ void finish(const stages &s, const wic_ready &ready, const stage_words &words,
                       wic_task task)
{
    const bool last = stage_is_last(s, tile_of(s, task));
    if (task.ring == CONSUMERS) {
        if (wic_arrive(words.started, s.consumers.rows * s.consumers.cols)) {
            wic_stop(ready, WIC_READY_DONE);
        }
    } else if (s.mistake != STAGE_EARLY || !last) {
        announce(s, ready, words, tile_of(s, task));
    }
}

__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS)
    workers(const __grid_constant__ stages s, const __grid_constant__ wic_ready ready,
            const __grid_constant__ stage_words words, const __grid_constant__ fresh_rings fresh)
{
    __shared__ wic_seats seats;
    for (uint32_t i = blockIdx.x * TILE_THREADS + threadIdx.x; i < fresh.parts;
         i += gridDim.x * TILE_THREADS) {
        fresh.to[i] = fresh.from[i];
    }
    const whole_block group = {threadIdx.x};
    wic_task task;
    for (uint32_t turn = 0; wic_take(ready, seats, turn, group, &task); turn++) {
        const wic_tile tile = tile_of(s, task);
        const bool early =
            task.ring == PRODUCERS && s.mistake == STAGE_EARLY && stage_is_last(s, tile);
        if (early && threadIdx.x == 0) {
            announce(s, ready, words, tile);
        }
        if (task.ring == CONSUMERS) {
            stage_consumer(s, tile, stage_memory(), [](uint32_t) {});
        } else {
            stage_producer(s, tile, stage_memory());
        }
        group.sync();
        if (threadIdx.x == 0) {
            finish(s, ready, words, task);
        }
    }
}

class by_workers : public stage_strategy
{
  public:
    ~by_workers() override
    {
        (void)cudaFree(memory_);
    }
    const char *name() const override
    {
        return "workers";
    }
    bool prepare(const stages &s) override
    {
        int per = 0, processors = 0;
        allow_shared(workers);
        CUDA_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
        CUDA_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, workers, TILE_THREADS,
                                                                TILE_SHARED));
        blocks_ = static_cast<uint32_t>(per * processors);
        words_.allocate(wic_tile_counters(&s.policy, s.consumers));
        lay_out(s);
        return true;
    }
    void queue(const stages &s, cudaStream_t main, cudaStream_t) override
    {
        const stage_words &words = words_.next();
        turn_ = words.epoch % 2;
        const fresh_rings fresh = {reinterpret_cast<const uint4 *>(memory_ + 2 * bytes_),
                                   reinterpret_cast<uint4 *>(memory_ + (1 - turn_) * bytes_),
                                   static_cast<uint32_t>(bytes_ / sizeof(uint4))};
        workers<<<blocks_, TILE_THREADS, TILE_SHARED, main>>>(s, ready_[turn_], words, fresh);
        CUDA_MUST(cudaGetLastError());
    }
    uint32_t stopped() override
    {
        uint32_t stop = 0;
        CUDA_MUST(cudaMemcpy(&stop, ready_[turn_].stop, sizeof stop, cudaMemcpyDeviceToHost));
        return stop == WIC_READY_DONE ? 0 : 1;
    }

  private:
    // Two sets of rings and the image that they are copied from.
    void lay_out(const stages &s)
    {
        const uint32_t n = tiles_of(s.producers);
        const uint32_t most[WIC_READY_RINGS] = {n, tiles_of(s.consumers)};
        bytes_ = wic_ready_bytes(most);
        std::vector<unsigned char> image(bytes_);
        std::vector<uint32_t> tasks(n);
        for (uint32_t i = 0; i < n; i++) {
            const wic_tile tile = wic_tile_at(s.order, s.producers, i);
            tasks[i] = tile.row * s.producers.cols + tile.col;
        }
        (void)cudaFree(memory_);
        CUDA_MUST(cudaMalloc(&memory_, 3 * bytes_));
        wic_ready_init(most, STAGE_LIMIT_NS, image.data(), memory_, &ready_[0]);
        wic_ready_init(most, STAGE_LIMIT_NS, image.data(), memory_ + bytes_, &ready_[1]);
        wic_ready_list(image.data(), &ready_[1], PRODUCERS, tasks.data(), n);
        reinterpret_cast<wic_ready_line *>(image.data())->brought[PRODUCERS] = n;
        for (uint32_t i = 0; i < 3; i++) {
            CUDA_MUST(
                cudaMemcpy(memory_ + i * bytes_, image.data(), bytes_, cudaMemcpyHostToDevice));
        }
    }
    wic_ready ready_[2] = {};
    uint32_t turn_ = 0;
    device_words words_;
    unsigned char *memory_ = nullptr;
    size_t bytes_ = 0; // a multiple of 128
    uint32_t blocks_ = 0;
};
} // namespace

std::unique_ptr<stage_strategy> make_workers()
{
    return std::make_unique<by_workers>();
}
