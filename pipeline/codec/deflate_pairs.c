/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* After predictor 2 the upper byte of a sample of 16 bits follows from its lower one almost always.
 * Literals cannot express this, but matches of two samples can: they save 3 to 12 % of bands.
 * Nearly all of them are that short, and a pair of samples in two can begin one. A branch for each
 * position would be mispredicted every other time; therefore the work is split into passes that
 * have few:
 *
 * 1. Find: each word (two pairs) is looked up in a table by its hash, which has the last two words
 *    of that hash, and entered there. One bit a pair reports if one of the two is equal, one if the
 *    last is.
 * 2. Parse, greedily: the next bit that is set begins a match with the last equal word. A later,
 *    longer match is not waited for: with matches of two samples that leaves samples between
 *    matches, and files are larger. Nor is a match rejected because its distance is far: the code
 *    adapts to it.
 * 3. Count and write tokens, which have two symbols: literal and literal, or length and distance.
 *
 * Words that repeat the byte before them are runs; they have matches at distance 1 and are not
 * entered. Each chunk has its own code; a chunk that does not shrink is stored.
 *
 * Measured (512 px blocks after predictor 2, one core of an AMD Zen 5; size of runs = 100, MB/s;
 * level 1 is libdeflate's):
 *
 *                              runs        pairs       level 1     ISA-L 3
 *   band, uint16, blue         100 1290    94.4 295    94.4 160    95.1 305
 *   band, uint16, red          100 1290    95.9 300    95.5 147    96.2 347
 *   4 bands, uint16            100 1290    97.8 305    97.1 130    97.8 365
 *   4 bands, uint16, real      100 1400    92.8 330    92.1 155    93.3 413
 *   pansharpened, uint16 x 4   100 1290    87.5 294    87.5 158    88.7 347
 *   NDVI, int16, real          100 1460    93.9 332    94.4 206    95.0 437
 *   band, uint16, infrared     100 1310   100.0 342    99.7 132    99.9 415
 *
 * Rejected: a table of 2^14 entries (0.1 % smaller, 5 % slower), one word of a hash in place of two
 * (1.3 % larger), the longer match of the two (0.02 % smaller, 20 % slower), positions at odd bytes
 * (0.1 to 0.6 % smaller, half as fast). */
#include "pipeline/codec/deflate_pairs.h"
#include "pipeline/codec/deflate_block.h"
#include "pipeline/codec/huffman.h"

#include <string.h>

enum {
    GROUP = 32, /* pairs whose bits are in a word of `found` */
    WINDOW = PB_DEFLATE_PAIRS_WINDOW,
    WORD = PB_DEFLATE_PAIRS_WORD,
    LONG = PB_DEFLATE_PAIRS_LEFT, /* pairs that are compared at once; each position has them */
    LENGTH_MAX = PB_DEFLATE_PAIRS_LENGTH_MAX,
    NO_SYMBOL = PB_DEFLATE_PAIRS_SYMBOLS - 1,
    SKIP = PB_DEFLATE_PAIRS_SYMBOLS - 2, /* the first symbol if the extra has the pairs to skip */
    SYMBOL_BITS = 9,
    EXTRA_AT = 2 * SYMBOL_BITS,
    NOT_SKIPPED = 8 /* pairs of a match whose tokens are read although they have no bits */
};

struct chunk {
    const uint8_t *window; /* its first pair is at most WINDOW pairs before the chunk */
    uint32_t before;       /* pairs of the window before the chunk */
    uint32_t bytes;
};

static inline const uint8_t *pair_at(const struct chunk *chunk, uint32_t p)
{
    return chunk->window + 2 * (size_t)(chunk->before + p);
}

static inline uint32_t word_at(const uint8_t *in)
{
    uint32_t word;
    memcpy(&word, in, sizeof word);
    return word;
}

static inline uint64_t long_at(const uint8_t *in)
{
    uint64_t word;
    memcpy(&word, in, sizeof word);
    return word;
}

static inline bool is_run(const uint8_t *in)
{
    return word_at(in) == in[-1] * UINT32_C(0x01010101);
}

/* True if one of the words of GROUP pairs is a run: such a word equals the word that begins a byte
 * earlier. */
static inline bool has_run(const uint8_t *in)
{
    typedef uint32_t words __attribute__((vector_size(16)));
    words word, before;
    uint64_t any[2] = {0, 0}, found[2];
    for (int at = 0; at < 2 * GROUP; at += 16)
        for (int half = 0; half < 4; half += 2) {
            memcpy(&word, in + at + half, 16);
            memcpy(&before, in + at + half - 1, 16);
            words equal = (words)(word == before);
            memcpy(found, &equal, 16);
            any[0] |= found[0];
            any[1] |= found[1];
        }
    return (any[0] | any[1]) != 0;
}

/* Count of the whole pairs from p on that repeat the byte before p. */
static uint32_t run_of(const struct chunk *chunk, uint32_t p)
{
    const uint8_t *const before = pair_at(chunk, p) - 1;
    return (pb_deflate_run_end(before, 1, chunk->bytes - 2 * p + 1) - 1) / 2;
}

/* Looks up the word at p and enters it. Bit 0 of the result: the last word of the same hash is
 * equal; bit 32: the last but one is. */
static inline uint64_t look(struct pb_deflate_pairs *work, const uint8_t *window, uint32_t before,
                            uint32_t p)
{
    const uint32_t word = word_at(window + 2 * (size_t)(before + p));
    uint32_t *const entry = &work->last[pb_deflate_pairs_hash(word)];
    const uint32_t met = *entry;
    *entry = met << 16 | (before + p);
    work->met[p] = met;
    const uint64_t near = word_at(window + 2 * (size_t)(met & 0xffff)) == word;
    const uint64_t far = word_at(window + 2 * (size_t)(met >> 16)) == word;
    return near | far << 32;
}

static void mark(struct pb_deflate_pairs *work, uint32_t p, uint32_t n)
{
    for (; n > 0 && p % GROUP != 0; p++, n--)
        work->found[p / GROUP] |= UINT32_C(1) << p % GROUP;
    for (; n >= GROUP; p += GROUP, n -= GROUP)
        work->found[p / GROUP] = UINT32_MAX;
    for (; n > 0; p++, n--)
        work->found[p / GROUP] |= UINT32_C(1) << p % GROUP;
}

/* All positions from which LONG pairs are left. */
PB_CLONES_BITS static void find(struct pb_deflate_pairs *work, const struct chunk *chunk)
{
    const uint32_t n = chunk->bytes < 2 * LONG ? 0 : (chunk->bytes - 2 * LONG) / 2 + 1;
    const uint8_t *const window = chunk->window;
    const uint32_t before = chunk->before;
    uint32_t p = before == 0 ? 1 : 0; /* the block's first pair has nothing before it */
    memset(work->found, 0, sizeof work->found);
    memset(work->near, 0, sizeof work->near);
    while (p < n) {
        if (p % GROUP == 0 && p + GROUP <= n && !has_run(pair_at(chunk, p))) {
            uint64_t found = 0;
            for (uint32_t k = 0; k < GROUP; k++)
                found |= look(work, window, before, p + k) << k;
            work->near[p / GROUP] = (uint32_t)found;
            work->found[p / GROUP] = (uint32_t)(found | found >> 32);
            p += GROUP;
        } else if (is_run(pair_at(chunk, p))) {
            const uint32_t pairs = run_of(chunk, p);
            mark(work, p, pairs - 1); /* the last pair begins no word of the run */
            p += pairs - 1;
        } else {
            const uint64_t found = look(work, window, before, p) << p % GROUP;
            work->near[p / GROUP] |= (uint32_t)found;
            work->found[p / GROUP] |= (uint32_t)(found | found >> 32);
            p++;
        }
    }
}

static uint32_t extend(const uint8_t *in, const uint8_t *from, uint32_t n, uint32_t most)
{
    while (n < most && memcmp(in + 2 * (size_t)n, from + 2 * (size_t)n, 2) == 0)
        n++;
    return n;
}

/* The tokens of a match of `length` pairs, `back` bytes before p. */
static inline void put_match(struct pb_deflate_pairs *work, uint32_t p, uint32_t length,
                             uint32_t back)
{
    uint32_t bits, extra;
    const uint32_t distance = pb_deflate_distance_symbol(back, &bits, &extra);
    uint32_t *const token = work->token + p;
    token[0] = (256 + length) | (256 + distance) << SYMBOL_BITS | extra << EXTRA_AT;
    token[1] = NO_SYMBOL | (uint32_t)NO_SYMBOL << SYMBOL_BITS;
    if (length > NOT_SKIPPED)
        token[1] = SKIP | (length - 1) << EXTRA_AT;
    else
        for (uint32_t k = 2; k < length; k++)
            token[k] = token[1];
}

static uint32_t take_run(struct pb_deflate_pairs *work, const struct chunk *chunk, uint32_t p)
{
    const uint32_t pairs = run_of(chunk, p);
    for (uint32_t left = pairs; left > 0;) {
        const uint32_t part = pb_deflate_part_of(2 * left) / 2;
        put_match(work, p + pairs - left, part, 1);
        left -= part;
    }
    return pairs;
}

/* Returns the length, or 1 if the word is out of reach. */
static inline uint32_t take_match(struct pb_deflate_pairs *work, const struct chunk *chunk,
                                  uint32_t p)
{
    const uint8_t *const in = pair_at(chunk, p);
    const uint32_t is_near = work->near[p / GROUP] >> p % GROUP & 1;
    const uint32_t back = 2 * (chunk->before + p - (work->met[p] >> 16 * (1 - is_near) & 0xffff));
    const uint64_t difference = long_at(in) ^ long_at(in - back);
    if (back > 2 * WINDOW)
        return 1;
    if ((difference >> 32 & 0xffff) != 0) { /* nearly always */
        put_match(work, p, WORD, back);
        return WORD;
    }
    const uint32_t left = chunk->bytes / 2 - p;
    const uint32_t n = extend(in, in - back, WORD + 1, left < LENGTH_MAX ? left : LENGTH_MAX);
    put_match(work, p, n, back);
    return n;
}

PB_CLONES_BITS static void parse(struct pb_deflate_pairs *work, const struct chunk *chunk)
{
    const uint32_t groups = (chunk->bytes / 2 + GROUP - 1) / GROUP;
    for (uint32_t p = 0; p / GROUP < groups;) {
        const uint32_t found = work->found[p / GROUP] & UINT32_MAX << p % GROUP;
        if (found == 0) {
            p = p - p % GROUP + GROUP;
            continue;
        }
        p = p - p % GROUP + (uint32_t)__builtin_ctz(found);
        p += is_run(pair_at(chunk, p)) ? take_run(work, chunk, p) : take_match(work, chunk, p);
    }
}

/* All pairs as literals, before matches take some of them. */
static void start(struct pb_deflate_pairs *work, const struct chunk *chunk)
{
    const uint8_t *const in = pair_at(chunk, 0);
    for (uint32_t p = 0; p < chunk->bytes / 2; p++)
        work->token[p] = in[2 * p] | (uint32_t)in[2 * p + 1] << SYMBOL_BITS;
}

/* Counts the symbols, and closes the gaps between tokens. Returns their number. */
static uint32_t count(struct pb_deflate_pairs *work, uint32_t pairs)
{
    uint32_t n = 0;
    memset(work->firsts, 0, sizeof work->firsts);
    memset(work->seconds, 0, sizeof work->seconds);
    for (uint32_t p = 0; p < pairs; p++) {
        const uint32_t token = work->token[p], symbol = token & NO_SYMBOL;
        if (symbol == SKIP) {
            p += (token >> EXTRA_AT) - 1;
            continue;
        }
        work->firsts[p % PB_DEFLATE_PAIRS_TABLES][symbol]++;
        work->seconds[p % PB_DEFLATE_PAIRS_TABLES][token >> SYMBOL_BITS & NO_SYMBOL]++;
        work->token[n] = token;
        n += symbol != NO_SYMBOL;
    }
    for (unsigned s = 0; s < PB_DEFLATE_PAIRS_SYMBOLS; s++)
        for (unsigned k = 1; k < PB_DEFLATE_PAIRS_TABLES; k++) {
            work->firsts[0][s] += work->firsts[k][s];
            work->seconds[0][s] += work->seconds[k][s];
        }
    return n;
}

/* Makes the code for the counts. `odd`: a last byte that is in no pair, or NULL. Returns the bits
 * of the whole chunk. */
static uint64_t make_code(struct pb_deflate_pairs *work, const uint8_t *odd,
                          struct pb_deflate_table *table)
{
    const uint32_t *const firsts = work->firsts[0], *const seconds = work->seconds[0];
    uint16_t codes[PB_DEFLATE_LITLEN], distance_codes[PB_DEFLATE_DISTANCES];
    uint32_t litlen[PB_DEFLATE_LITLEN] = {0}, bits, extra;
    uint64_t size = 0;
    for (unsigned s = 0; s < 256; s++)
        litlen[s] = firsts[s] + seconds[s];
    for (uint32_t length = WORD; length <= LENGTH_MAX; length++)
        litlen[pb_deflate_length_symbol(2 * length, &bits, &extra)] += firsts[256 + length];
    litlen[PB_DEFLATE_END] = 1;
    if (odd != NULL)
        litlen[*odd]++;
    pb_huffman_lengths(litlen, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS, table->lengths);
    pb_huffman_codes(table->lengths, PB_DEFLATE_LITLEN, codes);
    pb_huffman_lengths(seconds + 256, PB_DEFLATE_DISTANCES, PB_DEFLATE_CODE_BITS, table->distances);
    pb_huffman_codes(table->distances, PB_DEFLATE_DISTANCES, distance_codes);
    table->n_distances = PB_DEFLATE_DISTANCES;
    while (table->n_distances > 1 && table->distances[table->n_distances - 1] == 0)
        table->n_distances--;
    if (table->n_distances == 1)
        table->distances[0] = 1; /* a table has one length at least */
    pb_deflate_list_lengths(table);
    for (unsigned s = 0; s <= 256; s++)
        work->first[s] = work->second[s] = codes[s] | (uint32_t)table->lengths[s] << 24;
    work->end = work->first[PB_DEFLATE_END];
    for (uint32_t length = WORD; length <= LENGTH_MAX; length++) {
        const uint32_t s = pb_deflate_length_symbol(2 * length, &bits, &extra);
        work->first[256 + length] =
            codes[s] | extra << table->lengths[s] | (table->lengths[s] + bits) << 24;
    }
    for (unsigned s = 0; s < PB_DEFLATE_DISTANCES; s++) {
        bits = pb_deflate_distance_bits(s);
        work->second[256 + s] =
            distance_codes[s] | bits << 16 | (uint32_t)table->distances[s] << 24;
        size += (uint64_t)seconds[256 + s] * (table->distances[s] + bits);
    }
    for (unsigned s = 0; s < PB_DEFLATE_LITLEN; s++)
        size += (uint64_t)litlen[s] * (table->lengths[s] + pb_deflate_length_bits(s));
    work->first[NO_SYMBOL] = work->second[NO_SYMBOL] = 0;
    return size + table->size;
}

/* At most 14 + 5 + 14 + 13 bits a token. */
PB_CLONES_BITS static void put_tokens(struct pb_bits_out *out, const struct pb_deflate_pairs *work,
                                      uint32_t n)
{
    struct pb_bits_out bits = *out;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t token = work->token[i], extra = token >> EXTRA_AT;
        const uint32_t first = work->first[token & NO_SYMBOL];
        const uint32_t second = work->second[token >> SYMBOL_BITS & NO_SYMBOL];
        const uint64_t later = (second & 0xffff) | (uint64_t)extra << (second >> 24);
        pb_bits_put(&bits, (first & 0xffffff) | later << (first >> 24),
                    (first >> 24) + (second >> 24) + (second >> 16 & 255));
    }
    *out = bits;
}

static void put_chunk(struct pb_deflate_pairs *work, struct pb_bits_out *bits,
                      const struct chunk *chunk, bool last)
{
    struct pb_deflate_table table;
    const uint32_t pairs = chunk->bytes / 2;
    const uint8_t *const odd = chunk->bytes % 2 != 0 ? pair_at(chunk, pairs) : NULL;
    start(work, chunk);
    find(work, chunk);
    parse(work, chunk);
    const uint32_t n = count(work, pairs);
    if (make_code(work, odd, &table) >= 8 * (uint64_t)chunk->bytes) {
        pb_deflate_put_stored(bits, pair_at(chunk, 0), chunk->bytes, last);
        return;
    }
    pb_deflate_put_table(bits, &table, last);
    put_tokens(bits, work, n);
    if (odd != NULL)
        pb_bits_put(bits, work->first[*odd] & 0xffff, work->first[*odd] >> 24);
    pb_bits_put(bits, work->end & 0xffff, work->end >> 24);
}

/* The window of the next chunk begins `pairs` later; positions before it become its first one. */
static void move_window(struct pb_deflate_pairs *work, uint32_t pairs)
{
    uint16_t half[2 << PB_DEFLATE_PAIRS_HASH_BITS];
    memcpy(half, work->last, sizeof half);
    for (unsigned i = 0; i < sizeof half / sizeof *half; i++)
        half[i] = (uint16_t)(half[i] > pairs ? half[i] - pairs : 0);
    memcpy(work->last, half, sizeof half);
}

size_t pb_deflate_pairs(struct pb_deflate_pairs *work, const uint8_t *in, size_t bytes,
                        uint8_t *out)
{
    struct pb_bits_out bits = {.at = out};
    struct chunk chunk = {.window = in};
    memset(work->last, 0, sizeof work->last);
    for (size_t done = 0; done < bytes; done += chunk.bytes) {
        const size_t left = bytes - done;
        chunk.bytes = left < PB_DEFLATE_RUNS_CHUNK ? (uint32_t)left : PB_DEFLATE_RUNS_CHUNK;
        if (done > 0) {
            const uint32_t moved = chunk.before + PB_DEFLATE_PAIRS - WINDOW;
            move_window(work, moved);
            chunk.window += 2 * (size_t)moved;
            chunk.before = WINDOW;
        }
        put_chunk(work, &bits, &chunk, done + chunk.bytes == bytes);
    }
    pb_bits_align(&bits);
    return (size_t)(bits.at - out);
}
