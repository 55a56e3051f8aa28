// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_CUH
#define WIC_APP_CUH
// An application: data of two parties, and what they do with it. It never waits; a strategy (how
// chunks move and how a party waits for them) never computes. Party 1 is a GPU. Party 0 is the host
// or a second kernel. Down is from 0 to 1, up from 1 to 0.
//
// A round has new inputs and consists of steps. In a step each party makes chunks for the other,
// and works with the chunks that it gets. A chunk consists of units, a piece is a part of them. An
// application is a struct A with
//
//   facts, sizes                  constants
//   view                          plain data: sizes, and pointers into the memory of one party
//   lay_out(size, party, arena)   makes a view; the same calls in the same order for any memory
//   most(size)                    the largest of each member of its steps
//   begin(v0, v1, seed)           writes the inputs of a round; all other memory holds poison
//   next(v0, step)                fills in a step whose round and index are set, when party 0 has
//                                 settled all steps before; false: the round is done
//   ups(v1, step)                 chunks that party 1 makes, at most step.up; called when it may
//                                 make them
//   verify(v0, v1, seed, why)     compares every result with another computation
//
// and with the work of a party, as functions of (thread, threads). Any number of threads, in any
// order, has the same effect; "|" separates what a barrier of all threads of the party separates:
//
//   independent<party>            C1: needs nothing of this step's chunks
//   dependent<party>              C2: takes a piece of a chunk; pieces arrive in any order, also at
//                                 the same time as independent
//   settle<party>                 C2: settles(step) phases, when all pieces have been taken
//   make<party>                   makes a piece of a chunk
//
// The order of these depends on facts.order (down first, if both ways have chunks):
//
//   APP_PIPED      dependent, make of the same piece by the same threads, without a barrier. Down
//                  and up have the same chunks and units. No independent, no settle.
//   APP_ANSWERS    party 0:  make | independent, dependent | settle | ... | next step
//                  party 1:  independent, dependent | settle | ... | make | next step
//   APP_EXCHANGES  both:     make, independent, dependent | settle | ... | next step
//                  What make reads, neither independent nor dependent writes.
//
// A unit u of a piece is the work of thread u % threads, so that the order holds for each thread of
// a piped application. Floating point is compiled without contraction: results are bitwise the same
// on both sides.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#ifdef __CUDACC__
#define APP_DO __host__ __device__ inline
#else
#define APP_DO inline
#endif

enum app_order { APP_PIPED, APP_ANSWERS, APP_EXCHANGES };

struct app_facts {
    const char *name, *paper; // the file's; the paper's
    const char *pattern, *access;
    app_order order;
    uint32_t down_unit, up_unit; // bytes, a multiple of 4
    bool told;                   // the data decides how many steps and chunks there are
};

struct app_size {
    const char *name; // tiny, for tests; small, middle, large
    uint32_t n, m;    // meaning by application
};
constexpr uint32_t app_sizes = 4;

// Plain data that a strategy brings to the device in its own way.
struct app_step {
    uint32_t round, index;         // index: from 0 in each round
    uint32_t down, up;             // chunks, up at most
    uint32_t down_units, up_units; // in each chunk
};

struct app_piece {
    uint32_t chunk, first, units; // its data begins at unit `first`
};

struct app_part {
    uint32_t thread, threads;
};

// Bytes of memory without a value.
constexpr unsigned char app_poison = 0xa5;

// Mistakes of a strategy, on purpose, in the last chunk of a step: the receiver reads it before its
// data is there (poison), never, or finds what the same memory held before. verify() must find
// each.
enum app_break { APP_BREAK_NONE, APP_EARLY_READ, APP_LOST_LAST, APP_STALE };
struct app_fault {
    app_break kind;
    int receiver; // party that gets the wrong chunk
    uint32_t round, step;
};

// --- for applications -------------------------------------------------------------------------

// What an application does not define itself.
template <class View> struct app_base {
    template <int party> static APP_DO void independent(const View &, const app_step &, app_part)
    {
    }
    template <int party>
    static APP_DO void settle(const View &, const app_step &, uint32_t, app_part)
    {
    }
    static APP_DO uint32_t settles(const app_step &)
    {
        return 0;
    }
    static APP_DO uint32_t ups(const View &, const app_step &step)
    {
        return step.up;
    }
    // True if memory after a round depends on the order of threads, but outcome(v0, v1) does not,
    // from which verify() follows.
    static constexpr bool any_order = false;
};

// Random bits, as a function of a seed and a place (splitmix64).
APP_DO uint64_t app_random(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// One of two arrays in turn; an index would put the whole view into local memory.
template <class T> APP_DO T *app_turn(T *const of[2], uint32_t turn)
{
    return turn % 2 == 0 ? of[0] : of[1];
}

// Atomic within the threads of a party; returns the value before.
template <class T> APP_DO T app_add(T *to, T value)
{
#ifdef __CUDA_ARCH__
    return atomicAdd(to, value);
#else
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
#endif
}

APP_DO uint32_t app_min(uint32_t *to, uint32_t value)
{
#ifdef __CUDA_ARCH__
    return atomicMin(to, value);
#else
    uint32_t before = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (value < before && !__atomic_compare_exchange_n(to, &before, value, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return before;
#endif
}

// Deals out the parts of a block of memory; without memory it counts their bytes.
class app_arena
{
  public:
    explicit app_arena(void *memory) : memory_(static_cast<unsigned char *>(memory))
    {
    }
    template <class T> T *take(size_t n)
    {
        const size_t at = used_;
        used_ += (n * sizeof(T) + 255) / 256 * 256;
        return memory_ == nullptr ? nullptr : reinterpret_cast<T *>(memory_ + at);
    }
    size_t used() const
    {
        return used_;
    }

  private:
    unsigned char *memory_;
    size_t used_ = 0;
};

// A sentence about the first wrong element of `of`. False, for verify().
inline bool app_wrong(std::string *why, const char *of, uint64_t element)
{
    *why = std::string(of) + " " + std::to_string(element) + " is wrong";
    return false;
}

// --- for strategies ---------------------------------------------------------------------------

template <class A> typename A::view app_view(const app_size &size, int party, void *memory)
{
    app_arena arena(memory);
    return A::lay_out(size, party, arena);
}

template <class A> size_t app_bytes(const app_size &size, int party)
{
    app_arena arena(nullptr);
    A::lay_out(size, party, arena);
    return arena.used();
}

struct app_free {
    void operator()(void *memory) const
    {
        free(memory);
    }
};
using app_memory = std::unique_ptr<unsigned char, app_free>;

inline app_memory app_allocate(size_t bytes)
{
    const size_t whole = (bytes / 256 + 1) * 256;
    app_memory memory(static_cast<unsigned char *>(aligned_alloc(256, whole)));
    if (memory == nullptr) {
        abort();
    }
    memset(memory.get(), app_poison, whole);
    return memory;
}

// The host's side of an application of one size. A strategy copies memory(1), bytes(1) to the
// device after begin() and back before verify(), and calls app_view() for the view there. For each
// step that next() returns it calls, of the functions below, those of party 0 in its order.
template <class A> class app_host
{
  public:
    explicit app_host(const app_size &size) : size_(size)
    {
        for (int party = 0; party < 2; party++) {
            memory_[party] = app_allocate(bytes(party));
            view_[party] = app_view<A>(size, party, memory_[party].get());
        }
    }

    const app_size &size() const
    {
        return size_;
    }
    size_t bytes(int party) const
    {
        return app_bytes<A>(size_, party);
    }
    unsigned char *memory(int party)
    {
        return memory_[party].get();
    }
    const typename A::view &view(int party) const
    {
        return view_[party];
    }

    void begin(uint64_t seed, uint32_t round)
    {
        for (int party = 0; party < 2; party++) {
            memset(memory_[party].get(), app_poison, bytes(party));
        }
        seed_ = app_random(seed, round);
        round_ = round;
        steps_ = 0;
        A::begin(view_[0], view_[1], seed_);
    }

    // Begins the same round again; its memory is as after begin().
    void again()
    {
        steps_ = 0;
    }

    bool next(app_step *step)
    {
        *step = {};
        step->round = round_;
        step->index = steps_;
        const bool is_step = A::next(view_[0], step);
        steps_ += is_step;
        return is_step;
    }

    void produce(const app_step &step, uint32_t chunk, void *to)
    {
        A::template make<0>(view_[0], step, {chunk, 0, step.down_units}, to, {0, 1});
    }
    void independent(const app_step &step)
    {
        A::template independent<0>(view_[0], step, {0, 1});
    }
    void consume(const app_step &step, uint32_t chunk, const void *from)
    {
        A::template dependent<0>(view_[0], step, {chunk, 0, step.up_units}, from, {0, 1});
    }
    void settle(const app_step &step)
    {
        for (uint32_t phase = 0; phase < A::settles(step); phase++) {
            A::template settle<0>(view_[0], step, phase, {0, 1});
        }
    }

    bool verify(std::string *why)
    {
        return A::verify(view_[0], view_[1], seed_, why);
    }

  private:
    app_size size_;
    app_memory memory_[2];
    typename A::view view_[2];
    uint64_t seed_ = 0;
    uint32_t round_ = 0, steps_ = 0;
};
#endif
