// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_WIC_CUH
#define WIC_APP_WIC_CUH
// wic: the resident frame with the warps of wic/device. The first warps of a block serve the
// others:
//
//   Activator  knows the steps, polls the ready board for the chunk of the block's next piece,
//   pulls
//              the piece into shared memory by a bulk copy, also while the others do C1, and opens
//              the barrier at which they are parked for it
//              For a letter it polls the host's memory, as a block alone does for all chunks
//   Publisher  is parked until the others have made a piece, then hands it over: the fence, which
//              waits for the link, delays no other warp
//
// A block of its own has the Monitor, one warp that polls the host's doorbell for the grid. All
// other warps are parked at a named barrier of the hardware until their piece is in shared memory.
// Only the Activator and the barrier of all blocks wait for events outside of the block. At the
// end, and if it must leave, the Activator marks a stage with WIC_LEAVE after the pieces it has
// pulled; working warps take pieces until they get it.
#include "wic/apps/strategies/resident_monitor.cuh"

// The memory of a block, in front of its stages.
struct wic_app_shared {
    alignas(16) uint32_t letter[resident_letter_words];
    uint64_t share[2];
    uint32_t number, pieces; // the chunk that is given, the number of its pieces; 0: leave
    uint32_t words;          // size of the letter; 0: a piece
};

// A lane has two words of a letter in each turn.
constexpr uint32_t wic_app_turns = resident_letter_words / 64;

__device__ __forceinline__ uint32_t wic_app_word(uint32_t turn)
{
    return 64 * turn + 2 * wic_lane();
}

__device__ inline uint32_t wic_app_blocks() // count of working blocks
{
    return gridDim.x == 1 ? 1 : gridDim.x - 1;
}

// The way of the working warps, as far as it does not depend on their number.
class wic_app_way : public resident_plain
{
  public:
    using argument = wic_view;
    static constexpr bool letters = true;
    static constexpr uint32_t depth = 2, services = 2; // Activator and Publisher
    static constexpr uint32_t shared_bytes = WIC_STAGES_OFFSET + depth * resident_piece_most;

    const uint32_t block = blockIdx.x, blocks = wic_app_blocks();

    // The Monitor has a block of its own. A block alone needs no Monitor.
    static constexpr uint32_t grid(uint32_t blocks)
    {
        return blocks == 1 ? 1 : blocks + 1;
    }
};

template <uint32_t density> class wic_app_warps : public wic_app_way
{
  public:
    static constexpr uint32_t workers = density == RESIDENT_FULL ? 30 : 16;
    static constexpr uint32_t threads = 32 * (services + workers);
    static constexpr uint32_t each = resident_shape<density>::each;

    __device__ wic_app_warps(const wic_block &stages, wic_app_shared *own)
        : stages_(stages), own_(own), position_(stages.view)
    {
    }

    template <class A>
    static __device__ void run(const resident_view &r, const typename A::view &v,
                               const wic_view &view);

    __device__ app_part part() const
    {
        return {threadIdx.x - 32 * services, 32 * workers};
    }
    __device__ void sync() const
    {
        __syncwarp(); // bar is undefined for a warp that has not converged
        asm volatile("bar.sync 0, %0;" ::"r"(32 * workers) : "memory");
    }
    __device__ uint64_t share(uint64_t value)
    {
        turn_ ^= 1;
        volatile uint64_t *shared = &own_->share[turn_];
        if (part().thread == 0) {
            *shared = value;
        }
        sync();
        return *shared;
    }
    __device__ uint64_t take(const resident_view &, uint32_t, size_t, uint32_t, const void **from,
                             bool)
    {
        wic_barrier_park(stages_.full(position_.stage), position_.round);
        const volatile wic_stage *stage = stages_.stage(position_.stage);
        *from = stages_.in(position_.stage);
        is_over_ = stage->tile == WIC_LEAVE;
        return is_over_ ? resident_leave : stage->units;
    }
    __device__ void taken(const resident_view &)
    {
        wic_barrier_arrive(stages_.done(position_.stage));
        position_.next(depth);
    }
    __device__ void give(const resident_view &, uint32_t number, uint32_t pieces)
    {
        pass(number, pieces, 0);
    }
    __device__ void *desk()
    {
        get_back();
        return own_->letter;
    }
    __device__ void give_letter(const resident_view &, uint32_t number, uint32_t words)
    {
        pass(number, 1, words);
    }

    // Ends the Publisher, and takes pieces until the Activator has ended.
    __device__ void leave(const resident_view &r)
    {
        give(r, 0, 0);
        const void *from;
        while (!is_over_ && take(r, 0, 0, 0, &from, true) != resident_leave) {
            taken(r);
        }
    }

    // Between working warps and Publisher. 0: a piece is made; 1: its number is read.
    static __device__ wic_barrier own_barrier(uint32_t which)
    {
        return {1 + 3 * depth + which, 32 * (workers + 1), nullptr};
    }
    static __device__ void publisher(const resident_view &r, const volatile wic_app_shared *own)
    {
        for (;;) {
            wic_barrier_park(own_barrier(0), 0);
            const uint32_t number = own->number, pieces = own->pieces, words = own->words;
            uint64_t low[wic_app_turns], high[wic_app_turns];
            for (uint32_t turn = 0; turn < wic_app_turns; turn++) {
                low[turn] = own->letter[wic_app_word(turn)];
                high[turn] = own->letter[wic_app_word(turn) + 1];
            }
            if (pieces == 0) {
                return;
            }
            wic_barrier_arrive(own_barrier(1));
            for (uint32_t turn = 0; turn < wic_app_turns && wic_app_word(turn) < words; turn++) {
                // Relaxed: it publishes nothing but itself. The host writes to places of chunks
                // that were taken before; their loads have returned before the last barrier.
                const uint64_t tag = uint64_t(number + 1) << 32;
                uint64_t *to = &r.letters_up[size_t(number & r.up_mask) * resident_letter_words +
                                             wic_app_word(turn)];
                asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
                             "l"(tag | low[turn]), "l"(tag | high[turn])
                             : "memory");
            }
            if (wic_lane() == 0 && words == 0) {
                post(r, number, pieces);
            }
            __syncwarp();
        }
    }

  private:
    // Parks until the Publisher has read what was given before.
    __device__ void get_back()
    {
        if (has_given_) {
            wic_barrier_park(own_barrier(1), 0);
        }
        has_given_ = false;
    }
    __device__ void pass(uint32_t number, uint32_t pieces, uint32_t words)
    {
        get_back();
        has_given_ = true;
        if (part().thread == 0) {
            volatile wic_app_shared *own = own_;
            own->number = number;
            own->pieces = pieces;
            own->words = words;
        }
        wic_barrier_arrive(own_barrier(0));
    }

    const wic_block &stages_;
    wic_app_shared *own_;
    wic_stage_position position_;
    uint32_t turn_ = 0;
    bool has_given_ = false, is_over_ = false;
};

// Waits for a letter, and stores its words. 0: it is lost; UINT64_MAX: leave.
__device__ inline uint64_t wic_app_read_letter(const resident_view &r, uint32_t number,
                                               uint32_t words, uint32_t *to)
{
    const uint64_t *from = &r.letters_down[size_t(number & r.bell_mask) * resident_letter_words];
    uint64_t low[wic_app_turns], high[wic_app_turns];
    const auto is_tagged = [&](uint64_t word) {
        return (static_cast<uint32_t>(word >> 32) & ~resident_lost) == number + 1;
    };
    const auto seen = [&] {
        bool is_here = true;
        for (uint32_t i = 0; i < wic_app_turns; i++) {
            const uint32_t at = wic_app_word(i) < words ? wic_app_word(i) : 0;
            if (i > 0 && 64 * i >= words) {
                break;
            }
            asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                         : "=l"(low[i]), "=l"(high[i])
                         : "l"(from + at)
                         : "memory");
            is_here = is_here && is_tagged(low[i]) && is_tagged(high[i]);
        }
        return __all_sync(~0u, is_here) != 0;
    };
    wic_watchdog dog = {0, 0};
    for (uint32_t turn = 1; !seen(); turn++) {
        const bool asks = turn % resident_turns == 0 && wic_lane() == 0;
        if (turn % resident_turns == 0 &&
            __any_sync(~0u, asks && resident_gives_up(r, &dog)) != 0) {
            return UINT64_MAX;
        }
    }
    for (uint32_t i = 0; i < wic_app_turns && wic_app_word(i) < words; i++) {
        to[wic_app_word(i)] = static_cast<uint32_t>(low[i]);
        to[wic_app_word(i) + 1] = static_cast<uint32_t>(high[i]);
    }
    return static_cast<uint32_t>(low[0] >> 32) >= resident_lost ? 0 : words;
}

struct wic_app_piece {
    app_piece piece;
    uint32_t number; // number of the chunk
    uint32_t letter;
};

// The doorbell's words of the next chunks, for a block alone: lane i has that of chunk first + i.
struct wic_app_bells {
    uint32_t first = 0, here = 0; // number of the chunks from `first` on that are there
    uint64_t word = 0;

    // Units of the chunk; UINT64_MAX: leave.
    __device__ uint64_t wait(const resident_view &r, uint32_t number)
    {
        if (number - first >= here) {
            first = number;
            wic_watchdog dog = {0, 0};
            for (uint32_t turn = 1; !look(r); turn++) {
                const bool asks = turn % resident_turns == 0 && wic_lane() == 0;
                if (turn % resident_turns == 0 &&
                    __any_sync(~0u, asks && resident_gives_up(r, &dog)) != 0) {
                    return UINT64_MAX;
                }
            }
            asm volatile("fence.acq_rel.sys;" ::: "memory"); // pairs with the host's release
        }
        return static_cast<uint32_t>(__shfl_sync(~0u, word, number - first));
    }

  private:
    __device__ bool look(const resident_view &r)
    {
        const uint32_t number = first + wic_lane();
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                     : "=l"(word)
                     : "l"(&r.doorbell[number & r.bell_mask])
                     : "memory");
        const uint32_t seen = __ballot_sync(~0u, static_cast<uint32_t>(word >> 32) == number + 1);
        here = seen == ~0u ? 32 : __ffs(~seen) - 1;
        return here > 0;
    }
};

// Units of the chunk, 0: lost; UINT64_MAX: leave. A letter is in the stage then.
__device__ inline uint64_t wic_app_wait(const resident_view &r, const wic_block &block,
                                        uint32_t stage, const wic_app_piece &wanted,
                                        const wic_credits &credits, wic_app_bells *bells)
{
    if (wanted.letter > 0) {
        return wic_app_read_letter(r, wanted.number, wanted.letter,
                                   reinterpret_cast<uint32_t *>(block.in(stage)));
    }
    if (gridDim.x == 1) {
        return bells->wait(r, wanted.number);
    }
    uint64_t starved = 0;
    return wic_ready_board_wait(block.view, wanted.number, credits, &starved);
}

// The stage that the Activator fills next.
struct wic_app_next {
    wic_stage_position position;
    bool is_empty;

    __device__ explicit wic_app_next(const wic_view &view) : position(view), is_empty(true)
    {
    }
    // Parks until the working warps are done with it.
    __device__ void empty(const wic_block &block)
    {
        if (!is_empty) {
            wic_barrier_park(block.done(position.stage), position.round - 1);
        }
        is_empty = true;
    }
    __device__ void filled(const wic_block &block)
    {
        wic_barrier_arrive(block.full(position.stage));
        position.next(wic_app_way::depth);
        is_empty = !position.used;
    }
};

// Pulls one piece of a chunk. False: leave.
template <class A>
__device__ inline bool wic_app_pull(const resident_view &r, const wic_block &block,
                                    wic_app_next *next, const wic_app_piece &wanted,
                                    const wic_credits &credits, wic_app_bells *bells)
{
    const wic_stage_position *position = &next->position;
    const uint32_t tile = wanted.number;
    const app_piece &piece = wanted.piece;
    next->empty(block);
    const uint64_t found = wic_app_wait(r, block, position->stage, wanted, credits, bells);
    if (found == UINT64_MAX) {
        return false;
    }
    const uint32_t units = static_cast<uint32_t>(found);
    const uint32_t bytes =
        units == 0 || wanted.letter > 0 ? 0 : (piece.units * A::facts.down_unit + 15) / 16 * 16;
    wic_fill_stage(block, *position, {tile, nullptr, nullptr, 0, 0, units});
    wic_pull(
        block.bytes(position->stage),
        {block.in(position->stage),
         r.down + (tile & r.down_mask) * r.down_bytes + size_t(piece.first) * A::facts.down_unit,
         bytes},
        {nullptr, nullptr, 0});
    wic_pulled(block.bytes(position->stage), position->round);
    next->filled(block);
    return true;
}

template <class A>
__device__ inline void wic_app_activate(const resident_view &r, const typename A::view &v,
                                        const wic_block &block)
{
    const wic_credits credits; // never closed: a plan of as many pulls as blocks
    wic_app_bells bells;
    wic_app_next next(block.view);
    const uint32_t blocks = wic_app_blocks();
    uint32_t down = 0;
    bool stays = true;
    for (app_step step = {}; stays; step.index++) {
        bool is_step =
            (A::facts.told && wic_lane() != 0) || resident_next<A>(v, r, r.steps_copy, &step);
        if constexpr (A::facts.told) {
            step.down = __shfl_sync(~0u, step.down, 0);
            step.down_units = __shfl_sync(~0u, step.down_units, 0);
            is_step = __shfl_sync(~0u, is_step, 0);
        }
        if (!is_step) {
            break;
        }
        const resident_cut cut(step.down, step.down_units, A::facts.down_unit, blocks);
        const uint32_t letter = resident_letter(step.down, step.down_units, A::facts.down_unit);
        for (uint64_t at = blockIdx.x; at < uint64_t(step.down) * cut.pieces && stays;
             at += blocks) {
            const app_piece piece = cut.piece(static_cast<uint32_t>(at), step.down_units);
            stays = wic_app_pull<A>(r, block, &next, {piece, down + piece.chunk, letter}, credits,
                                    &bells);
        }
        down += step.down;
    }
    next.empty(block);
    wic_fill_stage(block, next.position, {WIC_LEAVE, nullptr, nullptr, 0, 0, 0});
    next.filled(block);
}

template <uint32_t density>
template <class A>
__device__ void wic_app_warps<density>::run(const resident_view &r, const typename A::view &v,
                                            const wic_view &view)
{
    extern __shared__ __align__(128) unsigned char wic_shared[];
    __shared__ wic_app_shared own;
    const wic_block block = {view, wic_shared};
    const uint32_t warp = threadIdx.x / 32;
    if (blockIdx.x == wic_app_blocks()) {
        if (warp == 0) {
            wic_monitor<true>(view);
        }
        return;
    }
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < depth; stage++) {
            wic_bytes_init(block.bytes(stage));
        }
    }
    __syncthreads();
    if (warp == 0) {
        wic_app_activate<A>(r, v, block);
    } else if (warp == 1) {
        publisher(r, &own);
    } else {
        wic_app_warps way(block, &own);
        resident_party<A, wic_app_warps>(v, r, way).run();
        way.leave(r);
    }
}

// --- host -------------------------------------------------------------------------------------

struct wic_app_side : resident_monitor_side {
    static constexpr bool letters = true;

    using resident_monitor_side::resident_monitor_side;
    wic_view ready(const resident_view &r, uint32_t blocks, uint32_t warps, cudaStream_t stream)
    {
        wic_view view = resident_monitor_side::ready(r, blocks, warps, stream);
        view.plan.depth = wic_app_way::depth;
        view.plan.warps = warps;
        view.plan.in_piece = view.stage_bytes = resident_piece_most;
        return view;
    }
};

template <class A>
std::unique_ptr<app_strategy<A>> app_by_wic(const app_place<A> &place, std::string *why)
{
    return resident_open<A, wic_app_warps, wic_app_side>(place, {false, false}, why);
}
#endif
