/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The device's decoders, as host code, compared with the host's: accepted streams and decoded
 * bytes. The order of threads changes from stream to stream. */
#include "pipeline/codec/codec.h"
#include "tests/tools/mutate.h"

#include "decode_device_fixture.h"

#include <glob.h>
#include <stdio.h>
#include <zlib.h>

enum { RAW_MOST = 1 << 16 };

/* --- streams --------------------------------------------------------------------------------- */

static void make_raw(struct mutate *m, uint8_t *raw, size_t n)
{
    size_t kind = mutate_below(m, 6), period = 1 + mutate_below(m, 3000);
    for (size_t i = 0; i < n; i++) {
        size_t r = mutate_next(m);
        raw[i] = (uint8_t)(kind == 0   ? 0
                           : kind == 1 ? r
                           : kind == 2 ? (r % 8 != 0 ? 0 : r >> 8 & 15)
                           : kind == 3 ? (i >= period ? raw[i - period] ^ (r % 64 == 0) : r)
                           : kind == 4 ? ((i & 1) != 0 ? r & 3 : r & 63)
                           : i > 0     ? (r % 300 == 0 ? r >> 16 : raw[i - 1])
                                       : 7);
    }
}

static size_t deflated(struct mutate *m, const uint8_t *raw, size_t n, uint8_t *out, size_t room)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, (int)mutate_below(m, 10), Z_DEFLATED, 15,
                                  1 + (int)mutate_below(m, 9), (int)mutate_below(m, 5)),
                     Z_OK);
    z.next_in = (uint8_t *)(uintptr_t)raw;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t bytes = z.total_out;
    (void)deflateEnd(&z);
    return bytes;
}

static size_t encoded(const struct pb_codec *codec, const uint8_t *raw, size_t n, uint8_t *out,
                      size_t room)
{
    void *context = NULL;
    size_t bytes = 0;
    int level = 0;
    ck_assert_int_eq(pb_codec_level(codec, 0, false, &level), 0);
    ck_assert_int_eq(codec->create(level, &(struct pb_codec_blocks){.bytes = n}, &context), 0);
    ck_assert_int_eq(codec->encode(context, raw, n, out, room, &bytes), 0);
    codec->destroy(context);
    return bytes;
}

/* A stream of up to `raw_most` bytes by one of our encoders or zlib's. */
static struct tiff_block make_stream(struct mutate *m, enum pb_device_codec codec, size_t raw_most)
{
    static uint8_t raw[RAW_MOST], out[2 * RAW_MOST + 4096];
    struct tiff_block block = {.codec = codec};
    size_t n = 1 + mutate_below(m, raw_most);
    make_raw(m, raw, n);
    block.most = block.least = (uint32_t)n;
    if (codec == PB_DEVICE_LZW)
        block.n = (uint32_t)encoded(&pb_codec_lzw, raw, n, out, sizeof out);
    else if (mutate_below(m, 3) == 0)
        block.n = (uint32_t)encoded(&pb_codec_deflate, raw, n, out, sizeof out);
    else
        block.n = (uint32_t)deflated(m, raw, n, out, sizeof out);
    block.bytes = malloc(block.n + 64);
    ck_assert(block.bytes != NULL);
    memcpy(block.bytes, out, block.n);
    return block;
}

static void damage(struct mutate *m, struct tiff_block *block)
{
    size_t early = mutate_below(m, 3) == 0 && block->n > 64 ? 64 : block->n;
    for (size_t i = mutate_below(m, 4); i > 0; i--)
        mutate_once(m, block->bytes, early);
    if (mutate_below(m, 8) == 0)
        block->n = (uint32_t)mutate_below(m, block->n + 1);
    if (mutate_below(m, 8) == 0)
        for (size_t i = mutate_below(m, 64); i > 0; i--)
            block->bytes[block->n++] = (uint8_t)(mutate_below(m, 2) * mutate_next(m));
    if (mutate_below(m, 8) == 0)
        block->most = 1 + (uint32_t)mutate_below(m, 2 * block->most);
    block->least = mutate_below(m, 4) == 0 ? (uint32_t)mutate_below(m, block->most) : block->most;
}

static void damaged_streams(enum pb_device_codec codec, unsigned count, size_t raw_most)
{
    struct mutate m = {codec};
    for (unsigned i = 0; i < count; i++) {
        struct tiff_block block = make_stream(&m, codec, raw_most);
        damage(&m, &block);
        (void)both(&block, i);
        free(block.bytes);
    }
    ck_assert_uint_ge(tally.decoded, count / 5); /* else the damage would hide the decoder */
    ck_assert_uint_ge(tally.refused, count / 5);
    ck_assert_uint_le(tally.host, count / 50);
}

START_TEST(judges_damaged_deflate_as_the_host_does)
{
    damaged_streams(PB_DEVICE_DEFLATE, 800, 2500);
}
END_TEST

START_TEST(judges_damaged_lzw_as_the_host_does)
{
    damaged_streams(PB_DEVICE_LZW, 400, 9000);
}
END_TEST

START_TEST(decodes_whole_streams)
{
    struct mutate m = {77};
    for (unsigned i = 0; i < 40; i++) {
        struct tiff_block block =
            make_stream(&m, i % 4 == 3 ? PB_DEVICE_LZW : PB_DEVICE_DEFLATE, RAW_MOST);
        ck_assert_uint_eq(both(&block, i), PB_DECODED);
        free(block.bytes);
    }
}
END_TEST

/* Files of every layout and predictor that occurs; absent ones are left out. */
static const char *const files[] = {
    "derived/l7_1row_strips.tif",
    "derived/l7_bigtiff_be_deflate.tif",
    "derived/l7_cog.tif",
    "derived/l7_deflate_p2_tiled.tif",
    "derived/l7_float32_deflate_p3.tif",
    "derived/l7_float64_lzw_p3.tif",
    "derived/l7_lzw.tif",
    "derived/l7_lzw_p2.tif",
    "derived/l7_scaleoffset.tif",
    "derived/l7_mask_internal.tif",
    "real/landsat7_L7_ETMs_6band.tif",
    "real/dem/storml_elev.tif",
    "real/mask_alpha/RGBA.uint16_alpha255.tif",
    "real/global/blue_marble_720x360_be.tif",
};

START_TEST(decodes_blocks_of_files)
{
    unsigned n_files = 0;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct tiff_blocks all = {0};
        char path[600];
        (void)snprintf(path, sizeof path, "%s/%s", PB_SHARED_DATA, files[f]);
        n_files += tiff_blocks_add(path, 12, &all, NULL) > 0;
        for (size_t i = 0; i < all.n; i++)
            if (all.block[i].codec != PB_DEVICE_STORED && all.block[i].most <= 200000)
                ck_assert_msg(both(&all.block[i], (unsigned)(i + f)) == PB_DECODED, "%s, block %zu",
                              files[f], i);
        tiff_blocks_free(&all);
    }
    ck_assert_uint_ge(n_files, 10);
}
END_TEST

/* Compares all blocks that their directories lead to. */
START_TEST(judges_hostile_files_as_the_host_does)
{
    glob_t found = {0};
    unsigned n = 0;
    ck_assert_int_eq(glob(PB_SHARED_DATA "/hostile/*.tif", 0, NULL, &found), 0);
    for (size_t f = 0; f < found.gl_pathc; f++) {
        struct tiff_blocks all = {0};
        (void)tiff_blocks_add(found.gl_pathv[f], 6, &all, NULL);
        for (size_t i = 0; i < all.n; i++)
            if (all.block[i].codec != PB_DEVICE_STORED && all.block[i].most <= 200000) {
                (void)both(&all.block[i], (unsigned)(i + f));
                n++;
            }
        tiff_blocks_free(&all);
    }
    globfree(&found);
    ck_assert_uint_ge(n, 10);
}
END_TEST

static struct tiff_block zeros(enum pb_device_codec codec, size_t n)
{
    struct tiff_block block = {.codec = codec, .most = (uint32_t)n, .least = (uint32_t)n};
    uint8_t *raw = calloc(n, 1);
    size_t room = 2 * n + 4096;
    block.bytes = malloc(room);
    ck_assert(raw != NULL && block.bytes != NULL);
    block.n = (uint32_t)encoded(codec == PB_DEVICE_LZW ? &pb_codec_lzw : &pb_codec_deflate, raw, n,
                                block.bytes, room);
    free(raw);
    return block;
}

START_TEST(stops_a_bomb_at_the_declared_size)
{
    for (int codec = PB_DEVICE_DEFLATE; codec <= PB_DEVICE_LZW; codec++) {
        struct tiff_block block = zeros((enum pb_device_codec)codec, 4 << 20);
        block.most = block.least = 5000;
        ck_assert_uint_eq(both(&block, 1), PB_DECODE_LONG);
        block.most = block.least = (4 << 20) + 1;
        if (codec == PB_DEVICE_LZW)
            ck_assert_uint_eq(both(&block, 1), PB_DECODE_SHORT);
        free(block.bytes);
    }
}
END_TEST

START_TEST(ends_when_it_is_told_to)
{
    const uint32_t abort = 1;
    for (int codec = PB_DEVICE_DEFLATE; codec <= PB_DEVICE_LZW; codec++) {
        struct tiff_block block = zeros((enum pb_device_codec)codec, 5000);
        uint8_t *in = aligned_alloc(16, whole(block.n)), *out = aligned_alloc(16, whole(5000));
        uint32_t bytes = 0;
        memcpy(in, block.bytes, block.n);
        const struct pb_decode_stream stream = {in, out, block.n, 5000, 5000, 0};
        ck_assert_uint_eq(emulate_decode(block.codec, 1, 0, &stream, &abort, NULL, &bytes),
                          PB_DECODE_ABORTED);
        free(in);
        free(out);
        free(block.bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decode_device");
    TCase *streams = tcase_create("streams");
    tcase_add_test(streams, judges_damaged_deflate_as_the_host_does);
    tcase_add_test(streams, judges_damaged_lzw_as_the_host_does);
    tcase_add_test(streams, decodes_whole_streams);
    tcase_add_test(streams, decodes_blocks_of_files);
    tcase_add_test(streams, judges_hostile_files_as_the_host_does);
    tcase_add_test(streams, stops_a_bomb_at_the_declared_size);
    tcase_add_test(streams, ends_when_it_is_told_to);
    suite_add_tcase(suite, streams);
    return run_suite(suite);
}
