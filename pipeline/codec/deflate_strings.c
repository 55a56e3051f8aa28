/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A window is contiguous, because strings repeat up to 32 KiB back: short samples of pixels would
 * lack the lines above them. Its words of two pairs of bytes are entered into a table by their
 * hash; the first of equal ones stays. Then segments of it, of 64 bytes each, are coded like the
 * encoder of pairs would: literals at the entropy of all segments, runs at almost no cost, matches
 * with the words before them in the table.
 *
 * Sizes are added up over the windows; strings must save MIN_PERCENT of them. The window has less
 * before it than the encoder has, and the table lacks words whose hash another one has: too little
 * is found. The encoder takes matches that cost more than their literals as well, to some extent
 * at no loss, because its code adapts to them; more loss is accepted from MORE_PERCENT on. If a
 * byte costs less than two bits and there are few values, the segments are too short for a
 * decision: maps have long strings. Classes of noise have few: their samples of one byte cost at
 * least 5/4 bits, and libdeflate makes them 2 to 10 % larger than runs do, in ten times the time.
 * A device leaves them to the host as well, because it does not distinguish samples.
 *
 * Measured (512 px blocks after predictor 2; per cent that the encoder of pairs saves, and this
 * estimate): synthetic bands of uint16 5.6, 4.2 and 0.0 (4.7, 4.0, 1.2), four of them chunky 2.2
 * (3.8), a real band 0.2 to 1.4 (1.4 to 2.3), four chunky 5 to 9 (5 to 7.5), pansharpened 9 to 13
 * (7 to 10), indices of int16 1.0 (2.3), real ones 4.5 to 9 (3.3 to 4.0). RGB of bytes: -18 to 0
 * (0.5 to 3.6, which loses 3 times as much). Level 1, shaded relief in bytes: 22 (5 to 13, which
 * loses up to 5.5 times as much). Level 6, few values: SAR amplitudes 31, heights of a plain 6.
 * Blocks of floats are not tested: after predictor 3 strings save 0 to 4 % of most, at a
 * third of the speed. */
#include "pipeline/codec/deflate_strings.h"

#include <string.h>

static void enter_words(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n)
{
    memset(work->first, 0xff, sizeof work->first);
    for (uint32_t i = pb_strings_words(n);
         i-- > 0;) { /* backwards: the first of equal ones remains */
        uint32_t word = pb_strings_word(in + (size_t)PB_STRINGS_PAIR * i);
        work->first[pb_strings_hash(word)] = (uint16_t)i;
    }
}

static void cost_literals(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n)
{
    uint32_t total = 1;
    memset(work->count, 0, sizeof work->count);
    for (uint32_t at = PB_STRINGS_SEGMENT_EVERY; pb_strings_has_segment(at, n);
         at += PB_STRINGS_SEGMENT_EVERY, total += PB_STRINGS_SEGMENT)
        for (uint32_t i = at; i < at + PB_STRINGS_SEGMENT; i++)
            work->count[i % 4][in[i]]++;
    for (unsigned s = 0; s < 256; s++)
        work->cost[s] = pb_strings_literal_cost(
            work->count[0][s] + work->count[1][s] + work->count[2][s] + work->count[3][s], total);
}

static void look(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n,
                 struct pb_strings_sizes *sizes)
{
    const struct pb_strings_coder coder = {in, work->first, work->cost};
    enter_words(work, in, n);
    cost_literals(work, in, n);
    for (uint32_t at = PB_STRINGS_SEGMENT_EVERY; pb_strings_has_segment(at, n);
         at += PB_STRINGS_SEGMENT_EVERY)
        pb_strings_code_segment(&coder, at, sizes);
}

enum { NOISE_QUARTERS = 5 }; /* least cost of a byte of noise, in quarters of a bit */

static struct pb_strings_sizes sizes_of(struct pb_deflate_strings *work, const uint8_t *in,
                                        size_t bytes)
{
    struct pb_strings_sizes sizes = {0};
    uint32_t n, windows = pb_strings_windows(bytes, &n);
    for (uint32_t i = 0; i < windows; i++)
        look(work, in + pb_strings_window_at(bytes, n, i, windows), n, &sizes);
    return sizes;
}

enum pb_strings pb_deflate_strings(struct pb_deflate_strings *work, const uint8_t *in, size_t bytes)
{
    const struct pb_strings_sizes sizes = sizes_of(work, in, bytes);
    return pb_strings_verdict(&sizes);
}

enum pb_strings pb_deflate_strings_of_bytes(struct pb_deflate_strings *work, const uint8_t *in,
                                            size_t bytes)
{
    const struct pb_strings_sizes sizes = sizes_of(work, in, bytes);
    const enum pb_strings strings = pb_strings_verdict(&sizes);
    const bool noise = sizes.bytes > 0 &&
                       4 * sizes.all >= NOISE_QUARTERS * PB_STRINGS_BIT * sizes.bytes &&
                       !pb_strings_save(&sizes, PB_STRINGS_MIN_PERCENT, PB_STRINGS_LOST_HALVES);
    return strings == PB_STRINGS_MANY && noise ? PB_STRINGS_NONE : strings;
}
