/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata/calibration.h"
#include "config/base/base_name.h"

#include "config/base/number.h"
#include "pipeline/metadata/meta_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PI 3.14159265358979323846

/* Copies the file's name without folders and suffix. */
static void stem_of(const char *path, char *out, size_t bytes)
{
    const char *base = pb_base_name(path);
    const char *dot = strrchr(base, '.');
    (void)snprintf(out, bytes, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

/* Returns true if the name contains the band as a word: B04, B4, ST_B10. Ids without a digit are
 * not words: N may occur in any name. */
static bool is_named(const char *stem, const struct pb_meta_band *band)
{
    char word[40], id[sizeof band->id];
    if (!band->is_word && !isdigit((unsigned char)band->id[0]) && strstr(band->id, "_B") == NULL)
        return false;
    size_t length = strlen(band->id);
    for (const char *at = stem; *at != '\0';) {
        size_t n = strcspn(at, "_-. ");
        (void)snprintf(word, sizeof word, "%.*s", (int)(n < 39 ? n : 39), at);
        pb_meta_band_id(word, id, sizeof id);
        bool is_word = toupper((unsigned char)word[0]) == 'B' && strcmp(id, band->id) == 0;
        bool is_long = strncasecmp(at, band->id, length) == 0 &&
                       (at[length] == '\0' || strchr("_-. ", at[length]) != NULL) &&
                       !isdigit((unsigned char)band->id[0]);
        if (is_word || is_long)
            return true;
        at += n + (at[n] != '\0');
    }
    return false;
}

static const struct pb_meta_band *by_id(const struct pb_metadata *facts, const char *as)
{
    char id[sizeof facts->band[0].id];
    pb_meta_band_id(strncasecmp(as, "BAND_", 5) == 0 ? as + 5 : as, id, sizeof id);
    for (size_t i = 0; i < facts->n_bands; i++)
        if (strcmp(facts->band[i].id, id) == 0)
            return &facts->band[i];
    return NULL;
}

/* Finds the only band named in the file's name; *out_n: count of such bands. */
static const struct pb_meta_band *by_file(const struct pb_metadata *facts, const char *stem,
                                          size_t *out_n)
{
    const struct pb_meta_band *found = NULL;
    *out_n = 0;
    for (size_t i = 0; i < facts->n_bands; i++)
        if (facts->band[i].file[0] != '\0' && strcasecmp(facts->band[i].file, stem) == 0) {
            *out_n = 1;
            return &facts->band[i];
        }
    for (size_t i = 0; i < facts->n_bands; i++)
        if (is_named(stem, &facts->band[i])) {
            found = &facts->band[i];
            ++*out_n;
        }
    return *out_n == 1 ? found : NULL;
}

/* Finds the band by its number in a file with as many bands as the product. */
static const struct pb_meta_band *by_number(const struct pb_metadata *facts,
                                            const struct pb_calibration_input *input)
{
    const struct pb_meta_band *found = NULL;
    int32_t n = 0;
    for (size_t i = 0; i < facts->n_bands; i++) {
        n += facts->band[i].number > 0;
        if (facts->band[i].number == input->number)
            found = &facts->band[i];
    }
    return n == input->n_bands ? found : NULL;
}

static void list_bands(const struct pb_metadata *facts, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < facts->n_bands && used < bytes - 24; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s%s", i ? ", " : "",
                                 isdigit((unsigned char)facts->band[i].id[0]) ? "B" : "",
                                 facts->band[i].id);
}

static int find_band(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                     const char *stem, const struct pb_meta_band **out, struct pb_err *err)
{
    char list[200];
    size_t n = 0;
    list_bands(facts, list, sizeof list);
    *out = input->as != NULL ? by_id(facts, input->as) : NULL;
    if (*out == NULL && input->as != NULL)
        return pb_fail(
            err, PB_E_PIPELINE_BAND,
            "calibrate: %.60s is %.40s according to 'as', but the metadata have the bands %s",
            input->name, input->as, list);
    if (*out == NULL && input->n_bands == 1)
        *out = by_file(facts, stem, &n);
    if (*out == NULL && n == 0)
        *out = by_number(facts, input);
    if (*out != NULL)
        return 0;
    return pb_fail(
        err, PB_E_PIPELINE_BAND,
        "calibrate: the product's band for %.60s is unclear from the file's name (%.80s) and the "
        "number of bands in it (%d); write as: {%.40s: B4}; the metadata have %s",
        input->name, stem, input->n_bands, input->name, list);
}

/* Computes reflectance from an irradiance given by the user. */
static int by_irradiance(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                         const struct pb_meta_band *band, struct pb_calibration_rule *out,
                         struct pb_err *err)
{
    const struct pb_meta_scale *radiance = &band->to[PB_QUANTITY_RADIANCE];
    double distance = pb_meta_sun_distance(facts);
    double height = sin(facts->sun_elevation * PI / 180);
    if (!radiance->known)
        return pb_fail(err, PB_E_INPUT_METADATA_VALUE,
                       "calibrate: %.60s (band %s of the product) does not become radiance, of "
                       "which irradiance makes reflectance: %s",
                       input->name, band->id, facts->why_not[PB_QUANTITY_RADIANCE]);
    if (isnan(distance) || !(height > 0))
        return pb_fail(err, PB_E_INPUT_METADATA_VALUE,
                       "calibrate: %.60s does not become reflectance: the metadata do not have %s",
                       input->name,
                       isnan(distance) ? "the time at which the scene was taken"
                                       : "the height of the sun");
    double factor = distance * distance * PI / (input->irradiance * height);
    *out = (struct pb_calibration_rule){.gain = radiance->gain * factor,
                                        .offset = radiance->offset * factor};
    return 0;
}

const struct pb_meta_band *pb_calibration_band(const struct pb_metadata *facts,
                                               const struct pb_calibration_input *input)
{
    char stem[256];
    const struct pb_meta_band *band = NULL;
    stem_of(input->file, stem, sizeof stem);
    bool other = facts->family->refuses != NULL &&
                 facts->family->refuses(facts, stem, PB_QUANTITY_RADIANCE) != NULL &&
                 facts->family->refuses(facts, stem, PB_QUANTITY_SURFACE) != NULL;
    return !other && find_band(facts, input, stem, &band, NULL) == 0 ? band : NULL;
}

int pb_calibration_of(const struct pb_metadata *facts, const struct pb_calibration_input *input,
                      enum pb_quantity to, struct pb_calibration_rule *out,
                      const struct pb_meta_band **out_band, struct pb_err *err)
{
    char stem[256];
    const char *why = facts->why_not[to];
    stem_of(input->file, stem, sizeof stem);
    const char *other =
        facts->family->refuses != NULL ? facts->family->refuses(facts, stem, to) : NULL;
    if (other != NULL)
        return pb_fail(err, PB_E_INPUT_METADATA_CONFLICT,
                       "calibrate: %s (file %.100s, metadata of %.100s)", other, stem,
                       facts->product[0] ? facts->product : facts->family->name);
    if (facts->n_bands == 0)
        return pb_fail(err, PB_E_INPUT_METADATA_VALUE, "calibrate: %.60s does not become %s: %s",
                       input->name, pb_quantity_name(to),
                       why[0] ? why : "the metadata describe no bands");
    const struct pb_meta_band *band = NULL;
    int rc = find_band(facts, input, stem, &band, err);
    if (rc < 0 || band == NULL)
        return rc;
    *out_band = band;
    if (to == PB_QUANTITY_TOA && input->irradiance > 0)
        return by_irradiance(facts, input, band, out, err);
    if (to >= PB_QUANTITY_SIGMA0)
        return pb_calibration_radar(facts, input, band, to, out, err);
    const struct pb_meta_scale *own = &band->to[to], *radiance = &band->to[PB_QUANTITY_RADIANCE];
    bool planck = to == PB_QUANTITY_TEMPERATURE && !own->known && radiance->known &&
                  !isnan(band->k1) && !isnan(band->k2);
    if (!own->known && !planck)
        return pb_fail(err, PB_E_INPUT_METADATA_VALUE,
                       "calibrate: %.60s (band %s of the product) does not become %s: %s",
                       input->name, band->id, pb_quantity_name(to),
                       why[0] ? why : "the metadata have no such numbers for this band");
    if (planck)
        own = radiance;
    *out = (struct pb_calibration_rule){.gain = own->gain,
                                        .offset = own->offset,
                                        .has_planck = planck,
                                        .k1 = planck ? band->k1 : 0,
                                        .k2 = planck ? band->k2 : 0};
    return 0;
}

char *pb_calibration_text(const struct pb_calibrated *c, char *out, size_t bytes)
{
    const struct pb_calibration_rule *const rule = &c->rule;
    char gain[PB_NUMBER_TEXT], offset[PB_NUMBER_TEXT], k1[PB_NUMBER_TEXT], k2[PB_NUMBER_TEXT];
    char line[2 * PB_NUMBER_TEXT + 16] = "DN";
    if (rule->has_tables) {
        (void)snprintf(out, bytes, "%s",
                       c->has_columns     ? "(DN - dark) * gain"
                       : rule->noise >= 0 ? "max(0, DN^2 - noise) / A^2"
                                          : "DN^2 / A^2");
        return out;
    }
    (void)pb_number_text(rule->gain, gain);
    (void)pb_number_text(fabs(rule->offset), offset);
    if (rule->offset == 0)
        (void)snprintf(line, sizeof line, "DN * %s", gain);
    else
        (void)snprintf(line, sizeof line, "DN * %s %c %s", gain, rule->offset < 0 ? '-' : '+',
                       offset);
    (void)pb_number_text(rule->k1, k1);
    (void)pb_number_text(rule->k2, k2);
    if (rule->has_planck)
        (void)snprintf(out, bytes, "%s / ln(%s / (%s) + 1)", k2, k1, line);
    else
        (void)snprintf(out, bytes, "%s", line);
    return out;
}

const char *pb_calibrated_quantity(const struct pb_calibrated *c)
{
    return c->has_columns ? "columns" : pb_quantity_name(c->to);
}

const char *pb_calibrated_source(const struct pb_calibrated *c, const struct pb_metadata *facts,
                                 char *out, size_t bytes)
{
    char number[PB_NUMBER_TEXT];
    if (c->has_columns)
        return "dark and gain of each column by the table of calibrate.columns";
    if (!(c->irradiance > 0))
        return facts->rule[c->to];
    (void)pb_number_text(c->irradiance, number);
    (void)snprintf(
        out, bytes,
        "radiance * pi * d^2 / (irradiance %s W/(m2 um), of the configuration, * sin(sun "
        "elevation %.8g degrees)), d = %.6g AU",
        number, facts->sun_elevation, pb_meta_sun_distance(facts));
    return out;
}
