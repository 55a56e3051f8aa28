/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/schema_values.h"

#include "config/base/arena.h"
#include "config/base/glob.h"
#include "config/input_config.h"
#include "config/units.h"
#include "config/yaml/yaml_tree.h"

#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define WORDS_MAX 1024

static bool read_two(const struct pb_yaml *node, double out[2])
{
    bool good = node->kind == PB_YAML_LIST && node->n == 2;
    for (size_t i = 0; good && i < 2; i++)
        good = node->items[i]->kind == PB_YAML_SCALAR &&
               pb_units_number(node->items[i]->text, false, &out[i]) == 0;
    return good;
}

void pb_read_pair(struct pb_load *load, const struct pb_key *key, const struct pb_yaml *node,
                  const char *what, void *base)
{
    double pair[2] = {0, 0}, *out_pair = (double *)(void *)((char *)base + key->offset);
    bool good = read_two(node, pair), range = key->type == PB_KEY_RANGE;
    if (range && (!good || pair[0] == pair[1])) {
        WRONG(load, node, "%s must be two numbers that differ; write [-1, 1]", what);
        return;
    }
    if (!range && (!good || pair[0] < 0 || pair[0] >= pair[1] || pair[1] > 100)) {
        WRONG(load, node,
              "%s must be two percentiles, the lower one first; write [2, 98], from 0 to 100",
              what);
        return;
    }
    out_pair[0] = pair[0];
    out_pair[1] = pair[1];
    if (key->more)
        *(bool *)((char *)base + key->more) = true;
}

static bool is_band(struct pb_load *load, const struct pb_yaml *node, const char *what)
{
    if (pb_is_identifier(node->text))
        return true;
    WRONG(load, node,
          "%s: '%.80s' cannot be a band's name; use letters, digits and '_', no digit first, at "
          "most 63",
          what, node->text);
    return false;
}

static bool is_pattern(struct pb_load *load, const struct pb_yaml *node, const char *what)
{
    if (node->text[0] && strlen(node->text) < 256 && !strchr(node->text, '/'))
        return true;
    WRONG(load, node,
          "%s: '%.80s' fits no file; a pattern is for the name without its directory, such as "
          "\"*.tif\"",
          what, node->text);
    return false;
}

static bool is_file_name(struct pb_load *load, const struct pb_yaml *node, const char *what)
{
    size_t before = pb_report_count(&load->report);
    pb_check_file_pattern(load, node, what, node->text);
    return pb_report_count(&load->report) == before;
}

/* Of a path below an inbox. */
static bool is_path_pattern(struct pb_load *load, const struct pb_yaml *node, const char *what)
{
    if (node->text[0] && strlen(node->text) <= PB_GLOB_PATTERN_MAX && node->text[0] != '/')
        return true;
    WRONG(load, node,
          "%s: '%.80s' fits no file; a pattern is for a name, such as \"*.md5\", or for a path "
          "below the inbox, such as \"browse/*\"",
          what, node->text);
    return false;
}

/* How the lists of words differ. */
struct word_list {
    const char *example, *entry; /* for messages */
    size_t most;
    bool repeats; /* an entry may come twice */
    bool or_one;  /* an entry alone may stand in place of a list */
    bool (*is_good)(struct pb_load *load, const struct pb_yaml *node, const char *what);
};

static bool is_argument(struct pb_load *load, const struct pb_yaml *node, const char *what)
{
    if (strlen(node->text) < 4096)
        return true;
    WRONG(load, node, "%s: an argument over 4095 bytes", what);
    return false;
}

static const struct word_list *word_list(enum pb_key_type type)
{
    static const struct word_list
        bands = {"[NDVI, EVI]", "a band's name", PB_BANDS_MAX, false, false, is_band},
        patterns = {"[\"*.tif\"]", "a pattern", WORDS_MAX, false, false, is_pattern},
        paths =
            {"[\"*.md5\", \"browse/*\"]", "a pattern", WORDS_MAX, false, false, is_path_pattern},
        file_names = {"[MTD_MSIL2A.xml, \"GRANULE/*/MTD_TL.xml\"]",
                      "a pattern",
                      PB_METADATA_FILES_MAX,
                      false,
                      true,
                      is_file_name},
        command = {"[/usr/local/bin/tell, --now]", "a text", 64, true, false, is_argument};
    return type == PB_KEY_BANDS        ? &bands
           : type == PB_KEY_COMMAND    ? &command
           : type == PB_KEY_FILE_NAMES ? &file_names
           : type == PB_KEY_PATHS      ? &paths
                                       : &patterns;
}

/* Reports it when it is there. */
static bool is_twice(struct pb_load *load, const struct pb_yaml *item, const char *what,
                     char *const *words, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(words[k], item->text) != 0)
            continue;
        WRONG(load, item, "%s: '%.80s' is in the list twice; keep one", what, item->text);
        return true;
    }
    return false;
}

void pb_read_words(struct pb_load *load, const struct pb_yaml *node, const char *what,
                   enum pb_key_type type, char ***out_words, size_t *out_n)
{
    char found[80], entry[80];
    (void)snprintf(entry, sizeof entry, "an entry of %s", what);
    const struct word_list *list = word_list(type);
    const struct pb_yaml *const alone[] = {node};
    const struct pb_yaml *const *items = (const struct pb_yaml *const *)node->items;
    size_t n_items = node->n;
    if (list->or_one && node->kind == PB_YAML_SCALAR) {
        items = alone;
        n_items = 1;
    } else if (node->kind != PB_YAML_LIST) {
        WRONG(load, node, "%s must be a list, not %s; write it as %s", what,
              pb_yaml_what(node, found, sizeof found), list->example);
        return;
    }
    if (n_items == 0 || n_items > list->most) {
        WRONG(load, node, "%s has %zu entries; write 1 to %zu, or leave the key out", what, n_items,
              list->most);
        return;
    }
    char **words = pb_arena_alloc(load->arena, n_items, sizeof *words);
    size_t n = 0;
    for (size_t i = 0; words && i < n_items; i++) {
        const struct pb_yaml *item = items[i];
        if (!pb_need_scalar(load, item, entry, list->entry) || !list->is_good(load, item, what) ||
            (!list->repeats && is_twice(load, item, what, words, n)))
            continue;
        words[n] = pb_arena_text(load->arena, item->text, strlen(item->text));
        n += words[n] != NULL;
    }
    *out_words = words;
    *out_n = n;
}

static bool read_band(struct pb_load *load, const struct pb_yaml *key, const struct pb_yaml *item,
                      const char *what, struct pb_band_config *out_band)
{
    int64_t index = 0;
    char entry[80];
    (void)snprintf(entry, sizeof entry, "an entry of %s", what);
    if (!is_band(load, key, what) || !pb_need_scalar(load, item, entry, "a band number"))
        return false;
    if (pb_units_int(item->text, &index) || index < 1 || index > PB_BANDS_MAX) {
        WRONG(load, item, "%s: '%.80s' is not a band number for '%s'; allowed: 1 to %d", what,
              item->text, key->text, PB_BANDS_MAX);
        return false;
    }
    out_band->index = (int32_t)index;
    out_band->name = pb_arena_text(load->arena, key->text, strlen(key->text));
    return out_band->name != NULL;
}

void pb_read_band_map(struct pb_load *load, const struct pb_yaml *node, const char *what,
                      struct pb_band_config **out_bands, size_t *out_n)
{
    char found[80];
    if (node->kind != PB_YAML_MAP || node->n == 0) {
        WRONG(load, node,
              "%s must be a map of names and band numbers, not %s; write it as {R: 3, N: 4}", what,
              node->kind == PB_YAML_MAP ? "an empty one" : pb_yaml_what(node, found, sizeof found));
        return;
    }
    struct pb_band_config *bands = pb_arena_alloc(load->arena, node->n, sizeof *bands);
    size_t n = 0;
    for (size_t i = 0; bands && i < node->n; i++) {
        const struct pb_yaml *item = node->items[i];
        struct pb_band_config band = {NULL, 0};
        if (!read_band(load, node->keys[i], item, what, &band))
            continue;
        const char *other = NULL;
        for (size_t k = 0; k < n && !other; k++)
            other = bands[k].index == band.index ? bands[k].name : NULL;
        if (other)
            WRONG(load, item, "%s: band %d is named twice, '%s' and '%s'; keep one name", what,
                  band.index, other, band.name);
        else
            bands[n++] = band;
    }
    *out_bands = bands;
    *out_n = n;
}
