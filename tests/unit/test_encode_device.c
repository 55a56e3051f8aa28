/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: early
 *
 * The encoder's device code on the host (device/emulator.h): blocks of all types, of runs and
 * noise, of odd sizes, become the bytes that the CPU's encoder makes of them, and blocks with
 * strings are left to the host where the CPU's rule requires it. Bands of real scenes as well;
 * without the larger ones of PB_SHARED_DATA those of tests/data. */
#include "config/limits_config.h"
#include "pipeline/cog/halve.h"
#include "pipeline/raster/raster.h"
#include "tests/device/emulate_encode.h"
#include "tests/encode_cases.h"
#include "tests/paint_cases.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <unistd.h>

struct batch {
    struct pb_encode_needs needs;
    uint8_t *workspace, *out;
    struct pb_encoded encoded[ENCODE_CASE_BLOCKS];
    uint64_t used;
};

static void *memory_of(size_t bytes, size_t align, int fill)
{
    size_t whole = (bytes + align) / align * align;
    void *memory = aligned_alloc(align, whole);
    ck_assert_ptr_nonnull(memory);
    return memset(memory, fill, whole);
}

static const struct pb_paint_step *steps; /* colours of a format that paints */

/* The blocks of a case. out_bytes 0: as much as they can take. */
static void encode(const struct pb_encode_format *format, const struct pb_encode_block *blocks,
                   uint64_t out_bytes, unsigned order, struct batch *out)
{
    memset(out, 0, sizeof *out);
    ck_assert_int_eq(pb_encode_measure(format, ENCODE_CASE_BLOCKS, &out->needs), 0);
    out_bytes = out_bytes > 0 ? out_bytes : out->needs.out_bytes;
    out->workspace = memory_of(out->needs.bytes, 256, 0xa5);
    out->out = memory_of(out_bytes, 16, 0x5a); /* it has whatever was there before */
    const struct pb_encode_batch batch = {
        .format = *format,
        .n_blocks = ENCODE_CASE_BLOCKS,
        .blocks = blocks,
        .steps = steps,
        .workspace = out->workspace,
        .out = out->out,
        .out_bytes = out_bytes,
        .encoded = out->encoded,
        .used = &out->used,
    };
    ck_assert_int_eq(emulate_encode(&batch, order), 0);
}

static void batch_free(struct batch *batch)
{
    free(batch->workspace);
    free(batch->out);
}

static void check_bytes(const uint8_t *got, const uint8_t *want, size_t n, const char *what, int i)
{
    for (size_t k = 0; k < n; k++)
        ck_assert_msg(got[k] == want[k], "block %d: %s differs at byte %zu of %zu", i, what, k, n);
}

static const struct pb_painter *painter; /* painter of a format that paints */
static int searched;                     /* count of compared blocks that are searched by pairs */

/* Compares a block with the CPU's. Returns true if it was encoded. */
static bool check_block(const struct pb_encode_format *format, const struct pb_encode_block *block,
                        const struct batch *batch, int i)
{
    const struct pb_encoded *e = &batch->encoded[i];
    struct encode_reference want;
    ck_assert(encode_reference_painted(format, NULL, painter, block, &want));
    ck_assert_uint_eq(want.raw_bytes, batch->needs.raw_bytes);
    check_bytes(batch->workspace + batch->needs.raw_at + (size_t)i * batch->needs.raw_stride,
                want.raw, want.raw_bytes, "raw block", i);
    ck_assert_uint_eq(e->moved, want.moved);
    bool encoded = format->with != PB_ENCODE_RAW && !want.has_strings;
    searched += want.has_pairs;
    if (encoded) {
        ck_assert_uint_eq(e->state, PB_ENCODED);
        ck_assert_uint_eq(e->bytes, want.encoded_bytes);
        ck_assert_uint_eq(e->at % 16, 0);
        ck_assert_uint_le(e->at + e->bytes + 4, batch->used);
        check_bytes(batch->out + e->at, want.encoded, want.encoded_bytes, "encoded block", i);
    } else {
        ck_assert_uint_eq(e->state, want.has_strings ? PB_ENCODED_STRINGS : PB_ENCODED_RAW);
        ck_assert_uint_eq(e->bytes, 0);
    }
    encode_reference_free(&want);
    return encoded;
}

static float *filled(const struct encode_case *c)
{
    float *planes = malloc(encode_case_floats(c) * sizeof *planes);
    ck_assert_ptr_nonnull(planes);
    encode_case_fill(c, planes);
    return planes;
}

START_TEST(blocks_become_the_bytes_of_the_cpu)
{
    const struct encode_case *c = &encode_cases[_i];
    struct pb_encode_format format = encode_case_format(c);
    struct pb_encode_block blocks[ENCODE_CASE_BLOCKS];
    float *planes = filled(c);
    struct batch batch;
    int encoded = 0;
    encode_case_blocks(c, planes, blocks);
    if (c->mask) { /* both ways */
        format.any = true;
        encode(&format, blocks, 0, 0, &batch);
        for (int i = 0; i < ENCODE_CASE_BLOCKS; i++)
            (void)check_block(&format, &blocks[i], &batch, i);
        batch_free(&batch);
        format.any = false;
    }
    encode(&format, blocks, 0, (unsigned)_i % 7, &batch);
    searched = 0;
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++)
        encoded += check_block(&format, &blocks[i], &batch, i);
    if (c->with == PB_ENCODE_RUNS)
        ck_assert_int_eq(encoded, ENCODE_CASE_BLOCKS);
    if (c->values == VALUES_STRINGS && c->type == PB_U16 && c->side > 128) /* not all in a window */
        ck_assert_int_ge(searched, 2);
    if (c->values == VALUES_LINES &&
        c->type != PB_U16) /* but the one without a valid pixel, which is one run */
        ck_assert_int_eq(encoded, 1);
    batch_free(&batch);
    free(planes);
}
END_TEST

/* Sides of many sizes, so that chunks end everywhere; all orders of threads. */
START_TEST(test_random_pairs_become_the_bytes_of_the_cpu)
{
    static const enum pb_type types[] = {PB_U16, PB_I16, PB_U32};
    uint64_t state = (uint64_t)_i * 977 + 1;
    for (int n = 0; n < 4; n++) {
        const uint64_t r = encode_random(&state);
        const int32_t side = 8 * (int32_t)(4 + r % 36);
        const struct encode_case c = {.type = types[(r >> 8) % 3],
                                      .side = side,
                                      .w = 1 + (int32_t)(encode_random(&state) % (uint64_t)side),
                                      .h = 1 + (int32_t)(encode_random(&state) % (uint64_t)side),
                                      .bands = 1 + (uint32_t)(r >> 12) % 3,
                                      .predictor = 1 + (int32_t)(r >> 16 & 1),
                                      .masked = true,
                                      .with = PB_ENCODE_PAIRS,
                                      .values = VALUES_STRINGS};
        const struct pb_encode_format format = encode_case_format(&c);
        struct pb_encode_block blocks[ENCODE_CASE_BLOCKS];
        const size_t floats = encode_case_floats(&c), plane_px = encode_case_plane_px(&c);
        float *planes = calloc(floats, sizeof *planes);
        struct batch batch;
        ck_assert_ptr_nonnull(planes);
        for (uint32_t p = 0; p < 2 * c.bands; p++)
            encode_fill(&c, encode_random(&state), planes + p * plane_px, encode_case_row_px(&c));
        encode_case_blocks(&c, planes, blocks);
        encode(&format, blocks, 0, (unsigned)(r >> 20) % 12, &batch);
        for (int i = 0; i < ENCODE_CASE_BLOCKS; i++)
            (void)check_block(&format, &blocks[i], &batch, i);
        batch_free(&batch);
        free(planes);
    }
}
END_TEST

static const char *const scenes[] = {
    "sentinel2_29RKH/B01.tif",        "sentinel2_29RKH/B04.tif",
    "modis_mcd43a4/B01.TIF",          "landsat8_stormlake/sr_b4_20200829.tif",
    "sentinel1/s1-vh_2023_gcps.tiff", "codec/image_nodata_int16_albers.tif"};
enum { SCENES = sizeof scenes / sizeof *scenes, SCENE_SIDE = 256, SCENE_ROWS = 8 };

/* The first band, below which SCENE_ROWS rows are 0. *out: freed by the caller. */
static float *read_scene(const char *path, struct pb_raster_info *out)
{
    static const struct pb_limits limits = {.max_pixels = 100000000,
                                            .max_block_bytes = UINT64_C(256) << 20,
                                            .max_side_px = 1000000,
                                            .max_bands = 64,
                                            .max_directories = 64};
    static const int32_t band = 1;
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    ck_assert_msg(pb_raster_open(path, &limits, &err, &raster) == 0, "%s: %s", path, err.msg);
    *out = *pb_raster_info(raster);
    ck_assert(out->type == PB_U16 || out->type == PB_I16);
    const struct pb_rect all = {0, 0, out->width, out->height};
    const size_t w = (size_t)all.w, px = w * (size_t)all.h;
    uint16_t *samples = malloc(px * sizeof *samples);
    uint8_t *mask = malloc(px);
    float *plane = calloc(px + SCENE_ROWS * w, sizeof *plane);
    ck_assert(samples != NULL && mask != NULL && plane != NULL);
    const struct pb_window window = {samples, 2 * w, 2 * px, mask, w, all};
    ck_assert_msg(pb_raster_read(raster, &band, 1, &window, &err) == 0, "%s: %s", path, err.msg);
    for (size_t i = 0; i < px; i++)
        plane[i] = out->type == PB_U16 ? (float)samples[i] : (float)(int16_t)samples[i];
    pb_raster_close(raster);
    free(samples);
    free(mask);
    return plane;
}

/* Blocks of a scene from its left edge down, of one band or of `bands` side by side, each a few
 * rows below the last. */
static void check_scene(const struct pb_raster_info *info, const float *plane, uint32_t bands,
                        unsigned order)
{
    struct pb_encode_format format = {.block_px = SCENE_SIDE,
                                      .n_bands = bands,
                                      .predictor = PB_PREDICTOR_HORIZONTAL,
                                      .with = PB_ENCODE_PAIRS};
    struct pb_encode_block blocks[ENCODE_CASE_BLOCKS];
    struct batch batch;
    const int32_t w = info->width < SCENE_SIDE ? info->width : SCENE_SIDE;
    ck_assert(encode_reference_quantizer(info->type, 0, false, &format.quantizer));
    for (uint32_t b = 0; b < bands; b++)
        format.plane[b] = (uint16_t)b;
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++) {
        const int32_t y = (info->height - 1) * i / ENCODE_CASE_BLOCKS, left = info->height - y;
        blocks[i] = (struct pb_encode_block){.data = plane + (size_t)y * (size_t)info->width,
                                             .plane_px = (uint64_t)info->width * SCENE_ROWS / bands,
                                             .row_px = (uint32_t)info->width,
                                             .w = w,
                                             .h = left < SCENE_SIDE ? left : SCENE_SIDE};
    }
    encode(&format, blocks, 0, order, &batch);
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++)
        (void)check_block(&format, &blocks[i], &batch, i);
    batch_free(&batch);
}

START_TEST(test_real_bands_become_the_bytes_of_the_cpu)
{
    int read = 0;
    searched = 0;
    for (unsigned i = 0; i < SCENES; i++) {
        struct pb_raster_info info;
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/real/%s", PB_SHARED_DATA, scenes[i]);
        if (access(path, R_OK) != 0)
            continue;
        float *plane = read_scene(path, &info);
        check_scene(&info, plane, 1, i);
        check_scene(&info, plane, 4, i + 1);
        free(plane);
        read++;
    }
    ck_assert_int_gt(read, 2);
    ck_assert_int_gt(searched, 2);
}
END_TEST

START_TEST(painted_blocks_become_the_bytes_of_the_cpu)
{
    const struct paint_case *c = &paint_cases[_i];
    const struct encode_case block = paint_case_block(c);
    struct pb_encode_block blocks[ENCODE_CASE_BLOCKS];
    float *planes = filled(&block);
    struct paint_made made;
    struct batch batch;
    paint_case_make(c, &made);
    ck_assert_uint_gt(made.format.paint.n_steps, 0);
    steps = made.step;
    painter = &made.painter;
    encode_case_blocks(&block, planes, blocks);
    encode(&made.format, blocks, 0, (unsigned)_i % 7, &batch);
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++)
        (void)check_block(&made.format, &blocks[i], &batch, i);
    batch_free(&batch);
    paint_made_free(&made);
    free(planes);
    steps = NULL;
    painter = NULL;
}
END_TEST

/* A block that does not fit is left to the host, with all that follow. */
START_TEST(an_output_that_is_full_is_said)
{
    const struct encode_case *c = &encode_cases[0];
    const struct pb_encode_format format = encode_case_format(c);
    struct pb_encode_block blocks[ENCODE_CASE_BLOCKS];
    float *planes = filled(c);
    struct batch all, most;
    encode_case_blocks(c, planes, blocks);
    encode(&format, blocks, 0, 0, &all);
    ck_assert_uint_eq(all.encoded[3].state, PB_ENCODED);
    encode(&format, blocks, all.used - 16, 1, &most);
    ck_assert_uint_eq(most.used, all.encoded[3].at - 16);
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++) {
        const struct pb_encoded *e = &most.encoded[i];
        ck_assert_uint_eq(e->state, i < 3 ? PB_ENCODED : PB_ENCODED_NO_ROOM);
        ck_assert_mem_eq(most.out + e->at, all.out + all.encoded[i].at, e->bytes);
        ck_assert_uint_eq(e->any, i != 2);
    }
    batch_free(&all);
    batch_free(&most);
    free(planes);
}
END_TEST

START_TEST(formats_that_no_product_has_are_refused)
{
    const struct pb_encode_format good = encode_case_format(&encode_cases[0]);
    struct pb_encode_format bad = good;
    struct pb_encode_needs needs;
    ck_assert_int_eq(pb_encode_measure(&good, 1, &needs), 0);
    ck_assert_int_eq(pb_encode_measure(&good, 0, &needs), -EINVAL);
    ck_assert_int_eq(pb_encode_measure(&good, UINT32_MAX, &needs), -EINVAL);
    bad.block_px = 12;
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), -EINVAL);
    bad = good;
    bad.n_bands = PB_ENCODE_BANDS_MAX + 1;
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), -EINVAL);
    bad = good;
    bad.quantizer.type = PB_I16; /* with the predictor of floats */
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), -EINVAL);
    bad.predictor = PB_PREDICTOR_HORIZONTAL;
    bad.with = PB_ENCODE_PAIRS;
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), 0);
    bad.quantizer.type = PB_U8; /* has no pairs */
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), -EINVAL);
    bad.with = PB_ENCODE_PAIRS + 1;
    ck_assert_int_eq(pb_encode_measure(&bad, 1, &needs), -EINVAL);
}
END_TEST

/* Extreme values and holes, of many widths and heights; a part without planes. */
START_TEST(planes_are_halved_as_on_the_cpu)
{
    enum { ROW = 40, PIXELS = ROW * 8 };
    const struct encode_case *c = &encode_cases[_i / 2 + 1];
    const bool nearest = _i % 2 != 0;
    float *planes = filled(c), got[PIXELS], want[PIXELS];
    const uint32_t row_px = (uint32_t)encode_case_row_px(c);
    for (int32_t w = 1; w < 70; w += w < 6 ? 1 : 21)
        for (int32_t h = 1; h < 9; h++) {
            struct pb_halve_part part = {planes, got, 0, 0, row_px, ROW, w, h, {.planes = 0}};
            memset(got, 0, sizeof got);
            memset(want, 0, sizeof want);
            (nearest ? pb_halve_nearest : pb_halve_average)(planes, row_px, w, h, want, ROW);
            emulate_halve(&part, 0, nearest);
            for (int i = 0; i < PIXELS; i++)
                ck_assert(got[i] == want[i] || (got[i] != got[i] && want[i] != want[i]));
            part.from = NULL;
            emulate_halve(&part, 0, nearest);
            for (int i = 0; i < PIXELS; i++) {
                bool inside = i % ROW < (w + 1) / 2 && i / ROW < (h + 1) / 2;
                ck_assert(inside ? got[i] != got[i] : got[i] == 0);
            }
        }
    free(planes);
}
END_TEST

/* Planes that are valid together, all or any of some of them. */
START_TEST(test_joined_planes_halve_as_on_the_cpu)
{
    enum { ROW = 40, PIXELS = ROW * 8, PLANES = 3 };
    static const struct pb_pixel_join joins[] = {
        {7, false, 0}, {7, true, 0}, {7, true, NAN}, {3, true, -5}, {5, false, 1}};
    const struct encode_case *c = &encode_cases[1];
    const struct pb_pixel_join join = joins[_i];
    float *data = filled(c), got[PIXELS], want[PLANES * PIXELS];
    const uint32_t row_px = (uint32_t)encode_case_row_px(c);
    const uint64_t plane_px = encode_case_plane_px(c);
    const float *planes[PLANES];
    for (uint32_t p = 0; p < PLANES; p++)
        planes[p] = data + p * plane_px;
    for (int32_t w = 1; w < 64; w += w < 6 ? 1 : 21)
        for (int32_t h = 1; h < 9; h++) {
            memset(want, 0, sizeof want);
            pb_halve_average_joined(&join, planes, PLANES, row_px, w, h, want, PIXELS, ROW);
            for (uint32_t p = 0; p < PLANES; p++) {
                struct pb_halve_part part = {data, got, plane_px, 0, row_px, ROW, w, h, join};
                memset(got, 0, sizeof got);
                emulate_halve(&part, p, false);
                for (int i = 0; i < PIXELS; i++) {
                    const float wanted = want[p * PIXELS + i];
                    ck_assert(got[i] == wanted || (got[i] != got[i] && wanted != wanted));
                }
            }
        }
    free(data);
}
END_TEST

int main(void)
{
    pb_raster_init();
    Suite *suite = suite_create("encode_device");
    TCase *tc = tcase_create("encode_device");
    tcase_add_loop_test(tc, blocks_become_the_bytes_of_the_cpu, 0, ENCODE_CASES);
    tcase_add_loop_test(tc, painted_blocks_become_the_bytes_of_the_cpu, 0, PAINT_CASES);
    tcase_add_test(tc, an_output_that_is_full_is_said);
    tcase_add_test(tc, formats_that_no_product_has_are_refused);
    tcase_add_loop_test(tc, planes_are_halved_as_on_the_cpu, 0, 4);
    tcase_add_loop_test(tc, test_joined_planes_halve_as_on_the_cpu, 0, 5);
    suite_add_tcase(suite, tc);
    tc = tcase_create("pairs");
    tcase_add_loop_test(tc, test_random_pairs_become_the_bytes_of_the_cpu, 0, 12);
    tcase_add_test(tc, test_real_bands_become_the_bytes_of_the_cpu);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
