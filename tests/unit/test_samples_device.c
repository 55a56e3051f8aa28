/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Planes of samples that the device makes of decoded blocks, as host code, compared with the
 * host's. */
#include "pipeline/codec/unpredict.h"
#include "pipeline/raster/block_copy.h"
#include "tests/device/emulate_codecs.h"
#include "tests/tools/mutate.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

enum { FILL = 0xa5 };

static size_t whole(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Lets one block of four be an alpha band, of which a mask is made. */
static void choose_mask(struct mutate *m, struct pb_unpredict_form *form)
{
    static const enum pb_type types[] = {PB_U8, PB_I16, PB_U16, PB_I32, PB_U32, PB_F32, PB_F64};
    size_t i = mutate_below(m, sizeof types / sizeof types[0]);
    if (mutate_below(m, 4) != 0)
        return;
    while (pb_type_bytes(types[i]) != form->sample_bytes)
        i = (i + 1) % (sizeof types / sizeof types[0]);
    form->as = PB_UNPREDICT_MASK;
    form->type = types[i];
    form->n_planes = 1;
}

/* Makes the bytes of the mask of n samples, in their place, as a reader on the host does. */
static void as_mask(enum pb_type type, size_t n, uint8_t *samples)
{
    static struct pb_block_fill fill;
    const struct pb_block_layout layout = {.bands = 1, .bits = 8 * (uint32_t)pb_type_bytes(type)};
    const struct pb_rect rect = {0, 0, (int32_t)n, 1};
    uint8_t made[304];
    const struct pb_window to = {.mask = made, .mask_row_bytes = n, .rect = rect};
    const struct pb_block_target target = {.layout = &layout,
                                           .rect = &rect,
                                           .sample_bytes = pb_type_bytes(type),
                                           .type = type,
                                           .alpha_band = 1,
                                           .fill = &fill,
                                           .to = &to};
    pb_block_copy_row(&target, 0, 0, 0, (int32_t)n, samples);
    memcpy(samples, made, n);
}

/* One block of random bytes, compared with pb_unpredict_row and pb_gather_samples. */
static void unpredict_one(struct mutate *m, unsigned number)
{
    static const uint32_t sizes[] = {1, 2, 4, 8}, bands[] = {1, 1, 2, 3, 4, 5, 13};
    struct pb_unpredict_form form = {.sample_bytes = sizes[mutate_below(m, 4)],
                                     .n_samples = bands[mutate_below(m, 7)],
                                     .block_w = 1 + (uint32_t)mutate_below(m, 300)};
    if (mutate_below(m, 2) == 0)
        form.block_w = (form.block_w + 15) / 16 * 16;
    form.predictor = 1 + (uint32_t)mutate_below(m, form.sample_bytes >= 4 ? 3 : 2);
    form.swap = form.predictor < 3 && mutate_below(m, 2) == 0;
    form.n_planes = 1 + (uint32_t)mutate_below(m, form.n_samples);
    choose_mask(m, &form);
    for (uint32_t p = 0; p < form.n_planes; p++)
        form.sample[p] = (uint16_t)mutate_below(m, form.n_samples);
    enum { ROWS = 3 };
    size_t size = form.sample_bytes, row = (size_t)form.block_w * form.n_samples * size;
    const size_t made = form.as == PB_UNPREDICT_MASK ? 1 : size; /* bytes of a written sample */
    struct pb_unpredict_block block = {.left = (uint32_t)mutate_below(m, form.block_w),
                                       .top = (uint32_t)mutate_below(m, ROWS)};
    block.w = 1 + (uint32_t)mutate_below(m, form.block_w - block.left);
    block.h = 1 + (uint32_t)mutate_below(m, ROWS - block.top);
    block.row_bytes = (block.w + mutate_below(m, 9)) * made;
    block.plane_bytes = block.row_bytes * block.h;
    uint8_t *in = aligned_alloc(16, whole(ROWS * row)), *work = malloc(2 * row + 1);
    uint8_t *out = malloc(block.plane_bytes * form.n_planes), *want = malloc(block.w * size);
    ck_assert(in != NULL && work != NULL && out != NULL && want != NULL);
    for (size_t i = 0; i < ROWS * row; i++)
        in[i] = (uint8_t)mutate_next(m);
    block.in = in;
    block.out = out;
    emulate_unpredict(&form, &block, number);
    for (uint32_t y = 0; y < block.h; y++) {
        memcpy(work, in + (block.top + y) * row, row);
        pb_unpredict_row((int)form.predictor, size, form.swap != 0, work, form.block_w,
                         form.n_samples, work + row);
        for (uint32_t p = 0; p < form.n_planes; p++) {
            pb_gather_samples(work + ((size_t)block.left * form.n_samples + form.sample[p]) * size,
                              size, form.n_samples, block.w, want);
            if (form.as == PB_UNPREDICT_MASK)
                as_mask((enum pb_type)form.type, block.w, want);
            ck_assert_msg(memcmp(want, out + p * block.plane_bytes + y * block.row_bytes,
                                 block.w * made) == 0,
                          "block %u: predictor %u, %u samples of %zu bytes, row %u, plane %u",
                          number, form.predictor, form.n_samples, size, y, p);
        }
    }
    free(in);
    free(work);
    free(out);
    free(want);
}

START_TEST(makes_planes_as_the_host_does)
{
    struct mutate m = {5};
    for (unsigned i = 0; i < 600; i++)
        unpredict_one(&m, i);
}
END_TEST

START_TEST(makes_masks_of_bits)
{
    struct mutate m = {7};
    for (unsigned i = 0; i < 100; i++) {
        enum { W = 300, ROWS = 4 };
        uint8_t in[ROWS * (W + 7) / 8 + ROWS], out[ROWS * W];
        const struct pb_unpredict_form form = {.as = PB_UNPREDICT_BITS,
                                               .block_w = 1 + (uint32_t)mutate_below(&m, W)};
        const uint32_t left = (uint32_t)mutate_below(&m, form.block_w),
                       top = (uint32_t)mutate_below(&m, ROWS);
        const struct pb_unpredict_block block = {.in = in,
                                                 .out = out,
                                                 .row_bytes = W,
                                                 .left = left,
                                                 .top = top,
                                                 .w = form.block_w - left,
                                                 .h = ROWS - top};
        for (size_t k = 0; k < sizeof in; k++)
            in[k] = (uint8_t)mutate_next(&m);
        memset(out, FILL, sizeof out);
        emulate_unpredict(&form, &block, i);
        for (uint32_t y = 0; y < block.h; y++)
            for (uint32_t x = 0; x < W; x++) {
                const uint8_t *row = in + (top + y) * ((form.block_w + 7) / 8);
                const bool is_set =
                    x < block.w && (row[(left + x) / 8] << (left + x) % 8 & 128) != 0;
                ck_assert_uint_eq(out[y * W + x], x >= block.w ? FILL : is_set ? 255 : 0);
            }
    }
}
END_TEST

START_TEST(copies_rectangles)
{
    struct mutate m = {6};
    for (unsigned i = 0; i < 60; i++) {
        static _Alignas(16) uint8_t from[4096], to[4096];
        size_t step = mutate_below(&m, 3) == 0 ? 1 : mutate_below(&m, 2) == 0 ? 4 : 16;
        struct pb_rect_copy copy = {.from = from + step,
                                    .to = to + 2 * step,
                                    .from_row_bytes = 1280,
                                    .to_row_bytes = 1152,
                                    .w = 1 + (uint32_t)mutate_below(&m, 1100),
                                    .h = 3};
        for (size_t k = 0; k < sizeof from; k++)
            from[k] = (uint8_t)mutate_next(&m);
        memset(to, FILL, sizeof to);
        emulate_copy_rect(&copy, i);
        for (size_t y = 0; y < copy.h; y++) {
            const uint8_t *row = to + 2 * step + y * 1152;
            ck_assert(memcmp(row, from + step + y * 1280, copy.w) == 0);
            ck_assert(row[-1] == FILL && row[copy.w] == FILL);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("samples_device");
    TCase *samples = tcase_create("samples");
    tcase_add_test(samples, makes_planes_as_the_host_does);
    tcase_add_test(samples, makes_masks_of_bits);
    tcase_add_test(samples, copies_rectangles);
    suite_add_tcase(suite, samples);
    return run_suite(suite);
}
