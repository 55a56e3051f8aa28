// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_ROUND_CUH
#define PB_INFLATE_ROUND_CUH
// One round of inflate.cuh, and how much the next one takes.
#include "kernels/codec/inflate_copy.cuh"
#include "kernels/codec/inflate_walk.cuh"

namespace pb_inflate
{
// What a round found, the same in all threads but for `place`.
struct extent {
    uint32_t place, bytes; // of this thread's piece: bytes of the round up to its end; its own
    uint32_t last;         // piece that is written
    uint32_t end, stop;    // of the last piece
    uint32_t total;        // bytes
    bool cut;              // pieces after the last one were walked in vain
};

// Walks again where a piece before this one, in the same warp, ends elsewhere, until none does. By
// whole warps; first: where the warp's first piece starts. Returns whether any was walked.
template <class SHAPE>
__device__ bool settle(const arena<SHAPE> &mine, piece &p, stretch way, uint32_t first,
                       uint32_t thread, uint32_t pieces)
{
    const uint32_t lane = thread % 32;
    bool walked = false;
    way.merges = true;
    for (uint32_t tries = 0; tries <= 32; tries++) { // one more piece is right each time
        const uint32_t before = __shfl_up_sync(~0u, p.end, 1);
        const uint32_t stopped = __ballot_sync(~0u, p.stop != GOES_ON) & ((1u << lane) - 1);
        way.start = lane > 0 ? before : first;
        way.runs = stopped == 0 && thread < pieces && p.start != way.start;
        if (!__any_sync(~0u, way.runs)) {
            break;
        }
        walk(mine, p, way);
        walked = true;
    }
    return walked;
}

// Steps 1 and 2. Returns the last piece of the block of codes, or of the round. Warps settle by
// themselves, then with the end of the warp before.
template <class SHAPE, class GROUP>
__device__ uint32_t find_starts(const GROUP &group, arena<SHAPE> &mine, piece &p, uint32_t first,
                                uint32_t pieces, uint32_t words)
{
    const uint32_t t = group.thread, lane = t % 32, warp = t / 32, step = 32 * words;
    stretch way;
    way.low = first + t * step;
    way.high = way.low + step;
    way.note = &mine.note[t * SHAPE::WORDS];
    way.runs = t < pieces;
    way.merges = false;
    way.start = guess(mine, way, t * step > SHAPE::WARM ? way.low - SHAPE::WARM : first);
    walk(mine, p, way);
    uint32_t warp_first = __shfl_sync(~0u, p.start, 0), last = 0;
    for (uint32_t tries = 0; tries <= SHAPE::WARPS + 1; tries++) { // one more warp is right
        const bool is_reached = tries == 0 || 32 * warp <= last;
        const bool walked = is_reached && settle(mine, p, way, warp_first, t, pieces);
        const uint32_t stopped = __ballot_sync(~0u, p.stop != GOES_ON);
        if (tries > 0 && !group.any(walked)) {
            break;
        }
        if (lane == 31) {
            mine.end[warp] = p.end;
            mine.warp_stop[warp] =
                stopped != 0
                    ? 32 * warp + static_cast<uint32_t>(__ffs(static_cast<int>(stopped))) - 1
                    : SHAPE::THREADS - 1;
        }
        group.sync();
        last = pieces - 1;
#pragma unroll
        for (uint32_t i = 0; i < SHAPE::WARPS; i++) {
            last = min(last, mine.warp_stop[i]);
        }
        warp_first = warp > 0 ? mine.end[warp - 1] : first;
    }
    return last;
}

// The place of every piece. False: not even the first one fits.
template <class SHAPE, class GROUP>
__device__ bool find_places(const GROUP &group, arena<SHAPE> &mine, const piece &p, uint32_t last,
                            extent *out)
{
    const uint32_t t = group.thread, lane = t % 32;
    uint32_t sum = t <= last ? p.bytes : 0;
    out->bytes = sum;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t up = __shfl_up_sync(~0u, sum, d);
        sum += lane >= d ? up : 0;
    }
    if (lane == 31) {
        mine.warp_sum[t / 32] = sum;
    }
    if (t == 0) {
        mine.n_matches = 0;
    }
    group.sync();
#pragma unroll
    for (uint32_t i = 0; i < SHAPE::WARPS; i++) {
        sum += i < t / 32 ? mine.warp_sum[i] : 0;
    }
    const uint32_t fit = group.count(t <= last && sum <= SHAPE::ROUND);
    if (fit == 0) {
        return false;
    }
    out->place = sum;
    out->cut = fit <= last;
    out->last = min(last, fit - 1);
    if (t == out->last) {
        mine.end[0] = p.end;
        mine.warp_stop[0] = p.stop;
        mine.warp_sum[0] = sum;
    }
    group.sync();
    out->end = mine.end[0];
    out->stop = mine.warp_stop[0];
    out->total = mine.warp_sum[0];
    return true;
}

// Puts a match on the list in lanes that have one. The list may be full: its number goes on.
template <class SHAPE>
__device__ __forceinline__ void push_match(arena<SHAPE> &mine, const waiting &w, bool has)
{
    const uint32_t lane = threadIdx.x % 32, mask = __ballot_sync(~0u, has);
    if (mask == 0) {
        return;
    }
    uint32_t i = 0;
    if (lane == 0) {
        i = atomicAdd(&mine.n_matches, static_cast<uint32_t>(__popc(mask)));
    }
    i = __shfl_sync(~0u, i, 0) + static_cast<uint32_t>(__popc(mask & ((1u << lane) - 1)));
    if (has && i < SHAPE::LIST) {
        mine.match[i] = w.place | static_cast<uint32_t>(w.fill) << 15 | w.length << 16;
        mine.distance[i] = static_cast<uint16_t>(w.distance - 1);
        mark<true>(mine, w.place, w.place + w.length);
    }
}

// A run of one byte as a chain of matches: all of them are pointed at the byte it starts from, for
// else each would wait for the one before.
struct run_of_byte {
    uint32_t from, to;
};

__device__ __forceinline__ void follow_run(run_of_byte &run, uint32_t to, waiting &w)
{
    w.fill = w.distance == 1;
    if (w.fill) {
        run.from = to == run.to ? run.from : to - 1;
        run.to = to + w.length;
        w.distance = to - run.from;
    }
}

// Step 3. False: a match begins before the output.
template <class SHAPE>
__device__ bool write_piece(arena<SHAPE> &mine, const state &s, const piece &p, const extent &x,
                            uint32_t thread, uint32_t high)
{
    bool good = true, runs = thread <= x.last;
    const uint32_t end = min(high, p.end);
    uint32_t to = s.done + x.place - x.bytes;
    run_of_byte run = {0, ~0u};
    reader r = {0, p.start};
    while (runs = runs && r.at < end, __any_sync(~0u, runs)) {
        waiting w = {to - s.done, 0, ~0u, false};
        if (runs) {
            w.distance = token<true>(mine, r, &w.length);
        }
        runs = runs && w.distance != ~0u;
        if (runs && w.distance > to) {
            good = runs = false;
        }
        if (runs && w.distance == 0) {
            mine.ring[to & (SHAPE::RING - 1)] = static_cast<uint8_t>(w.length);
            w.length = 1;
            uint32_t second;
            if (r.at < end && second_literal(mine, r, &second)) {
                mine.ring[(to + 1) & (SHAPE::RING - 1)] = static_cast<uint8_t>(second);
                w.length = 2;
            }
        }
        const bool matches = runs && w.distance != 0;
        if (matches) {
            follow_run(run, to, w);
        }
        const bool later =
            matches && (w.place + (w.fill ? 1 : w.length) > w.distance || w.length > SHORT);
        push_match(mine, w, later);
        if (matches && !later) {
            copy_short(mine, s, to, w.length, w.distance, source_of<SHAPE>(s, w));
        }
        __syncwarp();
        to += runs ? w.length : 0;
    }
    return good;
}

// The next round with as many pieces, of such a length, as will fill it but not more.
template <class SHAPE>
__device__ void adapt(state &s, const extent &x, uint32_t n_matches, uint32_t *pieces)
{
    const uint32_t fit = (x.last + 1) * (SHAPE::LIST * 7 / 8) / max(n_matches, 1u);
    *pieces = min(max(fit, *pieces / 2 + 1), SHAPE::THREADS);
    if (x.cut) {
        s.words = max(s.words / 2, 1u);
    } else if (x.total < SHAPE::ROUND / 3) {
        s.words = min(s.words * 2 | 1, SHAPE::WORDS);
    }
}

// One round from s.at on. Returns a status, and in *out_end whether the block of codes ended.
// Nothing is done, but *pieces or s.words is smaller, when it was too much.
template <class SHAPE, class GROUP>
__device__ uint32_t round_of(const GROUP &group, arena<SHAPE> &mine, state &s, uint32_t *pieces,
                             bool *out_end)
{
    const uint32_t words = s.words;
    if (s.at >= s.end) {
        return PB_DECODE_BAD;
    }
    const uint64_t left = (s.end - s.at + 32 * words - 1) / (32 * words);
    const uint32_t n = left < *pieces ? static_cast<uint32_t>(left) : *pieces;
    const uint32_t first = bring(group, mine, s, s.at, n * words + 16);
    piece p = {0, 0, STOP_ODD, 0, 0};
    extent x;
    const uint32_t last = find_starts(group, mine, p, first, n, words);
    if (!find_places(group, mine, p, last, &x)) {
        s.words = 1; // whose bytes fit
        return words > 1 ? PB_DECODED : PB_DECODE_BAD;
    }
    if (x.total > s.most - s.done) {
        return PB_DECODE_LONG;
    }
    s.written = max(s.written, s.done + x.total);
    const uint32_t high = first + (group.thread + 1) * 32 * words;
    if (group.any(!write_piece(mine, s, p, x, group.thread, high))) {
        return PB_DECODE_BAD;
    }
    const uint32_t n_matches = mine.n_matches;
    if (n_matches > SHAPE::LIST) {
        for (uint32_t i = group.thread; i < sizeof mine.missing / 4; i += SHAPE::THREADS) {
            mine.missing[i] = 0;
        }
        *pieces = max((x.last + 1) * (SHAPE::LIST * 7 / 8) / n_matches, 1u);
        s.words = n > 1 ? words : 1;
        return n > 1 || words > 1 ? PB_DECODED : PB_DECODE_BAD;
    }
    copy_matches(group, mine, s, n_matches);
    s.done += x.total;
    s.at += x.end - first;
    flush(group, mine, s, false);
    *out_end = !x.cut && x.stop == STOP_END;
    adapt<SHAPE>(s, x, n_matches, pieces);
    if (s.at > s.end) {
        return PB_DECODE_BAD;
    }
    return !x.cut && x.stop == STOP_ODD ? PB_DECODE_HOST : PB_DECODED;
}
} // namespace pb_inflate
#endif
