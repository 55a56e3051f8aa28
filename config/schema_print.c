/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include "config/base/text.h"
#include "config/units.h"

#include <stdio.h>
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
    for (; index > 0; index--)
        choices = strchr(choices, '|') + 1;
    pb_text_add(out, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void print_device(struct pb_text *out, int kind, int32_t number)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    pb_text_add(out, "%s", words[kind]);
    if (number >= 0)
        pb_text_add(out, ":%d", number);
}

static bool is_set(const struct pb_key *key, const char *at, const char *more)
{
    switch (key->type) {
    case PB_KEY_TEXT:
    case PB_KEY_PATH:
    case PB_KEY_NAME:
    case PB_KEY_TIME:
        return *(char *const *)(const void *)at != NULL;
    case PB_KEY_NODATA:
        return *(const bool *)more;
    case PB_KEY_PATTERNS:
    case PB_KEY_BANDS:
    case PB_KEY_BAND_MAP:
        return *(const size_t *)(const void *)more > 0;
    default:
        return true;
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
    case PB_KEY_TIME:
        pb_text_yaml(out, *(char *const *)at);
        break;
    case PB_KEY_INT:
    case PB_KEY_POWER:
        pb_text_add(out, "%d", *(const int32_t *)at);
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
        pb_text_add(out, "[%s, %s]", pb_units_number_text(((const double *)at)[0], text),
                    pb_units_number_text(((const double *)at)[1], second));
        break;
    case PB_KEY_PATTERNS:
    case PB_KEY_BANDS:
        print_words(out, *(char **const *)at, *(const size_t *)more);
        break;
    case PB_KEY_BAND_MAP:
        print_bands(out, *(struct pb_band_config *const *)at, *(const size_t *)more);
        break;
    }
}

void pb_schema_print(struct pb_text *out, const struct pb_section *section, const void *base,
                     int indent)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *at = (const char *)base + key->offset, *more = (const char *)base + key->more;
        if (!is_set(key, at, more))
            continue;
        pb_text_add(out, "%*s%s: ", indent, "", key->name);
        print_value(out, key, at, more);
        pb_text_add(out, "\n");
    }
}

/* The sentence of the key, with what the table knows of its values. */
static void print_doc(struct pb_text *out, const struct pb_key *key, int indent)
{
    char text[700], range[120];
    int length = snprintf(text, sizeof text, "%s", key->doc);
    char *end = text + length;
    size_t left = sizeof text - (size_t)length;
    if (key->choices) {
        (void)snprintf(end, left, " One of: ");
        for (const char *c = key->choices; *c; c++)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                           *c == '|' ? " | " : "%c", *c);
    } else if (key->min < key->max && key->type != PB_KEY_NUMBER) {
        (void)snprintf(end, left, " (%s)", pb_range_text(key, range, sizeof range));
    }
    pb_text_comment(out, indent, text);
}

void pb_schema_default(struct pb_text *out, const struct pb_section *section,
                       const struct pb_schema_sample *samples, size_t n_samples, int indent)
{
    for (size_t i = 0; i < section->n; i++) {
        const struct pb_key *key = &section->keys[i];
        const char *value = key->def;
        for (size_t k = 0; k < n_samples; k++)
            if (strcmp(samples[k].section, section->name) == 0 &&
                strcmp(samples[k].key, key->name) == 0)
                value = samples[k].value;
        print_doc(out, key, indent);
        pb_text_add(out, "%*s%s%s: %s\n", indent, "", value ? "" : "# ", key->name,
                    value ? value : key->example);
    }
}
