/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One reader per type of scalar, chosen by a table. A reader writes its value only when it is
 * valid, so an invalid key keeps its default and later checks report nothing about it. */
#include "config/choice_words.h"
#include "config/compute_config.h"
#include "config/product_config.h"
#include "config/schema_values.h"

#include "kernels/nearest.h"
#include "config/base/arena.h"
#include "config/config_files.h"
#include "config/schema_doc.h"
#include "config/units.h"
#include "config/yaml/yaml_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)

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

/* "; allowed: 0 to 100", or nothing. */
static const char *allowed_text(const struct pb_key *key, char *out, size_t out_bytes)
{
    char room[120];
    const char *range = pb_key_range(key, room, sizeof room);
    (void)snprintf(out, out_bytes, "%s%s", range ? "; allowed: " : "", range ? range : "");
    return out;
}

static bool in_range(const struct slot *s, int rc, double value)
{
    const struct pb_key *key = s->key;
    char allowed[160];
    if (rc == 0 && (key->min == key->max || (value >= key->min && value <= key->max)))
        return true;
    WRONG(s->load, s->node, "%s: %.80s is out of range%s", s->what, s->node->text,
          allowed_text(key, allowed, sizeof allowed));
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

static bool read_int(const struct slot *s)
{
    int64_t value = 0;
    char form[200], allowed[160];
    int rc = pb_units_int(s->node->text, &value);
    if (s->key->type == PB_KEY_ODD && rc == 0 && value % 2 == 0)
        rc = -EINVAL;
    (void)snprintf(form, sizeof form, "%s whole number%s",
                   s->key->type == PB_KEY_ODD ? "an odd" : "a",
                   allowed_text(s->key, allowed, sizeof allowed));
    if (!is_good(s, rc, (double)value, form))
        return false;
    if (s->key->type == PB_KEY_COUNT)
        *(uint64_t *)target(s) = (uint64_t)value;
    else
        *(int32_t *)target(s) = (int32_t)value;
    return true;
}

static bool read_power(const struct slot *s)
{
    int64_t value = 0;
    bool zero_too = s->key->def && strcmp(s->key->def, "0") == 0;
    int rc = pb_units_int(s->node->text, &value);
    bool good = rc == 0 && (double)value >= s->key->min && (double)value <= s->key->max &&
                (value & (value - 1)) == 0;
    if (good || (rc == 0 && value == 0 && zero_too)) {
        *(int32_t *)target(s) = (int32_t)value;
        return true;
    }
    WRONG(s->load, s->node, "%s: '%.80s' is not a power of two from %.0f to %.0f%s", s->what,
          s->node->text, s->key->min, s->key->max, zero_too ? ", or 0" : "");
    return false;
}

static bool read_percent(const struct slot *s)
{
    char number[24];
    int64_t value = 0;
    const size_t length = strlen(s->node->text);
    int rc = -EINVAL;
    if (length > 1 && length < sizeof number && s->node->text[length - 1] == '%') {
        (void)snprintf(number, sizeof number, "%.*s", (int)length - 1, s->node->text);
        rc = pb_units_int(number, &value);
    }
    bool good = is_good(s, rc, (double)value, "a whole percentage; write it as 25%");
    if (good)
        *(int32_t *)target(s) = (int32_t)value;
    return good;
}

static bool read_size(const struct slot *s)
{
    uint64_t value = 0;
    int rc = pb_units_size(s->node->text, &value);
    bool good = is_good(s, rc, (double)value, "a size; write 512MiB, 1.5GiB or a number of bytes");
    if (good)
        *(uint64_t *)target(s) = value;
    return good;
}

static bool read_duration(const struct slot *s)
{
    int64_t value = 0;
    int rc = pb_units_duration(s->node->text, &value);
    bool good =
        is_good(s, rc, (double)value, "a duration; write a number and ms, s, m, h or d, as in 2s");
    if (good)
        *(int64_t *)target(s) = value;
    return good;
}

bool pb_read_number(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                    const char *what, double *out_value)
{
    const struct slot s = {.load = load, .key = key, .node = node, .what = what};
    double value = 0;
    int rc = pb_units_number(node->text, false, &value);
    bool good = is_good(&s, rc, value, "a number; write it as 0.0001 or 1e-4");
    if (good)
        *out_value = value;
    return good;
}

static bool read_number(const struct slot *s)
{
    return pb_read_number(s->load, s->key, s->node, s->what, target(s));
}

static bool read_nodata(const struct slot *s)
{
    double value = 0;
    if (pb_units_number(s->node->text, true, &value)) {
        WRONG(s->load, s->node, "%s: '%.80s' is not a number; write it as -9999, or .nan", s->what,
              s->node->text);
        return false;
    }
    *(double *)target(s) = value;
    return true;
}

/* Whether the word nearest to a wrong one is one of several that begin alike (landsat-tm,
 * landsat-etm), so that naming it would be a guess. */
static bool is_one_of_several(const char *wrong, const char *const *words, size_t n,
                              const char *choices)
{
    const char *near = pb_nearest(wrong, words, n);
    const char *dash = near != NULL ? strchr(near, '-') : NULL;
    size_t alike = 0;
    for (size_t i = 0; dash != NULL && i < n; i++)
        alike += strncmp(words[i], near, (size_t)(dash - near) + 1) == 0;
    return alike > 1 && strncmp(wrong, near, (size_t)(dash - near)) == 0 && choices != NULL;
}

static bool read_choice(const struct slot *s)
{
    const char *words[PB_CHOICES_MAX];
    char suggestion[300];
    size_t n = pb_split_choices(s->load, s->key->choices, words);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], s->node->text) != 0)
            continue;
        int value = (int)i;
        memcpy(target(s), &value, sizeof value);
        return true;
    }
    const char *meant = NULL;
    const size_t bytes = pb_choice_called(s->key->called, s->node->text, &meant);
    if (bytes > 0)
        WRONG(s->load, s->node, "%s: '%.80s' is not known; write %.*s", s->what, s->node->text,
              (int)bytes, meant);
    else if (is_one_of_several(s->node->text, words, n, s->key->choices))
        WRONG(s->load, s->node, "%s: '%.80s' is not known; known: %.200s", s->what, s->node->text,
              s->key->choices);
    else if (!pb_arena_failed(s->load->arena))
        WRONG(s->load, s->node, "%s: '%.80s' is not known%s", s->what, s->node->text,
              pb_suggest(s->node->text, words, n, suggestion, sizeof suggestion));
    return false;
}

static bool read_device(const struct slot *s)
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
        return false;
    }
    memcpy(target(s), &kind, sizeof kind);
    *(int32_t *)(s->base + s->key->more) = (int32_t)number;
    return true;
}

static bool read_text(const struct slot *s)
{
    const char *text = s->node->text;
    if (text[0] == '\0' && !s->key->may_be_empty) {
        WRONG(s->load, s->node, "%s is empty; write a value or leave the key out", s->what);
        return false;
    }
    if (s->key->type == PB_KEY_NAME && !pb_is_file_word(text)) {
        WRONG(s->load, s->node,
              "%s: '%.80s' cannot be part of a file name; use letters, digits, '_', '-' and '.', "
              "at most 63",
              s->what, text);
        return false;
    }
    if (s->key->type == PB_KEY_CRS && s->load->kinds != NULL && s->load->kinds->is_crs != NULL &&
        !s->load->kinds->is_crs(text)) {
        WRONG(s->load, s->node,
              "%s: '%.80s' is no coordinate system that is known; write EPSG:4326, WKT or a PROJ "
              "string",
              s->what, text);
        return false;
    }
    if (s->key->type == PB_KEY_PATH && s->load->files != NULL)
        text = pb_config_files_path(s->load, s->node->line, text);
    *(char **)target(s) = pb_arena_text(s->load->arena, text, strlen(text));
    return true;
}

void pb_read_scalar(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                    const char *what, void *base)
{
    static const struct {
        const char *kind;
        bool (*read)(const struct slot *s); /* false after a mistake */
    } readers[] = {
        [PB_KEY_TEXT] = {"a text", read_text},
        [PB_KEY_PATH] = {"a path", read_text},
        [PB_KEY_NAME] = {"a name", read_text},
        [PB_KEY_CRS] = {"a coordinate system such as EPSG:4326", read_text},
        [PB_KEY_INT] = {"a whole number", read_int},
        [PB_KEY_ODD] = {"an odd whole number", read_int},
        [PB_KEY_POWER] = {"a power of two", read_power},
        [PB_KEY_PERCENT] = {"a percentage such as 25%", read_percent},
        [PB_KEY_COUNT] = {"a whole number", read_int},
        [PB_KEY_SIZE] = {"a size such as 512MiB", read_size},
        [PB_KEY_DURATION] = {"a duration such as 2s", read_duration},
        [PB_KEY_NUMBER] = {"a number", read_number},
        [PB_KEY_NODATA] = {"a number", read_nodata},
        [PB_KEY_CHOICE] = {"one word", read_choice},
        [PB_KEY_DEVICE] = {"a device", read_device},
    };
    const struct slot s = {load, key, node, what, base};
    if (pb_need_scalar(load, node, what, readers[key->type].kind) && readers[key->type].read(&s) &&
        pb_key_may_tell(key->type) && key->more)
        *(bool *)(s.base + key->more) = true;
}
