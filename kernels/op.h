/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_H
#define PB_OP_H
/* Operators: what a step of a pipeline can be. A descriptor holds everything the rest of the
 * program needs to know of one (name, parameters with types and ranges, documentation, how it joins
 * a chain), and ops.def lists the descriptors; config validation, help, tests and benchmarks walk
 * that list. All static, read-only; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_builder;

enum pb_param_type {
    PB_PARAM_NUMBER, /* 0.5 */
    PB_PARAM_INT,    /* 5 */
    PB_PARAM_ENUM,   /* one of choices */
    PB_PARAM_STRING,
    PB_PARAM_NAMES, /* [A, B]: items with key NULL, text = name; or {OUT: IN}: key = OUT, text = IN
                     */
    PB_PARAM_EXPRS, /* {NAME: "expression", ...} in file order: key, text */
    PB_PARAM_NUMBERS, /* 0.5: one item, key NULL; or {NAME: 0.5, ...}: key, num */
    PB_PARAM_WEIGHTS  /* [1, 2, 3]: items with key NULL, num */
};

struct pb_param {
    const char *name;
    enum pb_param_type type;
    double min, max;     /* of numbers, inclusive */
    const char *def;     /* default as it would be written in YAML; NULL = none */
    const char *choices; /* ENUM: "reflect|clamp|nodata" */
    bool required;
    bool makes_bands; /* each entry is a band that the step makes; one parameter of an operator */
    const char *doc;  /* one line */
};

/* One scalar, or one entry of a list or map. line and col are the place in the config of the first
 * character of text (behind a quote), 0 = not from a file. */
struct pb_arg_item {
    const char *key;
    const char *text; /* the value as written */
    double num;       /* NUMBER, INT, NUMBERS, WEIGHTS */
    int line, col;
};

struct pb_arg {
    const struct pb_arg_item *items; /* n == 0: not given and no default */
    size_t n;
};

#define PB_OP_PARAMS_MAX 8

/* Arguments of one step, index = index of the parameter in the descriptor. Defaults are filled in
 * by whoever makes this. Strings are borrowed. */
struct pb_op_args {
    struct pb_arg arg[PB_OP_PARAMS_MAX];
};

/* A mistake found while building: words for the user; col is the 1-based column inside the
 * expression's text (0 = not in an expression), item the entry it speaks of (NULL = the step as a
 * whole). */
enum pb_diag_kind {
    PB_DIAG_NONE,
    PB_DIAG_BAND,
    PB_DIAG_EXPRESSION,
    PB_DIAG_INDEX,
    PB_DIAG_CONSTANT, /* an index lacks one, or cannot tell it from a band */
    PB_DIAG_VALUE
};
struct pb_diag {
    enum pb_diag_kind kind;
    const struct pb_arg_item *item;
    int col;
    size_t step;   /* of the chain's; n_steps = the mistake is in the outputs */
    size_t output; /* of the chain's outputs; SIZE_MAX = not of one output */
    char msg[400];
};

/* Receives mistakes in the order in which they are found; *diag is borrowed for the call. */
typedef void pb_diag_report(void *to, const struct pb_diag *diag);

/* Arguments of an operator and the band to ask for: what parity tests and benchmarks run. Bands of
 * such a scene are B, G, R, N, S1 and S2; parameters not given have their defaults. */
#define PB_OP_CASE_ITEMS 4
struct pb_op_case {
    const char *label;
    const char *output;
    bool exact; /* + - * / sqrt and choices only: no operation that rounds by approximation */
    struct {
        const char *param;                          /* NULL ends the list */
        struct pb_arg_item items[PB_OP_CASE_ITEMS]; /* text NULL ends the list */
    } args[3];
};

struct pb_op {
    const char *name;    /* as in the config */
    const char *summary; /* one line */
    const char *doc;     /* a paragraph and an example, plain text */
    const struct pb_param *params;
    size_t n_params;
    /* Adds the step's values to the chain being built (kernels/graph/builder.h). After a mistake it
     * goes on with poison, so that the next one is found as well. 0; -EINVAL: there was a mistake,
     * and all bands that the step makes become poison; -ENOMEM. */
    int (*build)(const struct pb_op_args *args, struct pb_builder *builder);
    const struct pb_op_case *cases; /* at least one */
    size_t n_cases;
};

/* The bands that a step defines: one for each entry of this argument, called as pb_item_band says.
 * Without entries the step works on every band there is, each in place. Borrowed from args. */
const struct pb_arg *pb_op_outputs(const struct pb_op *op, const struct pb_op_args *args);
/* The band that an entry makes: {BAND: ...} or [BAND]. Borrowed. */
const char *pb_item_band(const struct pb_arg_item *item);
/* The argument of the parameter called `name`; NULL = the operator has none of that name. */
const struct pb_arg *pb_op_argument(const struct pb_op *op, const struct pb_op_args *args,
                                    const char *name);

/* The registry, in the order of ops.def. */
size_t pb_op_count(void);
const struct pb_op *pb_op_at(size_t i);
const struct pb_op *pb_op_find(const char *name); /* NULL = none */

/* Fills *diag and returns -EINVAL. */
int pb_diag_set(struct pb_diag *diag, enum pb_diag_kind kind, const struct pb_arg_item *item,
                int col, const char *format, ...) __attribute__((format(printf, 5, 6)));
#endif
