/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A window is contiguous, because strings repeat up to 32 KiB back: short samples of pixels would
 * lack the lines above them. Its words of four bytes at multiples of four are entered into
 * a table by their hash; the first of equal ones stays. Then segments of it, of 64 bytes each, are
 * coded like an encoder would: literals at the entropy of all segments, runs at almost no cost,
 * matches with the words before them in the table.
 *
 * Sizes are added up over the windows; strings must save MIN_PERCENT of them. If a byte costs
 * less than two bits and there are few values, the segments are too short for a decision: maps have
 * long strings. The estimate is low, because matches of four to six bytes are mostly not found.
 *
 * Measured (512 px blocks after predictor 2; savings of libdeflate, and this estimate). Level 1:
 * bands of Sentinel-2 1.7 % (0.0 to 0.1), two of them chunky 5 (0.1), twenty chunky indices of
 * int16 1.1 (0.2), RGB of bytes -3.5 (0.0); without a predictor: the indices 47 (22), heights 44
 * (21), RGB 25 (14). Level 6, few values: SAR amplitudes 19, heights of a plain 7; the edge of a
 * band, noise next to nodata, has many values: -2 to 0, at a fifth of the speed. Blocks of floats
 * are not tested: after predictor 3 strings save 0 to 4 % of most, at a sixth of the speed. */
#include "pipeline/codec/deflate_strings.h"

#include <string.h>

static void enter_words(struct pb_deflate_strings *work, const uint8_t *in, uint32_t n)
{
    memset(work->first, 0xff, sizeof work->first);
    for (uint32_t i = n / PB_STRINGS_WORD;
         i-- > 0;) { /* backwards: the first of equal ones remains */
        uint32_t word = pb_strings_word(in + (size_t)PB_STRINGS_WORD * i);
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

enum pb_strings pb_deflate_strings(struct pb_deflate_strings *work, const uint8_t *in, size_t bytes)
{
    struct pb_strings_sizes sizes = {0};
    uint32_t n, windows = pb_strings_windows(bytes, &n);
    for (uint32_t i = 0; i < windows; i++)
        look(work, in + pb_strings_window_at(bytes, n, i, windows), n, &sizes);
    return pb_strings_verdict(&sizes);
}
