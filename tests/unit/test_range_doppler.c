/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Geometry of radar images against the annotations of Sentinel-1: ESA's processor has computed the
 * places of 210 of the pixels, their times, distances and angles. */
#include "pipeline/metadata/meta_tree.h"
#include "pipeline/sar/range_doppler.h"
#include "pipeline/sar/sar_tables.h"
#include "tests/unit/metadata_fixture.h"

#include <math.h>

#define IW      "s1b-iw-grd-vv-geometry.xml" /* over the Alps, southward */
#define SM      "s1c-s4-grd-hh-geometry.xml" /* northward */
#define POINTS  210
#define RADIANS (3.14159265358979323846 / 180)

struct tie {
    double line, pixel, lat, lon, height, incidence;
};

static double number_of(const struct pb_meta_node *node, const char *name)
{
    return strtod(pb_meta_text(node, name), NULL);
}

static void read_ties(const char *name, struct tie out[POINTS])
{
    char *text = load_metadata(name);
    struct pb_meta_tree tree;
    struct pb_err err;
    size_t n = 0;
    ck_assert_int_eq(pb_meta_tree_parse(name, text, strlen(text), &tree, &err), 0);
    const struct pb_meta_node *list = pb_meta_below(tree.root, "geolocationGridPointList", NULL);
    for (const struct pb_meta_node *p = list->first; p != NULL; p = p->next)
        if (p->name[0] != '@')
            out[n++] = (struct tie){number_of(p, "line"),     number_of(p, "pixel"),
                                    number_of(p, "latitude"), number_of(p, "longitude"),
                                    number_of(p, "height"),   number_of(p, "incidenceAngle")};
    ck_assert_uint_eq(n, POINTS);
    pb_meta_tree_fini(&tree);
    free(text);
}

static const struct pb_range_doppler *geometry_of(const struct pb_metadata *facts)
{
    ck_assert_ptr_nonnull(facts->sar);
    ck_assert_msg(facts->sar->geometry != NULL, "%s", facts->sar->why_no_geometry);
    return facts->sar->geometry;
}

/* The model whose only polynomial is the one nearest in time to a line, as the tie points have it.
 */
static struct pb_range_doppler nearest(const struct pb_range_doppler *m, double line)
{
    struct pb_range_doppler out = *m;
    for (size_t i = 0; i < m->n_updates; i++)
        if (fabs(m->update[i].time - line * m->line_seconds) <
            fabs(out.update->time - line * m->line_seconds))
            out.update = &m->update[i];
    out.n_updates = 1;
    return out;
}

static const char *const files[] = {IW, SM};

START_TEST(tie_points_map_to_their_lines_and_pixels)
{
    struct pb_metadata facts = facts_of(files[_i]);
    const struct pb_range_doppler *m = geometry_of(&facts);
    struct tie tie[POINTS];
    double line_off = 0, pixel_off = 0, height = 0;
    read_ties(files[_i], tie);
    for (int i = 0; i < POINTS; i++) {
        const struct pb_range_doppler one = nearest(m, tie[i].line);
        double x, y;
        ck_assert(pb_range_doppler_pixel(&one, tie[i].lon, tie[i].lat, tie[i].height, &x, &y));
        height += tie[i].height / POINTS;
        line_off = fmax(line_off, fabs(y - 0.5 - tie[i].line));
        pixel_off = fmax(pixel_off, fabs(x - 0.5 - tie[i].pixel));
    }
    ck_assert_double_eq_tol(m->mean_height, height, 1e-6);
    ck_assert_msg(line_off < 0.004, "%g lines", line_off);
    ck_assert_msg(pixel_off < 5e-5, "%g pixels", pixel_off);
    pb_metadata_fini(&facts);
}
END_TEST

/* The grid takes the nearest polynomial: a place between two is off by less than half of the change
 * of one update, 16 pixels in the Alps. */
START_TEST(nearest_polynomial_stays_near_the_tie_points)
{
    static const double most[] = {1.6, 1.7}, mean[] = {0.33, 0.15};
    struct pb_metadata facts = facts_of(files[_i]);
    const struct pb_range_doppler *m = geometry_of(&facts);
    struct tie tie[POINTS];
    double off = 0, sum = 0;
    read_ties(files[_i], tie);
    for (int i = 0; i < POINTS; i++) {
        double x, y;
        ck_assert(pb_range_doppler_pixel(m, tie[i].lon, tie[i].lat, tie[i].height, &x, &y));
        off = fmax(off, fabs(x - 0.5 - tie[i].pixel));
        sum += fabs(x - 0.5 - tie[i].pixel) / POINTS;
        ck_assert_double_eq_tol(y - 0.5, tie[i].line, 0.01);
    }
    ck_assert_msg(off < most[_i] && sum < mean[_i], "%g at most, %g", off, sum);
    ck_assert_double_gt(off, 0.1); /* or no place is between two */
    pb_metadata_fini(&facts);
}
END_TEST

START_TEST(pixels_of_tie_points_show_their_places)
{
    struct pb_metadata facts = facts_of(files[_i]);
    const struct pb_range_doppler *m = geometry_of(&facts);
    struct tie tie[POINTS];
    read_ties(files[_i], tie);
    for (int i = 0; i < POINTS; i++) {
        const struct pb_range_doppler one = nearest(m, tie[i].line);
        double lon, lat;
        ck_assert(pb_range_doppler_ground(&one, tie[i].pixel + 0.5, tie[i].line + 0.5,
                                          tie[i].height, &lon, &lat));
        /* 0.05 m: the line's part of the difference */
        ck_assert_double_eq_tol(lat, tie[i].lat, 5e-7);
        ck_assert_double_eq_tol(lon, tie[i].lon, 1e-6);
    }
    pb_metadata_fini(&facts);
}
END_TEST

START_TEST(ground_is_the_inverse_of_pixel)
{
    static const double heights[] = {-400, 0, 1234.5, 8800};
    struct pb_metadata facts = facts_of(files[_i]);
    const struct pb_range_doppler *m = geometry_of(&facts);
    /* Beyond the edges as well, where the tree of positions queries. */
    for (int i = 0; i < 15 * 15 * 4; i++) {
        const double x = (i % 15 - 2) * 0.1 * m->width + 0.3, height = heights[i / 225];
        const double y = (i / 15 % 15 - 2) * 0.1 * m->height + 0.7;
        double lon, lat, back_x, back_y;
        ck_assert(pb_range_doppler_ground(m, x, y, height, &lon, &lat));
        ck_assert(pb_range_doppler_pixel(m, lon, lat, height, &back_x, &back_y));
        ck_assert_double_eq_tol(back_x, x, 1e-5);
        ck_assert_double_eq_tol(back_y, y, 1e-5);
    }
    pb_metadata_fini(&facts);
}
END_TEST

START_TEST(height_shifts_a_place_by_the_incidence_angle)
{
    struct pb_metadata facts = facts_of(files[_i]);
    const struct pb_range_doppler *m = geometry_of(&facts);
    struct tie tie[POINTS];
    read_ties(files[_i], tie);
    for (int i = 0; i < POINTS; i++) {
        double x, y, higher_x, higher_y;
        ck_assert(pb_range_doppler_pixel(m, tie[i].lon, tie[i].lat, tie[i].height, &x, &y));
        ck_assert(pb_range_doppler_pixel(m, tie[i].lon, tie[i].lat, tie[i].height + 10, &higher_x,
                                         &higher_y));
        const double metres = (x - higher_x) * m->pixel_metres;
        ck_assert_double_eq_tol(metres, 10 / tan(tie[i].incidence * RADIANS), 0.3);
        ck_assert_double_eq_tol(higher_y, y, 0.05);
    }
    pb_metadata_fini(&facts);
}
END_TEST

START_TEST(what_the_radar_does_not_look_at_is_nowhere)
{
    struct pb_metadata facts = facts_of(IW);
    const struct pb_range_doppler *m = geometry_of(&facts);
    struct pb_orbit_state state;
    double lon, lat, x, y, acceleration[3];
    ck_assert(pb_range_doppler_ground(m, 100, 8000, 0, &lon, &lat));
    ck_assert(pb_range_doppler_pixel(m, lon, lat, 0, &x, &y));
    ck_assert(pb_orbit_at(&m->orbit, y * m->line_seconds, &state, acceleration));
    const double below = atan2(state.position[1], state.position[0]) / RADIANS;
    /* Southward it looks to the west: a place as far in the east is not visible. */
    ck_assert_double_lt(lon, below);
    ck_assert(!pb_range_doppler_pixel(m, 2 * below - lon, lat, 0, &x, &y));
    ck_assert(!pb_range_doppler_pixel(m, lon + 180, -lat, 0, &x, &y)); /* through the Earth */
    ck_assert(!pb_range_doppler_pixel(m, lon, lat + 30, 0, &x, &y));   /* after the last vector */
    ck_assert(!pb_range_doppler_pixel(m, lon, lat - 30, 0, &x, &y));
    ck_assert(!pb_range_doppler_pixel(m, NAN, lat, 0, &x, &y));
    ck_assert(!pb_range_doppler_pixel(m, lon, lat, INFINITY, &x, &y));
    ck_assert(!pb_range_doppler_ground(m, -1e9, 100, 0, &lon, &lat));
    ck_assert(!pb_range_doppler_ground(m, 100, 1e9, 0, &lon, &lat));
    ck_assert(!pb_range_doppler_ground(m, NAN, 100, 0, &lon, &lat));
    pb_metadata_fini(&facts);
}
END_TEST

/* A circle, of which everything is known. */
START_TEST(orbit_between_vectors_is_exact_to_a_tenth_of_a_mm)
{
    enum { N = 16 };
    const double radius = 7.07e6, turn = 1.06e-3;
    double time[N], acceleration[3];
    struct pb_orbit_state state[N], at;
    for (int i = 0; i < N; i++) {
        time[i] = 10 * i - 70;
        state[i] = (struct pb_orbit_state){
            {radius * cos(turn * time[i]), radius * sin(turn * time[i]), 0},
            {-radius * turn * sin(turn * time[i]), radius * turn * cos(turn * time[i]), 0}};
    }
    const struct pb_orbit orbit = {N, time, state};
    for (double t = -70; t <= 80; t += 0.37) {
        ck_assert(pb_orbit_at(&orbit, t, &at, acceleration));
        ck_assert_double_eq_tol(at.position[0], radius * cos(turn * t), 1e-4);
        ck_assert_double_eq_tol(at.position[1], radius * sin(turn * t), 1e-4);
        ck_assert_double_eq_tol(at.velocity[0], -radius * turn * sin(turn * t), 1e-6);
        ck_assert_double_eq_tol(acceleration[0], -radius * turn * turn * cos(turn * t), 0.1);
    }
    ck_assert(!pb_orbit_at(&orbit, -70.001, &at, acceleration));
    ck_assert(!pb_orbit_at(&orbit, 80.001, &at, acceleration));
    ck_assert(!pb_orbit_at(&orbit, NAN, &at, acceleration));
}
END_TEST

START_TEST(annotations_that_cannot_be_are_refused)
{
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        {"<time>2021-04-01T05:25:29", "<time>2021-04-01T05:25:19", "do not ascend at number 2"},
        {"<time>2021-04-01T05:25:29", "<time>2021-04-05T05:25:19", "no time near"},
        {"<time>2021-04-01T05:25:29", "<time>yesterday", "no time near"},
        {"<x>4.299854769000000e+06", "<x>4.3e+16", "position/x"},
        {"<azimuthTime>2021-04-01T05:26:22.884407", "<azimuthTime>2021-04-01T05:26:21.884407",
         "do not ascend at number 2"},
        {"8.009428521087262e+05 5.098893508614948e-01", "8.009428521087262e+05 -5.09e-01",
         "ascend over the image"},
        {"<grsrCoefficients count=\"9\">8.009428521087262e+05 5.098893508614948e-01",
         "<grsrCoefficients count=\"9\">", "ascend over the image"},
        {"<azimuthTimeInterval>1.498376640333055e-03", "<azimuthTimeInterval>0",
         "azimuthTimeInterval"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(changed(load_metadata(IW), cases[i].from, cases[i].to),
                       PB_E_INPUT_METADATA_VALUE, cases[i].words);
    assert_refused(cut(load_metadata(IW), "<time>2021-04-01T05:25:29", "</time>"),
                   PB_E_INPUT_METADATA_VALUE, "time");
}
END_TEST

START_TEST(annotations_without_a_geometry_say_why)
{
    static const struct {
        const char *from, *to, *why;
    } cases[] = {
        {"Ground Range", "Slant Range", "GRD products"},
        {"orbitList", "xList", "orbitList"},
        {"coordinateConversionList", "xList", "coordinateConversionList"},
        {"CorrectionApplied>true</bistatic", "CorrectionApplied>false</bistatic", "bistatic"},
        {"<frame>Earth Fixed", "<frame>GM2000", "Earth Fixed"},
        {"<gr0>0.000000000000000e+00", "<gr0>10", "gr0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = changed(load_metadata(IW), cases[i].from, cases[i].to);
        struct pb_metadata facts;
        struct pb_err err;
        if (strstr(cases[i].from, "List") != NULL) { /* the tag that ends it */
            char end[64], other[64];
            (void)snprintf(end, sizeof end, "</%s>", cases[i].from);
            (void)snprintf(other, sizeof other, "</%s>", cases[i].to);
            text = changed(text, end, other);
        }
        ck_assert_msg(parse(text, &facts, &err) == 0, "%s", err.msg);
        ck_assert_ptr_null(facts.sar->geometry);
        ck_assert_msg(strstr(facts.sar->why_no_geometry, cases[i].why) != NULL, "%s",
                      facts.sar->why_no_geometry);
        pb_metadata_fini(&facts);
    }
    char *seven = load_metadata(IW);
    struct pb_metadata few;
    struct pb_err err;
    for (int i = 0; i < 9; i++)
        seven = cut(seven, "<orbit>", "</orbit>");
    ck_assert_int_eq(parse(seven, &few, &err), 0);
    ck_assert_ptr_null(few.sar->geometry);
    ck_assert_ptr_nonnull(strstr(few.sar->why_no_geometry, "less than 8"));
    pb_metadata_fini(&few);
    struct pb_metadata short_one = facts_of(S1);
    ck_assert_ptr_null(short_one.sar->geometry);
    ck_assert_ptr_nonnull(strstr(short_one.sar->why_no_geometry, "orbitList"));
    pb_metadata_fini(&short_one);
}
END_TEST

static char *other_polarisation(void)
{
    return changed(load_metadata(IW), "<polarisation>VV", "<polarisation>VH");
}

START_TEST(polarisations_have_one_geometry)
{
    struct pb_metadata facts;
    struct pb_err err;
    ck_assert_int_eq(parse_two(load_metadata(IW), other_polarisation(), &facts, &err), 0);
    (void)geometry_of(&facts);
    pb_metadata_fini(&facts);
    char *later = changed(other_polarisation(), "<productFirstLineUtcTime>2021-04-01T05:26:23.794",
                          "<productFirstLineUtcTime>2021-04-01T05:26:23.804");
    ck_assert_int_lt(parse_two(load_metadata(IW), later, &facts, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_CONFLICT);
    ck_assert_msg(strstr(err.msg, "VH") != NULL, "%s", err.msg);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("range_doppler");
    TCase *tc = tcase_create("geometry");
    tcase_add_loop_test(tc, tie_points_map_to_their_lines_and_pixels, 0, 2);
    tcase_add_loop_test(tc, nearest_polynomial_stays_near_the_tie_points, 0, 2);
    tcase_add_loop_test(tc, pixels_of_tie_points_show_their_places, 0, 2);
    tcase_add_loop_test(tc, ground_is_the_inverse_of_pixel, 0, 2);
    tcase_add_loop_test(tc, height_shifts_a_place_by_the_incidence_angle, 0, 2);
    tcase_add_test(tc, what_the_radar_does_not_look_at_is_nowhere);
    tcase_add_test(tc, orbit_between_vectors_is_exact_to_a_tenth_of_a_mm);
    tcase_add_test(tc, annotations_that_cannot_be_are_refused);
    tcase_add_test(tc, annotations_without_a_geometry_say_why);
    tcase_add_test(tc, polarisations_have_one_geometry);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
