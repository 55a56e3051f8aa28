/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Two zlib streams decoded in turn give what libdeflate gives, of whatever lengths and kinds they
 * are, and are refused where libdeflate refuses them. */
#include "pipeline/codec/decode.h"
#include "pipeline/codec/inflate_pair.h"

#include "run_suite.h"
#include "tests/tools/mutate.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>

enum { LARGEST = 150000, GUARD = 64, KINDS = 8 };

struct stream {
    uint8_t in[LARGEST + 1000], out[LARGEST + GUARD], expected[LARGEST];
    size_t in_bytes, most, wanted;
    enum libdeflate_result result;
};

static struct stream stream[2];
static struct pb_inflate_pair *pair;
static struct libdeflate_decompressor *one;

static void setup(void)
{
    ck_assert_int_eq(pb_inflate_pair_create(&pair), 0);
    ck_assert_ptr_nonnull(one = libdeflate_alloc_decompressor());
}

static void teardown(void)
{
    pb_inflate_pair_destroy(pair);
    libdeflate_free_decompressor(one);
}

/* Typical content of scenes: noise around zero, runs, short and long periods, all values. */
static void make(struct mutate *m, size_t kind, uint8_t *out, size_t bytes)
{
    const size_t period = 1 + mutate_below(m, kind == 5 ? 8 : 300);
    for (size_t i = 0; i < bytes; i++) {
        uint64_t r = mutate_next(m);
        int low = (int)(r % 61) - 30;
        out[i] = kind == 0   ? (uint8_t)(i % 2 ? (low < 0 ? 255 : 0) : low)
                 : kind == 1 ? (uint8_t)r
                 : kind == 2 ? 0
                 : kind == 3 ? (uint8_t)((r & 15) == 0 ? r >> 8 : 0)
                 : kind == 4 ? (uint8_t)(__builtin_ctzll(r | 256) * 9)
                 : kind <= 6 ? (uint8_t)(i < period       ? r
                                         : (r & 255) == 0 ? r >> 9
                                                          : out[i - period])
                             : (uint8_t)(i / 700 % 2 ? r : 7);
    }
}

/* kind: as above */
static void compress_kind(struct stream *s, struct mutate *m, size_t kind, size_t bytes)
{
    static const int levels[] = {0, 1, 6, 6, 6, 6, 9};
    static const int strategies[] = {0, 0, 0, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE, 0};
    static uint8_t plain[LARGEST];
    z_stream z = {0};
    size_t way = mutate_below(m, sizeof levels / sizeof levels[0]);
    make(m, kind, plain, bytes);
    ck_assert_int_eq(deflateInit2(&z, levels[way], Z_DEFLATED, 15, 8, strategies[way]), Z_OK);
    z.next_in = plain, z.avail_in = (uInt)bytes;
    z.next_out = s->in, z.avail_out = sizeof s->in;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    s->in_bytes = sizeof s->in - z.avail_out;
    s->most = bytes;
    (void)deflateEnd(&z);
}

static void compress_into(struct stream *s, struct mutate *m, size_t bytes)
{
    compress_kind(s, m, mutate_below(m, KINDS), bytes);
}

static void start(unsigned lane)
{
    struct stream *s = &stream[lane];
    size_t used;
    s->result = libdeflate_zlib_decompress_ex(one, s->in, s->in_bytes, s->expected, s->most, &used,
                                              &s->wanted);
    memset(s->out, 0x5a, s->most + GUARD);
    pb_inflate_pair_start(pair, lane, s->in, s->in_bytes, s->out, s->most);
}

/* Returns the lane that ended. */
static unsigned next(void)
{
    enum pb_inflate_end end = PB_INFLATE_DAMAGED;
    size_t made = 0;
    unsigned lane = pb_inflate_pair_next(pair, &end, &made);
    const struct stream *s = &stream[lane];
    ck_assert_int_eq(end == PB_INFLATE_COMPLETE, s->result == LIBDEFLATE_SUCCESS);
    for (size_t i = 0; i < GUARD; i++)
        ck_assert_uint_eq(s->out[s->most + i], 0x5a);
    if (end == PB_INFLATE_COMPLETE) {
        ck_assert_uint_eq(made, s->wanted);
        ck_assert(made == 0 || memcmp(s->out, s->expected, made) == 0);
    }
    return lane;
}

/* Blocks of `bytes` bytes whose heads begin at whole bytes; two of three have equal bytes in
 * another order, therefore equal heads. */
static void compress_alike(struct stream *s, struct mutate *m, size_t bytes, int blocks)
{
    static uint8_t plain[LARGEST];
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 15, 8, Z_HUFFMAN_ONLY), Z_OK);
    z.next_out = s->in, z.avail_out = sizeof s->in;
    for (int b = 0; b < blocks; b++) {
        for (size_t i = 0; i < bytes; i++)
            plain[i] =
                (uint8_t)(b % 3 == 1 ? mutate_below(m, 50) : (i * 7 + (size_t)b) % bytes % 90);
        z.next_in = plain, z.avail_in = (uInt)bytes;
        ck_assert_int_eq(deflate(&z, b + 1 == blocks ? Z_FINISH : Z_SYNC_FLUSH),
                         b + 1 == blocks ? Z_STREAM_END : Z_OK);
    }
    s->in_bytes = sizeof s->in - z.avail_out;
    s->most = bytes * (size_t)blocks;
    (void)deflateEnd(&z);
}

/* Every bit of the first blocks is damaged once, in heads and between them. */
START_TEST(test_equal_heads_decode_like_others)
{
    struct mutate m = {.state = 3};
    compress_alike(&stream[0], &m, 3000, 40);
    start(0);
    compress_alike(&stream[1], &m, 200, 9);
    start(1);
    ck_assert_uint_ne(next(), next());
    for (size_t bit = 16; bit < 8 * stream[1].in_bytes; bit++) {
        stream[1].in[bit / 8] ^= (uint8_t)(1 << bit % 8);
        start(1);
        ck_assert_uint_eq(next(), 1);
        stream[1].in[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (; stream[1].in_bytes > 0; stream[1].in_bytes--) {
        start(1);
        ck_assert_uint_eq(next(), 1);
    }
}
END_TEST

START_TEST(streams_of_any_kind_and_length_decode_in_parallel)
{
    struct mutate m = {.state = 11};
    compress_into(&stream[0], &m, 1000);
    start(0);
    for (int i = 0; i < 120; i++) { /* one lane is always in the middle of a stream */
        unsigned free_lane = i == 0 ? 1 : next();
        compress_into(&stream[free_lane], &m,
                      mutate_below(&m, i % 4 == 0   ? LARGEST
                                       : i % 4 == 1 ? 20
                                                    : 9000));
        start(free_lane);
    }
    ck_assert_uint_ne(next(), next());
}
END_TEST

START_TEST(damaged_streams_get_the_verdict_of_libdeflate)
{
    struct mutate m = {.state = 5};
    unsigned good = 0;
    for (int i = 0; i < 1500; i++) {
        for (unsigned lane = 0; lane < 2; lane++) {
            struct stream *s = &stream[lane];
            compress_into(s, &m, mutate_below(&m, i % 50 == 0 ? 40000 : 700));
            for (size_t n = mutate_below(&m, 4); n > 0; n--)
                mutate_once(&m, s->in + 2, s->in_bytes - 2);
            if (mutate_below(&m, 8) == 0)
                s->in_bytes = mutate_below(&m, s->in_bytes + 1);
            if (mutate_below(&m, 8) == 0)
                s->most = mutate_below(&m, s->most + 1);
            start(lane);
            good += s->result == LIBDEFLATE_SUCCESS;
        }
        ck_assert_uint_ne(next(), next());
    }
    ck_assert_uint_gt(good, 300);
    ck_assert_uint_lt(good, 2500);
}
END_TEST

/* One stream by itself; every second one while another is in a lane. */
START_TEST(test_single_stream_gets_libdeflates_verdict)
{
    const struct pb_decode *d = &pb_decode_deflate;
    static uint8_t other[LARGEST];
    struct mutate m = {.state = 17};
    const char *why = NULL;
    void *context = NULL;
    unsigned lane = 0, good = 0;
    ck_assert_int_eq(d->create(&context), 0);
    for (int i = 0; i < 400; i++) {
        struct stream *s = &stream[0];
        size_t used = 0;
        compress_into(s, &m, mutate_below(&m, i % 3 == 0 ? LARGEST : 9000));
        if (mutate_below(&m, 2) == 0)
            mutate_once(&m, s->in + 2, s->in_bytes - 2);
        s->result = libdeflate_zlib_decompress_ex(one, s->in, s->in_bytes, s->expected, s->most,
                                                  &used, &s->wanted);
        good += s->result == LIBDEFLATE_SUCCESS;
        if (i % 2 == 0) {
            compress_into(&stream[1], &m, 20000);
            d->start(context, i % 4 == 0, stream[1].in, stream[1].in_bytes, other, 20000, 20000);
        }
        int rc = d->run(context, s->in, s->in_bytes, s->out, s->wanted, s->most, &why);
        ck_assert_int_eq(rc == 0, s->result == LIBDEFLATE_SUCCESS);
        ck_assert(rc < 0 || s->wanted == 0 || memcmp(s->out, s->expected, s->wanted) == 0);
        ck_assert(i % 2 != 0 || d->next(context, &lane, &why) == 0);
        ck_assert(i % 2 != 0 || lane == (i % 4 == 0));
    }
    ck_assert_uint_gt(good, 100);
    ck_assert_uint_lt(good, 300);
    d->destroy(context);
}
END_TEST

/* The least of each, as bytes: a stored block, then what is wrong with it. */
START_TEST(what_is_wrong_is_found)
{
    static const struct {
        const char *what;
        uint8_t in[12];
        size_t bytes;
        enum pb_inflate_end end;
    } cases[] = {
        {"nothing wrong", {0x78, 1, 1, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0, 0x62}, 12, 0},
        {"the Adler-32", {0x78, 1, 1, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0, 0x63}, 12, 2},
        {"cut short", {0x78, 1, 1, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0}, 11, 2},
        {"the stored length", {0x78, 1, 1, 1, 0, 0xff, 0xff, 'a', 0, 0x62, 0, 0x62}, 12, 2},
        {"longer", {0x78, 1, 1, 5, 0, 0xfa, 0xff, 'a', 'b', 'c', 'd', 'e'}, 12, 1},
        {"a dictionary", {0x78, 0x20, 1, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0, 0x62}, 12, 2},
        {"the third type", {0x78, 1, 7, 1, 0, 0xfe, 0xff, 'a', 0, 0x62, 0, 0x62}, 12, 2},
        {"a distance before the start", {0x78, 1, 0x03, 0x02, 0, 0, 0, 0, 0, 0, 0, 0}, 12, 2},
        {"no stream", {0x78}, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *in = malloc(cases[i].bytes), out[4];
        enum pb_inflate_end end;
        size_t made = 0;
        memcpy(in, cases[i].in, cases[i].bytes);
        pb_inflate_pair_start(pair, i % 2, in, cases[i].bytes, out, sizeof out);
        ck_assert_uint_eq(pb_inflate_pair_next(pair, &end, &made), i % 2);
        ck_assert_msg(end == cases[i].end, "%s: %d", cases[i].what, (int)end);
        free(in);
    }
}
END_TEST

START_TEST(dropped_stream_does_not_delay_the_other)
{
    struct mutate m = {.state = 3};
    compress_kind(&stream[0], &m, 0, 90000);
    compress_into(&stream[1], &m, 50);
    start(0);
    start(1);
    ck_assert_uint_eq(next(), 1); /* the first is in the middle */
    compress_into(&stream[1], &m, 5000);
    start(1);
    pb_inflate_pair_stop(pair, 0);
    ck_assert_uint_eq(next(), 1);
    compress_into(&stream[0], &m, 70000);
    start(0);
    compress_into(&stream[0], &m, 300);
    start(0); /* in place of it */
    ck_assert_uint_eq(next(), 0);
}
END_TEST

/* --- through windows -------------------------------------------------------------------------- */

enum { LONG = 900000, SEGMENT = 60000 };

/* A stream whose output is taken in rows. */
struct windowed {
    uint8_t in[LONG + 10000], expected[LONG];
    uint8_t *window; /* memory of exactly the needed size */
    size_t in_bytes, wanted, row, at, taken;
    enum libdeflate_result result;
    bool has_ended;
};

/* Segments of all kinds; most of the matches reach beyond the window's beginning if it is slid too
 * far. */
static void compress_long(struct windowed *w, struct mutate *m, size_t bytes)
{
    static const int strategies[] = {0, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
    static uint8_t plain[LONG];
    z_stream z = {0};
    const int level = (int)mutate_below(m, 10);
    for (size_t at = 0; at < bytes; at += SEGMENT)
        make(m, mutate_below(m, KINDS), plain + at, bytes - at < SEGMENT ? bytes - at : SEGMENT);
    ck_assert_int_eq(deflateInit2(&z, level, Z_DEFLATED, 15, 8, strategies[mutate_below(m, 4)]),
                     Z_OK);
    z.next_in = plain, z.avail_in = (uInt)bytes;
    z.next_out = w->in, z.avail_out = sizeof w->in;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    w->in_bytes = sizeof w->in - z.avail_out;
    (void)deflateEnd(&z);
}

static void start_windowed(struct windowed *w, unsigned lane, size_t row, size_t most)
{
    const size_t bytes = pb_inflate_window_bytes(row);
    size_t used;
    w->result = libdeflate_zlib_decompress_ex(one, w->in, w->in_bytes, w->expected, most, &used,
                                              &w->wanted);
    w->window = malloc(bytes < most ? bytes : most);
    w->row = row;
    w->at = w->taken = 0;
    w->has_ended = false;
    pb_inflate_pair_start_window(pair, lane, w->in, w->in_bytes, w->window,
                                 bytes < most ? bytes : most, most);
}

/* Takes the whole rows, or what is left after the end. */
static void take_windowed(struct windowed *w, unsigned lane, enum pb_inflate_end end, size_t made)
{
    const bool good = w->result == LIBDEFLATE_SUCCESS, paused = end == PB_INFLATE_PAUSED;
    w->has_ended = !paused;
    ck_assert(paused || good == (end == PB_INFLATE_COMPLETE));
    if (!paused && !good)
        return;
    const size_t n = paused ? (made - w->at) / w->row * w->row : made - w->at;
    ck_assert(!paused || n > 0);
    ck_assert(!good || memcmp(w->window + w->at, w->expected + w->taken, n) == 0);
    w->at += n;
    w->taken += n;
    if (paused)
        w->at -= pb_inflate_pair_slide(pair, lane, w->at);
    else
        ck_assert_uint_eq(w->taken, w->wanted);
}

START_TEST(test_window_gives_the_bytes_of_the_whole)
{
    static struct windowed both[2];
    struct mutate m = {.state = 23};
    unsigned good = 0;
    for (int i = 0; i < 60; i++) {
        for (unsigned lane = 0; lane < 2; lane++) {
            const size_t bytes = mutate_below(&m, LONG + 1);
            const size_t row = 1 + mutate_below(&m, i % 3 == 0 ? 100000 : 8000);
            compress_long(&both[lane], &m, bytes);
            if (mutate_below(&m, 3) == 0)
                mutate_once(&m, both[lane].in + 2, both[lane].in_bytes - 2);
            start_windowed(&both[lane], lane, row, bytes - (mutate_below(&m, 9) == 0 && bytes > 0));
            good += both[lane].result == LIBDEFLATE_SUCCESS;
        }
        while (!both[0].has_ended || !both[1].has_ended) {
            enum pb_inflate_end end = PB_INFLATE_DAMAGED;
            size_t made = 0;
            unsigned lane = pb_inflate_pair_next(pair, &end, &made);
            take_windowed(&both[lane], lane, end, made);
        }
        free(both[0].window);
        free(both[1].window);
    }
    ck_assert_uint_gt(good, 40);
    ck_assert_uint_lt(good, 110);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inflate");
    TCase *tc = tcase_create("pair");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_equal_heads_decode_like_others);
    tcase_add_test(tc, streams_of_any_kind_and_length_decode_in_parallel);
    tcase_add_test(tc, damaged_streams_get_the_verdict_of_libdeflate);
    tcase_add_test(tc, test_single_stream_gets_libdeflates_verdict);
    tcase_add_test(tc, what_is_wrong_is_found);
    tcase_add_test(tc, dropped_stream_does_not_delay_the_other);
    tcase_add_test(tc, test_window_gives_the_bytes_of_the_whole);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
