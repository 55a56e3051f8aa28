// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_RESIDENT_KERNEL_CUH
#define WIC_APP_RESIDENT_KERNEL_CUH
// A strategy with one resident kernel, from a way (resident.cuh): its memory and its launch.
#include "wic/apps/strategies/resident.cuh"
#include "wic/apps/strategies/strategy.cuh"

constexpr size_t resident_managed_most = size_t{1} << 30;
constexpr size_t resident_ring_bytes = size_t{64} << 20; // chunks of steps ahead
constexpr uint32_t resident_ring_least = 32, resident_ring_most = 4096;
constexpr size_t resident_thread_bytes = 16; // memory of a step for each thread, as in launches
constexpr size_t resident_alone_bytes = 64 << 10; // the most memory for a block alone to be tried

// Words and chunks are pinned, unless they are managed.
struct resident_memory {
    bool managed_flags, managed_chunks;
};

// --- device -----------------------------------------------------------------------------------

// The working threads of a multiprocessor, and the registers that are left for each.
enum resident_density : uint32_t {
    RESIDENT_FEW,  // 512 of up to 128 registers, for work of dependent loads
    RESIDENT_HALF, // 1024 of up to 64
    RESIDENT_FULL, // 2048 of 32, for streams from memory
};
template <uint32_t density> struct resident_shape {
    static constexpr uint32_t threads = density == RESIDENT_FULL ? 1024 : 512;
    static constexpr uint32_t each = density == RESIDENT_FEW ? 1 : 2;
};

class resident_threads : public resident_plain
{
  public:
    const uint32_t block = blockIdx.x, blocks;

    __device__ explicit resident_threads(uint32_t blocks) : blocks(blocks)
    {
    }
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
    __device__ void give(const resident_view &r, uint32_t number, uint32_t pieces)
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            post(r, number, pieces);
        }
    }

  private:
    uint32_t turn_ = 0;
};

struct resident_nothing {
};

// Thread 0 of each block looks at the doorbell's words with See, and the block reads chunks where
// they are.
template <class See, uint32_t slices_>
class resident_polling : public resident_threads, public resident_shape<RESIDENT_HALF>
{
  public:
    static constexpr uint32_t slices = slices_, workers = threads / 32, shared_bytes = 0;
    using argument = resident_nothing;

    static constexpr uint32_t grid(uint32_t blocks)
    {
        return blocks;
    }

    __device__ resident_polling() : resident_threads(gridDim.x)
    {
    }
    template <class A>
    static __device__ void run(const resident_view &r, const typename A::view &v, argument)
    {
        resident_polling way;
        resident_party<A, resident_polling>(v, r, way).run();
    }

    __device__ uint64_t take(const resident_view &r, uint32_t number, size_t offset, uint32_t,
                             const void **from, bool must_wait)
    {
        *from = r.down + size_t(number & r.down_mask) * r.down_bytes + offset;
        return share(threadIdx.x == 0 ? look(r, number, must_wait, See()) : 0);
    }
};

// Way::run() is the work of all threads; Way::argument is its third argument, after the views.
template <class A, class Way>
__global__ void __launch_bounds__(Way::threads, Way::each)
    resident_run(const __grid_constant__ resident_view r,
                 const __grid_constant__ typename A::view v,
                 const __grid_constant__ typename Way::argument argument)
{
    Way::template run<A>(r, v, argument);
}

// --- host -------------------------------------------------------------------------------------

// A side that adds nothing. In addition to the hooks of resident_drive, a side has
//
//   ready(view, blocks, warps, stream)
//                                 before the launch: the third argument of the kernel; warps that
//                                 work in a block
//   stop()                        the host has given up
//   rest()                        the round is over
struct resident_no_side {
    static constexpr bool letters = false;

    template <class A> explicit resident_no_side(const app_place<A> &)
    {
    }
    resident_nothing ready(const resident_view &, uint32_t, uint32_t, cudaStream_t)
    {
        return {};
    }
    void sent(unsigned char *)
    {
    }
    void reading(unsigned char *)
    {
    }
    void beat()
    {
    }
    void over(uint32_t)
    {
    }
    void stop()
    {
    }
    void rest()
    {
    }
};

// Memory of a strategy, freed with it.
class resident_allocation
{
  public:
    ~resident_allocation()
    {
        is_pinned_ ? cudaFreeHost(memory_) : cudaFree(memory_);
    }
    void pinned(size_t bytes)
    {
        is_pinned_ = true;
        APP_MUST(cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    }
    void managed(size_t bytes)
    {
        APP_MUST(cudaMallocManaged(&memory_, bytes));
    }
    void device(size_t bytes)
    {
        APP_MUST(cudaMalloc(&memory_, bytes));
    }
    unsigned char *at(size_t byte = 0) const
    {
        return static_cast<unsigned char *>(memory_) + byte;
    }

  private:
    void *memory_ = nullptr;
    bool is_pinned_ = false;
};

inline uint32_t resident_ring(uint64_t chunks, uint32_t least)
{
    uint32_t places = least;
    while (places < chunks) {
        places *= 2;
    }
    return places;
}

// The places of chunks and words. Doorbell, answers and chunks have pages of their own.
template <class A> class resident_room
{
  public:
    static constexpr size_t line = 128;

    explicit resident_room(const app_place<A> &place) : place_(place)
    {
        const bool is_piped = A::facts.order == APP_PIPED;
        const uint64_t ahead =
            std::min<uint64_t>(resident_ring_bytes / place.bytes[1], resident_ring_most);
        const uint64_t least =
            (A::facts.order == APP_EXCHANGES ? 2 : 1) * uint64_t(place.most.down);
        const uint64_t down =
            is_piped ? place.slots
                     : std::max(std::min<uint64_t>(ahead, 8 * uint64_t(place.most.down)), least);
        const uint64_t up = is_piped ? place.slots : 2 * uint64_t(place.most.up);
        downs_ = resident_ring(down, 1);
        ups_ = resident_ring(up, 1);
        while (is_piped && downs_ > place.slots) { // no more room than other strategies have
            downs_ /= 2;
            ups_ = downs_;
        }
        bells_ = std::max(downs_, resident_ring_least);
    }
    size_t chunk_bytes() const
    {
        return downs_ * place_.bytes[1] + ups_ * place_.bytes[0];
    }
    void allocate(const resident_memory &memory)
    {
        const size_t words[] = {bells_ * sizeof(uint64_t), ups_ * sizeof(uint32_t), words_bytes,
                                (bells_ + ups_) * resident_letter_words * sizeof(uint64_t)};
        for (int i = 0; i < kinds; i++) {
            if (memory.managed_flags && i < 2) {
                words_[i].managed(words[i]);
            } else {
                words_[i].pinned(words[i]);
            }
            word_bytes_[i] = words[i];
        }
        memory.managed_chunks ? down_.managed(downs_ * place_.bytes[1])
                              : down_.pinned(downs_ * place_.bytes[1]);
        memory.managed_chunks ? up_.managed(ups_ * place_.bytes[0])
                              : up_.pinned(ups_ * place_.bytes[0]);
        device_bytes_ = line + steps_bytes + ups_ * sizeof(uint32_t);
        device_.device(device_bytes_);
    }
    resident_view view() const
    {
        resident_view r = {};
        r.doorbell = reinterpret_cast<uint64_t *>(words_[0].at());
        r.answer = reinterpret_cast<uint32_t *>(words_[1].at());
        r.taken = reinterpret_cast<uint32_t *>(words_[2].at());
        r.state = reinterpret_cast<uint32_t *>(words_[2].at(line));
        r.begin = reinterpret_cast<uint32_t *>(words_[2].at(2 * line));
        r.ups = reinterpret_cast<uint32_t *>(words_[2].at(3 * line));
        r.steps = reinterpret_cast<uint64_t *>(words_[2].at(3 * line + ups_bytes));
        r.letters_down = reinterpret_cast<uint64_t *>(words_[3].at());
        r.letters_up = r.letters_down + bells_ * resident_letter_words;
        r.down = down_.at();
        r.up = up_.at();
        r.down_bytes = place_.bytes[1];
        r.up_bytes = place_.bytes[0];
        r.bell_mask = bells_ - 1;
        r.down_mask = downs_ - 1;
        r.up_mask = ups_ - 1;
        r.met = reinterpret_cast<uint32_t *>(device_.at());
        r.started = r.met + 1;
        r.steps_copy = reinterpret_cast<uint64_t *>(device_.at(line));
        r.made = reinterpret_cast<uint32_t *>(device_.at(line + steps_bytes));
        r.stamps = place_.stamps;
        r.stamp_rows = app_stamp_rows;
        r.stamp_blocks = app_stamp_blocks;
        r.stop = place_.stop;
        r.limit_ns = place_.limit_ns;
        return r;
    }
    void clear(cudaStream_t stream)
    {
        for (int i = 0; i < kinds; i++) {
            memset(words_[i].at(), 0, word_bytes_[i]);
        }
        memset(down_.at(), app_poison, downs_ * place_.bytes[1]);
        memset(up_.at(), app_poison, ups_ * place_.bytes[0]);
        APP_MUST(cudaMemsetAsync(device_.at(), 0, device_bytes_, stream));
        APP_MUST(cudaStreamSynchronize(stream));
    }

  private:
    static constexpr size_t ups_bytes = resident_steps_ring * sizeof(uint32_t),
                            steps_bytes =
                                resident_steps_ring * resident_step_words * sizeof(uint64_t);
    static constexpr int kinds = 4; // doorbell, answers, single words, letters
    static constexpr size_t words_bytes = 3 * line + ups_bytes + steps_bytes;

    const app_place<A> &place_;
    uint32_t bells_, downs_, ups_; // number of places of the rings
    resident_allocation words_[kinds], down_, up_, device_;
    size_t word_bytes_[kinds], device_bytes_;
};

// A shape of the kernel: threads and blocks.
template <class A, class Argument> struct resident_candidate {
    void (*run)(resident_view, typename A::view, Argument);
    uint32_t threads, warps, shared_bytes; // warps that work; of a block
    uint32_t grid;                         // number of blocks
};

// Its first rounds try the shapes that were added, twice each; then it keeps the fastest.
template <class A, class Argument, class Side = resident_no_side>
class resident_strategy : public app_strategy<A>
{
  public:
    // NULL: *why.
    static std::unique_ptr<resident_strategy> open(const app_place<A> &place,
                                                   const resident_memory &memory, std::string *why)
    {
        std::unique_ptr<resident_strategy> made(new resident_strategy(place));
        if ((memory.managed_chunks || memory.managed_flags) &&
            made->room_.chunk_bytes() > resident_managed_most) {
            *why = "more than 1 GiB of managed memory";
            return nullptr;
        }
        made->room_.allocate(memory);
        made->view_ = made->room_.view();
        APP_MUST(cudaStreamCreateWithFlags(&made->stream_, cudaStreamNonBlocking));
        return made;
    }
    ~resident_strategy() override
    {
        if (stream_ != nullptr) {
            cudaStreamDestroy(stream_);
        }
    }

    // Adds a shape with that many blocks that work, or as many as are resident at once.
    template <class Way> void add(uint32_t blocks)
    {
        int each = 0;
        APP_MUST(cudaFuncSetAttribute(
            resident_run<A, Way>, cudaFuncAttributeMaxDynamicSharedMemorySize, Way::shared_bytes));
        APP_MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, resident_run<A, Way>,
                                                               Way::threads, Way::shared_bytes));
        const uint32_t most = static_cast<uint32_t>(place_.processors) *
                              std::min(static_cast<uint32_t>(each), Way::each);
        blocks = std::min(blocks, most);
        while (blocks > 0 && Way::grid(blocks) > most) {
            blocks--;
        }
        if (blocks > 0) {
            shapes_.push_back({resident_run<A, Way>, Way::threads, Way::workers, Way::shared_bytes,
                               Way::grid(blocks)});
            trials_.shapes = shapes_.size();
        }
    }
    // NULL if no shape fits.
    static std::unique_ptr<app_strategy<A>> fit(std::unique_ptr<resident_strategy> made,
                                                std::string *why)
    {
        if (made != nullptr && made->shapes_.empty()) {
            *why = "no block of the kernel fits on a multiprocessor";
            return nullptr;
        }
        return made;
    }

    bool is_settled() const override
    {
        return app_trials_end(&trials_) != 0;
    }
    void ready() override
    {
        shape_ = app_trials_next(&trials_);
        const resident_candidate<A, Argument> &shape = shapes_[shape_];
        room_.clear(stream_);
        const Argument argument = side_.ready(view_, shape.grid, shape.warps, stream_);
        shape.run<<<shape.grid, shape.threads, shape.shared_bytes, stream_>>>(view_, place_.view,
                                                                              argument);
        APP_MUST(cudaGetLastError());
        while (__atomic_load_n(view_.state, __ATOMIC_ACQUIRE) == 0) {
            const cudaError_t error = cudaStreamQuery(stream_);
            if (error == cudaErrorNotReady) {
                (void)cudaGetLastError();
            } else if (error != cudaSuccess ||
                       __atomic_load_n(view_.state, __ATOMIC_ACQUIRE) == 0) {
                APP_MUST(error == cudaSuccess ? cudaErrorLaunchFailure : error);
            }
        }
    }

    bool run(app_run<A> &host) override
    {
        const uint64_t begin = app_host_now();
        if (resident_drive<A, app_run<A>, Side>(view_, host, side_).run()) {
            app_trials_add(&trials_, shape_, static_cast<double>(app_host_now() - begin) / 1e9);
            return true;
        }
        side_.stop();
        return false;
    }

    void rest() override
    {
        side_.rest();
        APP_MUST(cudaStreamSynchronize(stream_));
    }

  private:
    explicit resident_strategy(const app_place<A> &place)
        : place_(place), room_(place), side_(place)
    {
    }

    const app_place<A> &place_;
    resident_room<A> room_;
    Side side_;
    resident_view view_ = {};
    std::vector<resident_candidate<A, Argument>> shapes_;
    app_trials trials_ = {};
    size_t shape_ = 0; // the current one
    cudaStream_t stream_ = nullptr;
};

// A strategy in the shapes that may be the fastest, by the bytes that a step may touch: the memory
// of party 1 and the chunks. The first one is likely to be good.
template <class A, template <uint32_t density> class Way, class Side>
std::unique_ptr<app_strategy<A>> resident_open(const app_place<A> &place,
                                               const resident_memory &memory, std::string *why)
{
    auto made =
        resident_strategy<A, typename Way<RESIDENT_FEW>::argument, Side>::open(place, memory, why);
    if (made == nullptr) {
        return nullptr;
    }
    const uint32_t all = static_cast<uint32_t>(place.processors);
    const size_t chunks = A::facts.order == APP_PIPED ? place.slots : place.most.down;
    const size_t bytes = app_bytes<A>(place.size, 1) + chunks * place.bytes[1];
    const bool fills = bytes / resident_thread_bytes >= size_t(all) * Way<RESIDENT_FEW>::threads;
    if (fills) {
        made->template add<Way<RESIDENT_HALF>>(2 * all);
        made->template add<Way<RESIDENT_FULL>>(2 * all);
    } else {
        made->template add<Way<RESIDENT_FEW>>(all / 2);
        made->template add<Way<RESIDENT_FEW>>(all / 8);
    }
    made->template add<Way<RESIDENT_FEW>>(all);
    if (bytes <= resident_alone_bytes) {
        made->template add<Way<RESIDENT_FEW>>(1);
    }
    return made->fit(std::move(made), why);
}
#endif
