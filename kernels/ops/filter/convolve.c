/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * convolve: turns its parameters into a focal operation descriptor; the focal operation does the
 * rest. Gaussian and box are separable, which costs 2 n instead of n * n multiplications a pixel;
 * weights of the user's own are taken as they are. "kernel" and "size" have no default in the
 * table: own weights go with neither, and bring their size along. */
#include "kernels/expr/focal_args.h"
#include "kernels/graph/builder.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum kernel { GAUSSIAN, BOX, SOBEL };

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
     .choices = "gaussian|box|sobel",
     .doc = "Which weights; gaussian unless weights are given."},
    {.name = "size",
     .type = PB_KEY_ODD,
     .offset = offsetof(struct convolve, size),
     .more = offsetof(struct convolve, has_size),
     .min = 3,
     .max = PB_FOCAL_SIDE_MAX,
     .doc = "Side of the neighbourhood in pixels, odd; 3 unless weights say otherwise."},
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

/* The rule for sigma is that of OpenCV's getGaussianKernel. */
static void set_gaussian(struct pb_focal *s, double sigma)
{
    int side = 2 * s->radius + 1;
    double weight[PB_FOCAL_SIDE_MAX], sum = 0;
    if (sigma <= 0) {
        sigma = 0.3 * ((side - 1) * 0.5 - 1) + 0.8;
    }
    for (int i = 0; i < side; i++) {
        double d = i - s->radius;
        weight[i] = exp(-d * d / (2 * sigma * sigma));
        sum += weight[i];
    }
    for (int i = 0; i < side; i++) {
        s->weight_x[i] = s->weight_y[i] = (float)(weight[i] / sum);
    }
}

static void set_box(struct pb_focal *s)
{
    int side = 2 * s->radius + 1;
    for (int i = 0; i < side; i++) {
        s->weight_x[i] = s->weight_y[i] = 1.0f / (float)side;
    }
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
    s->kind = PB_FOCAL_FULL;
    s->radius = side / 2;
    return 0;
}

static void set_named(struct pb_focal *s, const struct convolve *c)
{
    s->radius = (c->has_size ? c->size : 3) / 2;
    if (c->kernel == BOX) {
        set_box(s);
    } else if (c->kernel == SOBEL) {
        set_sobel(s);
    } else {
        set_gaussian(s, c->sigma);
    }
}

static int make_focal(struct pb_focal *s, const struct convolve *c, struct pb_builder *b)
{
    int rc = 0;
    s->edge = pb_focal_args_edge(c->edge);
    if (c->sigma != 0 && (c->kernel != GAUSSIAN || c->weights.n > 0)) {
        rc = pb_builder_wrong(b, &c->sigma, "'sigma' belongs to the gaussian kernel; leave it out");
    }
    if (c->weights.is_partial) {
        return -EINVAL; /* told by who read them */
    }
    if (c->weights.n > 0) {
        return set_own(s, c, b) < 0 ? -EINVAL : rc;
    }
    set_named(s, c);
    return rc;
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

static const struct pb_op_case cases[] = {
    {"gaussian",
     "N",
     true,
     {{"kernel", {{.text = "gaussian"}}}, {"size", {{.text = "5", .num = 5}}}}},
    {"sobel",
     "EDGES",
     true,
     {{"kernel", {{.text = "sobel"}}}, {"bands", {{.key = "EDGES", .text = "N"}}}}},
};

const struct pb_op pb_op_convolve = {
    .name = "convolve",
    .doc =
        {
            .summary = "smooths bands or finds their edges with a k x k neighbourhood",
            .formula =
                "The sum of weight * value over size * size pixels. gaussian: weights "
                "exp(-(x^2 + y^2) / (2 sigma^2)), which add up to 1; box: equal weights, which "
                "add up to 1; sobel: sqrt(gx^2 + gy^2), the length of the gradient.",
            .units =
                "gaussian, box: those of the band. sobel: those of the band, times a factor (a "
                "step of height 1 gives 4 with size 3). Weights: as they make them.",
            .nodata = "A pixel is invalid where one of its neighbourhood is, and with edge: nodata "
                      "where a part of it lies outside the image.",
            .source = "sobel: I. Sobel and G. Feldman, A 3x3 Isotropic Gradient Operator for Image "
                      "Processing, Stanford Artificial Intelligence Project 1968; larger sizes by "
                      "smoothing with [1 1]. gaussian: the rule for sigma is that of OpenCV's "
                      "getGaussianKernel.",
            .notes =
                "Weights of your own are laid over the image as written (no mirroring) and not\n"
                "scaled. Outside the image, edge: reflect mirrors without repeating the edge\n"
                "pixel, clamp repeats the edge pixel, nodata gives pixels without data.\n"
                "\n"
                "  - convolve: {kernel: gaussian, size: 5, bands: [R, N]}\n"
                "  - convolve: {kernel: sobel, bands: {EDGES: N}}\n"
                "  - convolve: {weights: [0, -1, 0, -1, 4, -1, 0, -1, 0], bands: {LAP: R}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct convolve),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
