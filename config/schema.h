/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_H
#define PB_SCHEMA_H
/* The engine for all key tables (kernels/key.h): sections of the configuration (schema_keys.c),
 * operators and products (their descriptors). It reads and validates (schema_read.c and
 * schema_values.h), prints the effective values (schema_print.c) and documents (schema_doc.c).
 * Internal to config/, but for schema_doc.h. */
#include "config/yaml/report.h"
#include "kernels/key.h"

struct pb_arena;
struct pb_config_files;
struct pb_product_kinds;
struct pb_text;
struct pb_yaml;

/* What a load carries through all readers. Running out of memory shows in the arena. */
struct pb_load {
    struct pb_arena *arena;
    const struct pb_product_kinds *kinds;
    struct pb_report report;
    struct pb_config_files *files; /* files of the configuration */
};

extern const struct pb_section pb_section_retention, pb_section_service, pb_section_inbox,
    pb_section_inbox_complete, pb_section_compute, pb_section_limits, pb_section_web,
    pb_section_input, pb_section_output, pb_section_source, pb_section_file, pb_section_complete,
    pb_section_pipeline, pb_section_duplicates, pb_section_unmatched, pb_section_store,
    pb_section_fetch, pb_section_quality, pb_section_lines, pb_section_exec, pb_section_webhook,
    pb_section_mqtt, pb_section_stac;

/* Fills the struct at base, zeroed before, from a map (NULL or nothing: defaults only). Every
 * mistake goes to the report; an invalid value keeps the default, a list keeps its valid
 * entries. */
void pb_schema_read(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *map, void *base);
/* The section's keys out of a map that has others as well, which the caller checks. */
void pb_schema_read_own(struct pb_load *load, const struct pb_section *section,
                        const struct pb_yaml *map, void *base);
/* Reports the keys that are required and not in the map, at `owner`. */
void pb_schema_need(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *owner, const struct pb_yaml *map);
/* One "key: value" line a key that is set. */
void pb_schema_print(struct pb_text *out, const struct pb_section *section, const void *base,
                     int indent);
/* "{key: value, ...}" of the keys that are set and have another value than their default. */
void pb_schema_print_short(struct pb_text *out, const struct pb_section *section, const void *base);

/* Every key with its documentation and default; keys without one as a comment. */
void pb_schema_default(struct pb_text *out, const struct pb_section *section, int indent);

/* The same in lines that are comments as a whole: `before` columns, '#', then `indent`. */
void pb_schema_default_commented(struct pb_text *out, const struct pb_section *section, int before,
                                 int indent);

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
/* Reports the keys of a map that are not in names; where = what the map is, for the message. */
void pb_report_unknown(struct pb_load *load, const struct pb_yaml *map, const char *where,
                       const char *const *names, size_t n);
/* Whether one of those looks like a misspelt `name`: "missing" would then only repeat the mistake.
 * map may be NULL. */
bool pb_is_misspelt(const struct pb_yaml *map, const char *name, const char *const *names,
                    size_t n);
#endif
