/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pca: principal components of bands. A pass before the one that makes the pixels finds means,
 * covariances and eigenvectors (kernels/reduce/components.h); a component is then a weighted sum,
 * whose weights are numbers of the chain. */
#include "kernels/expr/band_list.h"

#include <errno.h>
#include <float.h>
#include <string.h>

enum { BANDS_MAX = PB_COMPONENTS_MAX };

struct pca {
    struct pb_items bands, as;
    char *mask;
    int32_t matrix;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pca, bands),
     .required = true,
     .doc = "The bands, 2 to 16, on one grid."},
    {.name = "as",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pca, as),
     .required = true,
     .makes_bands = true,
     .doc = "Names of the components that are made, from the first one on: [PC1, PC2, PC3]."},
    {.name = "matrix",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pca, matrix),
     .choices = "covariance|correlation",
     .def = "covariance",
     .doc = "Of which matrix they are the components; correlation: bands are divided by their "
            "standard deviation, so that those of other units count alike."},
    {.name = "mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pca, mask),
     .doc = "A band: the numbers are those of the pixels where it is valid and not 0. All pixels "
            "are transformed. On the grid of the bands."},
};

/* A step while it is built. */
struct work {
    const struct pca *step;
    struct pb_builder *b;
    struct pb_components_shape shape;
    pb_value band[BANDS_MAX];
    int32_t loop; /* the reduction */
};

static pb_value op(const struct work *w, enum pb_vm_op code, pb_value x, pb_value y)
{
    return pb_builder_emit(w->b, code, x, y, -1);
}

static pb_value where(const struct work *w, pb_value condition, pb_value x, double other)
{
    return pb_builder_emit(w->b, PB_VM_WHERE, condition, x,
                           pb_builder_constant(w->b, (float)other));
}

static pb_value result(const struct work *w, uint32_t k)
{
    return pb_builder_loop_result(w->b, w->loop, k);
}

/* The bands. False: a mistake was told. */
static bool find_bands(struct work *w)
{
    const struct pb_items *const names = &w->step->bands;
    bool good = true;

    if (names->n < 2 || names->n > BANDS_MAX) {
        if (!names->is_partial)
            (void)pb_builder_wrong(w->b, names, "2 to %d bands have components, not %zu", BANDS_MAX,
                                   names->n);
        return false;
    }
    if (w->step->as.n > names->n) {
        (void)pb_builder_wrong(w->b, &w->step->as, "%zu bands have %zu components, not %zu",
                               names->n, names->n, w->step->as.n);
        return false;
    }
    for (size_t i = 0; i < names->n; i++) {
        const pb_value v = pb_band_list_at(names, w->b, i).value;

        w->band[i] = v;
        good = good && v != PB_VALUE_POISON && v >= 0;
        if (good && pb_builder_grid(w->b, v) < 0) {
            (void)pb_builder_mistake(w->b, PB_DIAG_BAND, &names->items[i], 0,
                                     "a number has no variance");
            good = false;
        }
    }
    w->shape.bands = (uint32_t)names->n;
    return good;
}

/* Makes the reduction of the pixels that count: valid in all bands, and of the mask. */
static void reduce(struct work *w, pb_value mask)
{
    const struct pb_reduce reduce = pb_reduce_components(&w->shape);
    pb_value input[PB_REDUCE_INPUTS_MAX];

    memcpy(input, w->band, sizeof w->band);
    if (mask >= 0)
        input[0] = where(w, mask, input[0], (double)NAN);
    w->loop = pb_builder_loop(w->b, &reduce, NULL);
    if (w->loop >= 0 && pb_builder_loop_over(w->b, w->loop, input) < 0)
        w->loop = -1;
    for (uint32_t i = 0; i < w->step->as.n && w->loop >= 0; i++)
        (void)pb_builder_loop_tell(w->b, w->loop, pb_components_at(&w->shape, i),
                                   PB_COMPONENT_VECTOR + w->shape.bands,
                                   pb_item_band(&w->step->as.items[i]));
    for (uint32_t i = 0; i < w->shape.bands && w->loop >= 0; i++)
        (void)pb_builder_loop_tell(w->b, w->loop, pb_components_of_band(&w->shape, i), 2,
                                   pb_item_band(&w->step->bands.items[i]));
}

/* What band i weighs: of correlations over its deviation, and nothing where it has none. */
static pb_value weight(const struct work *w, uint32_t component, uint32_t i)
{
    const pb_value element =
        result(w, pb_components_at(&w->shape, component) + PB_COMPONENT_VECTOR + i);

    if (!w->shape.correlation)
        return element;
    const pb_value deviation = result(w, pb_components_of_band(&w->shape, i) + 1);
    const pb_value spread = op(w, PB_VM_GT, deviation, pb_builder_constant(w->b, 0.0f));
    return where(w, spread, op(w, PB_VM_DIV, element, deviation), 0.0);
}

static pb_value component(const struct work *w, uint32_t c)
{
    pb_value sum = -1;

    for (uint32_t i = 0; i < w->shape.bands; i++) {
        const pb_value apart =
            op(w, PB_VM_SUB, w->band[i], result(w, pb_components_of_band(&w->shape, i)));
        const pb_value part = op(w, PB_VM_MUL, apart, weight(w, c, i));

        sum = i == 0 ? part : op(w, PB_VM_ADD, sum, part);
    }
    return sum;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pca *const step = params;
    struct work w = {.step = step, .b = b, .loop = -1};
    const pb_value mask = step->mask ? pb_band_list_named(b, &step->mask) : -1;
    const bool good = find_bands(&w) && mask != PB_VALUE_POISON;
    pb_value made[BANDS_MAX];
    int rc = 0;

    w.shape.correlation = step->matrix == 1;
    if (good)
        reduce(&w, mask);
    for (uint32_t i = 0; i < step->as.n && i < BANDS_MAX; i++) /* before a band is replaced */
        made[i] = good && w.loop >= 0 ? component(&w, i) : PB_VALUE_POISON;
    for (uint32_t i = 0; i < step->as.n && i < BANDS_MAX && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&step->as.items[i]), made[i]);
    return rc;
}

static const struct pb_op_case cases[] = {
    {"three bands",
     "PC2",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}, {.text = "S1"}}},
      {"as", {{.text = "PC1"}, {.text = "PC2"}, {.text = "PC3"}}}}},
    {"correlations of a mask",
     "PC1",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}}},
      {"as", {{.text = "PC1"}}},
      {"matrix", {{.text = "correlation"}}},
      {"mask", {{.text = "G"}}}}},
};

const struct pb_op pb_op_pca = {
    .name = "pca",
    .doc =
        {
            .summary = "makes principal components of bands",
            .formula = "The sum of weight * (band - mean) over the bands, in float32, in their "
                       "order; weights are an eigenvector of the covariance matrix. Of "
                       "correlations, weight / standard deviation is in place of weight.",
            .units = "Those of the bands; of correlations, standard deviations.",
            .nodata = "A pixel is invalid where one of the bands is. Such pixels, and those that "
                      "the mask leaves out, do not count for the numbers.",
            .source = "Covariances are those of numpy.cov (n - 1). Eigenvectors by Jacobi "
                      "rotations: Golub and Van Loan, Matrix Computations, 8.5; their signs as "
                      "PCA of scikit-learn has them.",
            .notes =
                "Components are ordered by their eigenvalues, the greatest first. The element of "
                "an eigenvector\n"
                "that is greatest in magnitude is positive. Sums are exact, so the numbers are the "
                "same whatever\n"
                "tiles, threads and device; the scene is read a second time for them. A band of "
                "one "
                "value weighs nothing.\n"
                "The report and the STAC item have the eigenvalue, explained share and weights of "
                "each component, and\n"
                "mean and standard deviation of each band.\n"
                "\n"
                "  - pca: {bands: [B, G, R, N, S1, S2], as: [PC1, PC2, PC3]}\n"
                "  - pca: {bands: [R, N, DEM], matrix: correlation, mask: CLEAR, as: [PC1]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pca),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
