/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * convolve: turns its parameters into a focal operation descriptor; the focal operation does the
 * rest. Gaussian and box are separable, which costs 2 n instead of n * n multiplications a pixel;
 * weights of the user's own are, too, where they are a column times a row to the last bit. "kernel"
 * and "size" have no default in the table: own weights go with neither, and bring their size along.
 */
#include "kernels/expr/focal_args.h"
#include "kernels/graph/builder.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum kernel { GAUSSIAN, BOX, SOBEL, PREWITT, SCHARR, LAPLACIAN, LAPLACIAN8 };

#define SOBEL_MAX 27 /* the weights are whole numbers that float32 holds */

#define SIGMA_LEAST 0.01 /* the pixel itself; smaller ones would not be numbers */

struct convolve {
    int32_t kernel; /* enum kernel */
    int32_t size, edge;
    bool has_kernel, has_size;
    double sigma; /* 0 = from the size */
    struct pb_items weights, bands;
};

static const struct pb_key keys[] = {
    {.name = "kernel",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct convolve, kernel),
     .more = offsetof(struct convolve, has_kernel),
     .choices = "gaussian|box|sobel|prewitt|scharr|laplacian|laplacian8",
     .doc = "Which weights; gaussian unless weights are given."},
    {.name = "size",
     .type = PB_KEY_ODD,
     .offset = offsetof(struct convolve, size),
     .more = offsetof(struct convolve, has_size),
     .min = 3,
     .max = PB_FOCAL_SIDE_MAX,
     .doc = "Side of the neighbourhood in pixels, odd; default: that of weights, else 3."},
    {.name = "sigma",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct convolve, sigma),
     .min = 0,
     .max = 100,
     .def = "0",
     .doc = "Of the gaussian, in pixels; 0: 0.3 * ((size - 1) / 2 - 1) + 0.8."},
    {.name = "weights",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct convolve, weights),
     .min = -1e9,
     .max = 1e9,
     .doc = "size * size weights of your own, row by row from the upper left."},
    PB_KEY_FOCAL_EDGE(struct convolve, "reflect"),
    PB_KEY_FOCAL_BANDS(struct convolve),
};

/* -- weights ----------------------------------------------------------------------------------- */

static void set_box(struct pb_focal *s)
{
    int side = 2 * s->radius + 1;
    for (int i = 0; i < side; i++) {
        s->weight_x[i] = s->weight_y[i] = 1.0f / (float)side;
    }
}

/* The length of the gradient: differences along a row or column, sums of three across. */
static void set_gradient(struct pb_focal *s, float outer, float middle)
{
    s->weight_x[0] = -1;
    s->weight_x[2] = 1;
    s->weight_y[0] = s->weight_y[2] = outer;
    s->weight_y[1] = middle;
    s->kind = PB_FOCAL_MAGNITUDE;
}

/* diagonal: the weight of the four pixels at the corners. */
static void set_laplacian(struct pb_focal *s, float diagonal)
{
    for (int i = 0; i < 9; i++) {
        s->weight[i] = i % 2 == 1 ? 1 : diagonal;
    }
    s->weight[4] = -4 - 4 * diagonal;
    s->kind = PB_FOCAL_FULL;
}

/* Sobel of any size: differences [-1 1] along, sums [1 1] across, both smoothed by [1 1] as often
 * as the size wants: [-1 0 1] and [1 2 1], [-1 -2 0 2 1] and [1 4 6 4 1]. Whole numbers, exact. */
static void set_sobel(struct pb_focal *s)
{
    int side = 2 * s->radius + 1;
    float *along = s->weight_x, *across = s->weight_y;
    along[0] = -1;
    along[1] = 1;
    across[0] = across[1] = 1;
    for (int n = 2; n < side; n++) {
        along[n] = across[n] = 0;
        for (int i = n; i > 0; i--) {
            along[i] += along[i - 1];
            across[i] += across[i - 1];
        }
    }
    s->kind = PB_FOCAL_MAGNITUDE;
}

/* Whether the weights are weight_y times row `p` of themselves to the last bit, which is then
 * weight_x. Products of two float32 are exact in float64. */
static bool is_multiple_of_row(struct pb_focal *s, int side, int p)
{
    const float *row = s->weight + (size_t)p * (size_t)side;
    int q = 0;
    while (q < side && row[q] == 0) {
        q++;
    }
    if (q == side) {
        return false;
    }
    memcpy(s->weight_x, row, (size_t)side * sizeof *row);
    for (int i = 0; i < side; i++) {
        s->weight_y[i] = s->weight[i * side + q] / row[q];
        for (int j = 0; j < side; j++) {
            if ((double)s->weight_y[i] * (double)row[j] != (double)s->weight[i * side + j]) {
                return false;
            }
        }
    }
    return true;
}

/* FULL, or SEPARABLE where the weights are a column times a row. */
static void set_kind(struct pb_focal *s)
{
    const int side = 2 * s->radius + 1;
    for (int p = 0; p < side; p++) {
        if (is_multiple_of_row(s, side, p)) {
            memset(s->weight, 0, sizeof s->weight); /* equal operations are equal bytes */
            s->kind = PB_FOCAL_SEPARABLE;
            return;
        }
    }
    memset(s->weight_x, 0, sizeof s->weight_x);
    memset(s->weight_y, 0, sizeof s->weight_y);
    s->kind = PB_FOCAL_FULL;
}

static int set_own(struct pb_focal *s, const struct convolve *c, struct pb_builder *b)
{
    if (c->has_kernel) {
        return pb_builder_wrong(b, &c->kernel,
                                "'kernel' and 'weights' exclude each other; give one");
    }
    int side = 3;
    while (side < PB_FOCAL_SIDE_MAX && (size_t)side * (size_t)side < c->weights.n) {
        side += 2;
    }
    if ((size_t)side * (size_t)side != c->weights.n || (c->has_size && c->size != side)) {
        return pb_builder_mistake(b, PB_DIAG_VALUE, c->weights.items, 0,
                                  "%zu weights do not fit %s; give size * size of them: 9, 25, "
                                  "49 and so on to 961",
                                  c->weights.n, c->has_size ? "'size'" : "any size");
    }
    for (size_t i = 0; i < c->weights.n; i++) {
        s->weight[i] = (float)c->weights.items[i].num;
    }
    s->radius = side / 2;
    set_kind(s);
    return 0;
}

static int set_named(struct pb_focal *s, const struct convolve *c, struct pb_builder *b)
{
    const int32_t size = c->has_size ? c->size : 3;
    s->radius = size / 2;
    if (c->kernel >= PREWITT && size != 3) {
        return pb_builder_wrong(b, &c->size, "this kernel has 3 x 3 weights; leave 'size' out");
    }
    if (c->kernel == SOBEL && size > SOBEL_MAX) {
        return pb_builder_wrong(b, &c->size, "kernel sobel has size %d at most", SOBEL_MAX);
    }
    switch ((enum kernel)c->kernel) {
    case GAUSSIAN:
        pb_focal_args_gaussian(s, c->sigma);
        break;
    case BOX:
        set_box(s);
        break;
    case SOBEL:
        set_sobel(s);
        break;
    case PREWITT:
        set_gradient(s, 1, 1);
        break;
    case SCHARR:
        set_gradient(s, 3, 10);
        break;
    case LAPLACIAN:
        set_laplacian(s, 0);
        break;
    case LAPLACIAN8:
        set_laplacian(s, 1);
        break;
    }
    return 0;
}

static int make_focal(struct pb_focal *s, const struct convolve *c, struct pb_builder *b)
{
    int rc = 0;
    s->edge = pb_focal_args_edge(c->edge);
    if (c->sigma != 0 && (c->kernel != GAUSSIAN || c->weights.n > 0)) {
        rc = pb_builder_wrong(b, &c->sigma, "'sigma' belongs to the gaussian kernel; leave it out");
    }
    if (c->sigma > 0 && c->sigma < SIGMA_LEAST) {
        rc = pb_builder_wrong(b, &c->sigma, "'sigma' is 0 or at least %g pixels", SIGMA_LEAST);
    }
    if (c->weights.is_partial) {
        return -EINVAL; /* told by who read them */
    }
    if (c->weights.n > 0) {
        return set_own(s, c, b) < 0 ? -EINVAL : rc;
    }
    return set_named(s, c, b) < 0 ? -EINVAL : rc;
}

/* -- building ---------------------------------------------------------------------------------- */

static int build(const void *params, struct pb_builder *b)
{
    const struct convolve *c = params;
    struct pb_focal focal;
    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    int rc = make_focal(&focal, c, b);
    return pb_focal_args_define(&c->bands, rc < 0 ? NULL : &focal, b);
}

/* Where the weights add up to 1. */
static bool keeps_tags(const void *params)
{
    const struct convolve *const c = params;
    double sum = 0;

    for (size_t i = 0; i < c->weights.n; i++)
        sum += c->weights.items[i].num;
    return c->weights.n > 0 ? fabs(sum - 1) < 1e-6 : c->kernel == GAUSSIAN || c->kernel == BOX;
}

static const struct pb_op_case cases[] = {
    {"gaussian",
     "N",
     true,
     {{"kernel", {{.text = "gaussian"}}}, {"size", {{.text = "5", .num = 5}}}}},
    {"sobel",
     "EDGES",
     true,
     {{"kernel", {{.text = "sobel"}}}, {"bands", {{.key = "EDGES", .text = "N"}}}}},
    {"gaussian 31",
     "N",
     true,
     {{"kernel", {{.text = "gaussian"}}}, {"size", {{.text = "31", .num = 31}}}}},
    {"scharr", "N", true, {{"kernel", {{.text = "scharr"}}}}},
    {"laplacian", "N", true, {{"kernel", {{.text = "laplacian"}}}}},
};

const struct pb_op pb_op_convolve = {
    .name = "convolve",
    .doc =
        {
            .summary = "smooths bands or finds their edges with a k x k neighbourhood",
            .formula =
                "The sum of weight * value over size * size pixels. gaussian: weights "
                "exp(-(x^2 + y^2) / (2 sigma^2)), which add up to 1; box: equal weights, which "
                "add up to 1; sobel, prewitt, scharr: sqrt(gx^2 + gy^2), the length of the "
                "gradient, with [-1 0 1] along and [1 2 1], [1 1 1], [3 10 3] across; laplacian: "
                "[0 1 0; 1 -4 1; 0 1 0], laplacian8: [1 1 1; 1 -8 1; 1 1 1].",
            .units =
                "gaussian, box: those of the band. sobel: those of the band, times a factor (a "
                "step of height 1 gives 4 with size 3; prewitt 3, scharr 16). laplacian: those of "
                "the band. Weights: as they make them.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it is outside the image.",
            .source = "sobel: I. Sobel and G. Feldman, A 3x3 Isotropic Gradient Operator for Image "
                      "Processing, Stanford Artificial Intelligence Project 1968; larger sizes by "
                      "smoothing with [1 1]. gaussian: the rule for sigma is that of OpenCV's "
                      "getGaussianKernel. prewitt, laplacian: those of scipy.ndimage; scharr: that "
                      "of OpenCV.",
            .notes =
                "Weights of your own are laid over the image as written (no mirroring) and not\n"
                "scaled. Sums are of float32, term by term: row by row from the upper left; of\n"
                "gaussian, box, the gradients, and own weights that are a column times a row to\n"
                "the last bit, along each row from the left and then down the rows, which takes\n"
                "2 n instead of n * n multiplications. Outside the image, edge: reflect mirrors "
                "without repeating the edge\n"
                "pixel, clamp repeats the edge pixel, nodata gives pixels without data.\n"
                "\n"
                "  - convolve: {kernel: gaussian, size: 5, bands: [R, N]}\n"
                "  - convolve: {kernel: sobel, bands: {EDGES: N}}\n"
                "  - convolve: {weights: [0, -1, 0, -1, 4, -1, 0, -1, 0], bands: {EDGES: R}}\n"
                "  - convolve: {kernel: laplacian8, bands: {LAP: R}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct convolve),
    .keeps_tags = keeps_tags,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
