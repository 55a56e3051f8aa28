/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* calibrate: stored values to reflectance, radiance or temperature, by the numbers that the scene's
 * metadata have for each band. They come from the layers above, as a rule for each entry. */
#include "kernels/ops/pixel/calibrate.h"

#include "kernels/expr/band_list.h"
#include "kernels/expr/speckle_args.h"

#include <string.h>

static const struct pb_key keys[] = {
    {.name = "sensor",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_calibrate, sensor),
     .choices = PB_CALIBRATE_SENSORS,
     .called = PB_CALIBRATE_CALLED,
     .def = "auto",
     .doc = "Family of the product; auto: the one that the metadata are of. Metadata of another "
            "family are an error."},
    {.name = "to",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_calibrate, to),
     .choices = PB_CALIBRATE_QUANTITIES,
     .def = "toa",
     .doc =
         "toa: reflectance at the top of the atmosphere. surface: reflectance of the surface, of "
         "products that hold it. radiance: W/(m2 sr um) at the sensor. temperature: K. sigma0, "
         "beta0, gamma0: backscatter of radar."},
    {.name = "bands",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pb_calibrate, bands),
     .required = true,
     .makes_bands = true,
     .doc = "Bands to calibrate in place, or {NEW: OLD}. They are bands of the scene with "
            "input.scale 1 and input.offset 0."},
    {.name = "as",
     .type = PB_KEY_NAMES,
     .offset = offsetof(struct pb_calibrate, as),
     .doc = "{BAND: B4}: the product's band for a name in bands, where neither the file's name nor "
            "the number in the file determines it."},
    {.name = "irradiance",
     .type = PB_KEY_CONSTANTS,
     .offset = offsetof(struct pb_calibrate, irradiance),
     .doc = "{BAND: 1608.01}: the sun's irradiance at 1 AU in one of bands, in W/(m2 um), in place "
            "of what is known of the satellite; for toa of products that have radiance."},
    {.name = "noise",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_calibrate, noise),
     .choices = "false|true",
     .def = "true",
     .doc = "Whether thermal noise is taken off backscatter, by the noise annotation."},
    {.name = "db",
     .type = PB_KEY_CHOICE,
     .offset = offsetof(struct pb_calibrate, db),
     .choices = "false|true",
     .def = "false",
     .doc = "Backscatter in decibels; 0, which subtracting noise may leave, has no logarithm and "
            "is invalid. Filters for speckle need linear backscatter: make decibels after them, "
            "with `decibel`."},
    {.name = "columns",
     .type = PB_KEY_PATH,
     .offset = offsetof(struct pb_calibrate, columns),
     .doc = "A table of dark signal and gain for each column of the sensor, in place of metadata: "
            "CSV with the first line column,band,dark,gain. Columns count from 0; bands are those "
            "of the scene. A relative path begins at the configuration's directory."},
};

/* max(0, DN^2 - noise) / area, invalid where DN is 0. */
static pb_value backscatter(struct pb_builder *b, pb_value stored,
                            const struct pb_calibration_rule *rule)
{
    const pb_value zero = pb_builder_constant(b, 0.0f);
    const pb_value area = rule->has_tables ? pb_builder_input(b, rule->area)
                                           : pb_builder_constant(b, (float)rule->gain);
    const pb_value noise =
        rule->has_tables && rule->noise >= 0 ? pb_builder_input(b, rule->noise) : zero;
    const pb_value there = pb_builder_emit(b, PB_VM_GT, stored, zero, -1);
    const pb_value below = pb_builder_emit(b, PB_VM_MUL, area, there, -1); /* x / 0 is invalid */
    const pb_value power = pb_builder_emit(b, PB_VM_MUL, stored, stored, -1);
    const pb_value rest = pb_builder_emit(b, PB_VM_SUB, power, noise, -1);

    return pb_builder_emit(b, PB_VM_DIV, pb_builder_emit(b, PB_VM_MAX, rest, zero, -1), below, -1);
}

static pb_value calibrated(struct pb_builder *b, pb_value stored,
                           const struct pb_calibration_rule *rule)
{
    const pb_value gain = pb_builder_constant(b, (float)rule->gain);
    pb_value v = pb_builder_emit(b, PB_VM_MUL, stored, gain, -1);

    if (rule->offset != 0.0)
        v = pb_builder_emit(b, PB_VM_ADD, v, pb_builder_constant(b, (float)rule->offset), -1);
    if (!rule->has_planck)
        return v;
    const pb_value one = pb_builder_constant(b, 1.0f);
    v = pb_builder_emit(b, PB_VM_DIV, pb_builder_constant(b, (float)rule->k1), v, -1);
    v = pb_builder_emit(b, PB_VM_LOG, pb_builder_emit(b, PB_VM_ADD, v, one, -1), -1, -1);
    return pb_builder_emit(b, PB_VM_DIV, pb_builder_constant(b, (float)rule->k2), v, -1);
}

/* (DN - dark) * gain, with the numbers of the pixel's column: `area` of the rule is the input with
 * the gain, `noise` the one with the dark signal. */
static pb_value corrected(struct pb_builder *b, pb_value stored,
                          const struct pb_calibration_rule *rule)
{
    const pb_value gain = rule->has_tables ? pb_builder_input(b, rule->area)
                                           : pb_builder_constant(b, (float)rule->gain);
    const pb_value dark =
        rule->has_tables ? pb_builder_input(b, rule->noise) : pb_builder_constant(b, 0.0f);

    return pb_builder_emit(b, PB_VM_MUL, pb_builder_emit(b, PB_VM_SUB, stored, dark, -1), gain, -1);
}

/* A table for columns replaces everything that the metadata and their keys decide. */
static void check_columns(const struct pb_calibrate *calibrate, struct pb_builder *b)
{
    if (calibrate->columns == NULL || (calibrate->sensor == 0 && calibrate->to == 0 &&
                                       calibrate->as.n == 0 && calibrate->irradiance.n == 0))
        return;
    (void)pb_builder_mistake(b, PB_DIAG_VALUE, NULL, 0,
                             "columns: the table decides what becomes of a band; leave out sensor, "
                             "to, as and irradiance");
}

static pb_value converted(struct pb_builder *b, const struct pb_calibrate *calibrate,
                          pb_value stored, const struct pb_calibration_rule *rule)
{
    if (calibrate->columns != NULL)
        return corrected(b, stored, rule);
    const bool is_radar = pb_calibrate_is_radar(calibrate);
    const pb_value value = is_radar ? backscatter(b, stored, rule) : calibrated(b, stored, rule);
    return is_radar && calibrate->db == 1 ? pb_decibel(b, value) : value;
}

/* Entries of `as` are of bands that the step works on. */
static void check_as(const struct pb_calibrate *calibrate, struct pb_builder *b)
{
    for (size_t i = 0; i < calibrate->as.n && !calibrate->bands.is_partial; i++) {
        const struct pb_item *const as = &calibrate->as.items[i];
        bool found = false;

        for (size_t k = 0; as->key != NULL && k < calibrate->bands.n && !found; k++)
            found = strcmp(as->key, calibrate->bands.items[k].text) == 0;
        if (as->key == NULL)
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, as, 0,
                                     "as: write {BAND: B4}, with one of bands for BAND");
        else if (!found)
            (void)pb_builder_mistake(b, PB_DIAG_BAND, as, 0, "as: '%.60s' is none of bands",
                                     as->key);
    }
}

/* Its entries are, too, and of steps that it means something for. */
static void check_irradiance(const struct pb_calibrate *calibrate, struct pb_builder *b)
{
    for (size_t i = 0; i < calibrate->irradiance.n && !calibrate->bands.is_partial; i++) {
        const struct pb_item *const one = &calibrate->irradiance.items[i];
        bool found = false;

        for (size_t k = 0; k < calibrate->bands.n && !found; k++)
            found = strcmp(one->key, calibrate->bands.items[k].text) == 0;
        if (!found)
            (void)pb_builder_mistake(b, PB_DIAG_BAND, one, 0,
                                     "irradiance: '%.60s' is none of bands", one->key);
        else if (!(one->num > 0))
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, one, 0,
                                     "irradiance: %.40s of '%.60s' is not above 0, in W/(m2 um)",
                                     one->text, one->key);
        else if (calibrate->to != 0)
            (void)pb_builder_mistake(b, PB_DIAG_VALUE, one, 0,
                                     "irradiance: it makes reflectance of radiance; write to: toa, "
                                     "or leave it out");
    }
}

static int build(const void *params, struct pb_builder *b)
{
    const struct pb_calibrate *const calibrate = params;
    const struct pb_scene_facts *const scene = pb_builder_scene(b);
    int rc = 0;

    check_as(calibrate, b);
    check_irradiance(calibrate, b);
    check_columns(calibrate, b);
    for (size_t i = 0; i < calibrate->bands.n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(&calibrate->bands, b, i);
        struct pb_calibration_rule rule = {.gain = 1.0};

        if (!scene->assumed && (scene->calibration == NULL ||
                                !scene->calibration(scene->calibration_of, params, i, &rule)))
            return pb_builder_mistake(b, PB_DIAG_VALUE, pick.item, 0,
                                      "the scene's metadata do not describe '%.60s'",
                                      pick.item->text);
        rc = pb_builder_define(b, pick.out, converted(b, calibrate, pick.value, &rule));
    }
    return rc;
}

static const struct pb_op_case cases[] = {
    {"gain and offset", "R", true, {{"bands", {{.text = "R"}}}}},
    {"planck", "T", false, {{"to", {{.text = "temperature"}}}, {"bands", {{"T", "N", 0, 0, 0}}}}},
    {"sigma0", "S", true, {{"to", {{.text = "sigma0"}}}, {"bands", {{"S", "N", 0, 0, 0}}}}},
    {"gamma0 in decibels",
     "S",
     false,
     {{"to", {{.text = "gamma0"}}}, {"db", {{.text = "true"}}}, {"bands", {{"S", "N", 0, 0, 0}}}}},
    {"dark and gain of columns",
     "C",
     true,
     {{"columns", {{.text = "c.csv"}}}, {"bands", {{"C", "N", 0, 0, 0}}}}},
};

const struct pb_op pb_op_calibrate = {
    .name = "calibrate",
    .doc =
        {
            .summary = "makes reflectance, temperature or backscatter; evens columns",
            .formula = "DN * gain + offset, in float32, multiplication first; temperature of "
                       "Landsat Level 1: K2 / ln(K1 / radiance + 1); backscatter of Sentinel-1: "
                       "max(0, DN^2 - noise) / A^2; columns: (DN - dark) * gain, with the numbers "
                       "of the pixel's column",
            .units = "toa, surface: reflectance, 0 to 1; radiance: W/(m2 sr um); temperature: K; "
                     "sigma0, beta0, gamma0: power, or decibels",
            .nodata = "Invalid where the band is, where radiance is 0 or less for a "
                      "temperature, and where radar has DN 0, the border of its images.",
            .source =
                "Landsat 8-9 Data Users Handbook (LSDS-1574) and Level 2 Science Product "
                "Guide (LSDS-1619); Sentinel-2 Products Specification Document; Planet "
                "Imagery Product Specifications; Maxar, Absolute Radiometric "
                "Calibration 2016v0; Pleiades Imagery User Guide; ESA, Radiometric Calibration "
                "of S-1 Level-1 Products (ESA-EOPG-CSCOP-TN-0002), Sentinel-1 Product "
                "Specification (S1-RS-MDA-52-7441)",
            .notes =
                "Gain and offset of each band are read from the metadata that `input.metadata`\n"
                "names; report, status and STAC item have the rule and its numbers. Without them\n"
                "nothing is calibrated: the job fails and names the file it looked for.\n"
                "\n"
                "  family       metadata                                 to\n"
                "  landsat-c2   *_MTL.txt, .xml, .json                   toa radiance temperature\n"
                "                                        of Level 2:     surface temperature\n"
                "  sentinel2    MTD_MSIL1C.xml                           toa\n"
                "               MTD_MSIL2A.xml, a catalogue's STAC item  surface\n"
                "  planetscope  *_metadata.xml (also *_metadata.json)    toa radiance\n"
                "                                        of *_SR files:  surface\n"
                "  worldview    *.IMD (also GeoEye, QuickBird)           toa radiance; toa of\n"
                "                                                        WorldView-1 and -4\n"
                "                                                        by `irradiance`\n"
                "  pleiades     DIM_*.XML (also SPOT 6 and 7)            toa radiance\n"
                "  sentinel1    annotation/s1*.xml and, of annotation/   sigma0 beta0 gamma0\n"
                "               calibration, calibration-*.xml and,\n"
                "               with noise, noise-*.xml\n"
                "\n"
                "Reflectance of Landsat Level 1 is corrected for the sun's height. The offset of\n"
                "Sentinel-2 follows the processing baseline, or `boa_offset_applied` of\n"
                "the copy's item, never a date.\n"
                "\n"
                "Backscatter of Sentinel-1 is made with the tables of annotation/calibration, "
                "which\n"
                "change from pixel to pixel: A is interpolated between their lines and pixels,\n"
                "as is the noise, which since version 2.9 of the processor is that of the range\n"
                "times that of the azimuth; beyond a table's ends its first and last numbers "
                "hold.\n"
                "Where noise is more than DN^2 the result is 0, where SNAP has 0.0123 for the\n"
                "difference. The image has to be whole: tables count its lines and pixels.\n"
                "\n"
                "Which band of the product a band is follows from the file's name (B04.tif,\n"
                "*_SR_B4.TIF), or from its number in a file with all bands of the product; else\n"
                "write it in `as`.\n"
                "\n"
                "With `columns` a band becomes (DN - dark) * gain, by the numbers of the pixel's\n"
                "column in the image before any step. The table has one row for each of its\n"
                "columns and each of `bands`; another number of columns is an error. No metadata\n"
                "are read:\n"
                "\n"
                "  column,band,dark,gain\n"
                "  0,R,96.5,0.01213\n"
                "  1,R,97.25,0.01209\n"
                "\n"
                "  - calibrate: {columns: swir.csv, bands: [R, N]}\n"
                "  - calibrate: {to: toa, bands: [R, N]}\n"
                "  - calibrate: {to: temperature, bands: {BT: T}, as: {T: B10}}\n"
                "  - calibrate: {to: sigma0, bands: [VV, VH]}\n",
        },
    .keys = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .params_bytes = sizeof(struct pb_calibrate),
    .wants_stored = true,
    .wants_metadata = true, /* without `columns` */
    .build = build,
    .cases = cases,
    .n_cases = sizeof cases / sizeof cases[0],
};
