/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * unmix: abundances of known spectra in a pixel, by least squares. Every set of endmembers has a
 * solution that is linear in the pixel, so its weights are made once, in double. Without
 * constraints on signs the set is known. With them the right set is the one whose abundances are
 * positive, and that no other endmember would join with a positive one (Karush, Kuhn and Tucker);
 * exactly one is so. All 2^n sets are looked at in every pixel, the one that misses this by least
 * wins: no iteration, no branch, the same bits everywhere. Two endmembers that add up to 1 need no
 * search. */
#include "kernels/expr/band_list.h"
#include "kernels/reduce/least_squares.h"

#include <errno.h>
#include <float.h>
#include <string.h>

enum { ENDMEMBERS_MAX = PB_LEAST_SQUARES_COLUMNS, BANDS_MAX = PB_LEAST_SQUARES_ROWS };
enum method { LEAST_SQUARES, SUM_TO_ONE, NON_NEGATIVE, FULLY_CONSTRAINED };

struct unmix {
    struct pb_items bands, endmembers, as, rmse;
    int32_t method;
};

static const struct pb_key keys[] = {
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct unmix, bands),
     .required = true,
     .doc = "The bands, up to 64, on one grid, in the order of the numbers of endmembers."},
    {.name = "endmembers",
     .type = PB_KEY_VECTORS,
     .offset = offsetof(struct unmix, endmembers),
     .min = -(double)FLT_MAX,
     .max = (double)FLT_MAX,
     .required = true,
     .doc = "The spectra of what pixels are mixed of, 2 to 8, each a number for each band, in the "
            "bands' units."},
    {.name = "as",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct unmix, as),
     .required = true,
     .makes_bands = true,
     .doc = "The endmembers whose abundances are made, which are the names of the bands, or {BAND: "
            "ENDMEMBER}."},
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct unmix, method),
     .choices = "least-squares|sum-to-one|non-negative|fully-constrained",
     .def = "fully-constrained",
     .doc = "Any abundances; those that add up to 1; those of 0 or more; or both."},
    {.name = "rmse",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct unmix, rmse),
     .makes_one = true,
     .doc = "A band for what the mixture leaves unexplained: the root of the mean square over the "
            "bands."},
};

/* A step while it is built. */
struct work {
    const struct unmix *step;
    struct pb_builder *b;
    uint32_t bands, n; /* n endmembers */
    bool to_one;
    const char *name[ENDMEMBERS_MAX];
    double spectrum[ENDMEMBERS_MAX * BANDS_MAX]; /* one after the other */
    pb_value band[BANDS_MAX];
    pb_value abundance[ENDMEMBERS_MAX];
};

/* The solution of a set of endmembers: of the i-th of them, weights of the values and a constant.
 */
struct solution {
    double weight[ENDMEMBERS_MAX * BANDS_MAX], constant[ENDMEMBERS_MAX];
};

/* --- parameters ------------------------------------------------------------------------------ */

static bool find_bands(struct work *w)
{
    const struct pb_items *const names = &w->step->bands;
    bool good = true;

    if (names->n > BANDS_MAX) {
        (void)pb_builder_wrong(w->b, names, "%d bands at most, not %zu", BANDS_MAX, names->n);
        return false;
    }
    w->bands = (uint32_t)names->n;
    for (size_t i = 0; i < names->n; i++) {
        w->band[i] = pb_band_list_at(names, w->b, i).value;
        good = good && w->band[i] != PB_VALUE_POISON && w->band[i] >= 0;
    }
    return good && !names->is_partial;
}

static bool add_endmember(struct work *w, size_t first, size_t numbers)
{
    const struct pb_item *const item = &w->step->endmembers.items[first];

    if (w->n == ENDMEMBERS_MAX) {
        (void)pb_builder_mistake(w->b, PB_DIAG_VALUE, item, 0, "%d endmembers at most",
                                 ENDMEMBERS_MAX);
        return false;
    }
    if (numbers != w->bands) {
        (void)pb_builder_mistake(w->b, PB_DIAG_VALUE, item, 0,
                                 "endmember %.60s has %zu numbers; 'bands' has %u", item->key,
                                 numbers, w->bands);
        return false;
    }
    w->name[w->n] = item->key;
    for (size_t i = 0; i < numbers; i++)
        w->spectrum[w->n * w->bands + i] = w->step->endmembers.items[first + i].num;
    w->n++;
    return true;
}

static bool find_endmembers(struct work *w)
{
    const struct pb_items *const all = &w->step->endmembers;
    double q[ENDMEMBERS_MAX * BANDS_MAX], r[ENDMEMBERS_MAX * ENDMEMBERS_MAX];
    uint32_t dependent = 0;

    for (size_t i = 0, n; i < all->n; i += n) {
        n = pb_items_of_vector(all, i);
        if (!add_endmember(w, i, n))
            return false;
    }
    if (all->is_partial)
        return false;
    if (w->n < 2 || w->n > w->bands) {
        (void)pb_builder_wrong(w->b, all, "%u endmembers of %u bands: give 2 to %u", w->n, w->bands,
                               w->bands < ENDMEMBERS_MAX ? w->bands : ENDMEMBERS_MAX);
        return false;
    }
    if (pb_least_squares_qr(w->bands, w->n, w->spectrum, q, r, &dependent))
        return true;
    (void)pb_builder_wrong(
        w->b, all,
        "endmember %.60s is a mixture of those before it, so that abundances are "
        "not determined",
        w->name[dependent]);
    return false;
}

/* --- solutions ------------------------------------------------------------------------------- */

/* The columns of a set; how many. */
static uint32_t take_columns(uint32_t rows, uint32_t n, const double *matrix, uint32_t set,
                             double *out)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        if (set >> i & 1)
            memcpy(out + k++ * rows, matrix + i * rows, rows * sizeof *out);
    return k;
}

static void solve(const struct work *w, uint32_t rows, const double *matrix, uint32_t set,
                  struct solution *out)
{
    double columns[ENDMEMBERS_MAX * BANDS_MAX];
    const uint32_t k = take_columns(rows, w->n, matrix, set, columns);

    (void)pb_least_squares_inverse(rows, k, columns, w->to_one, out->weight, out->constant);
}

/* Where endmember i is among those of a set. */
static uint32_t place_in(uint32_t set, uint32_t i)
{
    return (uint32_t)__builtin_popcount(set & ((1u << i) - 1));
}

static pb_value number(const struct work *w, double value)
{
    return pb_builder_constant(w->b, (float)value);
}

static pb_value op(const struct work *w, enum pb_vm_op code, pb_value x, pb_value y)
{
    return pb_builder_emit(w->b, code, x, y, -1);
}

/* The sum of weight * value. Values that weigh exactly nothing are left out where `sparse`; the
 * first is there always. */
static pb_value weighted(const struct work *w, const pb_value *value, const double *weight,
                         uint32_t n, bool sparse)
{
    pb_value sum = op(w, PB_VM_MUL, value[0], number(w, weight[0]));

    for (uint32_t i = 1; i < n; i++)
        if (!sparse || weight[i] != 0.0)
            sum = op(w, PB_VM_ADD, sum, op(w, PB_VM_MUL, value[i], number(w, weight[i])));
    return sum;
}

static pb_value plus(const struct work *w, pb_value x, double constant)
{
    return constant == 0.0 ? x : op(w, PB_VM_ADD, x, number(w, constant));
}

/* Without constraints on signs: of the set of all. */
static void solve_all(struct work *w)
{
    struct solution all;

    solve(w, w->bands, w->spectrum, (1u << w->n) - 1, &all);
    for (uint32_t i = 0; i < w->n; i++)
        w->abundance[i] = plus(w, weighted(w, w->band, all.weight + i * w->bands, w->bands, false),
                               all.constant[i]);
}

/* --- signs -----------------------------------------------------------------------------------
 *
 * First the right set is found, as a number with a bit for each endmember, then the abundances of
 * that set. What is compared is multiplied by 2 and -2, which is exact: so these values are not
 * those of the second part, which would have to be held till then, all at the same time. */

/* The pixel in the space of the endmembers, and these as columns there. */
struct turned {
    double r[ENDMEMBERS_MAX * ENDMEMBERS_MAX];
    pb_value pixel[ENDMEMBERS_MAX], doubled[ENDMEMBERS_MAX], negative[ENDMEMBERS_MAX];
};

static void turn(const struct work *w, struct turned *out)
{
    double q[ENDMEMBERS_MAX * BANDS_MAX];
    uint32_t dependent;

    (void)pb_least_squares_qr(w->bands, w->n, w->spectrum, q, out->r, &dependent);
    for (uint32_t k = 0; k < w->n; k++) {
        out->pixel[k] = weighted(w, w->band, q + k * w->bands, w->bands, false);
        out->doubled[k] = op(w, PB_VM_MUL, out->pixel[k], number(w, 2.0));
        out->negative[k] = op(w, PB_VM_MUL, out->pixel[k], number(w, -2.0));
    }
}

/* How far a set is from the right one: the greatest of what its abundances are below 0, and of
 * what those of the others would be above 0 if they joined. Twice that. */
static pb_value misses_by(const struct work *w, const struct turned *t, uint32_t set)
{
    struct solution s;
    pb_value most = -1;

    for (uint32_t i = 0; i < w->n; i++) {
        const uint32_t with = set | 1u << i, at = place_in(with, i);
        const bool is_in = set == with;

        solve(w, w->n, t->r, with, &s);
        const pb_value sum =
            weighted(w, is_in ? t->negative : t->doubled, s.weight + at * w->n, w->n, true);
        const pb_value z = plus(w, sum, (is_in ? -2.0 : 2.0) * s.constant[at]);

        most = most < 0 ? z : op(w, PB_VM_MAX, most, z);
    }
    return most;
}

/* The number of the right set. */
static pb_value find_set(const struct work *w, const struct turned *t)
{
    const uint32_t first = w->to_one ? 1 : 0;
    pb_value least = misses_by(w, t, first), set = number(w, first);

    for (uint32_t s = first + 1; s < 1u << w->n; s++) {
        const pb_value by = misses_by(w, t, s);

        set = pb_builder_emit(w->b, PB_VM_WHERE, op(w, PB_VM_LT, by, least), number(w, s), set);
        least = op(w, PB_VM_MIN, least, by);
    }
    return set;
}

/* The abundance of endmember i in the sets whose lowest bits, below `bit`, are those of `set`. */
static pb_value of_set(const struct work *w, const struct turned *t, const pb_value *bits,
                       uint32_t i, uint32_t bit, uint32_t set)
{
    struct solution s;

    if (bit == w->n) {
        solve(w, w->n, t->r, set, &s);
        return plus(w, weighted(w, t->pixel, s.weight + place_in(set, i) * w->n, w->n, true),
                    s.constant[place_in(set, i)]);
    }
    const pb_value in = of_set(w, t, bits, i, bit + 1, set | 1u << bit);
    return pb_builder_emit(w->b, PB_VM_WHERE, bits[bit], in,
                           bit == i ? number(w, 0.0) : of_set(w, t, bits, i, bit + 1, set));
}

static void solve_with_signs(struct work *w)
{
    struct turned t;
    pb_value bits[ENDMEMBERS_MAX] = {0};

    turn(w, &t);
    const pb_value set = find_set(w, &t);
    for (uint32_t i = 0; i < w->n; i++)
        bits[i] = pb_builder_emit(w->b, PB_VM_BITS, set, number(w, i), number(w, 1.0));
    for (uint32_t i = 0; i < w->n; i++)
        w->abundance[i] = op(w, PB_VM_MAX, of_set(w, &t, bits, i, 0, 0), number(w, 0.0));
}

/* Of two endmembers that add up to 1: where the pixel is on the line through them, cut off at both
 * ends. That is what all sets of them give. */
static void solve_between(struct work *w)
{
    const pb_value one = number(w, 1.0);

    solve_all(w);
    w->abundance[0] = pb_builder_emit(w->b, PB_VM_CLAMP, w->abundance[0], number(w, 0.0), one);
    w->abundance[1] = op(w, PB_VM_SUB, one, w->abundance[0]);
}

/* --- the step -------------------------------------------------------------------------------- */

static pb_value error_of(const struct work *w)
{
    pb_value sum = -1;

    for (uint32_t b = 0; b < w->bands; b++) {
        pb_value left = w->band[b];

        for (uint32_t i = 0; i < w->n; i++)
            left = op(w, PB_VM_SUB, left,
                      op(w, PB_VM_MUL, w->abundance[i], number(w, w->spectrum[i * w->bands + b])));
        left = op(w, PB_VM_MUL, left, left);
        sum = b == 0 ? left : op(w, PB_VM_ADD, sum, left);
    }
    sum = op(w, PB_VM_DIV, sum, number(w, w->bands));
    return pb_builder_emit(w->b, PB_VM_SQRT, sum, -1, -1);
}

/* The endmember that an entry of `as` is of; n: a mistake was told. */
static uint32_t endmember_of(const struct work *w, const struct pb_item *item)
{
    uint32_t i = 0;

    while (i < w->n && strcmp(item->text, w->name[i]) != 0)
        i++;
    if (i == w->n)
        (void)pb_builder_mistake(w->b, PB_DIAG_BAND, item, 0, "there is no endmember '%.60s'",
                                 item->text);
    return i;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct unmix *const step = params;
    const bool signs = step->method == NON_NEGATIVE || step->method == FULLY_CONSTRAINED;
    struct work w = {.step = step,
                     .b = b,
                     .to_one = step->method == SUM_TO_ONE || step->method == FULLY_CONSTRAINED};
    const bool good = find_bands(&w) && find_endmembers(&w);
    pb_value error = PB_VALUE_POISON;
    int rc = 0;

    if (good) {
        (!signs ? solve_all : w.n == 2 && w.to_one ? solve_between : solve_with_signs)(&w);
        error = step->rmse.n > 0 ? error_of(&w) : -1;
    }
    for (size_t i = 0; i < step->as.n && rc == 0; i++) {
        const uint32_t k = good ? endmember_of(&w, &step->as.items[i]) : w.n;

        rc = pb_builder_define(b, pb_item_band(&step->as.items[i]),
                               k < w.n ? w.abundance[k] : PB_VALUE_POISON);
    }
    return rc || step->rmse.n == 0 ? rc : pb_builder_define(b, step->rmse.items[0].text, error);
}

#define SPECTRUM(name, x, y)                                                                       \
    {.key = (name), .text = #x, .num = (x)},                                                       \
    {                                                                                              \
        .key = (name), .text = #y, .num = (y)                                                      \
    }

static const struct pb_op_case cases[] = {
    {"both constraints",
     "DARK",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}}},
      {"endmembers", {SPECTRUM("GREEN", 3, 40), SPECTRUM("DARK", 2, 1)}},
      {"as", {{.text = "GREEN"}, {.text = "DARK"}}}}},
    {"0 or more, and what is left",
     "LEFT",
     true,
     {{"bands", {{.text = "R"}, {.text = "N"}}},
      {"endmembers", {SPECTRUM("GREEN", 3, 40), SPECTRUM("DARK", 2, 1)}},
      {"as", {{.text = "GREEN"}}},
      {"method", {{.text = "non-negative"}}},
      {"rmse", {{.text = "LEFT"}}}}},
};

const struct pb_op pb_op_unmix = {
    .name = "unmix",
    .doc =
        {
            .summary = "makes abundances of known spectra in each pixel",
            .formula = "The abundances a that make the sum over the bands of (band - sum of a * "
                       "endmember)^2 least, under the method's constraints.",
            .units = "Shares: 1 is a pixel of that endmember alone. rmse: those of the bands.",
            .nodata = "A pixel is invalid where one of the bands is.",
            .source =
                "C. L. Lawson and R. J. Hanson, Solving Least Squares Problems, chapter 23: "
                "non-negative has the values of scipy.optimize.nnls, least-squares those of "
                "numpy.linalg.lstsq. D. C. Heinz and C.-I Chang, IEEE Transactions on Geoscience "
                "and Remote Sensing 39 (2001), 529-545 (fully constrained).",
            .notes =
                "Weights are made in double when the pipeline is read, pixels in float32. The "
                "constraints are met\n"
                "exactly by looking at all sets of endmembers, so the time doubles with each "
                "endmember: methods\n"
                "with signs take about 2^n * n^2 operations a pixel. Endmembers that are nearly "
                "mixtures of others\n"
                "have abundances that noise decides; mixtures of others are refused.\n"
                "\n"
                "  - unmix: {bands: [R, N, S1], as: [VEG, SOIL], rmse: RMSE,\n"
                "            endmembers: {VEG: [0.04, 0.48, 0.2], SOIL: [0.2, 0.3, 0.4],\n"
                "                         SHADE: [0.01, 0.02, 0.01]}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct unmix),
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
