/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Headers of deflate blocks (RFC 1951) and the tables that decode them. The same blocks are
 * accepted as by libdeflate: complete codes, empty ones, and a single code of one bit, which then
 * has both values; symbols that RFC 1951 leaves out count as the last length or distance.
 *
 * A table is filled in the order of its codes, and doubled for each further bit (like in
 * libdeflate). Entries of several symbols are made from those of one: the entry after a literal of
 * n bits is at the index without these bits, which is lower and, from the end down, still has one
 * symbol.
 *
 * Encoders that alternate blocks of one code with stored blocks repeat the head with the table; the
 * tables are kept if a head equals theirs. */
#include "pipeline/codec/inflate_lane.h"

#include <string.h>

enum { CODE_MAX = 15, PRECODE_MAX = 7, LITERALS = 256, END_SYMBOL = 256 };
/* LARGE_BYTES: input size from which a large table is faster, and joined symbols are. ITEMS_FROM:
 * share of matches in the symbols, 1/5, from which decoding both kinds alike is faster than a
 * mispredicted branch. MATCHES_FROM: share of long matches, 1/2, from which the branch is predicted
 * well. */
enum {
    LARGE_BYTES = 8 << 10,
    ITEMS_FROM = (1 << CODE_MAX) / 5,
    MATCHES_FROM = (1 << CODE_MAX) / 2
};

enum alphabet { PRECODE, DISTANCES, LITERALS_ALONE, LITERALS_AND_MATCHES };

/* base << 15 | extra bits << 12 of the symbols from 257 on */
#define L(base, extra) ((uint32_t)(base) << 15 | (uint32_t)(extra) << 12)
static const uint32_t lengths[31] = {
    L(3, 0),   L(4, 0),   L(5, 0),   L(6, 0),   L(7, 0),   L(8, 0),   L(9, 0),  L(10, 0),
    L(11, 1),  L(13, 1),  L(15, 1),  L(17, 1),  L(19, 2),  L(23, 2),  L(27, 2), L(31, 2),
    L(35, 3),  L(43, 3),  L(51, 3),  L(59, 3),  L(67, 4),  L(83, 4),  L(99, 4), L(115, 4),
    L(131, 5), L(163, 5), L(195, 5), L(227, 5), L(258, 0), L(258, 0), L(258, 0)};

#define D(base, extra) ((uint32_t)(base) << 16 | (extra))
static const uint32_t distances[32] = {
    D(1, 0),      D(2, 0),      D(3, 0),      D(4, 0),     D(5, 1),     D(7, 1),     D(9, 2),
    D(13, 2),     D(17, 3),     D(25, 3),     D(33, 4),    D(49, 4),    D(65, 5),    D(97, 5),
    D(129, 6),    D(193, 6),    D(257, 7),    D(385, 7),   D(513, 8),   D(769, 8),   D(1025, 9),
    D(1537, 9),   D(2049, 10),  D(3073, 10),  D(4097, 11), D(6145, 11), D(8193, 12), D(12289, 12),
    D(16385, 13), D(24577, 13), D(24577, 13), D(24577, 13)};

static inline uint32_t entry_of(enum alphabet alphabet, unsigned symbol, unsigned n_bits)
{
    if (alphabet == PRECODE)
        return symbol << 16 | n_bits;
    if (alphabet == DISTANCES)
        return distances[symbol] + (n_bits << 8 | n_bits);
    if (symbol < LITERALS)
        return symbol << 8 | 1u << 6 | n_bits;
    if (symbol == END_SYMBOL)
        return (uint32_t)PB_INFLATE_END << 24 | n_bits << 8;
    if (alphabet == LITERALS_AND_MATCHES && symbol - 254 <= PB_INFLATE_SHORT)
        return PB_INFLATE_MATCH | (symbol - 254) << 24 | n_bits;
    return (uint32_t)PB_INFLATE_LENGTH << 24 | lengths[symbol - 257] | n_bits << 8;
}

static inline uint32_t subtable_entry(enum alphabet alphabet, unsigned start, unsigned main_bits,
                                      unsigned index_bits)
{
    if (alphabet == DISTANCES)
        return (start | 0x8000u) << 16 | PB_INFLATE_FAR | index_bits << 8;
    return (uint32_t)PB_INFLATE_SUBTABLE << 24 | (start - (1u << main_bits)) << 12 |
           index_bits << 8;
}

/* Lengths of a code's symbols, counted and sorted. */
struct sorted {
    unsigned count[CODE_MAX + 1];
    const uint16_t *symbol; /* symbols that occur, in the order of their codes */
    unsigned max;           /* bits of the longest code */
    uint32_t space;         /* used code space, out of 1 << max */
};

static struct sorted sort(const uint8_t *lens, unsigned n, unsigned max, uint16_t *symbols)
{
    struct sorted s = {.max = max};
    unsigned at[CODE_MAX + 2];
    for (unsigned i = 0; i < n; i++)
        s.count[lens[i]]++;
    while (s.max > 1 && s.count[s.max] == 0)
        s.max--;
    at[0] = 0;
    for (unsigned bits = 0; bits <= s.max; bits++) {
        at[bits + 1] = at[bits] + s.count[bits];
        if (bits > 0)
            s.space = (s.space << 1) + s.count[bits];
    }
    for (unsigned i = 0; i < n; i++)
        symbols[at[lens[i]]++] = (uint16_t)i;
    s.symbol = symbols + s.count[0];
    return s;
}

/* Code after this one: deflate has the first bit lowest. */
static inline unsigned next_code(unsigned code, unsigned n_bits)
{
    unsigned bit = 1u << (31 - __builtin_clz(code ^ ((1u << n_bits) - 1)));
    return (code & (bit - 1)) | bit;
}

static void twice(uint32_t *table, unsigned n_bits)
{
    memcpy(table + ((size_t)1 << n_bits), table, sizeof *table << n_bits);
}

/* Fills in the codes that are longer than table_bits, from `code` on, which has n_bits. */
static inline void fill_subtables(uint32_t *table, unsigned table_bits, struct sorted *s,
                                  unsigned code, unsigned n_bits, enum alphabet alphabet)
{
    const unsigned mask = (1u << table_bits) - 1;
    unsigned prefix = ~0u, start = 0, end = 1u << table_bits;
    for (;;) {
        while (s->count[n_bits] == 0)
            n_bits++;
        if ((code & mask) != prefix) {
            unsigned bits = n_bits - table_bits, space = s->count[n_bits];
            while (space < 1u << bits)
                space = (space << 1) + s->count[table_bits + ++bits];
            prefix = code & mask;
            start = end;
            end += 1u << bits;
            table[prefix] = subtable_entry(alphabet, start, table_bits, bits);
        }
        uint32_t entry = entry_of(alphabet, *s->symbol++, n_bits);
        for (unsigned i = start + (code >> table_bits); i < end; i += 1u << (n_bits - table_bits))
            table[i] = entry;
        if (code == (1u << n_bits) - 1)
            return;
        code = next_code(code, n_bits);
        s->count[n_bits]--;
    }
}

static inline __attribute__((always_inline)) bool build(uint32_t *table, unsigned table_bits,
                                                        struct sorted s, enum alphabet alphabet)
{
    if (s.space > 1u << s.max)
        return false;
    if (s.space < 1u << s.max) {
        if (s.space != 0 && (s.space != 1u << (s.max - 1) || s.count[1] != 1))
            return false;
        uint32_t entry = entry_of(alphabet, s.space == 0 ? 0 : *s.symbol, 1);
        for (unsigned i = 0; i < 1u << table_bits; i++)
            table[i] = entry;
        return true;
    }
    unsigned code = 0;
    for (unsigned n_bits = 1; n_bits <= table_bits; n_bits++) {
        if (n_bits > 1)
            twice(table, n_bits - 1);
        for (unsigned i = s.count[n_bits]; i > 0; i--) {
            table[code] = entry_of(alphabet, *s.symbol++, n_bits);
            if (code == (1u << n_bits) - 1) { /* the last code */
                for (; n_bits < table_bits; n_bits++)
                    twice(table, n_bits);
                return true;
            }
            code = next_code(code, n_bits);
        }
    }
    fill_subtables(table, table_bits, &s, code, table_bits + 1, alphabet);
    return true;
}

/* Joins the entry of a literal with the next symbol if that fits as well. */
static void join(uint32_t *table, unsigned table_bits)
{
    for (unsigned i = 1u << table_bits; i-- > 0;) {
        uint32_t one = table[i], next = table[i >> (one & 15)];
        uint32_t both = one + (next & 0xff0000ff) + ((next & 0xff00) << 8);
        uint32_t fits = ~((table_bits - (both & 63)) >> 31);
        uint32_t joined = one >> 6 & ((next & 63) + 63) >> 6 & fits & 1;
        table[i] = one ^ ((one ^ both) & (0 - joined));
    }
}

/* Chooses the loop by the shares of the symbols, which follow from the lengths of their codes. */
static enum pb_inflate_loop loop_of(const struct pb_inflate_lane *l, unsigned n_codes)
{
    uint32_t matches = 0, longer = 0; /* out of 1 << CODE_MAX */
    for (unsigned i = END_SYMBOL + 1; i < n_codes; i++) {
        uint32_t share = l->lens[i] > 0 ? 1u << (CODE_MAX - l->lens[i]) : 0;
        matches += share;
        longer += i - 254 > PB_INFLATE_SHORT ? share : 0;
    }
    return longer > MATCHES_FROM  ? PB_INFLATE_MATCHES
           : matches > ITEMS_FROM ? PB_INFLATE_ITEMS
                                  : PB_INFLATE_LITERALS;
}

static enum pb_inflate_state build_codes(struct pb_inflate_lane *l, unsigned n_codes,
                                         unsigned n_distances)
{
    l->head = NULL; /* it pointed into the tables that are overwritten now */
    struct sorted s = sort(l->lens + n_codes, n_distances, CODE_MAX, l->sorted);
    if (!build(l->distances, PB_INFLATE_DISTANCE_BITS, s, DISTANCES))
        return PB_INFLATE_BAD;
    bool large = l->in_end - l->in > LARGE_BYTES;
    l->loop = loop_of(l, n_codes);
    const bool items = l->loop == PB_INFLATE_ITEMS;
    l->table_bits = large && items ? PB_INFLATE_CODE_BITS : PB_INFLATE_SMALL_BITS;
    l->mask = ((uint64_t)1 << l->table_bits) - 1;
    s = sort(l->lens, n_codes, CODE_MAX, l->sorted);
    if (items ? !build(l->codes, l->table_bits, s, LITERALS_AND_MATCHES)
              : !build(l->codes, l->table_bits, s, LITERALS_ALONE))
        return PB_INFLATE_BAD;
    if (large)
        join(l->codes, l->table_bits);
    return PB_INFLATE_CODES;
}

/* --- headers --------------------------------------------------------------------------------- */

bool pb_inflate_refill(struct pb_inflate_lane *l)
{
    while (l->left < 56) {
        if (l->in != l->in_end)
            l->bits |= (uint64_t)*l->in++ << l->left;
        else if (++l->over > sizeof l->bits)
            return false;
        l->left += 8;
    }
    return true;
}

static unsigned take(struct pb_inflate_lane *l, unsigned n)
{
    unsigned value = (unsigned)l->bits & ((1u << n) - 1);
    l->bits >>= n;
    l->left -= n;
    return value;
}

static enum pb_inflate_state stored(struct pb_inflate_lane *l)
{
    if (l->over > l->left >> 3)
        return PB_INFLATE_BAD;
    l->in -= (l->left >> 3) - l->over; /* returns the bytes that were read ahead */
    l->over = l->left = 0;
    l->bits = 0;
    if (l->in_end - l->in < 4)
        return PB_INFLATE_BAD;
    size_t bytes = l->in[0] | (size_t)l->in[1] << 8, check = l->in[2] | (size_t)l->in[3] << 8;
    l->in += 4;
    if (bytes != (check ^ 0xffff))
        return PB_INFLATE_BAD;
    if (bytes > (size_t)(l->out_end - l->out))
        return PB_INFLATE_TOO_LONG;
    if (bytes > (size_t)(l->in_end - l->in))
        return PB_INFLATE_BAD;
    memcpy(l->out, l->in, bytes);
    l->in += bytes;
    l->out += bytes;
    return l->is_last ? PB_INFLATE_DONE : PB_INFLATE_HEADER;
}

static enum pb_inflate_state fixed(struct pb_inflate_lane *l)
{
    memset(l->lens, 8, 144);
    memset(l->lens + 144, 9, 112);
    memset(l->lens + 256, 7, 24);
    memset(l->lens + 280, 8, 8);
    memset(l->lens + 288, 5, 32);
    return build_codes(l, 288, 32);
}

/* Reads n code lengths. A last run may be longer than the rest. */
static bool take_lens(struct pb_inflate_lane *l, const uint32_t *precode, unsigned n)
{
    for (unsigned i = 0, run; i < n; i += run) {
        if (l->left < 2 * PRECODE_MAX && !pb_inflate_refill(l))
            return false;
        uint32_t entry = precode[l->bits & ((1 << PRECODE_MAX) - 1)];
        uint8_t len = (uint8_t)(entry >> 16);
        (void)take(l, entry & 15);
        run = 1;
        if (len == 16 && i == 0)
            return false;
        if (len >= 16) {
            run = len == 16 ? 3 + take(l, 2) : len == 17 ? 3 + take(l, 3) : 11 + take(l, 7);
            len = len == 16 ? l->lens[i - 1] : 0;
        }
        memset(l->lens + i, len, run);
    }
    return true;
}

/* Byte of the input that has the next bit; *out_skip: count of bits before it in this byte. */
static const uint8_t *next_bit(const struct pb_inflate_lane *l, uint32_t *out_skip)
{
    *out_skip = (0 - l->left) & 7;
    return l->in - (l->left + 7) / 8;
}

/* Skips the head of a block if it equals that of the tables; the bit that marks the last block may
 * differ. */
static bool skip_equal_head(struct pb_inflate_lane *l)
{
    uint32_t skip;
    const uint8_t *at = next_bit(l, &skip);
    const uint32_t end = skip + l->head_bits, bytes = end / 8, rest = end % 8;
    if (l->head == NULL || l->over > 0 || skip != l->head_skip ||
        (size_t)(l->in_end - at) <= bytes || (at[0] ^ l->head[0]) >> (skip + 1) != 0 ||
        ((at[bytes] ^ l->head[bytes]) & ((1 << rest) - 1)) != 0 ||
        memcmp(at + 1, l->head + 1, bytes - 1) != 0)
        return false;
    l->is_last = (at[0] >> skip & 1) != 0;
    l->bits = (uint64_t)at[bytes] >> rest;
    l->left = 8 - rest;
    l->in = at + bytes + 1;
    return true;
}

static enum pb_inflate_state dynamic(struct pb_inflate_lane *l)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    const unsigned n_codes = 257 + take(l, 5), n_distances = 1 + take(l, 5), n = 4 + take(l, 4);
    uint8_t lens[19] = {0};
    uint32_t precode[1 << PRECODE_MAX];
    for (unsigned i = 0; i < n; i++) {
        if (!pb_inflate_refill(l))
            return PB_INFLATE_BAD;
        lens[order[i]] = (uint8_t)take(l, 3);
    }
    if (!build(precode, PRECODE_MAX, sort(lens, 19, PRECODE_MAX, l->sorted), PRECODE) ||
        !take_lens(l, precode, n_codes + n_distances))
        return PB_INFLATE_BAD;
    return build_codes(l, n_codes, n_distances);
}

/* Remembers the head that begins `skip` bits after the beginning of byte `at`. */
static void keep_head(struct pb_inflate_lane *l, const uint8_t *at, uint32_t skip)
{
    uint32_t end_skip;
    const uint8_t *end = next_bit(l, &end_skip);
    l->head = at;
    l->head_skip = skip;
    l->head_bits = (uint32_t)(end - at) * 8 + end_skip - skip;
}

enum pb_inflate_state pb_inflate_header(struct pb_inflate_lane *l)
{
    uint32_t skip;
    if (!pb_inflate_refill(l))
        return PB_INFLATE_BAD;
    if (skip_equal_head(l))
        return PB_INFLATE_CODES;
    const uint8_t *at = next_bit(l, &skip);
    l->is_last = take(l, 1) != 0;
    unsigned type = take(l, 2);
    if (type != 2)
        return type == 0 ? stored(l) : type == 1 ? fixed(l) : PB_INFLATE_BAD;
    enum pb_inflate_state state = dynamic(l);
    if (state == PB_INFLATE_CODES && l->over == 0)
        keep_head(l, at, skip);
    return state;
}
