/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_H
#define PB_SCHEMA_H
/* Every key of the configuration with fixed names, as tables (schema_keys.c): type, range, default,
 * documentation and place in struct pb_config. The one table feeds reading and validation
 * (schema_read.c), the effective configuration and the commented default file (schema_print.c).
 * Operators bring their own tables (kernels/op.h). Internal to config/. */
#include "config/report.h"

struct pb_arena;
struct pb_text;
struct pb_yaml;

/* What a load carries through all readers. Running out of memory shows in the arena. */
struct pb_load {
    struct pb_arena *arena;
    struct pb_report report;
};

enum pb_key_type {
    PB_KEY_TEXT,     /* char *                                     */
    PB_KEY_PATH,     /* char *, not empty                          */
    PB_KEY_NAME,     /* char *, part of a file name                */
    PB_KEY_TIME,     /* char *, RFC 3339                           */
    PB_KEY_INT,      /* int32_t                                    */
    PB_KEY_POWER,    /* int32_t, power of two; 0 if that is the default */
    PB_KEY_COUNT,    /* uint64_t                                   */
    PB_KEY_SIZE,     /* uint64_t bytes                             */
    PB_KEY_DURATION, /* int64_t milliseconds                       */
    PB_KEY_NUMBER,   /* double, finite                             */
    PB_KEY_NODATA,   /* double or NaN; more: bool, whether given   */
    PB_KEY_CHOICE,   /* an enum or int32_t: index in choices       */
    PB_KEY_DEVICE,   /* enum pb_device_kind; more: int32_t, N of cuda:N or -1 */
    PB_KEY_PAIR,     /* double[2], percentiles                     */
    PB_KEY_PATTERNS, /* char **; more: size_t                      */
    PB_KEY_BANDS,    /* char **; more: size_t                      */
    PB_KEY_BAND_MAP  /* struct pb_band_config *; more: size_t      */
};

struct pb_key {
    const char *name;
    enum pb_key_type type;
    size_t offset, more; /* in the section's struct */
    double min, max;     /* INT POWER COUNT SIZE DURATION NUMBER, inclusive */
    const char *def;     /* as written in YAML; NULL = stays unset */
    const char *choices; /* CHOICE: "auto|cpu" */
    const char *example; /* for the default file when there is no default */
    const char *doc;     /* a sentence or two */
};

struct pb_section {
    const char *name;
    const char *doc;
    const struct pb_key *keys;
    size_t n;
};

extern const struct pb_section pb_section_service, pb_section_compute, pb_section_limits,
    pb_section_input;
extern const struct pb_section pb_section_products[4]; /* by enum pb_product_kind */

/* Fills the struct at base from a map (NULL or nothing: defaults only). Mistakes go to the report;
 * their values keep the default. */
void pb_schema_read(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *map, void *base);
/* One "key: value" line a key that is set. */
void pb_schema_print(struct pb_text *out, const struct pb_section *section, const void *base,
                     int indent);

/* An example value for the default file in place of the default. */
struct pb_schema_sample {
    const char *section, *key, *value;
};
/* Every key with its documentation and default; keys without one as a comment. */
void pb_schema_default(struct pb_text *out, const struct pb_section *section,
                       const struct pb_schema_sample *samples, size_t n_samples, int indent);

/* --- shared by the readers of maps with free keys --- */

#define PB_CHOICES_MAX 16
/* Splits "a|b|c"; the words live in the arena. Returns how many. */
size_t pb_split_choices(struct pb_load *load, const char *choices, const char **out_words);
/* [A-Za-z_][A-Za-z0-9_]*, at most 63 letters. */
bool pb_is_identifier(const char *text);
/* Letters, digits, _ - and . but not at the start: safe in a file name and on a command line. */
bool pb_is_file_word(const char *text);
/* A scalar with text, else a mistake "<what> must be <kind>, not ...". */
bool pb_need_scalar(struct pb_load *load, const struct pb_yaml *node, const char *what,
                    const char *kind);
/* The text of "x" as a node, for defaults; NULL when out of memory or not YAML. */
const struct pb_yaml *pb_default_node(struct pb_load *load, const char *text);
/* "16MiB to 16TiB" and the like. Returns out. */
const char *pb_range_text(const struct pb_key *key, char *out, size_t out_bytes);
/* Reports the keys of a map that are not in names; where = what the map is, for the message. */
void pb_report_unknown(struct pb_load *load, const struct pb_yaml *map, const char *where,
                       const char *const *names, size_t n);
/* Whether one of those looks like a slip of `name`: "missing" would then only repeat it. map may be
 * NULL. */
bool pb_is_misspelt(const struct pb_yaml *map, const char *name, const char *const *names,
                    size_t n);
#endif
