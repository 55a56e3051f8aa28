/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Adjacent planes of a row that get codes are one block of the frame: literals in Huffman codes,
 * and a sequence for each run. All blocks use the descriptions of codes in the first one
 * ("treeless" literals, tables in repeat mode). The stored planes are the next block, without
 * codes; if they are little else than runs, as in rows of nodata, they extend the block of coded
 * planes, which then extends over several rows.
 *
 * Codes are made from every ROW_STEPth row, and for all symbols, because other rows have other
 * ones. The distance of a run is that of the match before, which is 1 at the start of a frame; that
 * needs a literal before each run. Rows that equal the row before, as those of nodata, are matches
 * at the distance of a row. */
#include "pipeline/codec/zstd_planes.h"
#include "kernels/codec/deflate_format.h"
#include "kernels/pixel.h"
#include "pipeline/codec/bits_out.h"
#include "pipeline/codec/huffman.h"

#include <assert.h>
#include <string.h>

enum {
    LOOK = 64,         /* bytes that are tested together */
    ROW_STEP = 8,      /* distance of the rows that are counted */
    CODE_BITS = 11,    /* limit of the codes of literals */
    STREAMS_MIN = 256, /* literals that are divided into four streams */
    FEW = 16           /* a 16th of the bytes of a part, or less, are few literals */
};
enum { BLOCK_RAW = 0, BLOCK_CODED = 2 };

/* Decoders read these streams from their end, which the highest bit marks. */
static uint8_t *end_of(struct pb_bits_out *bits)
{
    pb_bits_put(bits, 1, 1);
    return bits->at + (bits->n > 0);
}

static uint8_t *put_bytes(uint8_t *out, uint64_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = (uint8_t)(value >> 8 * i);
    return out + n;
}

/* Divides 1 << log states among n symbols by their counts; each gets one at least. */
static void share_states(const uint32_t *count, unsigned n, unsigned log, uint16_t *out_share)
{
    uint64_t sum = 0;
    uint32_t left = (1u << log) - n, most = 0;
    for (unsigned s = 0; s < n; s++)
        sum += count[s];
    for (unsigned s = 0; s < n; s++) {
        uint32_t more = sum > 0 ? (uint32_t)(count[s] * (uint64_t)((1u << log) - n) / sum) : 0;
        out_share[s] = (uint16_t)(1 + more);
        left -= more;
        most = count[s] > count[most] ? s : most;
    }
    out_share[most] = (uint16_t)(out_share[most] + left);
}

/* Description of the shares (RFC 8878, 4.1.1). A value below `small` is one bit shorter. */
static unsigned put_shares(const uint16_t *share, unsigned n, unsigned log, uint8_t *out)
{
    struct pb_bits_out bits = {.at = out};
    unsigned left = (1u << log) + 1, limit = 1u << log, width = log + 1;
    pb_bits_put(&bits, log - 5, 4);
    for (unsigned s = 0; s < n; s++) {
        unsigned small = 2 * limit - 1 - left, value = share[s] + 1u;
        left -= share[s];
        if (value >= limit)
            value += small;
        pb_bits_put(&bits, value, width - (value < small));
        for (; left < limit; limit >>= 1)
            width--;
    }
    return (unsigned)(bits.at + (bits.n > 0) - out);
}

static void make_states(struct pb_zstd_states *states, const uint32_t *count, unsigned n,
                        unsigned log)
{
    const unsigned size = 1u << log, step = (size >> 1) + (size >> 3) + 3;
    uint16_t share[PB_ZSTD_LENGTHS] = {0}, start[PB_ZSTD_LENGTHS], next[PB_ZSTD_LENGTHS];
    uint8_t symbol[1 << 9];
    unsigned sum = 0, at = 0;
    share_states(count, n, log, share);
    states->log = log;
    states->head_bytes = put_shares(share, n, log, states->head);
    for (unsigned s = 0; s < n; s++) {
        unsigned most = share[s] == 1 ? log : log - pb_log2_floor(share[s] - 1u);
        states->symbol[s].bits = (most << 16) - ((uint32_t)share[s] << most);
        states->symbol[s].from = (int32_t)sum - share[s];
        start[s] = next[s] = (uint16_t)sum;
        sum += share[s];
        for (unsigned i = 0; i < share[s]; i++, at = (at + step) & (size - 1))
            symbol[at] = (uint8_t)s;
    }
    for (unsigned i = 0; i < size; i++)
        states->next[next[symbol[i]]++] = (uint16_t)(size + i);
    /* The state with the most bits: decoders notice the end by them. */
    for (unsigned s = 0; s < n; s++)
        states->symbol[s].first = states->next[start[s]];
}

static inline void put_state(struct pb_bits_out *bits, const struct pb_zstd_states *states,
                             unsigned symbol, uint32_t *state)
{
    unsigned n = (*state + states->symbol[symbol].bits) >> 16;
    pb_bits_put(bits, *state & ((1u << n) - 1), n);
    *state = states->next[(int32_t)(*state >> n) + states->symbol[symbol].from];
}

static void put_last_state(struct pb_bits_out *bits, const struct pb_zstd_states *states,
                           uint32_t state)
{
    pb_bits_put(bits, state & ((1u << states->log) - 1), states->log);
}

/* Description of the Huffman code (RFC 8878, 4.2.1): a weight for all symbols but the last. Weights
 * of 255 symbols have at most 110 bytes: long codes, which leave room for many symbols, have few
 * lengths. */
static void put_weights(struct pb_zstd_planes *work, const uint8_t *bits_of, unsigned longest)
{
    enum { N = 255, LOG = 6 };
    uint32_t count[CODE_BITS + 1] = {0}, state[2] = {0, 0};
    unsigned most = 1;
    for (unsigned s = 0; s < N; s++) {
        unsigned weight = longest + 1 - bits_of[s];
        count[weight]++;
        most = weight > most ? weight : most;
    }
    make_states(&work->weight_states, count, most + 1, LOG);
    memcpy(work->head + 1, work->weight_states.head, work->weight_states.head_bytes);
    struct pb_bits_out bits = {.at = work->head + 1 + work->weight_states.head_bytes};
    for (unsigned s = N; s-- > 0;) { /* two states take turns */
        unsigned weight = longest + 1 - bits_of[s];
        if (s + 2 >= N)
            state[s & 1] = work->weight_states.symbol[weight].first;
        else
            put_state(&bits, &work->weight_states, weight, &state[s & 1]);
    }
    put_last_state(&bits, &work->weight_states, state[1]);
    put_last_state(&bits, &work->weight_states, state[0]);
    work->head_bytes = (unsigned)(end_of(&bits) - work->head);
    work->head[0] = (uint8_t)(work->head_bytes - 1);
}

static void make_codes(struct pb_zstd_planes *work, const uint32_t *count)
{
    uint32_t smooth[256], of_bits[CODE_BITS + 1] = {0}, next[CODE_BITS + 1], code = 0;
    uint8_t bits_of[256];
    unsigned longest = 0;
    for (unsigned s = 0; s < 256; s++)
        smooth[s] = 4 * count[s] + 1;
    pb_huffman_lengths(smooth, 256, CODE_BITS, bits_of);
    for (unsigned s = 0; s < 256; s++) {
        of_bits[bits_of[s]]++;
        longest = bits_of[s] > longest ? bits_of[s] : longest;
    }
    for (unsigned n = longest; n > 0; n--) { /* the longest codes are the smallest numbers */
        next[n] = code;
        code = (code + of_bits[n]) >> 1;
    }
    for (unsigned s = 0; s < 256; s++)
        work->code[s] = (uint64_t)next[bits_of[s]]++ << (64 - bits_of[s]) | bits_of[s];
    put_weights(work, bits_of, longest);
}

/* Codes of lengths (RFC 8878, 3.1.1.3.2.1.1): from `from` on, a code for each 1 << bits values;
 * from the last one on, a code for each power of two. */
struct step {
    uint32_t from;
    uint8_t code, bits;
};

static const struct step literal_steps[] = {{64, 25, 6}, {48, 24, 4}, {32, 22, 3},
                                            {24, 20, 2}, {16, 16, 1}, {0, 0, 0}};
static const struct step match_steps[] = {{128, 43, 7}, {96, 42, 5}, {64, 40, 4}, {48, 38, 3},
                                          {40, 36, 2},  {32, 32, 1}, {0, 0, 0}};

static inline unsigned code_of(const struct step *step, uint32_t value, unsigned *out_bits)
{
    if (value >= step->from) {
        *out_bits = pb_log2_floor(value);
        return step->code + *out_bits - step->bits;
    }
    while (value < step->from)
        step++;
    *out_bits = step->bits;
    return step->code + ((value - step->from) >> step->bits);
}

static inline unsigned literals_code(uint32_t literals, unsigned *out_bits)
{
    return code_of(literal_steps, literals, out_bits);
}

static inline unsigned match_code(uint32_t match, unsigned *out_bits)
{
    return code_of(match_steps, match - 3, out_bits);
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t pairs8 __attribute__((vector_size(16)));

/* True if one of the pairs of LOOK bytes from `in` on repeats the byte before it, as in each run of
 * three and more: such a pair equals the pair that begins a byte earlier. */
static inline bool has_run(const uint8_t *in)
{
    uint64_t any[2] = {0, 0}, found[2];
    for (int at = 0; at < LOOK; at += 16) {
        pairs8 pair, before;
        memcpy(&pair, in + at, 16);
        memcpy(&before, in + at - 1, 16);
        pairs8 equal = (pairs8)(pair == before);
        memcpy(found, &equal, 16);
        any[0] |= found[0];
        any[1] |= found[1];
    }
    return (any[0] | any[1]) != 0;
}

/* Bit i is set if byte i of 16 from `in` on equals the byte before it. */
static inline uint64_t equal_16(const uint8_t *in)
{
    static const bytes16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t sum = UINT64_C(0x0101010101010101); /* times it, the highest byte is the sum */
    bytes16 byte, before;
    uint64_t word[2];
    memcpy(&byte, in, 16);
    memcpy(&before, in - 1, 16);
    bytes16 bits = (bytes16)(byte == before) & bit;
    memcpy(word, &bits, 16);
    return word[0] * sum >> 56 | word[1] * sum >> 56 << 8;
}

/* The same of n <= LOOK bytes. */
static inline uint64_t equal_bytes(const uint8_t *in, size_t n)
{
    uint64_t equal = 0;
    if (n < 16) {
        for (size_t at = 0; at < n; at++)
            equal |= (uint64_t)(in[at] == (in - 1)[at]) << at;
        return equal;
    }
    for (size_t at = 0; at + 16 < n; at += 16)
        equal |= equal_16(in + at) << at;
    return equal | equal_16(in + n - 16) << (n - 16);
}

/* Keeps the first bit of each PB_ZSTD_RUN bits that are set; those after the highest are, too. */
static inline uint64_t runs_of(uint64_t equal)
{
    static_assert(PB_ZSTD_RUN == 6, "2 + 4 shifts");
    const uint64_t ones = ~UINT64_C(0);
    uint64_t two = equal & (equal >> 1 | ones << 63), four = two & (two >> 2 | ones << 62);
    return four & (two >> 4 | ones << 60);
}

/* Runs that are being searched in n bytes. */
struct search {
    struct pb_zstd_sequence *out;
    size_t from, begin; /* end of the last run; first byte of one that has not ended, or 0 */
};

static inline void end_run(struct search *search, size_t end)
{
    if (end - search->begin >= PB_ZSTD_RUN) {
        *search->out++ = (struct pb_zstd_sequence){(uint32_t)(search->begin - search->from),
                                                   (uint32_t)(end - search->begin), false};
        search->from = end;
    }
    search->begin = 0;
}

/* Searches n <= LOOK bytes; equal: their equal_bytes(). */
static inline void search_bytes(struct search *search, uint64_t equal, size_t at, size_t n)
{
    const uint64_t inside = ~UINT64_C(0) >> (LOOK - n);
    if (search->begin > 0) {
        if ((equal & inside) == inside)
            return;
        unsigned end = (unsigned)__builtin_ctzll(~equal);
        end_run(search, at + end);
        equal &= ~UINT64_C(0) << end;
    }
    for (uint64_t runs = runs_of(equal | ~inside) & inside; runs != 0;) {
        unsigned begin = (unsigned)__builtin_ctzll(runs);
        uint64_t after = ~(equal >> begin); /* bits from the first byte after the run on */
        unsigned length = after != 0 ? (unsigned)__builtin_ctzll(after) : LOOK;
        search->begin = at + begin;
        if (begin + length >= n)
            return;
        end_run(search, at + begin + length);
        runs &= ~UINT64_C(0) << (begin + length);
    }
}

/* Writes the runs of `in`, without the literals after the last one. Returns their count. A run does
 * not begin with the first byte; the first two bytes of a run may be literals if it begins at the
 * end of LOOK bytes. */
static uint32_t find_runs(const uint8_t *in, size_t n, struct pb_zstd_sequence *out)
{
    struct search search = {.out = out};
    for (size_t at = 1; at < n; at += LOOK) {
        const size_t left = n - at < LOOK ? n - at : LOOK;
        if (n <= LOOK || search.begin > 0 || has_run(in + at + left - LOOK))
            search_bytes(&search, equal_bytes(in + at, left), at, left);
    }
    if (search.begin > 0)
        end_run(&search, n);
    return (uint32_t)(search.out - out);
}

static void count_literals(uint32_t count[2][256], const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        count[0][in[i]]++;
        count[1][in[i + 1]]++;
    }
    if (i < n)
        count[0][in[i]]++;
}

/* Histograms of lengths. */
struct counts {
    uint32_t literals[PB_ZSTD_LENGTHS], matches[PB_ZSTD_LENGTHS];
};

/* Counts a part of a plane, at most PB_ZSTD_BLOCK bytes. */
static void count_part(struct pb_zstd_planes *work, unsigned plane, const uint8_t *in, size_t n,
                       struct counts *counts)
{
    uint32_t n_runs = find_runs(in, n, work->sequence);
    unsigned bits;
    for (uint32_t r = 0; r < n_runs; r++) {
        const struct pb_zstd_sequence *run = &work->sequence[r];
        count_literals(work->count[plane], in, run->literals);
        counts->literals[literals_code(run->literals, &bits)]++;
        counts->matches[match_code(run->match, &bits)]++;
        in += run->literals + run->match;
        n -= run->literals + run->match;
    }
    count_literals(work->count[plane], in, n);
}

static bool is_repeat(const uint8_t *row, size_t row_bytes)
{
    return row_bytes <= PB_ZSTD_BLOCK && memcmp(row, row - row_bytes, row_bytes) == 0;
}

/* Counts every ROW_STEPth row, except those that repeat the row before. Returns true if some do. */
static bool count_rows(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                       struct counts *counts)
{
    const size_t n = work->row_bytes / work->n_planes;
    bool repeats = false;
    for (size_t y = 0; y < n_rows; y += ROW_STEP, in += ROW_STEP * work->row_bytes) {
        if (y > 0 && is_repeat(in, work->row_bytes)) {
            repeats = true;
            continue;
        }
        for (unsigned p = 0; p < work->n_planes; p++)
            for (size_t x = 0; x < n; x += PB_ZSTD_BLOCK)
                count_part(work, p, in + p * n + x, n - x < PB_ZSTD_BLOCK ? n - x : PB_ZSTD_BLOCK,
                           counts);
    }
    return repeats;
}

/* Bits of the bytes that were counted, in codes of their own. */
static uint64_t coded_bits(const uint32_t *count)
{
    uint8_t bits_of[256];
    pb_huffman_lengths(count, 256, CODE_BITS, bits_of);
    return pb_huffman_size(count, bits_of, 256);
}

/* Adds up the histograms of a plane in the first one. Returns the count of literals. */
static uint64_t sum_counts(uint32_t count[2][256])
{
    uint64_t literals = 0;
    for (unsigned s = 0; s < 256; s++)
        literals += count[0][s] += count[1][s];
    return literals;
}

/* Selects the planes that get codes: of the planes in the order of their bits a literal, the first
 * ones, which save the most bits with one code. Returns a bit for each; out_count: their histogram.
 */
static unsigned choose_planes(struct pb_zstd_planes *work, uint32_t *out_count)
{
    const unsigned n_planes = work->n_planes;
    uint64_t literals[PB_ZSTD_PLANES], bits[PB_ZSTD_PLANES], n = 0, most = 0;
    unsigned order[PB_ZSTD_PLANES], tried = 0, chosen = 0;
    uint32_t sum[256] = {0};
    for (unsigned p = 0; p < n_planes; p++) {
        unsigned at = p;
        literals[p] = sum_counts(work->count[p]);
        bits[p] = literals[p] > 0 ? (coded_bits(work->count[p][0]) << 16) / literals[p] : 0;
        for (; at > 0 && bits[order[at - 1]] > bits[p]; at--)
            order[at] = order[at - 1];
        order[at] = p;
    }
    for (unsigned i = 0; i < n_planes; i++) {
        tried |= 1u << order[i];
        n += literals[order[i]];
        for (unsigned s = 0; s < 256; s++)
            sum[s] += work->count[order[i]][0][s];
        uint64_t coded = coded_bits(sum);
        if (8 * n > coded + most) {
            most = 8 * n - coded;
            chosen = tried;
            memcpy(out_count, sum, sizeof sum);
        }
    }
    return chosen;
}

bool pb_zstd_planes_fit(size_t bytes, size_t row_bytes, uint32_t n_planes)
{
    return n_planes > 0 && n_planes <= PB_ZSTD_PLANES && row_bytes % n_planes == 0 &&
           row_bytes / n_planes >= PB_ZSTD_PLANE_MIN && bytes <= UINT32_MAX;
}

size_t pb_zstd_planes_bound(size_t bytes)
{
    size_t blocks = bytes / PB_ZSTD_PLANE_MIN + bytes / PB_ZSTD_BLOCK + 8;
    size_t last = bytes < PB_ZSTD_BLOCK ? bytes : PB_ZSTD_BLOCK;
    /* A block in long codes is written before it is stored instead. */
    return bytes + 3 * blocks + last * (CODE_BITS - 8) / 8 + 1024;
}

void pb_zstd_planes_prepare(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                            size_t row_bytes, uint32_t n_planes)
{
    enum { LITERALS = 36 };
    struct counts counts = {.literals = {0}};
    const uint32_t offsets[PB_ZSTD_LENGTHS] = {0};
    uint32_t count[256] = {0};
    memset(work->count, 0, sizeof work->count);
    work->row_bytes = row_bytes;
    work->n_planes = n_planes;
    work->repeats = count_rows(work, in, n_rows, &counts);
    work->coded = choose_planes(work, count);
    make_codes(work, count);
    make_states(&work->literal_states, counts.literals, LITERALS, 9);
    make_states(&work->match_states, counts.matches, PB_ZSTD_LENGTHS, 9);
    /* The code of an offset is its logarithm. All states but one for each other code are for offset
     * 1. A single code is described by itself. */
    if (work->repeats)
        make_states(&work->offset_states, offsets, pb_log2_floor((uint32_t)row_bytes + 3) + 1, 8);
    else
        work->offset_states = (struct pb_zstd_states){.head_bytes = 1};
}

static uint8_t *put_block(struct pb_zstd_planes *work, uint8_t *out, unsigned type, size_t bytes)
{
    work->last_block = out;
    return put_bytes(out, type << 1 | bytes << 3, 3);
}

static uint8_t *put_raw_block(struct pb_zstd_planes *work, uint8_t *out, const uint8_t *in,
                              size_t n)
{
    out = put_block(work, out, BLOCK_RAW, n);
    memcpy(out, in, n);
    return out + n;
}

/* Literals without codes. */
static uint8_t *put_plain(uint8_t *out, const uint8_t *in, size_t n)
{
    out = n < 32 ? put_bytes(out, n << 3, 1)
                 : put_bytes(out, (n < 4096 ? 1u : 3u) << 2 | n << 4, n < 4096 ? 2 : 3);
    memcpy(out, in, n);
    return out + n;
}

/* A stream of codes, written from the last literal to the first. */
PB_CLONES_BITS static uint8_t *put_stream(uint8_t *out, const uint64_t *code, const uint8_t *in,
                                          size_t n)
{
    struct pb_bits_out bits = {.at = out};
    for (; n % 4 > 0; n--) {
        pb_bits_push_code(&bits, code[in[n - 1]]);
        pb_bits_empty(&bits);
    }
    for (; n > 0; n -= 4) {
        pb_bits_push_codes(&bits, code[in[n - 1]], code[in[n - 2]], code[in[n - 3]],
                           code[in[n - 4]]);
        pb_bits_empty(&bits);
    }
    return end_of(&bits);
}

/* Literals in codes. NULL: these are not shorter. The description of the codes does not count:
 * later blocks need it as well. */
static uint8_t *put_coded(struct pb_zstd_planes *work, uint8_t *out)
{
    const size_t n = work->n_literals, head = work->sent.codes ? 0 : work->head_bytes;
    const size_t most = n + head, part = (n + 3) / 4;
    const unsigned wider = most < 1024 ? 0 : most < 16384 ? 1 : 2, width = 10 + 4 * wider;
    const bool four = n >= STREAMS_MIN;
    uint8_t *codes = out + 3 + wider, *at = codes;
    memcpy(at, work->head, head);
    at += head;
    if (four) {
        uint8_t *sizes = at;
        at += 6;
        for (unsigned i = 0; i < 4; i++) {
            uint8_t *end =
                put_stream(at, work->code, work->literal + i * part, i < 3 ? part : n - 3 * part);
            if (i < 3)
                put_bytes(sizes + 2 * i, (uint64_t)(end - at), 2);
            at = end;
        }
    } else {
        at = put_stream(at, work->code, work->literal, n);
    }
    size_t bytes = (size_t)(at - codes);
    if (bytes >= most)
        return NULL;
    const uint64_t type = work->sent.codes ? 3 : 2, format = four ? 1 + wider : 0;
    put_bytes(out, type | format << 2 | (uint64_t)n << 4 | (uint64_t)bytes << (4 + width),
              3 + wider);
    work->sent.codes = true;
    return at;
}

/* Offset of a match as a frame stores it: 1 is the last distance, greater values are distances. */
static inline uint32_t offset_of(const struct pb_zstd_planes *work, bool is_repeat, bool was_repeat)
{
    return is_repeat ? (uint32_t)work->row_bytes + 3 : was_repeat ? 1 + 3 : 1;
}

static uint8_t *put_states(const struct pb_zstd_planes *work, uint8_t *out)
{
    memcpy(out, work->literal_states.head, work->literal_states.head_bytes);
    out += work->literal_states.head_bytes;
    memcpy(out, work->offset_states.head, work->offset_states.head_bytes);
    out += work->offset_states.head_bytes;
    memcpy(out, work->match_states.head, work->match_states.head_bytes);
    return out + work->match_states.head_bytes;
}

/* The sequences from the last to the first, and the states before the first. */
static uint8_t *put_codes(const struct pb_zstd_planes *work, uint8_t *out)
{
    const struct pb_zstd_states *literals = &work->literal_states, *matches = &work->match_states;
    const struct pb_zstd_states *offsets = &work->offset_states;
    uint32_t literal_state = 0, match_state = 0, offset_state = 0;
    struct pb_bits_out bits = {.at = out};
    for (uint32_t i = work->n_sequences; i-- > 0;) {
        const struct pb_zstd_sequence *own = &work->sequence[i];
        const bool was_repeat = i > 0 ? (own - 1)->is_repeat : work->sent.repeat;
        const uint32_t offset = offset_of(work, own->is_repeat, was_repeat);
        unsigned literal_bits, match_bits, offset_bits = pb_log2_floor(offset);
        unsigned literal = literals_code(own->literals, &literal_bits);
        unsigned match = match_code(own->match, &match_bits);
        if (i == work->n_sequences - 1) {
            literal_state = literals->symbol[literal].first;
            match_state = matches->symbol[match].first;
            offset_state = work->repeats ? offsets->symbol[offset_bits].first : 0;
        } else {
            if (work->repeats)
                put_state(&bits, offsets, offset_bits, &offset_state);
            put_state(&bits, matches, match, &match_state);
            put_state(&bits, literals, literal, &literal_state);
        }
        pb_bits_put(&bits, own->literals & ((1u << literal_bits) - 1), literal_bits);
        pb_bits_put(&bits, (own->match - 3) & ((1u << match_bits) - 1), match_bits);
        pb_bits_put(&bits, offset & ((1u << offset_bits) - 1), offset_bits);
    }
    put_last_state(&bits, matches, match_state);
    if (work->repeats)
        put_last_state(&bits, offsets, offset_state);
    put_last_state(&bits, literals, literal_state);
    return end_of(&bits);
}

static uint8_t *put_sequences(struct pb_zstd_planes *work, uint8_t *out)
{
    /* Modes of the codes of literals, offsets and matches, two bits each. */
    enum { SAME = 1, DESCRIBED = 2, BEFORE = 3 };
    const unsigned offsets = work->repeats ? DESCRIBED : SAME;
    const uint32_t n = work->n_sequences;
    out = n < 128 ? put_bytes(out, n, 1) : put_bytes(out, (n >> 8 | 128) | (n & 255) << 8, 2);
    if (n == 0)
        return out;
    if (work->sent.states) {
        *out++ = BEFORE << 6 | BEFORE << 4 | BEFORE << 2;
    } else {
        *out++ = (uint8_t)(DESCRIBED << 6 | offsets << 4 | DESCRIBED << 2);
        out = put_states(work, out);
    }
    out = put_codes(work, out);
    work->sent.states = true;
    work->sent.repeat = work->sequence[n - 1].is_repeat;
    return out;
}

/* Writes the block that was collected; plain: its literals get no codes. */
static uint8_t *put_collected(struct pb_zstd_planes *work, bool plain, uint8_t *out)
{
    const struct pb_zstd_sent before = work->sent;
    if (work->block_bytes == 0)
        return out;
    uint8_t *at = plain ? NULL : put_coded(work, out + 3);
    if (at == NULL)
        at = put_plain(out + 3, work->literal, work->n_literals);
    at = put_sequences(work, at);
    size_t bytes = (size_t)(at - out) - 3, described = 0;
    if (work->sent.codes && !before.codes)
        described += work->head_bytes;
    if (work->sent.states && !before.states)
        described += work->literal_states.head_bytes + work->offset_states.head_bytes +
                     work->match_states.head_bytes;
    /* A coded block is always smaller than its bytes (RFC 8878, 3.1.1.2), also the first one, which
     * describes the codes. */
    if (bytes < work->block_bytes) {
        put_block(work, out, BLOCK_CODED, bytes);
    } else {
        if (bytes - described < work->block_bytes)
            work->lost_bytes += work->block_bytes - (bytes - described);
        work->sent = before;
        at = put_raw_block(work, out, work->block, work->block_bytes);
    }
    work->block_bytes = work->n_literals = work->n_after = work->n_sequences = 0;
    return at;
}

static void extend_block(struct pb_zstd_planes *work, const uint8_t *in, size_t n)
{
    if (work->block_bytes == 0)
        work->block = in;
    work->block_bytes += n;
}

/* Adds bytes to the block, with their n_runs runs, which follow its sequences. */
static void collect(struct pb_zstd_planes *work, const uint8_t *in, size_t n, uint32_t n_runs)
{
    const uint8_t *end = in + n;
    extend_block(work, in, n);
    for (; n_runs > 0; n_runs--) {
        struct pb_zstd_sequence *run = &work->sequence[work->n_sequences++];
        memcpy(work->literal + work->n_literals, in, run->literals);
        work->n_literals += run->literals;
        in += run->literals + run->match;
        run->literals += work->n_after;
        work->n_after = 0;
    }
    memcpy(work->literal + work->n_literals, in, (size_t)(end - in));
    work->n_literals += (uint32_t)(end - in);
    work->n_after += (uint32_t)(end - in);
}

/* Adds a part of a row, at most PB_ZSTD_BLOCK bytes of coded or stored planes. */
static uint8_t *put_part(struct pb_zstd_planes *work, const uint8_t *in, size_t n, bool coded,
                         uint8_t *out)
{
    if (work->block_bytes + n > PB_ZSTD_BLOCK)
        out = put_collected(work, false, out);
    struct pb_zstd_sequence *run = work->sequence + work->n_sequences;
    uint32_t n_runs = find_runs(in, n, run);
    size_t literals = n;
    for (uint32_t r = 0; r < n_runs; r++)
        literals -= run[r].match;
    if (coded || literals <= n / FEW) {
        collect(work, in, n, n_runs);
        return out;
    }
    out = put_collected(work, false, out);
    if (n - literals <= 2 * n_runs + 12) /* less than the runs and the block cost */
        return put_raw_block(work, out, in, n);
    memmove(work->sequence, run, n_runs * sizeof *run);
    collect(work, in, n, n_runs);
    return put_collected(work, true, out);
}

/* Adds a row that equals the one before. */
static uint8_t *put_repeat(struct pb_zstd_planes *work, const uint8_t *in, uint8_t *out)
{
    if (work->block_bytes + work->row_bytes > PB_ZSTD_BLOCK)
        out = put_collected(work, false, out);
    extend_block(work, in, work->row_bytes);
    struct pb_zstd_sequence *end = &work->sequence[work->n_sequences];
    if (work->n_sequences > 0 && work->n_after == 0 && end[-1].is_repeat) {
        end[-1].match += (uint32_t)work->row_bytes;
        return out;
    }
    *end = (struct pb_zstd_sequence){work->n_after, (uint32_t)work->row_bytes, true};
    work->n_sequences++;
    work->n_after = 0;
    return out;
}

static uint8_t *put_row(struct pb_zstd_planes *work, const uint8_t *in, uint8_t *out)
{
    const size_t plane = work->row_bytes / work->n_planes;
    for (unsigned p = 0; p < work->n_planes;) { /* adjacent planes of a kind */
        const bool coded = work->coded >> p & 1;
        size_t left = 0;
        for (; p < work->n_planes && (work->coded >> p & 1) == coded; p++)
            left += plane;
        for (size_t n; left > 0; left -= n, in += n) {
            n = left < PB_ZSTD_BLOCK ? left : PB_ZSTD_BLOCK;
            out = put_part(work, in, n, coded, out);
        }
    }
    return out;
}

static uint8_t *put_rows(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                         uint8_t *out)
{
    work->block_bytes = work->n_literals = work->n_after = work->n_sequences = 0;
    for (size_t y = 0; y < n_rows; y++, in += work->row_bytes)
        out = work->repeats && y > 0 && is_repeat(in, work->row_bytes) ? put_repeat(work, in, out)
                                                                       : put_row(work, in, out);
    return put_collected(work, false, out);
}

size_t pb_zstd_planes_try(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                          uint8_t *out)
{
    work->sent = (struct pb_zstd_sent){.codes = true, .states = true};
    return (size_t)(put_rows(work, in, n_rows, out) - out);
}

size_t pb_zstd_planes_frame(struct pb_zstd_planes *work, const uint8_t *in, size_t n_rows,
                            uint8_t *out)
{
    enum { SIZE_IN_4_BYTES = 2 << 6, WINDOW = (17 - 10) << 3, LOST_SHARE = 256 };
    uint8_t *at = put_bytes(out, UINT32_C(0xfd2fb528), 4);
    at = put_bytes(at, SIZE_IN_4_BYTES | WINDOW << 8, 2);
    at = put_bytes(at, n_rows * work->row_bytes, 4);
    work->sent = (struct pb_zstd_sent){.codes = false};
    work->lost_bytes = 0;
    at = put_rows(work, in, n_rows, at);
    *work->last_block |= 1;
    const size_t bytes = (size_t)(at - out);
    return work->lost_bytes > bytes / LOST_SHARE ? 0 : bytes;
}
