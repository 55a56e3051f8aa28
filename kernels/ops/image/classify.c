/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * classify: classes of pixels that are found in the image itself. Of k-means the pixels of a round
 * are the classes by its centres, and the loop's reduction makes the next centres of them; the
 * pixels of the product are made in the same way from the centres of the last round. */
#include "kernels/expr/band_list.h"

#include <errno.h>
#include <float.h>
#include <string.h>

enum method { KMEANS, OTSU };
enum init { DEVIATIONS, MINMAX, PERCENTILES };

struct classify {
    struct pb_items bands, as, centres;
    char *mask;
    int32_t method, init, classes, rounds;
};

static const struct pb_key keys[] = {
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct classify, method),
     .choices = "kmeans|otsu",
     .def = "kmeans",
     .doc = "kmeans: classes 1 to `classes` by the nearest centre. otsu: 0 up to a threshold, 1 "
            "above it."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct classify, bands),
     .required = true,
     .doc = "Bands that are looked at: up to 16, one for otsu."},
    {.name = "as",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct classify, as),
     .required = true,
     .makes_bands = true,
     .doc = "Name of the band of classes."},
    {.name = "classes",
     .type = PB_KEY_INT,
     .offset = offsetof(struct classify, classes),
     .min = 2,
     .max = PB_CLUSTERS_MAX,
     .def = "5",
     .doc = "How many classes; for kmeans."},
    {.name = "rounds",
     .type = PB_KEY_INT,
     .offset = offsetof(struct classify, rounds),
     .min = 1,
     .max = 1000,
     .def = "30",
     .doc = "How many times pixels are put into classes at most; for kmeans. It ends before when "
            "the centres do not change."},
    {.name = "init",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct classify, init),
     .choices = "deviations|minmax|percentiles",
     .def = "deviations",
     .doc = "Centres of the first round of kmeans, in every band: evenly spaced from one standard "
            "deviation below the mean to one above it; in the middle of equal parts of the range; "
            "or the medians of parts with as many pixels each."},
    {.name = "centres",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct classify, centres),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .doc = "Centres of the first round in place of `init`: of class 1 a number for each band, "
            "then of class 2, and so on. Classes keep this order."},
    {.name = "mask",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct classify, mask),
     .doc = "A band: centres or threshold are found from the pixels where it is valid and not 0. "
            "All pixels get a class. On the grid of the bands."},
};

/* A step while it is built. */
struct work {
    const struct classify *step;
    struct pb_builder *b;
    uint32_t n, classes;
    pb_value band[PB_CLUSTERS_BANDS_MAX];
    pb_value mask; /* -1: none */
};

static pb_value op(const struct work *w, enum pb_vm_op code, pb_value x, pb_value y)
{
    return pb_builder_emit(w->b, code, x, y, -1);
}

static pb_value number(const struct work *w, double value)
{
    return pb_builder_constant(w->b, (float)value);
}

/* x, or invalid where the condition is 0 or invalid. */
static pb_value only_where(const struct work *w, pb_value condition, pb_value x)
{
    return condition < 0 ? x
                         : pb_builder_emit(w->b, PB_VM_WHERE, condition, x, number(w, (double)NAN));
}

/* Where the pixels are that count: those of the mask that are valid in all bands. -1: everywhere,
 * as far as the one band is valid. */
static pb_value counted(const struct work *w)
{
    pb_value all = w->mask;

    for (uint32_t i = 0; i < w->n && w->n > 1; i++) {
        const pb_value size = pb_builder_emit(w->b, PB_VM_ABS, w->band[i], -1, -1);
        const pb_value valid = op(w, PB_VM_LE, size, number(w, (double)FLT_MAX));

        all = all < 0 ? valid : op(w, PB_VM_MUL, all, valid);
    }
    return all;
}

/* --- k-means --------------------------------------------------------------------------------- */

/* The class with the nearest centre, the lower one of two: squared distances in float32, added up
 * band by band. Invalid where no distance is a number of float32. */
static pb_value nearest(const struct work *w, const pb_value *centre)
{
    pb_value least = -1, class = number(w, 1.0);

    for (uint32_t c = 0; c < w->classes; c++) {
        pb_value sum = -1;

        for (uint32_t i = 0; i < w->n; i++) {
            const pb_value apart = op(w, PB_VM_SUB, w->band[i], centre[i * w->classes + c]);
            const pb_value square = op(w, PB_VM_MUL, apart, apart);

            sum = i == 0 ? square : op(w, PB_VM_ADD, sum, square);
        }
        if (c > 0)
            class = pb_builder_emit(w->b, PB_VM_WHERE, op(w, PB_VM_LT, sum, least),
                                    number(w, c + 1.0), class);
        least = c == 0 ? sum : op(w, PB_VM_MIN, sum, least);
    }
    return only_where(w, op(w, PB_VM_LE, least, number(w, (double)FLT_MAX)), class);
}

/* In the middle of part c of the range, which may be wider than float32 holds. */
static pb_value part_of_range(const struct work *w, pb_value x, uint32_t c)
{
    const struct pb_reduce moments = pb_reduce_moments();
    const pb_value half = number(w, 0.5);
    const pb_value least = pb_builder_reduce(w->b, &moments, x, PB_MOMENTS_MINIMUM, NULL);
    const pb_value most = pb_builder_reduce(w->b, &moments, x, PB_MOMENTS_MAXIMUM, NULL);
    const pb_value half_range =
        op(w, PB_VM_SUB, op(w, PB_VM_MUL, most, half), op(w, PB_VM_MUL, least, half));

    return op(w, PB_VM_ADD, least,
              op(w, PB_VM_MUL, half_range, number(w, (2.0 * c + 1.0) / w->classes)));
}

static pb_value around_mean(const struct work *w, pb_value x, uint32_t c)
{
    const struct pb_reduce moments = pb_reduce_moments();
    const pb_value mean = pb_builder_reduce(w->b, &moments, x, PB_MOMENTS_MEAN, NULL);
    const pb_value width = pb_builder_reduce(w->b, &moments, x, PB_MOMENTS_STDDEV, NULL);
    const double share = 2.0 * c / (w->classes - 1.0) - 1.0;

    return op(w, PB_VM_ADD, mean, op(w, PB_VM_MUL, width, number(w, share)));
}

/* The median of part c of the pixels in ascending order. A reduction finds a few percentiles. */
static pb_value part_of_pixels(const struct work *w, pb_value x, uint32_t c)
{
    const uint32_t k = c % PB_PERCENTILES_MAX, first = c - k, left = w->classes - first;
    const uint32_t n = left < PB_PERCENTILES_MAX ? left : PB_PERCENTILES_MAX;
    double p[PB_PERCENTILES_MAX];

    for (uint32_t i = 0; i < n; i++)
        p[i] = 100.0 * (first + i + 0.5) / w->classes;
    const struct pb_reduce percentiles = pb_reduce_percentiles(p, n);
    return pb_builder_reduce(w->b, &percentiles, x, k, NULL);
}

/* The first centre of class c in a band, x being the band where its pixels count. */
static pb_value start_of(const struct work *w, pb_value x, uint32_t c)
{
    if (w->step->init == PERCENTILES)
        return part_of_pixels(w, x, c);
    return w->step->init == MINMAX ? part_of_range(w, x, c) : around_mean(w, x, c);
}

static int find_starts(const struct work *w, pb_value *out)
{
    const struct pb_items *const own = &w->step->centres;
    const pb_value where = counted(w);

    if (own->n > 0 && own->n != (size_t)w->classes * w->n)
        return own->is_partial ? -EINVAL
                               : pb_builder_mistake(w->b, PB_DIAG_VALUE, own->items, 0,
                                                    "'centres' has %zu numbers; %u classes of %u "
                                                    "band%s take %u",
                                                    own->n, w->classes, w->n, w->n == 1 ? "" : "s",
                                                    w->classes * w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        const pb_value x = own->n > 0 ? -1 : only_where(w, where, w->band[i]);

        for (uint32_t c = 0; c < w->classes; c++)
            out[i * w->classes + c] =
                own->n > 0 ? number(w, own->items[c * w->n + i].num) : start_of(w, x, c);
    }
    return 0;
}

/* The loop that moves the centres. In: those of the first round; out: those of the last. */
static void move_centres(const struct work *w, pb_value *centre)
{
    const struct pb_clusters_shape shape = {.classes = w->classes,
                                            .bands = w->n,
                                            .rounds = (uint32_t)w->step->rounds,
                                            .sorted = w->step->centres.n == 0};
    const struct pb_reduce reduce = pb_reduce_clusters(&shape);
    const uint32_t n = pb_clusters_centres(&shape);
    pb_value input[PB_REDUCE_INPUTS_MAX];
    int32_t loop = pb_builder_loop(w->b, &reduce, centre);

    input[0] = loop < 0 ? PB_VALUE_POISON : only_where(w, w->mask, nearest(w, centre));
    memcpy(&input[1], w->band, w->n * sizeof *input);
    if (loop >= 0 && pb_builder_loop_over(w->b, loop, input) < 0)
        loop = -1;
    for (uint32_t i = 0; i < n; i++)
        centre[i] = pb_builder_loop_result(w->b, loop, i);
    for (uint32_t i = 0; i < w->n && loop >= 0; i++)
        (void)pb_builder_loop_tell(w->b, loop, i * w->classes, w->classes,
                                   w->step->bands.items[i].text);
    if (loop >= 0)
        (void)pb_builder_loop_tell(w->b, loop, n, w->classes + 2, pb_item_band(w->step->as.items));
}

static pb_value kmeans(const struct work *w)
{
    pb_value centre[PB_REDUCE_NUMBERS_MAX];

    if (find_starts(w, centre) < 0)
        return PB_VALUE_POISON;
    move_centres(w, centre);
    return nearest(w, centre);
}

/* --- the step -------------------------------------------------------------------------------- */

static pb_value otsu(const struct work *w)
{
    const struct pb_reduce reduce = pb_reduce_threshold();
    const pb_value threshold =
        pb_builder_reduce(w->b, &reduce, only_where(w, w->mask, w->band[0]), PB_THRESHOLD_VALUE,
                          pb_item_band(w->step->as.items));

    return op(w, PB_VM_GT, w->band[0], threshold);
}

/* Whether the bands can be classified; w->band[0] is poison where a mistake was told before. */
static bool check_bands(struct work *w)
{
    const struct pb_items *const names = &w->step->bands;
    const bool one = w->step->method == OTSU;
    bool planes = false, good = true;

    if (names->n > (one ? 1 : PB_CLUSTERS_BANDS_MAX)) {
        (void)pb_builder_wrong(w->b, names, "%s takes %s, not %zu", one ? "otsu" : "kmeans",
                               one ? "one band" : "16 bands at most", names->n);
        return false;
    }
    for (size_t i = 0; i < names->n; i++) {
        const struct pb_item *const item = &names->items[i];

        w->band[w->n] = pb_band_list_at(names, w->b, i).value;
        planes =
            planes || w->band[w->n] == PB_VALUE_POISON || pb_builder_grid(w->b, w->band[w->n]) >= 0;
        good = good && w->band[w->n++] != PB_VALUE_POISON;
        if (item->key || strcmp(item->text, pb_item_band(w->step->as.items)) == 0) {
            (void)pb_builder_mistake(w->b, PB_DIAG_BAND, item, 0,
                                     item->key ? "'bands' is a list of bands here, not a map"
                                               : "'as' names a band that is looked at; give the "
                                                 "classes a name of their own");
            good = false;
        }
    }
    if (!planes)
        (void)pb_builder_wrong(w->b, names, "a number has no pixels that could be told apart");
    return good && planes;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct classify *const step = params;
    struct work w = {.step = step, .b = b, .classes = (uint32_t)step->classes, .mask = -1};
    pb_value class = PB_VALUE_POISON;

    if (step->as.n == 0 || step->bands.n == 0)
        return -EINVAL; /* a mistake took them away */
    if (step->mask)
        w.mask = pb_band_list_named(b, &step->mask);
    if (check_bands(&w) && w.mask != PB_VALUE_POISON)
        class = step->method == OTSU ? otsu(&w) : kmeans(&w);
    return pb_builder_define(b, pb_item_band(step->as.items), class);
}

/* Of k-means: centres down, sums up, until no centre changes or the rounds are over. */
static void exchange(const void *params, struct pb_op_exchange *out)
{
    const struct classify *const step = params;

    if (step->method != KMEANS)
        return;
    out->pattern = "alternating";
    out->n_args = 2;
    out->arg[0].name = "rounds";
    out->arg[0].value = (uint64_t)step->rounds;
    out->arg[1].name = "until_zero";
    out->arg[1].value = 1;
}

static const struct pb_op_case cases[] = {
    {"three bands",
     "CLASS",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}, {.text = "S1"}}},
      {"as", {{.text = "CLASS"}}},
      {"classes", {{.text = "7", .num = 7}}}}},
    {"one band, two parts",
     "WATER",
     true,
     {{"method", {{.text = "otsu"}}}, {"bands", {{.text = "N"}}}, {"as", {{.text = "WATER"}}}}},
};

const struct pb_op pb_op_classify = {
    .name = "classify",
    .doc =
        {
            .summary = "puts pixels into classes that are found in the whole image",
            .formula =
                "kmeans: the class whose centre has the least sum of (band - centre)^2, in "
                "float32, "
                "bands in their order, the lower of two classes. otsu: 1 above the threshold that "
                "makes the variance between both classes the greatest, else 0.",
            .units = "Numbers of classes: 1 to `classes`, or 0 and 1.",
            .nodata =
                "A pixel is invalid where one of the bands is. Invalid pixels, and those that "
                "the mask leaves out, do not count for centres and threshold.",
            .source =
                "S. Lloyd, Least squares quantization in PCM, IEEE Transactions on Information "
                "Theory 28 (1982), 129-137; first centres by deviations as i.cluster of GRASS "
                "spaces them. N. Otsu, A threshold selection method from gray-level histograms, "
                "IEEE Transactions on Systems, Man and Cybernetics 9 (1979), 62-66; the numbers "
                "are those of threshold_otsu in skimage.filters.",
            .notes =
                "kmeans reads the scene in rounds, which are an exchange by the pattern "
                "alternating: centres are sent to the\n"
                "device, sums are returned. In each, all pixels are put into classes, and "
                "the "
                "mean of a\n"
                "class, from exact sums and rounded to float32, is its centre in the next; a class "
                "without pixels keeps\n"
                "its centre. The last round is the one whose means are its centres, or the one "
                "with "
                "the number `rounds`;\n"
                "the product's classes are those of that round. Classes are numbered by their "
                "centre in the first band,\n"
                "then the next. Bands count as their values are: stretch those of other units "
                "first.\n"
                "The report and the STAC item have the centres, the pixels of each class, the "
                "rounds and whether they\n"
                "converged (converged = 1).\n"
                "\n"
                "Rounds after the first read no file where compute.memory has room for all tiles "
                "of the "
                "scene; `pushbroom\n"
                "run --dry-run` shows it.\n"
                "\n"
                "otsu counts samples of a band of up to 16 bits one by one; other values in up to "
                "65536 bins whose\n"
                "width is a power of two and is in the report.\n"
                "\n"
                "  - classify: {bands: [R, G, N], classes: 6, as: CLASS}\n"
                "  - classify: {bands: [NDVI], classes: 2, centres: [0, 0.6], rounds: 1, as: VEG}\n"
                "  - classify: {method: otsu, bands: [NDWI], mask: CLEAR, as: WATER}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct classify),
    .build = build,
    .exchange = exchange,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
