// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_PEER_CUH
#define WIC_PEER_CUH
// The kernels' side of wic/peer/peer.h:
//
//   __global__ void __launch_bounds__(576) kernel(const __grid_constant__ wic_peer_view view, A a)
//   {
//       wic_peer_run(view,
//           [&](const wic_peer_piece &p) { ... store p.bytes at p.data ... },   // makes
//           [&](const wic_peer_piece &p) { ... read p.bytes at p.data ... });   // uses
//   }
//
// A block has three roles, and its stages are a ring through which pieces pass in the order of the
// schedule:
//
//   Activator, warp 0   polls the credit or the ready word of the next chunk in local memory; pulls
//                       the piece into the stage, or collects its letters there, if that is the
//                       transport; opens `full`
//   working warps       are parked at `full`; make or use the piece; arrive at `done`
//   Publisher, warp 1   is parked at `done`; pushes the piece by a bulk store, or sends it as
//                       letters, if that is the transport; posts the ready word or the credit to
//                       the other party; opens `empty`, at which the Activator is parked before it
//                       fills the stage again
//
// The Activator is ahead of the working warps by up to `depth` pieces, the Publisher follows
// them: a wait for the link delays no work that has its data. Made and used pieces share the
// stages, so a piece that is made can depend on all pieces that were used before. A channel of
// words has no barrier between a word and its answer: without a p.sync(), a warp that makes the
// answer sees of the use only what it did itself.
//
// The work must not call __syncthreads(), which waits for the other roles, too; p.sync() is the
// barrier of the working warps.
//
// Order of memory: the ready word is released after all of the chunk is stored (the working warps
// met the Publisher at `done`) and acquired by the Activator, which the working warps meet at
// `full`; the credit is ordered in the same way. Words of a channel without chunks (chunk_bytes 0)
// are relaxed: they publish nothing but themselves.
//
// A wait for the other party is a loop of polls by one thread, with a time limit, and looks at the
// stop word in local memory, which a party that leaves early sets in the memory of all others, and
// from time to time at the host's. Waits of the roles for each other end with them.
//
// Nothing but wic_peer_block and what is below it needs CUDA's headers:
// tests/unit/test_wic_peer_device.c runs the roles by threads of the host.
#include "wic/peer/peer.h"
#include "wic/watchdog.h"

#ifdef __CUDACC__
#include "wic/device/barrier.cuh"
#endif

// --- words, by one thread ---

// Reach of a post: who may read what it publishes.
enum wic_peer_reach {
    WIC_PEER_ALONE, // the word publishes only itself
    WIC_PEER_GPU,   // parties of the same GPU
    WIC_PEER_SYSTEM // all parties
};

// Relaxed, for polls.
__device__ __forceinline__ uint64_t wic_peer_peek(const uint64_t *word)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Acquire; pairs with wic_peer_post.
__device__ __forceinline__ uint64_t wic_peer_see(const uint64_t *word)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

__device__ __forceinline__ void wic_peer_post(uint64_t *word, uint64_t value, wic_peer_reach reach)
{
#ifdef __CUDA_ARCH__
    if (reach == WIC_PEER_ALONE) {
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    } else if (reach == WIC_PEER_GPU) {
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    } else {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    }
#else
    __atomic_store_n(word, value, reach == WIC_PEER_ALONE ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
#endif
}

// A letter is eight bytes of data in two words, each with a tag: who reads the tag has the data, so
// that neither a fence nor another word is needed. Relaxed; both words in one access.
struct wic_peer_letter {
    uint32_t data[2], tag[2];
};

__device__ __forceinline__ void wic_peer_write(uint64_t *letter, uint32_t tag, uint32_t low,
                                               uint32_t high)
{
    const uint64_t top = static_cast<uint64_t>(tag) << 32;
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(letter), "l"(top | low),
                 "l"(top | high)
                 : "memory");
#else
    __atomic_store_n(letter, top | low, __ATOMIC_RELAXED);
    __atomic_store_n(letter + 1, top | high, __ATOMIC_RELAXED);
#endif
}

__device__ __forceinline__ wic_peer_letter wic_peer_read(const uint64_t *letter)
{
    uint64_t word[2];
#ifdef __CUDA_ARCH__
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(word[0]), "=l"(word[1])
                 : "l"(letter)
                 : "memory");
#else
    word[0] = __atomic_load_n(letter, __ATOMIC_RELAXED);
    word[1] = __atomic_load_n(letter + 1, __ATOMIC_RELAXED);
#endif
    return {{static_cast<uint32_t>(word[0]), static_cast<uint32_t>(word[1])},
            {static_cast<uint32_t>(word[0] >> 32), static_cast<uint32_t>(word[1] >> 32)}};
}

// Number of letters of a chunk; the first one has the value that is sent with it.
__device__ __forceinline__ uint32_t wic_peer_letters(const wic_peer_plan &plan)
{
    return plan.chunk_bytes / WIC_PEER_LETTER + 1;
}

// Acquire and release at the GPU; returns the new count.
__device__ __forceinline__ uint32_t wic_peer_count(uint32_t *counter)
{
#ifdef __CUDA_ARCH__
    uint32_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(old)
                 : "l"(counter)
                 : "memory");
    return old + 1;
#else
    return __atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
#endif
}

// --- a block's memory ---

enum wic_peer_kind : uint32_t { WIC_PEER_MAKE, WIC_PEER_USE, WIC_PEER_LEAVE };

// The content of a stage; in shared memory.
struct wic_peer_stage {
    uint64_t chunk;
    unsigned char *data; // place of the piece for the work
    unsigned char *ring; // its place in the ring
    uint64_t *word;      // ready word or credit that is due when the piece is done; or NULL
    wic_peer_kind kind;
    wic_peer_reach reach;
    uint32_t peer;          // the other party
    uint32_t number;        // chunk's number in its lane
    uint32_t offset, bytes; // place of the piece in the chunk
    uint32_t is_last;       // nonzero: the last piece of its chunk
    uint32_t value;         // sent with a chunk that is used
    uint32_t to_send;       // value to send with a chunk that is made
    uint32_t end;           // enum wic_peer_end, of WIC_PEER_LEAVE
    uint32_t opens_next;    // nonzero: the next stage is open, too, without a barrier of its own
};

enum wic_peer_gate : uint32_t { WIC_PEER_FULL, WIC_PEER_DONE, WIC_PEER_EMPTY };

// A piece of a chunk, for the work. All working warps of the block get the same one.
struct wic_peer_piece {
    void *data;
    uint32_t bytes, offset;   // offset in the chunk
    uint64_t chunk;           // its number on the way
    uint32_t peer;            // other party
    uint32_t value;           // sent with a chunk that is used
    uint32_t thread, threads; // number, and count of working threads
    wic_peer_stage *stage;

    // Sets the value that is sent with the chunk, 0 otherwise; in its last piece. One thread.
    __device__ __forceinline__ void send_value(uint32_t value_to_send) const
    {
        stage->to_send = value_to_send;
    }
#ifdef __CUDACC__
    // A barrier of the working threads; each calls it as often as the others.
    __device__ __forceinline__ void sync() const
    {
        __syncwarp();
        asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory");
    }
#endif
};

// Iterates over the stages.
struct wic_peer_turn {
    uint32_t stage = 0;
    bool used = false; // the stage was filled before

    __device__ void next(uint32_t depth)
    {
        if (++stage == depth) {
            stage = 0;
            used = true;
        }
    }
};

// --- the roles ---
//
// A Block has
//
//   index                              of the block in its grid
//   leads()                            whether the thread is the one of its warp that polls
//   from_leader(value)                 the value (32 bits) of that thread, for its warp
//   lane(), lanes(), all(is)           of a warp: number of the thread, threads, `is` of all
//   stage(i), buffer(i)                in shared memory
//   known(party)                       credit that was seen last, in shared memory
//   arrive(gate, i), park(gate, i)     at the barrier of a stage
//   pull(i, from, bytes)               into the buffer; waits until it is there
//   push(to, i, bytes)                 from the buffer; waits until it is there
//   written()                          before the arrival that passes a buffer on to push
//   now(), nap(turn)                   time in ns; between two polls

// Whether a word has reached that number, which wraps.
__device__ __forceinline__ bool wic_peer_is_at(uint64_t word, uint32_t number)
{
    return static_cast<int32_t>(static_cast<uint32_t>(word) - number) >= 0;
}

__device__ __forceinline__ wic_peer_reach wic_peer_reach_of(const wic_peer_view &v, uint32_t peer)
{
    return v.plan.chunk_bytes == 0 ? WIC_PEER_ALONE
           : (v.near >> peer & 1)  ? WIC_PEER_GPU
                                   : WIC_PEER_SYSTEM;
}

__device__ __forceinline__ uint64_t *wic_peer_line(uint64_t *words, uint32_t lane)
{
    return words + lane * (WIC_PEER_LINE / sizeof(uint64_t));
}

// The number of slots is a power of two: a division takes some 50 ns.
__device__ __forceinline__ uint32_t wic_peer_slot(const wic_peer_plan &plan, uint32_t number)
{
    return number & (plan.slots - 1);
}

// The reasons to leave, for the polls of one thread.
template <class Block> class wic_peer_watch
{
  public:
    __device__ wic_peer_watch(const wic_peer_view &v, const Block &block) : v_(v), block_(block)
    {
    }

    // Waits until seen() is true. WIC_PEER_STAYS: it is; else the reason to leave. A wait that is
    // over at once counts, too, therefore a party that never waits for long leaves as well.
    template <class Seen> __device__ __forceinline__ wic_peer_end wait(Seen seen)
    {
        wic_peer_end end = begin();
        wic_watchdog limit = {0, 0};
        for (uint32_t turn = 1; end == WIC_PEER_STAYS && !seen(); turn++) {
            end = pass(turn, &limit);
        }
        return end;
    }
    // The same by all threads of a warp, of which each has seen its part.
    template <class Seen> __device__ __forceinline__ wic_peer_end wait_together(Seen seen)
    {
        wic_peer_end end = block_.leads() ? begin() : WIC_PEER_STAYS;
        wic_watchdog limit = {0, 0};
        for (uint32_t turn = 1; !block_.all(seen()); turn++) {
            if (block_.leads() && end == WIC_PEER_STAYS) {
                end = pass(turn, &limit);
            }
            if (turn % stop_turns == 0 && block_.from_leader(end) != WIC_PEER_STAYS) {
                break;
            }
        }
        return static_cast<wic_peer_end>(block_.from_leader(end));
    }

  private:
    // Polls, or waits, for each look at the host's words, and polls for one at the stop word.
    static constexpr uint32_t look_turns = 1024, look_waits = 256, stop_turns = 32;

    __device__ __forceinline__ wic_peer_end begin()
    {
        return ++waits_ % look_waits == 0 ? look(block_.now()) : WIC_PEER_STAYS;
    }
    // Between two polls.
    __device__ __forceinline__ wic_peer_end pass(uint32_t turn, wic_watchdog *limit)
    {
        wic_peer_end end = WIC_PEER_STAYS;
        if (turn % look_turns == 0) {
            const uint64_t now = block_.now();
            end = look(now);
            if (end == WIC_PEER_STAYS && wic_watchdog_expired(limit, now, v_.limit_ns)) {
                end = WIC_PEER_LATE;
            }
        } else if (turn % stop_turns == 0 && is_stopped()) {
            end = WIC_PEER_DESERTED;
        }
        block_.nap(turn);
        return end;
    }
    __device__ bool is_stopped() const
    {
        return wic_peer_peek(v_.stop[v_.party]) != 0;
    }

    __device__ wic_peer_end look(uint64_t now)
    {
        const uint64_t beat = wic_peer_peek(&v_.control->beat);
        if (wic_peer_peek(&v_.control->stop) != 0) {
            return WIC_PEER_STOPPED;
        }
        if (is_stopped()) {
            return WIC_PEER_DESERTED;
        }
        silence_ = beat != beat_ ? wic_watchdog{0, 0} : silence_;
        beat_ = beat;
        return wic_watchdog_expired(&silence_, now, v_.beat_ns) ? WIC_PEER_SILENT : WIC_PEER_STAYS;
    }

    const wic_peer_view &v_;
    const Block &block_;
    wic_watchdog silence_ = {0, 0};
    uint64_t beat_ = 0;
    uint32_t waits_ = 0;
};

// The chunks of a step that take the lane of a block.
struct wic_peer_part {
    wic_step step;
    uint64_t lead;   // place in the step of the first one
    uint32_t number; // its number in the lane
    bool makes;

    __device__ wic_peer_part(const wic_peer_view &v, const wic_step &of, uint32_t lane)
        : step(of), makes(of.from == v.party)
    {
        const uint32_t lanes = v.plan.lanes, offset = static_cast<uint32_t>(of.first % lanes);
        lead = lane >= offset ? lane - offset : lane + lanes - offset;
        number = static_cast<uint32_t>((of.first + lead) / lanes);
    }
};

template <class Block> class wic_peer_activator
{
  public:
    __device__ wic_peer_activator(const wic_peer_view &v, Block &block)
        : v_(v), block_(block), watch_(v, block)
    {
    }

    // A step is loaded while the one before is walked, and prepared before a wait for data, not
    // between the arrival of data and the answer to it; so is the first piece of an answer.
    __device__ void run()
    {
        wic_peer_end end = WIC_PEER_ENDED;
        wic_step loaded = load(0);
        wic_peer_part part(v_, loaded, block_.index);
        loaded = load(1);
        for (uint64_t i = 0; i < v_.step_count && end == WIC_PEER_ENDED; i++) {
            wic_peer_part next = part;
            if (part.makes) {
                end = walk(part, nullptr);
                next = wic_peer_part(v_, loaded, block_.index);
                loaded = load(i + 2);
            } else {
                next = wic_peer_part(v_, loaded, block_.index);
                loaded = load(i + 2);
                const bool is_answered = i + 1 < v_.step_count && next.makes;
                end = wic_step_has_party(&part.step, v_.party)
                          ? walk(part, is_answered ? &next : nullptr)
                          : end;
            }
            part = next;
        }
        leave(end);
    }

  private:
    __device__ wic_step load(uint64_t i) const
    {
        return v_.steps[i < v_.step_count ? i : v_.step_count - 1];
    }

    // answer: the step after one that uses chunks, if it makes chunks; or NULL.
    __device__ wic_peer_end walk(const wic_peer_part &part, const wic_peer_part *answer)
    {
        const wic_step &step = part.step;
        const uint32_t peer = part.makes ? step.to : step.from;
        uint32_t number = part.number;
        for (uint64_t k = part.lead; k < step.count; k += v_.plan.lanes, number++) {
            const uint64_t chunk = wic_step_chunk(&step, k);
            const bool is_last = step.count - k <= v_.plan.lanes;
            const wic_peer_end end = part.makes
                                         ? make(peer, number, chunk)
                                         : use(peer, number, chunk, is_last ? answer : nullptr);
            if (end != WIC_PEER_STAYS) {
                return end;
            }
        }
        return WIC_PEER_ENDED;
    }

    __device__ unsigned char *ring(const wic_peer_way &way, uint32_t number) const
    {
        const uint32_t slot = block_.index * v_.plan.slots + wic_peer_slot(v_.plan, number);
        return way.data +
               static_cast<size_t>(slot) *
                   (has_letters() ? 16 * wic_peer_letters(v_.plan) : v_.plan.chunk_bytes);
    }
    __device__ bool has_letters() const
    {
        return v_.plan.transport == WIC_PEER_LETTERS && v_.plan.chunk_bytes > 0;
    }
    // The stage is empty, and described.
    __device__ void fill(const wic_peer_stage &content)
    {
        if (turn_.used && !is_filled_) {
            block_.park(WIC_PEER_EMPTY, turn_.stage);
        }
        is_filled_ = true;
        if (block_.leads()) {
            *block_.stage(turn_.stage) = content;
        }
    }
    __device__ void pass()
    {
        block_.arrive(WIC_PEER_FULL, turn_.stage);
        turn_.next(v_.plan.depth);
        is_filled_ = false;
    }
    __device__ bool is_staged(wic_peer_kind kind) const
    {
        return has_letters() ||
               v_.plan.transport == (kind == WIC_PEER_MAKE ? WIC_PEER_BULK : WIC_PEER_PULL);
    }
    __device__ wic_peer_stage piece(wic_peer_kind kind, uint32_t peer, uint32_t number,
                                    uint64_t chunk, uint32_t offset) const
    {
        const wic_peer_plan &plan = v_.plan;
        unsigned char *at =
            ring(kind == WIC_PEER_MAKE ? v_.out[peer] : v_.in[peer], number) + offset;
        const uint32_t is_last = offset + plan.piece_bytes >= plan.chunk_bytes;
        uint64_t *word = kind == WIC_PEER_MAKE ? wic_peer_line(v_.out[peer].ready, block_.index) +
                                                     wic_peer_slot(plan, number)
                                               : wic_peer_line(v_.in[peer].credit, block_.index);
        const bool is_due =
            is_last && (kind == WIC_PEER_MAKE ? !has_letters() : is_credit_due(number));
        return {chunk,   is_staged(kind) ? block_.buffer(turn_.stage) : at,
                at,      is_due ? word : nullptr,
                kind,    wic_peer_reach_of(v_, peer),
                peer,    number,
                offset,  plan.piece_bytes,
                is_last, 0,
                0,       WIC_PEER_STAYS,
                0};
    }
    // One for half of the ring: the sender has the other half until then.
    __device__ bool is_credit_due(uint32_t number) const
    {
        const uint32_t each = v_.plan.slots > 1 ? v_.plan.slots / 2 : 1;
        return ((number + 1) & (each - 1)) == 0;
    }

    __device__ wic_peer_end make(uint32_t peer, uint32_t number, uint64_t chunk)
    {
        const uint32_t bytes = v_.plan.piece_bytes;
        if (!is_ahead_) {
            fill(piece(WIC_PEER_MAKE, peer, number, chunk, 0));
            wic_peer_end end = WIC_PEER_STAYS;
            if (block_.leads()) {
                end = wait_for_credit(peer, number);
            }
            end = static_cast<wic_peer_end>(block_.from_leader(end));
            if (end != WIC_PEER_STAYS) {
                return end;
            }
            pass();
        }
        is_ahead_ = false;
        for (uint32_t offset = bytes; offset < v_.plan.chunk_bytes; offset += bytes) {
            fill(piece(WIC_PEER_MAKE, peer, number, chunk, offset));
            pass();
        }
        return WIC_PEER_STAYS;
    }
    // The chunks that must have been taken before the chunk of this number is made.
    __device__ uint32_t wanted(uint32_t number) const
    {
        return number + 1 - v_.plan.slots;
    }
    __device__ wic_peer_end wait_for_credit(uint32_t peer, uint32_t number)
    {
        const uint64_t *word = wic_peer_line(v_.out[peer].credit, block_.index);
        uint64_t *known = block_.known(peer);
        if (wic_peer_is_at(*known, wanted(number))) {
            return WIC_PEER_STAYS;
        }
        const wic_peer_end end =
            watch_.wait([&] { return wic_peer_is_at(wic_peer_peek(word), wanted(number)); });
        *known = wic_peer_see(word);
        return end;
    }
    __device__ bool has_credit(uint32_t peer, uint32_t number)
    {
        uint64_t *known = block_.known(peer);
        if (!wic_peer_is_at(*known, wanted(number))) {
            *known = wic_peer_see(wic_peer_line(v_.out[peer].credit, block_.index));
        }
        return wic_peer_is_at(*known, wanted(number));
    }

    // True if a used piece and its answer are opened by one barrier.
    __device__ bool opens_two() const
    {
        return v_.plan.chunk_bytes == 0;
    }
    // Fills the stage after this one with the first piece of the answer, if there is room for it.
    __device__ void prepare(const wic_peer_part &answer)
    {
        const wic_peer_turn current = turn_;
        const uint32_t peer = answer.step.to;
        if (v_.plan.depth == 1 || answer.lead >= answer.step.count ||
            block_.from_leader(block_.leads() && has_credit(peer, answer.number)) == 0) {
            return;
        }
        turn_.next(v_.plan.depth);
        is_filled_ = false;
        fill(piece(WIC_PEER_MAKE, peer, answer.number, wic_step_chunk(&answer.step, answer.lead),
                   0));
        turn_ = current;
        is_ahead_ = true;
        if (opens_two() && block_.leads()) {
            block_.stage(turn_.stage)->opens_next = 1;
        }
    }

    __device__ wic_peer_end use(uint32_t peer, uint32_t number, uint64_t chunk,
                                const wic_peer_part *answer)
    {
        const uint32_t bytes = v_.plan.piece_bytes;
        fill(piece(WIC_PEER_USE, peer, number, chunk, 0));
        if (answer != nullptr && bytes == v_.plan.chunk_bytes) {
            prepare(*answer);
        }
        wic_peer_end end = WIC_PEER_STAYS;
        uint32_t value = 0;
        if (has_letters()) {
            end = collect(peer, number, &value);
        } else if (block_.leads()) {
            end = wait_for_ready(wic_peer_line(v_.in[peer].ready, block_.index) +
                                     wic_peer_slot(v_.plan, number),
                                 number, &value);
        }
        if (block_.leads()) {
            block_.stage(turn_.stage)->value = value;
        }
        end = static_cast<wic_peer_end>(block_.from_leader(end));
        if (end != WIC_PEER_STAYS) {
            return end;
        }
        pull_and_pass(peer, number, 0);
        for (uint32_t offset = bytes; offset < v_.plan.chunk_bytes; offset += bytes) {
            fill(piece(WIC_PEER_USE, peer, number, chunk, offset));
            if (block_.leads()) {
                block_.stage(turn_.stage)->value = value;
            }
            pull_and_pass(peer, number, offset);
        }
        if (is_ahead_ && opens_two()) {
            turn_.next(v_.plan.depth);
        } else if (is_ahead_) {
            pass();
        }
        return WIC_PEER_STAYS;
    }
    __device__ void pull_and_pass(uint32_t peer, uint32_t number, uint32_t offset)
    {
        if (v_.plan.transport == WIC_PEER_PULL && v_.plan.piece_bytes > 0) {
            block_.pull(turn_.stage, ring(v_.in[peer], number) + offset, v_.plan.piece_bytes);
        }
        pass();
    }
    // All threads of the warp put the letters of a chunk into the stage, each some of them, of
    // which it loads several at once.
    __device__ wic_peer_end collect(uint32_t peer, uint32_t number, uint32_t *value)
    {
        constexpr uint32_t batch = 4;
        const uint64_t *from = reinterpret_cast<const uint64_t *>(ring(v_.in[peer], number));
        uint32_t *to = reinterpret_cast<uint32_t *>(block_.buffer(turn_.stage));
        const uint32_t letters = wic_peer_letters(v_.plan), lanes = block_.lanes();
        uint32_t next = block_.lane();
        return watch_.wait_together([&] {
            wic_peer_letter read[batch];
            bool is_here = true;
            while (is_here && next < letters) {
                for (uint32_t i = 0; i < batch; i++) {
                    const uint32_t at = next + i * lanes;
                    read[i] = wic_peer_read(from + 2 * (at < letters ? at : next));
                }
                for (uint32_t i = 0; i < batch && next < letters; i++) {
                    is_here =
                        is_here && read[i].tag[0] == number + 1 && read[i].tag[1] == number + 1;
                    if (is_here && next == 0) {
                        *value = read[i].data[0];
                    } else if (is_here) {
                        to[2 * next - 2] = read[i].data[0];
                        to[2 * next - 1] = read[i].data[1];
                    }
                    next += is_here ? lanes : 0;
                }
            }
            return is_here;
        });
    }
    // A load that acquires empties the L1 cache of the multiprocessor, therefore polls are relaxed.
    // A word that is there already is seen by one load.
    __device__ wic_peer_end wait_for_ready(const uint64_t *word, uint32_t number, uint32_t *value)
    {
        const bool is_alone = v_.plan.chunk_bytes == 0;
        uint64_t seen = is_alone ? wic_peer_peek(word) : wic_peer_see(word);
        bool is_acquired = true;
        const wic_peer_end end = watch_.wait([&] {
            const bool is_here = static_cast<uint32_t>(seen >> 32) == number + 1;
            if (!is_here) {
                seen = wic_peer_peek(word);
                is_acquired = is_alone;
            }
            return is_here;
        });
        *value = static_cast<uint32_t>(is_acquired ? seen : wic_peer_see(word));
        return end;
    }

    // If it is early, stops all parties, the own one among them.
    __device__ void leave(wic_peer_end end)
    {
        if (end != WIC_PEER_ENDED && block_.leads()) {
            if (end != WIC_PEER_DESERTED || wic_peer_peek(&v_.report->end) == WIC_PEER_STAYS) {
                wic_peer_post(&v_.report->end, end, WIC_PEER_ALONE);
            }
            for (uint32_t party = 0; party < v_.parties; party++) {
                wic_peer_post(v_.stop[party], 1, WIC_PEER_ALONE);
            }
        }
        wic_peer_stage last = {};
        last.kind = WIC_PEER_LEAVE;
        last.end = end;
        fill(last);
        pass();
    }

    const wic_peer_view &v_;
    Block &block_;
    wic_peer_watch<Block> watch_;
    wic_peer_turn turn_;
    bool is_filled_ = false; // the stage of this turn
    bool is_ahead_ = false;  // so is the stage after it, by the first piece of an answer
};

template <class Block, class Make, class Use>
__device__ __forceinline__ void wic_peer_work(const wic_peer_view &v, Block &block, uint32_t thread,
                                              uint32_t threads, Make make, Use use)
{
    bool is_open = false; // true if the stage before opens this one
    for (wic_peer_turn turn;; turn.next(v.plan.depth)) {
        if (!is_open) {
            block.park(WIC_PEER_FULL, turn.stage);
        }
        wic_peer_stage *stage = block.stage(turn.stage);
        const wic_peer_kind kind = stage->kind;
        is_open = stage->opens_next != 0;
        const wic_peer_piece piece = {stage->data,  stage->bytes, stage->offset,
                                      stage->chunk, stage->peer,  stage->value,
                                      thread,       threads,      stage};
        if (kind == WIC_PEER_MAKE) {
            make(piece);
            if (v.plan.transport == WIC_PEER_BULK) {
                block.written();
            }
        } else if (kind == WIC_PEER_USE) {
            use(piece);
        }
        block.arrive(WIC_PEER_DONE, turn.stage);
        if (kind == WIC_PEER_LEAVE) {
            return;
        }
    }
}

// All threads of the warp.
template <class Block>
__device__ __forceinline__ void wic_peer_send(const wic_peer_view &v, Block &block,
                                              const wic_peer_stage &stage)
{
    const uint32_t *from = reinterpret_cast<const uint32_t *>(stage.data);
    uint64_t *to = reinterpret_cast<uint64_t *>(stage.ring);
    const uint32_t letters = wic_peer_letters(v.plan);
    for (uint32_t i = block.lane(); i < letters; i += block.lanes()) {
        wic_peer_write(to + 2 * i, stage.number + 1, i == 0 ? stage.to_send : from[2 * i - 2],
                       i == 0 ? 0 : from[2 * i - 1]);
    }
}

template <class Block> __device__ void wic_peer_publish(const wic_peer_view &v, Block &block)
{
    for (wic_peer_turn turn;; turn.next(v.plan.depth)) {
        block.park(WIC_PEER_DONE, turn.stage);
        const wic_peer_stage stage = *block.stage(turn.stage);
        if (stage.kind == WIC_PEER_LEAVE) {
            if (stage.end == WIC_PEER_ENDED && block.leads() &&
                wic_peer_count(v.ended) == v.plan.lanes) {
                wic_peer_post(&v.report->end, WIC_PEER_ENDED, WIC_PEER_SYSTEM);
            }
            return;
        }
        if (stage.kind == WIC_PEER_MAKE) {
            if (v.plan.transport == WIC_PEER_BULK && stage.bytes > 0) {
                block.push(stage.ring, turn.stage, stage.bytes);
            } else if (v.plan.transport == WIC_PEER_LETTERS && stage.bytes > 0) {
                wic_peer_send(v, block, stage);
            }
            if (stage.word != nullptr && block.leads()) {
                wic_peer_post(stage.word,
                              static_cast<uint64_t>(stage.number + 1) << 32 | stage.to_send,
                              stage.reach);
            }
            block.arrive(WIC_PEER_EMPTY, turn.stage);
        } else {
            block.arrive(WIC_PEER_EMPTY, turn.stage);
            if (stage.word != nullptr && block.leads()) {
                wic_peer_post(stage.word, stage.number + 1, stage.reach);
            }
        }
    }
}

#ifdef __CUDACC__
// --- the block of a kernel ---

static_assert(WIC_PEER_DEPTH_MAX * (sizeof(wic_peer_stage) + 4 * sizeof(uint64_t)) +
                      WIC_PARTIES_MAX * sizeof(uint64_t) <=
                  WIC_PEER_HEAD,
              "the members of the stages fit in front of the buffers");

class wic_peer_block
{
  public:
    const uint32_t index;

    __device__ wic_peer_block(const wic_peer_view &view, unsigned char *memory)
        : index(blockIdx.x), view_(view), memory_(memory)
    {
        if (threadIdx.x == 0) {
            for (uint32_t i = 0; i < view.plan.depth; i++) {
                wic_bytes_init(bytes(i));
                wic_barrier_init(barrier(WIC_PEER_FULL, i), 1);
                wic_barrier_init(barrier(WIC_PEER_DONE, i), view.plan.warps);
                wic_barrier_init(barrier(WIC_PEER_EMPTY, i), 1);
            }
            for (uint32_t party = 0; party < WIC_PARTIES_MAX; party++) {
                *known(party) = 0;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0 && wic_peer_count(view.started) == gridDim.x) {
            wic_peer_post(&view.report->started, 1, WIC_PEER_SYSTEM);
        }
    }
    __device__ bool leads() const
    {
        return wic_lane() == 0;
    }
    __device__ uint32_t from_leader(uint32_t value) const
    {
        return __shfl_sync(~0u, value, 0);
    }
    __device__ uint32_t lane() const
    {
        return wic_lane();
    }
    __device__ uint32_t lanes() const
    {
        return 32;
    }
    __device__ bool all(bool is) const
    {
        return __all_sync(~0u, is);
    }
    __device__ wic_peer_stage *stage(uint32_t i) const
    {
        return reinterpret_cast<wic_peer_stage *>(known(WIC_PARTIES_MAX)) + i;
    }
    __device__ unsigned char *buffer(uint32_t i) const
    {
        return memory_ + WIC_PEER_HEAD + i * view_.plan.piece_bytes;
    }
    __device__ uint64_t *known(uint32_t party) const
    {
        return reinterpret_cast<uint64_t *>(memory_) + 4 * WIC_PEER_DEPTH_MAX + party;
    }
    // The fence of wic_barrier_arrive is sequentially consistent; this one is enough.
    __device__ void arrive(wic_peer_gate gate, uint32_t i) const
    {
#ifdef WIC_RACECHECK
        wic_barrier_arrive(barrier(gate, i));
#else
        const wic_barrier at = barrier(gate, i);
        asm volatile("fence.acq_rel.cta;" ::: "memory");
        __syncwarp(); // bar is undefined for a warp that has not converged
        asm volatile("bar.arrive %0, %1;" ::"r"(at.id), "r"(at.threads) : "memory");
#endif
    }
    __device__ void park(wic_peer_gate gate, uint32_t i)
    {
        wic_barrier_park(barrier(gate, i), round(gate, i));
    }
    __device__ void pull(uint32_t i, const void *from, uint32_t size)
    {
        wic_pull(bytes(i), {buffer(i), from, size}, {nullptr, nullptr, 0});
        wic_pulled(bytes(i), pulls_ >> i);
        pulls_ ^= 1u << i;
    }
    __device__ void push(void *to, uint32_t i, uint32_t size) const
    {
        wic_push(to, buffer(i), size);
        wic_push_done();
    }
    __device__ void written() const
    {
        wic_results_written();
    }
    __device__ uint64_t now() const
    {
        return wic_now();
    }
    __device__ void nap(uint32_t turn) const
    {
        if (turn > 4096) {
            __nanosleep(turn > 65536 ? 4000 : 500);
        }
    }

  private:
    __device__ uint64_t *bytes(uint32_t i) const
    {
        return reinterpret_cast<uint64_t *>(memory_) + i;
    }
    __device__ wic_barrier barrier(wic_peer_gate gate, uint32_t i) const
    {
        const uint32_t warps = gate == WIC_PEER_EMPTY ? 2 : view_.plan.warps + 1;
        return {1 + 3 * i + gate, 32 * warps,
                reinterpret_cast<uint64_t *>(memory_) + WIC_PEER_DEPTH_MAX + 3 * i + gate};
    }
    // Phase of the barrier; each role parks at one kind of gate only.
    __device__ uint32_t round(wic_peer_gate, uint32_t i)
    {
        const uint32_t bit = rounds_ >> i & 1;
        rounds_ ^= 1u << i;
        return bit;
    }

    const wic_peer_view &view_;
    unsigned char *memory_;
    uint32_t pulls_ = 0, rounds_ = 0; // bit i: of stage i
};

// The body of a party's kernel. make(piece), use(piece): by all working threads.
template <class Make, class Use>
__device__ __forceinline__ void wic_peer_run(const wic_peer_view &view, Make make, Use use)
{
    extern __shared__ __align__(128) unsigned char wic_peer_shared[];
    wic_peer_block block(view, wic_peer_shared);
    const uint32_t before = 32 * WIC_PEER_SERVICE;
    if (threadIdx.x < 32) {
        wic_peer_activator<wic_peer_block>(view, block).run();
    } else if (threadIdx.x < before) {
        wic_peer_publish(view, block);
    } else {
        wic_peer_work(view, block, threadIdx.x - before, blockDim.x - before, make, use);
    }
}
#endif
#endif
