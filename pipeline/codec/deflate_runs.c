/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Each chunk is read three times, in cache: find runs (four bytes at a time, so runs of 7 and more
 * are always found), count symbols, write codes. Codes have at most 14 bits, so that four of them
 * and seven remaining bits fit into 64 bits and the buffer is emptied once every four literals. A
 * chunk that does not shrink is stored. */
#include "pipeline/codec/deflate_runs.h"
#include "kernels/pixel.h"
#include "pipeline/codec/deflate_block.h"
#include "pipeline/codec/huffman.h"

#include <string.h>

#define LOOK 64 /* bytes that are tested together */

size_t pb_deflate_runs_bound(size_t bytes)
{
    return bytes + (bytes / PB_DEFLATE_RUNS_CHUNK + 1) * 6 + 16;
}

/* Offset of the first of the LOOK / 4 words at `in` that repeats the byte before it, or LOOK:
 * such a word equals the word that begins a byte earlier. */
static inline uint32_t run_within(const uint8_t *in)
{
    typedef uint32_t words __attribute__((vector_size(16)));
    words word, before;
    uint64_t any = 0, found[LOOK / 8];
    for (int at = 0; at < LOOK; at += 16) {
        memcpy(&word, in + at, 16);
        memcpy(&before, in + at - 1, 16);
        words equal = (words)(word == before);
        memcpy(&found[at / 8], &equal, 16);
        any |= found[at / 8] | found[at / 8 + 1];
    }
    if (any == 0)
        return LOOK;
    uint32_t k = 0;
    while (found[k] == 0)
        k++;
    return 8 * k + ((uint32_t)found[k] != 0 ? 0 : 4);
}

/* First position i, i + 4, i + 8 .. whose word repeats the byte before it, or at least n - 3. */
static inline uint32_t run_start(const uint8_t *in, uint32_t i, uint32_t n)
{
    for (; i + LOOK <= n; i += LOOK) {
        const uint32_t at = run_within(in + i);
        if (at < LOOK)
            return i + at;
    }
    for (; i + 4 <= n; i += 4) {
        uint32_t word;
        memcpy(&word, in + i, 4);
        if (word == in[i - 1] * UINT32_C(0x01010101))
            break;
    }
    return i;
}

void pb_deflate_find_runs(struct pb_deflate_runs *work, const uint8_t *in, uint32_t n)
{
    work->n_runs = 0;
    for (uint32_t i = run_start(in, 1, n), end; i + 4 <= n; i = run_start(in, end + 1, n)) {
        end = pb_deflate_run_end(in, i + 4, n);
        work->run[work->n_runs].at = i;
        work->run[work->n_runs++].bytes = end - i;
    }
}

static void count_literals(struct pb_deflate_runs *work, const uint8_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, in + i, 8);
        for (unsigned k = 0; k < 8; k++)
            work->count[k][word >> 8 * k & 255]++;
    }
    for (; i < n; i++)
        work->count[0][in[i]]++;
}

void pb_deflate_clear_counts(struct pb_deflate_runs *work)
{
    memset(work->count, 0, sizeof work->count);
}

uint64_t pb_deflate_add_counts(struct pb_deflate_runs *work, const uint8_t *in, uint32_t n)
{
    uint64_t more = 0;
    uint32_t from = 0;
    for (uint32_t r = 0; r < work->n_runs; r++) {
        count_literals(work, in + from, work->run[r].at - from);
        for (uint32_t left = work->run[r].bytes; left > 0;) {
            uint32_t part = pb_deflate_part_of(left), extra_bits, extra;
            work->count[0][pb_deflate_length_symbol(part, &extra_bits, &extra)]++;
            more += extra_bits + 1;
            left -= part;
        }
        from = work->run[r].at + work->run[r].bytes;
    }
    count_literals(work, in + from, n - from);
    return more;
}

void pb_deflate_sum_counts(struct pb_deflate_runs *work)
{
    for (unsigned s = 0; s < PB_DEFLATE_LITLEN; s++)
        for (unsigned k = 1; k < PB_DEFLATE_RUNS_TABLES; k++)
            work->count[0][s] += work->count[k][s];
}

static const uint8_t order[PB_DEFLATE_LENGTHS] = PB_DEFLATE_LENGTHS_ORDER;

/* A repeat code refers to the length before it: here always the same length. */
static void add_repeats(struct pb_deflate_table *table, uint8_t length, unsigned n)
{
    table->symbol[table->n] = length;
    table->extra[table->n++] = 0;
    for (n--; n > 0;) {
        uint32_t symbol, extra;
        n -= pb_deflate_repeat(length, n, &symbol, &extra);
        table->symbol[table->n] = (uint8_t)symbol;
        table->extra[table->n++] = (uint8_t)extra;
    }
}

void pb_deflate_list_lengths(struct pb_deflate_table *table)
{
    uint32_t count[PB_DEFLATE_LENGTHS] = {0};
    uint8_t all[PB_DEFLATE_LITLEN + PB_DEFLATE_DISTANCES];
    table->n = 0;
    table->n_litlen = PB_DEFLATE_LITLEN;
    while (table->n_litlen > 257 && table->lengths[table->n_litlen - 1] == 0)
        table->n_litlen--;
    memcpy(all, table->lengths, table->n_litlen);
    memcpy(all + table->n_litlen, table->distances, table->n_distances);
    const unsigned n = table->n_litlen + table->n_distances;
    for (unsigned i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && all[end] == all[i]; end++)
            ;
        add_repeats(table, all[i], end - i);
    }
    for (unsigned i = 0; i < table->n; i++)
        count[table->symbol[i]]++;
    pb_huffman_lengths(count, PB_DEFLATE_LENGTHS, PB_DEFLATE_LENGTHS_BITS, table->bits);
    pb_huffman_codes(table->bits, PB_DEFLATE_LENGTHS, table->code);
    table->n_order = PB_DEFLATE_LENGTHS;
    while (table->n_order > 4 && table->bits[order[table->n_order - 1]] == 0)
        table->n_order--;
    table->size = 3 + 5 + 5 + 4 + 3 * table->n_order;
    for (unsigned i = 0; i < table->n; i++)
        table->size += table->bits[table->symbol[i]] + pb_deflate_repeat_bits(table->symbol[i]);
}

void pb_deflate_make_code(struct pb_deflate_runs *work, const uint32_t *count,
                          struct pb_deflate_table *out_table)
{
    uint16_t codes[PB_DEFLATE_LITLEN];
    uint8_t *lengths = out_table->lengths;
    pb_huffman_lengths(count, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS, lengths);
    pb_huffman_codes(lengths, PB_DEFLATE_LITLEN, codes);
    out_table->n_distances = 1;
    out_table->distances[0] = 1;
    pb_deflate_list_lengths(out_table);
    for (unsigned s = 0; s < PB_DEFLATE_LITLEN; s++)
        work->code[s] = lengths[s] > 0 ? (uint64_t)codes[s] << (64 - lengths[s]) | lengths[s] : 0;
}

void pb_deflate_put_table(struct pb_bits_out *bits, const struct pb_deflate_table *table, bool last)
{
    pb_bits_put(bits, (unsigned)last | 2u << 1, 3);
    pb_bits_put(bits, table->n_litlen - 257, 5);
    pb_bits_put(bits, table->n_distances - 1, 5);
    pb_bits_put(bits, table->n_order - 4, 4);
    for (unsigned i = 0; i < table->n_order; i++)
        pb_bits_put(bits, table->bits[order[i]], 3);
    for (unsigned i = 0; i < table->n; i++) {
        unsigned symbol = table->symbol[i];
        pb_bits_put(bits, table->code[symbol], table->bits[symbol]);
        pb_bits_put(bits, table->extra[i], pb_deflate_repeat_bits(symbol));
    }
}

static inline void put_literals(struct pb_bits_out *bits, const uint64_t *code, const uint8_t *in,
                                size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        pb_bits_push_codes(bits, code[in[i]], code[in[i + 1]], code[in[i + 2]], code[in[i + 3]]);
        pb_bits_empty(bits);
    }
    for (; i < n; i++)
        pb_bits_push_code(bits, code[in[i]]);
    pb_bits_empty(bits);
}

PB_CLONES_BITS static void put_symbols(struct pb_bits_out *out, const struct pb_deflate_runs *work,
                                       const uint8_t *in, uint32_t n)
{
    struct pb_bits_out bits = *out;
    uint32_t from = 0;
    for (uint32_t r = 0; r < work->n_runs; r++) {
        put_literals(&bits, work->code, in + from, work->run[r].at - from);
        for (uint32_t left = work->run[r].bytes; left > 0;) {
            uint32_t part = pb_deflate_part_of(left), extra_bits, extra;
            pb_bits_push_code(&bits,
                              work->code[pb_deflate_length_symbol(part, &extra_bits, &extra)]);
            pb_bits_push(&bits, extra, extra_bits);
            pb_bits_put(&bits, 0, 1); /* the distance */
            left -= part;
        }
        from = work->run[r].at + work->run[r].bytes;
    }
    put_literals(&bits, work->code, in + from, n - from);
    *out = bits;
}

void pb_deflate_put_symbols(struct pb_bits_out *bits, const struct pb_deflate_runs *work,
                            const uint8_t *in, uint32_t n)
{
    put_symbols(bits, work, in, n);
}

void pb_deflate_put_end(struct pb_bits_out *bits, const struct pb_deflate_runs *work)
{
    pb_bits_push_code(bits, work->code[PB_DEFLATE_END]);
    pb_bits_empty(bits);
}

void pb_deflate_put_stored(struct pb_bits_out *bits, const uint8_t *in, uint32_t n, bool last)
{
    pb_bits_put(bits, (unsigned)last, 3);
    if (bits->n > 0)
        pb_bits_put(bits, 0, 8 - bits->n);
    pb_bits_put(bits, n | (uint64_t)(~n & 0xffff) << 16, 32);
    memcpy(bits->at, in, n);
    bits->at += n;
}

static void put_chunk(struct pb_deflate_runs *work, struct pb_bits_out *bits, const uint8_t *in,
                      uint32_t n, bool last)
{
    struct pb_deflate_table table;
    pb_deflate_find_runs(work, in, n);
    pb_deflate_clear_counts(work);
    uint64_t size = pb_deflate_add_counts(work, in, n);
    pb_deflate_sum_counts(work);
    work->count[0][PB_DEFLATE_END]++;
    pb_deflate_make_code(work, work->count[0], &table);
    size += table.size + pb_huffman_size(work->count[0], table.lengths, PB_DEFLATE_LITLEN);
    if (size >= 8 * (uint64_t)n) {
        pb_deflate_put_stored(bits, in, n, last);
        return;
    }
    pb_deflate_put_table(bits, &table, last);
    pb_deflate_put_symbols(bits, work, in, n);
    pb_deflate_put_end(bits, work);
}

void pb_deflate_runs_start(struct pb_deflate_runs *work)
{
    work->held = 0;
    work->n_held = 0;
}

size_t pb_deflate_runs_part(struct pb_deflate_runs *work, const uint8_t *in, size_t bytes,
                            bool last, uint8_t *out)
{
    struct pb_bits_out bits = {.at = out, .held = work->held, .n = work->n_held};
    for (size_t done = 0; done < bytes;) {
        size_t left = bytes - done;
        uint32_t n = left < PB_DEFLATE_RUNS_CHUNK ? (uint32_t)left : PB_DEFLATE_RUNS_CHUNK;
        put_chunk(work, &bits, in + done, n, last && done + n == bytes);
        done += n;
    }
    if (last)
        pb_bits_align(&bits);
    work->held = bits.held;
    work->n_held = bits.n;
    return (size_t)(bits.at - out);
}

size_t pb_deflate_runs(struct pb_deflate_runs *work, const uint8_t *in, size_t bytes, uint8_t *out)
{
    pb_deflate_runs_start(work);
    return pb_deflate_runs_part(work, in, bytes, true, out);
}
