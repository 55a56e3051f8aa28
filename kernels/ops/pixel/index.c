/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * index: spectral indices by name. A row of the catalogue becomes an expression over the bands
 * (kernels/index/index_expand.h), and the expression compiler does the rest. What is done here is
 * looking at what the row needs and saying what is missing. */
#include "kernels/graph/builder.h"
#include "kernels/index/index_expand.h"
#include "kernels/index/index_table.h"
#include "kernels/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct index {
    struct pb_items names, constants;
    int32_t kernel;
};

static const struct pb_key keys[] = {
    {.name = "names",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct index, names),
     .required = true,
     .makes_bands = true,
     .doc = "Indices to make, or {BAND: INDEX}; 'pushbroom indices' lists them."},
    {.name = "constants",
     .type = PB_KEY_CONSTANTS,
     .offset = offsetof(struct index, constants),
     .min = -1e9,
     .max = 1e9,
     .doc = "Constants other than the catalogue's: {L: 0.5, lambdaN: 842}."},
    {.name = "kernel",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct index, kernel),
     .def = "rbf",
     .choices = "rbf|linear|poly",
     .doc = "Of the kernel indices (kNDVI, ...)."},
};

#define CONSTANTS_MAX 48
#define NAMES_MAX     64   /* names in one formula */
#define OUTPUTS_MAX   1024 /* indices of one step */
#define TEXT_BYTES    4096 /* the longest formula has 215 letters */

struct request {
    struct pb_builder *b;
    enum pb_index_kernel kernel;
    const struct pb_items *given;
    struct pb_expr_constant value[CONSTANTS_MAX]; /* all that have one */
    char name[CONSTANTS_MAX][48];
    const char *given_name[CONSTANTS_MAX];
    size_t n_values, n_given;
    bool is_slip; /* a constant was lost to a mistake: one that is missing may be what it meant */
};

/* -- constants --------------------------------------------------------------------------------- */

static void unknown_constant(struct request *r, const struct pb_item *item)
{
    const char *words[CONSTANTS_MAX];
    size_t n = 0;
    while (n < CONSTANTS_MAX && n < pb_index_constant_count()) {
        words[n] = pb_index_constant_at(n)->name;
        n++;
    }
    const char *nearest = pb_nearest(item->key, words, n);
    r->is_slip = true;
    (void)pb_builder_mistake(r->b, PB_DIAG_VALUE, item, 0,
                             "no index has a constant '%.60s'; %s%s%s'pushbroom indices "
                             "NAME' shows those of an index",
                             item->key, nearest != NULL ? "did you mean '" : "",
                             nearest != NULL ? nearest : "", nearest != NULL ? "'? " : "");
}

static const struct pb_item *given_constant(const struct pb_items *given, const char *name)
{
    for (size_t i = 0; i < given->n; i++) {
        if (strcmp(given->items[i].key, name) == 0) {
            return &given->items[i];
        }
    }
    return NULL;
}

static void check_given(struct request *r)
{
    for (size_t i = 0; i < r->given->n; i++) {
        const struct pb_item *item = &r->given->items[i];
        if (pb_index_constant_find(item->key) == NULL) {
            unknown_constant(r, item);
        } else if (strcmp(item->key, "sigma") == 0 && !(item->num > 0)) {
            (void)pb_builder_mistake(r->b, PB_DIAG_VALUE, item, 0,
                                     "sigma is %g; it must be greater than 0", item->num);
        }
    }
}

/* Under the names that expanded formulas use. */
static void gather_constants(struct request *r)
{
    for (size_t i = 0; i < pb_index_constant_count() && i < CONSTANTS_MAX; i++) {
        const struct pb_index_constant *row = pb_index_constant_at(i);
        const struct pb_item *item = given_constant(r->given, row->name);
        if (item != NULL) {
            r->given_name[r->n_given++] = row->name;
        } else if (!row->has_default) {
            continue;
        }
        char *name = r->name[r->n_values];
        snprintf(name, sizeof r->name[0], PB_INDEX_CONSTANT_PREFIX "%s", row->name);
        r->value[r->n_values].name = name;
        r->value[r->n_values].value = item != NULL ? item->num : row->value;
        r->n_values++;
    }
}

/* -- what is missing --------------------------------------------------------------------------- */

/* Splits the names that pb_index_can found missing into bands and constants, each as "A, B". */
static void sort_missing(const char *missing, char *bands, char *constants, size_t bytes)
{
    const char *name;
    size_t length;
    bands[0] = constants[0] = '\0';
    while (pb_index_next_name(&missing, &name, &length)) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, name);
        char *to = pb_index_constant_find(word) != NULL ? constants : bands;
        size_t used = strlen(to);
        snprintf(to + used, bytes - used, "%s%s", used > 0 ? ", " : "", word);
    }
}

static bool in_list(const char *list, const char *name)
{
    const char *word;
    size_t length;
    while (pb_index_next_name(&list, &word, &length)) {
        if (length == strlen(name) && memcmp(word, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Near infrared goes by two names, and some sensors have one, some the other, some both; guessing
 * would give plausible wrong numbers. */
static const char *near_infrared_advice(const struct request *r, const char *missing)
{
    if (in_list(missing, "N") && pb_builder_find(r->b, "N2") >= 0) {
        return "; there is N2: if that is the near infrared you mean, name it N in input.bands";
    }
    if (in_list(missing, "N2") && pb_builder_find(r->b, "N") >= 0) {
        return "; there is N: if that is the near infrared you mean, name it N2 in input.bands";
    }
    return "";
}

static int report_missing(const struct request *r, const struct pb_index *index,
                          const struct pb_item *item, const char *missing)
{
    char bands[96], constants[96], list[128];
    sort_missing(missing, bands, constants, sizeof bands);
    if (bands[0] == '\0' && r->is_slip) {
        return -EINVAL;
    }
    if (bands[0] == '\0') {
        return pb_builder_mistake(r->b, PB_DIAG_CONSTANT, item, 0,
                                  "index %s needs %s, for which there is no default; give it under "
                                  "'constants' (wavelengths in nm, as in {lambdaN: 842})",
                                  index->name, constants);
    }
    return pb_builder_mistake(
        r->b, PB_DIAG_INDEX, item, 0,
        "index %s needs %s, which this pipeline does not have (its bands: %s)%s", index->name,
        bands, pb_builder_list(r->b, list, sizeof list), near_infrared_advice(r, missing));
}

static int check_available(const struct request *r, const struct pb_index *index,
                           const struct pb_item *item)
{
    size_t n = pb_builder_band_count(r->b);
    char missing[128];
    const char **names = malloc((n + 1) * sizeof *names);
    if (names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = pb_builder_band_name(r->b, i);
    }
    bool can = pb_index_can(index, names, n, r->given_name, r->n_given, missing, sizeof missing);
    free(names);
    return can ? 0 : report_missing(r, index, item, missing);
}

/* -- compiling --------------------------------------------------------------------------------- */

/* A constant that the user did not give and a band of the same name: which one is meant is not ours
 * to guess. */
static int check_constants(const struct request *r, const struct pb_index *index,
                           const struct pb_item *item, const char *text)
{
    const char *names[NAMES_MAX];
    size_t lengths[NAMES_MAX];
    struct pb_diag diag;
    int n = r->given->is_partial ? 0 : pb_expression_names(text, names, lengths, NAMES_MAX, &diag);
    for (int i = 0; i < n && i < NAMES_MAX; i++) {
        size_t prefix = strlen(PB_INDEX_CONSTANT_PREFIX);
        char word[64];
        if (lengths[i] <= prefix || memcmp(names[i], PB_INDEX_CONSTANT_PREFIX, prefix) != 0) {
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)(lengths[i] - prefix), names[i] + prefix);
        if (pb_builder_find(r->b, word) >= 0 && given_constant(r->given, word) == NULL) {
            const struct pb_index_constant *constant = pb_index_constant_find(word);
            return pb_builder_mistake(
                r->b, PB_DIAG_CONSTANT, item, 0,
                "index %s uses the constant %s (%s), and this pipeline has a band "
                "%s as well; give the constant, as in constants: {%s: %g}, or "
                "rename the band",
                index->name, word, constant->doc, word, word, constant->value);
        }
    }
    return 0; /* a formula that cannot be read is told when it is compiled */
}

/* -- building ---------------------------------------------------------------------------------- */

static int unknown_index(struct request *r, const struct pb_item *item)
{
    const char *nearest = pb_index_nearest(item->text);
    return pb_builder_mistake(r->b, PB_DIAG_INDEX, item, 0,
                              "there is no index '%.60s'; %s%s%s'pushbroom indices' lists all %zu",
                              item->text, nearest != NULL ? "did you mean '" : "",
                              nearest != NULL ? nearest : "", nearest != NULL ? "'? " : "",
                              pb_index_count());
}

/* *out_value stays what it is after a mistake. */
static int compile(struct request *r, const struct pb_item *item, pb_value *out_value)
{
    const struct pb_index *index = pb_index_find(item->text);
    if (index == NULL) {
        return unknown_index(r, item);
    }
    int rc = check_available(r, index, item);
    if (rc < 0) {
        return rc;
    }
    char text[TEXT_BYTES];
    if (pb_index_expand(index, r->kernel, text, sizeof text) < 0) {
        return pb_builder_mistake(r->b, PB_DIAG_INDEX, item, 0,
                                  "the formula of index %s is too long", index->name);
    }
    rc = check_constants(r, index, item, text);
    if (rc < 0) {
        return rc;
    }
    *out_value = pb_builder_expression(r->b, item, text, r->value, r->n_values);
    return 0;
}

static int check_names(const struct pb_items *names, struct pb_builder *b)
{
    if (names->n > OUTPUTS_MAX) {
        return pb_builder_mistake(b, PB_DIAG_VALUE, &names->items[OUTPUTS_MAX], 0,
                                  "%zu names; at most %d fit into one step", names->n, OUTPUTS_MAX);
    }
    for (size_t i = 1; i < names->n; i++) {
        const char *band = pb_item_band(&names->items[i]);
        size_t j = 0;
        while (j < i && strcmp(band, pb_item_band(&names->items[j])) != 0) {
            j++;
        }
        if (j < i) {
            (void)pb_builder_mistake(b, PB_DIAG_INDEX, &names->items[i], 0,
                                     "'%.60s' is there twice; name it once", band);
        }
    }
    return 0;
}

/* All values first, then their names: what one index is called changes no band of the next. */
static int build(const void *params, struct pb_builder *b)
{
    static const enum pb_index_kernel kernels[] = {PB_INDEX_RBF, PB_INDEX_LINEAR, PB_INDEX_POLY};
    const struct index *index = params;
    const struct pb_items *names = &index->names;
    struct request r = {.b = b,
                        .kernel = kernels[index->kernel],
                        .given = &index->constants,
                        .is_slip = index->constants.is_partial};
    check_given(&r);
    gather_constants(&r);
    int rc = check_names(names, b);
    pb_value *value = calloc(names->n + 1, sizeof *value);
    if (value == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; rc == 0 && i < names->n; i++) {
        value[i] = PB_VALUE_POISON;
        rc = compile(&r, &names->items[i], &value[i]) == -ENOMEM ? -ENOMEM : 0;
    }
    for (size_t i = 0; rc == 0 && i < names->n; i++) {
        rc = pb_builder_define(b, pb_item_band(&names->items[i]), value[i]);
    }
    free(value);
    return rc;
}

/* -- in words ---------------------------------------------------------------------------------- */

/* The catalogue's formula with the constants that the step uses: g * (N - R) / (N + L), g = 2.5. */
static bool formula(const void *params, const struct pb_item *item, struct pb_formula *out)
{
    const struct index *step = params;
    const struct pb_index *index = pb_index_find(item->text);
    if (index == NULL) {
        return false;
    }
    const char *list = index->bands, *name;
    size_t length;
    out->text = index->formula;
    out->n_constants = 0;
    while (pb_index_next_name(&list, &name, &length) &&
           out->n_constants < PB_FORMULA_CONSTANTS_MAX) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)length, name);
        const struct pb_index_constant *constant = pb_index_constant_find(word);
        const struct pb_item *given =
            constant != NULL ? given_constant(&step->constants, word) : NULL;
        if (given != NULL || (constant != NULL && constant->has_default)) {
            out->constant[out->n_constants].name = constant->name;
            out->constant[out->n_constants++].value = given != NULL ? given->num : constant->value;
        }
    }
    return true;
}

static const struct pb_op_case cases[] = {
    {"NDVI", "NDVI", true, {{"names", {{.text = "NDVI"}}}}},
    {"SAVI, new band",
     "X",
     true,
     {{"names", {{.key = "X", .text = "SAVI"}}}, {"constants", {{"L", "0.4", 0.4, 0, 0}}}}},
};

const struct pb_op pb_op_index = {
    .name = "index",
    .doc =
        {
            .summary = "makes spectral indices by name",
            .formula = "That of the index; 'pushbroom indices NAME' shows it.",
            .units = "Those of the formula: most indices are ratios, without a unit.",
            .nodata =
                "A pixel is invalid where a band that the index reads is, and where the result is "
                "not a finite number.",
            .source =
                "Awesome Spectral Indices: Montero et al. 2023, Scientific Data 10, "
                "doi.org/10.1038/s41597-023-02096-0; 'pushbroom indices NAME' has the source of "
                "each.",
            .notes =
                "The bands that an index reads must have the catalogue's names (A B G R RE1 N S1 "
                "...)\n"
                "in input.bands; 'pushbroom indices NAME' shows formula, bands and constants. "
                "Constants\n"
                "may be changed, and those without a default (wavelengths, PAR) must be given. "
                "Kernel\n"
                "indices (kNDVI, ...) use k(a, b) = exp(-(a - b)^2 / (2 sigma^2)), or a * b with\n"
                "kernel: linear, or (a * b + c)^p with kernel: poly.\n"
                "\n"
                "  - index: {names: [NDVI, EVI]}\n"
                "  - index: {names: {SAVI_HALF: SAVI}, constants: {L: 0.5}}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct index),
    .build = build,
    .formula = formula,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
