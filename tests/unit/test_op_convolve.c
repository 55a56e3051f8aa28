/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * convolve through a real chain: its weights against sums in float64, which bands it changes, its
 * halo, and its refusals with their messages. */
#include "kernels/chain/chain.h"
#include "kernels/focal/focal.h"

#include "run_suite.h"
#include "tests/op_params.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define W 23
#define H 17

/* -- one step, as a config would give it ------------------------------------------------------- */

struct step {
    struct op_params params;
    struct pb_item kernel, size, sigma, edge, weight[225], bands[4];
    size_t n_bands;
};

static void give_all(struct step *s, const char *name, const struct pb_item *items, size_t n)
{
    ck_assert_msg(op_give(pb_op_find("convolve"), &s->params, name, items, n), "no key %s", name);
}

static void give(struct step *s, const char *name, struct pb_item *item, const char *text,
                 double num)
{
    *item = (struct pb_item){.text = text, .num = num};
    give_all(s, name, item, 1);
}

static void give_weights(struct step *s, const double *weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->weight[i] = (struct pb_item){.num = weight[i]};
    }
    give_all(s, "weights", s->weight, n);
}

static void give_band(struct step *s, const char *key, const char *text)
{
    s->bands[s->n_bands++] = (struct pb_item){.key = key, .text = text};
    give_all(s, "bands", s->bands, s->n_bands);
}

/* -- running it -------------------------------------------------------------------------------- */

static float image_a[W * H], image_b[W * H];

static void make_images(void)
{
    for (int i = 0; i < W * H; i++) {
        image_a[i] = (float)((i * 7919) % 251) / 251.0f;
        image_b[i] = (float)((i * 104729) % 499) / 499.0f;
    }
}

static int create(const struct step *s, const char *const *outputs, size_t n_outputs,
                  struct pb_diag *diag, struct pb_chain **out_chain)
{
    const struct pb_chain_input inputs[] = {{.name = "A", .type = PB_F32, .scale = 1},
                                            {.name = "B", .type = PB_F32, .scale = 1}};
    const struct pb_chain_step step = {pb_op_find("convolve"), &s->params};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = outputs,
                                       .n_outputs = n_outputs};
    size_t where;
    memset(diag, 0, sizeof *diag);
    return pb_chain_create(&spec, diag, &where, out_chain);
}

/* One output band of the whole image. */
static void run(const struct step *s, const char *output, float *result)
{
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    ck_assert_msg(create(s, &output, 1, &diag, &chain) == 0, "%s", diag.msg);
    const uint32_t *used;
    size_t n = pb_chain_used(chain, &used);
    float *in = aligned_alloc(64, (n * sizeof image_a + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++) {
        memcpy(in + i * W * H, used[i] == 0 ? image_a : image_b, sizeof image_a);
    }
    struct pb_rect rect = {0, 0, W, H};
    struct pb_tile_in tile = {.window[0].data = in,
                              .window[0].row_bytes = W * sizeof(float),
                              .window[0].plane_bytes = sizeof image_a,
                              .window[0].rect = rect,
                              .core = rect,
                              .image_w = W,
                              .image_h = H};
    struct pb_tile_out out = {result, W * H};
    void *scratch = aligned_alloc(64, (pb_chain_scratch_bytes(chain, W, H) + 127) / 64 * 64);
    ck_assert_int_eq(pb_chain_run_cpu(chain, &tile, &out, scratch), 0);
    free(scratch);
    free(in);
    pb_chain_destroy(chain);
}

/* The sum in float64 over the reflected image. */
static double sum_at(const float *image, const double *weight, int side, int x, int y)
{
    double sum = 0;
    for (int i = 0; i < side * side; i++) {
        int u = abs(x + i % side - side / 2), v = abs(y + i / side - side / 2);
        u = u >= W ? 2 * (W - 1) - u : u;
        v = v >= H ? 2 * (H - 1) - v : v;
        sum += weight[i] * (double)image[v * W + u];
    }
    return sum;
}

static void check_plane(const float *got, const float *image, const double *weight, int side)
{
    for (int i = 0; i < W * H; i++) {
        double want = sum_at(image, weight, side, i % W, i / W);
        ck_assert_msg(fabs((double)got[i] - want) < 2e-6 * (1 + fabs(want)),
                      "pixel %d: %.9g, not %.9g", i, (double)got[i], want);
    }
}

static void gaussian_weights(double *weight, int side, double sigma)
{
    double sum = 0;
    for (int i = 0; i < side * side; i++) {
        double x = i % side - side / 2, y = i / side - side / 2;
        weight[i] = exp(-(x * x + y * y) / (2 * sigma * sigma));
        sum += weight[i];
    }
    for (int i = 0; i < side * side; i++) {
        weight[i] /= sum;
    }
}

/* -- values ------------------------------------------------------------------------------------ */

START_TEST(smooths_with_a_gaussian_of_the_usual_sigma)
{
    static const struct {
        int size;
        double sigma, used;
    } cases[] = {{3, 0, 0.8}, {5, 0, 1.1}, {15, 0, 2.6}, {7, 1.7, 1.7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct step s = {0};
        double weight[225];
        float got[W * H];
        give(&s, "kernel", &s.kernel, "gaussian", 0);
        give(&s, "size", &s.size, NULL, cases[i].size);
        give(&s, "sigma", &s.sigma, NULL, cases[i].sigma);
        gaussian_weights(weight, cases[i].size, cases[i].used);
        run(&s, "A", got);
        check_plane(got, image_a, weight, cases[i].size);
    }
}
END_TEST

START_TEST(default_is_a_gaussian_of_size_3_over_all_bands)
{
    struct step s = {0};
    double weight[9];
    float got[W * H];
    gaussian_weights(weight, 3, 0.8);
    run(&s, "A", got);
    check_plane(got, image_a, weight, 3);
    run(&s, "B", got);
    check_plane(got, image_b, weight, 3);
}
END_TEST

START_TEST(averages_with_a_box)
{
    struct step s = {0};
    double weight[49];
    float got[W * H];
    give(&s, "kernel", &s.kernel, "box", 0);
    give(&s, "size", &s.size, NULL, 7);
    for (int i = 0; i < 49; i++) {
        weight[i] = 1.0 / 49;
    }
    run(&s, "A", got);
    check_plane(got, image_a, weight, 7);
}
END_TEST

static void check_sobel(int side, const double *along, const double *across)
{
    struct step s = {0};
    double gx[25], gy[25];
    float got[W * H];
    give(&s, "kernel", &s.kernel, "sobel", 0);
    give(&s, "size", &s.size, NULL, side);
    for (int i = 0; i < side * side; i++) {
        gx[i] = along[i % side] * across[i / side];
        gy[i] = across[i % side] * along[i / side];
    }
    run(&s, "A", got);
    for (int i = 0; i < W * H; i++) {
        double want =
            hypot(sum_at(image_a, gx, side, i % W, i / W), sum_at(image_a, gy, side, i % W, i / W));
        ck_assert_msg(fabs((double)got[i] - want) < 1e-5 * (1 + want), "size %d pixel %d: %g, %g",
                      side, i, (double)got[i], want);
    }
}

START_TEST(finds_edges_with_sobel)
{
    check_sobel(3, (const double[]){-1, 0, 1}, (const double[]){1, 2, 1});
    check_sobel(5, (const double[]){-1, -2, 0, 2, 1}, (const double[]){1, 4, 6, 4, 1});
}
END_TEST

START_TEST(lays_own_weights_over_the_image_as_written)
{
    struct step s = {0};
    double weight[25];
    float got[W * H];
    for (int i = 0; i < 25; i++) {
        weight[i] = i * i - 100;
    }
    give_weights(&s, weight, 25); /* the size follows from their number */
    run(&s, "A", got);
    check_plane(got, image_a, weight, 5);
}
END_TEST

START_TEST(edge_nodata_leaves_a_frame_without_data)
{
    struct step s = {0};
    float got[W * H];
    give(&s, "kernel", &s.kernel, "box", 0);
    give(&s, "size", &s.size, NULL, 5);
    give(&s, "edge", &s.edge, "nodata", 0);
    run(&s, "A", got);
    for (int i = 0; i < W * H; i++) {
        int x = i % W, y = i / W;
        bool frame = x < 2 || y < 2 || x >= W - 2 || y >= H - 2;
        ck_assert(frame == (bool)isnan(got[i]));
    }
}
END_TEST

START_TEST(edge_clamp_repeats_the_edge_pixel)
{
    struct step s = {0};
    float got[W * H];
    double only_left[9] = {0, 0, 0, 1, 0, 0, 0, 0, 0};
    give_weights(&s, only_left, 9);
    give(&s, "edge", &s.edge, "clamp", 0);
    run(&s, "A", got);
    ck_assert(got[3 * W] == image_a[3 * W]);
    ck_assert(got[3 * W + 5] == image_a[3 * W + 4]);
}
END_TEST

/* -- bands ------------------------------------------------------------------------------------- */

START_TEST(changes_the_bands_listed_and_no_other)
{
    struct step s = {0};
    double weight[9];
    float got[W * H];
    give_band(&s, NULL, "B");
    gaussian_weights(weight, 3, 0.8);
    run(&s, "B", got);
    check_plane(got, image_b, weight, 3);
    run(&s, "A", got);
    ck_assert(memcmp(got, image_a, sizeof got) == 0);
}
END_TEST

START_TEST(makes_new_bands_of_a_map)
{
    struct step s = {0};
    double weight[9];
    float got[W * H];
    give_band(&s, "SMOOTH", "A");
    gaussian_weights(weight, 3, 0.8);
    run(&s, "SMOOTH", got);
    check_plane(got, image_a, weight, 3);
    run(&s, "A", got);
    ck_assert(memcmp(got, image_a, sizeof got) == 0);
}
END_TEST

START_TEST(asks_for_half_its_size_as_halo)
{
    struct step s = {0};
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    const char *const output = "A";
    give(&s, "size", &s.size, NULL, 11);
    ck_assert_int_eq(create(&s, &output, 1, &diag, &chain), 0);
    ck_assert_int_eq(pb_chain_halo(chain), 5);
    pb_chain_destroy(chain);
}
END_TEST

/* -- refusals ---------------------------------------------------------------------------------- */

/* name: key in the message; NULL = an entry. */
static void check_refused(const struct step *s, int kind, const struct pb_item *item,
                          const char *name, const char *words)
{
    const struct pb_section section = pb_op_section(pb_op_find("convolve"));
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    const char *const output = "A";
    ck_assert_int_eq(create(s, &output, 1, &diag, &chain), -EINVAL);
    ck_assert_msg(strstr(diag.msg, words) != NULL, "%s", diag.msg);
    ck_assert_int_eq(diag.kind, kind);
    ck_assert_ptr_eq(diag.item, item);
    const struct pb_key *key = pb_key_of(&section, &s->params, diag.member);
    ck_assert_pstr_eq(key ? key->name : NULL, name);
}

START_TEST(refuses_weights_that_fill_no_square)
{
    struct step s = {0};
    double weight[225] = {0};
    give_weights(&s, weight, 10);
    check_refused(&s, PB_DIAG_VALUE, s.weight, NULL, "10 weights do not fit any size");
    give_weights(&s, weight, 16);
    check_refused(&s, PB_DIAG_VALUE, s.weight, NULL, "16 weights do not fit any size");
    give_weights(&s, weight, 1);
    check_refused(&s, PB_DIAG_VALUE, s.weight, NULL, "1 weights do not fit any size");
    give_weights(&s, weight, 9);
    give(&s, "size", &s.size, NULL, 5);
    check_refused(&s, PB_DIAG_VALUE, s.weight, NULL, "9 weights do not fit 'size'");
}
END_TEST

START_TEST(refuses_parameters_that_exclude_each_other)
{
    struct step s = {0};
    double weight[9] = {0};
    give_weights(&s, weight, 9);
    give(&s, "kernel", &s.kernel, "box", 0);
    check_refused(&s, PB_DIAG_VALUE, NULL, "kernel", "'kernel' and 'weights' exclude each other");
    struct step t = {0};
    give(&t, "kernel", &t.kernel, "sobel", 0);
    give(&t, "sigma", &t.sigma, NULL, 2);
    check_refused(&t, PB_DIAG_VALUE, NULL, "sigma", "'sigma' belongs to the gaussian");
    struct step u = {0};
    give(&u, "kernel", &u.kernel, "laplacian", 0);
    give(&u, "size", &u.size, NULL, 5);
    check_refused(&u, PB_DIAG_VALUE, NULL, "size", "this kernel has 3 x 3 weights");
    struct step v = {0};
    give(&v, "kernel", &v.kernel, "sobel", 0);
    give(&v, "size", &v.size, NULL, 29);
    check_refused(&v, PB_DIAG_VALUE, NULL, "size", "kernel sobel has size 27 at most");
}
END_TEST

START_TEST(names_a_band_that_is_not_there)
{
    struct step s = {0};
    give_band(&s, NULL, "C");
    check_refused(&s, PB_DIAG_BAND, s.bands, NULL, "C");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_convolve");
    TCase *tcase = tcase_create("op_convolve");
    tcase_add_unchecked_fixture(tcase, make_images, NULL);
    tcase_add_test(tcase, smooths_with_a_gaussian_of_the_usual_sigma);
    tcase_add_test(tcase, default_is_a_gaussian_of_size_3_over_all_bands);
    tcase_add_test(tcase, averages_with_a_box);
    tcase_add_test(tcase, finds_edges_with_sobel);
    tcase_add_test(tcase, lays_own_weights_over_the_image_as_written);
    tcase_add_test(tcase, edge_nodata_leaves_a_frame_without_data);
    tcase_add_test(tcase, edge_clamp_repeats_the_edge_pixel);
    tcase_add_test(tcase, changes_the_bands_listed_and_no_other);
    tcase_add_test(tcase, makes_new_bands_of_a_map);
    tcase_add_test(tcase, asks_for_half_its_size_as_halo);
    tcase_add_test(tcase, refuses_weights_that_fill_no_square);
    tcase_add_test(tcase, refuses_parameters_that_exclude_each_other);
    tcase_add_test(tcase, names_a_band_that_is_not_there);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
