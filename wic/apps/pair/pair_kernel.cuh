// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_KERNEL_CUH
#define WIC_APP_PAIR_KERNEL_CUH
// The strategies of two resident kernels of one GPU, and the memory of all strategies of a pair. A
// kernel has one block of 1024 threads on each of half of the multiprocessors; or, with a 2 in the
// name of the strategy, two blocks of 512 threads (wic: and a warp) for each of these, which may
// share multiprocessors with blocks of the other kernel.
//
//   wic           one warp of a block, the Activator, polls the board for the block's next piece,
//                 also during C1, and pulls it into shared memory by a bulk copy; the others are
//                 parked at a named barrier until it is there
//   poll-elected  thread 0 of a block polls the board, and the block reads the chunk where it is
//   managed-flag  the same by atomics on words in managed memory, where chunks are, too
#include "wic/apps/pair/pair.cuh"
#include "wic/apps/strategies/wic.cuh"

#include <list>

// Data that the strategies of one application and size share.
template <class A> struct pair_place {
    app_step most;
    size_t bytes[2];          // size of a chunk, by receiver, a multiple of 16
    typename A::view view[2]; // in device memory
    uint32_t blocks;          // count of blocks of each party
    uint32_t shared_bytes;    // shared memory of a multiprocessor
    uint32_t *words;          // pinned: stop, begin, states
    uint64_t limit_ns;
};

template <class A> class pair_strategy
{
  public:
    pair_strategy() = default;
    virtual ~pair_strategy() = default;
    pair_strategy(const pair_strategy &) = delete;
    pair_strategy &operator=(const pair_strategy &) = delete;

    // Not timed. The inputs are in the memory of place.view.
    virtual void ready(const app_fault &fault) = 0;
    // Timed: the whole round. False: it took too long, and *place.words is set.
    virtual bool run() = 0;
    // Not timed. The device is idle when it returns.
    virtual void rest() = 0;
};

// --- device -----------------------------------------------------------------------------------

constexpr uint32_t pair_threads_all = 1024;

class pair_threads
{
  public:
    static constexpr uint32_t shared_bytes = 0;
    const uint32_t block = blockIdx.x, blocks = gridDim.x;

    __device__ app_part part() const
    {
        return {threadIdx.x, blockDim.x};
    }
    // Two places in turn: when thread 0 writes one, all threads have read it.
    __device__ uint64_t share(uint64_t value)
    {
        __shared__ uint64_t shared[2];
        turn_ ^= 1;
        if (threadIdx.x == 0) {
            shared[turn_] = value;
        }
        __syncthreads();
        return shared[turn_];
    }
    __device__ void taken() const
    {
    }

  private:
    uint32_t turn_ = 0;
};

struct pair_see_elected {
    __device__ uint64_t operator()(const pair_lane &lane, uint32_t number) const
    {
        return pair_look(lane, number);
    }
};
struct pair_see_managed {
    __device__ uint64_t operator()(const pair_lane &lane, uint32_t number) const
    {
        const uint64_t seen = atomicAdd_system(
            reinterpret_cast<unsigned long long *>(&lane.board[number & lane.mask]), 0ULL);
        __threadfence_system();
        return static_cast<uint32_t>(seen >> 32) == number + 1 ? seen : 0;
    }
};

template <class See, uint32_t each_> class pair_polling : public pair_threads
{
  public:
    static constexpr uint32_t each = each_, threads = pair_threads_all / each;

    template <class A, int party>
    static __device__ void run(const pair_view &p, const typename A::view &v)
    {
        pair_polling way;
        pair_party<A, party, pair_polling>(v, p, way).run();
    }
    __device__ uint64_t take(const pair_view &p, const pair_lane &lane, uint32_t number,
                             size_t offset, const void **from)
    {
        uint64_t word = 0;
        if (threadIdx.x == 0) {
            const bool is_here = pair_wait(p, [&] {
                word = See()(lane, number);
                return word != 0;
            });
            word = is_here ? static_cast<uint32_t>(word) : resident_leave;
        }
        *from = lane.data + size_t(number & lane.mask) * lane.bytes + offset;
        return share(word);
    }
};

// The working warps of wic.
template <uint32_t each_> class pair_parked
{
  public:
    static constexpr uint32_t each = each_, depth = wic_app_way::depth;
    static constexpr uint32_t workers =
        each == 1 ? pair_threads_all / 32 - 1 : pair_threads_all / 32 / each;
    static constexpr uint32_t threads = 32 * (workers + 1);
    static constexpr uint32_t shared_bytes = WIC_STAGES_OFFSET + depth * resident_piece_most;
    const uint32_t block = blockIdx.x, blocks = gridDim.x;

    __device__ pair_parked(const wic_block &stages, wic_app_shared *own)
        : stages_(stages), own_(own), position_(stages.view)
    {
    }
    __device__ app_part part() const
    {
        return {threadIdx.x - 32, 32 * workers};
    }
    __device__ uint64_t share(uint64_t value)
    {
        turn_ ^= 1;
        volatile uint64_t *shared = &own_->share[turn_];
        if (part().thread == 0) {
            *shared = value;
        }
        __syncwarp(); // bar is undefined for a warp that has not converged
        asm volatile("bar.sync 0, %0;" ::"r"(32 * workers) : "memory");
        return *shared;
    }
    __device__ uint64_t take(const pair_view &, const pair_lane &, uint32_t, size_t,
                             const void **from)
    {
        wic_barrier_park(stages_.full(position_.stage), position_.round);
        const volatile wic_stage *stage = stages_.stage(position_.stage);
        *from = stages_.in(position_.stage);
        is_over_ = stage->tile == WIC_LEAVE;
        return is_over_ ? resident_leave : stage->units;
    }
    __device__ void taken()
    {
        wic_barrier_arrive(stages_.done(position_.stage));
        position_.next(depth);
    }
    // Takes pieces until the Activator has ended.
    __device__ void leave(const pair_view &p)
    {
        const void *from;
        while (!is_over_ && take(p, p.to[0], 0, 0, &from) != resident_leave) {
            taken();
        }
    }

    template <class A, int party>
    static __device__ void run(const pair_view &p, const typename A::view &v);

  private:
    const wic_block &stages_;
    wic_app_shared *own_;
    wic_stage_position position_;
    uint32_t turn_ = 0;
    bool is_over_ = false;
};

// The Activator pulls one piece. False: leave. All lanes of a warp.
__device__ inline bool pair_pull(const pair_view &p, const pair_lane &lane, const wic_block &block,
                                 wic_app_next *next, uint32_t number, const wic_copy_request &piece)
{
    next->empty(block);
    uint64_t word = 0;
    if (wic_lane() == 0 && !pair_wait(p, [&] {
            word = pair_look(lane, number);
            return word != 0;
        })) {
        word = resident_leave;
    }
    word = __shfl_sync(~0u, word, 0);
    if (word == resident_leave) {
        return false;
    }
    const uint32_t stage = next->position.stage, units = static_cast<uint32_t>(word);
    wic_fill_stage(block, next->position, {number, nullptr, nullptr, 0, 0, units});
    wic_pull(block.bytes(stage), {block.in(stage), piece.pinned, units == 0 ? 0 : piece.bytes},
             {nullptr, nullptr, 0});
    wic_pulled(block.bytes(stage), next->position.round);
    next->filled(block);
    return true;
}

// Chunks of a step for this party, in the Activator's warp. False: the round has ended, or leave.
template <class A, int party>
__device__ inline bool pair_step(const pair_view &p, const typename A::view &v, app_step *step,
                                 uint32_t *chunks)
{
    if constexpr (!A::facts.told) {
        const bool is_step = A::next(v, step);
        *chunks = party == 1 ? step->down : step->up;
        return is_step;
    } else {
        uint64_t count = resident_leave;
        if (wic_lane() == 0 && pair_told_step(p, step)) {
            count = party == 1 ? step->down : pair_told_ups(p, step->index);
        }
        count = __shfl_sync(~0u, count, 0);
        step->down_units = __shfl_sync(~0u, step->down_units, 0);
        step->up_units = __shfl_sync(~0u, step->up_units, 0);
        *chunks = static_cast<uint32_t>(count);
        return count != resident_leave;
    }
}

template <class A, int party>
__device__ inline void pair_activate(const pair_view &p, const typename A::view &v,
                                     const wic_block &block)
{
    constexpr uint32_t unit = party == 1 ? A::facts.down_unit : A::facts.up_unit;
    const pair_lane &lane = p.to[party];
    wic_app_next next(block.view);
    uint32_t got = 0, chunks = 0;
    bool stays = true;
    for (app_step step = {}; stays && pair_step<A, party>(p, v, &step, &chunks); step.index++) {
        const uint32_t units = party == 1 ? step.down_units : step.up_units;
        const resident_cut cut(chunks, units, unit, gridDim.x);
        for (uint32_t at = blockIdx.x; at < chunks * cut.pieces && stays; at += gridDim.x) {
            const app_piece piece = cut.piece(at, units);
            const uint32_t number = got + piece.chunk;
            stays = pair_pull(
                p, lane, block, &next, number,
                {nullptr,
                 lane.data + size_t(number & lane.mask) * lane.bytes + size_t(piece.first) * unit,
                 (piece.units * unit + 15) / 16 * 16});
        }
        got += chunks;
    }
    next.empty(block);
    wic_fill_stage(block, next.position, {WIC_LEAVE, nullptr, nullptr, 0, 0, 0});
    next.filled(block);
}

template <uint32_t each_>
template <class A, int party>
__device__ void pair_parked<each_>::run(const pair_view &p, const typename A::view &v)
{
    extern __shared__ __align__(128) unsigned char wic_shared[];
    __shared__ wic_app_shared own;
    __shared__ wic_view view;
    const wic_block block = {view, wic_shared};
    if (threadIdx.x == 0) {
        view = {};
        view.plan.depth = depth;
        view.plan.warps = workers;
        view.plan.in_piece = view.stage_bytes = resident_piece_most;
        for (uint32_t stage = 0; stage < depth; stage++) {
            wic_bytes_init(block.bytes(stage));
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        pair_activate<A, party>(p, v, block);
    } else {
        pair_parked way(block, &own);
        pair_party<A, party, pair_parked>(v, p, way).run();
        way.leave(p);
    }
}

template <class A, int party, class Way>
__global__ void __launch_bounds__(Way::threads, Way::each)
    pair_run(const __grid_constant__ pair_view p, const __grid_constant__ typename A::view v)
{
    Way::template run<A, party>(p, v);
}

// --- host -------------------------------------------------------------------------------------

// Rings of chunks and words.
template <class A> class pair_room
{
  public:
    // chunks: least places for each receiver, or NULL
    pair_room(const pair_place<A> &place, bool is_managed, const uint32_t *chunks = nullptr)
        : place_(place)
    {
        const uint32_t most[2] = {place.most.up, place.most.down};
        for (int to = 0; to < 2; to++) {
            uint32_t places = 2; // chunks of two steps, and of eight if they are small
            while (places < 2 * most[to] || (chunks != nullptr && places < chunks[to]) ||
                   (places < 8 * most[to] && 2 * places * place.bytes[to] <= ring_bytes)) {
                places *= 2;
            }
            pair_lane &lane = view_.to[to];
            lane.mask = places - 1;
            lane.bytes = place.bytes[to];
            take(is_managed, places * place.bytes[to], &lane.data);
            take(is_managed, places * sizeof(uint64_t), &lane.board);
            take(false, places * sizeof(uint32_t), &lane.made);
            take(false, line, &lane.taken);
            take(false, line, &view_.met[to]);
            take(false, line, &view_.started[to]);
            view_.state[to] = place.words + 2 * line / 4 + to * line / 4;
        }
        take(false, resident_steps_ring * resident_step_words * sizeof(uint64_t), &view_.steps);
        take(false, resident_steps_ring * sizeof(uint32_t), &view_.ups);
        view_.stop = place.words;
        view_.begin = place.words + line / 4;
        view_.limit_ns = place.limit_ns;
    }
    void clear(const app_fault &fault)
    {
        view_.fault = fault;
        memset(place_.words, 0, 4 * line);
        for (const part &one : parts_) {
            const bool is_data = one.at == view_.to[0].data || one.at == view_.to[1].data;
            APP_MUST(cudaMemset(one.at, is_data ? app_poison : 0, one.bytes));
        }
        APP_MUST(cudaDeviceSynchronize());
    }
    // Before a kernel of this party runs alone.
    void clear_for(int party)
    {
        memset(place_.words, 0, 4 * line);
        pair_forget(view_, party,
                    [](void *at, size_t bytes) { APP_MUST(cudaMemset(at, 0, bytes)); });
        APP_MUST(cudaDeviceSynchronize());
    }
    const pair_view &view() const
    {
        return view_;
    }

    static constexpr size_t line = 128, ring_bytes = size_t{64} << 20;

  private:
    struct part {
        void *at;
        size_t bytes;
    };
    template <class T> void take(bool is_managed, size_t bytes, T **to)
    {
        memory_.emplace_back();
        is_managed ? memory_.back().managed(bytes) : memory_.back().device(bytes);
        parts_.push_back({memory_.back().at(), bytes});
        *to = reinterpret_cast<T *>(memory_.back().at());
    }

    const pair_place<A> &place_;
    pair_view view_ = {};
    std::list<resident_allocation> memory_;
    std::vector<part> parts_;
};

template <class A, class Way> class pair_resident : public pair_strategy<A>
{
  public:
    pair_resident(const pair_place<A> &place, bool is_managed, const uint32_t *chunks = nullptr)
        : place_(place), room_(place, is_managed, chunks)
    {
        for (cudaStream_t &stream : stream_) {
            APP_MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        }
    }
    // NULL: *why.
    static std::unique_ptr<pair_strategy<A>> open(const pair_place<A> &place, bool is_managed,
                                                  std::string *why)
    {
        if (!fits<0>(place) || !fits<1>(place)) {
            *why = "another number of blocks fits on a multiprocessor";
            return nullptr;
        }
        return std::unique_ptr<pair_strategy<A>>(new pair_resident(place, is_managed));
    }
    ~pair_resident() override
    {
        for (cudaStream_t stream : stream_) {
            cudaStreamDestroy(stream);
        }
    }
    void ready(const app_fault &fault) override
    {
        room_.clear(fault);
        launch<0>();
        launch<1>();
        until(RESIDENT_HERE, true, true);
    }
    bool run() override
    {
        return begin(true, true);
    }
    // One party alone, after a round by both: all chunks for it are there if the rings have a place
    // for each chunk of the round.
    template <int party> void ready_alone()
    {
        room_.clear_for(party);
        launch<party>();
        until(RESIDENT_HERE, party == 0, party == 1);
    }
    template <int party> bool run_alone()
    {
        return begin(party == 0, party == 1);
    }
    void rest() override
    {
        for (cudaStream_t stream : stream_) {
            APP_MUST(cudaStreamSynchronize(stream));
        }
    }

  private:
    bool begin(bool first, bool second)
    {
        __atomic_store_n(const_cast<uint32_t *>(room_.view().begin), 1, __ATOMIC_RELEASE);
        if (until(RESIDENT_DONE, first, second)) {
            return true;
        }
        __atomic_store_n(place_.words, 1, __ATOMIC_RELEASE);
        return false;
    }
    // More than 1 / (each + 1) of a multiprocessor's, so that no more blocks fit.
    static uint32_t shared_bytes(const pair_place<A> &place)
    {
        return std::max(place.shared_bytes / (Way::each + 1) + 1024, Way::shared_bytes);
    }
    // Way::each blocks of either kernel on a multiprocessor, so that all of both are resident.
    template <int party> static bool fits(const pair_place<A> &place)
    {
        int each = 0;
        const void *kernel = reinterpret_cast<const void *>(pair_run<A, party, Way>);
        const uint32_t bytes = shared_bytes(place);
        APP_MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(bytes)));
        APP_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, Way::threads, bytes));
        return each == Way::each;
    }
    template <int party> void launch()
    {
        pair_run<A, party, Way>
            <<<Way::each * place_.blocks, Way::threads, shared_bytes(place_), stream_[party]>>>(
                room_.view(), place_.view[party]);
        APP_MUST(cudaGetLastError());
    }
    // Waits for the first party, the second, or both.
    bool until(uint32_t state, bool first, bool second)
    {
        const uint64_t begin = app_host_now();
        const pair_view &p = room_.view();
        for (uint32_t turn = 1; (first && __atomic_load_n(p.state[0], __ATOMIC_ACQUIRE) < state) ||
                                (second && __atomic_load_n(p.state[1], __ATOMIC_ACQUIRE) < state);
             turn++) {
            wic_cpu_relax();
            if (turn % 1024 == 0 && app_host_now() - begin > place_.limit_ns) {
                return false;
            }
        }
        return true;
    }

    const pair_place<A> &place_;
    pair_room<A> room_;
    cudaStream_t stream_[2];
};

#define PAIR_BY(id, Way, is_managed)                                                               \
    template <class A>                                                                             \
    std::unique_ptr<pair_strategy<A>> pair_by_##id(const pair_place<A> &place, std::string *why)   \
    {                                                                                              \
        return pair_resident<A, Way>::open(place, is_managed, why);                                \
    }
using pair_elected = pair_polling<pair_see_elected, 1>;
using pair_elected_2 = pair_polling<pair_see_elected, 2>;
using pair_managed = pair_polling<pair_see_managed, 1>;
PAIR_BY(poll_elected, pair_elected, false)
PAIR_BY(poll_elected_2, pair_elected_2, false)
PAIR_BY(managed_flag, pair_managed, true)
PAIR_BY(wic, pair_parked<1>, false)
PAIR_BY(wic_2, pair_parked<2>, false)
#undef PAIR_BY
#endif
