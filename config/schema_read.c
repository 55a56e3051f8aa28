/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One reader a key type, chosen by a table. A reader writes its value only when it is good, so a
 * key that is wrong keeps its default and later checks stay quiet about it. Defaults pass through
 * the same readers as what the user wrote. */
#include "config/schema.h"

#include "config/base/arena.h"
#include "config/schema_lists.h"
#include "config/units.h"
#include "config/yaml_tree.h"
#include "kernels/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

bool pb_is_identifier(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strlen(text);
    return length > 0 && length <= 63 && !(text[0] >= '0' && text[0] <= '9') &&
           strspn(text, letters) == length;
}

bool pb_is_file_word(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.";
    size_t length = strlen(text);
    return length > 0 && length <= 63 && text[0] != '.' && text[0] != '-' &&
           strspn(text, letters) == length;
}

size_t pb_split_choices(struct pb_load *load, const char *choices, const char **out_words)
{
    size_t n = 0;
    while (n < PB_CHOICES_MAX && *choices) {
        size_t length = strcspn(choices, "|");
        const char *word = pb_arena_text(load->arena, choices, length);
        if (word == NULL)
            return n;
        out_words[n++] = word;
        choices += length;
        choices += *choices == '|';
    }
    return n;
}

bool pb_need_scalar(struct pb_load *load, const struct pb_yaml *node, const char *what,
                    const char *kind)
{
    char found[80];
    if (node->kind == PB_YAML_SCALAR && !pb_yaml_is_null(node))
        return true;
    WRONG(load, node, "%s must be %s, not %s", what, kind, pb_yaml_what(node, found, sizeof found));
    return false;
}

const struct pb_yaml *pb_default_node(struct pb_load *load, const char *text)
{
    const struct pb_yaml *node = NULL;
    int rc = pb_yaml_parse(text, strlen(text), load->arena, &load->report, &node);
    if (rc == -ENOMEM) { /* libyaml's own memory ran out: make the arena say so */
        pb_arena_fail(load->arena);
        return NULL;
    }
    return rc ? NULL : node;
}

const char *pb_range_text(const struct pb_key *key, char *out, size_t out_bytes)
{
    char low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    switch (key->type) {
    case PB_KEY_SIZE:
        pb_units_size_text((uint64_t)key->min, low);
        pb_units_size_text((uint64_t)key->max, high);
        break;
    case PB_KEY_DURATION:
        pb_units_duration_text((int64_t)key->min, low);
        pb_units_duration_text((int64_t)key->max, high);
        break;
    default:
        pb_units_number_text(key->min, low);
        pb_units_number_text(key->max, high);
    }
    (void)snprintf(out, out_bytes, "%s to %s", low, high);
    return out;
}

/* What a reader needs; what = "section.key" for messages. */
struct slot {
    struct pb_load *load;
    const struct pb_key *key;
    const struct pb_yaml *node;
    const char *what;
    char *base;
};

static void *target(const struct slot *s)
{
    return s->base + s->key->offset;
}

static bool in_range(const struct slot *s, int rc, double value)
{
    char range[120];
    if (rc == 0 && value >= s->key->min && value <= s->key->max)
        return true;
    WRONG(s->load, s->node, "%s: %s is out of range; allowed: %s", s->what, s->node->text,
          pb_range_text(s->key, range, sizeof range));
    return false;
}

/* Scalars with a range: rc and value come from a reader of units.h. */
static bool is_good(const struct slot *s, int rc, double value, const char *form)
{
    if (rc != -EINVAL)
        return in_range(s, rc, value);
    WRONG(s->load, s->node, "%s: '%.80s' is not %s", s->what, s->node->text, form);
    return false;
}

static void read_int(const struct slot *s)
{
    int64_t value = 0;
    char form[160], range[120];
    int rc = pb_units_int(s->node->text, &value);
    (void)snprintf(form, sizeof form, "a whole number; allowed: %s",
                   pb_range_text(s->key, range, sizeof range));
    if (!is_good(s, rc, (double)value, form))
        return;
    if (s->key->type == PB_KEY_COUNT)
        *(uint64_t *)target(s) = (uint64_t)value;
    else
        *(int32_t *)target(s) = (int32_t)value;
}

static void read_power(const struct slot *s)
{
    int64_t value = 0;
    bool zero_too = s->key->def && strcmp(s->key->def, "0") == 0;
    int rc = pb_units_int(s->node->text, &value);
    bool good = rc == 0 && (double)value >= s->key->min && (double)value <= s->key->max &&
                (value & (value - 1)) == 0;
    if (good || (rc == 0 && value == 0 && zero_too))
        *(int32_t *)target(s) = (int32_t)value;
    else
        WRONG(s->load, s->node, "%s: '%.80s' is not a power of two from %.0f to %.0f%s", s->what,
              s->node->text, s->key->min, s->key->max, zero_too ? ", or 0" : "");
}

static void read_size(const struct slot *s)
{
    uint64_t value = 0;
    int rc = pb_units_size(s->node->text, &value);
    if (is_good(s, rc, (double)value, "a size; write 512MiB, 1.5GiB or a number of bytes"))
        *(uint64_t *)target(s) = value;
}

static void read_duration(const struct slot *s)
{
    int64_t value = 0;
    int rc = pb_units_duration(s->node->text, &value);
    if (is_good(s, rc, (double)value, "a duration; write a number and ms, s, m, h or d, as in 2s"))
        *(int64_t *)target(s) = value;
}

static void read_number(const struct slot *s)
{
    double value = 0;
    int rc = pb_units_number(s->node->text, false, &value);
    if (is_good(s, rc, value, "a number; write it as 0.0001 or 1e-4"))
        *(double *)target(s) = value;
}

static void read_nodata(const struct slot *s)
{
    double value = 0;
    if (pb_units_number(s->node->text, true, &value)) {
        WRONG(s->load, s->node, "%s: '%.80s' is not a number; write it as -9999, or .nan", s->what,
              s->node->text);
        return;
    }
    *(double *)target(s) = value;
    *(bool *)(s->base + s->key->more) = true;
}

static void read_choice(const struct slot *s)
{
    const char *words[PB_CHOICES_MAX];
    char suggestion[300];
    size_t n = pb_split_choices(s->load, s->key->choices, words);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], s->node->text) != 0)
            continue;
        int value = (int)i;
        memcpy(target(s), &value, sizeof value);
        return;
    }
    if (!pb_arena_failed(s->load->arena))
        WRONG(s->load, s->node, "%s: '%.80s' is not known%s", s->what, s->node->text,
              pb_suggest(s->node->text, words, n, suggestion, sizeof suggestion));
}

static void read_device(const struct slot *s)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    const char *text = s->node->text;
    int64_t number = -1;
    int kind = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(words[i], text) == 0)
            kind = i;
    if (strncmp(text, "cuda:", 5) == 0 && strspn(text + 5, "0123456789") == strlen(text + 5) &&
        pb_units_int(text + 5, &number) == 0 && number <= 255)
        kind = PB_DEVICE_CUDA;
    if (kind < 0) {
        WRONG(s->load, s->node,
              "%s: '%.80s' is not a device; allowed: auto, cpu, cuda, cuda:N (N from 0 to 255)",
              s->what, text);
        return;
    }
    memcpy(target(s), &kind, sizeof kind);
    *(int32_t *)(s->base + s->key->more) = (int32_t)number;
}

/* "2026-05-04T10:30:00Z" or with +hh:mm; digits are checked, and the month and day roughly. */
static bool is_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00";
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? !(text[i] >= '0' && text[i] <= '9') : text[i] != form[i])
            return false;
    int month = (text[5] - '0') * 10 + text[6] - '0', day = (text[8] - '0') * 10 + text[9] - '0';
    int hour = (text[11] - '0') * 10 + text[12] - '0';
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || text[14] > '5' ||
        text[17] > '6')
        return false;
    text += sizeof form - 1;
    if (*text == '.') {
        size_t digits = strspn(text + 1, "0123456789");
        if (digits == 0)
            return false;
        text += 1 + digits;
    }
    if (strcmp(text, "Z") == 0)
        return true;
    return strlen(text) == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':' &&
           strspn(text + 1, "0123456789") == 2 && strspn(text + 4, "0123456789") == 2;
}

static void read_text(const struct slot *s)
{
    const char *text = s->node->text;
    if (text[0] == '\0') {
        WRONG(s->load, s->node, "%s is empty; write a value or leave the key out", s->what);
        return;
    }
    if (s->key->type == PB_KEY_NAME && !pb_is_file_word(text)) {
        WRONG(s->load, s->node,
              "%s: '%.80s' cannot be part of a file name; use letters, digits, '_', '-' and '.', "
              "at most 63",
              s->what, text);
        return;
    }
    if (s->key->type == PB_KEY_TIME && !is_time(text)) {
        WRONG(s->load, s->node, "%s: '%.80s' is not a time; write it as 2026-05-04T10:30:00Z",
              s->what, text);
        return;
    }
    *(char **)target(s) = pb_arena_text(s->load->arena, text, strlen(text));
}

static void read_scalar(const struct slot *s)
{
    static const struct {
        const char *kind;
        void (*read)(const struct slot *s);
    } readers[] = {
        [PB_KEY_TEXT] = {"a text", read_text},
        [PB_KEY_PATH] = {"a path", read_text},
        [PB_KEY_NAME] = {"a name", read_text},
        [PB_KEY_TIME] = {"a time", read_text},
        [PB_KEY_INT] = {"a whole number", read_int},
        [PB_KEY_POWER] = {"a power of two", read_power},
        [PB_KEY_COUNT] = {"a whole number", read_int},
        [PB_KEY_SIZE] = {"a size such as 512MiB", read_size},
        [PB_KEY_DURATION] = {"a duration such as 2s", read_duration},
        [PB_KEY_NUMBER] = {"a number", read_number},
        [PB_KEY_NODATA] = {"a number", read_nodata},
        [PB_KEY_CHOICE] = {"one word", read_choice},
        [PB_KEY_DEVICE] = {"a device", read_device},
    };
    if (pb_need_scalar(s->load, s->node, s->what, readers[s->key->type].kind))
        readers[s->key->type].read(s);
}

static void read_value(const struct slot *s)
{
    const struct pb_key *key = s->key;
    void *more = s->base + key->more;
    switch (key->type) {
    case PB_KEY_PAIR:
        pb_read_percentiles(s->load, s->node, s->what, target(s));
        break;
    case PB_KEY_PATTERNS:
    case PB_KEY_BANDS:
        pb_read_words(s->load, s->node, s->what, key->type == PB_KEY_BANDS, target(s), more);
        break;
    case PB_KEY_BAND_MAP:
        pb_read_band_map(s->load, s->node, s->what, target(s), more);
        break;
    default:
        read_scalar(s);
    }
}

static bool is_one_of(const char *text, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

bool pb_is_misspelt(const struct pb_yaml *map, const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; map && map->kind == PB_YAML_MAP && i < map->n; i++)
        if (!is_one_of(map->keys[i]->text, names, n) && pb_nearest(map->keys[i]->text, &name, 1))
            return true;
    return false;
}

void pb_report_unknown(struct pb_load *load, const struct pb_yaml *map, const char *where,
                       const char *const *names, size_t n)
{
    char suggestion[400];
    for (size_t i = 0; i < map->n; i++)
        if (!is_one_of(map->keys[i]->text, names, n))
            WRONG(load, map->keys[i], "unknown key '%.80s' in %s%s", map->keys[i]->text, where,
                  pb_suggest(map->keys[i]->text, names, n, suggestion, sizeof suggestion));
}

static void report_unknown(struct pb_load *load, const struct pb_section *section,
                           const struct pb_yaml *map)
{
    const char *names[32];
    size_t n = section->n < 32 ? section->n : 32;
    for (size_t i = 0; i < n; i++)
        names[i] = section->keys[i].name;
    pb_report_unknown(load, map, section->name, names, n);
}

void pb_schema_read(struct pb_load *load, const struct pb_section *section,
                    const struct pb_yaml *map, void *base)
{
    char found[80];
    if (map && map->kind != PB_YAML_MAP) {
        if (!pb_yaml_is_null(map))
            WRONG(load, map, "'%s' must be a map of keys, not %s", section->name,
                  pb_yaml_what(map, found, sizeof found));
        map = NULL;
    }
    if (map)
        report_unknown(load, section, map);
    for (size_t i = 0; i < section->n && !pb_arena_failed(load->arena); i++) {
        const struct pb_key *key = &section->keys[i];
        char what[64];
        (void)snprintf(what, sizeof what, "%s.%s", section->name, key->name);
        struct slot slot = {.load = load, .key = key, .what = what, .base = base};
        if (key->def) {
            slot.node = pb_default_node(load, key->def);
            if (slot.node)
                read_value(&slot);
        }
        slot.node = map ? pb_yaml_find(map, key->name, NULL) : NULL;
        if (slot.node)
            read_value(&slot);
    }
}
