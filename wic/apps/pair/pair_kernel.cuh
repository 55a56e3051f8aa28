// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_KERNEL_CUH
#define WIC_APP_PAIR_KERNEL_CUH
// The strategies of two resident kernels, and the memory of all strategies of a pair. A kernel has
// a block of 1024 threads on each multiprocessor of its part, or two blocks of 512 threads (wic:
// and a warp). Its part is a GPU, or half of the multiprocessors of one; there, blocks of both
// kernels may share a multiprocessor. A strategy tries its shapes in the first runs and keeps the
// fastest.
//
//   wic           one warp of a block, the Activator, polls the board for the block's next piece,
//                 also during C1, and pulls it into shared memory by a bulk copy; the others are
//                 parked at a named barrier until it is there. Its shapes differ in who moves a
//                 chunk, too: the sender stores it in its place, or pushes it by a bulk store, or
//                 keeps it, and the receiver's Activator pulls it over the link. Where chunks are
//                 in the receiver's memory, its warps can read them there. In two more shapes a
//                 chunk is sent as letters, and all warps work and poll their own
//   poll-elected  thread 0 of a block polls the board, and the block reads the chunk where it is
//   managed-flag  the same by atomics on words in managed memory, where chunks are, too
//   put-signal, gps, finepack, effshare
//                 as poll-elected, but the sender brings chunks as described in their files
#include "wic/apps/pair/send.cuh"
#include "wic/apps/strategies/wic.cuh"

#include <list>

// Data that the strategies of one application and size share.
template <class A> struct pair_place {
    app_step most;
    size_t bytes[2];          // size of a chunk, by receiver, a multiple of 16
    typename A::view view[2]; // in device memory
    int device[2];            // device of each party
    uint32_t blocks;          // count of blocks of each party
    uint32_t shared_bytes;    // shared memory of a multiprocessor
    uint32_t *words;          // pinned: stop, begin, states
    uint64_t limit_ns;

    bool is_between() const // GPUs
    {
        return device[0] != device[1];
    }
};

template <class A> class pair_strategy
{
  public:
    pair_strategy() = default;
    virtual ~pair_strategy() = default;
    pair_strategy(const pair_strategy &) = delete;
    pair_strategy &operator=(const pair_strategy &) = delete;

    // False: it tries its shapes in the next runs, whose times do not count.
    virtual bool is_settled() const
    {
        return true;
    }
    // Tries all of them again.
    virtual void try_again()
    {
    }
    // The shape of the next run; empty if there is one alone.
    virtual std::string shape() const
    {
        return "";
    }
    // Not timed. The inputs are in the memory of place.view.
    virtual void ready(const app_fault &fault) = 0;
    // Timed: the whole round. False: it took too long, and *place.words is set.
    virtual bool run() = 0;
    // Not timed. The device is idle when it returns.
    virtual void rest() = 0;
};

// The device of the calling thread until the end of the scope.
class pair_on
{
  public:
    explicit pair_on(int device)
    {
        APP_MUST(cudaGetDevice(&before_));
        APP_MUST(cudaSetDevice(device));
    }
    ~pair_on()
    {
        cudaSetDevice(before_);
    }
    pair_on(const pair_on &) = delete;
    pair_on &operator=(const pair_on &) = delete;

  private:
    int before_ = 0;
};

template <class A> inline void pair_synchronize(const pair_place<A> &place)
{
    for (const int device : place.device) {
        const pair_on on(device);
        APP_MUST(cudaDeviceSynchronize());
    }
}

// --- device -----------------------------------------------------------------------------------

constexpr uint32_t pair_threads_all = 1024;

template <uint32_t each_> class pair_polling : public resident_threads
{
  public:
    static constexpr uint32_t each = each_, threads = pair_threads_all / each;
    static constexpr uint32_t shared_bytes = pair_lines_bytes;

    __device__ pair_polling() : resident_threads(gridDim.x)
    {
    }
    template <class A, int party>
    static __device__ void run(const pair_view &p, const typename A::view &v)
    {
        pair_polling way;
        pair_party<A, party, pair_polling>(v, p, way).run();
    }
    __device__ uint64_t take(const pair_view &p, const pair_sending &piece, const void **from)
    {
        uint64_t word = 0;
        if (threadIdx.x == 0) {
            const bool is_here = pair_wait(p, [&] {
                word = p.is_managed ? look_managed(piece.lane, piece.number)
                                    : pair_look(piece.lane, piece.number);
                return word != 0;
            });
            word = is_here ? static_cast<uint32_t>(word) : resident_leave;
        }
        *from = piece.data();
        return share(word);
    }
    __device__ void taken() const
    {
    }
    template <class Write>
    __device__ void make(pair_way_out send, const pair_sending &sending, Write write)
    {
        sender_.make(send, sending, lines(), write);
    }
    __device__ void send(pair_way_out send, const pair_sending &sending, bool is_lost)
    {
        sender_.send(send, sending, lines(), is_lost, *this);
    }

  protected:
    static __device__ unsigned char *lines()
    {
        extern __shared__ __align__(128) unsigned char wic_shared[];
        return wic_shared;
    }

  private:
    static __device__ uint64_t look_managed(const pair_lane &lane, uint32_t number)
    {
        const uint64_t seen = atomicAdd_system(
            reinterpret_cast<unsigned long long *>(&lane.board[number & lane.mask]), 0ULL);
        __threadfence_system();
        return static_cast<uint32_t>(seen >> 32) == number + 1 ? seen : 0;
    }

    pair_sender<pair_polling> sender_;
};

// Each thread polls letters of its own.
template <uint32_t each_> class pair_lettered : public pair_polling<each_>
{
  public:
    static constexpr uint32_t shared_bytes = pair_letters_bytes;

    template <class A, int party>
    static __device__ void run(const pair_view &p, const typename A::view &v)
    {
        pair_lettered way;
        pair_party<A, party, pair_lettered>(v, p, way).run();
    }
    __device__ uint64_t take(const pair_view &p, const pair_sending &piece, const void **from)
    {
        __shared__ uint32_t leaves; // set by a thread that gives up, and never cleared
        bool is_lost = false;
        unsigned char *to = this->lines() + pair_lines_bytes + turn_ * resident_piece_most;
        if (!is_begun_ && threadIdx.x == 0) {
            leaves = 0;
        }
        if (!is_begun_) {
            this->share(0);
        }
        is_begun_ = true;
        turn_ ^= 1;
        *from = to;
        if (!pair_letters::take(p, piece, to, this->part(), &is_lost)) {
            *static_cast<volatile uint32_t *>(&leaves) = 1;
        }
        const uint64_t found = this->share(!is_lost);
        return *static_cast<volatile uint32_t *>(&leaves) != 0 ? resident_leave : found;
    }

  private:
    uint32_t turn_ = 0;
    bool is_begun_ = false;
};

// The working warps of wic.
template <uint32_t each_> class pair_parked
{
  public:
    static constexpr uint32_t each = each_, depth = wic_app_way::depth;
    static constexpr uint32_t workers =
        each == 1 ? pair_threads_all / 32 - 1 : pair_threads_all / 32 / each;
    static constexpr uint32_t threads = 32 * (workers + 1);
    static constexpr uint32_t stage_bytes = WIC_STAGES_OFFSET + depth * resident_piece_most;
    static constexpr uint32_t shared_bytes = stage_bytes + pair_lines_bytes;
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
    __device__ uint64_t take(const pair_view &p, const pair_sending &, const void **from)
    {
        wic_barrier_park(stages_.full(position_.stage), position_.round);
        const volatile wic_stage *stage = stages_.stage(position_.stage);
        *from = p.pulls ? stages_.in(position_.stage) : stage->in;
        is_over_ = stage->tile == WIC_LEAVE;
        return is_over_ ? resident_leave : stage->units;
    }
    __device__ void taken()
    {
        wic_barrier_arrive(stages_.done(position_.stage));
        position_.next(depth);
    }
    template <class Write>
    __device__ void make(pair_way_out send, const pair_sending &sending, Write write)
    {
        sender_.make(send, sending, stages_.memory + stage_bytes, write);
    }
    __device__ void send(pair_way_out send, const pair_sending &sending, bool is_lost)
    {
        sender_.send(send, sending, stages_.memory + stage_bytes, is_lost, *this);
    }
    // Takes pieces until the Activator has ended.
    __device__ void leave(const pair_view &p)
    {
        const void *from;
        while (!is_over_ && take(p, {p.to[0], 0, 0, 0}, &from) != resident_leave) {
            taken();
        }
    }

    template <class A, int party>
    static __device__ void run(const pair_view &p, const typename A::view &v);

  private:
    const wic_block &stages_;
    wic_app_shared *own_;
    wic_stage_position position_;
    pair_sender<pair_parked> sender_;
    uint32_t turn_ = 0;
    bool is_over_ = false;
};

// The Activator brings one piece, or its place. False: leave. All lanes of a warp.
__device__ inline bool pair_bring(const pair_view &p, const pair_lane &lane, const wic_block &block,
                                  wic_app_next *next, uint32_t number,
                                  const wic_copy_request &piece)
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
    const unsigned char *from = static_cast<const unsigned char *>(piece.pinned);
    wic_fill_stage(block, next->position, {number, from, nullptr, 0, 0, units});
    if (p.pulls) {
        wic_pull(block.bytes(stage), {block.in(stage), from, units == 0 ? 0 : piece.bytes},
                 {nullptr, nullptr, 0});
        wic_pulled(block.bytes(stage), next->position.round);
    }
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
            stays = pair_bring(p, lane, block, &next, number,
                               {nullptr, lane.at(lane.data, number, size_t(piece.first) * unit),
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

// What a strategy needs of its memory.
struct pair_wants {
    bool is_managed = false; // words and chunks
    bool has_copies = false; // places of the sender
    bool has_ready = false;  // words for the host
    bool has_letters = false;
    uint32_t chunks[2] = {0}; // least places for each receiver
};

// Rings of chunks and words.
template <class A> class pair_room
{
  public:
    pair_room(const pair_place<A> &place, const pair_wants &wants)
        : place_(place), is_managed_(wants.is_managed)
    {
        const uint32_t most[2] = {place.most.up, place.most.down};
        for (int to = 0; to < 2; to++) {
            uint32_t places = 2; // chunks of two steps, and of eight if they are small
            while (places < 2 * most[to] || places < wants.chunks[to] ||
                   (places < 8 * most[to] && 2 * places * place.bytes[to] <= ring_bytes)) {
                places *= 2;
            }
            take_lane(to, places, wants);
            take(to, line, 0, &view_.met[to]);
            take(to, line, 0, &view_.started[to]);
            view_.state[to] = place.words + 2 * line / 4 + to * line / 4;
        }
        take(1, resident_steps_ring * resident_step_words * sizeof(uint64_t), 0, &view_.steps);
        take(0, resident_steps_ring * sizeof(uint32_t), 0, &view_.ups);
        view_.stop = place.words;
        view_.begin = place.words + line / 4;
        view_.limit_ns = place.limit_ns;
        view_.is_managed = wants.is_managed;
    }
    void clear(const app_fault &fault)
    {
        view_.fault = fault;
        memset(place_.words, 0, 4 * line);
        for (const part &one : parts_) {
            const pair_on on(place_.device[one.party]);
            APP_MUST(cudaMemset(one.at, one.value, one.bytes));
        }
        pair_synchronize(place_);
    }
    // Before a kernel of this party runs alone.
    void clear_for(int party)
    {
        const pair_on on(place_.device[party]);
        memset(place_.words, 0, 4 * line);
        pair_forget(view_, party,
                    [](void *at, size_t bytes) { APP_MUST(cudaMemset(at, 0, bytes)); });
        APP_MUST(cudaDeviceSynchronize());
    }
    const pair_view &view() const
    {
        return view_;
    }
    // Chunks stay with their sender, and the receiver reads them there.
    pair_view view_of_copies() const
    {
        pair_view view = view_;
        for (pair_lane &lane : view.to) {
            lane.data = lane.copy;
        }
        return view;
    }
    // Chunks for this party are there, and those that it makes stay; no barrier, fence or load
    // waits for the link.
    pair_view view_alone(int party) const
    {
        pair_view view = view_;
        view.to[1 - party].data = view.to[1 - party].copy;
        view.to[1 - party].board = own_board_[1 - party];
        view.to[party].taken = own_taken_[party];
        return view;
    }

    static constexpr size_t line = 128, ring_bytes = size_t{64} << 20;

  private:
    struct part {
        int party;
        unsigned char *at;
        size_t bytes;
        int value; // before a round
    };
    void take_lane(int to, uint32_t places, const pair_wants &wants)
    {
        const int from = 1 - to;
        pair_lane &lane = view_.to[to];
        lane.mask = places - 1;
        lane.bytes = place_.bytes[to];
        take(to, places * lane.bytes, app_poison, &lane.data, is_managed_);
        take(to, places * sizeof(uint64_t), 0, &lane.board, is_managed_);
        take(from, places * sizeof(uint32_t), 0, &lane.made);
        take(from, line, 0, &lane.taken);
        if (wants.has_copies) {
            take(from, places * lane.bytes, app_poison, &lane.copy);
            take(from, places * sizeof(uint64_t), 0, &own_board_[to]);
            take(to, line, 0, &own_taken_[to]);
        }
        if (wants.has_letters) {
            take(to, 2 * places * lane.bytes, 0, &lane.letters);
        }
        if (wants.has_ready) {
            memory_.emplace_back();
            memory_.back().pinned(places * sizeof(uint64_t));
            lane.ready = reinterpret_cast<uint64_t *>(memory_.back().at());
            parts_.push_back({to, memory_.back().at(), places * sizeof(uint64_t), 0});
        }
    }
    // In the memory of that party's GPU.
    template <class T>
    void take(int party, size_t bytes, int value, T **to, bool is_managed = false)
    {
        const pair_on on(place_.device[party]);
        memory_.emplace_back();
        is_managed ? memory_.back().managed(bytes) : memory_.back().device(bytes);
        parts_.push_back({party, memory_.back().at(), bytes, value});
        *to = reinterpret_cast<T *>(memory_.back().at());
    }

    const pair_place<A> &place_;
    const bool is_managed_;
    pair_view view_ = {};
    uint64_t *own_board_[2] = {nullptr, nullptr}; // memory of the sender
    uint32_t *own_taken_[2] = {nullptr, nullptr}; // memory of the receiver
    std::list<resident_allocation> memory_;
    std::vector<part> parts_;
};

// A shape of both kernels, and how chunks are moved.
template <class A> struct pair_shape {
    void (*kernel[2])(pair_view, typename A::view);
    uint32_t each, threads, shared_bytes; // blocks of a multiprocessor; of a block
    pair_way_out send;
    enum {
        READS,
        PULLS,
        PULLS_OVER
    } take;          // wic: chunks are read where they are; are pulled into
                     // shared memory; stay with their sender until then
    const char *how; // these two in words
};

template <class A> class pair_resident : public pair_strategy<A>
{
  public:
    pair_resident(const pair_place<A> &place, const pair_wants &wants)
        : place_(place), room_(place, wants)
    {
        for (int party = 0; party < 2; party++) {
            const pair_on on(place.device[party]);
            APP_MUST(cudaStreamCreateWithFlags(&stream_[party], cudaStreamNonBlocking));
        }
    }
    ~pair_resident() override
    {
        for (cudaStream_t stream : stream_) {
            cudaStreamDestroy(stream);
        }
    }
    // Adds a shape if its blocks are resident at once.
    template <class Way>
    void add(pair_way_out send, decltype(pair_shape<A>::take) take = pair_shape<A>::READS,
             const char *how = "", uint32_t threads = Way::threads)
    {
        const pair_shape<A> shape = {{pair_run<A, 0, Way>, pair_run<A, 1, Way>},
                                     Way::each,
                                     threads,
                                     shared_bytes<Way>(),
                                     send,
                                     take,
                                     how};
        if (fits(shape)) {
            shapes_.push_back(shape);
            trials_.shapes = shapes_.size();
        }
    }
    // NULL if no shape fits: *why.
    static std::unique_ptr<pair_strategy<A>> fit(std::unique_ptr<pair_resident> made,
                                                 std::string *why)
    {
        if (made->shapes_.empty()) {
            *why = "another number of blocks fits on a multiprocessor";
            return nullptr;
        }
        return made;
    }
    size_t shapes() const
    {
        return shapes_.size();
    }
    bool is_settled() const override
    {
        return app_trials_end(&trials_) != 0;
    }
    void try_again() override
    {
        trials_.runs = 0;
    }
    std::string shape() const override
    {
        const pair_shape<A> &shape = shapes_[app_trials_fastest(&trials_)];
        return std::to_string(shape.each) + " x " + std::to_string(shape.threads) + shape.how;
    }
    void ready(const app_fault &fault) override
    {
        shape_ = app_trials_next(&trials_);
        room_.clear(fault);
        const pair_shape<A> &shape = shapes_[shape_];
        pair_view view = shape.take == shape.PULLS_OVER ? room_.view_of_copies() : room_.view();
        view.send = shape.send;
        view.pulls = shape.take != shape.READS;
        launch(view, 0);
        launch(view, 1);
        until(RESIDENT_HERE, true, true);
    }
    bool run() override
    {
        const uint64_t start = app_host_now();
        if (!begin(true, true)) {
            return false;
        }
        app_trials_add(&trials_, shape_, static_cast<double>(app_host_now() - start) / 1e9);
        return true;
    }
    // One party alone, after a round by both: all chunks for it are there if the rings have a place
    // for each chunk of the round.
    void ready_alone(int party)
    {
        room_.clear_for(party);
        pair_view view = room_.view_alone(party);
        view.pulls = shapes_[shape_].take != shapes_[shape_].READS;
        launch(view, party);
        until(RESIDENT_HERE, party == 0, party == 1);
    }
    bool run_alone(int party)
    {
        return begin(party == 0, party == 1);
    }
    void rest() override
    {
        for (cudaStream_t stream : stream_) {
            APP_MUST(cudaStreamSynchronize(stream));
        }
    }

  protected:
    const pair_room<A> &room() const
    {
        return room_;
    }
    // Called again and again while the host waits for the kernels.
    virtual void serve()
    {
    }

    const pair_place<A> &place_;

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
    // On one GPU more than 1 / (each + 1) of a multiprocessor's, so that no more blocks fit.
    template <class Way> uint32_t shared_bytes() const
    {
        return place_.is_between()
                   ? Way::shared_bytes
                   : std::max(place_.shared_bytes / (Way::each + 1) + 1024, Way::shared_bytes);
    }
    // On one GPU shape.each blocks of either kernel, so that all of both are resident.
    bool fits(const pair_shape<A> &shape) const
    {
        for (int party = 0; party < 2; party++) {
            const pair_on on(place_.device[party]);
            const void *kernel = reinterpret_cast<const void *>(shape.kernel[party]);
            int each = 0;
            APP_MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shape.shared_bytes)));
            APP_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &each, kernel, static_cast<int>(shape.threads), shape.shared_bytes));
            const uint32_t found = static_cast<uint32_t>(each);
            if (found < shape.each || (found > shape.each && !place_.is_between())) {
                return false;
            }
        }
        return true;
    }
    void launch(const pair_view &view, int party)
    {
        const pair_on on(place_.device[party]);
        const pair_shape<A> &shape = shapes_[shape_];
        shape.kernel[party]<<<shape.each * place_.blocks, shape.threads, shape.shared_bytes,
                              stream_[party]>>>(view, place_.view[party]);
        APP_MUST(cudaGetLastError());
    }
    // Waits for the first party, the second, or both.
    bool until(uint32_t state, bool first, bool second)
    {
        const uint64_t start = app_host_now();
        const pair_view &p = room_.view();
        for (uint32_t turn = 1; (first && __atomic_load_n(p.state[0], __ATOMIC_ACQUIRE) < state) ||
                                (second && __atomic_load_n(p.state[1], __ATOMIC_ACQUIRE) < state);
             turn++) {
            wic_cpu_relax();
            serve();
            if (turn % 1024 == 0 && app_host_now() - start > place_.limit_ns) {
                return false;
            }
        }
        return true;
    }

    pair_room<A> room_;
    std::vector<pair_shape<A>> shapes_;
    app_trials trials_ = {};
    size_t shape_ = 0; // the current one
    cudaStream_t stream_[2];
};

// Pushes the chunks that are ready by copy engines.
template <class A> class pair_pushing : public pair_resident<A>
{
  public:
    explicit pair_pushing(const pair_place<A> &place)
        : pair_resident<A>(place, {false, true, true, false, {0}})
    {
        for (int to = 0; to < 2; to++) {
            const pair_on on(place.device[1 - to]);
            APP_MUST(cudaStreamCreateWithFlags(&push_[to], cudaStreamNonBlocking));
        }
    }
    ~pair_pushing() override
    {
        for (cudaStream_t stream : push_) {
            cudaStreamDestroy(stream);
        }
    }
    void ready(const app_fault &fault) override
    {
        agent_[0] = agent_[1] = {};
        pair_resident<A>::ready(fault);
    }
    void rest() override
    {
        pair_resident<A>::rest();
        for (cudaStream_t stream : push_) {
            APP_MUST(cudaStreamSynchronize(stream));
        }
    }

  private:
    void serve() override
    {
        for (int to = 0; to < 2; to++) {
            const pair_lane &lane = this->room().view().to[to];
            agent_[to].serve(lane, [&](uint32_t at, uint32_t count) {
                APP_MUST(cudaMemcpyAsync(lane.data + at * lane.bytes, lane.copy + at * lane.bytes,
                                         count * lane.bytes, cudaMemcpyDefault, push_[to]));
                APP_MUST(cudaMemcpyAsync(lane.board + at, lane.ready + at,
                                         count * sizeof *lane.board, cudaMemcpyDefault, push_[to]));
            });
        }
    }

    pair_agent agent_[2];
    cudaStream_t push_[2]; // stream of each receiver
};

// The shapes of a strategy that polls; the second one has as many working threads as wic.
template <class A> void pair_add_polling(pair_resident<A> *to, pair_way_out send)
{
    to->template add<pair_polling<1>>(send);
    to->template add<pair_polling<1>>(send, pair_shape<A>::READS, "", 32 * pair_parked<1>::workers);
    to->template add<pair_polling<2>>(send);
}

template <class A>
std::unique_ptr<pair_strategy<A>> pair_open(const pair_place<A> &place, const pair_wants &wants,
                                            pair_way_out send, std::string *why)
{
    auto made = std::make_unique<pair_resident<A>>(place, wants);
    pair_add_polling(made.get(), send);
    return pair_resident<A>::fit(std::move(made), why);
}

#define PAIR_BY(id, is_managed, has_copies, send)                                                  \
    template <class A>                                                                             \
    std::unique_ptr<pair_strategy<A>> pair_by_##id(const pair_place<A> &place, std::string *why)   \
    {                                                                                              \
        return pair_open<A>(place, {is_managed, has_copies, false, false, {0}}, send, why);        \
    }
PAIR_BY(poll_elected, false, false, PAIR_IN_PLACE)
PAIR_BY(managed_flag, true, false, PAIR_IN_PLACE)
PAIR_BY(put_signal, false, true, PAIR_PUT_SIGNAL)
PAIR_BY(gps, false, true, PAIR_GPS)
PAIR_BY(finepack, false, false, PAIR_FINEPACK)
#undef PAIR_BY

template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_effshare(const pair_place<A> &place, std::string *why)
{
    if (!place.is_between()) {
        *why = "not run: 1 GPU"; // a copy within it may need a multiprocessor
        return nullptr;
    }
    auto made = std::make_unique<pair_pushing<A>>(place);
    pair_add_polling<A>(made.get(), PAIR_EFFSHARE);
    return pair_resident<A>::fit(std::move(made), why);
}

template <class A, uint32_t each>
void pair_add_wic(const pair_place<A> &place, pair_resident<A> *wic)
{
    using shape = pair_shape<A>;
    wic->template add<pair_lettered<each>>(PAIR_LETTERS, shape::READS, ", letters");
    wic->template add<pair_parked<each>>(PAIR_IN_PLACE, shape::READS, ", stored, read");
    wic->template add<pair_parked<each>>(PAIR_IN_PLACE, shape::PULLS, ", stored, pulled");
    if (place.is_between()) {
        wic->template add<pair_parked<each>>(PAIR_FINEPACK, shape::READS, ", pushed, read");
        wic->template add<pair_parked<each>>(PAIR_IN_PLACE, shape::PULLS_OVER, ", kept, pulled");
    }
}

template <class A>
std::unique_ptr<pair_strategy<A>> pair_by_wic(const pair_place<A> &place, std::string *why)
{
    auto made =
        std::make_unique<pair_resident<A>>(place, pair_wants{false, true, false, true, {0}});
    pair_add_wic<A, 1>(place, made.get());
    pair_add_wic<A, 2>(place, made.get());
    return pair_resident<A>::fit(std::move(made), why);
}
#endif
