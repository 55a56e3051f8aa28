/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The CPU makes rows from sums and tables that neighbours share; a GPU makes each pixel alone, by
 * the pixel function of kernels/resample/resample_pixel.h. Here both make the same planes, on the
 * CPU. */
#include "kernels/resample/resample_pixel.h"
#include "tests/unit/chain_fixture.h"

/* A plane of values of both signs, some of which are equal, invalid, or zeroes. */
static void fill(uint32_t *random, float *px, size_t n, uint32_t values)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = fx_random(random) % (values + 2);

        px[i] = k == 0   ? NAN
                : k == 1 ? (fx_random(random) % 2 ? 0.0f : -0.0f)
                         : (float)k * (k % 2 ? 0.37f : -0.37f);
    }
}

static void check_plane(const struct pb_resample *r, const struct pb_plane *in,
                        const struct pb_rect *rect, float *made, float *temp)
{
    const struct pb_resample_source source = {in->data, in->rect};
    const struct pb_plane out = {made, *rect};

    pb_resample_run_cpu(r, in, &out, temp);
    for (int32_t j = 0; j < rect->h; j++)
        for (int32_t i = 0; i < rect->w; i++) {
            const struct pb_taps x =
                pb_taps_of(r->how, rect->x + i, r->map.scale_x, r->map.offset_x, r->source_w);
            const struct pb_taps y =
                pb_taps_of(r->how, rect->y + j, r->map.scale_y, r->map.offset_y, r->source_h);
            const float pixel = pb_resample_pixel(r, &source, &x, &y);
            const float row = made[(size_t)j * (size_t)rect->w + (size_t)i];

            ck_assert_msg(memcmp(&pixel, &row, sizeof row) == 0, "%s by %g: %a and %a",
                          pb_resampling_name(r->how), r->map.scale_x, (double)row, (double)pixel);
        }
}

/* Maps whose scales are quotients, like those of grids made of grids. */
START_TEST(an_area_of_whole_pixels_takes_no_others)
{
    const struct pb_map scene = pb_map_identity();

    for (int32_t first = 1; first <= 64; first++)
        for (int32_t then = 1; then <= 16; then++) {
            const struct pb_map grid = {1.0 / first, 1.0 / first, 0, 0};
            const struct pb_map made = {grid.scale_x / then, grid.scale_y / then, 0, 0};
            const struct pb_map map = pb_map_between(&made, then == 1 ? &scene : &grid);
            const int32_t scale = then == 1 ? first : then;

            for (int32_t pixel = 0; pixel < 20000; pixel += 111) {
                const struct pb_taps taps =
                    pb_taps_of(PB_AVERAGE, pixel, map.scale_x, map.offset_x, 20001 * scale);

                ck_assert_int_eq(taps.first, pixel * scale);
                ck_assert_int_eq(taps.n, scale);
            }
        }
}
END_TEST

START_TEST(a_pixel_alone_has_the_bits_of_the_row)
{
    enum { SIDE = 60, MADE = 40 };
    static const double scales[] = {0.25, 0.4, 1.0, 1.7, 3.0, 4.0, 7.3, 12.0};
    static float px[SIDE * SIDE], made[MADE * MADE];
    const struct pb_plane in = {px, {0, 0, SIDE, SIDE}};
    uint32_t random = 11;

    for (int i = 0; i < 160; i++) {
        const enum pb_resampling how = (enum pb_resampling)(i % PB_RESAMPLING_COUNT);
        const double x = scales[fx_random(&random) % 8], y = scales[fx_random(&random) % 8];
        const struct pb_resample r = {
            .how = how,
            .source_w = SIDE,
            .source_h = SIDE,
            .map = {x, y, fx_random(&random) % 9 - 4.25, fx_random(&random) % 9 * 1.5 - 6.0}};
        const struct pb_rect rect = {(int32_t)(fx_random(&random) % 4),
                                     (int32_t)(fx_random(&random) % 4), MADE - 17, MADE - 21};
        float *const temp = malloc((pb_resample_temp_px(&r, MADE) + 4) * sizeof *temp);

        ck_assert_ptr_nonnull(temp);
        fill(&random, px, SIDE * SIDE, i % 3 ? 4 : 100000);
        check_plane(&r, &in, &rect, made, temp);
        free(temp);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("resample");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, a_pixel_alone_has_the_bits_of_the_row);
    tcase_add_test(tests, an_area_of_whole_pixels_takes_no_others);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
