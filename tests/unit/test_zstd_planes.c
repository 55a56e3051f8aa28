/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64 loops early
 *
 * Frames of the encoder of planes: zstd's library and pushbroom's decoder get the same bytes back
 * for every kind of values and shape of rows, within the bound. The codec selects planes for noisy
 * floats and stays within a hundredth of the library's size for all others, at each level. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/decode.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/codec/zstd_planes.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* decoding block by block */
#include <zstd.h>

enum kind { NOISE, CONSTANT, NDVI, MASKED, EDGE, SMOOTH, CLASSES, INTEGERS, FEW, KINDS };

static const char *const names[KINDS] = {"noise",  "constant", "ndvi",     "masked", "edge",
                                         "smooth", "classes",  "integers", "few"};

struct shape {
    size_t rows, px, bands, type_bytes;
};

static double normal(void)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)(rand() >> 7 & 0xffff) / 65536;
    return (sum - 2) * 1.732;
}

static double value_of(enum kind kind, size_t x, size_t y, size_t band)
{
    const double u = (double)x, v = (double)y;
    const double cover = 0.5 + 0.4 * sin(u / 91) * cos(v / 57);
    const double red = rint(2200 - 1700 * cover + 40 * normal());
    const double nir = rint(2400 + 1800 * cover + 60 * normal());
    const double ndvi = (nir - red) / (nir + red + (double)(100 * band));
    switch (kind) {
    case NOISE:
        return normal();
    case CONSTANT:
        return 0.25;
    case MASKED:
        return sin(u / 40) + cos(v / 30) > 0.7 ? (double)NAN : ndvi;
    case EDGE:
        return x + 2 * y > 300 ? (double)NAN : ndvi;
    case SMOOTH:
        return 800 + 300 * sin(u / 300) * cos(v / 200);
    case CLASSES:
        return floor(4 + 3 * sin(u / 30) * cos(v / 40));
    case INTEGERS:
        return nir;
    case FEW:
        return rand() % 50 == 0 ? 1 : 0;
    default:
        return ndvi;
    }
}

/* Rows after predictor 3. */
static uint8_t *make_rows(enum kind kind, const struct shape *shape)
{
    const size_t n = shape->px * shape->bands, row_bytes = n * shape->type_bytes;
    uint8_t *out = malloc(shape->rows * row_bytes), *row = malloc(row_bytes);
    for (size_t y = 0; y < shape->rows; y++) {
        for (size_t i = 0; i < n; i++) {
            double wide = value_of(kind, i / shape->bands, y, i % shape->bands);
            float narrow = (float)wide;
            if (shape->type_bytes == 4)
                memcpy(row + 4 * i, &narrow, 4);
            else
                memcpy(row + 8 * i, &wide, 8);
        }
        pb_predict_row(PB_PREDICTOR_FLOAT, shape->type_bytes == 4 ? PB_F32 : PB_F64, row, shape->px,
                       shape->bands, out + y * row_bytes);
    }
    free(row);
    return out;
}

/* In small pieces, as readers of files decode. */
static void check_streaming(const uint8_t *frame, size_t n, const uint8_t *in, size_t bytes)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer from = {frame, 0, 0};
    uint8_t *back = malloc(bytes);
    size_t done = 0, rc = 1;
    while (rc != 0) {
        from.size = from.size + 997 < n ? from.size + 997 : n;
        ZSTD_outBuffer to = {back + done, bytes - done < 1009 ? bytes - done : 1009, 0};
        rc = ZSTD_decompressStream(stream, &to, &from);
        ck_assert_msg(!ZSTD_isError(rc), "%s", ZSTD_getErrorName(rc));
        ck_assert(to.pos > 0 || from.pos < n || rc == 0);
        done += to.pos;
    }
    ck_assert(from.pos == n && done == bytes && memcmp(back, in, bytes) == 0);
    ZSTD_freeDStream(stream);
    free(back);
}

/* Coded blocks are smaller than the bytes that they decode to (RFC 8878, 3.1.1.2). */
static void check_blocks(const uint8_t *frame, size_t n, size_t bytes)
{
    uint8_t *back = malloc(bytes);
    size_t done = 0;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ck_assert(!ZSTD_isError(ZSTD_decompressBegin(context)));
    for (size_t at = 0, part; at < n; at += part) {
        part = ZSTD_nextSrcSizeToDecompress(context);
        const ZSTD_nextInputType_e kind = ZSTD_nextInputType(context);
        const bool coded = kind == ZSTDnit_block || kind == ZSTDnit_lastBlock;
        const bool is_coded = coded && at >= 3 && (frame[at - 3] >> 1 & 3) == 2;
        const size_t made =
            ZSTD_decompressContinue(context, back + done, bytes - done, frame + at, part);
        ck_assert_msg(!ZSTD_isError(made), "%s", ZSTD_getErrorName(made));
        ck_assert_msg(!is_coded || part < made, "%zu bytes for %zu", part, made);
        done += made;
    }
    ZSTD_freeDCtx(context);
    free(back);
}

static void check_frame(const uint8_t *frame, size_t n, const uint8_t *in, size_t bytes,
                        const char *what)
{
    uint8_t *back = malloc(bytes);
    const char *why = "";
    void *context = NULL;
    ck_assert_uint_le(n, pb_zstd_planes_bound(bytes));
    ck_assert_uint_eq(ZSTD_getFrameContentSize(frame, n), bytes);
    size_t done = ZSTD_decompress(back, bytes, frame, n);
    ck_assert_msg(done == bytes && memcmp(in, back, bytes) == 0, "%s, %zu bytes: %s", what, bytes,
                  ZSTD_isError(done) ? ZSTD_getErrorName(done) : "other bytes");
    memset(back, 0, bytes);
    ck_assert_int_eq(pb_decode_zstd.create(&context), 0);
    ck_assert_msg(pb_decode_zstd.run(context, frame, n, back, bytes, bytes, &why) == 0, "%s", why);
    pb_decode_zstd.destroy(context);
    ck_assert(memcmp(in, back, bytes) == 0);
    ck_assert(pb_codec_zstd.is_common(frame, n));
    free(back);
}

/* Returns the size of the frame. */
static size_t round_trip(struct pb_zstd_planes *work, const uint8_t *in, size_t rows,
                         size_t row_bytes, uint32_t planes, const char *what)
{
    const size_t bytes = rows * row_bytes;
    uint8_t *out = malloc(pb_zstd_planes_bound(bytes));
    ck_assert(pb_zstd_planes_fit(bytes, row_bytes, planes));
    pb_zstd_planes_prepare(work, in, rows, row_bytes, planes);
    size_t tried = pb_zstd_planes_try(work, in, rows, out);
    size_t n = pb_zstd_planes_frame(work, in, rows, out);
    if (n > 0) { /* the rows are long enough */
        ck_assert_uint_le(tried, n);
        ck_assert_uint_le(n, tried + n / 256 + 400); /* descriptions of codes, once */
        check_blocks(out, n, bytes);
        check_frame(out, n, in, bytes, what);
        check_streaming(out, n, in, bytes);
    }
    free(out);
    return n;
}

static struct pb_zstd_planes *new_work(void)
{
    struct pb_zstd_planes *work = malloc(sizeof *work);
    memset(work, 0x5a, sizeof *work);
    return work;
}

START_TEST(test_frames_of_all_kinds_and_shapes_decode)
{
    static const struct shape shapes[] = {
        {1, 128, 1, 4},   {64, 128, 1, 4},  {512, 512, 1, 4},  {33, 1000, 1, 4},
        {64, 512, 3, 4},  {40, 256, 20, 4}, {64, 128, 1, 8},   {128, 512, 1, 8},
        {2, 40000, 4, 4}, {3, 33000, 1, 4}, {1, 300000, 1, 8}, {256, 16, 9, 4},
    };
    struct pb_zstd_planes *work = new_work();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int kind = 0; kind < KINDS; kind++) {
            const struct shape *shape = &shapes[s];
            uint8_t *in = make_rows((enum kind)kind, shape);
            (void)round_trip(work, in, shape->rows, shape->px * shape->bands * shape->type_bytes,
                             (uint32_t)shape->type_bytes, names[kind]);
            free(in);
        }
    free(work);
}
END_TEST

/* Bytes of any order, in rows and planes of any size: pieces of noise, of runs and of skewed bytes
 * whose histograms differ between counted rows and others, and rows that repeat. */
START_TEST(test_random_rows_decode)
{
    struct pb_zstd_planes *work = new_work();
    for (int round = 0; round < 300; round++) {
        const uint32_t planes = 1 + (uint32_t)rand() % PB_ZSTD_PLANES;
        const size_t plane = 512 + (size_t)rand() % (round % 10 == 0 ? 40000 : 700);
        const size_t row_bytes = plane * planes, rows = 1 + (size_t)rand() % 20;
        const size_t bytes = rows * row_bytes;
        uint8_t *in = malloc(bytes);
        for (size_t i = 0, n; i < bytes; i += n) {
            n = 1 + (size_t)rand() % (1u << (unsigned)rand() % 14);
            n = n < bytes - i ? n : bytes - i;
            const int kind = rand() % 4, value = rand() >> 8;
            for (size_t k = 0; k < n; k++)
                in[i + k] = (uint8_t)(kind == 0   ? value
                                      : kind == 1 ? rand() >> 8
                                      : kind == 2 ? value + (rand() >> 8) % 3
                                                  : (rand() >> 8 & rand() >> 9 & rand() >> 10));
        }
        for (size_t y = 1; y < rows && round % 3 == 0; y++)
            if (rand() % 3 > 0)
                memcpy(in + y * row_bytes, in + (y - 1) * row_bytes, row_bytes);
        (void)round_trip(work, in, rows, row_bytes, planes, "random rows");
        free(in);
    }
    free(work);
}
END_TEST

/* Counts like Fibonacci numbers make the longest codes; runs of each length their codes. */
START_TEST(test_deep_codes_and_all_lengths_decode)
{
    enum { ROW = 65536, ROWS = 8 };
    struct pb_zstd_planes *work = new_work();
    uint8_t *in = malloc((size_t)ROW * ROWS);
    for (size_t y = 0; y < ROWS; y++)
        for (size_t x = 0; x < ROW; x++) {
            int symbol = 0;
            while (symbol < 24 && rand() % 1000 < 618)
                symbol++;
            in[y * ROW + x] = (uint8_t)(symbol * 11);
        }
    (void)round_trip(work, in, ROWS, ROW, 1, "deep codes");
    for (size_t y = 0, run = 1; y < ROWS; y++)
        for (size_t x = 0; x < ROW; run++)
            for (size_t i = 0, n = y == 1 ? 50000 : run % 700; i <= n && x < ROW; i++)
                in[y * ROW + x++] = (uint8_t)run;
    (void)round_trip(work, in, ROWS, ROW, 1, "runs");
    memset(in, 7, (size_t)ROW * ROWS);
    (void)round_trip(work, in, ROWS, ROW, 1, "one value");
    free(in);
    free(work);
}
END_TEST

/* The rows that are counted give codes to every second plane, in which all others have noise: each
 * plane is a block that does not shrink. */
START_TEST(test_misleading_rows_stay_within_the_bound)
{
    enum { PLANE = PB_ZSTD_PLANE_MIN, ROW = 8 * PLANE, ROWS = 16384 };
    struct pb_zstd_planes *work = new_work();
    uint8_t *in = malloc((size_t)ROW * ROWS);
    for (size_t i = 0; i < (size_t)ROW * ROWS; i++) {
        const bool few = i / ROW % 8 == 0 && i / PLANE % 2 == 0;
        in[i] = (uint8_t)(few ? rand() >> 8 & 127 : rand() >> 8);
    }
    ck_assert_uint_gt(round_trip(work, in, ROWS, ROW, 8, "misleading"), (size_t)ROW * ROWS);
    free(in);
    free(work);
}
END_TEST

START_TEST(test_other_layouts_do_not_fit)
{
    ck_assert(pb_zstd_planes_fit(1 << 20, 2048, 4));
    ck_assert(!pb_zstd_planes_fit(1 << 20, 2048, 0));
    ck_assert(!pb_zstd_planes_fit(1 << 20, 2048, PB_ZSTD_PLANES + 1));
    ck_assert(!pb_zstd_planes_fit(1 << 20, 4 * PB_ZSTD_PLANE_MIN - 4, 4));
    ck_assert(!pb_zstd_planes_fit(1 << 20, 2050, 4));
    ck_assert(!pb_zstd_planes_fit((size_t)UINT32_MAX + 1, 2048, 4));
}
END_TEST

/* Encodes by the codec. Returns the size. */
static size_t encode(const struct pb_codec_blocks *blocks, int level, const uint8_t *in,
                     size_t bytes, uint8_t *out)
{
    void *context = NULL;
    size_t n = 0;
    ck_assert_int_eq(pb_codec_zstd.create(level, blocks, &context), 0);
    ck_assert_int_eq(pb_codec_zstd.encode(context, in, bytes, out, pb_codec_zstd.bound(bytes), &n),
                     0);
    pb_codec_zstd.destroy(context);
    return n;
}

static bool is_by_planes(const uint8_t *frame)
{
    return frame[4] == 0x80 && frame[5] == 0x38; /* never by the library: a window of one block */
}

START_TEST(test_codec_size_is_at_most_the_levels)
{
    static const int levels[] = {1, 3, 9, 15};
    static const struct shape shapes[] = {{512, 512, 1, 4}, {256, 256, 3, 4}, {256, 256, 1, 8}};
    for (size_t s = 0; s < 3; s++)
        for (int kind = 0; kind < KINDS; kind++) {
            const struct shape *shape = &shapes[s];
            const size_t row_bytes = shape->px * shape->bands * shape->type_bytes;
            const size_t bytes = shape->rows * row_bytes;
            const struct pb_codec_blocks blocks = {
                .bytes = bytes, .planes = (uint32_t)shape->type_bytes, .row_bytes = row_bytes};
            uint8_t *in = make_rows((enum kind)kind, shape);
            uint8_t *out = malloc(pb_codec_zstd.bound(bytes));
            for (size_t l = 0; l < 4; l++) {
                size_t most = ZSTD_compress(out, ZSTD_compressBound(bytes), in, bytes, levels[l]);
                size_t n = encode(&blocks, levels[l], in, bytes, out);
                check_frame(out, n, in, bytes, names[kind]);
                ck_assert_msg(n <= most + most / 100, "%s, level %d: %zu bytes, not %zu",
                              names[kind], levels[l], n, most);
                if (kind == NDVI && shape->type_bytes == 4)
                    ck_assert_msg(is_by_planes(out) && n < most - most / 50,
                                  "level %d: %zu bytes, not %zu", levels[l], n, most);
            }
            free(in);
            free(out);
        }
}
END_TEST

/* Earlier blocks of a context change nothing. */
START_TEST(test_codec_output_depends_on_the_block_alone)
{
    const struct shape shape = {128, 512, 1, 4};
    const size_t row_bytes = 2048, bytes = 128 * row_bytes;
    const struct pb_codec_blocks blocks = {.bytes = bytes, .planes = 4, .row_bytes = row_bytes};
    const size_t capacity = pb_codec_zstd.bound(bytes);
    uint8_t *alone = malloc(capacity), *out = malloc(capacity);
    void *context = NULL;
    ck_assert_int_eq(pb_codec_zstd.create(3, &blocks, &context), 0);
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        uint8_t *in = make_rows((enum kind)(kind % KINDS), &shape);
        const size_t part = kind % 2 == 0 ? bytes : 16 * row_bytes;
        size_t n = 0, n_alone = encode(&blocks, 3, in, part, alone);
        ck_assert_int_eq(pb_codec_zstd.encode(context, in, part, out, capacity, &n), 0);
        ck_assert(n == n_alone && memcmp(out, alone, n) == 0);
        free(in);
    }
    pb_codec_zstd.destroy(context);
    free(alone);
    free(out);
}
END_TEST

START_TEST(test_codec_refuses_sizes_it_was_not_made_for)
{
    const struct shape shape = {64, 512, 1, 4};
    const size_t row_bytes = 2048, bytes = 64 * row_bytes;
    const struct pb_codec_blocks blocks = {.bytes = bytes, .planes = 4, .row_bytes = row_bytes};
    const size_t capacity = pb_codec_zstd.bound(2 * bytes);
    uint8_t *in = make_rows(NDVI, &shape), *twice = malloc(2 * bytes), *out = malloc(capacity);
    size_t n = 77;
    void *context = NULL;
    memcpy(twice, in, bytes);
    memcpy(twice + bytes, in, bytes);
    ck_assert_int_eq(pb_codec_zstd.create(1, &blocks, &context), 0);
    ck_assert_int_eq(pb_codec_zstd.encode(context, twice, 2 * bytes, out, capacity, &n), -EIO);
    ck_assert_int_eq(
        pb_codec_zstd.encode(context, in, bytes, out, pb_codec_zstd.bound(bytes) - 1, &n), -EIO);
    ck_assert_uint_eq(n, 77);
    /* Parts of rows are no planes. */
    ck_assert_int_eq(pb_codec_zstd.encode(context, in, bytes - 1, out, capacity, &n), 0);
    ck_assert(!is_by_planes(out));
    check_frame(out, n, in, bytes - 1, "parts of rows");
    pb_codec_zstd.destroy(context);
    free(in);
    free(twice);
    free(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zstd_planes");
    TCase *tc = tcase_create("zstd_planes");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_frames_of_all_kinds_and_shapes_decode);
    tcase_add_test(tc, test_random_rows_decode);
    tcase_add_test(tc, test_deep_codes_and_all_lengths_decode);
    tcase_add_test(tc, test_misleading_rows_stay_within_the_bound);
    tcase_add_test(tc, test_other_layouts_do_not_fit);
    tcase_add_test(tc, test_codec_size_is_at_most_the_levels);
    tcase_add_test(tc, test_codec_output_depends_on_the_block_alone);
    tcase_add_test(tc, test_codec_refuses_sizes_it_was_not_made_for);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
