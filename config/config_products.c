/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Products: the keys by the schema, then what one key means for another (a type and its nodata, a
 * codec and its level) and what products mean for each other (their file names). */
#include "config/config_parts.h"

#include "config/base/arena.h"
#include "config/units.h"
#include "config/yaml_tree.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define WRONG(load, node, ...)                                                                     \
    pb_report(&(load)->report, PB_E_CONFIG_VALUE, (node)->line, (node)->col, __VA_ARGS__)
#define PRODUCTS_MAX 64
#define KEYS_MAX     16

/* The place of a key's value, or of the product when it is not there. */
static const struct pb_yaml *place(const struct pb_yaml *name, const struct pb_yaml *body,
                                   const char *key)
{
    const struct pb_yaml *node = body ? pb_yaml_find(body, key, NULL) : NULL;
    return node ? node : name;
}

/* Whether a key is not what the user meant, so that checks against it would tell the same mistake
 * again. */
static bool is_doubtful(const struct pb_load *load, const struct pb_yaml *body,
                        const struct pb_product_config *product, const char *key)
{
    const char *names[KEYS_MAX];
    const struct pb_section *section = &pb_section_products[product->kind];
    const struct pb_yaml *node = body ? pb_yaml_find(body, key, NULL) : NULL;
    if (node)
        return pb_has_mistake(load, node);
    for (size_t i = 0; i < section->n && i < KEYS_MAX; i++)
        names[i] = section->keys[i].name;
    return pb_is_misspelt(body, key, names, section->n < KEYS_MAX ? section->n : KEYS_MAX);
}

static void check_nodata(struct pb_load *load, const struct pb_yaml *name,
                         const struct pb_yaml *body, struct pb_product_config *product)
{
    static const struct {
        double min, max;
    } ranges[PB_TYPE_COUNT] = {
        [PB_U8] = {0, UINT8_MAX},       [PB_I16] = {INT16_MIN, INT16_MAX},
        [PB_U16] = {0, UINT16_MAX},     [PB_I32] = {INT32_MIN, INT32_MAX},
        [PB_U32] = {0, UINT32_MAX},     [PB_F32] = {-(double)FLT_MAX, (double)FLT_MAX},
        [PB_F64] = {-DBL_MAX, DBL_MAX},
    };
    enum pb_type type = product->u.cog.type;
    bool is_float = type == PB_F32 || type == PB_F64;
    double nodata = product->u.cog.nodata, min = ranges[type].min, max = ranges[type].max;
    char low[PB_UNITS_TEXT], high[PB_UNITS_TEXT];
    if (is_doubtful(load, body, product, "type") || is_doubtful(load, body, product, "nodata"))
        return;
    if (!product->u.cog.has_nodata) {
        if (!is_float)
            WRONG(load, place(name, body, "type"),
                  "cog: %s cannot hold invalid pixels without a nodata value; add one, such as "
                  "nodata: %s",
                  pb_type_name(type), min < 0 ? pb_units_number_text(min, low) : "0");
        else
            product->u.cog.nodata = (double)NAN;
        return;
    }
    if (isnan(nodata) ? is_float
                      : nodata >= min && nodata <= max && (is_float || nodata == floor(nodata)))
        return;
    if (is_float)
        WRONG(
            load, place(name, body, "nodata"),
            "cog.nodata: %.80s does not fit %s; allowed: .nan, and numbers up to %.2g either side",
            place(name, body, "nodata")->text, pb_type_name(type), max);
    else
        WRONG(load, place(name, body, "nodata"),
              "cog.nodata: %.80s does not fit %s; allowed: whole numbers from %s to %s",
              place(name, body, "nodata")->text, pb_type_name(type), pb_units_number_text(min, low),
              pb_units_number_text(max, high));
}

static void check_codec(struct pb_load *load, const struct pb_yaml *name,
                        const struct pb_yaml *body, const struct pb_product_config *product)
{
    enum pb_compress compress = product->u.cog.compress;
    enum pb_type type = product->u.cog.type;
    int32_t level = product->u.cog.level;
    if (is_doubtful(load, body, product, "compress") || is_doubtful(load, body, product, "type"))
        return;
    bool packs = compress == PB_COMPRESS_DEFLATE || compress == PB_COMPRESS_ZSTD;
    if (level && !packs)
        WRONG(load, place(name, body, "level"), "cog.level: %s has no levels; leave the key out",
              pb_compress_name(compress));
    if (compress == PB_COMPRESS_DEFLATE && level > 12)
        WRONG(load, place(name, body, "level"),
              "cog.level: deflate has no level %d; allowed: 1 to 12", level);
    if (product->u.cog.predictor > 1 && compress == PB_COMPRESS_NONE)
        WRONG(load, place(name, body, "predictor"),
              "cog.predictor means nothing with compress: none; leave the key out");
    if (product->u.cog.predictor == 3 && type != PB_F32 && type != PB_F64)
        WRONG(load, place(name, body, "predictor"),
              "cog.predictor: float is for float32 and float64, not for %s; use horizontal or auto",
              pb_type_name(type));
}

static void check_product(struct pb_load *load, const struct pb_yaml *name,
                          const struct pb_yaml *body, struct pb_product_config *product)
{
    switch (product->kind) {
    case PB_PRODUCT_COG:
        check_nodata(load, name, body, product);
        check_codec(load, name, body, product);
        break;
    case PB_PRODUCT_QUICKLOOK:
        if (!is_doubtful(load, body, product, "bands") && product->n_bands != 0 &&
            product->n_bands != 1 && product->n_bands != 3)
            WRONG(load, place(name, body, "bands"),
                  "quicklook.bands has %zu bands; write one (grey) or three (red, green, blue)",
                  product->n_bands);
        break;
    case PB_PRODUCT_STATISTICS:
    case PB_PRODUCT_STAC:
        break;
    }
}

static bool read_product(struct pb_load *load, const struct pb_yaml *entry,
                         struct pb_product_config *out_product)
{
    const struct pb_yaml *name = NULL, *body = NULL;
    const char *kinds[4];
    char suggestion[200];
    if (!pb_read_entry(load, entry, "product", "- cog: {bands: [NDVI]}", &name, &body))
        return false;
    int kind = -1;
    for (int i = 0; i < 4; i++) {
        kinds[i] = pb_section_products[i].name;
        if (strcmp(kinds[i], name->text) == 0)
            kind = i;
    }
    if (kind < 0) {
        WRONG(load, name, "there is no product '%.80s'%s", name->text,
              pb_suggest(name->text, kinds, 4, suggestion, sizeof suggestion));
        return false;
    }
    out_product->kind = (enum pb_product_kind)kind;
    out_product->line = entry->line;
    out_product->col = entry->col;
    pb_schema_read(load, &pb_section_products[kind], body, out_product);
    if ((body == NULL || body->kind == PB_YAML_MAP) && !pb_arena_failed(load->arena))
        check_product(load, name, body, out_product);
    return true;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Against the products before it. */
static void check_file_name(struct pb_load *load, const struct pb_pipeline_config *pipeline,
                            const struct pb_product_config *product)
{
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *other = &pipeline->products[i];
        const char *kind = pb_product_kind_name(product->kind);
        if (other->kind != product->kind)
            continue;
        if (product->kind == PB_PRODUCT_STAC)
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "a second stac (first in line %d); one item describes all products, keep one",
                      other->line);
        else if (same_name(other->name, product->name))
            pb_report(&load->report, PB_E_CONFIG_VALUE, product->line, product->col,
                      "this %s would overwrite the one in line %d; give it %s name", kind,
                      other->line, product->name ? "another" : "a");
        else
            continue;
        return;
    }
}

void pb_read_products(struct pb_load *load, const struct pb_yaml *list,
                      struct pb_pipeline_config *pipeline)
{
    if (list->kind != PB_YAML_LIST || list->n == 0 || list->n > PRODUCTS_MAX) {
        WRONG(load, list, "'products' must be a list of 1 to %d products, such as - cog: {}",
              PRODUCTS_MAX);
        return;
    }
    pipeline->products = pb_arena_alloc(load->arena, list->n, sizeof *pipeline->products);
    for (size_t i = 0; pipeline->products && i < list->n; i++) {
        struct pb_product_config product = {.name = NULL};
        if (!read_product(load, list->items[i], &product))
            continue;
        check_file_name(load, pipeline, &product);
        pipeline->products[pipeline->n_products++] = product;
    }
}
