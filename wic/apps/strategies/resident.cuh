// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_RESIDENT_CUH
#define WIC_APP_RESIDENT_CUH
// The frame of the strategies with one resident kernel: all steps of party 1 in one launch, and the
// host's loop. A strategy adds its way: how a block finds out that a chunk is there, and how it
// hands over its own.
//
//   doorbell[n]  ==>  chunk n from the host, or that it is lost   (number + 1) << 32 | units
//   answer[n]    <==  chunk n for the host                        number + 1
//   taken        <==  chunks of which party 1 has read all, after a step without answers
//   steps        ==>  a step, if the data decides it
//   ups          <==  number of chunks that party 1 makes in such a step
//   letters      ==>, <==  words of a chunk of at most 512 bytes, the only one of its step, each
//                          with the number of the chunk; if the strategy has letters
//   begin        ==>  the round has begun
//   state        <==  all blocks have started; party 1 has written the last byte
//
// Chunks are counted from 0 in a round, in either direction; words and chunks are rings of a power
// of two. Unless the data decides them, the kernel computes the steps by itself, so that its C1 of
// a step begins before the host has settled the step before. A chunk is cut into pieces, enough for
// all blocks; a block takes and makes whole pieces.
//
// Loads of one line of the host's memory are served one after the other, each for the time of a
// round trip, therefore blocks must not poll it together. Block 0 waits for `begin` and the steps,
// which it copies to device memory.
//
// Between phases all blocks meet at a counter in device memory (release, acquire, gpu scope); the
// host's words are released and acquired at system scope. Each wait looks at the host's stop word
// and has a time limit; a block that gives up leaves, and so do the others.
//
// A step with n phases of settle has n + 1 barriers of all blocks, and another one after the answer
// if parties answer; that one lasts no longer than the host's part of the step. A block alone
// needs no barrier. A chunk down takes one round trip over the link if it is a letter, else one for
// its word and one for its data; a chunk up takes one way as a letter, else a round trip for the
// fence in front of its word.
//
// Nothing here needs CUDA's headers: tests/unit/test_wic_resident_device.c runs both parties by
// threads of the host.
#include "wic/apps/app.cuh"
#include "wic/apps/figures.h"
#include "wic/depend/words.cuh"
#include "wic/spin.h"
#include "wic/watchdog.h"

#include <algorithm>
#include <sched.h>

constexpr uint32_t resident_steps_ring = 64;   // number of steps
constexpr uint32_t resident_step_words = 4;    // down, up and their units
constexpr uint32_t resident_over = UINT32_MAX; // the round has ended
constexpr uint32_t resident_ups_bits = 20;     // low bits of a word of `ups` with the number
enum resident_state : uint32_t { RESIDENT_HERE = 1, RESIDENT_DONE };
constexpr uint64_t resident_leave = UINT64_MAX, resident_not_yet = UINT64_MAX - 1;
constexpr uint32_t resident_turns = 4096;       // polls between two looks at the host's stop word
constexpr uint32_t resident_piece_least = 4096; // bytes
constexpr uint32_t resident_piece_most = 16384;

// A letter: the 32-bit words of a chunk, each in a word of 64 bits below number + 1. The load that
// sees the chunk has it, and its stores need no fence.
constexpr uint32_t resident_letter_words = 128; // the most words of a chunk
constexpr uint32_t resident_lost = 1u << 31;    // added to the number: the chunk is lost

// The number of words, an even one, because two are written and read together. 0: not a letter.
APP_DO uint32_t resident_letter(uint32_t chunks, uint32_t units, uint32_t unit_bytes)
{
    const uint32_t words = (units * unit_bytes + 7) / 8 * 2;
    return chunks == 1 && units > 0 && words <= resident_letter_words ? words : 0;
}

// The kernel's argument, and the host's: the addresses are the same for both.
struct resident_view {
    // Shared by both parties.
    uint64_t *doorbell;
    uint32_t *answer;
    uint64_t *steps;
    uint32_t *ups, *taken, *begin, *state;
    uint64_t *letters_down, *letters_up; // resident_letter_words for each doorbell, each answer
    unsigned char *down, *up;
    size_t down_bytes, up_bytes;            // distance between chunks
    uint32_t bell_mask, down_mask, up_mask; // places of the rings - 1
    // For the kernel.
    uint64_t *steps_copy; // ring of steps
    uint32_t *started;    // number of blocks
    uint32_t *met;        // arrivals at the barrier of all blocks
    uint32_t *made;       // number of pieces that are made, by chunk
    app_stamps *stamps;   // NULL: no stamps
    uint32_t stamp_rows, stamp_blocks;
    const uint32_t *stop;
    uint64_t limit_ns;
};

// Cuts the chunks of a step into pieces.
struct resident_cut {
    uint32_t pieces, units; // pieces of a chunk; units of a piece, except the last one

    APP_DO resident_cut(uint32_t chunks, uint32_t chunk_units, uint32_t unit_bytes, uint32_t blocks)
    {
        const uint32_t each = chunks < blocks ? blocks / (chunks > 0 ? chunks : 1) : 1;
        const uint32_t least = (resident_piece_least + unit_bytes - 1) / unit_bytes;
        const uint32_t most = resident_piece_most / unit_bytes / 4 * 4;
        units = ((chunk_units + each - 1) / each + 3) / 4 * 4; // a multiple of 16 bytes
        units = units < least ? (least + 3) / 4 * 4 : units > most ? most : units;
        pieces = chunk_units > 0 ? (chunk_units + units - 1) / units : 1;
    }
    APP_DO app_piece piece(uint32_t i,
                           uint32_t chunk_units) const // i: number among the pieces of all chunks
    {
        const uint32_t first = i % pieces * units, rest = chunk_units - first;
        return {i / pieces, first, rest < units ? rest : units};
    }
};

// --- device -----------------------------------------------------------------------------------

// The host has stopped the round, or the wait that polls since the first call lasts too long.
__device__ __forceinline__ bool resident_gives_up(const resident_view &r, wic_watchdog *dog)
{
    return wic_word_peek(r.stop) != 0 || wic_watchdog_expired(dog, wic_depend_now(), r.limit_ns);
}

// One thread waits until seen() is true. False: leave.
template <class Seen>
__device__ __forceinline__ bool resident_wait(const resident_view &r, Seen seen)
{
    wic_watchdog dog = {0, 0};
    for (uint32_t turn = 1; !seen(); turn++) {
        if (turn % resident_turns == 0 && resident_gives_up(r, &dog)) {
            return false;
        }
#ifndef __CUDA_ARCH__
        sched_yield(); // threads of the host: more than it has cores
#endif
    }
    return true;
}

// Reads one word of the step in the ring; false: it is not there yet. Relaxed, because these words
// publish nothing but themselves.
__device__ __forceinline__ bool resident_step_word(const uint64_t *steps, uint32_t index,
                                                   uint32_t word, uint32_t *value)
{
    const uint64_t *at = &steps[index % resident_steps_ring * resident_step_words + word];
#ifdef __CUDA_ARCH__
    uint64_t seen;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(at) : "memory");
#else
    const uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
    *value = static_cast<uint32_t>(seen);
    return static_cast<uint32_t>(seen >> 32) == index + 1;
}

// Reads a step, all of its words in one round trip.
__device__ __forceinline__ bool resident_read_step(const uint64_t *steps, app_step *step)
{
    uint32_t *const values[resident_step_words] = {&step->down, &step->up, &step->down_units,
                                                   &step->up_units};
    bool is_here = true;
    for (uint32_t i = 0; i < resident_step_words; i++) {
        is_here &= resident_step_word(steps, step->index, i, values[i]);
    }
    return is_here;
}

// One thread calls it. False: the round has ended, or the kernel must leave.
template <class A>
__device__ inline bool resident_next(const typename A::view &v, const resident_view &r,
                                     const uint64_t *steps, app_step *step)
{
    if constexpr (!A::facts.told) {
        return A::next(v, step);
    } else {
        return resident_wait(r, [&] { return resident_read_step(steps, step); }) &&
               step->down != resident_over;
    }
}

// One thread hands a step of the host to the other blocks.
__device__ inline void resident_copy_step(const resident_view &r, const app_step &step)
{
    const uint32_t values[resident_step_words] = {step.down, step.up, step.down_units,
                                                  step.up_units};
    for (uint32_t i = 0; i < resident_step_words; i++) {
        wic_entry_store(&r.steps_copy[step.index % resident_steps_ring * resident_step_words + i],
                        uint64_t(step.index + 1) << 32 | values[i]);
    }
}

// A thread of a block among those of all blocks. Blocks take turns by warps, therefore all
// multiprocessors have a part of little work.
__device__ __forceinline__ app_part resident_spread(uint32_t block, uint32_t blocks, app_part own)
{
    const uint32_t warp = own.threads % 32 == 0 ? 32 : 1;
    return {(own.thread / warp * blocks + block) * warp + own.thread % warp, blocks * own.threads};
}

// Party 1. A way has
//
//   slices              parts of `independent` between which it looks for chunks
//   part(), block, blocks
//   share(value)        the value of thread 0, for all threads of the block; a barrier of them
//   letters             true: chunks that can be letters are
//   take(r, number, offset, letter, from, must_wait)
//                       the units of chunk `number`, of which a piece at this offset is at *from;
//                       0: it is lost; resident_not_yet, resident_leave; letter: its words, or 0
//   taken(r)            all threads are done with that piece
//   desk(), give_letter(r, number, words)
//                       memory in which block 0 makes a letter; all its threads have made it
//   give(r, number, pieces)
//                       all threads call it when they have made their part of one of the pieces of
//                       chunk `number`
template <class A, class Way> class resident_party
{
  public:
    __device__ resident_party(const typename A::view &v, const resident_view &r, Way &way)
        : v_(v), r_(r), way_(way), part_(way.part()),
          all_(resident_spread(way.block, way.blocks, part_))
    {
    }

    // The whole round.
    __device__ void run()
    {
        const bool is_first = way_.block == 0 && part_.thread == 0;
        if (part_.thread == 0 && wic_arrive(r_.started, way_.blocks)) {
            wic_word_post_host(r_.state, RESIDENT_HERE);
        }
        // A piped application begins with its first chunk.
        if (A::facts.order != APP_PIPED && !begin()) {
            return;
        }
        for (app_step step = {}; next(&step); step.index++) {
            if (!take_step(step)) {
                return;
            }
        }
        if (!is_left_ && meet() && is_first) {
            wic_word_post_host(r_.state, RESIDENT_DONE);
        }
    }

  private:
    __device__ bool begin()
    {
        if (way_.block == 0) {
            const bool begins = part_.thread == 0 &&
                                resident_wait(r_, [&] { return wic_word_peek(r_.begin) != 0; });
            if (way_.share(begins) == 0) {
                return false;
            }
        }
        return meet();
    }
    __device__ bool next(app_step *step)
    {
        if constexpr (!A::facts.told) {
            return A::next(v_, step);
        } else {
            bool is_step = false;
            if (part_.thread == 0) {
                is_step =
                    resident_next<A>(v_, r_, way_.block == 0 ? r_.steps : r_.steps_copy, step);
                if (way_.block == 0 && (is_step || step->down == resident_over)) {
                    resident_copy_step(r_, *step);
                }
                is_left_ = !is_step && step->down != resident_over;
            }
            const uint64_t chunks = way_.share(uint64_t(step->up) << 32 | step->down);
            const uint64_t units = way_.share(uint64_t(step->up_units) << 32 | step->down_units);
            const uint64_t flags = way_.share(2u * is_left_ + is_step);
            step->down = static_cast<uint32_t>(chunks);
            step->up = static_cast<uint32_t>(chunks >> 32);
            step->down_units = static_cast<uint32_t>(units);
            step->up_units = static_cast<uint32_t>(units >> 32);
            is_left_ = flags / 2 != 0;
            return flags % 2 != 0;
        }
    }

    __device__ bool take_step(const app_step &step)
    {
        if constexpr (A::facts.order == APP_PIPED) {
            return pipe(step);
        }
        if (A::facts.order == APP_EXCHANGES) {
            make(step);
        }
        if (!receive(step) || !meet()) {
            return false;
        }
        down_ += step.down;
        if (step.up == 0 && way_.block == 0 && part_.thread == 0) {
            wic_word_post_host(r_.taken, down_);
        }
        for (uint32_t phase = 0; phase < A::settles(step); phase++) {
            A::template settle<1>(v_, step, phase, all_);
            if (!meet()) {
                return false;
            }
        }
        if (A::facts.order == APP_EXCHANGES) {
            return true;
        }
        make(step);
        return meet();
    }

    // A barrier of all threads of all blocks. False: leave.
    __device__ bool meet()
    {
        barriers_++;
        way_.share(0);
        if (way_.blocks == 1) {
            return true;
        }
        bool is_met = true;
        if (part_.thread == 0) {
            wic_offer(r_.met, 1);
            const uint32_t all = barriers_ * way_.blocks;
            is_met =
                resident_wait(r_, [&] { return wic_word_is_at(wic_word_peek(r_.met), all); }) &&
                wic_word_is_at(wic_word_see(r_.met), all); // acquires
        }
        is_left_ = way_.share(is_met) == 0;
        return !is_left_;
    }

    __device__ app_stamps *stamp(uint32_t row) const
    {
        const bool has = r_.stamps != nullptr && part_.thread == 0 && row < r_.stamp_rows &&
                         way_.block < r_.stamp_blocks;
        return has ? r_.stamps + row * r_.stamp_blocks + way_.block : nullptr;
    }

    // `independent` and `dependent`, pieces in turn.
    __device__ bool receive(const app_step &step)
    {
        app_stamps *stamps = stamp(step.index);
        const resident_cut cut(step.down, step.down_units, A::facts.down_unit, way_.blocks);
        const uint32_t end = step.down * cut.pieces;
        uint32_t at = way_.block;
        if (stamps != nullptr) {
            stamps->begin = wic_depend_now();
        }
        for (uint32_t slice = 0; slice < Way::slices; slice++) {
            A::template independent<1>(
                v_, step, {slice * all_.threads + all_.thread, Way::slices * all_.threads});
            while (Way::slices > 1 && at < end && slice + 1 < Way::slices) {
                const uint64_t units = take(step, cut, at, false);
                if (units == resident_leave) {
                    return false;
                }
                if (units == resident_not_yet) {
                    break;
                }
                at += way_.blocks;
            }
        }
        if (stamps != nullptr) {
            stamps->independent_end = wic_depend_now();
        }
        for (; at < end; at += way_.blocks) {
            if (take(step, cut, at, true) == resident_leave) {
                return false;
            }
        }
        if (stamps != nullptr && way_.block < end) {
            stamps->in_hand = in_hand_;
            stamps->dependent_end = wic_depend_now();
        }
        return true;
    }
    __device__ uint64_t take(const app_step &step, const resident_cut &cut, uint32_t at,
                             bool must_wait)
    {
        const app_piece piece = cut.piece(at, step.down_units);
        const void *from;
        const uint32_t letter =
            Way::letters ? resident_letter(step.down, step.down_units, A::facts.down_unit) : 0;
        const uint64_t units =
            way_.take(r_, down_ + piece.chunk, size_t(piece.first) * A::facts.down_unit, letter,
                      &from, must_wait);
        if (units >= resident_not_yet) {
            return units;
        }
        if (r_.stamps != nullptr) {
            in_hand_ = wic_depend_now();
        }
        if (units > 0) {
            A::template dependent<1>(v_, step, piece, from, part_);
        }
        way_.taken(r_);
        return units;
    }

    __device__ void *up(uint32_t number, const app_piece &piece) const
    {
        return r_.up + size_t(number & r_.up_mask) * r_.up_bytes +
               size_t(piece.first) * A::facts.up_unit;
    }
    __device__ void make(const app_step &step)
    {
        const uint32_t ups = A::ups(v_, step);
        if (A::facts.told && way_.block == 0 && part_.thread == 0) {
            wic_word_post_host(&r_.ups[step.index % resident_steps_ring],
                               (step.index + 1) << resident_ups_bits | ups);
        }
        if constexpr (Way::letters) {
            const uint32_t letter = resident_letter(ups, step.up_units, A::facts.up_unit);
            if (letter > 0 && way_.block == 0) {
                A::template make<1>(v_, step, {0, 0, step.up_units}, way_.desk(), part_);
                way_.give_letter(r_, up_, letter);
            }
            if (letter > 0) {
                up_ += ups;
                return;
            }
        }
        const resident_cut cut(ups, step.up_units, A::facts.up_unit, way_.blocks);
        for (uint32_t at = way_.block; at < ups * cut.pieces; at += way_.blocks) {
            const app_piece piece = cut.piece(at, step.up_units);
            A::template make<1>(v_, step, piece, up(up_ + piece.chunk, piece), part_);
            way_.give(r_, up_ + piece.chunk, cut.pieces);
        }
        up_ += ups;
    }

    // Each chunk keeps its places until the host has consumed the answer.
    __device__ bool pipe(const app_step &step)
    {
        const resident_cut cut(step.down, step.down_units, A::facts.down_unit, way_.blocks);
        for (uint64_t at = way_.block; at < uint64_t(step.down) * cut.pieces; at += way_.blocks) {
            const app_piece piece = cut.piece(static_cast<uint32_t>(at), step.down_units);
            app_stamps *stamps = stamp(piece.chunk);
            if (stamps != nullptr) {
                stamps->begin = stamps->independent_end = wic_depend_now();
            }
            if (take(step, cut, static_cast<uint32_t>(at), true) == resident_leave) {
                return false;
            }
            A::template make<1>(v_, step, piece, up(piece.chunk, piece), part_);
            if (stamps != nullptr) {
                stamps->in_hand = in_hand_;
                stamps->dependent_end = wic_depend_now();
            }
            way_.give(r_, piece.chunk, cut.pieces);
        }
        return true;
    }

    const typename A::view &v_;
    const resident_view &r_;
    Way &way_;
    app_part part_, all_;                       // threads of the block, of all blocks
    uint32_t barriers_ = 0, down_ = 0, up_ = 0; // number of chunks before this step
    uint64_t in_hand_ = 0;
    bool is_left_ = false;
};

// The part of a way that is the same if all threads of a block work, and the first one waits for
// the words of the host.
class resident_plain
{
  public:
    static constexpr uint32_t slices = 1;
    static constexpr bool letters = false;

    // Polls half of the word, relaxed, and acquires it when the chunk is there: a load that
    // acquires empties the L1 cache of the multiprocessor.
    static __device__ uint64_t mapped(const uint64_t *word, uint32_t number)
    {
        return wic_word_peek(reinterpret_cast<const uint32_t *>(word) + 1) == number + 1
                   ? wic_brought_see(word)
                   : 0;
    }

    __device__ void taken(const resident_view &) const
    {
    }
    // Thread 0 calls it when all threads of the block have stored their part.
    static __device__ void post(const resident_view &r, uint32_t number, uint32_t pieces)
    {
        uint32_t *made = &r.made[number & r.up_mask];
        if (pieces == 1 || wic_arrive(made, pieces)) {
            *made = 0;
            wic_word_post_host(&r.answer[number & r.up_mask], number + 1);
        }
    }
    // Thread 0 calls it; see(word, number) returns the doorbell's word once it is that of the
    // chunk.
    template <class See>
    static __device__ uint64_t look(const resident_view &r, uint32_t number, bool must_wait,
                                    See see)
    {
        uint64_t word = 0;
        const auto seen = [&] {
            word = see(&r.doorbell[number & r.bell_mask], number);
            return static_cast<uint32_t>(word >> 32) == number + 1;
        };
        if (must_wait ? !resident_wait(r, seen) : !seen()) {
            return must_wait ? resident_leave : resident_not_yet;
        }
        return static_cast<uint32_t>(word);
    }
};

// --- host -------------------------------------------------------------------------------------

// The host's loop. Host is app_run or has its functions. Side has the hooks of a strategy,
//
//   letters               as those of the way
//   sent(chunk)           the chunk and its doorbell word are written
//   reading(chunk)        the host is about to consume the chunk
//   beat()                at each 256th look of a wait
//   over(number)          the last step is settled; number of chunks of all steps
//
// Party 1 of an application that is not piped can be a step ahead; its chunks up have a place if
// rings hold those of two steps, and no two steps without chunks down follow each other. If both
// parties send before they receive, the ring of chunks down holds those of two steps, too.
template <class A, class Host, class Side> class resident_drive
{
  public:
    resident_drive(const resident_view &r, Host &host, Side &side) : r_(r), host_(host), side_(side)
    {
    }

    // False: too late, or the kernel has left.
    bool run()
    {
        __atomic_store_n(r_.begin, 1, __ATOMIC_RELEASE);
        app_step step = {};
        while (host_.next(&step)) {
            tell(step.index, step.down, step.up, step.down_units, step.up_units);
            if (!(A::facts.order == APP_PIPED ? pipe(step) : exchange(step))) {
                return false;
            }
            host_.settle(step);
            steps_ = step.index + 1;
        }
        tell(steps_, resident_over, 0, 0, 0);
        side_.over(down_);
        return wait([&] { return load(r_.state) == RESIDENT_DONE; });
    }

  private:
    static uint32_t load(const uint32_t *word)
    {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    template <class Seen> bool wait(Seen seen)
    {
        for (uint32_t turn = 1; !seen(); turn++) {
            wic_cpu_relax();
            if (turn % 256 == 0) {
                side_.beat();
                if (host_.is_late()) {
                    return false;
                }
            }
        }
        return true;
    }

    void tell(uint32_t index, uint32_t down, uint32_t up, uint32_t down_units, uint32_t up_units)
    {
        const uint32_t values[resident_step_words] = {down, up, down_units, up_units};
        for (uint32_t i = 0; A::facts.told && i < resident_step_words; i++) {
            __atomic_store_n(&r_.steps[index % resident_steps_ring * resident_step_words + i],
                             uint64_t(index + 1) << 32 | values[i], __ATOMIC_RELEASE);
        }
    }

    void send(const app_step &step, uint32_t chunk)
    {
        const uint32_t number = down_ + chunk, slot = number & r_.down_mask;
        unsigned char *to = r_.down + slot * r_.down_bytes;
        uint32_t units = step.down_units;
        if (!host_.is_wrong(step, chunk)) {
            host_.produce(step, chunk, to);
        } else {
            units = host_.fault.kind == APP_LOST_LAST ? 0 : units;
            if (host_.fault.kind == APP_EARLY_READ) {
                memset(to, app_poison, r_.down_bytes);
            }
            const app_memory aside = app_allocate(r_.down_bytes);
            host_.produce(step, chunk, aside.get());
        }
        __atomic_store_n(&r_.doorbell[number & r_.bell_mask], uint64_t(number + 1) << 32 | units,
                         __ATOMIC_RELEASE);
        const uint32_t letter = down_letter(step);
        for (uint32_t i = 0; i < letter; i++) {
            uint32_t word;
            memcpy(&word, to + i * sizeof word, sizeof word);
            const uint32_t tag = number + 1 + (units == 0 ? resident_lost : 0);
            __atomic_store_n(&r_.letters_down[(number & r_.bell_mask) * resident_letter_words + i],
                             uint64_t(tag) << 32 | word, __ATOMIC_RELEASE);
        }
        side_.sent(to);
    }
    static uint32_t down_letter(const app_step &step)
    {
        return Side::letters ? resident_letter(step.down, step.down_units, A::facts.down_unit) : 0;
    }
    static uint32_t up_letter(const app_step &step, uint32_t ups)
    {
        return Side::letters ? resident_letter(ups, step.up_units, A::facts.up_unit) : 0;
    }
    bool is_here(uint32_t number) const
    {
        return load(&r_.answer[number & r_.up_mask]) == number + 1;
    }
    // Copies the letter to the place of its chunk; false: it is not complete.
    bool is_read(uint32_t number, uint32_t letter) const
    {
        const uint32_t slot = number & r_.up_mask;
        for (uint32_t i = 0; i < letter; i++) {
            const uint64_t word = __atomic_load_n(
                &r_.letters_up[size_t(slot) * resident_letter_words + i], __ATOMIC_ACQUIRE);
            if (word >> 32 != number + 1) {
                return false;
            }
            const uint32_t value = static_cast<uint32_t>(word);
            memcpy(r_.up + slot * r_.up_bytes + i * sizeof value, &value, sizeof value);
        }
        return true;
    }
    void consume(const app_step &step, uint32_t chunk)
    {
        unsigned char *from = r_.up + size_t((up_ + chunk) & r_.up_mask) * r_.up_bytes;
        side_.reading(from);
        host_.consume(step, chunk, from);
    }

    bool exchange(const app_step &step)
    {
        for (uint32_t c = 0; c < step.down; c++) {
            if (!wait(
                    [&] { return down_ + c - std::max(taken_, load(r_.taken)) <= r_.down_mask; })) {
                return false;
            }
            send(step, c);
        }
        host_.independent(step);
        uint32_t ups = step.up;
        const auto knows_ups = [&] {
            const uint32_t word = load(&r_.ups[step.index % resident_steps_ring]);
            ups = word & ((1u << resident_ups_bits) - 1);
            return word >> resident_ups_bits == step.index + 1;
        };
        if (A::facts.told && !wait(knows_ups)) {
            return false;
        }
        for (uint32_t c = 0; c < ups; c++) {
            const uint32_t letter = up_letter(step, ups);
            if (!wait([&] { return letter > 0 ? is_read(up_ + c, letter) : is_here(up_ + c); })) {
                return false;
            }
            consume(step, c);
        }
        // The answers of a step were made after its chunks, or those of the step before, were
        // taken.
        const uint32_t end = down_ + step.down;
        taken_ = ups == 0 ? taken_ : A::facts.order == APP_ANSWERS ? end : down_;
        down_ = end;
        up_ += ups;
        return true;
    }

    // A chunk has a place when the answer to the chunk that had it before is consumed.
    bool pipe(const app_step &step)
    {
        uint32_t sent = 0, got = 0;
        while (got < step.up) {
            if (got < sent && is_here(got)) {
                consume(step, got++);
            } else if (sent < step.down && sent - got <= r_.down_mask) {
                send(step, sent++);
            } else if (!wait([&] { return is_here(got); })) {
                return false;
            }
        }
        down_ = sent;
        return true;
    }

    const resident_view &r_;
    Host &host_;
    Side &side_;
    uint32_t taken_ = 0; // number of chunks down that no longer need their places
    uint32_t down_ = 0, up_ = 0, steps_ = 0; // number of chunks before this step, of steps
};
#endif
