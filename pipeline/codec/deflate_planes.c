/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The table is written once. A block of deflate with codes begins at a whole byte, because a stored
 * block precedes it; therefore its head is a copy. The code is made of every eighth row, by ranges
 * of literals (pb_planes_smooth): a table takes 45 to 50 bytes in place of 60 to 90. The selection
 * of planes or runs estimates both sizes from these rows; on scenes of all kinds no block was
 * larger than that of runs.
 *
 * Not done, because it gains less than 1 % (2 % of twenty bands): a code for each upper plane.
 * Not done, because its blocks are not smaller than those of runs: runs between stored parts of the
 * lower planes, for blocks at an edge or under clouds. */
#include "pipeline/codec/deflate_planes.h"

#include "pipeline/codec/deflate_block.h"
#include "pipeline/codec/huffman.h"

#include <string.h>

static bool is_flat(const uint8_t *in, uint32_t n)
{
    uint32_t others = 0;
    uint64_t word, before;
    memcpy(&before, in, 8);
    for (uint32_t at = 8; at < n && pb_planes_is_flat(others, n); at += 8, before = word) {
        memcpy(&word, in + at, 8);
        others += !pb_planes_repeats(word, before);
    }
    return pb_planes_is_flat(others, n);
}

static uint64_t add_counts(struct pb_deflate_runs *work, const uint8_t *in, uint32_t n)
{
    pb_deflate_find_runs(work, in, n);
    return pb_deflate_add_counts(work, in, n);
}

/* Counts the symbols of the counted rows that are coded, or of their lower planes that are stored.
 * Returns their extra bits. */
static uint64_t count_rows(struct pb_deflate_runs *work, const uint8_t *in, uint32_t row_bytes,
                           size_t rows, bool coded, uint64_t *out_stored)
{
    const uint32_t half = row_bytes / 2, every = pb_planes_every(row_bytes, (uint32_t)rows);
    uint64_t more = 0, stored = 0;
    pb_deflate_clear_counts(work);
    for (size_t y = 0; y < rows; y += every) {
        const uint8_t *row = in + y * row_bytes;
        const bool flat = is_flat(row + half, half);
        stored += !flat;
        if (coded)
            more += add_counts(work, row, half);
        if (coded == flat)
            more += add_counts(work, row + half, half);
    }
    pb_deflate_sum_counts(work);
    *out_stored = stored;
    return more;
}

bool pb_deflate_planes_plan(struct pb_deflate_planes *planes, struct pb_deflate_runs *work,
                            const uint8_t *in, uint32_t row_bytes, size_t rows)
{
    uint32_t coded[PB_DEFLATE_LITLEN], count[PB_DEFLATE_LITLEN];
    uint8_t lengths[PB_DEFLATE_LITLEN];
    struct pb_deflate_table table;
    const uint32_t every = pb_planes_every(row_bytes, (uint32_t)rows);
    struct pb_planes_sizes sizes = {.rows = (rows + every - 1) / every, .row_bytes = row_bytes};
    sizes.coded_bits = count_rows(work, in, row_bytes, rows, true, &sizes.stored);
    memcpy(coded, work->count[0], sizeof coded);
    sizes.runs_bits =
        sizes.coded_bits + count_rows(work, in, row_bytes, rows, false, &sizes.stored);
    for (unsigned s = 0; s < PB_DEFLATE_LITLEN; s++)
        count[s] = coded[s] + work->count[0][s];
    pb_huffman_lengths(count, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS, lengths);
    sizes.runs_bits += pb_huffman_size(count, lengths, PB_DEFLATE_LITLEN);
    coded[PB_DEFLATE_END] = (uint32_t)sizes.stored;
    for (unsigned s = 0; s < PB_DEFLATE_LITLEN; s++)
        count[s] = pb_planes_smooth(coded, s);
    pb_deflate_make_code(work, count, &table);
    memcpy(planes->code, work->code, sizeof planes->code);
    sizes.head_bits = table.size;
    sizes.coded_bits += pb_huffman_size(coded, table.lengths, PB_DEFLATE_LITLEN);
    struct pb_bits_out bits = {.at = planes->head};
    pb_deflate_put_table(&bits, &table, false);
    planes->head_bits = (unsigned)table.size;
    return pb_planes_pay(&sizes);
}

static void put_range(struct pb_bits_out *bits, struct pb_deflate_runs *work, const uint8_t *in,
                      uint32_t n)
{
    pb_deflate_find_runs(work, in, n);
    pb_deflate_put_symbols(bits, work, in, n);
}

size_t pb_deflate_planes(const struct pb_deflate_planes *planes, struct pb_deflate_runs *work,
                         const uint8_t *in, uint32_t row_bytes, size_t rows, uint8_t *out)
{
    const uint64_t limit = pb_planes_limit(row_bytes, rows);
    const uint32_t half = row_bytes / 2, head_bytes = planes->head_bits / 8;
    struct pb_bits_out bits = {.at = out};
    bool open = false; /* a block with codes */
    /* The encoder of runs may have made another code since the plan. */
    memcpy(work->code, planes->code, sizeof planes->code);
    for (size_t y = 0; y < rows; y++, in += row_bytes) {
        if (!open) {
            memcpy(bits.at, planes->head, head_bytes);
            bits.at += head_bytes;
            bits.held = planes->head[head_bytes];
            bits.n = planes->head_bits % 8;
        }
        open = is_flat(in + half, half);
        put_range(&bits, work, in, half);
        if (open) {
            put_range(&bits, work, in + half, half);
        } else {
            pb_deflate_put_end(&bits, work);
            pb_deflate_put_stored(&bits, in + half, half, y + 1 == rows);
        }
        if ((uint64_t)(bits.at - out) > limit)
            return 0;
    }
    if (open) { /* and an empty block of fixed codes, which is the last */
        pb_deflate_put_end(&bits, work);
        pb_bits_put(&bits, 1 | 1 << 1, 3 + 7);
    }
    pb_bits_align(&bits);
    return (uint64_t)(bits.at - out) > limit ? 0 : (size_t)(bits.at - out);
}
