// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_PAIRS_CUH
#define PB_DEFLATE_PAIRS_CUH
// Matches of pairs of bytes, with the bytes of pipeline/codec/deflate_pairs.c.
//
// A chunk depends on others only by the table of words, which has the positions of the window
// before it. Therefore chunks are independent: each enters these positions again, half as many as
// it has itself. Two stages make its matches, then pieces of it are counted and packed like those
// of runs.
//
// Find, by a warp: 32 pairs at a time are looked up and entered. Lanes with the same hash find each
// other, so that each one sees the words before it in the order of the CPU; only the table, of 32
// KiB of shared memory, is sequential. The strings of eight such groups are loaded together.
//
// Parse, by a warp: where all matches have two pairs, those that are taken are every second bit of
// a row of bits, which carries of an addition find in all rows of a group at once. Only a longer
// match has to be looked at by itself: the warp finds its length.
#include "kernels/codec/deflate_count.cuh"
#include "kernels/codec/deflate_pack.cuh"

namespace pb_device
{
constexpr uint32_t PAIRS_TURN = 8; // groups whose strings are loaded together
constexpr uint32_t PAIRS_WORD = PB_DEFLATE_PAIRS_WORD, PAIRS_LEFT = PB_DEFLATE_PAIRS_LEFT;
constexpr uint32_t PAIRS_WINDOW = PB_DEFLATE_PAIRS_WINDOW;
constexpr uint32_t PAIRS_LENGTH_MAX = PB_DEFLATE_PAIRS_LENGTH_MAX;

struct pairs_arena {
    uint32_t last[1 << PB_DEFLATE_PAIRS_HASH_BITS]; // as pb_deflate_pairs.last
};

// A chunk with its window. Positions w are counted from the window's beginning, positions p from
// the chunk's.
struct pairs_chunk {
    const uint32_t *window; // two pairs each
    uint32_t before;        // pairs of the window before the chunk
    uint32_t pairs;         // of the chunk; a multiple of four, as sides of blocks are
    pb_pairs_group *group;
    uint16_t *back;

    __device__ uint32_t groups() const
    {
        return (pairs + PB_PAIRS_GROUP - 1) / PB_PAIRS_GROUP;
    }
    __device__ uint32_t byte(uint32_t at) const
    {
        return reinterpret_cast<const uint8_t *>(window)[at];
    }
    __device__ uint32_t pair(uint32_t w) const
    {
        return reinterpret_cast<const uint16_t *>(window)[w];
    }
};

inline __device__ pairs_chunk pairs_of(const pb_encode_view &view, const encode_chunk &chunk)
{
    const uint32_t before = chunk.first ? 0 : PAIRS_WINDOW;
    const uint32_t k = chunk.index % view.chunks;
    return {reinterpret_cast<const uint32_t *>(chunk.in - 2 * static_cast<size_t>(before)), before,
            chunk.bytes / 2,
            view.pairs_groups + static_cast<size_t>(chunk.block) * view.groups +
                k * PB_PAIRS_CHUNK_GROUPS,
            view.pairs_back + chunk.block * (view.raw_stride / 2) + k * PB_DEFLATE_PAIRS};
}

// A word, and the pair after it.
struct pairs_word {
    uint32_t word, third;
};

inline __device__ pairs_word word_at(const pairs_chunk &chunk, uint32_t w)
{
    const uint32_t a = chunk.window[w / 2], b = chunk.window[w / 2 + 1], shift = 16 * (w % 2);
    return {__funnelshift_r(a, b, shift), b >> shift & 0xffff};
}

// A lane's pair of each group of a turn.
struct pairs_turn {
    pairs_word own[PAIRS_TURN];
    uint32_t met[PAIRS_TURN]; // the entry that a word found, as pb_deflate_pairs.met
    uint32_t looked, run;     // bit k, of group k: its word is in the table; it repeats a byte
};

inline __device__ void load_turn(const pairs_chunk &chunk, uint32_t from, uint32_t lane,
                                 pairs_turn *turn)
{
    const uint32_t end = chunk.before + chunk.pairs;
    turn->looked = turn->run = 0;
#pragma unroll
    for (uint32_t k = 0; k < PAIRS_TURN; k++) {
        const uint32_t w = from + PB_PAIRS_GROUP * k + lane;
        // The block's first pair has nothing before it; that of a window would be entered as 0,
        // which all entries are at first.
        const bool inside = w + PAIRS_WORD <= end && w > 0;
        const uint32_t most = w < chunk.before ? chunk.before : end; // of its chunk
        const uint32_t at = w + PAIRS_LEFT <= end ? w : end - PAIRS_LEFT;
        const pairs_word loaded = word_at(chunk, at);
        turn->own[k] = loaded;
        bool run = false;
        if (at < w && inside) { // one of the last pairs: the word of `at` is another one
            turn->own[k].word = chunk.pair(w) | chunk.pair(w + 1) << 16;
        }
        if (inside) {
            run = turn->own[k].word == chunk.byte(2 * w - 1) * 0x01010101u;
        }
        turn->run |= (run ? 1u : 0u) << k;
        turn->looked |= (inside && !run && w + PAIRS_LEFT <= most ? 1u : 0u) << k;
    }
}

// The bit of the highest lane of a mask that is not 0.
inline __device__ uint32_t top_lane(uint32_t mask)
{
    return 31 - static_cast<uint32_t>(__clz(static_cast<int>(mask)));
}

// Looks up and enters the words of a turn, in order.
inline __device__ void enter_turn(pairs_arena &arena, uint32_t from, uint32_t lane,
                                  pairs_turn *turn)
{
#pragma unroll
    for (uint32_t k = 0; k < PAIRS_TURN; k++) {
        const uint32_t first = from + PB_PAIRS_GROUP * k;
        const bool looked = (turn->looked >> k & 1) != 0;
        const uint32_t hash = pb_deflate_pairs_hash(turn->own[k].word);
        const uint32_t entry = looked ? arena.last[hash] : 0;
        const uint32_t same = // lanes that are not looked up meet nobody
            __match_any_sync(ALL_LANES, looked ? hash : 1u << 31 | lane);
        const uint32_t below = same & ((1u << lane) - 1);
        uint32_t met = entry;
        if (below != 0) {
            const uint32_t near = top_lane(below), others = below & ~(1u << near);
            met = (others != 0 ? first + top_lane(others) : entry & 0xffff) << 16 | (first + near);
        }
        turn->met[k] = met;
        __syncwarp(); // the entries have been read
        if (looked && same >> lane == 1) {
            arena.last[hash] = met << 16 | (first + lane);
        }
        __syncwarp();
    }
}

// The string of a lane's pair.
struct pairs_found {
    uint32_t at; // w of its string
    bool match, third;
};

inline __device__ void find_turn(const pairs_chunk &chunk, uint32_t from, uint32_t lane,
                                 const pairs_turn &turn)
{
    pairs_found found[PAIRS_TURN];
#pragma unroll
    for (uint32_t k = 0; k < PAIRS_TURN; k++) {
        const bool looked = (turn.looked >> k & 1) != 0;
        const uint32_t at = looked ? turn.met[k] & 0xffff : 0;
        const pairs_word string = word_at(chunk, at);
        found[k] = {at, looked && string.word == turn.own[k].word,
                    string.third == turn.own[k].third};
    }
#pragma unroll
    for (uint32_t k = 0; k < PAIRS_TURN; k++) { // lanes that have a string load it again
        const bool looked = (turn.looked >> k & 1) != 0;
        const uint32_t at = looked && !found[k].match ? turn.met[k] >> 16 : found[k].at;
        const pairs_word string = word_at(chunk, at);
        found[k] = {at, looked && string.word == turn.own[k].word,
                    string.third == turn.own[k].third};
    }
    const uint32_t last = chunk.pairs - PAIRS_LEFT; // the last p of a word
#pragma unroll
    for (uint32_t k = 0; k < PAIRS_TURN; k++) {
        const uint32_t w = from + PB_PAIRS_GROUP * k + lane, p = w - chunk.before;
        if (p - lane >= chunk.pairs) {
            return;
        }
        // A run that begins after `last` is not searched for. The four last pairs are in a group.
        const uint32_t runs = __ballot_sync(ALL_LANES, (turn.run >> k & 1) != 0);
        const uint32_t tail =
            p > last ? (2u << lane) - (1u << (last % PB_PAIRS_GROUP)) : 1u << lane;
        const bool run = (runs & tail) == tail;
        const bool match = found[k].match && w - found[k].at <= PAIRS_WINDOW;
        const uint32_t begins = __ballot_sync(ALL_LANES, run || match);
        const uint32_t longer = __ballot_sync(ALL_LANES, run || (match && found[k].third));
        if (p < chunk.pairs) {
            chunk.back[p] = static_cast<uint16_t>(match ? w - found[k].at : 0);
        }
        if (lane == 0) {
            chunk.group[p / PB_PAIRS_GROUP] = {begins, longer, 0};
        }
    }
}

// The pairs of a match at p that is longer than a word, or of a run; by a whole warp.
inline __device__ uint32_t pairs_length(const pairs_chunk &chunk, uint32_t p, uint32_t lane)
{
    const uint32_t w = chunk.before + p, back = chunk.back[p], left = chunk.pairs - p;
    const uint32_t most = back > 0 && left > PAIRS_LENGTH_MAX ? PAIRS_LENGTH_MAX : left;
    const uint32_t repeated = back > 0 ? 0 : chunk.byte(2 * w - 1) * 0x0101u;
    uint32_t n = PAIRS_WORD;
    for (; n < most; n += 32) {
        const uint32_t i = n + lane;
        const bool same =
            i < most && chunk.pair(w + i) == (back > 0 ? chunk.pair(w + i - back) : repeated);
        const uint32_t others = __ballot_sync(ALL_LANES, !same);
        if (others != 0) {
            return n + static_cast<uint32_t>(__ffs(static_cast<int>(others))) - 1;
        }
    }
    return n;
}

// Every second bit of each row of ones, from its first on. A row that begins at an even bit is
// cleared by a carry when its first bit is added.
inline __device__ uint32_t every_second(uint32_t bits)
{
    constexpr uint32_t EVEN = 0x55555555;
    const uint32_t first = bits & ~(bits << 1);
    const uint32_t even = bits & ~(bits + (first & EVEN));
    return (even & EVEN) | (bits & ~even & ~EVEN);
}

// Selects the matches of a group, whose first pair is `first`; by a whole warp. *next: the first
// pair that no match before has taken.
inline __device__ pb_pairs_group parse_group(const pairs_chunk &chunk, uint32_t first,
                                             uint32_t match, uint32_t longer, uint32_t *next,
                                             uint32_t lane)
{
    const uint32_t inside =
        chunk.pairs - first >= 32 ? ALL_LANES : (1u << (chunk.pairs - first)) - 1;
    pb_pairs_group out = {0, 0, 0};
    uint32_t at = *next > first ? *next - first : 0;
    while (at < 32) {
        const uint32_t open = inside & ALL_LANES << at;
        const uint32_t begins = every_second(match & open), stop = begins & longer;
        const uint32_t passed = stop != 0 ? (stop & (0 - stop)) - 1 : ALL_LANES; // before `stop`
        const uint32_t taken = begins & passed;
        out.match |= taken;
        out.literal |= open & passed & ~(taken | taken << 1);
        if (stop == 0) {
            at = 32 + (taken >> 31);
            continue;
        }
        at = static_cast<uint32_t>(__ffs(static_cast<int>(stop))) - 1;
        out.match |= 1u << at;
        out.longer |= 1u << at;
        const uint32_t length = pairs_length(chunk, first + at, lane);
        if (lane == 0) {
            chunk.back[first + at + 1] = static_cast<uint16_t>(length);
        }
        at += length;
    }
    *next = first + at;
    return out;
}

// The pairs of a thread's part of a piece.
template <uint32_t GROUPS> struct part_pairs {
    pb_pairs_group group[GROUPS];
    const uint16_t *back; // of the part's first pair

    // Calls visitor.literals(pair) and visitor.match(pairs, back), in order; back 0: distance 1.
    template <class Piece, class Visitor>
    __device__ __forceinline__ void each(const Piece &piece, uint32_t thread, Visitor visitor) const
    {
#pragma unroll
        for (uint32_t k = 0; k < GROUPS; k++) {
            for (uint32_t left = group[k].match | group[k].literal; left != 0; left &= left - 1) {
                const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1;
                const uint32_t i = PB_PAIRS_GROUP * k + bit;
                if ((group[k].literal >> bit & 1) != 0) {
                    const uint32_t two = piece.word(thread * Piece::PART + i / 2 * 4);
                    visitor.literals(two >> (16 * (i % 2)) & 0xffff);
                } else {
                    const bool longer = (group[k].longer >> bit & 1) != 0;
                    visitor.match(longer ? back[i + 1] : PAIRS_WORD, back[i]);
                }
            }
        }
    }
    // As part_symbols.visit, for a visitor of which the codes and the bits are taken.
    template <class Piece, class Bits>
    __device__ __forceinline__ void visit(const Piece &piece, uint32_t thread,
                                          symbol_bits<Bits> symbols) const;
};

// Symbols and extra bits of a match.
struct pairs_symbols {
    uint32_t length, length_bits, length_extra, distance, distance_bits, distance_extra;

    __device__ pairs_symbols(uint32_t bytes, uint32_t back)
        : length(pb_deflate_length_symbol(bytes, &length_bits, &length_extra)),
          distance(PB_DEFLATE_SYMBOLS +
                   pb_deflate_distance_symbol(back, &distance_bits, &distance_extra))
    {
    }
};

// Calls f(symbols) for each match of `pairs` pairs; more than one for a run.
template <class F> __device__ void for_matches(uint32_t pairs, uint32_t back, const F &f)
{
    for (uint32_t left = pairs; left > 0;) {
        const uint32_t part = pb_deflate_part_of(2 * left) / 2;
        f(pairs_symbols(2 * part, back > 0 ? 2 * back : 1));
        left -= part;
    }
}

template <class Bits> struct pairs_bits {
    const uint32_t *code;
    Bits &bits;

    __device__ __forceinline__ void put(uint32_t symbol, uint32_t extra, uint32_t extra_bits)
    {
        const uint32_t own = code[symbol];
        bits.put((own & 0xffff) | extra << (own >> 16), (own >> 16) + extra_bits);
    }
    __device__ __forceinline__ void literals(uint32_t pair)
    {
        const uint32_t a = code[pair & 255], b = code[pair >> 8];
        bits.put((a & 0xffff) | (b & 0xffff) << (a >> 16), (a >> 16) + (b >> 16));
    }
    __device__ __forceinline__ void match(uint32_t pairs, uint32_t back)
    {
        for_matches(pairs, back, [&](const pairs_symbols &s) {
            put(s.length, s.length_extra, s.length_bits);
            put(s.distance, s.distance_extra, s.distance_bits);
        });
    }
};

template <uint32_t GROUPS>
template <class Piece, class Bits>
__device__ __forceinline__ void part_pairs<GROUPS>::visit(const Piece &piece, uint32_t thread,
                                                          symbol_bits<Bits> symbols) const
{
    each(piece, thread, pairs_bits<Bits>{symbols.code, symbols.bits});
}

struct pairs_counted {
    uint32_t *count;
    uint32_t &more;

    __device__ __forceinline__ void literals(uint32_t pair)
    {
        atomicAdd(&count[pair & 255], 1u);
        atomicAdd(&count[pair >> 8], 1u);
    }
    __device__ __forceinline__ void match(uint32_t pairs, uint32_t back)
    {
        for_matches(pairs, back, [&](const pairs_symbols &s) {
            atomicAdd(&count[s.length], 1u);
            atomicAdd(&count[s.distance], 1u);
            more += s.length_bits + s.distance_bits;
        });
    }
};

// The pairs of a chunk's pieces, as runs_taken.
struct pairs_taken {
    const pb_encode_view &view;

    template <class Piece, class Group>
    __device__ auto operator()(Piece &piece, const encode_chunk &chunk, uint32_t from,
                               const Group &group)
    {
        constexpr uint32_t GROUPS = Piece::PART / (2 * PB_PAIRS_GROUP);
        const pairs_chunk pairs = pairs_of(view, chunk);
        const uint32_t first = (from + group.thread * Piece::PART) / (2 * PB_PAIRS_GROUP);
        part_pairs<GROUPS> part;
        load_piece(piece, chunk, from, Piece::BYTES, group);
#pragma unroll
        for (uint32_t k = 0; k < GROUPS; k++) {
            part.group[k] = pb_pairs_group{0, 0, 0};
            if (first + k < pairs.groups()) {
                part.group[k] = pairs.group[first + k];
            }
        }
        part.back = pairs.back + PB_PAIRS_GROUP * static_cast<size_t>(first);
        group.sync();
        return part;
    }
};
} // namespace pb_device

// The positions of a chunk that can begin a match, by a warp.
inline __device__ void pb_pairs_find(const pb_encode_view &view,
                                     const pb_device::encode_chunk &chunk,
                                     pb_device::pairs_arena &arena, uint32_t lane)
{
    using namespace pb_device;
    const pairs_chunk pairs = pairs_of(view, chunk);
    for (uint32_t i = lane; i < 1 << PB_DEFLATE_PAIRS_HASH_BITS; i += 32) {
        arena.last[i] = 0;
    }
    __syncwarp();
    constexpr uint32_t PAIRS = PAIRS_TURN * PB_PAIRS_GROUP;
    static_assert(PAIRS_WINDOW % PAIRS == 0, "turns before the chunk, then its own");
    static_assert(PB_DEFLATE_PAIRS % 4 == 0, "the last pairs of a chunk are in a group");
    for (uint32_t from = 0; from < pairs.before + pairs.pairs; from += PAIRS) {
        pairs_turn turn;
        load_turn(pairs, from, lane, &turn);
        enter_turn(arena, from, lane, &turn);
        if (from >= pairs.before) {
            find_turn(pairs, from, lane, turn);
        }
    }
}

// Selects the matches of a chunk, by a warp.
inline __device__ void pb_pairs_parse(const pb_encode_view &view,
                                      const pb_device::encode_chunk &chunk, uint32_t lane)
{
    using namespace pb_device;
    const pairs_chunk pairs = pairs_of(view, chunk);
    const uint32_t groups = pairs.groups();
    uint32_t next = 0;
    for (uint32_t first = 0; first < groups; first += 32) { // a lane has one of 32 groups
        pb_pairs_group own = {0, 0, 0};
        if (first + lane < groups) {
            own = pairs.group[first + lane];
        }
        for (uint32_t k = 0; k < 32 && first + k < groups; k++) {
            const uint32_t match = __shfl_sync(ALL_LANES, own.match, static_cast<int>(k));
            const uint32_t longer = __shfl_sync(ALL_LANES, own.longer, static_cast<int>(k));
            const pb_pairs_group made =
                parse_group(pairs, PB_PAIRS_GROUP * (first + k), match, longer, &next, lane);
            if (lane == k) {
                own = made;
            }
        }
        if (first + lane < groups) {
            pairs.group[first + lane] = own;
        }
    }
}

// Counts the symbols of a chunk, and makes its checksum. Every thread of the group calls it; a
// barrier follows before the arena is used again.
template <uint32_t THREADS, class Group>
__device__ void pb_pairs_count(const pb_encode_view &view, const pb_device::encode_chunk &chunk,
                               pb_device::deflate_count_arena<THREADS> &arena, pb_deflate_sums *out,
                               const Group &group)
{
    using namespace pb_device;
    static_assert(THREADS >= PB_DEFLATE_DISTANCES, "a thread for each distance");
    using Piece = chunk_piece<THREADS>;
    deflate_thread_sums sums;
    uint32_t *const count = arena.count[group.thread % HISTOGRAMS];
    clear_counts(arena, group);
    for (uint32_t from = 0; from < chunk.bytes; from += Piece::BYTES) {
        const uint32_t lo = from + group.thread * Piece::PART;
        const auto pairs = pairs_taken{view}(arena.piece, chunk, from, group);
        part_sums part;
        for (uint32_t i = 0; i < Piece::PART; i += 4) {
            part.add(arena.piece.word(group.thread * Piece::PART + i), i);
        }
        part.add_to(&sums, lo < chunk.bytes ? chunk.bytes - lo : 0);
        pairs.each(arena.piece, group.thread, pairs_counted{count, sums.more});
        group.sync(); // the piece has been read
    }
    write_sums(arena, sums, out, group);
    if (group.thread < PB_DEFLATE_DISTANCES) {
        view.distances[chunk.index].count[group.thread] =
            sum_counts(arena, PB_DEFLATE_SYMBOLS + group.thread);
    }
}
#endif
