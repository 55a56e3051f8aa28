/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Parameters of operators. The operator's descriptor (kernels/op.h) is the schema; what a parameter
 * means is the operator's business, and its build() has the last word. */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/units.h"
#include "config/yaml_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define ITEMS_MAX 4096

/* One parameter being read. */
struct reading {
    struct pb_load *load;
    const struct pb_param *param;
    const char *what;  /* "index.names" */
    const char *entry; /* "an entry of index.names", or what when there is one value only */
};

static bool has_range(const struct pb_param *param)
{
    return param->min < param->max;
}

static bool read_num(const struct reading *r, const struct pb_yaml *node, double *out_num)
{
    const struct pb_param *param = r->param;
    bool whole = param->type == PB_PARAM_INT;
    char range[120] = "", low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    if (has_range(param) && param->max < 1e30) /* "up to 3.4e38" would help nobody */
        (void)snprintf(range, sizeof range, "; allowed: %s to %s",
                       pb_units_number_text(param->min, low),
                       pb_units_number_text(param->max, high));
    if (!pb_need_scalar(r->load, node, r->entry, whole ? "a whole number" : "a number"))
        return false;
    int64_t integer = 0;
    int rc =
        whole ? pb_units_int(node->text, &integer) : pb_units_number(node->text, false, out_num);
    if (rc == -EINVAL) {
        WRONG(r->load, node, "%s: '%.80s' is not a %snumber%s", r->what, node->text,
              whole ? "whole " : "", range);
        return false;
    }
    if (whole)
        *out_num = (double)integer;
    if (rc || (has_range(param) && !(*out_num >= param->min && *out_num <= param->max))) {
        WRONG(r->load, node, "%s: %.80s is out of range%s", r->what, node->text, range);
        return false;
    }
    return true;
}

static bool read_text(const struct reading *r, const struct pb_yaml *node, const char *kind)
{
    if (!pb_need_scalar(r->load, node, r->entry, kind))
        return false;
    if (node->text[0])
        return true;
    WRONG(r->load, node, "%s has an empty text; write %s", r->entry, kind);
    return false;
}

static bool read_choice(const struct reading *r, const struct pb_yaml *node)
{
    const char *words[PB_CHOICES_MAX];
    char suggestion[300];
    if (!pb_need_scalar(r->load, node, r->what, "one word"))
        return false;
    size_t n = pb_split_choices(r->load, r->param->choices, words);
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], node->text) == 0)
            return true;
    if (!pb_arena_failed(r->load->arena))
        WRONG(r->load, node, "%s: '%.80s' is not known%s", r->what, node->text,
              pb_suggest(node->text, words, n, suggestion, sizeof suggestion));
    return false;
}

/* A key the user may choose: the name of a band. */
static bool read_key(const struct reading *r, const struct pb_yaml *key)
{
    if (pb_is_identifier(key->text))
        return true;
    WRONG(r->load, key,
          "%s: '%.80s' cannot be a band's name; use letters, digits and '_', no digit first; a "
          "text with commas or braces must be in quotes",
          r->what, key->text);
    return false;
}

/* One scalar; its kind follows from the parameter's type. */
static bool read_item(const struct reading *r, const struct pb_yaml *key,
                      const struct pb_yaml *node, struct pb_arg_item *out_item)
{
    bool good = key == NULL || read_key(r, key);
    switch (r->param->type) {
    case PB_PARAM_NUMBER:
    case PB_PARAM_INT:
    case PB_PARAM_NUMBERS:
    case PB_PARAM_WEIGHTS:
        good = read_num(r, node, &out_item->num) && good;
        break;
    case PB_PARAM_ENUM:
        good = read_choice(r, node) && good;
        break;
    case PB_PARAM_EXPRS:
        good = read_text(r, node, "an expression") && good;
        break;
    case PB_PARAM_NAMES:
        good = read_text(r, node, "a name") && good;
        break;
    case PB_PARAM_STRING:
        good = read_text(r, node, "a text") && good;
        break;
    }
    if (!good)
        return false;
    /* The texts are nodes' own: they live in the arena as long as the configuration. */
    out_item->key = key ? key->text : NULL;
    out_item->text = node->text;
    out_item->line = node->text_line;
    out_item->col = node->text_col;
    return true;
}

/* {A: max(R, 0)} without quotes is {A: "max(R", "0)": nothing} to YAML. */
static bool is_cut_at_comma(const struct reading *r, const struct pb_yaml *map, size_t i)
{
    if (r->param->type != PB_PARAM_EXPRS || i + 1 >= map->n ||
        map->items[i]->kind != PB_YAML_SCALAR || pb_is_identifier(map->keys[i + 1]->text))
        return false;
    int open = 0;
    for (const char *c = map->items[i]->text; *c; c++)
        open += (*c == '(') - (*c == ')');
    if (open <= 0)
        return false;
    WRONG(r->load, map->items[i], "%s: '%.80s' was cut at its comma; put the expression in quotes",
          r->what, map->items[i]->text);
    return true;
}

static const char *form_of(enum pb_param_type type)
{
    switch (type) {
    case PB_PARAM_NAMES:
        return "a list of names, such as [NDVI, EVI], or a map {NEW: NAME}";
    case PB_PARAM_EXPRS:
        return "a map of names and expressions, such as {WATER: \"(G - N) / (G + N)\"}";
    case PB_PARAM_NUMBERS:
        return "a number, or a map of names and numbers, such as {R: 0.5}";
    case PB_PARAM_WEIGHTS:
        return "a list of numbers, row after row, such as [0, -1, 0, -1, 4, -1, 0, -1, 0]";
    default:
        return "one value";
    }
}

static bool form_fits(enum pb_param_type type, enum pb_yaml_kind kind)
{
    switch (type) {
    case PB_PARAM_NAMES:
        return kind != PB_YAML_SCALAR;
    case PB_PARAM_EXPRS:
        return kind == PB_YAML_MAP;
    case PB_PARAM_NUMBERS:
        return kind != PB_YAML_LIST;
    case PB_PARAM_WEIGHTS:
        return kind == PB_YAML_LIST;
    default:
        return kind == PB_YAML_SCALAR;
    }
}

void pb_read_param(struct pb_load *load, const struct pb_param *param, const char *what,
                   const struct pb_yaml *node, struct pb_arg *out_arg)
{
    char found[80], entry[120];
    bool scalar = node->kind == PB_YAML_SCALAR;
    (void)snprintf(entry, sizeof entry, "an entry of %s", what);
    struct reading r = {load, param, what, scalar ? what : entry};
    if (!form_fits(param->type, node->kind) || pb_yaml_is_null(node)) {
        WRONG(load, node, "%s must be %s, not %s", what, form_of(param->type),
              pb_yaml_what(node, found, sizeof found));
        return;
    }
    size_t n = scalar ? 1 : node->n, good = 0;
    if (n == 0 || n > ITEMS_MAX) {
        WRONG(load, node, "%s has %zu entries; write 1 to %d", what, n, ITEMS_MAX);
        return;
    }
    struct pb_arg_item *items = pb_arena_alloc(load->arena, n, sizeof *items);
    for (size_t i = 0;
         items && i < n && !(node->kind == PB_YAML_MAP && is_cut_at_comma(&r, node, i)); i++)
        good += read_item(&r, scalar ? NULL : node->keys[i], scalar ? node : node->items[i],
                          &items[good]);
    out_arg->items = items;
    out_arg->n = good;
}
