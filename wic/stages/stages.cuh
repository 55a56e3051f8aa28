// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_STAGES_CUH
#define WIC_STAGES_CUH
// Two dependent stages, as strategies see them: tiles of the producer, a product of matrices, and
// tiles of the consumer, which need some of the producer's tiles by a policy (wic/device/tiles.h).
// A strategy decides when tiles are computed, and never how; all of them call stage_producer and
// stage_consumer.
#include "wic/device/tiles.h"
#include "wic/depend/words.cuh"
#include "wic/stages/tile.cuh"
#include "wic/watchdog.h"

#include <memory>

// Kinds of consumer tiles.
enum stage_kind {
    STAGE_PRODUCT,    // a second product; policy row, or tile by tile along its depth
    STAGE_POINTS,     // each element of the same place; policy tile
    STAGE_NEIGHBOURS, // sums of 3 x 3 elements; policy neighbours
    STAGE_THIRDS,     // a third of the columns times the second third plus the last; policy strided
    STAGE_KINDS
};

enum stage_mistake {
    STAGE_RIGHT,
    STAGE_EARLY,   // the last producer tile is late, and its consumers do not wait for it
    STAGE_LOST,    // the last producer tile is announced and not computed
    STAGE_ELEMENT, // one element of the result is wrong
    STAGE_SILENT,  // the last producer tile is not announced: the time limit ends all waits
    STAGE_MISTAKES
};

struct stages {
    tile_product first, second; // second: STAGE_PRODUCT only
    half *out;                  // result of the consumer, pitch: its columns
    wic_tile_grid producers, consumers;
    wic_tile_policy policy;
    wic_tile_order order; // order of both
    stage_kind kind;
    stage_mistake mistake;
};

// Words of a strategy with waits on the device. They rise by run and are never reset.
struct stage_words {
    uint32_t *counter; // counters of the policy
    uint32_t *started; // producer blocks
    uint32_t *stop;    // nonzero: all waits end
    uint32_t epoch;    // number of this run, from 1
    uint64_t limit_ns; // longest wait
};

constexpr uint32_t STAGE_LATE_NS = 400000; // delay of the tile that is late on purpose

__device__ inline bool stage_is_last(const stages &s, wic_tile producer)
{
    return producer.row == s.producers.rows - 1 && producer.col == s.producers.cols - 1;
}

__device__ inline void stage_sleep(uint64_t ns)
{
    const uint64_t begin = wic_depend_now();
    while (wic_depend_now() - begin < ns) {
        __nanosleep(1000);
    }
}

// Element of the producer's result; 0 outside of it.
__device__ inline float stage_element(const stages &s, int64_t row, int64_t col)
{
    const int64_t rows = static_cast<int64_t>(s.producers.rows) * TILE_ROWS;
    const int64_t cols = static_cast<int64_t>(s.producers.cols) * TILE_COLS;
    return row < 0 || col < 0 || row >= rows || col >= cols
               ? 0.0f
               : __half2float(s.first.out[row * cols + col]);
}

__device__ inline float stage_value(const stages &s, int64_t row, int64_t col)
{
    if (s.kind == STAGE_POINTS) {
        return 2.0f * stage_element(s, row, col) + 1.0f;
    }
    if (s.kind == STAGE_THIRDS) {
        const int64_t third = static_cast<int64_t>(s.consumers.cols) * TILE_COLS;
        return stage_element(s, row, col) * stage_element(s, row, col + third) +
               stage_element(s, row, col + 2 * third);
    }
    float sum = 0.0f;
    for (int64_t r = row - 1; r <= row + 1; r++) {
        for (int64_t c = col - 1; c <= col + 1; c++) {
            sum += stage_element(s, r, c);
        }
    }
    return sum;
}

// All threads of a tile call it. step(k), for the strategy's use, is called before each of the
// depth.
template <class Step>
__device__ void stage_producer(const stages &s, wic_tile tile, half *shared, Step step)
{
    if (s.mistake == STAGE_EARLY && stage_is_last(s, tile)) {
        stage_sleep(STAGE_LATE_NS);
    }
    if (s.mistake != STAGE_LOST || !stage_is_last(s, tile)) {
        tile_compute(s.first, tile.row, tile.col, shared, step);
    }
}

// before(step): waits until the operand's step is there; kinds without steps: before(0).
template <class Before>
__device__ void stage_consumer(const stages &s, wic_tile tile, half *shared, Before before)
{
    const uint32_t pitch = s.consumers.cols * TILE_COLS;
    if (s.kind == STAGE_PRODUCT) {
        tile_compute(s.second, tile.row, tile.col, shared, before);
    } else {
        before(0);
        for (uint32_t i = 0; i < TILE_ROWS; i++) {
            const size_t row = static_cast<size_t>(tile.row) * TILE_ROWS + i;
            const uint32_t col = tile.col * TILE_COLS + threadIdx.x;
            s.out[row * pitch + col] =
                __float2half_rn(stage_value(s, static_cast<int64_t>(row), col));
        }
    }
    if (s.mistake == STAGE_ELEMENT && tile.row == 0 && tile.col == 0) {
        tile_sync();
        if (threadIdx.x == 77) {
            half *const at = s.out + 77 * pitch + 77;
            *at = __ushort_as_half(static_cast<unsigned short>(__half_as_ushort(*at) ^ 1));
        }
    }
}

__device__ inline void stage_producer(const stages &s, wic_tile tile, half *shared)
{
    stage_producer(s, tile, shared, [](uint32_t) {});
}

// After the threads of the tile have met, by one or several of them, each with a part of the
// counters: calls done(group's row, column) for each one that the producer tile completes.
template <class Done>
__device__ void stage_announce(const stages &s, const stage_words &words, wic_tile tile,
                               uint32_t thread, uint32_t threads, Done done)
{
    const wic_tile_axis &row = s.policy.row, &col = s.policy.col;
    const wic_tile_grid p = s.producers, c = s.consumers;
    if (s.mistake == STAGE_SILENT && stage_is_last(s, tile)) {
        return;
    }
    const uint32_t rows = wic_tile_users(&row, p.rows), cols = wic_tile_users(&col, p.cols);
    for (uint32_t i = thread; i < rows * cols; i += threads) {
        wic_tile group;
        if (wic_tile_user(&row, tile.row, i / cols, p.rows, c.rows, &group.row) &&
            wic_tile_user(&col, tile.col, i % cols, p.cols, c.cols, &group.col) &&
            wic_arrive(&words.counter[wic_tile_counter(&s.policy, c, group)],
                       wic_tile_needed(&s.policy, p, group))) {
            done(group);
        }
    }
}

// A way to compute both stages, the file of that name in strategies/.
class stage_strategy
{
  public:
    virtual ~stage_strategy() = default;
    virtual const char *name() const = 0;
    // Allocates what runs of these stages need; false: not for this kind.
    virtual bool prepare(const stages &s) = 0;
    // Queues a run into `main`, or joined to it; `side` is a second stream.
    virtual void queue(const stages &s, cudaStream_t main, cudaStream_t side) = 0;
    // After the run: 0, or nonzero if a time limit ended its waits.
    virtual uint32_t stopped()
    {
        return 0;
    }
};

constexpr uint64_t STAGE_LIMIT_NS = 300000000;

std::unique_ptr<stage_strategy> make_streams();
std::unique_ptr<stage_strategy> make_launch_early(); // programmatic dependent launch
std::unique_ptr<stage_strategy> make_graph();
std::unique_ptr<stage_strategy> make_spin();       // a counter for each consumer
std::unique_ptr<stage_strategy> make_spin_depth(); // a counter for each tile along the depth
std::unique_ptr<stage_strategy> make_workers();
std::unique_ptr<stage_strategy> make_free(); // no dependency: the bound, not a strategy
#endif
