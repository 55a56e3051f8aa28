/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 loops */
/* Every codec against an independent decoder: libdeflate's and zstd's own, and for LZW a small one
 * written from the TIFF 6.0 text. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/deflate_runs.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <zstd.h>

#include <jpeglib.h>

/* TIFF 6.0, section 13. Returns bytes decoded, or -1. */
static long lzw_decode(const uint8_t *in, size_t n, uint8_t *out, size_t capacity)
{
    static uint16_t prefix[4096], length[4096];
    static uint8_t last[4096];
    unsigned width = 9, next = 258;
    int old = -1;
    size_t at = 0, done = 0;
    for (;;) {
        unsigned code = 0;
        for (unsigned b = 0; b < width; b++, at++) {
            if (at >= 8 * n)
                return -1;
            code = code << 1 | (in[at / 8] >> (7 - at % 8) & 1);
        }
        if (code == 257)
            return at + 7 >= 8 * n ? (long)done : -1;
        if (code == 256) {
            width = 9;
            next = 258;
            old = -1;
            continue;
        }
        if (code > next || (old < 0 && code > 255) || next > 4095)
            return -1;
        unsigned string = code < next ? code : (unsigned)old;
        size_t bytes = (string < 256 ? 1 : length[string]) + (size_t)(code == next);
        if (done + bytes > capacity)
            return -1;
        size_t i = done + (string < 256 ? 1 : length[string]);
        for (unsigned s = string; i-- > done; s = s < 256 ? s : prefix[s])
            out[i] = s < 256 ? (uint8_t)s : last[s];
        if (code == next)
            out[done + bytes - 1] = out[done];
        if (old >= 0) {
            prefix[next] = (uint16_t)old;
            last[next] = out[done];
            length[next] = (uint16_t)((old < 256 ? 1 : length[old]) + 1);
            next++;
        }
        if (next + 1 >= 1u << width && width < 12)
            width++;
        old = (int)code;
        done += bytes;
    }
}

static long decode(const struct pb_codec *codec, const uint8_t *in, size_t n, uint8_t *out,
                   size_t capacity)
{
    size_t done = 0;
    if (codec == &pb_codec_lzw)
        return lzw_decode(in, n, out, capacity);
    if (codec == &pb_codec_zstd) {
        done = ZSTD_decompress(out, capacity, in, n);
        return ZSTD_isError(done) ? -1 : (long)done;
    }
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    int rc = (int)libdeflate_zlib_decompress(d, in, n, out, capacity, &done);
    libdeflate_free_decompressor(d);
    return rc == 0 ? (long)done : -1;
}

static void fill(uint8_t *data, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        data[i] = kind == 0   ? 0
                  : kind == 1 ? (uint8_t)(rand() >> 8)
                  : kind == 2 ? (uint8_t)(i / 7 % 3)
                  : kind == 4 ? (uint8_t)(i % 3000 < 900 ? 7 : rand() >> 8 & rand() >> 12)
                  : kind == 5 ? (uint8_t)(rand() >> 8 & rand() >> 9 & rand() >> 10 & rand() >> 11)
                              : (uint8_t)((rand() >> 8) % 4 * (int)(i / 1000));
}

static void round_trip(const struct pb_codec *codec, int level, size_t n, int kind)
{
    size_t capacity = codec->bound(n), bytes = 0;
    void *context = NULL;
    uint8_t *in = malloc(n), *out = malloc(capacity), *back = malloc(n + 1);
    fill(in, n, kind);
    ck_assert_int_eq(codec->create(level, &(struct pb_codec_blocks){.bytes = n}, &context), 0);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(codec->encode(context, in, n, out, capacity, &bytes), 0);
        ck_assert_uint_le(bytes, capacity);
        long done = decode(codec, out, bytes, back, n);
        ck_assert_msg(done == (long)n && memcmp(in, back, n) == 0,
                      "%s level %d, %zu bytes of kind %d: %ld came back", codec->name, level, n,
                      kind, done);
    }
    codec->destroy(context);
    free(in);
    free(out);
    free(back);
}

static const struct pb_codec *const packing[] = {&pb_codec_deflate, &pb_codec_zstd, &pb_codec_lzw};

START_TEST(what_goes_in_comes_out)
{
    static const size_t sizes[] = {1, 2, 3, 255, 3837, 3838, 3839, 4096, 65536, 300001};
    for (size_t c = 0; c < 3; c++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < 4; kind++)
                round_trip(packing[c], packing[c]->default_level, sizes[s], kind);
}
END_TEST

/* The defaults of deflate: noise, noise with runs, skewed noise, over chunks and sizes. */
START_TEST(deflate_without_strings_comes_out_too)
{
    static const size_t sizes[] = {32768, 32769, 65528, 65529, 65536, 131056, 131057, 600000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 6; kind++) {
            round_trip(&pb_codec_deflate, pb_codec_deflate.default_level, sizes[s], kind);
            round_trip(&pb_codec_deflate, pb_codec_deflate.default_float_level, sizes[s], kind);
        }
}
END_TEST

/* Random bytes give one code each, so these lengths end at every fill of the table, where the
 * width of the last codes is easily got wrong. */
START_TEST(lzw_ends_well_wherever_the_table_stands)
{
    for (size_t n = 240; n < 270; n++)
        round_trip(&pb_codec_lzw, 0, n, 1);
    for (size_t n = 3500; n < 4200; n++)
        round_trip(&pb_codec_lzw, 0, n, 1);
}
END_TEST

START_TEST(every_level_works)
{
    for (size_t c = 0; c < 2; c++)
        for (int level = packing[c]->min_level; level <= packing[c]->max_level; level++)
            round_trip(packing[c], level, 70000, 3);
}
END_TEST

static void runs_round_trip(struct pb_deflate_runs *work, const uint8_t *in, size_t n)
{
    size_t done = 0, capacity = pb_deflate_runs_bound(n);
    uint8_t *out = malloc(capacity), *back = malloc(n);
    size_t bytes = pb_deflate_runs(work, in, n, out);
    ck_assert_uint_le(bytes, capacity);
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    int rc = (int)libdeflate_deflate_decompress(d, out, bytes, back, n, &done);
    libdeflate_free_decompressor(d);
    ck_assert_msg(rc == 0 && done == n && memcmp(in, back, n) == 0, "%zu bytes: %d", n, rc);
    free(out);
    free(back);
}

START_TEST(runs_of_every_length_and_every_alphabet_survive)
{
    struct pb_deflate_runs *work = malloc(sizeof *work);
    size_t n = 200000;
    uint8_t *in = malloc(n);
    for (size_t length = 1; length < 1100; length++) {
        for (size_t i = 0; i < 4000; i++)
            in[i] = (uint8_t)(i / length * 37 + (i % (length + 5) == 0));
        runs_round_trip(work, in, 4000);
    }
    for (unsigned alphabet = 1; alphabet <= 256; alphabet++) {
        for (size_t i = 0; i < n; i++)
            in[i] = (uint8_t)((unsigned)(rand() >> 8) % alphabet);
        runs_round_trip(work, in, alphabet * 300);
    }
    /* Counts like Fibonacci numbers make the deepest trees: beyond every limit. */
    size_t at = 0, a = 1, b = 1;
    for (uint8_t symbol = 0; at + a < 65528; symbol++) {
        for (size_t i = 0; i < a; i++)
            in[at + i] = symbol;
        at += a;
        size_t next = a + b;
        a = b;
        b = next;
    }
    for (size_t i = at; i-- > 1;) {
        size_t j = (size_t)rand() % (i + 1);
        uint8_t swap = in[i];
        in[i] = in[j];
        in[j] = swap;
    }
    runs_round_trip(work, in, at);
    for (size_t small = 1; small < 300; small++)
        runs_round_trip(work, in, small);
    free(in);
    free(work);
}
END_TEST

static void jpeg_decode(const uint8_t *tables, size_t n_tables, const uint8_t *in, size_t n,
                        int32_t side, uint32_t n_bands, uint8_t *out)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, tables, n_tables);
    ck_assert_int_eq(jpeg_read_header(&jpeg, FALSE), JPEG_HEADER_TABLES_ONLY);
    jpeg_mem_src(&jpeg, in, n);
    ck_assert_int_eq(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
    ck_assert(jpeg.image_width == (JDIMENSION)side && jpeg.num_components == (int)n_bands);
    if (n_bands == 3) { /* TIFF states it, not the stream */
        jpeg.jpeg_color_space = JCS_YCbCr;
        jpeg.out_color_space = JCS_RGB;
        ck_assert(jpeg.comp_info[0].h_samp_factor == 2 && jpeg.comp_info[1].v_samp_factor == 1);
    }
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = out + (size_t)jpeg.output_scanline * (size_t)side * n_bands;
        (void)jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
}

/* The mean difference between the encoded and the decoded picture. */
static double picture_trip(const struct pb_codec *codec, int level, int32_t side, uint32_t n_bands)
{
    size_t n = (size_t)side * (size_t)side * n_bands, capacity = codec->bound(n), bytes = 0;
    uint8_t tables[PB_CODEC_TABLES_MAX], *in = malloc(n), *out = malloc(capacity);
    uint8_t *again = malloc(capacity), *back = calloc(n, 1);
    size_t n_tables = 0, bytes_again = 0;
    double sum = 0;
    void *context = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t x = i / n_bands % (size_t)side, y = i / n_bands / (size_t)side;
        in[i] = (uint8_t)(i % n_bands == 3 ? 255 * (x + y > 40)
                                           : (2 * x + 3 * y + 60 * (i % n_bands)) % 200);
    }
    ck_assert_int_eq(codec->create(level, &(struct pb_codec_blocks){.bytes = n}, &context), 0);
    ck_assert_int_eq(codec->shape(context, side, n_bands), 0);
    ck_assert_int_eq(codec->encode(context, in, n, out, capacity, &bytes), 0);
    ck_assert_int_eq(codec->encode(context, in, n, again, capacity, &bytes_again), 0);
    ck_assert(bytes == bytes_again && memcmp(out, again, bytes) == 0);
    ck_assert_int_eq(codec->encode(context, in, n, again, bytes - 1, &bytes_again), -EIO);
    ck_assert_int_eq(codec->encode(context, in, n - 1, again, capacity, &bytes_again), -EIO);
    codec->destroy(context);
    if (codec->tables != NULL) {
        ck_assert_int_eq(codec->tables(level, n_bands, tables, sizeof tables, &n_tables), 0);
        jpeg_decode(tables, n_tables, out, bytes, side, n_bands, back);
    } else if (n_bands == 4) {
        ck_assert_ptr_nonnull(WebPDecodeRGBAInto(out, bytes, back, n, 4 * side));
    } else {
        ck_assert_ptr_nonnull(WebPDecodeRGBInto(out, bytes, back, n, 3 * side));
    }
    for (size_t i = 0; i < n; i++) {
        sum += abs((int)in[i] - (int)back[i]);
        ck_assert(i % n_bands != 3 || in[i] == back[i]); /* alpha loses nothing */
    }
    free(in);
    free(out);
    free(again);
    free(back);
    return sum / (double)n;
}

START_TEST(pictures_come_back_nearly)
{
    for (int32_t side = 64; side <= 256; side *= 2) {
        ck_assert_double_lt(picture_trip(&pb_codec_jpeg, 75, side, 1), 4);
        ck_assert_double_lt(picture_trip(&pb_codec_jpeg, 95, side, 1), 1);
        ck_assert_double_lt(picture_trip(&pb_codec_jpeg, 75, side, 3), 9);
        ck_assert_double_lt(picture_trip(&pb_codec_webp, 75, side, 3), 9);
        ck_assert_double_lt(picture_trip(&pb_codec_webp, 75, side, 4), 12);
        ck_assert(picture_trip(&pb_codec_webp, 100, side, 3) == 0);
        ck_assert(picture_trip(&pb_codec_webp, 100, side, 4) == 0);
        ck_assert_double_lt(picture_trip(&pb_codec_jpeg, 100, side, 1),
                            picture_trip(&pb_codec_jpeg, 20, side, 1));
    }
}
END_TEST

START_TEST(levels_outside_the_codec_are_refused)
{
    int level = -7;
    ck_assert_int_eq(pb_codec_level(&pb_codec_deflate, 13, false, &level), -EINVAL);
    ck_assert_int_eq(pb_codec_level(&pb_codec_zstd, -1, false, &level), -EINVAL);
    ck_assert_int_eq(pb_codec_level(&pb_codec_lzw, 1, false, &level), -EINVAL);
    ck_assert_int_eq(level, -7);
    ck_assert_int_eq(pb_codec_level(&pb_codec_deflate, 0, false, &level), 0);
    ck_assert_int_eq(level, pb_codec_deflate.default_level);
    ck_assert_int_eq(pb_codec_level(&pb_codec_deflate, 0, true, &level), 0);
    ck_assert_int_eq(level, pb_codec_deflate.default_float_level);
}
END_TEST

START_TEST(zstd_refuses_blocks_over_its_size_without_growing)
{
    void *context;
    size_t n = 1 << 22, bytes, capacity = pb_codec_zstd.bound(n);
    ck_assert_int_eq(pb_codec_zstd.create(19, &(struct pb_codec_blocks){.bytes = 4096}, &context),
                     0);
    uint8_t *in = calloc(n, 1), *out = malloc(capacity);
    ck_assert_int_eq(pb_codec_zstd.encode(context, in, n, out, capacity, &bytes), -EIO);
    pb_codec_zstd.destroy(context);
    free(in);
    free(out);
}
END_TEST

static size_t allocated;

static void *count_malloc(size_t n)
{
    allocated += n;
    return malloc(n);
}

START_TEST(deflate_holds_no_more_than_it_says)
{
    const struct pb_codec_blocks blocks = {.bytes = 1 << 20, .sample_bytes = (size_t)_i};
    libdeflate_set_memory_allocator(count_malloc, free);
    for (int level = -6; level <= 12; level++) {
        void *context;
        if (level > -6 && level < -1)
            level = -1;
        level += level == 0;
        allocated = 0;
        ck_assert_int_eq(pb_codec_deflate.create(level, &blocks, &context), 0);
        ck_assert(allocated > 0 || level == pb_codec_deflate.default_float_level);
        ck_assert_uint_le(allocated, pb_codec_deflate.context_bytes(level, &blocks));
        pb_codec_deflate.destroy(context);
    }
    libdeflate_set_memory_allocator(malloc, free);
}
END_TEST

START_TEST(every_compression_of_the_config_has_its_codec)
{
    for (int c = PB_COMPRESS_NONE; c < PB_COMPRESS_COUNT; c++) {
        static const char *const names[] = {"none", "deflate", "zstd", "lzw", "jpeg", "webp"};
        ck_assert_str_eq(pb_codec_of((enum pb_compress)c)->name, names[c]);
    }
    void *context = &context;
    ck_assert_int_eq(pb_codec_none.create(0, &(struct pb_codec_blocks){.bytes = 10}, &context), 0);
    ck_assert_ptr_null(context);
    pb_codec_none.destroy(context);
    ck_assert_uint_eq(pb_codec_none.bound(17), 17);
}
END_TEST

/* Refused are LZW streams from before TIFF 5, and zstd streams of several frames or of a huge
 * window. */
START_TEST(blocks_that_other_readers_refuse_are_known)
{
    static const uint8_t old_lzw[] = {0x00, 0x01, 0x04, 0x02},
                         wide[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x01, 0x00, 0x00};
    uint8_t in[500], out[2000];
    for (size_t c = 0; c < 3; c++) {
        const struct pb_codec *codec = packing[c];
        void *context = NULL;
        size_t n = 0;
        fill(in, sizeof in, 1);
        ck_assert_int_eq(codec->create(codec->default_level,
                                       &(struct pb_codec_blocks){.bytes = sizeof in}, &context),
                         0);
        ck_assert_int_eq(codec->encode(context, in, sizeof in, out, sizeof out, &n), 0);
        ck_assert(codec->is_common == NULL || codec->is_common(out, n));
        if (codec == &pb_codec_zstd) {
            memcpy(out + n, out, n);
            ck_assert(!codec->is_common(out, 2 * n));
            ck_assert(!codec->is_common(out, n - 1));
        }
        codec->destroy(context);
    }
    ck_assert(!pb_codec_lzw.is_common(old_lzw, sizeof old_lzw));
    ck_assert(!pb_codec_lzw.is_common(old_lzw, 1));
    ck_assert(!pb_codec_zstd.is_common(wide, sizeof wide));
    ck_assert(!pb_codec_zstd.is_common(wide, 4));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("codecs");
    TCase *tc = tcase_create("codecs");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, what_goes_in_comes_out);
    tcase_add_test(tc, deflate_without_strings_comes_out_too);
    tcase_add_test(tc, runs_of_every_length_and_every_alphabet_survive);
    tcase_add_test(tc, lzw_ends_well_wherever_the_table_stands);
    tcase_add_test(tc, every_level_works);
    tcase_add_test(tc, levels_outside_the_codec_are_refused);
    tcase_add_test(tc, pictures_come_back_nearly);
    tcase_add_test(tc, zstd_refuses_blocks_over_its_size_without_growing);
    tcase_add_loop_test(tc, deflate_holds_no_more_than_it_says, 1, 3);
    tcase_add_test(tc, every_compression_of_the_config_has_its_codec);
    tcase_add_test(tc, blocks_that_other_readers_refuse_are_known);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
