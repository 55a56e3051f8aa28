/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/schema_doc.h"

#include "config/base/text.h"
#include "config/schema.h"
#include "config/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pb_key_form(enum pb_key_type type)
{
    static const char *const forms[] = {
        [PB_KEY_TEXT] = "text",
        [PB_KEY_PATH] = "path",
        [PB_KEY_NAME] = "name",
        [PB_KEY_CRS] = "coordinate system",
        [PB_KEY_INT] = "whole number",
        [PB_KEY_ODD] = "odd whole number",
        [PB_KEY_POWER] = "power of two",
        [PB_KEY_PERCENT] = "percentage",
        [PB_KEY_COUNT] = "whole number",
        [PB_KEY_SIZE] = "size",
        [PB_KEY_DURATION] = "duration",
        [PB_KEY_NUMBER] = "number",
        [PB_KEY_NODATA] = "number or .nan",
        [PB_KEY_CHOICE] = "word",
        [PB_KEY_DEVICE] = "device",
        [PB_KEY_PAIR] = "[percentile, percentile]",
        [PB_KEY_RANGE] = "[number, number]",
        [PB_KEY_PATTERNS] = "[patterns]",
        [PB_KEY_FILE_NAMES] = "pattern or [patterns]",
        [PB_KEY_PATHS] = "[patterns]",
        [PB_KEY_COMMAND] = "[program, arguments]",
        [PB_KEY_BANDS] = "[bands]",
        [PB_KEY_BAND_MAP] = "{NAME: number}",
        [PB_KEY_SOURCES] = "{NAME: {file: path, ...}}",
        [PB_KEY_FILES] = "{BAND: pattern or {match: pattern, ...}}",
        [PB_KEY_INBOXES] = "[{path: path, ...}]",
        [PB_KEY_SECTION] = "{key: value}",
        [PB_KEY_NAMES] = "[A, B] or {OUT: IN}",
        [PB_KEY_EXPRESSION] = "expression",
        [PB_KEY_BAND] = "NAME",
        [PB_KEY_EXPRESSIONS] = "{NAME: expression}",
        [PB_KEY_NUMBERS] = "number or {NAME: number}",
        [PB_KEY_CONSTANTS] = "{NAME: number}",
        [PB_KEY_WEIGHTS] = "[numbers]",
        [PB_KEY_VECTORS] = "{NAME: [numbers]}",
        [PB_KEY_WORDS] = "[words and numbers]",
    };
    return forms[type];
}

const char *pb_key_range(const struct pb_key *key, char *out, size_t out_bytes)
{
    char low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    if (key->min >= key->max || key->max >= 1e30) /* "up to 3.4e38" is left out */
        return NULL;
    switch (key->type) {
    case PB_KEY_SIZE:
        pb_units_size_text((uint64_t)key->min, low);
        pb_units_size_text((uint64_t)key->max, high);
        break;
    case PB_KEY_DURATION:
        pb_units_duration_text((int64_t)key->min, low);
        pb_units_duration_text((int64_t)key->max, high);
        break;
    case PB_KEY_PERCENT:
        (void)snprintf(low, sizeof low, "%.0f%%", key->min);
        (void)snprintf(high, sizeof high, "%.0f%%", key->max);
        break;
    default:
        pb_units_number_text(key->min, low);
        pb_units_number_text(key->max, high);
    }
    (void)snprintf(out, out_bytes, "%s to %s", low, high);
    return out;
}

/* The documentation of the key, with the range of its values. */
static void print_doc(struct pb_text *out, const struct pb_key *key, int indent)
{
    char room[120];
    const char *range = pb_key_range(key, room, sizeof room);
    struct pb_text doc = {.text = NULL};
    pb_text_add(&doc, "%s", key->doc);
    if (key->choices) {
        pb_text_add(&doc, " One of: ");
        for (const char *c = key->choices; *c; c++)
            pb_text_add(&doc, *c == '|' ? " | " : "%c", *c);
    } else if (range && key->type != PB_KEY_NUMBER) {
        pb_text_add(&doc, " (%s)", range);
    }
    char *text = pb_text_take(&doc);
    out->failed = out->failed || text == NULL;
    if (text != NULL)
        pb_text_comment(out, indent, text);
    free(text);
}

void pb_schema_default(struct pb_text *out, const struct pb_section *section, int indent)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *value = key->sample ? key->sample : key->def;
        print_doc(out, key, indent);
        pb_text_add(out, "%*s%s%s: %s\n", indent, "", value ? "" : "# ", key->name,
                    value ? value : key->example);
    }
}

void pb_schema_default_commented(struct pb_text *out, const struct pb_section *section, int before,
                                 int indent)
{
    struct pb_text plain = {.text = NULL};
    pb_schema_default(&plain, section, indent);
    char *text = pb_text_take(&plain);
    out->failed = out->failed || text == NULL;
    for (char *line = text, *end; line != NULL && *line; line = end + 1) {
        end = strchr(line, '\n');
        pb_text_add(out, "%*s#%.*s\n", before, "", (int)(end - line), line);
    }
    free(text);
}
