/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * composite: one image of several observations of the same place, pixel by pixel, from those that
 * are clear there. */
#include "kernels/expr/band_list.h"
#include "kernels/expr/value_stack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBSERVATIONS_MAX PB_VALUE_STACK_MAX
#define CLEAR_MAX_BYTES  4096

enum method { MEDIAN, MAX_NDVI, LATEST_CLEAR, MEAN, COUNT, MIN, MAX, PERCENTILE };

struct composite {
    struct pb_items bands, of, clear;
    char *red, *nir;
    double percentile;
    bool has_percentile;
    int32_t method;
};

static const struct pb_key keys[] = {
    {.name = "method",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct composite, method),
     .choices = "median|max-ndvi|latest-clear|mean|count|min|max|percentile",
     .def = "median",
     .doc = "median, mean, min, max, percentile: of each band by itself. count: how many "
            "observations of the band are clear and valid. max-ndvi: all bands of the observation "
            "with the highest NDVI. latest-clear: all bands of the last one in `of` that is "
            "clear."},
    {.name = "percentile",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct composite, percentile),
     .more = offsetof(struct composite, has_percentile),
     .min = 0,
     .max = 100,
     .doc = "Which one, for method: percentile."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct composite, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to make, or {NEW: BAND}: BAND of an observation is the band of that name with "
            "the observation's ending."},
    {.name = "of",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct composite, of),
     .required = true,
     .doc = "The observations, 1 to 64, by the endings of their bands' names, the earliest first."},
    {.name = "clear",
     .type = PB_KEY_EXPRESSION,
     .offset = offsetof(struct composite, clear),
     .doc = "Where an observation is clear: an expression as in math that is valid and not 0 "
            "there, with {} in place of the ending. All of it when not given."},
    {.name = "red",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct composite, red),
     .def = "R",
     .doc = "Red, without the ending; for max-ndvi."},
    {.name = "nir",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct composite, nir),
     .def = "N",
     .doc = "Near infrared, without the ending; for max-ndvi."},
};

/* A step while it is built. */
struct work {
    const struct composite *step;
    struct pb_builder *b;
    size_t n;                          /* observations */
    pb_value clear[OBSERVATIONS_MAX];  /* or -1: all is */
    pb_value chosen[OBSERVATIONS_MAX]; /* what decides between them; NaN where it is no choice */
    pb_value nothing;
};

static pb_value emit(struct work *w, enum pb_vm_op op, pb_value x, pb_value y, pb_value z)
{
    return pb_builder_emit(w->b, op, x, y, z);
}

/* A band of an observation, invalid where that is not clear. */
static pb_value band_of(struct work *w, const char *base, size_t i, const struct pb_item *item)
{
    const struct pb_item *const ending = &w->step->of.items[i];
    const pb_value x = pb_band_list_ended(w->b, base, ending, item ? item : ending, "observation");

    if (x == PB_VALUE_POISON)
        return x;
    return w->clear[i] < 0 ? x : emit(w, PB_VM_WHERE, w->clear[i], x, w->nothing);
}

/* --- which observations are clear ------------------------------------------------------------- */

/* The condition with an observation's ending for each {}. False: it is too long. */
static bool with_ending(const char *text, const char *ending, char *out, size_t bytes)
{
    size_t used = 0;

    while (*text) {
        const bool mark = text[0] == '{' && text[1] == '}';
        const char *const part = mark ? ending : text;
        const size_t n = mark ? strlen(ending) : 1;

        if (used + n >= bytes)
            return false;
        memcpy(out + used, part, n);
        used += n;
        text += mark ? 2 : 1;
    }
    out[used] = '\0';
    return true;
}

static int find_clear(struct work *w)
{
    const struct composite *const step = w->step;
    char *const text = malloc(CLEAR_MAX_BYTES + 1);
    int rc = text ? 0 : -ENOMEM;

    for (size_t i = 0; i < w->n && rc == 0; i++) {
        const struct pb_item *const item = step->clear.n ? &step->clear.items[0] : NULL;

        w->clear[i] = -1;
        if (item && !with_ending(item->text, step->of.items[i].text, text, CLEAR_MAX_BYTES + 1))
            rc = pb_builder_mistake(w->b, PB_DIAG_EXPRESSION, item, 0,
                                    "the expression is longer than %d bytes", CLEAR_MAX_BYTES);
        else if (item)
            w->clear[i] = pb_builder_expression(w->b, item, text, NULL, 0);
    }
    free(text);
    return rc;
}

/* --- each band by itself ---------------------------------------------------------------------- */

static pb_value alone(struct work *w, const char *base, const struct pb_item *item)
{
    static const enum pb_stack_measure measures[] = {
        [MEDIAN] = PB_STACK_RANKED, [PERCENTILE] = PB_STACK_RANKED, [MEAN] = PB_STACK_MEAN,
        [COUNT] = PB_STACK_COUNT,   [MIN] = PB_STACK_MIN,           [MAX] = PB_STACK_MAX};
    const int32_t method = w->step->method;
    pb_value x[OBSERVATIONS_MAX] = {0};

    for (size_t i = 0; i < w->n; i++)
        x[i] = band_of(w, base, i, item);
    return pb_value_stack(w->b, measures[method],
                          method == MEDIAN ? 0.5 : w->step->percentile / 100, x, w->n);
}

/* --- one observation for all bands ------------------------------------------------------------ */

static pb_value ndvi_of(struct work *w, size_t i)
{
    const pb_value red = band_of(w, w->step->red, i, NULL), nir = band_of(w, w->step->nir, i, NULL);

    return emit(w, PB_VM_DIV, emit(w, PB_VM_SUB, nir, red, -1), emit(w, PB_VM_ADD, nir, red, -1),
                -1);
}

/* w->chosen[i]: not 0 where observation i is taken if no later one is. An observation can be taken
 * where it is clear and all bands that are made are valid. */
static void choose(struct work *w)
{
    const struct pb_items *const bands = &w->step->bands;
    pb_value best = pb_builder_constant(w->b, -INFINITY);

    for (size_t i = 0; i < w->n; i++) {
        pb_value all = band_of(w, bands->items[0].text, i, &bands->items[0]);

        for (size_t k = 1; k < bands->n; k++)
            all =
                emit(w, PB_VM_MIN, all, band_of(w, bands->items[k].text, i, &bands->items[k]), -1);
        w->chosen[i] = emit(w, PB_VM_VALID, all, -1, -1);
        if (w->step->method != MAX_NDVI)
            continue;
        const pb_value ndvi = ndvi_of(w, i);
        const pb_value may = emit(w, PB_VM_VALID, emit(w, PB_VM_MIN, all, ndvi, -1), -1, -1);
        const pb_value own = emit(w, PB_VM_WHERE, may, ndvi, pb_builder_constant(w->b, -INFINITY));

        w->chosen[i] = emit(w, PB_VM_GT, own, best, -1);
        best = emit(w, PB_VM_MAX, best, own, -1);
    }
}

static pb_value taken(struct work *w, const char *base, const struct pb_item *item)
{
    pb_value result = w->nothing;

    for (size_t i = 0; i < w->n; i++)
        result = emit(w, PB_VM_WHERE, w->chosen[i], band_of(w, base, i, item), result);
    return result;
}

static bool takes_whole(const struct composite *step)
{
    return step->method == MAX_NDVI || step->method == LATEST_CLEAR;
}

static int check(const struct composite *step, struct pb_builder *b)
{
    if (step->of.n > OBSERVATIONS_MAX)
        return pb_builder_wrong(b, &step->of, "'of' names %zu observations; at most %d are taken",
                                step->of.n, OBSERVATIONS_MAX);
    if (step->method == PERCENTILE && !step->has_percentile)
        return pb_builder_wrong(b, &step->method,
                                "the percentile is missing: write percentile: 25, for instance");
    if (step->method != PERCENTILE && step->has_percentile)
        return pb_builder_wrong(b, &step->percentile, "'percentile' belongs to method: percentile");
    /* Reported by who read the step. */
    return step->of.n == 0 || step->bands.n == 0 ? -EINVAL : 0;
}

static int build(const void *params, struct pb_builder *b)
{
    const struct composite *const step = params;
    const struct pb_items *const bands = &step->bands;
    struct work w = {.step = step, .b = b, .n = step->of.n};
    pb_value *const values = calloc(bands->n + 1, sizeof *values);
    int rc = values ? 0 : -ENOMEM;

    rc = rc ? rc : check(step, b);
    w.nothing = pb_builder_constant(b, NAN);
    rc = rc ? rc : find_clear(&w);
    if (rc == 0 && takes_whole(step))
        choose(&w);
    /* All of them before a band is replaced that another one is made of. */
    for (size_t i = 0; i < bands->n && rc == 0; i++)
        values[i] = takes_whole(step) ? taken(&w, bands->items[i].text, &bands->items[i])
                                      : alone(&w, bands->items[i].text, &bands->items[i]);
    for (size_t i = 0; i < bands->n && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&bands->items[i]), values[i]);
    free(values);
    return rc;
}

static bool keeps_tags(const void *params)
{
    return ((const struct composite *)params)->method != COUNT;
}

/* The files of a tile down, its one result up. */
static void exchange(const void *params, struct pb_op_exchange *out)
{
    (void)params;
    out->pattern = "multiple";
    out->of = PB_EXCHANGE_PARTS;
    out->n_args = 2;
    out->arg[0].name = "n0";
    out->arg[0].value = PB_OP_EXCHANGE_FILES;
    out->arg[1].name = "n1";
    out->arg[1].value = 1;
}

/* Of bands S1 and S2: two observations of a band S. */
#define CASE(label_, method_, ...)                                                                 \
    {                                                                                              \
        .label = label_, .output = "X", .exact = true, .args = {                                   \
            {"method", {{.text = method_}}},                                                       \
            {"bands", {{.key = "X", .text = "S"}}},                                                \
            {"of", {{.text = "1"}, {.text = "2"}}},                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct pb_op_case cases[] = {
    CASE("median of two", "median", {"clear", {{.text = "(S{} > R) + (N > S{})"}}}),
    CASE("mean of two", "mean", {"clear", {{.text = "S{} < N"}}}),
    CASE("how many of two", "count", {"clear", {{.text = "S{} < N"}}}),
    CASE("the least of two", "min", {"clear", {{.text = "S{} < N"}}}),
    CASE("the greatest of two", "max", {"clear", {{.text = "S{} < N"}}}),
    CASE("a percentile of two", "percentile", {"percentile", {{.text = "10", .num = 10}}}),
    CASE("the later of two", "latest-clear", {"clear", {{.text = "S{} < N"}}}),
    CASE("the greener of two", "max-ndvi", {"red", {{.text = "S"}}}, {"nir", {{.text = "S"}}}),
};

const struct pb_op pb_op_composite = {
    .name = "composite",
    .doc =
        {
            .summary = "makes one image of several observations, where clear",
            .formula = "Of the valid values of clear observations. median: of an even number half "
                       "the sum of the two in the middle. percentile: of n in order that at (n - "
                       "1) * p / 100, counted from 0, between two of them in proportion. mean: "
                       "their sum over their number. min, max; count: their number. max-ndvi: the "
                       "observation with the "
                       "highest (nir - red) / (nir + red), of equal ones the first. latest-clear: "
                       "the last observation. In float32.",
            .units = "Those of the bands; count: observations.",
            .nodata =
                "Invalid where no clear observation has a valid value of the band; count is 0 "
                "there. max-ndvi and latest-clear take an observation where it is clear and all "
                "bands that the "
                "step makes are valid (max-ndvi: the NDVI as well), and are invalid where no "
                "observation is.",
            .source = "Maximum value composites: B. N. Holben, International Journal of Remote "
                      "Sensing 7 (11), 1986. Sorting network: Batcher's merge exchange.",
            .notes =
                "The observations are the scene and sources of the pipeline's `input`, up to 16 "
                "files, or bands of\n"
                "one file, up to 64, on one grid. Their bands share a name and differ in its "
                "ending: with of: [_1, _2], band R is made of R_1 and R_2.\n"
                "The parts of a tile are an exchange by the pattern multiple: its files are sent "
                "to the device one after the other,\n"
                "its one result is returned. All observations of a tile are computed together.\n"
                "\n"
                "  - composite: {bands: [R, N], of: [_1, _2], clear: \"(SCL{} > 3) * (SCL{} < "
                "8)\"}\n"
                "  - composite: {method: max-ndvi, bands: [B, R, N], of: [_may, _june, _july]}\n"
                "  - composite: {method: percentile, percentile: 25, bands: [R], of: [_1, _2]}\n"
                "  - composite: {method: count, bands: {CLEAR: R}, of: [_1, _2, _3]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct composite),
    .keeps_tags = keeps_tags,
    .build = build,
    .exchange = exchange,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
