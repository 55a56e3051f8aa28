// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_CUH
#define WIC_APP_PAIR_CUH
// The frame of an application between two resident kernels, of one GPU or of two: party 0 is a
// kernel, too, and both are symmetrical. The host only begins the round and sees its end. A way
// adds how a block sends a piece and how it finds out that a chunk is there.
//
//   board[n]    chunk n for this party, or that it is lost    (number + 1) << 32 | units
//   taken       number of chunks of which this party has read all: the other one may write to their
//               places again
//   steps, ups  a step, and the number of chunks that party 1 makes in it, if the data decides
//
// A word is in the memory of the GPU that polls it; the other GPU stores to it over the link.
// Chunks are in the receiver's memory. Words between parties are those of wic/peer, at system
// scope; those of one party have the scope of its GPU.
//
// Chunks are counted from 0 in a round, by receiver; words and chunks are rings of a power of two.
// A chunk is cut into pieces, enough for all blocks of its sender; the last block to make a piece
// posts the chunk. Between phases all blocks of a party meet at a counter. Each wait looks at the
// host's stop word and has a time limit; a block that gives up leaves, and so do the others.
//
// Both kernels are resident at once: either each has a GPU, or a block of either takes more than
// half of a multiprocessor, and both together have no more blocks than there are multiprocessors.
//
// Nothing here needs CUDA's headers: tests/unit/test_wic_pair_device.c runs both parties by threads
// of the host.
#include "wic/apps/strategies/resident.cuh"
#include "wic/peer/peer.cuh"

#include <sched.h>

// How a block brings the pieces that it makes to the receiver.
enum pair_way_out : uint32_t {
    PAIR_IN_PLACE,   // it makes them in their place
    PAIR_PUT_SIGNAL, // the other ways have a file each
    PAIR_GPS,
    PAIR_FINEPACK,
    PAIR_EFFSHARE,
    PAIR_LETTERS,
};

// The chunks for one party.
struct pair_lane {
    uint64_t *board;
    uint32_t *made;  // number of pieces of each chunk that are made; memory of the sender
    uint32_t *taken; // number of chunks; memory of the sender
    unsigned char *data;
    unsigned char *copy;    // the sender's own place of each chunk, or NULL
    unsigned char *letters; // twice the bytes of `data`, or NULL; instead of board and data
    uint64_t *ready;        // words of the board for the host, which brings the chunks; or NULL
    size_t bytes;           // distance between chunks
    uint32_t mask;

    // `of` is data or copy.
    APP_DO unsigned char *at(unsigned char *of, uint32_t number, size_t offset) const
    {
        return of + size_t(number & mask) * bytes + offset;
    }
};

struct pair_view {
    pair_lane to[2]; // lane of each receiver
    uint64_t *steps; // ring of steps, from party 0
    uint32_t *ups;   // word of each step
    uint32_t *met[2], *started[2];
    // Words in the host's memory.
    const uint32_t *begin, *stop;
    uint32_t *state[2];
    uint64_t limit_ns;
    app_fault fault; // mistake that the sender makes on purpose
    pair_way_out send;
    bool is_managed; // the board
    bool pulls;      // wic: into shared memory
};

// A piece of a chunk that is made and sent, or taken.
struct pair_sending {
    const pair_lane &lane;
    uint32_t number; // number of the chunk
    size_t offset;   // in the chunk, a multiple of 16
    uint32_t bytes;

    APP_DO unsigned char *data() const
    {
        return lane.at(lane.data, number, offset);
    }
    APP_DO unsigned char *copy() const
    {
        return lane.at(lane.copy, number, offset);
    }
    APP_DO uint32_t whole() const // bytes, a multiple of 16
    {
        return (bytes + 15) / 16 * 16;
    }
};

// Acquires a word that the other party has posted by wic_word_post_host(), which releases.
__device__ __forceinline__ uint32_t pair_see(const uint32_t *word)
{
#ifdef __CUDA_ARCH__
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

// One thread waits until seen() is true. False: leave.
template <class Seen> __device__ __forceinline__ bool pair_wait(const pair_view &p, Seen seen)
{
    wic_watchdog dog = {0, 0};
    for (uint32_t turn = 1; !seen(); turn++) {
#ifndef __CUDA_ARCH__
        sched_yield(); // in tests threads are more than cores
#endif
        if (turn % resident_turns == 0 &&
            (wic_word_peek(p.stop) != 0 ||
             wic_watchdog_expired(&dog, wic_depend_now(), p.limit_ns))) {
            return false;
        }
    }
    return true;
}

// One thread. False: the round has ended, or the kernel must leave (step->down is not
// resident_over then).
__device__ inline bool pair_told_step(const pair_view &p, app_step *step)
{
    if (!pair_wait(p, [&] { return resident_read_step(p.steps, step); })) {
        step->down = 0;
        return false;
    }
    return step->down != resident_over;
}

// One thread; the number of chunks that party 1 makes; resident_leave.
__device__ inline uint64_t pair_told_ups(const pair_view &p, uint32_t index)
{
    uint32_t word = 0;
    const bool is_here = pair_wait(p, [&] {
        word = wic_word_peek(&p.ups[index % resident_steps_ring]);
        return word >> resident_ups_bits == index + 1;
    });
    return is_here ? word & ((1u << resident_ups_bits) - 1) : resident_leave;
}

// Thread 0 of a block that has sent a piece of the chunk. The last one posts it on the board, or to
// the host.
__device__ inline void pair_post(const pair_lane &lane, uint32_t number, uint32_t pieces,
                                 uint32_t units)
{
    uint32_t *made = &lane.made[number & lane.mask];
    if (pieces == 1 || wic_arrive(made, pieces)) {
        *made = 0;
        uint64_t *to = &(lane.ready != nullptr ? lane.ready : lane.board)[number & lane.mask];
        wic_peer_post(to, uint64_t(number + 1) << 32 | units, WIC_PEER_SYSTEM);
    }
}

// The word of a chunk once it is there, else 0; polls half of it, relaxed.
__device__ __forceinline__ uint64_t pair_look(const pair_lane &lane, uint32_t number)
{
    const uint64_t *word = &lane.board[number & lane.mask];
    return wic_word_peek(reinterpret_cast<const uint32_t *>(word) + 1) == number + 1
               ? wic_peer_see(word)
               : 0;
}

// After a round by both parties whose rings had a place for each chunk, this party can repeat the
// round alone: clear(at, bytes) is called for the words that must be 0 then, in addition to those
// of the host. The words of its chunks, of steps and their numbers stay.
template <class Clear> inline void pair_forget(const pair_view &p, int party, Clear clear)
{
    const pair_lane &other = p.to[1 - party];
    clear(other.made, (other.mask + 1) * sizeof(uint32_t));
    clear(other.taken, sizeof(uint32_t));
    clear(p.met[party], sizeof(uint32_t));
    clear(p.started[party], sizeof(uint32_t));
}

// The whole round of a party. A way has
//
//   part(), block, blocks
//   share(value)   the value of thread 0, for all threads of the block; a barrier of them
//   take(p, piece, from)
//                  more than 0 when the piece, which is at *from, can be read; 0: its chunk is
//                  lost; resident_leave
//   taken()        all threads are done with that piece
//   make(send, sending, write)
//                  write(to) writes the part of a thread of the piece to `to`
//   send(send, sending, is_lost)
//                  all threads have written it; thread 0 may post when this returns
template <class A, int party, class Way> class pair_party
{
  public:
    static_assert(A::facts.order != APP_PIPED, "no application of two kernels is piped");

    __device__ pair_party(const typename A::view &v, const pair_view &p, Way &way)
        : v_(v), p_(p), way_(way), part_(way.part()),
          all_(resident_spread(way.block, way.blocks, part_))
    {
    }

    __device__ void run()
    {
        if (part_.thread == 0 && wic_arrive(p_.started[party], way_.blocks)) {
            wic_word_post_host(p_.state[party], RESIDENT_HERE);
        }
        if (!begin()) {
            return;
        }
        for (app_step step = {}; next(&step); step.index++) {
            if (!take_step(step)) {
                is_left_ = true;
                return;
            }
        }
        if (!is_left_ && meet() && is_first()) {
            wic_word_post_host(p_.state[party], RESIDENT_DONE);
        }
    }
    __device__ bool is_left() const
    {
        return is_left_;
    }

  private:
    static constexpr int other = 1 - party;

    __device__ bool is_first() const
    {
        return way_.block == 0 && part_.thread == 0;
    }
    __device__ bool begin()
    {
        if (way_.block == 0) {
            const bool begins =
                part_.thread == 0 && pair_wait(p_, [&] { return wic_word_peek(p_.begin) != 0; });
            is_left_ = way_.share(begins) == 0;
        }
        return !is_left_ && meet();
    }
    // Party 0 has settled the step before, and posts the next one.
    __device__ bool next(app_step *step)
    {
        if constexpr (!A::facts.told) {
            return A::next(v_, step);
        } else if constexpr (party == 0) {
            const bool is_step = A::next(v_, step);
            if (is_first()) {
                app_step told = *step;
                told.down = is_step ? step->down : resident_over;
                tell(told);
            }
            return is_step;
        } else {
            bool is_step = false;
            if (part_.thread == 0) {
                is_step = pair_told_step(p_, step);
                is_left_ = !is_step && step->down != resident_over;
            }
            step->down = static_cast<uint32_t>(way_.share(step->down));
            step->up = static_cast<uint32_t>(way_.share(step->up));
            step->down_units = static_cast<uint32_t>(way_.share(step->down_units));
            step->up_units = static_cast<uint32_t>(way_.share(step->up_units));
            is_left_ = way_.share(is_left_) != 0;
            return way_.share(is_step) != 0;
        }
    }
    __device__ void tell(const app_step &step)
    {
        const uint32_t values[resident_step_words] = {step.down, step.up, step.down_units,
                                                      step.up_units};
        for (uint32_t i = 0; i < resident_step_words; i++) {
            wic_peer_post(&p_.steps[step.index % resident_steps_ring * resident_step_words + i],
                          uint64_t(step.index + 1) << 32 | values[i], WIC_PEER_ALONE);
        }
    }

    __device__ bool take_step(const app_step &step)
    {
        constexpr bool answers = A::facts.order == APP_ANSWERS;
        if (party == 0 || !answers) {
            if (!make(step) || (answers && !meet())) {
                return false;
            }
        }
        if (!receive(step) || !meet()) {
            return false;
        }
        if (is_first()) {
            wic_word_post_host(p_.to[party].taken, got_);
        }
        for (uint32_t phase = 0; phase < A::settles(step); phase++) {
            A::template settle<party>(v_, step, phase, all_);
            if (!meet()) {
                return false;
            }
        }
        return party == 0 || !answers || (make(step) && meet());
    }

    // A barrier of all threads of all blocks of the party. False: leave.
    __device__ bool meet()
    {
        barriers_++;
        way_.share(0);
        bool is_met = true;
        if (part_.thread == 0) {
            wic_offer(p_.met[party], 1);
            const uint32_t all = barriers_ * way_.blocks;
            is_met =
                pair_wait(p_, [&] { return wic_word_is_at(wic_word_peek(p_.met[party]), all); }) &&
                wic_word_is_at(wic_word_see(p_.met[party]), all); // acquires
        }
        is_left_ = way_.share(is_met) == 0;
        return !is_left_;
    }

    static __device__ uint32_t units(const app_step &step, int receiver)
    {
        return receiver == 1 ? step.down_units : step.up_units;
    }
    static constexpr __device__ uint32_t unit_bytes(int receiver)
    {
        return receiver == 1 ? A::facts.down_unit : A::facts.up_unit;
    }

    __device__ bool make(const app_step &step)
    {
        const pair_lane &lane = p_.to[other];
        const uint32_t chunks = party == 0 ? step.down : A::ups(v_, step);
        if (A::facts.told && party == 1 && is_first()) {
            wic_word_post_host(&p_.ups[step.index % resident_steps_ring],
                               (step.index + 1) << resident_ups_bits | chunks);
        }
        bool has_room = true;
        if (part_.thread == 0 && chunks > 0) {
            has_room = pair_wait(
                p_, [&] { return sent_ + chunks - pair_see(lane.taken) <= lane.mask + 1; });
        }
        if (way_.share(has_room) == 0) {
            return false;
        }
        const uint32_t all = units(step, other);
        const resident_cut cut(chunks, all, unit_bytes(other), way_.blocks);
        for (uint32_t at = way_.block; at < chunks * cut.pieces; at += way_.blocks) {
            const app_piece piece = cut.piece(at, all);
            const bool is_last = piece.chunk + 1 == chunks;
            send(step, piece, cut.pieces,
                 is_last && is_wrong(step) ? p_.fault.kind : APP_BREAK_NONE);
        }
        sent_ += chunks;
        return true;
    }

    __device__ bool is_wrong(const app_step &step) const // for the last chunk that it sends
    {
        return p_.fault.receiver == other && p_.fault.step == step.index;
    }
    __device__ void send(const app_step &step, const app_piece &piece, uint32_t pieces,
                         app_break mistake)
    {
        const pair_sending sending = {p_.to[other], sent_ + piece.chunk,
                                      size_t(piece.first) * unit_bytes(other),
                                      piece.units * unit_bytes(other)};
        const bool has_data = mistake == APP_BREAK_NONE || mistake == APP_EARLY_READ;
        if (has_data) {
            way_.make(p_.send, sending, [&](unsigned char *to) {
                if (mistake == APP_BREAK_NONE) {
                    A::template make<party>(v_, step, piece, to, part_);
                    return;
                }
                for (uint32_t i = part_.thread; i < sending.bytes; i += part_.threads) {
                    to[i] = app_poison;
                }
            });
        }
        way_.share(0);
        if (has_data || p_.send == PAIR_LETTERS) {
            way_.send(p_.send, sending, mistake == APP_LOST_LAST);
        }
        if (part_.thread == 0 && p_.send != PAIR_LETTERS) {
            pair_post(sending.lane, sending.number, pieces,
                      mistake == APP_LOST_LAST ? 0 : units(step, other));
        }
    }

    // `independent` and `dependent`, pieces in turn.
    __device__ bool receive(const app_step &step)
    {
        A::template independent<party>(v_, step, all_);
        uint64_t chunks = party == 1 ? step.down : step.up;
        if (A::facts.told && party == 0) {
            chunks = way_.share(part_.thread == 0 ? pair_told_ups(p_, step.index) : 0);
            if (chunks == resident_leave) {
                return false;
            }
        }
        const uint32_t all = units(step, party);
        const resident_cut cut(static_cast<uint32_t>(chunks), all, unit_bytes(party), way_.blocks);
        for (uint32_t at = way_.block; at < chunks * cut.pieces; at += way_.blocks) {
            const app_piece piece = cut.piece(at, all);
            const void *from = nullptr;
            const uint64_t found = way_.take(p_,
                                             {p_.to[party], got_ + piece.chunk,
                                              size_t(piece.first) * unit_bytes(party),
                                              piece.units * unit_bytes(party)},
                                             &from);
            if (found == resident_leave) {
                return false;
            }
            if (found > 0) {
                A::template dependent<party>(v_, step, piece, from, part_);
            }
            way_.taken();
        }
        got_ += static_cast<uint32_t>(chunks);
        return true;
    }

    const typename A::view &v_;
    const pair_view &p_;
    Way &way_;
    app_part part_, all_;                        // threads of the block, of all blocks
    uint32_t barriers_ = 0, sent_ = 0, got_ = 0; // numbers of chunks before this step
    bool is_left_ = false;
};
#endif
