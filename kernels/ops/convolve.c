/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * convolve: turns its parameters into a focal operation descriptor; the focal operation does the
 * rest. Gaussian and box are separable, which costs 2 n instead of n * n multiplications a pixel;
 * weights of the user's own are taken as they are. "kernel" and "size" have no default in the
 * table, so that "not given" can be told from "given": own weights go with neither, and bring their
 * size along. */
#include "kernels/expr/focal_args.h"
#include "kernels/graph/builder.h"

#include <math.h>
#include <string.h>

enum { P_KERNEL, P_SIZE, P_SIGMA, P_WEIGHTS, P_EDGE, P_BANDS, P_COUNT };

static const struct pb_param params[P_COUNT] = {
    [P_KERNEL] = {.name = "kernel",
                  .type = PB_PARAM_ENUM,
                  .choices = "gaussian|box|sobel",
                  .doc = "which weights; gaussian unless weights are given"},
    [P_SIZE] = {.name = "size",
                .type = PB_PARAM_INT,
                .min = 3,
                .max = PB_FOCAL_SIDE_MAX,
                .doc = "side of the neighbourhood in pixels, odd; 3 unless weights say otherwise"},
    [P_SIGMA] = {.name = "sigma",
                 .type = PB_PARAM_NUMBER,
                 .min = 0,
                 .max = 100,
                 .def = "0",
                 .doc = "of the gaussian, in pixels; 0 = 0.3 * ((size - 1) / 2 - 1) + 0.8"},
    [P_WEIGHTS] = {.name = "weights",
                   .type = PB_PARAM_WEIGHTS,
                   .min = -1e9,
                   .max = 1e9,
                   .doc = "size * size weights of your own, row by row from the upper left"},
    [P_EDGE] = PB_PARAM_FOCAL_EDGE("reflect"),
    [P_BANDS] = PB_PARAM_FOCAL_BANDS,
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
    s->kind = PB_FOCAL_GRADIENT;
}

static int set_own(struct pb_focal *s, const struct pb_op_args *args, struct pb_builder *b)
{
    const struct pb_arg *weights = &args->arg[P_WEIGHTS], *size = &args->arg[P_SIZE];
    if (args->arg[P_KERNEL].n > 0) {
        return pb_builder_mistake(b, PB_DIAG_VALUE, args->arg[P_KERNEL].items, 0,
                                  "convolve: 'kernel' and 'weights' exclude each other; give one");
    }
    int side = 3;
    while (side < PB_FOCAL_SIDE_MAX && (size_t)side * (size_t)side < weights->n) {
        side += 2;
    }
    if ((size_t)side * (size_t)side != weights->n || (size->n > 0 && size->items[0].num != side)) {
        return pb_builder_mistake(
            b, PB_DIAG_VALUE, weights->items, 0,
            "convolve: %zu weights do not fit %s; give size * size of them: 9, 25, "
            "49, 81, 121, 169 or 225",
            weights->n, size->n > 0 ? "'size'" : "any size");
    }
    for (size_t i = 0; i < weights->n; i++) {
        s->weight[i] = (float)weights->items[i].num;
    }
    s->kind = PB_FOCAL_FULL;
    s->radius = side / 2;
    return 0;
}

static int set_named(struct pb_focal *s, const struct pb_op_args *args, struct pb_builder *b)
{
    const struct pb_arg *kernel = &args->arg[P_KERNEL];
    const char *name = kernel->n > 0 ? kernel->items[0].text : "gaussian";
    int radius = pb_focal_args_radius(&args->arg[P_SIZE], "convolve", b);
    if (radius < 0) {
        return radius;
    }
    s->radius = radius;
    if (strcmp(name, "box") == 0) {
        set_box(s);
    } else if (strcmp(name, "sobel") == 0) {
        set_sobel(s);
    } else {
        const struct pb_arg *sigma = &args->arg[P_SIGMA];
        set_gaussian(s, sigma->n > 0 ? sigma->items[0].num : 0);
    }
    return 0;
}

static int check_sigma(const struct pb_op_args *args, struct pb_builder *b)
{
    const struct pb_arg *kernel = &args->arg[P_KERNEL], *sigma = &args->arg[P_SIGMA];
    bool gaussian = args->arg[P_WEIGHTS].n == 0 &&
                    (kernel->n == 0 || strcmp(kernel->items[0].text, "gaussian") == 0);
    if (!gaussian && sigma->n > 0 && sigma->items[0].num != 0) {
        return pb_builder_mistake(b, PB_DIAG_VALUE, sigma->items, 0,
                                  "convolve: 'sigma' belongs to the gaussian kernel; leave it out");
    }
    return 0;
}

static int make_focal(struct pb_focal *s, const struct pb_op_args *args, struct pb_builder *b)
{
    s->edge = pb_focal_args_edge(&args->arg[P_EDGE]);
    int sigma = check_sigma(args, b);
    int weights = args->arg[P_WEIGHTS].n > 0 ? set_own(s, args, b) : set_named(s, args, b);
    return sigma < 0 ? sigma : weights;
}

/* -- building ---------------------------------------------------------------------------------- */

static int build(const struct pb_op_args *args, struct pb_builder *b)
{
    struct pb_focal focal;
    memset(&focal, 0, sizeof focal); /* all of it: equal operations are equal bytes */
    int rc = make_focal(&focal, args, b);
    return pb_focal_args_define(&args->arg[P_BANDS], rc < 0 ? NULL : &focal, b);
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
    .summary = "smooths bands or finds their edges with a k x k neighbourhood",
    .doc =
        "Replaces each pixel by a weighted sum of its neighbourhood. gaussian and box smooth "
        "(their\n"
        "weights add up to 1); sobel gives the length of the gradient by the usual whole-number\n"
        "weights, not scaled (a step of height 1 gives 4 with size 3). Weights of your own are\n"
        "laid over the image as written (no mirroring) and not scaled. A neighbour without data\n"
        "gives a pixel without data. Outside the image, edge: reflect mirrors without repeating "
        "the\n"
        "edge pixel, clamp repeats the edge pixel, nodata gives pixels without data.\n"
        "\n"
        "  - convolve: {kernel: gaussian, size: 5, bands: [R, N]}\n"
        "  - convolve: {kernel: sobel, bands: {EDGES: N}}\n"
        "  - convolve: {weights: [0, -1, 0, -1, 4, -1, 0, -1, 0], bands: {LAP: R}}\n",
    .params = params,
    .n_params = P_COUNT,
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
