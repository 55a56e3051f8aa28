/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include "config/base/text.h"
#include "config/input_config.h"
#include "config/service_config.h"
#include "config/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_words(struct pb_text *out, char *const *words, size_t n)
{
    pb_text_add(out, "[");
    for (size_t i = 0; i < n; i++) {
        pb_text_add(out, i ? ", " : "");
        pb_text_yaml(out, words[i]);
    }
    pb_text_add(out, "]");
}

static void print_bands(struct pb_text *out, const struct pb_band_config *bands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pb_text_add(out, "%s%s: %d", i ? ", " : "{", bands[i].name, bands[i].index);
    pb_text_add(out, "}");
}

static void print_choice(struct pb_text *out, const char *choices, int index)
{
    size_t length;
    const char *word = pb_key_choice(choices, index, &length);
    pb_text_add(out, "%.*s", (int)length, word);
}

static void print_device(struct pb_text *out, int kind, int32_t number)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    pb_text_add(out, "%s", words[kind]);
    if (number >= 0)
        pb_text_add(out, ":%d", number);
}

/* {SOIL: [0.1, 0.2], WATER: [0.05, 0]} */
static void print_vectors(struct pb_text *out, const struct pb_items *items)
{
    char number[PB_UNITS_TEXT];
    for (size_t i = 0, n; i < items->n; i += n) {
        n = pb_items_of_vector(items, i);
        pb_text_add(out, "%s%s: [", i ? ", " : "{", items->items[i].key);
        for (size_t k = 0; k < n; k++)
            pb_text_add(out, "%s%s", k ? ", " : "",
                        pb_units_number_text(items->items[i + k].num, number));
        pb_text_add(out, "]");
    }
    pb_text_add(out, "}");
}

static void print_items(struct pb_text *out, const struct pb_key *key, const struct pb_items *items)
{
    if (key->type == PB_KEY_VECTORS) {
        print_vectors(out, items);
        return;
    }
    bool map = items->items[0].key != NULL;
    bool list = !map && key->type != PB_KEY_NUMBERS && key->type != PB_KEY_EXPRESSION &&
                key->type != PB_KEY_BAND;
    pb_text_add(out, "%s", map ? "{" : list ? "[" : "");
    for (size_t i = 0; i < items->n; i++) {
        const struct pb_item *item = &items->items[i];
        char number[PB_UNITS_TEXT];
        pb_text_add(out, "%s%s%s", i ? ", " : "", map ? item->key : "", map ? ": " : "");
        if (pb_key_is_number(key->type) || (key->type == PB_KEY_WORDS && !isnan(item->num)))
            pb_text_add(out, "%s", pb_units_number_text(item->num, number));
        else
            pb_text_yaml(out, item->text);
    }
    pb_text_add(out, "%s", map ? "}" : list ? "]" : "");
}

static void print_value(struct pb_text *out, const struct pb_key *key, const void *at,
                        const void *more);

/* {file: /data/pan.tif, bands: {P: 1}} */
static void print_map(struct pb_text *out, const struct pb_section *section, const void *base)
{
    const char *separator = "";
    pb_text_add(out, "{");
    for (size_t k = 0; k < section->n; k++) {
        const struct pb_key *key = &section->keys[k];
        if (!pb_key_is_given(key, base))
            continue;
        pb_text_add(out, "%s%s: ", separator, key->name);
        print_value(out, key, (const char *)base + key->offset, (const char *)base + key->more);
        separator = ", ";
    }
    pb_text_add(out, "}");
}

static void print_sources(struct pb_text *out, const struct pb_source_config *sources, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pb_text_add(out, "%s%s: ", i ? ", " : "{", sources[i].name);
        print_map(out, &pb_section_source, &sources[i]);
    }
    pb_text_add(out, "}");
}

static void print_files(struct pb_text *out, const struct pb_file_config *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pb_text_add(out, "%s%s: ", i ? ", " : "{", files[i].band);
        print_map(out, &pb_section_file, &files[i]);
    }
    pb_text_add(out, "}");
}

static void print_inboxes(struct pb_text *out, const struct pb_inbox_config *inboxes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pb_text_add(out, "%s", i ? ", " : "[");
        print_map(out, &pb_section_inbox, &inboxes[i]);
    }
    pb_text_add(out, "]");
}

static void print_list(struct pb_text *out, const struct pb_key *key, const void *at,
                       const void *more)
{
    switch (key->type) {
    case PB_KEY_PATTERNS:
    case PB_KEY_FILE_NAMES:
    case PB_KEY_PATHS:
    case PB_KEY_COMMAND:
    case PB_KEY_BANDS:
        print_words(out, *(char **const *)at, *(const size_t *)more);
        break;
    case PB_KEY_SOURCES:
        print_sources(out, *(struct pb_source_config *const *)at, *(const size_t *)more);
        break;
    case PB_KEY_FILES:
        print_files(out, *(struct pb_file_config *const *)at, *(const size_t *)more);
        break;
    case PB_KEY_INBOXES:
        print_inboxes(out, *(struct pb_inbox_config *const *)at, *(const size_t *)more);
        break;
    case PB_KEY_SECTION:
        print_map(out, key->section, at);
        break;
    case PB_KEY_BAND_MAP:
        print_bands(out, *(struct pb_band_config *const *)at, *(const size_t *)more);
        break;
    default: /* of struct pb_items */
        print_items(out, key, at);
    }
}

static void print_value(struct pb_text *out, const struct pb_key *key, const void *at,
                        const void *more)
{
    char text[PB_UNITS_TEXT], second[PB_UNITS_TEXT];
    int choice = 0;
    switch (key->type) {
    case PB_KEY_TEXT:
    case PB_KEY_PATH:
    case PB_KEY_NAME:
    case PB_KEY_CRS:
        pb_text_yaml(out, *(char *const *)at);
        break;
    case PB_KEY_INT:
    case PB_KEY_ODD:
    case PB_KEY_POWER:
        pb_text_add(out, "%d", *(const int32_t *)at);
        break;
    case PB_KEY_PERCENT:
        pb_text_add(out, "%d%%", *(const int32_t *)at);
        break;
    case PB_KEY_COUNT:
        pb_text_add(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PB_KEY_SIZE:
        pb_text_add(out, "%s", pb_units_size_text(*(const uint64_t *)at, text));
        break;
    case PB_KEY_DURATION:
        pb_text_add(out, "%s", pb_units_duration_text(*(const int64_t *)at, text));
        break;
    case PB_KEY_NUMBER:
    case PB_KEY_NODATA:
        pb_text_add(out, "%s", pb_units_number_text(*(const double *)at, text));
        break;
    case PB_KEY_CHOICE:
        memcpy(&choice, at, sizeof choice);
        print_choice(out, key->choices, choice);
        break;
    case PB_KEY_DEVICE:
        memcpy(&choice, at, sizeof choice);
        print_device(out, choice, *(const int32_t *)more);
        break;
    case PB_KEY_PAIR:
    case PB_KEY_RANGE:
        pb_text_add(out, "[%s, %s]", pb_units_number_text(((const double *)at)[0], text),
                    pb_units_number_text(((const double *)at)[1], second));
        break;
    default:
        print_list(out, key, at, more);
    }
}

void pb_schema_print(struct pb_text *out, const struct pb_section *section, const void *base,
                     int indent)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *at = (const char *)base + key->offset, *more = (const char *)base + key->more;
        if (!pb_key_is_given(key, base))
            continue;
        pb_text_add(out, "%*s%s: ", indent, "", key->name);
        print_value(out, key, at, more);
        pb_text_add(out, "\n");
    }
}

static bool is_default(const struct pb_key *key, const void *at, const void *more)
{
    struct pb_text text = {.text = NULL};
    if (key->def == NULL)
        return false;
    print_value(&text, key, at, more);
    bool same = !text.failed && text.text != NULL && strcmp(text.text, key->def) == 0;
    free(pb_text_take(&text));
    return same;
}

void pb_schema_print_short(struct pb_text *out, const struct pb_section *section, const void *base)
{
    const char *separator = "";
    pb_text_add(out, "{");
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *at = (const char *)base + key->offset, *more = (const char *)base + key->more;
        if (!pb_key_is_given(key, base) || is_default(key, at, more))
            continue;
        pb_text_add(out, "%s%s: ", separator, key->name);
        print_value(out, key, at, more);
        separator = ", ";
    }
    pb_text_add(out, "}");
}
