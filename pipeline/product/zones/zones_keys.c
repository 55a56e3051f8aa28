/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Keys of numbers by zone, and the meaning of the words of `stats`. */
#include "config/input_values.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/zones/zones.h"
#include "pipeline/product/zones/zones_rows.h"

#include "config/product_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_zones_config, "landcover"),
    PB_PRODUCT_KEY_BANDS(
        struct pb_zones_config, "[NDVI]",
        "Bands whose statistics are wanted; the band of by is excluded. Without this key: "
        "every band the steps made, and with by pixels and areas alone."),
    {.name = "by",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct pb_zones_config, by),
     .sample = "CLASS",
     .example = "CLASS",
     .doc = "A band of classes: a row for each of its values. Pixels where it is invalid belong to "
            "none. With zones: a row for each class in each polygon."},
    {.name = "zones",
     .type = PB_KEY_PATH,
     .offset = offsetof(struct pb_zones_config, zones),
     .example = "fields.gpkg",
     .doc = "Polygons of a GeoJSON, GeoPackage or Shapefile, in any coordinate system: a row for "
            "each. A pixel counts for every polygon that its centre is in. The column `cut` is 1 "
            "where "
            "the polygon reaches beyond the image. Points and lines are left out, with a warning "
            "of the job. A relative path begins at the configuration's directory."},
    {.name = "layer",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_zones_config, layer),
     .example = "fields",
     .doc = "Of the file of zones; without this key: the only one that it has."},
    {.name = "id",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_zones_config, id),
     .example = "parcel",
     .doc = "The field that names a polygon, the first column; without this key: fid, its number "
            "in the file."},
    {.name = "attributes",
     .type = PB_KEY_WORDS,
     .offset = offsetof(struct pb_zones_config, attributes),
     .example = "[crop, owner]",
     .doc = "Further fields of the polygons, a column each."},
    {.name = "touched",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_zones_config, touched),
     .choices = "false|true",
     .def = "false",
     .doc = "Whether a pixel also counts for a polygon whose outline passes through it."},
    {.name = "stats",
     .type = PB_KEY_WORDS,
     .offset = offsetof(struct pb_zones_config, stats),
     .def = "[valid_percent, min, max, mean, std, median]",
     .doc = "Statistics of each band: valid (pixels), valid_percent, min, max, range, mean, std "
            "(of the population), sum, median, percentiles such as p5 and p97.5 (linear between "
            "ranks), majority and minority (the most and the least frequent value), variety (how "
            "many values there are)."},
    {.name = "classes",
     .type = PB_KEY_CONSTANTS,
     .offset = offsetof(struct pb_zones_config, classes),
     .example = "{water: 6, snow: 11}",
     .doc = "Names of values of by, for a column of their own."},
    {.name = "format",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_zones_config, format),
     .choices = "csv|json|geojson|gpkg",
     .def = "csv",
     .doc = "Of the file. csv: RFC 4180, a line of names first, empty where there is no value. "
            "geojson (RFC 7946, in longitude and latitude) and gpkg (GeoPackage, in the "
            "coordinate system of zones) have the polygons with the columns as properties."},
    {.name = "append",
     .type = PB_KEY_NAME,
     .offset = offsetof(struct pb_zones_config, append),
     .example = "fields.csv",
     .doc = "A CSV file in the directory of products that gets the rows as well, in place of those "
            "that it has of the scene: a series over time. The table then begins with scene and "
            "datetime (that of stac.datetime where the pipeline has a STAC item, the beginning of "
            "a day; else that of the metadata or of the file's tag, in UTC). Needs format: "
            "csv."},
};

static const struct {
    const char *name;
    enum pb_zones_stat_kind kind;
} words[] = {
    {"valid", PB_ZONES_VALID},       {"valid_percent", PB_ZONES_VALID_PERCENT},
    {"min", PB_ZONES_MIN},           {"max", PB_ZONES_MAX},
    {"range", PB_ZONES_RANGE},       {"mean", PB_ZONES_MEAN},
    {"std", PB_ZONES_STD},           {"sum", PB_ZONES_SUM},
    {"majority", PB_ZONES_MAJORITY}, {"minority", PB_ZONES_MINORITY},
    {"variety", PB_ZONES_VARIETY},
};

/* "p5", "p97.5", or "median". */
static bool read_percentile(const char *text, double *out_p)
{
    char *end = NULL;
    if (strcmp(text, "median") == 0) {
        *out_p = 50;
        return true;
    }
    if (text[0] != 'p' || text[1] < '0' || text[1] > '9' ||
        text[1 + strspn(text + 1, "0123456789.")] != '\0')
        return false;
    *out_p = strtod(text + 1, &end);
    return *end == '\0' && *out_p <= 100;
}

static bool read_stat(const char *text, struct pb_zones_stat *out)
{
    out->name = text;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].name, text) == 0) {
            out->kind = words[i].kind;
            return true;
        }
    out->kind = PB_ZONES_PERCENTILE;
    return read_percentile(text, &out->p);
}

static void check_stats(struct pb_zones_config *zones, const struct pb_product_check *check)
{
    const struct pb_items *stats = &zones->stats;
    if (!pb_product_key_is_sound(check, "stats"))
        return;
    zones->stat = pb_product_key_alloc(check, stats->n + 1, sizeof *zones->stat);
    for (size_t i = 0; zones->stat != NULL && i < stats->n; i++) {
        const char *text = stats->items[i].text;
        struct pb_zones_stat *stat = &zones->stat[zones->n_stats];
        if (!read_stat(text, stat)) {
            pb_product_key_wrong(
                check, "stats",
                "zones.stats: '%.40s' is not known; write valid, valid_percent, min, "
                "max, range, mean, std, sum, median, majority, minority, variety, "
                "or a percentile such as p95",
                text);
            continue;
        }
        for (size_t k = 0; k < i; k++)
            if (strcmp(stats->items[k].text, text) == 0)
                pb_product_key_wrong(check, "stats", "zones.stats: %.40s is there twice", text);
        zones->counts_values = zones->counts_values || stat->kind >= PB_ZONES_MAJORITY;
        zones->n_stats++;
    }
}

static void check_classes(const struct pb_zones_config *zones, const struct pb_product_check *check)
{
    const struct pb_items *classes = &zones->classes;
    if (classes->n == 0 || !pb_product_key_is_sound(check, "classes"))
        return;
    if (zones->by.n == 0 && pb_product_key_is_sound(check, "by"))
        pb_product_key_wrong(check, "classes",
                             "zones.classes names values of a band of classes; write by: CLASS");
    for (size_t i = 0; i < classes->n; i++)
        for (size_t k = 0; k < i; k++)
            if (classes->items[k].num == classes->items[i].num)
                pb_product_key_wrong(check, "classes",
                                     "zones.classes: %.40s and %.40s are names of one value, %.40s",
                                     classes->items[k].key, classes->items[i].key,
                                     classes->items[i].text);
}

/* Adds the band of `by` to the product's bands, so that the steps make it. */
static void add_band(struct pb_zones_config *zones, const struct pb_product_check *check)
{
    struct pb_product_config *product = &zones->product;
    char **all = pb_product_key_alloc(check, product->n_bands + 1, sizeof *all);
    const char *by = zones->by.items[0].text;
    if (all == NULL)
        return;
    for (size_t i = 0; i < product->n_bands; i++) {
        if (strcmp(product->bands[i], by) == 0)
            return;
        all[i] = product->bands[i];
    }
    all[product->n_bands++] = (char *)(uintptr_t)by;
    product->bands = all;
}

/* Refuses keys that need a vector file. */
static void check_plain(const struct pb_zones_config *zones, const struct pb_product_check *check)
{
    static const char *const keys_of_vector[] = {"layer", "id", "attributes", "touched"};
    for (size_t i = 0; i < sizeof keys_of_vector / sizeof keys_of_vector[0]; i++)
        if (pb_product_key_is_given(check, keys_of_vector[i]))
            pb_product_key_wrong(check, keys_of_vector[i],
                                 "zones.%s is of a vector file; write zones: fields.gpkg, or leave "
                                 "the key out",
                                 keys_of_vector[i]);
    if (zones->format >= PB_ZONES_GEOJSON)
        pb_product_key_wrong(check, "format",
                             "zones.format: classes of a band have no outline; write csv or json, "
                             "or zones: fields.gpkg");
}

static void set_vector(struct pb_zones_config *zones, const struct pb_product_check *check)
{
    const struct pb_items *more = &zones->attributes;
    zones->path = pb_product_key_path(check, zones->zones);
    zones->field = pb_product_key_alloc(check, more->n + 1, sizeof *zones->field);
    if (zones->field == NULL)
        return;
    zones->field[zones->n_fields++] = zones->id != NULL ? zones->id : "fid";
    for (size_t i = 0; i < more->n; i++) {
        zones->field[zones->n_fields++] = more->items[i].text;
        for (size_t k = 0; k <= i; k++)
            if (strcmp(zones->field[k], more->items[i].text) == 0)
                pb_product_key_wrong(check, "attributes",
                                     "zones.attributes: %.40s is a column already",
                                     more->items[i].text);
    }
}

static void check_append(const struct pb_zones_config *zones, const struct pb_product_check *check)
{
    const char *name = zones->append;
    if (name == NULL || !pb_product_key_is_sound(check, "append"))
        return;
    const size_t n = strlen(name);
    if (n < 5 || n > 200 || name[0] == '.' || strchr(name, '/') != NULL ||
        strcmp(name + n - 4, ".csv") != 0)
        pb_product_key_wrong(check, "append",
                             "zones.append: '%.40s' is no name of a CSV file; write one such as "
                             "fields.csv, without a folder",
                             name);
    if (zones->format != PB_ZONES_CSV && pb_product_key_is_sound(check, "format"))
        pb_product_key_wrong(check, "append",
                             "zones.append is for tables; write format: csv, and a product of its "
                             "own for another format");
}

/* Call before the band of `by` is added to the product's; bands that no key names are known only
 * with a scene. */
static void check_columns(const struct pb_zones_config *zones, const struct pb_product_check *check)
{
    const struct pb_product_config *product = &zones->product;
    const char *bands[PB_BANDS_MAX];
    char name[PB_ZONES_COLUMN_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < product->n_bands && n < PB_BANDS_MAX; i++)
        if (zones->by.n == 0 || strcmp(product->bands[i], zones->by.items[0].text) != 0)
            bands[n++] = product->bands[i];
    if (!pb_zones_columns_differ(zones, bands, n, name))
        pb_product_key_wrong(check, zones->attributes.n > 0 ? "attributes" : "id",
                             "zones: two columns of the table would be called %.80s, case aside; "
                             "name the band or the class band otherwise, or leave out the field",
                             name);
}

static void check_keys(struct pb_product_config *product, const struct pb_product_check *check)
{
    struct pb_zones_config *zones = (struct pb_zones_config *)product;
    check_stats(zones, check);
    check_classes(zones, check);
    check_append(zones, check);
    if (zones->zones != NULL)
        set_vector(zones, check);
    else if (pb_product_key_is_sound(check, "zones"))
        check_plain(zones, check);
    if (zones->n_fields > 0 || zones->by.n > 0)
        check_columns(zones, check);
    if (zones->by.n == 0 && zones->zones == NULL && pb_product_key_is_sound(check, "by") &&
        pb_product_key_is_sound(check, "zones"))
        pb_product_key_wrong(check, "by",
                             "zones: which zones? write by: CLASS, a band of classes, or zones: "
                             "fields.gpkg, polygons of a file");
    else if (zones->by.n > 0 && pb_product_key_is_sound(check, "bands"))
        add_band(zones, check);
}

static const char *vector_of(const struct pb_product_config *product)
{
    return ((const struct pb_zones_config *)product)->path;
}

static const char *series_of(const struct pb_product_config *product)
{
    return ((const struct pb_zones_config *)product)->append;
}

static const char *classes_of(const struct pb_product_config *product, const char **out_key)
{
    const struct pb_items *by = &((const struct pb_zones_config *)product)->by;
    *out_key = "by";
    return by->n > 0 ? by->items[0].text : NULL;
}

static const char *class_band_of(const struct pb_product_config *product)
{
    const char *key;
    return classes_of(product, &key);
}

const struct pb_product_kind pb_kind_zones = {
    .section = {"zones",
                "Pixels, areas and statistics of bands for each class of a band, or each polygon "
                "of a vector file, as a table.",
                keys, sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_zones_config),
    .vector = vector_of,
    .series = series_of,
    .classes = classes_of,
    .class_band = class_band_of,
    .is_optional = true,
    .check = check_keys,
};
