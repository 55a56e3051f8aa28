/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A parser of YAML decides whether a scalar is a number, a boolean or a text, and not all parsers
 * decide alike (1e-4, 0640, on). Where this is open the schema allows each of them. */
#include "config/schema_json.h"

#include "config/base/json_writer.h"
#include "config/config_parts.h"
#include "config/product_config.h"
#include "config/schema_doc.h"
#include "kernels/op.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add_words(struct pb_json *json, const char *key, const char *const *words, size_t n)
{
    pb_json_array(json, key);
    for (size_t i = 0; i < n; i++)
        pb_json_string(json, NULL, words[i]);
    pb_json_end(json);
}

/* "type": one word, or several with a bar between them. */
static void add_type(struct pb_json *json, const char *types)
{
    if (strchr(types, '|') == NULL) {
        pb_json_string(json, "type", types);
        return;
    }
    pb_json_array(json, "type");
    for (const char *at = types; *at != '\0';) {
        char word[16];
        const size_t length = strcspn(at, "|");
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        pb_json_string(json, NULL, word);
        at += length + (at[length] == '|');
    }
    pb_json_end(json);
}

static void add_list(struct pb_json *json, const char *items)
{
    add_type(json, "array");
    pb_json_object(json, "items");
    add_type(json, items);
    pb_json_end(json);
}

static void add_map(struct pb_json *json, const char *values)
{
    add_type(json, "object");
    pb_json_object(json, "additionalProperties");
    add_type(json, values);
    pb_json_end(json);
}

/* {"anyOf": [{"type": types}, ...]: opens the list with its first entry. */
static void begin_any(struct pb_json *json, const char *types)
{
    pb_json_array(json, "anyOf");
    pb_json_object(json, NULL);
    add_type(json, types);
    pb_json_end(json);
}

/* --- scalars ---------------------------------------------------------------------------------- */

static const char SCALAR[] = "string|number|boolean";

static void add_bounds(struct pb_json *json, const struct pb_key *key)
{
    if (key->min < key->max && key->type != PB_KEY_SIZE && key->type != PB_KEY_DURATION) {
        pb_json_number(json, "minimum", key->type == PB_KEY_POWER ? 0 : key->min);
        pb_json_number(json, "maximum", key->max);
    }
}

/* The words of a choice; those that YAML may take for a boolean or a number also as such. */
static void add_choice(struct pb_json *json, const struct pb_key *key)
{
    bool has_number = false;
    pb_json_array(json, "anyOf");
    pb_json_object(json, NULL);
    pb_json_array(json, "enum");
    for (const char *at = key->choices; *at != '\0';) {
        char word[64];
        const size_t length = strcspn(at, "|");
        (void)snprintf(word, sizeof word, "%.*s", (int)length, at);
        pb_json_string(json, NULL, word);
        if (strcmp(word, "true") == 0 || strcmp(word, "on") == 0)
            pb_json_bool(json, NULL, true);
        else if (strcmp(word, "false") == 0 || strcmp(word, "off") == 0)
            pb_json_bool(json, NULL, false);
        has_number = has_number || isdigit((unsigned char)word[0]);
        at += length + (at[length] == '|');
    }
    pb_json_end(json);
    pb_json_end(json);
    if (has_number || key->called != NULL) {
        pb_json_object(json, NULL);
        add_type(json, key->called != NULL ? "string" : "number");
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* A number, or a text with the pattern. */
static void add_number(struct pb_json *json, const struct pb_key *key, const char *type,
                       const char *pattern)
{
    pb_json_array(json, "anyOf");
    pb_json_object(json, NULL);
    add_type(json, type);
    add_bounds(json, key);
    pb_json_end(json);
    pb_json_object(json, NULL);
    add_type(json, "string");
    pb_json_string(json, "pattern", pattern);
    pb_json_end(json);
    pb_json_end(json);
}

static void add_pair(struct pb_json *json)
{
    add_list(json, "number|string");
    pb_json_int(json, "minItems", 2);
    pb_json_int(json, "maxItems", 2);
}

/* False: the type is no scalar. */
static bool add_scalar(struct pb_json *json, const struct pb_key *key)
{
    static const char number[] = "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$";
    switch (key->type) {
    case PB_KEY_INT:
    case PB_KEY_ODD:
    case PB_KEY_POWER:
        add_type(json, "integer");
        add_bounds(json, key);
        return true;
    case PB_KEY_COUNT:
    case PB_KEY_NUMBER:
        add_number(json, key, "number", number);
        return true;
    case PB_KEY_NODATA:
        add_number(json, key, "number", "^([-+]?[0-9.]+([eE][-+]?[0-9]+)?|[.]?nan|[-+]?[.]?inf)$");
        return true;
    case PB_KEY_SIZE:
        add_number(json, key, "integer", "^[0-9.]+ ?[kKMGTP]?i?B?$");
        return true;
    case PB_KEY_DURATION:
        add_number(json, key, "integer", "^([0-9.]+ ?(ms|s|m|h|d) ?)+$");
        return true;
    case PB_KEY_PERCENT:
        add_type(json, "string");
        pb_json_string(json, "pattern", "^[0-9]+%$");
        return true;
    case PB_KEY_DEVICE:
        add_type(json, "string");
        pb_json_string(json, "pattern", "^(auto|cpu|cuda(:[0-9]+)?)$");
        return true;
    case PB_KEY_CHOICE:
        add_choice(json, key);
        return true;
    case PB_KEY_TEXT:
    case PB_KEY_PATH:
    case PB_KEY_NAME:
    case PB_KEY_CRS:
    case PB_KEY_BAND:
    case PB_KEY_EXPRESSION:
        add_type(json, SCALAR);
        return true;
    default:
        return false;
    }
}

/* --- lists and maps --------------------------------------------------------------------------- */

static void add_section(struct pb_json *json, const struct pb_section *section);

/* A map of names to sections; short: or to a scalar that is the section's main key. */
static void add_sections(struct pb_json *json, const struct pb_section *section, bool is_short)
{
    add_type(json, "object");
    pb_json_object(json, "additionalProperties");
    if (is_short)
        begin_any(json, SCALAR);
    if (is_short)
        pb_json_object(json, NULL);
    add_section(json, section);
    if (is_short) {
        pb_json_end(json);
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* A list or map, as one of several forms. */
static void add_forms(struct pb_json *json, const char *scalar, const char *items,
                      const char *values)
{
    pb_json_array(json, "anyOf");
    const char *const form[] = {scalar, items, values};
    for (int i = 0; i < 3; i++) {
        if (form[i] == NULL)
            continue;
        pb_json_object(json, NULL);
        if (i == 0)
            add_type(json, form[i]);
        else if (i == 1)
            add_list(json, form[i]);
        else
            add_map(json, form[i]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void add_vectors(struct pb_json *json)
{
    add_type(json, "object");
    pb_json_object(json, "additionalProperties");
    add_list(json, "number|string");
    pb_json_end(json);
}

static void add_inboxes(struct pb_json *json)
{
    add_type(json, "array");
    pb_json_object(json, "items");
    add_section(json, &pb_section_inbox);
    pb_json_end(json);
}

static void add_collection(struct pb_json *json, const struct pb_key *key)
{
    switch (key->type) {
    case PB_KEY_PAIR:
    case PB_KEY_RANGE:
        add_pair(json);
        break;
    case PB_KEY_BAND_MAP:
        add_map(json, "integer");
        break;
    case PB_KEY_SOURCES:
        add_sections(json, &pb_section_source, false);
        break;
    case PB_KEY_FILES:
        add_sections(json, &pb_section_file, true);
        break;
    case PB_KEY_INBOXES:
        add_inboxes(json);
        break;
    case PB_KEY_SECTION:
        add_section(json, key->section);
        break;
    case PB_KEY_FILE_NAMES:
        add_forms(json, SCALAR, SCALAR, NULL);
        break;
    case PB_KEY_NAMES:
        add_forms(json, NULL, SCALAR, SCALAR);
        break;
    case PB_KEY_NUMBERS:
        add_forms(json, "number|string", NULL, "number|string");
        break;
    case PB_KEY_EXPRESSIONS:
        add_map(json, SCALAR);
        break;
    case PB_KEY_CONSTANTS:
        add_map(json, "number|string");
        break;
    case PB_KEY_VECTORS:
        add_vectors(json);
        break;
    default: /* lists of words or numbers */
        add_list(json, SCALAR);
    }
}

/* --- sections --------------------------------------------------------------------------------- */

static void add_key(struct pb_json *json, const struct pb_key *key)
{
    char text[2048];
    pb_json_object(json, key->name);
    (void)snprintf(text, sizeof text, "%s%s%s%s", key->doc, key->def != NULL ? " Default: " : "",
                   key->def != NULL ? key->def : "", key->def != NULL ? "." : "");
    pb_json_string(json, "description", text);
    if (!add_scalar(json, key))
        add_collection(json, key);
    pb_json_end(json);
}

static void add_properties(struct pb_json *json, const struct pb_section *section)
{
    for (size_t i = 0; i < section->n; i++)
        add_key(json, &section->keys[i]);
}

static bool needs_keys(const struct pb_section *section)
{
    for (size_t i = 0; i < section->n; i++)
        if (section->keys[i].required)
            return true;
    return false;
}

static void add_required(struct pb_json *json, const struct pb_section *section)
{
    if (!needs_keys(section))
        return;
    pb_json_array(json, "required");
    for (size_t i = 0; i < section->n; i++)
        if (section->keys[i].required)
            pb_json_string(json, NULL, section->keys[i].name);
    pb_json_end(json);
}

static void add_section(struct pb_json *json, const struct pb_section *section)
{
    add_type(json, needs_keys(section) ? "object" : "object|null");
    pb_json_object(json, "properties");
    add_properties(json, section);
    pb_json_end(json);
    add_required(json, section);
    pb_json_bool(json, "additionalProperties", false);
}

static void add_part(struct pb_json *json, const struct pb_section *section)
{
    pb_json_object(json, section->name);
    pb_json_string(json, "description", section->doc);
    add_section(json, section);
    pb_json_end(json);
}

/* The entries of a list of steps, products or receivers: a name, or a name with its keys. */
struct entries {
    struct pb_section (*at)(const struct pb_product_kinds *kinds, size_t i);
    size_t n;
};

static struct pb_section step_at(const struct pb_product_kinds *kinds, size_t i)
{
    const struct pb_op *op = pb_op_at(i);
    struct pb_section section = pb_op_section(op);
    (void)kinds;
    section.doc = op->doc.summary;
    return section;
}

static struct pb_section product_at(const struct pb_product_kinds *kinds, size_t i)
{
    return kinds->kinds[i]->section;
}

static struct pb_section notify_at(const struct pb_product_kinds *kinds, size_t i)
{
    (void)kinds;
    return *pb_notify_sections[i];
}

static void add_entries(struct pb_json *json, const char *name, const struct entries *entries,
                        const struct pb_product_kinds *kinds)
{
    pb_json_object(json, name);
    add_type(json, "array|null");
    pb_json_object(json, "items");
    pb_json_array(json, "anyOf");
    pb_json_object(json, NULL);
    pb_json_array(json, "enum");
    for (size_t i = 0; i < entries->n; i++) {
        const struct pb_section section = entries->at(kinds, i);
        if (!needs_keys(&section))
            pb_json_string(json, NULL, section.name);
    }
    pb_json_end(json);
    pb_json_end(json);
    pb_json_object(json, NULL);
    add_type(json, "object");
    pb_json_int(json, "minProperties", 1);
    pb_json_int(json, "maxProperties", 1);
    pb_json_bool(json, "additionalProperties", false);
    pb_json_object(json, "properties");
    for (size_t i = 0; i < entries->n; i++) {
        const struct pb_section section = entries->at(kinds, i);
        add_part(json, &section);
    }
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

/* The keys of an exchange follow from its pattern, which may be of a plugin. */
static void add_exchange(struct pb_json *json)
{
    pb_json_object(json, "exchange");
    add_type(json, "object|null");
    pb_json_object(json, "properties");
    pb_json_object(json, "pattern");
    add_type(json, "string");
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

static void add_input(struct pb_json *json)
{
    pb_json_object(json, "input");
    pb_json_string(json, "description", "The name of a preset, or keys.");
    begin_any(json, "string");
    pb_json_object(json, NULL);
    add_section(json, &pb_section_input);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

static void add_pipelines(struct pb_json *json, const struct pb_product_kinds *kinds)
{
    const struct entries steps = {step_at, pb_op_count()}, products = {product_at, kinds->n};
    pb_json_object(json, "pipelines");
    pb_json_string(json, "description", pb_section_pipeline.doc);
    add_type(json, "object|null");
    pb_json_object(json, "propertyNames");
    pb_json_string(json, "pattern", "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$");
    pb_json_end(json);
    pb_json_object(json, "additionalProperties");
    add_type(json, "object");
    pb_json_bool(json, "additionalProperties", false);
    add_words(json, "required", (const char *const[]){"products"}, 1);
    pb_json_object(json, "properties");
    add_properties(json, &pb_section_pipeline);
    add_input(json);
    add_part(json, &pb_section_output);
    add_exchange(json);
    add_entries(json, "steps", &steps, kinds);
    add_entries(json, "products", &products, kinds);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}

void pb_config_schema(const struct pb_product_kinds *kinds, struct pb_json *json)
{
    const struct entries receivers = {notify_at, PB_NOTIFY_KINDS};
    pb_json_object(json, NULL);
    pb_json_string(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    pb_json_string(json, "title", "Configuration of pushbroom " PB_VERSION);
    add_type(json, "object");
    pb_json_bool(json, "additionalProperties", false);
    pb_json_object(json, "properties");
    add_part(json, &pb_section_service);
    add_part(json, &pb_section_compute);
    add_part(json, &pb_section_limits);
    add_part(json, &pb_section_web);
    add_pipelines(json, kinds);
    add_entries(json, "notify", &receivers, kinds);
    pb_json_end(json);
    pb_json_end(json);
}
