/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_KEY_H
#define PB_KEY_H
/* Keys: the settings that a section of the configuration, a product or an operator takes, as a
 * table of plain data. A row says what may be written, what it means and where in a struct the
 * value goes. config/schema.h reads, checks, prints and documents by these tables; what the table
 * describes gets a struct and never looks a key up. Static, read-only; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One entry of a list or map. line and col are the place in the configuration of the first
 * character of text (behind a quote), 0 = not from a file. */
struct pb_item {
    const char *key;  /* of a map; NULL = of a list, or a value alone */
    const char *text; /* the value as written */
    double num;       /* NUMBERS, CONSTANTS, WEIGHTS, VECTORS */
    int line, col;
};

/* Entries in the order of the file. Borrowed from whoever read them. */
struct pb_items {
    const struct pb_item *items; /* n == 0: not given and no default */
    size_t n;
    bool is_partial; /* a mistake took entries away: nothing follows from one that is not there */
};

/* What a key may hold, and the member that it fills. `more` is the offset of a second member: where
 * the comment names one it is needed; "given": of a bool that becomes true when there is a value,
 * 0 = none is wanted. */
enum pb_key_type {
    PB_KEY_TEXT,        /* char *                                              */
    PB_KEY_PATH,        /* char *, not empty                                   */
    PB_KEY_NAME,        /* char *, part of a file name                         */
    PB_KEY_CRS,         /* char *, a coordinate system that is known            */
    PB_KEY_INT,         /* int32_t; more: given                                */
    PB_KEY_ODD,         /* int32_t, odd; more: given                           */
    PB_KEY_POWER,       /* int32_t, power of two, 0 if that is the default; more: given */
    PB_KEY_PERCENT,     /* int32_t, a whole number with %; more: given         */
    PB_KEY_COUNT,       /* uint64_t; more: given                               */
    PB_KEY_SIZE,        /* uint64_t bytes; more: given                         */
    PB_KEY_DURATION,    /* int64_t milliseconds; more: given                   */
    PB_KEY_NUMBER,      /* double, finite; more: given                         */
    PB_KEY_NODATA,      /* double or NaN; more: given                          */
    PB_KEY_CHOICE,      /* an enum or int32_t: index in choices; more: given   */
    PB_KEY_DEVICE,      /* enum pb_device_kind; more: int32_t, N of cuda:N or -1 */
    PB_KEY_PAIR,        /* double[2], percentiles; more: given                 */
    PB_KEY_RANGE,       /* double[2], finite, not equal; more: given           */
    PB_KEY_PATTERNS,    /* char **; more: size_t                               */
    PB_KEY_FILE_NAMES,  /* char **; more: size_t. A pattern or some, of files of a scene */
    PB_KEY_PATHS,       /* char **; more: size_t. Patterns, perhaps with folders */
    PB_KEY_COMMAND,     /* char **; more: size_t. A program and its arguments  */
    PB_KEY_BANDS,       /* char **; more: size_t                               */
    PB_KEY_BAND_MAP,    /* struct pb_band_config *; more: size_t               */
    PB_KEY_SOURCES,     /* struct pb_source_config *; more: size_t             */
    PB_KEY_FILES,       /* struct pb_file_config *; more: size_t               */
    PB_KEY_INBOXES,     /* struct pb_inbox_config *; more: size_t              */
    PB_KEY_SECTION,     /* the struct of another section; more: given           */
    PB_KEY_NAMES,       /* struct pb_items: [A, B], or {OUT: IN} (key = OUT, text = IN) */
    PB_KEY_EXPRESSION,  /* struct pb_items: "expression" (one item, key NULL)  */
    PB_KEY_BAND,        /* struct pb_items: NAME, of a band (one item, key NULL) */
    PB_KEY_EXPRESSIONS, /* struct pb_items: {NAME: "expression", ...}          */
    PB_KEY_NUMBERS,     /* struct pb_items: 0.5 (one item, key NULL), or {NAME: 0.5, ...} */
    PB_KEY_CONSTANTS,   /* struct pb_items: {NAME: 0.5, ...}                   */
    PB_KEY_WEIGHTS,     /* struct pb_items: [1, 2, 3]                          */
    PB_KEY_VECTORS,     /* struct pb_items: {NAME: [1, 2, 3], ...}; an item for each number */
    PB_KEY_WORDS        /* struct pb_items: [cloud, 3]; num: NaN of a word     */
};

struct pb_section;

struct pb_key {
    const char *name;
    enum pb_key_type type;
    size_t offset, more;              /* in the struct that the table fills */
    double min, max;                  /* of numbers, inclusive; min == max: any */
    const char *def;                  /* as written in YAML; NULL = stays as it is */
    const char *choices;              /* CHOICE: "auto|cpu" */
    const char *called;               /* CHOICE: other words for them (config/choice_words.h) */
    const char *example;              /* for the default file when there is no default: a comment */
    const char *sample;               /* for the default file in place of the default */
    const char *doc;                  /* a sentence or two */
    const struct pb_section *section; /* SECTION: its table */
    bool required;
    bool may_be_empty;  /* TEXT: "" is a value, too */
    bool makes_bands;   /* NAMES, BAND, EXPRESSIONS: each entry is a band that a step makes */
    bool makes_one;     /* BAND: a band that the step makes besides those */
    bool names_classes; /* BAND: the values of that band are classes or bits */
};

/* Keys that belong together, and what messages call them: "compute", "cog", "convolve". */
struct pb_section {
    const char *name;
    const char *doc;
    const struct pb_key *keys;
    size_t n;
};

/* Room for a value that is no list. */
struct pb_key_value {
    struct pb_item item[2];
    char text[40];
};
/* The value of a key in the struct at base, whatever its member, as entries: of the types that
 * operators use, which are all but DEVICE, PATTERNS, PATHS, COMMAND, BANDS, BAND_MAP, SOURCES,
 * FILES, INBOXES and SECTION. n == 0: not given. The items are those of the struct, or in *room. */
struct pb_items pb_key_items(const struct pb_key *key, const void *base, struct pb_key_value *room);
/* Whether items of this type hold their value in num. */
bool pb_key_is_number(enum pb_key_type type);
/* Whether the key has a value: its text, its entries, or the bool that tells so. */
bool pb_key_is_given(const struct pb_key *key, const void *base);
/* Whether `more` may be the offset of a bool "given". */
bool pb_key_may_tell(enum pb_key_type type);
/* The word of a choice, and its length; choices and index as in struct pb_key. */
const char *pb_key_choice(const char *choices, int index, size_t *out_length);
/* The key whose member is at `member` of the struct at base; NULL = none. */
const struct pb_key *pb_key_of(const struct pb_section *section, const void *base,
                               const void *member);
/* The band that an entry of NAMES, BAND or EXPRESSIONS makes: {BAND: ...}, [BAND] or BAND.
 * Borrowed. */
const char *pb_item_band(const struct pb_item *item);
/* How many entries from `first` on are numbers of one entry of VECTORS. */
size_t pb_items_of_vector(const struct pb_items *items, size_t first);
#endif
