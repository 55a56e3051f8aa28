/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/colour_file.h"
#include "pipeline/paint/paint_steps.h"
#include "tests/unit/run_suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct pb_ramp_stop stops[PB_RAMP_NAMED_STOPS];

static uint32_t rgba_of(const struct pb_ramp_table *table, double value)
{
    uint8_t c[4];
    pb_ramp_colour(table, value, c);
    return (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3];
}

static struct pb_ramp parsed(const char *text)
{
    char mistake[300] = "";
    struct pb_ramp ramp;
    ck_assert_uint_le(pb_colour_file_lines(text, strlen(text)), PB_RAMP_NAMED_STOPS);
    int line = pb_colour_file_parse(text, strlen(text), stops, &ramp, mistake, sizeof mistake);
    ck_assert_msg(line == 0, "%d: %s", line, mistake);
    return ramp;
}

START_TEST(named_ramps_run_from_end_to_end_of_the_range)
{
    const struct {
        const char *name;
        uint32_t low, high;
    } ends[] = {{"grey", 0x000000ff, 0xffffffff},   {"viridis", 0x440154ff, 0xfde725ff},
                {"magma", 0x000004ff, 0xfcfdbfff},  {"inferno", 0x000004ff, 0xfcffa4ff},
                {"plasma", 0x0d0887ff, 0xf0f921ff}, {"turbo", 0x30123bff, 0x7a0403ff}};
    for (int choice = 1; pb_ramp_source(choice) != NULL; choice++) {
        struct pb_ramp ramp;
        pb_ramp_named(choice, stops, &ramp);
        ck_assert(ramp.n >= 2 && ramp.n <= PB_RAMP_NAMED_STOPS && pb_ramp_needs_range(&ramp));
        struct pb_ramp_table *up = pb_ramp_table_create(&ramp, -3, 7);
        struct pb_ramp_table *down = pb_ramp_table_create(&ramp, 7, -3);
        ck_assert_uint_eq(rgba_of(up, -3), rgba_of(up, -100));
        ck_assert_uint_eq(rgba_of(up, 7), rgba_of(up, 1e30));
        ck_assert_uint_eq(rgba_of(up, -3), rgba_of(down, 7));
        ck_assert_uint_eq(rgba_of(up, NAN), 0);
        ck_assert_uint_eq(rgba_of(up, INFINITY), 0);
        if ((size_t)choice <= sizeof ends / sizeof *ends) {
            ck_assert_uint_eq(rgba_of(up, -3), ends[choice - 1].low);
            ck_assert_uint_eq(rgba_of(up, 7), ends[choice - 1].high);
        }
        pb_ramp_table_destroy(up);
        pb_ramp_table_destroy(down);
    }
    ck_assert_ptr_null(pb_ramp_source(0));
}
END_TEST

START_TEST(colour_file_is_read_as_gdaldem_reads_it)
{
    struct pb_ramp ramp = parsed("# heights\n"
                                 "nv 1 2 3 4\n"
                                 "\n"
                                 "3500   white\n"
                                 "2500,235:220\t175 128\r\n"
                                 "0% 50 180 50 # the lowest\n"
                                 "-500.5 blue");
    ck_assert_uint_eq(ramp.n, 4);
    ck_assert(memcmp(ramp.invalid, (uint8_t[]){1, 2, 3, 4}, 4) == 0);
    ck_assert(pb_ramp_needs_range(&ramp) && ramp.stop[2].is_share && ramp.stop[2].at == 0);
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 100, 200);
    ck_assert_uint_eq(rgba_of(table, 3500), 0xffffffff);
    ck_assert_uint_eq(rgba_of(table, 2500), 0xebdcaf80);
    ck_assert_uint_eq(rgba_of(table, 100), 0x32b432ff);
    ck_assert_uint_eq(rgba_of(table, -501), 0x0000ffff);
    ck_assert_uint_eq(rgba_of(table, NAN), 0x01020304);
    /* (255 - 235) / 2 + 0.45 more than 235, and so on */
    ck_assert_uint_eq(rgba_of(table, 3000), 0xf5edd7bf);
    pb_ramp_table_destroy(table);
}
END_TEST

START_TEST(between_says_what_is_between)
{
    struct pb_ramp ramp = parsed("1 10 0 0\n2 20 0 0\n4 40 0 0 7\ndefault 9 9 9 9\n");
    ramp.between = PB_RAMP_NEAREST;
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 0);
    ck_assert_uint_eq(rgba_of(table, 0), 0x0a0000ff);
    ck_assert_uint_eq(rgba_of(table, 2.9), 0x140000ff);
    ck_assert_uint_eq(rgba_of(table, 3), 0x28000007);
    ck_assert_uint_eq(rgba_of(table, 9), 0x28000007);
    pb_ramp_table_destroy(table);
    ramp.between = PB_RAMP_EXACT;
    table = pb_ramp_table_create(&ramp, 0, 0);
    ck_assert_uint_eq(rgba_of(table, 0), 0x09090909);
    ck_assert_uint_eq(rgba_of(table, 2), 0x140000ff);
    ck_assert_uint_eq(rgba_of(table, 3), 0x09090909);
    ck_assert_uint_eq(rgba_of(table, 4), 0x28000007);
    ck_assert_uint_eq(rgba_of(table, 4.5), 0x09090909);
    pb_ramp_table_destroy(table);
}
END_TEST

START_TEST(values_at_any_distance_are_found)
{
    char text[4000] = "";
    double at[40];
    for (int i = 0; i < 40; i++) {
        at[i] = i * i * i * 0.37 - 50;
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%.17g %d 0 0\n", at[i], i);
    }
    struct pb_ramp ramp = parsed(text);
    ramp.between = PB_RAMP_EXACT;
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 0);
    for (uint32_t i = 0; i < 40; i++) {
        ck_assert_uint_eq(rgba_of(table, at[i]), i << 24 | 0xff);
        ck_assert_uint_eq(rgba_of(table, nextafter(at[i], INFINITY)), 0);
    }
    pb_ramp_table_destroy(table);
}
END_TEST

START_TEST(what_is_not_understood_is_refused_with_its_line)
{
    const struct {
        const char *text;
        int line;
        const char *mistake;
    } cases[] = {
        {"", 1, "no line gives a value a colour"},
        {"nv 0 0 0\n", 2, "no line gives a value a colour"},
        {"1 2 3 4\nx 1 2 3\n", 2, "'x' is no value; write a number, a percentage, nv or default"},
        {"1 256 0 0", 1, "'256' is no level"},
        {"1 1.5 0 0", 1, "'1.5' is no level"},
        {"1 -1 0 0", 1, "'-1' is no level"},
        {"1 0 0 0 300", 1, "'300' is no level"},
        {"1 0 0 0 0 0", 1, "more than a value, red, green, blue and alpha"},
        {"1\n", 1, "'' is no colour"},
        {"1 1 2\n", 1, "'1' is no colour"},
        {"1 mauve", 1, "'mauve' is no colour"},
        {"101% red", 1, "101% is not from 0% to 100%"},
        {"nan red", 1, "'nan' is no value"},
        {"% red", 1, "'' is no value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char mistake[300] = "";
        struct pb_ramp ramp;
        int line = pb_colour_file_parse(cases[i].text, strlen(cases[i].text), stops, &ramp, mistake,
                                        sizeof mistake);
        ck_assert_msg(line == cases[i].line &&
                          strncmp(mistake, cases[i].mistake, strlen(cases[i].mistake)) == 0,
                      "%s -> %d: %s", cases[i].text, line, mistake);
    }
    char mistake[300];
    struct pb_ramp ramp;
    ck_assert_int_eq(pb_colour_file_parse("1 red\n\0 red", 11, stops, &ramp, mistake, 300), 2);
}
END_TEST

START_TEST(painter_keeps_valid_pixels_off_nodata)
{
    const float grey[] = {0, 0.5F, 1, NAN};
    const float *planes[] = {grey, grey, grey};
    uint8_t out[16];
    struct pb_painter painter = {.n_planes = 1, .high = {1, 1, 1}, .has_nodata = true};
    ck_assert_uint_eq(pb_painter_channels(&painter), 1);
    pb_painter_row(&painter, planes, 0, 4, out);
    ck_assert(memcmp(out, (uint8_t[]){1, 128, 255, 0}, 4) == 0);
    painter.nodata = 255;
    pb_painter_row(&painter, planes, 0, 4, out);
    ck_assert(memcmp(out, (uint8_t[]){0, 128, 254, 255}, 4) == 0);
    painter.alpha = true;
    painter.n_planes = 3;
    ck_assert_uint_eq(pb_painter_channels(&painter), 4);
    pb_painter_row(&painter, planes, 1, 3, out);
    ck_assert(memcmp(out, (uint8_t[]){128, 128, 128, 255, 255, 255, 255, 255, 0, 0, 0, 0}, 12) ==
              0);
}
END_TEST

/* True if the steps and the painter agree about a value. */
static bool is_painted(const struct pb_painter *painter, const struct pb_paint *paint,
                       const struct pb_paint_step *step, float value)
{
    const float *planes[] = {&value};
    uint8_t want[4] = {0}, got[4] = {0};
    pb_painter_row(painter, planes, 0, 1, want);
    pb_paint_pixel(paint, step, &value, got);
    return memcmp(want, got, sizeof want) == 0;
}

/* At the ends of every step, and in between. */
START_TEST(test_steps_have_the_colours_of_the_painter)
{
    static const char *const files[] = {"nv 8 8 8 255\n0 10 20 30\n0.1 40 50 60 0\n7 0 255 0\n",
                                        "-3 1 1 1\n-3 2 2 2\n4 200 0 9\n4.5 0 0 0 7\n"};
    struct pb_paint_step *step = malloc(PB_PAINT_STEPS_MAX * sizeof *step);
    ck_assert_ptr_nonnull(step);
    for (int i = 0; i < 6; i++) {
        struct pb_ramp ramp = parsed(files[i / 3]);
        ramp.between = (enum pb_ramp_between)(i % 3);
        struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 0);
        const struct pb_painter painter = {
            .n_planes = 1, .has_ramp = true, .ramp = table, .alpha = true};
        struct pb_paint_steps steps = {.n = pb_paint_steps_find(&painter, step), .step = step};
        memcpy(steps.invalid, ramp.invalid, sizeof steps.invalid);
        const struct pb_paint paint = pb_paint_of(&painter, &steps);
        ck_assert_uint_gt(steps.n, 2);
        for (uint32_t k = 0; k < steps.n; k++) {
            const float at = step[k].from, next = k + 1 < steps.n ? step[k + 1].from : FLT_MAX;
            ck_assert(is_painted(&painter, &paint, step, at));
            ck_assert(is_painted(&painter, &paint, step, nextafterf(at, -FLT_MAX)));
            ck_assert(is_painted(&painter, &paint, step, nextafterf(at, FLT_MAX)));
            ck_assert(is_painted(&painter, &paint, step, at / 2 + next / 2));
        }
        ck_assert(is_painted(&painter, &paint, step, NAN));
        ck_assert(is_painted(&painter, &paint, step, INFINITY));
        pb_ramp_table_destroy(table);
    }
    free(step);
}
END_TEST

/* A ramp of more colours than a device's table has room for has no steps. */
START_TEST(test_too_many_colours_have_no_steps)
{
    enum { STOPS = 1000 };
    struct pb_ramp_stop *stop = calloc(STOPS, sizeof *stop);
    struct pb_paint_step *step = malloc(PB_PAINT_STEPS_MAX * sizeof *step);
    ck_assert(stop != NULL && step != NULL);
    for (int i = 0; i < STOPS; i++)
        stop[i] = (struct pb_ramp_stop){i, false, {i % 2 ? 255 : 0, 0, 0, 255}};
    const struct pb_ramp ramp = {.stop = stop, .n = STOPS};
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 0);
    const struct pb_painter painter = {.n_planes = 1, .has_ramp = true, .ramp = table};
    ck_assert_uint_eq(pb_paint_steps_find(&painter, step), 0);
    pb_ramp_table_destroy(table);
    free(step);
    free(stop);
}
END_TEST

START_TEST(painter_takes_the_ramp_s_alpha)
{
    struct pb_ramp ramp = parsed("nv 8 8 8 255\n0 10 20 30\n1 40 50 60 0\n");
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 0);
    const float values[] = {0, 1, NAN};
    const float *planes[] = {values};
    uint8_t out[12];
    struct pb_painter painter = {.n_planes = 1, .has_ramp = true, .ramp = table, .alpha = true};
    pb_painter_row(&painter, planes, 0, 3, out);
    ck_assert(memcmp(out, (uint8_t[]){10, 20, 30, 255, 0, 0, 0, 0, 8, 8, 8, 255}, 12) == 0);
    pb_ramp_table_destroy(table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ramp");
    TCase *tc = tcase_create("ramp");
    tcase_add_test(tc, named_ramps_run_from_end_to_end_of_the_range);
    tcase_add_test(tc, colour_file_is_read_as_gdaldem_reads_it);
    tcase_add_test(tc, between_says_what_is_between);
    tcase_add_test(tc, values_at_any_distance_are_found);
    tcase_add_test(tc, what_is_not_understood_is_refused_with_its_line);
    tcase_add_test(tc, painter_keeps_valid_pixels_off_nodata);
    tcase_add_test(tc, painter_takes_the_ramp_s_alpha);
    tcase_add_test(tc, test_steps_have_the_colours_of_the_painter);
    tcase_add_test(tc, test_too_many_colours_have_no_steps);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
