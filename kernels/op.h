/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_H
#define PB_OP_H
/* Operators: what a step of a pipeline can be. A descriptor holds everything the rest of the
 * program needs to know of one (name, parameters with types and ranges, documentation, how it joins
 * a chain), and ops.def lists the descriptors; config validation, help, tests and benchmarks walk
 * that list. All static, read-only; any thread. */
#include "kernels/key.h"

struct pb_builder;

/* A mistake found while building: words for the user, and what it speaks of: an entry of a list or
 * map, with col the 1-based column inside its text (0 = the entry as a whole); or a parameter, by
 * its member; or neither, the step as a whole. */
enum pb_diag_kind {
    PB_DIAG_NONE,
    PB_DIAG_BAND,
    PB_DIAG_EXPRESSION,
    PB_DIAG_INDEX,
    PB_DIAG_CONSTANT, /* an index lacks one, or cannot tell it from a band */
    PB_DIAG_GRID,     /* grids that do not go together, or a place outside */
    PB_DIAG_PLACE,    /* the scene cannot be brought to where the step wants it */
    PB_DIAG_OUTSIDE,  /* the scene has no pixel in the area of the step */
    PB_DIAG_LIMIT,    /* a grid is larger than struct pb_grid_limits allows */
    PB_DIAG_SCALE,    /* bands whose numbers mean different things would be mixed */
    PB_DIAG_VALUE
};
struct pb_diag {
    enum pb_diag_kind kind;
    const struct pb_item *item;
    int col;
    const void *member; /* of the struct that build() got */
    size_t step;        /* of the chain's; n_steps = the mistake is in the outputs */
    size_t output;      /* of the chain's outputs; SIZE_MAX = not of one output */
    char msg[400];
};

/* Receives mistakes in the order in which they are found; *diag is borrowed for the call. */
typedef void pb_diag_report(void *to, const struct pb_diag *diag);

/* Parameters of an operator and the band to ask for: what parity tests and benchmarks run. Bands of
 * such a scene are B, G, R, N, S1 and S2; parameters not given have their defaults. A number is
 * written as text and as num, as config/ hands them over. */
#define PB_OP_CASE_ITEMS 4
struct pb_op_case {
    const char *label;
    const char *output;
    bool exact; /* + - * / sqrt and choices only: no operation that rounds by approximation */
    struct {
        const char *param;                      /* NULL ends the list */
        struct pb_item items[PB_OP_CASE_ITEMS]; /* text NULL ends the list */
    } args[6];
};

/* What a step computes for a band, as people write it: for records of how a product was made. */
#define PB_FORMULA_CONSTANTS_MAX 16
struct pb_formula {
    const char *text; /* static, or of the step's params */
    size_t n_constants;
    struct {
        const char *name; /* static */
        double value;
    } constant[PB_FORMULA_CONSTANTS_MAX];
};

/* Five fields that every operator has, as plain text, and what does not fit them. */
struct pb_op_doc {
    const char *summary; /* half a sentence: "rounds bands ..." */
    const char *formula; /* what becomes of a pixel */
    const char *units;   /* of the result */
    const char *nodata;  /* which pixels are invalid */
    const char *source;  /* literature, or whose rule it is */
    const char *notes;   /* paragraphs, and examples in lines that begin with spaces */
};

/* What is exchanged: the rounds of the step's own passes, the tiles of the pipeline, or the parts
 * of each tile: what its gate looks at, then what is read of each file, one after the other. */
enum pb_op_exchange_of { PB_EXCHANGE_ROUNDS, PB_EXCHANGE_TILES, PB_EXCHANGE_PARTS };

/* The exchange that a step chooses: a communication pattern and its arguments by their names
 * ('pushbroom patterns' lists them; wic/pattern/pattern.h). */
#define PB_OP_EXCHANGE_ARGS  4
#define PB_OP_EXCHANGE_FILES UINT64_MAX /* of an argument: how many files the pipeline reads */
struct pb_op_exchange {
    const char *pattern; /* "alternating"; NULL = none is chosen */
    enum pb_op_exchange_of of;
    bool by_data; /* of parts: the data decides how many go down. Where another step chooses a fixed
                     number of parts, this one's pattern has both. */
    size_t n_args;
    struct {
        const char *name;
        uint64_t value;
    } arg[PB_OP_EXCHANGE_ARGS];
};

struct pb_op {
    const char *name; /* as in the config */
    struct pb_op_doc doc;
    const struct pb_key *keys;
    size_t n_keys;
    size_t params_bytes; /* of the operator's struct, which the keys fill; zeroed before */
    bool wants_stored;   /* its bands are the scene's as they are stored: scale 1, offset 0 */
    bool joins;          /* it puts files together that may lie beside each other */
    bool wants_metadata; /* it needs the scene's metadata: input.metadata */
    /* True if the numbers of a band that the step makes have the scale, offset and unit of those
     * that it is made of: they are selected, rounded, or weighed with weights whose sum is 1. The
     * chain then refuses to mix bands of different scales. NULL = never. */
    bool (*keeps_tags)(const void *params);
    bool compares_tags; /* bands of different scales are refused as well, but what it makes of
                           others has no tags: a difference of numbers has no offset */
    /* Adds the step's values to the chain being built (kernels/graph/builder.h). params: the
     * operator's struct. After a mistake it goes on with poison, so that the next one is found as
     * well. 0; -EINVAL: there was a mistake, and all bands that the step makes become poison;
     * -ENOMEM. */
    int (*build)(const void *params, struct pb_builder *builder);
    /* The formula of the band that an entry of pb_op_outputs makes. False: there is none. NULL: a
     * step of this operator is not told in formulas. */
    bool (*formula)(const void *params, const struct pb_item *item, struct pb_formula *out);
    /* Chooses an exchange; *out is zeroed before, its strings are static. Zeroed params: says which
     * pattern such steps have. When the configuration is loaded the pattern is found and checked,
     * and the tiles of the pipeline, their parts or the rounds of the step follow it (struct
     * pb_step_config). NULL: the step needs none. */
    void (*exchange)(const void *params, struct pb_op_exchange *out);
    /* What a step does although its parameters do not say so, in words: "drops cloud, snow"; "" =
     * nothing. NULL: the parameters say it all. */
    void (*unsaid)(const void *params, char *out, size_t bytes);
    const struct pb_op_case *cases; /* at least one */
    size_t n_cases;
};

/* The operator's keys under its name. */
struct pb_section pb_op_section(const struct pb_op *op);
/* The bands that a step defines: one for each of these entries, called as pb_item_band says.
 * Without entries the step works on every band there is, each in place. Borrowed from params. */
const struct pb_items *pb_op_outputs(const struct pb_op *op, const void *params);
/* A band that it defines besides those; NULL = none. Borrowed from params. */
const char *pb_op_one_more(const struct pb_op *op, const void *params);
/* keeps_tags of operators that always do. */
bool pb_op_keeps(const void *params);
/* Whether the step defines the band, or may: where it works on every band. */
bool pb_op_makes(const struct pb_op *op, const void *params, const char *band);

/* The registry, in the order of ops.def. */
size_t pb_op_count(void);
const struct pb_op *pb_op_at(size_t i);
const char *pb_op_group(size_t i); /* of the operator at i: "terrain, from elevations" */
const struct pb_op *pb_op_find(const char *name); /* NULL = none */

/* Fills *diag and returns -EINVAL. */
int pb_diag_set(struct pb_diag *diag, enum pb_diag_kind kind, const struct pb_item *item, int col,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
#endif
