/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Streams made bit by bit that encoders do not make, inflated by the device, as host code, and
 * compared with the host's decoder. */
#include "decode_device_fixture.h"

#include <zlib.h>

struct bits {
    uint8_t bytes[4096];
    size_t n; /* bits */
};

static void put(struct bits *b, uint32_t value, unsigned n)
{
    for (unsigned i = 0; i < n; i++, b->n++)
        b->bytes[b->n / 8] |= (uint8_t)((value >> i & 1) << b->n % 8);
}

/* Adds the Adler-32 of n bytes of `raw`, and judges. */
static uint32_t judge(struct bits *b, const uint8_t *raw, size_t n)
{
    uint32_t sum = (uint32_t)adler32(1, raw, (uInt)n);
    b->n = (b->n + 7) / 8 * 8;
    for (int i = 24; i >= 0; i -= 8)
        put(b, sum >> i & 255, 8);
    uint32_t status = PB_DECODED;
    for (unsigned shape = 0; shape < EMULATED_SHAPES; shape++) {
        struct tiff_block block = {b->bytes, (uint32_t)(b->n / 8), (uint32_t)n, (uint32_t)n,
                                   PB_DEVICE_DEFLATE};
        status = both(&block, shape);
    }
    return status;
}

static void begin(struct bits *b)
{
    memset(b, 0, sizeof *b);
    put(b, 0x78, 8);
    put(b, 0x9c, 8);
}

/* A dynamic block in which code lengths are sent as they are: 4 bits each, lengths 0 to 15. */
static void dynamic(struct bits *b, const uint8_t *lengths, unsigned n_literals,
                    unsigned n_distances)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    put(b, 1 | 2 << 1, 3);
    put(b, n_literals - 257, 5);
    put(b, n_distances - 1, 5);
    put(b, 15, 4);
    for (unsigned i = 0; i < 19; i++)
        put(b, order[i] < 16 ? 4 : 0, 3);
    for (unsigned i = 0; i < n_literals + n_distances; i++)
        for (unsigned k = 4; k-- > 0;)
            put(b, lengths[i] >> k & 1, 1);
}

/* The code of one bit each for 'a' and the end: "aa" where the code of distances is as given. */
static uint32_t with_distances(const uint8_t *lengths, unsigned n, bool one_literal)
{
    struct bits b;
    uint8_t all[320] = {['a'] = one_literal ? 2 : 1, [256] = 1};
    memcpy(all + 257, lengths, n);
    begin(&b);
    dynamic(&b, all, 257, n);
    put(&b, 0, 2);
    put(&b, 1, 1);
    return judge(&b, (const uint8_t *)"aa", 2);
}

START_TEST(judges_codes_as_the_host_does)
{
    ck_assert_uint_eq(with_distances((const uint8_t[]){1, 1}, 2, false), PB_DECODED);
    ck_assert_uint_eq(with_distances((const uint8_t[]){0}, 1, false), PB_DECODED);
    ck_assert_uint_eq(with_distances((const uint8_t[]){1}, 1, false), PB_DECODED);
    ck_assert_uint_eq(with_distances((const uint8_t[]){2}, 1, false), PB_DECODE_BAD);
    ck_assert_uint_eq(with_distances((const uint8_t[]){1, 2}, 2, false), PB_DECODE_BAD);
    ck_assert_uint_eq(with_distances((const uint8_t[]){1, 1, 1}, 3, false), PB_DECODE_BAD);
    ck_assert_uint_eq(with_distances((const uint8_t[]){1, 1}, 2, true), PB_DECODE_BAD);
}
END_TEST

START_TEST(uses_a_code_of_one_distance)
{
    /* 'a' and a match of three: lengths 'a' 1, 256 2, 257 2; one code of distance 1. */
    for (unsigned empty = 0; empty < 2; empty++) {
        struct bits b;
        uint8_t all[320] = {['a'] = 1, [256] = 2, [257] = 2, [258] = (uint8_t)(1 - empty)};
        begin(&b);
        dynamic(&b, all, 258, 1);
        put(&b, 0, 1);
        put(&b, 3, 2);
        put(&b, empty, 1); /* either bit */
        put(&b, 1, 2);
        ck_assert_uint_eq(judge(&b, (const uint8_t *)"aaaa", 4), PB_DECODED);
    }
}
END_TEST

START_TEST(refuses_what_has_no_end)
{
    struct bits b;
    uint8_t all[320] = {['a'] = 1, ['b'] = 1};
    begin(&b);
    dynamic(&b, all, 257, 1);
    put(&b, 0, 16);
    ck_assert_uint_eq(judge(&b, (const uint8_t *)"aaaa", 4), PB_DECODE_BAD);
    begin(&b);
    put(&b, 7, 3); /* a type that does not exist */
    ck_assert_uint_eq(judge(&b, NULL, 0), PB_DECODE_BAD);
    begin(&b);
    put(&b, 1, 8); /* stored, with a length that contradicts its complement */
    put(&b, 4, 16);
    put(&b, 4, 16);
    ck_assert_uint_eq(judge(&b, (const uint8_t *)"aaaa", 4), PB_DECODE_BAD);
}
END_TEST

START_TEST(refuses_distances_before_the_output)
{
    struct bits b;
    begin(&b);
    put(&b, 3, 3);    /* last, fixed */
    put(&b, 0x91, 8); /* a literal: 10001001 */
    put(&b, 0x40, 7); /* length 3: 0000001 */
    put(&b, 0x08, 5); /* distance 3: 00010 */
    put(&b, 0, 7);    /* end */
    ck_assert_uint_eq(judge(&b, (const uint8_t *)"YYYY", 4), PB_DECODE_BAD);
}
END_TEST

START_TEST(leaves_streams_of_tiny_blocks_to_the_host)
{
    struct bits b;
    begin(&b);
    for (int i = 0; i < 300; i++) {
        put(&b, 2, 3); /* fixed, nothing in it */
        put(&b, 0, 7);
    }
    put(&b, 3, 3);
    put(&b, 0, 7);
    ck_assert_uint_eq(judge(&b, NULL, 0), PB_DECODE_HOST);
}
END_TEST

/* Blocks that take turns with empty stored ones; two of three have equal bytes in another order,
 * therefore equal codes. Then one bit is damaged, of the codes or between them. */
START_TEST(test_equal_codes_decode_as_on_the_host)
{
    enum { BYTES = 230, BLOCKS = 8 };
    uint8_t plain[BYTES], out[4096];
    z_stream z = {.next_out = out, .avail_out = sizeof out};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 15, 8, Z_HUFFMAN_ONLY), Z_OK);
    for (unsigned b = 0; b < BLOCKS; b++) {
        for (unsigned i = 0; i < BYTES; i++)
            plain[i] = (uint8_t)((i * 7 + b) % BYTES % (b % 3 == 1 ? 40 : 60) / 3 * 3);
        z.next_in = plain, z.avail_in = BYTES;
        (void)deflate(&z, b + 1 == BLOCKS ? Z_FINISH : Z_SYNC_FLUSH);
    }
    struct tiff_block block = {out, (uint32_t)z.total_out, BYTES * BLOCKS, BYTES * BLOCKS,
                               PB_DEVICE_DEFLATE};
    (void)deflateEnd(&z);
    for (unsigned number = 0; number < 3 * EMULATED_SHAPES; number++)
        ck_assert_uint_eq(both(&block, number), PB_DECODED);
    for (unsigned bit = 16; bit < 8 * block.n; bit += 67) {
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)both(&block, bit);
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inflate_device");
    TCase *streams = tcase_create("streams");
    tcase_add_test(streams, judges_codes_as_the_host_does);
    tcase_add_test(streams, uses_a_code_of_one_distance);
    tcase_add_test(streams, refuses_what_has_no_end);
    tcase_add_test(streams, refuses_distances_before_the_output);
    tcase_add_test(streams, leaves_streams_of_tiny_blocks_to_the_host);
    tcase_add_test(streams, test_equal_codes_decode_as_on_the_host);
    suite_add_tcase(suite, streams);
    return run_suite(suite);
}
