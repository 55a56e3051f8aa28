/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the decoder of two zlib streams in turn: it must judge any two inputs as libdeflate judges
 * them, give the same bytes, and touch nothing else. (Either may report another error of a stream
 * first.) The first bytes of an input are the place where it is cut in two, the sizes of the
 * outputs, and whether checksums are corrected, so that the code after them is reached, and whether
 * outputs pass through windows. */
#include "pipeline/codec/inflate_pair.h"
#include "tests/fuzz/fuzz_check.h"

#include <string.h>

#include <libdeflate.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HEAD = 4, OUT_MAX = 1 << 20 };

struct stream {
    uint8_t *in, *out; /* exact: the sanitizer sees a byte too much */
    uint8_t *window;   /* NULL: the output is not written through a window, of these bytes: */
    size_t window_bytes, row, at, taken; /* `taken` bytes are in `out`; the next one is at `at` */
    size_t in_bytes, most, wanted;
    enum libdeflate_result result;
};

static uint8_t expected[2][OUT_MAX];

/* Puts the header and the Adler-32 right where the stream decodes. */
static void mend(struct stream *s, struct libdeflate_decompressor *one, uint8_t *out)
{
    size_t used = 0, made = 0;
    if (s->in_bytes < 6)
        return;
    s->in[0] = 0x78, s->in[1] = 0x9c;
    if (libdeflate_deflate_decompress_ex(one, s->in + 2, s->in_bytes - 6, out, s->most, &used,
                                         &made) != LIBDEFLATE_SUCCESS)
        return;
    uint32_t sum = libdeflate_adler32(1, out, made);
    for (unsigned i = 0; i < 4; i++)
        s->in[2 + used + i] = (uint8_t)(sum >> (24 - 8 * i));
}

static void prepare(struct stream *s, const uint8_t *in, size_t in_bytes, size_t most, bool mended,
                    uint8_t *out)
{
    struct libdeflate_decompressor *one = libdeflate_alloc_decompressor();
    size_t used = 0;
    s->in_bytes = in_bytes;
    s->most = most;
    s->in = malloc(in_bytes + (in_bytes == 0));
    s->out = malloc(most + (most == 0));
    require(one != NULL && s->in != NULL && s->out != NULL, "memory");
    memcpy(s->in, in, in_bytes);
    memset(s->out, 0x5a, most);
    if (mended)
        mend(s, one, out);
    s->result = libdeflate_zlib_decompress_ex(one, s->in, in_bytes, out, most, &used, &s->wanted);
    libdeflate_free_decompressor(one);
}

/* Allocates a window for rows of that length. */
static void open_window(struct stream *s, size_t row)
{
    s->row = row;
    s->window_bytes = pb_inflate_window_bytes(row);
    if (s->window_bytes > s->most)
        s->window_bytes = s->most;
    s->window = malloc(s->window_bytes + (s->window_bytes == 0));
    require(s->window != NULL, "memory");
}

static void start(struct pb_inflate_pair *pair, unsigned lane, const struct stream *s)
{
    if (s->window == NULL)
        pb_inflate_pair_start(pair, lane, s->in, s->in_bytes, s->out, s->most);
    else
        pb_inflate_pair_start_window(pair, lane, s->in, s->in_bytes, s->window, s->window_bytes,
                                     s->most);
}

/* Copies whole rows of a full window, or what is left of a complete stream. */
static void empty_window(struct pb_inflate_pair *pair, unsigned lane, struct stream *s,
                         enum pb_inflate_end end, size_t *made)
{
    const bool paused = end == PB_INFLATE_PAUSED;
    const size_t n = paused ? (*made - s->at) / s->row * s->row : *made - s->at;
    require(!paused || n > 0, "a full window without a row");
    require(s->taken + n <= s->most, "too many bytes");
    memcpy(s->out + s->taken, s->window + s->at, n);
    s->at += n;
    s->taken += n;
    if (paused)
        s->at -= pb_inflate_pair_slide(pair, lane, s->at);
    *made = s->taken;
}

/* Decodes until a stream has ended. */
static unsigned next(struct pb_inflate_pair *pair, struct stream s[2], enum pb_inflate_end *end,
                     size_t *made)
{
    for (;;) {
        unsigned lane = pb_inflate_pair_next(pair, end, made);
        require(lane < 2, "no lane");
        if (s[lane].window != NULL && (*end == PB_INFLATE_PAUSED || *end == PB_INFLATE_COMPLETE))
            empty_window(pair, lane, &s[lane], *end, made);
        if (*end != PB_INFLATE_PAUSED)
            return lane;
    }
}

static void check(const struct stream *s, enum pb_inflate_end end, size_t made, const uint8_t *out)
{
    require((end == PB_INFLATE_COMPLETE) == (s->result == LIBDEFLATE_SUCCESS), "another verdict");
    if (end != PB_INFLATE_COMPLETE)
        return;
    require(made == s->wanted, "another length");
    require(made == 0 || memcmp(s->out, out, made) == 0, "other bytes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct pb_inflate_pair *pair; /* its state after an input must not matter */
    struct stream s[2] = {{0}};
    if (bytes < HEAD)
        return 0;
    if (pair == NULL)
        require(pb_inflate_pair_create(&pair) == 0, "memory");
    const uint8_t *in = data + HEAD;
    const size_t n = bytes - HEAD, first = n * data[0] / 255;
    const size_t most = (size_t)1 << (data[1] % 21);
    prepare(&s[0], in, first, most - data[2] % most, data[3] & 1, expected[0]);
    prepare(&s[1], in + first, n - first, most, data[3] & 2, expected[1]);
    for (unsigned lane = 0; lane < 2; lane++) {
        if (data[3] >> (2 + lane) & 1)
            open_window(&s[lane], 1 + (size_t)data[3] * data[2]);
        start(pair, lane, &s[lane]);
    }
    for (unsigned i = 0, seen = 0; i < 2; i++) {
        enum pb_inflate_end end = PB_INFLATE_DAMAGED;
        size_t made = 0;
        unsigned lane = next(pair, s, &end, &made);
        require((seen & 1u << lane) == 0, "a lane that has nothing");
        seen |= 1u << lane;
        check(&s[lane], end, made, expected[lane]);
    }
    for (unsigned lane = 0; lane < 2; lane++) {
        free(s[lane].in);
        free(s[lane].out);
        free(s[lane].window);
    }
    return 0;
}
