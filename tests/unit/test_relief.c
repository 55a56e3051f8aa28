/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Warps over ground of different heights: positions against their function, the needed parts of the
 * scene, and refusals. */
#include "kernels/graph/relief.h"
#include "kernels/resample/warp_area.h"
#include "tests/op_cases.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>

enum { SIDE = 200 };

static const struct pb_ground_ask scene_ask = {
    .crs = "EPSG:1", .source_w = SIDE, .source_h = SIDE, .part = {0, 0, SIDE, SIDE}};

static int open_on(const struct pb_ground_finder *finder, const struct pb_ground_heights *heights,
                   const struct pb_ground_ask *scene, char why[300], struct pb_way *out)
{
    const struct pb_relief_ask ask = {
        .finder = finder, .heights = heights, .ask = scene, .w = SIDE / 2, .h = SIDE / 2};

    return pb_relief_open(&ask, why, 300, out);
}

static struct pb_warp_job job_of(const struct pb_warp *warp, enum pb_resampling how)
{
    return (struct pb_warp_job){.how = how,
                                .warp = warp,
                                .to = pb_map_identity(),
                                .from = pb_map_identity(),
                                .source_w = SIDE,
                                .source_h = SIDE,
                                .scale_x = 1,
                                .scale_y = 1};
}

START_TEST(positions_keep_the_bound_on_ground_of_any_height)
{
    struct pb_way relief;
    char why[300];
    uint32_t random = 7;
    size_t there = 0;

    ck_assert_int_eq(open_on(&op_ground, &op_heights, &scene_ask, why, &relief), 0);
    const struct pb_warp_job job = job_of(relief.warp, PB_NEAREST);
    for (int i = 0; i < 20000; i++) {
        const double u = fx_uniform(&random, 0, (float)relief.w),
                     v = fx_uniform(&random, 0, (float)relief.h);
        const float height = fx_uniform(&random, 100, 900);
        struct op_ground_way way = {.curved = 1, .height = (double)height};
        const struct pb_warp_at at = pb_warp_position(&job, u, v, height);
        double x = u, y = v;

        op_ground_points(&way, 1, &x, &y);
        if (x < 0 || y < 0 || x > SIDE || y > SIDE)
            continue;
        there++;
        ck_assert_msg(hypot(at.x - x, at.y - y) < PB_WARP_RELIEF_PX, "%g %g: %g %g, not %g %g", u,
                      v, at.x, at.y, x, y);
    }
    ck_assert_uint_gt(there, 5000);
    ck_assert(isnan(pb_warp_position(&job, 50, 50, NAN).x));
    /* The file changed since it was looked at: beyond the boxes nothing is read. */
    ck_assert(pb_warp_position(&job, 50, 50, 1e6f).x == pb_warp_position(&job, 50, 50, 900).x);
    ck_assert(pb_warp_position(&job, 50, 50, -INFINITY).y == pb_warp_position(&job, 50, 50, 100).y);
    pb_way_release(&relief);
}
END_TEST

START_TEST(boxes_hold_the_positions_of_every_height)
{
    struct pb_way relief;
    char why[300];
    uint32_t random = 5;

    ck_assert_int_eq(open_on(&op_ground, &op_heights, &scene_ask, why, &relief), 0);
    const struct pb_warp_job job = job_of(relief.warp, PB_NEAREST);
    for (int i = 0; i < 20000; i++) {
        const double u = fx_uniform(&random, 0, (float)relief.w),
                     v = fx_uniform(&random, 0, (float)relief.h);
        const struct pb_warp_box area = {u, v, u, v};
        const struct pb_warp_box box = pb_warp_bounds(relief.warp, &area);
        const struct pb_warp_at at = pb_warp_position(&job, u, v, fx_uniform(&random, 100, 900));

        ck_assert(isnan(at.x) ||
                  (at.x >= box.x0 && at.x <= box.x1 && at.y >= box.y0 && at.y <= box.y1));
    }
    pb_way_release(&relief);
}
END_TEST

/* The places move with the height by a parabola, up and down along each row, by nothing at every
 * fifth of a square that the tree begins with. */
#define SWING_PX     8.0
#define SWING_PERIOD (64 / 5.0)

static void swinging_points(void *transform, size_t n, double *x, double *y)
{
    const struct op_ground_way *const way = transform;
    const double height = (way->height - 500) / 400; /* -1 .. 1 */

    if (way->of_heights)
        op_ground_points(transform, n, x, y);
    for (size_t i = 0; i < n && !way->of_heights; i++) {
        const double wave = sin(x[i] * 3.14159265358979 / SWING_PERIOD);

        y[i] += SWING_PX * wave * wave * height * (height - 1);
    }
}

/* A model that is followed to a hundredth of a pixel, so that squares stay larger than one. */
static int swinging_open(void *of, const struct pb_ground_ask *ask, char *why, size_t why_bytes,
                         struct pb_ground_way *out)
{
    const int rc = op_ground_open(of, ask, why, why_bytes, out);

    out->error_px = 0.01;
    return rc;
}

static const struct pb_ground_finder swinging = {
    .open = swinging_open, .points = swinging_points, .close = op_ground_close};

START_TEST(boxes_contain_positions_that_bend_between_samples)
{
    struct pb_way relief;
    char why[300] = "";
    double least = 0;

    const int rc = open_on(&swinging, &op_heights, &scene_ask, why, &relief);
    ck_assert_msg(rc == 0, "%s", why);
    const struct pb_warp_job job = job_of(relief.warp, PB_NEAREST);
    for (int i = 0; i < 640; i++) {
        const double u = (i + 0.5) / 10, v = 64.01;
        const struct pb_warp_box area = {u, v, u, v};
        const struct pb_warp_box box = pb_warp_bounds(relief.warp, &area);
        const struct pb_warp_at at = pb_warp_position(&job, u, v, 700);

        ck_assert_msg(at.x >= box.x0 && at.x <= box.x1 && at.y >= box.y0 && at.y <= box.y1,
                      "%g %g lies at %g %g, not in %g %g .. %g %g", u, v, at.x, at.y, box.x0,
                      box.y0, box.x1, box.y1);
        least = fmin(least, at.y - v);
    }
    ck_assert_double_le(least, 0.9 * -SWING_PX / 4); /* on ground of the three heights 0 */
    pb_way_release(&relief);
}
END_TEST

/* --- ground whose places follow no parabola --------------------------------------------------- */

static double waves; /* waves of positions, from the lowest ground to the highest */

static void wavy_points(void *transform, size_t n, double *x, double *y)
{
    const struct op_ground_way *const way = transform;

    if (way->of_heights)
        op_ground_points(transform, n, x, y);
    for (size_t i = 0; i < n && !way->of_heights; i++) {
        x[i] += 2 * sin(way->height * waves * 2 * 3.14159265 / 800);
        y[i] -= way->height / 300;
    }
}

static const struct pb_ground_finder wavy = {
    .open = op_ground_open, .points = wavy_points, .close = op_ground_close};

START_TEST(trees_are_as_many_as_positions_need)
{
    static const struct {
        double waves;
        uint32_t n;
    } cases[] = {{0, 3}, {0.1, 3}, {0.15, 5}, {0.35, 9}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_way relief;
        char why[300];

        waves = cases[i].waves;
        ck_assert_int_eq(open_on(&wavy, &op_heights, &scene_ask, why, &relief), 0);
        ck_assert_msg(relief.warp->n_heights == cases[i].n, "%g waves: %u heights", waves,
                      relief.warp->n_heights);
        pb_way_release(&relief);
    }
}
END_TEST

START_TEST(ground_that_no_trees_fit_is_refused)
{
    struct pb_way relief;
    char why[300];

    waves = 3;
    ck_assert_int_eq(open_on(&wavy, &op_heights, &scene_ask, why, &relief), -EINVAL);
    ck_assert_msg(strstr(why, "between heights of 100 and 900 m") != NULL, "%s", why);
    pb_way_release(&relief);
}
END_TEST

/* --- a scene that leans ------------------------------------------------------------------------
 */

enum { LEANING = 1000 };
static double lean; /* lean of positions, in pixels a metre */

static void leaning_points(void *transform, size_t n, double *x, double *y)
{
    const struct op_ground_way *const way = transform;

    if (way->of_heights)
        op_ground_points(transform, n, x, y);
    for (size_t i = 0; i < n && !way->of_heights; i++)
        x[i] += lean * (way->height - 500);
}

static const struct pb_ground_finder leaning = {
    .open = op_ground_open, .points = leaning_points, .close = op_ground_close};

/* The trees of other heights are far beyond the scene there. */
START_TEST(every_place_is_found_however_far_height_moves_it)
{
    static const double leans[] = {0.3, 1.2, 12};
    const struct pb_ground_ask scene = {.crs = "EPSG:1",
                                        .source_w = LEANING,
                                        .source_h = LEANING,
                                        .part = {0, 0, LEANING, LEANING}};

    for (size_t k = 0; k < sizeof leans / sizeof leans[0]; k++) {
        struct pb_way relief;
        char why[300] = "";
        uint32_t random = 3;

        lean = leans[k];
        const int rc = open_on(&leaning, &op_heights, &scene, why, &relief);
        ck_assert_msg(rc == 0, "%g: %s", lean, why);
        const struct pb_warp_job job = job_of(relief.warp, PB_NEAREST);
        for (int i = 0; i < 20000; i++) {
            const double u = fx_uniform(&random, 0, (float)relief.w),
                         v = fx_uniform(&random, 0, (float)relief.h);
            const float height = fx_uniform(&random, 100, 900);
            const double x = u + lean * ((double)height - 500);
            const struct pb_warp_at at = pb_warp_position(&job, u, v, height);

            if (x < 0 || x > LEANING)
                continue;
            ck_assert_msg(fabs(at.x - x) < 1e-3 && fabs(at.y - v) < 1e-3,
                          "%g pixels a metre, %g m: %g %g, not %g %g", lean, (double)height, at.x,
                          at.y, x, v);
        }
        pb_way_release(&relief);
    }
}
END_TEST

/* --- the grid --------------------------------------------------------------------------------- */

/* The scene reaches from the height to a hundred pixels further, in either direction. */
static int moving_open(void *of, const struct pb_ground_ask *ask, char *why, size_t why_bytes,
                       struct pb_ground_way *out)
{
    const double at = ask->has_height ? ask->height / 10 : 50;
    const int rc = op_ground_open(of, ask, why, why_bytes, out);

    if (rc < 0 || ask->to != NULL)
        return rc;
    out->w = ask->has_bounds ? (int32_t)(ask->bounds[2] - ask->bounds[0]) : 100;
    out->h = ask->has_bounds ? (int32_t)(ask->bounds[3] - ask->bounds[1]) : 100;
    out->ground.transform[1] = 1;
    out->ground.transform[5] = -1;
    out->ground.transform[0] = ask->has_bounds ? ask->bounds[0] : at;
    out->ground.transform[3] = ask->has_bounds ? ask->bounds[3] : -at;
    return rc;
}

static const struct pb_ground_finder moving = {
    .open = moving_open, .points = op_ground_points, .close = op_ground_close};

START_TEST(grid_contains_the_scene_at_any_ground_height)
{
    struct pb_way relief;
    char why[300];

    ck_assert_int_eq(open_on(&moving, &op_heights, &scene_ask, why, &relief), 0);
    ck_assert_double_eq(relief.ground.transform[0], 10);
    ck_assert_double_eq(relief.ground.transform[3], -10);
    ck_assert_int_eq(relief.w, 180);
    ck_assert_int_eq(relief.h, 180);
    pb_way_release(&relief);
}
END_TEST

START_TEST(bounds_that_were_given_stay)
{
    const struct pb_ground_ask bound = {.crs = "EPSG:1",
                                        .source_w = SIDE,
                                        .source_h = SIDE,
                                        .part = {0, 0, SIDE, SIDE},
                                        .has_bounds = true,
                                        .bounds = {20, -70, 60, -30}};
    struct pb_way relief;
    char why[300];

    ck_assert_int_eq(open_on(&moving, &op_heights, &bound, why, &relief), 0);
    ck_assert_int_eq(relief.w, 40);
    ck_assert_double_eq(relief.ground.transform[0], 20);
    pb_way_release(&relief);
}
END_TEST

static int no_range(const void *of, uint32_t input, const double box[4], char *why,
                    size_t why_bytes, double out[2])
{
    (void)of;
    (void)input;
    (void)box;
    (void)why;
    (void)why_bytes;
    (void)out;
    return -ENODATA;
}

START_TEST(an_area_without_heights_is_refused)
{
    const struct pb_ground_heights none = {.place = op_heights_place, .range = no_range};
    struct pb_way relief;
    char why[300];

    ck_assert_int_eq(open_on(&op_ground, &none, &scene_ask, why, &relief), -EINVAL);
    ck_assert_str_eq(why, "the heights have no valid pixel in the area of the scene");
    pb_way_release(&relief);
}
END_TEST

/* --- pixels ----------------------------------------------------------------------------------- */

START_TEST(a_pixel_alone_has_the_bits_of_the_row)
{
    enum { W = 150, H = 120 };
    static float px[SIDE * SIDE], ground[(W + 1) * (H + 1)], made[W * H];
    const struct pb_resample_source source = {px, {0, 0, SIDE, SIDE}};
    const struct pb_plane in = {px, {0, 0, SIDE, SIDE}}, out = {made, {0, 0, W, H}},
                          heights = {ground, {0, 0, W + 1, H + 1}};
    struct pb_way relief;
    char why[300];
    uint32_t random = 3;

    waves = 0.35; /* positions of several pieces */
    ck_assert_int_eq(open_on(&wavy, &op_heights, &scene_ask, why, &relief), 0);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        px[i] = fx_random(&random) % 40 ? fx_uniform(&random, -3, 900) : NAN;
    for (size_t i = 0; i < (W + 1) * (H + 1); i++)
        ground[i] = fx_random(&random) % 40 ? fx_uniform(&random, 100, 900) : NAN;
    for (int how = 0; how < PB_RESAMPLING_COUNT; how++) {
        const struct pb_warp_job job = job_of(relief.warp, (enum pb_resampling)how);
        float *const temp = malloc(pb_warp_temp_px(&job, W) * sizeof *temp);

        pb_warp_run_cpu(&job, &in, &heights, &out, temp);
        for (int32_t k = 0; k < W * H; k++) {
            const int32_t x = k % W, y = k / W;
            const struct pb_warp_at at =
                pb_warp_position(&job, x + 0.5, y + 0.5, *pb_plane_at(&heights, x, y));
            const float pixel = pb_warp_pixel(&job, &source, x, y, &at, &heights);

            ck_assert_msg(memcmp(&pixel, &made[k], sizeof pixel) == 0, "%s: pixel %d: %a, not %a",
                          pb_resampling_name(job.how), k, (double)made[k], (double)pixel);
        }
        free(temp);
    }
    pb_way_release(&relief);
}
END_TEST

/* --- chains ----------------------------------------------------------------------------------- */

static bool heights_are_placed; /* on the scene's grid, as any other source */

/* Bands a and h, of a source each. */
static int make_chain(const char *const *names, const struct pb_item (*items)[2], size_t n,
                      const char *output, struct pb_diag *diag, struct pb_chain **out)
{
    struct op_params params[3];
    struct pb_chain_step steps[3];
    struct pb_item given[3][2]; /* borrowed by params */
    const struct pb_item crs = {.text = "EPSG:3857"}, rpc = {.text = "rpc"};
    const struct pb_scene_facts scene = {
        .has_transform = true, .transform = {0, 1, 0, 0, 0, -1}, .ways = &op_ways};
    const struct pb_chain_input inputs[] = {
        {.name = "a", .type = PB_U16, .has_nodata = true, .nodata = 3, .scale = 1},
        {.name = "h", .type = PB_U8, .scale = 3.1, .offset = 100, .source = 1}};
    const struct pb_chain_source sources[] = {
        {SIDE, SIDE, true, pb_map_identity()},
        {SIDE / 2, SIDE / 2, heights_are_placed, pb_map_identity()}};
    size_t at;

    for (size_t i = 0; i < n; i++) {
        op_defaults(pb_op_find(names[i]), &params[i]);
        steps[i] = (struct pb_chain_step){pb_op_find(names[i]), &params[i]};
        if (strcmp(names[i], "warp") == 0) {
            (void)op_give(steps[i].op, &params[i], "crs", &crs, 1);
            (void)op_give(steps[i].op, &params[i], "from", &rpc, 1);
        }
        for (int k = 0; k < 2 && items[i][k].key != NULL; k++) {
            given[i][k] = (struct pb_item){.text = items[i][k].text, .num = items[i][k].num};
            ck_assert(op_give(steps[i].op, &params[i], items[i][k].key, &given[i][k], 1));
        }
    }
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = steps,
                                       .n_steps = n,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = sources,
                                       .n_sources = 2,
                                       .scene = &scene};
    return pb_chain_create(&spec, diag, &at, out);
}

static uint16_t scene_px[SIDE * SIDE];
static uint8_t heights_px[SIDE / 2 * SIDE / 2];

static void run_core(const struct pb_chain *chain, const struct pb_rect *core, float *out)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    void *const scratch =
        aligned_alloc(64, (pb_chain_scratch_bytes(chain, core->w, core->h) + 63) / 64 * 64 + 64);
    struct pb_tile_in in = {.core = *core, .image_w = grid.w, .image_h = grid.h};
    const struct pb_tile_out to = {out, (size_t)core->w * (size_t)core->h};

    for (uint32_t s = 0; s < 2; s++) {
        const size_t bytes = s == 0 ? 2 : 1, side = s == 0 ? SIDE : SIDE / 2;
        const struct pb_rect need = pb_chain_need(chain, s, core),
                             most = pb_chain_need_most(chain, s, core->w, core->h);
        const unsigned char *const all = s == 0 ? (const void *)scene_px : (const void *)heights_px;

        ck_assert(need.w <= most.w && need.h <= most.h);
        in.window[s] = (struct pb_window){
            .data = (void *)(uintptr_t)(all + ((size_t)need.y * side + (size_t)need.x) * bytes),
            .row_bytes = side * bytes,
            .plane_bytes = side * side * bytes,
            .rect = need};
    }
    ck_assert_int_eq(pb_chain_run_cpu(chain, &in, &to, scratch), 0);
    free(scratch);
}

START_TEST(tiles_of_any_size_make_the_whole_image)
{
    static float whole[4 * SIDE * SIDE], tile[SIDE * SIDE];
    static const char *const methods[] = {"nearest", "cubic", "average"};
    static const char *const names[] = {"median", "warp", "median"};
    uint32_t random = 9;

    for (size_t i = 0; i < SIDE * SIDE; i++)
        scene_px[i] = (uint16_t)(fx_random(&random) % 50);
    for (size_t i = 0; i < sizeof heights_px; i++)
        heights_px[i] = (uint8_t)fx_random(&random);
    for (size_t m = 0; m < 3; m++) {
        const struct pb_item items[3][2] = {
            {{.key = "bands", .text = "a"}},
            {{.key = "dem", .text = "h"}, {.key = "method", .text = methods[m]}},
            {{.key = "bands", .text = "a"}}};
        struct pb_chain *chain = NULL;
        struct pb_diag diag;

        ck_assert_msg(make_chain(names, items, 3, "a", &diag, &chain) == 0, "%s", diag.msg);
        const struct pb_geometry grid = pb_chain_geometry(chain);
        const struct pb_rect all = {0, 0, grid.w, grid.h};
        size_t valid = 0;
        run_core(chain, &all, whole);
        for (int32_t i = 0; i < grid.w * grid.h; i++)
            valid += !isnan(whole[i]);
        ck_assert_uint_gt(valid, SIDE * SIDE / 3);
        for (int32_t side = 31; side < 150; side += 53)
            for (int32_t y = 0; y < grid.h; y += side)
                for (int32_t x = 0; x < grid.w; x += side) {
                    const struct pb_rect core = {x, y, x + side < grid.w ? side : grid.w - x,
                                                 y + side < grid.h ? side : grid.h - y};

                    run_core(chain, &core, tile);
                    for (int32_t k = 0; k < core.h; k++)
                        ck_assert_msg(memcmp(tile + (size_t)k * (size_t)core.w,
                                             whole + (size_t)(y + k) * (size_t)grid.w + (size_t)x,
                                             (size_t)core.w * sizeof *tile) == 0,
                                      "%s: tile of %d px at %d, %d", methods[m], side, x, y);
                }
        pb_chain_destroy(chain);
    }
}
END_TEST

START_TEST(mistakes_about_heights_are_told)
{
    static const char *const changed[] = {"median", "warp"}, *const alone[] = {"warp"};
    const struct {
        const char *const *names;
        struct pb_item items[2][2];
        size_t n;
        const char *output, *words;
    } cases[] = {
        {changed,
         {{{.key = "bands", .text = "h"}}, {{.key = "dem", .text = "h"}}},
         2,
         "a",
         "'h' has been changed by a step"},
        {alone, {{{.key = "dem", .text = "x"}}}, 1, "a", "no band 'x' here"},
        {alone,
         {{{.key = "dem", .text = "h"}, {.key = "height", .num = 3}}},
         1,
         "a",
         "the ground has the heights of 'dem'"},
        {alone,
         {{{.key = "dem", .text = "h"}, {.key = "from", .text = "tps"}}},
         1,
         "a",
         "it is one of from: rpc"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_chain *chain = NULL;
        struct pb_diag diag;
        const int rc =
            make_chain(cases[i].names, cases[i].items, cases[i].n, cases[i].output, &diag, &chain);

        ck_assert_int_eq(rc, -EINVAL);
        ck_assert_msg(strstr(diag.msg, cases[i].words) != NULL, "%s", diag.msg);
    }
}
END_TEST

START_TEST(a_band_that_is_heights_and_pixels_is_refused)
{
    static const char *const names[] = {"warp"};
    const struct pb_item items[1][2] = {
        {{.key = "dem", .text = "h"}, {.key = "bands", .text = "h"}}};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    heights_are_placed = true;
    ck_assert_int_eq(make_chain(names, items, 1, "h", &diag, &chain), -EINVAL);
    ck_assert_msg(strstr(diag.msg, "list the file twice in input.sources") != NULL, "%s", diag.msg);
    heights_are_placed = false;
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("relief");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, positions_keep_the_bound_on_ground_of_any_height);
    tcase_add_test(tests, boxes_hold_the_positions_of_every_height);
    tcase_add_test(tests, boxes_contain_positions_that_bend_between_samples);
    tcase_add_test(tests, trees_are_as_many_as_positions_need);
    tcase_add_test(tests, ground_that_no_trees_fit_is_refused);
    tcase_add_test(tests, every_place_is_found_however_far_height_moves_it);
    tcase_add_test(tests, grid_contains_the_scene_at_any_ground_height);
    tcase_add_test(tests, bounds_that_were_given_stay);
    tcase_add_test(tests, an_area_without_heights_is_refused);
    tcase_add_test(tests, a_pixel_alone_has_the_bits_of_the_row);
    tcase_add_test(tests, tiles_of_any_size_make_the_whole_image);
    tcase_add_test(tests, mistakes_about_heights_are_told);
    tcase_add_test(tests, a_band_that_is_heights_and_pixels_is_refused);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
