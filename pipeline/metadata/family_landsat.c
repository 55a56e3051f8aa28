/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Landsat: MTL as text, XML or JSON; Collection 2 Level 1 and 2, and Level 1 of Collection 1, which
 * has the same keys in groups of other names. */
#include "pipeline/metadata/family.h"
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the groups of a level. */
struct groups {
    const char *rescaling, *radiance, *reflectance, *pixels;
};
static const struct groups level1 = {"LEVEL1_RADIOMETRIC_RESCALING", "LEVEL1_MIN_MAX_RADIANCE",
                                     "LEVEL1_MIN_MAX_REFLECTANCE", "LEVEL1_MIN_MAX_PIXEL_VALUE"};
static const struct groups collection1 = {"RADIOMETRIC_RESCALING", "MIN_MAX_RADIANCE",
                                          "MIN_MAX_REFLECTANCE", "MIN_MAX_PIXEL_VALUE"};
static const struct groups surface = {"LEVEL2_SURFACE_REFLECTANCE_PARAMETERS", NULL,
                                      "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS",
                                      "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS"};
static const struct groups temperature = {"LEVEL2_SURFACE_TEMPERATURE_PARAMETERS", NULL,
                                          "LEVEL2_SURFACE_TEMPERATURE_PARAMETERS",
                                          "LEVEL2_SURFACE_TEMPERATURE_PARAMETERS"};

static const struct pb_meta_node *top_of(const struct pb_meta_node *root)
{
    const struct pb_meta_node *top = pb_meta_below(root, "LANDSAT_METADATA_FILE", NULL);
    return top != NULL ? top : pb_meta_below(root, "L1_METADATA_FILE", NULL);
}

static bool is_one(const struct pb_meta_node *root)
{
    return top_of(root) != NULL;
}

static double of_band(struct pb_meta_reader *r, const struct pb_meta_node *group, const char *key,
                      const char *id)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s_BAND_%s", key, id);
    return pb_meta_number(r, group, name, -1e9, 1e9);
}

/* Compares the two descriptions of a band's scale in an MTL: the factor, and the range of values
 * for the range of stored values. */
static void compare_range(struct pb_meta_reader *r, const struct pb_meta_node *values,
                          const struct pb_meta_node *pixels, const char *what, const char *id,
                          const struct pb_meta_scale *scale)
{
    char key[48];
    (void)snprintf(key, sizeof key, "%s_MAXIMUM", what);
    double high = of_band(r, values, key, id);
    (void)snprintf(key, sizeof key, "%s_MINIMUM", what);
    double low = of_band(r, values, key, id);
    double last = of_band(r, pixels, "QUANTIZE_CAL_MAX", id);
    double first = of_band(r, pixels, "QUANTIZE_CAL_MIN", id);
    if (isnan(last))
        last = of_band(r, pixels, "QUANTIZE_CAL_MAXIMUM", id);
    if (isnan(first))
        first = of_band(r, pixels, "QUANTIZE_CAL_MINIMUM", id);
    if (r->rc < 0 || isnan(high) || isnan(low) || isnan(last) || isnan(first) || last <= first)
        return;
    double gain = (high - low) / (last - first), room = 2e-3 * fabs(high - low);
    if (fabs(gain - scale->gain) > 2e-3 * fabs(gain) + 1e-12 ||
        fabs(low - scale->gain * first - scale->offset) > room + 1e-9)
        pb_meta_conflict(r,
                         "%s of band %s contradicts itself: MULT %g and ADD %g, but MINIMUM, "
                         "MAXIMUM and the range of stored values make %g and %g",
                         what, id, scale->gain, scale->offset, gain, low - gain * first);
}

/* Reads bands with WHAT_MULT_BAND_id and WHAT_ADD_BAND_id. factor: multiplies both. */
static void read_scales(struct pb_meta_reader *r, const struct pb_meta_node *top,
                        const struct groups *groups, const char *what, enum pb_quantity to,
                        double factor)
{
    const struct pb_meta_node *group = pb_meta_child(top, groups->rescaling);
    char prefix[48];
    (void)snprintf(prefix, sizeof prefix, "%s_MULT_BAND_", what);
    for (const struct pb_meta_node *key = group ? group->first : NULL; key && r->rc == 0;
         key = key->next) {
        if (strncmp(key->name, prefix, strlen(prefix)) != 0)
            continue;
        const char *id = key->name + strlen(prefix);
        struct pb_meta_band *band = pb_meta_band(r, id);
        char mult[48], add[48];
        (void)snprintf(mult, sizeof mult, "%s_MULT", what);
        (void)snprintf(add, sizeof add, "%s_ADD", what);
        struct pb_meta_scale scale = {.gain = of_band(r, group, mult, id),
                                      .offset = of_band(r, group, add, id)};
        if (r->rc == 0 && (isnan(scale.offset) || !(scale.gain > 0)))
            pb_meta_wrong(r, "%s of band %s has no positive MULT and an ADD", what, id);
        const char *range = to == PB_QUANTITY_RADIANCE ? groups->radiance : groups->reflectance;
        compare_range(r, pb_meta_child(top, range ? range : groups->rescaling),
                      pb_meta_child(top, groups->pixels), what, id, &scale);
        pb_meta_set_scale(band, to, scale.gain * factor, scale.offset * factor);
    }
}

static void read_planck(struct pb_meta_reader *r, const struct pb_meta_node *top)
{
    static const char *const groups[] = {"LEVEL1_THERMAL_CONSTANTS", "TIRS_THERMAL_CONSTANTS",
                                         "THERMAL_CONSTANTS"};
    const struct pb_meta_node *group = NULL;
    for (size_t i = 0; i < 3 && group == NULL; i++)
        group = pb_meta_child(top, groups[i]);
    for (size_t i = 0; i < r->out->n_bands && r->rc == 0; i++) {
        struct pb_meta_band *band = &r->out->band[i];
        band->k1 = of_band(r, group, "K1_CONSTANT", band->id);
        band->k2 = of_band(r, group, "K2_CONSTANT", band->id);
        if (band->k1 <= 0 || band->k2 <= 0)
            pb_meta_wrong(r, "K1 or K2 of band %s is not above 0", band->id);
    }
}

static void read_level1(struct pb_meta_reader *r, const struct pb_meta_node *top)
{
    const struct groups *groups = pb_meta_child(top, level1.rescaling) ? &level1 : &collection1;
    struct pb_metadata *out = r->out;
    read_scales(r, top, groups, "RADIANCE", PB_QUANTITY_RADIANCE, 1);
    if (out->sun_elevation > 0)
        read_scales(r, top, groups, "REFLECTANCE", PB_QUANTITY_TOA, 1 / pb_meta_sun_height(r));
    else
        (void)snprintf(out->why_not[PB_QUANTITY_TOA], sizeof out->why_not[0], "%s",
                       isnan(out->sun_elevation)
                           ? "SUN_ELEVATION is missing, which reflectance needs"
                           : "the sun was not above the horizon (SUN_ELEVATION)");
    read_planck(r, top);
    (void)snprintf(out->rule[PB_QUANTITY_RADIANCE], sizeof out->rule[0],
                   "DN * RADIANCE_MULT + RADIANCE_ADD");
    (void)snprintf(out->rule[PB_QUANTITY_TOA], sizeof out->rule[0],
                   "(DN * REFLECTANCE_MULT + REFLECTANCE_ADD) / sin(sun elevation %.8g degrees)",
                   out->sun_elevation);
    (void)snprintf(out->rule[PB_QUANTITY_TEMPERATURE], sizeof out->rule[0],
                   "K2 / ln(K1 / (DN * RADIANCE_MULT + RADIANCE_ADD) + 1), of brightness");
    (void)snprintf(out->why_not[PB_QUANTITY_SURFACE], sizeof out->why_not[0],
                   "this is a product of Level 1 (%s); surface reflectance is in Level 2",
                   out->level);
}

static void read_level2(struct pb_meta_reader *r, const struct pb_meta_node *top)
{
    struct pb_metadata *out = r->out;
    read_scales(r, top, &surface, "REFLECTANCE", PB_QUANTITY_SURFACE, 1);
    read_scales(r, top, &temperature, "TEMPERATURE", PB_QUANTITY_TEMPERATURE, 1);
    (void)snprintf(out->rule[PB_QUANTITY_SURFACE], sizeof out->rule[0],
                   "DN * REFLECTANCE_MULT + REFLECTANCE_ADD of Level 2");
    (void)snprintf(out->rule[PB_QUANTITY_TEMPERATURE], sizeof out->rule[0],
                   "DN * TEMPERATURE_MULT + TEMPERATURE_ADD of Level 2, of the surface");
    (void)snprintf(out->why_not[PB_QUANTITY_TOA], sizeof out->why_not[0],
                   "this is a product of Level 2 (%s), whose bands are surface reflectance: use "
                   "to: surface",
                   out->level);
    (void)snprintf(out->why_not[PB_QUANTITY_RADIANCE], sizeof out->why_not[0],
                   "this is a product of Level 2 (%s), which has no radiance at the sensor",
                   out->level);
}

/* Checks that "LANDSAT_8" and "LC08_L2SP_001062_20201031_20201106_02_T2" have the same satellite
 * and day. */
static void compare_product(struct pb_meta_reader *r, const char *spacecraft, const char *day)
{
    const char *product = r->out->product;
    char date[9] = "";
    if (spacecraft == NULL || day == NULL || strlen(product) < 26 || product[4] != '_')
        return;
    (void)snprintf(date, sizeof date, "%.4s%.2s%.2s", day, strlen(day) >= 7 ? day + 5 : "",
                   strlen(day) >= 10 ? day + 8 : "");
    if (strncmp(product + 17, date, 8) != 0)
        pb_meta_conflict(r, "DATE_ACQUIRED is %.20s, but the product is %.60s", day, product);
    if (atoi(product + 2) != atoi(spacecraft + strcspn(spacecraft, "0123456789")))
        pb_meta_conflict(r, "SPACECRAFT_ID is %.30s, but the product is %.60s", spacecraft,
                         product);
}

static void read_files(struct pb_meta_reader *r, const struct pb_meta_node *contents)
{
    static const char prefix[] = "FILE_NAME_BAND_";
    for (const struct pb_meta_node *key = contents->first; key && r->rc == 0; key = key->next) {
        if (strncmp(key->name, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *id = key->name + sizeof prefix - 1;
        if (strcmp(id, "QUALITY") != 0) /* a Collection 1 quality band, not calibrated */
            pb_meta_set_file(pb_meta_band(r, id), key->text);
    }
}

static void read_times(struct pb_meta_reader *r, const struct pb_meta_node *contents,
                       const struct pb_meta_node *image)
{
    const struct pb_meta_node *group = pb_meta_child(image, "DATE_ACQUIRED") ? image : contents;
    const char *day = pb_meta_need_text(r, group, "DATE_ACQUIRED");
    const char *time = pb_meta_need_text(r, group, "SCENE_CENTER_TIME");
    const char *spacecraft = pb_meta_need_text(
        r, pb_meta_child(image, "SPACECRAFT_ID") ? image : contents, "SPACECRAFT_ID");
    if (r->rc < 0)
        return;
    pb_meta_set_day_time(r, day, time);
    compare_product(r, spacecraft, day);
    char platform[32];
    size_t n = 0;
    for (; spacecraft[n] != '\0' && n + 1 < sizeof platform; n++)
        platform[n] = spacecraft[n] == '_' ? '-' : (char)tolower((unsigned char)spacecraft[n]);
    platform[n] = '\0';
    PB_META_SET(r, platform, platform, "the platform");
}

static void read(struct pb_meta_reader *r, const struct pb_meta_node *root)
{
    const struct pb_meta_node *top = top_of(root);
    const struct pb_meta_node *image = pb_meta_child(top, "IMAGE_ATTRIBUTES");
    const struct pb_meta_node *contents = pb_meta_child(top, "PRODUCT_CONTENTS");
    const struct pb_meta_node *named = contents;
    struct pb_metadata *out = r->out;
    if (contents == NULL) {
        contents = pb_meta_child(top, "PRODUCT_METADATA");
        named = pb_meta_child(top, "METADATA_FILE_INFO");
    }
    if (contents == NULL || named == NULL || image == NULL) {
        pb_meta_wrong(r, "groups of an MTL are missing: PRODUCT_CONTENTS, IMAGE_ATTRIBUTES");
        return;
    }
    const char *level = pb_meta_text(contents, "PROCESSING_LEVEL");
    PB_META_SET(r, product, pb_meta_need_text(r, named, "LANDSAT_PRODUCT_ID"), "the product");
    PB_META_SET(r, level, level ? level : pb_meta_need_text(r, contents, "DATA_TYPE"), "the level");
    read_times(r, contents, image);
    const struct pb_meta_node *grid = pb_meta_child(image, "WRS_PATH") ? image : contents;
    pb_meta_set_wrs(r, pb_meta_number(r, grid, "WRS_PATH", 1, 999),
                    pb_meta_number(r, grid, "WRS_ROW", 1, 999));
    const char *sensor =
        pb_meta_text(pb_meta_child(image, "SENSOR_ID") ? image : contents, "SENSOR_ID");
    PB_META_SET(r, instrument, sensor, "the sensor");
    pb_meta_set_number(r, &out->sun_azimuth,
                       pb_meta_azimuth(pb_meta_number(r, image, "SUN_AZIMUTH", -360, 360)),
                       "the sun's azimuth");
    pb_meta_set_number(r, &out->sun_elevation, pb_meta_number(r, image, "SUN_ELEVATION", -90, 90),
                       "the sun's height");
    double cloud = pb_meta_number(r, image, "CLOUD_COVER", -1, 100);
    pb_meta_set_number(r, &out->cloud_cover, cloud < 0 ? NAN : cloud, "the cloud cover");
    const char *cell = pb_meta_text_below(top, "GRID_CELL_SIZE_REFLECTIVE");
    if (cell != NULL)
        pb_meta_set_number(r, &out->gsd,
                           pb_meta_number_of(r, cell, "GRID_CELL_SIZE_REFLECTIVE", 0.1, 1000),
                           "the ground sample distance");
    read_files(r, contents);
    if (out->level[0] == 'L' && out->level[1] == '2')
        read_level2(r, top);
    else
        read_level1(r, top);
}

/* A file named like a product of Landsat belongs to the product of that name. */
static const char *refuses(const struct pb_metadata *facts, const char *stem, enum pb_quantity to)
{
    (void)to;
    bool is_product = strlen(stem) > 40 && stem[0] == 'L' && isdigit((unsigned char)stem[2]) &&
                      isdigit((unsigned char)stem[3]) && stem[4] == '_' && stem[9] == '_';
    return is_product && strncmp(stem, facts->product, strlen(facts->product)) != 0
               ? "the metadata are of another product than the file"
               : NULL;
}

const struct pb_metadata_family pb_family_landsat = {
    .name = "landsat-c2",
    .files = "*_MTL.txt, *_MTL.xml, *_MTL.json",
    .source = "Landsat 8-9 Data Users Handbook (LSDS-1574), chapter 5; Landsat 8-9 Collection 2 "
              "Level 2 Science Product Guide (LSDS-1619)",
    .constellation = "landsat",
    .is_one = is_one,
    .read = read,
    .refuses = refuses,
};
